"""The sound beside the frames of clips: which samples, and at which time."""

from __future__ import annotations

import io

import numpy as np
import pytest
from tests import videos
from tests.sounds import signal
from tests.videos import Made

import penstock as ndd
from penstock.experimental.readers import Video as Experimental
from penstock.readers import Video, VideoResize

RATE = 44100
FRAMES = 60
SMALL = {"frames": FRAMES, "size": (64, 96)}


def made(sound, codec="libx264", seconds=None, rate=RATE, **options):
    options = {"options": videos.VP, **options} if codec == "libvpx" else options
    return Made(codec, sound=sound, heard=(rate, 2, seconds), **SMALL, **options)


LOSSLESS = {
    "pcm.mkv": made("pcm_s16le"),
    "pcm.mov": made("pcm_s16le"),
    "pcm.mp4": made("pcm_s16le"),
    "pcm.avi": made("pcm_s16le"),
    "flac.mkv": made("flac"),
    "flac.mp4": made("flac", b_frames=2),
}
LOSSY = {
    "aac.mp4": made("aac"),
    "aac.mkv": made("aac", b_frames=2),
    "aac.mov": made("aac"),
    "aac.ts": made("aac"),
    "aac.flv": made("aac"),
    "aac-fragments.mp4": made("aac", container=videos.FRAGMENTS),
    "ac3.mp4": made("ac3"),
    "mp3.mkv": made("libmp3lame"),
    "mp3.avi": made("libmp3lame"),
    "opus.webm": made("libopus", codec="libvpx", rate=48000),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Writes a file, once, and returns its path."""
    folder = tmp_path_factory.mktemp("heard")

    def save(name, how=None):
        path = folder / name
        if not path.exists():
            path.write_bytes(videos.write(name, how or {**LOSSLESS, **LOSSY}[name]))
        return path

    return save


def in_a_row(path):
    """All samples that PyAV decodes one after the other, where they begin, and their rate.

    Where a tick of the file is longer than a sample, the beginning is only known up to that.
    """
    import av

    with av.open(str(path)) as container:
        frames = list(container.decode(audio=0))
    parts = []
    for frame in frames:
        part = frame.to_ndarray()
        channels = len(frame.layout.channels)
        part = part.T if frame.format.is_planar else part.reshape(-1, channels)
        scale = 2.0 ** (8 * part.itemsize - 1) if part.dtype.kind == "i" else 1
        parts.append((part / scale).astype(np.float32))
    rate = frames[0].sample_rate
    return np.concatenate(parts), frames[0].time * rate, rate


def placed(samples, start, first, count):
    """Samples of a sound that begins at a place, as from another one on; silent elsewhere."""
    out = np.zeros((count, samples.shape[1]), np.float32)
    low, high = max(first, start), min(first + count, start + len(samples))
    if low < high:
        out[low - first : high - first] = samples[low - start : high - start]
    return out


def heard(path, kind=Video, length=7, step=5, **options):
    """The sounds of all clips, and the places at which they should begin."""
    reader = kind(
        filenames=str(path),
        sequence_length=length,
        step=step,
        audio=True,
        enable_timestamps=True,
        **options,
    )
    start = ndd.io.video_info(path).start
    return [(np.asarray(sound), start + float(times[0])) for _, times, sound in reader.next_epoch()]


@pytest.mark.parametrize("name", LOSSLESS)
def test_sound_without_loss_is_the_signal_that_was_written(file, name):
    samples = np.trunc(signal(2 * RATE, 2, RATE).astype(np.float32) * 32768)
    clips = heard(file(name))
    assert len(clips) == 11
    for sound, time in clips:
        assert sound.shape == (7 * RATE // 30, 2)
        expected = placed(samples, 0, round(time * RATE), len(sound)) / 32768
        # The encoder rounds; nothing else does.
        assert np.abs(sound - expected).max() <= 1.01 / 32768
        assert np.array_equal(sound * 32768, np.round(sound * 32768))


@pytest.mark.parametrize("name", [*LOSSLESS, *LOSSY])
def test_sound_is_that_of_a_decode_in_a_row(file, name):
    """Wherever it is read from, and in whatever order."""
    whole, start, rate = in_a_row(file(name))
    # Up to half a tick to both sides; the place is the same for all clips.
    slack = 0 if name.endswith((".mp4", ".mov", ".ts")) else round(rate / 2000) + 1
    limit = 0 if name in LOSSLESS else 1e-4
    found = set(range(round(start) - slack, round(start) + slack + 1))
    for sound, time in heard(file(name), shuffle="global", seed=3):
        first = round(time * rate)
        fits = {
            at
            for at in found
            if np.abs(placed(whole, at, first, len(sound)) - sound).max() <= limit
        }
        assert fits, f"at {time} s"
        found = fits
    assert len(found) == 1


def test_sound_starts_with_the_first_frame_of_the_clip(file):
    """Also where the video starts later than the sound, and where its rate varies."""
    samples = signal(3 * RATE, 2, RATE).astype(np.float32)
    late = made("pcm_s16le", seconds=3.0, times=[500 + n * 40 for n in range(FRAMES)])
    for sound, time in heard(file("late.mkv", late)):
        expected = placed(samples, 0, round(time * RATE), round(0.28 * RATE))
        assert sound.shape == expected.shape
        assert np.abs(sound - expected).max() < 1e-4
    times = [n * 33 if n < 30 else 30 * 33 + (n - 30) * 100 for n in range(FRAMES)]
    varying = made("pcm_s16le", seconds=3.0, times=times)
    lengths = []
    for sound, time in heard(file("varying.mkv", varying), step=7):
        expected = placed(samples, 0, round(time * RATE), len(sound))
        assert np.abs(sound - expected).max() < 1e-4
        lengths.append(len(sound) / RATE)
    assert lengths[:4] == pytest.approx([0.231] * 4, abs=0.002)
    assert lengths[5:] == pytest.approx([0.7] * 3, abs=0.002)


def test_sound_lasts_as_long_as_the_clip(file):
    path = file("pcm.mkv")
    counts = {
        "stride": ({"stride": 2}, 14 / 30),
        "fps": ({"fps": 10.0, "length": 5}, 5 / 10),
        "seconds": ({"clip_duration": 0.6, "length": 3}, 0.6),
    }
    for options, seconds in counts.values():
        assert {len(sound) for sound, _ in heard(path, step=1, **options)} == {
            round(seconds * RATE)
        }
    [(sound, _)] = heard(path, Experimental, length=4, uniform_sample=True, step=-1)
    assert len(sound) == 2 * RATE


def test_what_the_file_does_not_have_is_silent(file):
    path = file("short.mov", made("pcm_s16le", seconds=1.0))
    samples = signal(RATE, 2, RATE).astype(np.float32)
    clips = heard(path, length=30, step=20, pad_sequences=True)
    assert [len(sound) for sound, _ in clips] == [RATE] * 3
    for (sound, _), first in zip(clips, (0, 20, 40), strict=True):
        expected = placed(samples, 0, round(first / 30 * RATE), RATE)
        assert np.abs(sound - expected).max() < 1e-4
    assert not clips[2][0].any()


def test_files_without_sound_are_silent(tmp_path):
    (path,) = videos.save(tmp_path, "h264.mp4")
    [(sound, _)] = heard(path, length=30)
    assert sound.shape == (0, 1)
    [(sound, _)] = heard(path, length=30, audio_sample_rate=16000)
    assert sound.shape == (16000, 1)
    assert not sound.any()
    [(sound, _)] = heard(path, length=30, audio_sample_rate=16000, audio_downmix=True)
    assert sound.shape == (16000,)


def test_channels_are_mixed_as_by_decoders_audio(file):
    path = file("pcm.mkv")
    for (sound, _), (mixed, _) in zip(heard(path), heard(path, audio_downmix=True), strict=True):
        assert mixed.shape == sound.shape[:1]
        np.testing.assert_allclose(mixed, sound.mean(axis=1), atol=1e-6)


@pytest.mark.parametrize("rate", [16000, 48000, 22050])
def test_another_rate_is_as_of_the_whole_sound(file, rate):
    whole, _, _ = in_a_row(file("flac.mp4"))
    resampled = np.asarray(ndd.audio_resample(whole, in_rate=RATE, out_rate=rate))
    for sound, time in heard(file("flac.mp4"), audio_sample_rate=rate):
        assert len(sound) == round(7 / 30 * rate)
        expected = placed(resampled, 0, round(time * rate), len(sound))
        # Positions between samples are rounded to float32, from the start of a block of output on;
        # blocks of a part start elsewhere than those of the whole.
        assert np.abs(sound - expected).max() < 5e-4


@pytest.mark.parametrize("kind", [Video, Experimental, VideoResize])
def test_sound_is_the_last_output(file, kind):
    paths = [str(file("pcm.mkv")), str(file("aac.mp4"))]
    reader = kind(
        filenames=paths,
        labels=[3, 4],
        sequence_length=15,
        fps=30,
        enable_frame_num="sequence",
        enable_timestamps=True,
        size=[32, 48],
        audio=True,
        audio_sample_rate=16000,
        audio_downmix=True,
    )
    clip, label, numbers, times, sound = next(iter(reader.next_epoch(batch_size=8)))
    assert clip.torch().shape == (8, 15, 32, 48, 3)
    assert [part.torch().shape for part in (label, numbers, times)] == [(8, 1), (8, 15), (8, 15)]
    assert sound.torch().shape == (8, 8000)
    assert str(sound.torch().dtype) == "torch.float32"


def test_sound_resumes_and_shuffles_with_its_clips(file):
    options = {"filenames": str(file("aac.mp4")), "sequence_length": 10, "audio": True}
    options |= {"enable_frame_num": True, "shuffle": "global", "seed": 4}
    reader = Video(**options)
    states, sounds = [], []
    epoch = reader.next_epoch()
    for _ in range(reader.epoch_size):
        states.append(reader.get_state())
        _, number, sound = next(epoch)
        sounds.append((int(number[0]), np.asarray(sound)))
    again = Video(**options)
    again.set_state(states[2])
    for (number, sound), (_, other, same) in zip(sounds[2:], again.next_epoch(), strict=True):
        assert number == int(other[0])
        np.testing.assert_array_equal(sound, same)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"audio_downmix": True}, "`audio_downmix` needs `audio=True`"),
        ({"audio_sample_rate": 16000}, "`audio_sample_rate` needs `audio=True`"),
        ({"audio": True, "audio_sample_rate": 0}, "`audio_sample_rate` must be from 1"),
        ({"audio": True, "audio_sample_rate": 2**21}, "`audio_sample_rate` must be from 1"),
        ({"audio": True, "audio_sample_rate": "high"}, "`audio_sample_rate` must be a whole"),
    ],
)
def test_wrong_arguments_are_named(file, options, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        Video(filenames=str(file("pcm.mkv")), sequence_length=3, **options)


def test_damaged_sound_is_an_error_that_says_where(file, tmp_path):
    import av

    # The packets of the sound in the middle are overwritten.
    content = bytearray(file("aac.mp4").read_bytes())
    with av.open(io.BytesIO(content)) as container:
        packets = [
            p for p in container.demux(audio=0) if p.size and 0.9 < p.pts * p.time_base < 1.1
        ]
        for packet in packets:
            content[packet.pos : packet.pos + packet.size] = b"\xff" * packet.size
    path = tmp_path / "damaged.mp4"
    path.write_bytes(content)
    reader = Video(filenames=str(path), sequence_length=10, audio=True, on_error="skip")
    sounds = [np.asarray(sound) for _, sound in reader.next_epoch()]
    assert 3 <= len(sounds) < 6
    assert all(error.file == str(path) for error in reader.errors)
    reader = Video(filenames=str(path), sequence_length=60, audio=True)
    with pytest.raises(OSError, match=r"the sound at 0\.9\d+ s can't be decoded"):
        np.asarray(next(iter(reader.next_epoch()))[1])
