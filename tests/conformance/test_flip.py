"""`flip`, and what all operators have in common: the forms of arguments and inputs."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

LAYOUTS = ["HWC", "CHW", "FHWC", "DHWC", "FCHW", "CDHW", "FDHWC", "FCDHW"]
FLAGS = [
    {},
    {"vertical": 1},
    {"vertical": 1, "horizontal": 0},
    {"depthwise": 1, "horizontal": 0},
    {"depthwise": 1, "vertical": 1, "horizontal": 1},
    {"horizontal": 0},
]
ROW = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)


def cube(rank: int, dtype: str = "u1") -> np.ndarray:
    shape = (2, 3, 4, 2, 3)[:rank]
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_flipped_alike(layout, flags):
    source = "ndd.flip(ndd.tensor(x, layout=l), **f), ndd.flip(ndd.batch([x, x], layout=l), **f)"
    assert_same(source, x=cube(len(layout)), l=layout, f=flags)


@pytest.mark.parametrize("rank", range(6))
def test_without_a_layout_the_rank_decides(rank):
    assert_same("ndd.flip(ndd.tensor(x)), ndd.flip(ndd.batch([x, x]), vertical=1)", x=cube(rank))


@pytest.mark.parametrize(
    "layout", ["HW", "WH", "WHC", "XYZ", "HCW", "NHW", "HWD", "DHW", "hwc", "CHWF", "NHWC", "CFHW"]
)
def test_other_layouts_are_refused(layout):
    source = "ndd.flip(ndd.tensor(x, layout=l)).evaluate()"
    assert_same(source, says="HWC", x=cube(len(layout)), l=layout)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_every_number_type_is_flipped_alike(dtype):
    assert_same("ndd.flip(x), ndd.flip(x, vertical=1, horizontal=0)", x=cube(3, dtype))


def test_samples_of_different_size():
    samples = [cube(3)[:, :n] for n in (1, 2, 3)]
    assert_same("ndd.flip(ndd.batch([a, b, c]))", **dict(zip("abc", samples, strict=True)))


VALUES = [
    # constants
    "0", "1", "True", "False", "2", "-1", "None", "1.0", "0.4", "[1]", "[0]", "(0,)",
    "np.int32(1)", "np.bool_(False)", "np.float32(0.6)", "np.array(0)", "np.array([0])",
    # values
    "ndd.tensor(0)", "ndd.tensor([1])", "ndd.tensor(1.5)", "ndd.tensor(0.4)", "ndd.tensor(True)",
    "ndd.tensor(np.int64(1))", "ndd.tensor(np.uint8(0))", "ndd.tensor(1) + -1",
    # one for each sample
    "ndd.batch([1, 0])", "ndd.batch([[1], [0]])", "ndd.batch([1.5, 0])",
    "ndd.batch([True, False])", "ndd.batch(np.uint8([0, 7]))", "ndd.batch([0, 1]) + 0",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_arguments_are_taken_in_the_same_forms(value):
    # In a variable: DALI treats some literals in the call differently.
    for call in (
        "ndd.flip(ndd.batch([x, x]), horizontal=v)",
        "ndd.flip(ndd.tensor(x), horizontal=v)",
        "ndd.flip(x, vertical=v, horizontal=0)",
    ):
        assert_same(f"v = {value}\n{call}", x=ROW)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.flip(ndd.batch([x, x]), horizontal=ndd.batch([1, 0]), vertical=ndd.tensor(1))",
        "ndd.flip(ndd.batch([x, x]), horizontal=ndd.batch([1, 0]), vertical=ndd.batch([0, 1]))",
        "ndd.flip(ndd.batch([x, x]), batch_size=2)",
        "ndd.flip(ndd.tensor(x), batch_size=2), ndd.flip(ndd.tensor(x), batch_size=None)",
        "ndd.flip(ndd.tensor(x), device='cpu'), ndd.flip(ndd.tensor(x), device=ndd.Device.CPU)",
        "ndd.flip(ndd.tensor(x), device=None).device, ndd.flip(x).device",
        "ndd.flip(x), ndd.flip(x.tolist()), ndd.flip([x, x])",
        "ndd.flip(ndd.tensor(x[:0])), ndd.flip(ndd.tensor(x[:, :0]))",
        # rejected
        "ndd.flip()",
        "ndd.flip(x, 1)",
        "ndd.flip(x, x)",
        "ndd.flip(input=x)",
        "ndd.flip(x, foo=1)",
        "ndd.flip(None)",
        "ndd.flip(5)",
        "ndd.flip([x, x[:, :1]])",
        "ndd.flip(ndd.batch([], dtype=ndd.uint8))",
        "ndd.flip(ndd.batch([x, x]), horizontal=ndd.batch([1, 0, 1]))",
        "ndd.flip(ndd.batch([x, x]), horizontal=ndd.batch([1]))",
        "ndd.flip(x, horizontal={})",
        "ndd.flip(x, horizontal=object())",
        "ndd.flip(x, device='mixed')",
        "ndd.flip(x, device='foo')",
        "ndd.flip(x, device='cpu:0')",
        "ndd.flip(ndd.tensor(x), batch_size=-1)",
        "ndd.flip(ndd.tensor(x), batch_size='a')",
    ],
)
def test_calls_agree(source):
    assert_same(source, x=ROW)


REFUSED = [
    "ndd.flip('a')",
    "ndd.flip(np.zeros((1, 1, 1)), horizontal='a')",
    "pair = [1, 0]\nndd.flip(np.zeros((1, 1, 1)), horizontal=pair)",
    "pair = [1, 0]\nndd.flip(ndd.batch(np.zeros((2, 1, 1, 1))), horizontal=pair).evaluate()",
    "ndd.flip(ndd.batch(np.zeros((2, 1, 1, 1))), horizontal=np.array([1, 0])).evaluate()",
    "ndd.flip(np.zeros((1, 1, 1)), device=0)",
    "ndd.flip(ndd.tensor(np.zeros((1, 1, 1))), batch_size=1.5)",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


ANY_TYPE = "moving elements about works for every type"
NONE = "nothing to flip is nothing flipped"
DIFFERS = [
    Differs(
        "ndd.flip(np.float16([[[1], [2]]]))",
        "ndd.tensor(np.float16([[[2], [1]]]), layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.flip(np.array([[[True], [False]]]))",
        "ndd.tensor([[[False], [True]]], layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.flip(ndd.tensor(np.zeros((2, 2, 0))))",
        "ndd.tensor(np.zeros((2, 2, 0)), layout='HWC')",
        NONE,
    ),
    Differs(
        "ndd.flip(ndd.batch(np.zeros((0, 2, 2, 3))))",
        "ndd.batch(np.zeros((0, 2, 2, 3)), layout='HWC')",
        NONE,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("ndd.flip(np.zeros((2, 2)))", "dimensions"),
        ("ndd.flip(np.zeros((1, 1, 1)), foo=1)", "foo"),
        ("ndd.flip(ndd.batch(np.zeros((2, 1, 1, 1))), horizontal=ndd.batch([1]))", "batch size"),
        ("ndd.flip(np.zeros((1, 1, 1)), device='mixed')", "mixed"),
    ],
)
def test_errors_name_the_same_thing(source, says):
    assert_same(source, says=says)
