"""The order of frames and of samples."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same

SHORT = "T, B = ndd.tensor, ndd.batch\n"
X = np.arange(6, dtype=np.uint8).reshape(2, 3)
Y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]

AGREE = [
    'ndd.element_extract(T(y, layout="FHW"), element_map=[0])',
    'ndd.element_extract(T(y, layout="FHW"), element_map=0)',
    'ndd.element_extract(T(y, layout="FHW"), element_map=[1, 0])',
    'ndd.element_extract(T(y, layout="FHW"), element_map=[1, 1])',
    "ndd.element_extract(T(y), element_map=[0])",
    'ndd.element_extract(B([y, y[:1]], layout="FHW"), element_map=[0])',
    "ndd.element_extract(B(np.zeros((0, 2, 3))), element_map=[0]).evaluate()",
    'ndd.element_extract(T(y, layout="FHW"), element_map=[0.0])',
    'ndd.element_extract(T(np.float16(y), layout="FHW"), element_map=[0])',
    'ndd.element_extract(T(y>3, layout="FHW"), element_map=[0])',
    'ndd.element_extract(T(np.zeros((2, 0, 3)), layout="FHW"), element_map=[0])',
    "ndd.per_frame(T(y))",
    'ndd.per_frame(T(y, layout="FHW"))',
    'ndd.per_frame(T(y, layout="HWC"), replace=True)',
    "ndd.per_frame(T(y), replace=True)",
    "ndd.per_frame(T([1, 2]))",
    'ndd.per_frame(T([1, 2], layout="F"))',
    "ndd.per_frame(B([[1, 2], [3]]))",
    'ndd.per_frame(B([[1, 2], [3]], layout="X"), replace=True)',
    "ndd.per_frame(B(np.zeros((0, 2, 3)))).evaluate()",
    "ndd.per_frame([1, 2])",
    'ndd.per_frame(T(y, layout="FHW"), replace=True)',
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=[1, 0])',
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=[1, 1, 0])',
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=[1])',
    "ndd.sequence_rearrange(T(y), new_order=[1, 0])",
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=T([1, 0]))',
    'ndd.sequence_rearrange(B([y, y[:1]], layout="FHW"), new_order=B([[1, 0], [0]]))',
    'ndd.sequence_rearrange(B([y, y[:1]], layout="FHW"), new_order=B([[1, 0, 0], [0]]))',
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=T([1.4, 0.4]))',
    "ndd.sequence_rearrange(T(np.zeros((2, 0))), new_order=[0])",
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=np.array([1, 0]))',
    'ndd.sequence_rearrange(T(np.float16(y), layout="FHW"), new_order=[1, 0])',
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=[0, 1])',
    "ndd.permute_batch(B([1, 2, 3]), indices=B([2, 0, 1]))",
    "ndd.permute_batch(B([1, 2, 3]), indices=T(1))",
    "i = 1\nndd.permute_batch(B([1, 2, 3]), indices=i)",
    "ndd.permute_batch(B([[1], [2, 3]]), indices=[1, 0])",
    "ndd.permute_batch(B([1, 2, 3]), indices=[2, 2, 0])",
    "ndd.sequence_rearrange([[1], [2]], new_order=1)",
    "ndd.permute_batch(B([1, 2, 3]), indices=B(np.int64([2, 0, 0])))",
    "ndd.permute_batch(T(5), indices=0)",
    "ndd.permute_batch(T(5), indices=B([0, 0]))",
]


@pytest.mark.parametrize("source", AGREE)
def test_results_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


REFUSED = [
    'ndd.element_extract(T(y, layout="HWC"), element_map=[0])',
    'ndd.element_extract(T(y, layout="FHW"), element_map=[2])',
    'ndd.element_extract(T(y, layout="FHW"), element_map=[-1])',
    'ndd.element_extract(T(y, layout="FHW"), element_map=[])',
    'ndd.element_extract(T(y, layout="FHW"))',
    'ndd.element_extract(T([1, 2], layout="F"), element_map=[0])',
    "ndd.element_extract(T([1, 2]), element_map=[0])",
    "ndd.element_extract(T(5), element_map=[0])",
    'ndd.element_extract(B([y, y[:1]], layout="FHW"), element_map=[1])',
    "ndd.element_extract(B([], dtype=ndd.uint8), element_map=[0]).evaluate()",
    'ndd.element_extract(T(y, layout="FHW"), element_map=T([0]))',
    'ndd.per_frame(T(y, layout="HWC"))',
    "ndd.per_frame(T(5))",
    "ndd.per_frame(T(5), replace=True)",
    'ndd.per_frame(T([1, 2], layout="X"))',
    "ndd.per_frame(B([], dtype=ndd.uint8)).evaluate()",
    "ndd.per_frame(T(y), replace=T(1))",
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=[2])',
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=[-1])',
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=[])',
    'ndd.sequence_rearrange(T(y, layout="FHW"))',
    'ndd.sequence_rearrange(T(y, layout="HWC"), new_order=[1, 0])',
    'ndd.sequence_rearrange(T(y, layout="HWF"), new_order=[1, 0])',
    'ndd.sequence_rearrange(B([y, y[:1]], layout="FHW"), new_order=[1, 0])',
    'ndd.sequence_rearrange(T([1, 2, 3], layout="F"), new_order=[2, 0])',
    "ndd.sequence_rearrange(T([1, 2, 3]), new_order=[2, 0])",
    "ndd.sequence_rearrange(T(5), new_order=[0])",
    "ndd.sequence_rearrange(B([], dtype=ndd.uint8), new_order=[0]).evaluate()",
    "ndd.sequence_rearrange(T(np.zeros((0, 2))), new_order=[0])",
    'ndd.sequence_rearrange(T(y, layout="FHW"), new_order=T(np.zeros((0, ), np.int32)))',
    "ndd.permute_batch(B([1, 2, 3]), indices=[2, 0])",
    "ndd.permute_batch(B([1, 2, 3]), indices=[2, 0, 1, 1])",
    "ndd.permute_batch(B([1, 2, 3]), indices=[3, 0, 1])",
    "ndd.permute_batch(B([1, 2, 3]), indices=[-1, 0, 1])",
    "ndd.permute_batch(B([1, 2, 3]), indices=B([[2, 0], [0, 1], [1, 1]]))",
    "ndd.permute_batch(B([1, 2, 3]), indices=B([2, 0]))",
    "ndd.permute_batch(B([1, 2, 3]), indices=B([3, 0, 1]))",
    "ndd.permute_batch(B([1, 2, 3]), indices=B([2.6, 0.4, 0]))",
    "ndd.permute_batch(B([1, 2, 3]))",
    "ndd.permute_batch(B([1, 2, 3]), indices=[])",
    "ndd.permute_batch(T(5), indices=[0, 0])",
    "ndd.permute_batch([1, 2, 3], indices=[1, 0, 2])",
]


@pytest.mark.parametrize("source", REFUSED)
def test_errors_agree(source):
    assert_same(SHORT + source, x=X, y=Y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_moved_alike(dtype):
    assert_same(
        "ndd.element_extract(x, element_map=[1, 0]), ndd.per_frame(x), "
        "ndd.sequence_rearrange(x, new_order=[1, 1, 0]), "
        "ndd.permute_batch(ndd.batch(x), indices=ndd.batch([1, 0]))",
        x=X.astype(dtype),
    )


def test_samples_of_different_size_change_places():
    source = "ndd.permute_batch(ndd.batch([x, x[:1], x[1:]], layout='HW'), indices=i)"
    assert_same(f"i = ndd.batch([2, 0, 2])\n{source}", x=X)


LIST = "in a variable, DALI takes a list for that of each sample"
ONE = "one number is a list of one"
DIFFERS = [
    Differs(
        "i = [1, 0]\nndd.permute_batch(ndd.batch([1, 2]), indices=i)", "ndd.batch([2, 1])", LIST
    ),
    Differs(
        "ndd.permute_batch(ndd.batch([1, 2, 3]), indices=np.array([2, 2, 0]))",
        "ndd.batch([3, 3, 1])",
        LIST,
    ),
    Differs(
        "ndd.permute_batch(ndd.batch([1, 2]), indices=ndd.tensor([1, 0]))",
        "ndd.batch([2, 1])",
        LIST,
    ),
    Differs(
        "ndd.permute_batch(ndd.batch([1, 2]), indices=ndd.batch([[1], [0]]))",
        "ndd.batch([2, 1])",
        ONE,
    ),
    Differs("ndd.permute_batch(ndd.batch([1, 2]), indices=[1])", "ndd.batch([2, 2])", ONE),
    Differs("i = 1\nndd.sequence_rearrange([[1], [2]], new_order=i)", "ndd.tensor([[2]])", ONE),
    Differs(
        "ndd.permute_batch(ndd.batch([], dtype=ndd.uint8), indices=[])",
        "ndd.batch([], dtype=ndd.uint8)",
        "nothing in another order is nothing",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
