"""PyTorch's side of delivery, with real calls, as far as PyTorch's CPU device goes."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.stand_in import StandIn

import penstock as ndd
from penstock import _accelerators
from penstock._accelerators.interface import Accelerator
from penstock._accelerators.torch_accelerator import TorchAccelerator


@pytest.fixture
def on_cpu(install):
    """PyTorch's CPU, in the place of an accelerator."""
    return install(TorchAccelerator("cpu", 1))


@pytest.mark.parametrize("kind", [TorchAccelerator, StandIn])
def test_methods_are_those_of_the_interface(kind):
    for name, method in inspect.getmembers(Accelerator, inspect.isfunction):
        if not name.startswith("_"):
            expected = inspect.signature(method).parameters
            assert [*inspect.signature(getattr(kind, name)).parameters] == [*expected], name


def test_values_arrive(on_cpu):
    value = ndd.tensor([[1, 2], [3, 4]])
    there = value.gpu().torch()
    assert there.tolist() == [[1, 2], [3, 4]]
    there += 1
    assert value.gpu().torch().tolist() == value.torch().tolist() == [[1, 2], [3, 4]]
    brain = ndd.tensor([1.5], dtype=ndd.bfloat16).gpu().torch()
    assert (brain.dtype, brain.tolist()) == (torch.bfloat16, [1.5])


def test_a_device_without_streams_gets_synchronous_copies(on_cpu):
    assert on_cpu.pinned_like(torch.zeros(3)) is None
    assert on_cpu.new_stream(0) is None
    assert on_cpu.wrap_stream(None, 5, 0) is None
    made = ndd.stream()
    assert made._native is None
    made.synchronize()


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is memory to pin")
def test_memory_that_can_t_be_pinned_is_copied_synchronously(on_cpu):
    on_cpu._has_streams = True
    with pytest.warns(UserWarning, match="Page-locked memory could not be allocated"):
        there = ndd.tensor([1, 2]).gpu().torch()
    assert there.tolist() == [1, 2]


@pytest.mark.heavy
def test_copies_are_on_the_device_with_the_number():
    """Tensors without data, as PyTorch's compiler uses them, need no hardware."""
    from torch._subclasses import FakeTensorMode  # takes long to load

    cuda = TorchAccelerator("cuda", 2)
    with FakeTensorMode():
        assert cuda.copy(torch.zeros(3), 1, None).device == torch.device("cuda", 1)
        assert cuda.dlpack_device(1)[1] == 1


def test_copies_events_and_waiting(on_cpu):
    stream = torch.cpu.Stream()
    source = torch.arange(5)
    made = on_cpu.copy(source, 0, stream)
    assert made.tolist() == [0, 1, 2, 3, 4]
    assert made.data_ptr() != source.data_ptr()
    event = on_cpu.record(stream)
    event.synchronize()
    assert event.query()
    on_cpu.wait(on_cpu.current_stream(0), event)


def test_what_the_device_is_called(on_cpu):
    assert (on_cpu.current(), on_cpu.name(0)) == (0, "cpu")
    assert on_cpu.dlpack_device(0) == torch.zeros(1).__dlpack_device__()


def test_dlpack_in_and_out(on_cpu):
    value = ndd.tensor([1, 2]).gpu()
    assert torch.from_dlpack(value).tolist() == [1, 2]
    assert on_cpu.dlpack(torch.ones(2), None, (1, 0)) is not None
    assert on_cpu.to_host(np.arange(3), 0).tolist() == [0, 1, 2]


def test_the_modules_of_other_devices_have_what_is_used():
    """Which names exist can be told without the hardware."""
    for name in ("cuda", "xpu"):
        module = torch.get_device_module(name)
        for used in ("Stream", "Event", "stream", "current_stream", "get_stream_from_external"):
            assert hasattr(module, used), f"torch.{name}.{used}"
        assert hasattr(module.Stream, "wait_event")
        assert hasattr(module.Stream, "synchronize")
        assert {"record", "query", "synchronize"} <= {*dir(module.Event)}
        assert {"synchronize", "device", "get_device_name"} <= {*dir(module)}
        TorchAccelerator(name, 1)
    assert hasattr(torch.cuda, "default_stream")
    assert hasattr(torch.Tensor, "record_stream")


def test_there_is_none_without_one(monkeypatch):
    if torch.accelerator.is_available():
        pytest.skip("this machine has an accelerator")
    assert _accelerators.find(load=False) is None
    assert "reports no accelerator" in _accelerators.why_none(load=False)


def test_reasons(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert _accelerators.find(load=True) is None
    assert _accelerators.why_none(load=True) == "PyTorch is not installed"
    monkeypatch.delitem(sys.modules, "torch")
    assert _accelerators.find(load=False) is None
    assert "was not imported before the first use" in _accelerators.why_none(load=False)


@pytest.mark.heavy
def test_pytorch_is_loaded_only_where_it_was_asked_for():
    code = """
import sys, penstock as ndd
from penstock._runtime import device
{use}
print("torch" in sys.modules)
"""
    uses = {
        "auto": "ndd.tensor([1]).gpu().cpu().evaluate()",
        "deliver": "device.accelerator()",
    }
    for policy, use in uses.items():
        program = f"import os; os.environ['PENSTOCK_GPU'] = {policy!r}\n" + code.format(use=use)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.stdout == f"{policy == 'deliver'}\n", done.stderr
