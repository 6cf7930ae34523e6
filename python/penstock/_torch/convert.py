"""Tensors and batches as tensors of PyTorch, nested in any way."""

from __future__ import annotations

from typing import Any

from torch.utils.data import default_convert

from penstock._values.batch import Batch
from penstock._values.dtype import int32
from penstock._values.tensor import Tensor


def to_torch(data: Any, class_labels: bool = False) -> Any:
    """Waits for the values. What is neither a value nor an array stays as it is.

    Args:
        data: Values, or tuples, lists and dictionaries of them.
        class_labels: Make int32 batches with one element per sample int64 vectors.
    """
    if isinstance(data, Batch):
        made = data.torch()
        if class_labels and data.dtype == int32 and made.shape[1:] == (1,):
            return made.squeeze(1).long()
        return made
    if isinstance(data, Tensor):
        return data.torch()
    if isinstance(data, dict):
        return {key: to_torch(value, class_labels) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(to_torch(value, class_labels) for value in data))
    if isinstance(data, list | tuple):
        return type(data)(to_torch(value, class_labels) for value in data)
    return default_convert(data)
