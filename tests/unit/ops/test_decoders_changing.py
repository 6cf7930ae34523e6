"""Bytes that are modified while they are decoded give errors or images, never a crash."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import contextlib, sys, tempfile, threading, time
import numpy as np
from tests.images import encoded, photograph
import penstock as ndd
from penstock.errors import DecodeError

kind, memory = sys.argv[1:]
small, large = (encoded(photograph(*size), kind) for size in ((16, 24), (300, 400)))
length = max(len(small), len(large))
small, large = (np.pad(file, (0, length - len(file))) for file in (small, large))
if kind == "JPEG":  # with an end marker in the expected place
    for file in (small, large):
        file[-2:] = 0xFF, 0xD9
if memory == "map":
    shared = np.memmap(tempfile.NamedTemporaryFile(), np.uint8, "w+", shape=(length,))
else:
    shared = np.zeros(length, np.uint8)
ended = False

def write():
    while not ended:
        shared[:] = small
        shared[:] = large

writer = threading.Thread(target=write)
writer.start()
until = time.monotonic() + 0.7
decoded = failed = 0
while time.monotonic() < until:
    for _ in range(5):
        for decode in (ndd.decoders.image, ndd.peek_image_shape, ndd.decoders.image_random_crop):
            try:
                decode(ndd.as_tensor(shared)).evaluate()
                decoded += 1
            except DecodeError:
                failed += 1
ended = True
writer.join()
assert decoded + failed > 20
"""


@pytest.mark.heavy
@pytest.mark.parametrize("memory", ["array", "map"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_bytes_may_change_while_they_are_decoded(kind, memory):
    done = subprocess.run(
        [sys.executable, "-c", CODE, kind, memory],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
