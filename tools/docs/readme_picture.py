"""Writes the picture at the top of the README: photographs, and two augmented batches of them.

python -m tools.docs.readme_picture
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import penstock as ndd

PATH = Path(__file__).resolve().parents[2] / "docs" / "images" / "batch.jpg"
SIZE = 112


def main() -> None:
    from sklearn.datasets import load_sample_images

    ndd.random.set_seed(11)
    photographs = [image for image in load_sample_images().images for _ in range(6)]
    images = ndd.batch(photographs, layout="HWC")
    images = ndd.random_resized_crop(images, size=SIZE, random_area=[0.15, 0.8])
    images = ndd.flip(images, horizontal=ndd.random.coin_flip(batch_size=12))
    images = ndd.auto_aug.rand_augment(images, num_ops=2, magnitude=11, fill_value=128)
    pixels = np.asarray(ndd.as_tensor(images))
    tiles = np.pad(pixels, ((0, 0), (2, 2), (2, 2), (0, 0)), constant_values=255)
    rows = [np.hstack(list(tiles[row * 6 : row * 6 + 6])) for row in range(2)]
    PATH.parent.mkdir(exist_ok=True)
    Image.fromarray(np.vstack(rows)).save(PATH, quality=88, optimize=True)


if __name__ == "__main__":
    main()
