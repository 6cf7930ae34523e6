"""Automatic augmentation: each operation compared with torchvision, and the random choices."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from tests.images import photograph
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

import penstock as ndd
from penstock.auto_aug import Operation

SIGNED = [
    *(Operation.SHEAR_X, Operation.SHEAR_Y, Operation.TRANSLATE_X, Operation.TRANSLATE_Y),
    *(Operation.ROTATE, Operation.BRIGHTNESS, Operation.COLOR, Operation.CONTRAST),
    Operation.SHARPNESS,
]
NAMES = {operation: operation.name.title().replace("_", "") for operation in Operation}
NEAREST, LINEAR = ndd.types.INTERP_NN, ndd.types.INTERP_LINEAR
MAGNITUDES = {
    Operation.SHEAR_X: [0.09, -0.3, 0.99],
    Operation.SHEAR_Y: [0.09, -0.3, 0.99],
    Operation.TRANSLATE_X: [7.9, -20, 0.5, 1000],
    Operation.TRANSLATE_Y: [7.9, -20, 0.5, 1000],
    Operation.ROTATE: [9, -30, 135, 0],
    Operation.BRIGHTNESS: [0.27, -0.9, 0.99],
    Operation.COLOR: [0.27, -0.9, 0.99],
    Operation.CONTRAST: [0.27, -0.9, 0.99],
    Operation.SHARPNESS: [0.27, -0.9, 0.99],
    Operation.POSTERIZE: [0, 2, 4, 7, 8],
    Operation.SOLARIZE: [0, 0.3, 0.7, 1.0],
}
GEOMETRIC = {Operation.SHEAR_X, Operation.SHEAR_Y, Operation.ROTATE}


def by_torchvision(image, operation, magnitude, interpolation, fill=None):
    """The result of torchvision's automatic augmentation for an operation."""
    method = v2.RandAugment()._apply_image_or_video_transform
    planes = torch.from_numpy(np.moveaxis(image, -1, -3).copy())
    if operation is Operation.SOLARIZE:
        made = F.solarize(planes, 255 * magnitude)
    else:
        name = {"nearest": "nearest", "linear": "bilinear"}[interpolation]
        interpolation = v2.InterpolationMode(name)
        made = method(
            planes, NAMES[operation], float(magnitude), interpolation, {torch.Tensor: fill}
        )
    return np.moveaxis(made.numpy(), -3, -1)


def beside_ties(operation, magnitude, height, width):
    """Mask of pixels that are not ties, which rounding in single precision would decide."""
    y, x = np.mgrid[:height, :width] + 0.5
    if operation is Operation.SHEAR_X:
        x = x + magnitude * y
    elif operation is Operation.SHEAR_Y:
        y = y + magnitude * x
    elif operation is Operation.ROTATE:
        angle = math.radians(magnitude)
        dx, dy = x - width / 2, y - height / 2
        x = width / 2 + math.cos(angle) * dx - math.sin(angle) * dy
        y = height / 2 + math.sin(angle) * dx + math.cos(angle) * dy
    return (abs(x - np.rint(x)) > 1e-3) & (abs(y - np.rint(y)) > 1e-3)


def by_ours(image, operation, magnitude=0.0, interpolation="nearest", **more):
    made = ndd.auto_aug.apply(
        ndd.tensor(image, layout="HWC"),
        operations=[operation],
        magnitudes=[magnitude],
        interp_type=interpolation_type(interpolation),
        **more,
    )
    return np.asarray(made)


def interpolation_type(name):
    return {"nearest": NEAREST, "linear": LINEAR}[name]


CASES = [
    (operation, magnitude)
    for operation in Operation
    for magnitude in MAGNITUDES.get(operation, [0.0])
]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("interpolation", ["nearest", "linear"])
@pytest.mark.parametrize(("operation", "magnitude"), CASES, ids=str)
def test_every_operation_is_within_one_of_torchvision(
    operation, magnitude, interpolation, channels
):
    image = photograph(67, 90)[..., :channels]
    made = by_ours(image, operation, magnitude, interpolation).astype(int)
    expected = by_torchvision(image, operation, magnitude, interpolation).astype(int)
    sure = np.ones(image.shape[:2], bool)
    if interpolation == "nearest" and operation in GEOMETRIC:
        sure = beside_ties(operation, magnitude, *image.shape[:2])
        assert sure.mean() > 0.95 or magnitude == 0
    assert abs(made - expected)[sure].max() <= 1
    # Values close to an integer may be truncated either way, and ties rounded; both are rare.
    assert (made != expected)[sure].mean() < 0.05


