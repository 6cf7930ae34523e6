"""`transforms.*`: matrices from arguments, combined with others."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

TOL = 1e-5
"""Single precision, with sines and cosines of another library."""

CALLS = [
    # translation
    "translation(offset=[1, 2])", "translation(offset=1)", "translation(offset=[1, 2, 3])",
    "translation(offset=[1, 2, 3, 4])", "translation(offset=list(range(6)))",
    "translation(offset=[1, 2], batch_size=2)", "translation(offset=ndd.tensor([1, 2]))",
    "translation(offset=ndd.tensor(1.0))", "translation(offset=np.array([1.0, 2.0]))",
    "translation(offset=ndd.batch([[1.0, 2], [3, 4.5]]))", "translation(None, offset=[1, 2])",
    "translation(offset=[1, 2], device='cpu')", "translation(offset=[float('nan'), 1e39])",
    # scale
    "scale(scale=[2, 3])", "scale(scale=2)", "scale(scale=2, ndim=2)", "scale(scale=2, ndim=0)",
    "scale(scale=2, ndim=-1)", "scale(scale=[2, 3], ndim=3)", "scale(scale=[2, 3], center=[1, 1])",
    "scale(scale=[2, 3], center=1)", "scale(scale=2, center=[1, 5], ndim=2)",
    "scale(scale=ndd.tensor(2.0), ndim=2)", "scale(scale=ndd.batch([2.0, 3.0]), ndim=2)",
    "scale(scale=ndd.batch([[2.0, 3.0], [4.0, 5]]), center=ndd.batch([[1.0, 1], [2.0, 2]]))",
    "scale(scale=ndd.tensor([2.0, 3.0]), center=ndd.tensor(1.0))", "scale(scale=[2, 3, 4])",
    # rotation
    "rotation(angle=90)", "rotation(angle=30)", "rotation(angle=-725.5)",
    "rotation(angle=30, center=[1, 2])", "rotation(angle=30, center=1)",
    "rotation(angle=30, axis=[1, 0, 0])", "rotation(angle=30, axis=[1, 2, 3])",
    "rotation(angle=30, axis=[1, 2, 3], center=[1, 2, 3])", "rotation(angle=30, axis=[0, 0, 0])",
    "rotation(angle=30, axis=[1e-30, 0, 0])",
    "rotation(angle=30, axis=1)", "rotation(angle=ndd.batch([30, 60]))",
    "rotation(angle=ndd.batch([30.0, 60]), center=ndd.batch([[1.0, 2], [3, 4]]))",
    "rotation(angle=ndd.batch([30.0, 60]), axis=ndd.batch([[1.0, 2, 3], [3, 4, 5]]))",
    "rotation(angle=ndd.batch([30.0, 60]), axis=ndd.tensor([1.0, 2, 3]))",
    "rotation(angle=float('nan'))",
    # shear
    "shear(shear=[1, 2])", "shear(shear=[1, 2, 3, 4, 5, 6])", "shear(shear=three)",
    "shear(shear=np.float32(three))", "shear(shear=ndd.tensor(np.float32(three)))",
    "shear(angles=[30, 45])", "shear(angles=[10, 20, 30, 40, 50, 60])",
    "shear(shear=[1, 2], center=[1, 2])", "shear(shear=[1, 2], center=1)",
    "shear(shear=[1, 2, 3, 4, 5, 6], center=[1, 2, 3])",
    "shear(angles=ndd.batch([[10.0, 20], [30.0, 40]]))",
    "shear(shear=ndd.batch([[10.0, 20], [30.0, 40]]))",
    # crop
    "crop()", "crop(from_start=[0, 0], from_end=[10, 20])", "crop(from_start=2, from_end=5)",
    "crop(from_start=[1, 2], from_end=[10, 20], to_start=[3, 4], to_end=[5, 7])",
    "crop(from_start=[10, 20], from_end=[1, 2], to_start=[3, 4], to_end=[5, 7])",
    "crop(from_start=[1, 20], from_end=[10, 2], to_start=[3, 4], to_end=[5, 1], absolute=True)",
    "crop(from_start=[1, 2], from_end=[1, 20])", "crop(from_start=1, from_end=[10, 20, 30])",
    "crop(to_end=[5, 6])", "crop(to_end=ndd.batch([[5, 6], [7, 8.0]]))",
    "crop(to_end=ndd.batch([5, 6]))",
    "crop(to_end=ndd.tensor([5, 6]), from_end=ndd.batch([[5, 6], [7, 8.0]]))",
]  # fmt: skip

BAD_CALLS = [
    "translation()", "translation(offset=none)", "translation(offset=list(range(7)))",
    "translation(offset=ndd.tensor([[1.0, 2.0]]))", "translation(offset=[1, 2], foo=1)",
    "translation([1, 2])", "scale()", "scale(scale=2, ndim=9)", "scale(scale=2, center=[1, 1])",
    "scale(scale=[2, 3], center=[1, 1, 1])", "scale(scale=[1, 2], center=none)", "rotation()",
    "rotation(angle=30, center=[1, 2, 3])", "rotation(angle=30, axis=[1, 0])",
    "rotation(angle=30, axis=[1, 2, 3], center=[1, 2])", "shear()", "shear(shear=1)",
    "shear(shear=[1, 2, 3])", "shear(shear=ndd.tensor(np.ones((1, 2))))", "shear(shear=none)",
    "shear(shear=[1, 2], angles=[30, 45])", "shear(angles=30)",
    "shear(shear=[1, 2], center=[1, 2, 3])", "crop(from_start=[1, 2], from_end=[10, 20, 30])",
    "crop(to_end=none)", "combine()", "combine(np.eye(2, 3, dtype=np.float32))",
]  # fmt: skip

GIVEN = "three, none = [[1, 2], [3, 4], [5, 6]], []\n"


@pytest.mark.parametrize("call", CALLS)
def test_transforms_agree(call):
    assert_same(f"{GIVEN}ndd.transforms.{call}", tol=TOL)


@pytest.mark.parametrize("call", BAD_CALLS)
def test_bad_calls_raise_the_same(call):
    assert_same(f"{GIVEN}ndd.transforms.{call}.evaluate()")


ADDED = [
    "translation(t, offset=[1, 2]{})", "scale(t, scale=[2, 3]{})", "scale(t, scale=2{})",
    "scale(t, scale=2, ndim=3{})", "scale(t, scale=2, center=[1, 1]{})", "rotation(t, angle=30{})",
    "rotation(t, angle=30, center=[1, 2]{})", "shear(t, shear=[1, 2]{})",
    "crop(t, to_end=[5, 6]{})", "translation(ndd.batch([t, t + 1]), offset=[1, 2]{})",
    "translation(t, offset=ndd.batch([[1, 2], [3, 4]]){})",
    # rejected
    "translation(t, offset=[1, 2, 3]{})", "translation(t, offset=1{})",
    "rotation(t, angle=30, axis=[0, 0, 1]{})", "crop(t, to_end=5{})", "crop(t{})",
    "shear(t, shear=[1, 2, 3, 4, 5, 6]{})", "translation(t[:, :2], offset=[1, 2]{})",
    "translation(t[0], offset=[1, 2]{})",
]  # fmt: skip


@pytest.mark.parametrize("call", ADDED)
def test_a_transform_is_added_to_another(call):
    matrix = np.float32([[1, 2, 3], [-4, 5, 0.5]])
    for order in ("", ", reverse_order=True"):
        assert_same(f"ndd.transforms.{call.format(order)}.evaluate()", tol=TOL, t=matrix)


def test_a_transform_of_three_dimensions_is_added_to_another():
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    call = "ndd.transforms.rotation(t, angle=30, axis=[0, 0, 1])"
    assert_same(f"{call}, ndd.transforms.scale(t, scale=[1, 2, 3], center=1)", tol=TOL, t=matrix)


@pytest.mark.parametrize(
    "call",
    [
        "(a, b)",
        "(a, b, reverse_order=True)",
        "(a, b, a, b)",
        "(a, b, a, reverse_order=True)",
        "(a, ndd.transforms.translation(offset=ndd.batch([[1, 2], [3, 4.0]])))",
        "(ndd.batch([a, b]), b)",
        "(*[a] * 99)",
        # rejected
        "(a, c)",
        "(a, a[:, :2])",
        "(a, a[0])",
        "(np.eye(7, 8, dtype=np.float32), np.eye(7, 8, dtype=np.float32))",
        "(a, None)",
    ],
)
def test_transforms_combine_alike(call):
    a, b = np.float32([[1, 0, 1], [0, 1, 2]]), np.float32([[2, 1, 0], [0, 3, 0.5]])
    c = np.eye(3, 4, dtype=np.float32)
    assert_same(f"ndd.transforms.combine{call}.evaluate()", tol=TOL, a=a, b=b, c=c)


REFUSED = ["ndd.transforms.rotation(angle=[30, 60]).evaluate()"]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


EYE = "np.eye(2, 3, dtype=np.float32)"
MOVED = "ndd.tensor(np.float32([[1, 0, 1], [0, 1, 2]]), layout='**')"
DIFFERS = [
    Differs("ndd.transforms.translation(np.eye(2, 3), offset=[1, 2])", MOVED,
            "a matrix may be of every number type"),
    Differs("ndd.transforms.translation(np.eye(2, 3, dtype=np.int32), offset=[1, 2])", MOVED,
            "a matrix may be of every number type"),
    Differs(f"ndd.transforms.combine(np.eye(2, 3), {EYE})",
            f"ndd.tensor({EYE}, layout='**')", "a matrix may be of every number type"),
    Differs(f"ndd.transforms.translation(ndd.tensor({EYE}, layout='HW'), offset=[1, 2])", MOVED,
            "the layout of a matrix means nothing"),
    Differs("ndd.transforms.rotation(angle=ndd.batch([[90], [0]]))",
            "ndd.transforms.rotation(angle=ndd.batch([90, 0]))", "a list of one is a number"),
    Differs("ndd.transforms.shear(shear=ndd.tensor([1.0, 2, 3, 4, 5, 6]))",
            "ndd.transforms.shear(shear=[1, 2, 3, 4, 5, 6])", "a tensor is taken as a list is"),
    Differs("none = []\nndd.transforms.scale(scale=none).evaluate()", "RuntimeError",
            "DALI reads other memory", ask=False),
    Differs("e = ndd.batch(np.zeros((0, 2, 3), np.float32))\nndd.transforms.combine(e, e)",
            "ndd.batch(np.zeros((0, 2, 3), np.float32), layout='**')",
            "no samples give no samples; DALI crashes", ask=False),
]  # fmt: skip


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
