"""Colors: brightness and contrast, hue and saturation, color spaces, equalization."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

NOISE = np.random.default_rng(3).integers(0, 256, (37, 53, 3), dtype=np.uint8)
EXTREMES = np.array(np.meshgrid(*[[0, 1, 127, 128, 254, 255]] * 3), np.uint8).T.reshape(6, 36, 3)


def photograph() -> np.ndarray:
    """Smooth colors with some grain, like a photograph."""
    y, x = np.mgrid[0:61, 0:83] / 20
    planes = [np.sin(x * a + y * b) * 90 + 120 for a, b in ((1, 0.5), (0.7, 1.3), (0.2, 2))]
    grain = np.random.default_rng(4).normal(0, 4, (61, 83, 3))
    return np.clip(np.stack(planes, -1) + grain, 0, 255).astype(np.uint8)


PICTURES = {"noise": NOISE, "extremes": EXTREMES, "photograph": photograph()}
BATCH = 'x = ndd.batch([noise, extremes, photograph], layout="HWC")\n'

# In f32 DALI sums in another order; after rounding, results may differ by one.
ONE = 1.0

SCALED = [
    "ndd.brightness(x, brightness=1.37)",
    "ndd.brightness(x, brightness=0.25, brightness_shift=0.5)",
    "ndd.brightness(x, brightness=-1.0, brightness_shift=1.0)",
    "ndd.brightness(x, brightness=1e30), ndd.brightness(x, brightness=float('nan'))",
    "ndd.brightness(x, brightness=float('inf'))",
    "ndd.contrast(x, contrast=1.83)",
    "ndd.contrast(x, contrast=0.3, contrast_center=77.5)",
    "ndd.contrast(x, contrast=0.0), ndd.contrast(x, contrast=-1.0, contrast_center=0)",
    "ndd.brightness_contrast(x, brightness=0.7, contrast=1.4)",
    "ndd.brightness_contrast(x, brightness=2.0, contrast=0.5, brightness_shift=-0.1)",
    "ndd.brightness_contrast(x, contrast=3.0, contrast_center=100.0, brightness_shift=0.3)",
]
TWISTED = [
    "ndd.saturation(x, saturation=0.0), ndd.saturation(x, saturation=0.4)",
    "ndd.saturation(x, saturation=2.5), ndd.saturation(x, saturation=-1.0)",
    "ndd.hue(x, hue=30.0), ndd.hue(x, hue=-77.0), ndd.hue(x, hue=180), ndd.hue(x, hue=725.5)",
    "ndd.hsv(x, hue=45, saturation=1.5, value=0.8)",
    "ndd.hsv(x, hue=-120, saturation=0.2, value=1.7)",
    "ndd.color_twist(x)",
    "ndd.color_twist(x, brightness=1.3, contrast=0.6)",
    "ndd.color_twist(x, brightness=0.8, contrast=1.3, hue=25, saturation=1.2)",
    "ndd.color_twist(x, brightness=1.2, contrast=0.9, hue=-200, saturation=0.5)",
    "ndd.color_twist(x, hue=float('nan')), ndd.color_twist(x, saturation=1e30)",
]


@pytest.mark.parametrize("source", SCALED + TWISTED)
def test_bytes(source):
    assert_same(BATCH + source, tol=ONE, **PICTURES)


FINITE = [s for s in SCALED + TWISTED if "nan" not in s and "e30" not in s and "inf" not in s]


@pytest.mark.parametrize("source", FINITE)
@pytest.mark.parametrize("dtype", ["i2", "f4"])
def test_other_numbers(dtype, source):
    x = (photograph().astype(np.float64) * (60 if dtype == "i2" else 1 / 255)).astype(dtype)
    assert_same(source, tol=ONE if dtype == "i2" else 2e-5, x=x[:20, :20])


@pytest.mark.parametrize("source", SCALED)
def test_32_bit_integers(source):
    # Both compute in f32: the tolerance is that of numbers up to 2^31.
    x = np.random.default_rng(5).integers(-(2**20), 2**20, (4, 5, 3)).astype("i4")
    assert_same(source, tol=256.0, x=x)


@pytest.mark.parametrize("output", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4"])
def test_scales_from_type_to_type(dtype, output):
    source = f"""
        o = ndd.{output}
        (ndd.brightness(x, brightness=1.5, dtype=o),
         ndd.brightness(x, brightness_shift=0.25, dtype=o),
         ndd.contrast(x, contrast=0.5, dtype=o),
         ndd.contrast(x, contrast=0.5, contrast_center=10, dtype=o))
    """
    tol = 256.0 if "i4" in (dtype, {"int32": "i4"}.get(output)) else 1e-3
    assert_same(source, tol=tol, x=np.arange(24).reshape(2, 4, 3).astype(dtype))


@pytest.mark.parametrize("output", ["uint8", "int16", "int32", "float16", "float32"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f2", "f4"])
def test_twists_from_type_to_type(dtype, output):
    source = f"""
        o = ndd.{output}
        (ndd.hsv(x, hue=30, saturation=0.5, dtype=o),
         ndd.color_twist(x, contrast=0.5, brightness=1.25, dtype=o))
    """
    tol = ONE if "int" in output else 0.1 if output == "float16" else 1e-4
    assert_same(source, tol=tol, x=np.arange(24).reshape(2, 4, 3).astype(dtype))


def test_hsv_gives_bytes_and_the_others_what_they_get():
    assert_same(
        "ndd.hsv(x).dtype, ndd.hue(x).dtype, ndd.saturation(x).dtype, ndd.color_twist(x).dtype",
        x=np.zeros((2, 2, 3), np.float32),
    )


def test_arguments_differ_from_sample_to_sample():
    samples = [NOISE[:n, : 2 * n] for n in (1, 5, 9)]
    source = """
        x = ndd.batch([a, b, c], layout="HWC")
        v = ndd.batch([0.5, 1.0, 2.0])
        (ndd.brightness(x, brightness=v), ndd.brightness(x, brightness_shift=v),
         ndd.contrast(x, contrast=v), ndd.contrast(x, contrast=0.5, contrast_center=v * 50),
         ndd.brightness_contrast(x, brightness=v, contrast=v), ndd.saturation(x, saturation=v),
         ndd.hue(x, hue=v * 40), ndd.hsv(x, hue=v * 90, value=v, saturation=v),
         ndd.color_twist(x, brightness=v, contrast=v, hue=v * 70, saturation=v),
         ndd.color_twist(x, brightness=ndd.tensor(0.5)))
    """
    assert_same(source, tol=ONE, **dict(zip("abc", samples, strict=True)))


SIMPLE = ["brightness", "contrast", "brightness_contrast", "saturation", "hue", "hsv"]
OPERATORS = [*SIMPLE, "color_twist"]


# One of each kernel: the others have the same layouts.
@pytest.mark.parametrize("name", ["brightness", "color_twist"])
@pytest.mark.parametrize(
    "layout", ["HWC", "FHWC", "DHWC", "FDHWC", "CHW", "FCHW", "HW", "WHC", "XYZ", None]
)
def test_layouts(layout, name):
    shape = (2, 3, 4, 5, 3)[-len(layout or "HWC") :]
    x = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    assert_same(f"ndd.{name}(ndd.tensor(x, layout=l)).evaluate()", x=x, l=layout)


@pytest.mark.parametrize("name", OPERATORS)
def test_shapes(name):
    source = f"""
        (ndd.{name}(np.zeros((0, 2, 3), "u1")), ndd.{name}(np.zeros((2, 0, 3), "f4")),
         ndd.{name}(np.zeros((2, 1, 2, 3), "u1")), ndd.{name}(np.full((1, 1, 3), 9, "u1")))
    """
    assert_same(source, tol=1e-5)


@pytest.mark.parametrize("name", ["brightness", "contrast", "brightness_contrast"])
@pytest.mark.parametrize("channels", [1, 2, 4, 7])
def test_brightness_has_any_number_of_channels(channels, name):
    x = NOISE.reshape(-1)[: 20 * channels].reshape(4, 5, channels)
    source = f"ndd.{name}(x), ndd.brightness_contrast(x, contrast=0.7, brightness=1.1)"
    assert_same(source, tol=ONE, x=x)


CONVERSIONS = [
    ("RGB", "BGR"), ("RGB", "GRAY"), ("RGB", "YCbCr"), ("BGR", "RGB"), ("BGR", "GRAY"),
    ("BGR", "YCbCr"), ("GRAY", "RGB"), ("GRAY", "BGR"), ("GRAY", "YCbCr"), ("YCbCr", "RGB"),
    ("YCbCr", "BGR"), ("YCbCr", "GRAY"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), CONVERSIONS)
def test_color_spaces(a, b):
    channels = 1 if a == "GRAY" else 3
    pictures = {name: x[..., :channels].copy() for name, x in PICTURES.items()}
    source = f"ndd.color_space_conversion(x, image_type=types.{a}, output_type=types.{b})"
    assert_same(BATCH + source, tol=ONE, **pictures)


def test_every_gray_is_converted_alike():
    x = np.arange(256, dtype=np.uint8).reshape(4, 64, 1)
    source = "[ndd.color_space_conversion(x, image_type=2, output_type=t) for t in (0, 1, 3)]"
    assert_same(source, x=x)


@pytest.mark.parametrize("layout", ["HWC", "FHWC", "DHWC", "FDHWC", "CHW", "HW", "FCHW"])
def test_color_spaces_of_layouts(layout):
    shape = (2, 3, 4, 5, 3)[-len(layout) :]
    x = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    source = """
        x = ndd.tensor(x, layout=l)
        y = ndd.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY)
        y.evaluate()
    """
    assert_same(source, tol=ONE, x=x, l=layout)


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHW", "FHWC", "FCHW", "XYZ", "DHWC", None])
def test_equalize(layout):
    shape = (2, 23, 31, 3) if len(layout or "HWC") == 4 else (23, 31, 3)[: len(layout or "HWC")]
    x = np.clip(np.random.default_rng(6).normal(110, 30, shape), 0, 255).astype(np.uint8)
    assert_same("ndd.equalize(ndd.tensor(x, layout=l)).evaluate()", x=x, l=layout)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.equalize(np.zeros((2, 2), 'u1')), ndd.equalize(np.full((2, 2, 3), 7, 'u1'))",
        "ndd.equalize(np.uint8([[0, 0, 10, 20, 255]]))",
        "ndd.equalize(np.zeros((2,), 'u1'))",
        "ndd.equalize(np.zeros((2, 2), 'f4'))",
        "ndd.equalize(np.zeros((2, 2), 'u2'))",
        "ndd.brightness(np.zeros((2, 2, 3), '?'))",
        "ndd.color_twist(np.zeros((2, 2, 3), '?'))",
        "ndd.brightness(np.zeros((2, 2), 'u1'))",
        "ndd.brightness(np.zeros((2, 2, 3), 'u1'), dtype=ndd.bool)",
        "ndd.hue(np.zeros((2, 2, 3), 'u1'), saturation=1)",
        "two = [1.0, 2.0]\nndd.brightness(np.zeros((2, 2, 3), 'u1'), brightness=two)",
        "ndd.color_space_conversion(np.zeros((1, 1, 3), 'u1'), image_type=types.RGB)",
        "ndd.color_space_conversion(np.zeros((1, 1, 1), 'u1'), image_type=0, output_type=2)",
        "ndd.color_space_conversion(np.zeros((1, 1, 4), 'u1'), image_type=0, output_type=1)",
        "ndd.color_space_conversion(np.zeros((1, 1, 3), 'f4'), image_type=0, output_type=1)",
        "ndd.color_space_conversion(np.zeros((1, 1, 3), 'u1'), image_type=0, output_type=4)",
        "ndd.color_space_conversion(np.zeros((1, 1, 3), 'u1'), image_type=4, output_type=0)",
        *(
            f"ndd.color_twist(np.uint8([[[10, 120, 230]]]), hue=30, image_type=types.{t})"
            for t in ("RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA")
        ),
    ],
)
def test_calls_agree(source):
    assert_same(source)


@pytest.mark.parametrize("source", ["ndd.color_twist(np.zeros((1, 1, 3), 'u1'), image_type='BGR')"])
def test_both_refuse(source):
    assert_refused(source)


@pytest.mark.parametrize("quality", [-3, 0, 1, 5, 50, 75, 90, 95, 96, 100, 1000])
def test_jpeg_compression_distortion(quality):
    source = "ndd.jpeg_compression_distortion(x, quality=q)"
    assert_same(BATCH + source, q=quality, **PICTURES)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.jpeg_compression_distortion(x)",
        "[ndd.jpeg_compression_distortion(x[:h, :w].copy()) for h, w in ((1, 1), (3, 17))]",
        "ndd.jpeg_compression_distortion(ndd.tensor([x, x[::-1]], layout='FHWC'), quality=20)",
        "x = ndd.batch([x, x[:9]])\nndd.jpeg_compression_distortion(x, quality=ndd.batch([5, 95]))",
        # rejected
        "ndd.jpeg_compression_distortion(x[..., :1].copy())",
        "ndd.jpeg_compression_distortion(x.astype('f4'))",
        "ndd.jpeg_compression_distortion(ndd.tensor(x, layout='CHW')).evaluate()",
        "ndd.jpeg_compression_distortion(ndd.tensor(x[None], layout='DHWC')).evaluate()",
        "ndd.jpeg_compression_distortion(x[:, 0].copy())",
    ],
)
def test_jpeg_calls(source):
    assert_same(source, x=NOISE)


GRAY = "gray has no hue; DALI takes three pixels for one"
JUNK = "DALI leaves some channels unwritten"
MORE = "DALI has no code for this type"
DIFFERS = [
    Differs(
        "ndd.hue(np.uint8([[[10], [20], [30]]]), hue=90)",
        "ndd.tensor(np.uint8([[[10], [20], [30]]]), layout='HWC')",
        GRAY,
        ask=False,
    ),
    Differs(
        "ndd.color_twist(np.uint8([[[10], [20], [30]]]), hue=90, brightness=2)",
        "ndd.tensor(np.uint8([[[20], [40], [60]]]), layout='HWC')",
        GRAY,
        ask=False,
    ),
    Differs("ndd.hsv(np.zeros((2, 2, 4), 'u1'))", "RuntimeError", JUNK, ask=False),
    Differs("ndd.color_twist(np.zeros((2, 2, 0), 'u1'))", "RuntimeError", "it crashes", ask=False),
    Differs(
        "ndd.color_space_conversion(np.uint8([[[1, 2, 3]]]), image_type=0, output_type=0)",
        "ndd.tensor(np.uint8([[[1, 2, 3]]]), layout='HWC')",
        "nothing to convert is nothing converted",
    ),
    Differs(
        "ndd.color_space_conversion(np.zeros((0, 2, 3), 'u1'), image_type=0, output_type=2)",
        "ndd.tensor(np.zeros((0, 2, 1), 'u1'), layout='HWC')",
        "no pixels have no colors to convert",
    ),
    Differs(
        "ndd.color_twist(np.zeros((1, 1, 3), 'u1'), image_type=17)",
        "RuntimeError",
        "there is no such color space",
    ),
    Differs(
        "ndd.brightness(np.array([[[1, 2, 3]]], 'u2'), brightness=2, brightness_shift=1)",
        "ndd.tensor(np.array([[[65535] * 3]], 'u2'), layout='HWC')",
        MORE,
    ),
    Differs(
        "ndd.contrast(np.array([[[1, 2, 3]]], 'f8'), contrast=3, contrast_center=1)",
        "ndd.tensor(np.array([[[1, 4, 7]]], 'f8'), layout='HWC')",
        MORE,
    ),
    Differs(
        "ndd.brightness(np.array([[[2**53 - 1]]], 'i8'))",
        "ndd.tensor(np.array([[[2**53 - 1]]], 'i8'), layout='HWC')",
        MORE,
    ),
    Differs(
        "ndd.brightness(np.array([[[2, 4]]], 'f2'), brightness=0.5)",
        "ndd.tensor(np.array([[[1, 2]]], 'f2'), layout='HWC')",
        MORE,
    ),
    Differs(
        "ndd.brightness(np.uint8([[[2, 4]]]), brightness=0.5, dtype=ndd.bfloat16).dtype",
        "ndd.bfloat16",
        "DALI drops this type silently",
    ),
    Differs(
        "ndd.jpeg_compression_distortion(np.zeros((0, 2, 3), 'u1'))",
        "ndd.tensor(np.zeros((0, 2, 3), 'u1'), layout='HWC')",
        "no pixels have no artefacts",
    ),
    Differs(
        "ndd.equalize(np.zeros((0, 2, 3), 'u1'))",
        "ndd.tensor(np.zeros((0, 2, 3), 'u1'), layout='HWC')",
        "nothing to equalize is nothing equalized",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
