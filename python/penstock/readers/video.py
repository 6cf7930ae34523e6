"""`readers.Video` and `readers.VideoResize`: clips of videos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.readers._clips import SIZES, ClipOptions, ClipReader, Rules

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Video(ClipReader):
    """Reads clips of videos: sequences of frames, of shape (frames, height, width, channels).

    Every codec and container that FFmpeg has can be read, on any machine; `pip install
    penstock[video]` brings FFmpeg along. The outputs are the frames (with the layout FHWC); the
    label (int32 of shape (1,)), if there are labels; with `enable_frame_num` the numbers of frames
    (int32); with `enable_timestamps` their times (float64). Frames are found by an index that is
    made when the reader opens its files, so that each clip has exactly the frames that a player
    would show, also with varying frame rates. A file that can't be read is left out with a warning,
    unless `on_error` says otherwise.

    Args:
        additional_decode_surfaces: Without effect.
        channels: 3: other numbers of channels are not supported.
        file_list_frame_num: Whether start and end on the lines of `file_list` are frame numbers; by
            default they are seconds from the first frame on. Negative ones count from the end, and
            an end of 0 is that of the video.
        file_list_include_preceding_frame: Start with the frame that is shown at the start, and end
            with the one that is shown just before the end; by default the first and the last frame
            that are shown completely in between.
        pad_sequences: Whether there are clips that the video is too short for; frames that are
            missing are black, with the number -1 and the time -1.
        skip_vfr_check: Without effect: a varying frame rate needs no check.

    Example:
        >>> reader = ndd.readers.Video(filenames=["walk.mp4"], sequence_length=16, stride=2)
        ... # doctest: +SKIP
        >>> for (clips,) in reader.next_epoch(batch_size=8):  # doctest: +SKIP
        ...     train(ndd.crop_mirror_normalize(clips, output_layout="FCHW").torch())
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        additional_decode_surfaces: int | None = None,
        channels: int | None = None,
        file_list_frame_num: bool | None = None,
        file_list_include_preceding_frame: bool | None = None,
        pad_sequences: bool | None = None,
        skip_vfr_check: bool | None = None,
        **options: Unpack[ClipOptions],
    ) -> None:
        self._check_channels(channels)
        rules = _rules(pad_sequences, file_list_frame_num, file_list_include_preceding_frame)
        self._begin_with(rules, max_batch_size, name, device, num_inputs, options)


