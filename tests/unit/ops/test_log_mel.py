"""Logarithmic mel spectrograms, compared with torchaudio and the formulas of other libraries."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torchaudio

import penstock as ndd
from penstock.errors import InternalError

PRESETS = ["dali", "librosa", "torchaudio", "whisper", "nemo"]
each_preset = pytest.mark.parametrize("preset", PRESETS)

# Spectra of single precision have errors of 1e-7 of the loudest frequency in a window, and noise
# can be a thousand times quieter by chance.
DECIBELS = 1e-3


def sound(count, seed=0):
    """Tones, and noise that swells."""
    t = np.arange(count) / 16000
    noise = np.random.default_rng((count, seed)).standard_normal(count)
    tones = 0.2 * np.sin(2 * np.pi * 440 * t) + 0.1 * np.sin(2 * np.pi * 3000 * t)
    return (tones + 0.2 * noise * (0.5 + np.sin(9 * t) ** 2)).astype(np.float32)


def powers(x, rate, nfft, window, step, filters, *, pad_mode, low=0.0, high=None):
    """Mel spectra of double precision, by `torch.stft` and Slaney's filters."""
    spectra = torch.stft(
        torch.from_numpy(np.float64(x)),
        nfft,
        step,
        len(window),
        window=window,
        pad_mode=pad_mode,
        return_complex=True,
    )
    edges = hertz(np.linspace(mel(low), mel(rate / 2 if high is None else high), filters + 2))
    left, center, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    at = np.arange(nfft // 2 + 1) * rate / nfft
    triangles = np.minimum((at - left) / (center - left), (right - at) / (right - center))
    triangles = np.maximum(triangles, 0) * 2 / (right - left)
    return triangles @ (spectra.abs() ** 2).numpy()


LOG_STEP = np.log(6.4) / 27


def mel(frequency):
    """Slaney's scale: linear up to 1 kHz, then logarithmic."""
    return frequency * 0.015 if frequency < 1000 else 15 + np.log(frequency / 1000) / LOG_STEP


def hertz(mels):
    return np.where(mels < 15, mels / 0.015, 1000 * np.exp((mels - 15) * LOG_STEP))


def hann(length, *, periodic=True):
    return torch.hann_window(length, periodic=periodic, dtype=torch.float64)


def librosa(x, rate=22050, nfft=2048, window=None, step=512, filters=128, **band):
    power = powers(x, rate, nfft, hann(window or nfft), step, filters, pad_mode="constant", **band)
    decibels = 10 * np.log10(np.maximum(power, 1e-10))
    return np.maximum(decibels, decibels.max() - 80)


def whisper(x, filters=80):
    power = powers(x, 16000, 400, hann(400), 160, filters, pad_mode="reflect")[:, :-1]
    logarithms = np.log10(np.maximum(power, 1e-10))
    return (np.maximum(logarithms, logarithms.max() - 8) + 4) / 4


def nemo(x, rate=16000, nfft=512, window=400, step=160, filters=80, coefficient=0.97, **band):
    x = np.float64(x)
    x = np.concatenate([x[:1], x[1:] - coefficient * x[:-1]])
    shape = hann(window, periodic=False)
    power = powers(x, rate, nfft, shape, step, filters, pad_mode="constant", **band)
    made = np.log(power[:, : len(x) // step] + 2**-24)
    deviation = made.std(axis=1, ddof=1, keepdims=True)
    return (made - made.mean(axis=1, keepdims=True)) / (deviation + 1e-5)


def by_torchaudio(x, **sizes):
    transform = torchaudio.transforms.MelSpectrogram(**sizes).double()
    made = transform(torch.from_numpy(np.float64(x)))
    return torchaudio.transforms.AmplitudeToDB()(made).numpy()


def assert_near(made, expected, tolerance):
    made = np.asarray(made)
    assert made.dtype == np.float32
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=0, atol=tolerance)


# torchaudio's defaults have more filters than frequencies for the lowest ones.
@pytest.mark.filterwarnings("ignore:At least one mel filterbank has all zero values")
@pytest.mark.parametrize("length", [3000, 16000, 40321])
def test_defaults_are_those_of_the_libraries(length):
    x = sound(length)
    assert_near(ndd.log_mel(x, preset="librosa"), librosa(x), DECIBELS)
    # The filters are narrow, and torchaudio computes their smallest weights in single precision.
    assert_near(ndd.log_mel(x, preset="torchaudio"), by_torchaudio(x), 2 * DECIBELS)
    # In tenths of decibels, and in standard deviations.
    assert_near(ndd.log_mel(x, preset="whisper"), whisper(x), DECIBELS / 10)
    assert_near(ndd.log_mel(x, preset="nemo"), nemo(x), DECIBELS)


@pytest.mark.parametrize("filters", [80, 128])
@pytest.mark.parametrize("length", [3000, 16000, 40321])
def test_whisper_gives_what_its_feature_extractor_gives(length, filters):
    transformers = pytest.importorskip("transformers")
    x = sound(length)
    extractor = transformers.WhisperFeatureExtractor(feature_size=filters)
    expected = extractor(x, sampling_rate=16000, padding="longest", return_tensors="np")
    made = ndd.log_mel(x, preset="whisper", nfilter=filters)
    assert_near(made, expected.input_features[0], DECIBELS / 10)


@pytest.mark.parametrize("length", [3000, 16000, 40321])
def test_nemo_gives_what_the_feature_extractor_of_parakeet_gives(length):
    transformers = pytest.importorskip("transformers")
    x = sound(length)
    made = transformers.ParakeetFeatureExtractor()(x, sampling_rate=16000)
    features, mask = made["input_features"][0], made["attention_mask"][0]
    assert_near(ndd.log_mel(x, preset="nemo"), features[mask].numpy().T, DECIBELS)


def test_librosa_with_other_sizes():
    x = sound(9000)
    for sizes in (
        {"nfft": 512},
        {"nfft": 512, "window": 400, "step": 160, "filters": 40},
        {"nfft": 501, "window": 400, "step": 100, "filters": 20},
        {"nfft": 512, "window": 401, "rate": 16000, "low": 80.0, "high": 7600.0},
    ):
        names = {
            "window": "window_length",
            "step": "window_step",
            "filters": "nfilter",
            "rate": "sample_rate",
            "low": "freq_low",
            "high": "freq_high",
        }
        given = {names.get(name, name): size for name, size in sizes.items()}
        sizes.setdefault("filters", 128)
        assert_near(ndd.log_mel(x, preset="librosa", **given), librosa(x, **sizes), DECIBELS)


def test_torchaudio_with_other_sizes():
    x = sound(9000)
    made = ndd.log_mel(x, preset="torchaudio", nfft=1024, nfilter=64)
    assert_near(made, by_torchaudio(x, n_fft=1024, n_mels=64), DECIBELS)
    made = ndd.log_mel(x, preset="torchaudio", nfft=600, window_length=300, nfilter=32)
    assert_near(made, by_torchaudio(x, n_fft=600, win_length=300, n_mels=32), DECIBELS)
    sizes = {"sample_rate": 22050, "window_step": 99, "nfft": 900, "nfilter": 30}
    made = ndd.log_mel(x, preset="torchaudio", freq_low=50, freq_high=9000, **sizes)
    expected = by_torchaudio(
        x, sample_rate=22050, hop_length=99, n_fft=900, n_mels=30, f_min=50, f_max=9000
    )
    assert_near(made, expected, DECIBELS)


def test_whisper_and_nemo_with_other_sizes():
    x = sound(20000)
    made = ndd.log_mel(x, preset="whisper", nfilter=128)
    assert_near(made, whisper(x, filters=128), DECIBELS / 10)
    made = ndd.log_mel(x, preset="nemo", window_length=320, nfilter=64)
    assert_near(made, nemo(x, window=320, filters=64), DECIBELS)
    made = ndd.log_mel(x, preset="nemo", preemph_coeff=0, nfft=1024)
    assert_near(made, nemo(x, nfft=1024, coefficient=0), DECIBELS)
    # The transforms are as long as the next power of two.
    made = ndd.log_mel(x, preset="nemo", window_length=256)
    assert_near(made, nemo(x, nfft=256, window=256), DECIBELS)


@pytest.mark.parametrize("length", [1, 2, 100, 5000])
@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"window_length": 400, "nfft": 512, "window_step": 160, "nfilter": 80},
        {"window_length": 97, "window_step": 33, "nfilter": 17},
    ],
    ids=str,
)
def test_by_default_it_is_the_chain(length, sizes):
    x = sound(length)
    filters = {"nfilter": sizes.get("nfilter", 128), "sample_rate": 16000, "freq_low": 60}
    windows = {name: size for name, size in sizes.items() if name != "nfilter"}
    for layout in ("ft", "tf"):
        chain = ndd.to_decibels(
            ndd.mel_filter_bank(ndd.spectrogram(x, layout=layout, **windows), **filters)
        )
        made = ndd.log_mel(x, layout=layout, **windows, **filters)
        assert made.layout == layout
        # Sums of the same terms in the same order.
        np.testing.assert_array_equal(np.asarray(made), np.asarray(chain))


