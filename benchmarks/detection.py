"""Boxes, masks and mosaics, as detectors are trained with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Operator, row
from benchmarks.harness import Case, Family, Library
from benchmarks.large import images
from benchmarks.warp import without_values

ABOUT = """\
Batches of 64 samples in memory of the library, in eager mode: ten calls (two for images and
masks), then a wait for all results, divided by the number of calls. Boxes are 20 a sample, anchors
8732, masks 375x500 with 30 ellipses of 7 labels, images 375x500x3. *mosaic*: four regions of other
samples on each canvas. Of operators that draw, only shapes and types are compared.
"""

COUNT = 64
Data = Callable[[Library], Any]


def corners(count: int, seed: int) -> np.ndarray:
    numbers = np.random.default_rng(seed)
    start = numbers.random((count, 2)) * 0.6
    return np.concatenate([start, start + 0.02 + numbers.random((count, 2)) * 0.38], 1).astype("f4")


def masks(library: Library) -> Any:
    y, x = np.mgrid[:375, :500]
    made = []
    for sample in range(COUNT):
        numbers = np.random.default_rng(sample)
        mask = np.zeros((375, 500), np.uint8)
        for index in range(30):
            (top, left), (height, width) = (
                numbers.random(2) * (375, 500),
                8 + numbers.random(2) * 40,
            )
            mask[((y - top) / height) ** 2 + ((x - left) / width) ** 2 < 1] = index % 7 + 1
        made.append(mask)
    return library.batch(made)


def labeled_boxes(library: Library) -> Any:
    boxes = library.batch([corners(20, seed) for seed in range(COUNT)])
    return boxes, library.batch([np.arange(1, 21, dtype=np.int32)] * COUNT)


def polygons(library: Library) -> Any:
    ends = np.arange(1, 41, dtype=np.int32) * 25
    rows = np.stack([np.arange(40, dtype=np.int32), ends - 25, ends], 1)
    points = np.random.default_rng(0).random((1000, 2)).astype(np.float32)
    ids = np.int32([3, 17, 5, 39, 22, 8, 30, 1])
    return [library.batch([each] * COUNT) for each in (ids, rows, points)]


# As of a detector for images of 300x300: as many places as its layers have, with their scales.
LAYERS = ((38, 4, 0.1), (19, 6, 0.2), (10, 6, 0.375), (5, 6, 0.55), (3, 4, 0.725), (1, 4, 0.9))
ANCHORS = [
    place
    for side, shapes, scale in LAYERS
    for y, x, shape in itertools.product(range(side), range(side), range(shapes))
    for place in (
        (x + 0.5) / side - scale * 0.5 * (1 + shape / 4),
        (y + 0.5) / side - scale * 0.5 / (1 + shape / 4),
        (x + 0.5) / side + scale * 0.5 * (1 + shape / 4),
        (y + 0.5) / side + scale * 0.5 / (1 + shape / 4),
    )
]

IDS = np.int32([[i, (i + 7) % COUNT, (i + 20) % COUNT, (i + 41) % COUNT] for i in range(COUNT)])
QUARTERS = np.int32([[0, 0], [0, 250], [187, 0], [187, 250]])
NESTED = np.int32([[375, 500], [300, 400], [200, 300]])
SHAPES = np.int32([[187, 250], [187, 250], [188, 250], [188, 250]])

EXACT: dict[str, tuple[Operator, Data]] = {
    "bb_flip": (lambda ndd, x: ndd.bb_flip(x[0], ltrb=True), labeled_boxes),
    "bbox_paste": (lambda ndd, x: ndd.bbox_paste(x[0], ratio=2.0, ltrb=True), labeled_boxes),
    "bbox_rotate": (
        lambda ndd, x: ndd.bbox_rotate(*x, angle=30, input_shape=[375, 500])[0],
        labeled_boxes,
    ),
    "box_encoder": (
        lambda ndd, x: ndd.box_encoder(*x, anchors=ANCHORS, offset=True)[0],
        labeled_boxes,
    ),
    "segmentation.select_masks": (lambda ndd, x: ndd.segmentation.select_masks(*x)[1], polygons),
}
LARGE: dict[str, tuple[Operator, Data]] = {
    "multi_paste, mosaic": (
        lambda ndd, x: ndd.multi_paste(
            x, in_ids=ndd.batch(list(IDS)), shapes=SHAPES, out_anchors=QUARTERS
        ),
        images("uint8"),
    ),
    "multi_paste, covered": (
        lambda ndd, x: ndd.multi_paste(x, x, x, shapes=NESTED),
        images("uint8"),
    ),
    "multi_paste, to float32": (
        lambda ndd, x: ndd.multi_paste(x, dtype=ndd.float32),
        images("uint8"),
    ),
}
DRAWN: dict[str, tuple[Operator, Data]] = {
    "random_bbox_crop": (
        lambda ndd, x: ndd.random_bbox_crop(
            *x,
            scaling=[0.3, 1.0],
            aspect_ratio=[0.5, 2.0],
            thresholds=[0.0, 0.1, 0.3],
            all_boxes_above_threshold=False,
            num_attempts=10,
            total_num_attempts=1000,
            quiet=True,
        )[0],
        labeled_boxes,
    ),
    "roi_random_crop": (
        lambda ndd, x: ndd.roi_random_crop(
            x[0], crop_shape=[3, 2], roi_start=[1, 1], roi_end=[9, 3]
        ),
        labeled_boxes,
    ),
}
DRAWN_LARGE: dict[str, tuple[Operator, Data]] = {
    "segmentation.random_mask_pixel": (
        lambda ndd, x: ndd.segmentation.random_mask_pixel(x, foreground=1),
        masks,
    ),
    "segmentation.random_object_bbox": (
        lambda ndd, x: ndd.segmentation.random_object_bbox(x)[0],
        masks,
    ),
    "segmentation.random_object_bbox, all labels": (
        lambda ndd, x: ndd.segmentation.random_object_bbox(x, ignore_class=True, k_largest=5)[0],
        masks,
    ),
}


def cases() -> Iterator[Case]:
    for operators, calls in ((EXACT, 10), (LARGE, 2)):
        for name, (operator, data) in operators.items():
            yield Case(f"detection/{name}", row(operator, data, calls=calls), 9)
    for operators, calls in ((DRAWN, 10), (DRAWN_LARGE, 2)):
        for name, (operator, data) in operators.items():
            prepare = without_values(row(operator, data, calls=calls))
            yield Case(f"detection/{name}", prepare, 9)


FAMILY = Family("detection", "Boxes, masks and mosaics", ABOUT, cases)
