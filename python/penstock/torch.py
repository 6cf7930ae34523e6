"""Helpers for use with PyTorch.

In a dataset for `torch.utils.data.DataLoader`, return `tensor.torch()` or `batch.torch()`: the
loader's `default_collate` supports only types of PyTorch and NumPy, and PyTorch passes its tensors
from workers to the main process in shared memory. A `Tensor` or a `Batch` can be returned with a
suitable `collate_fn`; its data is then pickled.

Each worker draws different numbers, in each epoch, without further setup (see `random.set_seed`).
For reproducible numbers, however workers are started:

    import penstock as ndd
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(7)
    ndd.random.set_seed(7 + rank)
    loader = DataLoader(data, num_workers=4, worker_init_fn=ndd.torch.worker_init_fn)
"""

from __future__ import annotations

from typing import Any

from penstock._public import attach as _attach
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
                "Pass it to the DataLoader as `worker_init_fn`."
            )
        _rng.enter_worker(self._position)

    def __reduce__(self) -> tuple[Any, ...]:
        # The only way for a spawned worker to get this process's seed.
        return WorkerInit, (_rng.default_position() or self._position,)

    def __repr__(self) -> str:
        return "penstock.torch.worker_init_fn"


worker_init_fn: WorkerInit = WorkerInit()
"""The `worker_init_fn` of a `torch.utils.data.DataLoader`: seeds a worker's default RNG.

The seed combines the one set with `random.set_seed` before the loader's iterator was created with
the worker's own, which PyTorch changes each epoch. Forked workers do this automatically; with this
function it also works with `spawn`, and gives the same numbers. They are reproducible if PyTorch is
seeded as well, with `torch.manual_seed` or the loader's `generator`.
"""

_attach(__name__)
