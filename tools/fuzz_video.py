"""Decode many damaged videos, and keep those that crash the process.

python tools/fuzz_video.py                    # 100 000 files of all containers
python tools/fuzz_video.py --count 2000 --only mp4 --seed 7

`tools/fuzzing.py` says what counts as harm.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.poison import video_outcomes
from tests.videos import CORPUS, fields, video, write
from tools.fuzzing import Fuzzer

NAMES = (
    *("h264.mp4", "h264-bframes.mkv", "h264-fragments.mp4", "h264.ts", "h264.flv"),
    *("hevc.mp4", "vp8.ivf", "vp9.webm", "av1.mp4", "mjpeg.avi", "mpeg4-bframes.avi"),
    *("mpeg2.mpg", "theora.ogv", "prores.mov"),
)
"""A file for each container, and for each codec that is common."""

HEARD = {"h264.mp4": "aac", "h264-bframes.mkv": "flac", "h264.ts": "aac", "mjpeg.avi": "pcm_s16le"}
"""Those that get a sound, and its codec."""


def corpus() -> dict[str, bytes]:
    """The files, shorter and with smaller frames: more of the damage is in their structure."""
    made = {}
    for name in NAMES:
        if name not in CORPUS:
            made[name] = video(name)
            continue
        sound = {"sound": HEARD[name]} if name in HEARD else {}
        # Encoders of some codecs want a certain size.
        small = {"frames": 10, "gop": 5, "size": (64, 96)} if "av1" not in name else {"frames": 10}
        made[name] = write(name, replace(CORPUS[name], **small, **sound))
    made["fields.mkv"] = fields("matroska", frames=6)
    return made


def decode(files: list[bytes]) -> None:
    """Decode files in several ways; failing to decode them is fine."""
    import penstock as ndd
    from penstock.errors import DecodeError

    batch = ndd.batch([np.frombuffer(file, np.uint8) for file in files])
    ways = (
        lambda: ndd.decoders.video(batch),
        lambda: ndd.decoders.video(batch, frames=[17, 4, 4, 28], pad_mode="edge"),
        lambda: ndd.decoders.video(batch, start_time=0.2, fps=10, sequence_length=4, size=[48, 64]),
    )
    for way in ways:
        # One at a time, since results of all files take too much memory.
        for frames in way():
            try:
                frames.evaluate()
            except (DecodeError, MemoryError, ValueError):
                pass
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about files that are left out
        paths = [Path(folder) / str(number) for number in range(len(files))]
        for path, file in zip(paths, files, strict=True):
            path.write_bytes(file)
        try:
            reader = ndd.readers.Video(
                filenames=paths,
                sequence_length=4,
                clips_per_video=2,
                pad_sequences=True,
                size=[24, 32],
                audio=True,
                audio_sample_rate=8000,
                on_error="skip",
            )
            for outputs in reader.next_epoch():
                [output.evaluate() for output in outputs]
        except (MemoryError, ValueError, OSError):
            pass


FUZZER = Fuzzer(
    script=__file__,
    summary="Decode many damaged videos, and keep those that crash the process.",
    corpus=corpus(),
    decode=decode,
    outcomes=video_outcomes,
    limits={"PENSTOCK_MAX_PIXELS": str(1 << 20), "PENSTOCK_VIDEO_TIMEOUT": "10"},
)

if __name__ == "__main__":
    sys.exit(FUZZER.main())
