"""Time stretch and pitch shift, compared with torchaudio's phase vocoder and resampling."""

import math

import numpy as np
import pytest
import torch
from torchaudio import functional as F

import penstock as ndd


def voice(frames, dtype="f8", seed=0):
    """Harmonics that glide, and a little noise, so that no bin is exactly silent."""
    t = np.arange(frames) / 16000
    glide = 2 * np.pi * (180 * t + 60 * t**2)
    waves = sum(np.sin(k * glide) / k for k in range(1, 12))
    values = 0.2 * waves + 0.01 * np.random.default_rng(seed).normal(size=frames)
    if np.dtype(dtype).kind == "i":
        values *= np.iinfo(dtype).max / 2
    return values.astype(dtype)


def their_stretch(x, rate, nfft, step):
    """The steps of librosa.effects.time_stretch: transform, vocoder, transform back."""
    window = torch.hann_window(nfft, dtype=torch.float64)
    signal = torch.from_numpy(x.astype("f8"))
    spectrum = torch.stft(
        signal, nfft, step, window=window, pad_mode="constant", return_complex=True
    )
    advance = torch.linspace(0, math.pi * step, nfft // 2 + 1, dtype=torch.float64)[:, None]
    stretched = F.phase_vocoder(spectrum, rate, advance)
    length = round(len(x) / rate)
    return torch.istft(stretched, nfft, step, window=window, length=length)


def their_shift(x, n_steps, bins_per_octave, nfft, step, sample_rate):
    """The steps of torchaudio.functional.pitch_shift, with zeros around the sound."""
    rate = 2.0 ** (-n_steps / bins_per_octave)
    faster = F.resample(their_stretch(x, rate, nfft, step), round(sample_rate / rate), sample_rate)
    made = np.zeros(len(x))
    made[: len(faster)] = faster[: len(x)]
    return made


# With rates such as 0.3, rounding decides whether the tenth window is read at 3 or just before it,
# which makes other phases. These are exact, or far from any such case.
@pytest.mark.parametrize("rate", [0.3137, 0.5, 0.8731, 1.1317, 1.5, 2.0, 3.7191])
@pytest.mark.parametrize(("nfft", "step"), [(2048, None), (512, None), (400, 160), (512, 256)])
def test_stretched_sounds_are_those_of_torchaudio(rate, nfft, step):
    x = voice(9000)
    made = np.asarray(ndd.time_stretch(x, rate=rate, nfft=nfft, window_step=step))
    expected = their_stretch(x, rate, nfft, step or nfft // 4).numpy()
    assert made.shape == expected.shape == (round(9000 / rate),)
    # Their phases are sums of angles, of which each rounds: a few times 1e-10 over the sound.
    np.testing.assert_allclose(made, expected, atol=1e-8)


@pytest.mark.parametrize("frames", [1, 2, 3, 100, 127, 128, 129, 511, 512, 513, 1000])
@pytest.mark.parametrize("rate", [0.5, 1.3137])
def test_short_sounds_are_stretched_too(frames, rate):
    x = voice(frames)
    made = np.asarray(ndd.time_stretch(x, rate=rate, nfft=512))
    expected = their_stretch(x, rate, 512, 128).numpy()
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, atol=1e-8)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 1e-5), ("f2", 2e-3), ("i2", 1), ("i4", 1)])
def test_other_types_are_stretched_like_doubles(dtype, tolerance):
    """Within single precision, in which they are computed, and rounding."""
    x = voice(5000, dtype)
    made = np.asarray(ndd.time_stretch(x, rate=0.8))
    expected = np.asarray(ndd.time_stretch(x.astype("f8"), rate=0.8))
    assert made.dtype == dtype
    np.testing.assert_allclose(made, expected, atol=tolerance)
    made = np.asarray(ndd.pitch_shift(x, n_steps=2))
    expected = np.asarray(ndd.pitch_shift(x.astype("f8"), n_steps=2))
    assert made.dtype == dtype
    np.testing.assert_allclose(made, expected, atol=tolerance)


def test_stretched_integers_saturate():
    x = np.where(voice(4000) > 0, 32767, -32768).astype("i2")
    made = np.asarray(ndd.time_stretch(x, rate=0.7))
    exact = np.asarray(ndd.time_stretch(x.astype("f8"), rate=0.7))
    assert exact.max() > 32768  # or this would test nothing
    np.testing.assert_allclose(made, np.clip(exact, -32768, 32767), atol=1)


# torchaudio resamples by ratios of integers only. These are exact, or their windows fall on whole
# places only after the end of the sound (see above).
RATIOS = [(2, 1), (1, 2), (127, 101), (101, 127), (181, 97), (97, 181)]


