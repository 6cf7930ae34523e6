"""Arguments that differ from frame to frame."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

SHORT = "T, B, frames = ndd.tensor, ndd.batch, ndd.per_frame\n"
VIDEO = np.arange(24, dtype=np.uint8).reshape(3, 2, 2, 2)
POINTS = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
MATRICES = np.arange(18, dtype=np.float32).reshape(3, 2, 3)

AGREE = [
    # Sequences: each frame has its own.
    'ndd.coord_transform(T(points, layout="FNX"), MT=frames(matrices))',
    'ndd.coord_transform(T(points, layout="FNX"), MT=frames(matrices[:1]))',
    'ndd.coord_transform(T(points, layout="FNX"), M=np.float32([[1, 2], [3, 4]]),'
    " T=frames(points[:, 0].copy()))",
    'ndd.coord_transform(T(points, layout="FNX"), T=frames([1, 2, 3]), M=frames([0.5, 1.5, 2]))',
    'ndd.coord_transform(B([points, points[:2]], layout="F**"),'
    " MT=frames(B([matrices, matrices[1:]])))",
    'ndd.coord_transform(B([points, points + 1], layout="F**"), MT=frames(T(matrices)))',
    'ndd.flip(T(video, layout="FHWC"), horizontal=frames([1]))',
    # What is no sequence becomes one.
    'ndd.coord_transform(T(points[0], layout="NX"), MT=frames(matrices))',
    "ndd.coord_transform(T(points), T=frames(points[:1, 0]))",
    "ndd.coord_transform(points[0], T=frames([1, 2, 3]))",
    'ndd.coord_transform(B([points[0], points[1, :1]], layout="NX"),'
    " MT=frames(B([matrices, matrices[1:]])))",
    "ndd.transforms.rotation(angle=frames([90.0, 0, 180]))",
    "ndd.transforms.rotation(angle=frames([90.0, 0]), center=[1, 2])",
    "ndd.transforms.rotation(angle=frames([90.0, 0]), center=frames([[1, 2], [1, 3]]))",
    "ndd.transforms.rotation(angle=frames(B([[90.0, 0], [45.0]])))",
    "ndd.transforms.rotation(T(matrices[0]), angle=frames([90.0, 0]))",
    "ndd.transforms.rotation(frames(matrices[:2]), angle=frames([90.0, 0]))",
    "ndd.transforms.rotation(frames(matrices), angle=5.0)",
    "ndd.transforms.translation(offset=frames([[90.0, 0], [1, 180]]))",
    "ndd.transforms.translation(offset=frames(B([np.ones((1, 2)), np.eye(2)])))",
    "ndd.transforms.scale(scale=frames([[1.0, 2], [1, 3]]))",
    "ndd.transforms.shear(shear=frames([[1.0, 2], [1, 3]]))",
    "ndd.transforms.crop(to_start=frames([[1.0, 2], [1, 3]]))",
    "ndd.transforms.combine(frames(matrices), frames(matrices[::-1].copy()))",
    "ndd.transforms.combine(frames(matrices), matrices[0])",
    "ndd.transforms.rotation(angle=frames([90.0, 0])).layout",
    # Not as many as there are frames.
    'ndd.coord_transform(T(points, layout="FNX"), MT=frames(matrices[:2]))',
    "ndd.transforms.rotation(frames(matrices), angle=frames([90.0, 0]))",
    'ndd.flip(T(video, layout="FHWC"), horizontal=frames([1, 0]))',
    'ndd.flip(T(video[0], layout="HWC"), horizontal=frames([1, 0, 1]))',
    # Where axes are counted in the whole, frames are but an axis.
    'ndd.normalize(T(video, layout="FHWC"), axes=[1, 2, 3],'
    ' mean=T(np.float32([1, 2, 3]).reshape(3, 1, 1, 1), layout="FHWC"))',
    'ndd.full_like(T(video, layout="FHWC"), fill_value=T(video, layout="FHWC"))',
]


@pytest.mark.parametrize("source", AGREE)
def test_as_the_original(source):
    assert_same(SHORT + source, tol=1e-4, video=VIDEO, points=POINTS, matrices=MATRICES)


SETUP = "v = np.arange(12, dtype=np.uint8).reshape(3, 2, 2, 1)\n"
FLIPPED = 'ndd.tensor(np.stack([v[0, :, ::-1], v[1], v[2, :, ::-1]]), layout="FHWC")'

DIFFER = [
    Differs(
        SETUP + 'ndd.flip(ndd.tensor(v, layout="FHWC"), horizontal=ndd.per_frame([1, 0, 1]))',
        SETUP + FLIPPED,
        "any argument of an operator on sequences may be one for each frame",
    ),
    Differs(
        SETUP + "ndd.flip(v, horizontal=ndd.per_frame([[1], [0], [1]]))",
        SETUP + FLIPPED,
        "any argument of an operator on sequences may be one for each frame",
    ),
    Differs(
        'ndd.coord_transform(ndd.tensor(np.ones((0, 2, 2)), layout="FNX"), T=5)',
        'ndd.tensor(np.ones((0, 2, 2), np.float32), layout="FNX")',
        "no frames are no points",
    ),
]


@pytest.mark.parametrize("row", DIFFER, ids=str)
def test_differs_on_purpose(row):
    row.check()


@pytest.mark.parametrize(
    "source",
    [
        "ndd.flip(np.zeros((0, 2, 2, 1)), horizontal=ndd.per_frame(np.zeros(0, np.int32)))",
        "ndd.transforms.rotation(angle=ndd.per_frame(np.zeros(0, np.float32)))",
        "ndd.transforms.combine(ndd.per_frame(np.ones((3, 2, 3), np.float32)),"
        " ndd.per_frame(np.ones((2, 2, 3), np.float32)))",
    ],
)
def test_no_frames_or_not_as_many_are_refused(source):
    assert_refused(source)
