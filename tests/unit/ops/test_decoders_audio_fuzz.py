"""Damaged sounds give errors or samples, never a crash, a hang or a huge allocation."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.mutations import mutate
from tests.sounds import corpus

import penstock as ndd
from penstock.errors import DecodeError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", corpus())
def test_damaged_files_are_errors_or_sounds(kind):
    rng = np.random.default_rng(len(kind))
    files = [mutate(corpus()[kind], rng) for _ in range(120)]
    batch = ndd.batch([np.frombuffer(file, np.uint8) for file in files])
    for samples, rates in (
        ndd.decoders.audio(batch),
        ndd.decoders.audio(batch, dtype=ndd.int16, start=0.03, duration=0.02),
        ndd.decoders.audio(batch, dtype=ndd.int32, downmix=True),
    ):
        for sound, rate in zip(samples, rates, strict=True):
            with contextlib.suppress(DecodeError):
                assert np.asarray(sound).ndim in (1, 2)
                assert float(np.asarray(rate)) > 0


@pytest.mark.parametrize("kind", corpus())
def test_files_cut_anywhere_are_errors_or_sounds(kind):
    file = corpus()[kind]
    places = range(0, len(file), max(len(file) // 60, 1))
    batch = ndd.batch([np.frombuffer(file[:end], np.uint8) for end in places])
    samples, _ = ndd.decoders.audio(batch)
    told = []
    for sound in samples:
        try:
            np.asarray(sound)
        except DecodeError as error:
            told.append(str(error))
    assert not any("bug" in text for text in told)
    # ADTS and MP2 have no length, and are whole at the end of any packet. What comes after the
    # samples of other files may be missing.
    assert len(told) >= {"mono.mp2": 1, "mono.aac": 30}.get(kind, len(places) - 3)


def test_a_few_of_the_long_run():
    """`make fuzz-audio` has 100 000 of them."""
    done = subprocess.run(
        [sys.executable, "tools/fuzz_audio.py", "--count", "60", "--chunk", "30", "--only", "wav"],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 harmful" in done.stdout


def test_results_do_not_depend_on_what_was_in_memory():
    code = """
import sys
import numpy as np
from tests.mutations import mutate
from tests.poison import audio_outcomes
from tests.sounds import corpus

files = [
    (f"{kind} {number}", mutate(corpus()[kind], np.random.default_rng([at, number])))
    for at, kind in enumerate(corpus())
    for number in range(12)
]
print("\\n".join(audio_outcomes(files, int(sys.argv[1]))))
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, str(value)],
            cwd=ROOT,
            env={**os.environ, "MALLOC_PERTURB_": str(value)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.splitlines()
        for value in (0x11, 0xEE)
    ]
    assert len(outputs[0]) > 500
    assert sum("Error" not in line for line in outputs[0]) > 50
    assert outputs[0] == outputs[1]
