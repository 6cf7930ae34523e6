"""Shapes and axes: `reshape`, `reinterpret`, `squeeze`, `expand_dims`, `transpose`."""

import itertools

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same

SHORT = "T, B = ndd.tensor, ndd.batch\n"
X = np.arange(6, dtype=np.uint8).reshape(2, 3)
Y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
BITS = np.uint8([[1, 2, 3, 4], [5, 6, 7, 8]])

AGREE = [
    "ndd.reshape(T(x), shape=[3, 2])",
    'ndd.reshape(T(x, layout="HW"), shape=[3, 2])',
    'ndd.reshape(T(x, layout="HW"), shape=[3, 2], layout="AB")',
    'ndd.reshape(T(x, layout="HW"), shape=[6])',
    'ndd.reshape(T(x, layout="HW"), layout="AB")',
    'ndd.reshape(T(x, layout="HW"), layout="")',
    'ndd.reshape(T(x, layout="HW"), shape=[3, 2], layout="")',
    "ndd.reshape(T(x), shape=[-1])",
    "ndd.reshape(T(x), shape=[-1, 2])",
    "ndd.reshape(T(x), shape=[-2, 3])",
    "ndd.reshape(T(5), shape=[])",
    "ndd.reshape(T([5]), shape=[])",
    "ndd.reshape(T(5), shape=[1, 1])",
    "ndd.reshape(T(x), shape=[2.0, 3.0])",
    "ndd.reshape(T(x), shape=np.array([3, 2]))",
    "ndd.reshape(T(x), shape=np.array([[3, 2]]))",
    "ndd.reshape(T(x), shape=T([3, 2]))",
    "ndd.reshape(T(x), shape=T([2.9, 2.1]))",
    "ndd.reshape(T(x), shape=T([3, -1]))",
    "ndd.reshape(B([x, x]), shape=B([[3, 2], [6, 1]]))",
    "ndd.reshape(B([x, x]), shape=T([3, 2]))",
    "ndd.reshape(T(x), shape=B([[3, 2], [6, 1]]))",
    "ndd.reshape(T(x), T([3, 2]))",
    "ndd.reshape(T(x), [3, 2])",
    "ndd.reshape(T(x), B([[3, 2], [6, 1]]))",
    'ndd.reshape(T(x, layout="HW"), T([3, 2]), layout="XY")',
    "ndd.reshape(T(x), rel_shape=[1.5, -1])",
    "ndd.reshape(T(x), rel_shape=[0.5, 2])",
    "ndd.reshape(T(x), rel_shape=[-1, 0.4])",
    "ndd.reshape(T(y), rel_shape=[1, 1, 1])",
    "ndd.reshape(T(y), rel_shape=[12])",
    "ndd.reshape(T(y), rel_shape=[-1])",
    "ndd.reshape(T(y), rel_shape=[-0.5, 1, 1])",
    "ndd.reshape(B([x, x[:1]]), shape=[-1])",
    "ndd.reshape(B([x, x[:1]]), shape=[3, -1])",
    "ndd.reshape(B([x, x[:1]]), rel_shape=[-1, 1])",
    "ndd.reshape(T(np.zeros((0, 3))), shape=[-1])",
    "ndd.reshape(T(np.zeros((0, 3))), shape=[3, -1])",
    "s = [5, 0]\nndd.reshape(T(np.zeros((0, 3))), shape=s)",
    "ndd.reshape(T(np.zeros((0, 3))), rel_shape=[-1, 1])",
    "s = [[3, 2]]\nndd.reshape(T(x), shape=s)",
    "ndd.reshape(T(x), shape=-1)",
    "ndd.reshape(T(y), rel_shape=12)",
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, 0, 2])',
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, 0, 2], layout="ABC")',
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, 0, 2], rel_shape=[2, 0.5, 1])',
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, 0, 2], rel_shape=[1, -1, 1])',
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, -1, 0], rel_shape=[1, 4, 1])',
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, 0], rel_shape=[1, -1])',
    "ndd.reshape(T(np.zeros((2, 3, 1))), src_dims=[0, -1, 1])",
    "ndd.reinterpret(bits, dtype=ndd.int16, src_dims=[1, 0], shape=[4])",
    'ndd.squeeze(T(np.ones((2, 1, 3)), layout="HWC"), axes=[1])',
    'ndd.squeeze(T(np.ones((2, 1, 3)), layout="HWC"), axes=1)',
    'ndd.squeeze(T(np.ones((2, 1, 3)), layout="HWC"), axes=[])',
    'ndd.squeeze(T(np.ones((1, 1, 3)), layout="HWC"), axes=[1, 0])',
    'ndd.squeeze(T(np.ones((1, 1)), layout="HW"), axes=[0, 1])',
    "ndd.reshape(T(y), src_dims=[0, 1, 2], shape=[4, 3, 2])",
    "ndd.reshape(T(y), src_dims=[0, 1], shape=[4, 3, 2])",
    "ndd.reshape(T(y), T([4, 3, 2]), src_dims=[0, 1])",
    "ndd.reshape(T(x), rel_shape=T([1.5, -1.0]))",
    "ndd.reshape(B([x, x]), rel_shape=B([[1.5, -1.0], [1.0, 1.0]]))",
    "ndd.reshape(T(x), rel_shape=[0.75, 1.0])",
    "ndd.reshape(T(np.zeros((4, 6))), rel_shape=[1.1, 1.0])",
    "ndd.reshape(T(np.zeros((4, 6))), rel_shape=[0.88, 1.0])",
    "ndd.reshape(T(np.zeros((4, 6))), rel_shape=[1.12, 1.0])",
    "ndd.reshape(T(x), np.array([[3, 2]]))",
    "ndd.reshape(B([x, x]), T([3, 2]))",
    "ndd.reshape(T(5), np.zeros((0, ), np.int32))",
    'ndd.reshape(T(x, layout="HW"), [3, 2])',
    'ndd.reshape(T(x, layout="HW"), [3, 2], layout="XY")',
    'ndd.reshape(T(x, layout="HW"), [6])',
    "ndd.reshape([[1, 2], [3, 4]], shape=[4])",
    "ndd.reshape(5, shape=[1])",
    "ndd.reshape(x[:, ::-1].copy(), shape=[6])",
    'ndd.reshape(T(y, layout="HWC"), shape=[2, 3, 4])',
    'ndd.reshape(T(y, layout="HWC"), rel_shape=[1, 1, 1])',
    'ndd.reshape(T(y, layout="HWC"), rel_shape=[1, 4])',
    'ndd.reshape(T(np.zeros((2, 3, 4, 5)), layout="FHWC"), shape=[6, 20], layout="HW")',
    "ndd.reinterpret(T(x), dtype=ndd.int8)",
    "ndd.reinterpret(T(np.float32([[1, 2], [3, 4]])), dtype=ndd.int32)",
    'ndd.reinterpret(T(np.float32([[1, 2], [3, 4]]), layout="HW"), dtype=ndd.uint8)',
    "ndd.reinterpret(T(np.uint8([[1, 2, 3, 4]])), dtype=ndd.int32)",
    "ndd.reinterpret(T(np.uint8([[1, 2, 3, 4]])), dtype=ndd.int16)",
    "ndd.reinterpret(T(bits), dtype=ndd.int64, shape=[1])",
    "ndd.reinterpret(T(bits), dtype=ndd.int64, shape=[-1])",
    "ndd.reinterpret(T(bits), dtype=ndd.int32, shape=[-1])",
    "ndd.reinterpret(T(bits), dtype=ndd.int16, shape=[-1, 2])",
    "ndd.reinterpret(T(bits), dtype=ndd.int16, shape=[2, 2])",
    "ndd.reinterpret(T(bits), dtype=ndd.int16, rel_shape=[1, 0.5])",
    "ndd.reinterpret(T(bits), dtype=ndd.int16, rel_shape=[0.5, -1])",
    "ndd.reinterpret(T(bits), shape=[8])",
    'ndd.reinterpret(T(bits), layout="AB")',
    'ndd.reinterpret(T(bits, layout="HW"), dtype=ndd.uint16, layout="AB")',
    'ndd.reinterpret(T(bits, layout="HW"), dtype=ndd.uint8)',
    "ndd.reinterpret(T(np.uint8([1, 0])), dtype=ndd.bool)",
    "ndd.reinterpret(T(5), dtype=ndd.float32)",
    "ndd.reinterpret(T(5), dtype=ndd.uint8, shape=[4])",
    "ndd.reinterpret(T(5), dtype=ndd.uint8, shape=[-1])",
    "ndd.reinterpret(T(np.zeros((0, 4), np.uint8)), dtype=ndd.int32)",
    "ndd.reinterpret(T(np.zeros((2, 0), np.uint8)), dtype=ndd.int32)",
    "ndd.reinterpret(T(np.zeros((2, 0), np.int32)), dtype=ndd.uint8)",
    "ndd.reinterpret(T(np.zeros((2, 0), np.int32)), dtype=ndd.uint8, shape=[7, -1])",
    "ndd.reinterpret(T(bits), [2, 2], dtype=ndd.int16)",
    "ndd.reinterpret(T(bits), [-1], dtype=ndd.int16)",
    "ndd.reinterpret(B([np.uint8([1, 2]), np.uint8([1, 2, 3, 4])]), dtype=ndd.int16)",
    "ndd.reinterpret(T(np.uint8([1, 2, 3, 4])), dtype=types.INT32)",
    "ndd.reinterpret(T(types.RGB), dtype=ndd.int32)",
    'ndd.squeeze(T(np.zeros((2, 1, 3)), layout="HWC"), axis_names="W")',
    'ndd.squeeze(T(np.zeros((1, 1, 3)), layout="HWC"), axis_names="WH")',
    'ndd.squeeze(T(np.zeros((2, 1, 3)), layout="HWC"), axis_names="")',
    'ndd.squeeze(T(np.zeros((3, 0)), layout="HW"), axis_names="H")',
    'ndd.squeeze(T(np.zeros((1, 0)), layout="HW"), axis_names="H")',
    'ndd.squeeze(T(np.zeros((1, 1)), layout="HH"), axis_names="H")',
    'ndd.squeeze(B([np.zeros((1, 2)), np.zeros((1, 3))], layout="HW"), axis_names="H")',
    'ndd.squeeze(B(np.zeros((0, 1, 3)), layout="HW"), axis_names="H").evaluate()',
    'ndd.squeeze(T(np.zeros((1, 1)), layout="HW"), axis_names="HW")',
    "ndd.expand_dims(T(x), axes=[0])",
    "ndd.expand_dims(T(x), axes=0)",
    "ndd.expand_dims(T(x), axes=[2])",
    "ndd.expand_dims(T(x), axes=[0, 1])",
    "ndd.expand_dims(T(x), axes=[0, 3])",
    "ndd.expand_dims(T(x), axes=[3, 0])",
    "ndd.expand_dims(T(x), axes=[])",
    'ndd.expand_dims(T(x, layout="HW"), axes=[0])',
    'ndd.expand_dims(T(x, layout="HW"), axes=[0], new_axis_names="F")',
    'ndd.expand_dims(T(x, layout="HW"), axes=[0, 3], new_axis_names="FC")',
    'ndd.expand_dims(T(x, layout="HW"), axes=[3, 0], new_axis_names="FC")',
    'ndd.expand_dims(T(x, layout="HW"), axes=[1, 0], new_axis_names="FC")',
    'ndd.expand_dims(T(x, layout="HW"), axes=[0], new_axis_names="")',
    'ndd.expand_dims(T(x, layout="HW"), axes=[0], new_axis_names="H")',
    "ndd.expand_dims(T(5), axes=[0])",
    'ndd.expand_dims(T(5), axes=[0], new_axis_names="F")',
    'ndd.expand_dims(T(5), axes=[0, 1], new_axis_names="FC")',
    "ndd.expand_dims(T(5), axes=[0, 1])",
    "ndd.expand_dims(B([x, x[:1]]), axes=[2])",
    "ndd.expand_dims(B([], dtype=ndd.uint8), axes=[0]).evaluate()",
    "ndd.expand_dims(B(np.zeros((0, 2, 3))), axes=[0]).evaluate()",
    "ndd.expand_dims(T(x), axes=[1, 2])",
    'ndd.expand_dims(T(x, layout="HW"), axes=[])',
    'ndd.expand_dims(T(x, layout="HW"), axes=[], new_axis_names="")',
    'ndd.transpose(T(x, layout="HW"))',
    'ndd.transpose(T(y, layout="HWC"))',
    'ndd.transpose(T(y, layout="HWC"), perm=[2, 0, 1])',
    'ndd.transpose(T(y, layout="HWC"), perm=[2, 0, 1], transpose_layout=False)',
    'ndd.transpose(T(y, layout="HWC"), transpose_layout=False)',
    'ndd.transpose(T(y, layout="HWC"), perm=[2, 0, 1], output_layout="ABC")',
    'ndd.transpose(T(x, layout="HW"), perm=[1, 0], output_layout="AB", transpose_layout=False)',
    'ndd.transpose(T(y, layout="HWC"), perm=[2, 0, 1], output_layout="ABC", transpose_layout=True)',
    'ndd.transpose(T(y, layout="HWC"), output_layout="CHW")',
    'ndd.transpose(T(y, layout="HWC"), output_layout="CWH")',
    'ndd.transpose(T(y, layout="HWC"), output_layout="ABC")',
    'ndd.transpose(T(y), output_layout="CHW")',
    "ndd.transpose(T(y), perm=[0, 2, 1])",
    "ndd.transpose(T(y), perm=[0, 2, 1], transpose_layout=True)",
    "ndd.transpose(T([1, 2]), perm=0)",
    'ndd.transpose(T([1, 2], layout="X"), perm=[0])',
    'ndd.transpose(T([1, 2], layout="X"))',
    "ndd.transpose(T(5))",
    "ndd.transpose(T(5), perm=[])",
    "ndd.transpose(B([x, x[:1]]))",
    "ndd.transpose(B([], dtype=ndd.uint8)).evaluate()",
    "ndd.transpose(B(np.zeros((0, 2, 3)))).evaluate()",
    "ndd.transpose(T(np.zeros((0, 3))))",
    "ndd.transpose(T(np.float16(x)))",
    "ndd.transpose(T(x>2))",
    "ndd.transpose(T(np.float64(x)))",
    'ndd.transpose(T(y, layout="HHC"), output_layout="CHH")',
    'ndd.transpose(T(5, layout=""), perm=[])',
]


