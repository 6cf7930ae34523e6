"""Limits on what files may claim, and files that need more memory than there is."""

import contextlib
import os
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.images import encoded, photograph

import penstock as ndd
from penstock.errors import DecodeError

ROOT = Path(__file__).parents[3]
PICTURE = photograph(60, 80)


def error_of(file, kind=DecodeError):
    with pytest.raises(kind) as raised:
        ndd.decoders.image(np.frombuffer(file, np.uint8)).evaluate()
    return str(raised.value)


def tiff(tags, data=b""):
    """A TIFF with these tags, in order, and data at its end; a list stands for its offset."""
    tags = {tag: value if isinstance(value, tuple) else (value,) for tag, value in tags.items()}
    entries, extra = [], b""
    after = 8 + 2 + 12 * len(tags) + 4
    for tag, values in sorted(tags.items()):
        packed = struct.pack(f"<{len(values)}I", *values)
        if len(values) > 1:
            packed, extra = struct.pack("<I", after + len(extra)), extra + packed
        entries.append(struct.pack("<HHI", tag, 4, len(values)) + packed)
    head = b"II*\0" + struct.pack("<IH", 8, len(tags)) + b"".join(entries) + bytes(4)
    return head + extra + data


def gif(canvas, frame=(1, 1), data=b"\x02\x02\x44\x01\x00"):
    head = b"GIF89a" + struct.pack("<HH", *canvas) + b"\x80\0\0" + bytes(3) + b"\xff" * 3
    return head + b"," + struct.pack("<HHHH", 0, 0, *frame) + b"\0" + data + b";"


def codestream(side, channels, *, tile=None, layers=1, precinct=None):
    """The headers of a JPEG 2000, and an empty tile."""
    grid = struct.pack(">8I", side, side, 0, 0, tile or side, tile or side, 0, 0)
    size = struct.pack(">H", 0) + grid + struct.pack(">H", channels) + b"\x07\1\1" * channels
    style = struct.pack(">BBHBBBBBB", precinct is not None, 0, layers, 0, 5, 4, 4, 0, 1)
    style += bytes([precinct] * 6) if precinct is not None else b""
    steps = b"\x40" + bytes([0x48] * 16)
    made = b"\xff\x4f"
    for marker, segment in ((b"\x51", size), (b"\x52", style), (b"\x5c", steps)):
        made += b"\xff" + marker + struct.pack(">H", len(segment) + 2) + segment
    return made + b"\xff\x90\0\x0a\0\0\0\0\0\0\0\1" + b"\xff\x93" + bytes(64) + b"\xff\xd9"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(height, width, color, chunks, data):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))
    rest = b"".join(chunk(*one) for one in chunks)
    idat = chunk(b"IDAT", zlib.compress(data))
    return b"\x89PNG\r\n\x1a\n" + head + rest + idat + chunk(b"IEND", b"")


SIZES = {256: 4096, 257: 4096, 258: 8, 262: 1}
BMP = encoded(PICTURE, "BMP").tobytes()
CLAIMS = {
    "gif": gif((16384, 16384)),
    "gif frame": gif((4000, 4000), (4000, 4000)),
    "tiff, 64 samples": tiff({**SIZES, 259: 8, 277: 64, 278: 4096, 273: 8, 279: 200}),
    "tiff, plain": tiff({**SIZES, 277: 1, 278: 4096, 273: 8, 279: 200}),
    "tiff, one tile": tiff({**SIZES, 256: 1, 257: 1, 322: 16000, 323: 16000, 324: 8, 325: 9}),
    "jpeg 2000, 255 channels": codestream(4096, 255),
    "jpeg 2000, tiles": codestream(2048, 3, tile=10),
    "ppm": b"P6 16000 16000 255 ",
    "bmp": BMP[:18] + struct.pack("<ii", 16000, 16000) + BMP[26:60],
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_that_a_file_can_not_hold_are_refused(claim):
    before = time.monotonic()
    text = error_of(CLAIMS[claim])
    assert "too short for its size" in text or "absurd tiles" in text
    assert time.monotonic() - before < 10


def test_all_that_is_allocated_counts():
    text = error_of(codestream(4096, 1, precinct=0x11))
    assert "4096 x 4096 pixels takes" in text
    assert "bytes to decode; the limit is" in text
    assert "PENSTOCK_MAX_PIXELS" in text


def test_small_pictures_on_a_large_canvas_are_decoded():
    image = np.asarray(ndd.decoders.image(np.frombuffer(gif((2000, 1500)), np.uint8)))
    assert image.shape == (1500, 2000, 3)


@pytest.mark.parametrize("order", [1, 2], ids=["plain", "reversed bits"])
def test_strips_that_share_their_bytes_do_not_take_forever(order):
    count = 50_000
    tags = {256: 8, 257: count, 258: 8, 259: 8, 262: 1, 266: order, 277: 1, 278: 1}
    file = tiff({**tags, 273: (8,) * count, 279: (1_600_000,) * count}, bytes(1_600_000))
    before = time.monotonic()
    assert "strips or tiles of" in error_of(file)
    assert time.monotonic() - before < 10


def test_strips_may_share_their_bytes():
    data = zlib.compress(bytes(range(64)))
    tags = {256: 64, 257: 40, 258: 8, 259: 8, 262: 1, 277: 1, 278: 1}
    start = 8 + 2 + 12 * 9 + 4 + 2 * 40 * 4
    file = tiff({**tags, 273: (start,) * 40, 279: (len(data),) * 40}, data)
    image = ndd.decoders.image(np.frombuffer(file, np.uint8), output_type=ndd.types.GRAY)
    assert np.array_equal(
        np.asarray(image)[..., 0], np.tile(np.arange(64, dtype=np.uint8), (40, 1))
    )


@pytest.mark.parametrize("frame", [(0, 0), (0, 5), (5, 0)], ids=str)
def test_gifs_with_an_empty_frame_are_damaged(frame):
    assert "this GIF has a frame without pixels" in error_of(gif((5, 5), frame))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 767, 768, 769, 771, 3 * 300])
