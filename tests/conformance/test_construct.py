"""Construction of values: `tensor`, `as_tensor`, `batch`, `as_batch`, `Batch.broadcast`."""

import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

TENSORS = [
    # Python numbers and sequences
    "ndd.tensor(1), ndd.tensor(True), ndd.tensor(1.5), ndd.tensor(-1)",
    "ndd.tensor(2**31), ndd.tensor(2**32 - 1), ndd.tensor(-(2**31)), ndd.tensor(2**31 - 1)",
    "ndd.tensor(2**32)",
    "ndd.tensor(-(2**31) - 1)",
    "ndd.tensor([2**31, -1])",
    "ndd.tensor([1, 2.5]), ndd.tensor([True, 2]), ndd.tensor([True, 2.5])",
    "ndd.tensor([]), ndd.tensor(()), ndd.tensor([[], []])",
    "ndd.tensor((1, 2)), ndd.tensor([(1, 2), [3, 4]]), ndd.tensor(range(3))",
    "ndd.tensor([[1, 2], [3]])",
    "ndd.tensor([np.uint8(1), np.uint8(2)]), ndd.tensor([np.float64(1), 2])",
    "ndd.tensor([np.arange(2), np.arange(2)])",
    "ndd.tensor([np.arange(2, dtype=np.uint8), [1, 2]])",
    "ndd.tensor([np.arange(2), np.arange(3)])",
    "ndd.tensor([ndd.tensor([1, 2]), ndd.tensor([3, 4])])",
    "ndd.tensor(x for x in [1, 2])",
    "ndd.tensor({}), ndd.tensor({1, 2})",
    "ndd.tensor(object())",
    "ndd.tensor([None])",
    "ndd.tensor([1, None])",
    # buffers
    "ndd.tensor(bytearray(b'abc')), ndd.tensor(memoryview(b'abc'))",
    "import array\nndd.tensor(array.array('i', [1, 2]))",
    # NumPy
    "[ndd.tensor(np.array([0, 1, 2], d)) for d in '?bhilqBHILQefd']",
    "[ndd.tensor(d(1)) for d in (np.bool_, np.uint8, np.int64, np.float16, np.float64)]",
    "ndd.tensor(np.array(5)), ndd.tensor(np.zeros(0)), ndd.tensor(np.zeros((2, 0, 3)))",
    "ndd.tensor(np.arange(6)[2:])",
    "ndd.tensor(np.arange(6).reshape(1, 6, 1).transpose(2, 1, 0))",
    "ndd.tensor(np.zeros((2, 0, 3)).transpose(2, 1, 0))",
    "ndd.tensor(np.broadcast_to(np.int32(3), (2, 2)))",
    "ndd.tensor(np.ma.array([1, 2]))",
    "a = np.arange(3)\na.flags.writeable = False\nndd.as_tensor(a)",
    # memory
    "a = np.arange(3)\nt = ndd.as_tensor(a)\na[0] = 9\nt, np.shares_memory(np.asarray(t), a)",
    "a = np.arange(3)\nt = ndd.tensor(a)\na[0] = 9\nt",
    "t = ndd.tensor([1])\nu = ndd.as_tensor(t)\nnp.shares_memory(np.asarray(t), np.asarray(u))",
    "t = ndd.tensor([1])\nu = ndd.tensor(t)\nnp.shares_memory(np.asarray(t), np.asarray(u))",
    # dtype=
    "ndd.tensor([1.7, -1.7], dtype=ndd.int32)",
    "ndd.tensor(np.float32([1.7, 300, -1.7]), dtype=ndd.uint8)",
    "ndd.tensor(ndd.tensor([1.6]), dtype=ndd.int32), ndd.as_tensor(np.int8([1]), dtype=ndd.int8)",
    "[ndd.tensor(1, dtype=d) for d in ('i64', np.int64, np.dtype('i8'), types.INT64, ndd.int64)]",
    "ndd.tensor(1, dtype=bool), ndd.tensor(1.5, dtype='f16'), ndd.tensor([], dtype=ndd.uint8)",
    "ndd.tensor([0, 1, 2], dtype=ndd.bool), ndd.tensor(2**40, dtype=ndd.int64)",
    "ndd.tensor([300], dtype=ndd.uint8)",
    "ndd.tensor(-1, dtype=ndd.uint8)",
    "ndd.tensor(1, dtype='foo')",
    "ndd.tensor(1, dtype=int)",
    "ndd.tensor(1, dtype=5)",
    # enums
    "ndd.tensor(types.RGB), ndd.tensor(types.INTERP_CUBIC), ndd.tensor(types.FLOAT)",
    "ndd.tensor([types.RGB, types.GRAY])",
    "ndd.tensor(1, dtype=ndd.InterpType), ndd.tensor([1, 2], dtype=ndd.DataType)",
    # layout=
    "ndd.tensor([1], layout='X'), ndd.tensor([[1]], layout='HH')",
    "ndd.tensor([1], layout=''), ndd.tensor(1, layout='')",
    "ndd.tensor([1], layout='HW')",
    "ndd.tensor(1, layout='H')",
    "t = ndd.tensor([1], layout='X')\nndd.tensor(t), ndd.as_tensor(t), ndd.as_tensor(t, layout='')",
    "t = ndd.tensor([1], layout='X')\nndd.tensor(t, layout='Y'), ndd.as_tensor(t, layout='Y'), t",
    "ndd.as_tensor(ndd.tensor([1], layout='X'), layout='YY')",
    # device=
    "ndd.tensor([1], device='cpu'), ndd.tensor([1], device=ndd.Device.CPU)",
    "ndd.tensor([1], device=None)",
    "ndd.tensor([1], device='foo')",
    "ndd.tensor([1], device='mixed')",
    "ndd.tensor([1], device=5)",
    # the call itself
    "ndd.tensor([1], ndd.int32, 'cpu', 'X', True)",
    "ndd.tensor()",
    "ndd.tensor([1], foo=1)",
    "ndd.Tensor([1, 2]), ndd.Batch([1, 2])",
]

