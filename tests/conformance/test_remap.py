"""Remap, which DALI has on a GPU only; OpenCV says what is right."""

import cv2
import numpy as np
import pytest

import penstock as ndd

RNG = np.random.default_rng(9)
INTERPS = {
    ndd.types.INTERP_NN: cv2.INTER_NEAREST,
    ndd.types.INTERP_LINEAR: cv2.INTER_LINEAR,
    ndd.types.INTERP_CUBIC: cv2.INTER_CUBIC,
}


def image(shape=(30, 40, 3), dtype="u1"):
    """Smooth, as a photograph is."""
    noise = RNG.integers(0, 256, shape).astype("f4")
    return cv2.GaussianBlur(noise, (0, 0), 2).reshape(shape).astype(dtype)


def maps(height=25, width=33, quantum=32):
    """Places in and around the image; of 32nds of pixels, as OpenCV rounds them for some types."""
    x, y = RNG.uniform(-3, 43, (height, width)), RNG.uniform(-3, 33, (height, width))
    return [(np.rint(each * quantum) / quantum).astype("f4") for each in (x, y)]


def remapped(picture, x, y, **arguments):
    picture = ndd.tensor(picture, layout="HWC")
    arguments = {"pixel_origin": "center", **arguments}
    return np.asarray(ndd.experimental.remap(picture, x, y, **arguments))


@pytest.mark.parametrize("interp", INTERPS)
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_places_are_those_of_opencv(dtype, channels, interp):
    # No halves of pixels, which the two would round to different sides.
    picture, (x, y) = image((30, 40, channels), dtype), maps()
    x, y = x + np.float32(1 / 64), y + np.float32(1 / 64)
    if interp != ndd.types.INTERP_NN:
        x, y = maps()
    made = remapped(picture, x, y, interp=interp)
    expected = cv2.remap(picture, x, y, INTERPS[interp]).reshape(made.shape)
    apart = np.abs(made.astype("f8") - expected)
    # OpenCV has weights of 15 bits for integers; sums near one half may be rounded to either side.
    assert apart.max() <= (0 if interp == ndd.types.INTERP_NN else 1 if dtype != "f4" else 1e-3)
    assert dtype == "f4" or (apart > 0).mean() < 0.02


def test_corners_are_half_a_pixel_before_centers():
    picture, (x, y) = image(), maps()
    half = np.float32(0.5)
    made = remapped(picture, x + half, y + half, pixel_origin="corner")
    assert np.array_equal(made, remapped(picture, x, y))


@pytest.mark.parametrize("dtype", ["i1", "i4", "u4", "i8", "u8", "f2", "f8"])
def test_all_types(dtype):
    picture, (x, y) = (image() // 3).astype(dtype), maps()
    expected = remapped(picture.astype("f4"), x, y)
    made = remapped(picture, x, y)
    # Half a unit of rounding, and the precision of float16.
    assert made.dtype == dtype
    assert np.abs(made - expected).max() <= 0.501


def test_maps_of_any_type_and_shape():
    picture, (x, y) = image(), maps(quantum=1)
    expected = remapped(picture, x, y)
    assert np.array_equal(remapped(picture, x.astype("i2"), y.astype("f8")), expected)
    assert np.array_equal(remapped(picture, x[..., None], y), expected)
    # Not contiguous.
    turned = np.ascontiguousarray(x.T).T
    assert np.array_equal(remapped(picture, turned, y), expected)


def test_sequences_have_one_map_or_one_for_each_frame():
    video = np.stack([image(), image()])
    (x, y), (x2, y2) = maps(), maps()
    sequence = ndd.tensor(video, layout="FHWC")
    made = np.asarray(ndd.experimental.remap(sequence, x, y, pixel_origin="center"))
    assert np.array_equal(made, np.stack([remapped(frame, x, y) for frame in video]))
    xs, ys = (ndd.tensor(np.stack(each), layout="FHW") for each in ([x, x2], [y, y2]))
    made = np.asarray(ndd.experimental.remap(sequence, xs, ys, pixel_origin="center"))
    expected = [remapped(video[0], x, y), remapped(video[1], x2, y2)]
    assert np.array_equal(made, np.stack(expected))


def test_batches_are_ragged():
    images, all_maps = [image((30, 40, 3)), image((9, 50, 3))], [maps(4, 5), maps(11, 3)]
    batch = ndd.batch(images, layout="HWC")
    xs, ys = (ndd.batch([each[i] for each in all_maps]) for i in (0, 1))
    made = ndd.experimental.remap(batch, xs, ys, pixel_origin="center")
    for picture, (x, y), one in zip(images, all_maps, made, strict=True):
        assert np.array_equal(np.asarray(one), remapped(picture, x, y))


def test_places_of_any_kind_are_outside():
    odd = np.float32([[np.nan, np.inf, -np.inf, 1e30, -1e30, -1.5]])
    for interp in INTERPS:
        assert not remapped(image(), odd, np.full_like(odd, 5), interp=interp).any()
        assert not remapped(np.zeros((0, 4, 3), "u1"), odd, odd, interp=interp).any()


def test_bad_maps_are_refused():
    picture, (x, y) = image(), maps()
    with pytest.raises(RuntimeError, match="the same shape"):
        remapped(picture, x, y[1:])
    with pytest.raises(RuntimeError, match="a height and a width"):
        remapped(picture, x.ravel(), y.ravel())
    with pytest.raises(RuntimeError, match="interp"):
        remapped(picture, x, y, interp=ndd.types.INTERP_GAUSSIAN)
    with pytest.raises(RuntimeError, match="pixel_origin"):
        remapped(picture, x, y, pixel_origin="foo")
