"""Conversion of external data: wrapped where possible, and validated."""

import array
import collections
import ctypes
import gc
import mmap

import ml_dtypes
import numpy as np
import pytest
from tests.ids import steady_repr

import penstock as ndd


def numbers(tensor):
    return np.asarray(tensor).tolist()


def shares(tensor, given):
    return np.shares_memory(np.asarray(tensor), given)


# NumPy


@pytest.mark.parametrize("code", "?bhilqBHILQefd")
def test_numpy_arrays_keep_their_type(code):
    given = np.array([0, 1, 1], np.dtype(code))
    for make in (ndd.tensor, ndd.as_tensor):
        made = make(given)
        assert made.dtype is ndd.dtype(given.dtype)
        np.testing.assert_array_equal(np.asarray(made), given)
    assert shares(ndd.as_tensor(given), given)
    assert not shares(ndd.tensor(given), given)


ODD = {
    "strided": np.arange(24.0).reshape(4, 6)[::2, 1::3],
    "backwards": np.arange(6)[::-1],
    "backwards twice": np.arange(6, dtype=np.uint8).reshape(2, 3)[::-1, ::-1],
    "Fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "transposed": np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1),
    "repeated": np.broadcast_to(np.int64(7), (2, 3)),
    "unaligned": np.frombuffer(bytearray(range(33)), np.uint8)[1:].view(np.int32),
    "field": np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"],
    "0-d": np.array(2.5),
    "no elements": np.zeros((3, 0, 2)),
    "no elements, backwards": np.zeros((3, 0))[::-1, ::-1],
    "bfloat16": np.arange(6).astype(ml_dtypes.bfloat16)[::2],
    "20 axes": np.arange(2).reshape((1,) * 19 + (2,)),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("writable", [True, False])
def test_any_memory_order_is_wrapped_and_copied_right(name, writable):
    given = ODD[name].view()
    given.flags.writeable = writable and given.flags.writeable
    wrapped, copied = ndd.as_tensor(given), ndd.tensor(given)
    for made in (wrapped, copied):
        np.testing.assert_array_equal(np.asarray(made), given, strict=True)
        assert made.shape == given.shape
    if given.size:
        assert shares(wrapped, given)
        assert np.asarray(wrapped).flags.writeable == given.flags.writeable
    assert not shares(copied, given)
    assert np.asarray(copied).flags.writeable
    assert np.asarray(copied).flags.c_contiguous


@pytest.mark.parametrize("name", ODD)
def test_operators_read_any_memory_order(name):
    given = ODD[name]
    made = ndd.as_tensor(given)
    np.testing.assert_array_equal(np.asarray(ndd.copy(made)), given, strict=True)
    summed = np.asarray(made + 1).astype(np.float64)
    np.testing.assert_array_equal(summed, given.astype(np.float64) + 1)
    converted = np.asarray(ndd.cast(made, dtype=ndd.float64))
    np.testing.assert_array_equal(converted, given.astype(np.float64))
    if given.ndim:
        rows = ndd.as_batch(given)
        assert rows.batch_size == len(given)
        for row, expected in zip(rows, given, strict=True):
            np.testing.assert_array_equal(np.asarray(row), expected, strict=True)
        stacked = ndd.as_tensor(rows)
        np.testing.assert_array_equal(np.asarray(stacked), given, strict=True)


@pytest.mark.parametrize("code", [">i4", ">f8", ">u2", ">f2"])
def test_foreign_byte_order_is_converted(code):
    given = np.array([1, 2, 300], code)
    for make in (ndd.tensor, ndd.as_tensor):
        made = make(given)
        assert numbers(made) == [1, 2, 300]
        assert made.dtype is ndd.dtype(given.dtype.newbyteorder("="))
    assert numbers(ndd.as_batch(given).tensors[2]) == 300


def test_subclasses_of_arrays_are_arrays():
    assert numbers(ndd.tensor(np.ma.array([1, 2]))) == [1, 2]
    recarray = np.zeros(2, [("a", "f4")]).view(np.recarray)
    assert numbers(ndd.as_tensor(recarray.a)) == [0, 0]


@pytest.mark.parametrize(
    "given",
    [
        np.zeros(2, np.complex64),
        np.array(["a"]),
        np.array([b"a"]),
        np.array([None]),
        np.array([1], "M8[s]"),
        np.array([1], "m8[s]"),
        np.zeros(2, [("a", "i4")]),
        np.zeros(2, np.longdouble),
        np.zeros(2, ml_dtypes.float8_e4m3fn),
        np.zeros(2, ml_dtypes.int4),
    ],
    ids=lambda given: str(given.dtype),
)
def test_arrays_of_other_elements_are_type_errors_that_name_them(given):
    for make in (ndd.tensor, ndd.as_tensor, ndd.batch, lambda x: ndd.batch([x])):
        with pytest.raises(TypeError, match="array of"):
            make(given)


def test_changes_after_a_call_don_t_reach_its_result():
    given = np.zeros((64, 64, 3), np.uint8)
    shared = ndd.as_tensor(given)
    for mode in ndd.EvalMode:
        given[:] = 1
        with mode:
            results = [ndd.flip(shared), shared + 1, shared[1:], ndd.copy(shared)]
        given[:] = 7
        assert [int(np.asarray(result).max()) for result in results] == [1, 2, 1, 1], mode


# Buffers


@pytest.mark.parametrize(
    ("given", "dtype", "values"),
    [
        (b"abc", "u8", [97, 98, 99]),
        (bytearray(b"ab"), "u8", [97, 98]),
        (memoryview(b"abcd"), "u8", [97, 98, 99, 100]),
        (memoryview(b"abcd")[::-2], "u8", [100, 98]),
        (memoryview(bytes(8)).cast("Q"), "u64", [0]),
        (memoryview(bytes(4)).cast("?"), "bool", [False] * 4),
        (memoryview(b"abcd").cast("B", (2, 2)), "u8", [[97, 98], [99, 100]]),
        (array.array("h", [1, -2]), "i16", [1, -2]),
        (array.array("d", [1.5]), "f64", [1.5]),
        ((ctypes.c_int32 * 3)(1, 2, 3), "i32", [1, 2, 3]),
        (((ctypes.c_double * 2) * 2)(), "f64", [[0, 0], [0, 0]]),
        (b"", "u8", []),
    ],
    ids=steady_repr,
)
def test_buffers_are_read_as_they_say(given, dtype, values):
    for make in (ndd.tensor, ndd.as_tensor):
        made = make(given)
        assert (str(made.dtype), numbers(made)) == (dtype, values)


def test_buffers_are_wrapped():
    given = bytearray(b"ab")
    made = ndd.as_tensor(given)
    given[0] = 0
    assert numbers(made) == [0, 98]
    with pytest.raises(BufferError):
        given.append(1)
    del made
    gc.collect()
    given.append(1)
    assert not np.asarray(ndd.as_tensor(b"ab")).flags.writeable


def test_mapped_files_are_wrapped(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(range(200)))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    made = ndd.as_tensor(mapped)
    assert made.shape == (200,)
    assert not np.asarray(made).flags.writeable
    with pytest.raises(BufferError):
        mapped.close()
    del made
    gc.collect()
    mapped.close()


@pytest.mark.parametrize(
    "given",
    [
        array.array("u", "ab"),
        memoryview(array.array("u", "ab")),
        (ctypes.c_char_p * 2)(),
        type("Point", (ctypes.Structure,), {"_fields_": [("x", ctypes.c_int)]})(),
    ],
    ids=lambda given: type(given).__name__,
)
def test_buffers_of_other_elements_are_type_errors(given):
    with pytest.raises(TypeError):
        ndd.tensor(given)


# Objects with protocols


class Arrayish:
    def __init__(self, answer):
        self.answer = answer

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Interface:
    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class OldProducer:
    """DLPack before version 1.0, without `__dlpack_device__`."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()


@pytest.mark.parametrize("wrap", [Arrayish, Interface, OldProducer])
def test_protocols_of_arrays_work_for_tensors_and_batches(wrap):
    given = np.arange(6.0).reshape(2, 3)
    assert shares(ndd.as_tensor(wrap(given)), given)
    assert not shares(ndd.tensor(wrap(given)), given)
    np.testing.assert_array_equal(np.asarray(ndd.tensor(wrap(given))), given)
    rows = ndd.as_batch(wrap(given))
    assert rows.shape == [(3,), (3,)]
    assert shares(rows.tensors[1], given)
    assert numbers(ndd.batch([wrap(given)]).tensors[0]) == given.tolist()
    assert numbers(ndd.copy(wrap(given))) == given.tolist()


@pytest.mark.parametrize("answer", [5, None, "x", [1, 2], object()])
def test_an_array_method_that_makes_no_array_is_an_error(answer):
    for make in (ndd.tensor, ndd.batch):
        with pytest.raises((TypeError, ValueError)):
            make(Arrayish(answer))


def test_errors_of_an_array_method_pass_through():
    with pytest.raises(KeyError, match="mine"):
        ndd.tensor(Arrayish(KeyError("mine")))


def test_memory_of_a_cuda_device_is_refused_in_words():
    class Cuda:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (1,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        }

    for make in (ndd.tensor, ndd.as_tensor, ndd.as_batch, lambda x: ndd.batch([x])):
        with pytest.raises(TypeError, match="CUDA"):
            make(Cuda())


# Numbers and lists


class Sequence:
    def __init__(self, length, items):
        self.length, self.items = length, items

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.items[index]


def test_sequences_are_lists():
    assert numbers(ndd.tensor(Sequence(2, [1, 2]))) == [1, 2]
    assert numbers(ndd.tensor(collections.deque([1, 2]))) == [1, 2]
    assert numbers(ndd.tensor(collections.UserList([[1], [2]]))) == [[1], [2]]


@pytest.mark.parametrize(("length", "items"), [(3, [1]), (-1, [1]), (2**40, [1])])
def test_a_length_that_lies_is_an_error(length, items):
    with pytest.raises((IndexError, ValueError)):
        ndd.tensor(Sequence(length, items))


@pytest.mark.parametrize(
    "data",
    [None, "abc", ["a"], [None], [1, None], {1: 2}, {1}, object(), iter([1]), 1j, [1j], int, print],
    ids=steady_repr,
)
def test_what_is_no_data_is_a_type_error_that_says_what_is(data):
    for make in (ndd.tensor, ndd.as_tensor):
        with pytest.raises(TypeError, match=r"Can't make a tensor from .*: expected numbers"):
            make(data)


def test_long_texts_of_wrong_data_are_cut_short():
    with pytest.raises(TypeError) as caught:
        ndd.tensor(["x" * 10_000])
    assert len(str(caught.value)) < 400


def test_lists_that_are_no_array_are_value_errors():
    with pytest.raises(ValueError, match="inhomogeneous"):
        ndd.tensor([[1, 2], [3]])
    with pytest.raises(ValueError, match="inhomogeneous"):
        ndd.tensor([[1], 2], dtype=ndd.int32)


def test_tensors_without_dimensions_are_numbers_in_a_list():
    made = ndd.tensor([[ndd.tensor(1)], [2.5]])
    assert (made.dtype, np.asarray(made).tolist()) == (ndd.float32, [[1], [2.5]])


@pytest.mark.timeout(10)
def test_a_list_that_holds_itself_is_an_error():
    data = []
    data.append(data)
    with pytest.raises((ValueError, TypeError, RecursionError)):
        ndd.tensor(data)


@pytest.mark.parametrize("number", [2**32, -(2**31) - 1, 2**63, 2**64, -(2**63) - 1, 2**70])
def test_integers_that_need_more_than_32_bits_are_overflows_that_name_them(number):
    for data in (number, [number], [[number]]):
        with pytest.raises(OverflowError, match=str(number)):
            ndd.tensor(data)


def test_the_overflow_names_the_number_that_does_not_fit():
    with pytest.raises(OverflowError, match=str(2**31)):
        ndd.tensor([2**31, -1])


def test_64_bits_are_kept_when_asked_for():
    assert ndd.tensor(2**40, dtype=ndd.int64).item() == 2**40
    assert ndd.tensor([2**64 - 1], dtype=ndd.uint64).item() == 2**64 - 1
    with pytest.raises(OverflowError):
        ndd.tensor(2**64, dtype=ndd.uint64)


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        ([1.7, -1.7], "i32", [1, -1]),
        ([0, 1, 2], "bool", [False, True, True]),
        ([0.4, 0.6], "bool", [True, True]),
        (np.float32([1.7, 300, -1.7]), "u8", [2, 255, 0]),
        (np.float32([0.4, 0.6]), "bool", [False, True]),
        (ndd.tensor(1.6), "i32", 2),
        (True, "f32", 1.0),
    ],
)
def test_a_given_type_converts_lists_as_numpy_and_arrays_as_cast(data, dtype, values):
    for make in (ndd.tensor, ndd.as_tensor):
        assert numbers(make(data, dtype=dtype)) == values


def test_python_numbers_out_of_a_given_type_are_overflows():
    for data in ([300], -1, [[256]]):
        with pytest.raises(OverflowError):
            ndd.tensor(data, dtype=ndd.uint8)


def test_wrong_types_are_refused():
    with pytest.raises(ValueError, match="foo"):
        ndd.tensor([1], dtype="foo")
    with pytest.raises(TypeError):
        ndd.tensor([1], dtype=object())


# Inconsistent DLPack producers


class DLDevice(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("id", ctypes.c_int32))


class DLType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManaged(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter))


class DLManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

KEPT = []  # kept alive, since Python can't know when a capsule's memory is unused


class Producer:
    """A DLPack tensor of eight floats, described as requested."""

    def __init__(
        self,
        *,
        shape=(8,),
        ndim=None,
        strides=None,
        element=(2, 32, 1),
        kind=1,
        offset=0,
        null=False,
        version=None,
        flags=0,
        told_device=(1, 0),
        deleter=True,
    ):
        self.floats = np.arange(8, dtype=np.float32)
        self.deleted = 0
        self.told_device = told_device
        row = ctypes.c_int64
        self.shape = None if shape is None else (row * max(1, len(shape)))(*shape)
        self.strides = None if strides is None else (row * len(strides))(*strides)
        if ndim is None:
            ndim = len(shape)
        address = None if null else self.floats.ctypes.data
        tensor = DLTensor(
            address, DLDevice(kind, 0), ndim, DLType(*element), self.shape, self.strides, offset
        )
        done = Deleter(self._delete) if deleter else Deleter()
        self.keep = done
        if version is None:
            self.name = b"dltensor"
            self.managed = DLManaged(tensor, None, done)
        else:
            self.name = b"dltensor_versioned"
            self.managed = DLManagedVersioned(*version, None, done, flags, tensor)
        KEPT.append(self)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.told_device

    def __dlpack__(self, **kwargs):
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (1, 99)])
@pytest.mark.parametrize("copy", [False, True])
def test_a_dlpack_tensor_is_read_and_given_back_once(version, copy):
    producer = Producer(version=version)
    made = (ndd.tensor if copy else ndd.as_tensor)(producer)
    assert numbers(made) == list(range(8))
    assert shares(made, producer.floats) is not copy
    result = made + 1
    del made
    assert producer.deleted == 1
    assert numbers(result) == list(range(1, 9))


@pytest.mark.parametrize(
    ("told", "values"),
    [
        ({"shape": (2, 4)}, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ({"shape": (2, 2), "strides": (1, 3)}, [[0, 3], [1, 4]]),
        ({"shape": (4,), "strides": (-1,), "offset": 12}, [3, 2, 1, 0]),
        ({"shape": (2, 2), "strides": (0, 1)}, [[0, 1], [0, 1]]),
        ({"shape": (), "offset": 8}, 2),
        ({"shape": (3,), "offset": 4}, [1, 2, 3]),
        ({"shape": (0, 3), "null": True}, []),
        ({"shape": (1,), "kind": 3, "told_device": (3, 0)}, [0]),
        ({"shape": (1,), "deleter": False}, [0]),
    ],
    ids=steady_repr,
)
def test_unusual_dlpack_tensors_are_read_right(told, values):
    for make in (ndd.as_tensor, ndd.tensor):
        assert numbers(make(Producer(**told))) == values


def test_read_only_dlpack_memory_stays_so():
    assert not np.asarray(ndd.as_tensor(Producer(version=(1, 0), flags=1))).flags.writeable
    assert np.asarray(ndd.as_tensor(Producer(version=(1, 0)))).flags.writeable


LIES = {
    "negative number of axes": ({"ndim": -1}, "has -1 dimensions"),
    "very many axes": ({"ndim": 2**31 - 1}, f"has {2**31 - 1} dimensions"),
    "more axes than anybody has": ({"shape": (1,) * 65}, "has 65 dimensions"),
    "no shape": ({"shape": None, "ndim": 1}, "has no shape"),
    "negative extent": ({"shape": (-1,)}, "shape is invalid"),
    "negative extents": ({"shape": (-2, -4)}, "shape is invalid"),
    "extents that overflow": ({"shape": (2**40, 2**40)}, "shape is invalid"),
    "bytes that overflow": ({"shape": (2**62,)}, "shape is invalid"),
    "largest extent": ({"shape": (2**63 - 1,)}, "shape is invalid"),
    "no memory": ({"null": True}, "has elements, but no memory"),
    "stride that overflows": ({"strides": (2**62,)}, "beyond any memory"),
    "stride beyond any memory": ({"strides": (2**60,)}, "beyond any memory"),
    "strides that add up to an overflow": (
        {"shape": (2,) * 4, "strides": (2**59,) * 4},
        "beyond any memory",
    ),
    "strides that add up to an overflow below": (
        {"shape": (2,) * 4, "strides": (-(2**59),) * 4},
        "beyond any memory",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_impossible_dlpack_tensors_are_value_errors(name):
    told, text = LIES[name]
    for make in (ndd.as_tensor, ndd.tensor, ndd.batch):
        producer = Producer(**told)
        with pytest.raises(ValueError, match=f"DLPack data of this Producer: .*{text}"):
            make(producer)
        assert producer.deleted == 1, "given back, as it was taken"


@pytest.mark.parametrize(
    "element", [(2, 32, 4), (2, 32, 0), (2, 24, 1), (2, 4, 1), (99, 32, 1), (3, 64, 1), (5, 64, 1)]
)
def test_unknown_dlpack_elements_are_type_errors_that_tell_what_is_known(element):
    producer = Producer(element=element)
    with pytest.raises(TypeError, match=r"type code \d+ with \d+ bits.*Supported are"):
        ndd.as_tensor(producer)
    assert producer.deleted == 1


def test_memory_of_a_device_is_refused_also_when_the_object_said_otherwise():
    with pytest.raises(TypeError, match="host"):
        ndd.as_tensor(Producer(kind=2, told_device=(2, 0)))
    with pytest.raises(BufferError, match=r"on a device \(DLPack type 2"):
        ndd.as_tensor(Producer(kind=2))


def test_dlpack_of_a_later_major_version_is_a_buffer_error():
    producer = Producer(version=(2, 0))
    with pytest.raises(BufferError, match=r"version 2 is not supported; the newest .* is 1"):
        ndd.as_tensor(producer)
    assert producer.deleted == 0, "the capsule is still its producer's"


class Answers:
    """A producer with the given answers."""

    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        if isinstance(self.capsule, BaseException):
            raise self.capsule
        return self.capsule


@pytest.mark.parametrize("capsule", [5, None, "x", object(), np.zeros(2)], ids=steady_repr)
def test_what_is_no_capsule_is_a_type_error(capsule):
    with pytest.raises(TypeError, match="DLPack capsule"):
        ndd.as_tensor(Answers(capsule))


def test_capsules_of_others_are_type_errors():
    import datetime

    with pytest.raises(TypeError, match="DLPack capsule"):
        ndd.as_tensor(Answers(datetime.datetime_CAPI))


def test_a_capsule_can_be_used_once():
    capsule = np.arange(3).__dlpack__()
    first = ndd.as_tensor(Answers(capsule))
    with pytest.raises(TypeError, match="DLPack capsule"):
        ndd.as_tensor(Answers(capsule))
    assert numbers(first) == [0, 1, 2]


@pytest.mark.parametrize("error", [KeyError("mine"), TypeError("mine"), BufferError("mine")])
def test_errors_of_a_producer_pass_through(error):
    with pytest.raises(type(error), match="mine"):
        ndd.as_tensor(Answers(error))


@pytest.mark.parametrize("device", [None, 5, (1,), ("x", 0), (1, 0, 0)])
def test_a_device_that_makes_no_sense_is_an_error(device):
    with pytest.raises((TypeError, ValueError)):
        ndd.as_tensor(Answers(np.zeros(2).__dlpack__(), device))
