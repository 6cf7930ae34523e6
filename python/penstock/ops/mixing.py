"""Mixup and cutmix.

The samples of a batch are mixed with each other, and so are their labels. Each sample is mixed with
the previous one in the batch, as in torchvision, so batches should be shuffled.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from penstock._operators.constraints import NUMBERS, Between
from penstock._operators.definition import Data, Like, Result, operator
from penstock._values.array import Array
from penstock._values.dtype import float32
from penstock.ops.generic import permute_batch

Numbers: TypeAlias = Annotated[Data, NUMBERS]
Smoothing: TypeAlias = Annotated[float, Between(0, 1)]
Classes: TypeAlias = Annotated[int, Between(1, None)]


@operator(in_dali=False, random=True)
def mixup(
    input: Numbers,
    labels: Numbers,
    *,
    alpha: float = 1.0,
    label_smoothing: Smoothing = 0.0,
    num_classes: Classes | None = None,
    per_sample: bool = False,
) -> tuple[Like, Result]:
    """Blend each sample of a batch with another one, and their labels in the same proportion.

    Returns the blended samples, and float32 labels with a value for each class. See "mixup: Beyond
    Empirical Risk Minimization" (Zhang et al., 2017).

    Args:
        input: The batch. All samples must have the same shape. Integers are rounded.
        labels: Class indices, or vectors with a value for each class.
        alpha: The proportion is drawn from Beta(alpha, alpha).
        label_smoothing: The amount of label smoothing, for labels that are class indices.
        num_classes: The number of classes; required if labels are class indices.
        per_sample: Whether to draw a proportion for each sample instead of one for the whole
            batch.

    Example:
        >>> images = ndd.batch([[0.0, 0.0], [1.0, 1.0]])
        >>> mixed, labels = ndd.mixup(images, ndd.batch([0, 2]), num_classes=3)
        >>> abs(mixed.torch()[0, 0].item() - labels.torch()[0, 2].item()) < 1e-6
        True
    """
    return _mixed(input, labels)


@operator(layouts="HWC CHW HW FHWC FCHW FHW", in_dali=False, random=True)
def cutmix(
    input: Numbers,
    labels: Numbers,
    *,
    alpha: float = 1.0,
    label_smoothing: Smoothing = 0.0,
    num_classes: Classes | None = None,
    per_sample: bool = False,
) -> tuple[Like, Result]:
    """Replace a rectangle of each image by the same part of another one, and mix labels by area.

    Returns the images, and float32 labels with a value for each class. See "CutMix: Regularization
    Strategy to Train Strong Classifiers with Localizable Features" (Yun et al., 2019).

    Args:
        input: The batch. All images must have the same shape.
        labels: Class indices, or vectors with a value for each class.
        alpha: The fraction of the image outside the rectangle is drawn from Beta(alpha, alpha). The
            rectangle is clipped to the image, and labels are mixed by its clipped area.
        label_smoothing: The amount of label smoothing, for labels that are class indices.
        num_classes: The number of classes; required if labels are class indices.
        per_sample: Whether to draw a rectangle for each sample instead of one for the whole batch.

    Example:
        >>> images = ndd.batch([[[0.0] * 8] * 8, [[1.0] * 8] * 8], layout="HW")
        >>> mixed, labels = ndd.cutmix(images, ndd.batch([0, 2]), num_classes=3)
        >>> abs(mixed.torch()[0].mean().item() - labels.torch()[0, 2].item()) < 1e-6
        True
    """
    return _mixed(input, labels)


def _mixed(input: Array, labels: Array) -> tuple[Like, Result]:
    partner = Like(input, partner=_partner(input), partner_label=_partner(labels))
    return partner, Result(float32, 1)


def _partner(data: Array) -> Any:
    """The previous sample of each sample; None for a single sample."""
    value = data._value
    count = len(value)
    if not value.batch or count < 2:
        return None
    return permute_batch(data, indices=[count - 1, *range(count - 1)])
