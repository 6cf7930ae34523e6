"""Checkpoints: where readers and random numbers are, to be saved and restored.

A `Checkpoint` holds the states of the objects that are registered with it: readers, `RNG`s,
sources, and whatever else has `get_state()` and `set_state(state)`. `current()` is the one that
belongs to the calling thread's current context.
"""

from penstock._checkpoint import Checkpoint as Checkpoint
from penstock._checkpoint import current as current

__all__ = ["Checkpoint", "current"]
