"""Decoding audio: samples as in libsndfile, or as they were before encoding."""

import io
import re
import struct
import wave

import numpy as np
import pytest
import soundfile
from tests.sounds import KEPT, corpus, encoded, kept, signal

import penstock as ndd
from penstock.errors import DecodeError
from penstock.readers import File

PCM = {
    "WAV": ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"],
    "WAVEX": ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"],
    "RF64": ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"],
    "W64": ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"],
    "AU": ["PCM_S8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"],
    "AIFF": ["PCM_S8", "PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"],
    "NIST": ["PCM_S8", "PCM_16", "PCM_24", "PCM_32", "ULAW", "ALAW"],
    "CAF": [
        *("PCM_S8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"),
        *("ALAC_16", "ALAC_24", "ALAC_32"),
    ],
    "FLAC": ["PCM_S8", "PCM_16", "PCM_24"],
}
LOSSLESS = [(format, subtype) for format, subtypes in PCM.items() for subtype in subtypes]


def array(file):
    return np.frombuffer(file, np.uint8)


def decode(file, **arguments):
    """Samples and rate as NumPy has them."""
    samples, rate = ndd.decoders.audio(array(file), **arguments)
    return np.asarray(samples), float(np.asarray(rate))


def read(file, dtype="float32"):
    return soundfile.read(io.BytesIO(file), dtype=dtype, always_2d=True)[0]


@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize(("format", "subtype"), LOSSLESS)
def test_uncompressed_and_lossless_audio_is_bit_exact(format, subtype, channels):
    if "ALAC" in subtype and channels > 2:
        pytest.skip("libsndfile leaves channels in the order of ALAC, with the center first")
    loud = signal(1003, channels) * (1 / 0.6)
    file = encoded(np.clip(loud, -1, 1), 16000, format, subtype)
    samples, rate = decode(file)
    expected = read(file)  # in AIFF, an odd number of bytes gets one more
    assert (samples.dtype, samples.shape, rate) == (np.float32, expected.shape, 16000)
    assert len(expected) - 1003 in (0, 1)
    np.testing.assert_array_equal(samples, expected)
    if subtype not in ("FLOAT", "DOUBLE"):
        for dtype in ("int16", "int32"):
            made, _ = decode(file, dtype=dtype)
            assert made.dtype == dtype
            np.testing.assert_array_equal(made, read(file, dtype))


@pytest.mark.parametrize("frames", [0, 1, 2, 3, 16384, 16385, 40000])
@pytest.mark.parametrize(
    ("format", "subtype"), [("WAV", "PCM_16"), ("AIFF", "PCM_16"), ("CAF", "PCM_16")]
)
def test_any_number_of_frames(format, subtype, frames):
    file = encoded(signal(frames, 2), 8000, format, subtype)
    samples, _ = decode(file)
    assert samples.shape == (frames, 2)
    np.testing.assert_array_equal(samples, read(file))


@pytest.mark.parametrize("frames", [1, 2, 15, 4096, 40000])
def test_any_number_of_frames_of_flac(frames):
    file = encoded(signal(frames, 2), 8000, "FLAC", "PCM_16")
    np.testing.assert_array_equal(decode(file)[0], read(file))


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("subtype", ["MS_ADPCM", "IMA_ADPCM"])
def test_adpcm_has_whole_blocks(subtype, channels):
    file = encoded(signal(3001, channels), 16000, "WAV", subtype)
    samples, _ = decode(file)
    np.testing.assert_array_equal(samples, read(file))


LOSSY = [
    ("OGG", "VORBIS", 44100, 1),
    ("OGG", "VORBIS", 16000, 2),
    ("OGG", "OPUS", 8000, 1),
    ("OGG", "OPUS", 12000, 2),
    ("OGG", "OPUS", 16000, 1),
    ("OGG", "OPUS", 24000, 2),
    ("OGG", "OPUS", 48000, 2),
    ("OGG", "OPUS", 48000, 6),
    ("MP3", "MPEG_LAYER_III", 44100, 2),
    ("MP3", "MPEG_LAYER_III", 16000, 1),
    ("MP3", "MPEG_LAYER_III", 8000, 2),
]


