"""Creates a small data set: a folder of JPEGs per class, as expected by `readers.File`.

Two classes are crops of the photographs that come with scikit-learn (a temple, a flower). A third
class, and the second if scikit-learn isn't installed, are generated landscapes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

Painter = Callable[[np.random.Generator], Image.Image]


def make_folder(root: Path, per_class: int, seed: int = 7) -> list[str]:
    """Write `per_class` JPEGs into a folder per class, and return the names of the classes."""
    rng = np.random.default_rng(seed)
    painters = classes()
    for name, paint in painters.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for number in range(per_class):
            quality = int(rng.integers(80, 96))
            paint(rng).save(root / name / f"{number:04d}.jpg", quality=quality)
    return sorted(painters)


def classes() -> dict[str, Painter]:
    """The classes, each with a function that generates an image."""
    made: dict[str, Painter] = {"hills": lambda rng: landscape(rng, waves=2)}
    for path in sample_photographs():
        made[path.stem] = crops_of(path)
    if len(made) == 1:
        made["sea"] = lambda rng: landscape(rng, waves=14)
    return made


def sample_photographs() -> list[Path]:
    """Photographs that come with scikit-learn."""
    found = find_spec("sklearn")
    if found is None or found.origin is None:
        return []
    return sorted((Path(found.origin).parent / "datasets" / "images").glob("*.jpg"))


def crops_of(path: Path) -> Painter:
    """Random crops of a photograph."""
    photograph = Image.open(path).convert("RGB")

    def paint(rng: np.random.Generator) -> Image.Image:
        w, h = photograph.size
        part = rng.uniform(0.5, 0.9)
        left, top = rng.uniform(0, 1 - part, size=2)
        window = (left * w, top * h, (left + part) * w, (top + part) * h)
        return photograph.resize(sizes(rng), Image.Resampling.BICUBIC, window)

    return paint


def landscape(rng: np.random.Generator, waves: float, has_sun: bool = True) -> Image.Image:
    """A sky, a sun, and hills or a sea, with some grain."""
    w, h = sizes(rng)
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    sky, sun, ground = rng.integers(60, 256, size=(3, 3)).astype(np.float32)
    image = sky * (0.4 + 0.6 * y / h)[..., None]
    cx, cy, radius = rng.uniform(0.2, 0.8) * w, rng.uniform(0.2, 0.5) * h, 0.12 * min(h, w)
    if has_sun:
        image = np.where(((x - cx) ** 2 + (y - cy) ** 2 < radius**2)[..., None], sun, image)
    for depth in range(3):
        phase, swell = rng.uniform(0, 6), rng.uniform(0.7, 1.3) * waves
        ridge = h * (0.55 + 0.12 * depth + 0.1 / waves * np.sin(swell * 6.28 * x[0] / w + phase))
        image = np.where((y > ridge)[..., None], ground * (0.8 - 0.2 * depth), image)
    grain = rng.normal(0, 6, size=(h, w, 1))
    return Image.fromarray(np.clip(image + grain, 0, 255).astype(np.uint8))


def sizes(rng: np.random.Generator) -> tuple[int, int]:
    """A random width and height."""
    return int(rng.integers(420, 560)), int(rng.integers(320, 420))
