"""Automatic augmentation.

Each sample draws its own operations, with the magnitudes of the papers, and only those are run. All
frames of a sequence get the same operations. Results of each operation are those of torchvision for
uint8.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import REQUIRED, Floats, Interp, Ints
from penstock._operators.constraints import Between, Elements, OneOf
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._values.dtype import uint8
from penstock.ops.warp import Interpolation
from penstock.types import INTERP_LINEAR, INTERP_NN

_LAYOUTS = "HWC CHW HW FHWC FCHW FHW"
_NEAREST, _LINEAR = Interp(INTERP_NN), Interp(INTERP_LINEAR)
_ZERO = Floats((0.0,))

Bytes: TypeAlias = Annotated[Data, Elements("uint8", uint8)]
Bins: TypeAlias = Annotated[int, Between(2, 2**30)]


@operator(namespace="auto_aug", layouts=_LAYOUTS, in_dali=False)
def apply(
    input: Bytes,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    magnitudes: PerSample[Floats] = _ZERO,
    operations: PerSample[Ints] = REQUIRED,
) -> Like:
    """Apply a chain of operations, which may be different ones for each sample.

    This is what the other operators here do with what they have drawn. Neighboring operations that
    only change tones are done in one step.

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside of the image: one, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        magnitudes: A magnitude for each operation, or one for all: factors of shears, pixels of
            translations, degrees of rotations; brightness, color, contrast and sharpness are
            multiplied by 1 plus the magnitude; the bits that posterize keeps; the threshold of
            solarize as a fraction of 255. Other operations ignore it.
        operations: The operations in order, such as `auto_aug.Operation.ROTATE`.

    Example:
        >>> Operation = ndd.auto_aug.Operation
        >>> image = ndd.tensor([[0, 100, 200]], dtype=ndd.uint8)
        >>> chain = [Operation.BRIGHTNESS, Operation.INVERT]
        >>> ndd.auto_aug.apply(image, operations=chain, magnitudes=[0.1, 0]).torch().tolist()
        [[255, 145, 35]]
    """
    return Like(input)


@operator(namespace="auto_aug", layouts=_LAYOUTS, in_dali=False, random=True)
def auto_augment(
    input: Bytes,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    policy: Annotated[str, OneOf("imagenet", "cifar10", "svhn")] = "imagenet",
) -> Like:
    """Augment images with a policy that was learned for a data set (AutoAugment).

    Each sample draws one of the 25 pairs of operations of the policy. The paper is "AutoAugment:
    Learning Augmentation Strategies from Data" (Cubuk and others, 2018).

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside of the image: one, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        policy: The data set.

    Example:
        >>> images = ndd.batch([ndd.zeros(shape=[32, 32, 3], dtype=ndd.uint8)] * 2, layout="HWC")
        >>> ndd.auto_aug.auto_augment(images, policy="cifar10").shape
        [(32, 32, 3), (32, 32, 3)]
    """
    return Like(input)


@operator(namespace="auto_aug", layouts=_LAYOUTS, in_dali=False, random=True)
def rand_augment(
    input: Bytes,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    magnitude: Annotated[PerSample[int], Between(0, None)] = 9,
    num_magnitude_bins: Bins = 31,
    num_ops: Annotated[PerSample[int], Between(0, 100)] = 2,
) -> Like:
    """Augment images with random operations of one magnitude (RandAugment).

    The paper is "RandAugment: Practical automated data augmentation with a reduced search space"
    (Cubuk and others, 2019).

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside of the image: one, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        magnitude: How strong operations are, below `num_magnitude_bins`.
        num_magnitude_bins: The number of magnitudes.
        num_ops: How many operations each sample gets.

    Example:
        >>> images = ndd.batch([ndd.zeros(shape=[32, 32, 3], dtype=ndd.uint8)] * 2, layout="HWC")
        >>> ndd.auto_aug.rand_augment(images, num_ops=1, magnitude=15).shape
        [(32, 32, 3), (32, 32, 3)]
    """
    return Like(input)


@operator(namespace="auto_aug", layouts=_LAYOUTS, in_dali=False, random=True)
def trivial_augment_wide(
    input: Bytes,
    *,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _NEAREST,
    num_magnitude_bins: Bins = 31,
) -> Like:
    """Augment each image with one random operation of a random magnitude (TrivialAugment, wide).

    The paper is "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation" (Müller and
    Hutter, 2021).

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside of the image: one, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        num_magnitude_bins: The number of magnitudes.

    Example:
        >>> images = ndd.batch([ndd.zeros(shape=[32, 32, 3], dtype=ndd.uint8)] * 2, layout="HWC")
        >>> ndd.auto_aug.trivial_augment_wide(images).shape
        [(32, 32, 3), (32, 32, 3)]
    """
    return Like(input)


@operator(namespace="auto_aug", layouts=_LAYOUTS, in_dali=False, random=True)
def augmix(
    input: Bytes,
    *,
    all_ops: bool = True,
    alpha: PerSample[float] = 1.0,
    chain_depth: Annotated[PerSample[int], Between(-1, 100)] = -1,
    fill_value: PerSample[Floats] = _ZERO,
    interp_type: Interpolation = _LINEAR,
    mixture_width: Annotated[PerSample[int], Between(1, 100)] = 3,
    severity: Annotated[PerSample[int], Between(1, 10)] = 3,
) -> Like:
    """Mix images with what several short chains of random operations make of them (AugMix).

    The paper is "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty"
    (Hendrycks and others, 2019).

    Args:
        input: Grayscale or RGB images.
        all_ops: Whether brightness, color, contrast and sharpness are among the operations.
        alpha: The parameter of the distributions that weights are drawn from: Beta for the image
            itself, Dirichlet for the chains.
        chain_depth: The number of operations of a chain; 0 or -1 draws 1 to 3 for each.
        fill_value: The value outside of the image: one, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        mixture_width: The number of chains.
        severity: How strong operations can be.

    Example:
        >>> images = ndd.batch([ndd.zeros(shape=[32, 32, 3], dtype=ndd.uint8)] * 2, layout="HWC")
        >>> ndd.auto_aug.augmix(images, severity=5).shape
        [(32, 32, 3), (32, 32, 3)]
    """
    return Like(input)
