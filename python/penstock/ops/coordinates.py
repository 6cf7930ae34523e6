"""Points.

Operators on coordinates.
"""

from __future__ import annotations

from penstock._operators.arguments import Matrix
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._values.dtype import DType, float32


@operator(makes_frames=True)
def coord_transform(
    input: Data,
    *,
    M: PerSample[Matrix] | None = None,
    MT: PerSample[Matrix] | None = None,
    T: PerSample[Matrix] | None = None,
    dtype: DType = float32,
) -> Like:
    """Apply an affine transform to points: each point x becomes M x + T.

    Args:
        input: Points; the last dimension holds the coordinates of each.
        M: The matrix, with a column for each coordinate and a row for each of the result; or a
            number, which scales all coordinates. The identity by default.
        MT: Both in one: the matrix with the translation as its last column.
        T: The translation: a number for each coordinate of the result, or one for all; 0 by
            default.
        dtype: The element type of the result.

    Example:
        >>> points = ndd.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> ndd.coord_transform(points, M=[[0, 1], [1, 0]], T=[10, 20]).torch().tolist()
        [[12.0, 21.0], [14.0, 23.0]]
    """
    return Like(input, dtype=dtype)


@operator()
def coord_flip(
    input: Data,
    *,
    center_x: PerSample[float] = 0.5,
    center_y: PerSample[float] = 0.5,
    center_z: PerSample[float] = 0.5,
    flip_x: PerSample[int] = 1,
    flip_y: PerSample[int] = 0,
    flip_z: PerSample[int] = 0,
    layout: str = "",
) -> Like:
    """Mirror points about a center.

    Args:
        input: Points; the last dimension holds the coordinates of each.
        center_x: The center for x coordinates.
        center_y: The center for y coordinates.
        center_z: The center for z coordinates.
        flip_x: Non-zero mirrors x coordinates.
        flip_y: Non-zero mirrors y coordinates.
        flip_z: Non-zero mirrors z coordinates.
        layout: The order of the coordinates, such as "yx"; x, y, z by default.

    Example:
        >>> ndd.coord_flip(ndd.tensor([[0.25, 0.75]])).torch().tolist()
        [[0.75, 0.75]]
    """
    return Like(input)
