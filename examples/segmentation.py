"""Semantic segmentation: rotate and mirror images together with their masks, train.

Creates a data set in the format of COCO, reads its masks as images of labels, and trains a small
network. Prints the intersection over union of each class on images that it has not seen.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from shapes import CLASSES, make_data_set
from torch import nn

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


def make_model() -> nn.Module:
    def block(before: int, after: int, stride: int = 1) -> list[nn.Module]:
        return [nn.Conv2d(before, after, 3, stride, 1), nn.BatchNorm2d(after), nn.ReLU()]

    return nn.Sequential(
        *block(3, 24, 2),
        *block(24, 48, 2),
        *block(48, 96, 2),
        *block(96, 96),
        nn.Conv2d(96, len(CLASSES) + 1, 1),
        nn.Upsample(scale_factor=8, mode="bilinear"),
    )


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
        readers = []
        for part, count in ("train", args.images), ("test", max(8, args.images // 8)):
            folder = Path(name, part)
            annotations = make_data_set(folder, count, seed=len(part))
            readers.append(
                ndd.readers.COCO(
                    file_root=str(folder),
                    annotations_file=str(annotations),
                    pixelwise_masks=True,
                    shuffle="global" if part == "train" else None,
                    last_batch="partial",
                )
            )
        train, test = readers
        model = make_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        weights = torch.tensor([0.2] + [1.0] * len(CLASSES))  # most of an image is background
        loader = ndd.torch.Loader(train, augment, batch_size=args.batch_size)
        for epoch in range(args.epochs):
            total = 0.0
            for images, masks in loader:
                loss = nn.functional.cross_entropy(model(images), masks.long(), weights)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) / len(loader)
            print(f"epoch {epoch + 1}: loss {total:.3f}")
        for label, share in zip(
            ["background", *CLASSES], evaluate(model, test, args.batch_size), strict=True
        ):
            print(f"  {label}: intersection over union {share:.2f}")


if __name__ == "__main__":
    main()
