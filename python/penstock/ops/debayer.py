"""Bayer images."""

from __future__ import annotations

from typing import Annotated

from penstock._operators.arguments import Ints
from penstock._operators.constraints import Elements, OneOf
from penstock._operators.definition import REQUIRED, Data, Like, PerSample, operator
from penstock._values.dtype import uint8, uint16

_ALGORITHMS = OneOf("bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv", "default_npp")
_RAW = Elements("uint8 or uint16", uint8, uint16)


@operator(layouts="HW HWC FHW FHWC")
def debayer(
    input: Annotated[Data, _RAW],
    *,
    algorithm: Annotated[str, _ALGORITHMS] | None = None,
    blue_position: PerSample[Ints] = REQUIRED,
) -> Like:
    """Convert the raw images of a sensor behind a Bayer filter to RGB.

    Args:
        input: Images of one channel, or sequences of them: uint8 or uint16.
        algorithm: How the colors are found that a pixel has no value of. "bilinear_ocv", the
            default, takes the mean of the neighbors; "edgeaware_ocv" takes green from the
            direction in which less changes; "vng_ocv" (for uint8) takes the mean over the
            directions in which little changes; "gray_ocv" makes images of brightness, with one
            channel. "default_npp", the algorithm of DALI on a GPU, runs as "edgeaware_ocv".
        blue_position: The row and the column, 0 or 1, of the blue value in the 2x2 tile that
            begins in the second row and column of the image, as OpenCV has it: [0, 0] for BGGR,
            [0, 1] for GBRG, [1, 0] for GRBG, [1, 1] for RGGB.

    Example:
        >>> raw = ndd.zeros(dtype=ndd.uint8, shape=[4, 4])
        >>> ndd.debayer(raw, blue_position=[0, 0]).shape
        (4, 4, 3)
    """
    in_frames = input.ndim == 4 or (input.layout or "").startswith("F")
    return Like(
        input,
        ndim=4 if in_frames else 3,
        layout="FHWC" if in_frames else "HWC",
        algorithm=algorithm or "bilinear_ocv",
    )
