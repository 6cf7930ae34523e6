"""Colors and filters on batches of typical images."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.calls import Operator, row
from benchmarks.harness import ORDER_OF_SUMS, Case, Family
from benchmarks.large import images

ABOUT = """\
Batches of 64 images of 375x500x3 in memory of the library, in eager mode: two calls, then a wait
for both results, divided by two.
"""

BOTH: dict[str, Operator] = {
    "brightness_contrast": lambda ndd, x: ndd.brightness_contrast(x, brightness=1.2, contrast=0.8),
    "color_twist": lambda ndd, x: ndd.color_twist(
        x, brightness=1.1, contrast=0.9, hue=20.0, saturation=1.3
    ),
    "hsv": lambda ndd, x: ndd.hsv(x, hue=20.0, saturation=1.3, value=0.9, dtype=ndd.float32),
    "gaussian_blur, sigma 1": lambda ndd, x: ndd.gaussian_blur(x, sigma=1.0),
    "gaussian_blur, sigma 3": lambda ndd, x: ndd.gaussian_blur(x, sigma=3.0),
    "laplacian": lambda ndd, x: ndd.laplacian(x),
    "filter, 5x5": lambda ndd, x: ndd.filter(x, [[0.04] * 5] * 5),
}
UINT8: dict[str, Operator] = {
    "equalize": lambda ndd, x: ndd.equalize(x),
    "RGB to BGR": lambda ndd, x: ndd.color_space_conversion(x, image_type=0, output_type=1),
    "RGB to GRAY": lambda ndd, x: ndd.color_space_conversion(x, image_type=0, output_type=2),
    "RGB to YCbCr": lambda ndd, x: ndd.color_space_conversion(x, image_type=0, output_type=3),
    "YCbCr to RGB": lambda ndd, x: ndd.color_space_conversion(x, image_type=3, output_type=0),
}


def cases() -> Iterator[Case]:
    for dtype, operators in (("uint8", BOTH | UINT8), ("float32", BOTH)):
        for name, operator in operators.items():
            prepare = row(operator, images(dtype), calls=2)
            yield Case(f"color/{dtype}/{name}", prepare, 7, tolerance=ORDER_OF_SUMS, rounding=1)


FAMILY = Family("color", "Colors and filters", ABOUT, cases)
