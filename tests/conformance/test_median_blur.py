"""Median filter, which DALI has on a GPU only; OpenCV and NumPy say what is right."""

import cv2
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import penstock as ndd

RNG = np.random.default_rng(7)
SHAPES = [(1, 1), (2, 3), (17, 5), (40, 67), (33, 300)]


def noise(shape, dtype="u1"):
    return RNG.integers(0, 256, shape).astype(dtype)


def by_sorting(plane, width, height):
    padded = np.pad(plane, [(height // 2,) * 2, (width // 2,) * 2], mode="edge")
    windows = sliding_window_view(padded, (height, width)).reshape(*plane.shape, -1)
    return np.sort(windows, -1)[..., width * height // 2]


def blurred(image, layout, **arguments):
    return np.asarray(ndd.experimental.median_blur(ndd.tensor(image, layout=layout), **arguments))


@pytest.mark.parametrize("size", [1, 3, 5, 7, 11, 25])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bytes_are_those_of_opencv(shape, size):
    for channels in (1, 3, 4):
        image = noise((*shape, channels))
        expected = cv2.medianBlur(image, size).reshape(image.shape)
        np.testing.assert_array_equal(blurred(image, "HWC", window_size=size), expected)


@pytest.mark.parametrize("dtype", ["u2", "i2", "f4"])
@pytest.mark.parametrize("size", [3, 5])
def test_small_windows_of_other_types_are_those_of_opencv(dtype, size):
    image = noise((23, 31, 3), dtype)
    expected = cv2.medianBlur(image, size)
    np.testing.assert_array_equal(blurred(image, "HWC", window_size=size), expected)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("size", [(3, 3), (5, 5), (1, 7), (9, 3), (7, 7)], ids=str)
def test_windows_of_any_shape_have_the_middle_one(dtype, size):
    image = noise((12, 19), "i1" if dtype == "i1" else "u1").astype(dtype)
    expected = by_sorting(image, *size)
    np.testing.assert_array_equal(blurred(image, "HW", window_size=size), expected)


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC", "FCHW"])
def test_channels_and_frames_are_separate(layout):
    image = noise((2, 9, 8, 7)[: len(layout)])
    order = [layout.index(letter) for letter in "FCHW" if letter in layout]
    planes = image.transpose(order)
    made = blurred(image, layout).transpose(order)
    for index in np.ndindex(planes.shape[:-2]):
        np.testing.assert_array_equal(made[index], by_sorting(planes[index], 3, 3))


def test_windows_differ_from_sample_to_sample():
    images = [noise((10, 11, 3)), noise((5, 4, 3)), noise((20, 9, 3))]
    sizes = [3, 7, 5]
    batch = ndd.batch(images, layout="HWC")
    made = ndd.experimental.median_blur(batch, window_size=ndd.batch(sizes))
    for image, size, one in zip(images, sizes, made, strict=True):
        np.testing.assert_array_equal(np.asarray(one), cv2.medianBlur(image, size))


@pytest.mark.parametrize("size", [0, 2, -3, 257, 2**40, [3, 4], [3, 3, 3], []])
def test_bad_windows_are_refused(size):
    with pytest.raises(RuntimeError, match="window_size"):
        ndd.experimental.median_blur(noise((4, 4)), window_size=size).evaluate()


def test_nothing_is_filtered_to_nothing():
    for shape in [(0, 4, 3), (4, 0, 3), (4, 4, 0)]:
        assert blurred(np.zeros(shape, "u1"), "HWC", window_size=7).shape == shape
