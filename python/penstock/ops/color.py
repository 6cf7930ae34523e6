"""Color.

Brightness, contrast, hue, saturation, and color spaces.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock._operators.arguments import REQUIRED
from penstock._operators.constraints import NUMBERS, Between, Elements, OneOf, Shape
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._values.dtype import DType, uint8
from penstock.types import BGR, GRAY, RGB, DALIImageType, YCbCr

_LAYOUTS = "HWC FHWC DHWC"

Colors: TypeAlias = Annotated[Data, NUMBERS]
Bytes: TypeAlias = Annotated[Data, Elements("uint8", uint8)]
NumberType: TypeAlias = Annotated[DType, NUMBERS]
ImageType: TypeAlias = Annotated[int, OneOf(*DALIImageType)]
ColorSpace: TypeAlias = Annotated[int, OneOf(RGB, BGR, GRAY, YCbCr)]


@operator(layouts="FHWC DHWC HWC", kernel="brightness_contrast")
def brightness(
    input: Colors,
    *,
    brightness: PerSample[float] = 1.0,
    brightness_shift: PerSample[float] = 0.0,
    dtype: NumberType | None = None,
) -> Like:
    """Make images brighter or darker.

    Each value `x` becomes `brightness_shift * range + brightness * x`.

    Args:
        input: Images of any number of channels.
        brightness: Factor for all values.
        brightness_shift: What to add, as a fraction of the range of the result's type: 1 stands
            for 255 in uint8, and for 1.0 in floats.
        dtype: The element type of the result; that of the input by default.

    Example:
        >>> image = ndd.tensor([[[10, 100, 200]]], dtype=ndd.uint8)
        >>> ndd.brightness(image, brightness=1.5).torch().flatten().tolist()
        [15, 150, 255]
    """
    return Like(input, dtype=dtype or input.dtype, contrast=1.0, contrast_center=None)


@operator(layouts="FHWC DHWC HWC", kernel="brightness_contrast")
def contrast(
    input: Colors,
    *,
    contrast: PerSample[float] = 1.0,
    contrast_center: PerSample[float] | None = None,
    dtype: NumberType | None = None,
) -> Like:
    """Increase or decrease the contrast of images.

    Each value `x` becomes `contrast_center + contrast * (x - contrast_center)`.

    Args:
        input: Images of any number of channels.
        contrast: Factor for differences from the center.
        contrast_center: The value that doesn't change; by default the middle of the range of the
            input's type: 128 for uint8, and 0.5 for floats.
        dtype: The element type of the result; that of the input by default.

    Example:
        >>> image = ndd.tensor([[[28, 128, 168]]], dtype=ndd.uint8)
        >>> ndd.contrast(image, contrast=0.5).torch().flatten().tolist()
        [78, 128, 148]
    """
    return Like(input, dtype=dtype or input.dtype, brightness=1.0, brightness_shift=0.0)


@operator(layouts="FHWC DHWC HWC")
def brightness_contrast(
    input: Colors,
    *,
    brightness: PerSample[float] = 1.0,
    brightness_shift: PerSample[float] = 0.0,
    contrast: PerSample[float] = 1.0,
    contrast_center: PerSample[float] | None = None,
    dtype: NumberType | None = None,
) -> Like:
    """Change the contrast of images, then their brightness.

    Args:
        input: Images of any number of channels.
        brightness: Factor for all values.
        brightness_shift: What to add, as a fraction of the range of the result's type: 1 stands
            for 255 in uint8, and for 1.0 in floats.
        contrast: Factor for differences from the center.
        contrast_center: The value that the contrast doesn't change; by default the middle of the
            range of the input's type: 128 for uint8, and 0.5 for floats.
        dtype: The element type of the result; that of the input by default.

    Example:
        >>> image = ndd.tensor([[[28, 128, 168]]], dtype=ndd.uint8)
        >>> ndd.brightness_contrast(image, brightness=0.5, contrast=0.5).torch().flatten().tolist()
        [39, 64, 74]
    """
    return Like(input, dtype=dtype or input.dtype)


@operator(layouts=_LAYOUTS, kernel="color_twist")
def saturation(
    input: Colors,
    *,
    dtype: NumberType | None = None,
    image_type: ImageType = DALIImageType.RGB,
    saturation: PerSample[float] = 1.0,
) -> Like:
    """Change the saturation of colors.

    Args:
        input: RGB images; grayscale images of one channel are left unchanged.
        dtype: The element type of the result; that of the input by default.
        image_type: The color space. All are treated as RGB.
        saturation: Factor for the saturation; 0 makes images gray.

    Example:
        >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8)
        >>> ndd.saturation(image, saturation=0.5).torch().flatten().tolist()
        [162, 112, 87]
    """
    return Like(input, dtype=dtype or input.dtype, brightness=1.0, contrast=1.0, hue=0.0, value=1.0)


@operator(layouts=_LAYOUTS, kernel="color_twist")
def hue(
    input: Colors,
    *,
    dtype: NumberType | None = None,
    hue: PerSample[float] = 0.0,
    image_type: ImageType = DALIImageType.RGB,
) -> Like:
    """Rotate the hue of colors.

    Args:
        input: RGB images; grayscale images of one channel are left unchanged.
        dtype: The element type of the result; that of the input by default.
        hue: Rotation of the hue, in degrees.
        image_type: The color space. All are treated as RGB.

    Example:
        >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8)
        >>> ndd.hue(image, hue=360).torch().flatten().tolist()
        [200, 100, 50]
    """
    return Like(
        input, dtype=dtype or input.dtype, brightness=1.0, contrast=1.0, saturation=1.0, value=1.0
    )


@operator(layouts=_LAYOUTS, kernel="color_twist")
def hsv(
    input: Colors,
    *,
    dtype: NumberType = uint8,
    hue: PerSample[float] = 0.0,
    saturation: PerSample[float] = 1.0,
    value: PerSample[float] = 1.0,
) -> Like:
    """Change the hue, the saturation and the value (brightness) of colors.

    Args:
        input: RGB images, or grayscale images of one channel.
        dtype: The element type of the result; uint8 by default, whatever the input has.
        hue: Rotation of the hue, in degrees.
        saturation: Factor for the saturation; 0 makes images gray.
        value: Factor for the brightness.

    Example:
        >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8)
        >>> ndd.hsv(image, value=0.5).torch().flatten().tolist()
        [100, 50, 25]
    """
    return Like(input, dtype=dtype, brightness=1.0, contrast=1.0)


@operator(layouts=_LAYOUTS)
def color_twist(
    input: Colors,
    *,
    brightness: PerSample[float] = 1.0,
    contrast: PerSample[float] = 1.0,
    dtype: NumberType | None = None,
    hue: PerSample[float] = 0.0,
    image_type: ImageType = DALIImageType.RGB,
    saturation: PerSample[float] = 1.0,
) -> Like:
    """Change the hue and the saturation of colors, then their contrast and brightness.

    All of it is one step, without rounding in between.

    Args:
        input: RGB images, or grayscale images of one channel.
        brightness: Factor for the brightness.
        contrast: Factor for differences from the center, which is 128 for integers and 0.5 for
            floats.
        dtype: The element type of the result; that of the input by default.
        hue: Rotation of the hue, in degrees.
        image_type: The color space. All are treated as RGB.
        saturation: Factor for the saturation; 0 makes images gray.

    Example:
        >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8)
        >>> ndd.color_twist(image, brightness=0.5, contrast=1.5).torch().flatten().tolist()
        [118, 43, 6]
    """
    return Like(input, dtype=dtype or input.dtype, value=1.0)


@operator(layouts="FDHWC FHWC DHWC HWC")
def color_space_conversion(
    input: Bytes, *, image_type: ColorSpace = REQUIRED, output_type: ColorSpace = REQUIRED
) -> Like:
    """Convert images between RGB, BGR, GRAY and YCbCr.

    YCbCr is that of ITU-R BT.601 with limited range; gray is full-range luma.

    Args:
        input: Images with 3 channels, or 1 if gray.
        image_type: The color space of the input.
        output_type: The color space of the result.

    Example:
        >>> image = ndd.tensor([[[200, 100, 50]]], dtype=ndd.uint8)
        >>> rgb, gray = ndd.types.RGB, ndd.types.GRAY
        >>> found = ndd.color_space_conversion(image, image_type=rgb, output_type=gray)
        >>> found.torch().flatten().tolist()
        [124]
    """
    return Like(input)


@operator(layouts="HW HWC CHW FHW FHWC FCHW")
def equalize(input: Bytes) -> Like:
    """Equalize the histograms of images.

    Each channel of each frame is equalized separately.

    Args:
        input: The images.

    Example:
        >>> image = ndd.tensor([[0, 0, 10, 20, 255]], dtype=ndd.uint8)
        >>> ndd.equalize(image).torch().flatten().tolist()
        [0, 0, 85, 170, 255]
    """
    return Like(input)


@operator(layouts="HWC FHWC")
def jpeg_compression_distortion(
    input: Annotated[Bytes, Shape(..., 3)], *, quality: PerSample[int] = 50
) -> Like:
    """Add JPEG artifacts: encode images with 4:2:0 chroma subsampling, and decode them again.

    Args:
        input: RGB images.
        quality: The JPEG quality, from 1 to 100; other values are clamped.

    Example:
        >>> image = ndd.zeros(shape=[8, 8, 3], dtype=ndd.uint8)
        >>> ndd.jpeg_compression_distortion(image, quality=90).shape
        (8, 8, 3)
    """
    return Like(input)


@operator(layouts="HWC")
def clahe(
    input: Bytes,
    *,
    bins: int = 256,
    clip_limit: float = REQUIRED,
    luma_only: bool = True,
    tiles_x: Annotated[int, Between(1, 1024)] = REQUIRED,
    tiles_y: Annotated[int, Between(1, 1024)] = REQUIRED,
) -> Like:
    """Equalize the histograms of the parts of images, with limited contrast (CLAHE).

    Each tile of an image gets its own table of brightness; pixels between the centers of tiles are
    interpolated between their tables.

    Args:
        input: Images of one channel, or RGB, of uint8.
        bins: Ignored: there are 256, one for each value.
        clip_limit: How many times its even share of a tile a value may have; what is above is
            spread over all values. Low limits keep the contrast low; 0 is no limit.
        luma_only: Whether to change only the lightness of RGB images, in L*a*b*, and not each
            channel separately.
        tiles_x: How many tiles there are across.
        tiles_y: How many tiles there are from top to bottom.

    Example:
        >>> image = ndd.tensor([[[100], [101]], [[102], [103]]], dtype=ndd.uint8)
        >>> ndd.clahe(image, tiles_x=1, tiles_y=1, clip_limit=0).torch().flatten().tolist()
        [64, 128, 191, 255]
    """
    return Like(input)
