"""Element-wise functions.

They share everything with Python's own operators (`+`, `<` and so on): operands, types, shapes and
layouts, and take none of the keywords that other operators have.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from penstock._errors.tracebacks import hide_frames
from penstock._operators.definition import OPERATORS
from penstock._operators.operator import Operator, Options
from penstock._values.arithmetic import Operation
from penstock._values.promotion import Types

_BY_OPERANDS = {1: "unary", 2: "binary", 3: "ternary"}


def function(
    types: Types,
    *,
    kernel: str = "",
    namespace: str = "math",
    in_dali: bool = True,
    operation: type[Operation] = Operation,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn a definition, which only has a signature and a docstring, into an element-wise function.

    Args:
        types: The types it takes, and what it makes of them.
        kernel: The kernel's name, where it isn't the function's.
        namespace: Where users find it.
        in_dali: Whether DALI has it.
        operation: The class that makes a result of operands.
    """

    def define(definition: Callable[..., Any]) -> Callable[..., Any]:
        short = definition.__name__
        name = f"{namespace}.{short}" if namespace else short
        options = Options((), kernel or short, ("cpu", "gpu"), in_dali=in_dali)
        made = Function(definition, options, operation(name, options.kernel, types))
        OPERATORS[made.name] = made
        return made.function

    return define


class Function(Operator):
    """An element-wise function, ready to be called."""

    common = False

    def __init__(
        self, definition: Callable[..., Any], options: Options, operation: Operation
    ) -> None:
        self.operation = operation
        super().__init__(operation.name, definition, options)

    @property
    def keywords(self) -> list[str]:
        """Names of all keywords: there are none."""
        return []

    def _make_function(self) -> Callable[..., Any]:
        """The public function, whose operands may be given by position or by name."""
        name, operands = self.definition.__name__, ", ".join(self.inputs)
        scope: dict[str, Any] = {
            "__name__": self.definition.__module__,
            "apply": getattr(self.operation, _BY_OPERANDS[len(self.inputs)]),
            "hide_frames": hide_frames,
        }
        # Inside the package, so that the search for the user's line skips it.
        file = os.path.join(os.path.dirname(__file__), f"<{self.name}>")
        source = f"""
def {name}({operands}):
    try:
        return apply({operands})
    except BaseException as error:
        hide_frames(error)
        raise
"""
        exec(compile(source, file, "exec"), scope)
        made: Callable[..., Any] = scope[name]
        made.__doc__ = self.definition.__doc__
        return made
