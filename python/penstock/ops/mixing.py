"""Mixup and cutmix.

The samples of a batch are mixed with each other, and so are their labels. The partner of a sample
is the one before it in the batch, as in torchvision, so batches should be shuffled.
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

    Results are the blended samples and float32 labels with a value for each class. The paper is
    "mixup: Beyond Empirical Risk Minimization" (Zhang and others, 2017).

    Args:
        input: The batch, of samples of one shape. Integers are rounded.
        labels: Class numbers, or vectors with a value for each class.
        alpha: The proportion is drawn from the distribution Beta(alpha, alpha).
        label_smoothing: The part of class numbers that is spread over all classes.
        num_classes: The number of classes; needed if labels are class numbers.
        per_sample: Whether each sample has a proportion of its own; by default, one is drawn for
            the whole batch.

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
    """Replace a rectangle of each image by that of another one, and mix their labels by area.

    Results are the images and float32 labels with a value for each class. The paper is "CutMix:
    Regularization Strategy to Train Strong Classifiers with Localizable Features" (Yun and others,
    2019).

    Args:
        input: The batch, of images of one shape.
        labels: Class numbers, or vectors with a value for each class.
        alpha: The area outside of the rectangle is drawn from the distribution Beta(alpha, alpha).
            What sticks out of the image is cut off, and the labels follow.
        label_smoothing: The part of class numbers that is spread over all classes.
        num_classes: The number of classes; needed if labels are class numbers.
        per_sample: Whether each sample has a rectangle of its own; by default, one is drawn for
            the whole batch.

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
    """For each sample the one before it; none for a sample that is alone."""
    value = data._value
    count = len(value)
    if not value.batch or count < 2:
        return None
    return permute_batch(data, indices=[count - 1, *range(count - 1)])
