"""Readers that find themselves in other processes than they were made in.

There each copy reads all of the data, unless it has a shard, and nobody would know why epochs are
so long.
"""

from __future__ import annotations

import sys

from penstock._runtime.loader_workers import worker

ALL_IN_EACH = (
    "this reader was made in another process, and each process that uses its copy reads all of the "
    "data: every sample comes once per worker. Make a reader in each worker with a shard of its "
    "own (`num_shards`, `shard_id`), or read in the main process, where the threads of penstock "
    "do the work."
)


def should_tell(is_copy: bool) -> bool:
    """Whether this process is the one to tell that it is not the only one that reads.

    Args:
        is_copy: Whether the reader was unpickled here, and not forked.
    """
    number, workers = worker()
    if workers:
        return number == 0 and workers > 1  # the first one speaks for all
    # Of other processes nothing is known but how they came about.
    return not is_copy and _is_child()


def _is_child() -> bool:
    """Whether `multiprocessing` has started this process."""
    started = sys.modules.get("multiprocessing.process")
    return started is not None and started.parent_process() is not None
