"""Arguments and operators that have another name now, or no effect any more."""

from __future__ import annotations

import functools
from typing import Any

from penstock._errors.tracebacks import public
from penstock._operators import call_sites
from penstock._operators.constraints import Constraint
from penstock._operators.definition import OPERATORS
from penstock._values.dtype import DType


class Deprecated(Constraint):
    """An argument that should not be given; its other name, if it has one."""

    def __init__(self, instead: str = "") -> None:
        self.instead = instead

    def check(self, operator: str, name: str, item: Any) -> None:
        """Warn, since it was given."""
        advice = f"use `{self.instead}`" if self.instead else "it has no effect"
        call_sites.warn(f"{operator}: `{name}` is deprecated; {advice}.", DeprecationWarning)

    def described(self) -> str:
        """That it is so."""
        return "deprecated"


def chosen_dtype(name: str, dtype: DType | None, old: DType | None) -> DType | None:
    """The value of `dtype`, or of `output_dtype`, its old name."""
    if dtype is not None and old is not None:
        raise TypeError(f"{name}: `output_dtype` is the old name of `dtype`; give one of them.")
    return dtype or old


def under_former_name(function: Any, place: str) -> Any:
    """An operator as the namespace `place` has it: one that has moved warns when it is called."""
    name = function.__name__
    former = f"{place}.{name}"
    owner = next((each for each in OPERATORS.values() if each.function is function), None)
    if owner is None or owner.name == former:
        return function

    @public
    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        text = f"`{former}` is the former name of `{owner.name}`; use that one."
        call_sites.warn(text, DeprecationWarning)
        return function(*args, **kwargs)

    return renamed
