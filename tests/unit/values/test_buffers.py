"""Inconsistent buffers and DLPack tensors: errors, never crashes."""

import array
import ctypes
import mmap
import random

import numpy as np
import pytest

import penstock as ndd


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


ALIVE = []  # producers without a deleter, kept alive


class Producer:
    """Describes 24 floats as requested."""

    def __init__(self, **told):
        self.memory = np.arange(24, dtype=np.float32)
        told = {
            "data": self.memory.ctypes.data,
            "device_type": 1,
            "device_id": 0,
            "ndim": 2,
            "code": 2,
            "bits": 32,
            "lanes": 1,
            "shape": [4, 6],
            "strides": None,
            "byte_offset": 0,
            **told,
        }
        self.arrays = {name: self.axes(told[name]) for name in ("shape", "strides")}
        self.managed = DLManagedTensor(DLTensor(**{**told, **self.arrays}), None, None)
        ALIVE.append(self)

    @staticmethod
    def axes(numbers):
        return None if numbers is None else (ctypes.c_int64 * len(numbers))(*numbers)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self):
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


def test_an_honest_producer_is_understood():
    made = ndd.as_tensor(Producer(byte_offset=8, shape=[2, 3], strides=[6, 1]))
    assert np.asarray(made).tolist() == [[2, 3, 4], [8, 9, 10]]
    made = ndd.as_tensor(Producer(data=None, shape=[0, 6]))
    assert made.shape == (0, 6)


LIES = {
    "no memory": {"data": None},
    "no shape": {"shape": None},
    "a negative extent": {"shape": [-4, 6]},
    "a huge extent": {"shape": [2**62, 2]},
    "extents that overflow": {"shape": [2**32, 2**32]},
    "strides that overflow": {"strides": [2**62, 1]},
    "strides beyond all memory": {"strides": [2**58, 1]},
    "a huge offset": {"byte_offset": 2**64 - 8},
    "a negative rank": {"ndim": -1},
    "a huge rank": {"ndim": 2**31 - 1},
    "a device": {"device_type": 2},
    "lanes": {"lanes": 4},
    "odd bits": {"bits": 7},
    "an unknown kind": {"code": 99},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("make", [ndd.as_tensor, ndd.tensor, ndd.as_batch])
def test_a_lie_that_can_be_seen_is_refused(lie, make):
    with pytest.raises((TypeError, ValueError, BufferError), match="DLPack"):
        make(Producer(**lie))


def test_random_descriptions_are_refused_or_read():
    numbers = random.Random(1)
    pick = numbers.choice
    for _ in range(2000):
        ndim = numbers.randint(0, 2)
        told = {
            "ndim": ndim,
            "code": numbers.randint(0, 7),
            "bits": pick([0, 1, 8, 16, 32, 64, 255]),
            "lanes": pick([1, 1, 1, 0, 2]),
            "shape": [pick([-1, 0, 1, 2, 3, 2**63 - 1]) for _ in range(ndim)] or None,
            "strides": pick([None, [pick([0, 1, 2, 2**63 - 1, -(2**63)]) for _ in range(ndim)]]),
        }
        try:
            made = ndd.as_tensor(Producer(**told))
        except (TypeError, ValueError, BufferError):
            continue
        made = ndd.tensor(made)
        assert made.shape == tuple(told["shape"] or ())


def test_memory_in_use_is_not_taken_away():
    for data, shrink in (
        (bytearray(16), lambda data: data.clear()),
        (array.array("i", [1, 2, 3, 4]), lambda data: data.pop()),
        (mmap.mmap(-1, 16), lambda data: data.close()),
    ):
        made = ndd.as_tensor(data)
        view = np.asarray(made)
        with pytest.raises(BufferError):
            shrink(data)
        del made
        with pytest.raises(BufferError):
            shrink(data)
        del view
        shrink(data)


def test_a_view_outlives_the_view_it_was_made_of():
    data = memoryview(bytearray(b"abc"))
    made = ndd.as_tensor(data)
    data.release()
    assert np.asarray(made).tolist() == [97, 98, 99]
    with pytest.raises((TypeError, ValueError)):
        ndd.as_tensor(data)


@pytest.mark.parametrize(
    "interface",
    [
        {"shape": (4,), "typestr": "<f4", "data": (0, False), "version": 3},
        {"shape": (-4,), "typestr": "<f4", "data": b"1234" * 4, "version": 3},
        {"shape": (4,), "typestr": "?", "version": 3},
    ],
)
def test_array_interfaces_that_lie(interface):
    class Liar:
        __array_interface__ = interface

    with pytest.raises((TypeError, ValueError)):
        ndd.as_tensor(Liar())
