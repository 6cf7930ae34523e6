"""Properties and exports of values."""

import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

SAME = [
    # what is known of a value
    "b = ndd.batch([[1, 2], [3]], layout='X')\nb.shape, b.ndim, b.dtype, b.device, b.layout, "
    "b.batch_size",
    "t = ndd.tensor([[1, 2]])\nt.shape, t.ndim, t.size, t.itemsize, t.nbytes, t.dtype, t.device, "
    "t.layout",
    "t = ndd.tensor(1)\nt.shape, t.ndim, t.size, t.itemsize, t.nbytes",
    "t = ndd.tensor(np.zeros((2, 0), np.float16))\nt.size, t.itemsize, t.nbytes",
    "ndd.batch([1]).size",
    "ndd.batch([1]).shape = 3",
    "ndd.tensor([1]).layout = 'X'",
    # item
    "ndd.tensor(5).item(), ndd.tensor([5]).item(), ndd.tensor([[1.5]]).item()",
    "ndd.tensor(True).item(), ndd.tensor(np.float16(1.5)).item()",
    "ndd.tensor(np.uint64(2**64 - 1)).item()",
    "ndd.tensor([1, 2]).item()",
    "ndd.tensor([]).item()",
    "ndd.batch([1]).item()",
    # NumPy
    "t = ndd.tensor([1, 2])\nnp.asarray(t), np.array(t), np.asarray(t, dtype=np.float32)",
    "t = ndd.tensor([1, 2])\nt.__array__(), t.__array__(np.float32), t.__array__(copy=True)",
    "t = ndd.tensor([1, 2])\nnp.shares_memory(t.__array__(), t.__array__(copy=False))",
    "t = ndd.tensor([1, 2])\nnp.shares_memory(t.__array__(), t.__array__(copy=True))",
    "t = ndd.tensor([1, 2])\nnp.shares_memory(np.array(t), np.asarray(t))",
    "ndd.tensor([1, 2]).__array__(dtype=np.float32, copy=False)",
    "t = ndd.tensor([1, 2])\nnp.asarray(t)[0] = 9\nt",
    "a = np.asarray(ndd.tensor([1, 2]))\nimport gc\ngc.collect()\na",
    "np.sum(ndd.tensor([1, 2])), np.stack([ndd.tensor([1]), ndd.tensor([2])])",
    "[np.asarray(ndd.tensor(np.array([0, 1], d))).dtype.str for d in '?bhiqBHIQefd']",
    "np.asarray(ndd.batch([[1, 2], [3]]).tensors[1])",
    # DLPack
    "tuple(map(int, ndd.tensor([1]).__dlpack_device__()))",
    "np.from_dlpack(ndd.tensor([1, 2])), np.from_dlpack(ndd.tensor(np.float16([[1, 2]])))",
    "[np.from_dlpack(ndd.tensor(np.array([0, 1], d))) for d in '?bhiqBHIQefd']",
    "np.from_dlpack(ndd.tensor(5)), np.from_dlpack(ndd.batch([[1, 2], [3]]).tensors[0])",
    "t = ndd.tensor([1, 2])\nnp.shares_memory(np.from_dlpack(t), np.asarray(t))",
    "type(ndd.tensor([1]).__dlpack__()).__name__, 'dltensor' in str(ndd.tensor([1]).__dlpack__())",
    "ndd.batch([1]).__dlpack__()",
    # what a value on the host doesn't have
    "ndd.tensor([1]).__cuda_array_interface__",
    "hasattr(ndd.tensor([1]), '__cuda_array_interface__')",
    # Python's own protocols
    "hash(ndd.tensor(1))",
    "hash(ndd.batch([1]))",
    "divmod(ndd.tensor(5), 2)",
    "ndd.tensor([1]) @ ndd.tensor([1])",
    "t = ndd.tensor([1])\nu = t\nt += 1\nt, u",
    "b = ndd.batch([1])\nc = b\nb += 1\nb, c",
    "t, b = ndd.tensor([1]), ndd.batch([1])\n(+t) is t, (+b) is b",
    "import copy\ncopy.copy(ndd.tensor([1, 2])), copy.copy(ndd.batch([[1], [2, 3]]))",
    # devices
    "t, b = ndd.tensor([1]), ndd.batch([1])\nt.cpu() is t, b.cpu() is b",
    "t, b = ndd.tensor([1]), ndd.batch([1])\nt.to_device('cpu') is t, b.to_device('cpu') is b",
    "t = ndd.tensor([1], layout='X')\nu = t.to_device('cpu', force_copy=True)\n"
    "u, np.shares_memory(np.asarray(t), np.asarray(u))",
    "b = ndd.batch([[1]], layout='X')\nc = b.to_device('cpu', True)\n"
    "c, np.shares_memory(np.asarray(b.tensors[0]), np.asarray(c.tensors[0]))",
    "ndd.tensor([1]).to_device('foo')",
    "ndd.tensor([1]).to_device('mixed')",
    "ndd.tensor([1]).to_device(5)",
    "ndd.tensor([1]).to_device()",
    "t, b = ndd.tensor([1]), ndd.batch([1])\nt.evaluate() is t, b.evaluate() is b",
]

PROTOCOL = "tensors support the protocol of Python, as arrays do"
DIFFERS = [
    Differs("len(ndd.tensor([1, 2]))", "2", PROTOCOL),
    Differs("int(ndd.tensor(1))", "1", PROTOCOL),
    Differs("float(ndd.tensor(1))", "1.0", PROTOCOL),
    Differs("[1, 2, 3][ndd.tensor(1)]", "2", PROTOCOL),
    Differs("bool(ndd.tensor(0))", "False", "a number is true when it isn't zero"),
    Differs("bool(ndd.tensor([1, 2]))", "ValueError", "which element is meant?"),
    Differs(
        "type(ndd.tensor([1]).__dlpack__(max_version=(1, 0))).__name__",
        "'PyCapsule'",
        "the current version of the protocol is spoken",
    ),
    Differs(
        "np.shares_memory(np.asarray(t := ndd.tensor([1])), np.from_dlpack(t, copy=True))",
        "False",
        "the current version of the protocol is spoken",
    ),
]


@pytest.mark.parametrize("source", SAME)
def test_values_are_handed_over_alike(source):
    assert_same(source)


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


def test_no_device_is_refused_by_both():
    assert_refused("ndd.tensor([1]).to_device(None)")
