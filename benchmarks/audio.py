"""Audio: analysis and decoding, against DALI, torchaudio and soundfile on as many threads."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import penstock
from benchmarks.calls import Operator, row
from benchmarks.harness import (
    ORDER_OF_SUMS,
    Case,
    Contender,
    Family,
    Library,
    Prepare,
    Ready,
    arrays,
    synchronous,
    throughput,
)

ABOUT = """\
Batches of 64 sounds of 5 s at 16 kHz (*5 s*), or of 1 to 15 s (*1 to 15 s*), of float32 in memory
of the library, in eager mode: two calls, then a wait for both results, divided by two. Windows of
400 samples, every 160, in transforms of 512; 80 mel filters; 20 coefficients. *chain* is
spectrogram, mel_filter_bank and to_decibels; *log_mel* is the same at once, against DALI's chain.
*audio_resample* is from 44.1 to 16 kHz, of 16 sounds of 5 s.
"""
ABOUT_TORCH = """\
*chain* and *log_mel* as above, of 64 sounds of 5 s, against torchaudio: `MelSpectrogram` and
`AmplitudeToDB` of the whole batch, on as many threads.
"""
ABOUT_DECODING = """\
Batches of 64 files of 5 s at 16 kHz with 16 bits, in memory, to float32: *WAV*, *FLAC*. *WAV to
chain* goes on with the chain above.
"""
ABOUT_SOUNDFILE = """\
The same files, with soundfile on a pool of as many threads.
"""

RATE = 16000.0
WINDOWS = {"nfft": 512, "window_length": 400, "window_step": 160}
MEL = {"nfilter": 80, "sample_rate": RATE}


def sound(seconds: float, seed: int, rate: float = RATE) -> np.ndarray:
    """Tones under noise that swells."""
    t = np.arange(int(seconds * rate)) / rate
    noise = np.random.default_rng(seed).standard_normal(len(t))
    wave = 0.3 * np.sin(2 * np.pi * (200 + 40 * seed) * t) + 0.05 * noise * (0.1 + np.sin(t) ** 2)
    return wave.astype(np.float32)


def sounds(ragged: bool) -> list[np.ndarray]:
    if not ragged:
        return [sound(5, seed) for seed in range(64)]
    lengths = np.random.default_rng(1).uniform(1, 15, 64)
    return [sound(length, seed) for seed, length in enumerate(lengths)]


Make = Callable[[Library], Any]


def batch(ragged: bool) -> Make:
    return lambda ndd: ndd.batch(sounds(ragged)).evaluate()


def spectrograms(ragged: bool, layout: str = "ft") -> Make:
    """The same for both libraries: decibels of what is nearly zero tell roundings apart."""
    made = batch(ragged)

    def make(ndd: Library) -> Any:
        computed = penstock.spectrogram(made(penstock), layout=layout, **WINDOWS)
        return ndd.batch(arrays(computed), layout=layout).evaluate()

    return make


def mels(ragged: bool) -> Make:
    made = spectrograms(ragged)
    return lambda ndd: ndd.mel_filter_bank(made(ndd), **MEL).evaluate()


def music(ndd: Library) -> Any:
    return ndd.batch([sound(5, seed, 44100) for seed in range(16)]).evaluate()


def chain(ndd: Library, x: Any) -> Any:
    made = ndd.mel_filter_bank(ndd.spectrogram(x, **WINDOWS), **MEL)
    return ndd.to_decibels(made)


def log_mel(ndd: Library, x: Any) -> Any:
    """The chain at once, where there is such an operator."""
    if ndd is penstock:
        return ndd.log_mel(x, **WINDOWS, **MEL)
    return chain(ndd, x)


def _rows(ragged: bool) -> dict[str, tuple[Operator, Make]]:
    return {
        "spectrogram, ft": (lambda ndd, x: ndd.spectrogram(x, **WINDOWS), batch(ragged)),
        "spectrogram, tf": (
            lambda ndd, x: ndd.spectrogram(x, layout="tf", **WINDOWS),
            batch(ragged),
        ),
        # Longer than all sounds: DALI runs out of memory where some are longer and some shorter.
        "power_spectrum": (lambda ndd, x: ndd.power_spectrum(x, nfft=1 << 18), batch(ragged)),
        "mel_filter_bank, ft": (
            lambda ndd, x: ndd.mel_filter_bank(x, **MEL),
            spectrograms(ragged),
        ),
        "mel_filter_bank, tf": (
            lambda ndd, x: ndd.mel_filter_bank(x, **MEL),
            spectrograms(ragged, "tf"),
        ),
        "to_decibels": (lambda ndd, x: ndd.to_decibels(x), spectrograms(ragged)),
        "mfcc": (lambda ndd, x: ndd.mfcc(x), mels(ragged)),
        "preemphasis_filter": (lambda ndd, x: ndd.preemphasis_filter(x), batch(ragged)),
        "nonsilent_region": (
            lambda ndd, x: ndd.nonsilent_region(x, cutoff_db=-30)[1],
            batch(ragged),
        ),
        "chain": (chain, batch(ragged)),
        "log_mel": (log_mel, batch(ragged)),
    }


def cases() -> Iterator[Case]:
    for title, ragged in (("5 s", False), ("1 to 15 s", True)):
        for name, (operator, data) in _rows(ragged).items():
            prepare = row(operator, data, calls=2)
            yield Case(f"audio/{title}/{name}", prepare, 7, tolerance=ORDER_OF_SUMS)
    prepare = row(
        lambda ndd, x: ndd.audio_resample(x, in_rate=44100.0, out_rate=RATE), music, calls=2
    )
    yield Case("audio/5 s/audio_resample", prepare, 7)


def torch_cases() -> Iterator[Case]:
    for name, operator in (("chain", chain), ("log_mel", log_mel)):
        prepare = _against_torch(operator)
        yield Case(f"audio, torchaudio/5 s/{name}", prepare, 7, tolerance=ORDER_OF_SUMS)


def _against_torch(operator: Operator) -> Prepare:
    def prepare(side: Contender) -> Ready:
        if side.is_dali:
            return _torch_chain(side)
        ndd = side.library
        data = ndd.batch(sounds(ragged=False)).evaluate()
        return Ready(throughput(lambda: operator(ndd, data), 2), arrays(operator(ndd, data)))

    return prepare


def _torch_chain(side: Contender) -> Ready:
    import torch
    import torchaudio

    length = WINDOWS["window_length"]
    # DALI's default window.
    window = torch.sin(torch.pi * (torch.arange(length) + 0.5) / length) ** 2
    mel = torchaudio.transforms.MelSpectrogram(
        sample_rate=int(RATE),
        n_fft=WINDOWS["nfft"],
        win_length=length,
        hop_length=WINDOWS["window_step"],
        window_fn=lambda _: window,
        n_mels=MEL["nfilter"],
        norm="slaney",
        mel_scale="slaney",
    )
    decibels = torchaudio.transforms.AmplitudeToDB()
    signals = torch.from_numpy(np.stack(sounds(ragged=False)))

    def by_torch() -> Any:
        torch.set_num_threads(side.threads)
        made = decibels(mel(signals))
        return made - made.amax((1, 2), keepdim=True)

    return Ready(synchronous(by_torch, 2), [each.numpy() for each in by_torch()])


def files(kind: str) -> list[np.ndarray]:
    """Encoded sounds."""
    import soundfile

    made = []
    for each in sounds(ragged=False):
        file = io.BytesIO()
        soundfile.write(file, each, int(RATE), format=kind, subtype="PCM_16")
        made.append(np.frombuffer(file.getvalue(), np.uint8))
    return made


def decoded_chain(ndd: Library, x: Any) -> Any:
    return chain(ndd, ndd.decoders.audio(x, downmix=True)[0])


def decoding_cases() -> Iterator[Case]:
    prepare = row(decoded_chain, _batch_of_files("WAV"), calls=2)
    yield Case("audio decoding/5 s/WAV to chain", prepare, 7, tolerance=ORDER_OF_SUMS)
    for kind in ("WAV", "FLAC"):
        data = _batch_of_files(kind)
        prepare = row(lambda ndd, x: ndd.decoders.audio(x)[0], data, calls=2)
        yield Case(f"audio decoding/5 s/{kind}", prepare, 7)


def soundfile_cases() -> Iterator[Case]:
    for kind in ("WAV", "FLAC"):
        yield Case(f"audio decoding, soundfile/5 s/{kind}", _against_soundfile(kind), 7)


def _batch_of_files(kind: str) -> Make:
    return lambda ndd: ndd.batch(files(kind)).evaluate()


def _against_soundfile(kind: str) -> Prepare:
    def prepare(side: Contender) -> Ready:
        ndd = side.library
        if not side.is_dali:
            data = ndd.batch(files(kind)).evaluate()
            decode = lambda: ndd.decoders.audio(data)[0]  # noqa: E731
            return Ready(throughput(decode, 2), arrays(decode()))
        import soundfile

        given = [each.tobytes() for each in files(kind)]
        pool = ThreadPoolExecutor(side.threads)

        def read(data: bytes) -> np.ndarray:
            return soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]

        def all_files() -> list[np.ndarray]:
            return list(pool.map(read, given))

        return Ready(synchronous(all_files, 2), all_files())

    return prepare


FAMILY = Family("audio", "Audio", ABOUT, cases)
TORCH = Family(
    "audio, torchaudio",
    "Audio, against torchaudio",
    ABOUT_TORCH,
    torch_cases,
    rival="torchaudio",
)
DECODING = Family("audio decoding", "Decoding of audio", ABOUT_DECODING, decoding_cases)
SOUNDFILE = Family(
    "audio decoding, soundfile",
    "Decoding of audio, against soundfile",
    ABOUT_SOUNDFILE,
    soundfile_cases,
    rival="soundfile",
)
