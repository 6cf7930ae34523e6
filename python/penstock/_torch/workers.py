"""Seeds for the workers of a DataLoader."""

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
