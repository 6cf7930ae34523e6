"""Columns of pyarrow, polars and pandas as batches, and batches as columns."""

import gc
import sys

import numpy as np
import pytest

import penstock as ndd

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")


def numbers(batch):
    return [np.asarray(sample).tolist() for sample in batch]


def address(tensor):
    return tensor._value.memory(0, False).address


LISTS = [[1, 2], [], [3]]
BINARY = [b"abc", b"", b"longer than twelve bytes"]
NESTED = [[[1, 2], [3, 4]], [[5]], [[6, 7, 8]]]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(LISTS), LISTS),
        (pa.array(LISTS, pa.large_list(pa.float16())), LISTS),
        (pa.array([[9], *LISTS])[1:], LISTS),
        (pa.array([[[9]], *NESTED])[1:], NESTED),
        (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2))[1:], [[3, 4], [5, 6]]),
        (
            pa.array([[[0, 0]], [[1, 2], [3, 4]]], pa.list_(pa.list_(pa.int8(), 2)))[1:],
            [[[1, 2], [3, 4]]],
        ),
        (pa.array([[[[1], [2]]], [[[3], [4]]]]), [[[[1], [2]]], [[[3], [4]]]]),
        (pa.array([[True, False], [True]])[1:], [[True]]),
        (pa.array([1, 2, 3], pa.uint16())[1:], [2, 3]),
        (pa.chunked_array([[[1, 2]], [], [[3], [4]]]), [[1, 2], [3], [4]]),
        (pa.table({"a": LISTS})["a"], LISTS),
        (pl.Series(LISTS), LISTS),
        (pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Float32, 2)), [[1, 2], [3, 4]]),
        (pl.Series(NESTED), NESTED),
        (pl.DataFrame({"a": LISTS})["a"], LISTS),
        (pd.Series([np.arange(3), np.arange(2)]), [[0, 1, 2], [0, 1]]),
        (pd.Series([[1, 2], [3]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))), [[1, 2], [3]]),
        (pd.Series([1.5, 2.0]), [1.5, 2.0]),
    ],
)
def test_rows_are_samples(column, expected):
    assert numbers(ndd.as_batch(column)) == expected
    assert numbers(ndd.batch(column, dtype=ndd.float64)) == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array(BINARY),
        pa.array(BINARY, pa.large_binary()),
        pa.array(BINARY, pa.binary_view()),
        pa.array([b"x", *BINARY], pa.binary_view())[1:],
        pa.array([b"x", *BINARY])[1:],
        pa.chunked_array([BINARY[:1], BINARY[1:]]),
        pl.Series(BINARY),
        pl.Series([b"x", *BINARY])[1:],
        pd.Series(BINARY),
    ],
)
def test_binary_values_are_bytes(column):
    made = ndd.as_batch(column)
    assert made.dtype is ndd.uint8
    assert [np.asarray(sample).tobytes() for sample in made] == BINARY


def test_binary_of_a_fixed_size_are_bytes():
    made = ndd.as_batch(pa.array([b"abc", b"def", b"ghi"], pa.binary(3))[1:])
    assert [np.asarray(sample).tobytes() for sample in made] == [b"def", b"ghi"]


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_types_are_kept(dtype):
    made = ndd.as_batch(pa.array([[1], [2, 3]], pa.list_(getattr(pa, dtype)())))
    assert made.dtype is getattr(ndd, dtype)


@pytest.mark.parametrize("lists", [[[1, 2], [3, 4]], [[1, 2], [3]]], ids=["uniform", "ragged"])
def test_memory_is_shared_unless_copied(lists):
    column = pa.array(lists, pa.list_(pa.int32()))
    start = column.flatten().buffers()[1].address
    shared = ndd.as_batch(column)
    assert [address(sample) for sample in shared] == [start, start + 8]
    assert address(ndd.batch(column).tensors[0]) != start
    assert not np.asarray(shared.tensors[0]).flags.writeable


@pytest.mark.parametrize("make", [pa.array, pl.Series, lambda rows: pa.chunked_array([rows])])
def test_samples_keep_the_column_alive(make):
    made = ndd.as_batch(make([[number] * 1000 for number in range(50)]))
    other = ndd.as_batch(make([[number] * 1000 for number in range(50, 51)]))
    gc.collect()
    assert [sample.torch(copy=True)[-1].item() for sample in made] == list(range(50))
    assert other.tensors[0].torch(copy=True)[0].item() == 50


