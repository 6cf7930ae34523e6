"""Results never contain uninitialized memory, such as pixels of other images."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.images import by_pillow, encoded, photograph

import penstock as ndd
from penstock.errors import DecodeError

ROOT = Path(__file__).parents[3]
FILES = 100
"""Of each kind: 1,400 JPEGs and as many others, in four ways."""


@pytest.mark.heavy
def test_results_do_not_depend_on_what_was_in_memory():
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.poison", str(value), "5", str(FILES)],
            cwd=ROOT,
            # The system's allocator fills its memory as well, with the complement.
            env={**os.environ, "MALLOC_PERTURB_": str(value)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for value in (0x11, 0xEE)
    ]
    one, other = (process.communicate(timeout=120)[0].splitlines() for process in running)
    assert [process.returncode for process in running] == [0, 0]
    assert len(one) == len(other) > 4000
    assert sum("Error" not in line for line in one) > 1000
    different = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    assert not different
    assert not any("Internal" in line for line in one)


def with_marker(file, marker):
    """A JPEG with an invalid marker in its last scan."""
    start = file.tobytes().rindex(b"\xff\xda") + 20
    return np.insert(file, [start], np.frombuffer(b"garbage" + marker, np.uint8))


PICTURE = photograph(64, 80)


@pytest.mark.parametrize("marker", [b"\xff\xc0\x00\x03\x00", b"\xff\xc4\x00\x04\xff\xff"], ids=str)
def test_an_error_after_a_warning_is_an_error(marker):
    file = with_marker(encoded(PICTURE, quality=90, progressive=True), marker)
    shape = np.int32([0, 0]), np.int32([70, 60])
    for decode in (
        ndd.decoders.image,
        lambda file: ndd.decoders.image_crop(file, crop=[60, 70]),
        lambda file: ndd.decoders.image_slice(file, *shape),
    ):
        with pytest.raises(DecodeError, match="this JPEG has bad data"):
            decode(file).evaluate()


def test_files_with_mere_warnings_are_decoded_as_elsewhere():
    file = encoded(PICTURE, quality=90).tobytes()
    end = file.rindex(b"\xff\xd9")
    # Surplus bytes before the end, and a flipped bit.
    extraneous = file[:end] + b"\x00\x11\x22" + file[end:]
    flipped = bytearray(file)
    flipped[end - 300] ^= 8
    for warned in (extraneous, bytes(flipped)):
        warned = np.frombuffer(warned, np.uint8)
        assert np.array_equal(np.asarray(ndd.decoders.image(warned)), by_pillow(warned))
