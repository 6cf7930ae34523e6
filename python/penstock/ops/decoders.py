"""Decoding images from the bytes of their files.

A file that can't be decoded is an error of its own sample: the others of the batch can be read.
Images that say that they have more than 2^28 pixels are refused before memory is taken for them;
the environment variable PENSTOCK_MAX_PIXELS moves that limit. So are those that take more than 16
bytes for each of that many pixels, all copies and the result counted, and files that are too short
for what they claim. Large images wait for each other where decoding them takes more than a quarter
of those bytes together. Running out of memory is a MemoryError of that sample, never skipped.

What becomes of files of a batch that can't be decoded (or read) is up to `on_error`. "raise", the
default: an error when the batch is used. "skip": they are left out, so that the batch is smaller.
"substitute": the next sample of the batch that can be decoded stands in. What belongs to the
samples goes `along`, or labels would be those of other images:

    images, labels = ndd.decoders.image(jpegs, on_error="skip", along=labels)

`along` takes a batch or several, and makes the result a tuple. Unless it raises, such a call waits
for its images. Of a batch as a reader gave it, bad samples are listed in the `errors` of the
reader, and its `max_errors` is the limit for them, too. They count as given: epochs and
checkpoints are the same as if they had been good.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock import types
from penstock._operators.arguments import Floats, Ints
from penstock._operators.constraints import NUMBERS, Between, Elements, OneOf
from penstock._operators.definition import Data, PerSample, Result, operator
from penstock._values.dtype import DType, float32, float64, int32, int64, uint8, uint32, uint64

NumberType: TypeAlias = Annotated[DType, NUMBERS]
ImageType: TypeAlias = Annotated[int, OneOf(*types.DALIImageType)]
Place: TypeAlias = Annotated[PerSample[float], Between(0, 1)]
_WIDE = Elements("32- or 64-bit numbers", int32, uint32, int64, uint64, float32, float64)


@operator(namespace="decoders", also_in="experimental.decoders", can_skip_bad_samples=True)
def image(
    input: Data,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = "",
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: NumberType = uint8,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    memory_stats: bool = False,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    split_stages: bool = False,
    use_chunk_allocator: bool = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode images: JPEG, PNG, WebP, TIFF, BMP, PNM and JPEG 2000.

    JPEG is decoded by libjpeg-turbo, to the very pixels that Pillow gives. Files that are
    truncated are errors.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether to turn images upright, as their EXIF data says.
        affine: Without effect here: threads are not tied to processors.
        cache_batch_copy: Without effect: decoded images are not kept.
        cache_debug: Without effect.
        cache_size: Without effect.
        cache_threshold: Without effect.
        cache_type: Without effect.
        device_memory_padding: Without effect here, as all that is about memory of decoders.
        device_memory_padding_jpeg2k: Without effect.
        dtype: The element type of the result. Integers go up to their largest value, floats to 1: a
            white pixel is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        host_memory_padding: Without effect.
        host_memory_padding_jpeg2k: Without effect.
        hw_decoder_load: Without effect: decoding runs on the processor.
        hybrid_huffman_threshold: Without effect.
        jpeg_fancy_upsampling: Without effect: chroma is always upsampled smoothly, as by Pillow.
        memory_stats: Deprecated, without effect.
        output_type: The colors of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R BT.601, of
            limited range), or `ANY_DATA` for those that the image is stored in.
        preallocate_height_hint: Without effect.
        preallocate_width_hint: Without effect.
        split_stages: Deprecated, without effect.
        use_chunk_allocator: Deprecated, without effect.
        use_fast_idct: Whether JPEG may be decoded by a faster transform that is less accurate.

    Example:
        >>> import io
        >>> import numpy as np
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (40, 20), "red").save(file, "JPEG")
        >>> jpeg = np.frombuffer(file.getvalue(), "uint8")
        >>> ndd.decoders.image(jpeg).shape
        (20, 40, 3)
    """
    return Result(dtype, 3, "HWC")


