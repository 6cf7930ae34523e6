"""`coord_transform` and `coord_flip`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

TOL = 1e-5
"""Sums of a few products of numbers around one, in another order."""

POINTS = np.float32([[1, 2], [3, 4], [-0.5, 0.25]])
PAIR = "ndd.batch([p, p * 2])"

MAPS = [
    "", "M=2", "M=0.5, T=1", "M=m", "M=[1, 2, 3, 4]", "M=np.float32(m)", "M=ndd.tensor(m)",
    "M=wide, T=[1, 2, 3]", "M=wide, T=1", "M=row", "M=[1, 2]", "T=[1, 2]", "T=1", "T=(0.5, -1)",
    "T=np.array([1, 2])", "M=m, T=ndd.tensor([2.0, 3])", "T=ndd.tensor(2.0)", "M=ndd.tensor(2.0)",
    "MT=[1, 2, 3, 4, 5, 6]", "MT=both", "MT=np.array(both)", "MT=ndd.tensor(both)",
    "MT=[1, 2, 3]", "MT=5", "M=ndd.tensor(wide)", "M=float('nan')", "T=float('inf')",
    # rejected
    "M=[1, 2, 3]", "M=both", "M=np.ones((4, 2, 1))", "T=[1, 2, 3]", "MT=[1, 2, 3, 4]",
    "MT=both, T=1", "MT=both, M=1", "T=ndd.tensor([[2.0, 3]])", "M=none", "T=none", "foo=1",
]  # fmt: skip


@pytest.mark.parametrize("arguments", MAPS)
def test_maps_agree(arguments):
    # In variables: DALI does not accept nested list literals in the call.
    given = "m, wide, row = [[1, 2], [3, 4]], [[1, 2], [3, 4], [5, 6]], [[1, 2]]\n"
    given += "both, none = [[1, 2, 3], [4, 5, 6]], []\n"
    assert_same(f"{given}ndd.coord_transform(p, {arguments})", tol=TOL, p=POINTS)
    assert_same(f"{given}ndd.coord_transform(ndd.batch([p, p * 2]), {arguments}).evaluate()",
                tol=TOL, p=POINTS)  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        "M=ndd.batch([1.0, 2.0])",
        "M=ndd.batch([m, m * 2]), T=ndd.batch([1.0, 2.0])",
        "T=ndd.batch([[1, 2], [3, 4]])",
        "MT=ndd.batch([mt, mt * 2])",
        "M=ndd.tensor(m), T=ndd.batch([1.0, 2.0])",
        "T=ndd.batch([1.0, 2.0, 3.0])",
    ],
)
def test_each_sample_has_its_own_map(arguments):
    m, mt = np.float32([[1, 2], [4, 5]]), np.float32([[1, 2, 3], [4, 5, 6]])
    assert_same(f"ndd.coord_transform({PAIR}, {arguments})", tol=TOL, p=POINTS, m=m, mt=mt)


@pytest.mark.parametrize("width", range(1, 7))
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6])
def test_points_of_every_width(width, rows):
    rng = np.random.default_rng(width)
    points = rng.normal(size=(300, width)).astype(np.float32)
    m = rng.normal(size=(rows, width)).astype(np.float32)
    t = rng.normal(size=rows).astype(np.float32)
    assert_same("ndd.coord_transform(p, M=m, T=t)", tol=TOL, p=points, m=m, t=t)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "f4"])
def test_element_types_agree(dtype):
    same = {"u1": "uint8", "u2": "uint16", "i2": "int16", "i4": "int32", "f4": "float32"}[dtype]
    points = np.array([[1, 2], [3, 4], [100, 201]]).astype(dtype)
    for factor in (1, 0.5, -100.5, 1e10):
        source = f"ndd.coord_transform(p, M=f), ndd.coord_transform(p, M=f, dtype=ndd.{same})"
        assert_same(source, tol=TOL, p=points, f=factor)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.coord_transform(np.zeros((2, 2, 3), np.float32), T=[1, 2, 3])",
        "ndd.coord_transform(ndd.tensor(np.zeros((1, 2, 3), np.float32), layout='ABC'), T=1)",
        "ndd.coord_transform(ndd.batch([p, p[:1], p[:0]]), T=[1, 2])",
        "ndd.coord_transform(np.zeros((3, 0), np.float32))",
        "ndd.coord_transform(np.array([[np.inf, 2]], np.float32), M=2)",
        "ndd.coord_transform(np.array([[16777217, 2**31 - 1]], np.int32))",
        "ndd.coord_transform(np.array([[16777217, 2**31 - 1]], np.int32), dtype=ndd.int32)",
        "ndd.coord_transform(np.float32(3), M=2)",
        "ndd.coord_transform(p, dtype='a')",
        "ndd.coord_transform()",
    ],
)
def test_calls_of_coord_transform_agree(source):
    assert_same(source, tol=TOL, p=POINTS)


FLIPS = [
    "", "flip_y=1", "flip_x=0, flip_y=1", "flip_x=0", "flip_z=1", "flip_y=2, center_y=2",
    "center_x=0.3", "center_x=-1, flip_y=1, center_y=0.7", "layout='xy'", "layout='yx'",
    "layout='yx', flip_x=0, flip_y=1", "layout='xyz'", "layout=''", "layout=None",
    "flip_x=ndd.tensor(0)", "center_x=ndd.tensor(0.2)", "center_x=np.float64(0.1)",
    # rejected
    "layout='xw'", "layout='XY'", "layout='x'", "foo=1", "center_x=ndd.tensor([1.0, 2.0])",
]  # fmt: skip


@pytest.mark.parametrize("arguments", FLIPS)
def test_flips_agree(arguments):
    assert_same(f"ndd.coord_flip(p, {arguments})", tol=1e-6, p=POINTS)
    assert_same(f"ndd.coord_flip({PAIR}, {arguments}).evaluate()", tol=1e-6, p=POINTS)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.coord_flip(ndd.batch([p, p]), center_x=ndd.batch([1.0, 2]), flip_x=ndd.batch([0, 1]))",
        "ndd.coord_flip(p[:, :1].copy()), ndd.coord_flip(p[:, :1].copy(), layout='x')",
        "ndd.coord_flip(np.float32([[0.1, 0.2, 0.3]]), layout='xyz', flip_z=1, center_z=1)",
        "ndd.coord_flip(np.float32([[0.1, 0.2, 0.3]]), layout='zyx', flip_z=1)",
        "ndd.coord_flip(np.float32([[0.1, 0.2, 0.3, 0.4]]))",
        "ndd.coord_flip(np.zeros((3, 0), np.float32))",
        "ndd.coord_flip(np.zeros((0, 2), np.float32))",
        "ndd.coord_flip(ndd.batch([p, p[:1], p[:0]]))",
        "ndd.coord_flip(np.float32(0.25))",
        "ndd.coord_flip()",
    ],
)
def test_calls_of_coord_flip_agree(source):
    assert_same(source, tol=1e-6, p=POINTS)


REFUSED = [
    "ndd.coord_flip(np.zeros((1, 2), np.float32), layout=5)",
    "ndd.coord_transform(np.zeros((1, 2), np.float32), M='a')",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


ANY_TYPE = "points may be of every number type"
NONE = "no points are moved nowhere"
DIFFERS = [
    Differs("ndd.coord_transform(np.array([[1, 2]]))", "ndd.tensor([[1.0, 2.0]])", ANY_TYPE),
    Differs(
        "ndd.coord_transform(np.array([[2**53, 0]]), T=2, dtype=ndd.float64)",
        "ndd.tensor(np.array([[2.0**53 + 2, 2]]))",
        "64-bit numbers are computed with in double precision",
    ),
    Differs(
        "ndd.coord_transform(np.float32([[1, 3]]), M=0.5, dtype=ndd.int32)",
        "ndd.tensor([[1, 2]])",
        "every element type can be asked for",
    ),
    Differs("ndd.coord_transform(np.float32([1, 2]), M=2)", "ndd.tensor([2.0, 4.0])",
            "one point is enough"),
    Differs("ndd.coord_transform(np.zeros((2, 7), np.float32), T=1)",
            "ndd.tensor(np.ones((2, 7), np.float32))", "points may have many coordinates"),
    Differs("ndd.coord_transform(np.zeros((0, 3), np.float32), T=[1, 2, 3])",
            "ndd.tensor(np.zeros((0, 3), np.float32))", NONE),
    Differs("ndd.coord_transform(ndd.batch(np.zeros((0, 3, 2), np.float32)))",
            "ndd.batch(np.zeros((0, 3, 2), np.float32))", NONE),
    Differs("ndd.coord_transform(np.float32([[1, 2]]), MT=ndd.tensor(3.0))",
            "ndd.tensor([[3.0, 6.0]])", "a number as a tensor is that number"),
    Differs("ndd.coord_flip(np.float64([[0.25, 1]]))", "ndd.tensor(np.float64([[0.75, 1]]))",
            ANY_TYPE),
    Differs("ndd.coord_flip(np.float32([[0.25, 0.5, 1]]), flip_z=1)",
            "ndd.tensor(np.float32([[0.75, 0.5, 0]]))", "three coordinates are x, y and z"),
    Differs("ndd.coord_flip(np.float32([[0.25, 0.5, 1, 0]]), layout='xyxy')",
            "ndd.tensor(np.float32([[0.75, 0.5, 0, 0]]))", "boxes are points too"),
    Differs("ndd.coord_flip(np.zeros((2, 1, 1), np.float32))",
            "ndd.tensor(np.ones((2, 1, 1), np.float32))", "points may be arranged in any way"),
    Differs("ndd.coord_flip(ndd.tensor(np.float32([[1, 2]]), layout='AB'))",
            "ndd.tensor(np.float32([[0, 2]]), layout='AB')", "the layout stays"),
    Differs("ndd.coord_flip(ndd.batch(np.zeros((0, 3, 2), np.float32)))",
            "ndd.batch(np.zeros((0, 3, 2), np.float32))", NONE, ask=False),
]  # fmt: skip


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
