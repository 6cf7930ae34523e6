"""Decoders.

A file that can't be decoded fails its own sample; the other samples of the batch can be read.
Images whose header claims more than 2^28 pixels are refused before memory is allocated; the
environment variable PENSTOCK_MAX_PIXELS changes that limit. So are images that need more than 16
bytes for each of that many pixels, counting all copies and the result, and files that are too short
for what they claim. Large images take turns if decoding them at once would need more than a quarter
of those bytes. Running out of memory is a MemoryError of that sample and is never skipped.

`on_error` says what happens to files of a batch that can't be decoded (or read). "raise", the
default: an error when the batch is used. "skip": they are left out, so that the batch is smaller.
"substitute": they are replaced by the next sample of the batch that can be decoded. Give labels and
other per-sample data as `along`, so that they stay matched to their images:

    images, labels = ndd.decoders.image(jpegs, on_error="skip", along=labels)

`along` takes one or several batches, and makes the result a tuple. Unless `on_error` is "raise",
such a call waits for its images. For a batch from a reader, bad samples are listed in the reader's
`errors` and count towards its `max_errors`. Epochs and checkpoints are the same as if they had been
good.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from penstock import types
from penstock._errors import messages
from penstock._operators.arguments import REQUIRED, Floats, Interp, Ints, entries
from penstock._operators.constraints import NUMBERS, Between, Elements, OneOf
from penstock._operators.definition import Data, PerSample, Result, operator
from penstock._operators.deprecated import Deprecated
from penstock._runtime import ffmpeg
from penstock._values.axes import fitting
from penstock._values.dtype import (
    DType,
    float32,
    float64,
    int16,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)

NumberType: TypeAlias = Annotated[DType, NUMBERS]
ImageType: TypeAlias = Annotated[int, OneOf(*types.DALIImageType)]
VideoType: TypeAlias = Annotated[int, OneOf(types.RGB, types.BGR, types.GRAY, types.YCbCr)]
Mode: TypeAlias = Annotated[str, OneOf("default", "stretch", "not_larger", "not_smaller")]
MinSize: TypeAlias = Annotated[PerSample[Ints], Between(1, None)]
Place: TypeAlias = Annotated[PerSample[float], Between(0, 1)]
SampleType: TypeAlias = Annotated[DType, Elements("float32, int16 or int32", float32, int16, int32)]
PixelType: TypeAlias = Annotated[DType, Elements("uint8 or float32", uint8, float32)]
_WIDE = Elements("32- or 64-bit numbers", int32, uint32, int64, uint64, float32, float64)


@operator(namespace="decoders", can_skip_bad_samples=True)
def audio(
    input: Data,
    *,
    downmix: bool = False,
    dtype: SampleType = float32,
    duration: Annotated[PerSample[float], Between(0, None)] | None = None,
    quality: Annotated[float, Between(0, 100)] = 50.0,
    sample_rate: PerSample[float] = 0.0,
    start: Annotated[PerSample[float], Between(0, None)] = 0.0,
) -> tuple[Result, Result]:
    """Decode audio: WAV, FLAC, Ogg (Vorbis, Opus, FLAC), MP3, M4A, WebM and more.

    Formats that DALI lacks are MP3 and MP2, AAC (AAC-LC with one or two channels, in M4A or by
    itself), ALAC in M4A, FLAC in Ogg, and audio in WebM and Matroska files. Silence that encoders
    add in front and at the end is left out if the file tells of it. Opus is decoded at the rate
    that it was made from if that is 8, 12, 16 or 24 kHz, otherwise at 48 kHz.

    Files that are damaged or truncated are errors that say where, in seconds. More than 2^30
    samples, or more than a file of its size can have, are refused; the environment variable
    PENSTOCK_MAX_AUDIO_SAMPLES changes that limit.

    Args:
        input: Encoded audio: the bytes of files.
        downmix: Whether to mix all channels to one, their mean, and to drop their axis.
        dtype: The element type of the samples: float32, from -1 to 1, or int16 or int32, scaled to
            their range.
        duration: How many seconds to decode at most, rounded to whole samples; by default up to
            the end. Not in DALI.
        quality: How well rates are converted, from 0 to 100.
        sample_rate: The rate to convert to, in Hz; 0 keeps that of the file.
        start: Where to start, in seconds, rounded to whole samples. The samples are the same as
            those of the whole file from there on; in WAV and similar files, FLAC and MP3, what
            comes before is not decoded. Not in DALI.

    Returns:
        The samples, of shape (time, channels) or, with `downmix`, (time,), and the sampling rate,
        a float32.

    Example:
        >>> import io, wave
        >>> import numpy as np
        >>> file = io.BytesIO()
        >>> with wave.open(file, "wb") as writer:
        ...     writer.setnchannels(2)
        ...     writer.setsampwidth(2)
        ...     writer.setframerate(8000)
        ...     writer.writeframes(np.zeros((16000, 2), "int16").tobytes())
        >>> data = np.frombuffer(file.getvalue(), "uint8")
        >>> samples, rate = ndd.decoders.audio(data)
        >>> samples.shape, rate.torch().item()
        ((16000, 2), 8000.0)
        >>> samples, rate = ndd.decoders.audio(data, start=0.5, duration=1, downmix=True)
        >>> samples.shape
        (8000,)
    """
    return Result(dtype, 1 if downmix else 2), Result(float32, 0)


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
    memory_stats: Annotated[bool, Deprecated()] = False,
    min_size: MinSize | None = None,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    split_stages: Annotated[bool, Deprecated()] = False,
    use_chunk_allocator: Annotated[bool, Deprecated()] = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode images: JPEG, PNG, WebP, TIFF, BMP, PNM and JPEG 2000.

    JPEG is decoded by libjpeg-turbo, with the same pixels as Pillow. Truncated files are errors.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether to rotate images as their EXIF orientation says.
        affine: Ignored: threads are not pinned to cores.
        cache_batch_copy: Ignored: decoded images are not cached.
        cache_debug: Ignored.
        cache_size: Ignored.
        cache_threshold: Ignored.
        cache_type: Ignored.
        device_memory_padding: Ignored, like all arguments about the decoders' memory.
        device_memory_padding_jpeg2k: Ignored.
        dtype: The element type of the result. Values are scaled to its range: a white pixel
            is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        host_memory_padding: Ignored.
        host_memory_padding_jpeg2k: Ignored.
        hw_decoder_load: Ignored: images are decoded on the CPU.
        hybrid_huffman_threshold: Ignored.
        jpeg_fancy_upsampling: Ignored: chroma is always upsampled smoothly, as in Pillow.
        memory_stats: Deprecated; ignored.
        min_size: Height and width that the result needs, or one number for both. A JPEG is then
            decoded at the smallest of the scales 1/8, 2/8, ... 8/8 that is not below it in either
            axis, which saves most of the work for photographs that end up small. It is the size
            after the rotation by `adjust_orientation`. Images of other formats, and images that
            are smaller, are decoded in full. Not in DALI.
        output_type: The color space of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R
            BT.601, limited range), or `ANY_DATA` for the one that the image is stored in.
        preallocate_height_hint: Ignored.
        preallocate_width_hint: Ignored.
        split_stages: Deprecated; ignored.
        use_chunk_allocator: Deprecated; ignored.
        use_fast_idct: Whether to decode JPEG with a faster, less accurate inverse DCT.

    Example:
        >>> import io
        >>> import numpy as np
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (40, 20), "red").save(file, "JPEG")
        >>> jpeg = np.frombuffer(file.getvalue(), "uint8")
        >>> ndd.decoders.image(jpeg).shape
        (20, 40, 3)
        >>> ndd.decoders.image(jpeg, min_size=[10, 10]).shape
        (10, 20, 3)
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
    memory_stats: Annotated[bool, Deprecated()] = False,
    min_size: MinSize | None = None,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rounding: Annotated[str, OneOf("round", "truncate")] = "round",
    split_stages: Annotated[bool, Deprecated()] = False,
    use_chunk_allocator: Annotated[bool, Deprecated()] = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode a crop window of images. Only the part of a JPEG that it needs is decoded.

    The result is the same as decoding the whole image and cropping it.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether to rotate images as their EXIF orientation says.
        affine: Ignored: threads are not pinned to cores.
        crop: Height and width of the window, in pixels; fractions are truncated. Of three numbers,
            the first is a depth, which is ignored.
        crop_d: Ignored: images have no depth.
        crop_h: Height of the window, in place of `crop`; 0 stands for the whole image.
        crop_pos_x: Horizontal position of the window: 0 is the left edge, 1 the right one.
        crop_pos_y: Vertical position of the window: 0 is the top, 1 the bottom.
        crop_pos_z: Ignored: images have no depth.
        crop_w: Width of the window, together with `crop_h`.
        device_memory_padding: Ignored, like all arguments about the decoders' memory.
        device_memory_padding_jpeg2k: Ignored.
        dtype: The element type of the result. Values are scaled to its range: a white pixel
            is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        host_memory_padding: Ignored.
        host_memory_padding_jpeg2k: Ignored.
        hw_decoder_load: Ignored: images are decoded on the CPU.
        hybrid_huffman_threshold: Ignored.
        jpeg_fancy_upsampling: Ignored: chroma is always upsampled smoothly, as in Pillow.
        memory_stats: Deprecated; ignored.
        min_size: Height and width that the window needs, or one number for both. A JPEG is then
            decoded at the smallest of the scales 1/8, 2/8, ... 8/8 at which the window is not below
            it in either axis, and the result is the window at that scale; arguments still mean
            the image in full. Other formats are decoded in full. Not in DALI.
        output_type: The color space of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R
            BT.601, limited range), or `ANY_DATA` for the one that the image is stored in.
        preallocate_height_hint: Ignored.
        preallocate_width_hint: Ignored.
        rounding: How the window's position is converted to whole pixels: "round" or "truncate".
        split_stages: Deprecated; ignored.
        use_chunk_allocator: Deprecated; ignored.
        use_fast_idct: Whether to decode JPEG with a faster, less accurate inverse DCT.

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
    memory_stats: Annotated[bool, Deprecated()] = False,
    min_size: MinSize | None = None,
    num_attempts: int = 10,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    random_area: Floats = (0.08, 1.0),  # type: ignore[assignment]
    random_aspect_ratio: Floats = (0.75, 1.333333),  # type: ignore[assignment]
    split_stages: Annotated[bool, Deprecated()] = False,
    use_chunk_allocator: Annotated[bool, Deprecated()] = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode a random crop window of images. Only the part of a JPEG that it needs is decoded.

    The area and the logarithm of the aspect ratio are drawn uniformly, then the position.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether to rotate images as their EXIF orientation says.
        affine: Ignored: threads are not pinned to cores.
        device_memory_padding: Ignored, like all arguments about the decoders' memory.
        device_memory_padding_jpeg2k: Ignored.
        dtype: The element type of the result. Values are scaled to its range: a white pixel
            is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        host_memory_padding: Ignored.
        host_memory_padding_jpeg2k: Ignored.
        hw_decoder_load: Ignored: images are decoded on the CPU.
        hybrid_huffman_threshold: Ignored.
        jpeg_fancy_upsampling: Ignored: chroma is always upsampled smoothly, as in Pillow.
        memory_stats: Deprecated; ignored.
        min_size: Height and width that the window needs, or one number for both. A JPEG is then
            decoded at the smallest of the scales 1/8, 2/8, ... 8/8 at which the window is not below
            it in either axis, and the result is the window at that scale; arguments still mean
            the image in full. Other formats are decoded in full. Not in DALI.
        num_attempts: How many sizes to try until one fits into the image. After that, the window
            is as large as area and aspect ratio allow.
        output_type: The color space of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R
            BT.601, limited range), or `ANY_DATA` for the one that the image is stored in.
        preallocate_height_hint: Ignored.
        preallocate_width_hint: Ignored.
        random_area: The smallest and the largest area of the window, as fractions of the image's.
        random_aspect_ratio: The smallest and the largest ratio of width to height.
        split_stages: Deprecated; ignored.
        use_chunk_allocator: Deprecated; ignored.
        use_fast_idct: Whether to decode JPEG with a faster, less accurate inverse DCT.

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
    memory_stats: Annotated[bool, Deprecated()] = False,
    min_size: MinSize | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    output_type: ImageType = types.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rel_end: PerSample[Floats] | None = None,
    rel_shape: PerSample[Floats] | None = None,
    rel_start: PerSample[Floats] | None = None,
    shape: PerSample[Ints] | None = None,
    split_stages: Annotated[bool, Deprecated()] = False,
    start: PerSample[Ints] | None = None,
    use_chunk_allocator: Annotated[bool, Deprecated()] = False,
    use_fast_idct: bool = False,
) -> Result:
    """Decode a window of images, given as for `slice`. Only the part of a JPEG that it needs is
    decoded.

    The window must be inside the image.

    Args:
        data: Encoded images: the bytes of files.
        anchor: Where windows start: integers, or floats, which are relative by default.
        shape_input: The extents of windows; integers if the anchor is of integers.
        adjust_orientation: Whether to rotate images as their EXIF orientation says.
        affine: Ignored: threads are not pinned to cores.
        axes: The axes that the window is for, by number: 0 is the height, 1 the width.
        axis_names: The same, by letters; "WH" if `axes` is not given either.
        device_memory_padding: Ignored, like all arguments about the decoders' memory.
        device_memory_padding_jpeg2k: Ignored.
        dtype: The element type of the result. Values are scaled to its range: a white pixel
            is 255 as uint8, 65535 as uint16 and 1.0 as float32.
        end: Where windows end.
        host_memory_padding: Ignored.
        host_memory_padding_jpeg2k: Ignored.
        hw_decoder_load: Ignored: images are decoded on the CPU.
        hybrid_huffman_threshold: Ignored.
        jpeg_fancy_upsampling: Ignored: chroma is always upsampled smoothly, as in Pillow.
        memory_stats: Deprecated; ignored.
        min_size: Height and width that the window needs, or one number for both. A JPEG is then
            decoded at the smallest of the scales 1/8, 2/8, ... 8/8 at which the window is not below
            it in either axis, and the result is the window at that scale; arguments still mean
            the image in full. Other formats are decoded in full. Not in DALI.
        normalized_anchor: Whether floats in `anchor` are relative to the image's extents.
        normalized_shape: Whether floats in `shape_input` are relative to the image's extents.
        output_type: The color space of the result: `types.RGB`, `BGR`, `GRAY`, `YCbCr` (ITU-R
            BT.601, limited range), or `ANY_DATA` for the one that the image is stored in.
        preallocate_height_hint: Ignored.
        preallocate_width_hint: Ignored.
        rel_end: Where windows end, relative to the image's extents.
        rel_shape: The extents of windows, relative to the image's.
        rel_start: Where windows start, relative to the image's extents.
        shape: The extents of windows.
        split_stages: Deprecated; ignored.
        start: Where windows start.
        use_chunk_allocator: Deprecated; ignored.
        use_fast_idct: Whether to decode JPEG with a faster, less accurate inverse DCT.

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
    """Read the shape of images from their headers, without decoding them.

    Args:
        input: Encoded images: the bytes of files.
        adjust_orientation: Whether images will be rotated as their EXIF orientation says.
        dtype: The element type of the result.
        image_type: The color space that images will be decoded to; `types.ANY_DATA` for the one
            they are stored in.

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


@operator(namespace="decoders", devices="cpu")
def numpy(data: Data, *, dtype: DType | None = None) -> Result:
    """Decode arrays in NumPy's format (.npy), such as files that `numpy.save` wrote.

    All versions of the format, both memory orders and both byte orders are read. Arrays of Python
    objects are refused: they are pickles, which can run code. An array in row-major order shares
    the memory of its file.

    Args:
        data: The bytes of files.
        dtype: The element type of the result. By default, it is that of the file, which must be
            the same for all samples of a batch.

    Example:
        >>> import io
        >>> import numpy as np
        >>> file = io.BytesIO()
        >>> np.save(file, np.float32([[1, 2], [3, 4]]))
        >>> ndd.decoders.numpy(np.frombuffer(file.getvalue(), "uint8")).torch().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    if not data._value.batch:
        return Result(dtype, None, first=None)
    if not len(data._value):
        return Result(dtype or uint8, 1, first=None)
    # Samples of a batch have one type and rank, which only the files tell.
    return Result(dtype, None, first=data.tensors[0])


