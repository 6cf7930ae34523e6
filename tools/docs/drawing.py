"""Draws images, sounds and spectrograms side by side, on a transparent background."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

HEIGHT = 150
"""The height of a picture; its parts are scaled to it."""
GAP = 10

COLORS = np.array([[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]])
LINE = (84, 110, 190, 255)


def photograph(pixels: np.ndarray, enlarge: bool = True) -> Image.Image:
    """An image with one, two or three channels, of numbers from 0 to 255.

    Args:
        pixels: The image, HWC.
        enlarge: Whether to scale it to `HEIGHT`; without, its size can be compared with others'.
    """
    bytes_ = np.clip(np.asarray(pixels, np.float32), 0, 255).astype(np.uint8)
    if bytes_.shape[-1] == 1:
        bytes_ = bytes_.repeat(3, axis=-1)
    made = Image.fromarray(bytes_).convert("RGBA")
    if enlarge and made.height != HEIGHT:
        width = max(1, round(made.width * HEIGHT / made.height))
        made = made.resize((width, HEIGHT), Image.Resampling.NEAREST)
    return made


def waveform(samples: np.ndarray, width: int = 300, loudest: float = 1.0) -> Image.Image:
    """A sound as a line from -`loudest` to `loudest`."""
    edges = np.linspace(0, len(samples), width + 1).astype(int)
    pixels = np.zeros((HEIGHT, width, 4), np.uint8)
    pixels[HEIGHT // 2] = (128, 128, 128, 120)
    for x in range(width):
        part = samples[edges[x] : max(edges[x + 1], edges[x] + 1)]
        low, high = (np.clip(v / loudest, -1, 1) for v in (part.min(), part.max()))
        top, bottom = (round((1 - v) / 2 * (HEIGHT - 1)) for v in (high, low))
        pixels[top : bottom + 1, x] = LINE
    return Image.fromarray(pixels)


def spectrogram(
    values: np.ndarray, low: float | None = None, high: float | None = None, width: int = 300
) -> Image.Image:
    """A spectrogram, low frequencies at the bottom; the lowest value is black."""
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    place = np.clip((values[::-1] - low) / max(high - low, 1e-9), 0, 1) * (len(COLORS) - 1)
    channels = [np.interp(place, range(len(COLORS)), channel) for channel in COLORS.T]
    made = Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8)).convert("RGBA")
    return made.resize((width, HEIGHT), Image.Resampling.BILINEAR)


def side_by_side(parts: Sequence[Image.Image]) -> Image.Image:
    """The parts in a row, with an arrow after the first one."""
    height = max(part.height for part in parts)
    arrow = _arrow() if len(parts) > 1 else None
    width = sum(part.width for part in parts) + GAP * (len(parts) - 1)
    width += arrow.width + GAP if arrow else 0
    made = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    x = 0
    for number, part in enumerate(parts):
        made.paste(part, (x, (height - part.height) // 2))
        x += part.width + GAP
        if number == 0 and arrow:
            made.paste(arrow, (x, (height - arrow.height) // 2))
            x += arrow.width + GAP
    return made


def _arrow() -> Image.Image:
    pixels = np.zeros((17, 26, 4), np.uint8)
    gray = (128, 128, 128, 255)
    pixels[8, :24] = gray
    for step in range(7):
        pixels[8 - step : 9 + step : max(1, 2 * step), 24 - step] = gray
    return Image.fromarray(pixels)
