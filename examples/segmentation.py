"""Semantic segmentation: rotate and mirror images together with their masks, train.

Creates a data set in the format of COCO, reads its masks as images of labels, and trains a small
network. Prints the intersection over union of each class on images that it has not seen.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path

import torch
from shapes import CLASSES
from torch import nn
from training import make_readers, train

import penstock as ndd

SIZE = 96
MEAN, STD = [124.0, 116.0, 104.0], [58.0, 57.0, 57.0]
NEAREST = ndd.types.INTERP_NN
"""Labels can't be interpolated: between 1 and 3 there is no 2."""


def decode(
    jpegs: ndd.Batch, boxes: ndd.Batch, labels: ndd.Batch, masks: ndd.Batch
) -> tuple[ndd.Batch, ndd.Batch]:
    """Images, and labels of their pixels as images with one channel."""
    images = ndd.resize(ndd.decoders.image(jpegs), size=[SIZE, SIZE])
    masks = ndd.resize(ndd.cast(masks, dtype=ndd.uint8), size=[SIZE, SIZE], interp_type=NEAREST)
    return images, masks


def finished(images: ndd.Batch, masks: ndd.Batch) -> tuple[ndd.Batch, ndd.Batch]:
    images = ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)
    return images, ndd.squeeze(masks, axes=[2])


def augment(*outputs: ndd.Batch) -> tuple[ndd.Batch, ndd.Batch]:
    """The same geometry for images and masks, other colors for images."""
    images, masks = decode(*outputs)
    n = images.batch_size
    angle = ndd.random.uniform(batch_size=n, range=[-25, 25])
    mirror = ndd.random.coin_flip(batch_size=n)
    images = ndd.flip(
        ndd.rotate(images, angle=angle, keep_size=True, fill_value=0), horizontal=mirror
    )
    masks = ndd.flip(
        ndd.rotate(masks, angle=angle, keep_size=True, fill_value=0, interp_type=NEAREST),
        horizontal=mirror,
    )
    images = ndd.color_twist(
        images,
        contrast=ndd.random.uniform(batch_size=n, range=[0.8, 1.2]),
        hue=ndd.random.uniform(batch_size=n, range=[-40, 40]),
    )
    return finished(images, masks)


def block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Halves images until a pixel sees a whole shape, then adds details on the way back."""

    def __init__(self, widths: tuple[int, ...] = (8, 16, 32, 64)) -> None:
        super().__init__()
        self.down = nn.ModuleList(map(block, (3, *widths), widths))
        self.up = nn.ModuleList(
            block(wide + narrow, narrow) for narrow, wide in reversed([*pairwise(widths)])
        )
        self.score = nn.Conv2d(widths[0], len(CLASSES) + 1, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x, sizes = images, []
        for number, down in enumerate(self.down):
            x = down(nn.functional.max_pool2d(x, 2) if number else x)
            sizes.append(x)
        sizes.pop()
        for up in self.up:
            x = up(torch.cat([nn.functional.interpolate(x, scale_factor=2), sizes.pop()], 1))
        scores: torch.Tensor = self.score(x)
        return scores


def loss_of(scores: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    weights = torch.tensor([0.3] + [1.0] * len(CLASSES))  # most of an image is background
    return nn.functional.cross_entropy(scores, masks.long(), weights)


@torch.no_grad()
def evaluate(model: nn.Module, reader: ndd.readers.COCO, batch_size: int) -> list[float]:
    """Intersection over union of the background and of each class."""
    model.eval()
    both = torch.zeros(len(CLASSES) + 1)
    either = torch.zeros(len(CLASSES) + 1)
    for outputs in reader.next_epoch(batch_size=batch_size):
        images, masks = finished(*decode(*outputs))
        found, true = model(images.torch()).argmax(1), masks.torch()
        for label in range(len(both)):
            both[label] += ((found == label) & (true == label)).sum()
            either[label] += ((found == label) | (true == label)).sum()
    model.train()
    return [float(x) for x in both / either.clamp(min=1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    ndd.random.set_seed(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        train_reader, test_reader = make_readers(Path(name), args.images, pixelwise_masks=True)
        model = UNet()
        loader = ndd.torch.Loader(train_reader, augment, batch_size=args.batch_size)
        train(model, loader, loss_of, args.epochs, learning_rate=1e-2)
        for label, share in zip(
            ["background", *CLASSES], evaluate(model, test_reader, args.batch_size), strict=True
        ):
            print(f"  {label}: intersection over union {share:.2f}")


if __name__ == "__main__":
    main()
