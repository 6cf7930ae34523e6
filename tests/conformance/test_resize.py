"""The resize family. Bytes are within 1 of DALI's, floats within 1e-4 of their range."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

FILTERS = ["NN", "LINEAR", "CUBIC", "LANCZOS3", "TRIANGULAR", "GAUSSIAN"]
BYTE = 1.0
FLOAT = 0.02


def photo(height: int, width: int, channels: int = 3, dtype: str = "u1") -> np.ndarray:
    """Waves with some noise."""
    rng = np.random.default_rng(height * width)
    y, x = np.mgrid[:height, :width]
    planes = [
        127 + 60 * np.sin(x / 7 + c) + 50 * np.cos(y / 11 - c) + rng.normal(0, 12, x.shape)
        for c in range(channels)
    ]
    return np.clip(np.stack(planes, -1), 0, 255).astype(dtype)


def impulses(height: int, width: int, dtype: str = "f4") -> np.ndarray:
    image = np.zeros((height, width, 1), dtype)
    image[::5, ::3] = 200
    return image


RESIZED = "ndd.resize(ndd.tensor(x, layout='HWC'), interp_type=types.INTERP_{}, **k)"
CHANGES = [
    {"size": [50, 60]},
    {"size": [301, 200]},
    {"size": [40, 311]},
    {"size": [1, 1]},
    {"size": [95, 119]},
    {"size": [30, 41], "antialias": False},
    {"size": [30.4, 41.7]},
    {"size": [30.4, 41.7], "subpixel_scale": False},
    {"size": [-50, 60]},
    {"size": [60, 70], "roi_start": [80.5, 3.25], "roi_end": [-3.7, 110]},
    {"size": [60, 70], "roi_start": [0.1, 0.2], "roi_end": [0.5, 0.9], "roi_relative": True},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("filter", FILTERS)
def test_photographs(filter, change):
    assert_same(RESIZED.format(filter), x=photo(97, 121), k=change, tol=BYTE)
    tol = 1.0 if filter == "GAUSSIAN" else FLOAT
    assert_same(RESIZED.format(filter), x=photo(97, 121, 1, "f4"), k=change, tol=tol)


# Not Gaussian: where a pixel's centre lies on another's, rounding errors decide in DALI
# which of two neighbours has a part.
@pytest.mark.parametrize("filter", FILTERS[:-1])
@pytest.mark.parametrize(
    "size", [[1, 1], [7, 5], [8, 10], [16, 20], [15, 19], [41, 3], [3, 41], [33, 64]], ids=str
)
def test_impulses(filter, size):
    assert_same(RESIZED.format(filter), x=impulses(16, 20), k={"size": size}, tol=FLOAT)
    assert_same(RESIZED.format(filter), x=impulses(1, 1), k={"size": size}, tol=FLOAT)
    assert_same(RESIZED.format(filter), x=impulses(16, 20, "u1"), k={"size": size}, tol=BYTE)


def test_most_bytes_are_the_same():
    source = (
        "y = np.asarray(ndd.resize(ndd.tensor(x, layout='HWC'), size=[224, 224]))\n"
        "z = np.asarray(ndd.resize(ndd.tensor(x, layout='HWC'), size=[224, 224], "
        "dtype=ndd.float32))\n"
        "bool(np.mean(y != np.floor(z + 0.5)) < 0.01)"
    )
    assert_same(source, x=photo(375, 500))


@pytest.mark.parametrize("filters", ["NN LINEAR", "LINEAR NN", "CUBIC LINEAR", "TRIANGULAR CUBIC"])
def test_each_direction_has_its_filter(filters):
    shrink, enlarge = filters.split()
    source = (
        "ndd.resize(ndd.tensor(x, layout='HWC'), size=s, "
        f"min_filter=types.INTERP_{shrink}, mag_filter=types.INTERP_{enlarge})"
    )
    for size in ([20, 90], [90, 20], [20, 20], [90, 90]):
        assert_same(source, x=photo(45, 50), s=size, tol=BYTE)


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "f4"])
@pytest.mark.parametrize("filter", ["NN", "LINEAR", "CUBIC"])
def test_types(dtype, filter):
    x = photo(23, 31, 3, "f4") * (100 if dtype in ("i2", "u2") else 1) - 20 * (dtype == "i2")
    for to in ({}, {"dtype": None}):
        change = {"size": [17, 50], **to}
        tol = FLOAT if dtype == "f4" else BYTE
        assert_same(RESIZED.format(filter), x=x.astype(dtype), k=change, tol=tol)
    source = RESIZED.format(filter).replace("**k", "size=[17, 50], dtype=ndd.float32")
    assert_same(source, x=x.astype(dtype), tol=1.0 if dtype in ("i2", "u2") else FLOAT)


LAYOUTS = ["HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW"]


@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype):
    extents = {"F": 2, "C": 3, "D": 7, "H": 9, "W": 11}
    shape = [extents[letter] for letter in layout]
    x = np.random.default_rng(0).integers(0, 255, shape).astype(dtype)
    source = (
        "ndd.resize(ndd.tensor(x, layout=l), size=s), ndd.resize(ndd.tensor(x, layout=l), size=6), "
        "ndd.resize(ndd.tensor(x, layout=l), resize_x=17, save_attrs=True)"
    )
    size = [5, 12, 7] if "D" in layout else [12, 7]
    assert_same(source, x=x, l=layout, s=size, tol=BYTE if dtype == "u1" else FLOAT)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 17])
def test_channels(channels):
    assert_same(RESIZED.format("LINEAR"), x=photo(40, 50, channels), k={"size": [33, 70]}, tol=BYTE)
    x = photo(40, 50, channels, "f4")
    assert_same(RESIZED.format("CUBIC"), x=x, k={"size": [33, 70]}, tol=FLOAT)


@pytest.mark.parametrize("rank", range(1, 7))
def test_without_a_layout_the_rank_decides(rank):
    x = np.zeros((4, 5, 3, 2, 1, 2)[:rank], np.uint8)
    assert_same("ndd.resize(ndd.tensor(x), size=3)", x=x)


@pytest.mark.parametrize("layout", ["HW", "DHW", "HCW", "NHWC", "hwc", "WHC"])
def test_other_layouts_are_refused(layout):
    x = np.zeros((2, 3, 4, 2)[: len(layout)], np.uint8)
    assert_same("ndd.resize(ndd.tensor(x, layout=l), size=3)", says="HWC", x=x, l=layout)


SIZES = [
    {"size": 100}, {"size": [100, 0]}, {"size": [0, 100]}, {"size": [0, 0]}, {"size": 0},
    {"size": [100.5, 99.5]}, {"size": [0.4, 0.2]}, {"size": [-10, 5]},
    {"resize_x": 32}, {"resize_y": 10}, {"resize_x": 32, "resize_y": 11}, {"resize_x": 0},
    {"resize_x": 0.3}, {"resize_x": -32}, {"resize_x": 10, "resize_y": 0}, {"resize_z": 10},
    {"resize_x": 5, "resize_z": 10}, {"resize_x": 10, "resize_y": -5},
    {"resize_shorter": 25}, {"resize_longer": 30}, {"resize_shorter": -10},
    {"resize_shorter": 25, "max_size": 30}, {"resize_longer": 30, "max_size": 20},
    {"size": 32, "mode": "not_larger"}, {"size": 32, "mode": "not_smaller"},
    {"size": [32, 0], "mode": "not_larger"}, {"size": [0, 32], "mode": "stretch"},
    {"resize_x": 32, "mode": "stretch"}, {"size": [0, 10], "mode": "not_smaller"},
    {"size": 32, "mode": "not_smaller", "max_size": 35}, {"size": 100, "max_size": [30, 20]},
    {"resize_x": 100, "max_size": [30, 20]}, {"resize_x": 100, "max_size": 30},
    {"size": 10, "max_size": 0}, {"size": [50, 50], "max_size": [0, 20]},
    {"size": [10, 0], "roi_start": [0, 0], "roi_end": [10, 20]},
    {"resize_x": 10, "roi_start": [0, 0], "roi_end": [10, 20]},
    {"resize_shorter": 5, "roi_start": [0, 0], "roi_end": [10, 20]},
    {"size": [0, 0], "roi_start": [0, 0], "roi_end": [10, 20]},
    {"size": [0, 0], "roi_start": [0, 0], "roi_end": [0.5, 0.5], "roi_relative": True},
    {"size": [5, 5], "roi_start": [5, 5], "roi_end": [5, 5]},
    {"size": 10, "minibatch_size": 3, "temp_buffer_hint": 7},
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes(size):
    x = photo(48, 64, 1, "f4")
    assert_same("ndd.resize(ndd.tensor(x, layout='HWC'), **k)", x=x, k=size, tol=FLOAT)


@pytest.mark.parametrize(
    "size",
    [
        {"resize_x": 20, "resize_y": 5}, {"resize_x": 10, "resize_z": 7}, {"resize_z": 3},
        {"size": [0, 5, 20]}, {"size": [9, 5, 20], "mode": "not_smaller"}, {"resize_shorter": 5},
        {"resize_longer": 5}, {"resize_z": 3, "mode": "stretch"}, {"size": 4},
        {"resize_x": 3, "resize_z": 9, "mode": "not_larger"},
    ],
    ids=str,
)  # fmt: skip
def test_sizes_of_volumes(size):
    x = np.random.default_rng(0).normal(100, 20, (10, 20, 40, 1)).astype(np.float32)
    assert_same("ndd.resize(ndd.tensor(x, layout='DHWC'), **k)", x=x, k=size, tol=FLOAT)


def test_whole_numbers_come_out_the_same():
    source = """
