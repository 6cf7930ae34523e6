"""Which of the processes of a distributed run this one is, and what its share of the machine is."""

from __future__ import annotations

import operator
import os
import sys
from typing import SupportsIndex

from penstock._errors import messages
from penstock._runtime.threads import get_num_threads
from penstock._state.rng import derived_seed

__all__ = ["distributed_options"]

_LAUNCHERS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))
"""Variables that launchers set: torchrun and those like it, and `srun`. (`SLURM_NTASKS` is also set
where a job's script runs Python without `srun`, as a single process.)"""

_WHAT = "torch.distributed_options"


class DistributedOptions(dict[str, int]):
    """What `distributed_options` returns: arguments of a reader, and more as attributes.

    Args:
        rank: The number of the process.
        world_size: The number of processes.
        seed: A seed that is different for each rank.
        num_threads: How many threads the process should have.
    """

    def __init__(self, rank: int, world_size: int, seed: int, num_threads: int) -> None:
        super().__init__(shard_id=rank, num_shards=world_size)
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.num_threads = num_threads

    def __reduce__(self) -> tuple[type, tuple[int, ...]]:
        return type(self), (self.rank, self.world_size, self.seed, self.num_threads)


def distributed_options(
    *,
    rank: SupportsIndex | None = None,
    world_size: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    num_threads: SupportsIndex | None = None,
) -> DistributedOptions:
    """The shard of this process, for a reader: its rank and the number of processes.

    They are those of `torch.distributed`, if it is initialized, or else those that the launcher
    has set in the environment: `RANK` and `WORLD_SIZE`, as `torchrun` does, or in a job step of
    Slurm `SLURM_PROCID` and `SLURM_STEP_NUM_TASKS`. A process on its own has the only shard.

    The result is a dictionary of the reader's arguments `shard_id` and `num_shards`. Its attributes
    have more: `rank`, `world_size`, a `seed` that is different for each rank, for
    `random.set_seed`, and `num_threads`. A reader's own `seed` must be the same on all ranks, so
    that one is not among the arguments.

    `num_threads` is what `get_num_threads()` returns: the ranks of a machine divide its CPUs, if
    the launcher says how many they are (`LOCAL_WORLD_SIZE`). A `Loader` asks for its shard by
    itself if its reader was created without shards.

    Args:
        rank: The rank, in place of that of the environment; with `world_size`.
        world_size: The number of processes.
        seed: What `seed` is derived from, together with the rank.
        num_threads: The number of threads, in place of the share of the CPUs.

    Example:
        >>> options = ndd.torch.distributed_options()
        >>> options
        {'shard_id': 0, 'num_shards': 1}
        >>> other = ndd.torch.distributed_options(rank=3, world_size=8)
        >>> other.world_size, options.seed == other.seed
        (8, False)
    """
    if (rank is None) != (world_size is None):
        missing = "rank" if rank is None else "world_size"
        raise messages.bad_argument(_WHAT, missing, "is missing: the two belong together")
    if rank is None or world_size is None:
        place, size = _initialized() or _launched() or (0, 1)
    else:
        place, size = _whole("rank", rank), _whole("world_size", world_size)
        if not 0 <= place < size:
            problem = f"must be from 0 to {size - 1}, below `world_size`, got {place}"
            raise messages.bad_argument(_WHAT, "rank", problem)
    threads = get_num_threads() if num_threads is None else _whole("num_threads", num_threads)
    if threads < 1:
        raise messages.bad_argument(_WHAT, "num_threads", f"must be positive, got {threads}")
    return DistributedOptions(
        place, size, derived_seed(_whole("seed", seed) & (2**64 - 1), place), threads
    )


def _whole(name: str, value: SupportsIndex) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise messages.wrong_argument(_WHAT, name, value, "a whole number") from None


def _initialized() -> tuple[int, int] | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _launched() -> tuple[int, int] | None:
    for names in _LAUNCHERS:
        texts = [os.environ.get(name, "") for name in names]
        if all(texts):
            return _checked(names, texts)
    return None


def _checked(names: tuple[str, str], texts: list[str]) -> tuple[int, int]:
    shown = " and ".join(f"{name}={text}" for name, text in zip(names, texts, strict=True))
    try:
        rank, size = map(int, texts)
    except ValueError:
        rank, size = -1, 0
    if not 0 <= rank < size:
        raise ValueError(
            f"penstock.torch: the environment has {shown}, which is not a rank and a number of "
            "processes. Set both, or neither."
        )
    return rank, size
