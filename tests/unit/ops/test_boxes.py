"""Box operators: random crops always terminate, and errors say which argument to relax."""

import itertools
import time

import numpy as np
import pytest

import penstock as ndd
from penstock.errors import InternalError

BOXES = np.float32([[0.1, 0.2, 0.3, 0.4], [0.5, 0.25, 0.75, 1.0]])
LABELS = np.int32([3, 4])
NAN, INF = float("nan"), float("inf")


def test_impossible_threshold_raises_with_hints():
    with pytest.raises(
        ValueError, match="no window met the conditions in 100000 attempts"
    ) as raised:
        ndd.random_bbox_crop(BOXES, thresholds=[0.99], allow_no_crop=False)[0].evaluate()
    text = str(raised.value)
    for name in ("thresholds", "scaling", "all_boxes_above_threshold", "total_num_attempts"):
        assert f"`{name}" in text
    assert "metric of 0.0" in text


def test_impossible_aspect_ratio_raises_with_hints():
    def crop(attempts):
        return ndd.random_bbox_crop(
            BOXES,
            scaling=[0.5, 1],
            aspect_ratio=[5, 6],
            allow_no_crop=False,
            total_num_attempts=attempts,
        )[0].evaluate()

    for attempts in (-1, 5):
        with pytest.raises(
            RuntimeError, match=r"`aspect_ratio` is not the ratio of any .* `scaling`"
        ):
            crop(attempts)


def test_few_attempts_still_give_a_valid_aspect_ratio():
    batch = ndd.batch([BOXES] * 300)
    _, shape, _ = ndd.random_bbox_crop(
        batch, scaling=[0.3, 1], aspect_ratio=[1.5, 1.6], total_num_attempts=1, allow_no_crop=False
    )
    width, height = np.asarray(ndd.as_tensor(shape)).T
    assert ((width / height > 1.49) & (width / height < 1.61)).all()
    assert (np.asarray(ndd.as_tensor(shape)) <= 1).all()


def test_aspect_ratio_is_in_pixels():
    batch = ndd.batch([BOXES] * 300)
    anchor, shape, _ = ndd.random_bbox_crop(
        batch, scaling=[0.3, 1], input_shape=[200, 100], allow_no_crop=False
    )
    anchor, shape = np.asarray(ndd.as_tensor(anchor)), np.asarray(ndd.as_tensor(shape))
    np.testing.assert_allclose(shape[:, 0] * 200, shape[:, 1] * 100, rtol=1e-5)
    assert (anchor >= 0).all()
    assert (anchor + shape <= 1 + 1e-6).all()


@pytest.mark.parametrize("kind", ["iou", "overlap"])
def test_boxes_with_zero_area_are_kept(kind):
    points = np.float32([[0.25, 0.25, 0.25, 0.25]])
    *_, kept = ndd.random_bbox_crop(
        ndd.batch([points] * 100),
        scaling=[0.5, 0.9],
        aspect_ratio=[0.5, 2],
        threshold_type=kind,
        allow_no_crop=False,
    )
    assert all(np.asarray(each).shape == (1, 4) for each in kept)


