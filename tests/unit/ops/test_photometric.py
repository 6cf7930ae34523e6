"""Photometric operators, compared with torchvision."""

import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional as F

import penstock as ndd

RNG = np.random.default_rng(1)
TYPES = ["u1", "i1", "i2", "u2", "i4", "i8", "f4", "f8"]
LAYOUTS = ["HWC", "CHW", "FHWC", "FCHW", "HW", "FHW"]
EXTENTS = {"F": 2, "H": 13, "W": 37, "C": 3}


def picture(layout="HWC", dtype="u1", **extents):
    """Noise between two values that differ between channels."""
    shape = [{**EXTENTS, **extents}[letter] for letter in layout]
    low, high = 0.1 + 0.1 * RNG.random(), 0.8
    noise = low + (high - low) * RNG.random(shape)
    if "C" in layout:
        axis = layout.index("C")
        shifts = np.linspace(0, 0.15, shape[axis]).reshape(
            [-1 if k == axis else 1 for k in range(len(shape))]
        )
        noise = noise + shifts
    if np.dtype(dtype).kind == "f":
        return noise.astype(dtype)
    return (noise * np.iinfo(dtype).max).astype(dtype)


def by_torchvision(function, array, layout, **arguments):
    """The torchvision result for an image of any layout."""
    axis = layout.find("C")
    planes = np.moveaxis(array, axis, -3) if axis >= 0 else array[..., None, :, :]
    made = function(torch.from_numpy(np.ascontiguousarray(planes)), **arguments).numpy()
    return np.moveaxis(made, -3, axis) if axis >= 0 else made[..., 0, :, :]


def largest_difference(a, b):
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    kind = np.float64 if a.dtype.kind == "f" else object
    return abs(a.astype(kind) - b.astype(kind)).max(initial=0)


OPERATIONS = {
    "invert": (lambda x: ndd.invert(x), F.invert, {}),
    "posterize": (lambda x, bits: ndd.posterize(x, bits=bits), F.posterize, {"bits": 3}),
    "solarize": (
        lambda x, threshold: ndd.solarize(x, threshold=threshold),
        F.solarize,
        {"threshold": 0.4},
    ),
    "autocontrast": (lambda x: ndd.autocontrast(x), F.autocontrast, {}),
    "sharpness": (
        lambda x, sharpness_factor: ndd.sharpness(x, sharpness_factor=sharpness_factor),
        F.adjust_sharpness,
        {"sharpness_factor": 1.7},
    ),
}

each_operation = pytest.mark.parametrize("name", OPERATIONS)


def compare(name, array, layout, tolerance=0):
    ours, theirs, arguments = OPERATIONS[name]
    arguments = dict(arguments)
    if "threshold" in arguments and array.dtype.kind != "f":
        arguments["threshold"] *= float(np.iinfo(array.dtype).max)
    made = np.asarray(ours(ndd.tensor(array, layout=layout), **arguments))
    expected = by_torchvision(theirs, array, layout, **arguments)
    assert largest_difference(made, expected) <= tolerance


@each_operation
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_matches_torchvision(name, layout):
    # Values close to an integer may be truncated either way.
    compare(name, picture(layout), layout, 1 if name in ("autocontrast", "sharpness") else 0)


@each_operation
@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_matches_torchvision(name, dtype):
    array = picture("HWC", dtype)
    tolerance = 1e-6 if array.dtype.kind == "f" else 1
    if dtype in ("i4", "i8") and name in ("autocontrast", "sharpness"):
        pytest.skip("torchvision's results overflow; see the test below")
    compare(name, array, "HWC", tolerance)


@each_operation
@pytest.mark.parametrize("dtype", ["f2", "i4", "i8", "u4", "u8"])
def test_types_that_torchvision_lacks_match_wider_ones(name, dtype):
    ours, _, arguments = OPERATIONS[name]
    array = picture("HWC", dtype)
    if dtype == "f2":
        made = np.asarray(ours(ndd.tensor(array), **arguments)).astype("f4")
        expected = np.asarray(ours(ndd.tensor(array.astype("f4")), **arguments))
        assert largest_difference(made, expected) < 2e-3
        return
    top = float(np.iinfo(dtype).max)
    arguments = {key: item * top if key == "threshold" else item for key, item in arguments.items()}
    made = np.asarray(ours(ndd.tensor(array), **arguments)) / top
    shares = array / top
    arguments = {key: item / top if key == "threshold" else item for key, item in arguments.items()}
    expected = np.asarray(ours(ndd.tensor(shares), **arguments))
    np.testing.assert_allclose(made, expected, atol=1e-6)


