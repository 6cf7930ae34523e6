"""Tensors and batches as tensors of PyTorch, nested in any way."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import default_convert

from penstock._values.batch import Batch
from penstock._values.dtype import int32
from penstock._values.tensor import Tensor


def to_torch(data: Any, class_labels: bool = False, pin: bool = False) -> Any:
    """Waits for the values. What is neither a value nor an array stays as it is.

    Args:
        data: Values, or tuples, lists and dictionaries of them.
        class_labels: Make int32 batches with one element per sample int64 vectors.
        pin: Copy tensors on the host to page-locked memory.
    """
    if isinstance(data, Batch):
        made = data.torch()
        if class_labels and data.dtype == int32 and made.shape[1:] == (1,):
            made = made.squeeze(1).long()
    elif isinstance(data, Tensor):
        made = data.torch()
    elif isinstance(data, dict):
        return {key: to_torch(value, class_labels, pin) for key, value in data.items()}
    elif isinstance(data, list | tuple):
        parts = (to_torch(value, class_labels, pin) for value in data)
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    else:
        made = default_convert(data)
    is_on_host = isinstance(made, torch.Tensor) and made.device.type == "cpu"
    return made.pin_memory() if pin and is_on_host else made
