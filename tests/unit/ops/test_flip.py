import itertools

import ml_dtypes
import numpy as np
import pytest

import penstock as ndd
from penstock._values.dtype import BY_CODE

NUMBERS = [known for known in BY_CODE if known.kind is not ndd.DType.Kind.enum]
LAYOUTS = ["HWC", "CHW", "FHWC", "FCHW", "DHWC", "CDHW", "FDHWC", "FCDHW"]
EXTENTS = {"F": 2, "D": 3, "H": 4, "W": 5, "C": 3}
AXES = {"horizontal": "W", "vertical": "H", "depthwise": "D"}


def picture(layout, dtype=np.uint8):
    shape = [EXTENTS[letter] for letter in layout]
    return (np.arange(np.prod(shape)) % 250).reshape(shape).astype(dtype)


def flipped(array, layout, **directions):
    """The same with NumPy."""
    directions = {"horizontal": 1, "vertical": 0, "depthwise": 0, **directions}
    letters = [AXES[name] for name, chosen in directions.items() if chosen]
    return np.flip(array, [layout.index(letter) for letter in letters if letter in layout])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("directions", list(itertools.product((0, 1), repeat=3)))
def test_every_layout_is_flipped_as_by_numpy(layout, directions):
    chosen = dict(zip(AXES, directions, strict=True))
    array = picture(layout)
    made = ndd.flip(ndd.tensor(array, layout=layout), **chosen)
    np.testing.assert_array_equal(np.asarray(made), flipped(array, layout, **chosen), strict=True)
    assert made.layout == layout


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_type_is_flipped(dtype):
    array = picture("HWC", dtype._numpy)
    np.testing.assert_array_equal(np.asarray(ndd.flip(array)), array[:, ::-1], strict=True)


@pytest.mark.parametrize("channels", range(1, 10))
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_pixels_of_any_size_are_moved_whole(channels, dtype):
    array = np.arange(3 * 7 * channels).reshape(3, 7, channels).astype(dtype)
    made = ndd.flip(array, vertical=1)
    np.testing.assert_array_equal(np.asarray(made), array[::-1, ::-1], strict=True)


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 4, 0), (0, 0, 0)])
def test_samples_without_elements_stay_so(shape):
    made = ndd.flip(ndd.tensor(np.zeros(shape, np.uint8)), vertical=1)
    assert made.shape == shape


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("direction", AXES)
def test_flip_twice_is_identity(layout, direction):
    array = picture(layout)
    directions = {"horizontal": 0, direction: 1}
    once = ndd.flip(ndd.tensor(array, layout=layout), **directions)
    np.testing.assert_array_equal(np.asarray(ndd.flip(once, **directions)), array)


def test_the_default_is_left_and_right():
    array = picture("HWC")
    np.testing.assert_array_equal(np.asarray(ndd.flip(array)), array[:, ::-1])
    np.testing.assert_array_equal(np.asarray(ndd.flip(array, vertical=1)), array[::-1, ::-1])
    np.testing.assert_array_equal(np.asarray(ndd.flip(array, horizontal=0)), array)


@pytest.mark.parametrize(("ndim", "layout"), [(3, "HWC"), (4, "FHWC"), (5, "FDHWC")])
def test_without_a_layout_the_last_dimension_is_the_channels(ndim, layout):
    array = picture(layout)
    made = ndd.flip(array, depthwise=1, vertical=1)
    assert made.layout == layout
    expected = flipped(array, layout, depthwise=1, vertical=1)
    np.testing.assert_array_equal(np.asarray(made), expected)


@pytest.mark.parametrize("layout", ["HW", "HWD", "NHWC", "hwc", "CFHW", "WHC"])
def test_other_layouts_are_value_errors_that_list_the_right_ones(layout):
    with pytest.raises(ValueError, match=rf'"{layout}".*FDHWC, FHWC.*CHW'):
        ndd.flip(ndd.tensor(np.zeros((2,) * len(layout)), layout=layout))


