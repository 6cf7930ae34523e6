"""Automatic augmentation.

Each sample draws its own operations, with the magnitudes of the papers, and only those are run. All
frames of a sequence get the same operations. Each operation matches torchvision's for uint8.
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
    """Apply a chain of operations, which may differ between samples.

    The other operators of this module draw random chains; this one applies a given chain.
    Consecutive point operations run in a single pass.

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        magnitudes: A magnitude for each operation, or one for all: the factor of shears, pixels
            for translations, degrees for rotations, the factor minus 1 of brightness, color,
            contrast and sharpness, the number of bits that posterize keeps, and the threshold of
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
    """Augment images with a learned policy (AutoAugment).

    Each sample draws one of the policy's 25 pairs of operations. See "AutoAugment: Learning
    Augmentation Strategies from Data" (Cubuk et al., 2018).

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        policy: The dataset that the policy was learned on.

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
    """Augment images with random operations of a fixed magnitude (RandAugment).

    See "RandAugment: Practical automated data augmentation with a reduced search space" (Cubuk et
    al., 2019).

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        magnitude: The strength of the operations; must be less than `num_magnitude_bins`.
        num_magnitude_bins: The number of magnitude levels.
        num_ops: The number of operations per sample.

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
    """Augment each image with one random operation of random magnitude (TrivialAugment, wide).

    See "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation" (Müller and Hutter,
    2021).

    Args:
        input: Grayscale or RGB images.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        num_magnitude_bins: The number of magnitude levels.

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
    """Mix images with the results of several random chains of operations (AugMix).

    See "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty" (Hendrycks
    et al., 2019).

    Args:
        input: Grayscale or RGB images.
        all_ops: Whether brightness, color, contrast and sharpness are among the operations.
        alpha: The parameter of the distributions that the weights are drawn from: Beta for the
            original image, Dirichlet for the chains.
        chain_depth: The number of operations per chain; 0 or -1 means 1 to 3 at random.
        fill_value: The value outside the image: one number, or one for each channel.
        interp_type: Interpolation: `INTERP_NN` or `INTERP_LINEAR`.
        mixture_width: The number of chains.
        severity: The maximum strength of the operations.

    Example:
        >>> images = ndd.batch([ndd.zeros(shape=[32, 32, 3], dtype=ndd.uint8)] * 2, layout="HWC")
        >>> ndd.auto_aug.augmix(images, severity=5).shape
        [(32, 32, 3), (32, 32, 3)]
    """
    return Like(input)
