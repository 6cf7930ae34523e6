"""The same loop with torchvision, for `penstock bench`."""

from __future__ import annotations

from typing import Any

from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms


class Images(Dataset[Any]):  # type: ignore[misc,unused-ignore]
    """Image files, decoded with Pillow, resized and normalized. Broken ones are left out."""

    def __init__(self, files: list[str], size: int) -> None:
        self._files = [file for file in files if _opens(file)]
        self._transform = transforms.Compose(
            [
                transforms.Resize((size, size)),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            ]
        )

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, number: int) -> Any:
        try:
            with Image.open(self._files[number]) as image:
                return self._transform(image.convert("RGB"))
        except (OSError, ValueError):  # truncated; the loop must go on
            return self[(number + 1) % len(self)]


def _opens(file: str) -> bool:
    try:
        with Image.open(file):
            return True
    except (OSError, ValueError):
        return False
