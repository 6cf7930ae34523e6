"""Audio analysis, compared with NumPy: what DALI can't be asked."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import penstock as ndd
from penstock.errors import InternalError

RNG = np.random.default_rng(3)
SOUND = (0.5 * np.sin(np.arange(4000) / 7) + 0.1 * RNG.standard_normal(4000)).astype(np.float32)

OPERATIONS = {
    "audio_resample": lambda x: ndd.audio_resample(x, scale=1.3, dtype=ndd.float32),
    "spectrogram": lambda x: ndd.spectrogram(x, window_length=100, window_step=30),
    "power_spectrum": lambda x: ndd.power_spectrum(x),
    "mel_filter_bank": lambda x: ndd.mel_filter_bank(x, nfilter=20),
    "log_mel": lambda x: ndd.log_mel(x, preset="librosa", nfft=64, nfilter=9, window_step=20),
    "mfcc": lambda x: ndd.mfcc(x),
    "to_decibels": lambda x: ndd.to_decibels(x),
    "preemphasis_filter": lambda x: ndd.preemphasis_filter(x),
    "nonsilent_region": lambda x: ndd.nonsilent_region(x, window_length=50)[1],
}
each_operation = pytest.mark.parametrize("name", OPERATIONS)


@each_operation
@pytest.mark.parametrize("dtype", ["i2", "f2", "f8", "u1", "i8"])
def test_other_types_are_converted(name, dtype):
    x = (100 + 100 * np.clip(SOUND[:500], -0.9, 0.9)).astype(dtype)
    wide = x.astype(np.float32)
    if name == "audio_resample" and np.dtype(dtype).kind in "iu":
        top = np.iinfo(dtype).max
        wide = wide / top if np.iinfo(dtype).min else wide / (top / 2) - 1
    made, expected = (np.asarray(OPERATIONS[name](given)) for given in (x, wide))
    np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@each_operation
def test_batches_and_strides_make_no_difference(name):
    operation = OPERATIONS[name]
    arrays = [np.repeat(SOUND[: 300 + 100 * k], 2) for k in range(3)]
    batch = operation(ndd.as_batch([each[::2] for each in arrays]))
    for array, made in zip(arrays, batch.tensors, strict=True):
        alone = operation(np.ascontiguousarray(array[::2]))
        np.testing.assert_array_equal(np.asarray(made), np.asarray(alone))


@each_operation
def test_batches_without_samples_stay_so(name):
    made = OPERATIONS[name](ndd.batch(np.zeros((0, 50), np.float32)))
    assert len(made.evaluate().tensors) == 0


def test_spectrogram_is_that_of_numpy():
    made = np.asarray(ndd.spectrogram(SOUND, window_length=200, nfft=256, window_step=80))
    padded = np.pad(SOUND.astype(np.float64), 100, mode="reflect")
    window = np.sin(np.pi * (np.arange(200) + 0.5) / 200) ** 2
    frames = [padded[80 * t : 80 * t + 200] * window for t in range(4000 // 80 + 1)]
    expected = np.abs(np.fft.rfft(frames, 256)).T ** 2
    # A transform of single precision.
    np.testing.assert_allclose(made, expected, atol=1e-6 * expected.max())


def test_windows_come_in_any_form():
    window = np.hamming(40)
    forms = [window, window.astype(np.float32), list(window), tuple(window), window[::-1][::-1]]
    made = [np.asarray(ndd.spectrogram(SOUND, window_length=40, window_fn=each)) for each in forms]
    for each in made[1:]:
        np.testing.assert_allclose(each, made[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_short_signals_are_mirrored_several_times(length):
    signal = SOUND[:length]
    window = [1.0] * 16
    made = np.asarray(ndd.spectrogram(signal, window_length=16, window_fn=window, window_step=8))
    padded = np.pad(signal, 8, mode="reflect") if length > 1 else np.repeat(signal, 17)
    expected = np.abs(np.fft.rfft(padded[:16])) ** 2
    np.testing.assert_allclose(made[:, 0], expected, atol=1e-5)


def test_channels_are_resampled_apart():
    sound = np.stack([SOUND, -SOUND, 0 * SOUND], 1)
    made = np.asarray(ndd.audio_resample(sound, in_rate=44100, out_rate=16000))
    alone = np.asarray(ndd.audio_resample(SOUND, in_rate=44100, out_rate=16000))
    np.testing.assert_array_equal(made, np.stack([alone, -alone, 0 * alone], 1))


def test_unsigned_silence_stays_silent():
    silence = np.full(300, 128, np.uint8)
    made = np.asarray(ndd.audio_resample(silence, scale=1.5))
    assert set(made.tolist()) <= {127, 128}


def test_preemphasis_along_the_named_axis():
    sound = np.stack([SOUND[:3000], SOUND[1000:]])
    rows = [np.asarray(ndd.preemphasis_filter(each)) for each in sound]
    along = np.asarray(ndd.preemphasis_filter(ndd.tensor(sound, layout="Ct")))
    np.testing.assert_array_equal(along, rows)
    across = np.asarray(ndd.preemphasis_filter(ndd.tensor(sound.T.copy(), layout="tC")))
    np.testing.assert_array_equal(across, np.transpose(rows))


@pytest.mark.parametrize("border", ["zero", "clamp", "reflect"])
@pytest.mark.parametrize("length", [1, 2, 1024, 1025, 2500])
def test_preemphasis_at_borders(border, length):
    x = SOUND[:length]
    first = {"zero": 0, "clamp": x[0], "reflect": x[min(1, length - 1)]}[border]
    expected = x - np.float32(0.97) * np.concatenate([[first], x[:-1]]).astype(np.float32)
    made = np.asarray(ndd.preemphasis_filter(x, border=border))
    np.testing.assert_allclose(made, expected, atol=1e-7)


@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_negative_axes_count_from_the_end(axis):
    x = RNG.standard_normal((3, 8, 5)).astype(np.float32)
    made = np.asarray(ndd.power_spectrum(x, axis=axis))
    expected = np.abs(np.fft.rfft(x.astype(np.float64), axis=axis)) ** 2
    np.testing.assert_allclose(made, expected, atol=1e-5)
    for operation in (ndd.power_spectrum, ndd.mfcc):
        np.testing.assert_array_equal(
            np.asarray(operation(x, axis=axis)), np.asarray(operation(x, axis=axis + 3))
        )


def test_orthonormal_transforms_are_inverted_by_each_other():
    x = RNG.standard_normal((40, 6)).astype(np.float32)
    there = ndd.mfcc(x, n_mfcc=40, normalize=True)
    back = np.asarray(ndd.mfcc(there, n_mfcc=40, normalize=True, dct_type=3))
    np.testing.assert_allclose(back, x, atol=1e-5)


@pytest.mark.parametrize("lifter", [0.0, 22.0, -3.5])
@pytest.mark.parametrize("dct_type", [1, 2, 3, 4])
def test_cepstra_are_accurate(dct_type, lifter):
    x = RNG.standard_normal((80, 30)).astype(np.float32)
    expected = scipy.fft.dct(x.astype(np.float64), type=dct_type, axis=0) / 2
    if lifter:
        angles = np.pi * np.arange(1, 81) / lifter
        expected *= (1 + lifter / 2 * np.sin(angles))[:, None]
    made = np.asarray(ndd.mfcc(x, n_mfcc=80, dct_type=dct_type, lifter=lifter))
    # Sums of 80 products in single precision.
    np.testing.assert_allclose(made, expected, rtol=0, atol=5e-7 * abs(expected).max())


@pytest.mark.parametrize("layout", ["ft", "tf", "Cft", "tfC", "f"])
def test_mel_filters_are_a_matrix(layout):
    extents = {"f": 65, "t": 37, "C": 2}
    x = RNG.random([extents[letter] for letter in layout], np.float32)
    filters = np.asarray(ndd.mel_filter_bank(np.eye(65, dtype=np.float32), nfilter=10))
    axis = layout.index("f")
    expected = np.moveaxis(np.tensordot(filters, x, (1, axis)), 0, axis)
    made = ndd.mel_filter_bank(ndd.tensor(x, layout=layout), nfilter=10)
    assert made.layout == layout
    np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-5, atol=1e-9)


def test_decibels_are_accurate():
    x = np.float32(10.0) ** np.linspace(-19, 0, 10_001, dtype=np.float32)
    expected = 10 * np.log10(x.astype(np.float64))
    made = np.asarray(ndd.to_decibels(x, reference=1.0))
    # Half a step of single precision, and the rounding of intermediate results.
    np.testing.assert_allclose(made, expected, rtol=1.2e-7, atol=2e-7)


def test_silence_is_found_by_the_formula():
    x = np.zeros(3000)
    x[700:1500] = RNG.standard_normal(800)
    x[2000] = 1e-2
    for window in (1, 10, 333, 5000):
        total = np.concatenate([np.zeros(window), np.cumsum(x**2)])
        power = (total[window:] - total[: len(x)]) / window
        loud = np.flatnonzero(power >= power.max() * 10 ** (-45 / 10))
        begin = max(loud[0] - (window - 1), 0)
        found = ndd.nonsilent_region(x, cutoff_db=-45, window_length=window)
        assert [each.item() for each in found] == [begin, loud[-1] + 1 - begin]


def test_what_is_no_number_is_silent():
    x = np.zeros(5000, np.float32)
    x[[10, 4000]] = np.nan, np.inf
    x[2000] = 1
    begin, length = ndd.nonsilent_region(x, window_length=10)
    assert (begin.item(), length.item()) == (1991, 19)


STEREO = np.zeros((100, 2), np.float32)
MISTAKES = [
    (lambda: ndd.spectrogram(STEREO), r"one channel, got the shape \[100, 2\]; pick a channel"),
    (lambda: ndd.spectrogram(SOUND[:0]), "the signal is empty"),
    (
        lambda: ndd.spectrogram(SOUND[:200], center_windows=False),
        "200 samples is too short for a window of 512: it needs 257",
    ),
    (lambda: ndd.spectrogram(SOUND, nfft=400), "`window_length` must be at most `nfft`, 400"),
    (
        lambda: ndd.spectrogram(SOUND, window_fn=[1, 2]),
        "`window_fn` needs `window_length` numbers, 512, got 2",
    ),
    (lambda: ndd.spectrogram(SOUND, power=3), "`power` must be between 1 and 2, got 3"),
    (lambda: ndd.spectrogram(SOUND, layout="ct"), '`layout` must be "ft" or "tf"'),
    (lambda: ndd.power_spectrum(SOUND[:0]), "axis 0 is empty; `nfft` can pad it"),
    (lambda: ndd.power_spectrum(SOUND, axis=1), "`axis` requires an axis from -1 to 0, got 1"),
    (
        lambda: ndd.mel_filter_bank(SOUND, freq_low=5, freq_high=3),
        "`freq_high` must be above `freq_low`, 5.0, and at most `sample_rate`, 44100.0, got 3.0",
    ),
    (lambda: ndd.mel_filter_bank(SOUND, sample_rate=0), "`sample_rate` must be positive"),
    (lambda: ndd.mel_filter_bank(ndd.tensor(STEREO, layout="HW")), "'f'"),
    (lambda: ndd.mfcc(SOUND[:1], dct_type=1), "at least 2 elements for this `dct_type`, got 1"),
    (lambda: ndd.mfcc(SOUND, dct_type=1, normalize=True), "`normalize` must be False"),
    (lambda: ndd.to_decibels(SOUND, reference=0), "`reference` must not be 0.0"),
    (lambda: ndd.to_decibels(SOUND, multiplier=np.nan), "`multiplier` must be finite, got nan"),
    (lambda: ndd.audio_resample(SOUND), "in exactly one way"),
    (lambda: ndd.audio_resample(SOUND, in_rate=8), "`out_rate` must be given together with"),
    (
        lambda: ndd.audio_resample(ndd.batch([SOUND]), in_rate=ndd.batch([0.0]), out_rate=1),
        "`in_rate` must be positive, got 0",
    ),
    (
        lambda: ndd.audio_resample(ndd.batch([SOUND]), scale=ndd.batch([-1.0])),
        "`scale` must be finite and not negative, got -1",
    ),
    (lambda: ndd.audio_resample(SOUND, out_length=-1), "`out_length` must not be negative"),
    (lambda: ndd.audio_resample(SOUND[:0], out_length=3), "can't make 3 samples of an empty"),
    (lambda: ndd.audio_resample(SOUND, scale=1e30), "more elements than an array can have"),
    (lambda: ndd.preemphasis_filter(SOUND, border="wrap"), "`border` must be "),
    (lambda: ndd.nonsilent_region(SOUND, window_length=0), "`window_length` must be at least 1"),
    (lambda: ndd.nonsilent_region(SOUND, reference_power=0), "`reference_power` must be positive"),
    (lambda: ndd.nonsilent_region(SOUND, cutoff_db=np.nan), "`cutoff_db` must be finite"),
]


def read(call):
    """Make a call, and wait for its results."""
    made = call()
    for each in made if isinstance(made, tuple) else (made,):
        each.evaluate()


@pytest.mark.parametrize(("call", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_mistakes_are_named(call, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        read(call)


ABSURD = {
    "nfft": lambda n: ndd.spectrogram(SOUND, nfft=n),
    "window_length": lambda n: ndd.spectrogram(SOUND[:9], window_length=n, nfft=n),
    "window_step": lambda n: ndd.spectrogram(SOUND, window_step=n),
    "power_spectrum": lambda n: ndd.power_spectrum(SOUND, nfft=n),
    "nfilter": lambda n: ndd.mel_filter_bank(SOUND[:9], nfilter=n),
    "n_mfcc": lambda n: ndd.mfcc(SOUND, n_mfcc=n),
    "out_length": lambda n: ndd.audio_resample(SOUND, out_length=n),
    "window": lambda n: ndd.nonsilent_region(SOUND, window_length=n)[0],
}


@pytest.mark.parametrize("name", ABSURD)
@pytest.mark.parametrize("number", [2**46, 2**62, 2**63 - 1, -1, 0])
def test_absurd_numbers_end_with_a_result_or_an_error(name, number):
    try:
        ABSURD[name](number).evaluate()
    except InternalError:
        raise
    except (ValueError, RuntimeError, MemoryError):
        pass


@pytest.mark.parametrize("number", [1e-300, 1e-9, 1e38, 1e300, np.inf, -np.inf, np.nan, 0.0, -1.0])
def test_absurd_rates_end_with_a_result_or_an_error(number):
    for call in (
        lambda: ndd.audio_resample(SOUND[:50], in_rate=number, out_rate=1),
        lambda: ndd.audio_resample(SOUND[:0], in_rate=1, out_rate=number),
        lambda: ndd.mel_filter_bank(SOUND, sample_rate=number, nfilter=3),
        lambda: ndd.mel_filter_bank(SOUND, freq_high=number, nfilter=3),
        lambda: ndd.mfcc(SOUND[:99], lifter=number),
        lambda: ndd.to_decibels(SOUND, reference=number),
        lambda: ndd.to_decibels(SOUND, multiplier=number),
        lambda: ndd.to_decibels(SOUND, cutoff_db=number),
        lambda: ndd.preemphasis_filter(SOUND, preemph_coeff=number),
        lambda: ndd.nonsilent_region(SOUND, cutoff_db=number)[0],
        lambda: ndd.nonsilent_region(SOUND, reference_power=number)[0],
    ):
        try:
            call().evaluate()
        except InternalError:
            raise
        except (ValueError, RuntimeError, MemoryError):
            pass