@each_preset
def test_rows_may_be_windows(preset):
    x = ndd.batch([sound(5000), sound(16000)])
    rows = ndd.log_mel(x, preset=preset, layout="tf")
    columns = ndd.log_mel(x, preset=preset)
    assert (rows.layout, columns.layout) == ("tf", "ft")
    for row, column in zip(rows.tensors, columns.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(row), np.asarray(column).T)


@each_preset
def test_batches_shapes_and_types_make_no_difference(preset):
    arrays = [sound(count) for count in (4001, 4800, 9999)]
    batch = ndd.log_mel(ndd.batch(arrays), preset=preset)
    for array, made in zip(arrays, batch.tensors, strict=True):
        expected = np.asarray(made)
        for same in (array, array[:, None], array[None], np.float64(array)):
            alone = ndd.log_mel(same, preset=preset)
            np.testing.assert_array_equal(np.asarray(alone), expected)
    whole = np.int16(1000 * arrays[0])
    np.testing.assert_array_equal(
        np.asarray(ndd.log_mel(whole, preset=preset)),
        np.asarray(ndd.log_mel(np.float32(whole), preset=preset)),
    )


def test_silence_is_finite():
    x = np.zeros(8000, np.float32)
    levels = {"dali": -200, "librosa": -100, "torchaudio": -100, "whisper": -1.5, "nemo": 0}
    for preset, level in levels.items():
        made = np.asarray(ndd.log_mel(x, preset=preset))
        np.testing.assert_array_equal(made, np.full_like(made, level))


