"""What is known of a video without decoding it."""

from __future__ import annotations

import operator
import os
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from penstock import _core
from penstock._errors import messages
from penstock._errors.faults import raise_fault
from penstock._errors.tracebacks import public
from penstock._runtime import ffmpeg
from penstock._values.tensor import as_tensor


class VideoInfo(NamedTuple):
    """What a video consists of, as `io.video_info` returns it."""

    frames: int
    """The number of frames."""
    height: int
    """The height of frames as they are stored."""
    width: int
    """The width of frames as they are stored."""
    fps: float
    """Frames per second, on average."""
    duration: float
    """Seconds from the first frame to the end of the last one."""
    codec: str
    """FFmpeg's name of the codec, such as "h264"."""
    container: str
    """FFmpeg's names of the container, such as "matroska,webm"."""
    orientation: int
    """What has to be done for frames to be upright, as in EXIF: 1 nothing, 6 a quarter turn to the
    right, 3 half a turn, 8 a quarter turn to the left, others with a flip."""
    start: float
    """The time that the file gives its first frame, in seconds."""
    times: np.ndarray[Any, np.dtype[np.float64]]
    """When each frame is shown, in seconds since the first one."""
    key_frames: np.ndarray[Any, np.dtype[np.int64]]
    """The numbers of frames that can be decoded without others."""


@public
def video_info(video: Any, *, stream: SupportsIndex | None = None) -> VideoInfo:
    """Find out what a video consists of: its packets are read, but not decoded.

    Args:
        video: The name of a file, or its bytes as a 1-D uint8 array.
        stream: The number of the video stream, for files with several, as in `decoders.video`.

    Example:
        >>> info = ndd.io.video_info("tests/data/videos/vp9-10bit.webm")
        >>> info.frames, info.height, info.width, info.codec
        (30, 120, 160, 'vp9')
    """
    ffmpeg.load("io.video_info")
    number = None if stream is None else operator.index(stream)
    if number is not None and number < 0:
        raise messages.bad_argument("io.video_info", "stream", f"must be at least 0, got {number}")
    if isinstance(video, str | os.PathLike):
        found = _core.video_info(video, None, number)
    else:
        if isinstance(video, bytes | bytearray | memoryview):
            video = np.frombuffer(video, np.uint8)
        found = _core.video_info(None, as_tensor(video)._value, number)
    if isinstance(found, _core.Fault):
        raise_fault(found)
    found["times"] = np.frombuffer(found["times"], np.float64)
    found["key_frames"] = np.frombuffer(found["key_frames"], np.int64)
    return VideoInfo(**found)
