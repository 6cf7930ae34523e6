import copy
import pickle
import subprocess
import sys
import threading
import types
import warnings

import numpy as np
import pytest

from penstock._runtime import device as _device
from penstock._runtime.device import Device, EmulatedDeviceWarning, device


@pytest.fixture
def policy(monkeypatch):
    """Sets PENSTOCK_GPU, as it would be in a process that has not used a gpu yet."""

    def choose(value):
        if value is None:
            monkeypatch.delenv("PENSTOCK_GPU", raising=False)
        else:
            monkeypatch.setenv("PENSTOCK_GPU", value)
        _device._policy.cache_clear()

    monkeypatch.setattr(_device, "_first_use", threading.Lock())
    monkeypatch.setattr(_device, "_devices", {-1: Device.CPU})
    monkeypatch.setattr(_device, "_named", {"cpu": Device.CPU})
    yield choose
    _device._policy.cache_clear()


@pytest.fixture
def emulated(policy):
    policy("emulate")


def torch_device(kind, index=None):
    """An object that looks like a torch.device, to code that must not import torch."""
    made = type("device", (), {"__module__": "torch"})()
    made.type, made.index = kind, index
    return made


def test_the_host_is_one_device():
    assert Device("cpu") is Device.CPU
    assert Device("cpu", None) is Device.CPU
    assert (Device.CPU.device_type, Device.CPU.device_id, Device.CPU._code) == ("cpu", None, -1)
    assert str(Device.CPU) == "cpu"
    assert repr(Device.CPU) == "Device(device_type='cpu')"


@pytest.mark.usefixtures("emulated")
def test_every_name_of_a_gpu_gives_the_same_device():
    gpu = Device("gpu", 3)
    assert Device("gpu:3") is gpu
    assert Device("cuda:3") is gpu
    assert Device("cuda", np.int64(3)) is gpu
    assert device("gpu", 3) is gpu
    assert (gpu.device_type, gpu.device_id, gpu._code) == ("gpu", 3, 3)
    assert str(gpu) == "gpu:3"
    assert repr(gpu) == "Device(device_type='gpu', device_id=3)"
    assert gpu == Device("gpu:3")
    assert gpu != Device("gpu:4")
    assert gpu != Device.CPU
    assert len({gpu, Device("cuda:3"), Device.CPU}) == 2


@pytest.mark.usefixtures("emulated")
def test_copies_are_the_same_device():
    for original in (Device.CPU, Device("gpu:2")):
        assert copy.copy(original) is original
        assert copy.deepcopy(original) is original
        assert pickle.loads(pickle.dumps(original)) is original


def test_comparison_with_anything_else_is_false():
    for other in ("cpu", None, 0):
        assert other != Device.CPU
        assert other != Device.CPU


def test_devices_can_t_be_changed():
    with pytest.raises(AttributeError, match="modified"):
        Device.CPU.device_id = 1
    with pytest.raises(AttributeError, match="modified"):
        del Device.CPU.device_id


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mixed",), 'device="gpu"'),
        (("tpu",), "expected 'cpu', 'gpu'"),
        (("CPU",), "expected 'cpu', 'gpu'"),
        (("",), "expected 'cpu', 'gpu'"),
        (("gpu:",), "gpu:<id>"),
        (("gpu:x",), "gpu:<id>"),
        (("gpu:-1",), "gpu:<id>"),
        (("gpu:1:2",), "gpu:<id>"),
        (("gpu:8",), "between 0 and 7"),
        (("gpu", 8), "between 0 and 7"),
        (("gpu", -1), "between 0 and 7"),
        (("gpu:1", 1), "given twice"),
        (("cpu", 0), "'cpu' has no id"),
        (("cpu:0",), "'cpu' has no id"),
    ],
)
def test_wrong_name_or_id_is_a_value_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        Device(*arguments)
    with pytest.raises(ValueError, match=message):
        device(*arguments)


@pytest.mark.usefixtures("emulated")
def test_wrong_types_are_type_errors():
    with pytest.raises(TypeError, match="must be a string"):
        Device(3)
    with pytest.raises(TypeError, match="must be an integer"):
        Device("gpu", "1")
    for wrong in (3, [1], b"cpu"):
        with pytest.raises(TypeError, match="expected a Device"):
            device(wrong)


