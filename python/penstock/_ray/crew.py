"""Who makes the batches: this process, or actors of Ray, which may be slow, die, and be replaced.

Requests are tickets until they are answered. A ticket is with one worker, or with two if the first
is slow; if a worker is lost, its tickets go to others. Nothing happens in the background: the crew
looks around when the trainer asks for a batch.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from penstock._operators import call_sites
from penstock._ray.cluster import connect, not_picklable
from penstock._ray.request import WHAT, Function, Outcome, Request, carry_out
from penstock._ray.worker import About, Answer, Worker, versions

if TYPE_CHECKING:
    from penstock.readers import Reader

AT_A_TIME = 2
"""Requests that a worker works on: it reads files for one while it computes the other."""

SLOW = 3.0
"""A backup is asked for after so many times the median that batches take ..."""

LEAST_WAIT = 0.25
"""... but not before so many seconds, ..."""

LEAST_KNOWN = 5
"""... nor before so many batches are known."""

MOST_LOSSES = 8
"""How many workers may be lost over one batch, or in a row while they start, before it is taken for
their fault: a decoder that crashes, or a batch that doesn't fit in memory."""

PATIENCE = 30.0
"""Seconds without any worker before there is a warning."""


@dataclass(eq=False)
class Ticket:
    """A request, and what has become of it."""

    request: Request
    outcome: Outcome | None = None
    flights: dict[Any, float] = field(default_factory=dict)
    """Where it is being made: references to answers, and when each was asked for."""
    losses: int = 0
    is_dropped: bool = False


class Crew(Protocol):
    """Makes batches."""

    def submit(self, request: Request) -> Ticket:
        """Ask for a batch. Does not wait for it."""

    def wait(self, ticket: Ticket) -> Outcome:
        """What became of a request."""

    def drop(self, ticket: Ticket) -> None:
        """The answer is not needed any more."""

    def close(self) -> None:
        """End all work."""


class Alone:
    """This process, as if it were a worker."""

    def __init__(self, loop: Function, reader: Reader) -> None:
        self._loop = loop
        self._reader = reader

    def submit(self, request: Request) -> Ticket:
        """Make the batch; its values may still be being computed."""
        return Ticket(request, carry_out(self._loop, self._reader, request))

    def wait(self, ticket: Ticket) -> Outcome:
        """What became of a request."""
        assert ticket.outcome is not None
        return ticket.outcome

    def drop(self, ticket: Ticket) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """There is nothing to end."""


@dataclass(eq=False)
class _Hand:
    """A worker, as the trainer sees it."""

    actor: Any
    begun: Any
    """The reference to what it says about itself; None when that is known."""
    about: About | None = None
    tickets: dict[Any, Ticket] = field(default_factory=dict)


