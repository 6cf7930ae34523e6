"""Programs as the documents of the API show them, with another import and nothing else changed."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

import penstock as ndd
from penstock._runtime import stream as _stream


@pytest.fixture(autouse=True)
def fresh_streams(monkeypatch, emulated):
    monkeypatch.setattr(_stream, "_local", _stream._Local())


data = np.arange(12, dtype=np.float32).reshape(4, 3)
arr1, arr2 = np.zeros((2, 3), np.uint8), np.ones((5, 3), np.uint8)
jpegs = ndd.batch([np.zeros((6, 8, 3), np.uint8), np.zeros((4, 4, 3), np.uint8)], layout="HWC")


# Tensor


def test_tensor_block():
    t = ndd.tensor(data)
    assert not np.shares_memory(np.asarray(t), data)
    t = ndd.as_tensor(data)
    assert np.shares_memory(np.asarray(t), data)
    assert t.cpu().device.device_type == "cpu"
    assert t.gpu().device.device_type == "gpu"
    assert t.torch(copy=False).data_ptr() == data.ctypes.data
    assert t[1:3].shape == (2, 3)
    np.testing.assert_array_equal(np.asarray(t), data)


def test_tensor_supports_its_protocols():
    t = ndd.tensor(data)
    assert torch.from_dlpack(t).shape == (4, 3)
    np.testing.assert_array_equal(np.asarray(t + t), data * 2)


# Batch


def test_batch_block():
    b = ndd.batch([arr1, arr2])
    assert b.shape == [(2, 3), (5, 3)]
    b = ndd.as_batch([arr1, arr2])
    assert np.shares_memory(np.asarray(b.tensors[1]), arr2)


def test_batch_table_of_intents():
    batch = ndd.batch([arr1, arr2])
    with pytest.raises(TypeError):
        batch[0]
    for sample in (batch.select(1), batch.tensors[1]):
        assert isinstance(sample, ndd.Tensor)
        assert sample.shape == (5, 3)
    for subset in (batch.select([1]), batch.tensors[1:], batch.tensors[[1]]):
        assert isinstance(subset, ndd.Batch)
        assert subset.shape == [(5, 3)]
    assert batch.slice[0].shape == [(3,), (3,)]
    assert batch.slice[ndd.batch([1, 4])].shape == [(3,), (3,)]


def test_select_picks_samples_and_slice_indexes_inside():
    xy = ndd.batch(np.random.default_rng(0).random((16, 2), np.float32))
    crop_x = xy.slice[0]
    crop_y = xy.slice[1]
    sample_0 = xy.select(0)
    assert crop_x.batch_size == crop_y.batch_size == 16
    assert crop_x.ndim == 0
    assert sample_0.shape == (2,)
    assert xy.tensors[0].torch().tolist() == [crop_x.select(0).item(), crop_y.select(0).item()]


def test_advanced_slicing():
    imgs = ndd.batch([np.zeros((100, 10, 3), np.uint8), np.zeros((90, 20, 3), np.uint8)])
    half = ndd.batch([shape[0] // 2 for shape in imgs.shape])
    assert np.asarray(ndd.batch(imgs.shape).slice[0].tensors[1]) == 90
    sliced = imgs.slice[42:half]
    assert sliced.shape == [(8, 10, 3), (3, 20, 3)]


def test_batch_to_torch():
    uniform, ragged = ndd.batch([arr1, arr1]), ndd.batch([arr1, arr2])
    assert uniform.torch().shape == (2, 2, 3)
    assert uniform.torch(copy=None).shape == (2, 2, 3)
    with pytest.raises(ValueError):
        ragged.torch()
    assert ragged.torch(pad=True).shape == (2, 5, 3)
    assert not hasattr(uniform, "__dlpack__")
    assert torch.from_dlpack(ndd.as_tensor(uniform)).shape == (2, 2, 3)
    assert ndd.as_tensor(ragged, pad=True).shape == (2, 5, 3)


def test_batch_iteration():
    for sample in ndd.batch([arr1, arr2]):
        assert isinstance(sample, ndd.Tensor)


# Devices


def test_device_is_inferred_from_inputs():
    assert ndd.flip(jpegs).device.device_type == "cpu"
    assert ndd.flip(jpegs.gpu()).device.device_type == "gpu"
    assert ndd.flip(jpegs, device="gpu").device.device_type == "gpu"
    with pytest.raises(ValueError, match="gpu"):
        ndd.flip(jpegs, device="mixed")


def test_device_block():
    with ndd.Device("gpu", device_id=1):
        images = ndd.flip(jpegs, device="gpu")
    assert (images.device.device_type, images.device.device_id) == ("gpu", 1)


# Execution


def test_flip_loop_of_the_overview():
    flip_horizontal, flip_vertical = True, False
    seen = []
    for img in (jpegs, jpegs):
        flipped = ndd.flip(img.gpu(), horizontal=flip_horizontal, vertical=flip_vertical)
        seen.append((flipped, img))
    assert [flipped.shape for flipped, _ in seen] == [jpegs.shape] * 2


def test_reading_evaluates_by_itself():
    with ndd.EvalMode.deferred:
        images = ndd.flip(jpegs)
        assert images.shape == jpegs.shape
        assert ndd.flip(jpegs).tensors[0].torch().shape == (6, 8, 3)
        assert [np.asarray(sample).ndim for sample in ndd.flip(jpegs)] == [3, 3]


@pytest.mark.parametrize("mode", [ndd.EvalMode.sync_cpu, ndd.EvalMode.sync_full])
def test_synchronous_modes_raise_at_the_call(mode):
    with mode:
        images = ndd.flip(jpegs, device="gpu")
        with pytest.raises(IndexError):
            images.slice[100]


def test_modes_in_order_of_synchronicity():
    mode = ndd.EvalMode
    assert mode.deferred < mode.eager < mode.sync_cpu < mode.sync_full
    assert mode.default is mode.eager
    assert mode.current() is mode.default
    assert list(mode) == [mode.deferred, mode.eager, mode.sync_cpu, mode.sync_full]


def test_external_data_is_always_read_before_the_call_returns():
    frame = np.zeros((2, 2, 3), np.uint8)
    flipped = ndd.flip(frame)
    frame[:] = 255
    assert np.asarray(flipped).max() == 0


# Threads


def test_set_num_threads():
    before = ndd.get_num_threads()
    try:
        ndd.set_num_threads(8)
        assert ndd.get_num_threads() == 8
        assert ndd.EvalContext.current().num_threads == 8
        assert (ndd.batch([1, 2]) + 1).torch().tolist() == [2, 3]
    finally:
        ndd.set_num_threads(None)
    assert ndd.get_num_threads() == before


def test_number_of_threads_by_the_environment_or_the_cpus():
    code = "import penstock as ndd; print(ndd.get_num_threads())"
    bare = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    ask = lambda **more: int(  # noqa: E731
        subprocess.run(
            [sys.executable, "-c", code], env={**bare, **more}, capture_output=True, check=True
        ).stdout
    )
    assert ask(DALI_NUM_THREADS="3") == 3
    assert 1 <= ask() <= os.cpu_count()


# Contexts and streams


def test_context_block():
    with ndd.EvalContext(device_id=3, num_threads=4) as context:
        assert ndd.EvalContext.current() is context
        images = ndd.flip(jpegs, device="gpu")
        assert (context.num_threads, images.device.device_id) == (4, 3)
    assert ndd.EvalContext.current() is ndd.EvalContext.default()


def test_a_context_is_not_shared_by_threads():
    raised = []

    def enter(context):
        try:
            with context:
                pass
        except RuntimeError as error:
            raised.append(str(error))

    with ndd.EvalContext() as context:
        thread = threading.Thread(target=enter, args=(context,))
        thread.start()
        thread.join()
    assert len(raised) == 1
    assert "EvalContext" in raised[0]


def test_stream_block():
    class TorchStream:
        """What `torch.cuda.current_stream()` returns, as far as it is looked at."""

        cuda_stream, device_index = 4096, 0

    ndd.set_current_stream(TorchStream())
    images = ndd.flip(jpegs, device="gpu")
    assert images.device.device_type == "gpu"
    ndd.set_current_stream(None)

    class Exposed:
        def __cuda_stream__(self):
            return (0, 8192)

    assert ndd.stream(Exposed()) is not None
    assert ndd.stream(12288) is not None
    assert ndd.stream() != ndd.stream()


def test_mode_and_context_are_those_of_a_thread():
    found = []
    with ndd.EvalMode.sync_cpu, ndd.EvalContext(num_threads=3):
        thread = threading.Thread(
            target=lambda: found.append(
                (ndd.EvalMode.current(), ndd.EvalContext.current().num_threads)
            )
        )
        thread.start()
        thread.join()
    assert found == [(ndd.EvalMode.default, ndd.get_num_threads())]


# The table of common mistakes


def test_mistakes_are_told_what_is_right():
    batch = ndd.batch([arr1, arr2])
    with pytest.raises(ValueError, match='"gpu"'):
        ndd.flip(jpegs, device="mixed")
    with pytest.raises(TypeError, match=r"tensors\[i\].*select\(i\).*slice\[i\]"):
        batch[0]
    assert batch.select(0).shape == (2, 3)
    assert batch.slice[0].shape == [(3,), (3,)]
