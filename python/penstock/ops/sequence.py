"""Sequences.

Operators on samples whose first dimension holds frames.
"""

from __future__ import annotations

from typing import Annotated

from penstock._errors import messages
from penstock._operators.arguments import REQUIRED, Ints
from penstock._operators.constraints import Frames, Rank
from penstock._operators.definition import Data, Like, PerSample, operator


@operator()
def element_extract(
    input: Annotated[Data, Frames()], *, element_map: Ints = REQUIRED
) -> tuple[Like, ...]:
    """Extract frames of sequences, without copying.

    Args:
        input: Sequences. A layout must begin with "F".
        element_map: The indices of the frames. There is a result for each of them.

    Example:
        >>> first, last = ndd.element_extract([[1, 2], [3, 4], [5, 6]], element_map=[0, 2])
        >>> last.torch().tolist()
        [5, 6]
    """
    if not element_map:
        raise messages.bad_argument("element_extract", "element_map", "must name a frame")
    frame = input.layout[1:] if input.layout else None
    return tuple(Like(input, ndim=input.ndim - 1, layout=frame) for _ in element_map)


@operator(kernel="same")
def per_frame(input: Annotated[Data, Rank(1, None)], *, replace: bool = False) -> Like:
    """Mark the first dimension as frames: its letter becomes "F".

    An argument that is marked this way has a value for each frame of a sequence.

    Args:
        input: The data.
        replace: Whether "F" may replace another letter, which is an error otherwise.

    Example:
        >>> ndd.per_frame([[0.5, 1.0], [0.25, 0.75]]).layout
        'F*'
    """
    ndim, layout = input.ndim, input.layout
    if layout is None:
        layout = "F" + "*" * (ndim - 1)
    elif replace:
        layout = "F" + layout[1:]
    elif layout[0] != "F":
        raise messages.bad_input(
            "per_frame",
            f'the layout must begin with "F", got "{layout}"; `replace=True` changes it',
        )
    return Like(input, layout=layout)


@operator()
def sequence_rearrange(
    input: Annotated[Data, Frames()], *, new_order: PerSample[Ints] = REQUIRED
) -> Like:
    """Reorder the frames of sequences.

    Args:
        input: Sequences. A layout must begin with "F".
        new_order: For each frame of the result, the index of the frame to take. Frames may be
            omitted and repeated.

    Example:
        >>> ndd.sequence_rearrange([[1, 2], [3, 4], [5, 6]], new_order=[2, 0, 0]).torch().tolist()
        [[5, 6], [1, 2], [1, 2]]
    """
    return Like(input)
