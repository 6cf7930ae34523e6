"""Sentences for the problems of audio effects (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable

SENTENCES: dict[str, str | Callable[..., str]] = {
    "AudioEffects.Loud": "must be at most {most} dB, got {given}",
    "AudioEffects.MaskCount": "gives {given} masks, but there may be 0 to {most}",
    "AudioEffects.MaskStarts": (
        "gives {starts} masks, but `width` has {widths} numbers; it needs one, or one for each mask"
    ),
    "AudioEffects.NoiseChannels": (
        "the noise has {given} channels, but the sound has {channels}; it needs one channel, or as "
        "many as the sound"
    ),
    "AudioEffects.EmptyNoise": "the noise has no samples",
    "AudioEffects.Offset": "must be a frame of the noise, from 0 to {frames} - 1, got {given}",
    "AudioEffects.WindowStep": "must be between 1 and {most}, half of `nfft`, got {given}",
    "AudioEffects.Octaves": "must be at most {most} octaves up or down, got {given} steps",
    "AudioEffects.WindowLength": "must be odd, from 3 to 1001, got {given}",
    "AudioEffects.FewFrames": (
        'there are {frames} frames, fewer than `window_length`, {window}; use mode="replicate"'
    ),
}
