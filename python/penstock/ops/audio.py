"""Audio analysis.

Signals are arrays of samples, as `decoders.audio` makes them. Spectrograms have the layout "ft",
frequencies first, or "tf".
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from penstock._errors import messages
from penstock._operators.arguments import Floats
from penstock._operators.constraints import NUMBERS, Between, OneOf, Rank
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._values.axes import axis_from_front
from penstock._values.dtype import DType, float32, int32

Numbers: TypeAlias = Annotated[Data, NUMBERS]
AtLeastOneAxis: TypeAlias = Annotated[Data, NUMBERS, Rank(1, None)]


@operator()
def audio_resample(
    input: Annotated[Data, NUMBERS, Rank(1, 2)],
    *,
    dtype: Annotated[DType, NUMBERS] | None = None,
    in_rate: PerSample[float] | None = None,
    out_length: PerSample[int] | None = None,
    out_rate: PerSample[float] | None = None,
    quality: Annotated[float, Between(0, 100)] = 50.0,
    scale: PerSample[float] | None = None,
) -> Like:
    """Resample signals.

    The new length is given by `in_rate` and `out_rate`, by `scale` or by `out_length`. The filter
    is a windowed sinc for the rate of the input, as in DALI: where the rate goes down, frequencies
    above half of the new rate alias.

    Args:
        input: Signals: samples, or samples x channels.
        dtype: The element type of the result, by default the input's. Integers stand for numbers
            from -1 to 1, over the whole range of their type.
        in_rate: The sample rate of the input.
        out_length: The number of samples of the result.
        out_rate: The sample rate of the result.
        quality: From 0 to 100: 0 uses 3 lobes of the sinc, 50 uses 16, and 100 uses 64.
        scale: The number of samples of the result, as a multiple of the input's.

    Example:
        >>> second = ndd.zeros(shape=[44100], dtype=ndd.float32)
        >>> ndd.audio_resample(second, in_rate=44100, out_rate=16000).shape
        (16000,)
    """
    rates = in_rate is not None or out_rate is not None
    if rates + (scale is not None) + (out_length is not None) != 1:
        raise messages.bad_input(
            "audio_resample",
            "the new length must be given in exactly one way: by `in_rate` and `out_rate`, by "
            "`scale` or by `out_length`",
        )
    for name, item, other in (("in_rate", in_rate, "out_rate"), ("out_rate", out_rate, "in_rate")):
        if rates and item is None:
            raise messages.bad_argument(
                "audio_resample", name, f"must be given together with `{other}`"
            )
    return Like(input, dtype=input.dtype if dtype is None else dtype)


@operator()
def spectrogram(
    input: Annotated[Data, NUMBERS, Rank(1, 2)],
    *,
    center_windows: bool = True,
    layout: Annotated[str, OneOf("ft", "tf")] = "ft",
    nfft: Annotated[int, Between(1, None)] | None = None,
    power: Annotated[int, Between(1, 2)] = 2,
    reflect_padding: bool = True,
    window_fn: Floats | None = None,
    window_length: Annotated[int, Between(1, None)] = 512,
    window_step: Annotated[int, Between(1, None)] = 256,
) -> Result:
    """Compute the power spectra of overlapping windows of a signal.

    Args:
        input: Signals with one channel, of any length; n x 1 and 1 x n are fine, too.
        center_windows: Whether windows are centered at multiples of `window_step`. Otherwise they
            start there, and those that don't fit are left out.
        layout: "ft" has a row for each frequency, "tf" a row for each window.
        nfft: The length of the transforms, by default `window_length`. Windows are padded with
            zeros up to it. The result has `nfft // 2 + 1` frequencies.
        power: 2 for power, 1 for magnitude.
        reflect_padding: What centered windows see beyond the ends: the signal mirrored (without
            repeating its end), or zeros.
        window_fn: The window: `window_length` numbers, as a list or an array. By default a Hann
            window, `sin(pi * (i + 0.5) / window_length) ** 2`.
        window_length: The number of samples of a window.
        window_step: The number of samples from one window to the next.

    Example:
        >>> beeps = ndd.tensor([1.0, -1.0] * 8, dtype=ndd.float32)
        >>> made = ndd.spectrogram(beeps, window_fn=[1] * 4, window_length=4, window_step=4)
        >>> made.layout, made.torch()[:, 1].tolist()
        ('ft', [0.0, 0.0, 16.0])
    """
    if nfft is not None and window_length > nfft:
        raise messages.bad_argument(
            "spectrogram", "window_length", f"must be at most `nfft`, {nfft}, got {window_length}"
        )
    if window_fn and len(window_fn) != window_length:
        raise messages.bad_argument(
            "spectrogram",
            "window_fn",
            f"needs `window_length` numbers, {window_length}, got {len(window_fn)}",
        )
    return Result(float32, 2, layout, window_fn=window_fn or None)


@operator(devices="cpu")
def power_spectrum(
    input: AtLeastOneAxis,
    *,
    axis: int = -1,
    nfft: Annotated[int, Between(1, None)] | None = None,
    power: Annotated[int, Between(1, 2)] = 2,
) -> Like:
    """Compute power spectra along an axis.

    Args:
        input: Signals with any number of dimensions.
        axis: The axis to transform; negative ones count from the end.
        nfft: The length of the transform, by default the extent of the axis. Longer ones pad the
            data with zeros, shorter ones cut it. The result has `nfft // 2 + 1` frequencies.
        power: 2 for power, 1 for magnitude.

    Example:
        >>> ndd.power_spectrum(ndd.tensor([1.0, 2.0, 3.0, 4.0])).torch().tolist()
        [100.0, 8.0, 4.0]
    """
    found = axis_from_front("power_spectrum", "axis", axis, input.ndim)
    return Like(input, dtype=float32, axis=found)


def _upper_frequency(operator: str, low: float, high: float, rate: float) -> float:
    """The upper end of mel filters, by default half of the sample rate."""
    if not 0 < rate < float("inf"):
        raise messages.out_of_range(operator, "sample_rate", "positive and finite", rate)
    high = high or rate / 2
    if not low < high <= rate:
        raise messages.bad_argument(
            operator,
            "freq_high",
            f"must be above `freq_low`, {low}, and at most `sample_rate`, {rate}, got {high}",
        )
    return high


@operator()
def mel_filter_bank(
    input: AtLeastOneAxis,
    *,
    freq_high: Annotated[float, Between(0, None)] = 0.0,
    freq_low: Annotated[float, Between(0, None)] = 0.0,
    mel_formula: Annotated[str, OneOf("slaney", "htk")] = "slaney",
    nfilter: Annotated[int, Between(1, None)] = 128,
    normalize: bool = True,
    sample_rate: float = 44100.0,
) -> Like:
    """Turn spectrograms into mel spectrograms.

    The filters are triangles, whose corners are evenly spaced on the mel scale.

    Args:
        input: Spectrograms whose layout has an "f", such as "ft". Without a layout, the frequencies
            are the last axis but one.
        freq_high: The upper end of the last filter in Hz; 0 for half of `sample_rate`.
        freq_low: The lower end of the first filter in Hz.
        mel_formula: The mel scale: "slaney" is linear below 1 kHz and logarithmic above, "htk" is
            `1127 * ln(1 + f / 700)`.
        nfilter: The number of filters.
        normalize: Whether all triangles have the area 1. Otherwise they have the height 1.
        sample_rate: The sample rate of the signal.

    Example:
        >>> spectrum = ndd.tensor([[1.0], [2.0], [3.0]], layout="ft")
        >>> made = ndd.mel_filter_bank(spectrum, nfilter=1, sample_rate=8000, normalize=False)
        >>> made.shape, made.layout
        ((1, 1), 'ft')
    """
    high = _upper_frequency("mel_filter_bank", freq_low, freq_high, sample_rate)
    letters = input.layout
    if letters is None:
        axis = max(input.ndim - 2, 0)
    else:
        axis = letters.find("f")
        if axis < 0:
            raise messages.no_such_axis("mel_filter_bank", "f", letters)
    return Like(input, dtype=float32, axis=axis, freq_high=high)


class _Sizes(NamedTuple):
    """What a preset of `log_mel` has where an argument isn't given."""

    sample_rate: float
    nfft: int
    nfilter: int
    window_length: int | None = None
    """None for that of `nfft`."""
    window_step: int | None = None
    """None for half of the window."""
    preemph_coeff: float = 0.0


