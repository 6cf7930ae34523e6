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
    """Convert raw Bayer images to RGB (demosaicing).

    Args:
        input: Images with one channel, or sequences of them: uint8 or uint16.
        algorithm: How missing colors are interpolated. "bilinear_ocv", the default, averages the
            neighbors; "edgeaware_ocv" interpolates green in the direction of the smaller gradient;
            "vng_ocv" (variable number of gradients, uint8 only) averages over the directions with
            small gradients; "gray_ocv" returns grayscale images. "default_npp", DALI's algorithm
            on the GPU, runs as "edgeaware_ocv".
        blue_position: Row and column, 0 or 1, of the blue pixel in the 2x2 tile that starts at the
            second row and column of the image, as in OpenCV: [0, 0] for BGGR, [0, 1] for GBRG,
            [1, 0] for GRBG, [1, 1] for RGGB.

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
