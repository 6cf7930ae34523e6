"""Object detection: crop images together with their boxes, assign boxes to anchors, train.

Creates a data set in the format of COCO, reads it with `readers.COCO`, and trains a detector with a
single layer of anchors, as SSD has several. Prints how much the boxes that it predicts overlap with
those of images that it has not seen.
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

SIZE = 128
GRID = 8
MEAN, STD = [124.0, 116.0, 104.0], [58.0, 57.0, 57.0]
BOX_SCALES = [0.1, 0.1, 0.2, 0.2]
"""What offsets are divided by, for the loss of positions and sizes to be of one magnitude."""


def anchors() -> list[float]:
    """A square at each place of a grid: left, top, right, bottom."""
    made = []
    for row in range(GRID):
        for column in range(GRID):
            x, y = (column + 0.5) / GRID, (row + 0.5) / GRID
            made += [x - 0.15, y - 0.15, x + 0.15, y + 0.15]
    return made


ANCHORS = anchors()


def normalized(images: ndd.Batch) -> ndd.Batch:
    images = ndd.resize(images, size=[SIZE, SIZE])
    return ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)


def augment(jpegs: ndd.Batch, boxes: ndd.Batch, labels: ndd.Batch) -> tuple[ndd.Batch, ...]:
    """Images, and for each anchor its offsets to a box and the box's class, 0 for none."""
    n = jpegs.batch_size
    images = ndd.decoders.image(jpegs)
    # A window that has at least half of some box; boxes are cropped along with the image.
    start, extent, boxes, labels = ndd.random_bbox_crop(
        boxes,
        labels,
        thresholds=[0.0, 0.5, 0.9],
        threshold_type="overlap",
        scaling=[0.5, 1.0],
        aspect_ratio=[0.75, 1.33],
        all_boxes_above_threshold=False,
        bbox_layout="xyXY",
        total_num_attempts=100,
    )
    images = ndd.slice(images, start, extent)
    mirror = ndd.random.coin_flip(batch_size=n)
    images = ndd.flip(images, horizontal=mirror)
    boxes = ndd.bb_flip(boxes, horizontal=mirror, ltrb=True)
    images = ndd.color_twist(
        images,
        brightness=ndd.random.uniform(batch_size=n, range=[0.8, 1.2]),
        hue=ndd.random.uniform(batch_size=n, range=[-30, 30]),
    )
    offsets, classes = ndd.box_encoder(
        boxes, labels, anchors=ANCHORS, criteria=0.4, offset=True, stds=BOX_SCALES
    )
    return normalized(images), offsets, classes


class Detector(nn.Module):
    """Class scores and offsets for each anchor."""

    def __init__(self) -> None:
        super().__init__()
        channels = [3, 16, 32, 64, 64]
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layers += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.Conv2d(64, 64, 3, 1, 1), nn.BatchNorm2d(64), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(64, len(CLASSES) + 1 + 4, 1))

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.layers(images).flatten(2).transpose(1, 2)
        return found[..., :-4], found[..., -4:]


def loss_of(
    predicted: tuple[torch.Tensor, torch.Tensor], offsets: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    """Cross entropy over all anchors, and the distance of offsets where there is an object."""
    (scores, found), classes = predicted, classes.long()
    weights = torch.tensor([0.2] + [1.0] * len(CLASSES))
    entropy = nn.functional.cross_entropy(scores.flatten(0, 1), classes.flatten(), weights)
    is_object = classes > 0
    if not is_object.any():
        return entropy
    return entropy + nn.functional.smooth_l1_loss(found[is_object], offsets[is_object])


def boxes_of(found: torch.Tensor) -> torch.Tensor:
    """Boxes (left, top, right, bottom) from offsets to the anchors."""
    corners = torch.tensor(ANCHORS).reshape(-1, 4)
    center, size = (corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]
    scales = torch.tensor(BOX_SCALES)
    middle = found[..., :2] * scales[:2] * size + center
    half = (found[..., 2:] * scales[2:]).exp() * size / 2
    return torch.cat([middle - half, middle + half], dim=-1)


def overlap(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Intersection over union of each box of `a` with each of `b`."""
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    area_a, area_b = ((x[:, 2:] - x[:, :2]).prod(-1) for x in (a, b))
    return both / (area_a[:, None] + area_b[None] - both)


@torch.no_grad()
def evaluate(model: Detector, reader: ndd.readers.COCO, batch_size: int) -> float:
    """The mean overlap of true boxes with the best prediction for each."""
    model.eval()
    overlaps = []
    for jpegs, boxes, _ in reader.next_epoch(batch_size=batch_size):
        scores, found = model(normalized(ndd.decoders.image(jpegs)).torch())
        for score, predicted, true in zip(scores, boxes_of(found), boxes, strict=True):
            likely = score.softmax(-1)[:, 1:].sum(-1).topk(12).indices
            overlaps.append(overlap(true.torch(), predicted[likely]).amax(1))
    model.train()
    return float(torch.cat(overlaps).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    ndd.random.set_seed(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        train_reader, test_reader = make_readers(Path(name), args.images, ltrb=True, ratio=True)
        model = Detector()
        print(f"before training: mean overlap {evaluate(model, test_reader, args.batch_size):.2f}")
        loader = ndd.torch.Loader(train_reader, augment, batch_size=args.batch_size)
        train(model, loader, loss_of, args.epochs, learning_rate=5e-3)
        print(f"after training: mean overlap {evaluate(model, test_reader, args.batch_size):.2f}")


if __name__ == "__main__":
    main()
