"""Audio effects.

What speech recipes do to sounds and spectrograms: SpecAugment masks, noise, stretched time, shifted
pitch, gain, fades, deltas. A sound is of shape (n,), or (n, channels), as `decoders.audio` returns
it. Random operators draw from `rng`, or from the calling thread's default RNG, separately for each
sample.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from penstock._errors import messages
from penstock._operators.arguments import REQUIRED, Ints
from penstock._operators.constraints import FLOATS, NUMBERS, Between, Elements, OneOf, Rank
from penstock._operators.definition import Data, Like, PerSample, operator
from penstock._values.dtype import DType

_SPECTROGRAMS = "ft tf Cft Ctf ftC tfC"
_SAMPLES = Elements("signed integers or floats", DType.Kind.signed, DType.Kind.float)

Numbers: TypeAlias = Annotated[Data, NUMBERS]
Sound: TypeAlias = Annotated[Data, _SAMPLES, Rank(1, 2)]
Count: TypeAlias = Annotated[PerSample[int], Between(0, None)]
WindowLength: TypeAlias = Annotated[int, Between(4, 65536)]


@operator(layouts=_SPECTROGRAMS, in_dali=False, random=True)
def time_mask(
    input: Numbers,
    *,
    fill_mean: bool = False,
    fill_value: PerSample[float] = 0.0,
    max_fraction: Annotated[PerSample[float], Between(0, 1)] = 1.0,
    max_width: Count | None = None,
    num_masks: Annotated[PerSample[int], Between(0, 1000)] = 1,
    start: PerSample[Ints] | None = None,
    width: PerSample[Ints] | None = None,
) -> Like:
    """Mask spans of time in spectrograms: the time masks of SpecAugment.

    Either `max_width` or `width` is needed. A mask that reaches beyond the end is cut off. The
    paper is "SpecAugment: A Simple Data Augmentation Method for Automatic Speech Recognition" (Park
    and others, 2019).

    Args:
        input: The spectrograms. Without a layout, time is the last dimension.
        fill_mean: Whether to fill masks with the mean of the spectrogram instead.
        fill_value: The value of what is masked.
        max_fraction: The largest width that is drawn, as a fraction of the number of frames.
        max_width: The largest width in frames: each mask gets a random one, from 0 on.
        num_masks: The number of masks. With several `start` or `width`, there are as many as those.
        start: The first frame of each mask; random by default. Needs `width`.
        width: The exact widths: one, or one for each mask.

    Example:
        >>> spectrogram = ndd.tensor([[1.0, 2.0, 3.0, 4.0]] * 2, layout="ft")
        >>> ndd.time_mask(spectrogram, start=1, width=2).torch().tolist()
        [[1.0, 0.0, 0.0, 4.0], [1.0, 0.0, 0.0, 4.0]]
        >>> ndd.time_mask(spectrogram, max_width=2, num_masks=2).shape
        (2, 4)
    """
    _check_masks("time_mask", max_width, start, width)
    return Like(input)


@operator(layouts=_SPECTROGRAMS, in_dali=False, random=True)
def frequency_mask(
    input: Numbers,
    *,
    fill_mean: bool = False,
    fill_value: PerSample[float] = 0.0,
    max_fraction: Annotated[PerSample[float], Between(0, 1)] = 1.0,
    max_width: Count | None = None,
    num_masks: Annotated[PerSample[int], Between(0, 1000)] = 1,
    start: PerSample[Ints] | None = None,
    width: PerSample[Ints] | None = None,
) -> Like:
    """Mask bands of frequencies in spectrograms: the frequency masks of SpecAugment.

    Either `max_width` or `width` is needed. A mask that reaches beyond the last frequency is cut
    off.

    Args:
        input: The spectrograms. Without a layout, frequencies are the dimension before the last.
        fill_mean: Whether to fill masks with the mean of the spectrogram instead.
        fill_value: The value of what is masked.
        max_fraction: The largest width that is drawn, as a fraction of the number of frequencies.
        max_width: The largest width in frequencies: each mask gets a random one, from 0 on.
        num_masks: The number of masks. With several `start` or `width`, there are as many as those.
        start: The first frequency of each mask; random by default. Needs `width`.
        width: The exact widths: one, or one for each mask.

    Example:
        >>> spectrogram = ndd.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], layout="ft")
        >>> ndd.frequency_mask(spectrogram, start=0, width=2, fill_value=-80).torch().tolist()
        [[-80.0, -80.0], [-80.0, -80.0], [5.0, 6.0]]
    """
    _check_masks("frequency_mask", max_width, start, width)
    return Like(input)


@operator(in_dali=False, random=True)
def add_noise(
    input: Sound,
    noise: Sound = None,
    *,
    offset: Count | None = None,
    snr_db: PerSample[float] = REQUIRED,
) -> Like:
    """Add noise at a signal-to-noise ratio.

    The energies of sound and noise are those of the parts that are added, for each channel. A sound
    that is silent stays so. Integers are rounded and saturated.

    Args:
        input: The sounds.
        noise: The noises: with one channel, or as many as the sounds, and of any type. A noise that
            is shorter than its sound is repeated. By default, white noise is drawn.
        offset: The frame of the noise to begin with. By default, a longer noise begins at a random
            frame, from which it lasts as long as the sound.
        snr_db: The signal-to-noise ratio in decibels; infinity adds nothing.

    Example:
        >>> sound = ndd.tensor([3.0, -3.0, 3.0, -3.0])
        >>> ndd.add_noise(sound, [1.0, 1.0], snr_db=0).torch().tolist()
        [6.0, 0.0, 6.0, 0.0]
        >>> ndd.add_noise(sound, snr_db=20).shape
        (4,)
    """
    if noise is None and offset is not None:
        raise messages.bad_argument("add_noise", "offset", "needs `noise`")
    return Like(input)


@operator(in_dali=False)
def time_stretch(
    input: Sound,
    *,
    nfft: WindowLength = 2048,
    rate: Annotated[PerSample[float], Between(0.01, 100)] = REQUIRED,
    window_step: Annotated[int, Between(1, None)] | None = None,
) -> Like:
    """Make sounds faster or slower without changing their pitch, by a phase vocoder.

    The result has the length of the sound divided by `rate`, rounded.

    Args:
        input: The sounds.
        nfft: The length of windows in samples. Short windows suit speech and sharp attacks, long
            ones music.
        rate: The speed: 2 is twice as fast.
        window_step: The step between windows, up to half of `nfft`; by default a quarter of it.

    Example:
        >>> ndd.time_stretch(ndd.zeros(shape=[16000]), rate=1.25).shape
        (12800,)
    """
    return Like(input)


@operator(in_dali=False)
def pitch_shift(
    input: Sound,
    *,
    bins_per_octave: Annotated[int, Between(1, None)] = 12,
    n_steps: PerSample[float] = REQUIRED,
    nfft: WindowLength = 2048,
    window_step: Annotated[int, Between(1, None)] | None = None,
) -> Like:
    """Make sounds higher or lower without changing their length.

    They are stretched by a phase vocoder, then resampled.

    Args:
        input: The sounds.
        bins_per_octave: The number of steps in an octave; 12 makes steps semitones.
        n_steps: By how many steps the pitch rises, up to six octaves; negative steps lower it.
        nfft: The length of windows in samples, as for `time_stretch`.
        window_step: The step between windows, up to half of `nfft`; by default a quarter of it.

    Example:
        >>> ndd.pitch_shift(ndd.zeros(shape=[16000]), n_steps=-3.5).shape
        (16000,)
    """
    return Like(input)


@operator(in_dali=False)
def gain(
    input: Annotated[Data, _SAMPLES],
    *,
    gain_db: Annotated[PerSample[float], Between(None, 700)] = 1.0,
) -> Like:
    """Make sounds louder or quieter. Integers are rounded and saturated.

    Args:
        input: The sounds, of any shape.
        gain_db: By how many decibels; minus infinity is silence.

    Example:
        >>> ndd.gain([0.5, -1.0], gain_db=20).torch().tolist()
        [5.0, -10.0]
    """
    return Like(input)


@operator(in_dali=False)
def fade(
    input: Sound,
    *,
    fade_in_len: Count = 0,
    fade_out_len: Count = 0,
    fade_shape: Annotated[
        str, OneOf("linear", "exponential", "logarithmic", "quarter_sine", "half_sine")
    ] = "linear",
) -> Like:
    """Fade sounds in and out.

    Args:
        input: The sounds.
        fade_in_len: The length of the fade at the start, in frames. A fade that is longer than the
            sound is as long as the sound.
        fade_out_len: The length of the fade at the end.
        fade_shape: The shape of both.

    Example:
        >>> ndd.fade([8.0] * 6, fade_in_len=3, fade_out_len=2).torch().tolist()
        [0.0, 4.0, 8.0, 8.0, 8.0, 0.0]
    """
    return Like(input)


@operator(layouts=f"{_SPECTROGRAMS} t", in_dali=False)
def delta(
    input: Annotated[Data, FLOATS],
    *,
    mode: Annotated[str, OneOf("replicate", "interp")] = "replicate",
    window_length: Annotated[int, Between(3, 1001)] = 5,
) -> Like:
    """Compute deltas: the slope of features over time, fitted to a window around each frame.

    For the deltas of deltas, call it twice.

    Args:
        input: Features such as MFCCs. Without a layout, time is the last dimension.
        mode: What frames near the ends get: "replicate" repeats the first and the last frame, as
            torchaudio does; "interp" takes the slope of the nearest whole window, as librosa does.
        window_length: The number of frames that a slope is fitted to, odd.

    Example:
        >>> ndd.delta([0.0, 1.0, 2.0, 3.0, 4.0], mode="interp").torch().tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    return Like(input)


def _check_masks(operator: str, max_width: Any, start: Any, width: Any) -> None:
    if max_width is None and width is None:
        problem = "is missing: give `max_width` for random widths, or `width` for exact ones"
        raise messages.bad_argument(operator, "max_width", problem)
    if max_width is not None and width is not None:
        raise messages.bad_argument(operator, "max_width", "can't be given together with `width`")
    if start is not None and width is None:
        raise messages.bad_argument(operator, "start", "needs `width`")
