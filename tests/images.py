"""Image files for tests, made on the spot."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image


def photograph(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    """A smooth picture with some noise, as photographs are."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    picture = rng.normal(128, 6, (height, width, channels))
    for channel in range(channels):
        for _ in range(8):
            dy, dx, phase = rng.uniform(0.005, 0.2, 3)
            wave = np.sin(x * dx + y * dy + 30 * phase)
            picture[..., channel] += rng.uniform(5, 30) * wave
    return picture.clip(0, 255).astype(np.uint8)


def encoded(
    picture: np.ndarray, format: str = "JPEG", mode: str | None = None, **options: Any
) -> np.ndarray:
    """The bytes of a file that Pillow writes."""
    if picture.ndim == 3 and picture.shape[2] == 1:
        picture = picture[..., 0]
    image = Image.fromarray(picture)
    if mode is not None:
        image = Image.frombytes(mode, image.size, picture.tobytes())
    file = io.BytesIO()
    image.save(file, format, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def turned(orientation: int, picture: np.ndarray) -> np.ndarray:
    """A JPEG whose EXIF data tells how the camera was held."""
    exif = Image.Exif()
    exif[0x112] = orientation
    return encoded(picture, quality=95, exif=exif)


def by_pillow(file: np.ndarray, mode: str | None = None) -> np.ndarray:
    """What Pillow makes of a file."""
    image = Image.open(io.BytesIO(file.tobytes()))
    return np.asarray(image if mode is None else image.convert(mode))
