"""Flips agree with NumPy, for any layout, shape and type."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import penstock as ndd

LAYOUTS = ["FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW"]
TYPES = [np.bool_, np.uint8, np.int16, np.float16, np.int32, np.float64]
AXES = {"depthwise": "D", "horizontal": "W", "vertical": "H"}


@st.composite
def pictures(draw, layout, dtype):
    shape = [draw(st.integers(0, 5)) for _ in layout]
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


def flipped(array, layout, directions):
    letters = [AXES[name] for name, chosen in directions.items() if chosen]
    return np.flip(array, [layout.index(letter) for letter in letters if letter in layout])


DIRECTIONS = st.fixed_dictionaries(dict.fromkeys(AXES, st.integers(0, 1)))


@given(st.data(), st.sampled_from(LAYOUTS), st.sampled_from(TYPES), DIRECTIONS)
def test_a_flip_is_numpys(data, layout, dtype, directions):
    array = data.draw(pictures(layout, dtype))
    for given_ in (ndd.tensor(array, layout=layout), ndd.as_tensor(array[::-1], layout=layout)):
        made = ndd.flip(given_, **directions)
        expected = flipped(np.asarray(given_), layout, directions)
        np.testing.assert_array_equal(np.asarray(made), expected, strict=True)
        assert made.layout == layout


@given(st.data(), st.sampled_from(LAYOUTS), st.sampled_from(TYPES))
def test_each_sample_is_flipped_as_it_is_told(data, layout, dtype):
    count = data.draw(st.integers(1, 4))
    arrays = [data.draw(pictures(layout, dtype)) for _ in range(count)]
    told = [data.draw(DIRECTIONS) for _ in range(count)]
    arguments = {name: ndd.batch([one[name] for one in told]) for name in AXES}
    made = ndd.flip(ndd.batch(arrays, layout=layout), **arguments)
    for sample, array, directions in zip(made, arrays, told, strict=True):
        expected = flipped(array, layout, directions)
        np.testing.assert_array_equal(np.asarray(sample), expected, strict=True)


@given(st.data(), st.sampled_from(LAYOUTS), DIRECTIONS)
def test_twice_is_once_too_often(data, layout, directions):
    array = data.draw(pictures(layout, np.uint8))
    made = ndd.flip(ndd.flip(ndd.tensor(array, layout=layout), **directions), **directions)
    np.testing.assert_array_equal(np.asarray(made), array, strict=True)
