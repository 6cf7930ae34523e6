"""`readers.TFRecord`: features that records don't have, or have otherwise."""

import numpy as np
import pytest
from tests.records import example, framed, write_framed

import penstock as ndd
from penstock.readers import TFRecord
from penstock.tfrecord import FixedLenFeature, VarLenFeature, float32, int64, string


@pytest.fixture
def path(tmp_path):
    rows = [
        example(i=("int64", [1, 2]), f=("float", [0.5]), s=("bytes", [b"text"])),
        example(i=("int64", []), other=("int64", [5])),
    ]
    write_framed(tmp_path / "file", map(framed, rows))
    return tmp_path / "file"


def read(path, feature, key="i"):
    reader = TFRecord(path=path, features={key: feature})
    return [np.asarray(sample[key]).tolist() for sample in reader.next_epoch()]


def test_defaults_stand_in_where_there_is_no_value(path):
    assert read(path, FixedLenFeature([2], int64, -7)) == [[1, 2], [-7, -7]]
    assert read(path, FixedLenFeature([1, 2], int64, [[3, 4]])) == [[[1, 2]], [[3, 4]]]
    assert read(path, FixedLenFeature((), float32, 2), "f") == [0.5, 2.0]
    assert read(path, FixedLenFeature((), string, "é"), "s") == [[*b"text"], [0xC3, 0xA9]]
    assert read(path, VarLenFeature(int64, 0)) == [[1, 2], []]
    assert read(path, VarLenFeature([2], int64)) == [[[1, 2]], []]


@pytest.mark.parametrize(
    ("feature", "key", "says"),
    [
        (FixedLenFeature([2], int64), "i", "'i' has no values, and no default"),
        (FixedLenFeature([3], int64, 0), "i", r"has 2 values, but its shape \[3\] needs 3"),
        (
            VarLenFeature([0], int64, 0),
            "i",
            r"2 values, which can.t be split into rows of shape \[0\]",
        ),
        (FixedLenFeature((), string), "x", "'x' is not in the record, and has no default"),
        (FixedLenFeature([2], float32, 0.0), "i", "should hold float32, but holds int64"),
        (FixedLenFeature([2**40, 2**40], int64, 0), "i", "too large"),
    ],
)
def test_records_that_are_otherwise_are_errors(path, feature, key, says):
    with pytest.raises(OSError, match=says):
        read(path, feature, key)


def test_dtypes_and_shapes_are_known_at_once(path):
    features = {
        "i": VarLenFeature([2], int64, 0),
        "f": FixedLenFeature([1, 1], float32, 0.0),
        "s": FixedLenFeature((), string, ""),
    }
    batch = next(TFRecord(path=path, features=features).next_epoch(batch_size=2))
    assert list(batch) == ["i", "f", "s"]
    assert [(one.dtype, one.ndim) for one in batch.values()] == [
        (ndd.int64, 2),
        (ndd.float32, 2),
        (ndd.uint8, 1),
    ]
    assert batch["f"].torch().tolist() == [[[0.5]], [[0.0]]]


@pytest.mark.parametrize(
    ("make", "kind", "says"),
    [
        (lambda: FixedLenFeature([1], int64, 1.5), ValueError, "an integer, got 1.5"),
        (lambda: FixedLenFeature([1], int64, 2**63), ValueError, "64 bits"),
        (lambda: FixedLenFeature([3], int64, [1, 2]), ValueError, "as many as its shape"),
        (lambda: FixedLenFeature([1], ndd.int64, 0), TypeError, "tfrecord.int64"),
        (lambda: FixedLenFeature([2], string, ""), ValueError, "no tensors of strings"),
        (lambda: VarLenFeature(string, ""), ValueError, "no tensors of strings"),
        (lambda: VarLenFeature(), TypeError, "got 0 arguments"),
        (lambda: VarLenFeature([2], int64, 0, 0), TypeError, "got 4 arguments"),
    ],
)
def test_features_say_what_is_wrong_with_them(make, kind, says):
    with pytest.raises(kind, match=says):
        make()


def test_a_feature_shows_how_it_was_made():
    assert repr(VarLenFeature([2], int64, 0)) == "VarLenFeature((2,), int64, 0)"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x1f\x8b" + b"\0" * 30, "compressed with gzip; decompress it first"),
        (b"something else entirely", "may not be a TFRecord file"),
        (framed(b"")[:-1], "record 0, at byte 0, is cut off"),
        (framed(b"") + b"x", "record 1, at byte 16, is cut off"),
        (b"", "names no samples"),
    ],
)
def test_what_is_no_tfrecord_file_is_said_at_once(tmp_path, content, says):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=says):
        TFRecord(path=tmp_path / "file", features={"i": VarLenFeature(int64)})


def test_an_index_is_blamed_by_its_own_name(path):
    features = {"i": VarLenFeature(int64)}
    with pytest.raises(ValueError, match=r"`index_path` can't be used: .*nope"):
        TFRecord(path=path, index_path="nope", features=features)
