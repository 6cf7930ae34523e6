"""What is wrong with calls of audio operators."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "Audio.Channels": (
        "must be a signal with one channel, got the shape {shape}; pick a channel, or average them "
        "with `reductions.mean`"
    ),
    "Audio.NoSamples": "the signal is empty",
    "Audio.Short": (
        "the signal of {samples} samples is too short for a window of {window}: it needs {least}, "
        "unless windows are centered (`center_windows=True`)"
    ),
    "Audio.FewSteps": (
        "the signal of {samples} samples is shorter than a step of windows; this `preset` needs "
        "{least}"
    ),
    "Audio.EmptyAxis": "axis {axis} is empty; `nfft` can pad it with zeros",
    "Audio.WindowNumbers": "needs `window_length` numbers, {wanted}, got {given}",
    "Audio.LongWindow": "must be at most `nfft`, {nfft}, got {window}",
    "Audio.NothingToStretch": "can't make {length} samples of an empty signal",
    "Audio.Ratio": "must be finite and not negative, got {given}",
    "Audio.ShortAxis": "the axis needs at least {least} elements for this `dct_type`, got {given}",
    "Audio.Frequencies": (
        "must be above `freq_low`, {low}, and at most `sample_rate`, {rate}, got {high}"
    ),
}