shapes = []
for h, w, s in sizes:
    x = ndd.tensor(np.zeros((h, w, 1), np.uint8), layout="HWC")
    for k in ({"resize_x": s}, {"resize_y": s}, {"resize_shorter": s}, {"resize_longer": s},
              {"size": [s, s + 7], "mode": "not_larger"}, {"size": s, "mode": "not_smaller"}):
        shapes.append(ndd.resize(x, interp_type=types.INTERP_NN, **k).shape)
shapes
"""
    sizes = np.random.default_rng(1).integers(1, 90, (60, 3)).tolist()
    assert_same(source, sizes=sizes)


def test_the_nearest_pixel_is_the_same():
    source = """
x = ndd.tensor(np.arange(200 * 2).reshape(1, 200, 2).astype(np.int16), layout="HWC")
[ndd.resize(x[:, :w], size=[1, s], interp_type=types.INTERP_NN) for w, s in sizes]
"""
    sizes = np.random.default_rng(2).integers(1, 200, (80, 2)).tolist()
    assert_same(source, sizes=sizes)


PER_SAMPLE = [
    "size=ndd.batch([[5, 6], [7, 8]])",
    "size=ndd.batch([5, 6])",
    "size=ndd.tensor([5, 6])",
    "size=np.array([5, 6])",
    "resize_x=ndd.batch([5.0, 9.0])",
    "resize_x=ndd.batch([5, 9]), resize_y=7",
    "resize_shorter=ndd.batch([5, 9])",
    "resize_longer=ndd.tensor(9)",
    "size=5, interp_type=ndd.batch([0, 1])",
    "size=5, interp_type=ndd.batch([0, 2], dtype=ndd.InterpType)",
    "size=5, interp_type=types.INTERP_NN",
    "size=50, min_filter=ndd.batch([0, 1]), mag_filter=ndd.batch([1, 0])",
    "size=5, roi_start=ndd.batch([[0, 0], [2, 2]]), roi_end=[9, 9]",
    "size=5, roi_start=[1, 1], roi_end=ndd.tensor([7.5, 8.5])",
]


@pytest.mark.parametrize("given", PER_SAMPLE)
def test_samples_have_their_own_arguments(given):
    batch = "ndd.batch([x, x[:9]], layout='HWC')"
    assert_same(f"ndd.resize({batch}, {given})", x=photo(11, 13), tol=BYTE)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.resize(x, size=[3, 4])",
        "ndd.resize([x, x], size=[3, 4])",
        "ndd.resize(ndd.tensor(x), size=3, batch_size=2)",
        "ndd.resize(ndd.batch([x, x[:3]]), size=3, save_attrs=True)",
        "ndd.resize(x, size=[1e9, 1e8])",
        "ndd.resize(x[:0], size=3), ndd.resize(x[:, :0], size=3), ndd.resize(x[:, :, :0], size=3)",
        "ndd.resize(x[:, :0], resize_x=3)",
        "ndd.resize(ndd.tensor(x), size=3, device='cpu')",
        # rejected
        "ndd.resize()",
        "ndd.resize(x)",
        "ndd.resize(x, 3)",
        "ndd.resize(x, foo=1)",
        "ndd.resize(x, size=100, resize_x=3)",
        "ndd.resize(x, resize_x=100, resize_shorter=50)",
        "ndd.resize(x, resize_shorter=50, resize_longer=60)",
        "ndd.resize(x, resize_shorter=50, mode='not_larger')",
        "ndd.resize(x, size=[3, 4, 5])",
        "ndd.resize(x, size=10, mode='foo')",
        "ndd.resize(x, size=10, interp_type=99)",
        "ndd.resize(x, size=10, roi_start=[0, 0])",
        "ndd.resize(x, size=10, roi_end=[0, 0])",
        "ndd.resize(x, size=10, roi_start=[5, 5, 5], roi_end=[9, 9, 9])",
        "ndd.resize(x, size=10, max_size=[1, 2, 3])",
    ],
)
def test_calls_agree(source):
    assert_same(f"made = {source}\nmade", x=photo(6, 7), tol=BYTE)


RAMP = np.arange(10, dtype=np.float32)
TENSOR = [
    {"sizes": [3.4]}, {"sizes": [3.4], "alignment": 0.0}, {"sizes": [3.4], "alignment": 1.0},
    {"sizes": [3.4], "alignment": [0.25]}, {"sizes": [3.4], "subpixel_scale": False},
    {"scales": [0.34]}, {"scales": [0.34], "size_rounding": "truncate"},
    {"scales": [0.34], "size_rounding": "ceil"}, {"scales": [-0.34]}, {"scales": 0.5},
    {"sizes": 0}, {"sizes": [3], "axes": [-1]}, {"sizes": [4], "roi_start": [2], "roi_end": [6]},
    {"sizes": [4], "roi_start": [6], "roi_end": [2]},
    {"sizes": [3.4], "roi_start": [2], "roi_end": [6]},
    {"sizes": [3.4], "roi_start": [6], "roi_end": [2], "alignment": 0.0},
    {"sizes": [4], "roi_start": [-2], "roi_end": [12]},
    {"sizes": [4], "roi_start": [3.3], "roi_end": [3.3]},
    {"sizes": [-4], "roi_start": [6], "roi_end": [2]},
    {"sizes": [4], "roi_start": [0.2], "roi_end": [0.6], "roi_relative": True},
    {"sizes": [4], "mode": "not_larger"}, {"sizes": [50], "max_size": 20},
    {"scales": [5.0], "max_size": 20}, {"sizes": [0.3]},
    {"sizes": [0.3], "size_rounding": "truncate"}, {"sizes": [-3.4]},
    {"sizes": [-3.4], "alignment": 0.0}, {"sizes": [3.4], "max_size": 3.2},
    # rejected
    {}, {"sizes": [3], "scales": [2]}, {"sizes": [3], "axes": [0, 0]},
    {"sizes": [3], "axes": [1]}, {"sizes": [3], "axis_names": "W"},
    {"sizes": [3], "size_rounding": "foo"}, {"scales": [2], "mode": "not_larger"},
]  # fmt: skip


@pytest.mark.parametrize("given", TENSOR, ids=str)
def test_rows_of_numbers(given):
    assert_same("ndd.tensor_resize(ndd.tensor(x), **k)", x=RAMP, k=given, tol=1e-3)


@pytest.mark.parametrize(
    "given",
    [
        {"sizes": [2, 3, 4]}, {"sizes": 2}, {"sizes": [2, 3], "axes": [0, 2]},
        {"sizes": [2, 0, 0]}, {"sizes": [9, 9], "axes": [0, 1]},
        {"sizes": [2, 0, 0], "mode": "stretch"}, {"scales": [2, 0.5], "axes": [1, 2]},
        {"scales": 2, "axes": [1, 2]}, {"scales": [2, 0.5], "axes": [2, 1]},
        {"sizes": [2, 3], "axes": [2, 0]}, {"sizes": [2, 2, 2], "mode": "not_larger"},
        {"sizes": [3, 4], "axes": [0, 2], "roi_start": [1, 1], "roi_end": [2, 3]},
        {"sizes": [3.4, 4.4], "axes": [0, 2], "alignment": [0, 1]}, {"sizes": [7], "axes": [0]},
        {"sizes": [3, 4], "axes": [0, 2], "max_size": [2, 2]}, {"sizes": [7], "axes": [1]},
        # rejected
        {"sizes": [2, 3]}, {"sizes": [3], "axes": []},
        {"sizes": [3, 4], "axes": [0, 2], "alignment": [0, 1, 1]},
        {"sizes": [3, 4], "axes": [0, 2], "roi_start": [1, 1, 1], "roi_end": [2, 3, 4]},
    ],
    ids=str,
)  # fmt: skip
def test_arrays(given):
    x = np.random.default_rng(3).normal(100, 30, (4, 6, 20)).astype(np.float32)
    assert_same("ndd.tensor_resize(ndd.tensor(x), **k)", x=x, k=given, tol=FLOAT)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.tensor_resize(ndd.tensor(x, layout='AB'), sizes=[3], axis_names='B')",
        "ndd.tensor_resize(ndd.tensor(x, layout='AB'), scales=[2, 3], axis_names='BA')",
        "ndd.tensor_resize(ndd.batch([x, x[:3]]), scales=ndd.batch([[2.0, 3], [1, 0.5]]))",
        "ndd.tensor_resize(ndd.batch([x, x]), sizes=[3, 2], alignment=ndd.batch([0, 1]))",
        "ndd.tensor_resize(ndd.tensor(x), sizes=[3, 2], dtype=ndd.float32)",
        "ndd.tensor_resize(ndd.tensor(x)[0, 0], sizes=[])",
    ],
)
def test_tensor_resize_agrees(source):
    assert_same(source, x=photo(6, 7)[:, :, 0], tol=BYTE)


CROPS = [
    {"crop": [3, 3]}, {"crop": [3, 4], "mirror": 1}, {"crop": [3, 3], "mirror": 2},
    {"crop": [3, 3], "mirror": 3}, {"crop_h": 3, "crop_w": 4}, {}, {"mirror": 1},
    {"crop": [3, 3], "crop_pos_x": 0.0, "crop_pos_y": 1.0}, {"crop": [12, 10]},
    {"crop": [3.6, 2.5]}, {"crop": [3.6, 2.5], "rounding": "truncate"}, {"crop": [-3, 3]},
    {"crop": [0, 3]}, {"crop": [4, 4], "rounding": "truncate", "crop_pos_x": 0.3},
    {"crop": [3, 3], "interp_type": 0}, {"crop": [3, 3], "roi_start": [2, 2], "roi_end": [9, 5]},
    # rejected
    {"crop": [3]}, {"crop": [3, 3], "crop_pos_x": 1.5}, {"crop_w": 4}, {"crop_d": 2},
    {"crop": [3, 3], "rounding": "foo"}, {"crop": [3, 3], "crop_h": 3, "crop_w": 3},
]  # fmt: skip


@pytest.mark.parametrize("crop", CROPS, ids=str)
def test_windows_of_resized_images(crop):
    source = "ndd.resize_crop_mirror(ndd.tensor(x, layout='HWC'), **k)"
    for size in ({"size": [8, 9]}, {"resize_shorter": 20}, {"size": [-7, 8.4]}):
        assert_same(source, x=photo(13, 17), k={**size, **crop}, tol=BYTE)
        assert_same(source, x=photo(13, 17, 1, "f4"), k={**size, **crop}, tol=FLOAT)


def test_windows_of_each_sample():
    source = (
        "ndd.resize_crop_mirror(ndd.batch([x, x[:9]], layout='HWC'), size=12, crop=[5, 6], "
        "mirror=ndd.batch([1, 0]), crop_pos_x=ndd.batch([0.2, 0.9]))"
    )
    assert_same(source, x=photo(13, 17), tol=BYTE)
    volume = np.random.default_rng(0).integers(0, 255, (5, 6, 7, 2)).astype(np.uint8)
    # In this order: DALI remembers the depth of the one before.
    for crop in ([4, 5], [3, 4, 5]):
        source = "ndd.resize_crop_mirror(ndd.tensor(x, layout='DHWC'), size=8, crop=c, mirror=5)"
        assert_same(source, x=volume, c=crop, tol=BYTE)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.random_resized_crop(x, size=3).shape",
        "ndd.random_resized_crop(x, size=[3]).shape",
        "ndd.random_resized_crop(x, size=[3, 4]).shape",
        "v = ndd.random_resized_crop(ndd.batch([x, x[:5]]), size=[3, 4])\nv.shape, v.layout",
        "ndd.random_resized_crop(ndd.tensor(x), size=3, dtype=ndd.float32).dtype",
        "ndd.random_resized_crop(ndd.tensor(x), size=0).shape",
        "r = ndd.random.RNG(seed=7)\nndd.random_resized_crop(x, size=3, rng=r)\nr()",
        # The whole image, whatever is drawn.
        "ndd.random_resized_crop(x[:8, :8].copy(), size=5, random_area=[1, 1], "
        "random_aspect_ratio=[1, 1])",
        "ndd.random_resized_crop(x[:, :16].copy(), size=5, num_attempts=0)",
        "ndd.random_resized_crop(x, size=3, random_area=0.5).shape",
        "ndd.random_resized_crop(x, size=3, random_area=[-1, 0], random_aspect_ratio=[2]).shape",
        # rejected
        "ndd.random_resized_crop(x, size=3, random_area=[0.5, 0.1]).evaluate()",
        "ndd.random_resized_crop(x, size=3, random_aspect_ratio=[2, 1]).evaluate()",
        "ndd.random_resized_crop(x)",
        "ndd.random_resized_crop(x, size=[3, 4, 5])",
        "ndd.random_resized_crop(ndd.tensor(x[None], layout='DHWC'), size=3)",
    ],
)
def test_random_windows_agree(source):
    assert_same(source, x=photo(12, 17), tol=BYTE)


# Pixels that encode their coordinates: the corners of a result show its region.
WINDOWS = """
y, x = np.mgrid[:h, :w]
image = np.stack([y, x], -1).astype(np.float32)
many = ndd.batch([image] * 100, layout="HWC")
found = []
ndd.random.set_seed(3)
for _ in range(12):
    made = ndd.random_resized_crop(many, size=[h * 4, w * 4], interp_type=types.INTERP_NN, **k)
    found += [np.concatenate([v[0, 0], v[-1, -1]]) for v in map(np.asarray, made)]
