"""Arithmetic agrees with NumPy, except for types and division, which agree with DALI."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import penstock as ndd

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
TYPES = ["bool", *INTEGERS, "f16", "f32", "f64"]


def promoted(left, right):
    """The type of a sum: floats win over integers, the wider over the narrower."""
    if left == right:
        return left
    if "bool" in (left, right):
        return right if left == "bool" else left
    kinds = {left[0], right[0]}
    bits = {name[0]: int(name[1:]) for name in (left, right)}
    if "f" in kinds:
        return max((name for name in (left, right) if name[0] == "f"), key=lambda n: int(n[1:]))
    if len(kinds) == 1:
        return max(left, right, key=lambda name: int(name[1:]))
    return f"i{max(bits['i'], min(2 * bits['u'], 64))}"


def numpy_type(name):
    return ndd.dtype(name)._numpy


@st.composite
def elements(draw, name, shape):
    dtype = numpy_type(name)
    if name[0] in "iu":
        info = np.iinfo(dtype)
        numbers = st.integers(int(info.min), int(info.max))
    elif name == "bool":
        numbers = st.booleans()
    else:
        # Small whole numbers: exact in every type, so that order and width of steps can't matter.
        numbers = st.integers(-100, 100)
    count = int(np.prod(shape))
    flat = draw(st.lists(numbers, min_size=min(count, 3), max_size=min(count, 3)))
    return np.resize(np.array(flat, dtype), shape) if count else np.zeros(shape, dtype)


def model(a, b, name):
    # 16-bit floats are computed with as 32-bit ones.
    dtype = numpy_type("f32" if name == "f16" else name)
    with np.errstate(all="ignore"):
        return np.add(a.astype(dtype), b.astype(dtype), dtype=dtype).astype(numpy_type(name))


@st.composite
def operands(draw, types=None):
    """Two arrays that broadcast, with the names of their types."""
    shapes = draw(
        hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0)
    )
    left, right = types or (draw(st.sampled_from(TYPES)), draw(st.sampled_from(TYPES)))
    a, b = (
        draw(elements(name, shape))
        for name, shape in zip((left, right), shapes.input_shapes, strict=True)
    )
    return (left, a), (right, b)


@given(operands())
def test_sums_broadcast_as_in_numpy_and_promote_by_the_table(pair):
    (left, a), (right, b) = pair
    x, y = ndd.tensor(a), ndd.as_tensor(b)
    if left == right == "bool":
        with pytest.raises(RuntimeError, match="bool"):
            (x + y).evaluate()
        return
    name = promoted(left, right)
    for total in (x + y, y + x, ndd.batch([a]).tensors[0] + b):
        assert str(total.dtype) == name
        assert total.ndim == max(a.ndim, b.ndim)
        np.testing.assert_array_equal(np.asarray(total), model(a, b, name), strict=True)


@given(
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
def test_shapes_fit_exactly_where_they_do_in_numpy(left, right):
    a, b = np.ones(left, np.int32), np.ones(right, np.int32)
    total = ndd.tensor(a) + ndd.tensor(b)
    try:
        expected = a + b
    except ValueError:
        with pytest.raises(RuntimeError, match="broadcast"):
            total.evaluate()
    else:
        np.testing.assert_array_equal(np.asarray(total), expected, strict=True)


@given(st.data(), st.sampled_from(TYPES[1:]), st.sampled_from(TYPES))
def test_samples_are_added_one_by_one(data, left, right):
    pairs = data.draw(st.lists(operands((left, right)), min_size=1, max_size=4))
    ranks = {(a.ndim, b.ndim) for (_, a), (_, b) in pairs}
    rank = data.draw(st.sampled_from(sorted(ranks)))
    rows = [(a, b) for (_, a), (_, b) in pairs if (a.ndim, b.ndim) == rank]
    total = ndd.batch([a for a, _ in rows]) + ndd.batch([b for _, b in rows])
    for sample, (a, b) in zip(total, rows, strict=True):
        expected = model(a, b, promoted(left, right))
        np.testing.assert_array_equal(np.asarray(sample), expected, strict=True)


@given(st.sampled_from(TYPES), st.integers(-(2**31), 2**31 - 1))
def test_python_integers_count_as_int32(name, number):
    array = np.array([0, 1], numpy_type(name))
    total = ndd.tensor(array) + number
    expected = promoted(name, "i32")
    assert str(total.dtype) == expected
    with np.errstate(all="ignore"):
        want = model(array, np.array(number, np.int32), expected)
    np.testing.assert_array_equal(np.asarray(total), want, strict=True)


def exactly(function, a, b):
    """A function of Python's unbounded integers, applied to all pairs of elements."""
    a, b = np.broadcast_arrays(a.astype(object), b.astype(object))
    flat = [function(int(x), int(y)) for x, y in zip(a.flat, b.flat, strict=True)]
    return np.array(flat, dtype=object).reshape(a.shape)


def wrap_around(exact, name):
    """Integers wrapped to a type."""
    info = np.iinfo(numpy_type(name))
    span = int(info.max) - int(info.min) + 1
    wrapped = [(x - int(info.min)) % span + int(info.min) for x in exact.flat]
    return np.array(wrapped, dtype=numpy_type(name)).reshape(exact.shape)


def towards_zero(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


WHOLE = {
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "//": towards_zero,
    "%": lambda x, y: x - y * towards_zero(x, y),
}
PYTHON = {
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "//": operator.floordiv,
    "%": operator.mod,
}
RELATIONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@given(operands(), st.sampled_from(sorted(WHOLE)))
def test_integers_are_exact_up_to_the_bits_of_their_type(pair, symbol):
    (left, a), (right, b) = pair
    if not {left, right} <= set(INTEGERS):
        return
    name = promoted(left, right)
    made = PYTHON[symbol](ndd.tensor(a), ndd.tensor(b))
    # Operands are converted to the type first.
    a, b = (wrap_around(x.astype(object), name) for x in (a, b))
    if symbol in ("//", "%") and np.any(np.broadcast_arrays(a, b)[1] == 0):
        with pytest.raises(ValueError, match="zero"):
            made.evaluate()
        return
    expected = wrap_around(exactly(WHOLE[symbol], a, b), name)
    assert str(made.dtype) == name
    np.testing.assert_array_equal(np.asarray(made), expected, strict=True)


@given(operands(), st.sampled_from(RELATIONS))
def test_comparisons_of_integers_are_exact_whatever_the_types(pair, relation):
    (left, a), (right, b) = pair
    if not {left, right} <= {"bool", *INTEGERS}:
        return
    made = relation(ndd.tensor(a), ndd.tensor(b))
    assert made.dtype is ndd.bool
    expected = exactly(relation, a, b).astype(bool)
    np.testing.assert_array_equal(np.asarray(made), expected, strict=True)


FLOATS = st.floats(width=32, allow_subnormal=True)


@given(st.lists(FLOATS, min_size=1, max_size=20), st.lists(FLOATS, min_size=1, max_size=20))
def test_remainders_of_floats_are_exact(left, right):
    a, b = np.float32(left)[:, None], np.float32(right)
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    made = np.asarray(ndd.tensor(a) % ndd.tensor(b))
    np.testing.assert_array_equal(made, expected, strict=True)
    np.testing.assert_array_equal(np.signbit(made[made == 0]), np.signbit(expected[made == 0]))
