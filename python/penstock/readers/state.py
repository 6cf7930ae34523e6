"""Where a reader is, as a text."""

from __future__ import annotations

import json
from typing import NamedTuple

from penstock.readers.order import Cut, Plan

VERSION = 1
_NAME = "penstock reader"


class ReaderState(str):
    """The state of a reader: a text, to be given to another one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ReaderState({str(self)!r})"


class Snapshot(NamedTuple):
    """What a reader had been given, and what its order was made of; see `order`.

    Args:
        data: The fingerprint of the data set.
        size: How many samples that had.
        num_shards, shard_id, stick, shuffle, fill, seed, last_batch, cuts: See `order.Plan`.
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
    batch_size: int | None
    turn: int
    offset: int
    first_turn: int
    given: int
    epoch: int
    step: int
    left: int
    cuts: tuple[Cut, ...]

    def dumps(self) -> str:
        """The snapshot as a text."""
        return json.dumps([_NAME, VERSION, *self], separators=(",", ":"))

    @classmethod
    def loads(cls, text: str | bytes, what: str) -> Snapshot:
        """The snapshot of a text."""
        try:
            name, version, *fields = json.loads(text)
        except (ValueError, TypeError):
            name, version, fields = "", 0, []
        if name != _NAME:
            shown = text if len(text) <= 60 else text[:60]
            raise ValueError(
                f"{what}: this is not the state of a reader, as `get_state` gives it: {shown!r}."
            )
        if version != VERSION or len(fields) != len(cls._fields):
            raise ValueError(
                f"{what}: the state has version {version}, this penstock reads version {VERSION}."
            )
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
            ("shuffle", self.shuffle, plan.shuffle),
            ("initial_fill", self.fill, plan.fill if self.shuffle == "buffer" else self.fill),
            ("last_batch", self.last_batch, plan.last_batch),
        ):
            if was != now:
                raise ValueError(
                    f"{what}: the state is of a reader with {key}={was!r}, this one has "
                    f"{key}={now!r}; the order of the samples is another one. Make the reader with "
                    "the same arguments."
                )
