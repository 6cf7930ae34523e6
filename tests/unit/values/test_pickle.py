"""Pickle, copy and deepcopy of values, RNGs and constants."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import penstock as ndd
from penstock import types
from penstock.errors import DecodeError

pytestmark = pytest.mark.usefixtures("emulated")


DTYPES = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64"


def through(value, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(value, protocol))


def assert_same(made, value):
    assert type(made) is type(value)
    assert made.dtype is value.dtype
    assert made.layout == value.layout
    assert made.device is value.device
    assert made.shape == value.shape
    assert made.source_info == value.source_info
    assert bytes_of(made) == bytes_of(value)


def bytes_of(value):
    memory = value._value.concatenated()
    start = memory.offset
    return bytes(memory)[start : start + memory.shape[0]]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", DTYPES.split())
def test_tensors_of_every_type(name, protocol):
    dtype = getattr(ndd, name)
    value = ndd.tensor(ndd.tensor([[0, 1, 2], [3, 4, 5]]), dtype=dtype, layout="HW")
    assert_same(through(value, protocol), value)


VALUES = {
    "scalar": lambda: ndd.tensor(5),
    "no elements": lambda: ndd.tensor(np.zeros((0, 3))),
    "strided": lambda: ndd.as_tensor(np.arange(12).reshape(3, 4).T[::-1]),
    "enum": lambda: ndd.tensor(types.INTERP_CUBIC),
    "memory of others": lambda: ndd.as_tensor(np.arange(5)),
    "on a gpu": lambda: ndd.tensor([1, 2]).gpu(3),
    "uniform": lambda: ndd.batch(np.arange(24).reshape(2, 3, 4), layout="HW"),
    "ragged": lambda: ndd.batch([[1, 2, 3], [4], []], layout="X"),
    "parts of a block": lambda: ndd.batch(np.arange(24).reshape(6, 4)).tensors[::-2],
    "no samples": lambda: ndd.batch([], dtype=ndd.float32),
    "repeated": lambda: ndd.Batch.broadcast([1, 2], 3),
    "batch on a gpu": lambda: ndd.batch([[1], [2, 3]]).gpu(),
    "pending": lambda: ndd.gaussian_blur(
        ndd.batch(np.ones((4, 64, 64, 3), np.uint8), layout="HWC"), sigma=2.0
    ),
}
each_value = pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)


@each_value
def test_values(make):
    value = make()
    assert_same(through(value), value)


@each_value
def test_copies(make):
    value = make()
    assert_same(copy.copy(value), value)
    assert_same(copy.deepcopy(value), value)
    assert_same(copy.deepcopy([value, {"x": value}])[1]["x"], value)


def test_a_copy_shares_memory_and_a_deep_copy_does_not():
    for value in (ndd.tensor([1, 2]), ndd.batch(np.zeros((2, 3)))):
        memory = np.asarray(ndd.as_tensor(value))
        assert np.shares_memory(memory, np.asarray(ndd.as_tensor(copy.copy(value))))
        assert not np.shares_memory(memory, np.asarray(ndd.as_tensor(copy.deepcopy(value))))


def test_where_samples_came_from(tmp_path):
    for index in range(3):
        (tmp_path / f"{index}.jpg").write_bytes(b"x" * (index + 1))
    [(files, labels)] = ndd.readers.File(
        file_root=tmp_path, files=["0.jpg", "1.jpg", "2.jpg"]
    ).next_epoch(batch_size=3)
    assert files.source_info[0] is not None
    assert_same(through(files), files)
    assert_same(through(files.tensors[1]), files.tensors[1])
    assert_same(through(labels), labels)


def test_large_data_goes_beside_the_pickle():
    for value in (ndd.tensor(np.zeros(10_000)), ndd.batch(np.zeros((10, 1000)))):
        buffers = []
        text = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        assert len(text) < 1000
        assert sum(buffer.raw().nbytes for buffer in buffers) == 80_000
        assert_same(pickle.loads(text, buffers=buffers), value)


def test_what_was_pickled_is_the_new_values_own():
    value = through(ndd.tensor([1, 2, 3]))
    assert not value._value.external
    np.asarray(value)[0] = 7


def test_what_failed_raises_where_it_is_pickled():
    broken = ndd.decoders.image(ndd.batch([np.frombuffer(b"no image", np.uint8)]))
    with pytest.raises(Exception, match="image"):
        pickle.dumps(broken)


def undecodable(_):
    return ndd.decoders.image(ndd.tensor(np.frombuffer(b"no image", np.uint8)))


def test_what_failed_in_a_process_of_a_pool_raises_where_it_is_read():
    # The process would end while it says what it could not pickle, and the pool wait for ever.
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for made in pool.map_async(undecodable, range(2)).get(60):
            with pytest.raises(DecodeError, match="this is none of JPEG"):
                made.evaluate()


def test_notes_of_users_travel():
    value = ndd.tensor([1])
    value.note = "mine"
    for way in (through, copy.copy, copy.deepcopy):
        assert way(value).note == "mine"


def test_damaged_pickles_raise():
    rebuild, (kind, data, *_), *_ = ndd.tensor([1, 2, 3]).__reduce__()
    for shapes, sources, text in (
        ([(4,)], [None], r"don't fit the shape \[4\]"),
        ([(3,)], [], "1 shapes and 0 sources"),
        ([(2**62, 8)], [None], "don't fit the shape"),
        ([], [], "0 shapes and 0 sources"),
    ):
        ndim = len(shapes[0]) if shapes else 1
        with pytest.raises(ValueError, match=f"packed samples .*{text}"):
            rebuild(kind, data, ndd.int32, ndim, False, shapes, sources, None, ndd.Device.CPU)
    with pytest.raises(ValueError, match="packed samples"):
        rebuild(kind, data[1:], ndd.int32, 1, False, [(3,)], [None], None, ndd.Device.CPU)


CONSTANTS = {
    "dtype": lambda: ndd.float32,
    "bfloat16": lambda: ndd.bfloat16,
    "cpu": lambda: ndd.Device("cpu"),
    "gpu": lambda: ndd.Device("gpu", 2),
    "mode": lambda: ndd.EvalMode.deferred,
    "interpolation": lambda: types.INTERP_CUBIC,
    "image type": lambda: types.RGB,
    "data type": lambda: types.FLOAT16,
}


@pytest.mark.parametrize("make", CONSTANTS.values(), ids=CONSTANTS)
@pytest.mark.parametrize("way", [through, copy.copy, copy.deepcopy])
def test_constants_stay_themselves(make, way):
    assert way(make()) is make()


CONTEXTS = {
    "default": lambda: ndd.EvalContext(),
    "threads": lambda: ndd.EvalContext(num_threads=3),
    "pool": lambda: ndd.EvalContext(thread_pool=ndd.ThreadPool(3, device_id=None)),
    "gpu": lambda: ndd.EvalContext(device_id=2, num_threads=3),
}


@pytest.mark.parametrize("make", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("way", [through, copy.copy, copy.deepcopy])
def test_contexts_are_made_anew(make, way):
    context = make()
    with context:
        ndd.copy(np.zeros((1000, 1000))).evaluate()
        made = way(context)
    assert (made.num_threads, made.device_id) == (context.num_threads, context.device_id)
    with context, made:
        assert ndd.EvalContext.current() is made
        assert (ndd.tensor([1]) + 1).item() == 2
