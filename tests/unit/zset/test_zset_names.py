"""The names that others import, and what importing them costs."""

import subprocess
import sys

import pytest

import laminae.zset

FIXED = (
    "CdcOperation", "ChangelogRecord", "ChangelogRef", "ChangelogBuffer", "LateDataRetractionGenerator",
    "CountAggregator", "CountValueAggregator", "SumAggregator", "AvgAggregator", "MinAggregator", "MaxAggregator",
    "CdcEnvelope", "CdcSource", "consolidate", "net_changes",
)  # fmt: skip


@pytest.mark.parametrize("name", FIXED)
def test_the_fixed_names_are_there(name):
    assert name in laminae.zset.__all__
    assert hasattr(laminae.zset, name)


def test_importing_loads_no_spark_and_no_pandas():
    heavy = "[name for name in ('pyspark', 'pandas', 'pyiceberg', 'confluent_kafka') if name in sys.modules]"
    code = f"import sys; import laminae.zset; print({heavy})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"