@pytest.mark.parametrize(("format", "subtype", "rate", "channels"), LOSSY)
@pytest.mark.parametrize("frames", [100, 5003, 20011])
def test_lossy_audio_is_that_of_libsndfile(format, subtype, rate, channels, frames):
    file = encoded(signal(frames, channels, rate), rate, format, subtype)
    expected = read(file)
    samples, found = decode(file)
    assert found == rate
    assert samples.shape == expected.shape == (frames, channels)
    np.testing.assert_allclose(samples, expected, atol=1e-4)
    integers, _ = decode(file, dtype=ndd.int16)
    np.testing.assert_allclose(integers, samples.clip(-1, 1) * 32767, atol=0.51)


def shift(samples, source):
    """By how many frames the samples are late, and how far they are from the source otherwise."""
    middle = source[800:-800, 0]
    candidates = range(-700, 700)
    errors = [
        np.abs(samples[800 + by : 800 + by + len(middle), 0] - middle).mean() for by in candidates
    ]
    best = int(np.argmin(errors))
    return candidates[best], errors[best]


@pytest.mark.parametrize("name", ["mono.m4a", "stereo.m4a", "opus.webm"])
def test_what_encoders_add_is_cut(name):
    _, rate, channels, frames = KEPT[name]
    samples, found = decode(kept(name))
    source = signal(frames, channels, rate)
    assert (found, samples.shape) == (rate, source.shape)
    late, error = shift(samples, source)
    assert late == 0
    assert error < 0.03


def test_lossless_audio_in_other_containers_is_bit_exact():
    for name in ("alac.m4a", "flac.ogg"):
        _, rate, channels, frames = KEPT[name]
        samples, found = decode(kept(name), dtype=ndd.int16)
        expected = np.round(signal(frames, channels, rate) * 32767).astype(np.int16)
        assert found == rate
        np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize(
    ("name", "late"),
    # Nothing in these files tells of the encoder's delay.
    [("mono.aac", 1024), ("mono.mp2", 481), ("aac.mkv", 1024), ("vorbis.webm", 0)],
)
def test_formats_without_a_length(name, late):
    _, rate, channels, frames = KEPT[name]
    samples, found = decode(kept(name))
    source = signal(frames, channels, rate)
    assert (found, samples.shape[1]) == (rate, channels)
    assert frames + late <= len(samples) <= frames + late + 2048
    found_late, error = shift(samples[late:], source)
    assert (found_late, error < 0.03) == (0, True)


def test_mp3_in_wav():
    mp3 = encoded(signal(5000), 16000, "MP3")
    form = struct.pack("<HHIIHHH", 0x55, 1, 16000, 4000, 1, 0, 0)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", len(mp3)) + mp3
    file = b"RIFF" + struct.pack("<I", len(body)) + body
    np.testing.assert_array_equal(decode(file)[0], decode(mp3)[0])


@pytest.mark.parametrize("format", ["FLAC", "MP3"])
def test_tags_around_the_audio_are_skipped(format):
    file = encoded(signal(5000), 16000, format)
    tag = b"ID3\x04\0\0\0\0\x02\x00" + b"\xff\xfb" * 128
    ape = b"\xff\xfb\x90\x64" * 10 + b"APETAGEX" + struct.pack("<IIIIQ", 2000, 72, 1, 0, 0)
    end = ape + b"TAG" + bytes(125) if format == "MP3" else b""
    np.testing.assert_array_equal(decode(tag + file + end)[0], decode(file)[0])


def without_its_length(mp3):
    """An MP3 without its first frame, which tells the number of frames."""
    start = mp3.index(b"\xff", 4)
    while mp3[start : start + 2] != mp3[:2]:
        start = mp3.index(b"\xff", start + 1)
    return mp3[start:]


def test_mp3_without_a_length_is_decoded_to_its_end():
    # Loud at the start only: its frames are larger than the average, which is no good estimate.
    samples = np.concatenate([np.random.default_rng(0).uniform(-1, 1, 20000), np.zeros(60000)])
    file = encoded(samples, 16000, "MP3")
    found, _ = decode(without_its_length(file))
    assert len(found) >= 80000
    # The encoder's delay is unknown then.
    expected, _ = decode(file)
    [late] = [by for by in range(3000) if np.array_equal(found[by : by + 5000], expected[:5000])]
    np.testing.assert_array_equal(found[late : late + 80000], expected)