@pytest.mark.parametrize("source", AGREE)
def test_results_agree(source):
    assert_same(SHORT + source, x=X, y=Y, bits=BITS)


REFUSED = [
    'ndd.reshape(T(x, layout="HW"), layout="A")',
    'ndd.reshape(T(x, layout="HW"))',
    "ndd.reshape(T(x), shape=[-1, -1])",
    "ndd.reshape(T(x), shape=[-2, -3])",
    "ndd.reshape(T(x), shape=[0, 3])",
    "ndd.reshape(T(x), shape=[4, 2])",
    "ndd.reshape(T(x), shape=[-1, 4])",
    "ndd.reshape(T(x), shape=[])",
    "ndd.reshape(T(x), shape=[1.5, 4])",
    "ndd.reshape(B([x, x]), shape=B([[3, 2], [6]]))",
    "ndd.reshape(T(x), np.float32([3, 2]))",
    "ndd.reshape(T(x), T([3, 2]), shape=[3, 2])",
    "ndd.reshape(T(x), shape=[3, 2], rel_shape=[1, 1])",
    "ndd.reshape(T(x), rel_shape=[0.5, 1])",
    "ndd.reshape(T(x), rel_shape=[2, 0.5])",
    "ndd.reshape(T(y), rel_shape=[3, 1])",
    "ndd.reshape(T(y), rel_shape=[1, 1, 1, 1])",
    "ndd.reshape(T(y), rel_shape=[-1, -1])",
    "ndd.reshape(T(y), rel_shape=[0, 1, 1])",
    "ndd.reshape(T(y), rel_shape=[-0.5, 1, -2])",
    "ndd.reshape(T(y), rel_shape=[1, 1], src_dims=[0, 1])",
    "ndd.reshape(T(np.zeros((0, 3))), shape=[0, -1])",
    'ndd.reshape(T(x), shape=[3, 2], layout="ABC")',
    "ndd.reshape(T(x), shape=None)",
    "ndd.reshape(T(x), None)",
    "ndd.reshape(T(x), dtype=ndd.int8)",
    'ndd.reshape(T(y, layout="HWC"), src_dims=[2, 0])',
    "ndd.reshape(T(y), src_dims=[3, 1, 0])",
    "ndd.reshape(T(y), src_dims=[-2, 1, 0])",
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, -1, 0], rel_shape=[1, 1])',
    'ndd.reshape(T(y, layout="HWC"), src_dims=[1, 0], rel_shape=[1, 1, 4])',
    'ndd.reshape(T(x, layout="HW"), src_dims=[1, 0], layout="ABC")',
    'ndd.reshape(T(x, layout="HW"), src_dims=[1])',
    'ndd.reshape(T(x, layout="HW"), src_dims=1)',
    "ndd.reshape(T(x), rel_shape=[2, 0.6])",
    "ndd.reshape(T(np.zeros((4, 6))), rel_shape=[1.13, 1.0])",
    "ndd.reshape(T(np.zeros((4, 6))), rel_shape=[0.87, 1.0])",
    "ndd.reshape(T(np.zeros((4, 6))), rel_shape=[1.125, 1.0])",
    "ndd.reshape(B([x, x]), np.array([[3, 2], [2, 3]]))",
    "ndd.reshape(B([x, x]), shape=np.array([[3, 2], [2, 3]]))",
    "ndd.reshape(T(x), [])",
    'ndd.reshape(T(x, layout="HW"), [6], rel_shape=[1])',
    "ndd.reshape(data=T(x), shape=[6])",
    "ndd.reshape(T(x), shape_input=[6])",
    "ndd.reshape(T(x), [6], [6])",
    "ndd.reshape()",
    'ndd.reshape(T(y, layout="HWC"), shape=[2, 12], layout="A")',
    "ndd.reinterpret(T(np.uint8([[1, 2, 3]])), dtype=ndd.int16)",
    "ndd.reinterpret(T(bits), dtype=ndd.int64)",
    "ndd.reinterpret(T(bits), dtype=ndd.int16, shape=[8])",
    "ndd.reinterpret(T(bits), dtype=ndd.int16, rel_shape=[1, 1])",
    "ndd.reinterpret(T(bits))",
    'ndd.squeeze(T(np.zeros((2, 1, 3)), layout="HWC"), axes=[0])',
    "ndd.reshape(T(y), rel_shape=[1e30, 1, 1])",
    "ndd.reshape([1, 2], shape=[2**31, 3])",
    'ndd.squeeze(T(np.ones((2, 1)), layout="HW"), axis_names="W", axes=[1])',
    "ndd.reinterpret(bits[:1], dtype=ndd.int16, src_dims=[1, 0])",
    'ndd.squeeze(T(np.zeros((1, 1, 3)), layout="HWC"), axes=[1, 1])',
    'ndd.squeeze(T(np.zeros((2, 1, 3)), layout="HWC"), axis_names="C")',
    'ndd.squeeze(T(np.zeros((2, 1, 3)), layout="HWC"), axis_names="Z")',
    'ndd.squeeze(T(np.zeros((2, 1, 3))), axis_names="W")',
    'ndd.squeeze(T(np.zeros((2, 1, 3)), layout="HWC"))',
    'ndd.squeeze(B(np.zeros((2, 2, 1, 1)), layout="HWC"), axes=B([[1], [2]]))',
    'ndd.squeeze(B(np.zeros((2, 2, 1, 1)), layout="HWC"), axes=B([[1], [1, 2]]))',
    "ndd.squeeze(T(np.zeros((1, 0))), axes=1)",
    "ndd.squeeze(T(np.zeros((1, 2))), axes=[1.0])",
    'ndd.squeeze(T(np.zeros((1, 0)), layout="HW"), axis_names="W")',
    'ndd.squeeze(T(np.zeros((1, 1)), layout="HW"), axis_names="HH")',
    "ndd.expand_dims(T(x), axes=[3])",
    "ndd.expand_dims(T(x), axes=[-4])",
    "ndd.expand_dims(T(x), axes=[0, 0])",
    "ndd.expand_dims(T(x), axes=[0, 4])",
    "ndd.expand_dims(T(x))",
    'ndd.expand_dims(T(x, layout="HW"), axes=[0, 3], new_axis_names="F")',
    'ndd.expand_dims(T(x, layout="HW"), axes=[0], new_axis_names="FC")',
    'ndd.expand_dims(T(x), axes=[0], new_axis_names="F")',
    'ndd.expand_dims(T(x), axes=[0, 3], new_axis_names="FC")',
    "ndd.expand_dims(T(5), axes=[1])",
    "ndd.expand_dims(T(x), axes=T([0]))",
    'ndd.expand_dims(T(x, layout="HW"), axes=[], new_axis_names="A")',
    'ndd.transpose(T(y, layout="HWC"), perm=[2, 0, 1], output_layout="AB")',
    'ndd.transpose(T(y, layout="HWC"), output_layout="AB")',
    'ndd.transpose(T(y, layout="HWC"), output_layout="")',
    "ndd.transpose(T(y), perm=[0, -1, 1])",
    "ndd.transpose(T(y), perm=[0, 1])",
    "ndd.transpose(T(y), perm=[0, 1, 1])",
    "ndd.transpose(T(y), perm=[0, 1, 3])",
    "ndd.transpose(T(y), perm=[0, 1, 2, 3])",
    "ndd.transpose(T(y), perm=[])",
    "ndd.transpose(T(y), perm=0)",
    "ndd.transpose(T(y), perm=T([0, 1, 2]))",
]


