"""Errors of decoders, and partial decoding."""

import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from tests.images import JPEGS, by_pillow, encoded, photograph

import penstock as ndd
from penstock.errors import DecodeError

PICTURE = photograph(93, 131)
JPEG = encoded(PICTURE, quality=90)


def claiming(height, width, file=JPEG):
    """A file whose header claims another size."""
    at = file.tobytes().index(b"\xff\xc0")
    made = file.copy()
    made[at + 5 : at + 9] = np.array([height, width], ">u2").view(np.uint8)
    return made


def text_of(file):
    with pytest.raises(DecodeError) as raised:
        ndd.decoders.image(file).evaluate()
    return str(raised.value)


def test_what_is_no_image_is_told_by_its_first_bytes():
    text = text_of(np.frombuffer(b"garbage in", np.uint8))
    assert "none of JPEG, PNG" in text
    assert "starts with 67 61 72 62 61 67 65 20" in text
    assert "the file is empty (0 bytes)" in text_of(np.zeros(0, np.uint8))


@pytest.mark.parametrize("file", [b"P6 0 5 255 ", b"P5 3 0 255 "])
def test_images_without_pixels_are_refused(file):
    file = np.frombuffer(file, np.uint8)
    assert "has no pixels" in text_of(file)
    with pytest.raises(DecodeError, match="has no pixels"):
        ndd.decoders.image_random_crop(file).evaluate()


def test_truncated_files_tell_the_row_where_they_end():
    text = text_of(JPEG[: len(JPEG) // 2])
    assert f"ends after {len(JPEG) // 2} bytes, at row" in text
    assert "of 93" in text
    assert "at " + __file__ in text
    assert "truncated" in text
    assert "hint: the file is truncated" in text
    # Whose `on_error`: that of a reader is about reading.
    assert '`decoders.image(..., on_error="skip")` drops samples like this one' in text


@pytest.mark.parametrize("options", [{"progressive": True}, {"mode": "CMYK"}], ids=str)
def test_truncated_files_without_rows_say_so_too(options):
    picture = np.dstack([PICTURE, PICTURE[..., 0]]) if "mode" in options else PICTURE
    file = encoded(picture, **options)
    assert "inside of its image data" in text_of(file[: len(file) // 2])


def test_a_header_alone_is_truncated():
    assert "inside of its header" in text_of(JPEG[:300])


def test_a_file_without_its_end_marker_is_truncated():
    assert "at row" in text_of(JPEG[:-2])


def test_headers_that_claim_far_too_much_are_refused():
    assert "far too few" in text_of(claiming(60000, 60000))


@pytest.mark.parametrize("side", [60000, 2**31 - 1])
def test_pngs_that_claim_far_too_much_tell_the_limit(side):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    file = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(99)))
    text = text_of(np.frombuffer(file + chunk(b"IEND", b""), np.uint8))
    assert f"{side} x {side} pixels; the limit is" in text
    assert "PENSTOCK_MAX_PIXELS" in text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: ndd.decoders.image_slice(JPEG, np.int32([0, 0]), np.int32([999, 9])),
            r"the window from 0 to 999 goes beyond axis 1 of the shape \[93, 131\]\.\n",
        ),
        (
            lambda: ndd.decoders.image_slice(JPEG, np.float32([np.nan, 0]), np.float32([0.5, 0.5])),
            "sample 0: the anchor and the shape give a window from nan to nan",
        ),
        (
            lambda: ndd.decoders.image_crop(JPEG, crop=[5, 5], rounding="x"),
            '`rounding` must be "round" or "truncate", got "x"',
        ),
    ],
)
def test_windows_that_can_not_be_are_told(call, text):
    with pytest.raises(RuntimeError, match=text) as raised:
        call().evaluate()
    assert "out_of_bounds_policy" not in str(raised.value)


@pytest.mark.parametrize("names", [3, None, [3], 1.5])
def test_what_is_no_file_name_is_refused_by_imread(names):
    with pytest.raises(TypeError, match=r"^imread: `filepaths` must be a file name"):
        ndd.imread(names)


def test_bits_of_more_than_a_byte_are_refused():
    file = np.fromfile(JPEGS / "12-bit.jpg", np.uint8)
    assert "12 bits per channel" in text_of(file)


def test_the_other_samples_of_a_batch_can_be_read():
    images = ndd.decoders.image(ndd.batch([JPEG, JPEG[:1000], JPEG]))
    assert np.array_equal(np.asarray(images.tensors[2]), by_pillow(JPEG))
    with pytest.raises(DecodeError, match="sample 1: this JPEG ends after 1000 bytes"):
        images.tensors[1].evaluate()


def test_images_larger_than_the_limit_are_refused():
    code = """
        import sys
        import numpy as np
        import penstock as ndd
        file = np.frombuffer(sys.stdin.buffer.read(), np.uint8)
        try:
            ndd.decoders.image(file).evaluate()
        except RuntimeError as error:
            print(error)
    """
    code = "\n".join(line[8:] for line in code.splitlines())
    for limit, expected in (("12182", "the limit is 12182"), ("12183", "")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=JPEG.tobytes(),
            capture_output=True,
            env={**os.environ, "PENSTOCK_MAX_PIXELS": limit},
            timeout=60,
            check=True,
        )
        text = done.stdout.decode()
        assert expected in text
        assert ("PENSTOCK_MAX_PIXELS" in text) == bool(expected)


def test_ink_is_as_pillow_has_it():
    file = encoded(np.dstack([PICTURE, PICTURE[..., 0]]), mode="CMYK", quality=90)
    ink = ndd.decoders.image(file, output_type=ndd.types.ANY_DATA)
    assert np.array_equal(np.asarray(ink), by_pillow(file))


@pytest.mark.parametrize("dtype", [ndd.float16, ndd.bfloat16, ndd.float64], ids=str)
def test_other_floats_go_to_1_too(dtype):
    made = ndd.decoders.image(JPEG, dtype=dtype)
    assert made.dtype == dtype
    exact = np.asarray(ndd.decoders.image(JPEG, dtype=ndd.float32))
    assert np.allclose(np.asarray(ndd.cast(made, dtype=ndd.float32)), exact, atol=4e-3)


def test_random_windows_are_the_same_with_the_same_seed():
    batch = ndd.batch([JPEG] * 5)
    one, two = (
        ndd.decoders.image_random_crop(batch, rng=ndd.random.RNG(3)).tensors for _ in range(2)
    )
    assert [t.shape for t in one] == [t.shape for t in two]
    assert len({t.shape for t in one}) > 1


def test_images_of_one_size_lie_side_by_side():
    images = ndd.decoders.image(ndd.batch([JPEG] * 3))
    assert np.array_equal(np.asarray(ndd.as_tensor(images)), np.stack([by_pillow(JPEG)] * 3))