@pytest.mark.parametrize(
    ("column", "row"),
    [
        (pa.array([[1], None]), "row 1 is null"),
        (pa.array([None, [1], None])[1:], "row 1 is null"),
        (pa.array([b"a", b"b", None]), "row 2 is null"),
        (pa.array([1, None]), "row 1 is null"),
        (pa.array([[1], [2, None], [3]]), "row 1 has a null inside"),
        (pa.array([[[1]], [[2], None]]), "row 1 has a null inside"),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), "row 1 is null"),
        (pa.chunked_array([[[1, 2]], [[3], None]]), "row 2 is null"),
        (pl.Series([[1], None]), "row 1 is null"),
        (pl.Series([b"a", None]), "row 1 is null"),
        (pa.array([[[1]], [[1, 2], [3]]]), "row 1 differ in length"),
        (pa.chunked_array([[[[1]]], [[[1], [2]], [[1, 2], [3]]]]), "row 2 differ in length"),
    ],
)
def test_rows_that_are_no_array_are_named(column, row):
    with pytest.raises(ValueError, match=row):
        ndd.as_batch(column)


def test_nulls_outside_of_a_slice_do_not_matter():
    assert numbers(ndd.as_batch(pa.array([None, [1], None])[1:2])) == [[1]]
    assert numbers(ndd.as_batch(pa.array([[None], [1], [2]])[1:])) == [[1], [2]]


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array(["a"]), "strings"),
        (pl.Series(["a"]), "strings"),
        (pa.array([["a"]]), "strings"),
        (pa.array([[b"a"]]), "lists of binary"),
        (pa.array([{"a": 1}]), "structs"),
        (pa.table({"a": [1]}), "pass one column"),
        (pl.DataFrame({"a": [1]}), "pass one column"),
        (pa.array(["a"]).dictionary_encode(), "dictionary"),
        (pa.array([1], pa.timestamp("s")), "times"),
        (pa.array([None]), "nulls"),
    ],
)
def test_unsupported_types_are_named(column, says):
    with pytest.raises(TypeError, match=says):
        ndd.as_batch(column)


def test_a_missing_row_of_pandas_is_named():
    with pytest.raises(TypeError, match="`None` at index 1"):
        ndd.as_batch(pd.Series([b"ab", None], dtype=object))


@pytest.mark.parametrize(
    ("column", "ndim"),
    [
        (pa.array([], pa.list_(pa.list_(pa.int8()))), 2),
        (pa.chunked_array([], pa.list_(pa.int8())), 1),
        (pa.chunked_array([[], []], pa.list_(pa.int8())), 1),
        (pl.Series([], dtype=pl.List(pl.Int8)), 1),
    ],
)
def test_columns_without_rows_are_empty_batches(column, ndim):
    made = ndd.as_batch(column)
    assert (len(made), made.ndim, made.dtype) == (0, ndim, ndd.int8)


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        (ndd.batch([[1, 2], [3]]), "large_list<item: int32>"),
        (ndd.batch(np.zeros((2, 4), np.float16)), "fixed_size_list<item: halffloat>[4]"),
        (
            ndd.batch([np.ones((2, 2, 3), np.uint8), np.ones((3, 1, 3), np.uint8)]),
            "large_list<item: large_list<item: fixed_size_list<item: uint8>[3]>>",
        ),
        (ndd.batch([1, 2]), "int32"),
        (ndd.batch([True, False]), "bool"),
        (ndd.batch([np.zeros((0, 2)), np.ones((1, 2))]), None),
        (ndd.batch([np.zeros((2, 0)), np.zeros((1, 0))]), None),
        (ndd.batch([], dtype=ndd.int8), "int8"),
    ],
)
def test_batches_become_columns_and_come_back(batch, kind):
    column = pa.array(batch)
    assert len(column) == len(batch)
    if kind is not None:
        assert str(column.type) == kind
    again = ndd.as_batch(column)
    assert (again.dtype, again.shape) == (batch.dtype, batch.shape)
    assert numbers(again) == numbers(batch)
    assert pl.Series(batch).to_list() == column.to_pylist()


def test_columns_outlive_their_batches():
    column = pa.array(ndd.batch([[1, 2], [3]]) + 1)
    gc.collect()
    assert column.to_pylist() == [[2, 3], [4]]


def test_exports_that_arrow_has_no_type_for_are_errors(monkeypatch):
    with pytest.raises(TypeError, match="bfloat16"):
        pa.array(ndd.batch([1.0], dtype=ndd.bfloat16))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RuntimeError, match="requires pyarrow"):
        ndd.batch([1]).__arrow_c_array__()
