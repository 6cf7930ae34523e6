"""`Transform`: a function on a penstock tensor as a transform of torchvision."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._values.batch import Batch
from penstock._values.tensor import Tensor, tensor

__all__ = ["Transform"]


@public
class Transform:
    """A function on images as a transform for torchvision, or for the `__getitem__` of a dataset.

    The image may be a PIL image, a tensor of PyTorch with the channels first, as in torchvision, or
    a NumPy array with the channels last. The function gets it as a `Tensor` with the layout "HWC",
    which is what operators expect, and the result is a tensor of PyTorch with the channels first.

    In `torchvision.transforms.v2.Compose`, the first input is the image; others, such as a label,
    are returned as they are. With a function that can be pickled (not a lambda), a transform works
    in spawned workers of a DataLoader, too.

    Args:
        fn: Gets a tensor and returns one.

    Example:
        >>> import torch
        >>> flip = ndd.torch.Transform(ndd.flip)
        >>> image = torch.arange(6, dtype=torch.uint8).reshape(1, 2, 3)
        >>> flip(image).tolist()
        [[[2, 1, 0], [5, 4, 3]]]
    """

    def __init__(self, fn: Callable[[Tensor], Any]) -> None:
        if not callable(fn):
            raise messages.wrong_argument("Transform", "fn", fn, "a function")
        self._fn = fn

    def __call__(self, image: Any, *others: Any) -> Any:
        """The transformed image; with further inputs, a tuple of it and them."""
        made = _channels_first(self._fn(channels_last(image)))
        tv_tensors = sys.modules.get("torchvision.tv_tensors")
        if tv_tensors is not None and isinstance(image, tv_tensors.Image):
            made = tv_tensors.Image(made)
        return (made, *others) if others else made

    def __repr__(self) -> str:
        return f"Transform({getattr(self._fn, '__name__', None) or repr(self._fn)})"


def channels_last(image: Any) -> Tensor:
    """An image of another library as a tensor with the layout "HWC"."""
    if isinstance(image, Tensor):
        return image
    if isinstance(image, torch.Tensor):
        if image.ndim not in (2, 3):
            raise _not_an_image(f"a tensor of shape {tuple(image.shape)}")
        rows = image.permute(1, 2, 0) if image.ndim == 3 else image.unsqueeze(2)
        # Without its subclass, which would have to support DLPack.
        return tensor(rows.as_subclass(torch.Tensor), layout="HWC")
    pil = sys.modules.get("PIL.Image")
    if pil is not None and isinstance(image, pil.Image):
        # Palettes and single bits don't survive arithmetic on pixels.
        image = image.convert({"P": "RGB", "PA": "RGBA", "1": "L"}.get(image.mode, image.mode))
        array = np.asarray(image)
    elif isinstance(image, np.ndarray):
        array = image
    else:
        raise _not_an_image(messages.describe(image))
    if array.ndim not in (2, 3):
        raise _not_an_image(f"an array of shape {array.shape}")
    # A copy, for results not to share memory with the image.
    return tensor(array if array.ndim == 3 else array[:, :, None], layout="HWC")


def _channels_first(result: Any) -> torch.Tensor:
    if not isinstance(result, Tensor):
        kind = "a batch" if isinstance(result, Batch) else messages.describe(result)
        raise TypeError(f"Transform: the function must return a Tensor, got {kind}.")
    made = result.torch()
    return made.permute(2, 0, 1).contiguous() if result.layout == "HWC" else made


def _not_an_image(what: str) -> TypeError:
    return TypeError(
        "Transform: expected a PIL image, a tensor of PyTorch (CHW) or a NumPy array (HWC), got "
        f"{what}."
    )
