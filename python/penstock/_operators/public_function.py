"""The function that users call: its source is written out, so that Python itself binds the call.

`inspect.Signature.bind` would take longer than everything else that a call does.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from penstock._errors import messages
from penstock._errors.tracebacks import hide_frames

if TYPE_CHECKING:
    from penstock._operators.operator import Operator


def compiled(operator: Operator) -> Callable[..., Any]:
    """The public function of an operator."""
    required = len(operator.inputs) - operator.optional
    inputs = [
        name if position < required else f"{name}=None"
        for position, name in enumerate(operator.inputs)
    ]
    inputs += ["/"] if inputs else []
    shown = [*inputs, f"*{operator.variadic}" if operator.variadic else "*"]
    inputs.append(f"*{operator.variadic or 'surplus'}")
    given = "".join(f"{name}, " for name in operator.inputs)
    given += f"*{operator.variadic}" if operator.variadic else ""
    names = [argument.name for argument in operator.arguments]
    absent = " and ".join(f"{name} is None" for name in names) or "True"
    keywords = [f"{key}=None" for key in operator.keywords]
    surplus = "False" if operator.variadic else "surplus"
    more = "".join(f", {key}={key}" for key in operator.extra_keywords)
    source = f"""
def signature({", ".join([*shown, *keywords])}): ...
def {operator.definition.__name__}({", ".join([*inputs, *keywords])}, **unknown):
    try:
        if unknown:
            raise unknown_argument("{operator.name}", unknown, keywords)
        if {surplus}:
            raise surplus_input("{operator.name}", {len(operator.inputs)}, surplus, keywords)
        given = None if {absent} else ({"".join(f"{name}, " for name in names)})
        return call(({given}), given, batch_size, device{more})
    except BaseException as error:
        hide_frames(error)
        raise
"""
    scope: dict[str, Any] = {
        "__name__": operator.definition.__module__,
        "unknown_argument": messages.unknown_argument,
        "surplus_input": messages.surplus_input,
        "keywords": operator.keywords,
        "call": operator.call,
        "hide_frames": hide_frames,
    }
    # Inside the package, so that the search for the user's line skips it.
    file = os.path.join(os.path.dirname(__file__), f"<{operator.name}>")
    exec(compile(source, file, "exec"), scope)
    function = cast(types.FunctionType, scope[operator.definition.__name__])
    function.__doc__ = operator.definition.__doc__
    function.__module__ = operator.definition.__module__
    # `help` and editors show the signature of this attribute.
    function.__wrapped__ = scope["signature"]  # type: ignore[attr-defined]
    return function
