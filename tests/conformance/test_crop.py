"""`crop`, `crop_mirror_normalize`, `random_crop_generator`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same, oracle, ours

WINDOWS = [
    "", "crop=[2, 2]", "crop=[1, 3]", "crop=[9, 1, 2]", "crop=[2.9, 1.2]", "crop=[0, 2]",
    "crop=[-1, 2]", "crop=[0.5, 2]", "crop=[float('nan'), 2]", "crop_h=1, crop_w=2",
    "crop_h=0, crop_w=2", "crop_d=1, crop_h=1, crop_w=2", "crop=[1, 2], crop_pos_x=0",
    "crop=[1, 2], crop_pos_x=1, crop_pos_y=0.3", "crop=[1, 2], crop_pos_x=0.49",
    "crop=[1, 2], rounding='truncate'", "crop=[1, 2], crop_pos_x=0.9, rounding='truncate'",
    "crop=np.float32([1, 2])", "crop=ndd.tensor([1.5, 2])", "crop=ndd.tensor([1, 2])",
    "crop_pos_x=2", "crop=[1, 1], crop_pos_z=1.5", "crop=(1, 2)",
    "crop=[4, 9], out_of_bounds_policy='pad'",
    "crop=[4, 9], out_of_bounds_policy='constant', fill_values=7.5",
    "crop=[7, 8], out_of_bounds_policy='PAD', rounding='truncate'",
    "crop=[4, 9], out_of_bounds_policy='pad', crop_pos_x=0.3, crop_pos_y=0.25",
    "crop=[4, 9], out_of_bounds_policy='pad', fill_values=[7, 8, 9]",
    "crop=[4, 9], out_of_bounds_policy='pad', fill_values=[300.7]",
    "crop=[5, 2], out_of_bounds_policy='trim_to_shape'",
    "crop=[5, 9], out_of_bounds_policy='trim_to_shape', crop_pos_x=0.3",
    "crop=[1e10, 2], out_of_bounds_policy='trim_to_shape'",
    # rejected
    "crop=2", "crop=[2]", "crop=[1, 2, 3, 4]", "crop=[]", "crop_h=1", "crop_w=1", "crop_d=2",
    "crop=[1, 1], crop_h=2", "crop=[1, 1], crop_h=2, crop_w=2", "crop=[1, 1], crop_d=2",
    "crop=[1, 1], crop_pos_x=1.5", "crop=[1, 1], crop_pos_y=-0.1", "crop=[3, 2]", "crop=[1, 6]",
    "crop=[1, 3], crop_pos_x=float('nan')", "crop=[1, 2], rounding='foo'",
    "crop=[1, 2], rounding='TRUNCATE'", "crop=[1, 2], out_of_bounds_policy='foo'",
    "crop=[4, 2], out_of_bounds_policy='pad', fill_values=[7, 8]", "foo=1",
]  # fmt: skip
CALLS = [
    "", "mirror=1", "mirror=-3", "mirror=True", "mean=3", "mean=[1, 2, 3]", "std=[2, 4, 5]",
    "mean=[1, 2, 3], std=[2]", "mean=[10.5], std=[2, 4, 5], scale=3, shift=0.5", "std=[0, 1, 2]",
    "mean=np.float32([1, 2, 3])", "mean=ndd.tensor([1.0, 2, 3])", "mean=ndd.tensor(2.0)",
    "output_layout='HWC'", "output_layout='WHC'", "output_layout='WCH'", "output_layout=''",
    "output_layout='HWC', mirror=1", "output_layout='WHC', mirror=1, mean=[1, 2, 3]",
    "mean=[1, 2, 3], std=[2, 3, 4], scale=10, shift=0.5, dtype=ndd.uint8",
    "std=2, dtype=ndd.uint8", "std=2, dtype=ndd.int8, shift=-3, output_layout='HWC'",
    "std=2, dtype=ndd.float16, shift=0.1", "std=2, dtype=ndd.float16, mirror=1",
    "std=float('nan'), dtype=ndd.uint8", "output_layout='HWC', dtype=ndd.float16",
    "pad_output=True", "pad_output=True, mirror=1, mean=[1, 2, 3]",
    "pad_output=True, output_layout='HWC', mean=4, std=[1, 2, 3]",
    "pad_output=True, output_layout='HWC', fill_values=[7, 8, 9, 10]",
    "pad_output=True, crop=[3, 3], fill_values=[7], out_of_bounds_policy='pad', mean=1",
    "pad_output=True, crop=[2, 2], fill_values=[7], out_of_bounds_policy='pad', mean=1",
    "pad_output=True, crop=[3, 3], fill_values=7, out_of_bounds_policy='pad', "
    "output_layout='HWC', mirror=1",
    "crop=[4, 9], out_of_bounds_policy='pad', fill_values=9, mirror=1, mean=1, crop_pos_x=0.3",
    "crop=[4, 9], out_of_bounds_policy='pad', fill_values=[7, 8, 9.5], mirror=1",
    "crop=[4, 9], out_of_bounds_policy='pad', fill_values=99.6, mirror=1, dtype=ndd.uint8",
    "crop=[4, 9], out_of_bounds_policy='pad', fill_values=300.6, dtype=ndd.uint8",
    "crop=[1, 3], mirror=1, crop_pos_x=0", "crop=[1, 3], output_layout='HWC', crop_pos_x=0",
    # rejected
    "mean=[1, 2]", "mean=[1, 2, 3], std=[2, 2]", "output_layout='HW'", "output_layout='ABC'",
    "crop=[1, 12], out_of_bounds_policy='edge'", "dtype=int",
    "crop=[3, 3], fill_values=[7, 8], out_of_bounds_policy='pad'", "output_layout='HHC'",
]  # fmt: skip
LAYOUTS = ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW"]


def picture(h, w, c=3, dtype=np.uint8):
    y, x, k = np.mgrid[:h, :w, :c]
    return ((y * 37 + x * 11 + k * 101 + y * x) % 251).astype(dtype)


@pytest.mark.parametrize("arguments", WINDOWS)
def test_windows_agree(arguments):
    given = f"given = dict({arguments})\nx = ndd.tensor(x, layout='HWC')\n"
    x = picture(2, 5)
    assert_same(f"{given}ndd.crop(x, **given).evaluate()", x=x)
    assert_same(f"{given}ndd.crop_mirror_normalize(x, **given).evaluate()", x=x)


@pytest.mark.parametrize("arguments", CALLS)
def test_normalised_windows_agree(arguments):
    given = f"given = dict({arguments})\nx = ndd.tensor(x, layout='HWC')\n"
    source = f"{given}ndd.crop_mirror_normalize(x, **given).evaluate()"
    for x in (picture(2, 5), picture(2, 5, dtype=np.float32) / 7, picture(1, 1), picture(3, 43)):
        assert_same(source, x=x, tol=1 if "int8" in arguments else 1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_agrees(layout):
    shape = [{"H": 4, "W": 5, "C": 3, "D": 6, "F": 2}[letter] for letter in layout]
    x = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    start = f"x = ndd.tensor(x, layout='{layout}')\n"
    for window in ("crop=[2, 3]", "crop=[4, 2, 3]", "crop=[2, 3, 4], crop_pos_z=0.8"):
        assert_same(f"{start}ndd.crop(x, {window})", x=x)
        pad = f"{window}, out_of_bounds_policy='pad', fill_values=[1, 2, 3]"
        assert_same(f"{start}ndd.crop(x, {pad}, crop_pos_y=0)", x=x)
        for out in ("", layout[::-1], layout[1:] + layout[0]):
            arguments = f"{window}, output_layout='{out}', mean=[1, 2, 3], mirror=1"
            assert_same(f"{start}ndd.crop_mirror_normalize(x, {arguments})", x=x, tol=1e-4)
    assert_same(f"{start}ndd.crop_mirror_normalize(x).evaluate()", x=x)


@pytest.mark.parametrize(
    "dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
)
def test_every_type_agrees(dtype):
    x = np.array([[[0, 3, 7, 100]], [[1.5, 2, 0.5, 99]]]).astype(dtype)
    start = "x = ndd.tensor(x, layout='HWC')\n"
    assert_same(f"{start}ndd.crop(x, crop=[1, 1])", x=x)
    for out in ("uint8", "float32", "float16"):
        assert_same(f"{start}ndd.crop(x, crop=[2, 1], dtype=ndd.{out})", x=x)
        pad = "crop=[4, 1], out_of_bounds_policy='pad', fill_values=2.5"
        assert_same(f"{start}ndd.crop(x, {pad}, dtype=ndd.{out})", x=x)
        if dtype in ("u1", "u2", "i2", "i4", "f2", "f4"):
            arguments = f"dtype=ndd.{out}, mean=3, std=2, scale=1.5"
            assert_same(f"{start}ndd.crop_mirror_normalize(x, {arguments})", x=x, tol=1e-2)


@pytest.mark.parametrize(
    "arguments",
    [
        "crop=ndd.batch([[1, 2], [3, 1]])", "crop_h=ndd.batch([1, 3]), crop_w=2",
        "crop=[1, 2], crop_pos_x=ndd.batch([0.0, 1.0]), crop_pos_y=ndd.batch([0.3, 0.6])",
        "crop=ndd.batch([[1, 2], [9, 9]])", "crop=ndd.batch([1, 2])",
    ],
)  # fmt: skip
def test_each_sample_has_its_own_window(arguments):
    start = "x = ndd.batch([a, b], layout='HWC')\n"
    pictures = {"a": picture(4, 5), "b": picture(3, 7)}
    assert_same(f"{start}ndd.crop(x, {arguments}).evaluate()", **pictures)
    own = "mirror=ndd.batch([1, 0]), mean=ndd.batch([[1.0, 2, 3], [4, 5, 6]])"
    assert_same(f"{start}ndd.crop_mirror_normalize(x, {arguments}, {own}).evaluate()", **pictures)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.crop(np.zeros((2, 3), np.uint8), crop=[1, 2])",
        "ndd.crop(ndd.tensor(np.zeros((2, 3), np.uint8), layout='HW'), crop=[1, 2]).evaluate()",
        "ndd.crop(np.zeros((2, 3, 1), np.uint8), crop=[1, 2])",
        "ndd.crop(np.zeros((2, 3, 3, 1), np.uint8), crop=[1, 2])",
        "ndd.crop(np.zeros((2, 3, 1), np.uint8), crop=[1, 2], output_dtype=ndd.float32)",
        "ndd.crop(np.zeros((2, 3, 1), np.uint8), crop=[1, 2], image_type=0)",
        "ndd.crop(np.zeros((2, 3, 1), np.uint8), dtype=ndd.uint8, output_dtype=ndd.uint8)",
        "ndd.crop(ndd.tensor(np.zeros((2, 3, 1), 'u1'), layout='WHC'), crop=[1, 2]).evaluate()",
        "ndd.crop_mirror_normalize(np.zeros((0, 4, 3), np.uint8))",
        "ndd.crop_mirror_normalize(np.zeros((4, 4, 0), np.uint8))",
        "ndd.crop_mirror_normalize(np.zeros((4, 4), np.uint8))",
        "ndd.crop_mirror_normalize(np.ones((2, 3, 1), np.uint8), output_dtype=ndd.uint8)",
        "ndd.crop_mirror_normalize(np.ones((1, 2, 3, 4), np.uint8), output_layout='CDHW')",
        "ndd.crop_mirror_normalize(np.ones((1, 2, 1, 3, 4), np.uint8), output_layout='FCDHW')",
        "ndd.crop_mirror_normalize(np.ones((1, 2, 5), np.uint8), pad_output=True)",
        "ndd.crop(ndd.batch([np.ones((2, 3, 1), 'u1')], layout='HWC'), crop=[1, 1])",
    ],
)
def test_edges_agree(source):
    assert_same(source)


@pytest.mark.parametrize(
    "arguments",
    [
        "random_area=[1, 1]", "random_area=[2, 3]",
        "num_attempts=0", "num_attempts=-1",
    ],
)  # fmt: skip
def test_windows_without_a_choice_agree(arguments):
    # With a seed: of an area that is rounded, DALI chooses one pixel less at times.
    assert_same(f"ndd.random_crop_generator([480, 640], {arguments}, rng=ndd.random.RNG(7))")


@pytest.mark.parametrize(
    "arguments",
    [
        "[480, 64], random_area=[1, 1], random_aspect_ratio=[1, 1]",
        "[480, 64], random_area=[1, 1], random_aspect_ratio=[0.5, 2]",
        "[48, 640], random_area=[1, 1], random_aspect_ratio=[0.5, 2]",
        "[480, 640], random_area=[0, 0]", "[0, 640]", "[-4, 640]", "[1, 1]",
        "[480, 640], random_area=[0, 0.1], num_attempts=0",
    ],
)  # fmt: skip
def test_shapes_without_a_choice_agree(arguments):
    assert_same(f"ndd.random_crop_generator({arguments})[1]")


@pytest.mark.parametrize(
    "source",
    [
        "ndd.random_crop_generator([480, 640], random_area=[0.5, 0.1])[0].evaluate()",
        "ndd.random_crop_generator([480, 640], random_aspect_ratio=[2, 1])[0].evaluate()",
        "ndd.random_crop_generator([480])[0].evaluate()",
        "ndd.random_crop_generator([480, 640, 3, 4])[0].evaluate()",
        "ndd.random_crop_generator([480.0, 640.0])[0].evaluate()",
        "ndd.random_crop_generator(5)[0].evaluate()",
        "ndd.random_crop_generator([[480, 640]])[0].evaluate()",
        "ndd.random_crop_generator()",
    ],
)
def test_both_refuse(source):
    assert_refused(source)


WINDOW_CHOICES = [
    "", "random_area=[0.3, 0.6], random_aspect_ratio=[0.5, 0.9]",
    "random_area=[0.01, 1], random_aspect_ratio=[0.2, 5], num_attempts=2",
]  # fmt: skip


@pytest.mark.parametrize("arguments", WINDOW_CHOICES)
@pytest.mark.parametrize("shape", [(480, 640), (120, 1000)], ids=str)
def test_windows_are_spread_as_those_of_dali(shape, arguments):
    count = 4000
    source = f"""
        shapes = ndd.batch([{list(shape)}] * {count})
        a, s = ndd.random_crop_generator(shapes, rng=ndd.random.RNG(7), {arguments})
        np.hstack([np.stack([np.array(one) for one in x]) for x in (a, s)]).tolist()
    """
    windows = [np.array(side.run(source), float) for side in (oracle, ours)]
    measures = {
        "area": lambda y, x, h, w: h * w,
        "aspect ratio": lambda y, x, h, w: w / h,
        "place along y": lambda y, x, h, w: y / np.maximum(shape[0] - h, 1),
        "place along x": lambda y, x, h, w: x / np.maximum(shape[1] - w, 1),
    }
    for name, measure in measures.items():
        theirs, mine = (np.sort(measure(*window.T)) for window in windows)
        # Kolmogorov-Smirnov: the distance of two such samples exceeds this once in 10^5.
        places = np.union1d(theirs, mine)
        below = [np.searchsorted(c, places, "right") / count for c in (theirs, mine)]
        assert abs(below[0] - below[1]).max() < 2.47 * np.sqrt(2 / count), name


ANY_TYPE = "elements of every type can be converted to every other"
VOLUMES = "sequences of volumes are images too"
DIFFERS = [
    Differs(
        "ndd.crop(np.full((1, 1, 1), 1.7, 'f4'), dtype=ndd.int32)",
        "ndd.tensor(np.full((1, 1, 1), 1, 'i4'), layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.crop(np.full((1, 2, 1), True), crop=[1, 1])",
        "ndd.tensor(np.full((1, 1, 1), True), layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.crop_mirror_normalize(np.full((1, 2, 1), 5, 'i8'), dtype=ndd.float64, std=2)",
        "ndd.tensor(np.full((1, 1, 2), 2.5), layout='CHW')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.crop(np.full((1, 1, 2, 2, 1), 1, 'u1'), crop=[1, 1])",
        "ndd.tensor(np.full((1, 1, 1, 1, 1), 1, 'u1'), layout='FDHWC')",
        VOLUMES,
    ),
    Differs(
        "ndd.crop_mirror_normalize(np.full((1, 1, 3), 5, 'u1'), pad_output=True, crop=[1, 2], "
        "fill_values=[7, 8, 9, 10], out_of_bounds_policy='pad', output_layout='HWC', mean=1)",
        "ndd.tensor(np.float32([[[7, 8, 9, 10], [4, 4, 4, 10]]]), layout='HWC')",
        "a mean is for every channel; DALI drops those of all but the first",
    ),
    Differs(
        "ndd.crop_mirror_normalize(np.ones((1, 1, 3), 'u1'), mean=[]).evaluate()",
        "RuntimeError",
        "DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.crop(np.ones((1, 1, 3), 'u1'), crop=[1e10, 1e10], out_of_bounds_policy='pad')"
        ".evaluate()",
        "RuntimeError",
        "DALI asks for all the memory there is",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
