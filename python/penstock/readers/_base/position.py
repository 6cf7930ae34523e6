"""Where a reader is: what it has given, and what comes next. No reading, and no locks.

All that changes when a reader goes on is one object, a `Position`. Once it is a reader's it doesn't
change: what moves is a copy, which takes its place when the batch is handed over, so that an
interrupt leaves a reader either before a batch or after it. It can be kept, for `prefetch` to put
a reader back, and written down, as the state of the reader. Which samples are at a place is what
`order` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from penstock.readers._base.order import Cut, Order, Place, Plan
from penstock.readers._base.rows import Numbers
from penstock.readers._base.state import Snapshot

START = Place(0, 0)


class Use(NamedTuple):
    """How a reader is used, which the first use decides.

    Args:
        way: By "epochs" or by "calls".
        size: The size of batches; None for single samples.
    """

    way: str
    size: int | None

    @property
    def is_batched(self) -> bool:
        """Whether it gives batches."""
        return self.size is not None

    def check(self, what: str, asked: Use) -> None:
        """Refuse to be used otherwise."""
        if (self.way, self.is_batched) != (asked.way, asked.is_batched):
            raise RuntimeError(
                f"{what}: a reader keeps to one way of reading. It has given {self} so far, and is "
                f"now asked for {asked}. Call `reader.reset()` to start over."
            )
        if self.size != asked.size:
            raise ValueError(
                f"{what}: `batch_size` {asked.size} is different from the {self.size} used before, "
                "which a reader keeps to. Call `reader.reset()` to start over with another."
            )

    def __str__(self) -> str:
        given = "batches" if self.is_batched else "single samples"
        return f"{given} by `next_epoch`" if self.way == "epochs" else f"{given} by calls"


@dataclass(slots=True)
class Position:
    """Where a reader is that has been used.

    Args:
        use: How it is used.
        shard: Which of the readers of `order` it is.
        order: The streams of all readers.
        place: The next sample of its stream.
        first_turn: The turn that it began with, or went on with after a cut. What follows is
            counted from there.
        given: How many samples it has given.
        epoch: How many epochs it has finished.
        step: How many batches of the next epoch it has given. (Calls belong to no epoch.)
        left: How many batches that epoch has left.
        is_begun: Whether that epoch has been begun.
        is_resumed: Whether that epoch is the rest of one that another reader had begun.
        life: One for all that follows from a first use; `reset` ends it, and its iterators.
    """

    use: Use
    shard: int
    order: Order
    place: Place = START
    first_turn: int = 0
    given: int = 0
    epoch: int = 0
    step: int = 0
    left: int = 0
    is_begun: bool = False
    is_resumed: bool = False
    life: object = field(default_factory=object, repr=False)

    @property
    def batch_size(self) -> int:
        """How many samples are given at a time."""
        return self.use.size or 1

    @property
    def is_done(self) -> bool:
        """Whether all of the epoch has been given."""
        return self.is_begun and self.left == 0

    @property
    def is_unfinished(self) -> bool:
        """Whether an iterator was left before its end."""
        return self.is_begun and self.left > 0 and not self.is_resumed

    def coming(self) -> int:
        """How many batches the next epoch has."""
        if self.is_resumed:
            return self.left
        # One that follows an unfinished epoch is as long as that one, as in DALI.
        turn = self.first_turn + self.epoch + self.is_done
        return self.order.batches(turn, self.shard, self.batch_size)

    def batches_to_come(self) -> Iterator[Numbers]:
        """The samples of the next epoch, batch by batch."""
        place = self.place
        for _ in range(self.coming()):
            numbers, place = self.order.draw(place, self.shard, self.batch_size)
            yield numbers

    def begin(self) -> int:
        """Begin an epoch, and return its number of batches."""
        self.finish_if_done()
        count = self.coming()
        if not self.is_resumed:
            self.step, self.left, self.is_begun = 0, count, True
        self.is_resumed = False
        return count

    def advance(self, after: Place) -> None:
        """A batch has been given; the next one is there."""
        if self.use.way == "epochs":
            while not self.left:
                # An iterator goes on that was left while another one was begun and finished.
                self.begin()
            self.step += 1
            self.left -= 1
        self.place = after
        self.given += self.batch_size

    def finish_if_done(self) -> None:
        """Count the epoch, if all of it has been given.

        Not with its last batch, but when more is asked for: as long as that batch is in hand,
        readers of other shards may have some left, which a state must not take for given.
        """
        if self.is_done:
            self.epoch, self.step, self.is_begun = self.epoch + 1, 0, False

    @property
    def number(self) -> int:
        """The number of the epoch: the turn that it is of."""
        return self.first_turn + self.epoch

    def next_number(self) -> int:
        """The number of the first epoch of which nothing has been given."""
        touched = self.is_begun or self.is_resumed or self.order.is_rest(self.number)
        return self.number + touched

    def at_epoch(self, number: int) -> Position:
        """The beginning of an epoch that is complete, whatever has been given before."""
        plan = self.order.plan
        order = Order(replace(plan, cuts=())) if plan.cuts else self.order
        return Position(self.use, self.shard, order, Place(number, 0), number)

    def copy(self) -> Position:
        """Another one at the same place."""
        # Once for each batch; `replace` takes several times as long.
        return Position(
            self.use,
            self.shard,
            self.order,
            self.place,
            self.first_turn,
            self.given,
            self.epoch,
            self.step,
            self.left,
            self.is_begun,
            self.is_resumed,
            self.life,
        )

    def snapshot(self, data: str) -> Snapshot:
        """The position in a data set of that fingerprint."""
        plan = self.order.plan
        return Snapshot(
            data=data,
            size=plan.size,
            num_shards=plan.num_shards,
            shard_id=self.shard,
            stick=plan.stick,
            shuffle=plan.shuffle,
            fill=plan.fill,
            seed=plan.seed,
            last_batch=plan.last_batch,
            is_even=plan.is_even,
            batch_size=self.batch_size,
            turn=self.place.turn,
            offset=self.place.offset,
            first_turn=self.first_turn,
            given=self.given,
            epoch=self.epoch,
            step=self.step,
            left=self.left,
            cuts=plan.cuts,
        )


def begun(use: Use, shard: int, plan: Plan, state: Snapshot | None) -> Position:
    """The position of a reader at its first use, which may go on where another reader was."""
    if state is None:
        return Position(use, shard, Order(plan))
    # As that reader shuffled and counted; otherwise it could not have been where it was.
    plan = replace(
        plan,
        shuffle=state.shuffle,
        seed=state.seed,
        is_even=state.is_even,
        cuts=state.cuts,
    )
    if state.batch_size is None:
        # That reader had not given anything.
        place = Place(state.turn, state.offset)
        return Position(use, shard, Order(plan), place, state.first_turn)
    if (state.num_shards, state.batch_size) == (plan.num_shards, use.size or 1):
        return _continued(use, shard, plan, state)
    return _divided(use, shard, plan, state)


def _continued(use: Use, shard: int, plan: Plan, state: Snapshot) -> Position:
    """Among as many readers, with batches of the same size."""
    order = Order(plan)
    position = Position(
        use,
        shard,
        order,
        place=Place(state.turn, state.offset),
        first_turn=state.first_turn,
        given=state.given,
        epoch=state.epoch,
        step=state.step,
        left=state.left,
    )
    if shard != state.shard_id:
        size = position.batch_size
        position.given = _given(order, shard, state) + _slip(order, state)
        batches = position.given // size
        position.place = order.walk(shard, state.first_turn, batches, size)
        if state.step or state.left:
            count = order.batches(state.first_turn + state.epoch, shard, size)
            position.step = min(state.step, count)
            position.left = count - position.step
    position.is_begun = position.step > 0
    position.is_resumed = position.left > 0
    return position


def _divided(use: Use, shard: int, plan: Plan, state: Snapshot) -> Position:
    """With other shards or batches: what was left is divided anew."""
    assert state.batch_size is not None
    slip = _slip(Order(replace(plan, num_shards=state.num_shards)), state)
    cut = Cut(state.num_shards, state.batch_size, state.first_turn, state.epoch, state.step, slip)
    order = Order(replace(plan, cuts=(*state.cuts, cut)))
    first = order.first_turn
    if not order.is_divided:
        # Nothing was left over, so that there is nothing to remember.
        order = Order(replace(plan, cuts=()))
    return Position(use, shard, order, Place(first, 0), first)


def _given(order: Order, reader: int, state: Snapshot) -> int:
    """How many samples whole epochs and steps are, for a reader of the state's order."""
    size = state.batch_size or 1
    return order.given(reader, state.first_turn, state.epoch, state.step, size) * size


def _slip(order: Order, state: Snapshot) -> int:
    """How many more than those it was; see `Cut`."""
    return state.given - _given(order, state.shard_id, state)
