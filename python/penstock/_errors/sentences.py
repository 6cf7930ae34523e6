"""The wording of each kind of problem that native code reports.

Native code reports problems as data: a kind such as "Frames.Count" and its named figures
(`src/value/problem.rs`). The sentence follows the name of its subject: "`angle` must be finite, got
nan". A test checks that every kind has a sentence, and that it uses the figures of its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Problem: TypeAlias = tuple[str, dict[str, Any]]
"""A kind and its figures by name."""

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Text": "{text}",
    "Frames.Count": "has values for {given} frames, but there are {frames} frames",
    "Frames.InputCount": (
        "input {index} has values for {given} frames, but there are {frames} frames"
    ),
    "Frames.Empty": "there are no frames that the arguments for frames could apply to",
    "Frames.Shapes": (
        "all frames of a sequence must get the same shape, but by their arguments frame 0 would "
        "get {first} and frame {frame} {shape}"
    ),
}
"""By kind: a format string, or a function of the figures where the wording depends on them."""


def sentence(problem: Problem) -> str:
    """The sentence for a problem."""
    kind, figures = problem
    shown = {
        # A nested problem, such as that of one page of a file.
        name: sentence(figure) if isinstance(figure, tuple) else figure
        for name, figure in figures.items()
    }
    words = SENTENCES[kind]
    return words.format(**shown) if isinstance(words, str) else words(**shown)
