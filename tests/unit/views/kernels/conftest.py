"""Where the kernels of tables keep their state, and how their rows are hashed."""

from __future__ import annotations

import pytest

from laminae.trace.store import RunStore
from tests.support.traces import few_hashes, spread_hash


@pytest.fixture(params=[spread_hash, few_hashes], ids=["spread", "colliding"])
def hashed(request):
    return request.param


@pytest.fixture
def store(tmp_path) -> RunStore:
    return RunStore.at(str(tmp_path))
