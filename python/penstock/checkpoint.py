"""Checkpoints: save and restore the positions of readers and random number generators.

A `Checkpoint` holds the states of the objects registered with it: readers, `RNG`s, sources, and
anything else with `get_state()` and `set_state(state)`. `current()` is the checkpoint of the
calling thread's current context.

**Several ranks.** Distributed checkpoints usually store one state per key, that of rank 0, and load
it on all ranks. This is right for readers: any shard can resume from the state of any other, even
if the number of shards has changed. It is wrong for an RNG per rank: all ranks would draw the
numbers of rank 0. So checkpoint an RNG that is the same on all ranks, and split off one for each
rank in every step:

    reader = ndd.readers.File(file_root="train", num_shards=world_size, shard_id=rank)
    shared = ndd.random.RNG(1234)  # the same seed on all ranks
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.register(reader, "reader")
    checkpoint.register(shared, "rng")
    for jpegs, labels in reader.next_epoch(batch_size=64):
        rng = shared.split(world_size)[rank]  # advances `shared` equally on all ranks
        angles = ndd.random.uniform(range=[-10, 10], batch_size=len(labels), rng=rng)

Whichever rank's state is loaded, and by however many ranks, each continues with its own numbers.
"""

from penstock._public import attach as _attach
from penstock._state.checkpoint import Checkpoint as Checkpoint
from penstock._state.checkpoint import current as current

__all__ = ["Checkpoint", "current"]

_attach(__name__)