# Mixing, rates, types


def test_channels_are_mixed_with_equal_weights():
    file = encoded(signal(500, 3), 8000, "WAV", "PCM_16")
    mixed, _ = decode(file, downmix=True)
    assert mixed.shape == (500,)
    np.testing.assert_allclose(mixed, read(file).mean(axis=1), atol=1e-7)
    mono = encoded(signal(500), 8000, "WAV", "PCM_16")
    np.testing.assert_array_equal(decode(mono, downmix=True)[0], read(mono)[:, 0])


def test_floats_are_scaled_to_integers():
    file = encoded(np.array([0.5, -1.0, 2.0, np.nan]), 8000, "WAV", "FLOAT")
    assert decode(file, dtype=ndd.int16)[0].ravel().tolist() == [16384, -32767, 32767, 0]
    samples, _ = decode(file)
    assert samples.ravel()[:3].tolist() == [0.5, -1, 2]
    assert np.isnan(samples[3])


def test_rates_are_those_of_each_sample():
    files = [array(encoded(signal(800, rate=8000), 8000, "WAV", "PCM_16"))] * 3
    rates = ndd.batch([np.float32(16000), np.float32(0), np.float32(4000)])
    samples, found = ndd.decoders.audio(ndd.batch(files), sample_rate=rates)
    assert [sample.shape for sample in samples] == [(1600, 1), (800, 1), (400, 1)]
    assert [float(np.asarray(rate)) for rate in found] == [16000, 8000, 4000]


@pytest.mark.parametrize("rate", [0, -1.0])
def test_no_rate_means_that_of_the_file(rate):
    file = encoded(signal(800), 16000, "FLAC")
    samples, found = decode(file, sample_rate=rate)
    assert found == 16000
    np.testing.assert_array_equal(samples, read(file))


def test_a_slow_wave_keeps_its_shape_at_another_rate():
    wanted = np.sin(np.arange(4000) / 16000 * 2 * np.pi * 200) * 0.5
    file = encoded(wanted[::2], 8000, "WAV", "FLOAT")
    samples, _ = decode(file, sample_rate=16000, downmix=True)
    np.testing.assert_allclose(samples[100:-100], wanted[100:-100], atol=2e-3)


# Parts


@pytest.mark.parametrize("kind", corpus())
def test_a_part_is_that_part_of_the_whole(kind):
    file = corpus()[kind]
    whole, rate = decode(file)
    for first, count in [(0, 100), (17, 1), (333, 10_000), (len(whole), 5), (len(whole) + 9, None)]:
        arguments = {} if count is None else {"duration": count / rate}
        part, _ = decode(file, start=first / rate, **arguments)
        last = len(whole) if count is None else first + count
        np.testing.assert_array_equal(part, whole[first:last])


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [8000, 44100])
@pytest.mark.parametrize("format", ["WAV", "FLAC", "MP3", "OGG"])
def test_a_far_part_is_that_part_of_the_whole(format, rate, channels):
    noise = np.random.default_rng(0).uniform(-0.1, 0.1, (300_000, channels))
    file = encoded(signal(300_000, channels, rate) + noise, rate, format)
    whole, _ = decode(file)
    for first in (70_000, 123_456, 123_457, 250_000, 299_999):
        part, _ = decode(file, start=first / rate, duration=3000 / rate)
        np.testing.assert_array_equal(part, whole[first : first + 3000])


def test_a_far_part_of_a_small_mp3():
    """Of few bits per frame, so that the bits of one begin many frames before it."""
    samples = signal(400_000, rate=8000) * (np.arange(400_000) % 5000 < 2500)[:, None]
    file = io.BytesIO()
    with soundfile.SoundFile(
        *(file, "w", 8000, 1), format="MP3", bitrate_mode="CONSTANT", compression_level=0.99
    ) as writer:
        writer.write(samples)
    data = file.getvalue()
    whole, _ = decode(data)
    for first in range(70_000, 390_000, 33_333):
        part, _ = decode(data, start=first / 8000, duration=0.5)
        np.testing.assert_array_equal(part, whole[first : first + 4000])


