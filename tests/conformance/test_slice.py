"""`slice`: regions by position and by keyword, and out-of-bounds regions."""

import random

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

GRID = np.arange(24).reshape(4, 6)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
LINE = np.arange(8)
POLICIES = [
    "error", "pad", "constant", "edge", "clamp", "reflect", "reflect_1001", "reflect_101", "wrap",
    "trim_to_shape",
]  # fmt: skip

WINDOWS = [
    # by position: integers are absolute, floats relative unless said otherwise
    "[1, 2], [2, 2]", "[0, 0], [6, 4]", "[0, 0], [0, 0]", "np.int64([1, 1]), np.int64([0, 2])",
    "[0.25, 0.5], [0.5, 0.5]", "[0.0, 0.0], [1.0, 1.0]", "[0.34, 0.12], [0.3, 0.49]",
    "[0.25, 0.5], [0.5, 0.5], normalized_shape=False",
    "[1.4, 0.5], [1.9, 1.5], normalized_shape=False, normalized_anchor=False",
    "[1.0, 0.0], [0.5, 0.5], normalized_anchor=False", "[[1, 1]], [[2, 2]]",
    "[1, 1], [2, 2], normalized_shape=True", "1, 2, axes=0", "[1], [2], axes=[0]",
    "ndd.tensor([1, 2]), ndd.tensor([2, 1])", "ndd.tensor([0.1, 0.2]), [0.5, 0.5]",
    # by keyword
    "start=1, shape=2", "start=1, end=2", "start=[1, 1]", "end=[3, 2]", "shape=[3, 2]", "end=2",
    "rel_start=[0.5, 0.2], end=[5, 2]", "start=[2, 2], rel_shape=[0.5, 0.5]",
    "rel_start=[0.3, 0.3], rel_shape=[0.5, 0.5]", "rel_start=[0.3, 0.3], shape=[2, 2]",
    "rel_start=[0.3, 0.3], rel_end=[0.9, 0.9]", "rel_start=0.1, rel_end=0.35", "rel_end=0.5",
    "rel_shape=0.75", "start=[1.6, 0.2], end=[3.4, 2.9]", "start=np.array([1, 1]), shape=2",
    "start=ndd.tensor(1), shape=ndd.tensor([2, 3])", "start=ndd.tensor([1.6, 0.4]), shape=1",
    "rel_start=ndd.tensor([0.35, 0.35]), shape=[2, 2]",
    # axes
    "start=[1], shape=[2], axes=[-1]", "start=[1, 0], shape=[2, 3], axes=[0, 1]",
    "start=1, shape=2, axes=[]", "start=[1, 2], shape=[2, 3], axes=ndd.tensor([0, 1])",
    "start=1, shape=2, axes=0", "start=[1, 2], shape=[1, 1], axis_names='HW'",
    "start=[2], shape=[3], axis_names='W'", "start=1, shape=2, axis_names=''",
]  # fmt: skip

BAD_WINDOWS = [
    # nothing, or too much, that says where
    "", "axes=[0]", "[1, 1]", "None, [2, 2]", "[2, 2], None", "[1, 1], [2, 2], start=[1, 1]",
    "[1, 1], end=[2, 2]", "[1, 1], shape=[2, 2]", "start=[1, 1], end=[2, 2], shape=[1, 1]",
    "start=[1, 1], rel_start=[0.1, 0.1]", "start=[1, 1], rel_end=[0.5, 0.5], end=[2, 2]",
    # numbers of values
    "1, 2", "[1], [2]", "[1, 1, 1], [2, 2, 2]", "start=[1, 1, 1], shape=[2, 3]",
    "start=ndd.tensor([1, 1, 1]), shape=2", "[1.0, 2.0], [2, 2]",
    # axes
    "start=[1], shape=[2], axes=[2]", "start=[1], shape=[2], axes=[-3]",
    "start=[1, 1], shape=[2, 2], axes=[0, 0]", "start=[1, 1], shape=[2, 2], axes=[0, -2]",
    "start=1, shape=1, axis_names='C'", "start=1, shape=1, axis_names='HH'",
    "start=1, shape=1, axes=[0, 1], axis_names='HW'",
    # places
    "start=3, end=2", "start=[3, 1], shape=[-1, 1]", "rel_start=0.5, rel_shape=-0.4",
    "[0.5, 0.5], [-0.4, 0.1]", "[1, 1], [-4, 1]", "start=-1, shape=2", "start=[5, 3], shape=[2, 1]",
    "start=[7, 0], shape=[0, 0]", "rel_start=float('nan'), shape=1", "rel_start=1e30, shape=1",
    "[float('nan'), 0.0], [0.5, 0.5]", "start=0, shape=2**30",
    "start=0, shape=1, out_of_bounds_policy='foo'",
]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_agree(window):
    source = f"ndd.slice(x, {window}), ndd.slice(ndd.tensor(x, layout='HW'), {window})"
    assert_same(source, x=GRID)
    assert_same(f"ndd.slice(ndd.batch([x, x * 2 + 1]), {window})", x=GRID)


