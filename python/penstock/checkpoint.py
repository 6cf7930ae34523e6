"""Checkpoints: where readers and random numbers are, to be saved and restored.

A `Checkpoint` holds the states of the objects that are registered with it: readers, `RNG`s,
sources, and whatever else has `get_state()` and `set_state(state)`. `current()` is the one that
belongs to the calling thread's current context.

**Several ranks.** Distributed checkpoints keep one state under one key, usually that of rank 0, and
give it to all ranks. That is right for readers: from the state of one shard each other one can go
on, even if there are more or fewer of them than before. It is wrong for an RNG of a rank's own:
all ranks would draw what rank 0 draws. So let the RNG with the state be the same on all ranks, and
draw from one that is split off it for each step:

    reader = ndd.readers.File(file_root="train", num_shards=world_size, shard_id=rank)
    shared = ndd.random.RNG(1234)  # the same seed on all ranks
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.register(reader, "reader")
    checkpoint.register(shared, "rng")
    for jpegs, labels in reader.next_epoch(batch_size=64):
        rng = shared.split(world_size)[rank]  # moves `shared` on alike everywhere
        angles = ndd.random.uniform(range=[-10, 10], batch_size=len(labels), rng=rng)

Whichever rank's state is loaded, and by however many ranks, each goes on with numbers of its own.
"""

from penstock._state.checkpoint import Checkpoint as Checkpoint
from penstock._state.checkpoint import current as current

__all__ = ["Checkpoint", "current"]