def calls():
    reals = [0.0, -1.0, 1e-30, 1e30, NAN, INF, -INF]
    integers = [0, -1, 1, 2**31, 2**62, -(2**63)]
    mask = np.int32([[0, 1], [2, 1]])
    image = np.ones((3, 4, 1), np.uint8)
    for n in reals:
        yield lambda n=n: ndd.bbox_paste(BOXES, ratio=n, paste_x=n)
        yield lambda n=n: ndd.bbox_paste(BOXES, ratio=ndd.batch([n, n]))
        yield lambda n=n: ndd.bbox_rotate(BOXES, angle=n, input_shape=[9, 9])
        yield lambda n=n: ndd.bbox_rotate(BOXES, angle=9, input_shape=[9, 9], size=[n, n])
        yield lambda n=n: ndd.bbox_rotate(BOXES * np.float32(n), angle=9, input_shape=[9, 9])
        yield lambda n=n: ndd.box_encoder(BOXES, LABELS, anchors=[n, 0, n, 1], offset=True)
        yield lambda n=n: ndd.box_encoder(
            BOXES, LABELS, anchors=[0, 0, 1, 1], scale=n, stds=[n] * 4
        )
        yield lambda n=n: ndd.box_encoder(BOXES * np.float32(n), LABELS, anchors=[0, 0, 1, 1])
        yield lambda n=n: ndd.random_bbox_crop(BOXES * np.float32(n))
        yield lambda n=n: ndd.random_bbox_crop(BOXES, scaling=[n, n], allow_no_crop=False)
        yield lambda n=n: ndd.random_bbox_crop(BOXES, aspect_ratio=[n, n], allow_no_crop=False)
        yield lambda n=n: ndd.random_bbox_crop(BOXES, thresholds=[n], allow_no_crop=False)
        yield lambda n=n: ndd.random_bbox_crop(BOXES, bbox_prune_threshold=n, allow_no_crop=False)
        yield lambda n=n: ndd.segmentation.random_mask_pixel(mask, foreground=1, threshold=n)
        yield lambda n=n: ndd.segmentation.random_object_bbox(mask, class_weights=[n, 1])
        yield lambda n=n: ndd.segmentation.random_object_bbox(mask, foreground_prob=n)
        yield lambda n=n: ndd.multi_paste(image, shapes_rel=[[n, 1.0]])
        yield lambda n=n: ndd.multi_paste(image, shapes=[[n, 1.0]])
    for n in integers:
        yield lambda n=n: ndd.bbox_rotate(BOXES, angle=9, input_shape=[n, n])
        yield lambda n=n: ndd.random_bbox_crop(BOXES, num_attempts=n, thresholds=[1])
        yield lambda n=n: ndd.random_bbox_crop(
            BOXES, total_num_attempts=n, thresholds=[1], allow_no_crop=False
        )
        yield lambda n=n: ndd.random_bbox_crop(BOXES, crop_shape=[n, 1], input_shape=[9, 9])
        yield lambda n=n: ndd.random_bbox_crop(BOXES, input_shape=[n, 1], allow_no_crop=False)
        yield lambda n=n: ndd.roi_random_crop(crop_shape=[n], roi_start=[1], roi_end=[5])
        yield lambda n=n: ndd.roi_random_crop(crop_shape=[5], roi_start=[n], roi_shape=[n])
        yield lambda n=n: ndd.roi_random_crop(
            crop_shape=[n], roi_start=[n], roi_end=[n], in_shape=[n]
        )
        yield lambda n=n: ndd.segmentation.random_mask_pixel(mask, foreground=1, value=n)
        yield lambda n=n: ndd.segmentation.random_object_bbox(mask, classes=[n], background=1)
        yield lambda n=n: ndd.segmentation.random_object_bbox(mask, threshold=[n, n])
        yield lambda n=n: ndd.segmentation.random_object_bbox(mask, background=n, k_largest=n)
        yield lambda n=n: ndd.multi_paste(image, output_size=[n, 4])
        yield lambda n=n: ndd.multi_paste(image, in_anchors=[[n, 0]], shapes=[[n, n]])
        yield lambda n=n: ndd.multi_paste(image, out_anchors=[[n, 0]], output_size=[9, 9])
        yield lambda n=n: ndd.multi_paste(image, in_ids=[n])


def test_extreme_arguments_give_a_result_or_an_error_quickly():
    start, refused = time.monotonic(), 0
    for call in calls():
        try:
            made = call()
            for each in made if isinstance(made, tuple) else (made,):
                each.evaluate()
        except InternalError:
            raise
        except (ValueError, RuntimeError, TypeError, MemoryError, OverflowError):
            refused += 1
    assert refused > 20
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("threads", [1, 3])
def test_draws_do_not_depend_on_threads(threads):
    def draw():
        rng = ndd.random.RNG(seed=11)
        batch = ndd.batch([BOXES] * 40)
        yield from ndd.random_bbox_crop(batch, scaling=[0.3, 1], aspect_ratio=[0.5, 2], rng=rng)[:2]
        yield ndd.roi_random_crop(
            crop_shape=[5, 5], roi_start=[3, 3], roi_end=[20, 20], batch_size=40, rng=rng
        )
        masks = ndd.batch(list(np.random.default_rng(0).integers(0, 3, (40, 9, 9), np.uint8)))
        yield ndd.segmentation.random_mask_pixel(masks, foreground=1, rng=rng)
        yield from ndd.segmentation.random_object_bbox(masks, rng=rng)

    expected = [np.asarray(ndd.as_tensor(each)) for each in draw()]
    with ndd.EvalContext(num_threads=threads):
        found = [np.asarray(ndd.as_tensor(each)) for each in draw()]
    for a, b in itertools.zip_longest(expected, found):
        np.testing.assert_array_equal(a, b)
        assert len(np.unique(a, axis=0)) > 5, "samples draw for themselves"
