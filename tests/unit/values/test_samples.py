"""Selecting samples of a batch: `tensors[...]` and `select(...)`."""

import numpy as np
import pytest

import penstock as ndd

ROWS = [[0], [1, 1], [2, 2, 2], [3]]


@pytest.fixture
def batch():
    return ndd.batch(ROWS, layout="X")


def numbers(batch):
    return [np.asarray(sample).tolist() for sample in batch]


@pytest.mark.parametrize("index", [0, 3, -1, -4, np.int64(2), np.uint8(1), True])
def test_an_integer_picks_a_tensor(batch, index):
    for picked in (batch.tensors[index], batch.select(index)):
        assert type(picked) is ndd.Tensor
        assert np.asarray(picked).tolist() == ROWS[int(index)]
        assert picked.layout == "X"
        assert picked.dtype is batch.dtype


@pytest.mark.parametrize(
    "key",
    [
        slice(1, 3),
        slice(None),
        slice(None, None, -1),
        slice(-1, None),
        slice(2, 0),
        slice(9, 20),
        slice(None, 2**70),
        [2, 0],
        [-1, -1, 0],
        [np.int64(1)],
        [],
        np.array([3, 0]),
    ],
    ids=str,
)
def test_a_slice_or_a_list_picks_a_batch_of_just_those(batch, key):
    expected = ROWS[key] if isinstance(key, slice) else [ROWS[index] for index in key]
    for picked in (batch.tensors[key], batch.select(key)):
        assert type(picked) is ndd.Batch
        assert numbers(picked) == expected
        assert picked.shape == [(len(row),) for row in expected]
        assert (picked.layout, picked.dtype, picked.ndim) == ("X", batch.dtype, 1)


def test_nothing_is_copied(batch):
    first = np.asarray(batch.tensors[0])
    for picked in (batch.tensors[:1], batch.tensors[[1, 0]].tensors[1:], batch.select([0])):
        assert np.shares_memory(np.asarray(picked.tensors[0]), first)


def test_an_ellipsis_is_the_batch_itself(batch):
    assert batch.tensors[...] is batch
    assert batch.select(...) is batch
    assert batch.tensors.as_batch() is batch


@pytest.mark.parametrize("key", [4, -5, 2**70, [0, 4], [-5]])
def test_out_of_range_is_an_index_error_with_both_numbers(batch, key):
    for pick in (batch.tensors.__getitem__, batch.select):
        with pytest.raises(IndexError, match="4 samples"):
            pick(key)


@pytest.mark.parametrize(
    "key", ["a", 1.0, None, (0, 1), range(2), [0, "a"], [[0]], {}, np.array([True]), 1j]
)
def test_other_keys_are_type_errors_that_name_the_way(batch, key):
    for pick in (batch.tensors.__getitem__, batch.select):
        with pytest.raises(TypeError, match="integer"):
            pick(key)


def test_a_tensor_as_key_must_be_one_integer(batch):
    assert np.asarray(batch.tensors[ndd.tensor(1)]).tolist() == [1, 1]
    for key in (ndd.tensor(0.0), ndd.tensor([0, 1]), ndd.batch([0])):
        with pytest.raises(TypeError, match="one element, an integer"):
            batch.tensors[key]


def test_a_step_of_zero_is_a_value_error(batch):
    with pytest.raises(ValueError, match="zero"):
        batch.tensors[::0]


def test_the_samples_are_a_sequence(batch):
    assert len(batch.tensors) == 4
    assert [np.asarray(t).tolist() for t in batch.tensors] == ROWS
    assert [np.asarray(t).tolist() for t in batch.tensors.tolist()] == ROWS
    assert batch.tensors.tolist()[1].shape == (2,)
    assert np.asarray(batch.tensors.select(2)).tolist() == ROWS[2]


def test_they_can_t_be_replaced(batch):
    with pytest.raises(TypeError, match="assignment"):
        batch.tensors[0] = 1
    with pytest.raises(AttributeError):
        batch.tensors.note = 1


def test_picking_of_unfinished_work_waits_only_when_read():
    with ndd.EvalMode.deferred:
        later = ndd.batch(ROWS) + 1
        picked = later.tensors[[2, 0]]
        one = later.tensors[-1]
    assert not later._value.finished
    assert (picked.batch_size, picked.ndim, one.ndim) == (2, 1, 1)
    assert not later._value.finished
    assert numbers(picked) == [[3, 3, 3], [1]]
    assert np.asarray(one).tolist() == [4]


def test_a_picked_sample_outlives_its_batch():
    batch = ndd.batch(ROWS) + 0
    one = batch.tensors[2]
    del batch
    assert np.asarray(one).tolist() == ROWS[2]