@pytest.mark.parametrize("window", BAD_WINDOWS)
def test_bad_windows_raise_the_same(window):
    assert_same(f"ndd.slice(ndd.tensor(x, layout='HW'), {window}).evaluate()", x=GRID)
    assert_same(f"ndd.slice(x, {window})", x=GRID)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.slice(ndd.tensor(x, layout='CHW'), start=[1, 0], shape=[2, 3])",
        "ndd.slice(ndd.tensor(x, layout='WHC'), start=[1, 0], shape=[1, 2])",
        "ndd.slice(ndd.tensor(x), start=[1, 0], shape=[2, 2])",
        "ndd.slice(ndd.tensor(x, layout='HWC'), start=[0, 1], shape=[2, 2], axes=[0, 1])",
        "ndd.slice(ndd.tensor(x, layout='HWC'), start=[0, 1], shape=[1, 2], axis_names='HC')",
        "ndd.slice(ndd.tensor(x[None]), start=[1, 0], shape=[2, 1])",
        "ndd.slice(ndd.tensor(x[None]), start=[0, 1], shape=[1, 2], axis_names='DC')",
        "ndd.slice(ndd.tensor(x, layout='ABC'), start=[0, 1], shape=[1, 2], axis_names='BC')",
        "ndd.slice(ndd.tensor(x, layout='ABC'), start=0, shape=1).evaluate()",
        "ndd.slice(ndd.tensor(x[0, 0]), start=0, shape=1).evaluate()",
        "ndd.slice(ndd.tensor(x[0, 0]), start=1, shape=2, axes=[0])",
        "ndd.slice(ndd.tensor(x[0, 0], layout='W'), start=1, shape=2, axis_names='W')",
        "ndd.slice(5, start=[1], shape=[2], axes=[0]).evaluate()",
    ],
)
def test_layouts_say_which_axes_are_meant(source):
    assert_same(source, x=CUBE)


PER_SAMPLE = [
    "start=ndd.batch([1, 2]), shape=ndd.batch([[2, 3], [3, 2]])",
    "start=ndd.batch([1, 2]), shape=2",
    "start=1, shape=2, axes=ndd.batch([[0], [1]])", "start=1, shape=2, axes=ndd.batch([0, 1])",
    "ndd.batch([[1, 2], [0, 1]]), ndd.batch([[2, 2], [3, 1]])", "[0.25, 0.25], [0.5, 0.5]",
    "ndd.tensor([0, 1]), [2, 1]", "ndd.batch([[0.1, 0.2], [0.3, 0.4]]), [0.5, 0.5]",
    "rel_start=ndd.batch([0.1, 0.2]), rel_end=ndd.batch([[0.5, 0.6], [0.7, 0.8]])",
    "start=ndd.batch([1, 5]), shape=2, out_of_bounds_policy='edge'",
    "end=ndd.batch([[1, 2], [3, 4]]), batch_size=2",
]  # fmt: skip


@pytest.mark.parametrize("window", PER_SAMPLE)
def test_each_sample_has_its_own_window(window):
    assert_same(f"ndd.slice(ndd.batch([x, x + 100]), {window})", x=GRID)


