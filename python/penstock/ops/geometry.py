"""Geometry."""

from __future__ import annotations

from penstock._operators.definition import Data, Like, PerSample, operator


@operator(layouts="FDHWC FHWC DHWC HWC FCDHW FCHW CDHW CHW")
def flip(
    input: Data,
    *,
    depthwise: PerSample[int] = 0,
    horizontal: PerSample[int] = 1,
    vertical: PerSample[int] = 0,
) -> Like:
    """Flip images, volumes or sequences of them.

    Args:
        input: Images. Without a layout, the last dimension holds the channels.
        depthwise: Non-zero mirrors front and back; ignored without a depth axis.
        horizontal: Non-zero mirrors left and right.
        vertical: Non-zero mirrors top and bottom.

    Example:
        >>> image = ndd.tensor([[[1], [2], [3]]], layout="HWC")
        >>> ndd.flip(image).torch().flatten().tolist()
        [3, 2, 1]
    """
    return Like(input)
