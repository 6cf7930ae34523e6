"""Image classification: augment, train, evaluate each image once, resume after an interruption.

Creates a folder of JPEGs with one subfolder per class, one of them damaged, trains a small model on
it, saves a checkpoint in the middle of an epoch, and continues from it as another process would.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from photographs import make_folder
from torch import nn

import penstock as ndd

SIZE = 96
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


def augment(jpegs: ndd.Batch, labels: ndd.Batch) -> tuple[ndd.Batch, ndd.Batch]:
    """What a training step gets: random crops, RandAugment, erasing."""
    images, labels = ndd.decoders.image(jpegs, on_error="skip", along=labels)
    images = ndd.random_resized_crop(images, size=SIZE, random_area=[0.3, 1.0])
    images = ndd.flip(images, horizontal=ndd.random.coin_flip(batch_size=images.batch_size))
    images = ndd.auto_aug.rand_augment(images, num_ops=2, magnitude=7)
    images = ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)
    return ndd.random_erasing(images, p=0.25), labels


def prepare(jpegs: ndd.Batch, labels: ndd.Batch) -> tuple[ndd.Batch, ndd.Batch]:
    """What evaluation gets: the image's center."""
    images, labels = ndd.decoders.image(jpegs, on_error="skip", along=labels)
    images = ndd.resize(images, resize_shorter=SIZE * 8 // 7)
    return ndd.crop_mirror_normalize(images, crop=[SIZE, SIZE], mean=MEAN, std=STD), labels


def make_loader(folder: Path, batch_size: int) -> ndd.torch.Loader:
    reader = ndd.readers.File(
        file_root=str(folder), shuffle="global", seed=1, last_batch="drop", on_error="skip"
    )
    return ndd.torch.Loader(reader, augment, batch_size=batch_size)


def make_model(classes: int) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 5, stride=3), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, classes)),
    )


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
) -> None:
    loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def evaluate(model: nn.Module, folder: Path, batch_size: int) -> tuple[int, int]:
    """How many images are classified correctly, and how many there are."""
    # Without "partial", the last batch is filled up with images that were seen already.
    reader = ndd.readers.File(file_root=str(folder), last_batch="partial", on_error="skip")
    model.eval()
    correct = seen = 0
    for x, y in ndd.torch.Loader(reader, prepare, batch_size=batch_size):
        correct += int((model(x).argmax(1) == y).sum())
        seen += len(y)
    model.train()
    print(f"bad files: {[error.file for error in reader.errors]}")
    return correct, seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--per-class", type=int, default=120, help="number of images per class")
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    ndd.random.set_seed(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder, state = Path(name, "images"), Path(name, "state.pt")
        classes = make_folder(folder, args.per_class)
        next(folder.rglob("*.jpg")).write_bytes(b"damaged")

        model, loader = make_model(len(classes)), make_loader(folder, args.batch_size)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for epoch in range(args.epochs):
            for number, (x, y) in enumerate(loader):
                step(model, optimizer, x, y)
                if epoch == args.epochs - 1 and number == len(loader) // 2:
                    torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, state)
            print(f"epoch {epoch + 1}: {len(loader)} batches")
        correct, seen = evaluate(model, folder, args.batch_size)
        print(f"accuracy: {correct / seen:.0%} of {seen} images")

        # Another process continues with the batch after the checkpoint.
        saved = torch.load(state)
        model, loader = make_model(len(classes)), make_loader(folder, args.batch_size)
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        left = 0
        for x, y in loader:
            step(model, optimizer, x, y)
            left += 1
        print(f"resumed with {left} batches left of {len(loader)}")


if __name__ == "__main__":
    main()
