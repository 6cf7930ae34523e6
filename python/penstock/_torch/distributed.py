"""Which of the processes of a distributed run this one is."""

from __future__ import annotations

import os
import sys

__all__ = ["distributed_options"]

_LAUNCHERS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))
"""Variables that launchers set: torchrun and those like it, and `srun`. (`SLURM_NTASKS` is also set
where a job's script runs Python without `srun`, as a single process.)"""


def distributed_options() -> dict[str, int]:
    """The `shard_id` and `num_shards` of this process, for a reader: its rank and the world size.

    They are those of `torch.distributed`, if it is initialized, or else those that the launcher
    has set in the environment: `RANK` and `WORLD_SIZE`, as `torchrun` does, or in a job step of
    Slurm `SLURM_PROCID` and `SLURM_STEP_NUM_TASKS`. A process on its own has the only shard.

    A `Loader` asks for them by itself if its reader was created without shards.

    Example:
        >>> ndd.torch.distributed_options()
        {'shard_id': 0, 'num_shards': 1}
    """
    shard_id, num_shards = _initialized() or _launched() or (0, 1)
    return {"shard_id": shard_id, "num_shards": num_shards}


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
