"""Decoding images, compared with DALI and, where possible, with Pillow."""

import numpy as np
import pytest

import penstock as ndd
from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same, oracle, ours
from tests.images import JPEGS, by_pillow, encoded, photograph, turned

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
    **{
        kind: np.fromfile(JPEGS / f"{kind}.jpg", np.uint8)
        for kind in ("440", "411", "441", "arithmetic", "arithmetic-progressive", "lossless")
    },
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


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "progressive", "gray", "rgb"])
def test_colors(kind, colors):
    source = f"ndd.decoders.image(ndd.tensor(x), output_type=types.{colors})"
    assert_same(source, x=FILES[kind])


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("file", [CMYK, YCCK], ids=["CMYK", "YCCK"])
def test_ink(file, colors):
    # DALI's weights for gray differ slightly; one pixel in a thousand is off by one.
    source = f"ndd.decoders.image(ndd.tensor(x), output_type=types.{colors})"
    assert_same(source, tol=1 if colors == "GRAY" else None, x=file)


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0"])
def test_any_data_is_what_is_stored(kind):
    assert_same("ndd.decoders.image(ndd.tensor(x), output_type=types.ANY_DATA)", x=FILES[kind])


# Chroma is computed in float32, whose last bit may differ.
CHROMA = {
    "uint8": None,
    "int8": 1,
    "uint16": 1,
    "int16": 1,
    "uint32": 1024,
    "int32": 512,
    "float32": 1e-6,
}


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("dtype", CHROMA)
def test_types(dtype, colors):
    source = f"ndd.decoders.image(ndd.tensor(x), dtype=ndd.{dtype}, output_type=types.{colors})"
    assert_same(source, tol=CHROMA[dtype] if colors == "YCbCr" else None, x=JPEG)


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


def test_bytes_may_be_signed():
    assert_same("ndd.decoders.image(x.view(np.int8))", x=JPEG)


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
            ndd.decoders.image_crop(x, crop_h=ndd.batch([1.0, 2.0, 3.0]), crop_w=5),
            ndd.decoders.image_crop(x, crop=[5, 5], crop_pos_y=ndd.batch([0.0, 0.5, 1.0])),
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
        "x[:20]",
        "x[:0]",
        "x[: len(x) // 2]",
    ],
)
@pytest.mark.parametrize("kind", ["4:2:0", "gray"])
def test_peek_image_shape(kind, call):
    assert_same(f"ndd.peek_image_shape({call})", x=FILES[kind])


WINDOWS = [
    "",
    "random_area=[0.5, 0.9], num_attempts=1",
    "random_area=0.3, random_aspect_ratio=2",
    "num_attempts=0",
]


@pytest.mark.parametrize("shape", [(60, 80), (100, 10), (2, 3)], ids=str)
@pytest.mark.parametrize("arguments", WINDOWS)
def test_random_windows_are_distributed_alike(arguments, shape):
    y, x = np.mgrid[: shape[0], : shape[1]]
    # Pixels that encode their positions.
    file = encoded(
        np.dstack([x, y, 0 * x]).astype(np.uint8), quality=100, subsampling=0, keep_rgb=True
    )
    source = f"""
        crops = ndd.decoders.image_random_crop(
            ndd.batch([x] * 600), rng=ndd.random.RNG(11), {arguments}
        )
        [(*crop.shape[:2], *np.array(crop)[0, 0, :2].tolist()) for crop in crops]
    """
    theirs, mine = (np.array(side.run(source, x=file)) for side in (oracle, ours))
    assert theirs.shape == mine.shape == (600, 4)
    for name, a, b in zip(("height", "width", "x", "y"), theirs.T, mine.T, strict=True):
        # Kolmogorov-Smirnov: the distance of two samples of 600 exceeds 0.13 once in 10 000.
        places = np.union1d(a, b)
        below = [np.searchsorted(np.sort(c), places, "right") / 600 for c in (a, b)]
        assert abs(below[0] - below[1]).max() < 0.13, name


@pytest.mark.parametrize(
    "arguments",
    ["random_area=[0.9, 0.1]", "random_area=[1.0, 2.0, 3.0]", "random_aspect_ratio=[2, 1]"],
)
def test_ranges_of_random_windows_are_in_order(arguments):
    assert_same(f"ndd.decoders.image_random_crop(x, {arguments}).evaluate()", x=JPEG)


TINY = f"np.frombuffer(bytes.fromhex('{FILES['one pixel'].tobytes().hex()}'), np.uint8)"
GRAY = f"np.frombuffer(bytes.fromhex('{encoded(PICTURE[:2, :2, :1]).tobytes().hex()}'), np.uint8)"
INK = f"np.frombuffer(bytes.fromhex('{CMYK.tobytes().hex()}'), np.uint8)"

ON_PURPOSE = {
    "strided bytes": Differs(
        f"ndd.decoders.image(np.repeat({TINY}, 2)[::2])",
        f"ndd.decoders.image({TINY})",
        "any bytes will do",
    ),
    "float64": Differs(
        f"ndd.decoders.image({TINY}, dtype=ndd.float64)",
        f"ndd.cast(ndd.decoders.image({TINY}, dtype=ndd.float32), dtype=ndd.float64)",
        "more types",
    ),
    "unknown colors": Differs(
        f"ndd.peek_image_shape({TINY}, image_type=17)", "RuntimeError", "there is no such type"
    ),
    "any gray": Differs(
        f"ndd.decoders.image({GRAY}, output_type=types.ANY_DATA)",
        f"ndd.decoders.image({GRAY}, output_type=types.GRAY)",
        "DALI crashes",
        ask=False,
    ),
    "any ink": Differs(
        f"ndd.decoders.image({INK}, output_type=types.ANY_DATA).shape",
        "(93, 131, 4)",
        "what is stored can be had",
    ),
    "a string": Differs(
        f"ndd.decoders.image({TINY}, output_type='RGB')", "TypeError", "constants are integers"
    ),
}


@pytest.mark.parametrize("case", ON_PURPOSE.values(), ids=ON_PURPOSE)
def test_differs_on_purpose(case):
    case.check()


def test_files_of_12_bits_are_refused():
    file = np.fromfile(JPEGS / "12-bit.jpg", np.uint8)
    assert_same("ndd.decoders.image(x).evaluate()", x=file)


@pytest.mark.parametrize("name", ["image", "image_crop", "image_random_crop", "image_slice"])
def test_former_names_go_on_working(name):
    window = "start=[0, 0], shape=[5, 5]" if name == "image_slice" else ""
    source = f"ndd.experimental.decoders.{name}(x, {window}).layout"
    assert_same(f"{source}, ndd.experimental.peek_image_shape(x)", x=JPEG)