found = np.array(found)
top, left, bottom, right = found.T
height, width = bottom - top + 1, right - left + 1
area, ratio = height * width / (h * w), np.log(width / height)
room = lambda at, size, all: (at / np.maximum(all - size, 1))[size < all]
[np.quantile(v, [0.05, 0.25, 0.5, 0.75, 0.95])
 for v in (area, ratio, room(top, height, h), room(left, width, w))]
"""


@pytest.mark.parametrize(
    ("height", "width", "given"),
    [
        (40, 60, {}),
        (60, 30, {}),
        (40, 40, {"random_area": [0.3, 0.5], "random_aspect_ratio": [0.5, 3.0]}),
        (20, 60, {"num_attempts": 2}),
    ],
)
def test_random_windows_are_distributed_alike(height, width, given):
    # Of 1200 draws each: quantiles are within about 0.03 of where they belong.
    assert_same(WINDOWS, h=height, w=width, k=given, tol=0.1)


REFUSED = [
    "ndd.resize(np.zeros((4, 4, 1), np.uint8), size='a')",
    "ndd.resize(np.zeros((4, 4, 1), np.uint8), size=3, dtype='a')",
    "ndd.tensor_resize(np.float32(5), sizes=[])",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


ANY_TYPE = "every type of number can be resized"
DIFFERS = [
    Differs(
        "ndd.resize(np.int32([[[0], [2], [4], [6]]]), size=[1, 2])",
        "ndd.tensor(np.int32([[[1], [5]]]), layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.resize(np.float64([[[0], [2], [4], [6]]]), size=[1, 2], antialias=False)",
        "ndd.tensor(np.float64([[[1], [5]]]), layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.resize(np.array([[[True], [False]]]), size=[1, 4], interp_type=0)",
        "ndd.tensor([[[True], [True], [False], [False]]], layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.resize(np.uint8([[[0], [2]]]), size=[1, 1], dtype=ndd.int32)",
        "ndd.tensor(np.int32([[[1]]]), layout='HWC')",
        "a result may have any type",
    ),
    Differs(
        "ndd.resize(np.uint8([[[0], [2]]]), size=[1, 1], save_attrs=False)",
        "ndd.tensor(np.uint8([[[1]]]), layout='HWC')",
        "it says what holds anyway; DALI looks for the second result",
    ),
    Differs(
        "ndd.resize(np.float32([[[0], [1]], [[2], [3]]]), size=[0, 2], roi_start=[2, 2], "
        "roi_end=[0, 0])",
        "ndd.tensor(np.float32([[[3], [2]], [[1], [0]]]), layout='HWC')",
        "a region mirrors all axes; DALI mirrors those twice that have no size",
    ),
    Differs(
        "ndd.tensor_resize(np.ones((4, 6, 8), np.float32), sizes=[2, 0], axes=[0, 2])",
        "ndd.tensor(np.ones((2, 6, 4), np.float32))",
        "axes that are not resized have no say in the scale",
    ),
    Differs(
        "ndd.resize(np.zeros((4, 4, 1), np.uint8), size=[float('inf'), 10])",
        "RuntimeError",
        "there is no such size; DALI makes it 1",
    ),
    Differs(
        "ndd.resize(np.zeros((4, 4, 1), np.uint8), size=[float('nan'), 10])",
        "RuntimeError",
        "there is no such size; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.resize(np.uint8([[[1], [2]]]), size=[1, 2], roi_start=[100, 100], roi_end=[200, 200])",
        "ndd.tensor(np.uint8([[[2], [2]]]), layout='HWC')",
        "beyond its edges an image goes on; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.resize_crop_mirror(ndd.tensor(np.uint8([[[1, 2, 3], [4, 5, 6]]]), layout='CHW'), "
        "size=[2, 3], crop=[2, 3], mirror=1)",
        "ndd.tensor(np.uint8([[[3, 2, 1], [6, 5, 4]]]), layout='CHW')",
        "rows are mirrored in any layout; DALI takes the last axis but one for them",
    ),
    Differs(
        "ndd.random_resized_crop(np.zeros((4, 4, 1), np.uint8), size=-3)",
        "RuntimeError",
        "there is no such size; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.tensor_resize(np.ones((2, 2, 2, 2), np.float32), sizes=3)",
        "ndd.tensor(np.ones((3, 3, 3, 3), np.float32))",
        "any number of axes can be resized",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
