"""Which samples come when: shards, shuffling, the ends of epochs. No reading, and nothing random
but what follows from the seed.

The samples of a reader are a stream of *turns*. A turn is one pass over what belongs to the
reader's shard at that time: samples `[s * n // k, (s + 1) * n // k)` of n for shard s of k. Turn t
of reader r is of shard `(r + t) % k`, or always of shard r when it sticks to its shard. A place in
the stream is a turn and an offset in there.

An epoch is so many batches of that stream, and what its last batch does decides how many:

- `wrap`: as many as it takes to see the turn; the last batch is filled with samples of the next
  turn, where the next epoch goes on. With `is_even`, as many as the largest shard needs.
- `pad`: as many as the largest shard needs, so that all shards have as many; the turn's last
  sample is repeated.
- `partial`, `drop`: the last batch is smaller, or left out. With `is_even`, `drop` leaves out what
  the smallest shard can't fill.

Resuming with other shards or another batch size makes a *cut*: what all readers had not been given
of their turns is put together, and divided anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from penstock import _core
from penstock.readers._base.rows import (
    Grouped,
    Numbers,
    Permuted,
    Row,
    Windowed,
    as_array,
    joined,
)

POLICIES = ("wrap", "pad", "partial", "drop")
SHUFFLES = ("buffer", "global", "groups")
WINDOWED = ("buffer", "groups")
"""Those that depend on how many samples `initial_fill` says."""

LARGEST_SHUFFLE = 10**7
"""How many samples are shuffled in memory at most."""

PERMUTED = {"buffer": "permuted shards", "global": "permuted"}
"""What takes the place of a shuffle in memory."""

MOST_TURNS = 2**48
"""No reader gets that far, but damaged states do. (The bits above tell shards apart.)"""

BASE_SEED = 0x70656E73
"""Of the order that a shuffled data set is in before it is cut into shards: one for all readers,
whatever their seeds are, or shards would overlap."""

_BASE, _GLOBAL, _BUFFER = range(3)


class Place(NamedTuple):
    """The next sample of the stream: the turn, and how many of it have been given."""

    turn: int
    offset: int


class Cut(NamedTuple):
    """Where readers stopped that were then replaced by others: all at this step.

    Args:
        num_shards: How many readers there were.
        batch_size: The size of their batches.
        turn: The turn that they began with.
        epoch: How many epochs they had finished.
        step: How many batches of the next one they had been given, or all that it has for them.
        slip: How many samples more they had been given, in whole batches: calls belong to no epoch,
            and iterators that are left unfinished move the epochs.
    """

    num_shards: int
    batch_size: int
    turn: int
    epoch: int
    step: int
    slip: int


@dataclass(frozen=True)
class Plan:
    """All that the order depends on.

    Args:
        size: How many samples there are.
        num_shards: Into how many shards they are divided.
        stick: Whether a reader stays with its shard.
        shuffle: None; "buffer" for shards that are shuffled by a buffer; "global" for the whole
            data set in a new order with each turn; "groups" for groups of samples in a new order,
            in which samples are shuffled within windows of `fill`; "permuted shards" and "permuted"
            for shards and data sets that are too long for that, with an order that is computed
            place by place.
        fill: How many samples the buffer or a window holds.
        seed: What the order is made of, beside the number of the turn.
        last_batch: One of `POLICIES`.
        is_even: Whether all shards have equally many batches where the policy is `wrap` or `drop`,
            as a distributed run needs. In DALI they may differ by one.
        cuts: Where others had stopped before.
        draw: Which samples a turn of all shards has, from seed and turn, where weights or a
            sampler decide that; `size` of them.
        groups: The ends of the groups that "groups" shuffles.
    """

    size: int
    num_shards: int = 1
    stick: bool = False
    shuffle: str | None = None
    fill: int = 1024
    seed: int = 0
    last_batch: str = "wrap"
    is_even: bool = False
    cuts: tuple[Cut, ...] = ()
    draw: Callable[[int, int], Numbers] | None = field(default=None, compare=False)
    groups: Numbers | None = field(default=None, compare=False)


_Count: TypeAlias = Callable[[int, int], int]
"""From the samples that a reader gets of a turn, and those that all get, to what is counted."""


def _all_of_it(length: int, whole: int) -> int:
    return length


def bounds(shard: int, size: int, shards: int) -> tuple[int, int]:
    """Where a shard begins and ends."""
    return shard * size // shards, (shard + 1) * size // shards


def shuffled(numbers: Numbers, fill: int, seed: int, turn: int, stream: int) -> Numbers:
    """The numbers, shuffled in place by a buffer that holds `fill` of them."""
    _core.shuffle(numbers, fill, seed & (2**64 - 1), turn, stream)
    return numbers


class Order:
    """The stream of every reader of a plan. Remembers the turns that it was asked for last.

    Args:
        plan: What the order depends on.
        before: The order of the readers that were stopped at the last cut, if it is known.
    """

    def __init__(self, plan: Plan, before: Order | None = None) -> None:
        self.plan = plan
        self._base: Numbers | None = None
        self._turns: dict[tuple[int, int], Row] = {}
        self._rests: dict[int, Row] = {}
        self._before: Order | None = None
        self._stops: list[Place] = []
        self._last_cut = -1
        """The last turn of which something had been given at the last cut."""
        if plan.cuts:
            *earlier, cut = plan.cuts
            if before is None:
                before = Order(replace(plan, num_shards=cut.num_shards, cuts=tuple(earlier)))
            self._before = before
            self._stops = [before.stop(reader, cut) for reader in range(cut.num_shards)]
            touched = (turn if offset else turn - 1 for turn, offset in self._stops)
            self._last_cut = max(before._last_cut, *touched)

    @property
    def first_turn(self) -> int:
        """The first turn of which not all has been given before."""
        return min((stop.turn for stop in self._stops), default=0)

    @property
    def is_divided(self) -> bool:
        """Whether the last cut left parts of turns."""
        return self._last_cut >= self.first_turn

    @property
    def spread(self) -> int:
        """How many turns are between those of the first and the last reader at the last cut."""
        turns = [stop.turn for stop in self._stops]
        return max(turns, default=0) - min(turns, default=0)

    def is_rest(self, turn: int) -> bool:
        """Whether a cut has left but a part of a turn."""
        return turn <= self._last_cut

    def whole(self, turn: int) -> int:
        """How many samples all readers together have in a turn."""
        rest = self._rest(turn)
        return self.plan.size if rest is None else len(rest)

    def length(self, turn: int, reader: int) -> int:
        """How many samples a reader has in a turn."""
        start, end = bounds(self._shard(turn, reader), self.whole(turn), self.plan.num_shards)
        return end - start

    def numbers(self, turn: int, reader: int) -> Row:
        """The samples of a turn, in order."""
        key = turn, reader
        found = self._turns.get(key)
        if found is None:
            found = self._numbers(turn, reader)
            while len(self._turns) >= 2:
                self._turns.pop(next(iter(self._turns)))
            self._turns[key] = found
        return found

    def batches(self, turn: int, reader: int, batch_size: int) -> int:
        """How many batches a reader's epoch has that belongs to a turn."""
        return self._batches(self.length(turn, reader), self.whole(turn), batch_size)

    def draw(self, place: Place, reader: int, batch_size: int) -> tuple[Numbers, Place]:
        """The samples of the batch at a place, and the place after it."""
        if self.plan.last_batch == "wrap":
            return self._draw_wrapped(place, reader, batch_size)
        turn, offset = place
        while offset // batch_size >= self.batches(turn, reader, batch_size):
            turn, offset = turn + 1, 0
        numbers = self.numbers(turn, reader)
        batch = as_array(numbers[offset : offset + batch_size])
        if self.plan.last_batch == "pad" and len(batch) < batch_size:
            last = np.full(batch_size - len(batch), numbers[-1], np.int64)
            batch = np.concatenate([batch, last])
        offset += batch_size
        if offset // batch_size >= self.batches(turn, reader, batch_size):
            turn, offset = turn + 1, 0
        return batch, Place(turn, offset)

    def epochs(self, place: Place, reader: int, batch_size: int, count: int) -> int | Numbers:
        """The turn that the samples of the batch at a place belong to, or that of each."""
        turn, offset = place
        if self.plan.last_batch != "wrap":
            while offset // batch_size >= self.batches(turn, reader, batch_size):
                turn, offset = turn + 1, 0
            return turn
        if offset + count <= self.length(turn, reader):
            return turn
        turns = np.empty(count, np.int64)
        done = 0
        while done < count:
            length = self.length(turn, reader) - offset
            turns[done : done + length] = turn
            turn, offset, done = turn + 1, 0, done + length
        return turns

    def after(self, place: Place, reader: int, count: int) -> Iterator[int]:
        """What can stand in for the sample that is `count` after a place: the turn's others, round
        and round, and those of later turns where a cut has left but a part of this one.
        """
        turn, offset = place
        numbers = self.numbers(turn, reader)
        for index in range(offset + count + 1, offset + count + 1 + len(numbers)):
            yield int(numbers[index % len(numbers)])
        while turn <= self._last_cut:
            turn += 1
            yield from map(int, self.numbers(turn, reader))

    def walk(self, reader: int, turn: int, batches: int, batch_size: int) -> Place:
        """The place that is so many batches after the beginning of a turn."""
        if self.plan.last_batch == "wrap":
            return Place(*self._skip(reader, turn, batches * batch_size, _all_of_it))
        turn, batches = self._skip(reader, turn, batches, self._count_batches(batch_size))
        return Place(turn, batches * batch_size)

    def stop(self, reader: int, cut: Cut) -> Place:
        """Where a reader was when all were stopped."""
        batches = self.given(reader, cut.turn, cut.epoch, cut.step, cut.batch_size)
        batches += cut.slip // cut.batch_size
        return self.walk(reader, cut.turn, batches, cut.batch_size)

    def normal(self, place: Place, reader: int, batch_size: int) -> Place:
        """The place after turns in which there is nothing to give, which cuts leave behind."""
        turn, offset = place
        if self.plan.last_batch == "wrap":
            while offset == 0 == self.length(turn, reader):
                turn += 1
        else:
            while offset == 0 == self.batches(turn, reader, batch_size):
                turn += 1
        return Place(turn, offset)

    def given(self, reader: int, turn: int, epoch: int, step: int, batch_size: int) -> int:
        """How many batches a reader has been given since it began with a turn."""
        count = self._sum(reader, turn, epoch, self._count_batches(batch_size))
        return count + min(step, self.batches(turn + epoch, reader, batch_size))

    def _batches(self, length: int, whole: int, batch_size: int) -> int:
        """How many batches a reader has that gets so many samples of so many."""
        plan = self.plan
        if plan.last_batch == "drop":
            return (whole // plan.num_shards if plan.is_even else length) // batch_size
        if (plan.last_batch == "pad" and length) or (plan.last_batch == "wrap" and plan.is_even):
            length = -(-whole // plan.num_shards)
        return -(-length // batch_size)

    def _count_batches(self, batch_size: int) -> _Count:
        return lambda length, whole: self._batches(length, whole, batch_size)

    def _skip(self, reader: int, turn: int, amount: int, count: _Count) -> tuple[int, int]:
        """Skip whole turns of which each counts for so much; the turn then, and what is left."""
        while turn <= self._last_cut:
            here = count(self.length(turn, reader), self.whole(turn))
            if amount < here:
                return turn, amount
            turn, amount = turn + 1, amount - here
        cycle = self._sum_of_untouched(reader, turn, self._rotation, count)
        turn += amount // cycle * self._rotation
        amount %= cycle

        def fits(turns: int) -> bool:
            return self._sum_of_untouched(reader, turn, turns, count) <= amount

        # As many more as fit, by bisection.
        turns, too_many = 0, self._rotation
        while too_many - turns > 1:
            middle = (turns + too_many) // 2
            turns, too_many = (middle, too_many) if fits(middle) else (turns, middle)
        return turn + turns, amount - self._sum_of_untouched(reader, turn, turns, count)

    def _sum(self, reader: int, turn: int, turns: int, count: _Count) -> int:
        """What so many turns count for."""
        total, end = 0, turn + turns
        while turn < end and turn <= self._last_cut:
            total += count(self.length(turn, reader), self.whole(turn))
            turn += 1
        return total + self._sum_of_untouched(reader, turn, end - turn, count)

    def _sum_of_untouched(self, reader: int, turn: int, turns: int, count: _Count) -> int:
        """What so many turns count for that no cut has touched. Takes no time per turn."""
        size, shards = self.plan.size, self.plan.num_shards
        short = size // shards
        if not self._rotates():
            return turns * count(self.length(turn, reader), size) if turns else 0
        # The reader passes through the shards one by one, of which `size % shards` have one more.
        first = self._shard(turn, reader)
        cycles, rest = divmod(turns, shards)
        end = first + rest
        passed = (
            bounds(min(end, shards), size, shards)[0]
            - bounds(first, size, shards)[0]
            + bounds(max(end - shards, 0), size, shards)[0]
        )
        long = cycles * (size % shards) + passed - rest * short
        return long * count(short + 1, size) + (turns - long) * count(short, size)

    def _draw_wrapped(self, place: Place, reader: int, batch_size: int) -> tuple[Numbers, Place]:
        turn, offset = place
        parts, missing = [], batch_size
        while True:
            numbers = self.numbers(turn, reader)
            part = numbers[offset : offset + missing]
            parts.append(as_array(part))
            missing -= len(part)
            offset += len(part)
            if offset == len(numbers):
                turn, offset = turn + 1, 0
            if not missing:
                break
        return parts[0] if len(parts) == 1 else np.concatenate(parts), Place(turn, offset)

    def _numbers(self, turn: int, reader: int) -> Row:
        part = self._part(self._row(turn), turn, reader)
        # A copy, to let go of the other shards.
        return part.copy() if isinstance(part, np.ndarray) else part

    def _row(self, turn: int) -> Row:
        """The samples of all readers in a turn, from which each has a part."""
        plan = self.plan
        rest = self._rest(turn)
        if rest is not None:
            return rest
        if plan.draw is not None:
            return plan.draw(plan.seed, turn)
        if plan.shuffle is None:
            return range(plan.size)
        if plan.shuffle == "groups":
            assert plan.groups is not None
            return Grouped(plan.groups, plan.seed, turn)
        if plan.shuffle == "permuted":
            return Permuted(range(plan.size), plan.seed, turn)
        if plan.shuffle == "permuted shards":
            return Permuted(range(plan.size), BASE_SEED, 0)
        if plan.shuffle == "global":
            return shuffled(as_array(range(plan.size)), plan.size, plan.seed, turn, _GLOBAL)
        if self._base is None:
            every = as_array(range(plan.size))
            self._base = shuffled(every, plan.size, BASE_SEED, 0, _BASE)
        return self._base

    def _part(self, row: Row, turn: int, reader: int) -> Row:
        plan, shard = self.plan, self._shard(turn, reader)
        start, end = bounds(shard, len(row), plan.num_shards)
        part = row[start:end]
        if plan.draw is None and not self.is_rest(turn):
            if plan.shuffle == "permuted shards":
                return Permuted(part, plan.seed, turn | shard << 48)
            if plan.shuffle == "groups":
                return Windowed(part, plan.fill, plan.seed, turn | shard << 48)
        if row is self._base:
            assert isinstance(part, np.ndarray)
            return shuffled(part.copy(), plan.fill, plan.seed, turn, _BUFFER + shard)
        return part

    def _rest(self, turn: int) -> Row | None:
        """What was left of a turn at the last cut; None when nothing had been given of it."""
        before = self._before
        if before is None or turn > self._last_cut:
            return None
        found = self._rests.get(turn)
        if found is None:
            row = before._row(turn)
            parts = []
            for reader, stop in enumerate(self._stops):
                numbers = before._part(row, turn, reader)
                given = (
                    stop.offset if turn == stop.turn else 0 if turn > stop.turn else len(numbers)
                )
                parts.append(numbers[given:])
            found = self._rests[turn] = joined(parts)
        return found

    @property
    def _rotation(self) -> int:
        """After how many turns a reader is back at its shard."""
        return self.plan.num_shards if self._rotates() else 1

    def _rotates(self) -> bool:
        plan = self.plan
        wholes = ("global", "groups", "permuted")
        is_shuffled_as_a_whole = plan.shuffle in wholes or plan.draw is not None
        return not plan.stick and not is_shuffled_as_a_whole

    def _shard(self, turn: int, reader: int) -> int:
        return (reader + turn) % self.plan.num_shards if self._rotates() else reader
