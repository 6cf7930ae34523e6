"""Image files for tests, generated at run time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

JPEGS = Path(__file__).parent / "data" / "jpeg"
"""JPEGs that Pillow can't write, made with libjpeg-turbo."""


def photograph(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    """A smooth picture with some noise, like a photograph."""
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
    """A JPEG with an EXIF orientation."""
    exif = Image.Exif()
    exif[0x112] = orientation
    return encoded(picture, quality=95, exif=exif)


def by_pillow(file: np.ndarray, mode: str | None = None) -> np.ndarray:
    """A file decoded with Pillow."""
    image = Image.open(io.BytesIO(file.tobytes()))
    return np.asarray(image if mode is None else image.convert(mode))


def corpus(height: int = 24, width: int = 37) -> dict[str, bytes]:
    """Small files of every format and kind, by name."""
    picture = photograph(height, width)
    gray, alpha = picture[..., :1], np.dstack([picture, picture[..., :1]])
    made = {
        "baseline": encoded(picture, quality=80),
        "4:4:4": encoded(picture, quality=80, subsampling=0),
        "progressive": encoded(picture, quality=80, progressive=True),
        "gray": encoded(gray, quality=80),
        "cmyk": encoded(alpha, mode="CMYK", quality=80),
        "restarts": encoded(picture, quality=80, restart_marker_blocks=1),
        "turned": turned(6, picture),
        "png": encoded(picture, "PNG"),
        "png gray": encoded(gray, "PNG"),
        "png alpha": encoded(alpha, "PNG"),
        "bmp": encoded(picture, "BMP"),
        "gif": encoded(gray, "GIF"),
        "ppm": encoded(picture, "PPM"),
        "pgm": encoded(gray, "PPM"),
        "tiff": encoded(picture, "TIFF"),
        "tiff lzw": encoded(picture, "TIFF", compression="tiff_lzw"),
        "tiff deflate": encoded(alpha, "TIFF", compression="tiff_adobe_deflate"),
        "webp": encoded(picture, "WEBP", quality=80),
        "webp lossless": encoded(alpha, "WEBP", lossless=True),
        "jpeg 2000": encoded(picture, "JPEG2000"),
    }
    files = {name: file.tobytes() for name, file in made.items()}
    for path in sorted(JPEGS.glob("*.jpg")):
        files[path.stem] = path.read_bytes()
    return files
