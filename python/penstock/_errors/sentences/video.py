"""Sentences for problems of videos (see `sentences`)."""

from __future__ import annotations

from collections.abc import Callable


def _size(height: int, width: int, longest: int, limit: int) -> str:
    if height == 0 or width == 0:
        return "the video doesn't say how large its frames are"
    return (
        f"the video claims frames of {height} x {width} pixels, more than the limits of {longest} "
        f"per side and {limit} in total"
    )


SENTENCES: dict[str, str | Callable[..., str]] = {
    "VideoFault.NoLibrary": "FFmpeg is not loaded; `pip install 'penstock[video]'` installs it",
    "VideoFault.Empty": "the video is empty: 0 bytes",
    "VideoFault.UnknownFormat": "this is not a video in a known format (FFmpeg: {text})",
    "VideoFault.NoStream": "the file has no video",
    "VideoFault.NoSuchStream": (
        "must be below {videos}, the number of video streams in the file, got {number}"
    ),
    "VideoFault.NoFrames": "the video has no frames",
    "VideoFault.Codec": (
        "this FFmpeg has no decoder for the video's codec, {name}, or it refuses the video's header"
    ),
    "VideoFault.PixelFormat": "frames have the pixel format {name}, which is not supported",
    "VideoFault.Size": _size,
    "VideoFault.Bytes": (
        "{frames} frames of {height} x {width} pixels take {bytes} bytes, more than the limit of "
        "{limit}; decode fewer frames at a time, or give a smaller `size`"
    ),
    "VideoFault.Changed": (
        "frame {frame} (at {seconds:.3f} s) has {height} x {width} pixels, but the first one of "
        "the clip has {first_height} x {first_width}; with `size`, all get the same one"
    ),
    "VideoFault.Damaged": "frame {frame} (at {seconds:.3f} s) can't be decoded: {text}",
    "VideoFault.EndsEarly": (
        "the video ends before frame {frame} (at {seconds:.3f} s), but claims {frames} frames"
    ),
    "VideoFault.Missing": "the decoder left out frame {frame} (at {seconds:.3f} s)",
    "VideoFault.Late": (
        "FFmpeg read for {seconds} s without finding a frame; PENSTOCK_VIDEO_TIMEOUT changes that "
        "limit"
    ),
    "VideoFault.SoundCodec": (
        "this FFmpeg has no decoder for the codec of the sound, {name}, or it refuses the header"
    ),
    "VideoFault.Sound": "the sound at {seconds:.3f} s can't be decoded: {text}",
    "VideoFault.NoSamples": "none of the sound can be decoded",
    "VideoFault.SoundFormat": "the sound at {seconds:.3f} s has samples of an unsupported kind",
    "VideoFault.SoundChanged": (
        "the rate or the number of channels of the sound changes at {seconds:.3f} s"
    ),
    "VideoFault.SoundBytes": (
        "the sound of a clip of {seconds:.3f} s takes {bytes} bytes, more than the limit of {limit}"
    ),
    "Videos.NotBytes": (
        "an encoded video must be one-dimensional uint8, got {dtype} of shape {shape}"
    ),
    "Videos.Outside": "must be in [0, {count}), the frames of the video, got {given}",
    "Videos.NoTime": "must be before the end of the video, at {duration} s, got {given}",
    "Videos.EndTime": "must be after the start, at {start} s, got {given}",
    "Videos.EndFrame": "must be after the first frame, {start}, got {given}",
}
