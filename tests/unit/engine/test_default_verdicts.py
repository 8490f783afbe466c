"""What compatibility modes say of defaults: records from before a column keep the value that it was added with."""

from __future__ import annotations

import pytest

import laminae as lm
from laminae.errors import EvolutionRejected

MODES = ("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")


@pytest.fixture
def db(tmp_path):
    with lm.connect(str(tmp_path / "home")) as found:
        yield found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("column", ["c STRING NOT NULL", "c STRING"])
def test_a_default_may_be_dropped_set_and_dropped_again_under_every_mode(db, mode, column):
    db.sql(f"CREATE SOURCE s (id INT) WITH (connector = 'push', compatibility = '{mode}')")
    db.sql(f"ALTER SOURCE s ADD COLUMN {column} DEFAULT 'x'")
    for change in ("DROP DEFAULT", "SET DEFAULT 'y'", "DROP DEFAULT"):
        db.sql(f"ALTER SOURCE s ALTER COLUMN c {change}")
    # Nor does the lack of one stand in the way of what comes later.
    db.sql("ALTER SOURCE s ADD COLUMN d STRING")
    assert db.version("s") == 6


def test_a_default_that_came_too_late_gives_older_records_no_value(db):
    db.sql("CREATE SOURCE s (id INT) WITH (connector = 'push', compatibility = 'BACKWARD_TRANSITIVE')")
    db.sql("ALTER SOURCE s ADD COLUMN c STRING NOT NULL FORCE")
    with pytest.raises(EvolutionRejected, match=r"old records have no value for the column \(against version 1\)"):
        db.sql("ALTER SOURCE s ALTER COLUMN c SET DEFAULT 'y'")


@pytest.mark.parametrize("mode", ["BACKWARD", "BACKWARD_TRANSITIVE", "FULL"])
def test_a_column_that_is_added_without_a_default_is_refused(db, mode):
    db.sql(f"CREATE SOURCE s (id INT) WITH (connector = 'push', compatibility = '{mode}')")
    with pytest.raises(EvolutionRejected, match="NOT NULL without default"):
        db.sql("ALTER SOURCE s ADD COLUMN c STRING NOT NULL")
