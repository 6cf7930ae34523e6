"""Running ahead: what is done for the next items of a loop while the current one is used.

Between two items, the engine notes the calls of a thread (`src/engine/ahead/`). Calls that were the
same in two iterations are submitted early for the items that come next. The program gets their
values when it makes those very calls; readers, RNGs and states stay where the program is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock import _core
from penstock._operators import call_sites
from penstock._runtime.context import EvalContext
from penstock._runtime.mode import EvalMode, current_mode
from penstock._runtime.run_ahead import depth
from penstock._state import item_states
from penstock._values.array import Array

if TYPE_CHECKING:
    from penstock._core import Iteration, RunAheadCounts, Value

_eager = EvalMode.eager


def allowed() -> int:
    """For how many items the calling thread may run ahead now.

    None in other modes than eager, and inside of the source of `prefetch`, which runs ahead itself.
    """
    if current_mode() is not _eager or item_states.is_pulling():
        return 0
    return depth(EvalContext.current())


def begin(
    iteration: Iteration, item: Sequence[Value], upcoming: Sequence[Sequence[Value]], depth: int
) -> None:
    """The program gets an item; these come after it."""
    if depth:
        iteration.begin(item, upcoming, depth)
    else:
        iteration.end(False)


def values(item: Any) -> list[Value]:
    """The values of an item of any structure."""
    found: list[Value] = []
    _collect(item, found)
    return found


def _collect(item: Any, found: list[Value]) -> None:
    if isinstance(item, Array):
        found.append(item._value)
    elif isinstance(item, list | tuple):
        for part in item:
            _collect(part, found)
    elif isinstance(item, dict):
        for part in item.values():
            _collect(part, found)


class Stats(NamedTuple):
    """What loops have run ahead: since the process began, or while a profile was recorded.

    Args:
        predicted: Calls that were submitted before the program made them.
        used: Those of them that the program made.
        dropped: Those that it did not make, or made otherwise.
        not_predicted: Why calls were not predicted, the most frequent reasons first.
    """

    predicted: int
    used: int
    dropped: int
    not_predicted: tuple[str, ...]


def stats() -> Stats:
    """How many calls were made ahead of the program, and why others were not.

    Example:
        >>> ndd.run_ahead.stats().predicted >= ndd.run_ahead.stats().used
        True
    """
    return between(((0, 0, 0), []), _core.run_ahead_stats())


def between(begin: RunAheadCounts, end: RunAheadCounts) -> Stats:
    """What was run ahead between two readings of the engine's counts."""
    predicted, used, dropped = (
        after - before for before, after in zip(begin[0], end[0], strict=True)
    )
    earlier = {reason[:-1]: reason[-1] for reason in begin[1]}
    times = {
        reason[:-1]: reason[-1] - earlier.get(reason[:-1], 0)
        for reason in end[1]
        if reason[-1] > earlier.get(reason[:-1], 0)
    }
    stopped = sorted(times, key=lambda reason: -times[reason])
    reasons = dict.fromkeys(_sentence(*reason) for reason in stopped)
    return Stats(predicted, used, dropped, tuple(reasons))


def _sentence(number: int, site: int, what: str, place: int) -> str:
    name, arguments = _names(number)
    path = call_sites.find(site)
    where = f" at {path[-1].file}:{path[-1].line}" if path else ""
    subject = f"`{arguments[place]}`" if place < len(arguments) else "an argument"
    if what == "argument":
        return f"{name}: {subject} differs from iteration to iteration{where}"
    if what == "input":
        return f"{name}: an input is not computed from the loop's item{where}"
    if what == "draw":
        return f"{name}: its RNG is not advanced evenly, or is seeded again, in the loop{where}"
    return f"{name}: type, layout, device, batch size or context differ{where}"


def _names(number: int) -> tuple[str, Sequence[str]]:
    from penstock._operators.definition import OPERATORS

    for operator in OPERATORS.values():
        if operator.number == number:
            return operator.name, operator.kernel_arguments
    return "an operation", ()
