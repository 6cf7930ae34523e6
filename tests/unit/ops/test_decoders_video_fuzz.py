"""Damaged videos give errors or frames, never a crash, a hang or a huge allocation.

Files are decoded in a process of their own: FFmpeg parses them, which is not ours to guarantee.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.fuzz_video import NAMES

ROOT = Path(__file__).parents[3]

CODE = """
import sys
import numpy as np
import penstock as ndd
from penstock.errors import DecodeError
from tests.mutations import mutate
from tests.videos import video

name = sys.argv[1]
rng = np.random.default_rng(len(name))
told = []
files = [mutate(video(name), rng) for _ in range(40)]
batch = ndd.batch([np.frombuffer(file, np.uint8) for file in files])
for way in ({}, {"frames": [20, 3], "pad_mode": "edge"}, {"stride": 5, "size": [32, 40]}):
    for frames in ndd.decoders.video(batch, **way):
        try:
            assert np.asarray(frames).ndim == 4
        except DecodeError as error:
            told.append(str(error))
assert not any("bug" in text for text in told), told
print(len(told))
"""


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_errors_or_frames(name):
    done = subprocess.run(
        [sys.executable, "-c", CODE, name],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_VIDEO_TIMEOUT": "10", "PENSTOCK_MAX_PIXELS": str(1 << 20)},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Some of them must have been damaged, or this has tested nothing.
    assert 5 < int(done.stdout) < 120