@pytest.mark.parametrize("operation", [*GEOMETRIC, Operation.TRANSLATE_X, Operation.TRANSLATE_Y])
def test_pixels_outside_get_the_fill_value(operation):
    image = photograph(40, 50)
    magnitude = 20 if operation not in (Operation.SHEAR_X, Operation.SHEAR_Y) else 0.4
    made = by_ours(image, operation, magnitude, fill_value=[10, 20, 30]).astype(int)
    expected = by_torchvision(image, operation, magnitude, "nearest", [10.0, 20.0, 30.0])
    sure = beside_ties(operation, magnitude, 40, 50)
    sure |= np.full(sure.shape, operation not in GEOMETRIC)
    np.testing.assert_array_equal(made[sure], expected[sure])


def images_of(count, height=24, width=30):
    return ndd.batch([photograph(height, width)] * count, layout="HWC")


def outcomes(image, level, space, size=(24, 30)):
    """The result of each operation at a level, keyed by its bytes."""
    height, width = size
    strengths = {
        Operation.SHEAR_X: space["shear"] * level,
        Operation.SHEAR_Y: space["shear"] * level,
        Operation.TRANSLATE_X: space["move"](width) * level,
        Operation.TRANSLATE_Y: space["move"](height) * level,
        Operation.ROTATE: space["angle"] * level,
        **dict.fromkeys(
            (Operation.BRIGHTNESS, Operation.COLOR, Operation.CONTRAST, Operation.SHARPNESS),
            space["factor"] * level,
        ),
        Operation.POSTERIZE: round(space["bits"][0] - space["bits"][1] * level),
        Operation.SOLARIZE: 1 - level,
    }
    made = {}
    for operation in Operation:
        strength = strengths.get(operation, 0.0)
        for sign in (1, -1) if operation in SIGNED else (1,):
            result = by_ours(image, operation, sign * strength)
            made.setdefault(result.tobytes(), []).append((operation, sign))
    return made


STANDARD = {
    "shear": 0.3,
    "move": lambda side: 150 / 331 * side,
    "angle": 30,
    "factor": 0.9,
    "bits": (8, 4),
}
WIDE = {"shear": 0.99, "move": lambda side: 32, "angle": 135, "factor": 0.99, "bits": (8, 6)}


def test_rand_augment_draws_each_operation_with_both_signs_equally_often():
    count = 4000
    image = photograph(24, 30)
    known = outcomes(image, 9 / 30, STANDARD)
    made = ndd.auto_aug.rand_augment(images_of(count), num_ops=1, rng=ndd.random.RNG(seed=1))
    found = Counter()
    for sample in made.tensors:
        found[known[np.asarray(sample).tobytes()][0]] += 1
    operations = Counter()
    for (operation, _), times in found.items():
        operations[operation] += times
    assert set(operations) == set(Operation) - {Operation.INVERT}
    expected = count / 14
    for operation, times in operations.items():
        # Five standard deviations.
        assert abs(times - expected) < 5 * math.sqrt(expected), operation
    for operation in SIGNED:
        assert abs(found[operation, 1] - found[operation, -1]) < 5 * math.sqrt(expected), operation


def test_rand_augment_chains_operations():
    image = photograph(24, 30)
    once = outcomes(image, 9 / 30, STANDARD)
    twice = set()
    for first in once:
        after = np.frombuffer(first, np.uint8).reshape(image.shape)
        twice.update(outcomes(after, 9 / 30, STANDARD))
    made = ndd.auto_aug.rand_augment(images_of(300), rng=ndd.random.RNG(seed=2))
    assert all(np.asarray(sample).tobytes() in twice for sample in made.tensors)


def test_trivial_augment_wide_draws_magnitudes_too():
    image = photograph(24, 30)
    known = {}
    for level in range(5):
        known.update(outcomes(image, level / 4, WIDE))
    made = ndd.auto_aug.trivial_augment_wide(
        images_of(600), num_magnitude_bins=5, rng=ndd.random.RNG(seed=3)
    )
    results = [np.asarray(sample).tobytes() for sample in made.tensors]
    assert all(result in known for result in results)
    strongest = outcomes(image, 1.0, WIDE)
    found = {each for result in results if result in strongest for each in strongest[result]}
    assert {(Operation.ROTATE, 1), (Operation.ROTATE, -1), (Operation.SHEAR_Y, 1)} <= found


