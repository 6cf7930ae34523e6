"""What the readers of videos have in common: which clips there are, and how they are given.

`readers.Video`, `readers.VideoResize` and `experimental.readers.Video` differ in the names of some
arguments and in a few rules (`Rules`). The clips themselves are found and decoded in Rust
(`src/readers/video`); here arguments are checked, and what was left out is told.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, SupportsIndex

import numpy as np

from penstock._errors import bad_samples, messages
from penstock._errors.sentences import sentence
from penstock._operators import call_sites
from penstock._operators.arguments import CONVERSIONS, Floats, Interp
from penstock._runtime import ffmpeg
from penstock._runtime.device import DeviceLike
from penstock._values.dtype import dtype as to_dtype
from penstock.errors import ArgumentError
from penstock.readers._base.options import Common, with_arguments, with_parameters
from penstock.readers._base.order import shuffled
from penstock.readers._base.paths import Name, path, paths
from penstock.readers._base.reader import Reader
from penstock.readers._base.rows import Numbers
from penstock.readers._base.source import Source, open_source
from penstock.types import DALIImageType

PAD_MODES = {
    "none": None,
    "": None,
    "constant": "constant",
    "edge": "edge",
    "repeat": "edge",
    "reflect_1001": "reflect_1001",
    "symmetric": "reflect_1001",
    "reflect_101": "reflect_101",
    "reflect": "reflect_101",
}
FRAME_NUMBERS = {"none": None, "scalar": "scalar", "sequence": "sequence"}
SAMPLINGS = ("dense", "uniform", "random")
IMAGE_TYPES = {DALIImageType.RGB: "rgb", DALIImageType.GRAY: "gray", DALIImageType.YCbCr: "ycbcr"}

LONGEST = 2**24
"""How many frames a clip may have at most."""
HIGHEST_RATE = 2**20
"""Of sound, in Hz."""
SHUFFLE_STREAM = 0x636C6970

SIZES = ("size", "resize_x", "resize_y", "resize_z", "resize_shorter", "resize_longer")
"""The arguments of `resize` that say how large the result is."""

_MASK = 2**64 - 1


class ClipOptions(Common, total=False):
    """The arguments that all readers of videos have.

    Args:
        adjust_orientation: Whether to rotate frames as the file says, which phones rely on. By
            default frames are as they are stored.
        audio: Whether the sound of the clip is a further output, the last one: samples from -1 to 1
            (float32 of shape (time, channels)) from the time of the first frame on, for as long as
            the clip lasts. Where the file has no sound, it is silent. A file without any has no
            samples, or, with `audio_sample_rate`, silent ones of one channel.
        audio_downmix: Whether to mix all channels to one, their mean, and to drop their axis.
        audio_sample_rate: The rate to convert the sound to, in Hz; by default that of the file.
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
        file_root: A folder. The files in each of its folders are read; the number of the folder is
            the label.
        filenames: The names of files.
        fps: Frames a second. Of the file, those frames are taken that are shown at these moments,
            so that clips of all videos have the same pace, also where a file's rate varies;
            `stride`, `step` and lengths then count the frames that are taken.
        image_type: The color space: RGB (default), YCbCr (full range as in JPEG) or GRAY.
        labels: Of `filenames`. Empty for 0, 1, 2 and so on.
        normalized: Whether pixels are from 0 to 1; needs `dtype=float32`.
        sampling: Where clips are: "dense" (one after the other, `step` frames apart; by default),
            "uniform" (evenly distributed; the default with `clips_per_video`) or "random" (drawn
            anew for each epoch, one per video or `clips_per_video`).
        sequence_length: Frames per clip.
        size: As in `resize`: frames are resized as soon as they are decoded.
        step: Frames from the start of a clip to that of the next one; by default the length of a
            clip, `sequence_length * stride`.
        stride: Frames from one frame of a clip to the next.
    """

    adjust_orientation: bool | None
    audio: bool | None
    audio_downmix: bool | None
    audio_sample_rate: SupportsIndex | None
    clip_duration: float | None
    clips_per_video: SupportsIndex | None
    dtype: Any
    enable_frame_num: bool | Literal["none", "scalar", "sequence"] | None
    enable_timestamps: bool | None
    file_list: Name | None
    file_root: Name | None
    filenames: Name | Iterable[Name] | None
    fps: float | None
    image_type: Any
    labels: int | Sequence[int] | None
    normalized: bool | None
    sampling: Literal["dense", "uniform", "random"] | None
    sequence_length: SupportsIndex | None
    size: float | Sequence[float] | None
    step: SupportsIndex | None
    stride: SupportsIndex | None


CLIP_OPTIONS = ClipOptions.__annotations__.keys() - Common.__annotations__.keys()


@dataclass
class Rules:
    """How a reader differs from the others.

    Args:
        pad_mode: What stands for frames beyond the end, as users name it.
        tails: Which incomplete clips there are, if they are padded: "one" or "all".
        room: The frames that must be left for a complete clip: "strides" or "frames".
        meaning: What start and end on a line of the list mean.
        fill_value: The color of frames that are filled.
        is_spread: `uniform_sample`.
        resize: The arguments of `resize` beside `size`.
    """

    pad_mode: str
    tails: str
    room: str
    meaning: Mapping[str, Any]
    fill_value: int | Sequence[int] | None = None
    is_spread: bool = False
    resize: Mapping[str, Any] = field(default_factory=dict)


class ClipReader(Reader):
    """Reads clips of videos."""

    _gives_on_gpu = True
    _rules: Rules
    _asked: Mapping[str, Any]
    """The arguments of `ClipOptions`."""
    _clips: dict[str, Any]
    """The options that say which clips there are, and how they are given."""

    def _begin_with(
        self,
        rules: Rules,
        max_batch_size: SupportsIndex | None,
        name: str | None,
        device: DeviceLike | None,
        num_inputs: int | None,
        options: Mapping[str, Any],
    ) -> None:
        self._what = f"{self._namespace}.{type(self).__name__}"
        if unknown := options.keys() - ClipOptions.__annotations__.keys() - {"batch_size"}:
            known = list(inspect.signature(type(self)).parameters)
            raise messages.unknown_argument(self._what, sorted(unknown), known)
        self._rules = rules
        self._asked = {key: options.get(key) for key in CLIP_OPTIONS}
        common = {key: value for key, value in options.items() if key not in CLIP_OPTIONS}
        # As in DALI, by default files that can't be read are left out.
        policies = {None: "leave_out", "raise": "raise"}
        self._unreadable = policies.get(common.get("on_error"), "keep")
        self._clips = self._cut() | self._pictures()
        super().__init__(max_batch_size, name, device, num_inputs, **common)
        if self._clips["places"] == "every":
            # One for all shards, which divide what is drawn.
            seed = int(common.get("seed") or 0)
            self._options = replace(self._options, seed=max(seed, 0))

    def __init_subclass__(cls) -> None:
        cls.__doc__ = with_arguments(cls.__doc__, ClipOptions.__doc__)
        super().__init_subclass__()
        cls.__signature__ = with_parameters(cls.__init__, ClipOptions)

    def _check_channels(self, channels: int | None) -> None:
        if channels not in (None, 3):
            raise messages.bad_argument(
                f"{self._namespace}.{type(self).__name__}", "channels", f"must be 3, got {channels}"
            )

    def _yields(self, outputs: tuple[Any, ...]) -> Any:
        if self._device is None or self._device._code < 0:
            return outputs
        return tuple(bad_samples.to_device(output, self._device) for output in outputs)

    # Arguments

    def _cut(self) -> dict[str, Any]:
        """The options about the frames of clips."""
        asked, rules = self._asked, self._rules
        rate, length = self._rate()
        stride = self._whole("stride", asked["stride"], 1, least=1, most=2**32 - 1)
        step = self._whole("step", asked["step"], -1, least=-(2**62), most=2**62)
        pad = self._choice("pad_mode", rules.pad_mode, PAD_MODES)
        places = "spread" if rules.is_spread else self._places()
        if rules.is_spread and (asked["stride"] is not None or step > 0 or pad is not None):
            call_sites.warn(
                f"{self._what}: with `uniform_sample=True`, `stride`, `step` and `pad_mode` have "
                "no effect."
            )
        return {
            "length": length,
            "stride": stride,
            "step": step if step > 0 else stride * length,
            "pad": pad or "none",
            "tails": "none" if pad is None else rules.tails,
            "room": rules.room,
            "places": places,
            "clips": self._whole(
                "clips_per_video", asked["clips_per_video"], 1, least=1, most=2**31
            ),
            "fps": rate,
        }

    def _rate(self) -> tuple[float | None, int]:
        """Frames a second, if they are resampled in time, and frames per clip."""
        asked = self._asked
        rate = self._positive("fps", asked["fps"])
        seconds = self._positive("clip_duration", asked["clip_duration"])
        if asked["sequence_length"] is None:
            if seconds is None or rate is None:
                raise self._wrong(
                    "sequence_length", "is needed, unless there are `clip_duration` and `fps`"
                )
            frames = round(seconds * rate)
            if not 1 <= frames <= LONGEST:
                raise self._wrong(
                    "clip_duration",
                    f"must be between 1 and {LONGEST} frames long, got {seconds:g} seconds at "
                    f"{rate:g} frames a second",
                )
            return rate, frames
        length = self._whole("sequence_length", asked["sequence_length"], 0, least=1, most=LONGEST)
        if seconds is None:
            return rate, length
        if rate is not None:
            raise self._wrong(
                "clip_duration",
                "follows from `sequence_length` and `fps`; give two of the three",
            )
        return length / seconds, length

    def _places(self) -> str:
        """Where the clips of a file are, as Rust names it."""
        asked = self._asked
        sampling = asked["sampling"]
        if sampling is None:
            sampling = "dense" if asked["clips_per_video"] is None else "uniform"
        if sampling not in SAMPLINGS:
            raise messages.not_one_of(
                self._what, "sampling", [f'"{name}"' for name in SAMPLINGS], sampling
            )
        if sampling == "dense" and asked["clips_per_video"] is not None:
            raise self._wrong(
                "clips_per_video", 'needs `sampling` "uniform" or "random"; "dense" takes all clips'
            )
        return {"dense": "steps", "uniform": "even", "random": "every"}[sampling]

    def _pictures(self) -> dict[str, Any]:
        """The options about pixels and other outputs."""
        asked = self._asked
        return {
            "adjust_orientation": bool(asked["adjust_orientation"]),
            "audio": self._is_heard(),
            "audio_downmix": bool(asked["audio_downmix"]),
            "audio_sample_rate": self._sample_rate(),
            "fill": self._fill(),
            "frame_numbers": self._frame_numbers(),
            "timestamps": bool(asked["enable_timestamps"]),
            "image_type": self._image_type(),
            "is_float": self._is_float(),
            "is_normalized": bool(asked["normalized"]),
            **self._resizing(),
        }

    def _is_heard(self) -> bool:
        asked = self._asked
        is_heard = bool(asked["audio"])
        for key in ("audio_downmix", "audio_sample_rate"):
            if asked[key] is not None and not is_heard:
                raise self._wrong(key, "needs `audio=True`")
        return is_heard

    def _sample_rate(self) -> int | None:
        given = self._asked["audio_sample_rate"]
        if given is None:
            return None
        return self._whole("audio_sample_rate", given, 0, least=1, most=HIGHEST_RATE)

    def _fill(self) -> list[int]:
        given = self._rules.fill_value
        try:
            fill = [operator.index(part) for part in np.atleast_1d([0] if given is None else given)]
        except TypeError:
            wanted = "an integer, or one for each channel"
            raise messages.wrong_argument(self._what, "fill_value", given, wanted) from None
        if len(fill) not in (1, 3) or not all(0 <= part <= 255 for part in fill):
            raise self._wrong(
                "fill_value", f"must be one or three integers from 0 to 255, got {given}"
            )
        return fill

    def _frame_numbers(self) -> str | None:
        given = self._asked["enable_frame_num"]
        if given is None or isinstance(given, bool):
            return "scalar" if given else None
        return self._choice("enable_frame_num", given, FRAME_NUMBERS)

    def _image_type(self) -> str:
        given = self._asked["image_type"]
        found = IMAGE_TYPES.get(DALIImageType.RGB if given is None else given)
        if found is None:
            raise self._wrong("image_type", f"must be RGB, YCbCr or GRAY, got {given}")
        return found

    def _is_float(self) -> bool:
        asked = self._asked
        try:
            dtype = to_dtype("uint8" if asked["dtype"] is None else asked["dtype"])
        except (TypeError, ValueError) as error:
            raise messages.in_operator(self._what, error, "dtype") from None
        if dtype.name not in ("u8", "f32"):
            raise self._wrong("dtype", f"must be uint8 or float32, got {dtype}")
        if asked["normalized"] and dtype.name == "u8":
            raise self._wrong("normalized", "needs `dtype=float32`")
        return dtype.name == "f32"

    def _resizing(self) -> dict[str, Any]:
        """The arguments of `resize`, as far as frames are resized."""
        made: dict[str, Any] = {}
        for key, value in self._resize_arguments().items():
            if value is None:
                continue
            if key in ("antialias", "roi_relative", "subpixel_scale"):
                made[key] = bool(value)
            elif key == "mode":
                choices = ("default", "stretch", "not_larger", "not_smaller")
                if value not in choices:
                    raise messages.not_one_of(self._what, "mode", choices, value)
                made[key] = value
            elif key in ("interp_type", "mag_filter", "min_filter"):
                made[key] = self._converted(Interp, key, value)
            elif key.startswith("resize_"):
                made[key] = self._converted(float, key, value)
            else:
                made[key] = list(self._converted(Floats, key, value))
        ways = [key for key in made if key in SIZES]
        if not ways:
            return {}
        if len({"resize_x" if key in ("resize_y", "resize_z") else key for key in ways}) > 1:
            raise self._wrong(ways[0], f"and `{ways[1]}` both give the size; give one of them")
        return {"is_resized": True, **made}

    def _resize_arguments(self) -> dict[str, Any]:
        """As they were given."""
        return {**self._rules.resize, "size": self._asked["size"]}

    def _converted(self, kind: Any, key: str, value: Any) -> Any:
        convert, wanted = CONVERSIONS[kind]
        try:
            return convert(value)
        except ValueError as error:
            raise messages.in_operator(self._what, error, key) from None
        except TypeError:
            raise messages.wrong_argument(self._what, key, value, wanted) from None

    def _whole(self, key: str, given: Any, default: int, *, least: int, most: int) -> int:
        if given is None:
            return default
        if isinstance(given, float) and given.is_integer():
            given = int(given)
        try:
            number = operator.index(given)
        except TypeError:
            raise messages.wrong_argument(self._what, key, given, "a whole number") from None
        if not least <= number <= most:
            raise self._wrong(key, f"must be from {least} to {most}, got {number}")
        return number

    def _positive(self, key: str, given: float | None) -> float | None:
        if given is None:
            return None
        try:
            number = float(given)
        except (TypeError, ValueError):
            raise messages.wrong_argument(self._what, key, given, "a number") from None
        if not 0 < number < math.inf:
            raise self._wrong(key, f"must be positive and finite, got {number:g}")
        return number

    def _choice(self, key: str, given: Any, choices: Mapping[str, str | None]) -> str | None:
        if not isinstance(given, str):
            raise messages.wrong_argument(self._what, key, given, "a string")
        if given not in choices:
            named = [f'"{name}"' for name in choices if name]
            raise messages.not_one_of(self._what, key, named, given)
        return choices[given]

    def _wrong(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self._what, key, problem)

    # The data set

    def _open(self) -> Source:
        ffmpeg.load(self._what)
        source = open_source(
            self._what,
            "video",
            {"files": "filenames", "list": "file_list", "root": "file_root"},
            unreadable=self._unreadable,
            **self._files(),
            **self._clips,
        )
        self._tell(source)
        if not len(source):
            raise self._wrong("sequence_length", self._nothing())
        if self._clips["places"] == "every":
            clips = self._clips["clips"]
            self._sampling = RandomClips(source, clips, self._options.shuffle is not None)
        return source

    def _files(self) -> dict[str, Any]:
        """The options about files."""
        asked = self._asked
        given = {key: asked[key] for key in ("filenames", "file_root", "file_list")}
        named = [key for key, value in given.items() if not _is_empty(value)]
        if len(named) != 1:
            problem = (
                f"and `{named[1]}` both name the files; give one of them"
                if named
                else "is needed, unless there is `file_root` or `file_list`"
            )
            raise self._wrong(named[0] if named else "filenames", problem)
        labels = asked["labels"]
        if labels is not None and asked["filenames"] is None:
            raise self._wrong("labels", "needs `filenames` that they are the labels of")
        if asked["file_list"] is not None and named == ["file_list"]:
            listed = path(self._what, "file_list", asked["file_list"])
            return {"list": listed, **self._rules.meaning}
        if asked["file_root"] is not None and named == ["file_root"]:
            return {"root": path(self._what, "file_root", asked["file_root"])}
        names = paths(self._what, "filenames", asked["filenames"] or [])
        return {"files": names, "labels": self._labels(labels, len(names))}

    def _labels(self, labels: Any, count: int) -> list[int] | None:
        if labels is None:
            return None
        try:
            given = [operator.index(label) for label in np.atleast_1d(labels)]
        except TypeError:
            wanted = "an integer for each file"
            raise messages.wrong_argument(self._what, "labels", labels, wanted) from None
        if not given:
            return list(range(count))
        if len(given) != count:
            raise self._wrong("labels", f"has {len(given)} labels for {count} files")
        if not all(-(2**31) <= label < 2**31 for label in given):
            raise self._wrong("labels", "must fit into 32 bits")
        return given

    def _tell(self, source: Source) -> None:
        """Warn about files and lines that are left out."""
        skipped = source.skipped()
        files = [entry for entry in skipped if not entry[1]]
        lines = [entry for entry in skipped if entry[1]]
        if files:
            _, _, name, problem = files[0]
            left = "a file is left out, because it can't be read: "
            if len(files) > 1:
                left = f"{len(files)} files are left out, because they can't be read. The first: "
            call_sites.warn(
                f"{self._what}: {left}{name}: {sentence(problem)}. (With `on_error='raise'` that "
                "is an error.)"
            )
        if lines:
            _, line, text, _ = lines[0]
            call_sites.warn(
                f"{self._what}: lines of the list whose end is not after their start are left out: "
                f"{len(lines)}, the first one is line {line}: {text!r}."
            )

    def _nothing(self) -> str:
        clips = self._clips
        frames = (clips["length"] - 1) * clips["stride"] + 1
        if clips["room"] == "strides" and clips["places"] == "steps":
            frames = clips["length"] * clips["stride"]
        hint = "" if clips["pad"] != "none" else "; videos that are shorter can be padded"
        return f"asks for clips of {frames} frames, but no video has that many{hint}"


class RandomClips:
    """Draws a few clips of each video anew for each turn."""

    is_repeatable = True

    def __init__(self, source: Source, clips: int, is_shuffled: bool) -> None:
        ends = np.frombuffer(source.groups() or b"", np.int64)
        counts = np.diff(ends, prepend=0)
        # Videos that are too short have no clip to draw.
        self._counts = np.repeat(counts[counts > 0], clips)
        self._starts = np.repeat((ends - counts)[counts > 0], clips)
        self._is_shuffled = is_shuffled
        self.size = len(self._counts)

    def draw(self, seed: int, turn: int) -> Numbers:
        """The clips of a turn: a function of seed and turn."""
        # Raw bits, which are the same in all versions of NumPy.
        bits = np.random.Philox(key=np.array([seed & _MASK, turn], np.uint64))
        fractions = (bits.random_raw(self.size) >> np.uint64(11)) * 2.0**-53
        numbers: Numbers = self._starts + (fractions * self._counts).astype(np.int64)
        if self._is_shuffled:
            numbers = shuffled(numbers, self.size, seed, turn, SHUFFLE_STREAM)
        return numbers

    def forget(self) -> None:
        """Nothing is kept."""

    def fingerprint(self) -> bytes:
        """How many clips there are to draw from."""
        return b"clips %d" % self._is_shuffled + self._counts.tobytes()


def _is_empty(value: Any) -> bool:
    """Whether an argument is left at its default."""
    return value is None or (isinstance(value, str | list | tuple) and not value)
