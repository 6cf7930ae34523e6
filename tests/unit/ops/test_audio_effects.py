"""Masks, noise, gain, fades and deltas, compared with torchaudio or NumPy."""

import itertools
import math

import numpy as np
import pytest
import torch
import torchaudio
from scipy.signal import savgol_filter
from torchaudio import functional as F

import penstock as ndd

SHAPES = ["linear", "exponential", "logarithmic", "quarter_sine", "half_sine"]
SOUND_TYPES = ["i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def sound(*shape, seed=0, dtype="f4"):
    values = np.random.default_rng(seed).normal(size=shape)
    return (values * (1 if np.dtype(dtype).kind == "f" else 20)).astype(dtype)


def channels_first(array):
    return torch.from_numpy(np.ascontiguousarray(array.T))


# Gain


@pytest.mark.parametrize("gain_db", [-30.0, -0.5, 0.0, 1.0, 6.0, 40.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gain_is_that_of_torchaudio(gain_db, dtype):
    x = sound(1003, dtype=dtype)
    made = np.asarray(ndd.gain(x, gain_db=gain_db))
    expected = F.gain(torch.from_numpy(x), gain_db).numpy()
    # The factor may differ in its last bits.
    np.testing.assert_allclose(made, expected, rtol=10 * np.finfo(dtype).eps)
    assert made.dtype == dtype


def test_gain_of_integers_rounds_and_saturates():
    x = np.int16([100, -7, 20000, -20000, 32767, -32768, 0])
    made = np.asarray(ndd.gain(x, gain_db=6.0))
    exact = np.rint(x * 10 ** (6 / 20))
    np.testing.assert_array_equal(made, np.clip(exact, -32768, 32767).astype("i2"))


def test_gain_takes_a_number_for_each_sample_and_any_shape():
    arrays = [sound(5, 2), sound(1, 2, seed=1), sound(0, 2), sound(9, 2, seed=2)]
    gains = [0.0, -6.0, 3.0, 20.0]
    made = ndd.gain(ndd.batch(arrays), gain_db=ndd.batch(gains))
    for array, db, result in zip(arrays, gains, made.tensors, strict=True):
        np.testing.assert_allclose(np.asarray(result), array * 10 ** (db / 20), rtol=1e-6)
    assert ndd.gain(np.ones((2, 3, 4), "f4"), gain_db=20).torch().sum() == 240
    assert float(ndd.gain(2.0, gain_db=20).item()) == pytest.approx(20)


def test_gain_of_minus_infinity_is_silence_and_too_much_is_refused():
    assert ndd.gain([1.0, -2.0], gain_db=-math.inf).torch().abs().sum() == 0
    for bad in (math.nan, math.inf, 701):
        with pytest.raises(ValueError, match="gain_db"):
            ndd.gain([1.0], gain_db=bad)
        with pytest.raises(RuntimeError, match="`gain_db` must be at most 700 dB"):
            ndd.gain(ndd.batch([[1.0]]), gain_db=ndd.batch([bad])).evaluate()
    with pytest.raises(ValueError, match="signed integers or floats"):
        ndd.gain(np.uint8([1, 2]))


# Fades


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("first", "last"), [(0, 0), (30, 20), (1, 1), (2, 2), (100, 100), (60, 80)]
)
@pytest.mark.parametrize("channels", [None, 1, 3])
def test_fades_are_those_of_torchaudio(shape, first, last, channels):
    x = sound(100, dtype="f8") if channels is None else sound(100, channels, dtype="f8")
    made = np.asarray(ndd.fade(x, fade_in_len=first, fade_out_len=last, fade_shape=shape))
    theirs = torchaudio.transforms.Fade(first, last, shape)
    expected = theirs(channels_first(x)).numpy().T
    # Their curves are computed in single precision.
    np.testing.assert_allclose(made, expected, atol=1e-6)


def test_fades_of_other_types_differ_by_rounding_only():
    x = sound(50, 2, dtype="f8") * 40
    options = {"fade_in_len": 30, "fade_out_len": 40, "fade_shape": "half_sine"}
    for dtype in SOUND_TYPES:
        typed = x.astype(dtype)
        made = np.asarray(ndd.fade(typed, **options))
        expected = np.asarray(ndd.fade(typed.astype("f8"), **options))
        assert made.dtype == typed.dtype
        tolerance = {"f2": 0.1, "f4": 1e-4, "f8": 0}.get(dtype, 0.5001)
        np.testing.assert_allclose(made, expected, atol=tolerance)


def test_fades_are_shortened_to_the_sound():
    lengths = [0, 1, 2, 3, 50]
    arrays = [np.ones(length, "f4") for length in lengths]
    long = ndd.fade(ndd.batch(arrays), fade_in_len=10**9, fade_out_len=0)
    for length, made in zip(lengths, long.tensors, strict=True):
        np.testing.assert_allclose(np.asarray(made), np.linspace(0, 1, length), atol=1e-6)
    own = ndd.fade(ndd.batch(arrays), fade_in_len=ndd.batch(lengths))
    for one, other in zip(long.tensors, own.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_bad_fades_are_refused():
    with pytest.raises(ValueError, match=r"fade_shape.*half_sine"):
        ndd.fade([1.0], fade_shape="square")
    with pytest.raises(ValueError, match="fade_in_len"):
        ndd.fade([1.0], fade_in_len=-1)
    with pytest.raises(RuntimeError, match="`fade_out_len` must not be negative"):
        ndd.fade(ndd.batch([[1.0]]), fade_out_len=ndd.batch([-1])).evaluate()
    with pytest.raises(ValueError, match="`input` must have"):
        ndd.fade(np.zeros((2, 2, 2), "f4"))


# Noise


@pytest.mark.parametrize("snr_db", [-20.0, 0.0, 3.0, 15.5, 60.0])
@pytest.mark.parametrize("shape", [(1000,), (777, 2), (3, 1)])
def test_noise_is_added_as_by_torchaudio(snr_db, shape):
    x, noise = sound(*shape), sound(*shape, seed=1) * 0.1
    made = np.asarray(ndd.add_noise(x, noise, snr_db=snr_db))
    waveform, other = channels_first(x), channels_first(noise)
    snr = torch.full(waveform.shape[:-1], snr_db)
    expected = F.add_noise(waveform, other, snr).numpy().T
    # Their energies and logarithms are in single precision.
    np.testing.assert_allclose(made, expected, atol=2e-5 * abs(expected).max())


def measured_snr(clean, noisy):
    added = noisy.astype("f8") - clean.astype("f8")
    return 10 * np.log10((clean.astype("f8") ** 2).sum(0) / (added**2).sum(0))


@pytest.mark.parametrize("channels", [None, 1, 2])
def test_white_noise_has_the_ratio_asked_for(channels):
    sizes = [4000, 9000, 16000]
    arrays = [sound(n, *[channels] * (channels is not None), seed=n) * n for n in sizes]
    ratios = [-10.0, 5.0, 30.0]
    made = ndd.add_noise(ndd.batch(arrays), snr_db=ndd.batch(ratios), rng=ndd.random.RNG(seed=1))
    for array, ratio, result in zip(arrays, ratios, made.tensors, strict=True):
        result = np.asarray(result)
        # The sum is rounded to single precision.
        np.testing.assert_allclose(measured_snr(array, result), ratio, atol=1e-3)
        added = result.astype("f8") - array
        assert abs(np.mean(added)) < 5 * np.std(added) / math.sqrt(added.size)
        # Neighbours are not correlated, and tails are those of a normal distribution.
        flat = added.reshape(-1) / np.std(added)
        assert abs(np.mean(flat[1:] * flat[:-1])) < 5 / math.sqrt(flat.size)
        assert abs(np.mean(abs(flat) < 1) - 0.6827) < 3 / math.sqrt(flat.size)


def test_samples_draw_noise_of_their_own_and_seeds_repeat_it():
    x = ndd.batch([np.ones(100, "f4")] * 2)
    one = ndd.add_noise(x, snr_db=0, rng=ndd.random.RNG(seed=3)).torch()
    two = ndd.add_noise(x, snr_db=0, rng=ndd.random.RNG(seed=3)).torch()
    other = ndd.add_noise(x, snr_db=0, rng=ndd.random.RNG(seed=4)).torch()
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert not torch.equal(one[0], one[1])


@pytest.mark.parametrize(
    ("frames", "length"), [(10, 3), (10, 10), (10, 11), (10, 25), (1, 1), (2, 1)]
)
@pytest.mark.parametrize("noise_channels", [None, 1, 2])
def test_short_noise_is_repeated_and_long_noise_is_cut(frames, length, noise_channels):
    x = sound(frames, 2, dtype="f8")
    noise = sound(length, *[noise_channels] * (noise_channels is not None), seed=5, dtype="f8")
    for offset in range(0, length, 2):
        made = np.asarray(ndd.add_noise(x, noise, snr_db=6, offset=offset))
        used = noise[(offset + np.arange(frames)) % length].reshape(frames, -1)
        used = np.broadcast_to(used, x.shape)
        scale = np.sqrt((x**2).sum(0) / (used**2).sum(0)) * 10 ** (-6 / 20)
        np.testing.assert_allclose(made, x + scale * used, rtol=1e-12)


def test_offsets_are_drawn_over_the_whole_noise():
    frames, length = 4, 9
    noise = np.arange(1.0, length + 1)
    x = np.zeros(frames)
    x[0] = 1
    batch = ndd.batch([x] * 600)
    made = ndd.add_noise(batch, ndd.batch([noise] * 600), snr_db=0).torch().numpy()
    # The ratio of the second to the first of the noise tells where it was cut.
    ratio = made[:, 1] / (made[:, 0] - 1)
    drawn = np.rint(1 / (ratio - 1)).astype(int) - 1
    counts = np.bincount(drawn, minlength=length)
    assert set(np.flatnonzero(counts)) == set(range(length - frames + 1))
    assert counts[: length - frames + 1].min() > 60


@pytest.mark.parametrize("dtype", SOUND_TYPES)
@pytest.mark.parametrize("noise_dtype", ["i2", "f4", "f8"])
def test_types_of_sound_and_noise_may_differ(dtype, noise_dtype):
    x = sound(200, dtype=dtype)
    noise = sound(150, seed=2, dtype=noise_dtype)
    made = np.asarray(ndd.add_noise(x, noise, snr_db=10, offset=3))
    exact = np.asarray(ndd.add_noise(x.astype("f8"), noise.astype("f8"), snr_db=10, offset=3))
    assert made.dtype == x.dtype
    tolerance = {"f2": 4e-3, "f4": 1e-6, "f8": 0}.get(dtype, 0.5001)
    np.testing.assert_allclose(made, np.clip(exact, *limits(dtype)), atol=tolerance)


def limits(dtype):
    dtype = np.dtype(dtype)
    found = np.iinfo(dtype) if dtype.kind == "i" else np.finfo(dtype)
    return float(found.min), float(found.max)


def test_noise_saturates():
    x = np.int16([30000, -30000, 30000, -30000])
    made = np.asarray(ndd.add_noise(x, np.int16([1, -1]), snr_db=0))
    assert made.tolist() == [32767, -32768, 32767, -32768]


def test_silence_and_infinite_ratios():
    x, silence = sound(20), np.zeros(20, "f4")
    assert np.asarray(ndd.add_noise(silence, x, snr_db=0)).tolist() == silence.tolist()
    assert np.asarray(ndd.add_noise(x, silence, snr_db=0)).tolist() == x.tolist()
    assert np.asarray(ndd.add_noise(x, snr_db=math.inf)).tolist() == x.tolist()
    assert ndd.add_noise(np.zeros((0, 2), "f4"), snr_db=3).shape == (0, 2)
    assert ndd.add_noise(np.zeros(0, "f4"), np.zeros(0, "f4"), snr_db=3).shape == (0,)
    damaged = x.copy()
    damaged[3] = np.nan
    assert np.isnan(np.asarray(ndd.add_noise(damaged, x, snr_db=0))).all()


def test_bad_noise_is_refused():
    x = np.ones((4, 2), "f4")
    with pytest.raises(RuntimeError, match="the noise has 3 channels, but the sound has 2"):
        ndd.add_noise(x, np.ones((4, 3), "f4"), snr_db=0).evaluate()
    with pytest.raises(RuntimeError, match="the noise has no samples"):
        ndd.add_noise(x, np.ones((0, 2), "f4"), snr_db=0).evaluate()
    with pytest.raises(RuntimeError, match=r"`offset` must be a frame of the noise.*got 4"):
        ndd.add_noise(x, x, snr_db=0, offset=4).evaluate()
    with pytest.raises(ValueError, match="`offset` needs `noise`"):
        ndd.add_noise(x, snr_db=0, offset=4)
    for bad in (math.nan, -math.inf, -1e9):
        with pytest.raises(RuntimeError, match="`snr_db` must be at least -700"):
            ndd.add_noise(x, snr_db=bad).evaluate()
    with pytest.raises(TypeError, match="snr_db"):
        ndd.add_noise(x)


# Masks

CALLS = {"t": ndd.time_mask, "f": ndd.frequency_mask}
LAYOUTS = ["ft", "tf", "Cft", "Ctf", "ftC", "tfC"]
EXTENTS = {"f": 7, "t": 11, "C": 2}


def spectrogram(layout, dtype="f4"):
    shape = [EXTENTS[letter] for letter in layout]
    return np.arange(1, math.prod(shape) + 1).reshape(shape).astype(dtype)


def masked(x, layout, letter, spans, fill=0.0):
    """The same in NumPy."""
    made = np.moveaxis(x.copy(), layout.index(letter), 0)
    for start, width in spans:
        made[start : start + width] = fill
    return np.moveaxis(made, 0, layout.index(letter))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("letter", CALLS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i2", "u1", "i4"])
def test_masks_are_where_they_are_put(layout, letter, dtype):
    x = spectrogram(layout, dtype)
    for starts, widths in [
        ([2], [3]),
        ([0, 5], [1]),
        ([0, 2, 6], [1, 2, 99]),
        ([99], [1]),
        ([], [1]),
    ]:
        data = ndd.tensor(x, layout=layout)
        if starts:
            made = CALLS[letter](data, start=starts, width=widths, fill_value=5)
        else:
            made = CALLS[letter](data, num_masks=0, width=widths, fill_value=5)
        spans = list(zip(starts, itertools.cycle(widths), strict=False))
        np.testing.assert_array_equal(np.asarray(made), masked(x, layout, letter, spans, 5))
        assert made.layout == layout


@pytest.mark.parametrize("axis", [1, 2])
def test_masks_are_those_of_torchaudio(axis):
    x = spectrogram("Cft")
    torch.manual_seed(1)
    for _ in range(10):
        theirs = F.mask_along_axis(torch.from_numpy(x), 6, -3.0, axis).numpy()
        lines = np.flatnonzero((np.moveaxis(theirs, axis, 0) == -3).all((1, 2)))
        call = CALLS["ft"[axis - 1]]
        start, width = (int(lines[0]), len(lines)) if len(lines) else (0, 0)
        made = call(ndd.tensor(x, layout="Cft"), start=start, width=width, fill_value=-3)
        np.testing.assert_array_equal(np.asarray(made), theirs)


def test_the_mean_can_fill_masks():
    x = spectrogram("ft", "f8") * 1.7
    made = np.asarray(ndd.time_mask(ndd.tensor(x, layout="ft"), start=1, width=2, fill_mean=True))
    np.testing.assert_allclose(made, masked(x, "ft", "t", [(1, 2)], x.mean()), rtol=1e-12)
    damaged = x.copy()
    damaged[0, 0] = np.nan
    data = ndd.tensor(damaged, layout="ft")
    assert np.isnan(np.asarray(ndd.frequency_mask(data, start=3, width=1, fill_mean=True))[3]).all()


def drawn(made, letter):
    """Whether each line is masked, for each sample of batches with layout "ft"."""
    return np.asarray(
        [(np.asarray(m) == 0).all("ft".index("f" if letter == "t" else "t")) for m in made]
    )


@pytest.mark.parametrize("letter", CALLS)
def test_random_masks_have_all_widths_and_places_equally_often(letter):
    count, extent, most = 4000, EXTENTS[letter], 3
    batch = ndd.batch([spectrogram("ft")] * count, layout="ft")
    lines = drawn(CALLS[letter](batch, max_width=most, rng=ndd.random.RNG(seed=1)), letter)
    widths = lines.sum(1)
    counts = np.bincount(widths, minlength=most + 1)
    assert len(counts) == most + 1
    # Five standard deviations of a count.
    deviation = 5 * math.sqrt(count / (most + 1))
    assert abs(counts - count / (most + 1)).max() < deviation
    for width in range(1, most + 1):
        rows = lines[widths == width]
        starts = rows.argmax(1)
        assert all(row[s : s + width].all() for row, s in zip(rows, starts, strict=True))
        places = extent - width + 1
        found = np.bincount(starts, minlength=places)
        assert len(found) == places
        assert abs(found - len(rows) / places).max() < 5 * math.sqrt(len(rows) / places)


def test_widths_without_starts_are_put_at_random():
    batch = ndd.batch([spectrogram("ft")] * 300, layout="ft")
    lines = drawn(ndd.time_mask(batch, width=4), "t")
    assert set(lines.sum(1)) == {4}
    assert set(lines.argmax(1)) == set(range(8))
    lines = drawn(ndd.time_mask(batch, width=1, num_masks=2), "t")
    assert set(lines.sum(1)) == {1, 2}
    lines = drawn(ndd.time_mask(batch, width=[1, 3]), "t")
    assert set(lines.sum(1)) == {3, 4}


def test_a_fraction_limits_widths():
    shapes = [(4, 100), (4, 10), (4, 3), (4, 0)]
    arrays = [np.ones(shape, "f4") for shape in shapes] * 40
    made = ndd.time_mask(ndd.batch(arrays, layout="ft"), max_width=50, max_fraction=0.2)
    widths = [int((np.asarray(m) == 0).all(0).sum()) for m in made]
    for position, (_, frames) in enumerate(shapes):
        assert max(widths[position::4]) <= 0.2 * frames
    assert max(widths[1::4]) == 2
    assert max(widths[0::4]) > 10


def test_masks_may_differ_per_sample():
    x = [spectrogram("ft"), spectrogram("ft") * 2]
    made = ndd.frequency_mask(
        ndd.batch(x, layout="ft"),
        start=ndd.batch([[0, 4], [2, 3]]),
        width=ndd.batch([1, 2]),
        fill_value=ndd.batch([-1.0, -2.0]),
    )
    one, two = (np.asarray(sample) for sample in made.tensors)
    np.testing.assert_array_equal(one, masked(x[0], "ft", "f", [(0, 1), (4, 1)], -1))
    np.testing.assert_array_equal(two, masked(x[1], "ft", "f", [(2, 2), (3, 2)], -2))
    none, all_of_it = ndd.time_mask(
        ndd.batch(x, layout="ft"),
        max_width=ndd.batch([0, 10**9]),
        num_masks=ndd.batch([5, 9]),
        rng=ndd.random.RNG(seed=0),
    ).tensors
    np.testing.assert_array_equal(np.asarray(none), x[0])
    assert (np.asarray(all_of_it) == 0).any()


def test_data_without_a_layout_has_time_last():
    x = np.ones((3, 4), "f4")
    assert np.asarray(ndd.time_mask(x, start=0, width=1)).tolist() == [[0, 1, 1, 1]] * 3
    x = np.ones((2, 3, 4), "f4")
    assert np.asarray(ndd.frequency_mask(x, start=0, width=1))[:, 0].sum() == 0


def test_bad_masks_are_refused():
    x = np.ones((3, 4), "f4")
    with pytest.raises(ValueError, match="`max_width` is missing"):
        ndd.time_mask(x)
    with pytest.raises(ValueError, match="together with `width`"):
        ndd.time_mask(x, max_width=1, width=1)
    with pytest.raises(ValueError, match="`start` needs `width`"):
        ndd.time_mask(x, max_width=1, start=1)
    with pytest.raises(RuntimeError, match="`start` gives 3 masks, but `width` has 2 numbers"):
        ndd.time_mask(x, start=[0, 1, 2], width=[1, 2]).evaluate()
    with pytest.raises(RuntimeError, match="`width` must not be negative, got -1"):
        ndd.time_mask(x, width=-1).evaluate()
    with pytest.raises(RuntimeError, match="`start` must not be negative, got -2"):
        ndd.time_mask(x, start=-2, width=1).evaluate()
    with pytest.raises(RuntimeError, match="`max_width` must not be negative"):
        ndd.time_mask(ndd.batch([x]), max_width=ndd.batch([-1])).evaluate()
    with pytest.raises(RuntimeError, match="`num_masks` gives 1001 masks, but there may be"):
        ndd.time_mask(ndd.batch([x]), max_width=1, num_masks=ndd.batch([1001])).evaluate()
    with pytest.raises(RuntimeError, match="`start` gives 1001 masks"):
        ndd.time_mask(x, start=[0] * 1001, width=1).evaluate()
    with pytest.raises(RuntimeError, match="`max_fraction` must be between 0 and 1"):
        ndd.time_mask(ndd.batch([x]), max_width=1, max_fraction=ndd.batch([math.nan])).evaluate()
    with pytest.raises(ValueError, match='"HW"'):
        ndd.time_mask(ndd.tensor(x, layout="HW"), width=1)


# Deltas


@pytest.mark.parametrize("window", [3, 5, 9, 21])
@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5, 8, 9, 40])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_deltas_are_those_of_torchaudio(window, frames, dtype):
    x = sound(2, 6, frames, dtype=dtype)
    made = np.asarray(ndd.delta(ndd.tensor(x, layout="Cft"), window_length=window))
    expected = F.compute_deltas(torch.from_numpy(x), window).numpy()
    # Sums in another order.
    np.testing.assert_allclose(made, expected, atol=20 * np.finfo(dtype).eps)
    assert made.dtype == dtype


@pytest.mark.parametrize(("window", "frames"), [(3, 3), (5, 5), (5, 12), (9, 9), (9, 50)])
def test_deltas_at_the_ends_can_be_those_of_librosa(window, frames):
    """Which are those of this filter."""
    x = sound(6, frames, dtype="f8")
    made = np.asarray(ndd.delta(x, window_length=window, mode="interp"))
    expected = savgol_filter(x, window, polyorder=1, deriv=1, mode="interp", axis=-1)
    np.testing.assert_allclose(made, expected, atol=1e-13)


@pytest.mark.parametrize("layout", [*LAYOUTS, "t"])
@pytest.mark.parametrize("mode", ["replicate", "interp"])
def test_deltas_are_along_time_in_all_layouts(layout, mode):
    x = sound(*[EXTENTS[letter] for letter in layout], dtype="f8")
    made = np.asarray(ndd.delta(ndd.tensor(x, layout=layout), mode=mode))
    axis = layout.index("t")
    last = np.moveaxis(x, axis, -1)
    rows = [np.asarray(ndd.delta(row, mode=mode)) for row in last.reshape(-1, last.shape[-1])]
    expected = np.moveaxis(np.reshape(rows, last.shape), -1, axis)
    np.testing.assert_allclose(made, expected, atol=1e-14)


def test_deltas_of_ragged_batches_halves_and_nothing():
    arrays = [sound(3, n).astype("f2") for n in (0, 1, 7)]
    made = ndd.delta(ndd.batch(arrays, layout="ft"))
    for array, result in zip(arrays, made.tensors, strict=True):
        expected = np.asarray(ndd.delta(array.astype("f8")))
        assert np.asarray(result).dtype == np.float16
        np.testing.assert_allclose(np.asarray(result), expected, atol=2e-3)
    damaged = sound(1, 20)
    damaged[0, 10] = np.nan
    bad = np.isnan(np.asarray(ndd.delta(damaged)))[0]
    assert np.flatnonzero(bad).tolist() == [8, 9, 11, 12]


def test_bad_windows_of_deltas_are_refused():
    with pytest.raises(RuntimeError, match="`window_length` must be odd, from 3 to 1001, got 4"):
        ndd.delta([1.0], window_length=4).evaluate()
    with pytest.raises(ValueError, match="window_length"):
        ndd.delta([1.0], window_length=1)
    with pytest.raises(RuntimeError, match="there are 4 frames, fewer than `window_length`, 5"):
        ndd.delta([1.0] * 4, mode="interp").evaluate()
    with pytest.raises(ValueError, match="floats"):
        ndd.delta(np.int16([1]))


def test_numbers_are_the_same_on_all_threads_and_in_all_modes():
    arrays = [sound(3000 + n, seed=n) for n in range(8)]
    spectrograms = ndd.batch([sound(20, 30 + n, seed=n) for n in range(8)], layout="ft")

    def run():
        rng = ndd.random.RNG(seed=5)
        noisy = ndd.add_noise(ndd.batch(arrays), snr_db=10, rng=rng)
        marked = ndd.time_mask(spectrograms, max_width=9, num_masks=3, rng=rng)
        return [np.asarray(each) for made in (noisy, marked) for each in made.tensors]

    expected = run()
    for mode in (ndd.EvalMode.deferred, ndd.EvalMode.sync_cpu):
        with mode:
            for one, other in zip(expected, run(), strict=True):
                np.testing.assert_array_equal(one, other)