def policy_outcomes(policy, image):
    """All possible results of torchvision's policy, computed with our operations."""
    by_name = {name: operation for operation, name in NAMES.items()}
    steps = {}

    def step(before, name, level):
        key = (before, name, level)
        if key not in steps:
            image_before = np.frombuffer(before, np.uint8).reshape(image.shape)
            strengths = outcomes_of(by_name[name], (level or 0) / 9, image.shape)
            steps[key] = {
                by_ours(image_before, by_name[name], strength).tobytes() for strength in strengths
            }
        return steps[key]

    start = image.tobytes()
    found = set()
    for first, second in v2.AutoAugment(policy)._policies:
        middle = {start} if first[1] < 1 else set()
        middle |= step(start, first[0], first[2]) if first[1] > 0 else set()
        for each in middle:
            if second[1] < 1:
                found.add(each)
            if second[1] > 0:
                found |= step(each, second[0], second[2])
    return found


def outcomes_of(operation, level, shape):
    strengths = {
        "SHEAR_X": 0.3 * level,
        "SHEAR_Y": 0.3 * level,
        "TRANSLATE_X": 150 / 331 * shape[1] * level,
        "TRANSLATE_Y": 150 / 331 * shape[0] * level,
        "ROTATE": 30 * level,
        "POSTERIZE": round(8 - 4 * level),
        "SOLARIZE": 1 - level,
    }
    strength = strengths.get(operation.name, 0.9 * level)
    if operation in (Operation.AUTO_CONTRAST, Operation.EQUALIZE, Operation.INVERT):
        return [0.0]
    return [strength, -strength] if operation in SIGNED else [strength]


@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
def test_auto_augment_follows_the_policy(policy):
    image = photograph(24, 30)
    known = policy_outcomes(v2.AutoAugmentPolicy(policy), image)
    made = ndd.auto_aug.auto_augment(images_of(500), policy=policy, rng=ndd.random.RNG(seed=4))
    results = {np.asarray(sample).tobytes() for sample in made.tensors}
    assert results <= known
    assert len(results) > 0.5 * min(len(known), 60)


def test_augmix_mixes_an_image_with_a_chain():
    image = photograph(24, 30).astype(float)
    space = {**STANDARD, "move": lambda side: side / 3, "bits": (4, 4)}
    candidates = {}
    for level in range(3):
        for result, many in outcomes(photograph(24, 30), level / 9, space).items():
            candidates.setdefault(result, many)
    made = ndd.auto_aug.augmix(
        images_of(60),
        mixture_width=1,
        chain_depth=1,
        interp_type=NEAREST,
        rng=ndd.random.RNG(seed=5),
    )
    for sample in made.tensors:
        mixed = np.asarray(sample).astype(float) + 0.5
        errors = []
        for result in candidates:
            other = np.frombuffer(result, np.uint8).reshape(image.shape).astype(float)
            along = other - image
            norm = (along**2).sum()
            weight = ((mixed - image) * along).sum() / norm if norm else 0.0
            # The weight is ill-conditioned if the operation hardly changes the image.
            weight = np.clip(weight, 0, 1)
            errors.append(abs(mixed - image - weight * along).max())
        assert min(errors) <= 1.0


def test_augmix_weights_sum_to_one():
    # At the lowest level, no operation changes a uniform mid-gray image.
    image = np.full((8, 8, 3), 128, np.uint8)
    made = ndd.auto_aug.augmix(ndd.batch([image] * 50, layout="HWC"), severity=1, mixture_width=5)
    for sample in made.tensors:
        assert abs(np.asarray(sample).astype(int) - 128).max() <= 1


RANDOM = {
    "auto_augment": lambda x, **more: ndd.auto_aug.auto_augment(x, **more),
    "rand_augment": lambda x, **more: ndd.auto_aug.rand_augment(x, **more),
    "trivial_augment_wide": lambda x, **more: ndd.auto_aug.trivial_augment_wide(x, **more),
    "augmix": lambda x, **more: ndd.auto_aug.augmix(x, **more),
}
each_random = pytest.mark.parametrize("name", RANDOM)