class Actors:
    """Actors of Ray.

    Args:
        loop: The user's generator function.
        reader: The reader, whose arguments workers get.
        workers: How many there are.
        num_cpus: The CPUs of each.
        options: Other options of an actor of Ray.
    """

    def __init__(
        self,
        loop: Function,
        reader: Reader,
        workers: int,
        num_cpus: float,
        options: Mapping[str, Any],
    ) -> None:
        self._ray = ray = connect()
        self._what_to_do = ray.put(_pickled(ray, loop, reader))
        self._data = reader._fingerprint()
        chosen = {
            "num_cpus": num_cpus,
            "max_concurrency": AT_A_TIME,
            "scheduling_strategy": "SPREAD",
            **options,
        }
        self._room: int = chosen["max_concurrency"]
        self._num_cpus = num_cpus
        try:
            self._kind = ray.remote(Worker).options(**chosen)
            self._hands = [self._hired() for _ in range(workers)]
        except (TypeError, ValueError) as error:
            raise type(error)(f"{WHAT}: `options` are not those of an actor: {error}") from None
        self._todo: deque[Ticket] = deque()
        self._seconds: deque[float] = deque(maxlen=64)
        self._failed_starts = 0
        self._refusal = ""
        """Why workers can't be used."""
        self._has_warned = False
        self.losses = 0
        """How many workers have been replaced."""
        self.backups = 0
        """How many requests were made a second time, because the first was slow."""

    def submit(self, request: Request) -> Ticket:
        """Ask for a batch."""
        ticket = Ticket(request)
        self._todo.append(ticket)
        self._assign()
        return ticket

    def wait(self, ticket: Ticket) -> Outcome:
        """What became of a request. Looks after all others meanwhile."""
        if self._refusal:
            raise RuntimeError(self._refusal)
        self._look(0)
        since = time.monotonic()
        while ticket.outcome is None:
            self._assign()
            self._ask_again(ticket)
            self._look(self._until_slow())
            if any(hand.about for hand in self._hands):
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE and not self._has_warned:
                self._warn()
        self._assign()
        return ticket.outcome

    def drop(self, ticket: Ticket) -> None:
        """The answer is not needed any more; a worker that is at it makes it nevertheless."""
        ticket.is_dropped = True
        if ticket in self._todo:
            self._todo.remove(ticket)

    def close(self) -> None:
        """End all workers."""
        hands, self._hands = self._hands, []
        for hand in hands:
            self._end(hand)

    def about(self) -> list[About]:
        """What the workers that have begun say about themselves."""
        self._look(0)
        return [hand.about for hand in self._hands if hand.about]

    def _hired(self) -> _Hand:
        actor = self._kind.remote()
        return _Hand(actor, actor.begin.remote(self._what_to_do, versions()))

    def _end(self, hand: _Hand) -> None:
        try:
            self._ray.kill(hand.actor, no_restart=True)
        except Exception:
            pass  # it has ended already, or the cluster has

    def _assign(self) -> None:
        """Give the oldest requests to workers that have room."""
        while self._todo:
            hand = self._free()
            if hand is None:
                return
            self._give(self._todo.popleft(), hand)

    def _free(self, other_than: Ticket | None = None) -> _Hand | None:
        free = [
            hand
            for hand in self._hands
            if hand.about
            and len(hand.tickets) < self._room
            and other_than not in hand.tickets.values()
        ]
        return min(free, key=lambda hand: len(hand.tickets), default=None)

    def _give(self, ticket: Ticket, hand: _Hand) -> None:
        reference = hand.actor.make.remote(ticket.request)
        hand.tickets[reference] = ticket
        ticket.flights[reference] = time.monotonic()

    def _slow_after(self) -> float | None:
        """After how many seconds a request is slow, if that is known."""
        if len(self._seconds) < LEAST_KNOWN:
            return None
        return max(SLOW * statistics.median(self._seconds), LEAST_WAIT)

    def _until_slow(self) -> float:
        """How long to wait for answers before looking for slow ones."""
        limit = self._slow_after()
        return 1.0 if limit is None else min(max(limit / 4, 0.02), 1.0)

    def _ask_again(self, awaited: Ticket) -> None:
        """Ask another worker, too, if one is slow: for the awaited batch first."""
        limit = self._slow_after()
        if limit is None:
            return
        others = (ticket for hand in self._hands for ticket in hand.tickets.values())
        candidates = [awaited] if self._todo else [awaited, *others]
        now = time.monotonic()
        for ticket in candidates:
            if ticket.outcome is not None or ticket.is_dropped or len(ticket.flights) != 1:
                continue
            [asked] = ticket.flights.values()
            hand = self._free(other_than=ticket) if now - asked > limit else None
            if hand is not None:
                self.backups += 1
                self._give(ticket, hand)

    def _look(self, timeout: float) -> None:
        """See what has come, and wait up to so many seconds if nothing has."""
        by_reference = {ref: hand for hand in self._hands for ref in hand.tickets}
        by_reference.update({hand.begun: hand for hand in self._hands if hand.begun is not None})
        references = list(by_reference)
        if not references:
            return
        come, _ = self._ray.wait(references, num_returns=1, timeout=timeout)
        if come:
            come, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        for reference in come:
            hand = by_reference[reference]
            if hand not in self._hands:
                continue  # lost a moment ago
            if reference == hand.begun:
                self._meet(hand)
            else:
                self._take(hand, reference)

    def _take(self, hand: _Hand, reference: Any) -> None:
        ticket = hand.tickets[reference]
        if ticket.outcome is not None or ticket.is_dropped:
            self._put_away(hand, reference)
            return
        try:
            answer: Answer = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            self._replace(hand, error)
            return
        self._put_away(hand, reference)
        self._seconds.append(answer.seconds)
        ticket.outcome = answer.outcome()

    def _put_away(self, hand: _Hand, reference: Any) -> None:
        ticket = hand.tickets.pop(reference)
        ticket.flights.pop(reference)

    def _meet(self, hand: _Hand) -> None:
        try:
            about: About = self._ray.get(hand.begun)
        except self._ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts >= MOST_LOSSES or _is_import_error(error):
                self._refuse(
                    f"workers can't be started: {_first_lines(error)}\nThe same version of "
                    "penstock must be installed on all nodes, for the same Python; `options` may "
                    "have a `runtime_env`."
                )
            self._replace(hand, error)
            return
        self._check(about)
        self._failed_starts = 0
        hand.begun, hand.about = None, about

    def _check(self, about: About) -> None:
        here = versions()
        for name, version in about.versions.items():
            if here.get(name) != version:
                self._refuse(
                    f"the worker on {about.node} has {name} {version}, but the trainer has "
                    f"{here.get(name)}. Results could differ: install the same version on all "
                    "nodes."
                )
        if about.problem:
            self._refuse(
                f"the worker on {about.node} can't begin: {about.problem}\nIt must be able to "
                "import what `loop` uses, and to read the data set under the same name as the "
                "trainer."
            )
        if about.data != self._data:
            self._refuse(
                f"the data set on {about.node} is not that of the trainer: it has other files, or "
                "in another order. All nodes must see the same data under the same name."
            )

    def _refuse(self, reason: str) -> NoReturn:
        self._refusal = f"{WHAT}: {reason}"
        raise RuntimeError(self._refusal) from None

    def _replace(self, hand: _Hand, error: Exception) -> None:
        """A worker is lost: another one takes its place, and its requests go to others."""
        self._hands.remove(hand)
        self._end(hand)
        self.losses += 1
        lost = []
        for reference, ticket in hand.tickets.items():
            ticket.flights.pop(reference)
            if ticket.outcome is not None or ticket.is_dropped:
                continue
            ticket.losses += 1
            if ticket.losses >= MOST_LOSSES:
                self._hands.append(self._hired())
                raise RuntimeError(
                    f"{WHAT}: {ticket.losses} workers were lost over one batch, so that it may be "
                    f"the batch that makes them fail. The last error: {_first_lines(error)}"
                ) from None
            if not ticket.flights:
                lost.append(ticket)
        self._todo.extendleft(reversed(lost))
        self._hands.append(self._hired())

    def _warn(self) -> None:
        self._has_warned = True
        free = self._ray.available_resources().get("CPU", 0)
        call_sites.warn(
            f"{WHAT}: no worker could be started for {PATIENCE:.0f} seconds. Each needs "
            f"{self._num_cpus} CPUs, and the cluster has {free:g} free ones. Waiting for more "
            "nodes; ask for fewer `workers` or `num_cpus` if there will be none."
        )


def _pickled(ray: Any, loop: Function, reader: Reader) -> bytes:
    from penstock.readers._base.reader import _made_again

    positional, given = reader._arguments
    # Without a position, which is the trainer's.
    made = _Made(_made_again, (type(reader), positional, {**given, **reader._renewed()}, None))
    for name, thing in (("loop", loop), ("reader", made)):
        try:
            ray.cloudpickle.dumps(thing)
        except Exception as error:
            raise not_picklable(name, thing, error) from None
    pickled: bytes = ray.cloudpickle.dumps((loop, made))
    return pickled


class _Made:
    """Is pickled as a call, whose result it is when it is unpickled."""

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


def _is_import_error(error: Exception) -> bool:
    return "ModuleNotFoundError" in str(error) or "ImportError" in str(error)


def _first_lines(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return "\n".join(lines if len(lines) < 6 else [*lines[:2], *lines[-3:]])