def test_samples_of_different_size():
    for window in ("[0.25, 0.25], [0.5, 0.5]", "start=1, shape=2", "rel_end=0.5", "start=[2, 1]"):
        assert_same(f"ndd.slice(ndd.batch([x, x[:3], x.T.copy()]), {window})", x=GRID)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.slice(ndd.tensor(x), ndd.batch([[1, 2], [0, 1]]), ndd.batch([[2, 2], [3, 1]]))",
        "ndd.slice(ndd.batch([x, x]), start=ndd.batch([1, 2, 3]), shape=1)",
        "ndd.slice(ndd.batch([x, x[:2]]), start=[0, 2], shape=[1, 2]).evaluate()",
        "ndd.slice()",
        "ndd.slice(x, [1, 1], [1, 1], [1, 1])",
        "ndd.slice(x, start=[0, 0], shape=[1, 1], fill_values=ndd.tensor(1.0))",
        "ndd.slice(x, start=0, shape=1, foo=1)",
        "ndd.slice(x, start=0, shape=1, image_type=types.RGB)",
        "ndd.slice(x, start=0, shape=1, output_dtype=ndd.float32, dtype=ndd.uint8)",
        "ndd.slice(x[:0], start=[0, 0], shape=[2, 0])",
        "ndd.slice(x, start=[5, 3], shape=[2, 2], out_of_bounds_policy='PAD')",
    ],
)
def test_calls_agree(source):
    assert_same(source, x=GRID)


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_agree(policy):
    for start, end in [(-3, 11), (-20, 30), (10, 12), (8, 11), (-10, -4), (-1, 3), (2, 9), (9, 9)]:
        source = "ndd.slice(ndd.tensor(x), start=[s], end=[e], axes=[0], out_of_bounds_policy=p)"
        for x in (LINE, LINE[:1], LINE[:2]):
            assert_same(f"{source}.evaluate()", x=x, s=start, e=end, p=policy)


def random_window(rng: random.Random) -> str:
    """A region in three dimensions, often out of bounds."""
    policy = rng.choice(POLICIES)
    axes = rng.sample(range(3), rng.randint(1, 3))
    start = [rng.randint(-5, 5) for _ in axes]
    shape = [rng.randint(0, 7) for _ in axes]
    return f"start={start}, shape={shape}, axes={axes}, out_of_bounds_policy={policy!r}"


WINDOWS_ON_CUBES = sorted({random_window(random.Random(seed)) for seed in range(100)})


@pytest.mark.parametrize("window", WINDOWS_ON_CUBES)
def test_random_windows_give_the_same(window):
    assert_same(f"ndd.slice(ndd.tensor(x), {window}, fill_values=-2).evaluate()", x=CUBE)


PADDED = "start=[-1, 0], shape=[4, 3], out_of_bounds_policy='pad'"


@pytest.mark.parametrize(
    "source",
    [
        f"ndd.slice(ndd.tensor(small, layout='HWC'), {PADDED}, fill_values=[1, 2, 3])",
        f"ndd.slice(ndd.tensor(small), {PADDED}, fill_values=[1, 2, 3])",
        f"ndd.slice(ndd.tensor(small, layout='CHW'), {PADDED}, fill_values=[10, 20])",
        f"ndd.slice(ndd.tensor(small, layout='HCW'), {PADDED}, fill_values=[10, 20])",
        f"ndd.slice(ndd.tensor(x[None, :2], layout='FCHW'), {PADDED}, fill_values=[10, 20])",
        f"ndd.slice(ndd.tensor(small, layout='HWC'), {PADDED}, fill_values=[1, 2])",
        f"ndd.slice(ndd.tensor(small, layout='HWX'), {PADDED}, fill_values=[1, 2, 3])",
        "ndd.slice(ndd.tensor(x, layout='HWC'), start=[-1, 1], shape=[3, 2], axis_names='WC', "
        "out_of_bounds_policy='pad', fill_values=[1, 2])",
        "ndd.slice(ndd.tensor(x, layout='HWC'), start=[-1, -1], shape=[3, 2], axis_names='WC', "
        "out_of_bounds_policy='pad', fill_values=[1, 2])",
        "ndd.slice(ndd.tensor(x, layout='CHW'), start=[-1, -1], shape=[3, 2], axis_names='WC', "
        "out_of_bounds_policy='pad', fill_values=[1, 2])",
        "ndd.slice(x, start=0, shape=1, out_of_bounds_policy='pad', fill_values=[1, 2])",
        "ndd.slice(ndd.tensor(x), start=0, shape=1, fill_values=[1, 2])",
        "none = []\nndd.slice(x, start=-1, shape=2, out_of_bounds_policy='pad', fill_values=none)",
    ],
)
def test_channels_are_filled_alike(source):
    assert_same(f"{source}.evaluate()", x=CUBE, small=CUBE[:2, :2, :3].copy())


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
)
def test_every_number_type_is_cut_and_filled_alike(dtype):
    source = "ndd.slice(x, start=-1, shape=4, axes=[0], out_of_bounds_policy='pad', fill_values=f)"
    for fill in (7.6, -1.0, 300.7, -70000.0, 3e9, 1e10, 1e19, 2e19, -1e20, float("nan"), 0.1):
        assert_same(source, x=LINE[:2].astype(dtype), f=fill)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_conversions_cut_off_and_saturate_alike(dtype):
    numbers = [-1.5, -0.4, 0.5, 1.5, 2.5, 254.7, 255.6, 300.7, 1e10, -1e10]
    source = f"ndd.slice(x, start=s, shape=e, axes=[0], dtype=ndd.{dtype}, out_of_bounds_policy=p)"
    for x in (np.float32(numbers), np.float64(numbers), np.int32([-1, 300, 70000]), LINE):
        for policy in ("error", "edge"):
            shape = len(x) + (0 if policy == "error" else 3)
            assert_same(source, x=x, s=0, e=shape, p=policy)


