"""Where a reader is, as a text.

    ["penstock reader", 3, data, size, ..., cuts, checksum]

A state comes from a disk or from another machine, so that nothing in it is believed: the checksum
must be that of the rest, each field what it can be, and all together a place that a reader of this
data set can get to. Otherwise a reader would skip data without a word, or never end. States of
version 1 have no checksum, and those before version 3 no `is_even`: their shards were not.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from penstock._state.state_text import StateText
from penstock._values.conversion import LARGEST_BATCH
from penstock.readers._base.order import (
    MOST_TURNS,
    PERMUTED,
    POLICIES,
    SHUFFLES,
    WINDOWED,
    Cut,
    Order,
    Place,
    Plan,
)

VERSION = 3
_NAME = "penstock reader"
_MOST_CUTS = 200
_MOST_SPREAD = 2**16


class ReaderState(StateText):
    """The state of a reader: a text, to be given to another one. Pickled, it is a plain text."""

    __slots__ = ()


class Snapshot(NamedTuple):
    """What a reader had been given, and what its order was made of; see `order`.

    Args:
        data: The fingerprint of the data set.
        size: How many samples that had.
        num_shards, shard_id, stick, shuffle, fill, seed, last_batch, is_even, cuts: See
            `order.Plan`.
        batch_size: None when nothing had been given.
        turn, offset: The place of the next sample.
        first_turn: The turn that the reader began with.
        given: How many samples it had been given since.
        epoch, step: How many epochs, and batches of the next one.
        left: How many batches of that epoch were left.
    """

    data: str
    size: int
    num_shards: int
    shard_id: int
    stick: bool
    shuffle: str | None
    fill: int
    seed: int
    last_batch: str
    is_even: bool
    batch_size: int | None
    turn: int
    offset: int
    first_turn: int
    given: int
    epoch: int
    step: int
    left: int
    cuts: tuple[Cut, ...]

    def is_within(self, number: int) -> bool:
        """Whether some of the epoch with this number had been given, and some not."""
        return self.left > 0 and self.first_turn + self.epoch == number

    def dumps(self) -> str:
        """The snapshot as a text."""
        content = [_NAME, VERSION, *self]
        return _text([*content, _checksum(content)])

    @classmethod
    def loads(cls, text: str | bytes, what: str) -> Snapshot:
        """The snapshot of a text; what can't be one is a ValueError."""
        try:
            name, version, *fields = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            name, version, fields = "", 0, []
        if name != _NAME:
            shown = text if len(text) <= 60 else text[:60]
            raise ValueError(
                f"{what}: this is not the state of a reader, as `get_state` gives it: {shown!r}."
            )
        if version not in range(1, VERSION + 1):
            raise ValueError(
                f"{what}: the state has version {version}, this penstock reads version {VERSION}."
            )
        if version > 1:
            *fields, checksum = fields or [None]
            if checksum != _checksum([name, version, *fields]):
                raise _damaged(what, "its checksum is another one")
        if version < 3:
            fields.insert(cls._fields.index("is_even"), False)
        if len(fields) != len(cls._fields):
            raise _damaged(what, f"it has {len(fields)} fields and not {len(cls._fields)}")
        for key, value in zip(cls._fields, fields, strict=True):
            if not _CAN_BE[key](value):
                raise _damaged(what, f"{key!r} can't be {str(value)[:60]!r}")
        *rest, cuts = fields
        return cls._make([*rest, tuple(Cut(*cut) for cut in cuts)])

    def check(self, what: str, data: str, plan: Plan) -> None:
        """Refuse a state that belongs to other data, or to a reader with another order."""
        if self.data != data:
            counts = (
                f"it had {self.size} samples, and has {plan.size} now"
                if self.size != plan.size
                else f"it has {self.size} samples as before, but other names, labels or another "
                "order"
            )
            raise ValueError(
                f"{what}: the data set has changed since the state was taken: {counts}. "
                "Positions in the old one mean nothing in the new one; begin a new epoch, without "
                "the state."
            )
        for key, was, now in (
            ("stick_to_shard", self.stick, plan.stick),
            ("shuffle", _named(self.shuffle), _named(plan.shuffle)),
            ("initial_fill", self.fill, plan.fill if self.shuffle in WINDOWED else self.fill),
            ("last_batch", self.last_batch, plan.last_batch),
        ):
            if was != now:
                raise ValueError(
                    f"{what}: the state is of a reader with {key}={was!r}, this one has "
                    f"{key}={now!r}; the order of the samples is another one. Make the reader with "
                    "the same arguments."
                )
        problem = self._problem(plan)
        if problem is not None:
            raise _damaged(what, problem)

    def _problem(self, plan: Plan) -> str | None:
        """Why no reader of this data set can have been there."""
        if self.size != plan.size:
            return f"it is of {self.size} samples, the data set has {plan.size}"
        if not self.shard_id < self.num_shards <= self.size:
            return f"it is of shard {self.shard_id} of {self.num_shards}"
        plan = replace(
            plan,
            num_shards=self.num_shards,
            shuffle=self.shuffle,
            seed=self.seed,
            fill=self.fill,
            is_even=self.is_even,
        )
        order, before = Order(plan), None
        for count, cut in enumerate(self.cuts, start=1):
            if cut.num_shards > self.size or not _fills(plan, cut.num_shards, cut.batch_size):
                return f"{cut.num_shards} readers with batches of {cut.batch_size} can't have been"
            if count > 1 and cut.turn != order.first_turn:
                return f"its readers can't have gone on with turn {cut.turn}"
            earlier = self.cuts[: count - 1]
            before = Order(replace(plan, num_shards=cut.num_shards, cuts=earlier), before)
            epoch = cut.turn + cut.epoch
            batches = [before.batches(epoch, i, cut.batch_size) for i in range(cut.num_shards)]
            if cut.step > max(batches) or cut.slip % cut.batch_size:
                return f"readers can't have stopped at step {cut.step} with {cut.slip} more"
            order = Order(replace(plan, cuts=self.cuts[:count]), before)
            if order.spread > _MOST_SPREAD:
                return f"its readers can't be {order.spread} epochs apart"
        if self.cuts and self.first_turn != order.first_turn:
            return f"it can't have begun with turn {self.first_turn}"
        return self._misplaced(order)

    def _misplaced(self, order: Order) -> str | None:
        """Why a reader of this order can't have been there."""
        size, shard, first = self.batch_size, self.shard_id, self.first_turn
        place = Place(self.turn, self.offset)
        if size is None:
            moved = self.given or self.epoch or self.step or self.left
            return "it has moved" if moved or place != (first, 0) else None
        if not _fills(order.plan, self.num_shards, size):
            return f"a batch can't have {size} samples"
        count = order.batches(first + self.epoch, shard, size)
        if (self.step or self.left) and self.step + self.left != count:
            return f"its epoch has {count} batches, not {self.step} and {self.left} more"
        counted = order.given(shard, first, self.epoch, self.step, size) * size
        if self.given % size or self.given < counted:
            return f"it can't have been given {self.given} samples"
        there = order.walk(shard, first, self.given // size, size)
        if order.normal(place, shard, size) != order.normal(there, shard, size):
            return f"after {self.given} samples it is not at sample {self.offset}"
        return None


def _named(shuffle: str | None) -> str | None:
    """What users call it: how long rows are shuffled may have changed since."""
    return next((name for name, long in PERMUTED.items() if long == shuffle), shuffle)


def _fills(plan: Plan, num_shards: int, batch_size: int) -> bool:
    """Whether a reader has batches to give at all."""
    return plan.last_batch != "drop" or plan.size // num_shards >= batch_size


def _text(content: list[Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _checksum(content: list[Any]) -> str:
    return f"{zlib.crc32(_text(content).encode()):08x}"


def _damaged(what: str, problem: str) -> ValueError:
    return ValueError(
        f"{what}: the state is damaged: {problem}. Use another one, or begin a new epoch without."
    )


def _is_number(value: Any, least: int = 0, below: int = 2**63) -> bool:
    return type(value) is int and least <= value < below


def _is_turn(value: Any) -> bool:
    return _is_number(value, below=MOST_TURNS)


def _is_batch_size(value: Any) -> bool:
    return _is_number(value, 1, LARGEST_BATCH + 1)


def _is_cut(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != len(Cut._fields):
        return False
    num_shards, batch_size, turn, epoch, step, slip = value
    return (
        _is_number(num_shards, 1)
        and _is_batch_size(batch_size)
        and all(map(_is_turn, (turn, epoch)))
        and all(map(_is_number, (step, slip)))
    )


_CAN_BE: dict[str, Callable[[Any], bool]] = {
    "data": lambda value: isinstance(value, str),
    "size": lambda value: _is_number(value, 1),
    "num_shards": lambda value: _is_number(value, 1),
    "shard_id": _is_number,
    "stick": lambda value: isinstance(value, bool),
    "shuffle": lambda value: value is None or value in (*SHUFFLES, *PERMUTED.values()),
    "fill": lambda value: _is_number(value, 1, 2**64),
    "seed": lambda value: _is_number(value, -(2**63), 2**64),
    "last_batch": lambda value: value in POLICIES,
    "is_even": lambda value: isinstance(value, bool),
    "batch_size": lambda value: value is None or _is_batch_size(value),
    "turn": _is_turn,
    "offset": _is_number,
    "first_turn": _is_turn,
    "given": _is_number,
    "epoch": _is_turn,
    "step": _is_number,
    "left": _is_number,
    "cuts": lambda value: (
        isinstance(value, list) and len(value) <= _MOST_CUTS and all(map(_is_cut, value))
    ),
}
