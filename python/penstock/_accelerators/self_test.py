"""A self-test of delivery to an accelerator: `python -m penstock._accelerators.self_test`."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock as ndd
from penstock import _accelerators
from penstock._accelerators.delivery import deliver
from penstock._runtime.device import accelerator
from penstock._values.dtype import BY_CODE, DType

if TYPE_CHECKING:
    from penstock._accelerators.interface import Accelerator

if _accelerators.is_installed():
    import torch

BATCHES = 24
BATCH_BYTES = 8 << 20
LOAD = 200
"""Matrix products that the device is kept busy with while copies are requested."""
TRANSFERS = 10
TRANSFER_BYTES = 64 << 20

_SHAPES = [(), (0,), (1,), (3, 5, 7), (257, 129)]


def run(report: Callable[[str], None]) -> bool:
    """Test all accelerators, and report what was found, line by line. Returns whether all is well.

    Takes less than a minute. Without an accelerator, it says why there is none.
    """
    target = _find(report)
    if target is None:
        return False
    checks: dict[str, Callable[[Accelerator, int], str]] = {
        "element types and shapes": _check_types,
        "order of copies and computing, under load": _check_order,
        "host memory is not reused too early": _check_reuse,
        "DLPack": _check_dlpack,
        "throughput": _measure,
    }
    is_well = True
    for ordinal in range(target.count):
        report(f"gpu:{ordinal} is {target.type}:{ordinal}, {target.name(ordinal)}.")
        for title, check in checks.items():
            try:
                detail = check(target, ordinal)
                report(f"  ok      {title}" + (f": {detail}" if detail else ""))
            except Exception as error:  # whatever the framework raises is a result of the test
                is_well = False
                report(f"  FAILED  {title}: {type(error).__name__}: {error}")
    report("All is well." if is_well else "Some checks have failed: please report this output.")
    return is_well


def _find(report: Callable[[str], None]) -> Accelerator | None:
    found = accelerator()
    if found is None and os.environ.get("PENSTOCK_GPU", "").strip() == "emulate":
        report("No accelerator is used, since PENSTOCK_GPU=emulate is set.")
    elif found is None:
        report(f"No accelerator found: {_accelerators.why_none(load=True)}.")
        report(_advice())
        report("`gpu` is emulated on this machine: results are the same, in host memory.")
    return found


def _advice() -> str:
    is_built = _accelerators.is_installed() and hasattr(torch, "accelerator")
    if is_built and torch.accelerator.current_accelerator() is not None:
        return (
            "Check that the driver works (`nvidia-smi`, `rocm-smi`), that CUDA_VISIBLE_DEVICES "
            "doesn't hide the device, and that a container was given access to it."
        )
    return "Install a build of PyTorch for your device: https://pytorch.org/get-started."


def _check_types(target: Accelerator, ordinal: int) -> str:
    unsupported = []
    for dtype in BY_CODE:
        if dtype.kind is DType.Kind.enum:
            continue
        for shape in _SHAPES:
            expected = ndd.cast(ndd.tensor(_numbers(shape)), dtype=dtype)
            try:
                found = expected.gpu(ordinal).torch()
            except TypeError:  # such as float64 on MPS
                unsupported.append(dtype.name)
                break
            _require_device(found, target, ordinal)
            _require_equal(found, expected.torch(), f"{dtype} {shape}")
    return f"not on this device: {', '.join(unsupported)}" if unsupported else ""


def _check_order(target: Accelerator, ordinal: int) -> str:
    module = torch.get_device_module(target.type)
    streams = [target.new_stream(ordinal) for _ in range(2)]
    for stream in [None, *(stream for stream in streams if stream is not None)]:
        if stream is None:
            _require_sums(target, ordinal)
        else:
            with module.stream(stream):
                _require_sums(target, ordinal)
    return "" if streams[0] is not None else "the device has no streams"


def _require_sums(target: Accelerator, ordinal: int) -> None:
    """Compute with each batch right after it was handed over, and look at the results later."""
    _keep_busy(target, ordinal)
    sums = [batch.torch().sum(dtype=torch.int64) for batch in _batches(ordinal)]
    for number, found in enumerate(sums):
        if found.item() != number * BATCH_BYTES:
            raise AssertionError(f"batch {number} was used before it had arrived")


def _check_reuse(target: Accelerator, ordinal: int) -> str:
    _keep_busy(target, ordinal)
    delivered = [batch.torch() for batch in _batches(ordinal)]
    for number, found in enumerate(delivered):
        if not bool((found == number).all()):
            raise AssertionError(f"batch {number} has data of another one")
    return ""


def _check_dlpack(target: Accelerator, ordinal: int) -> str:
    given = ndd.tensor(_numbers((100, 30)))
    there = torch.from_dlpack(given.gpu(ordinal))
    _require_device(there, target, ordinal)
    _require_equal(there, given.torch(), "out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # data is copied to the host, which is the point
        back = ndd.as_tensor(there * 2)
    if back.device is not ndd.Device.from_dlpack(there):
        raise AssertionError(f"data on {there.device} has become a value on {back.device}")
    _require_equal(back.cpu().torch(), given.torch() * 2, "in")
    return ""


def _measure(target: Accelerator, ordinal: int) -> str:
    source = torch.ones(TRANSFER_BYTES, dtype=torch.uint8)
    pinned = target.pinned_like(source)
    ways: dict[str, Callable[[], Any]] = {"delivered": lambda: deliver(target, source, ordinal)}
    if pinned is not None:
        stream = target.current_stream(ordinal)
        ways["from pinned memory"] = lambda: target.copy(pinned, ordinal, stream)
    ways["from other memory"] = lambda: target.copy(source, ordinal, None)
    return ", ".join(f"{_rate(way):.1f} GB/s {name}" for name, way in ways.items())


def _rate(transfer: Callable[[], Any]) -> float:
    _finish(transfer())  # allocates
    began = time.perf_counter()
    for _ in range(TRANSFERS):
        last = transfer()
    _finish(last)
    return TRANSFERS * TRANSFER_BYTES / (time.perf_counter() - began) / 1e9


def _finish(tensor: torch.Tensor) -> None:
    """Wait for all work on the current stream."""
    tensor.flatten()[-1:].cpu()


def _keep_busy(target: Accelerator, ordinal: int) -> None:
    matrix = torch.rand(1024, 1024, device=torch.device(target.type, ordinal))
    for _ in range(LOAD):
        matrix = torch.softmax(matrix @ matrix, 1)


def _batches(ordinal: int) -> Iterator[ndd.Tensor]:
    """Batches that consist of their number, each gone when the next one is made."""
    for number in range(BATCHES):
        yield ndd.full(np.uint8(number), shape=[BATCH_BYTES]).gpu(ordinal)


def _numbers(shape: tuple[int, ...]) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 100


def _require_device(found: torch.Tensor, target: Accelerator, ordinal: int) -> None:
    if (found.device.type, found.device.index or 0) != (target.type, ordinal):
        raise AssertionError(f"delivered to {found.device}, not to {target.type}:{ordinal}")


def _require_equal(found: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    here = found.cpu()
    if here.dtype != expected.dtype or here.shape != expected.shape:
        raise AssertionError(f"{what}: has become {here.dtype} {tuple(here.shape)}")
    if not torch.equal(*(each.flatten().view(torch.uint8) for each in (here, expected))):
        raise AssertionError(f"{what}: the data has changed")


if __name__ == "__main__":
    sys.exit(not run(print))
