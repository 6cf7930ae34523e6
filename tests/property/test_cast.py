"""Casts round half away from zero and saturate, for any number."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import penstock as ndd

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = {"f16": 16, "f32": 32, "f64": 64}


def numpy_type(name):
    return ndd.dtype(name)._numpy


def cast(array, to):
    return np.asarray(ndd.cast(ndd.tensor(array), dtype=to))


def ends(name):
    info = np.iinfo(numpy_type(name))
    return int(info.min), int(info.max)


def to_integer(number, name):
    """The model, with unbounded numbers."""
    low, high = ends(name)
    if math.isinf(number):
        return high if number > 0 else low
    whole = math.floor(abs(number))
    if abs(number) - whole >= 0.5:
        whole += 1
    return min(max(-whole if number < 0 else whole, low), high)


@given(st.sampled_from(list(FLOATS)), st.sampled_from(INTEGERS), st.data())
def test_floats_become_the_nearest_integer_that_fits(source, to, data):
    width = FLOATS[source]
    numbers = st.one_of(
        st.floats(width=width, allow_nan=False),
        st.integers(-1000, 1000).map(lambda half: half / 2),
    )
    array = np.array(data.draw(st.lists(numbers, max_size=8)), numpy_type(source))
    expected = [to_integer(float(number), to) for number in array]
    assert cast(array, to).tolist() == expected


@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS), st.data())
def test_integers_saturate(source, to, data):
    low, high = ends(source)
    numbers = st.one_of(st.integers(low, high), st.sampled_from([low, high, 0]))
    given_ = data.draw(st.lists(numbers, max_size=8))
    array = np.array(given_, numpy_type(source))
    low, high = ends(to)
    assert cast(array, to).tolist() == [min(max(number, low), high) for number in given_]


@given(st.sampled_from([*INTEGERS, *FLOATS]), st.sampled_from(["f32", "f64"]), st.data())
def test_what_becomes_a_float_is_rounded_as_by_numpy(source, to, data):
    if source in FLOATS:
        numbers = st.floats(width=FLOATS[source])
    else:
        numbers = st.integers(*ends(source))
    array = np.array(data.draw(st.lists(numbers, max_size=8)), numpy_type(source))
    with np.errstate(all="ignore"):
        expected = array.astype(numpy_type(to))
    np.testing.assert_array_equal(cast(array, to), expected, strict=True)


@given(st.sampled_from([*INTEGERS, *FLOATS, "bool"]), st.sampled_from([*INTEGERS, *FLOATS, "bool"]))
def test_small_whole_numbers_survive_any_cast(source, to):
    array = np.array([0, 1], numpy_type(source))
    there = ndd.cast(ndd.tensor(array), dtype=to)
    np.testing.assert_array_equal(np.asarray(ndd.cast(there, dtype=source)), array, strict=True)
