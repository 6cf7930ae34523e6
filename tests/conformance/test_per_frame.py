"""Arguments that differ from frame to frame."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

SHORT = "T, B, frames = ndd.tensor, ndd.batch, ndd.per_frame\n"
VIDEO = np.arange(24, dtype=np.uint8).reshape(3, 2, 2, 2)
POINTS = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
FILM = np.random.default_rng(5).uniform(0, 1, (3, 5, 8, 3)).astype(np.float32)
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
    # Other inputs become sequences.
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
    # Operators that name axes of the whole sample treat frames as an axis.
    'ndd.normalize(T(video, layout="FHWC"), axes=[1, 2, 3],'
    ' mean=T(np.float32([1, 2, 3]).reshape(3, 1, 1, 1), layout="FHWC"))',
    'ndd.full_like(T(video, layout="FHWC"), fill_value=T(video, layout="FHWC"))',
]
# Image operators on sequences of three frames.
IMAGES = [
    "ndd.brightness(f, brightness=v), ndd.brightness(f, brightness_shift=v)",
    "ndd.contrast(f, contrast=v), ndd.contrast(f, contrast=0.5, contrast_center=v)",
    "ndd.brightness_contrast(f, brightness=v, contrast=frames([2.0, 1.5, 1]))",
    "ndd.color_twist(f, brightness=v, contrast=v, hue=v, saturation=v), ndd.hue(f, hue=v)",
    "ndd.hsv(f, hue=v, saturation=v, value=v, dtype=ndd.float32), ndd.saturation(f, saturation=v)",
    "ndd.gaussian_blur(f, sigma=v), ndd.gaussian_blur(f, window_size=frames([3, 5, 1]))",
    "ndd.gaussian_blur(f, sigma=frames([[1.0, 0.5], [2.0, 1.0], [0.5, 3.0]]))",
    "ndd.laplacian(f, scale=v), ndd.laplacian(f, window_size=frames([3, 5, 7]))",
    "ndd.laplacian(f, smoothing_size=frames([[1, 3], [3, 5], [1, 1]]))",
    "ndd.filter(f, np.eye(3, dtype=np.float32), anchor=frames([[0, 0], [1, 2], [2, 0]]))",
    "ndd.filter(f, frames(np.arange(27, dtype=np.float32).reshape(3, 3, 3)))",
    "ndd.filter(f, np.ones((3, 3), np.float32), frames(np.float32([1, 2, 3])), border='constant')",
    "ndd.filter(image, frames(np.arange(18, dtype=np.float32).reshape(2, 3, 3)))",
    # Rotated frames share a canvas that fits all, with the parity that most of them need.
    "ndd.rotate(f, angle=frames([0.0, 45, 90]))",
    "ndd.rotate(f, angle=frames([10.0, 80, 30]), fill_value=7)",
    "ndd.rotate(T(film[:2], layout='FHWC'), angle=frames([20.0, 70]), fill_value=7)",
    "ndd.rotate(f, angle=frames([10.0, 80, 30]), keep_size=True)",
    "ndd.rotate(f, angle=frames([10.0, 80, 30]), size=[4, 3]), ndd.rotate(f, angle=frames([9.0]))",
    'ndd.rotate(T(film[..., None], layout="FDHWC"), angle=frames([30.0, 90, 180]),'
    " axis=frames(np.eye(3, dtype=np.float32)), keep_size=True)",
    "ndd.warp_affine(f, frames(maps)), ndd.warp_affine(f, matrix=frames(maps))",
    "ndd.warp_affine(f, maps[1], size=[3, 4]), ndd.warp_affine(f, frames(maps), fill_value=1)",
    "ndd.warp_affine(image, frames(maps[:2]))",
    "ndd.warp_affine(f, frames(maps[:2]))",
    # Not as many as there are frames.
    "ndd.brightness(f, brightness=frames([1.0, 2.0])), ndd.rotate(f, angle=frames([1.0, 2.0]))",
]


@pytest.mark.parametrize("source", IMAGES)
def test_images_as_dali(source):
    film = (
        'f, image = T(film, layout="FHWC"), T(film[0], layout="HWC")\nv = frames([0.5, 2.0, 1.0])\n'
    )
    maps = np.float32([[[1, 0, 0], [0, 1, 0]], [[0.9, 0.2, 1], [-0.1, 1.1, 0]], [[1, 0, 2]] * 2])
    assert_same(SHORT + film + source, tol=1e-3, film=FILM, maps=maps)


@pytest.mark.parametrize("source", AGREE)
def test_as_dali(source):
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
