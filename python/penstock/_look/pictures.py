"""One sample as a picture: images, sequences, waveforms, spectrograms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Picture(NamedTuple):
    """Pixels to show, and what was done to the numbers to see them."""

    pixels: Any
    """uint8, (height, width, 3)."""
    note: str = ""
    scale: float = 1.0
    """The size relative to the original, for boxes."""


def kind_of(array: Any, layout: str | None) -> str:
    """What a sample looks like: "image", "sequence", "waveform", "spectrogram" or "" (numbers)."""
    if array.size == 0 or array.dtype.kind not in "biuf":
        return ""
    if layout in ("HWC", "CHW", "HW"):
        return "image"
    if layout in ("FHWC", "FCHW", "FHW"):
        return "sequence"
    if layout in ("ft", "tf"):
        return "spectrogram"
    if layout is None and array.ndim == 3 and array.dtype == np.uint8 and array.shape[2] in (3, 4):
        return "image"
    if layout is None or layout in ("t", "tc", "ct"):
        return _sound_kind(array)
    return ""


def _sound_kind(array: Any) -> str:
    """Sound has no layout in DALI: one long row of samples, or a few next to each other."""
    if array.dtype != np.int16 and array.dtype.kind != "f":
        return ""
    long = array.shape[0] >= _LEAST_SOUND if array.ndim in (1, 2) else False
    few_channels = array.ndim == 1 or array.shape[1] <= 8
    return "waveform" if long and few_channels else ""


_LEAST_SOUND = 256
_FRAMES = 6


def picture(array: Any, layout: str | None, size: int) -> Picture | None:
    """The sample as a picture whose longer side has about `size` pixels; None if it is just
    numbers.
    """
    kind = kind_of(array, layout)
    if kind == "image":
        return _image(array, layout, size)
    if kind == "sequence":
        return _sequence(array, str(layout), size)
    if kind == "waveform":
        return Picture(_waveform(array, 2 * size, size // 2))
    if kind == "spectrogram":
        return _spectrogram(array if layout == "ft" else array.T, 2 * size, size)
    return None


def _image(array: Any, layout: str | None, size: int) -> Picture:
    if layout == "CHW":
        array = np.moveaxis(array, 0, -1)
    elif layout == "HW":
        array = array[:, :, None]
    height, width, channels = array.shape
    # Other numbers of channels have no colors: show the first one.
    array = array[:, :, : 3 if channels >= 3 else 1]
    factor = max(1, round(max(height, width) / size))
    if factor > 1:
        array = _shrink(array, factor)
    pixels, note = _visible(array)
    if channels == 4 or channels == 2 or channels > 4:
        note = ", ".join(filter(None, [note, f"{min(3, channels - 1)} of {channels} channels"]))
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, 2)
    # Small pictures are enlarged, so that pixels can be told apart.
    times = max(1, _SMALL // max(height, width))
    if times > 1:
        pixels = pixels.repeat(times, 0).repeat(times, 1)
    return Picture(pixels, note, times if factor == 1 else 1 / factor)


_SMALL = 64


def _shrink(array: Any, factor: int) -> Any:
    """Average of squares of pixels. A side that is shorter than a square becomes one pixel."""
    height, width, channels = array.shape
    down, across = min(factor, height), min(factor, width)
    rows, columns = height // down, width // across
    whole = array[: rows * down, : columns * across]
    means = whole.reshape(rows, down, columns, across, channels).mean((1, 3), dtype=np.float32)
    return means if array.dtype.kind == "f" else np.rint(means).astype(array.dtype)


def _visible(array: Any) -> tuple[Any, str]:
    """Any numbers as uint8, and what was done to see them."""
    if array.dtype == np.uint8:
        return array, ""
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * 255, ""
    array = array.astype(np.float32)
    finite = np.isfinite(array)
    low, high = (float(array[finite].min()), float(array[finite].max())) if finite.any() else (0, 0)
    array = np.where(finite, array, low)
    note = "" if finite.all() else "contains NaN or infinity"
    if low >= 0 and high <= 1:
        array = array * 255
    elif not (low >= 0 and high <= 255 and high > 1):
        array = (array - low) * (255 / max(high - low, 1e-30))
        note = ", ".join(filter(None, [f"scaled from {low:.3g} to {high:.3g}", note]))
    return np.rint(np.clip(array, 0, 255)).astype(np.uint8), note


def _sequence(array: Any, layout: str, size: int) -> Picture:
    """A strip of frames, evenly spaced."""
    count = min(array.shape[0], _FRAMES)
    chosen = np.linspace(0, array.shape[0] - 1, count).round().astype(int)
    frames = [_image(array[frame], layout[1:], size) for frame in chosen]
    gap = np.full((frames[0].pixels.shape[0], 2, 3), 255, np.uint8)
    parts = [part for frame in frames for part in (frame.pixels, gap)][:-1]
    shown = f"frames {', '.join(map(str, chosen))} of {array.shape[0]}"
    note = ", ".join(filter(None, [shown if count < array.shape[0] else "", frames[0].note]))
    return Picture(np.concatenate(parts, 1), note, frames[0].scale)


def _waveform(array: Any, width: int, height: int) -> Any:
    """The range of values in each column of pixels, a row for each channel."""
    channels = array[:, None] if array.ndim == 1 else array
    tracks = []
    for channel in channels.T:
        track = np.nan_to_num(channel.astype(np.float32))
        top = float(np.abs(track).max()) or 1.0
        pixels = np.full((height, width, 3), 255, np.uint8)
        pixels[height // 2] = 220
        edges = np.linspace(0, track.size, width + 1).astype(int)
        for x in range(width):
            piece = track[edges[x] : max(edges[x + 1], edges[x] + 1)]
            first, last = (
                (1 - value / top) / 2 * (height - 1) for value in (piece.max(), piece.min())
            )
            pixels[int(first) : int(last) + 1, x] = _INK
        tracks.append(pixels)
    return np.concatenate(tracks)


_INK = (31, 88, 148)


def _spectrogram(array: Any, width: int, height: int) -> Picture:
    """Low frequencies at the bottom. Powers are shown in decibels."""
    values = np.nan_to_num(array.astype(np.float32))
    note = ""
    if values.min() >= 0:
        top = float(values.max()) or 1.0
        values = 10 * np.log10(np.maximum(values / top, 1e-8))
        note = "in decibels"
    values = values[::-1, :, None]
    low, high = float(values.min()), float(values.max())
    rows = np.linspace(0, values.shape[0] - 1, min(height, max(values.shape[0], 64))).astype(int)
    columns = np.linspace(0, values.shape[1] - 1, min(width, max(values.shape[1], 64))).astype(int)
    shade = (values[rows][:, columns, 0] - low) / max(high - low, 1e-30)
    stops = np.linspace(0, 1, len(_HEAT))
    colors = [np.interp(shade, stops, [color[part] for color in _HEAT]) for part in range(3)]
    return Picture(np.stack(colors, -1).astype(np.uint8), note)


_HEAT = ((10, 8, 40), (90, 20, 110), (190, 55, 85), (245, 140, 30), (252, 245, 170))
