"""`readers.Video` and `readers.VideoResize`: clips of videos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name
from penstock.readers._clips import SIZES, ClipReader, Rules

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
        file_list_frame_num: Whether start and end on the lines of `file_list` are frame numbers; by
            default they are seconds from the first frame on. Negative ones count from the end, and
            an end of 0 is that of the video.
        file_list_include_preceding_frame: Start with the frame that is shown at the start, and end
            with the one that is shown just before the end; by default the first and the last frame
            that are shown completely in between.
        file_root: A folder. The files in each of its folders are read; the number of the folder is
            the label.
        filenames: The names of files.
        fps: Frames a second. Of the file, those frames are taken that are shown at these moments,
            so that clips of all videos have the same pace, also where a file's rate varies;
            `stride`, `step` and lengths then count the frames that are taken.
        image_type: The color space: RGB (default), YCbCr (full range as in JPEG) or GRAY.
        labels: Of `filenames`. Empty for 0, 1, 2 and so on.
        normalized: Whether pixels are from 0 to 1; needs `dtype=float32`.
        pad_sequences: Whether there are clips that the video is too short for; frames that are
            missing are black, with the number -1 and the time -1.
        sampling: Where clips are: "dense" (one after the other, `step` frames apart; by default),
            "uniform" (evenly distributed; the default with `clips_per_video`) or "random" (drawn
            anew for each epoch, one per video or `clips_per_video`).
        sequence_length: Frames per clip.
        size: As in `resize`: frames are resized as soon as they are decoded.
        skip_vfr_check: Without effect: a varying frame rate needs no check.
        step: Frames from the start of a clip to that of the next one; by default the length of a
            clip, `sequence_length * stride`.
        stride: Frames from one frame of a clip to the next.

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
        clip_duration: float | None = None,
        clips_per_video: SupportsIndex | None = None,
        dtype: Any = None,
        enable_frame_num: bool | Literal["none", "scalar", "sequence"] | None = None,
        enable_timestamps: bool | None = None,
        file_list: Name | None = None,
        file_list_frame_num: bool | None = None,
        file_list_include_preceding_frame: bool | None = None,
        file_root: Name | None = None,
        filenames: Name | Iterable[Name] | None = None,
        fps: float | None = None,
        image_type: Any = None,
        labels: int | Sequence[int] | None = None,
        normalized: bool | None = None,
        pad_sequences: bool | None = None,
        sampling: Literal["dense", "uniform", "random"] | None = None,
        sequence_length: SupportsIndex | None = None,
        size: float | Sequence[float] | None = None,
        skip_vfr_check: bool | None = None,
        step: SupportsIndex | None = None,
        stride: SupportsIndex | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._check_channels(channels)
        self._begin_with(
            _rules(
                filenames=filenames,
                file_root=file_root,
                file_list=file_list,
                labels=labels,
                length=sequence_length,
                stride=stride,
                step=step,
                pad_sequences=pad_sequences,
                frame_numbers=enable_frame_num,
                timestamps=enable_timestamps,
                are_frames=file_list_frame_num,
                is_wide=file_list_include_preceding_frame,
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
        file_list_frame_num: Whether start and end on the lines of `file_list` are frame numbers; by
            default they are seconds from the first frame on. Negative ones count from the end, and
            an end of 0 is that of the video.
        file_list_include_preceding_frame: Start with the frame that is shown at the start, and end
            with the one that is shown just before the end; by default the first and the last frame
            that are shown completely in between.
        file_root: A folder. The files in each of its folders are read; the number of the folder is
            the label.
        filenames: The names of files.
        fps: Frames a second. Of the file, those frames are taken that are shown at these moments,
            so that clips of all videos have the same pace, also where a file's rate varies;
            `stride`, `step` and lengths then count the frames that are taken.
        image_type: The color space: RGB (default), YCbCr (full range as in JPEG) or GRAY.
        interp_type: As in `resize`.
        labels: Of `filenames`. Empty for 0, 1, 2 and so on.
        mag_filter: As in `resize`.
        max_size: As in `resize`.
        min_filter: As in `resize`.
        minibatch_size: Without effect.
        mode: As in `resize`.
        normalized: Whether pixels are from 0 to 1; needs `dtype=float32`.
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
        sampling: Where clips are: "dense" (one after the other, `step` frames apart; by default),
            "uniform" (evenly distributed; the default with `clips_per_video`) or "random" (drawn
            anew for each epoch, one per video or `clips_per_video`).
        sequence_length: Frames per clip.
        size: As in `resize`: frames are resized as soon as they are decoded.
        skip_vfr_check: Without effect: a varying frame rate needs no check.
        step: Frames from the start of a clip to that of the next one; by default the length of a
            clip, `sequence_length * stride`.
        stride: Frames from one frame of a clip to the next.
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
        clip_duration: float | None = None,
        clips_per_video: SupportsIndex | None = None,
        dtype: Any = None,
        enable_frame_num: bool | Literal["none", "scalar", "sequence"] | None = None,
        enable_timestamps: bool | None = None,
        file_list: Name | None = None,
        file_list_frame_num: bool | None = None,
        file_list_include_preceding_frame: bool | None = None,
        file_root: Name | None = None,
        filenames: Name | Iterable[Name] | None = None,
        fps: float | None = None,
        image_type: Any = None,
        interp_type: Any = None,
        labels: int | Sequence[int] | None = None,
        mag_filter: Any = None,
        max_size: float | Sequence[float] | None = None,
        min_filter: Any = None,
        minibatch_size: int | None = None,
        mode: Literal["default", "stretch", "not_larger", "not_smaller"] | None = None,
        normalized: bool | None = None,
        pad_sequences: bool | None = None,
        resize_longer: float | None = None,
        resize_shorter: float | None = None,
        resize_x: float | None = None,
        resize_y: float | None = None,
        resize_z: float | None = None,
        roi_end: float | Sequence[float] | None = None,
        roi_relative: bool | None = None,
        roi_start: float | Sequence[float] | None = None,
        sampling: Literal["dense", "uniform", "random"] | None = None,
        sequence_length: SupportsIndex | None = None,
        size: float | Sequence[float] | None = None,
        skip_vfr_check: bool | None = None,
        step: SupportsIndex | None = None,
        stride: SupportsIndex | None = None,
        subpixel_scale: bool | None = None,
        temp_buffer_hint: int | None = None,
        **common: Unpack[Common],
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
            "size": size,
            "subpixel_scale": subpixel_scale,
        }
        self._given = {key for key, value in resize.items() if value is not None}
        self._sizes: dict[str, Any] = {}
        self._begin_with(
            _rules(
                filenames=filenames,
                file_root=file_root,
                file_list=file_list,
                labels=labels,
                length=sequence_length,
                stride=stride,
                step=step,
                pad_sequences=pad_sequences,
                frame_numbers=enable_frame_num,
                timestamps=enable_timestamps,
                are_frames=file_list_frame_num,
                is_wide=file_list_include_preceding_frame,
                image_type=image_type,
                dtype=dtype,
                is_normalized=bool(normalized),
                fps=fps,
                clip_duration=clip_duration,
                clips_per_video=clips_per_video,
                sampling=sampling,
                resize=resize,
            ),
            max_batch_size,
            name,
            device,
            num_inputs,
            common,
        )

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
                for key, value in (self._rules.resize or {}).items()
                if value is not None and key not in self._sizes
            }
            outputs = resize(outputs[0], **others, **self._sizes), *outputs[1:]
        return super()._yields(outputs)


def _rules(
    *,
    pad_sequences: bool | None,
    are_frames: bool | None,
    is_wide: bool | None,
    resize: Mapping[str, Any],
    **given: Any,
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
        resize=resize,
        **given,
    )
