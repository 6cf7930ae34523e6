"""What helps beside PyTorch.

In a data set for `torch.utils.data.DataLoader`, return `tensor.torch()` or `batch.torch()`: the
loader's `default_collate` knows nothing but PyTorch's and NumPy's types, and PyTorch hands its
own tensors from worker to trainer in shared memory. A `Tensor` or a `Batch` can be returned too, if
`collate_fn` takes them; then its data is pickled.

Workers draw other numbers than their siblings, and in each epoch others than in the one before, by
themselves (see `random.set_seed`). For numbers that can be repeated, however workers are started:

    import penstock as ndd
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(7)
    ndd.random.set_seed(7 + rank)
    loader = DataLoader(data, num_workers=4, worker_init_fn=ndd.torch.worker_init_fn)
"""

from __future__ import annotations

from typing import Any

from penstock._state import rng as _rng

__all__ = ["worker_init_fn"]


class WorkerInit:
    """Seeds the default RNG of a DataLoader's worker; see `worker_init_fn`."""

    __slots__ = ("_position",)

    def __init__(self, position: _rng.Position | None = None) -> None:
        self._position = position

    def __call__(self, worker_id: int) -> None:
        from torch.utils.data import get_worker_info

        if get_worker_info() is None:
            raise RuntimeError(
                "penstock.torch.worker_init_fn: this process is not a worker of a DataLoader. "
                "Give it to the DataLoader as `worker_init_fn`."
            )
        _rng.enter_worker(self._position)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker that is not forked knows of this process's seed by this only.
        return WorkerInit, (_rng.default_position() or self._position,)

    def __repr__(self) -> str:
        return "penstock.torch.worker_init_fn"


worker_init_fn = WorkerInit()
"""The `worker_init_fn` of a `torch.utils.data.DataLoader`: seeds a worker's default RNG.

The seed is made of the one that `random.set_seed` was given before the loader's iterator was made,
and of the worker's own, which PyTorch chooses anew in each epoch. Workers that are forked do the
same by themselves; with this it works under `spawn` too, with the same numbers. The numbers can be
repeated if PyTorch is seeded as well, by `torch.manual_seed` or the loader's `generator`.
"""
