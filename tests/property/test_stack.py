"""Stacking a batch agrees with NumPy, padded if its samples differ in shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ndd

TYPES = [np.bool_, np.uint8, np.float16, np.int32, np.float64]


@st.composite
def samples(draw):
    ndim = draw(st.integers(0, 4))
    shapes = st.tuples(*[st.integers(0, 4)] * ndim)
    shapes = draw(st.lists(shapes, min_size=1, max_size=5))
    dtype = draw(st.sampled_from(TYPES))
    made = [(np.arange(np.prod(s)) % 100 + 1).reshape(s).astype(dtype) for s in shapes]
    # Some have negative strides, so they must be reordered.
    return [np.flip(array) if draw(st.booleans()) else array for array in made]


def padded(arrays):
    shape = tuple(max(extents) for extents in zip(*(a.shape for a in arrays), strict=True))
    whole = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for index, array in enumerate(arrays):
        whole[(index, *map(slice, array.shape))] = array
    return whole


@given(samples(), st.booleans())
def test_padding_fills_with_zeros_at_the_end_of_every_axis(arrays, copied):
    batch = ndd.batch(arrays) if copied else ndd.as_batch(arrays)
    expected = padded(arrays)
    made = ndd.as_tensor(batch, pad=True)
    assert made.ndim == arrays[0].ndim + 1
    np.testing.assert_array_equal(np.asarray(made), expected, strict=True)
    np.testing.assert_array_equal(batch.torch(pad=True).numpy(), expected, strict=True)


@given(samples())
def test_without_padding_shapes_must_be_alike(arrays):
    made = ndd.as_tensor(ndd.batch(arrays))
    if len({array.shape for array in arrays}) == 1:
        np.testing.assert_array_equal(np.asarray(made), np.stack(arrays), strict=True)
    else:
        with pytest.raises(ValueError, match="pad=True"):
            made.evaluate()


@given(samples())
def test_rows_of_a_stack_are_the_samples(arrays):
    stacked = ndd.as_tensor(ndd.batch(arrays), pad=True)
    for row, array in zip(ndd.as_batch(stacked, layout=""), arrays, strict=True):
        part = np.asarray(row)[tuple(map(slice, array.shape))]
        np.testing.assert_array_equal(part, array, strict=True)