def test_a_far_part_is_fast():
    """What is before a part is not decoded: damage there goes unnoticed."""
    file = bytearray(encoded(signal(300_000), 16000, "FLAC", "PCM_16"))
    whole, _ = decode(bytes(file))
    file[len(file) // 5] ^= 0x55
    with pytest.raises(DecodeError):
        decode(bytes(file))
    part, _ = decode(bytes(file), start=15, duration=1)
    np.testing.assert_array_equal(part, whole[240_000:256_000])


def test_parts_are_those_of_each_sample():
    file = encoded(signal(8000, rate=8000), 8000, "WAV", "PCM_16")
    whole = read(file)
    starts = ndd.batch([np.float32(0.25), np.float32(0.5)])
    lengths = ndd.batch([np.float64(0.125), np.float64(9)])
    batch = ndd.batch([array(file)] * 2)
    one, two = map(np.asarray, ndd.decoders.audio(batch, start=starts, duration=lengths)[0])
    np.testing.assert_array_equal(one, whole[2000:3000])
    np.testing.assert_array_equal(two, whole[4000:])


def test_a_part_is_resampled_after_it_was_cut():
    file = encoded(signal(8000, rate=8000), 8000, "WAV", "PCM_16")
    samples, rate = decode(file, start=0.5, duration=0.25, sample_rate=4000)
    assert (samples.shape, rate) == ((1000, 1), 4000)


# Damage


@pytest.mark.parametrize("kind", [kind for kind in corpus() if kind not in ("mp3", "mono.mp2")])
def test_a_file_that_ends_early_says_when(kind):
    file = corpus()[kind]
    whole, rate = decode(file)
    cut = file[: int(len(file) * 0.9)]
    with pytest.raises(DecodeError, match=r"this \S.* file ") as caught:
        decode(cut)
    text = str(caught.value)
    assert "bug" not in text
    for seconds in re.findall(r"after (\S+) s", text):
        assert 0 <= float(seconds) < len(whole) / rate


def test_an_mp3_that_ends_early_says_when():
    file = encoded(signal(50_000), 16000, "MP3")
    with pytest.raises(DecodeError, match=r"after 1\.\d+ s; its header claims 3\.125 s"):
        decode(file[: len(file) // 2])


def test_an_ogg_file_that_ends_early_is_not_empty():
    file = encoded(signal(400_000), 16000, "OGG", "VORBIS")
    with pytest.raises(DecodeError, match=r"Ogg file ends too early, after 1\d\.\d+ s"):
        decode(file[: len(file) * 2 // 3])
    with pytest.raises(DecodeError, match="Ogg file ends too early"):
        decode(file[:5000])


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_a_damaged_page_of_ogg_is_found(subtype):
    file = bytearray(encoded(signal(200_000), 16000, "OGG", subtype))
    file[len(file) // 2] ^= 1
    # At the end of the last good page, which may be seconds before.
    with pytest.raises(DecodeError, match=r"damaged at [2-6]\.\d+ s: a part is missing"):
        decode(bytes(file))


def test_damage_of_flac_is_found():
    file = bytearray(encoded(signal(160_000), 16000, "FLAC", "PCM_16"))
    file[len(file) // 2] ^= 0x40
    with pytest.raises(DecodeError, match=r"FLAC file is damaged at [3-6]\.\d+ s: "):
        decode(bytes(file))


def test_what_is_there_of_a_cut_wav_can_be_decoded():
    file = encoded(signal(16000), 16000, "WAV", "PCM_16")
    cut = file[: 44 + 16000]
    with pytest.raises(DecodeError, match=r"ends too early, after 0\.500 s; its header .* 1\.000"):
        decode(cut)
    assert decode(cut, duration=0.5)[0].shape == (8000, 1)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000])
def test_a_wav_from_a_pipe_has_no_size(size):
    file = bytearray(encoded(signal(100), 16000, "WAV", "PCM_16"))
    file[40:44] = struct.pack("<I", size)
    assert decode(bytes(file))[0].shape == (100, 1)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "too short"),
        (b"abc", "too short"),
        (b"hello, world", "unknown format: it starts with 68 65 6c 6c 6f 2c 20 77"),
        (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11" + bytes(99), "WMA"),
        (b"#!AMR\n" + bytes(99), "AMR"),
        (b"wvpk" + bytes(99), "WavPack"),
        (b"\x0b\x77" + bytes(99), "AC-3"),
        (kept("ac3.mp4"), "MP4 file is AC-3"),
        (encoded(signal(640), 8000, "WAV", "GSM610"), "WAV file is WAV with GSM 6.10"),
        (encoded(signal(640), 8000, "VOC", "PCM_16"), "VOC"),
        (encoded(signal(640, 6), 48000, "OGG", "VORBIS"), "Ogg file is Vorbis with more than two"),
    ],
)
def test_what_cannot_be_decoded_is_named(data, text):
    with pytest.raises(DecodeError, match=text) as caught:
        decode(data)
    if "short" not in text and "unknown" not in text:
        assert "convert it to FLAC or WAV" in str(caught.value)


def test_he_aac_is_named():
    file = bytearray(kept("mono.m4a"))
    config = file.index(b"\x05\x80\x80\x80", file.index(b"esds")) + 5
    assert file[config] >> 3 == 2
    file[config] = 5 << 3 | file[config] & 7
    with pytest.raises(DecodeError, match="MP4 file is HE-AAC, which can't be decoded; convert"):
        decode(bytes(file))


@pytest.mark.parametrize("channels", [3, 4, 5, 6, 7])
def test_aac_of_several_channels_is_refused(channels):
    file = bytearray(kept("mono.m4a"))
    config = file.index(b"\x05\x80\x80\x80", file.index(b"esds")) + 5
    file[config + 1] = file[config + 1] & 0b10000111 | channels << 3
    with pytest.raises(DecodeError, match="MP4 file is AAC with more than two channels"):
        decode(bytes(file))
    with pytest.raises(DecodeError, match="AAC file is AAC of a kind other than LC with one or"):
        decode(adts_of_channels(kept("mono.aac"), channels))


def adts_of_channels(file, channels):
    """Change the number of channels in the header of each frame."""
    made, at = bytearray(file), 0
    while at < len(made):
        made[at + 2] = made[at + 2] & 0b11111110 | channels >> 2
        made[at + 3] = made[at + 3] & 0b00111111 | (channels & 3) << 6
        at += (made[at + 3] & 3) << 11 | made[at + 4] << 3 | made[at + 5] >> 5
    return bytes(made)


@pytest.mark.parametrize("second", ["mono.ogg", "opus.ogg", "flac.ogg"])
@pytest.mark.parametrize("first", ["mono.ogg", "opus.ogg", "flac.ogg"])
def test_chained_streams_are_refused(first, second):
    # An encoder would give them different numbers, which makes no difference.
    with pytest.raises(DecodeError, match=r"Ogg file has another stream after 0\.[0-9]+ s"):
        decode(kept(first) + kept(second))


def test_the_start_of_chained_streams_can_be_decoded():
    file = kept("opus.ogg")
    samples, _ = decode(file + file, duration=0.1)
    np.testing.assert_array_equal(samples, decode(file, duration=0.1)[0])


def box(name, content):
    return struct.pack(">I", 8 + len(content)) + name + content


def test_apples_tag_counts_in_place_of_an_edit_list():
    file = kept("mono.m4a")
    expected, _ = decode(file)
    movie = file.index(b"moov") - 4
    assert file[movie:].startswith(struct.pack(">I", len(file) - movie))  # it is the last box
    bare = file.replace(b"edts", b"free")
    padded, _ = decode(bare)
    assert len(padded) > len(expected) == 7001
    text = f" 00000000 {1024:08X} {len(padded) - 1024 - 7001:08X} {7001:016X} 00000000".encode()
    names = box(b"mean", bytes(4) + b"com.apple.iTunes") + box(b"name", bytes(4) + b"iTunSMPB")
    item = box(b"----", names + box(b"data", struct.pack(">II", 1, 0) + text))
    tag = box(b"udta", box(b"meta", bytes(4) + box(b"ilst", item)))
    tagged = bytearray(bare.replace(b"udta", b"free") + tag)
    tagged[movie : movie + 4] = struct.pack(">I", len(tagged) - movie)
    np.testing.assert_array_equal(decode(bytes(tagged))[0], expected)


def test_errors_name_the_file_and_the_way_out(tmp_path):
    (tmp_path / "cut.flac").write_bytes(corpus()["flac"][:-100])
    [(data, _)] = File(files=[tmp_path / "cut.flac"]).next_epoch(batch_size=1)
    samples, _ = ndd.decoders.audio(data)
    with pytest.raises(DecodeError, match=r"sample 0: this FLAC file .*\n.*cut\.flac") as caught:
        samples.evaluate()
    assert 'decoders.audio(..., on_error="skip")' in str(caught.value)


def test_bad_samples_are_dropped_or_replaced():
    good = [array(encoded(signal(n), 8000, "WAV", "PCM_16")) for n in (10, 20, 30)]
    batch = ndd.batch([good[0], array(b"junk" * 9), good[1], good[2][:60]])
    labels = ndd.batch([np.int32(n) for n in range(4)])
    samples, rates, kept = ndd.decoders.audio(batch, on_error="skip", along=labels)
    assert [s.shape for s in samples] == [(10, 1), (20, 1)]
    assert [float(np.asarray(r)) for r in rates] == [8000, 8000]
    assert [int(np.asarray(k)) for k in kept] == [0, 2]
    samples, rates = ndd.decoders.audio(batch, on_error="substitute")
    assert [s.shape for s in samples] == [(10, 1), (20, 1), (20, 1), (10, 1)]
    assert rates.batch_size == 4
    samples, _ = ndd.decoders.audio(batch, on_error="raise")
    with pytest.raises(DecodeError):
        samples.evaluate()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"dtype": ndd.uint8}, (TypeError, ValueError)),
        ({"quality": 101}, ValueError),
        ({"quality": -1}, ValueError),
        ({"start": -0.1}, ValueError),
        ({"duration": -1}, ValueError),
        ({"start": np.float32(-1)}, (RuntimeError, ValueError)),
        ({"start": ndd.tensor(np.float32("nan"))}, RuntimeError),
        ({"duration": ndd.tensor(np.float32(-2))}, RuntimeError),
        ({"sample_rate": float("nan")}, RuntimeError),
        ({"sample_rate": 1e12}, DecodeError),
    ],
)
def test_arguments_are_checked(arguments, error):
    name = next(iter(arguments))
    with pytest.raises(error, match="limit" if error is DecodeError else name):
        decode(corpus()["wav 16"], **arguments)


