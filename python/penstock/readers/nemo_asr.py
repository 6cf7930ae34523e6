"""`readers.NemoAsr`: speech and its text, by manifests."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock._errors import messages
from penstock._errors.sentences import sentence
from penstock._operators import call_sites
from penstock._runtime.device import DeviceLike
from penstock._values.dtype import dtype as to_dtype
from penstock.errors import ArgumentError
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, paths
from penstock.readers._base.reader import Reader
from penstock.readers._base.source import Source, open_source

if TYPE_CHECKING:
    from typing_extensions import Unpack

DTYPES = {"f32": "float32", "i16": "int16", "i32": "int32"}


class NemoAsr(Reader):
    """Reads speech by manifests as NeMo has them, and decodes it as `decoders.audio` does.

    A manifest has a line of JSON for each utterance, with `audio_filepath`, and, if known,
    `duration` and `offset` (in seconds: the part of the file that is read) and `text`. The outputs
    are the samples; with `read_sample_rate` the rate of the file (a float32 without axes); with
    `read_text` the text (its UTF-8 as uint8); with `read_idxs` the number of the utterance (int64
    of shape (1,)). Lines that can't be used are left out, with a warning. A file may become 2**24
    samples and 1024 more for each of its bytes, and 2**30 at most; the environment variable
    PENSTOCK_MAX_AUDIO_SAMPLES sets another limit.

    Args:
        manifest_filepaths: The manifest, or several.
        downmix: Give the mean of the channels, of shape (time,); else (time, channels).
        dtype: The type of the samples: float32 (from -1 to 1), int16 or int32.
        max_duration: Leave out utterances that are longer, in seconds. 0 for no limit.
        min_duration: Leave out utterances that are shorter, in seconds.
        normalize_text: Without effect, and no longer used.
        quality: How well rates are converted, from 0 to 100.
        read_idxs: Give the numbers of the utterances.
        read_sample_rate: Give the rates of the files, which `sample_rate` does not change.
        read_text: Give the texts.
        sample_rate: Convert sounds to this rate, in Hz; by default they keep their own.
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        manifest_filepaths: Name | Sequence[Name],
        downmix: bool | None = None,
        dtype: Any = None,
        max_duration: float | None = None,
        min_duration: float | None = None,
        normalize_text: bool | None = None,
        quality: float | None = None,
        read_idxs: bool | None = None,
        read_sample_rate: bool | None = None,
        read_text: bool | None = None,
        sample_rate: float | None = None,
        **common: Unpack[Common],
    ) -> None:
        if normalize_text is not None:
            call_sites.warn(
                "readers.NemoAsr: `normalize_text` is no longer used; texts are given as they are.",
                DeprecationWarning,
            )
        self._manifests = manifest_filepaths
        self._dtype = dtype
        self._downmix = downmix is None or bool(downmix)
        self._most, self._least = max_duration, min_duration
        self._quality = quality
        self._indices = bool(read_idxs)
        self._rates = read_sample_rate is None or bool(read_sample_rate)
        self._texts = read_text is None or bool(read_text)
        self._sample_rate = sample_rate
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        try:
            dtype = to_dtype("float32" if self._dtype is None else self._dtype)
        except (TypeError, ValueError) as error:
            raise messages.in_operator(self._what, error, "dtype") from None
        if dtype.name not in DTYPES:
            allowed = ", ".join(DTYPES.values())
            raise self._wrong("dtype", f"must be one of {allowed}, got {dtype}")
        quality = self._number("quality", self._quality, 50.0)
        if not 0 <= quality <= 100:
            raise self._wrong("quality", f"must be from 0 to 100, got {quality:g}")
        rate = self._number("sample_rate", self._sample_rate, -1.0)
        most = self._number("max_duration", self._most, 0.0)
        least = self._number("min_duration", self._least, 0.0)
        names = paths(self._what, "manifest_filepaths", self._manifests)
        if not names:
            raise self._wrong("manifest_filepaths", "is empty")
        source = open_source(
            self._what,
            "nemo",
            {"files": "manifest_filepaths"},
            files=names,
            tolerant=self._options.on_error != "raise",
            min_duration=least if least > 0 else None,
            max_duration=most if most > 0 else None,
            dtype=dtype._code,
            downmix=self._downmix,
            sample_rate=rate if rate > 0 else None,
            quality=quality,
            rates=self._rates,
            texts=self._texts,
            numbers=self._indices,
        )
        skipped = source.skipped()
        if skipped:
            file, line, text, problem = skipped[0]
            call_sites.warn(
                f"{self._what}: {len(skipped)} lines of the manifests can't be used and are left "
                f"out; the first one: {names[file]}, line {line} {sentence(problem)}: {text!r}"
            )
        if not len(source):
            limits = [
                f"`{key}`"
                for key, limit in (("min_duration", least), ("max_duration", most))
                if limit > 0
            ]
            found = "has no line that can be used" if skipped else "names no sounds"
            if limits:
                found = f"names no sounds of the length that is asked for by {' and '.join(limits)}"
            raise self._wrong("manifest_filepaths", f"{found}: {', '.join(names)}")
        return source

    def _number(self, key: str, given: float | None, default: float) -> float:
        if given is None:
            return default
        try:
            number = float(given)
        except (TypeError, ValueError):
            raise messages.wrong_argument(self._what, key, given, "a number") from None
        if not math.isfinite(number):
            raise self._wrong(key, f"must be a finite number, got {number}")
        # In single precision, as in DALI: it matters for an utterance that is just as long.
        return _single(number)

    def _wrong(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self._what, key, problem)


def _single(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return number
