"""Sounds for tests: made here, or kept in `tests/data/sounds` where no package writes the format.

python -m tests.sounds    # writes the kept ones anew, with PyAV
"""

from __future__ import annotations

import functools
import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent / "data" / "sounds"

Samples = npt.NDArray[np.float64]


def signal(frames: int, channels: int = 1, rate: int = 16000) -> Samples:
    """A sound that is unlike itself at any other time: (frames, channels) between -0.6 and 0.6."""
    time = np.arange(frames) / rate
    sweep = np.sin(2 * np.pi * (200 + 900 * time) * time)
    beats = np.sin(2 * np.pi * 431 * time) * np.sin(2 * np.pi * 7 * time)
    return np.stack([0.4 * sweep + 0.2 * beats * (-1) ** n for n in range(channels)], axis=-1)


def encoded(samples: Samples, rate: int, format: str, subtype: str | None = None) -> bytes:
    """The file that libsndfile writes."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=format, subtype=subtype)
    made = file.getvalue()
    at = made.find(b"PEAK")
    # The time of writing, which would make each file another one.
    return made if at < 0 else made[: at + 12] + bytes(4) + made[at + 16 :]


KEPT = {
    "mono.m4a": ("aac", 16000, 1, 7001),
    "stereo.m4a": ("aac", 44100, 2, 9001),
    "mono.aac": ("aac", 16000, 1, 7001),
    "alac.m4a": ("alac", 16000, 2, 1501),
    "flac.ogg": ("flac", 16000, 2, 3001),
    "flac.mp4": ("flac", 16000, 2, 3001),
    "flac.mka": ("flac", 16000, 1, 3001),
    "mono.mp2": ("mp2", 16000, 1, 5001),
    "opus.ogg": ("libopus", 16000, 2, 5001),
    "opus.webm": ("libopus", 16000, 1, 7001),
    "vorbis.webm": ("vorbis", 16000, 2, 7001),
    "aac.mkv": ("aac", 16000, 1, 5001),
    "ac3.mp4": ("ac3", 32000, 1, 3001),
}
"""Files that are kept: encoder, rate, channels and frames of the signal inside."""


FLAC_32 = {
    "wide_indep.flac": {"ch_mode": "indep"},
    "wide_left_side.flac": {"ch_mode": "left_side"},
    "wide_right_side.flac": {"ch_mode": "right_side"},
    "wide_mid_side.flac": {"ch_mode": "mid_side"},
    "wide_order_32.flac": {"lpc_type": "cholesky", "max_prediction_order": "32"},
}
"""Files of `wide()` that are kept, and options of FFmpeg's encoder."""


def wide() -> Samples:
    """A walk near the largest number of 32 bits, and its negative."""
    steps = np.random.default_rng(0).integers(-(2**18), 2**18, 601)
    walk = np.cumsum(steps)
    walk += 2**31 - 2**28 - int(walk.mean())
    return np.stack([walk, -walk], axis=1).astype(np.int32)


def kept(name: str) -> bytes:
    """A file that is kept."""
    return (FOLDER / name).read_bytes()


@functools.cache
def corpus() -> dict[str, bytes]:
    """Small files of all formats; the same bytes each time."""
    short, stereo = signal(600, rate=8000), signal(600, 2, rate=8000)
    made = {
        "wav 16": encoded(stereo, 8000, "WAV", "PCM_16"),
        "wav 24": encoded(short, 8000, "WAV", "PCM_24"),
        "wav float": encoded(stereo, 8000, "WAV", "FLOAT"),
        "wav mu-law": encoded(short, 8000, "WAV", "ULAW"),
        "wav extensible": encoded(stereo, 8000, "WAVEX", "PCM_16"),
        "wav adpcm ms": encoded(stereo, 8000, "WAV", "MS_ADPCM"),
        "wav adpcm ima": encoded(short, 8000, "WAV", "IMA_ADPCM"),
        "rf64": encoded(short, 8000, "RF64", "PCM_16"),
        "w64": encoded(stereo, 8000, "W64", "PCM_16"),
        "au": encoded(stereo, 8000, "AU", "PCM_16"),
        "aiff": encoded(stereo, 8000, "AIFF", "PCM_24"),
        "aiff float": encoded(short, 8000, "AIFF", "FLOAT"),
        "sphere": encoded(short, 8000, "NIST", "PCM_16"),
        "caf": encoded(stereo, 8000, "CAF", "PCM_16"),
        "caf alac": encoded(stereo, 8000, "CAF", "ALAC_16"),
        "flac": encoded(stereo, 8000, "FLAC", "PCM_16"),
        "flac 24": encoded(short, 8000, "FLAC", "PCM_24"),
        "ogg vorbis": kept("mono.ogg"),
        "mp3": encoded(stereo, 8000, "MP3", "MPEG_LAYER_III"),
    }
    return made | {name: kept(name) for name in KEPT if name != "ac3.mp4"}


def _write(name: str, codec: str, rate: int, channels: int, frames: int) -> None:
    import av  # type: ignore[import-not-found]

    samples = signal(frames, channels, rate)
    layout = "mono" if channels == 1 else "stereo"
    kind = {"aac": "flt", "mp2": "s16", "alac": "s16p", "flac": "s16", "libopus": "flt"}
    options = {"fflags": "+bitexact"}
    with av.open(str(FOLDER / name), "w", options=options) as file:
        stream = file.add_stream(codec, rate=rate, layout=layout)
        stream.codec_context.options = {"strict": "experimental"}  # for the encoder of Vorbis
        stream.codec_context.flags |= av.codec.context.Flags.bitexact
        if codec in ("aac", "libopus", "mp2", "ac3"):
            stream.bit_rate = 32000 * channels**2
        wanted = kind.get(codec, "fltp")
        dtype = np.int16 if wanted.startswith("s16") else np.float32
        made = np.round(samples * 32767).astype(dtype) if dtype == np.int16 else samples
        made = made.astype(dtype)
        planes = made.T if wanted.endswith("p") else made.reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(planes), wanted, layout)
        frame.sample_rate = rate
        resampler = av.AudioResampler(format=stream.codec_context.format, layout=layout, rate=rate)
        size = stream.codec_context.frame_size or 1024
        fifo = av.AudioFifo()
        for part in resampler.resample(frame):
            fifo.write(part)
        parts = []
        while (part := fifo.read(size, partial=True)) is not None:
            parts.append(part)
        for part in (*parts, None):
            file.mux([packet for packet in stream.encode(part) if packet.size])


def _write_wide(name: str, options: dict[str, str]) -> None:
    import av

    with av.open(str(FOLDER / name), "w", options={"fflags": "+bitexact"}) as file:
        stream = file.add_stream("flac", rate=16000, layout="stereo")
        stream.codec_context.options = {"strict": "experimental", **options}
        stream.codec_context.format = "s32"
        stream.codec_context.open()
        frame = av.AudioFrame.from_ndarray(wide().reshape(1, -1), "s32", "stereo")
        frame.sample_rate = 16000
        for part in (frame, None):
            file.mux([packet for packet in stream.encode(part) if packet.size])


if __name__ == "__main__":
    for each, options in FLAC_32.items():
        _write_wide(each, options)
    for each, (codec, rate, channels, frames) in KEPT.items():
        _write(each, codec, rate, channels, frames)
