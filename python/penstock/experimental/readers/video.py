"""`experimental.readers.Video`: clips of videos."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name
from penstock.readers._clips import ClipReader, Rules

if TYPE_CHECKING:
    from typing_extensions import Unpack

FORMATS = ("timestamps", "frames")
ROUNDINGS = {
    # Whether a start, and an end, between two frames is the later one.
    "start_down_end_up": (False, True),
    "start_up_end_down": (True, False),
    "all_up": (True, True),
    "all_down": (False, False),
}
ORIGINS = {"first_frame": "seconds", "pts": "stamps"}


class Video(ClipReader):
    """Reads clips of videos: sequences of frames, of shape (frames, height, width, channels).

    As `readers.Video`, with other arguments: it can pad clips in several ways, and distribute
    frames over a whole video. As in DALI, a clip is complete if `sequence_length * stride` frames
    are left, and of those that are padded, a video has one at most.

    Args:
        clip_duration: Seconds per clip, in place of `sequence_length` or of `fps`: clips have
            `clip_duration * fps` frames, or `sequence_length` frames that are evenly distributed in
            time.
        clips_per_video: How many clips each file has, or each line of `file_list`.
        dtype: The type of pixels: uint8 (default), or float32 with the same range, or `normalized`.
        enable_frame_num: Give the numbers of frames, counted from the start of the file: "scalar"
            or True for the first one of a clip, "sequence" for all.
        enable_timestamps: Give the times of frames, in seconds from the first frame of the file on.
        file_list: A text file with a line for each video: its name, a label, and, if not all of it
            is read, where that part starts and ends. There are no names with spaces. Without an
            end, it is up to that of the video; an end beyond that is cut off.
        file_list_format: What start and end on the lines of `file_list` are: "timestamps" (default;
            seconds) or "frames". Negative ones count from the end.
        file_list_include_end: Whether an end beyond that of the video stands for it (default), or
            is an error.
        file_list_rounding: How start and end become frames, where they are between two:
            "start_down_end_up" (default), "start_up_end_down", "all_up" or "all_down". The frame at
            the end is not part of the range.
        file_list_times: What seconds are counted from: "first_frame" (default), or "pts" for the
            time stamps in the file, as in DALI; these differ for files that don't begin at 0.
        file_root: A folder. The files in each of its folders are read; the number of the folder is
            the label.
        filenames: The names of files.
        fill_value: The color of frames that are filled: one number, or one for each channel.
        fps: Frames a second. Of the file, those frames are taken that are shown at these moments,
            so that clips of all videos have the same pace, also where a file's rate varies;
            `stride`, `step` and lengths then count the frames that are taken.
        image_type: The color space: RGB (default), YCbCr (full range as in JPEG) or GRAY.
        labels: Of `filenames`. Empty for 0, 1, 2 and so on.
        normalized: Whether pixels are from 0 to 1; needs `dtype=float32`.
        pad_mode: What stands for the frames that a video is too short for: "none" (default; there
            is no such clip), "constant" (`fill_value`, with the number -1 and the time -1), "edge"
            or "repeat" (the last frame), "reflect_1001" or "symmetric", "reflect_101" or "reflect"
            (frames in reverse order, with and without the last one).
        sampling: Where clips are: "dense" (one after the other, `step` frames apart; by default),
            "uniform" (evenly distributed; the default with `clips_per_video`) or "random" (drawn
            anew for each epoch, one per video or `clips_per_video`).
        sequence_length: Frames per clip.
        size: As in `resize`: frames are resized as soon as they are decoded.
        step: Frames from the start of a clip to that of the next one; by default the length of a
            clip, `sequence_length * stride`.
        stride: Frames from one frame of a clip to the next.
        uniform_sample: One clip per video, or line of the list, with frames evenly distributed from
            the first to the last. `stride`, `step` and `pad_mode` have no effect then.

    Example:
        >>> reader = ndd.experimental.readers.Video(
        ...     filenames=["walk.mp4"], sequence_length=16, pad_mode="edge"
        ... )  # doctest: +SKIP
    """

    _namespace = "experimental.readers"

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        clip_duration: float | None = None,
        clips_per_video: SupportsIndex | None = None,
        dtype: Any = None,
        enable_frame_num: bool | Literal["none", "scalar", "sequence"] | None = None,
        enable_timestamps: bool | None = None,
        file_list: Name | None = None,
        file_list_format: Literal["timestamps", "frames"] | None = None,
        file_list_include_end: bool | None = None,
        file_list_rounding: Literal["start_down_end_up", "start_up_end_down", "all_up", "all_down"]
        | None = None,
        file_list_times: Literal["first_frame", "pts"] | None = None,
        file_root: Name | None = None,
        filenames: Name | Iterable[Name] | None = None,
        fill_value: int | Sequence[int] | None = None,
        fps: float | None = None,
        image_type: Any = None,
        labels: int | Sequence[int] | None = None,
        normalized: bool | None = None,
        pad_mode: str | None = None,
        sampling: Literal["dense", "uniform", "random"] | None = None,
        sequence_length: SupportsIndex | None = None,
        size: float | Sequence[float] | None = None,
        step: SupportsIndex | None = None,
        stride: SupportsIndex | None = None,
        uniform_sample: bool | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._what = "experimental.readers.Video"
        unit = self._one_of("file_list_format", file_list_format, FORMATS)
        origin = self._one_of("file_list_times", file_list_times, ORIGINS)
        rounding = self._one_of("file_list_rounding", file_list_rounding, ROUNDINGS)
        start_up, end_up = ROUNDINGS[rounding]
        self._begin_with(
            Rules(
                filenames=filenames,
                file_root=file_root,
                file_list=file_list,
                labels=labels,
                length=sequence_length,
                stride=stride,
                step=step,
                pad_mode="none" if pad_mode is None else pad_mode,
                tails="one",
                room="strides",
                fill_value=fill_value,
                frame_numbers=enable_frame_num,
                timestamps=enable_timestamps,
                meaning={
                    "unit": "frames" if unit == "frames" else ORIGINS[origin],
                    "start_up": start_up,
                    "end_up": end_up,
                    "clamped": file_list_include_end is None or bool(file_list_include_end),
                    "zero_is_end": False,
                },
                is_spread=bool(uniform_sample),
                image_type=image_type,
                dtype=dtype,
                is_normalized=bool(normalized),
                fps=fps,
                clip_duration=clip_duration,
                clips_per_video=clips_per_video,
                sampling=sampling,
                resize={"size": size},
            ),
            max_batch_size,
            name,
            device,
            num_inputs,
            common,
        )

    def _one_of(self, key: str, given: str | None, choices: Iterable[str]) -> str:
        """The choice that was made; the first one by default."""
        known = list(choices)
        if given is None:
            return known[0]
        if given not in known:
            named = [f'"{name}"' for name in known]
            raise messages.not_one_of(self._what, key, named, given)
        return given
