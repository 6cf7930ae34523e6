"""Reference pages of classes: readers, checkpoints, loops that run ahead."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType

import penstock
import penstock.checkpoint
import penstock.readers
from penstock.readers import Reader


def pages() -> dict[str, tuple[str, list[str]]]:
    """For each page its text and the names that it describes."""
    formats = [
        thing
        for thing in map(penstock.readers.__dict__.get, penstock.readers.__all__)
        if isinstance(thing, type) and issubclass(thing, Reader) and thing is not Reader
    ]
    parts = [_head("readers", penstock.readers)]
    parts += [_class(kind, f"readers.{kind.__name__}", _own(kind)) for kind in formats]
    parts.append(_class(Reader, "readers.Reader", None))
    others = [
        name
        for name in penstock.readers.__all__
        if name not in {"Reader", *(kind.__name__ for kind in formats)}
    ]
    parts += [_class(getattr(penstock.readers, name), f"readers.{name}", None) for name in others]
    names = [f"readers.{name}" for name in penstock.readers.__all__]
    checkpoint = penstock.checkpoint
    found = {"readers": ("\n".join(parts), names)}
    found["checkpoint"] = (
        "\n".join(
            [
                _head("checkpoint", checkpoint),
                _class(checkpoint.Checkpoint, "checkpoint.Checkpoint", None),
                _function(checkpoint.current, "checkpoint.current", "##"),
            ]
        ),
        ["checkpoint.Checkpoint", "checkpoint.current"],
    )
    running_ahead = "# prefetch\n"
    found["prefetch"] = (
        "\n".join([running_ahead, _class(penstock.prefetch, "prefetch", None)]),
        ["prefetch"],
    )
    return found


def _head(title: str, module: ModuleType) -> str:
    return f"# {title}\n\n{inspect.cleandoc(module.__doc__ or '')}\n"


def _own(kind: type[Reader]) -> set[str]:
    """The arguments that only this reader has."""
    common = inspect.signature(Reader).parameters.keys() | _common()
    return {name for name in inspect.signature(kind).parameters if name not in common}


def _common() -> set[str]:
    from penstock.readers.options import Common

    return set(Common.__annotations__)


def _class(kind: type, name: str, own: set[str] | None) -> str:
    """A class; with `own`, only of these arguments."""
    lines = [f"## {name}\n"]
    if not issubclass(kind, tuple | str | Warning) and kind is not Reader:
        lines.append(f"```python\n{name}{_signature(kind, own)}\n```\n")
    lines.append(_described(inspect.getdoc(kind) or "", own))
    if own is not None:
        lines.append("All else is as in [`readers.Reader`](#readersreader).\n")
        return "\n".join(lines)
    for key, member in _members(kind):
        if isinstance(member, property):
            lines.append(f"### {key}\n\n{_described(inspect.getdoc(member) or '', None)}")
        else:
            lines.append(_function(member, key, "###"))
    return "\n".join(lines)


def _signature(kind: type, own: set[str] | None) -> str:
    parameters = inspect.signature(kind).parameters
    shown = [key for key in parameters if own is None or key in own]
    if own is None:
        return str(inspect.signature(kind)).partition(" -> ")[0].replace("'", "")
    required = inspect.Parameter.empty
    listed = [
        key if parameters[key].default is required else f"{key}={parameters[key].default!r}"
        for key in shown
    ]
    return f"({', '.join([*listed, '...'])})"


def _members(kind: type) -> Iterator[tuple[str, FunctionType | property]]:
    if issubclass(kind, tuple | str | Warning):
        return
    for key, member in vars(kind).items():
        public = not key.startswith("_") or key == "__call__"
        if public and isinstance(member, FunctionType | property):
            yield key, member


def _function(function: FunctionType, name: str, level: str) -> str:
    signature = re.sub(r"\(self(, )?", "(", str(inspect.signature(function))).replace("'", "")
    code = f"```python\n{name}{signature}\n```\n"
    return f"{level} {name}\n\n{code}\n{_described(inspect.getdoc(function) or '', None)}"


def _described(doc: str, own: set[str] | None) -> str:
    text, _, rest = doc.partition("\nArgs:\n")
    arguments, _, example = rest.partition("\nExample:\n")
    lines = [text.strip() + "\n"]
    entries = re.split(r"\n(?=    \w[\w, ]*:)", "\n" + arguments.rstrip())
    listed = []
    for entry in filter(str.strip, entries):
        name, _, said = entry.strip().partition(":")
        if own is None or name in own:
            listed.append(f"- `{name}`: {' '.join(said.split())}")
    if listed:
        lines.append("\n".join(listed) + "\n")
    if example:
        lines.append(f"```python\n{inspect.cleandoc(example)}\n```\n")
    return "\n".join(lines)
