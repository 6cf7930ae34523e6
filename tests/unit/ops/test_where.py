"""`where`, against NumPy: per element, and per sample."""

import itertools

import numpy as np
import pytest

import penstock as ndd

DTYPES = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64),
]


def drawn(rng, dtype, shape):
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if np.issubdtype(dtype, np.floating):
        return rng.normal(0, 100, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask_dtype", [np.bool_, np.uint8, np.int64, np.float32])
def test_elements_are_those_that_numpy_selects(dtype, mask_dtype):
    rng = np.random.default_rng(1)
    for shape in [(), (5,), (3, 7), (33, 45, 3)]:
        mask = rng.integers(0, 2, shape).astype(mask_dtype)
        a, b = drawn(rng, dtype, shape), drawn(rng, dtype, shape)
        made = ndd.where(ndd.tensor(mask), ndd.tensor(a), ndd.tensor(b))
        assert made.dtype == ndd.dtype(dtype)
        np.testing.assert_array_equal(made, np.where(mask, a, b))


@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 5), (4, 5), ()),
        ((4, 5), (), ()),
        ((5,), (4, 5), (4, 1)),
        ((4, 1), (5,), (1, 5)),
        ((), (4, 5), (5,)),
        ((40, 30, 1), (40, 30, 3), (3,)),
        ((1, 30, 3), (40, 30, 3), (40, 1, 1)),
        ((2, 1, 3, 1), (1, 4, 1, 5), (5,)),
        ((0, 3), (0, 3), ()),
        ((1,), (0, 3), (3,)),
    ],
    ids=str,
)
def test_operands_are_broadcast(shapes):
    rng = np.random.default_rng(2)
    mask = rng.random(shapes[0]) < 0.5
    a, b = (drawn(rng, np.int32, shape) for shape in shapes[1:])
    expected = np.where(mask, a, b)
    made = ndd.where(ndd.tensor(mask), ndd.tensor(a), ndd.tensor(b))
    np.testing.assert_array_equal(made, expected)
    batches = [ndd.batch([each] * 3) for each in (mask, a, b)]
    for given in itertools.product(*zip(batches, (mask, a, b), strict=True)):
        made = ndd.where(*given)
        for sample in made if isinstance(made, ndd.Batch) else [made]:
            np.testing.assert_array_equal(sample, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_are_promoted_as_in_arithmetic(dtype):
    for other in DTYPES:
        a, b = ndd.tensor(np.ones(2, dtype)), ndd.tensor(np.ones(2, other))
        made = ndd.where(ndd.tensor([True, False]), a, b)
        # Multiplication takes all types, also bool.
        assert made.dtype == (a * b).dtype, other
        np.testing.assert_array_equal(made, [1, 1])


def test_promotion_changes_numbers_as_in_arithmetic():
    large = ndd.tensor(np.uint64([2**63 + 5, 7]))
    made = ndd.where(ndd.tensor([True, False]), large, ndd.tensor(np.int64([1, -2])))
    np.testing.assert_array_equal(made, large * ndd.tensor(np.int64([1, 0])) + np.int64([0, -2]))


def test_numbers_of_python_are_operands():
    x = ndd.tensor([1.5, -2.5])
    assert ndd.where(x > 0, x, 0).torch().tolist() == [1.5, 0]
    assert ndd.where(x > 0, 1, 0).dtype == ndd.int32
    assert ndd.where(True, x, 0).torch().tolist() == [1.5, -2.5]
    assert ndd.where([True, False], [1, 2], np.float64(3)).torch().tolist() == [1, 3]


def test_all_that_is_not_zero_is_true():
    mask = np.float32([0, -0.0, 0.25, np.nan, -3])
    assert ndd.where(mask, 1, 0).torch().tolist() == [0, 0, 1, 1, 1]
    assert ndd.where(np.int8([0, -1, 2]), 1, 0).torch().tolist() == [0, 1, 1]


def test_a_scalar_selects_a_sample_whatever_the_others_shape():
    rng = np.random.default_rng(3)
    first = [drawn(rng, np.uint8, (4 + number, 5, 3)) for number in range(6)]
    second = [drawn(rng, np.uint8, (9, 2 + number, 1)) for number in range(6)]
    flags = [True, False, False, True, True, False]
    made = ndd.where(
        ndd.batch(flags), ndd.batch(first, layout="HWC"), ndd.batch(second, layout="HWC")
    )
    assert (made.layout, made.dtype) == ("HWC", ndd.uint8)
    for sample, flag, a, b in zip(made, flags, first, second, strict=True):
        np.testing.assert_array_equal(sample, a if flag else b)
    one = ndd.where(ndd.tensor(0), ndd.tensor(first[0]), ndd.tensor(second[0]))
    np.testing.assert_array_equal(one, second[0])


def test_a_scalar_selects_with_conversion():
    made = ndd.where(ndd.batch([1, 0]), ndd.batch([[1, 2]] * 2), ndd.batch([[0.5]] * 2))
    assert made.dtype == ndd.float32
    assert [row.torch().tolist() for row in made] == [[1, 2], [0.5]]


def test_results_don_t_share_memory_with_what_was_selected():
    a, b = ndd.tensor([1, 2]), ndd.tensor([3, 4])
    np.asarray(ndd.where(True, a, b))[:] = 9
    assert a.torch().tolist() == [1, 2]


def test_coin_flips_apply_an_augmentation_to_some_samples():
    images = ndd.batch([np.full((4, 5, 3), number, np.uint8) for number in range(32)])
    flags = ndd.random.coin_flip(batch_size=32, rng=ndd.random.RNG(1))
    made = ndd.where(flags, ndd.resize(images, size=[2, 2]), images)
    for sample, flag in zip(made, flags, strict=True):
        assert sample.shape == ((2, 2, 3) if flag else (4, 5, 3))


def test_ragged_samples_have_masks_of_their_own():
    rng = np.random.default_rng(4)
    rows = [drawn(rng, np.int16, (number, 3)) for number in (2, 5, 0, 1)]
    x = ndd.batch(rows)
    for made, row in zip(ndd.where(x > 0, x, -x), rows, strict=True):
        np.testing.assert_array_equal(made, np.where(row > 0, row, -row))


def test_strided_operands():
    rng = np.random.default_rng(5)
    a, b = drawn(rng, np.float32, (20, 30, 3)), drawn(rng, np.float32, (20, 30, 3))
    mask = rng.random((20, 30, 1)) < 0.5
    made = ndd.where(ndd.tensor(mask)[::2], ndd.tensor(a)[::-2], ndd.tensor(b)[5:15])
    np.testing.assert_array_equal(made, np.where(mask[::2], a[::-2], b[5:15]))


def test_layouts_are_joined():
    image, row = ndd.tensor(np.ones((2, 3, 3)), layout="HWC"), ndd.tensor([1.0, 2, 3], layout="C")
    assert ndd.where(True, image, 0).layout == "HWC"
    assert ndd.where(ndd.tensor(np.ones((2, 3, 1))), image, row).layout == "HWC"
    assert ndd.where(image > 0, 1, 0).layout == "HWC"
    with pytest.raises(RuntimeError, match='where: the layouts "HWC" and "HW" do not match'):
        ndd.where(True, image, ndd.tensor(np.ones((2, 3)), layout="HW"))


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_devices_are_those_of_the_operands():
    x = ndd.batch([[1, 2], [3, 4]]).gpu()
    assert ndd.where(x > 2, x, 0).device.device_type == "gpu"
    assert [row.cpu().torch().tolist() for row in ndd.where(x > 2, x, 0)] == [[0, 0], [3, 4]]
    with pytest.raises((RuntimeError, ValueError), match="where"):
        ndd.where(x > 2, x, ndd.batch([[1, 2], [3, 4]]))


def test_constants_are_selected_unless_they_are_mixed():
    a = ndd.tensor(ndd.types.INTERP_CUBIC)
    made = ndd.where(False, a, ndd.tensor(ndd.types.INTERP_LINEAR))
    assert made.item() == ndd.types.INTERP_LINEAR
    with pytest.raises(RuntimeError, match="where: not supported for"):
        ndd.where(True, a, ndd.tensor([1]))


def test_mistakes_are_named():
    with pytest.raises((RuntimeError, ValueError), match=r"where.*can't be broadcast together"):
        ndd.where(ndd.tensor([True, False]), ndd.tensor([1, 2, 3]), 0).torch()
    with pytest.raises((RuntimeError, ValueError), match="where"):
        ndd.where(ndd.batch([True, False]), ndd.batch([1, 2, 3]), 0)
    with pytest.raises(TypeError, match="where"):
        ndd.where("yes", 1, 0)


def test_a_flag_drawn_once_for_a_batch_is_told():
    with pytest.warns(ndd.random.SharedDrawWarning, match="where"):
        ndd.where(ndd.random.coin_flip(), ndd.batch([1, 2]), 0)
