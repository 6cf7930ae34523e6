"""Self-supervised learning with multi-crop: several views of each image, as in SwAV and DINO.

Creates a folder of JPEGs and learns features of it without its labels: two large and four small
random crops of an image, each with other colors, are to have similar features. An image is decoded
once for all its views. Prints how often the nearest neighbor of an image is of its class.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from photographs import make_folder
from torch import nn

import penstock as ndd

LARGE, SMALL = 96, 48
MEAN, STD = [124.0, 116.0, 104.0], [58.0, 57.0, 57.0]


def view(
    images: ndd.Batch, size: int, area: list[float], blur: float, solarize: float
) -> ndd.Batch:
    """A random crop with random colors; blurred and solarized with these probabilities."""
    n = images.batch_size

    def uniform(low: float, high: float) -> ndd.Batch:
        return ndd.random.uniform(batch_size=n, range=[low, high])

    made = ndd.random_resized_crop(images, size=size, random_area=area)
    made = ndd.flip(made, horizontal=ndd.random.coin_flip(batch_size=n))
    made = ndd.color_twist(
        made,
        brightness=uniform(0.6, 1.4),
        contrast=uniform(0.6, 1.4),
        saturation=uniform(0.8, 1.2),
        hue=uniform(-36, 36),
    )
    # A sigma of nearly 0 leaves an image as it is, and so does a threshold of 256.
    is_blurred = ndd.random.coin_flip(batch_size=n, probability=blur)
    made = ndd.gaussian_blur(made, sigma=is_blurred * uniform(0.1, 2.0) + 0.01, window_size=9)
    is_solarized = ndd.random.coin_flip(batch_size=n, probability=solarize)
    made = ndd.solarize(made, threshold=256.0 - is_solarized * 128.0)
    return ndd.crop_mirror_normalize(made, mean=MEAN, std=STD)


def views(jpegs: ndd.Batch, labels: ndd.Batch) -> list[ndd.Batch]:
    """Two large views and four small ones. The labels are not used."""
    images = ndd.decoders.image(jpegs)
    return [
        view(images, LARGE, [0.4, 1.0], blur=1.0, solarize=0.0),
        view(images, LARGE, [0.4, 1.0], blur=0.1, solarize=0.2),
        *(view(images, SMALL, [0.1, 0.4], blur=0.5, solarize=0.0) for _ in range(4)),
    ]


def plain(jpegs: ndd.Batch, labels: ndd.Batch) -> tuple[ndd.Batch, ndd.Batch]:
    images = ndd.resize(ndd.decoders.image(jpegs), size=[LARGE, LARGE])
    return ndd.crop_mirror_normalize(images, mean=MEAN, std=STD), labels


def make_model() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 24, 5, stride=3), nn.BatchNorm2d(24), nn.ReLU()),
        *(nn.Conv2d(24, 48, 3, stride=2), nn.BatchNorm2d(48), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(192, 64)),
    )


def loss_of(features: list[torch.Tensor], temperature: float = 0.2) -> torch.Tensor:
    """Each view has to find its image among those of the batch, in each of the large views."""
    unit = [nn.functional.normalize(each, dim=1) for each in features]
    own = torch.arange(len(unit[0]))
    losses = [
        nn.functional.cross_entropy(unit[k] @ unit[target].T / temperature, own)
        for target in range(2)
        for k in range(len(unit))
        if k != target
    ]
    return torch.stack(losses).mean()


@torch.no_grad()
def neighbors(model: nn.Module, folder: Path, batch_size: int) -> float:
    """How often the image with the most similar features is of the same class."""
    model.eval()
    reader = ndd.readers.File(file_root=str(folder), last_batch="partial")
    parts = [(model(x), y) for x, y in ndd.torch.Loader(reader, plain, batch_size=batch_size)]
    model.train()
    features = nn.functional.normalize(torch.cat([x for x, _ in parts]), dim=1)
    labels = torch.cat([y for _, y in parts])
    similar = features @ features.T
    similar.fill_diagonal_(-1)
    return float((labels[similar.argmax(1)] == labels).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--per-class", type=int, default=100, help="number of images per class")
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    ndd.random.set_seed(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_folder(folder, args.per_class)
        reader = ndd.readers.File(file_root=name, shuffle="global", last_batch="drop")
        loader = ndd.torch.Loader(reader, views, batch_size=args.batch_size)
        model = make_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for epoch in range(args.epochs):
            total = 0.0
            for batch in loader:
                loss = loss_of([model(each) for each in batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) / len(loader)
            print(f"epoch {epoch + 1}: loss {total:.3f}")
        share = neighbors(model, folder, args.batch_size)
        print(f"nearest neighbor of the same class: {share:.0%}")


if __name__ == "__main__":
    main()