REFUSED = [
    "ndd.slice(np.zeros((2, 2)), start=0, shape=1, axis_names=5)",
    "ndd.slice(np.zeros((2, 2)), start=0, shape=1, out_of_bounds_policy=5)",
    "ndd.slice(np.zeros((2, 2)), start='a', shape=1)",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


ANY_TYPE = "cutting a window out works for every type"
DIFFERS = [
    Differs(
        "ndd.slice(np.array([[True, False]]), start=[1, 0], shape=[1, 1])",
        "ndd.tensor([[False]])",
        ANY_TYPE,
    ),
    Differs(
        "ndd.slice(ndd.tensor([types.RGB, types.GRAY]), start=1, shape=1, axes=[0])",
        "ndd.tensor([types.GRAY])",
        ANY_TYPE,
    ),
    Differs(
        "ndd.slice(np.float32([[1.6, 300, -1]]), start=0, shape=[3, 1], dtype=ndd.int16)",
        "ndd.tensor(np.int16([[1, 300, -1]]))",
        "every element type can be asked for",
    ),
    Differs(
        "ndd.slice(np.arange(5), np.uint8([1]), np.uint8([2]), axes=[0])",
        "ndd.tensor(np.arange(1, 3))",
        "integers of any size say where",
    ),
    Differs(
        "ndd.slice(np.arange(10), np.array([0.25]), np.array([0.5]), axes=[0])",
        "ndd.tensor(np.arange(3, 8))",
        "floats of any size say where",
    ),
    Differs(
        "ndd.slice(np.arange(4).reshape(1, 1, 2, 2, 1), start=1, shape=1, axes=[2])",
        "ndd.tensor(np.arange(2, 4).reshape(1, 1, 1, 2, 1))",
        "data may have any number of dimensions",
    ),
    Differs(
        "ndd.slice(np.arange(4).reshape(2, 2), start=ndd.tensor([1]), shape=[1, 1])",
        "ndd.tensor(np.array([[3]]))",
        "one value is for all axes, as in a list",
    ),
    *(
        Differs(
            f"ndd.slice(np.arange(0), start=-3, end=4, axes=[0], out_of_bounds_policy={policy!r})",
            "RuntimeError",
            "data without elements has none to repeat; DALI reads other memory",
            ask=False,
        )
        for policy in ("edge", "reflect", "reflect_101", "wrap")
    ),
    Differs(
        "ndd.slice(ndd.batch(np.zeros((0, 3, 3), np.uint8)), start=0, shape=1)",
        "ndd.batch(np.zeros((0, 1, 1), np.uint8))",
        "no samples give no samples; DALI crashes",
        ask=False,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("ndd.slice(np.zeros((2, 2)), start=1, shape=2)", "out_of_bounds|policy"),
        ("ndd.slice(np.zeros((2, 2)), start=1, shape=-1)", "shape"),
        ("ndd.slice(np.zeros((2, 2)), start=0, shape=1, axes=[5])", "ax[ie]s"),
        ("ndd.slice(np.zeros((2, 2)), start=0, shape=1, foo=1)", "foo"),
        ("ndd.slice(np.zeros((2, 2)), start=0, rel_start=0.1)", "rel_start"),
    ],
)
def test_errors_name_the_same_thing(source, says):
    assert_same(source, says=says)
