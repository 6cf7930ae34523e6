"""The sentence for each kind of problem that native code reports.

Native code says what is wrong as data: a kind such as "Frames.Count" and its figures by name
(`src/value/problem.rs`). A sentence completes the name of what it is about: "`angle` must be
finite, got nan". A test checks that each kind has one, and that it uses the figures which the kind
has. Each area has a module with its sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from penstock._errors.sentences import codecs, readers

Problem: TypeAlias = tuple[str, dict[str, Any]]
"""A kind and its figures."""

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Text": "{text}",
    **codecs.SENTENCES,
    **readers.SENTENCES,
}
"""By kind: a format string, or a function of the figures where one sentence doesn't fit all."""


def sentence(problem: Problem) -> str:
    """What is wrong, in words."""
    kind, figures = problem
    shown = {
        # A problem inside of a problem, such as that of one page of a file.
        name: sentence(figure) if isinstance(figure, tuple) else figure
        for name, figure in figures.items()
    }
    words = SENTENCES[kind]
    return words.format(**shown) if isinstance(words, str) else words(**shown)
