"""Batches that are read before they are asked for.

They belong to no state: a reader is where it has given, not where it has read. So each knows the
place that it is of, and what is of another place than the one asked for is forgotten.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from penstock import _core
from penstock.readers._base.order import Place
from penstock.readers._base.position import Position
from penstock.readers._base.rows import Numbers
from penstock.readers._base.source import Source, fetch

if TYPE_CHECKING:
    from penstock._core import Value

SINGLES = 8
"""How many single samples are read ahead at least: one alone is no work for several threads."""

REMOTE = 128
"""How many samples are read ahead at least from servers, each of which takes its time."""


class Fetched(NamedTuple):
    """A batch or sample that is being read.

    Args:
        place: Where it is.
        numbers: Its samples.
        values: What they are.
        after: Where the next one is.
    """

    place: Place
    numbers: Numbers
    values: tuple[Value, ...]
    after: Place


class Lookahead:
    """The next batches of a reader.

    Args:
        depth: How many there are.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._items: deque[Fetched] = deque()
        self.loop = _core.Loop()
        """What the program does with the batches, some of which is done ahead as well."""

    def clear(self) -> None:
        """Forget what was read."""
        self._items.clear()
        self.loop.clear()

    def in_child(self) -> None:
        """What was being read at a fork is the parent's."""
        self._items.clear()
        self.loop = _core.Loop()

    def upcoming(self, count: int) -> list[tuple[Value, ...]]:
        """The values of the next batches, as far as they are being read."""
        return [item.values for item in islice(self._items, max(count, 0))]

    def take(self, source: Source, position: Position) -> Fetched:
        """The batch at the position. One that is not given then is read anew."""
        items = self._items
        if items and items[0].place == position.place:
            return items.popleft()
        self.clear()
        return _fetched(source, position, position.place)

    def fill(self, source: Source, position: Position, place: Place) -> None:
        """Begin to read what comes at a place and after it, unless that is so already."""
        items = self._items
        depth = self._depth if position.use.is_batched else max(self._depth, SINGLES)
        if source.is_remote:
            depth = max(depth, -(-REMOTE // position.batch_size))
        # Nobody needs more than all of the data.
        depth = min(depth, -(-len(source) // position.batch_size))
        if items:
            place = items[-1].after
        while len(items) < depth:
            item = _fetched(source, position, place)
            items.append(item)
            place = item.after


def _fetched(source: Source, position: Position, place: Place) -> Fetched:
    numbers, after = position.order.draw(place, position.shard, position.batch_size)
    epochs = position.order.epochs(place, position.shard, position.batch_size, len(numbers))
    values = fetch(source, numbers, position.use.is_batched, epochs)
    return Fetched(place, numbers, values, after)