@pytest.mark.parametrize("ndim", [0, 1, 2, 6])
def test_other_ranks_are_value_errors_that_list_the_layouts(ndim):
    for data in (np.zeros((2,) * ndim), ndd.batch(np.zeros((2,) * (ndim + 1)))):
        with pytest.raises(ValueError, match=f"dimensions {ndim} .*HWC"):
            ndd.flip(data)


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        (1, True),
        (0, False),
        (2, True),
        (-1, True),
        (True, True),
        (False, False),
        (0.4, False),
        (0.6, False),
        (1.0, True),
        (np.float32(0.6), True),
        (np.int64(1), True),
        (np.array(1), True),
        (np.array([1]), True),
        ([1], True),
        (ndd.tensor(1), True),
        (ndd.tensor([0]), False),
        (ndd.tensor(0.4), False),
        (2**40, True),
        (None, False),
    ],
    ids=repr,
)
def test_what_is_not_zero_flips(value, chosen):
    array = picture("HWC")
    made = ndd.flip(array, horizontal=0, vertical=value)
    np.testing.assert_array_equal(np.asarray(made), array[::-1] if chosen else array)


def test_each_sample_may_be_told_its_own():
    array = picture("HWC")
    batch = ndd.batch([array, array, array])
    for flags in (
        ndd.batch([1, 0, 2]),
        ndd.batch(np.float32([0.6, 0.4, 1])),
        ndd.batch([[1], [0], [1]]),
    ):
        made = ndd.flip(batch, horizontal=flags)
        for sample, chosen in zip(made, (True, False, True), strict=True):
            expected = array[:, ::-1] if chosen else array
            np.testing.assert_array_equal(np.asarray(sample), expected)


def test_a_tensor_told_per_sample_becomes_a_batch():
    array = picture("HWC")
    made = ndd.flip(array, horizontal=ndd.batch([0, 1]))
    assert type(made) is ndd.Batch
    np.testing.assert_array_equal(np.asarray(made.tensors[0]), array)
    np.testing.assert_array_equal(np.asarray(made.tensors[1]), array[:, ::-1])


def test_an_array_is_one_value_for_all_samples():
    batch = ndd.batch([picture("HWC")] * 2)
    for flags in ([1, 0], np.array([1, 0]), ndd.tensor([1, 0])):
        with pytest.raises(RuntimeError, match="`horizontal` needs one number per sample"):
            ndd.flip(batch, horizontal=flags).evaluate()


@pytest.mark.parametrize("size", [1, 3])
def test_flags_for_another_number_of_samples_are_a_value_error(size):
    with pytest.raises(ValueError, match=f"{size} != 2"):
        ndd.flip(ndd.batch([picture("HWC")] * 2), vertical=ndd.batch([1] * size))


def test_ragged_batches_are_flipped_one_by_one():
    arrays = [picture("HWC"), picture("HWC")[:2, :3], picture("HWC")[:, :1]]
    for sample, array in zip(ndd.flip(ndd.batch(arrays)), arrays, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), array[:, ::-1])


def test_strided_memory_of_others_is_flipped_right():
    array = picture("FHWC")[:, ::-1, ::2]
    np.testing.assert_array_equal(np.asarray(ndd.flip(ndd.as_tensor(array))), array[:, :, ::-1])
    chw = np.ascontiguousarray(picture("HWC")).transpose(2, 0, 1)
    made = ndd.flip(ndd.as_tensor(chw, layout="CHW"))
    np.testing.assert_array_equal(np.asarray(made), chw[:, :, ::-1])


def test_bfloat16_pictures_keep_their_bits():
    array = picture("HWC").astype(ml_dtypes.bfloat16)
    made = ndd.flip(array)
    assert made.dtype is ndd.bfloat16
    np.testing.assert_array_equal(np.asarray(made), array[:, ::-1])