OF_A_BATCH = [
    "b = ndd.batch([[1, 2], [3, 4]], layout='X')\nndd.as_tensor(b), ndd.tensor(b)",
    "ndd.as_tensor(ndd.batch([[1, 2], [3, 4]]))",
    "ndd.as_tensor(ndd.batch([1, 2]))",
    "b = ndd.batch([[1, 2], [3, 4]], layout='X')\nndd.as_tensor(b, layout='AB')",
    "b = ndd.batch([[1, 2], [3, 4]])\nndd.as_tensor(b, layout='NX')",
    "b = ndd.batch([[1, 2], [3, 4]])\nndd.as_tensor(b, layout='X')",
    "b = ndd.batch([[1.6, 2], [3, 4]])\nndd.as_tensor(b, dtype=ndd.int32)",
    "b = ndd.batch([[1, 2], [3]], layout='X')\nndd.as_tensor(b, pad=True), ndd.tensor(b, pad=True)",
    "b = ndd.batch([np.ones((2, 3), 'u1'), np.ones((3, 1), 'u1')])\nndd.as_tensor(b, pad=True)",
    "b = ndd.batch([np.ones((0, 2), 'f4'), np.ones((1, 3), 'f4')])\nndd.as_tensor(b, pad=True)",
    "ndd.as_tensor(ndd.batch([[1, 2], [3, 4]], layout='X'), pad=True)",
    "ndd.as_tensor([1, 2], pad=True)",
    "ndd.as_tensor(ndd.batch([[1, 2], [3]]))",
    "ndd.tensor(ndd.batch([[1, 2], [3]]))",
    "ndd.as_tensor([[1], [2, 3]], pad=True)",
]

