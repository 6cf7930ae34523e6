"""Debugging.

Inspecting intermediate results.
"""

from __future__ import annotations

from typing import Annotated

from penstock._operators.constraints import Elements, OneOf, Rank
from penstock._operators.definition import Data, Like, operator
from penstock._values.dtype import uint8

_BYTES = Elements("uint8", uint8)


@operator()
def dump_image(
    input: Annotated[Data, _BYTES, Rank(3, 3)],
    *,
    input_layout: Annotated[str, OneOf("HWC")] = "HWC",
    suffix: str = "",
) -> Like:
    """Write images to files in the current directory, and return them unchanged.

    The first sample is written to `0-<suffix>-0.ppm`, the next one to `1-<suffix>-0.ppm` and so on,
    in the plain-text PPM format (PGM for one channel). Another call with the same suffix overwrites
    these files.

    Args:
        input: Images of uint8 with one or three channels.
        input_layout: The layout of the images: "HWC".
        suffix: Part of the file names.

    Example:
        >>> import pathlib
        >>> image = ndd.tensor([[[1, 2, 3]]], dtype=ndd.uint8, layout="HWC")
        >>> same = ndd.dump_image(image, suffix="example").evaluate()
        >>> pathlib.Path("0-example-0.ppm").read_text().split()
        ['P3', '1', '1', '255', '1', '2', '3']
    """
    return Like(input)
