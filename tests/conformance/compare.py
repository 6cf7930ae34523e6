"""Describes where the outcomes of a case with DALI and with penstock differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.conformance.case import Raised, Value


def differences(a: Any, b: Any, tol: float | None, where: str = "the result") -> Iterator[str]:
    """The differences between DALI's `a` and our `b`; nothing when they agree.

    Args:
        a: What DALI gave.
        b: What penstock gave.
        tol: The largest difference allowed between numbers; none when None.
        where: What to call this part of the result.
    """
    if isinstance(a, Raised) or isinstance(b, Raised):
        yield from _error_differences(a, b)
    elif type(a) is not type(b):
        yield f"{where} is {_type_name(a)} and {_type_name(b)}"
    elif isinstance(a, Value):
        yield from _value_differences(a, b, tol, where)
    elif isinstance(a, list):
        if len(a) != len(b):
            yield f"{where} has {len(a)} and {len(b)} items"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from differences(x, y, tol, f"{where}[{i}]")
    elif isinstance(a, dict):
        if a.keys() != b.keys():
            yield f"{where} has the keys {list(a)} and {list(b)}"
        for key in a.keys() & b.keys():
            yield from differences(a[key], b[key], tol, f"{where}[{key!r}]")
    elif isinstance(a, np.ndarray):
        yield from _array_differences(a, b, tol, where)
    elif isinstance(a, float | np.number):
        if any(_array_differences(np.asarray(a), np.asarray(b), tol, where)):
            yield f"{where} is {a!r} and {b!r}"
    elif a != b:
        yield f"{where} is {show(a)} and {show(b)}"


def silence(outcome: Any, says: str, who: str) -> str | None:
    """A description if the outcome is no error, or one whose texts lack the pattern."""
    if not isinstance(outcome, Raised):
        return f"{who} raises nothing, expected an error that says {says!r}"
    if not any(re.search(says, message, re.IGNORECASE) for message in outcome.messages):
        return f"the error of {who} doesn't say {says!r}"
    return None


def show(outcome: Any) -> str:
    """The outcome as text: a description, then its elements as far as they fit."""
    if isinstance(outcome, Value):
        samples = "\n".join(_elements(sample) for sample in outcome.samples[:4])
        more = "\n..." if len(outcome.samples) > 4 else ""
        return f"{outcome}\n{samples}{more}"
    if isinstance(outcome, np.ndarray):
        return f"array of {outcome.dtype}, shape {outcome.shape}\n{_elements(outcome)}"
    if isinstance(outcome, list):
        return "[" + ", ".join(show(item) for item in outcome) + "]"
    if isinstance(outcome, str | bytes | int | float | np.generic | dict):
        return repr(outcome)
    return str(outcome)


def _error_differences(a: Any, b: Any) -> Iterator[str]:
    if not isinstance(b, Raised):
        yield "DALI raises, penstock doesn't"
    elif not isinstance(a, Raised):
        yield "penstock raises, DALI doesn't"
    elif a.type not in b.bases:
        yield f"the errors are of type {a.type} and {b.type}"


def _value_differences(a: Value, b: Value, tol: float | None, where: str) -> Iterator[str]:
    for field in ("kind", "dtype", "layout", "device", "shape"):
        if (x := getattr(a, field)) != (y := getattr(b, field)):
            yield f"{where}: {field} is {x!r} and {y!r}"
    for i, (sample, other) in enumerate(zip(a.samples, b.samples, strict=False)):
        name = f"{where}, sample {i}" if a.kind == "Batch" else where
        yield from _array_differences(sample, other, tol, name)


def _array_differences(
    a: np.ndarray, b: np.ndarray, tol: float | None, where: str
) -> Iterator[str]:
    if a.dtype != b.dtype or a.shape != b.shape:
        yield f"{where} is an array of {a.dtype} {a.shape} and of {b.dtype} {b.shape}"
        return
    # Unlike those of integers, differences of floats don't wrap.
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(wide_a) & np.isnan(wide_b))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(wide_a - wide_b))
    if tol is not None:
        same |= apart <= tol
    if np.all(same):
        return
    wrong = np.argwhere(~same)
    first = tuple(int(i) for i in wrong[0])
    allowed = f", allowed {tol}" if tol is not None else ""
    yield (
        f"{where}: {len(wrong)} of {a.size} elements, the first at {first}: {a[first]} and "
        f"{b[first]}; largest difference {apart.max():g}{allowed}"
    )


def _elements(array: np.ndarray) -> str:
    return np.array2string(array, threshold=60, edgeitems=3)


def _type_name(outcome: Any) -> str:
    return show(outcome) if outcome is None else f"of type {type(outcome).__name__}"
