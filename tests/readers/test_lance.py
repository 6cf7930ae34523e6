"""`readers.Lance`: rows are those that the package itself reads."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.data_sets import epoch, table

import penstock as ndd

lance = pytest.importorskip("lance")
pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def path(tmp_path) -> str:
    made = str(tmp_path / "samples.lance")
    lance.write_dataset(table(30), made, max_rows_per_file=8)
    return made


def labels(reader: Any, batch_size: int = 4) -> list[int]:
    batches = reader.next_epoch(batch_size=batch_size)
    return [int(np.asarray(one)) for batch in batches for one in batch["label"]]


def test_rows_are_those_of_the_package(path):
    reader = ndd.readers.Lance(path=path)
    rows = lance.dataset(path).to_table().to_pylist()
    batch = reader[[29, 0, 7, 7]]
    for number, image, label, boxes in zip(
        [29, 0, 7, 7], batch["image"], batch["label"], batch["boxes"], strict=True
    ):
        row = rows[number]
        assert bytes(np.asarray(image)) == row["image"]["bytes"]
        assert int(np.asarray(label)) == row["label"]
        assert np.asarray(boxes).tolist() == row["boxes"]
    assert labels(reader, 3) == list(range(30))
    assert reader[17]["label"].source_info == f"{path} at row 17"


def test_columns_are_chosen(path):
    reader = ndd.readers.Lance(path=path, columns=["label", "image.path"])
    assert list(reader[3]) == ["label", "image.path"]
    assert bytes(np.asarray(reader[3]["image.path"])) == b"3"
    with pytest.raises(ValueError, match=r"there is no column 'labl'; there are .image"):
        ndd.readers.Lance(path=path, columns=["labl"])


def test_fragments_are_shuffled_as_groups(path):
    reader = ndd.readers.Lance(path=path, shuffle="groups", initial_fill=8, seed=3)
    found = labels(reader, 5)
    assert sorted(found) == list(range(30))
    assert found != list(range(30))
    again = ndd.readers.Lance(path=path, shuffle="groups", initial_fill=8, seed=3)
    assert labels(again, 5) == found


def test_the_version_that_was_opened_is_read_to_the_end(path):
    reader = ndd.readers.Lance(path=path)
    data = lance.dataset(path)
    data.delete("label < 25")
    copy = pickle.loads(pickle.dumps(reader))
    assert labels(reader, 3) == labels(copy, 3) == list(range(30))
    assert labels(ndd.readers.Lance(path=path), 5) == [25, 26, 27, 28, 29]
    assert labels(ndd.readers.Lance(path=path, version=1), 3) == list(range(30))
    states = [str(ndd.readers.Lance(path=path, version=v)._fingerprint()) for v in (1, 2)]
    assert states[0] != states[1]


def test_nulls_are_bad_samples(tmp_path):
    path = str(tmp_path / "nulls.lance")
    lance.write_dataset(pyarrow.table({"label": [0, 1, None, 3]}), path)
    with pytest.raises(RuntimeError, match="column 'label' is null in this row"):
        labels(ndd.readers.Lance(path=path), 2)
    reader = ndd.readers.Lance(path=path, on_error="skip", last_batch="partial")
    assert labels(reader, 2) == [0, 1, 3]
    (found,) = reader.errors
    assert found.sample == 2


def test_damaged_files_are_bad_samples(path):
    first = Path(path) / "data" / lance.dataset(path).get_fragments()[0].data_files()[0].path
    first.write_bytes(first.read_bytes()[:50])
    with pytest.raises(RuntimeError, match="the row can't be read"):
        labels(ndd.readers.Lance(path=path), 3)
    reader = ndd.readers.Lance(path=path, on_error="skip", last_batch="partial")
    assert labels(reader, 6) == list(range(8, 30))
    assert len(reader.errors) == 8


def test_mistakes(path, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"`path` can't be used: .*nowhere.*not found"):
        ndd.readers.Lance(path=tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"`path` can't be used: .*not found"):
        ndd.readers.Lance(path=path, version=99)
    with pytest.raises(TypeError, match="`version` must be the number of a version"):
        ndd.readers.Lance(path=path, version="latest")
    empty = str(tmp_path / "empty.lance")
    lance.write_dataset(table(0), empty)
    with pytest.raises(ValueError, match="names no samples"):
        ndd.readers.Lance(path=empty)
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(RuntimeError, match=r"pip install 'penstock\[lance\]'"):
        ndd.readers.Lance(path=path)


def test_states_resume_anywhere(path):
    reader = ndd.readers.Lance(path=path, shuffle="global", seed=1)
    batches = iter(reader.next_epoch(batch_size=4))
    next(batches)
    state = reader.get_state()
    rest = [np.asarray(ndd.as_tensor(batch["label"])).tolist() for batch in batches]
    other = ndd.readers.Lance(path=path, shuffle="global", seed=1)
    other.set_state(state)
    assert [
        np.asarray(ndd.as_tensor(batch["label"])).tolist()
        for batch in other.next_epoch(batch_size=4)
    ] == rest
    assert epoch(reader, 4)
