"""Accelerators that values on a gpu are handed over to. Operators run on the host."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._accelerators.interface import Accelerator


def find(load: bool) -> Accelerator | None:
    """The accelerator of PyTorch, if that is imported (or can be, with `load`) and has one."""
    if not is_installed() or not (load or "torch" in sys.modules):
        return None
    import torch

    # Since PyTorch 2.6.
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None or not accelerator.is_available():
        return None
    from penstock._accelerators.torch_accelerator import TorchAccelerator

    return TorchAccelerator(accelerator.current_accelerator().type, accelerator.device_count())


def why_none(load: bool) -> str:
    """Why `find` has found nothing."""
    if not is_installed():
        return "PyTorch is not installed"
    if not (load or "torch" in sys.modules):
        return "PyTorch was not imported before the first use of a gpu"
    import torch

    if not hasattr(torch, "accelerator"):
        return f"PyTorch {torch.__version__} is too old: version 2.6 is required"
    return f"PyTorch {torch.__version__} reports no accelerator"


def is_installed() -> bool:
    """Whether PyTorch can be imported."""
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    return importlib.util.find_spec("torch") is not None
