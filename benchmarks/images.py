"""Filters, distortions, perspective and raw images, on images of a typical size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.calls import Operator, row
from benchmarks.harness import (
    ORDER_OF_SUMS,
    Case,
    Contender,
    Family,
    Library,
    Prepare,
    Ready,
    synchronous,
    throughput,
)
from benchmarks.large import images

ABOUT = """\
Batches of 64 images of 375x500x3 (raw images: 374x500) in memory of the library, in eager mode:
two calls, then a wait for both results, divided by two. What DALI has on a GPU only is compared
with OpenCV, which works on one image in each of as many threads as the libraries have.
"""

PERSPECTIVE = np.float32([[0.9, 0.1, 3], [-0.1, 0.9, 4], [0.0003, -0.0002, 1]])
BLUE = [0, 1]

WITH_DALI: dict[str, Operator] = {
    "sphere": lambda ndd, x: ndd.sphere(x),
    "sphere, linear": lambda ndd, x: ndd.sphere(x, interp_type=1),
    "water": lambda ndd, x: ndd.water(x),
    "water, linear": lambda ndd, x: ndd.water(x, interp_type=1),
    "warp_perspective": lambda ndd, x: ndd.experimental.warp_perspective(x, matrix=PERSPECTIVE),
    "warp_perspective, nearest": lambda ndd, x: ndd.experimental.warp_perspective(
        x, matrix=PERSPECTIVE, interp_type=0
    ),
    "warp_perspective, cubic": lambda ndd, x: ndd.experimental.warp_perspective(
        x, matrix=PERSPECTIVE, interp_type=2
    ),
}
BYTES: dict[str, Operator] = {
    "clahe": lambda ndd, x: ndd.clahe(x, tiles_x=8, tiles_y=8, clip_limit=2.0),
    "clahe, by channel": lambda ndd, x: ndd.clahe(
        x, tiles_x=8, tiles_y=8, clip_limit=2.0, luma_only=False
    ),
}
RAW: dict[str, Operator] = {
    f"debayer, {algorithm}": lambda ndd, x, algorithm=algorithm: ndd.debayer(  # type: ignore[misc]
        x, blue_position=BLUE, algorithm=algorithm
    )
    for algorithm in ("bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv")
}


def _mask(width: int, height: int) -> Any:
    return np.ones((height, width), np.uint8)


def _places() -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[:375, :500].astype(np.float32)
    return x + 5 * np.sin(y / 20), y + 5 * np.cos(x / 20)


MAPS = _places()

WITH_OPENCV: dict[str, tuple[Operator, Callable[[Any, Any], Any]]] = {
    "dilate, 3x3": (
        lambda ndd, x: ndd.experimental.dilate(x),
        lambda cv2, x: cv2.dilate(x, _mask(3, 3)),
    ),
    "erode, 3x3": (
        lambda ndd, x: ndd.experimental.erode(x),
        lambda cv2, x: cv2.erode(x, _mask(3, 3)),
    ),
    "erode, 15x15": (
        lambda ndd, x: ndd.experimental.erode(x, mask_size=15),
        lambda cv2, x: cv2.erode(x, _mask(15, 15)),
    ),
    "median_blur, 3x3": (
        lambda ndd, x: ndd.experimental.median_blur(x),
        lambda cv2, x: cv2.medianBlur(x, 3),
    ),
    "median_blur, 5x5": (
        lambda ndd, x: ndd.experimental.median_blur(x, window_size=5),
        lambda cv2, x: cv2.medianBlur(x, 5),
    ),
    "remap": (
        lambda ndd, x: ndd.experimental.remap(x, *MAPS, pixel_origin="center"),
        lambda cv2, x: cv2.remap(x, *MAPS, cv2.INTER_LINEAR),
    ),
    "remap, nearest": (
        lambda ndd, x: ndd.experimental.remap(x, *MAPS, pixel_origin="center", interp=0),
        lambda cv2, x: cv2.remap(x, *MAPS, cv2.INTER_NEAREST),
    ),
}
OPENCV_BYTES: dict[str, tuple[Operator, Callable[[Any, Any], Any]]] = {
    f"median_blur, {size}x{size}": (
        lambda ndd, x, size=size: ndd.experimental.median_blur(  # type: ignore[misc]
            x, window_size=size
        ),
        lambda cv2, x, size=size: cv2.medianBlur(x, size),  # type: ignore[misc]
    )
    for size in (7, 15, 31)
}


def cases() -> Iterator[Case]:
    for dtype, operators in (("uint8", WITH_DALI | BYTES), ("float32", WITH_DALI)):
        for name, operator in operators.items():
            # On noise, the last bit of a coordinate decides between very different pixels.
            loose = 255 if "nearest" in name else 1
            prepare = row(operator, images(dtype), calls=2)
            tolerance = 1.0 if "nearest" in name else ORDER_OF_SUMS
            name = f"images/{dtype}/{name}"
            yield Case(name, prepare, 7, rounding=loose, tolerance=tolerance)
    for name, operator in RAW.items():
        yield Case(f"images/uint8/{name}", row(operator, raw_images, calls=2), 7)
    for dtype, pairs in (("uint8", WITH_OPENCV | OPENCV_BYTES), ("float32", WITH_OPENCV)):
        for name, (operator, theirs) in pairs.items():
            # OpenCV rounds places to 32nds of a pixel.
            rounding, tolerance = (9, 0.05) if name == "remap" else (0, 0.0)
            if name == "remap, nearest":
                rounding, tolerance = 255, 1.0
            prepare = beside_opencv(operator, theirs, dtype)
            yield Case(
                f"images/{dtype}/{name} (OpenCV)", prepare, 7, rounding=rounding,
                tolerance=tolerance,
            )  # fmt: skip


def raw_images(library: Library) -> Any:
    values = np.random.default_rng(0).integers(0, 256, (64, 374, 500), dtype=np.uint8)
    return library.batch(list(values), layout="HW")


def beside_opencv(ours: Operator, theirs: Callable[[Any, Any], Any], dtype: str) -> Prepare:
    """The operator, and in DALI's place OpenCV, image by image in threads."""

    def prepare(side: Contender) -> Ready:
        if not side.is_dali:
            return row(ours, images(dtype), throughput, calls=2)(side)
        import cv2

        cv2.setNumThreads(1)
        values = np.random.default_rng(0).integers(0, 256, (64, 375, 500, 3), dtype=np.uint8)
        pictures = list(values.astype(dtype))
        pool = ThreadPoolExecutor(side.threads)

        def batch() -> list[np.ndarray]:
            return list(pool.map(lambda picture: theirs(cv2, picture), pictures))

        return Ready(synchronous(batch, calls=2), batch())

    return prepare


FAMILY = Family("images", "Filters, distortions and raw images", ABOUT, cases)