@pytest.mark.parametrize("alpha", [0, 3, 256, 300])
def test_palettes_of_any_length_do_no_harm(length, alpha):
    chunks = [(b"PLTE", bytes(length))] + ([(b"tRNS", bytes(alpha))] if alpha else [])
    file = png(4, 4, 3, chunks, b"\0\1\2\3\xff" * 4)
    for output in (ndd.types.RGB, ndd.types.ANY_DATA):
        with contextlib.suppress(DecodeError):
            image = ndd.decoders.image(np.frombuffer(file, np.uint8), output_type=output)
            assert image.shape == (4, 4, 3)


LITTLE = """
import resource, sys
import numpy as np
from tests.images import encoded, photograph
import penstock as ndd

picture = np.tile(photograph(100, 100), (14, 14, 1))
gray = picture[..., 0]
files = {
    "png": encoded(picture, "PNG", compress_level=1),
    "png 16": encoded((gray * np.uint16(257)), "PNG", compress_level=1),
    "tiff": encoded(picture, "TIFF"),
    "tiff lzw": encoded(picture, "TIFF", compression="tiff_lzw"),
    "tiff jpeg": encoded(picture, "TIFF", compression="jpeg"),
    "gif": encoded(gray[..., None], "GIF"),
    "webp": encoded(picture, "WEBP", quality=80, method=0),
    "webp lossless": encoded(picture[:700], "WEBP", lossless=True, method=0, quality=0),
    "bmp": encoded(picture, "BMP"),
    "ppm": encoded(picture, "PPM"),
    "jpeg": encoded(picture),
    "jpeg progressive": encoded(picture, progressive=True),
    "jpeg 2000": encoded(picture[:700, :700], "JPEG2000", irreversible=True, quality_layers=[40]),
}
small = encoded(photograph(30, 40))
ways = {
    "image": {},
    "floats": {"dtype": ndd.float32, "output_type": ndd.types.ANY_DATA},
    "ycbcr": {"output_type": ndd.types.YCbCr},
}
ndd.decoders.image(small).evaluate()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
for name, file in files.items():
    for way, options in ways.items():
        batch = ndd.batch([file, small])
        for megabytes in (1.5, 3, 6, 8, 10, 14, 18, 24, 32, 48, 64, 96, 160, 300):
            with open("/proc/self/statm") as now:
                size = int(now.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + int(megabytes * 2**20), hard))
            images = ndd.decoders.image(batch, **options)
            try:
                images.tensors[0].evaluate()
                outcome = "made"
            except MemoryError as error:
                outcome = "no memory" if "out of memory" in str(error) else str(error)
            images.tensors[1].evaluate()
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            print(name, way, megabytes, outcome, sep=", ", flush=True)
            del images
            if outcome == "made":
                break
"""


def test_no_memory_is_an_error_of_the_sample_alone():
    done = subprocess.run(
        [sys.executable, "-c", LITTLE],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = [line.split(", ") for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    outcomes = [outcome for *_, outcome in lines]
    assert set(outcomes) == {"made", "no memory"}
    assert {name for name, *_, outcome in lines if outcome == "made"} == {
        name for name, *_ in lines
    }
    assert {name for name, *_, outcome in lines if outcome == "no memory"} >= {
        "png", "tiff", "gif", "webp", "bmp", "ppm", "jpeg progressive", "jpeg 2000",
    }  # fmt: skip


LARGE = """
import resource
import numpy as np
from tests.images import encoded
import penstock as ndd

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

file = encoded(np.zeros((2500, 2500, 3), np.uint8), progressive=True)
before = peak()
images = ndd.decoders.image(ndd.batch([file] * 16), output_type=ndd.types.GRAY)
assert not np.asarray(images.tensors[15]).any()
print(peak() - before)
"""


def test_large_images_take_turns():
    # The limit makes images decode one after another.
    done = subprocess.run(
        [sys.executable, "-c", LARGE],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_MAX_PIXELS": "6250000", "PENSTOCK_NUM_THREADS": "8"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # 16 results of 6 MB, coefficients of 38 MB for each that is decoded at the time.
    assert int(done.stdout) < 16 * 6 + 2 * 38
