"""Mosaics larger than the caches, which are written with non-temporal stores."""

import numpy as np
import pytest

import penstock as ndd

COUNT, REGIONS, HEIGHT, WIDTH = 64, 5, 375, 500


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_large_mosaics_match_numpy(dtype):
    numbers = np.random.default_rng(0)
    images = list(numbers.integers(0, 256, (COUNT, HEIGHT, WIDTH, 3), dtype=np.uint8))
    ids = numbers.integers(0, COUNT, (COUNT, REGIONS)).astype(np.int32)
    room = np.array([HEIGHT, WIDTH]) + 1
    shapes = numbers.integers(0, room, (COUNT, REGIONS, 2))
    # One region covers all others, another one is as wide as the canvas.
    shapes[0, -1], shapes[1, -1] = (HEIGHT, WIDTH), (200, WIDTH)
    sources, targets = (numbers.integers(0, room - shapes) for _ in range(2))
    made = ndd.multi_paste(
        ndd.batch(images, layout="HWC"),
        in_ids=ndd.batch(list(ids)),
        in_anchors=ndd.batch(list(sources)),
        shapes=ndd.batch(list(shapes)),
        out_anchors=ndd.batch(list(targets)),
        dtype=ndd.dtype(np.dtype(dtype)),
    )
    for found, row in zip(made, range(COUNT), strict=True):
        expected = np.zeros((HEIGHT, WIDTH, 3), dtype)
        for image, source, target, (h, w) in zip(
            ids[row], sources[row], targets[row], shapes[row], strict=True
        ):
            (a, b), (y, x) = source, target
            expected[y : y + h, x : x + w] = images[image][a : a + h, b : b + w]
        np.testing.assert_array_equal(np.asarray(found), expected)
