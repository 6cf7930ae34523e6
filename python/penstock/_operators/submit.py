"""Submitting calls to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock import _core
from penstock._errors.faults import raise_fault
from penstock._operators.call_sites import here
from penstock._runtime import process as _process  # noqa: F401  (the process must be watched before any work)
from penstock._runtime.context import EvalContext
from penstock._runtime.mode import EvalMode, current_mode

if TYPE_CHECKING:
    from penstock._core import Promise, Value

_deferred = EvalMode.deferred
_eager = EvalMode.eager
_current_context = EvalContext.current


def invoke(
    operator: int,
    values: Sequence[Value],
    data_inputs: int,
    args: tuple[Any, ...],
    samples: int | None,
    outputs: Sequence[Promise],
    device: int,
    layout: str | None = None,
    raises: bool = True,
) -> list[Value]:
    """Submit a call in the current mode and context, and return its values.

    Unless it `raises`, a call that has to wait leaves what went wrong to be asked for.
    """
    mode = current_mode()
    context = _current_context()
    made = _core.submit(
        operator,
        values,
        data_inputs,
        args,
        samples,
        outputs,
        layout,
        device,
        here(),
        context._native_pool(),
        mode is _deferred,
        mode is _eager and context._run_ahead != 0,
    )
    if mode is not _eager or made[0].prompt:
        deliver(made, mode, context, raises)
    return made


def deliver(
    made: Sequence[Value],
    mode: EvalMode,
    context: EvalContext,
    raises: bool = True,
) -> None:
    """Defer, or wait for, the results of a call, as the mode demands."""
    if mode is _deferred:
        for value in made:
            context._defer(value)
    # Memory that its owner may change later must be read before the call returns, in every mode.
    if mode > _eager or made[0].prompt:
        for value in made:
            if raises:
                settle(value)
            else:
                value.wait()


def settle(value: Value) -> None:
    """Wait for a value, and raise what went wrong with it."""
    fault = value.wait()
    if fault is not None:
        raise_fault(fault)
