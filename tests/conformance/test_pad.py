"""`pad`: to the largest sample, to a given shape, and aligned."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

CALLS = [
    "", "fill_value=7.6", "fill_value=-1", "align=4", "align=[3, 4]", "align=1",
    "shape=5", "shape=[2, 5]", "shape=[1, 1]", "shape=[-1, 4]", "shape=[-5, 4]",
    "shape=[0, 0]", "shape=[5, 3], align=4", "shape=[1, -1], align=[1, 4]", "shape=[3.7, 4.2]",
    "axes=[1]", "axes=[0]", "axes=[-1]", "axes=1, shape=5", "axes=[1, 0], shape=[3, 4]",
    "axes=[1], align=5", "axis_names='H'", "axis_names='W', align=2",
    "axis_names='WH', shape=[5, 4]", "axis_names=''", "axes=[]", "shape=[]", "align=[]",
    "shape=ndd.tensor([3, 3])", "shape=ndd.tensor(4)", "shape=ndd.tensor([3.7, 5.2])",
    "align=ndd.tensor([2, 4])", "axes=ndd.tensor([1])", "fill_value=ndd.tensor(3)",
    "fill_value=np.float32(2.5)", "fill_value=True", "shape=np.array([4, 4])",
    # rejected
    "axes=[2]", "axes=[-3]", "axes=[0, 0]", "axes=[0, -2]", "axis_names='C'", "axis_names='HH'",
    "axis_names='H', axes=[1]", "align=0", "align=-2", "align=[2, 0]", "shape=[5, 3], axes=[1]",
    "align=[3, 4], axes=[1]", "shape=[1, 2, 3]", "foo=1", "fill_value=ndd.tensor([3, 4])",
    "shape=ndd.batch([1, 2, 3])",
]  # fmt: skip

PER_SAMPLE = [
    "shape=ndd.batch([[2, -1], [4, 4]])", "shape=ndd.batch([[2, -1], [4, -1]])",
    "shape=ndd.batch([5, 6])", "align=ndd.batch([5, 7])", "align=ndd.batch([[5, 2], [7, 3]])",
    "align=ndd.batch([5, 7]), shape=ndd.batch([6, -1])", "fill_value=ndd.batch([5, 7]), shape=4",
    "axes=ndd.batch([[1], [0]])", "axes=ndd.batch([1, 1])", "fill_value=ndd.batch([1.9, -1.9])",
    "axes=ndd.batch([1, 0]), shape=4", "align=ndd.batch([1, 0])",
]  # fmt: skip


@pytest.mark.parametrize("arguments", CALLS)
def test_calls_agree(arguments):
    # In variables: DALI treats some literals in the call differently.
    batch = "ndd.batch([[[1, 2], [3, 4]], [[5, 6, 7]]], layout='HW')"
    given = f"given = dict({arguments})\n"
    assert_same(f"{given}ndd.pad({batch}, **given).evaluate()")
    assert_same(f"{given}ndd.pad(ndd.tensor([[1, 2]], layout='HW'), **given).evaluate()")


@pytest.mark.parametrize("arguments", PER_SAMPLE)
def test_each_sample_is_padded_its_own_way(arguments):
    batch = "ndd.batch([[[1, 2], [3, 4]], [[5, 6, 7]]])"
    assert_same(f"ndd.pad({batch}, {arguments}).evaluate()")


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4"])
def test_every_type_is_filled_alike(dtype):
    for fill in (7.6, 0.4, -1.5, 300, -70000, 3e9, 1e10, 1e20, float("nan"), float("inf")):
        source = "ndd.pad(ndd.batch([x, x[:1]]), fill_value=f, align=3)"
        assert_same(source, x=np.ones(2, dtype), f=fill)


@pytest.mark.parametrize(
    "shapes", [[(2, 3, 3), (4, 1, 3)], [(0, 2), (1, 0)], [(1, 0, 2), (0, 3, 2)], [(1,), (5,), (3,)]]
)
def test_samples_of_any_shape(shapes):
    samples = [np.arange(np.prod(s), dtype=np.int16).reshape(s) + 1 for s in shapes]
    assert_same("ndd.pad(ndd.batch(x)), ndd.pad(ndd.batch(x), align=4, fill_value=-1)", x=samples)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.pad([1, 2], shape=3), ndd.pad(np.zeros((1, 2), np.uint8), align=2)",
        "ndd.pad(ndd.tensor([[1, 2]]), batch_size=2, shape=4)",
        "ndd.pad(ndd.tensor([[1, 2]]), shape=ndd.batch([[2, 2], [3, 3]]))",
        "ndd.pad(ndd.tensor(np.zeros((0, 3), np.int32)), shape=[2, 4], fill_value=1)",
        "ndd.pad(ndd.tensor(5)).evaluate()",
        "ndd.pad(5.0, shape=[3]).evaluate()",
        "ndd.pad()",
        "ndd.as_tensor(ndd.pad(ndd.batch([[1, 2, 3], [4]])))",
        "ndd.pad(ndd.batch([[1, 2], [3]]) + 1)",
    ],
)
def test_edges_agree(source):
    assert_same(source)


REFUSED = [
    "ndd.pad(ndd.tensor([1, 2]), fill_value='a', shape=3)",
    "ndd.pad(ndd.tensor([1, 2]), shape='a')",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


ANY_TYPE = "elements of every type can be put beside others"
DIFFERS = [
    Differs(
        "ndd.pad(ndd.tensor(np.array([1.5])), shape=2)", "ndd.tensor(np.array([1.5, 0]))", ANY_TYPE
    ),
    Differs(
        "ndd.pad(ndd.tensor([types.GRAY]), shape=2)",
        "ndd.tensor([types.GRAY, types.RGB])",
        ANY_TYPE,
    ),
    Differs(
        "ndd.pad(ndd.tensor([[1, 2]]), shape=ndd.tensor([2]))",
        "ndd.tensor([[1, 2], [0, 0]])",
        "one value is for all axes, as in a list",
    ),
    Differs(
        "ndd.pad(ndd.batch(np.zeros((0, 3), np.int32)), shape=[5])",
        "ndd.batch(np.zeros((0, 5), np.int32))",
        "no samples give no samples; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.pad(ndd.tensor([1, 2]), shape=2**40).evaluate()",
        "RuntimeError",
        "DALI takes the lower 32 bits",
    ),
    Differs(
        "ndd.pad(ndd.tensor([1, 2]), align=np.array([2**62])).evaluate()",
        "RuntimeError",
        "DALI runs out of memory",
        ask=False,
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("ndd.pad(np.zeros((2, 2), np.uint8), align=0)", "align"),
        ("ndd.pad(np.zeros((2, 2), np.uint8), axes=[4])", "ax[ie]s"),
        ("ndd.pad(np.zeros((2, 2), np.uint8), shape=[1, 2, 3])", "shape"),
    ],
)
def test_errors_name_the_same_thing(source, says):
    assert_same(source, says=says)
