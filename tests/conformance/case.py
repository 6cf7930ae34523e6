"""Runs the source of one conformance case and records the outcome.

DALI and penstock live in different environments, so what a case gives is turned into plain data
(NumPy arrays, names, messages) that can be sent through a pipe and compared.
"""

from __future__ import annotations

import ast
import enum
import linecache
import re
import textwrap
import traceback
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

FILE = "<case>"
"""The file name under which a case's source appears in tracebacks."""


@dataclass
class Value:
    """A Tensor or a Batch: its attributes and its samples."""

    kind: str
    dtype: str
    layout: str | None
    device: str
    shape: Any
    samples: list[np.ndarray]

    def __str__(self) -> str:
        return (
            f"{self.kind} of {self.dtype}, shape {self.shape}, layout {self.layout!r}, "
            f"on {self.device}"
        )


@dataclass
class Named:
    """An object compared by its name: a dtype, a device, an enum's member, a class."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass
class Opaque:
    """An object that can't be sent; only its class is compared."""

    type: str

    def __str__(self) -> str:
        return f"an object of class {self.type}"


@dataclass
class Raised:
    """An exception, with the texts of its causes and the line of the case it points at."""

    type: str
    bases: list[str]
    messages: list[str]
    """Its own text first, then those of its chain of causes."""
    line: int | None
    """The line of the case at the root of the chain (the innermost frame there)."""
    when: str
    """"call" while the source ran, "read" while its result was read."""

    def __str__(self) -> str:
        at = f", line {self.line}" if self.line is not None else ""
        head, *causes = (message.strip().replace("\n", "\n    ") for message in self.messages)
        return "\n  caused by: ".join([f"{self.type} ({self.when}{at}): {head}", *causes])


def evaluate(source: str, ndd: ModuleType, types: ModuleType, inputs: dict[str, Any]) -> Any:
    """The value of the source's last expression as plain data, or a `Raised`.

    Args:
        source: Statements or an expression; `ndd`, `types`, `np` and the inputs are in scope.
        ndd: The implementation to run it with.
        types: Its `types` module.
        inputs: Names and values the source may use.
    """
    source = textwrap.dedent(source).strip() + "\n"
    # Python and penstock look here for the line of a call, which their messages quote.
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    body = ast.parse(source, FILE)
    scope = {"ndd": ndd, "types": types, "np": np, **inputs}
    result = None
    try:
        if body.body and isinstance(last := body.body[-1], ast.Expr):
            body.body.pop()
            exec(compile(body, FILE, "exec"), scope)
            result = eval(compile(ast.Expression(last.value), FILE, "eval"), scope)
        else:
            exec(compile(body, FILE, "exec"), scope)
    except Exception as error:
        return _raised(error, "call")
    try:
        return _plain(result, ndd)
    except Exception as error:
        return _raised(error, "read")


def _plain(value: Any, ndd: ModuleType) -> Any:
    if isinstance(value, ndd.Tensor):
        return _value("Tensor", value, [value], ndd)
    if isinstance(value, ndd.Batch):
        return _value("Batch", value, list(value), ndd)
    if isinstance(value, ndd.DType):
        return Named("dtype", str(value))
    if isinstance(value, ndd.Device):
        return Named("device", str(value))
    if isinstance(value, type):
        return Named("class", value.__name__)
    if isinstance(value, enum.Enum) or hasattr(type(value), "__members__"):
        return Named(type(value).__name__, value.name)
    if isinstance(value, tuple | list):
        return [_plain(item, ndd) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item, ndd) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return np.array(value)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return value
    return Opaque(type(value).__name__.lstrip("_"))


def _value(kind: str, value: Any, samples: list[Any], ndd: ModuleType) -> Value:
    dtype = str(value.dtype)
    if dtype in {"DataType", "ImageType", "InterpType"}:
        # Enum values have no buffer of their own; their numbers do.
        samples = [ndd.cast(sample, dtype=ndd.int32) for sample in samples]
    return Value(
        kind=kind,
        dtype=dtype,
        layout=value.layout,
        device=str(value.device),
        shape=value.shape,
        samples=[np.array(sample) for sample in samples],
    )


def _raised(error: BaseException, when: str) -> Raised:
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    # Penstock's messages name the line of the call; DALI chains errors up to it.
    named = re.search(rf"\n  at {re.escape(FILE)}:(\d+)", str(error))
    lines = [int(named[1])] if named else []
    lines += [
        frame.lineno
        for link in reversed(chain)
        for frame in reversed(traceback.extract_tb(link.__traceback__))
        if frame.filename == FILE
    ]
    return Raised(
        type=type(error).__name__,
        bases=[base.__name__ for base in type(error).__mro__],
        messages=[str(link) for link in chain],
        line=lines[0] if lines else None,
        when=when,
    )
