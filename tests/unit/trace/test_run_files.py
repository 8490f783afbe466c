"""Runs on a file system: what is written, what is checked when it is opened, and what a lost file says."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pytest

from laminae.errors import HomeUnwritable, NewerHome, RunDamaged
from laminae.trace import run as run_format
from laminae.trace.cache import BoundedCache
from laminae.trace.run import RUN, read_run
from laminae.trace.spec import TraceSpec
from laminae.trace.store import RunStore

SPEC = TraceSpec.replace("t", [pa.field("k", pa.int64())], [pa.field("v", pa.string())])


def batch(*keys: int) -> pa.RecordBatch:
    columns = [list(keys), list(keys), [f"v{key}" for key in keys], [1] * len(keys)]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SPEC.schema, strict=True)], schema=SPEC.schema
    )


def fresh(store: RunStore) -> RunStore:
    """The same files as another process sees them: nothing opened, nothing verified."""
    return replace(store, cache=BoundedCache(1 << 20), verified=BoundedCache(1 << 10))


@pytest.fixture(params=["local", "pyarrow.fs"])
def store(request, tmp_path) -> RunStore:
    if request.param == "local":
        return RunStore.at(str(tmp_path / "home"), "view/0")
    return RunStore(pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem()), "home", "view/0")


def path_of(store: RunStore, entry, tmp_path) -> str:
    return str(tmp_path / "home" / entry.path)


def test_written_rows_are_read_back_by_another_process(store):
    entry = store.write(SPEC, batch(1, 2, 3))
    found = fresh(store).open(entry)
    assert found.batch.to_pylist() == batch(1, 2, 3).to_pylist()
    assert found.hashes.tolist() == [1, 2, 3]
    assert (entry.rows, entry.dead) == (3, 0)


def test_two_writes_of_the_same_rows_never_share_a_name(store):
    assert store.write(SPEC, batch(1)).path != store.write(SPEC, batch(1)).path


def test_entry_says_how_many_bytes_there_are(store, tmp_path):
    entry = store.write(SPEC, batch(1, 2))
    assert os.path.getsize(path_of(store, entry, tmp_path)) == entry.bytes


def test_missing_file_is_named(store, tmp_path):
    entry = store.write(SPEC, batch(1))
    os.remove(path_of(store, entry, tmp_path))
    with pytest.raises(RunDamaged, match="is missing") as error:
        fresh(store).open(entry)
    assert entry.path in str(error.value)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.95])
def test_flipped_bit_is_found_and_the_file_named(store, tmp_path, place):
    entry = store.write(SPEC, batch(*range(100)))
    with open(path_of(store, entry, tmp_path), "r+b") as file:
        file.seek(int(entry.bytes * place))
        byte = file.read(1)[0]
        file.seek(int(entry.bytes * place))
        file.write(bytes([byte ^ 4]))
    with pytest.raises(RunDamaged, match="checksum") as error:
        fresh(store).open(entry)
    assert entry.path in str(error.value)


def test_damaged_file_that_is_put_back_is_looked_at_again(store, tmp_path):
    entry = store.write(SPEC, batch(1, 2))
    path = path_of(store, entry, tmp_path)
    with open(path, "rb") as file:
        whole = file.read()
    reader = fresh(store)
    for content, is_whole in ((whole[:-1] + bytes([whole[-1] ^ 1]), False), (whole, True)):
        with open(path, "wb") as file:
            file.write(content)
        if is_whole:
            assert reader.open(entry).batch.num_rows == 2
        else:
            with pytest.raises(RunDamaged, match="checksum"):
                reader.open(entry)


def test_file_that_is_damaged_after_it_was_verified_is_still_named(store, tmp_path):
    entry = store.write(SPEC, batch(*range(100)))
    path = path_of(store, entry, tmp_path)
    with open(path, "rb") as file:
        whole = file.read()
    found = 0
    for place in range(0, len(whole), 8):
        damaged = whole[:place] + bytes(each ^ 0xFF for each in whole[place : place + 8]) + whole[place + 8 :]
        try:
            read_run(entry.path, pa.py_buffer(damaged))
        except RunDamaged as error:
            found += entry.path in str(error)
    assert found


def test_shortened_file_is_found(store, tmp_path):
    entry = store.write(SPEC, batch(1, 2))
    os.truncate(path_of(store, entry, tmp_path), entry.bytes - 8)
    with pytest.raises(RunDamaged, match="bytes, "):
        fresh(store).open(entry)


def test_file_is_verified_once_in_a_process(store, tmp_path):
    """Reading 500 MB again for every epoch would cost more than the epoch."""
    entry = store.write(SPEC, batch(1, 2))
    small = replace(fresh(store), cache=BoundedCache(0))
    small.open(entry)
    with open(path_of(store, entry, tmp_path), "r+b") as file:
        file.seek(-40, os.SEEK_END)
        file.write(b"\0")
    assert small.open(entry).hashes.tolist() == [1, 2]


def test_file_its_directory_and_every_new_directory_are_synced(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync

    def recorded(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        sync(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    home = tmp_path / "home"
    entry = RunStore.at(str(home), "view/0").write(SPEC, batch(1))
    places = [tmp_path, home, home / "view", home / entry.path, home / "view/0"]
    assert synced == [place.stat().st_ino for place in places]


def test_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(HomeUnwritable) as error:
        RunStore.at(str(tmp_path / "home"), "view/0").write(SPEC, batch(1))
    assert str(tmp_path / "home") in str(error.value)


def test_run_of_a_newer_laminae_is_refused(monkeypatch, store):
    monkeypatch.setattr(run_format, "RUN_FORMAT", 2)
    entry = store.write(SPEC, batch(1))
    monkeypatch.undo()
    with pytest.raises(NewerHome, match="format 2"):
        fresh(store).open(entry)


def test_other_arrow_files_are_not_runs():
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SPEC.schema) as writer:
        writer.write_batch(batch(1))
    with pytest.raises(RunDamaged, match="not a run"):
        read_run("x.run", sink.getvalue())
    with pytest.raises(RunDamaged, match="cannot be read"):
        read_run("x.run", pa.py_buffer(b"nothing of the kind"))


def test_file_says_what_it_holds(store):
    entry = store.write(SPEC, batch(5, 9))
    with store.filesystem.open_input_file(store._full(entry.path)) as file:
        facts = pa.ipc.open_file(file).schema.metadata[RUN].decode()
    assert '"format": 1' in facts
    assert '"rows": 2, "min_hash": 5, "max_hash": 9' in facts


def test_files_lists_runs_with_sizes(store):
    entry = store.write(SPEC, batch(1))
    (found,) = store.files()
    assert (found.path, found.bytes) == (entry.path, entry.bytes)
    store.delete([entry.path])
    store.delete([entry.path])
    assert list(store.files()) == []


def test_opened_runs_are_kept_within_their_bound():
    cache: BoundedCache[str] = BoundedCache(10)
    assert [cache.get(key, 4, lambda key=key: key) for key in "aba"] == ["a", "b", "a"]
    cache.get("c", 4, lambda: "c")
    assert [key in cache for key in "abc"] == [True, False, True]
    assert cache.get("large", 11, lambda: "large") == "large"
    assert "large" not in cache
    assert cache.bytes == 8


def test_opened_run_is_a_view_of_the_file(tmp_path):
    store = RunStore.at(str(tmp_path))
    found = fresh(store).open(store.write(SPEC, batch(*range(1000))))
    before = pa.total_allocated_bytes()
    assert int(found.hashes[-1]) == 999
    assert np.shares_memory(found.hashes, np.frombuffer(found.batch.column(0).buffers()[1], dtype=np.int64))
    assert pa.total_allocated_bytes() - before < 8000