_PADDING = (
    *("none", "", "constant", "edge", "repeat"),
    *("reflect_1001", "symmetric", "reflect_101", "reflect"),
)


@operator(namespace="decoders", can_skip_bad_samples=True)
def video(
    encoded: Data,
    *,
    adjust_orientation: bool = False,
    affine: bool = True,
    antialias: bool = True,
    build_index: bool = True,
    color_space: Annotated[str, OneOf("auto", "bt601", "bt709", "bt2020")] = "auto",
    dtype: PixelType = uint8,
    duration: PerSample[float] | None = None,
    end_frame: PerSample[int] | None = None,
    end_time: PerSample[float] | None = None,
    fill_value: Annotated[Ints, Between(0, 255)] = (0,),  # type: ignore[assignment]
    fps: PerSample[float] | None = None,
    frames: PerSample[Ints] | None = None,
    interp_type: PerSample[Interp] | None = None,
    mode: Mode = "default",
    output_type: VideoType = types.RGB,
    pad_mode: Annotated[str, OneOf(*_PADDING)] = "constant",
    sequence_length: PerSample[int] | None = None,
    size: PerSample[Floats] | None = None,
    start_frame: PerSample[int] | None = None,
    start_time: PerSample[float] | None = None,
    stream: Annotated[int, Between(0, None)] | None = None,
    stride: PerSample[int] | None = None,
    times: PerSample[Floats] | None = None,
) -> Result:
    """Decode videos, or some of their frames: H.264, HEVC, AV1, VP8, VP9, MPEG-4, MJPEG and more.

    Needs FFmpeg, which `pip install "penstock[video]"` brings along; see [video](../video.md). MP4,
    MOV, MKV, WebM, AVI, MPEG-TS, FLV and other containers are read. DALI decodes VP8, VP9 and MJPEG
    only, without a GPU.

    Without further arguments, the result has all frames. `frames` picks some by number, and `times`
    by time; otherwise `start_frame` or `start_time` says where a clip starts, and `end_frame`,
    `end_time`, `duration` or `sequence_length` where it ends. Frames are exact, whatever the
    distance of key frames and the frame rate: the same as those of a decode from the start.

    Colors are converted as the file says (DALI: always BT.601), and chroma is interpolated.

    Args:
        encoded: Encoded videos: the bytes of files.
        adjust_orientation: Whether to rotate frames as the file says, which phones rely on. Not in
            DALI.
        affine: Ignored: threads are not pinned to cores.
        antialias: Whether to filter when `size` makes frames smaller. Not in DALI.
        build_index: Ignored: videos are always indexed.
        color_space: The conversion to RGB: "bt601", "bt709" or "bt2020", or "auto" for the one that
            the file names (BT.601 if it names none). Not in DALI.
        dtype: The element type of the result: uint8, or float32, in which a white pixel is 1.0, as
            in `decoders.image`. Not in DALI.
        duration: The length of the clip in seconds. Not in DALI.
        end_frame: The number of the frame after the last one.
        end_time: The end of the clip, in seconds since the first frame. Not in DALI.
        fill_value: The color of frames beyond the video, for `pad_mode="constant"`: a number, or
            one for each channel.
        fps: Frames per second of the result, whatever the video has: frames are repeated or left
            out. Not in DALI.
        frames: Numbers of frames, in any order.
        interp_type: How frames are interpolated if `size` is given; linear by default. Not in DALI.
        mode: How `size` is understood, as in `resize`. Not in DALI.
        output_type: The color space of the result: `types.RGB`, `BGR`, `GRAY`, or `YCbCr`, which is
            what is stored, with chroma for each pixel. Not in DALI.
        pad_mode: What stands in for frames that the video doesn't have: "none" (nothing: the clip
            ends early), "constant" (`fill_value`), "edge" or "repeat" (the first or last frame),
            "reflect_1001" or "symmetric", "reflect_101" or "reflect" (frames in reverse, with or
            without the last one twice).
        sequence_length: The number of frames.
        size: Height and width to resize frames to. Planes are resized before colors are converted,
            which takes less time than `resize` afterwards. Not in DALI.
        start_frame: The number of the first frame.
        start_time: The time of the first frame, in seconds since the first one of the video: the
            frame that is shown at that time. Not in DALI.
        stream: The number of the video stream, for files with several, counted from 0 without
            streams of sound and text. By default the one that FFmpeg considers the main one. Not in
            DALI.
        stride: The distance of frames.
        times: Times in seconds since the first frame, in any order: the frames that are shown then.
            Not in DALI.

    Returns:
        Frames of shape (frames, height, width, channels), with the layout "FHWC".

    Example:
        >>> import numpy as np
        >>> file = np.fromfile("tests/data/videos/vp9-10bit.webm", "uint8")
        >>> ndd.decoders.video(file).shape
        (30, 120, 160, 3)
        >>> ndd.decoders.video(file, start_time=0.5, sequence_length=8, size=[64, 64]).shape
        (8, 64, 64, 3)
    """
    given = {
        "frames": frames,
        "times": times,
        "start_frame": start_frame,
        "start_time": start_time,
        "end_frame": end_frame,
        "end_time": end_time,
        "duration": duration,
        "sequence_length": sequence_length,
        "stride": stride,
        "fps": fps,
    }
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        _check_together(names)
    ffmpeg.load("decoders.video")
    return Result(dtype, 4, "FHWC")


