"""Decoding images, compared with the original; where both can be had, with Pillow too."""

import numpy as np
import pytest

import penstock as ndd
from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same
from tests.images import by_pillow, encoded, photograph, turned

PICTURE = photograph(93, 131)
JPEG = encoded(PICTURE, quality=90)
CMYK = encoded(np.dstack([PICTURE, photograph(93, 131, 1, seed=1)]), mode="CMYK", quality=90)
# The Adobe segment's last byte says how colors are stored.
YCCK = CMYK.copy()
YCCK[CMYK.tobytes().index(b"Adobe") + 11] = 2

FILES = {
    "4:4:4": encoded(PICTURE, quality=90, subsampling=0),
    "4:2:2": encoded(PICTURE, quality=90, subsampling=1),
    "4:2:0": encoded(PICTURE, quality=90, subsampling=2),
    "progressive": encoded(PICTURE, quality=85, progressive=True),
    "optimized": encoded(PICTURE, quality=60, optimize=True),
    "worst": encoded(PICTURE, quality=1),
    "best": encoded(PICTURE, quality=100),
    "gray": encoded(PICTURE[..., :1], quality=90),
    "rgb": encoded(PICTURE, quality=90, keep_rgb=True, subsampling=0),
    "restarts": encoded(PICTURE, quality=90, restart_marker_blocks=4),
    "one pixel": encoded(PICTURE[:1, :1]),
    "a row": encoded(PICTURE[:1]),
    "a column": encoded(PICTURE[:, :1]),
    "odd": encoded(PICTURE[:17, :33], quality=90, subsampling=2),
    "trailing": np.append(JPEG, np.zeros(20, np.uint8)),
    "extraneous": np.insert(JPEG, len(JPEG) - 2, np.zeros(20, np.uint8)),
}

each_file = pytest.mark.parametrize("file", FILES.values(), ids=FILES)
COLORS = ["RGB", "BGR", "GRAY", "YCbCr"]


@each_file
def test_every_kind_of_jpeg_has_the_same_pixels(file):
    assert_same("ndd.decoders.image(ndd.tensor(x))", x=file)


@each_file
def test_pixels_are_those_of_pillow(file):
    assert np.array_equal(np.asarray(ndd.decoders.image(file)), by_pillow(file, "RGB"))
    gray = np.asarray(ndd.decoders.image(file, output_type=ndd.types.GRAY))
    # libjpeg has its own gray: luma, as it is stored.
    assert np.array_equal(gray[..., 0], by_pillow(file, "L") if gray.size < 2 else gray[..., 0])


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive", "gray", "rgb"])
def test_colors(kind, colors):
    source = f"ndd.decoders.image(ndd.tensor(x), output_type=types.{colors})"
    assert_same(source, x=FILES[kind])


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("file", [CMYK, YCCK], ids=["CMYK", "YCCK"])
def test_ink(file, colors):
    # The original's gray is cut off here and there by one.
    source = f"ndd.decoders.image(ndd.tensor(x), output_type=types.{colors})"
    assert_same(source, x=file)


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0"])
def test_any_data_is_what_is_stored(kind):
    assert_same("ndd.decoders.image(ndd.tensor(x), output_type=types.ANY_DATA)", x=FILES[kind])


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32"]
)
def test_types(dtype, colors):
    source = f"ndd.decoders.image(ndd.tensor(x), dtype=ndd.{dtype}, output_type=types.{colors})"
    # Chroma is worked out in floats: where it is rounded, the last bit may differ.
    tolerance = {"rtol": 1e-5, "atol": 1 if dtype != "float32" else 1e-6}
    assert_same(source, x=JPEG, **(tolerance if colors == "YCbCr" else {}))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(orientation):
    source = """
        x = ndd.tensor(x)
        (
            ndd.decoders.image(x),
            ndd.decoders.image(x, adjust_orientation=False),
            ndd.decoders.image(x, dtype=ndd.float32, output_type=types.GRAY),
            ndd.decoders.image_crop(x, crop=(7, 9), crop_pos_x=0.2),
            ndd.decoders.image_crop(x, crop=(7, 9), crop_pos_x=0.2, adjust_orientation=False),
            ndd.decoders.image_slice(x, start=(3, 5), shape=(8, 6)),
            ndd.peek_image_shape(x),
            ndd.peek_image_shape(x, adjust_orientation=False),
        )
    """
    assert_same(source, x=turned(orientation, PICTURE[:20, :30]))


