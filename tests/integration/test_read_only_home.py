"""A home that may not be written can be read, and says why it cannot be written."""

import os
from contextlib import contextmanager

import pytest

import laminae as lm
from laminae.errors import HomeUnwritable

NOBODY = 65534


@contextmanager
def without_root():
    """Permissions do not bind root, so the test gives its rights up for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only_home(tmp_path):
    home = tmp_path / "home"
    with lm.connect(str(home)) as db:
        db.sql("CREATE SOURCE s (a INT)")
    changed = [*home.iterdir(), home]
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and "pytest" in parent.name:
            parent.chmod(0o755)
    for path in changed:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield str(home)
    for path in reversed(changed):
        path.chmod(0o755)


def test_history_is_read_and_an_alter_is_refused(read_only_home):
    with without_root(), lm.connect(read_only_home) as db:
        assert [row.column_name for row in db.history("s")] == ["a"]
        with pytest.raises(HomeUnwritable):
            db.sql("ALTER SOURCE s ADD COLUMN b INT")
