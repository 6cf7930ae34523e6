"""Operator definitions: from a Python function to what users call.

A definition is the one place that says what an operator takes: its signature, which arguments may
differ from sample to sample, the layouts it accepts, and, in its body, what is known of the result
at the call. `@operator` turns it into the public function, which checks and converts arguments and
submits the kernel.

The kernel gets the arguments that it names. Those that the definition doesn't have are derived by
its body: `return Like(input, axes=found)` passes `axes` on. A derived argument may also be a tensor
or a batch, the result of another call, which the kernel gets per sample. A kernel that names
`dtype`, `batch_size` or `rng` gets the result's element type, the number of samples, and the random
stream to draw from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from penstock._operators.arguments import REQUIRED as REQUIRED
from penstock._operators.operator import Operator as Operator
from penstock._operators.operator import Options
from penstock._operators.results import Like as Like
from penstock._operators.results import Result as Result
from penstock._values.array import Array

T = TypeVar("T")

Data: TypeAlias = Any
"""An input: a Tensor, a Batch, or anything that `as_tensor` takes."""

PerSample: TypeAlias = T | Array
"""An argument that may be a batch with a value for each sample, or a tensor with one for all."""

OPERATORS: dict[str, Operator] = {}
"""All operators by the name that users call them by."""


def operator(
    *,
    layouts: str = "",
    namespace: str = "",
    also_in: str = "",
    in_dali: bool = True,
    kernel: str = "",
    devices: str = "cpu gpu",
    random: bool = False,
    can_change_device: bool = False,
    makes_frames: bool = False,
    can_skip_bad_samples: bool = False,
    convert_input: Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a definition into an operator.

    Args:
        layouts: The layouts that the first input may have, in order of preference: an input
            without a layout gets the first one of its rank. Empty for any.
        namespace: Where users find it, such as "reductions"; by default at the top.
        also_in: Another namespace that has it, such as the one that it had before.
        in_dali: Whether DALI has it, so that conformance tests can compare the two.
        kernel: The kernel's name, where it isn't the operator's.
        devices: Where it can run.
        random: Whether it draws random numbers. Then it takes an `rng`, and its kernel gets what
            to draw from under that name.
        can_change_device: Whether `device` may differ from the input's.
        makes_frames: Whether a per-frame argument (see `per_frame`) turns a single sample into a
            sequence. The kernel must agree.
        can_skip_bad_samples: Whether it takes `on_error` and `along`, for damaged samples; see
            `_errors/bad_samples.py`.
        convert_input: Converts what users may give instead of data, such as file names.
    """

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        name = f"{namespace}.{function.__name__}" if namespace else function.__name__
        options = Options(
            tuple(layouts.split()),
            kernel or name,
            tuple(devices.split()),
            also_in,
            in_dali,
            random,
            can_change_device,
            makes_frames,
            can_skip_bad_samples,
            convert_input,
        )
        made = OPERATORS[name] = Operator(name, function, options)
        return made.function

    return define
