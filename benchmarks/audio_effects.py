"""Audio effects, against torchaudio on as many threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.harness import (
    Case,
    Contender,
    Family,
    Library,
    Ready,
    arrays,
    described,
    synchronous,
    throughput,
)

ABOUT = """\
Batches of 64 sounds of 5 s at 16 kHz (*time_stretch*, *pitch_shift*: 16), or of as many
spectrograms of 80 x 500, of float32: penstock has them in eager mode, two calls and then a wait
for both results; torchaudio (2.11.0) has them one by one, on a pool of as many threads with one
thread of torch each. Where both draw at random, only shapes are compared, and so are stretched
sounds, since torchaudio adds up phases in single precision; tests compare the values.
*pitch_shift* is by an octave: for ratios that are not of small integers, torchaudio's resampling
takes seconds for each sound.
"""

COUNT = 64
STRETCHED = 16
NFFT = 2048

Ours = Callable[[Library, Any], Any]
Theirs = Callable[[Any], Callable[[Any], Any]]


def stretch(torchaudio: Any) -> Callable[[Any], Any]:
    """The steps of librosa.effects.time_stretch."""
    import torch

    window = torch.hann_window(NFFT)
    advance = torch.linspace(0, math.pi * NFFT / 4, NFFT // 2 + 1)[:, None]

    def run(sound: Any) -> Any:
        spectrum = torch.stft(
            sound, NFFT, NFFT // 4, window=window, pad_mode="constant", return_complex=True
        )
        made = torchaudio.functional.phase_vocoder(spectrum, 1.25, advance)
        length = round(len(sound) / 1.25)
        return torch.istft(made, NFFT, NFFT // 4, window=window, length=length)

    return run


def add_noise(torchaudio: Any) -> Callable[[Any], Any]:
    import torch

    noise, snr = torch.from_numpy(sounds(1, seed=1)[0]), torch.tensor(10.0)
    return lambda sound: torchaudio.functional.add_noise(sound, noise, snr)


def add_white_noise(torchaudio: Any) -> Callable[[Any], Any]:
    import torch

    snr = torch.tensor(10.0)
    return lambda sound: torchaudio.functional.add_noise(sound, torch.randn_like(sound), snr)


SOUNDS: dict[str, tuple[Ours, Theirs]] = {
    "add_noise": (
        lambda ndd, x: ndd.add_noise(x, noise(ndd), snr_db=10),
        add_noise,
    ),
    "add_noise, white": (
        lambda ndd, x: ndd.add_noise(x, snr_db=10),
        add_white_noise,
    ),
    "fade": (
        lambda ndd, x: ndd.fade(x, fade_in_len=1600, fade_out_len=1600),
        lambda torchaudio: torchaudio.transforms.Fade(1600, 1600),
    ),
    "gain": (
        lambda ndd, x: ndd.gain(x, gain_db=6),
        lambda torchaudio: lambda sound: torchaudio.functional.gain(sound, 6.0),
    ),
    "pitch_shift": (
        lambda ndd, x: ndd.pitch_shift(x, n_steps=12, nfft=512),
        lambda torchaudio: lambda sound: torchaudio.functional.pitch_shift(sound, 16000, 12),
    ),
    "time_stretch": (lambda ndd, x: ndd.time_stretch(x, rate=1.25), stretch),
}

SPECTROGRAMS: dict[str, tuple[Ours, Theirs]] = {
    "delta": (
        lambda ndd, x: ndd.delta(x),
        lambda torchaudio: torchaudio.functional.compute_deltas,
    ),
    "frequency_mask": (
        lambda ndd, x: ndd.frequency_mask(x, max_width=27),
        lambda torchaudio: torchaudio.transforms.FrequencyMasking(28),
    ),
    "time_mask": (
        lambda ndd, x: ndd.time_mask(x, max_width=100),
        lambda torchaudio: torchaudio.transforms.TimeMasking(101),
    ),
}

COMPARED = {"add_noise", "delta", "fade", "gain"}
"""Whose values are compared."""

_noise: list[Any] = []


def noise(library: Library) -> Any:
    """The noise for all sounds, made once."""
    if not _noise:
        _noise.append(library.tensor(sounds(1, seed=1)[0]))
    return _noise[0]


def sounds(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 80000)).astype(np.float32) * 0.1


def spectrograms() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(COUNT, 80, 500)).astype(np.float32)


def cases() -> Iterator[Case]:
    for name, (ours, theirs) in SOUNDS.items():
        count = STRETCHED if name in ("pitch_shift", "time_stretch") else COUNT
        prepared = one_by_one(ours, theirs, lambda count=count: sounds(count), None, name)
        yield Case(f"audio_effects/sounds/{name}", prepared, 9)
    for name, (ours, theirs) in SPECTROGRAMS.items():
        prepared = one_by_one(ours, theirs, spectrograms, "ft", name)
        yield Case(f"audio_effects/spectrograms/{name}", prepared, 9)


def one_by_one(
    ours: Ours, theirs: Theirs, make: Callable[[], np.ndarray], layout: str | None, name: str
) -> Callable[[Contender], Ready]:
    def prepare(side: Contender) -> Ready:
        values = make()
        shown = list if name in COMPARED else described
        if not side.is_dali:
            data = side.library.batch(list(values), layout=layout)
            results = shown(arrays(ours(side.library, data)))
            return Ready(throughput(lambda: ours(side.library, data), 2), results)
        import torch
        import torchaudio

        effect = theirs(torchaudio)
        samples = [torch.from_numpy(value) for value in values]
        if layout is not None and name != "delta":
            # Its masks are for spectrograms with channels.
            samples = [sample[None] for sample in samples]
        pool = ThreadPoolExecutor(side.threads, initializer=torch.set_num_threads, initargs=(1,))

        def call() -> list[Any]:
            return list(
                pool.map(effect, samples, chunksize=max(1, len(samples) // side.threads // 4))
            )

        made = [result.numpy().reshape(result.shape[-values.ndim + 1 :]) for result in call()]
        return Ready(synchronous(call, 1), shown(made))

    return prepare


FAMILY = Family("audio_effects", "Audio effects", ABOUT, cases, rival="torchaudio")