def test_device_passes_devices_and_none_through():
    assert device(None) is None
    assert device(Device.CPU) is Device.CPU
    with pytest.raises(ValueError, match="already"):
        device(Device.CPU, 0)


@pytest.mark.usefixtures("emulated")
def test_torch_devices_are_understood_without_torch():
    assert device(torch_device("cpu")) is Device.CPU
    assert device(torch_device("cpu", 0)) is Device.CPU
    assert device(torch_device("cuda", 2)) is Device("gpu:2")
    with Device("gpu:5"):
        assert device(torch_device("cuda")) is Device("gpu:5")
    with pytest.raises(ValueError, match="meta"):
        device(torch_device("meta"))


@pytest.mark.usefixtures("emulated")
def test_real_torch_devices_are_understood():
    torch = pytest.importorskip("torch")
    assert device(torch.device("cpu")) is Device.CPU
    assert device(torch.device("cuda:1")) is Device("gpu:1")


@pytest.mark.usefixtures("emulated")
def test_current_is_the_host_or_the_innermost_block_s():
    assert Device.current() is Device.CPU
    with Device("gpu", 1) as gpu:
        assert Device.current() is gpu is Device("gpu")
        with Device.CPU:
            assert Device.current() is Device.CPU
            assert Device("gpu") is gpu
        with Device("gpu", 4):
            assert Device("gpu").device_id == Device.default_device_id("gpu") == 4
        assert Device.current() is gpu
    assert Device.current() is Device.CPU
    assert Device("gpu").device_id == 0


@pytest.mark.usefixtures("emulated")
def test_each_thread_has_its_own_current_device():
    seen = []
    with Device("gpu", 1):
        thread = threading.Thread(target=lambda: seen.extend([Device.current(), Device("gpu")]))
        thread.start()
        thread.join()
    assert seen == [Device.CPU, Device("gpu:0")]


def test_default_ids():
    assert Device.default_device_id("cpu") is None
    with pytest.raises(ValueError, match="Invalid device 'x'"):
        Device.default_device_id("x")


@pytest.mark.usefixtures("emulated")
def test_dlpack_devices_are_found():
    assert Device.from_dlpack(np.zeros(3)) is Device.CPU
    on_gpu = types.SimpleNamespace(__dlpack_device__=lambda: (2, 3))
    assert Device.from_dlpack(on_gpu) is Device("gpu:3")
    assert (Device.type_from_dlpack(1), Device.type_from_dlpack(2)) == ("cpu", "gpu")
    with pytest.raises(ValueError, match="13"):
        Device.type_from_dlpack(13)
    with pytest.raises(TypeError, match="__dlpack_device__"):
        Device.from_dlpack((1, 0))


@pytest.mark.parametrize("value", [None, "", "auto"])
def test_first_gpu_warns_once_at_the_user_s_line(policy, value):
    policy(value)
    with pytest.warns(EmulatedDeviceWarning, match="PENSTOCK_GPU=emulate") as caught:
        Device("gpu")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Device("gpu:1")
        device("cuda:2")


def test_only_one_of_many_threads_warns(policy):
    policy("auto")
    start = threading.Barrier(8)

    def make(ordinal):
        start.wait()
        Device("gpu", ordinal)

    threads = [threading.Thread(target=make, args=(ordinal,)) for ordinal in range(8)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [warning.category for warning in caught] == [EmulatedDeviceWarning]


def test_cpu_never_warns(policy):
    policy("auto")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Device("cpu")
        device("cpu")
        Device.current()


def test_error_policy_refuses_a_gpu_and_says_what_to_do(policy):
    policy("error")
    for ask in (lambda: Device("gpu"), lambda: device("gpu:1"), lambda: Device("cuda", 2)):
        with pytest.raises(RuntimeError, match="PENSTOCK_GPU=emulate"):
            ask()
    with pytest.raises(RuntimeError, match="device='cpu'"):
        Device.default_device_id("gpu")
    assert Device("cpu") is Device.CPU


def test_unknown_policy_is_a_value_error_that_names_the_known_ones(policy):
    policy("yes")
    with pytest.raises(ValueError, match="'auto', 'emulate' or 'error', got 'yes'"):
        Device("gpu")


def test_torch_is_not_imported():
    code = "import sys, penstock as p; p.Device('cpu'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
