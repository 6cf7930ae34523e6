"""Jitter, which DALI has on a GPU only: what its documentation says of it."""

import numpy as np
import pytest

import penstock as ndd

HEIGHT, WIDTH = 40, 60


def places(degree, seed=1):
    """How far each pixel has come, along y and x."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    image = ndd.tensor(np.stack([y, x], -1).astype(np.int32), layout="HWC")
    made = np.asarray(ndd.jitter(image, nDegree=degree, rng=ndd.random.RNG(seed)))
    return made - np.stack([y, x], -1)


@pytest.mark.parametrize("degree", [2, 3, 4, 9])
def test_pixels_move_by_up_to_half_the_degree(degree):
    reach = degree // 2
    inner = places(degree)[reach : HEIGHT - reach, reach : WIDTH - reach]
    counts = np.bincount(inner.ravel() + reach, minlength=2 * reach + 1)
    assert len(counts) == 2 * reach + 1
    # All distances are as likely: five standard errors.
    expected = inner.size / len(counts)
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))
    # Along both axes independently.
    assert abs(np.corrcoef(inner[..., 0].ravel(), inner[..., 1].ravel())[0, 1]) < 0.1


def test_pixels_from_outside_come_from_the_edge():
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    made = places(20) + np.stack([y, x], -1)
    assert made.min() == 0
    assert made[..., 0].max() == HEIGHT - 1
    assert made[..., 1].max() == WIDTH - 1


@pytest.mark.parametrize("degree", [0, 1])
def test_small_degrees_move_nothing(degree):
    assert not places(degree).any()


def test_the_same_stream_gives_the_same_pixels_and_samples_differ():
    np.testing.assert_array_equal(places(4), places(4))
    assert (places(4) != places(4, seed=2)).any()
    image = np.arange(600, dtype=np.uint16).reshape(20, 30, 1)
    a, b = ndd.jitter(ndd.batch([image, image], layout="HWC"), rng=ndd.random.RNG(1))
    assert (np.asarray(a) != np.asarray(b)).any()


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_pixels_move_as_a_whole(dtype, channels):
    image = np.arange(200).reshape(10, 20, 1).repeat(channels, -1).astype(dtype)
    made = np.asarray(ndd.jitter(ndd.tensor(image, layout="HWC")))
    assert made.dtype == dtype
    assert (made == made[..., :1]).all()


def test_masked_images_stay():
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    batch = ndd.batch([image] * 2, layout="HWC")
    kept, moved = ndd.jitter(batch, mask=ndd.batch([0, 1]), nDegree=6)
    np.testing.assert_array_equal(np.asarray(kept), image)
    assert (np.asarray(moved) != image).any()


def test_bad_degrees_are_refused():
    image = np.zeros((2, 2, 1), np.uint8)
    for degree in (-1, 2**40):
        with pytest.raises((ValueError, RuntimeError), match="nDegree"):
            ndd.jitter(image, nDegree=degree).evaluate()
