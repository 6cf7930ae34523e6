"""For cases where DALI's answer is a defect, or an error that is not meant for callers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.conformance.case import Raised
from tests.conformance.compare import differences, show
from tests.conformance.oracle import oracle, ours

MEANT = {"TypeError", "ValueError", "OverflowError", "IndexError", "BufferError", "RuntimeError"}
"""The types of errors that are meant for callers."""


@dataclass(frozen=True)
class Differs:
    """A case in which penstock differs from DALI, and why."""

    source: str
    ours: str
    """A source with the same outcome in penstock, or the name of the error it raises."""
    why: str
    ask: bool = True
    """False where DALI crashes, hangs or gives another answer each time."""

    def __str__(self) -> str:
        return self.source

    def after(self, start: str) -> Differs:
        """The case with statements before both of its sources."""
        ours = self.ours if self.ours in MEANT else f"{start}\n{self.ours}"
        return replace(self, source=f"{start}\n{self.source}", ours=ours)

    def check(self) -> None:
        """Fail unless penstock does what the row says, and DALI still doesn't."""
        actual = ours.run(self.source)
        if self.ours in MEANT:
            same = isinstance(actual, Raised) and self.ours in actual.bases
        else:
            expected = ours.run(self.ours)
            assert not isinstance(expected, Raised), f"the row itself is wrong: {expected}"
            same = next(differences(expected, actual, None), None) is None
        if not same:
            pytest.fail(
                f"{self.source}\nshould be like {self.ours} ({self.why}), but gives\n"
                f"{show(actual)}",
                pytrace=False,
            )
        if self.ask and next(differences(oracle.run(self.source), actual, None), None) is None:
            pytest.fail(
                f"{self.source}\nDALI does the same; this row belongs to the table of "
                "cases that agree",
                pytrace=False,
            )


def assert_refused(source: str) -> None:
    """Fail unless both raise, penstock with an error for callers.

    For mistakes where DALI raises an error of an internal type.
    """
    expected = oracle.run(source)
    assert isinstance(expected, Raised), f"DALI accepts it: {show(expected)}"
    actual = ours.run(source)
    assert isinstance(actual, Raised), f"penstock accepts it: {show(actual)}"
    assert MEANT & set(actual.bases), f"not an error for callers: {actual}"


def assert_refused_alike(source: str, **inputs: Any) -> None:
    """Fail unless both raise, penstock with an error of DALI's type that is for callers."""
    expected, actual = oracle.run(source, **inputs), ours.run(source, **inputs)
    assert isinstance(expected, Raised), f"DALI accepts it: {show(expected)}"
    assert isinstance(actual, Raised), f"penstock accepts it: {show(actual)}"
    assert expected.type in actual.bases, f"{expected}\n{actual}"
    assert MEANT & set(actual.bases), f"not an error for callers: {actual}"
