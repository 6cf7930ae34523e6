"""`erase`, `paste`, `grid_mask`."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

ERASE = [
    "", "anchor=[1, 2], shape=[2, 3]", "anchor=[1, 2], shape=[2, 3], fill_value=4",
    "anchor=[1, 2], shape=[2, 3], fill_value=[4, 5, 6]", "anchor=[1], shape=[2], axis_names='W'",
    "anchor=[1], shape=[2], axes=[1]", "anchor=[1], shape=[2], axes=[1], axis_names='H'",
    "anchor=[1, 2], shape=[2, 3], axes=[1, 0]", "anchor=[-1, -2], shape=[2, 3]",
    "anchor=[0, 0, 2, 2], shape=[1, 1, 2, 2]", "anchor=[0, 0, 1, 1], shape=[2, 2, 9, 9]",
    "anchor=[1, 2], shape=[-1, 3]",
    "anchor=[1e20, 2], shape=[1, 3]", "anchor=[0.25, 0.5], shape=[0.5, 0.5], normalized=True",
    "anchor=[0.25, 0.5], shape=[2, 2], normalized_anchor=True",
    "anchor=[1, 2], shape=[0.5, 0.5], normalized_shape=True",
    "anchor=[2, 2], shape=[1, 3], centered_anchor=True",
    "anchor=[2.5, 2.5], shape=[1.5, 4.5], centered_anchor=True",
    "anchor=[0.5, 0.5], shape=[0.5, 0.5], centered_anchor=True, normalized=True",
    "anchor=[0.3, 0.3], shape=[0.5, 0.5], normalized=True", "anchor=[0.6, -0.6], shape=[1.5, 1.3]",
    "anchor=[0.6, 1.9], shape=[1.5, 1.2]", "fill_value=3",
    "anchor=[1, 2], shape=[2, 3], fill_value=300.7", "anchor=[1, 2], shape=[2, 3], fill_value=-1.5",
    "anchor=ndd.tensor([1, 2]), shape=ndd.tensor([1, 2])", "anchor=[1], shape=[1], axis_names='C'",
    "anchor=[1, 0], shape=[1, 2], axis_names='CW', fill_value=[7, 8, 9]",
    # rejected
    "anchor=[1, 2], shape=[2, 3], fill_value=[4, 5]", "anchor=[1], shape=[2]",
    "anchor=[1, 2, 3], shape=[2, 2, 2]", "anchor=[1, 2]", "shape=[1, 2]",
    "anchor=[1, 2], shape=[2, 3], axis_names='HX'", "anchor=[0, 0, 2, 2], shape=[1, 1]",
    "anchor=[1, 2], shape=[1, 1], normalized=True, normalized_anchor=True",
    "anchor=[1, 2], shape=[1, 1], normalized=True, normalized_shape=False", "foo=1",
]  # fmt: skip
PASTE = [
    "ratio=1.5, fill_value=200", "ratio=1.5, fill_value=[200]", "ratio=1, fill_value=2",
    "ratio=1.5, fill_value=[200, 1, 2], paste_x=0, paste_y=0", "ratio=2, fill_value=300",
    "ratio=2, fill_value=-1", "ratio=2, fill_value=2.7", "ratio=2.7, fill_value=3, paste_x=0.9",
    "ratio=1, fill_value=2, min_canvas_size=7.5", "ratio=1, fill_value=2, min_canvas_size=4.9",
    "ratio=2, fill_value=1, paste_x=1, paste_y=0.99", "ratio=2, fill_value=1, n_channels=3",
    "ratio=ndd.tensor(1.7), fill_value=1",
    # rejected
    "ratio=1.5, fill_value=[200, 1]", "ratio=1.5", "fill_value=2", "ratio=0.5, fill_value=2",
    "ratio=2, fill_value=2, paste_x=1.5", "ratio=2, fill_value=2, paste_y=-0.5",
    "ratio=float('nan'), fill_value=2", "ratio=2, fill_value=[]",
    "ratio=2, fill_value=[1, 2, 3, 4]",
]  # fmt: skip
GRIDS = [
    "", "tile=4", "tile=4, ratio=0.3", "tile=3, shift_x=1, shift_y=2", "tile=4, angle=0.5",
    "tile=4, angle=30, ratio=0.6, shift_x=0.7", "tile=7, angle=-2.2, shift_y=-3.3, ratio=0.71",
    "ratio=0", "ratio=1, tile=3", "ratio=2, tile=3", "ratio=-1", "tile=1",
    "tile=ndd.tensor(5), ratio=ndd.tensor(0.4)", "tile=0", "tile=-3",
]  # fmt: skip


def numbers(*shape, dtype=np.uint8):
    return (np.arange(np.prod(shape)) % 250 + 1).reshape(shape).astype(dtype)


@pytest.mark.parametrize("arguments", ERASE)
def test_erasing_agrees(arguments):
    given = f"given = dict({arguments})\n"
    for layout, shape in [("HWC", (4, 6, 3)), ("CHW", (3, 4, 6)), ("HWC", (2, 3, 3))]:
        source = f"{given}ndd.erase(ndd.tensor(x, layout='{layout}'), **given).evaluate()"
        assert_same(source, x=numbers(*shape))


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4"])
def test_every_type_is_erased_alike(dtype):
    for fill in (1.6, -1.5, 300, 3e9):
        source = "ndd.erase(ndd.tensor(x, layout='HW'), anchor=[0, 1], shape=[1, 1], fill_value=f)"
        assert_same(source, x=np.ones((2, 3), dtype), f=fill)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.erase(ndd.tensor(x[0], layout='WC'), anchor=[1], shape=[2], axis_names='W')",
        "ndd.erase(ndd.tensor(x[0, 0]), anchor=[1], shape=[1], axes=[0])",
        "ndd.erase(ndd.tensor(x[None], layout='FHWC'), anchor=[1, 2], shape=[1, 2], fill_value=7, "
        "axis_names='HW')",
        "ndd.erase(ndd.batch([x, x[:2]], layout='HWC'), anchor=ndd.batch([[1, 2], [0, 0]]), "
        "shape=ndd.batch([[2, 2], [1, 1]]), fill_value=ndd.batch([[1, 2, 3], [4, 5, 6]]))",
        "ndd.erase(ndd.batch([x, x], layout='HWC'), anchor=ndd.batch([[1, 2], [0, 0]]), "
        "shape=[1, 2], fill_value=ndd.batch([1, 4]))",
        "ndd.erase(ndd.tensor(x[..., 0], layout='HW'), anchor=[0, 0], shape=[1, 1], "
        "fill_value=[4.5, 3]).evaluate()",
        "ndd.erase(x, anchor=[1], shape=[2], axes=[2], fill_value=[2, 3, 4]).evaluate()",
        "ndd.erase()",
    ],
)
def test_erasing_other_data_agrees(source):
    assert_same(source, x=numbers(4, 6, 3))


@pytest.mark.parametrize("arguments", PASTE)
def test_pasting_agrees(arguments):
    for shape in [(3, 5, 3), (1, 1, 3), (7, 4, 3)]:
        source = f"given = dict({arguments})\nndd.paste(x, **given).evaluate()"
        assert_same(source, x=numbers(*shape))


@pytest.mark.parametrize(
    "source",
    [
        "ndd.paste(ndd.tensor(x, layout='CHW'), ratio=2, fill_value=2).evaluate()",
        "ndd.paste(x[None], ratio=2, fill_value=2)",
        "ndd.paste(np.ascontiguousarray(x[..., :1]), ratio=2, fill_value=2, n_channels=1)",
        "ndd.paste(ndd.batch([x, x[:2]], layout='HWC'), ratio=ndd.batch([1.5, 2.5]), fill_value=9, "
        "paste_x=ndd.batch([0.1, 0.9]), min_canvas_size=ndd.batch([6.0, 1.0]))",
    ],
)
def test_pasting_other_data_agrees(source):
    assert_same(source, x=numbers(3, 5, 3))


@pytest.mark.parametrize("arguments", GRIDS)
def test_grids_agree(arguments):
    for x in (
        numbers(5, 7, 1),
        numbers(1, 1, 3),
        numbers(61, 83, 3),
        numbers(9, 40, 2, dtype="f4"),
    ):
        source = f"ndd.grid_mask(ndd.tensor(x, layout='HWC'), {arguments}).evaluate()"
        assert_same(source, x=x)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.grid_mask(x, tile=3)",
        "ndd.grid_mask(ndd.tensor(x.astype('i2'), layout='HWC'), tile=3)",
        "ndd.grid_mask(ndd.tensor(x.astype('i4'), layout='HWC'), tile=3)",
        "ndd.grid_mask(ndd.batch([x, x[:2]], layout='HWC'), tile=ndd.batch([2, 3]), "
        "angle=ndd.batch([0.1, 0.2]), ratio=ndd.batch([0.4, 0.6]), shift_x=ndd.batch([1.0, 2.0]))",
    ],
)
def test_grids_on_other_data_agree(source):
    assert_same(source, x=numbers(7, 9, 3))


REFUSED = [
    "ndd.erase(np.zeros((2, 2, 1), 'u1'), anchor='a', shape=[1, 1])",
    "ndd.paste(np.zeros((2, 2, 3), 'u1'), ratio='a', fill_value=1)",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


ANY_TYPE = "elements of every type can be written"
DIFFERS = [
    Differs(
        "ndd.erase(np.ones((2, 2, 1), 'u1'), anchor=[0, 0], shape=[1, 1]).evaluate()",
        "RuntimeError",
        "nothing tells which axes are H and W; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.erase(np.ones((2, 2), 'f8'), anchor=[0], shape=[1], axes=[1], fill_value=0.5)",
        "ndd.tensor(np.array([[0.5, 1], [0.5, 1]]))",
        ANY_TYPE,
    ),
    Differs(
        "ndd.erase(np.ones((1, 3), 'u1'), anchor=[0], shape=[2], axes=[-1])",
        "ndd.tensor(np.array([[0, 0, 1]], 'u1'))",
        "negative axes count from the end; DALI writes elsewhere",
        ask=False,
    ),
    Differs(
        "ndd.erase(np.ones((1, 3), 'u1'), anchor=[0], shape=[2], axes=[5]).evaluate()",
        "RuntimeError",
        "there is no such axis; DALI reads beyond its memory",
        ask=False,
    ),
    Differs(
        "ndd.paste(np.array([[[5]]], 'u1'), ratio=2, fill_value=1)",
        "ndd.tensor(np.array([[[5], [1]], [[1], [1]]], 'u1'), layout='HWC')",
        "images have the channels that they have; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.paste(np.array([[[5]]], 'u1'), ratio=2, fill_value=1, n_channels=3).evaluate()",
        "RuntimeError",
        "the image has another number of channels; DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.paste(np.full((1, 1, 3), 0.5, 'f4'), ratio=1, fill_value=1)",
        "ndd.tensor(np.full((1, 1, 3), 0.5, 'f4'), layout='HWC')",
        ANY_TYPE,
    ),
    Differs(
        "ndd.grid_mask(ndd.tensor(np.ones((1, 2, 3), 'u1'), layout='CHW'), tile=2)",
        "ndd.tensor(np.array([[[0, 1, 0], [1, 1, 1]]], 'u1'), layout='CHW')",
        "the mask is for height and width, wherever they are",
    ),
    Differs(
        "ndd.grid_mask(np.ones((2, 3), 'u1'), tile=2)",
        "ndd.tensor(np.array([[0, 1, 0], [1, 1, 1]], 'u1'))",
        "images may have no channels; DALI leaves memory as it was",
        ask=False,
    ),
    Differs(
        "ndd.erase(ndd.tensor(np.ones((1, 1, 2, 1), 'u1'), layout='FHWC'), anchor=[0, 1], "
        "shape=[1, 1])",
        "ndd.tensor(np.array([[[[1], [0]]]], 'u1'), layout='FHWC')",
        "height and width are what regions are for in sequences too",
    ),
    Differs(
        "ndd.grid_mask(np.ones((2, 2, 1), 'f8'), tile=2)",
        "ndd.tensor(np.array([[[0.0], [1]], [[1], [1]]]))",
        ANY_TYPE,
    ),
    Differs(
        "ndd.grid_mask(np.ones((2, 2, 1), 'u1'), angle=float('nan'))",
        "RuntimeError",
        "there is no such angle",
    ),
    *(
        Differs(
            f"ndd.erase(ndd.tensor(np.ones((2, 2, 1), 'u1'), layout='HWC'), {arguments})",
            "RuntimeError",
            "there is no such region; DALI crashes, or erases nothing",
            ask="shape=[float('nan')" not in arguments,
        )
        for arguments in (
            "anchor=[1., 1], shape=[float('nan'), 2]",
            "anchor=[float('nan'), 1], shape=[1., 2]",
            "anchor=[float('-inf'), 1], shape=[float('inf'), 2]",
        )
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
