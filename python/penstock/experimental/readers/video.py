"""`experimental.readers.Video`: clips of videos."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.readers._clips import ClipOptions, ClipReader, Rules

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
        file_list_format: What start and end on the lines of `file_list` are: "timestamps" (default;
            seconds) or "frames". Negative ones count from the end.
        file_list_include_end: Whether an end beyond that of the video stands for it (default), or
            is an error.
        file_list_rounding: How start and end become frames, where they are between two:
            "start_down_end_up" (default), "start_up_end_down", "all_up" or "all_down". The frame at
            the end is not part of the range.
        file_list_times: What seconds are counted from: "first_frame" (default), or "pts" for the
            time stamps in the file, as in DALI; these differ for files that don't begin at 0.
        fill_value: The color of frames that are filled: one number, or one for each channel.
        pad_mode: What stands for the frames that a video is too short for: "none" (default; there
            is no such clip), "constant" (`fill_value`, with the number -1 and the time -1), "edge"
            or "repeat" (the last frame), "reflect_1001" or "symmetric", "reflect_101" or "reflect"
            (frames in reverse order, with and without the last one).
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
        file_list_format: Literal["timestamps", "frames"] | None = None,
        file_list_include_end: bool | None = None,
        file_list_rounding: Literal["start_down_end_up", "start_up_end_down", "all_up", "all_down"]
        | None = None,
        file_list_times: Literal["first_frame", "pts"] | None = None,
        fill_value: int | Sequence[int] | None = None,
        pad_mode: str | None = None,
        uniform_sample: bool | None = None,
        **options: Unpack[ClipOptions],
    ) -> None:
        self._what = "experimental.readers.Video"
        unit = self._one_of("file_list_format", file_list_format, FORMATS)
        origin = self._one_of("file_list_times", file_list_times, ORIGINS)
        rounding = self._one_of("file_list_rounding", file_list_rounding, ROUNDINGS)
        start_up, end_up = ROUNDINGS[rounding]
        rules = Rules(
            pad_mode="none" if pad_mode is None else pad_mode,
            tails="one",
            room="strides",
            fill_value=fill_value,
            meaning={
                "unit": "frames" if unit == "frames" else ORIGINS[origin],
                "start_up": start_up,
                "end_up": end_up,
                "clamped": file_list_include_end is None or bool(file_list_include_end),
                "zero_is_end": False,
            },
            is_spread=bool(uniform_sample),
        )
        self._begin_with(rules, max_batch_size, name, device, num_inputs, options)

    def _one_of(self, key: str, given: str | None, choices: Iterable[str]) -> str:
        """The choice that was made; the first one by default."""
        known = list(choices)
        if given is None:
            return known[0]
        if given not in known:
            named = [f'"{name}"' for name in known]
            raise messages.not_one_of(self._what, key, named, given)
        return given
