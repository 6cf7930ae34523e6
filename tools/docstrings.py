"""The parts of a docstring, as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADING = re.compile(r"^(Args|Attributes|Returns|Example):\n", re.MULTILINE)


class Docstring(NamedTuple):
    """The sections of a docstring; empty if missing."""

    text: str
    args: str
    attributes: str
    returns: str
    example: str

    @property
    def returned(self) -> str:
        """A paragraph about the result."""
        return f"Returns: {_joined(self.returns)}\n" if self.returns else ""

    @property
    def code(self) -> str:
        """The example."""
        return f"```python\n{self.example}\n```\n" if self.example else ""


def parse(doc: str | None) -> Docstring:
    """Split a docstring at its headings."""
    text, *rest = _HEADING.split(inspect.cleandoc(doc or "") + "\n")
    parts = {
        heading.lower(): inspect.cleandoc("\n" + body)
        for heading, body in zip(rest[::2], rest[1::2], strict=True)
    }
    headings = ("args", "attributes", "returns", "example")
    return Docstring(text.strip(), *(parts.get(key, "") for key in headings))


def entries(listed: str) -> Iterator[tuple[str, str]]:
    """Names and descriptions from a section on arguments or attributes."""
    for entry in re.split(r"\n(?=\*{0,2}\w[\w, ]*:)", listed):
        if entry:
            name, _, description = entry.partition(":")
            yield name, _joined(description)


def _joined(text: str) -> str:
    return " ".join(text.split())
