"""Augmentation, against torchvision on as many threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.harness import (
    Case,
    Contender,
    Family,
    Library,
    Ready,
    arrays,
    described,
    synchronous,
    throughput,
)

ABOUT = """\
Batches of 64 images of 224x224x3 (*augmix*: 16) of uint8, which each get operations of their own:
penstock has them as HWC, in eager mode, two calls and then a wait for both results; torchvision v2
(0.28.0) has the images one by one as CHW, on a pool of as many threads with one thread of torch
each, which is faster here than a loop on several threads of torch. Both draw at random, so that
only shapes are compared; tests compare the values. *mixup* and *cutmix* are on float32.
"""

COUNT = 64

Ours = Callable[[Library, Any], Any]
Theirs = Callable[[Any], Callable[[Any], Any]]

AUTOMATIC: dict[str, tuple[Ours, Theirs]] = {
    "rand_augment": (lambda ndd, x: ndd.auto_aug.rand_augment(x), lambda v2: v2.RandAugment()),
    "rand_augment, bilinear": (
        lambda ndd, x: ndd.auto_aug.rand_augment(x, interp_type="linear"),
        lambda v2: v2.RandAugment(interpolation=v2.InterpolationMode.BILINEAR),
    ),
    "auto_augment": (lambda ndd, x: ndd.auto_aug.auto_augment(x), lambda v2: v2.AutoAugment()),
    "trivial_augment_wide": (
        lambda ndd, x: ndd.auto_aug.trivial_augment_wide(x),
        lambda v2: v2.TrivialAugmentWide(),
    ),
    "augmix": (lambda ndd, x: ndd.auto_aug.augmix(x), lambda v2: v2.AugMix()),
}

SINGLE: dict[str, tuple[Ours, Theirs]] = {
    "autocontrast": (
        lambda ndd, x: ndd.autocontrast(x),
        lambda v2: v2.functional.autocontrast,
    ),
    "elastic_transform": (
        lambda ndd, x: ndd.elastic_transform(x),
        lambda v2: v2.ElasticTransform(),
    ),
    "invert": (lambda ndd, x: ndd.invert(x), lambda v2: v2.functional.invert),
    "posterize": (
        lambda ndd, x: ndd.posterize(x, bits=4),
        lambda v2: lambda image: v2.functional.posterize(image, 4),
    ),
    "random_erasing": (
        lambda ndd, x: ndd.random_erasing(x, p=1),
        lambda v2: v2.RandomErasing(p=1),
    ),
    "random_perspective": (
        lambda ndd, x: ndd.random_perspective(x, p=1),
        lambda v2: v2.RandomPerspective(p=1),
    ),
    "sharpness": (
        lambda ndd, x: ndd.sharpness(x, sharpness_factor=1.5),
        lambda v2: lambda image: v2.functional.adjust_sharpness(image, 1.5),
    ),
    "shear_x": (
        lambda ndd, x: ndd.shear_x(x, shear=0.2),
        lambda v2: (
            lambda image: v2.functional.affine(image, 0.0, [0, 0], 1.0, [11.31, 0.0], center=[0, 0])
        ),
    ),
    "solarize": (
        lambda ndd, x: ndd.solarize(x, threshold=100),
        lambda v2: lambda image: v2.functional.solarize(image, 100),
    ),
    "translate_y": (
        lambda ndd, x: ndd.translate_y(x, offset=20),
        lambda v2: lambda image: v2.functional.affine(image, 0.0, [0, 20], 1.0, [0.0, 0.0]),
    ),
}

MIXING: dict[str, tuple[Ours, Theirs]] = {
    "mixup": (
        lambda ndd, x: ndd.mixup(x, labels(ndd), num_classes=1000)[0],
        lambda v2: v2.MixUp(num_classes=1000),
    ),
    "cutmix": (
        lambda ndd, x: ndd.cutmix(x, labels(ndd), num_classes=1000)[0],
        lambda v2: v2.CutMix(num_classes=1000),
    ),
}


def labels(library: Library) -> Any:
    return library.batch(list(range(COUNT)))


def pictures(count: int = COUNT) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 224, 224, 3), dtype=np.uint8)


def cases() -> Iterator[Case]:
    for name, (ours, theirs) in AUTOMATIC.items():
        count = 16 if name == "augmix" else COUNT
        yield Case(f"augmentation/automatic/{name}", one_by_one(ours, theirs, count), 9)
    for name, (ours, theirs) in SINGLE.items():
        yield Case(f"augmentation/single/{name}", one_by_one(ours, theirs), 9)
    for name, (ours, theirs) in MIXING.items():
        yield Case(f"augmentation/mixing/{name}", whole_batches(ours, theirs), 9)


def one_by_one(ours: Ours, theirs: Theirs, count: int = COUNT) -> Callable[[Contender], Ready]:
    def prepare(side: Contender) -> Ready:
        values = pictures(count)
        if not side.is_dali:
            data = side.library.batch(list(values), layout="HWC")
            results = described(arrays(ours(side.library, data)))
            return Ready(throughput(lambda: ours(side.library, data), 2), results)
        import torch
        from torchvision.transforms import v2

        transform = theirs(v2)
        images = [torch.from_numpy(value).permute(2, 0, 1).contiguous() for value in values]
        pool = ThreadPoolExecutor(side.threads, initializer=torch.set_num_threads, initargs=(1,))

        def call() -> list[Any]:
            return list(pool.map(transform, images, chunksize=count // side.threads // 4))

        made = [np.moveaxis(result.numpy(), 0, -1) for result in call()]
        return Ready(synchronous(call, 1), described(made))

    return prepare


def whole_batches(ours: Ours, theirs: Theirs) -> Callable[[Contender], Ready]:
    def prepare(side: Contender) -> Ready:
        values = pictures().astype(np.float32)
        if not side.is_dali:
            data = side.library.batch(list(values), layout="HWC")
            results = described(arrays(ours(side.library, data)))
            return Ready(throughput(lambda: ours(side.library, data), 2), results)
        import torch
        from torchvision.transforms import v2

        transform: Any = theirs(v2)
        images = torch.from_numpy(values).permute(0, 3, 1, 2).contiguous()
        classes = torch.arange(COUNT)

        def call() -> Any:
            torch.set_num_threads(side.threads)
            return transform(images, classes)[0]

        made = list(call().permute(0, 2, 3, 1).numpy())
        return Ready(synchronous(call, 1), described(made))

    return prepare


FAMILY = Family("augmentation", "Augmentation", ABOUT, cases, rival="torchvision")
