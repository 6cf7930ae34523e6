"""Creates a small data set for detection and segmentation: JPEGs and annotations as COCO has them.

Each image is a landscape with one to three shapes: discs, squares and triangles, in any color.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from photographs import landscape
from PIL import ImageDraw

CLASSES = ("disc", "square", "triangle")


def make_data_set(folder: Path, count: int, seed: int = 7) -> Path:
    """Write `count` JPEGs and an annotation file into a folder; returns the file's path."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, object]] = []
    annotations: list[dict[str, object]] = []
    for number in range(count):
        image = landscape(rng, waves=2, has_sun=False)  # a sun would be a disc without a label
        name = f"{number:04d}.jpg"
        images.append(
            {"id": number, "file_name": name, "width": image.width, "height": image.height}
        )
        for _ in range(rng.integers(1, 4)):
            category = int(rng.integers(len(CLASSES)))
            polygon = outline(CLASSES[category], rng, image.size)
            ImageDraw.Draw(image).polygon(
                [(float(x), float(y)) for x, y in polygon],
                fill=(int(rng.integers(256)), int(rng.integers(256)), int(rng.integers(256))),
            )
            (left, top), (right, bottom) = polygon.min(0), polygon.max(0)
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": number,
                    "category_id": category + 1,
                    "bbox": [float(v) for v in (left, top, right - left, bottom - top)],
                    "area": float((right - left) * (bottom - top)),
                    "segmentation": [[float(v) for v in polygon.ravel()]],
                    "iscrowd": 0,
                }
            )
        image.save(folder / name, quality=90)
    categories = [{"id": number + 1, "name": name} for number, name in enumerate(CLASSES)]
    path = folder / "annotations.json"
    path.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )
    return path


def outline(
    kind: str, rng: np.random.Generator, size: tuple[int, int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The corners of a shape at a random place, as rows of x and y."""
    w, h = size
    radius = rng.uniform(0.1, 0.22) * min(w, h)
    corners = {"disc": 24, "square": 4, "triangle": 3}[kind]
    angles = np.pi * (2 * np.arange(corners) / corners + (0.25 if kind == "square" else -0.5))
    center = rng.uniform([radius, radius], [w - radius, h - radius])
    return center + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