BATCHES = [
    # what holds samples
    "ndd.batch([1, 2]), ndd.batch([[1, 2], [3]]), ndd.batch((1, 2)), ndd.batch(range(3))",
    "ndd.batch(x for x in [1, 2]), ndd.batch(iter([1, 2]))",
    "ndd.batch(np.arange(6).reshape(2, 3)), ndd.batch(np.arange(3)), ndd.batch(np.zeros((2, 0)))",
    "ndd.batch(np.arange(6).reshape(2, 3), layout='X')",
    "ndd.batch(np.zeros((0, 3)), layout='X')",
    "ndd.batch(ndd.tensor([[1, 2], [3, 4]]))",
    "ndd.batch(ndd.tensor([[1, 2], [3, 4]], layout='HW'), layout='W')",
    "ndd.batch(ndd.tensor([[1, 2], [3, 4]], layout='HW'))",
    "ndd.batch(np.arange(6).reshape(2, 3), layout='NX')",
    "ndd.batch(np.array(3))",
    "ndd.batch(ndd.tensor(3))",
    "ndd.batch(3)",
    "ndd.batch([None])",
    "ndd.batch([object()])",
    "ndd.batch([ndd.batch([1, 2]), ndd.batch([1, 2])])",
    # the first sample decides the type
    "ndd.batch([1, 2.0]), ndd.batch([2.5, 1]), ndd.batch([True, 2]), ndd.batch([[1], [2.0]])",
    "ndd.batch([2**31, 1])",
    "ndd.batch([np.float32([1.5]), np.int32([1])]), ndd.batch([np.int32([300]), np.uint8([1])])",
    "ndd.batch([np.int64([-3]), np.uint8([1])]), ndd.batch([np.float32([1]), np.float64([1.6])])",
    "ndd.batch([ndd.tensor([2.6]), ndd.tensor([1])]), ndd.batch([[1], np.uint8([2])])",
    "ndd.batch([np.uint8([1]), 300])",
    "ndd.batch([1, 2**31])",
    "ndd.batch([1, 2], dtype='u8'), ndd.batch([1, 2], dtype=np.uint8)",
    "ndd.batch([1.7, -1.7], dtype=ndd.int32), ndd.batch([[1.7], [-1.7]], dtype=ndd.int32)",
    "ndd.batch([np.float32(1.7), np.float32(300)], dtype=ndd.uint8)",
    "ndd.batch(np.float32([1.7, 300]), dtype=ndd.uint8)",
    "ndd.batch([1.7, 300], dtype=ndd.uint8)",
    "ndd.batch([1], dtype=int)",
    "ndd.batch([types.RGB, types.GRAY])",
    # nothing
    "b = ndd.batch([], dtype=ndd.uint8)\nb, b.ndim, b.batch_size",
    "ndd.batch([])",
    "ndd.as_batch(())",
    "ndd.batch([], dtype=ndd.uint8, layout='HWC')",
    # layouts
    "ndd.batch([[1], [2, 3]], layout='X'), ndd.batch([[1]], layout='')",
    "ndd.batch([ndd.tensor([1], layout='X'), ndd.tensor([2, 3], layout='Y')])",
    "ndd.batch([ndd.tensor([1], layout='X'), ndd.tensor([2, 3], layout='Y')], layout='Z')",
    "ndd.batch([ndd.tensor([1], layout='X'), [2]])",
    "ndd.batch([[1]], layout='HW')",
    "ndd.batch([1], layout='X')",
    # of a batch
    "b = ndd.batch([1, 2])\nndd.batch(b) is b, ndd.as_batch(b) is b",
    "b = ndd.batch([[1], [2]], layout='X')\nndd.batch(b), ndd.as_batch(b, layout='Y'), b",
    "b = ndd.batch([[1.6], [2]])\nndd.batch(b, dtype=ndd.int32), ndd.as_batch(b, dtype=ndd.int32)",
    # memory
    "a = np.arange(3)\nb = ndd.as_batch([a, a])\na[0] = 7\nb",
    "a = np.arange(3)\nb = ndd.batch([a, a])\na[0] = 7\nb",
    "a = np.arange(4).reshape(2, 2)\nb = ndd.as_batch(a)\na[0] = 7\nb",
    "a = np.arange(4).reshape(2, 2)\nb = ndd.batch(a)\na[0] = 7\nb",
    # the call itself
    "ndd.batch([1], ndd.int32, 'cpu', '')",
    "ndd.batch([1], device='mixed')",
    "ndd.batch([1], device=3)",
    "ndd.batch()",
    # broadcast
    "ndd.Batch.broadcast(5, 3), ndd.Batch.broadcast([1, 2], 2)",
    "ndd.Batch.broadcast(ndd.tensor([1], layout='X'), 2), ndd.Batch.broadcast(np.uint8([1]), 2)",
    "ndd.Batch.broadcast(5, 0), ndd.Batch.broadcast(5, 2, 'cpu', ndd.int64)",
    "ndd.Batch.broadcast(np.float32(1.6), 2, dtype=ndd.int32)",
    "ndd.Batch.broadcast(5, -1)",
    "ndd.Batch.broadcast(ndd.batch([1, 2]), 2)",
    "ndd.Batch.broadcast(None, 2)",
]