@operator(namespace="decoders", also_in="experimental.decoders", can_skip_bad_samples=True)
def image_crop(
    input: Data,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    crop: PerSample[Floats] | None = None,
    crop_d: PerSample[float] = 0.0,
    crop_h: PerSample[float] = 0.0,
    crop_pos_x: Place = 0.5,
    crop_pos_y: Place = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: PerSample[float] = 0.0,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: NumberType = uint8,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    memory_stats: bool = False,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rounding: Annotated[str, OneOf("round", "truncate")] = "round",
    split_stages: bool = False,
    use_chunk_allocator: bool = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode a window of images. Of a JPEG, only what it takes is decoded.

    The result is the same as that of decoding the whole image and cutting the window out.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether to turn images upright, as their EXIF data says.
        affine: Without effect here: threads are not tied to processors.
        crop: Height and width of the window, in pixels; fractions are cut off. Three numbers have a
            depth in front, which images have not.
        crop_d: Without effect: images have no depth.
        crop_h: Height of the window, in place of `crop`; 0 stands for the whole image.
        crop_pos_x: Where the window is: 0 is at the left, 1 at the right.
        crop_pos_y: Where the window is: 0 is at the top, 1 at the bottom.
        crop_pos_z: Without effect: images have no depth.
        crop_w: Width of the window, which goes with `crop_h`.
        device_memory_padding: Without effect here, as all that is about memory of decoders.
        device_memory_padding_jpeg2k: Without effect.
        dtype: The element type of the result. Integers go up to their largest value, floats to 1: a
            white pixel is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        host_memory_padding: Without effect.
        host_memory_padding_jpeg2k: Without effect.
        hw_decoder_load: Without effect: decoding runs on the processor.
        hybrid_huffman_threshold: Without effect.
        jpeg_fancy_upsampling: Without effect: chroma is always upsampled smoothly, as by Pillow.
        memory_stats: Deprecated, without effect.
        output_type: The colors of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R BT.601, of
            limited range), or `ANY_DATA` for those that the image is stored in.
        preallocate_height_hint: Without effect.
        preallocate_width_hint: Without effect.
        rounding: How the place becomes a whole number of pixels: "round" or "truncate".
        split_stages: Deprecated, without effect.
        use_chunk_allocator: Deprecated, without effect.
        use_fast_idct: Whether JPEG may be decoded by a faster transform that is less accurate.

    Example:
        >>> import io
        >>> import numpy as np
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (40, 20), "red").save(file, "JPEG")
        >>> jpeg = np.frombuffer(file.getvalue(), "uint8")
        >>> ndd.decoders.image_crop(jpeg, crop=(8, 10)).shape
        (8, 10, 3)
    """
    return Result(dtype, 3, "HWC")


@operator(
    namespace="decoders", also_in="experimental.decoders", random=True, can_skip_bad_samples=True
)
def image_random_crop(
    input: Data,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: NumberType = uint8,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    memory_stats: bool = False,
    num_attempts: int = 10,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    random_area: Floats = (0.08, 1.0),  # type: ignore[assignment]
    random_aspect_ratio: Floats = (0.75, 1.333333),  # type: ignore[assignment]
    split_stages: bool = False,
    use_chunk_allocator: bool = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode a random window of images. Of a JPEG, only what it takes is decoded.

    The area is drawn evenly, the logarithm of the aspect ratio too, and then the place.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether to turn images upright, as their EXIF data says.
        affine: Without effect here: threads are not tied to processors.
        device_memory_padding: Without effect here, as all that is about memory of decoders.
        device_memory_padding_jpeg2k: Without effect.
        dtype: The element type of the result. Integers go up to their largest value, floats to 1: a
            white pixel is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        host_memory_padding: Without effect.
        host_memory_padding_jpeg2k: Without effect.
        hw_decoder_load: Without effect: decoding runs on the processor.
        hybrid_huffman_threshold: Without effect.
        jpeg_fancy_upsampling: Without effect: chroma is always upsampled smoothly, as by Pillow.
        memory_stats: Deprecated, without effect.
        num_attempts: How often to draw a size that may not fit into the image. After that, the
            window is as large as area and aspect ratio allow.
        output_type: The colors of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R BT.601, of
            limited range), or `ANY_DATA` for those that the image is stored in.
        preallocate_height_hint: Without effect.
        preallocate_width_hint: Without effect.
        random_area: The least and the largest area of the window, as parts of the image.
        random_aspect_ratio: The least and the largest width over height.
        split_stages: Deprecated, without effect.
        use_chunk_allocator: Deprecated, without effect.
        use_fast_idct: Whether JPEG may be decoded by a faster transform that is less accurate.

    Example:
        >>> import io
        >>> import numpy as np
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (40, 20), "red").save(file, "JPEG")
        >>> jpeg = np.frombuffer(file.getvalue(), "uint8")
        >>> ndd.decoders.image_random_crop(jpeg, random_area=[0.25, 0.25]).ndim
        3
    """
    return Result(dtype, 3, "HWC")


