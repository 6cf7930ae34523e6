"""Indexing agrees with NumPy, for any array and any index."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import penstock as ndd

BOUND = st.one_of(st.none(), st.integers(-8, 8), st.sampled_from([-(2**40), 2**40]))
STEP = st.one_of(st.none(), st.integers(-4, 4).filter(bool), st.sampled_from([-(2**40), 2**40]))
RANGES = st.builds(slice, BOUND, BOUND, STEP)
LETTERS = "NHWCD"


@st.composite
def arrays(draw, min_dims=0):
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=5, min_side=0, max_side=5))
    dtype = draw(st.sampled_from([np.uint8, np.int32, np.float64, np.float16, np.bool_]))
    array = (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)
    # A view, often: other memory orders must not matter.
    for axis in range(array.ndim):
        if draw(st.booleans()):
            array = np.flip(array, axis)
    return array.transpose(draw(st.permutations(range(array.ndim))))


@st.composite
def keys(draw, shape):
    """An index into an array of this shape, for which NumPy returns a view."""
    axes = draw(st.integers(0, len(shape)))
    ellipsis = draw(st.one_of(st.none(), st.integers(0, axes)))
    key = []
    for position in range(axes):
        # Axes behind an ellipsis are counted from the end.
        behind = ellipsis is not None and position >= ellipsis
        extent = shape[position - axes] if behind else shape[position]
        index = st.integers(-extent, extent - 1) if extent else st.nothing()
        key.append(draw(st.one_of(RANGES, index)))
    if ellipsis is not None:
        key.insert(ellipsis, ...)
    if len(key) == 1 and draw(st.booleans()):
        return key[0]
    return tuple(key)


def kept_letters(layout, key, ndim):
    """The letters of the axes that an index keeps."""
    key = key if isinstance(key, tuple) else (key,)
    if ... in key:
        at = key.index(...)
        key = key[:at] + (slice(None),) * (ndim - len(key) + 1) + key[at + 1 :]
    key += (slice(None),) * (ndim - len(key))
    letters = zip(layout, key, strict=True)
    return "".join(letter for letter, item in letters if isinstance(item, slice))


@given(st.data())
def test_a_tensor_is_indexed_as_a_numpy_array(data):
    array = data.draw(arrays())
    key = data.draw(keys(array.shape))
    layout = LETTERS[: array.ndim]
    for made in (ndd.tensor(array, layout=layout), ndd.as_tensor(array, layout=layout)):
        found = made[key]
        np.testing.assert_array_equal(np.asarray(found), array[key], strict=True)
        assert found.layout == (kept_letters(layout, key, array.ndim) or None)


@given(st.data())
def test_every_sample_of_a_batch_is_indexed_as_a_numpy_array(data):
    array = data.draw(arrays(min_dims=1))
    key = data.draw(keys(array.shape[1:]))
    found = ndd.as_batch(array).slice[key]
    assert found.batch_size == len(array)
    for sample, whole in zip(found, array, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), whole[key], strict=True)


@given(st.data())
def test_bounds_of_a_range_may_differ_from_sample_to_sample(data):
    shapes = data.draw(st.lists(st.tuples(*[st.integers(0, 5)] * 2), min_size=1, max_size=4))
    samples = [np.arange(np.prod(shape)).reshape(shape) for shape in shapes]
    numbers = st.integers(-7, 7)
    starts, stops = ([data.draw(numbers) for _ in samples] for _ in range(2))
    steps = [data.draw(numbers.filter(bool)) for _ in samples]
    step = data.draw(st.sampled_from(["all", "each", None]))
    bounds = {"all": steps[0], "each": ndd.batch(steps), None: None}[step]
    found = ndd.batch(samples).slice[ndd.batch(starts) : ndd.batch(stops) : bounds]
    for index, (sample, whole) in enumerate(zip(found, samples, strict=True)):
        by = {"all": steps[0], "each": steps[index], None: None}[step]
        expected = whole[starts[index] : stops[index] : by]
        np.testing.assert_array_equal(np.asarray(sample), expected, strict=True)


@given(st.data())
def test_an_index_may_differ_from_sample_to_sample(data):
    extents = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    samples = [np.arange(extent * 6).reshape(extent, 6) for extent in extents]
    indices = [data.draw(st.integers(-extent, extent - 1)) for extent in extents]
    key = data.draw(RANGES)
    found = ndd.batch(samples).slice[ndd.batch(indices), key]
    for sample, whole, index in zip(found, samples, indices, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), whole[index, key], strict=True)


@given(st.data())
def test_picking_samples_is_indexing_a_list(data):
    lengths = data.draw(st.lists(st.integers(0, 3), max_size=6))
    rows = [[number] * length for number, length in enumerate(lengths)]
    batch = ndd.batch(rows, dtype=ndd.int32)
    chosen = data.draw(RANGES)
    picked = batch.tensors[chosen]
    assert [np.asarray(sample).tolist() for sample in picked] == rows[chosen]
    if rows:
        listed = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=6))
        picked = batch.select(listed)
        assert [np.asarray(s).tolist() for s in picked] == [rows[index] for index in listed]
