import threading
import types

import pytest

from penstock._runtime import device as _device
from penstock._runtime import stream as _stream
from penstock._runtime.device import Device
from penstock._runtime.stream import (
    Stream,
    get_current_stream,
    get_default_stream,
    set_current_stream,
    set_default_stream,
    stream,
)

pytestmark = pytest.mark.usefixtures("fresh_streams")


def protocol_stream(handle):
    return types.SimpleNamespace(__cuda_stream__=lambda: (0, handle))


def torch_stream(handle, device_index):
    return types.SimpleNamespace(cuda_stream=handle, device_index=device_index)


def test_new_streams_differ_and_are_on_the_current_gpu():
    first, second = stream(), Stream()
    assert first != second
    assert first == first
    assert first.device_id == second.device_id == 0
    with Device("gpu", 2):
        assert stream().device_id == 2
        assert stream(device_id=5).device_id == 5
    assert first.__cuda_stream__() == (0, first.handle)
    assert first.handle > 2  # lower ones have a special meaning


def test_argument_goes_by_position_or_by_name():
    assert stream(5).handle == stream(stream=5).handle == 5
    assert stream(None) is None
    assert stream(stream=None) is None


def test_stream_stays_itself():
    made = stream(device_id=1)
    assert stream(made) is made
    assert stream(made, device_id=1) is made
    assert Stream(stream=made) == made


@pytest.mark.parametrize(
    ("foreign", "handle", "device_id"),
    [
        (7, 7, 0),
        (protocol_stream(8), 8, 0),
        (torch_stream(9, 3), 9, 3),
    ],
)
def test_foreign_streams_are_wrapped(foreign, handle, device_id):
    wrapped = stream(foreign)
    assert (wrapped.handle, wrapped.device_id) == (handle, device_id)
    assert wrapped == foreign
    assert wrapped == stream(foreign)
    assert wrapped != stream(handle + 1)


def test_wrapped_stream_lives_as_long_as_its_wrapper():
    foreign = protocol_stream(8)
    assert stream(foreign)._owner is foreign


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="Omit it"):
        Stream(stream=None)
    for wrong in ("x", 1.5, object()):
        with pytest.raises(TypeError, match="Expected a stream"):
            stream(wrong)
    with pytest.raises(ValueError, match="negative"):
        stream(-1)
    with pytest.raises(ValueError, match="between 0 and 7"):
        stream(device_id=8)
    with pytest.raises(ValueError, match="on gpu:3, but device_id=1"):
        stream(torch_stream(9, 3), device_id=1)
    with pytest.raises(ValueError, match="on gpu:3, but device_id=1"):
        stream(stream(device_id=3), device_id=1)


def test_streams_are_unhashable_and_print_readably():
    with pytest.raises(TypeError, match="unhashable"):
        hash(stream(5))
    assert repr(stream(0x20)) == str(stream(0x20)) == "Stream(handle=0x20, device_id=0)"
    for other in ("x", None, -1, 6):
        assert stream(5) != other


def test_a_thread_has_a_stream_on_the_emulated_gpu():
    own = get_current_stream()
    own.synchronize()
    assert own.device_id == 0
    assert get_current_stream() is own
    with Device("gpu", 0):
        assert get_current_stream() is own


def test_there_is_no_stream_where_a_gpu_is_refused(monkeypatch):
    monkeypatch.setenv("PENSTOCK_GPU", "error")
    _device._policy.cache_clear()
    assert get_current_stream() is None


def test_there_is_no_default_stream_until_one_is_set():
    assert get_default_stream() is None
    assert get_default_stream(3) is None
    set_current_stream(None)
    set_default_stream(None)


def test_set_stream_is_the_current_one_until_reset():
    set_current_stream(5)
    assert get_current_stream() == 5
    with Device("gpu", 0):
        assert get_current_stream() == 5
    set_current_stream(None)
    assert get_current_stream() != 5


def test_current_stream_is_per_device():
    set_current_stream(5)
    with Device("gpu", 1):
        own = get_current_stream()
        assert own.device_id == 1
        assert get_current_stream() is own
        set_current_stream(stream(6))
        assert get_current_stream() == stream(6)
    assert get_current_stream() == stream(5)


def test_stream_of_another_device_than_the_current_is_refused():
    with pytest.raises(ValueError, match=r'Device\("gpu", 2\)'):
        set_current_stream(stream(device_id=2))


def test_each_thread_has_its_own_current_stream():
    seen = []

    def other():
        with Device("gpu", 0):
            seen.append(get_current_stream())

    set_current_stream(5)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[0] != stream(5)


def test_default_stream_is_for_all_threads_that_choose_none():
    seen = []
    set_default_stream(stream(9, device_id=2))
    set_default_stream(7)
    assert (get_default_stream(), get_default_stream(2).handle) == (stream(7), 9)

    def other():
        with Device("gpu", 2):
            seen.append(get_current_stream())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [stream(9, device_id=2)]
    assert get_current_stream() == 7
    set_current_stream(8)
    assert get_current_stream() == 8
    set_default_stream(None, 2)
    assert get_default_stream(2) is None
    with pytest.raises(ValueError, match="between 0 and 7"):
        get_default_stream(8)


def test_default_stream_of_a_device_by_id():
    set_default_stream(5, device_id=3)
    assert get_default_stream(3).device_id == 3
    with pytest.raises(ValueError, match="on gpu:3"):
        set_default_stream(get_default_stream(3), device_id=1)


def test_synchronize_waits_for_the_workers(monkeypatch):
    waited = []
    monkeypatch.setattr(_stream, "drain_all", lambda: waited.append(True))
    stream().synchronize()
    assert waited == [True]


def test_error_policy_refuses_streams(monkeypatch):
    monkeypatch.setenv("PENSTOCK_GPU", "error")
    _device._policy.cache_clear()
    monkeypatch.setattr(_device, "_devices", {-1: Device.CPU})
    with pytest.raises(RuntimeError, match="PENSTOCK_GPU"):
        stream()
