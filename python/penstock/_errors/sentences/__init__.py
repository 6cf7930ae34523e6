"""The wording of each kind of problem that native code reports.

Native code reports problems as data: a kind such as "Frames.Count" and its named figures
(`src/value/problem.rs`). The sentence follows the name of its subject: "`angle` must be finite, got
nan". A test checks that every kind has a sentence, and that it uses the figures of its kind.
Each area has a module with its sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from penstock._errors.sentences import (
    arrays,
    audio,
    audio_effects,
    augmentation,
    boxes,
    codecs,
    decoders,
    flow,
    images,
    kernels,
    multi_paste,
    readers,
    segmentation,
    video,
)

Problem: TypeAlias = tuple[str, dict[str, Any]]
"""A kind and its figures by name."""

SENTENCES: dict[str, str | Callable[..., str]] = {
    "MemoryFault.Strides": "its strides reach outside of its {bytes} bytes",
    **arrays.SENTENCES,
    **audio.SENTENCES,
    **audio_effects.SENTENCES,
    **augmentation.SENTENCES,
    **boxes.SENTENCES,
    **codecs.SENTENCES,
    **decoders.SENTENCES,
    **flow.SENTENCES,
    **images.SENTENCES,
    **kernels.SENTENCES,
    **multi_paste.SENTENCES,
    **readers.SENTENCES,
    **segmentation.SENTENCES,
    **video.SENTENCES,
}
"""By kind: a format string, or a function of the figures where the wording depends on them."""


def sentence(problem: Problem) -> str:
    """The sentence for a problem."""
    kind, figures = problem
    shown = {name: _shown(figure) for name, figure in figures.items()}
    words = SENTENCES[kind]
    return words.format(**shown) if isinstance(words, str) else words(**shown)


def _shown(figure: Any) -> Any:
    if isinstance(figure, tuple):
        # A problem inside of a problem, such as that of one page of a file.
        return sentence(figure)
    if isinstance(figure, float) and figure.is_integer() and abs(figure) < 1e15:
        return int(figure)
    return figure
