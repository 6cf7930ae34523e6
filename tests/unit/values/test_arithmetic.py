import ml_dtypes
import numpy as np
import pytest
from tests.ids import steady_repr

import penstock as ndd
from penstock._values.dtype import BY_CODE

NUMBERS = [known for known in BY_CODE if known.kind is not ndd.DType.Kind.enum]
MODES = list(ndd.EvalMode)


def numbers(value):
    if isinstance(value, ndd.Batch):
        return [numbers(sample) for sample in value]
    return np.asarray(value).tolist()


@pytest.mark.parametrize("mode", MODES)
def test_adds_in_every_mode(mode):
    with mode:
        assert numbers(ndd.tensor([1, 2]) + ndd.tensor([10, 20])) == [11, 22]
        assert numbers(ndd.batch([[1], [2, 3]]) + 1) == [[2], [3, 4]]


# The type of a sum. Rows and columns: what the operands are.
ORDER = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"]
SUMS = """
    -    i8  i16 i32 i64 u8  u16 u32 u64 f16 f32 f64
    i8   i8  i16 i32 i64 i16 i32 i64 i64 f16 f32 f64
    i16  i16 i16 i32 i64 i16 i32 i64 i64 f16 f32 f64
    i32  i32 i32 i32 i64 i32 i32 i64 i64 f16 f32 f64
    i64  i64 i64 i64 i64 i64 i64 i64 i64 f16 f32 f64
    u8   i16 i16 i32 i64 u8  u16 u32 u64 f16 f32 f64
    u16  i32 i32 i32 i64 u16 u16 u32 u64 f16 f32 f64
    u32  i64 i64 i64 i64 u32 u32 u32 u64 f16 f32 f64
    u64  i64 i64 i64 i64 u64 u64 u64 u64 f16 f32 f64
    f16  f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64
    f32  f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
    f64  f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""
TABLE = [line.split() for line in SUMS.strip().splitlines()]


@pytest.mark.parametrize("row", range(len(ORDER)), ids=ORDER)
def test_types_are_promoted_by_the_table(row):
    for column, other in enumerate(ORDER):
        left, right = ndd.tensor(1, dtype=ORDER[row]), ndd.tensor([1], dtype=other)
        expected = TABLE[row][column]
        if expected == "-":
            continue
        for total in (left + right, right + left):
            assert str(total.dtype) == expected, (ORDER[row], other)
            assert numbers(total) == [2]


def test_bfloat16_meets_the_other_floats():
    half, brain = ndd.tensor(1, dtype="f16"), ndd.tensor(1, dtype="bfloat16")
    assert str((brain + brain).dtype) == "bfloat16"
    assert str((brain + 1).dtype) == "bfloat16"
    assert str((brain + half).dtype) == "f32"
    assert str((brain + ndd.tensor(1.0)).dtype) == "f32"


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_python_numbers_count_as_32_bits(dtype):
    one = ndd.tensor([1], dtype=dtype)
    if dtype is not ndd.bool:
        assert (one + True).dtype is dtype
        assert (True + one).dtype is dtype
    floats = dtype.kind is ndd.DType.Kind.float
    wide = dtype in (ndd.int64, ndd.uint32, ndd.uint64)
    with_int = dtype if floats else ndd.int64 if wide else ndd.int32
    with_float = dtype if dtype is ndd.float64 else ndd.float32
    assert (one + 1).dtype is (1 + one).dtype is with_int
    if not floats or dtype.bits >= 32:
        assert (one + 1.0).dtype is (1.0 + one).dtype is with_float
    assert numbers(one + 1) == [2]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**70])
def test_python_integers_of_more_than_32_bits_are_overflows(number):
    for call in (lambda: ndd.tensor([1], dtype="i64") + number, lambda: number + ndd.batch([1])):
        with pytest.raises(OverflowError, match=str(number)):
            call()


def test_integers_wrap():
    assert numbers(ndd.tensor(2**31 - 1) + 1) == -(2**31)
    assert numbers(ndd.tensor(255, dtype="u8") + ndd.tensor(1, dtype="u8")) == 0
    assert numbers(np.uint64([2**63 + 5]) + ndd.batch(np.int8([1]))) == [[-(2**63) + 6]]


def test_floats_are_added_in_their_own_precision():
    assert numbers(ndd.tensor(1.0, dtype="f64") + 0.1) == 1 + float(np.float32(0.1))
    assert numbers(ndd.tensor([2**24], dtype="i32") + 1.0) == [float(2**24)]
    brain = np.float32([1.0]).astype(ml_dtypes.bfloat16)
    assert numbers(ndd.as_tensor(brain) + ndd.as_tensor(brain / 256)) == (brain + brain / 256)
    inf, nan = float("inf"), float("nan")
    assert np.isnan(numbers(ndd.tensor([inf, nan]) + ndd.tensor([-inf, 1.0]))).all()


def test_numpy_on_the_right_keeps_its_type():
    one = ndd.tensor([1])
    assert str((one + np.int64(1)).dtype) == "i64"
    assert str((one + np.float64(1)).dtype) == "f64"
    assert str((one + np.array([1, 2], np.uint8)).dtype) == "i32"
    assert type(one + np.array([1])) is ndd.Tensor


def test_numpy_on_the_left_of_a_tensor_stays_numpy_and_of_a_batch_gives_way():
    assert isinstance(np.array([1, 2]) + ndd.tensor([1, 2]), np.ndarray)
    total = np.array([1, 2]) + ndd.batch([[1, 2], [3, 4]])
    assert type(total) is ndd.Batch
    assert numbers(total) == [[2, 4], [4, 6]]
    assert type(np.int32(1) + ndd.batch([1])) is ndd.Batch


@pytest.mark.parametrize("other", [[1, 2], (1, 2), range(1, 3), np.int32([1, 2])])
def test_what_is_data_is_added_as_data(other):
    assert numbers(ndd.tensor([10, 20]) + other) == [11, 22]
    assert numbers(ndd.batch([[10, 20]]) + other) == [[11, 22]]
    if not isinstance(other, np.ndarray):
        assert numbers(other + ndd.tensor([10, 20])) == [11, 22]
        assert numbers(other + ndd.batch([10])) == [[11, 12]]


@pytest.mark.parametrize("other", [None, "a", object(), {}, 1j, [None]], ids=steady_repr)
def test_what_is_no_data_is_a_type_error(other):
    for call in (
        lambda: ndd.tensor([1]) + other,
        lambda: other + ndd.tensor([1]),
        lambda: ndd.batch([1]) + other,
        lambda: other + ndd.batch([1]),
    ):
        with pytest.raises(TypeError):
            call()


def test_tensors_are_broadcast_to_every_sample():
    batch = ndd.batch([[[1, 2]], [[3, 4], [5, 6]]])
    for total in (batch + ndd.tensor([10, 20]), ndd.tensor([10, 20]) + batch):
        assert numbers(total) == [[[11, 22]], [[13, 24], [15, 26]]]
    assert numbers(ndd.tensor([1, 2]) + ndd.batch([10, 20])) == [[11, 12], [21, 22]]


def test_samples_are_broadcast_one_by_one():
    total = ndd.batch([[1, 2], [3]]) + ndd.batch([[1, 2], [3, 4]])
    assert numbers(total) == [[2, 4], [6, 7]]
    assert numbers(ndd.batch([[[1], [2]], [[3]]]) + ndd.batch([[1, 2, 3], [4]])) == [
        [[2, 3, 4], [3, 4, 5]],
        [[7]],
    ]


@pytest.mark.parametrize(("left", "right"), [(2, 3), (2, 1), (1, 2), (0, 2), (2, 0)])
def test_batches_of_different_sizes_are_a_value_error(left, right):
    a, b = ndd.batch([1] * left, dtype=ndd.int32), ndd.batch([1] * right, dtype=ndd.int32)
    with pytest.raises(ValueError, match=f"batch size: {right} != {left}"):
        a + b


def test_shapes_that_do_not_fit_are_refused_with_both_and_the_sample():
    with pytest.raises(RuntimeError, match=r"sample 1: .*2.*3"):
        (ndd.batch([[1], [1, 2]]) + ndd.batch([[1], [1, 2, 3]])).evaluate()


def test_axes_of_no_length_are_broadcast_too():
    assert (ndd.tensor(np.zeros((0, 2))) + ndd.tensor([[1, 2]])).shape == (0, 2)
    assert (ndd.tensor(np.zeros((0,))) + ndd.tensor([1])).shape == (0,)
    assert (ndd.tensor(np.zeros((3, 0))) + 1).shape == (3, 0)
    with pytest.raises(RuntimeError):
        (ndd.tensor(np.zeros((0,))) + ndd.tensor([1, 2])).evaluate()


def test_two_booleans_are_refused_with_a_way_out():
    for other in (True, ndd.tensor([True]), np.bool_(True)):
        with pytest.raises(RuntimeError, match=r"bool.*cast"):
            (ndd.tensor([True]) + other).evaluate()


def test_enums_are_refused_with_a_way_out():
    for other in (1, ndd.tensor(1), ndd.tensor(1, dtype=ndd.ImageType)):
        with pytest.raises(RuntimeError, match=r"ImageType.*cast"):
            (ndd.tensor(1, dtype=ndd.ImageType) + other).evaluate()


@pytest.mark.parametrize(
    ("left", "right", "layout"),
    [
        (((2, 3), "HW"), ((2, 3), None), "HW"),
        (((2, 3), None), ((2, 3), "HW"), "HW"),
        (((2, 3), "HW"), ((3,), "W"), "HW"),
        (((3,), "W"), ((2, 3), "HW"), "HW"),
        (((2, 3), "HW"), ((5, 2, 3), None), None),
        (((5, 2, 3), None), ((2, 3), "HW"), None),
        (((2, 3), "HW"), ((), None), "HW"),
    ],
)
def test_layout_is_that_of_the_operand_with_more_dimensions(left, right, layout):
    a, b = (ndd.tensor(np.zeros(shape), layout=given) for shape, given in (left, right))
    assert (a + b).layout == layout
    assert (a + b).evaluate().layout == layout


def test_layouts_that_do_not_fit_are_refused_with_both():
    with pytest.raises(RuntimeError, match=r'"HW".*"WH"'):
        (ndd.tensor([[1]], layout="HW") + ndd.tensor([[1]], layout="WH")).evaluate()
    with pytest.raises(RuntimeError, match=r'"HW".*"H"'):
        (ndd.tensor([[1]], layout="HW") + ndd.tensor([1], layout="H")).evaluate()


def test_plus_in_front_is_itself():
    for value in (ndd.tensor([1]), ndd.batch([1])):
        assert (+value) is value


def test_adding_in_place_makes_a_new_value():
    first = same = ndd.tensor([1])
    same += 1
    assert same is not first
    assert (numbers(first), numbers(same)) == ([1], [2])


def test_a_value_may_be_added_to_itself():
    batch = ndd.batch([[1], [2, 3]])
    assert numbers(batch + batch + batch) == [[3], [6, 9]]


def test_large_operands_take_every_path_of_the_kernel():
    rng = np.random.default_rng(0)
    for dtype, other in (("u8", "u8"), ("u8", "i32"), ("f32", "u8"), ("f64", "f32")):
        a = rng.integers(0, 200, (37, 61)).astype(ndd.dtype(dtype)._numpy)
        for shape in ((37, 61), (61,), (1,), (37, 1), ()):
            b = rng.integers(0, 50, shape).astype(ndd.dtype(other)._numpy)
            total = ndd.tensor(a) + ndd.tensor(b)
            expected = (a.astype(np.int64) + b).astype(total.dtype._numpy)
            np.testing.assert_array_equal(np.asarray(total), expected, strict=True)
            flipped = ndd.tensor(b) + ndd.tensor(a)
            np.testing.assert_array_equal(np.asarray(flipped), expected, strict=True)