@pytest.mark.parametrize(("up", "down"), RATIOS)
@pytest.mark.parametrize("nfft", [512, 2048])
def test_shifted_sounds_are_those_of_torchaudio(up, down, nfft):
    n_steps = 12 * math.log2(up / down)
    x = voice(6000)
    made = np.asarray(ndd.pitch_shift(x, n_steps=n_steps, nfft=nfft))
    expected = their_shift(x, n_steps, 12, nfft, nfft // 4, down)
    assert made.shape == x.shape
    # Their filter is computed in single precision.
    np.testing.assert_allclose(made, expected, atol=1e-6)


def frequency(x):
    """The frequency of the strongest bin, as a fraction of the sample rate."""
    spectrum = abs(np.fft.rfft(x * np.hanning(len(x))))
    return spectrum.argmax() / len(x)


@pytest.mark.parametrize("n_steps", [-12, -5, 0.5, 3, 7, 12])
def test_pitch_rises_and_lengths_stay(n_steps):
    x = np.sin(2 * np.pi * 0.02 * np.arange(16000)).astype("f4")
    made = np.asarray(ndd.pitch_shift(x, n_steps=n_steps))
    assert len(made) == len(x)
    assert frequency(made) == pytest.approx(0.02 * 2 ** (n_steps / 12), rel=0.01)
    finer = np.asarray(ndd.pitch_shift(x, n_steps=2 * n_steps, bins_per_octave=24))
    np.testing.assert_array_equal(made, finer)


def test_stretching_keeps_pitch():
    x = np.sin(2 * np.pi * 0.02 * np.arange(16000)).astype("f4")
    for rate in (0.5, 0.8, 1.7):
        made = np.asarray(ndd.time_stretch(x, rate=rate))
        assert frequency(made) == pytest.approx(0.02, rel=0.01)


def test_a_rate_of_one_and_no_steps_change_nothing():
    x = voice(1000, "f4")
    np.testing.assert_array_equal(np.asarray(ndd.time_stretch(x, rate=1)), x)
    np.testing.assert_array_equal(np.asarray(ndd.pitch_shift(x, n_steps=0)), x)


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_channels_are_kept_apart(channels):
    x = np.stack([voice(3000, "f4", seed) for seed in range(channels)], axis=1)
    stretched = np.asarray(ndd.time_stretch(x, rate=1.2))
    shifted = np.asarray(ndd.pitch_shift(x, n_steps=-2))
    for channel in range(channels):
        alone = np.ascontiguousarray(x[:, channel])
        one = np.asarray(ndd.time_stretch(alone, rate=1.2))
        np.testing.assert_array_equal(stretched[:, channel], one)
        one = np.asarray(ndd.pitch_shift(alone, n_steps=-2))
        np.testing.assert_array_equal(shifted[:, channel], one)


def test_samples_have_rates_and_steps_of_their_own():
    arrays = [voice(n, "f4", n) for n in (0, 1, 2, 700, 5000)]
    rates, steps = [0.5, 2.0, 1.0, 1.25, 0.875], [1.0, -3.0, 0.0, 12.0, 0.25]
    stretched = ndd.time_stretch(ndd.batch(arrays), rate=ndd.batch(rates))
    shifted = ndd.pitch_shift(ndd.batch(arrays), n_steps=ndd.batch(steps))
    assert stretched.shape == [(round(len(x) / r),) for x, r in zip(arrays, rates, strict=True)]
    assert shifted.shape == [x.shape for x in arrays]
    for x, rate, made in zip(arrays, rates, stretched.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(made), np.asarray(ndd.time_stretch(x, rate=rate)))
    for x, n, made in zip(arrays, steps, shifted.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(made), np.asarray(ndd.pitch_shift(x, n_steps=n)))


def test_a_bad_sample_of_a_sound_spoils_only_what_is_around_it():
    x = voice(20000, "f4")
    for bad in (np.nan, np.inf):
        x[9000] = bad
        made = np.asarray(ndd.time_stretch(x, rate=1.25, nfft=512))
        spoilt = np.flatnonzero(~np.isfinite(made))
        assert abs(spoilt - 9000 / 1.25).max() < 1024
        assert np.isfinite(made).mean() > 0.9


def test_silence_stays_silent():
    assert not np.asarray(ndd.time_stretch(np.zeros(3000, "f4"), rate=0.7)).any()
    assert not np.asarray(ndd.pitch_shift(np.zeros((300, 2), "i2"), n_steps=5)).any()
    assert ndd.time_stretch(np.zeros((0, 2), "f4"), rate=2).shape == (0, 2)
    assert ndd.time_stretch(np.zeros((9, 0), "f4"), rate=2).shape == (4, 0)


def test_bad_arguments_are_refused():
    x = ndd.batch([np.zeros(100, "f4")])
    for rate in (0.0, -1.0, math.nan, math.inf, 1e-300):
        with pytest.raises(ValueError, match=r"`rate` must be between 0\.01 and 100"):
            ndd.time_stretch(x, rate=rate)
        with pytest.raises(RuntimeError, match=r"`rate` must be between 0\.01 and 100"):
            ndd.time_stretch(x, rate=ndd.batch([rate], dtype="f64")).evaluate()
    with pytest.raises(ValueError, match="nfft"):
        ndd.time_stretch(x, rate=2, nfft=2**40)
    with pytest.raises(RuntimeError, match="`window_step` must be between 1 and 256"):
        ndd.time_stretch(x, rate=2, nfft=512, window_step=257).evaluate()
    for n_steps in (math.nan, math.inf, 1e300, -73):
        with pytest.raises(RuntimeError, match="`n_steps` must be at most 6 octaves"):
            ndd.pitch_shift(x, n_steps=n_steps).evaluate()
    with pytest.raises(TypeError, match="rate"):
        ndd.time_stretch(x)