class VideoResize(ClipReader):
    """Reads clips of videos, as `Video`, and resizes their frames, as `resize`.

    Frames are resized as soon as they are decoded, so that only those of the final size are kept.
    The size is given in one of these ways: `size`, any of `resize_x` and `resize_y`,
    `resize_shorter`, or `resize_longer`. A call of the reader can be given the arguments about
    sizes, too, also as a batch with one for each clip.

    Args:
        additional_decode_surfaces: Without effect.
        antialias: As in `resize`.
        channels: 3: other numbers of channels are not supported.
        file_list_frame_num: Whether start and end on the lines of `file_list` are frame numbers; by
            default they are seconds from the first frame on. Negative ones count from the end, and
            an end of 0 is that of the video.
        file_list_include_preceding_frame: Start with the frame that is shown at the start, and end
            with the one that is shown just before the end; by default the first and the last frame
            that are shown completely in between.
        interp_type: As in `resize`.
        mag_filter: As in `resize`.
        max_size: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Without effect.
        mode: As in `resize`.
        pad_sequences: Whether there are clips that the video is too short for; frames that are
            missing are black, with the number -1 and the time -1.
        resize_longer: As in `resize`.
        resize_shorter: As in `resize`.
        resize_x: As in `resize`.
        resize_y: As in `resize`.
        resize_z: As in `resize`.
        roi_end: As in `resize`.
        roi_relative: As in `resize`.
        roi_start: As in `resize`.
        skip_vfr_check: Without effect: a varying frame rate needs no check.
        subpixel_scale: As in `resize`.
        temp_buffer_hint: Without effect.

    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        additional_decode_surfaces: int | None = None,
        antialias: bool | None = None,
        channels: int | None = None,
        file_list_frame_num: bool | None = None,
        file_list_include_preceding_frame: bool | None = None,
        interp_type: Any = None,
        mag_filter: Any = None,
        max_size: float | Sequence[float] | None = None,
        min_filter: Any = None,
        minibatch_size: int | None = None,
        mode: Literal["default", "stretch", "not_larger", "not_smaller"] | None = None,
        pad_sequences: bool | None = None,
        resize_longer: float | None = None,
        resize_shorter: float | None = None,
        resize_x: float | None = None,
        resize_y: float | None = None,
        resize_z: float | None = None,
        roi_end: float | Sequence[float] | None = None,
        roi_relative: bool | None = None,
        roi_start: float | Sequence[float] | None = None,
        skip_vfr_check: bool | None = None,
        subpixel_scale: bool | None = None,
        temp_buffer_hint: int | None = None,
        **options: Unpack[ClipOptions],
    ) -> None:
        self._check_channels(channels)
        resize = {
            "antialias": antialias,
            "interp_type": interp_type,
            "mag_filter": mag_filter,
            "max_size": max_size,
            "min_filter": min_filter,
            "mode": mode,
            "resize_longer": resize_longer,
            "resize_shorter": resize_shorter,
            "resize_x": resize_x,
            "resize_y": resize_y,
            "resize_z": resize_z,
            "roi_end": roi_end,
            "roi_relative": roi_relative,
            "roi_start": roi_start,
            "subpixel_scale": subpixel_scale,
        }
        sized = {**resize, "size": options.get("size")}
        self._given = {key for key, value in sized.items() if value is not None}
        self._sizes: dict[str, Any] = {}
        rules = _rules(
            pad_sequences, file_list_frame_num, file_list_include_preceding_frame, resize
        )
        self._begin_with(rules, max_batch_size, name, device, num_inputs, options)

    def __call__(
        self,
        *,
        batch_size: SupportsIndex | None = None,
        interp_type: Any = None,
        mag_filter: Any = None,
        min_filter: Any = None,
        resize_longer: Any = None,
        resize_shorter: Any = None,
        resize_x: Any = None,
        resize_y: Any = None,
        resize_z: Any = None,
        roi_end: Any = None,
        roi_start: Any = None,
        size: Any = None,
    ) -> Any:
        """The next batch, or without a batch size the next clip, with no end of an epoch.

        A reader that is called can't be iterated, nor the other way round, until `reset`.

        Args:
            batch_size: How many clips to read.
            interp_type: As for the reader, for this call.
            mag_filter: As for the reader, for this call.
            min_filter: As for the reader, for this call.
            resize_longer: As for the reader, for this call.
            resize_shorter: As for the reader, for this call.
            resize_x: As for the reader, for this call.
            resize_y: As for the reader, for this call.
            resize_z: As for the reader, for this call.
            roi_end: As for the reader, for this call.
            roi_start: As for the reader, for this call.
            size: As for the reader, for this call.
        """
        given = {
            "interp_type": interp_type,
            "mag_filter": mag_filter,
            "min_filter": min_filter,
            "resize_longer": resize_longer,
            "resize_shorter": resize_shorter,
            "resize_x": resize_x,
            "resize_y": resize_y,
            "resize_z": resize_z,
            "roi_end": roi_end,
            "roi_start": roi_start,
            "size": size,
        }
        given = {key: value for key, value in given.items() if value is not None}
        if given and not self._given.isdisjoint(SIZES):
            raise ValueError(
                f"{self._what}: `{min(self._given.intersection(SIZES))}` was given to the reader "
                "already, so that a call can't be given sizes."
            )
        with self._guard():
            self._sizes = given
            try:
                return super().__call__(batch_size=batch_size)
            finally:
                self._sizes = {}

    def _yields(self, outputs: tuple[Any, ...]) -> Any:
        if self._given.isdisjoint(SIZES):
            from penstock.ops.resize import resize

            if not self._sizes.keys() & set(SIZES):
                raise messages.bad_argument(self._what, "size", "is needed")
            others = {
                key: value
                for key, value in self._resize_arguments().items()
                if value is not None and key not in self._sizes
            }
            outputs = resize(outputs[0], **others, **self._sizes), *outputs[1:]
        return super()._yields(outputs)


def _rules(
    pad_sequences: bool | None,
    are_frames: bool | None,
    is_wide: bool | None,
    resize: Mapping[str, Any] | None = None,
) -> Rules:
    """What the two readers have in common."""
    return Rules(
        pad_mode="constant" if pad_sequences else "none",
        tails="all",
        room="frames",
        meaning={
            "unit": "frames" if are_frames else "seconds",
            "start_up": not is_wide and not are_frames,
            "end_up": bool(is_wide) and not are_frames,
            "clamped": True,
            "zero_is_end": True,
        },
        resize=resize or {},
    )