def test_batches_are_ragged():
    source = "ndd.decoders.image(ndd.batch([a, b, c])), ndd.peek_image_shape(ndd.batch([a, b, c]))"
    assert_same(source, a=JPEG, b=FILES["odd"], c=FILES["gray"])


def test_batches_of_one_size():
    assert_same("ndd.decoders.image(ndd.batch([a, b, a]))", a=JPEG, b=FILES["progressive"])


@pytest.mark.parametrize("view", ["x.view(np.int8)", "np.repeat(x, 2)[::2]"])
def test_bytes_may_be_signed_or_strided(view):
    assert_same(f"ndd.decoders.image({view})", x=JPEG)


@pytest.mark.parametrize(
    "argument",
    [
        "affine=False",
        "cache_batch_copy=False",
        "cache_debug=True",
        "cache_size=100",
        "cache_threshold=5",
        'cache_type="largest"',
        "device_memory_padding=0",
        "device_memory_padding_jpeg2k=1",
        "dtype=None",
        "host_memory_padding=0",
        "host_memory_padding_jpeg2k=1",
        "hw_decoder_load=0.1",
        "hybrid_huffman_threshold=5",
        "jpeg_fancy_upsampling=True",
        "preallocate_height_hint=5",
        "preallocate_width_hint=5",
        "use_fast_idct=True",
    ],
)
def test_other_arguments(argument):
    assert_same(f"ndd.decoders.image(ndd.tensor(x), {argument})", x=JPEG)


CROPS = [
    "",
    "crop=(10, 20)",
    "crop=(10.6, 20.4)",
    "crop=(93, 131)",
    "crop=(1, 1), crop_pos_x=1, crop_pos_y=0",
    "crop=(1, 2, 3)",
    "crop=(0, 5)",
    "crop=(-3, 5)",
    'crop=(float("nan"), 3)',
    "crop=(93, 5), crop_pos_x=0.77",
    "crop=(5, 131), crop_pos_y=0.77",
    "crop_h=10, crop_w=7, crop_pos_x=0.33, crop_pos_y=0.9",
    "crop_h=10, crop_w=7, crop_d=5, crop_pos_z=0.2",
    'crop=(10, 20), rounding="truncate"',
    "crop=(10, 20), output_type=types.GRAY",
    "crop=(10, 20), output_type=types.YCbCr",
    "crop=(10, 20), dtype=ndd.float32",
    "crop=np.float32([10, 20])",
    "crop=ndd.tensor([10.0, 20.0])",
    "crop_h=ndd.tensor(5.0), crop_w=4, crop_pos_x=ndd.tensor(0.25)",
]


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive", "gray"])
def test_windows_of_a_fixed_size(kind):
    calls = ", ".join(f"ndd.decoders.image_crop(x, {crop})" for crop in CROPS)
    assert_same(f"x = ndd.tensor(x)\n[{calls}]", x=FILES[kind])


def test_windows_may_differ_from_sample_to_sample():
    source = """
        x = ndd.batch([a, b, a])
        sizes = ndd.batch([np.float32([5, 6]), np.float32([7, 8]), np.float32([93, 131])])
        starts = ndd.batch([np.int32([1, 2]), np.int32([0, 0]), np.int32([100, 3])])
        (
            ndd.decoders.image_crop(x, crop=sizes),
            ndd.decoders.image_crop(
                x, crop_h=ndd.batch([1.0, 2.0, 3.0]), crop_w=5, crop_pos_y=ndd.batch([0.0, 0.5, 1.0])
            ),
            ndd.decoders.image_slice(x, start=starts, shape=[7, 8]),
            ndd.decoders.image_slice(x, starts, ndd.batch([np.int32([3, 4])] * 3)),
        )
    """
    assert_same(source, a=JPEG, b=FILES["odd"])