_PRESETS = {
    "dali": _Sizes(44100.0, 512, 128, window_length=512, window_step=256),
    "librosa": _Sizes(22050.0, 2048, 128, window_step=512),
    "torchaudio": _Sizes(16000.0, 400, 128),
    "whisper": _Sizes(16000.0, 400, 80, window_step=160),
    "nemo": _Sizes(16000.0, 512, 80, window_length=400, window_step=160, preemph_coeff=0.97),
}


@operator(in_dali=False)
def log_mel(
    input: Annotated[Data, NUMBERS, Rank(1, 2)],
    *,
    freq_high: Annotated[float, Between(0, None)] = 0.0,
    freq_low: Annotated[float, Between(0, None)] = 0.0,
    layout: Annotated[str, OneOf("ft", "tf")] = "ft",
    nfft: Annotated[int, Between(1, None)] | None = None,
    nfilter: Annotated[int, Between(1, None)] | None = None,
    preemph_coeff: float | None = None,
    preset: Annotated[str, OneOf("dali", "librosa", "torchaudio", "whisper", "nemo")] = "dali",
    sample_rate: float | None = None,
    window_length: Annotated[int, Between(1, None)] | None = None,
    window_step: Annotated[int, Between(1, None)] | None = None,
) -> Result:
    """Compute logarithmic mel spectrograms, with the values of DALI, librosa or speech models.

    This takes less time than a chain of `spectrogram`, `mel_filter_bank` and `to_decibels`: spectra
    are filtered while they are in the cache.

    `preset` decides what the result is equal to, and which sizes are used where none are given.
    The guide to audio has them in a table.

    - "dali": the chain of these operators. The result is in dB below the maximum of each sample.
    - "librosa": `librosa.power_to_db(librosa.feature.melspectrogram(...))`: dB, at most 80 below
      the maximum.
    - "torchaudio": `MelSpectrogram` and `AmplitudeToDB`: dB, at least -100.
    - "whisper": features of OpenAI's Whisper, for sounds of any length, without padding to 30 s.
    - "nemo": features of NVIDIA NeMo's models for speech recognition (Conformer, Parakeet): natural
      logarithms, standardized in each band. Without dithering and padding.

    A signal of `n` samples has `n // window_step + 1` windows, centered at multiples of
    `window_step`. "whisper" and "nemo" leave out the last one.

    Args:
        input: Signals with one channel, of any length; n x 1 and 1 x n are fine, too.
        freq_high: The upper end of the last filter in Hz; 0 for half of `sample_rate`.
        freq_low: The lower end of the first filter in Hz.
        layout: "ft" has a row for each filter, "tf" a row for each window.
        nfft: The length of the transforms. Windows are padded with zeros up to it.
        nfilter: The number of filters.
        preemph_coeff: How much of the previous sample is subtracted from each sample.
        preset: What the result should be equal to.
        sample_rate: The sample rate of the signal.
        window_length: The number of samples of a window.
        window_step: The number of samples from one window to the next.

    Example:
        >>> speech = ndd.batch([[0.0] * 16000, [0.1] * 24000], dtype=ndd.float32)
        >>> ndd.log_mel(speech, preset="whisper").shape
        [(80, 100), (80, 150)]
    """
    sizes = _PRESETS[preset]
    rate = sizes.sample_rate if sample_rate is None else sample_rate
    if nfft is None:
        given = window_length is not None
        if preset == "dali" and given:
            nfft = window_length
        elif preset == "nemo" and given:
            nfft = min(1 << (window_length - 1).bit_length(), 1 << 62)
        else:
            nfft = sizes.nfft
    window = window_length or sizes.window_length or nfft
    if window > nfft:
        raise messages.bad_argument(
            "log_mel", "window_length", f"must be at most `nfft`, {nfft}, got {window}"
        )
    return Result(
        float32,
        2,
        layout,
        freq_high=_upper_frequency("log_mel", freq_low, freq_high, rate),
        nfft=nfft,
        nfilter=nfilter or sizes.nfilter,
        preemph_coeff=sizes.preemph_coeff if preemph_coeff is None else preemph_coeff,
        sample_rate=rate,
        window_length=window,
        window_step=window_step or sizes.window_step or max(window // 2, 1),
    )


@operator()
def mfcc(
    input: AtLeastOneAxis,
    *,
    axis: int = 0,
    dct_type: Annotated[int, Between(1, 4)] = 2,
    lifter: float = 0.0,
    n_mfcc: Annotated[int, Between(1, None)] = 20,
    normalize: bool = False,
) -> Like:
    """Compute cepstral coefficients: the cosine transform of mel spectrograms in decibels.

    Args:
        input: Mel spectrograms with any number of dimensions.
        axis: The axis to transform; negative ones count from the end.
        dct_type: The type of the discrete cosine transform, 1 to 4.
        lifter: If not 0, coefficient `k` is multiplied by
            `1 + lifter / 2 * sin(pi * (k + 1) / lifter)`.
        n_mfcc: The number of coefficients; at most as many as there are mel bands.
        normalize: Whether the transform is orthonormal, which type 1 can't be.

    Example:
        >>> bands = ndd.tensor([[1.0], [2.0], [3.0], [4.0]])
        >>> ndd.mfcc(bands, n_mfcc=2, normalize=True).torch()[0].item()
        5.0
    """
    if normalize and dct_type == 1:
        raise messages.bad_argument("mfcc", "normalize", "must be False for `dct_type=1`")
    found = axis_from_front("mfcc", "axis", axis, input.ndim)
    return Like(input, dtype=float32, axis=found)


@operator()
def to_decibels(
    input: Numbers,
    *,
    cutoff_db: float = -200.0,
    multiplier: float = 10.0,
    reference: float | None = None,
) -> Like:
    """Convert magnitudes or powers to decibels: `multiplier * log10(input / reference)`.

    Args:
        input: Spectrograms, or other data with any number of dimensions.
        cutoff_db: The smallest result. Anything below becomes this, and so do negative numbers and
            NaN.
        multiplier: 10 for powers, 20 for magnitudes.
        reference: What becomes 0; by default the largest number of each sample.

    Example:
        >>> ndd.to_decibels(ndd.tensor([1.0, 10.0, 100.0, 0.0])).torch().tolist()
        [-20.0, -10.0, 0.0, -200.0]
    """
    if reference is not None and not (reference > 0 or reference < 0):
        raise messages.bad_argument("to_decibels", "reference", f"must not be {reference}")
    return Like(input, dtype=float32)


@operator()
def preemphasis_filter(
    input: Numbers,
    *,
    border: Annotated[str, OneOf("zero", "clamp", "reflect")] = "clamp",
    dtype: Annotated[DType, NUMBERS] = float32,
    preemph_coeff: PerSample[float] = 0.97,
) -> Like:
    """Emphasize the high frequencies of signals: `y[t] = x[t] - preemph_coeff * x[t - 1]`.

    Args:
        input: Signals. If the layout has a "t", such as "tC", this axis is filtered; otherwise all
            elements form one signal.
        border: What is before the first sample: a zero, the first sample, or the second one.
        dtype: The element type of the result. Integers are rounded and saturated.
        preemph_coeff: How much of the previous sample is subtracted.

    Example:
        >>> signal = ndd.tensor([4.0, 4.0, 8.0])
        >>> ndd.preemphasis_filter(signal, preemph_coeff=0.5, border="zero").torch().tolist()
        [4.0, 2.0, 6.0]
    """
    return Like(input, dtype=dtype)


@operator()
def nonsilent_region(
    input: Annotated[Data, NUMBERS, Rank(1, 1)],
    *,
    cutoff_db: float = -60.0,
    reference_power: float | None = None,
    reset_interval: int = 8192,
    window_length: Annotated[int, Between(1, None)] = 2048,
) -> tuple[Result, ...]:
    """Find where a signal is not silent: from the first to the last loud window.

    A window is loud if its mean square reaches the cutoff. A signal of zeros is all loud, unless
    there is a `reference_power`. NaN counts as silence.

    Args:
        input: Signals with one channel.
        cutoff_db: The smallest power of a loud window in decibels, relative to the reference.
        reference_power: What 0 decibels are; by default the power of the loudest window.
        reset_interval: Accepted for compatibility: sums are exact without resets.
        window_length: The number of samples of a window.

    Returns:
        The index of the first sample of the region, and the region's length; both are 0 if no
        window is loud.

    Example:
        >>> signal = ndd.tensor([0.0, 0.0, 1.0, -1.0, 0.0, 0.0])
        >>> begin, length = ndd.nonsilent_region(signal, window_length=1)
        >>> begin.item(), length.item()
        (2, 2)
    """
    if reference_power is not None and not reference_power > 0:
        raise messages.bad_argument(
            "nonsilent_region", "reference_power", f"must be positive, got {reference_power}"
        )
    return Result(int32, 0), Result(int32, 0)