@operator(namespace="decoders", also_in="experimental.decoders", can_skip_bad_samples=True)
def image_slice(
    data: Data,
    anchor: Data = None,
    shape_input: Data = None,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    axes: PerSample[Ints] | None = None,
    axis_names: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: NumberType = uint8,
    end: PerSample[Ints] | None = None,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    memory_stats: bool = False,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rel_end: PerSample[Floats] | None = None,
    rel_shape: PerSample[Floats] | None = None,
    rel_start: PerSample[Floats] | None = None,
    shape: PerSample[Ints] | None = None,
    split_stages: bool = False,
    start: PerSample[Ints] | None = None,
    use_chunk_allocator: bool = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode a window of images, given as for `slice`. Of a JPEG, only what it takes is decoded.

    The window must lie inside of the image.

    Args:
        data: Encoded images: the bytes of files.
        anchor: Where windows start: integers, or floats, which are parts of the image by default.
        shape_input: How large windows are, as integers if the anchor has integers.
        adjust_orientation: Whether to turn images upright, as their EXIF data says.
        affine: Without effect here: threads are not tied to processors.
        axes: The axes that the window is for, by number: 0 is the height, 1 the width.
        axis_names: The same by letters; "WH" when there are no `axes` either.
        device_memory_padding: Without effect here, as all that is about memory of decoders.
        device_memory_padding_jpeg2k: Without effect.
        dtype: The element type of the result. Integers go up to their largest value, floats to 1: a
            white pixel is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        end: Where windows end.
        host_memory_padding: Without effect.
        host_memory_padding_jpeg2k: Without effect.
        hw_decoder_load: Without effect: decoding runs on the processor.
        hybrid_huffman_threshold: Without effect.
        jpeg_fancy_upsampling: Without effect: chroma is always upsampled smoothly, as by Pillow.
        memory_stats: Deprecated, without effect.
        normalized_anchor: Whether floats as `anchor` are parts of the image.
        normalized_shape: Whether floats as `shape_input` are parts of the image.
        output_type: The colors of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R BT.601, of
            limited range), or `ANY_DATA` for those that the image is stored in.
        preallocate_height_hint: Without effect.
        preallocate_width_hint: Without effect.
        rel_end: Where windows end, as parts of the image.
        rel_shape: How large windows are, as parts of the image.
        rel_start: Where windows start, as parts of the image.
        shape: How large windows are.
        split_stages: Deprecated, without effect.
        start: Where windows start.
        use_chunk_allocator: Deprecated, without effect.
        use_fast_idct: Whether JPEG may be decoded by a faster transform that is less accurate.

    Example:
        >>> import io
        >>> import numpy as np
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (40, 20), "red").save(file, "JPEG")
        >>> jpeg = np.frombuffer(file.getvalue(), "uint8")
        >>> ndd.decoders.image_slice(jpeg, start=[5, 2], shape=[10, 8]).shape
        (8, 10, 3)
    """
    return Result(dtype, 3, "HWC", to=None, fill_values=(0.0,), out_of_bounds_policy="error")


@operator(also_in="experimental", devices="cpu")
def peek_image_shape(
    input: Data,
    *,
    adjust_orientation: bool = True,
    dtype: Annotated[DType, _WIDE] = int64,
    image_type: ImageType = types.RGB,
) -> Result:
    """Tell the shape that images will have when they are decoded, from their headers alone.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether images will be turned upright.
        dtype: The element type of the result: an integer of 32 or 64 bits, float32 or float64.
        image_type: The colors that images will have; `types.ANY_DATA` for those they are stored
            in.

    Example:
        >>> import io
        >>> import numpy as np
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (40, 20), "red").save(file, "JPEG")
        >>> jpeg = np.frombuffer(file.getvalue(), "uint8")
        >>> ndd.peek_image_shape(jpeg).torch().tolist()
        [20, 40, 3]
    """
    return Result(dtype, 1)