@pytest.mark.parametrize("source", REFUSED)
def test_errors_agree(source):
    assert_same(SHORT + source, x=X, y=Y, bits=BITS)


def test_a_new_shape_does_not_copy():
    assert_same(
        "t = ndd.tensor(x)\n"
        "r = ndd.reshape(t, shape=[6]).evaluate()\n"
        "np.shares_memory(np.asarray(r), np.asarray(t))",
        x=X,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_arranged_alike(dtype):
    assert_same(
        "ndd.reshape(x, shape=[-1]), ndd.squeeze(ndd.tensor(x[:1], layout='HW'), axis_names='H'), "
        "ndd.expand_dims(x, axes=1), ndd.transpose(x), ndd.reinterpret(x, dtype=ndd.uint8)",
        x=X.astype(dtype),
    )


@pytest.mark.parametrize("perm", list(itertools.permutations(range(4))), ids=str)
def test_every_order_of_axes(perm):
    # Longer than the tiles that are copied at a time, and odd.
    x = np.arange(3 * 70 * 2 * 67, dtype=np.uint16).reshape(3, 70, 2, 67)
    assert_same("ndd.transpose(ndd.tensor(x, layout='ABCD'), perm=p)", x=x, p=list(perm))


@pytest.mark.parametrize("item", ["u1", "i2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(67, 90, 3), (3, 67, 90), (1, 90, 67), (65, 1, 4), (66, 6)])
def test_images_are_transposed_alike(shape, item):
    x = np.arange(np.prod(shape)).reshape(shape).astype(item)
    perms = list(itertools.permutations(range(len(shape))))
    assert_same("[ndd.transpose(ndd.batch([x, x]), perm=p) for p in perms]", x=x, perms=perms)


CUBE = "ndd.tensor(np.arange(24).reshape(2, 3, 4), layout='HWC')"
IGNORED = "DALI loses `src_dims` when it is not written in the call"
LOST = "DALI loses `axes` when they are not written in the call"
BACK = "negative axes count from the end, as everywhere"
ABSENT = "to name an axis that there isn't is a mistake"
ONE = "one number is a list of one"


def cube(shape: str, layout: str) -> str:
    return f"ndd.tensor(np.arange(24).reshape({shape}), layout={layout!r})"


def ones(shape: str, layout: str) -> str:
    return f"ndd.tensor(np.ones({shape}), layout={layout!r})"


IMAGE = ones("(2, 1, 3)", "HWC")
DIFFERS = [
    Differs(f"d = [1, 0, 2]\nndd.reshape({CUBE}, src_dims=d)", cube("3, 2, 4", "HWC"), IGNORED),
    Differs(
        f"d = [1, 0]\nndd.reshape({CUBE}, src_dims=d, rel_shape=[1, -1])", cube("3, 8", ""), IGNORED
    ),
    Differs(
        f"ndd.reshape({CUBE}, src_dims=ndd.tensor([1, 0, 2]))", cube("3, 2, 4", "HWC"), IGNORED
    ),
    Differs(
        f"ndd.reshape({CUBE}, src_dims=[1, -1, 0, 2])",
        cube("3, 1, 2, 4", ""),
        "DALI counts on as many dimensions as before",
    ),
    Differs(f"n = -1\nndd.reshape({CUBE}, shape=n)", cube("24", ""), ONE),
    Differs(f"ndd.reshape({CUBE}, ndd.tensor(24))", cube("24", ""), ONE),
    Differs(
        "ndd.reshape(np.zeros((0, 3)), shape=[5, 0])",
        "ndd.tensor(np.zeros((5, 0)))",
        "an extent written in the call may be 0, too",
    ),
    Differs(
        f"r = [float('nan'), 1, 1]\nndd.reshape({CUBE}, rel_shape=r)",
        "RuntimeError",
        "not a number is no extent",
    ),
    Differs(
        f"r = [1e30, 1, 1]\nndd.reshape({CUBE}, rel_shape=r)",
        "RuntimeError",
        "an overflow is not taken for an extent to be worked out",
    ),
    Differs(
        "ndd.reshape(ndd.batch(np.zeros((0, 2, 3))), shape=[-1])",
        "ndd.batch(np.zeros((0, 6)))",
        "nothing to reshape is nothing reshaped",
    ),
    Differs("ndd.reshape(1, shape='a')", "TypeError", "text is of the wrong type"),
    Differs("ndd.reshape([1], shape=[1], layout=5)", "TypeError", "a number is no layout"),
    Differs("ndd.reinterpret(5, dtype=ndd.uint8)", "RuntimeError", "DALI crashes", ask=False),
    Differs(
        "ndd.reinterpret([1], dtype=np.uint32)",
        "ndd.tensor(np.uint32([1]))",
        "types are taken in all spellings",
    ),
    Differs(f"a = [1]\nndd.squeeze({IMAGE}, axes=a)", ones("(2, 3)", "HC"), LOST),
    Differs(f"ndd.squeeze({IMAGE}, axes=ndd.tensor([1]))", ones("(2, 3)", "HC"), LOST),
    Differs(f"ndd.squeeze({IMAGE}, axes=[-2])", ones("(2, 3)", "HC"), BACK),
    Differs(f"ndd.squeeze({IMAGE}, axes=[3])", "RuntimeError", ABSENT),
    Differs(f"ndd.squeeze({IMAGE}, axes=[-4])", "RuntimeError", ABSENT),
    Differs(f"ndd.squeeze({IMAGE}, axes=[1, -2])", "RuntimeError", BACK),
    Differs("ndd.squeeze(5, axes=0)", "RuntimeError", ABSENT),
    Differs("ndd.expand_dims([1, 2], axes=[-1])", "ndd.tensor([[1], [2]])", BACK),
    Differs("ndd.expand_dims([1, 2], axes=[-2])", "ndd.tensor([[1, 2]])", BACK),
    Differs(
        "ndd.transpose([[1, 2]], perm=np.array([1, 0]))",
        "ndd.tensor([[1], [2]])",
        "a list may come as an array",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