PROTOCOLS = [
    """
    class Array:
        def __array__(self, dtype=None, copy=None):
            return np.int16([1, 2])
    ndd.tensor(Array()), ndd.as_tensor(Array()), ndd.batch([Array()])
    """,
    """
    class Interface:
        data = np.int16([1, 2])
        __array_interface__ = data.__array_interface__
    ndd.as_tensor(Interface())
    """,
    """
    class Capsule:
        data = np.int16([1, 2])
        def __dlpack__(self, **arguments):
            return self.data.__dlpack__(**arguments)
        def __dlpack_device__(self):
            return self.data.__dlpack_device__()
    ndd.as_tensor(Capsule()), ndd.batch([Capsule()])
    """,
    """
    class Sequence:
        def __len__(self):
            return 2
        def __getitem__(self, i):
            return [5, 6][i]
    ndd.tensor(Sequence()), ndd.batch(Sequence())
    """,
    """
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise KeyError("its own")
    ndd.as_tensor(Broken())
    """,
    """
    class Broken:
        def __dlpack__(self, **arguments):
            raise BufferError("its own")
        def __dlpack_device__(self):
            return (1, 0)
    ndd.as_tensor(Broken())
    """,
    """
    class Liar:
        def __dlpack__(self, **arguments):
            return 5
        def __dlpack_device__(self):
            return (1, 0)
    ndd.as_tensor(Liar())
    """,
]

REFUSED = [
    "ndd.tensor(None)",
    """
    class Liar:
        def __array__(self, dtype=None, copy=None):
            return 5
    ndd.as_tensor(Liar())
    """,
    "ndd.tensor('abc')",
    "ndd.tensor(['a'])",
    "ndd.tensor(np.zeros(2, 'F'))",
    "ndd.tensor(np.zeros(2, 'M8[s]'))",
    "ndd.tensor(np.zeros(2, 'm8[s]'))",
    "ndd.tensor(np.array(['a', 'b']))",
    "ndd.tensor(np.array([b'a', b'b']))",
    "ndd.tensor(np.array([1, None], object))",
    "ndd.tensor(np.zeros(2, [('a', 'i4')]))",
    "ndd.tensor([1], layout=5)",
    "ndd.tensor([ndd.batch([1, 2])])",
    "ndd.as_tensor(ndd.batch([], dtype=ndd.int32))",
    "ndd.batch([[1]], layout=5)",
    "ndd.batch(None)",
    "ndd.batch('ab')",
    "ndd.batch(['a'])",
    "ndd.batch([np.arange(2), 1]).evaluate()",
    "ndd.batch([1, np.arange(2)]).evaluate()",
    "ndd.batch([[1, 2], [[1]]]).evaluate()",
    "ndd.as_batch(ndd.batch([[1], [2]]), layout='XY')",
]

