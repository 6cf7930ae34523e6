"""The self-test: that it runs, and that it finds what is wrong."""

import subprocess
import sys

import pytest
import torch

from penstock._accelerators import self_test
from penstock._accelerators.torch_accelerator import TorchAccelerator


@pytest.fixture
def small(monkeypatch):
    for name, value in {"BATCHES": 3, "BATCH_BYTES": 1000, "LOAD": 1}.items():
        monkeypatch.setattr(self_test, name, value)
    monkeypatch.setattr(self_test, "TRANSFERS", 1)
    monkeypatch.setattr(self_test, "TRANSFER_BYTES", 1000)


def report_of(accelerator, install):
    install(accelerator)
    lines = []
    return self_test.run(lines.append), lines


def failed(lines):
    return [line.split(":")[0].split(maxsplit=1)[1] for line in lines if "FAILED" in line]


def test_a_device_that_works_passes(install, small):
    is_well, lines = report_of(TorchAccelerator("cpu", 1), install)
    assert is_well, lines
    assert lines[0] == "gpu:0 is cpu:0, cpu."
    assert [line.split()[0] for line in lines[1:6]] == ["ok"] * 5
    assert "GB/s from other memory" in lines[5]
    assert lines[-1] == "All is well."


def test_wrong_data_is_found(install, small):
    class Broken(TorchAccelerator):
        def copy(self, source, ordinal, stream):
            made = super().copy(source, ordinal, stream)
            if made.dtype == torch.uint8 and made.numel():
                made.flatten()[0] += 1
            return made

    is_well, lines = report_of(Broken("cpu", 1), install)
    assert not is_well
    assert failed(lines) == [
        "element types and shapes",
        "order of copies and computing, under load",
        "host memory is not reused too early",
    ]


def test_errors_of_the_framework_are_results(install, small):
    class Missing(TorchAccelerator):
        def dlpack_device(self, ordinal):
            raise RuntimeError("out of order")

    is_well, lines = report_of(Missing("cpu", 1), install)
    assert not is_well
    assert failed(lines) == ["DLPack"]
    assert "RuntimeError: out of order" in "".join(lines)


def test_types_that_a_device_lacks_are_no_failure(install, small):
    class NoDoubles(TorchAccelerator):
        def copy(self, source, ordinal, stream):
            if source.dtype == torch.float64:
                raise TypeError("no doubles")
            return super().copy(source, ordinal, stream)

    is_well, lines = report_of(NoDoubles("cpu", 1), install)
    assert is_well
    assert "not on this device: f64" in lines[1]


def test_without_an_accelerator_it_says_what_to_do(install):
    is_well, lines = report_of(None, install)
    assert not is_well
    assert lines[0].startswith("No accelerator found: PyTorch ")
    assert "nvidia-smi" in lines[1] or "Install" in lines[1]
    assert "emulated" in lines[2]


def test_emulation_that_was_asked_for_is_named(install):
    install(None, "emulate")
    lines = []
    assert not self_test.run(lines.append)
    assert lines == ["No accelerator is used, since PENSTOCK_GPU=emulate is set."]


@pytest.mark.heavy
def test_it_is_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "penstock._accelerators.self_test"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    if not torch.accelerator.is_available():
        assert done.returncode == 1
        assert done.stdout.startswith("No accelerator found")