@each_random
def test_results_depend_only_on_the_rng(name):
    call = RANDOM[name]
    arrays = [photograph(20 + k, 31, seed=k) for k in range(9)]
    images = ndd.batch(arrays, layout="HWC")

    def run(mode, threads):
        with ndd.EvalContext(num_threads=threads), mode:
            made = call(images, rng=ndd.random.RNG(seed=7))
            return [np.asarray(sample) for sample in made.tensors]

    expected = run(ndd.EvalMode.sync_cpu, 1)
    for mode, threads in itertools.product(ndd.EvalMode, (1, 4)):
        for a, b in zip(expected, run(mode, threads), strict=True):
            np.testing.assert_array_equal(a, b)
    again = call(images, rng=ndd.random.RNG(seed=8))
    assert any((a != np.asarray(b)).any() for a, b in zip(expected, again.tensors, strict=True))


@each_random
def test_every_layout_gives_the_same_result(name):
    image = photograph(20, 31)

    for seed in range(12):

        def run(array, layout, seed=seed):
            rng = ndd.random.RNG(seed=seed)
            return np.asarray(RANDOM[name](ndd.tensor(array, layout=layout), rng=rng))

        expected = run(image, "HWC")
        planes = run(np.moveaxis(image, -1, 0), "CHW")
        np.testing.assert_array_equal(planes, np.moveaxis(expected, -1, 0))
        both = np.stack([image, image])
        np.testing.assert_array_equal(run(both, "FHWC")[1], expected)
        gray = run(image[..., 0], "HW")
        np.testing.assert_array_equal(run(image[..., :1], "HWC")[..., 0], gray)


@each_random
def test_empty_images(name):
    for shape in [(0, 4, 3), (4, 0, 3)]:
        images = ndd.batch([np.zeros(shape, np.uint8)] * 20, layout="HWC")
        assert RANDOM[name](images).shape == [shape] * 20


def test_arguments_may_differ_per_sample():
    image = photograph(24, 30)
    made = ndd.auto_aug.rand_augment(images_of(3), num_ops=ndd.batch([0, 0, 0]))
    for sample in made.tensors:
        np.testing.assert_array_equal(np.asarray(sample), image)
    chains = [[Operation.INVERT], [Operation.POSTERIZE], [Operation.IDENTITY]]
    made = ndd.auto_aug.apply(
        images_of(3), operations=ndd.batch(chains), magnitudes=ndd.batch([[0.0], [1.0], [9.0]])
    )
    expected = [255 - image, image & 0x80, image]
    for sample, array in zip(made.tensors, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), array)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: ndd.auto_aug.rand_augment(x, magnitude=31),
            "`magnitude` must be between 0 and 30",
        ),
        (
            lambda x: ndd.auto_aug.rand_augment(x, num_ops=10**9),
            "`num_ops` must be between 0 and 100",
        ),
        (
            lambda x: ndd.auto_aug.rand_augment(x, num_ops=ndd.batch([-1])),
            "`num_ops` must be between",
        ),
        (lambda x: ndd.auto_aug.augmix(x, alpha=0), "`alpha` must be"),
        (lambda x: ndd.auto_aug.augmix(x, alpha=np.inf), "`alpha` must be"),
        (
            lambda x: ndd.auto_aug.auto_augment(x, policy="mnist"),
            '`policy` must be "imagenet"',
        ),
        (lambda x: ndd.auto_aug.auto_augment(x, fill_value=[1, 2]), "3 channels, got 2"),
        (lambda x: ndd.auto_aug.apply(x, operations=[15]), "operations are numbered 0 to 14"),
        (lambda x: ndd.auto_aug.apply(x, operations=[1, 2], magnitudes=[1, 2, 3]), "2 operations"),
        (
            lambda x: ndd.auto_aug.apply(x, operations=[1], magnitudes=[np.nan]),
            "`magnitudes` must be finite",
        ),
        (
            lambda x: ndd.auto_aug.apply(x, operations=[10], magnitudes=[9]),
            "`magnitudes` must be between 0 and 8, got 9",
        ),
        (
            lambda x: ndd.auto_aug.apply(x, operations=[6], magnitudes=[-2]),
            "`magnitudes` must be at least -1, got -2",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        call(images_of(1)).evaluate()


def test_unsupported_images_are_rejected():
    with pytest.raises(ValueError, match="`input` must be of uint8"):
        ndd.auto_aug.rand_augment(np.zeros((4, 4, 3), np.float32))
    with pytest.raises(RuntimeError, match="must have 1 or 3 channels, got 4"):
        ndd.auto_aug.rand_augment(np.zeros((4, 4, 4), np.uint8)).evaluate()
