"""Shears, translations, erasing, blurs and warps, compared with torchvision and SciPy."""

import functools
import itertools
import math

import numpy as np
import pytest
import torch
from scipy import ndimage
from tests.images import photograph
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

import penstock as ndd

NEAREST, LINEAR = ndd.types.INTERP_NN, ndd.types.INTERP_LINEAR
MODES = {NEAREST: v2.InterpolationMode.NEAREST, LINEAR: v2.InterpolationMode.BILINEAR}
LAYOUTS = ["HWC", "CHW", "HW", "FHWC", "FCHW", "FHW"]


def shear_x(x, amount, **more):
    return ndd.shear_x(x, shear=amount, **more)


def shear_y(x, amount, **more):
    return ndd.shear_y(x, shear=amount, **more)


def translate_x(x, amount, **more):
    return ndd.translate_x(x, offset=amount, **more)


def translate_y(x, amount, **more):
    return ndd.translate_y(x, offset=amount, **more)


def affine(image, interpolation, *, translate=(0, 0), shear=(0.0, 0.0)):
    planes = torch.from_numpy(np.moveaxis(image, -1, 0).copy())
    shear = [math.degrees(math.atan(each)) for each in shear]
    made = F.affine(planes, 0.0, list(translate), 1.0, shear, MODES[interpolation], None, [0, 0])
    return np.moveaxis(made.numpy(), 0, -1)


CALLS = {
    "shear_x": (shear_x, [0.31, -0.77], lambda i, m, a: affine(i, m, shear=(a, 0.0))),
    "shear_y": (shear_y, [0.31, -0.77], lambda i, m, a: affine(i, m, shear=(0.0, a))),
    "translate_x": (translate_x, [5, -11], lambda i, m, a: affine(i, m, translate=(a, 0))),
    "translate_y": (translate_y, [5, -11], lambda i, m, a: affine(i, m, translate=(0, a))),
}
each_call = pytest.mark.parametrize("name", CALLS)


@each_call
@pytest.mark.parametrize("interpolation", [NEAREST, LINEAR])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_results_match_torchvision(name, interpolation, dtype):
    call, amounts, theirs = CALLS[name]
    image = photograph(40, 57).astype(dtype)
    for amount in amounts:
        made = np.asarray(call(ndd.tensor(image), amount, interp_type=interpolation))
        expected = theirs(image, interpolation, amount)
        assert made.dtype == expected.dtype
        difference = abs(made.astype("f8") - expected.astype("f8"))
        if interpolation == NEAREST:
            # Ties between two pixels are decided by rounding in single precision.
            assert (difference > 0).mean() < 0.01
        else:
            assert difference.max() <= (1 if dtype == "u1" else 1e-2)


