"""The parts of a docstring, as Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_IGNORED = re.compile(r"(Deprecated; )?(ignored|without effect|of no use)\b", re.IGNORECASE)
"""How the descriptions of arguments begin that are accepted and change nothing."""

WIDTH = 92
"""Of signatures, which are wrapped."""

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


def is_ignored(description: str) -> bool:
    """Whether an argument is accepted and changes nothing, as its description says."""
    return _IGNORED.match(description) is not None


def listed(described: Iterable[tuple[str, str]]) -> str:
    """Names and descriptions as a list. Several arguments without effect are folded away."""
    described = list(described)
    folded = [(name, text) for name, text in described if is_ignored(text)]
    if len(folded) < 2:
        return _items(described)
    rest = [(name, text) for name, text in described if not is_ignored(text)]
    # Markdown in HTML, as both GitHub and MkDocs understand it.
    return (
        f'{_items(rest)}\n<details markdown="1">\n'
        f"<summary>{len(folded)} arguments without effect, accepted as in DALI</summary>\n\n"
        f"{_items(folded)}\n</details>\n"
    )


def _items(described: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- `{name}`: {text}\n" for name, text in described)


def wrapped(name: str, signature: str) -> str:
    """A signature as code, in several lines if it is long."""
    text = f"{name}{signature}"
    # Only between arguments: a space inside of one holds it together.
    held = re.sub(r"(?<!,) ", "\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(
        held, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
    return "```python\n" + "\n".join(lines) + "\n```\n"


def _joined(text: str) -> str:
    return " ".join(text.split())
