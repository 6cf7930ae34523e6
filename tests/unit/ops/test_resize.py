"""The resize family, in cases that can't be compared with DALI."""

import numpy as np
import pytest

import penstock as ndd

DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_resized_as_floats_are(dtype):
    image = noise(20, 30, 3)
    expected = np.asarray(ndd.resize(image.astype("f4"), size=[13, 41]))
    made = np.asarray(ndd.resize(image.astype(dtype), size=[13, 41]))
    assert made.dtype == np.dtype(dtype)
    np.testing.assert_allclose(made, expected, atol=0.06 if dtype == "f2" else 0.6)


def test_large_integers_keep_their_digits():
    image = np.full((5, 7, 1), 2**40 + 1, np.int64)
    assert (np.asarray(ndd.resize(image, size=[9, 3])) == 2**40 + 1).all()


@pytest.mark.parametrize("mirror", range(4))
def test_a_window_is_a_part_of_the_resized_image(mirror):
    image = noise(50, 70, 3).astype(np.uint8)
    whole = np.asarray(ndd.resize(image, size=[40, 30]))[10:30, 5:25]
    whole = whole[:: -1 if mirror & 2 else 1, :: -1 if mirror & 1 else 1]
    made = ndd.resize_crop_mirror(image, size=[40, 30], crop=[20, 20], mirror=mirror)
    np.testing.assert_array_equal(made, whole)


def test_a_random_window_is_resized_as_a_region_is():
    y, x = np.mgrid[:40, :60]
    image = np.stack([y, x, noise(40, 60)], -1).astype(np.float32)
    for seed in range(20):
        nearest, made = (
            np.asarray(
                ndd.random_resized_crop(
                    image, size=[160, 240], interp_type=code, rng=ndd.random.RNG(seed=seed)
                )
            )
            for code in (0, 1)
        )
        start, end = nearest[0, 0, :2], nearest[-1, -1, :2] + 1
        region = ndd.resize(image, size=[160, 240], roi_start=start, roi_end=end)
        np.testing.assert_allclose(made, region, atol=1e-3)


def test_strided_images_are_resized():
    image = noise(40, 60, 3).astype(np.uint8)
    for view in (image[::2, ::-1], image.transpose(1, 0, 2), image[:, :, 1:]):
        made = ndd.resize(ndd.as_tensor(view, layout="HWC"), size=[11, 13])
        np.testing.assert_array_equal(made, ndd.resize(view.copy(), size=[11, 13]))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"size": [1e30, 1]}, "size"),
        ({"size": [2.0**39, 2.0**39]}, "size"),
        ({"size": float("nan")}, "size"),
        ({"resize_x": float("inf")}, "resize_x"),
        ({"size": 3, "roi_start": [0, 0], "roi_end": [1e30, 1]}, "roi_end"),
        ({"size": 3, "roi_start": [0, float("nan")], "roi_end": [1, 1]}, "roi_start"),
        ({"size": 3, "max_size": float("nan")}, "max_size"),
        ({"size": 3, "min_filter": -1}, "min_filter"),
    ],
    ids=str,
)
def test_errors_name_the_argument(given, says):
    with pytest.raises(RuntimeError, match=says):
        ndd.resize(noise(4, 5, 3), **given).evaluate()


def test_tiny_sizes_show_the_mean():
    image = noise(4, 5, 3).astype(np.float32)
    assert np.asarray(ndd.resize(image, size=[1e-30, 1e-30])).shape == (1, 1, 3)


@pytest.mark.parametrize("name", ["cubic", "Cubic", "INTERP_CUBIC", "interp_cubic"])
def test_interpolations_may_be_given_by_name(name):
    image = ndd.tensor(np.arange(75, dtype=np.uint8).reshape(5, 5, 3), layout="HWC")
    expected = ndd.resize(image, size=[9, 9], interp_type=ndd.types.INTERP_CUBIC)
    for keyword in ("interp_type", "mag_filter"):
        made = ndd.resize(image, size=[9, 9], **{keyword: name})
        np.testing.assert_array_equal(np.asarray(made), np.asarray(expected))
    with pytest.raises(ValueError, match=r"`interp_type`: 'bicubic' is not .*'nn', 'linear', 'c"):
        ndd.rotate(image, angle=3, interp_type="bicubic")


@pytest.mark.parametrize("far", [30.0, 100.0, 1e4])
def test_a_region_far_outside_repeats_the_edges(far: float) -> None:
    row = np.array([1.0, 5.0, 2.0, 9.0])
    step = 4 + 2 * far
    places = np.arange(np.ceil(1.5 - step), np.ceil(1.5 - step) + np.ceil(2 * step))
    weights = np.maximum(1 - np.abs(places - 1.5) / step, 0)
    expected = (row[np.clip(places, 0, 3).astype(int)] * weights).sum() / weights.sum()
    made = ndd.resize(
        ndd.as_tensor(row.astype(np.float32).reshape(1, 4, 1), layout="HWC"),
        size=[1, 1],
        roi_start=[0.0, -far],
        roi_end=[1.0, 4 + far],
    )
    assert np.asarray(made).item() == pytest.approx(expected, rel=1e-5)
