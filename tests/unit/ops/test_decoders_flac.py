"""FLAC: bit-exact with libFLAC (through libsndfile) and FFmpeg, whatever an encoder chooses."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import soundfile
from tests.sounds import FLAC_32, KEPT, encoded, kept, signal, wide

import penstock as ndd
from penstock.errors import DecodeError

RATE = 16000
FRAMES = 9001  # two whole blocks, and a short one


def signals():
    """Sounds for which an encoder chooses different kinds of subframes."""
    rng = np.random.default_rng(0)
    t = np.arange(FRAMES) / RATE
    tone = 0.4 * np.sin(2 * np.pi * 300 * t) + 0.2 * np.sin(2 * np.pi * 1234 * t)
    noise = rng.standard_normal(FRAMES)
    steps = np.round(tone * 20) / 32
    return {
        "silence": np.zeros(FRAMES),
        "constant": np.full(FRAMES, -0.25),
        "loud noise": rng.uniform(-1, 1, FRAMES),
        "noise": 0.05 * noise,
        "tone": tone,
        "tone and noise": tone + 0.001 * noise,
        "ramp": np.linspace(-1, 1, FRAMES),
        "few bits": steps,
        "clicks": tone * 0.001 + (rng.uniform(size=FRAMES) < 0.001),
        "half silent": tone * (t > t[FRAMES // 2]),
        "extremes": np.where(np.arange(FRAMES) % 2, 1.0, -1.0),
    }


SIGNALS = signals()


def decode(file, **arguments):
    arguments.setdefault("dtype", ndd.int32)
    return np.asarray(ndd.decoders.audio(np.frombuffer(file, np.uint8), **arguments)[0])


def expected(file):
    return soundfile.read(io.BytesIO(file), dtype="int32", always_2d=True)[0]


def channels_of(signal, channels):
    """Alike, so that differences of channels are worth storing."""
    return np.stack([np.roll(signal, n) * (1 - 0.1 * n) for n in range(channels)], axis=1)


@pytest.mark.parametrize("level", [0.0, 0.3, 0.625, 1.0])
@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
@pytest.mark.parametrize("name", SIGNALS)
def test_samples_are_those_of_libflac(name, subtype, level):
    for channels in (1, 2):
        file = io.BytesIO()
        soundfile.write(
            *(file, channels_of(SIGNALS[name], channels), RATE, subtype),
            format="FLAC",
            compression_level=level,
        )
        data = file.getvalue()
        np.testing.assert_array_equal(decode(data), expected(data))


@pytest.mark.parametrize("channels", range(3, 9))
def test_more_channels(channels):
    file = encoded(channels_of(SIGNALS["tone and noise"], channels), RATE, "FLAC", "PCM_16")
    np.testing.assert_array_equal(decode(file), expected(file))
    part = decode(file, start=5000 / RATE, duration=1000 / RATE)
    np.testing.assert_array_equal(part, expected(file)[5000:6000])


@pytest.mark.parametrize("name", ["flac.ogg", "flac.mp4", "flac.mka"])
def test_other_containers(name):
    _, rate, channels, frames = KEPT[name]
    samples = np.round(signal(frames, channels, rate) * 32767)
    np.testing.assert_array_equal(decode(kept(name), dtype=ndd.int16), samples)


@pytest.mark.parametrize("name", FLAC_32)
def test_samples_of_32_bits(name):
    """The difference of two channels takes 33 bits then."""
    np.testing.assert_array_equal(decode(kept(name)), wide())


def test_a_seek_table_is_not_trusted():
    samples = np.random.default_rng(0).uniform(-0.1, 0.1, 300_000)
    file = encoded(samples, RATE, "FLAC", "PCM_16")
    whole = decode(file)
    # After STREAMINFO, which says that another block follows.
    points = [(0, 0), (100_000, 77), (200_000, 5), (250_000, 1 << 40), (2**64 - 1, 0)]
    table = b"".join(struct.pack(">QQH", *point, 4096) for point in points)
    table = struct.pack(">I", 3 << 24 | len(table)) + table
    tabled = file[:42] + table + file[42:]
    np.testing.assert_array_equal(decode(tabled), whole)
    for start in (99_999, 200_000, 249_000, 299_990):
        part = decode(tabled, start=start / RATE, duration=500 / RATE)
        np.testing.assert_array_equal(part, whole[start : start + 500])


def test_a_file_without_its_length():
    file = bytearray(encoded(SIGNALS["tone"], RATE, "FLAC", "PCM_16"))
    whole = decode(bytes(file))
    file[21] &= 0xF0
    file[22:26] = bytes(4)
    np.testing.assert_array_equal(decode(bytes(file)), whole)
    np.testing.assert_array_equal(decode(bytes(file) + b"TAG" + bytes(125)), whole)
    part = decode(bytes(file), start=0.25, duration=0.1)
    np.testing.assert_array_equal(part, whole[4000:5600])
    with pytest.raises(DecodeError, match=r"FLAC file ends too early, after 0\.512 s"):
        decode(bytes(file[:-10]))


def test_every_wrong_byte_is_found():
    """All but those that say nothing about the sound: of the header, and of tags."""
    file = encoded(SIGNALS["noise"][:5000], RATE, "FLAC", "PCM_16")
    first = file.index(b"\xff\xf8", 42)
    for at in range(first, len(file), 97):
        damaged = bytearray(file)
        damaged[at] ^= 0x10
        with pytest.raises(DecodeError, match="this FLAC file "):
            decode(bytes(damaged))
    for end in range(0, len(file), 501):
        with pytest.raises(DecodeError):
            decode(file[:end])
