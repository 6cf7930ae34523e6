"""`Tensor` and `Batch` in the `default_collate` of PyTorch's DataLoader."""

from __future__ import annotations

from typing import Any

from penstock._values.batch import Batch
from penstock._values.tensor import Tensor


def register() -> None:
    """Let `default_collate` stack them as it does PyTorch's own tensors."""
    from torch.utils.data._utils.collate import default_collate_fn_map

    default_collate_fn_map.setdefault(Tensor, _stacked)
    default_collate_fn_map.setdefault(Batch, _stacked)


def _stacked(batch: list[Any], *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    from torch.utils.data._utils.collate import collate

    # As tensors of PyTorch, which a worker puts into shared memory.
    return collate([value.torch() for value in batch], collate_fn_map=collate_fn_map)