@each_operation
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (2, 2), (3, 3), (3, 100), (64, 65)])
def test_small_and_odd_sizes(name, size):
    for channels in (1, 3):
        array = picture("HWC", H=size[0], W=size[1], C=channels)
        compare(name, array, "HWC", 1)


@each_operation
@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 4, 0)])
def test_empty_images(name, shape):
    ours, _, arguments = OPERATIONS[name]
    assert ours(ndd.tensor(np.zeros(shape, np.uint8)), **arguments).shape == shape


@each_operation
def test_samples_strides_and_channels_are_independent(name):
    ours, _, arguments = OPERATIONS[name]
    arrays = [picture(H=5 + k, W=40, C=5) for k in range(3)]
    batch = ours(ndd.batch(arrays, layout="HWC"), **arguments)
    strided = ours(ndd.as_batch([a[:, ::-1] for a in arrays], layout="HWC"), **arguments)
    for array, made, mirrored in zip(arrays, batch.tensors, strided.tensors, strict=True):
        alone = np.asarray(ours(ndd.tensor(array), **arguments))
        np.testing.assert_array_equal(np.asarray(made), alone)
        np.testing.assert_array_equal(np.asarray(mirrored), alone[:, ::-1])
        for channel in range(5):
            plane = np.asarray(ours(ndd.tensor(array[..., channel]), **arguments))
            np.testing.assert_array_equal(alone[..., channel], plane)


def test_arguments_may_differ_per_sample_and_per_frame():
    arrays = [picture(H=6, W=9) for _ in range(3)]
    images = ndd.batch(arrays, layout="HWC")
    bits = ndd.batch([1, 8, 0])
    for made, array, count in zip(
        ndd.posterize(images, bits=bits).tensors, arrays, (1, 8, 0), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(made), array & (0xFF00 >> count & 0xFF))
    sequence = ndd.tensor(np.stack(arrays), layout="FHWC")
    factors = ndd.per_frame(ndd.tensor(np.float32([0, 1, 3])))
    made = np.asarray(ndd.sharpness(sequence, sharpness_factor=factors))
    for frame, array, factor in zip(made, arrays, (0, 1, 3), strict=True):
        alone = ndd.sharpness(ndd.tensor(array), sharpness_factor=factor)
        np.testing.assert_array_equal(frame, np.asarray(alone))


def test_default_threshold_is_half_of_the_range():
    for dtype, middle in [("u1", 128), ("i1", 64), ("u2", 32768)]:
        array = np.array([[middle - 1, middle]], dtype)
        found = np.asarray(ndd.solarize(array))
        np.testing.assert_array_equal(found, [[middle - 1, np.iinfo(dtype).max - middle]])
    np.testing.assert_array_equal(
        np.asarray(ndd.solarize(np.float32([0.49, 0.5]))), np.float32([0.49, 0.5])
    )


def test_constant_images_are_unchanged():
    array = np.full((4, 5, 3), 77, np.uint8)
    np.testing.assert_array_equal(np.asarray(ndd.autocontrast(array)), array)
    compare("autocontrast", np.full((4, 5, 3), 0.25, np.float32), "HWC")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, n: ndd.posterize(x, bits=n(9)), "`bits` must be between 0 and 8, got 9"),
        (lambda x, n: ndd.posterize(x, bits=n(-1)), "`bits` must be between 0 and 8, got -1"),
        (lambda x, n: ndd.sharpness(x, sharpness_factor=n(-0.5)), "`sharpness_factor` must"),
        (lambda x, n: ndd.sharpness(x, sharpness_factor=n(np.inf)), "must be finite, got inf"),
        (lambda x, n: ndd.solarize(x, threshold=n(np.nan)), "`threshold` must be finite, got nan"),
    ],
)
@pytest.mark.parametrize("given", [lambda n: n, lambda n: ndd.batch([n])], ids=["call", "sample"])
def test_invalid_arguments_are_rejected(call, text, given):
    images = ndd.batch([picture()], layout="HWC")
    with pytest.raises((ValueError, RuntimeError), match=text.replace("(", "\\(")):
        call(images, given).evaluate()
