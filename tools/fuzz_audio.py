"""Decode many damaged sounds, and keep those that crash the process.

python tools/fuzz_audio.py                    # 100 000 files of all formats
python tools/fuzz_audio.py --count 2000 --only flac --seed 7

`tools/fuzzing.py` says what counts as harm.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.poison import audio_outcomes
from tests.sounds import corpus
from tools.fuzzing import Fuzzer


def decode(files: list[bytes]) -> None:
    """Decode files in several ways; failing to decode them is fine."""
    import penstock as ndd
    from penstock.errors import DecodeError

    batch = ndd.batch([np.frombuffer(file, np.uint8) for file in files])
    ways = (
        ndd.decoders.audio(batch),
        ndd.decoders.audio(batch, dtype=ndd.int16, start=0.03, duration=0.02),
        ndd.decoders.audio(batch, downmix=True, sample_rate=11025),
    )
    for samples, rates in ways:
        for sound, rate in zip(samples, rates, strict=True):
            try:
                sound.evaluate()
                rate.evaluate()
            except (DecodeError, MemoryError):
                pass


FUZZER = Fuzzer(
    script=__file__,
    summary="Decode many damaged sounds, and keep those that crash the process.",
    corpus=corpus(),
    decode=decode,
    outcomes=audio_outcomes,
    limits={"PENSTOCK_MAX_AUDIO_SAMPLES": str(1 << 20)},
)

if __name__ == "__main__":
    sys.exit(FUZZER.main())
