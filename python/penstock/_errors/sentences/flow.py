"""Sentences for problems of `optical_flow` (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Flow.FewFrames": "optical flow needs at least 2 frames, got {frames}",
    "Flow.Hints": "the hints must be float32 of the shape {wanted}, got the shape {shape}",
}
