"""What the programs for detection and segmentation have in common: readers, and a training loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from shapes import make_data_set
from torch import nn

import penstock as ndd


def make_readers(folder: Path, count: int, **options: Any) -> tuple[ndd.readers.COCO, ...]:
    """Readers of `count` images for training, shuffled, and of an eighth of that for testing.

    Args:
        folder: Where the images are created.
        count: How many images to train with.
        options: Further arguments of `readers.COCO`.
    """
    readers = []
    for part, images in ("train", count), ("test", max(8, count // 8)):
        annotations = make_data_set(folder / part, images, seed=len(part))
        readers.append(
            ndd.readers.COCO(
                file_root=str(folder / part),
                annotations_file=str(annotations),
                shuffle="global" if part == "train" else None,
                last_batch="partial",
                **options,
            )
        )
    return tuple(readers)


def train(
    model: nn.Module,
    loader: ndd.torch.Loader,
    loss_of: Callable[..., torch.Tensor],
    epochs: int,
    learning_rate: float,
) -> None:
    """Train with Adam; the learning rate rises to its maximum, then falls to 0.

    Args:
        model: Is called with the first tensor of each batch.
        loader: The batches.
        loss_of: Is called with what the model returns and the other tensors of the batch.
        epochs: How often to go through the data.
        learning_rate: The maximum.
    """
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=epochs * len(loader)
    )
    for epoch in range(epochs):
        total = 0.0
        for images, *targets in loader:
            loss = loss_of(model(images), *targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) / len(loader)
        print(f"epoch {epoch + 1}: loss {total:.3f}")