_APART = (
    ("start_frame", "start_time"),
    ("end_frame", "end_time", "duration", "sequence_length"),
    ("stride", "fps"),
)
"""Arguments of `video` that say the same in other ways."""


def _check_together(names: list[str]) -> None:
    for alone in ("frames", "times"):
        if alone in names:
            other = next(name for name in names if name != alone)
            raise messages.bad_argument(
                "decoders.video", alone, f"can't be given together with `{other}`"
            )
    for group in _APART:
        both = [name for name in group if name in names]
        if len(both) > 1:
            problem = f"can't be given together with `{both[1]}`"
            raise messages.bad_argument("decoders.video", both[0], problem)


_ALGORITHMS = ("lz4", "lz4_frame", "deflate", "zlib", "gzip", "zstd")


@operator(namespace="decoders")
def inflate(
    input: Data,
    *,
    algorithm: Annotated[str, OneOf(*_ALGORITHMS, ignore_case=True)] = "LZ4",
    check_output_size: bool = False,
    chunk_offsets: PerSample[Ints] | None = None,
    chunk_sizes: PerSample[Ints] | None = None,
    dtype: DType = uint8,
    layout: str = "",
    sequence_axis_name: str = "F",
    shape: PerSample[Ints] = REQUIRED,
) -> Result:
    """Decompress arrays.

    A sample is one compressed chunk, or several that each become an array of `shape`: the result
    then has a first dimension that counts the chunks. What is decompressed must be as large as
    `shape` says, so that damaged or malicious data can't take more memory than that.

    Args:
        input: Compressed bytes.
        algorithm: How they are compressed: "LZ4" (blocks without a frame), "LZ4_frame" (what the
            `lz4` command writes), "deflate", "zlib", "gzip" or "zstd". DALI has "LZ4" only.
        check_output_size: Ignored: sizes are always checked.
        chunk_offsets: Where the chunks of a sample begin. Without `chunk_sizes`, each ends where
            the next one begins, and the last at the end.
        chunk_sizes: The sizes of the compressed chunks. Without `chunk_offsets`, they follow one
            another from the start.
        dtype: The element type of the decompressed data.
        layout: The layout of a decompressed chunk.
        sequence_axis_name: The letter for the dimension that counts chunks, where there is a
            `layout`.
        shape: The shape of a decompressed chunk.

    Example:
        >>> import zlib
        >>> import numpy as np
        >>> packed = np.frombuffer(zlib.compress(bytes(range(6))), "uint8")
        >>> ndd.decoders.inflate(packed, algorithm="zlib", shape=[2, 3]).torch().tolist()
        [[0, 1, 2], [3, 4, 5]]
    """
    rank = entries(shape)
    found = fitting("decoders.inflate", layout or None, rank)
    if chunk_offsets is None and chunk_sizes is None:
        return Result(dtype, rank, found, rank=rank)
    if found is not None:
        if len(sequence_axis_name) != 1:
            wanted = "must be one letter"
            raise messages.bad_argument("decoders.inflate", "sequence_axis_name", wanted)
        found = sequence_axis_name + found
    return Result(dtype, rank + 1, found, rank=rank)
