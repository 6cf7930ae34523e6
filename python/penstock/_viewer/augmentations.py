"""Augmentations to look at. Each is a function of a batch of images and an RNG."""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Callable
from typing import Any

import penstock as ndd

Augmentation = Callable[[Any, Any], Any]


def _flip(images: Any, rng: Any) -> Any:
    return ndd.flip(images, horizontal=_coin(images, rng))


def _rotate(images: Any, rng: Any) -> Any:
    return ndd.rotate(images, angle=_uniform(images, rng, -30, 30), keep_size=True)


def _crop(images: Any, rng: Any) -> Any:
    return ndd.random_resized_crop(images, size=[224, 224], rng=rng)


def _color(images: Any, rng: Any) -> Any:
    return ndd.color_twist(
        images,
        brightness=_uniform(images, rng, 0.6, 1.4),
        contrast=_uniform(images, rng, 0.6, 1.4),
        saturation=_uniform(images, rng, 0.5, 1.5),
        hue=_uniform(images, rng, -20, 20),
    )


def _blur(images: Any, rng: Any) -> Any:
    return ndd.gaussian_blur(images, sigma=_uniform(images, rng, 0.5, 4))


def _compress(images: Any, rng: Any) -> Any:
    quality = ndd.cast(_uniform(images, rng, 5, 50), dtype=ndd.int32)
    return ndd.jpeg_compression_distortion(images, quality=quality)


def _uniform(images: Any, rng: Any, low: float, high: float) -> Any:
    return ndd.random.uniform(batch_size=len(images), range=[low, high], rng=rng)


def _coin(images: Any, rng: Any) -> Any:
    return ndd.random.coin_flip(batch_size=len(images), rng=rng)


AUGMENTATIONS: dict[str, Augmentation] = {
    "flip": _flip,
    "rotate": _rotate,
    "random_resized_crop": _crop,
    "color_twist": _color,
    "gaussian_blur": _blur,
    "jpeg_compression_distortion": _compress,
}


def load(place: str) -> tuple[str, Augmentation]:
    """A user's function from "file.py:function", which may take an RNG as its second argument."""
    file, _, name = place.rpartition(":")
    if not file or not name:
        raise ValueError("give a file and a function, such as augment.py:train")
    if not os.path.isfile(file):
        raise ValueError(f"no such file: {file}")
    spec = importlib.util.spec_from_file_location("penstock_view_augmentation", file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{file} has no function `{name}`")
    takes = len(inspect.signature(function).parameters)
    return name, function if takes > 1 else lambda images, rng: function(images)