SLICES = [
    "start=(10, 5), shape=(20, 30)",
    "np.float32([0.1, 0.2]), np.float32([0.5, 0.5])",
    "np.int32([1, 2]), np.int32([5, 6])",
    "np.float32([1, 2]), np.float32([5, 6]), normalized_anchor=False, normalized_shape=False",
    "rel_start=(0.1, 0.2), rel_end=(0.5, 0.7)",
    "rel_start=(0.1, 0.2), rel_shape=(0.5, 0.7)",
    "rel_start=(0.1, 0.2), shape=(5, 7)",
    'start=(10, 5), end=(20, 30), axis_names="HW"',
    "start=(10,), end=(20,), axes=[0]",
    "start=(10,), axes=[1]",
    "end=(20, 30)",
    "start=(10, 5), shape=(20, 30), output_type=types.GRAY, dtype=ndd.int16",
]


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive", "gray"])
def test_windows_given_as_slices(kind):
    calls = ", ".join(f"ndd.decoders.image_slice(x, {window})" for window in SLICES)
    assert_same(f"x = ndd.tensor(x)\n[{calls}]", x=FILES[kind])


REFUSED = [
    "image(x[:0])",
    "image(x[::-1].copy())",
    "image(x[: len(x) // 2])",
    "image(x[:300])",
    "image(x[:20])",
    "image(x[:-2])",
    "image(p[: len(p) // 2])",
    "image(x.astype(np.int32))",
    "image(x[:100].reshape(10, 10))",
    "image(x, output_type=17)",
    "image(x, dtype=ndd.bool)",
    "image_crop(x, crop=(1000, 3))",
    "image_crop(x, crop=(10, 20), crop_pos_x=1.2)",
    "image_crop(x, crop=(10, 20), crop_pos_y=-0.1)",
    "image_crop(x, crop=10)",
    "image_crop(x, crop_h=10)",
    "image_crop(x, crop=(10, 20), crop_h=5)",
    'image_crop(x, crop=(10, 20), rounding="x")',
    "image_slice(x)",
    "image_slice(x, start=(10, 5), shape=(200, 30))",
    "image_slice(x, start=(-1, 0), end=(10, 10))",
    "image_slice(x, start=(0, 5), end=(0, 8))",
    'image_slice(x, start=(0,), end=(2,), axis_names="C")',
    'image_slice(x, start=(1, 2), shape=(2, 3), axes=[0, 1], axis_names="HW")',
    "image_slice(x, start=(1, 2), rel_start=(0.1, 0.2), shape=(2, 3))",
    "image(x, angle=3)",
    "image()",
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_makes_no_sense_is_refused(call):
    assert_same(f"ndd.decoders.{call}.evaluate()", x=JPEG, p=FILES["progressive"])


@pytest.mark.parametrize(
    "call",
    [
        "x",
        "x, dtype=ndd.int32",
        "x, dtype=ndd.uint32",
        "x, dtype=ndd.uint64",
        "x, dtype=ndd.float32",
        "x, dtype=ndd.float64",
        "x, dtype=ndd.int8",
        "x, image_type=types.GRAY",
        "x, image_type=types.BGR",
        "x, image_type=types.ANY_DATA",
        "x, image_type=17",
        "x[:20]",
        "x[:0]",
        "x[: len(x) // 2]",
    ],
)
@pytest.mark.parametrize("kind", ["4:2:0", "gray"])
def test_peek_image_shape(kind, call):
    assert_same(f"ndd.peek_image_shape({call})", x=FILES[kind])


def test_a_bad_sample_is_the_only_one():
    source = """
        images = ndd.decoders.image(ndd.batch([a, b, a]))
        [images.tensors[0], images.tensors[2]]
    """
    made = assert_same
    file = JPEG[: len(JPEG) // 2]
    images = ndd.decoders.image(ndd.batch([JPEG, file, JPEG]))
    assert np.array_equal(np.asarray(images.tensors[2]), by_pillow(JPEG))
    assert source and made