def test_numbers_of_windows():
    for count, windows in ((159, 1), (160, 2), (161, 2), (320, 3)):
        for preset in PRESETS:
            last = preset not in ("whisper", "nemo")
            if windows == 1 and not last:
                with pytest.raises(RuntimeError, match=r"159 samples is shorter than a step .*160"):
                    ndd.log_mel(sound(count), preset=preset, window_step=160).evaluate()
            else:
                made = ndd.log_mel(sound(count), preset=preset, window_step=160)
                assert made.shape[1] == windows - (not last)
    assert ndd.log_mel(sound(1), preset="librosa").shape == (128, 1)


MISTAKES = [
    (lambda: ndd.log_mel(np.zeros((100, 2))), r"one channel, got the shape \[100, 2\]"),
    (lambda: ndd.log_mel(sound(0)), "the signal is empty"),
    (lambda: ndd.log_mel(sound(9), preset="dali", nfft=400), "`window_length` must be at most `nf"),
    (lambda: ndd.log_mel(sound(9), preset="mfcc"), '`preset` must be "dali"'),
    (lambda: ndd.log_mel(sound(9), nfilter=0), "`nfilter` must be at least 1, got 0"),
    (lambda: ndd.log_mel(sound(9), window_step=0), "`window_step` must be at least 1, got 0"),
    (lambda: ndd.log_mel(sound(9), sample_rate=-1), "`sample_rate` must be positive and finite"),
    (
        lambda: ndd.log_mel(sound(9), preset="whisper", freq_high=17000),
        "`freq_high` must be above `freq_low`, 0.0, and at most `sample_rate`, 16000.0, got 17000",
    ),
    (lambda: ndd.log_mel(sound(9), layout="ct"), '`layout` must be "ft" or "tf"'),
]


@pytest.mark.parametrize(("call", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_mistakes_are_named(call, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        call().evaluate()


@each_preset
@pytest.mark.parametrize("number", [2**46, 2**62, 2**63 - 1])
@pytest.mark.parametrize("name", ["nfft", "window_length", "window_step", "nfilter"])
def test_absurd_sizes_end_with_a_result_or_an_error(preset, name, number):
    try:
        ndd.log_mel(sound(99), preset=preset, **{name: number}).evaluate()
    except InternalError:
        raise
    except (ValueError, RuntimeError, MemoryError):
        pass
