"""Readers of LMDB databases: restoring, broken files, and what DALI can't do."""

import numpy as np
import pytest
from tests.protobuf import database, datum, floats, ints, tensors, texts

from penstock.readers import Caffe, Caffe2

IMAGE = texts(b"jpeg bytes")


@pytest.fixture
def path(tmp_path):
    return database(tmp_path / "db", [datum(bytes([n]) * (n + 1), n) for n in range(11)])


def labels(outputs):
    return np.asarray(outputs[1].torch()).reshape(-1).tolist()


@pytest.mark.parametrize("arguments", [{}, {"random_shuffle": True}, {"shuffle": "global"}])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_restored_reader_goes_on_at_every_step(path, arguments, shards):
    def make():
        return Caffe(path=path, num_shards=shards, shard_id=shards - 1, seed=5, **arguments)

    whole = make()
    expected = [labels(out) for _ in range(3) for out in whole.next_epoch(batch_size=2)]
    for stop in range(len(expected)):
        reader, found = make(), []
        while len(found) < stop:
            for outputs in reader.next_epoch(batch_size=2):
                found.append(labels(outputs))
                if len(found) == stop:
                    break
        state = str(reader.get_state())
        after = make()
        after.set_state(state)
        while len(found) < len(expected):
            found += [labels(outputs) for outputs in after.next_epoch(batch_size=2)]
        assert found[: len(expected)] == expected, stop


def test_a_database_may_be_named_by_its_file(path):
    assert len(list(Caffe(path=path + "/data.mdb").next_epoch())) == 11


def test_a_broken_record_is_named_and_can_be_left_out(tmp_path):
    records = [datum(b"a", 1), b"\xff\xff\xff", datum(b"b", 2)]
    path = database(tmp_path / "db", records)
    with pytest.raises(RuntimeError, match=r"not a Datum of Caffe(.|\n)*db at key 00000001"):
        [[np.asarray(value) for value in out] for out in Caffe(path=path).next_epoch()]
    reader = Caffe(path=path, on_error="skip")
    assert [labels(out) for out in reader.next_epoch(batch_size=3)] == [[1, 2]]
    [error] = reader.errors
    assert error.sample == 1
    assert "at key 00000001" in error.file


def test_files_damaged_anywhere_are_errors_never_worse(tmp_path):
    path = database(tmp_path / "db", [datum(bytes([n]) * 3000, n) for n in range(40)])
    file = tmp_path / "db/data.mdb"
    whole = file.read_bytes()
    rng = np.random.default_rng(1)
    told, nothing = [], []
    for trial in range(150):
        broken = bytearray(whole)
        if trial % 3 == 0:
            broken = broken[: rng.integers(len(whole))]
        else:
            # Near the start of a page, where its structure is.
            for _ in range(3):
                place = rng.integers(len(whole) // 4096) * 4096 + rng.integers(200)
                broken[place] = rng.integers(256)
        file.write_bytes(broken)
        try:
            for outputs in Caffe(path=path).next_epoch(batch_size=4):
                [np.asarray(value) for output in outputs for value in output]
        except RuntimeError as error:
            told.append(str(error))
        try:
            reader = Caffe(path=path, on_error="skip")
        except ValueError as error:
            # The page that is left may be that of the database when it was new.
            nothing.append(str(error))
            continue
        given = [np.asarray(outputs[0]) for outputs in reader.next_epoch()]
        assert len(given) + len(reader.errors) == reader.epoch_size <= 41
    assert told
    assert all("names no samples" in text for text in nothing)
    assert all("readers.Caffe" in text and "bug in penstock" not in text for text in told)


def test_sparse_labels_become_rows(tmp_path):
    path = database(tmp_path / "sparse", [tensors(IMAGE, ints(0, 2))])
    [(_, label)] = Caffe2(path=path, label_type=1, num_labels=4).next_epoch()
    assert np.asarray(label).tolist() == [1, 0, 1, 0]
    path = database(tmp_path / "weighted", [tensors(IMAGE, ints(0, 2), floats(0.25, 0.5))])
    [(_, label)] = Caffe2(path=path, label_type=3, num_labels=4).next_epoch()
    assert np.asarray(label).tolist() == [0.25, 0, 0.5, 0]


def test_a_record_with_too_few_tensors_is_an_error(tmp_path):
    path = database(tmp_path / "db", [tensors(IMAGE, ints(4))])
    with pytest.raises(RuntimeError, match=r"the record has 2 tensors, but .* ask for 7"):
        [np.asarray(out[0]) for out in Caffe2(path=path, additional_inputs=5).next_epoch()]