@each_call
@pytest.mark.parametrize("interpolation", [NEAREST, LINEAR])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f8", "?"])
def test_every_type_matches_float32(name, interpolation, dtype):
    call, amounts, _ = CALLS[name]
    image = (photograph(20, 31) // 2).astype(dtype)
    made = np.asarray(call(ndd.tensor(image), amounts[0], interp_type=interpolation, fill_value=1))
    expected = np.asarray(
        call(ndd.tensor(image.astype("f4")), amounts[0], interp_type=interpolation, fill_value=1)
    )
    assert made.dtype == image.dtype
    assert abs(made.astype("f4") - expected).max() <= (0.501 if dtype != "f2" else 0.1)


@each_call
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("interpolation", [NEAREST, LINEAR])
def test_every_layout_gives_the_same_result(name, layout, interpolation):
    call, amounts, _ = CALLS[name]
    fill = [10, 20, 30]
    image = photograph(20, 31)
    array = image if "C" in layout else image[..., 0]
    array = np.moveaxis(array, -1, 0) if "CH" in layout else array
    array = np.stack([array, array]) if "F" in layout else array
    more = {"interp_type": interpolation}
    expected = np.asarray(
        call(ndd.tensor(image, layout="HWC"), amounts[1], fill_value=fill, **more)
    )
    fill = fill if "C" in layout else fill[:1]
    made = np.asarray(call(ndd.tensor(array, layout=layout), amounts[1], fill_value=fill, **more))
    made = made[1] if "F" in layout else made
    made = np.moveaxis(made, 0, -1) if "CH" in layout else made
    np.testing.assert_array_equal(made, expected if "C" in layout else expected[..., 0])


@each_call
def test_amounts_may_differ_per_sample_and_per_frame(name):
    call, _, _ = CALLS[name]
    arrays = [photograph(10 + k, 12, seed=k) for k in range(3)]
    amounts = [0.5, -2.0, 1.0]
    made = call(ndd.batch(arrays, layout="HWC"), ndd.batch(amounts))
    sequence = np.stack([photograph(9, 12, seed=k) for k in range(3)])
    frames = call(
        ndd.tensor(sequence, layout="FHWC"), ndd.per_frame(ndd.tensor(np.float32(amounts)))
    )
    for array, sample, frame, still, amount in zip(
        arrays, made.tensors, np.asarray(frames), sequence, amounts, strict=True
    ):
        np.testing.assert_array_equal(np.asarray(sample), np.asarray(call(array, amount)))
        np.testing.assert_array_equal(frame, np.asarray(call(still, amount)))


@each_call
def test_large_shifts_leave_only_the_fill_value(name):
    call, _, _ = CALLS[name]
    for amount, interpolation in itertools.product([1e6, -1e6, 1e300], [NEAREST, LINEAR]):
        made = np.asarray(
            call(photograph(7, 9), amount, interp_type=interpolation, fill_value=[1, 2, 3])
        )
        np.testing.assert_array_equal(made, np.broadcast_to(np.uint8([1, 2, 3]), (7, 9, 3)))


def test_random_erasing_respects_scale_ratio_and_probability():
    image = np.ones((50, 60, 3), np.float32)
    count = 400
    made = ndd.random_erasing(
        ndd.batch([image] * count, layout="HWC"),
        scale=[0.1, 0.2],
        ratio=[0.5, 2],
        fill_value=[5, 6, 7],
        rng=ndd.random.RNG(seed=1),
    )
    changed, middles = 0, []
    for sample in made.tensors:
        array = np.asarray(sample)
        erased = (array != 1).all(-1)
        if not erased.any():
            continue
        changed += 1
        rows, columns = np.flatnonzero(erased.any(1)), np.flatnonzero(erased.any(0))
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert erased.sum() == height * width
        np.testing.assert_array_equal(
            array[erased], np.broadcast_to([5, 6, 7], (height * width, 3))
        )
        assert 0.09 < erased.mean() < 0.22
        assert 0.45 < height / width < 2.2
        middles.append((rows.mean() / 50, columns.mean() / 60))
    assert abs(changed - count / 2) < 5 * math.sqrt(count / 4)
    assert np.mean(middles, 0) == pytest.approx([0.5, 0.5], abs=0.06)


def test_random_erasing_with_noise_is_normal():
    image = np.zeros((3, 64, 64), np.float32)
    made = np.asarray(
        ndd.random_erasing(ndd.tensor(image, layout="CHW"), p=1, scale=[0.3, 0.3], noise=True)
    )
    noise = made[made != 0]
    assert noise.size == pytest.approx(0.3 * image.size, rel=0.05)
    assert noise.mean() == pytest.approx(0, abs=0.1)
    assert noise.std() == pytest.approx(1, abs=0.1)


def test_random_erasing_of_all_layouts_and_types():
    for layout, dtype in itertools.product(LAYOUTS, ["u1", "i4", "f2", "f8"]):
        shape = [{"F": 3, "H": 20, "W": 30, "C": 3}[letter] for letter in layout]
        array = np.ones(shape, dtype)
        made = np.asarray(ndd.random_erasing(ndd.tensor(array, layout=layout), p=1))
        axes = tuple(k for k, letter in enumerate(layout) if letter not in "HW")
        assert (made == 0).any()
        # All channels and frames have the same pixels erased.
        np.testing.assert_array_equal((made == 0).any(axes), (made == 0).all(axes))


def test_random_erasing_leaves_the_image_if_no_rectangle_fits():
    image = photograph(10, 10)
    made = ndd.random_erasing(image, p=1, scale=[1, 1])
    np.testing.assert_array_equal(np.asarray(made), image)


def motion_weights(size, angle, direction):
    """Kernel of a line: one point per pixel of length, spread over its four nearest pixels."""
    weights = np.zeros((size + 1, size + 1))
    for along in np.linspace(-1, 1, size) if size > 1 else [0.0]:
        x = size // 2 * (1 + along * math.cos(math.radians(angle)))
        y = size // 2 * (1 - along * math.sin(math.radians(angle)))
        left, upper = math.floor(x), math.floor(y)
        for dy, dx in itertools.product((0, 1), repeat=2):
            share = (1 - abs(y - upper - dy)) * (1 - abs(x - left - dx))
            if share > 1e-12:
                weights[upper + dy, left + dx] += share * (1 + direction * along)
    return weights[:size, :size] / weights[:size, :size].sum()


@pytest.mark.parametrize("size", [1, 3, 7, 15])
@pytest.mark.parametrize(("angle", "direction"), [(0, 0), (90, 0.5), (33, -1), (-200, 1), (45, 0)])
def test_motion_blur_matches_scipy_correlation(size, angle, direction):
    image = photograph(30, 41).astype(np.float32)
    made = np.asarray(ndd.motion_blur(image, kernel_size=size, angle=angle, direction=direction))
    weights = motion_weights(size, angle, direction)
    for channel in range(3):
        expected = ndimage.correlate(image[..., channel].astype(float), weights, mode="mirror")
        np.testing.assert_allclose(made[..., channel], expected, atol=1e-3)


def test_motion_blur_of_all_layouts_and_types():
    image = photograph(20, 31)
    expected = np.asarray(ndd.motion_blur(image, angle=30)).astype(float)
    for layout, dtype in itertools.product(LAYOUTS, ["u1", "i2", "i4", "f2", "f8"]):
        array = image.astype(dtype) if "C" in layout else image[..., 0].astype(dtype)
        array = np.moveaxis(array, -1, 0) if "CH" in layout else array
        array = np.stack([array, array]) if "F" in layout else array
        made = np.asarray(ndd.motion_blur(ndd.tensor(array, layout=layout), angle=30))
        assert made.dtype == array.dtype
        made = made[1] if "F" in layout else made
        made = np.moveaxis(made, 0, -1) if "CH" in layout else made
        right = expected if "C" in layout else expected[..., 0]
        assert abs(made - right).max() <= 0.501


def test_motion_blur_arguments_may_differ_per_sample():
    arrays = [photograph(12 + k, 15, seed=k) for k in range(3)]
    sizes, angles = [3, 5, 1], [0.0, 45.0, 90.0]
    made = ndd.motion_blur(
        ndd.batch(arrays, layout="HWC"), kernel_size=ndd.batch(sizes), angle=ndd.batch(angles)
    )
    for array, sample, size, angle in zip(arrays, made.tensors, sizes, angles, strict=True):
        alone = ndd.motion_blur(array, kernel_size=size, angle=angle)
        np.testing.assert_array_equal(np.asarray(sample), np.asarray(alone))


def coordinates(height, width):
    """An image of its own pixel coordinates, which shows where a warp samples from."""
    y, x = np.mgrid[:height, :width]
    return np.stack([x, y], -1).astype(np.float64)


def test_elastic_transform_matches_torchvision():
    height, width = 61, 70
    places = coordinates(height, width)

    def run(image, **more):
        rng = ndd.random.RNG(seed=9)
        return np.asarray(ndd.elastic_transform(ndd.tensor(image, layout="HWC"), rng=rng, **more))

    # Near the edges the fill value hides the source coordinates; skip those pixels.
    displaced = run(places, alpha=60.0, sigma=4.0) - places
    inner = displaced[8:-8, 8:-8]
    assert abs(inner).max() > 0.5
    image = photograph(height, width)
    made = run(image, alpha=60.0, sigma=4.0).astype(int)
    grid = torch.from_numpy(displaced * 2 / [width, height])[None]
    planes = torch.from_numpy(np.moveaxis(image, -1, 0).copy())
    expected = np.moveaxis(F.elastic(planes, grid, fill=None).numpy(), 0, -1).astype(int)
    assert abs(made - expected)[8:-8, 8:-8].max() <= 1


@pytest.mark.parametrize(("alpha", "sigma"), [(50.0, 5.0), (30.0, 2.0), (8.0, 0.0)])
def test_displacement_statistics_match_torchvision(alpha, sigma):
    height, width = 120, 130
    places = coordinates(height, width)
    made = np.asarray(
        ndd.elastic_transform(ndd.tensor(places, layout="HWC"), alpha=alpha, sigma=sigma)
    )
    ours = (made - places)[10:-10, 10:-10]
    torch.manual_seed(1)
    theirs = v2.ElasticTransform(alpha, sigma).make_params([torch.zeros(1, height, width)])
    theirs = theirs["displacement"][0].numpy()[10:-10, 10:-10] * [width / 2, height / 2]
    for axis in (0, 1):
        assert ours[..., axis].std() == pytest.approx(theirs[..., axis].std(), rel=0.3)
        steps = [np.diff(field[..., axis], axis=1).std() for field in (ours, theirs)]
        assert steps[0] == pytest.approx(steps[1], rel=0.3)


def projected(made):
    """Fit a homography to a warped coordinate image: eight coefficients and the residual."""
    inside = (made > 0.2).all(-1)
    y, x = np.nonzero(inside)
    u, v = made[inside].T
    x, y, u, v = x + 0.5, y + 0.5, u + 0.5, v + 0.5
    zero, one = np.zeros_like(x), np.ones_like(x)
    rows = np.concatenate(
        [
            np.stack([x, y, one, zero, zero, zero, -u * x, -u * y], 1),
            np.stack([zero, zero, zero, x, y, one, -v * x, -v * y], 1),
        ]
    )
    found, *_ = np.linalg.lstsq(rows, np.concatenate([u, v]), rcond=None)
    return found, abs(rows @ found - np.concatenate([u, v])).max()


def test_random_perspective_matches_torchvision():
    height, width = 60, 80
    places = coordinates(height, width)
    image = photograph(height, width)
    planes = torch.from_numpy(np.moveaxis(image, -1, 0).copy())
    for seed in range(10):

        def run(array, **more):
            rng = ndd.random.RNG(seed=seed)  # noqa: B023
            array = ndd.tensor(array, layout="HWC")
            return np.asarray(ndd.random_perspective(array, p=1, rng=rng, **more))

        coefficients, error = projected(run(places, fill_value=-1e9))
        assert error < 1e-6
        made = run(image).astype(int)
        theirs = F.perspective(
            planes, None, None, fill=None, coefficients=[float(c) for c in coefficients]
        )
        expected = np.moveaxis(theirs.numpy(), 0, -1).astype(int)
        assert abs(made - expected).max() <= 1
        # Corners move inwards by whole pixels.
        forward = np.linalg.inv(np.array([*coefficients, 1]).reshape(3, 3))
        for corner in [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]:
            x, y, depth = forward @ [*corner, 1]
            x, y = x / depth, y / depth
            assert abs(x - round(x)) < 1e-3
            assert abs(y - round(y)) < 1e-3
            moved_x, moved_y = abs(x - corner[0]), abs(y - corner[1])
            assert moved_x <= 0.5 * (width // 2) + 1e-3
            assert moved_y <= 0.5 * (height // 2) + 1e-3


def test_random_perspective_respects_its_probability():
    image = photograph(20, 30)
    made = ndd.random_perspective(ndd.batch([image] * 400, layout="HWC"))
    changed = sum((np.asarray(sample) != image).any() for sample in made.tensors)
    assert abs(changed - 200) < 50


RANDOM = {
    "random_erasing": lambda x, **more: ndd.random_erasing(x, p=0.7, **more),
    "elastic_transform": lambda x, **more: ndd.elastic_transform(x, **more),
    "random_perspective": lambda x, **more: ndd.random_perspective(x, p=0.7, **more),
}


@pytest.mark.parametrize("name", RANDOM)
def test_results_depend_only_on_the_rng(name):
    images = ndd.batch([photograph(20 + k, 31, seed=k) for k in range(7)], layout="HWC")

    def run(mode, threads):
        with ndd.EvalContext(num_threads=threads), mode:
            made = RANDOM[name](images, rng=ndd.random.RNG(seed=7))
            return [np.asarray(sample) for sample in made.tensors]

    expected = run(ndd.EvalMode.sync_cpu, 1)
    for mode, threads in itertools.product(ndd.EvalMode, (1, 4)):
        for a, b in zip(expected, run(mode, threads), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", RANDOM)
def test_random_operators_give_the_same_result_in_every_layout(name):
    image = photograph(24, 31)

    def run(array, layout):
        made = RANDOM[name](ndd.tensor(array, layout=layout), rng=ndd.random.RNG(seed=3))
        return np.asarray(made)

    expected = run(image, "HWC")
    planes = np.moveaxis(image, -1, 0)
    np.testing.assert_array_equal(np.moveaxis(run(planes, "CHW"), 0, -1), expected)
    np.testing.assert_array_equal(run(np.stack([image] * 2), "FHWC")[1], expected)
    np.testing.assert_array_equal(run(image[..., 0], "HW"), expected[..., 0])


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 4, 0)])
def test_empty_images(shape):
    image = ndd.tensor(np.zeros(shape, np.uint8), layout="HWC")
    calls = [*RANDOM.values(), ndd.motion_blur]
    calls += [functools.partial(call, amount=1) for call, *_ in CALLS.values()]
    for call in calls:
        assert call(image).shape == shape


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: ndd.shear_x(x, shear=np.nan), "`shear` must be finite, got nan"),
        (lambda x: ndd.translate_y(x, offset=np.inf), "`offset` must be finite, got inf"),
        (lambda x: ndd.shear_y(x, shear=1, fill_value=[1, 2]), "each of 3 channels, got 2"),
        (lambda x: ndd.random_erasing(x, scale=[0.5, 0.2]), "`scale` needs two numbers between 0"),
        (lambda x: ndd.random_erasing(x, ratio=[0, 1]), "`ratio` needs two numbers"),
        (lambda x: ndd.random_erasing(x, p=ndd.batch([2.0])), "`p` must be between 0 and 1, got 2"),
        (lambda x: ndd.motion_blur(x, kernel_size=4), "must be odd, from 1 to 255, got 4"),
        (
            lambda x: ndd.motion_blur(x, direction=ndd.batch([3.0])),
            "`direction` must be between -1",
        ),
        (lambda x: ndd.motion_blur(x, angle=np.nan), "`angle` must be finite, got nan"),
        (lambda x: ndd.elastic_transform(x, sigma=-1), "`sigma` must be between 0 and 200, got -1"),
        (
            lambda x: ndd.elastic_transform(x, alpha=[1, 2, 3]),
            "`alpha` needs one number, or one for",
        ),
        (lambda x: ndd.elastic_transform(x, alpha=np.inf), "`alpha` must be finite, got inf"),
        (lambda x: ndd.random_perspective(x, distortion_scale=1.5), "`distortion_scale` must be"),
    ],
)
def test_invalid_arguments_are_rejected(call, text):
    images = ndd.batch([photograph(6, 7)], layout="HWC")
    with pytest.raises((ValueError, RuntimeError), match=text):
        call(images).evaluate()
