"""Operators that return views of their inputs, and the conditions for that to be safe."""

import numpy as np
import pytest

import penstock as ndd

VIEWS = {
    "reshape": lambda x: ndd.reshape(x, shape=[-1]),
    "reinterpret": lambda x: ndd.reinterpret(x, dtype=ndd.int8),
    "squeeze": lambda x: ndd.squeeze(x, axes=[]),
    "expand_dims": lambda x: ndd.expand_dims(x, axes=[0, -1]),
    "transpose of extents of 1": lambda x: ndd.transpose(
        ndd.expand_dims(x, axes=0), perm=[1, 0, 2]
    ),
    "per_frame": lambda x: ndd.per_frame(x),
    "cat of one": lambda x: ndd.cat(x),
    "stack of one": lambda x: ndd.stack(x),
    "element_extract": lambda x: ndd.element_extract(x, element_map=1),
    "sequence_rearrange to a part": lambda x: ndd.sequence_rearrange(x, new_order=[1, 2]),
}
DATA = np.arange(12, dtype=np.uint8).reshape(3, 4)
each_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


@each_view
def test_owned_memory_is_shared(view):
    data = ndd.tensor(DATA)
    assert np.shares_memory(np.asarray(view(data)), np.asarray(data))


@each_view
def test_memory_outlives_the_input(view):
    expected = np.array(view(ndd.tensor(DATA)))
    made = view(ndd.tensor(DATA) + np.uint8(0))
    filler = [ndd.tensor(np.full_like(DATA, 255)) for _ in range(100)]
    np.testing.assert_array_equal(np.asarray(made), expected)
    del filler


@each_view
@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_memory_of_others_stays_theirs(view, mode):
    # Later results must be computed before its owner can change it.
    array = DATA.copy()
    with mode:
        made = view(ndd.as_tensor(array))
        later = made + np.uint8(1)
        expected = np.array(made) + 1
        array[:] = 99
        assert made._value.external
        np.testing.assert_array_equal(np.asarray(later), expected)


@each_view
def test_a_gpu_gets_memory_of_its_own(view, emulated):
    array = DATA.copy()
    expected = np.array(view(ndd.tensor(array)))
    made = view(ndd.as_tensor(array)).gpu()
    moved = ndd.reshape(ndd.as_tensor(array), shape=[-1], device="gpu")
    array[:] = 99
    np.testing.assert_array_equal(np.asarray(made.cpu()), expected)
    np.testing.assert_array_equal(np.asarray(moved.cpu()), DATA.ravel())


@each_view
def test_strided_memory_is_put_in_order(view):
    strided = np.arange(48, dtype=np.uint8).reshape(6, 8)[::-2, ::2]
    expected = np.asarray(view(ndd.tensor(strided)))
    np.testing.assert_array_equal(np.asarray(view(ndd.as_tensor(strided))), expected)


@each_view
def test_a_view_of_a_batch_still_lies_side_by_side(view):
    batch = ndd.batch(np.stack([DATA, DATA + 100])) + np.uint8(0)
    made = view(batch).evaluate()
    stacked = np.asarray(ndd.as_tensor(made))
    np.testing.assert_array_equal(stacked, [np.asarray(sample) for sample in made])


def test_bytes_that_are_not_aligned_are_copied():
    data = np.arange(17, dtype=np.uint8)[1:]
    made = ndd.reinterpret(ndd.as_tensor(data), dtype=ndd.float64)
    np.testing.assert_array_equal(np.asarray(made), data.copy().view(np.float64))
    row = ndd.element_extract(np.arange(20, dtype=np.uint8).reshape(4, 5), element_map=1)
    made = ndd.reinterpret(row[:4], dtype=ndd.uint16)
    np.testing.assert_array_equal(np.asarray(made), np.uint8([5, 6, 7, 8]).view(np.uint16))


def test_any_byte_is_a_truth_value():
    made = ndd.reinterpret(np.uint8([0, 1, 2, 255]), dtype=ndd.bool)
    assert np.asarray(ndd.cast(made, dtype=ndd.uint8)).tolist() == [0, 1, 1, 1]


def test_a_view_of_what_is_still_in_the_making():
    with ndd.EvalMode.deferred:
        data = ndd.batch([DATA, DATA[:2]]) + np.uint8(1)
        made = ndd.reshape(data, shape=[2, -1])
        shaped = ndd.reshape(data, shape=ndd.batch([[6, 2], [4, 2]]) + 0)
    assert made.shape == [(2, 6), (2, 4)]
    assert shaped.shape == [(6, 2), (4, 2)]