@pytest.mark.parametrize("data", [np.zeros((3, 3), np.uint8), np.zeros(9, np.float32)])
def test_input_is_bytes(data):
    with pytest.raises(RuntimeError, match="encoded audio must be one-dimensional uint8"):
        ndd.decoders.audio(data)[0].evaluate()


# Batches and devices


def test_from_files_to_a_tensor(tmp_path):
    lengths = [300, 500, 200, 400]
    for number, frames in enumerate(lengths):
        kind = ("wav", "flac")[number % 2]
        soundfile.write(tmp_path / f"{number}.{kind}", signal(frames), 8000)
    reader = File(file_root=str(tmp_path.parent), files=sorted(map(str, tmp_path.iterdir())))
    [(data, _)] = reader.next_epoch(batch_size=4)
    samples, rates = ndd.decoders.audio(data, downmix=True)
    padded = samples.torch(pad=True)
    assert tuple(padded.shape) == (4, 500)
    assert rates.torch().tolist() == [8000] * 4
    for row, frames in zip(padded, lengths, strict=True):
        np.testing.assert_allclose(row[:frames], signal(frames)[:, 0], atol=1e-4)
        assert not row[frames:].any()


def test_an_empty_batch():
    samples, rates = ndd.decoders.audio(ndd.batch([], dtype=ndd.uint8))
    assert (samples.batch_size, rates.batch_size) == (0, 0)


@pytest.mark.filterwarnings("ignore:.*gpu")
def test_the_gpu_gives_the_same():
    for kind in ("wav 16", "flac", "opus.ogg"):
        on_cpu, expected = decode(corpus()[kind])
        samples, rate = ndd.decoders.audio(array(corpus()[kind]), device="gpu")
        assert samples.device.device_type == "gpu"
        np.testing.assert_array_equal(np.asarray(samples.cpu()), on_cpu)
        assert float(np.asarray(rate.cpu())) == expected


def test_python_writes_what_is_read():
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(22050)
        writer.writeframes(np.int16([1, -2, 3]).tobytes())
    samples, rate = decode(file.getvalue(), dtype=ndd.int16)
    assert (samples.tolist(), rate) == ([[1], [-2], [3]], 22050)