KEPT = "an array's elements are read as its dtype and strides say"
DIFFERS = [
    Differs(
        "ndd.tensor(np.arange(6).reshape(2, 3).T)",
        "ndd.tensor(np.int64([[0, 3], [1, 4], [2, 5]]))",
        KEPT,
    ),
    Differs(
        "ndd.as_tensor(np.asfortranarray([[1., 2], [3, 4]]))",
        "ndd.tensor(np.array([[1., 2], [3, 4]]))",
        KEPT,
    ),
    Differs("ndd.tensor(np.arange(6)[::2])", "ndd.tensor(np.int64([0, 2, 4]))", KEPT),
    Differs("ndd.as_tensor(np.arange(3)[::-1])", "ndd.tensor(np.int64([2, 1, 0]))", KEPT),
    Differs("ndd.batch([np.arange(6)[::2]])", "ndd.batch([np.int64([0, 2, 4])])", KEPT),
    Differs(
        "ndd.batch(np.arange(6).reshape(2, 3)[:, ::2])",
        "ndd.batch(np.int64([[0, 2], [3, 5]]))",
        KEPT,
    ),
    Differs("ndd.tensor(np.arange(3, dtype='>i4'))", "ndd.tensor(np.int32([0, 1, 2]))", KEPT),
    Differs(
        "import array\nndd.as_tensor(array.array('d', [1, 2]))",
        "ndd.tensor(np.float64([1, 2]))",
        KEPT,
    ),
    Differs("ndd.tensor(1j)", "TypeError", "there are no complex values; half of one is none"),
    Differs(
        "ndd.tensor(1, dtype='int32')",
        "ndd.tensor(1, dtype=ndd.int32)",
        "the common names of types work as well",
    ),
    Differs(
        "ndd.tensor([1.5], dtype=ndd.bfloat16).dtype",
        "ndd.bfloat16",
        "bfloat16 is a dtype like the others",
    ),
    Differs("ndd.int32([1, 2])", "ndd.tensor([1, 2])", "calling a dtype makes a value of it"),
    Differs(
        "ndd.as_tensor(ndd.batch([np.ones((1, 2)), np.ones((1, 3))]), pad=True)",
        "ndd.tensor(np.array([[[1., 1, 0]], [[1, 1, 1]]]))",
        "padding works for every dtype",
    ),
    *(
        Differs(source, "TypeError", "numbers that the first sample's type can't hold are kept")
        for source in (
            "ndd.batch([np.int32([1]), np.float32([1.5])])",
            "ndd.batch([np.uint8([1]), np.int32([300])])",
            "ndd.as_batch([np.uint8([1]), np.int64([-3])])",
            "ndd.batch([ndd.tensor([1]), ndd.tensor([2.6])])",
            "ndd.batch([[1], np.float32([2.5])])",
        )
    ),
]


@pytest.mark.parametrize("source", TENSORS + OF_A_BATCH)
def test_tensors_are_made_alike(source):
    assert_same(source)


@pytest.mark.parametrize("source", BATCHES)
def test_batches_are_made_alike(source):
    assert_same(source)


def test_fractions_are_cut_off_alike():
    with pytest.warns(UserWarning, match="fractions"):
        assert_same("ndd.batch([1, 2.5]), ndd.batch([[1], [-2.7]])")


@pytest.mark.parametrize("source", PROTOCOLS)
def test_objects_are_read_through_the_same_protocols(source):
    assert_same(source)


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("ndd.batch([])", "element type"),
        ("ndd.tensor([1], layout='HW')", "dimension"),
        ("ndd.batch([[1]], layout='HW')", "dimension"),
        ("ndd.as_tensor(ndd.batch([[1, 2], [3]]))", "pad"),
        ("ndd.batch(np.array(3))", "scalar"),
        ("ndd.tensor([1], device='mixed')", "mixed"),
    ],
)
def test_errors_name_the_same_thing(source, says):
    assert_same(source, says=says)
