"""Keyword spotting: read a folder of sounds, compute log-mel features, mask them, train a model.

Creates the folder, with words that `espeak-ng` speaks where it is installed, else with tones,
chirps and bursts of noise, at several sample rates. Trains a small torch model on it, prints its
accuracy on sounds that it has not heard, and writes a spectrogram before and after masking to
keyword_spotting.png.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import penstock as ndd

RATE = 16000
MELS = 40
CUTOFF = -80.0
"""Decibels below the loudest part of a sound, where features end and padding is."""

WORDS = ("yes", "no", "stop", "go")
Rng = np.random.Generator


def sounds(files: ndd.Batch) -> ndd.Batch:
    """Files of any sample rate as mono sounds of one."""
    samples, rates = ndd.decoders.audio(files, downmix=True)
    return ndd.audio_resample(samples, in_rate=rates, out_rate=RATE)


def log_mel(samples: ndd.Batch) -> ndd.Batch:
    """Log-mel spectrograms with the layout "ft": 40 bands, a frame every 10 ms."""
    power = ndd.spectrogram(samples, nfft=512, window_length=400, window_step=160)
    mels = ndd.mel_filter_bank(power, sample_rate=RATE, nfilter=MELS)
    return ndd.to_decibels(mels, multiplier=10.0, cutoff_db=CUTOFF)


def masked(features: ndd.Batch) -> ndd.Batch:
    """The masks of SpecAugment, other ones for each sample."""
    features = ndd.frequency_mask(features, max_width=8, num_masks=2, fill_mean=True)
    return ndd.time_mask(features, max_width=20, max_fraction=0.2, num_masks=2, fill_mean=True)


def augmented(files: ndd.Batch) -> ndd.Batch:
    """Features to train on: with noise at a random level, and masks."""
    snr = ndd.random.uniform(range=[5.0, 30.0], batch_size=files.batch_size)
    return masked(log_mel(ndd.add_noise(sounds(files), snr_db=snr)))


class Model(torch.nn.Module):
    """Convolutions over time, and the average of the frames that are not padding."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv1d(MELS, 64, 9, stride=2, padding=4),
            torch.nn.BatchNorm1d(64),
            torch.nn.ReLU(),
            torch.nn.Conv1d(64, 64, 9, stride=2, padding=4),
            torch.nn.BatchNorm1d(64),
            torch.nn.ReLU(),
        )
        self.scores = torch.nn.Linear(64, classes)

    def forward(self, features: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        hidden = self.layers(features / 40 + 1)
        frames = torch.arange(hidden.shape[2])
        is_sound = (frames[None] * 4 < lengths[:, None])[:, None]
        average = (hidden * is_sound).sum(2) / is_sound.sum(2).clamp(min=1)
        scores: torch.Tensor = self.scores(average)
        return scores


def run(
    model: Model,
    reader: ndd.readers.File,
    features_of: Callable[[ndd.Batch], ndd.Batch],
    batch_size: int,
    optimizer: torch.optim.Optimizer | None = None,
) -> float:
    """One epoch, with training steps if there is an optimizer; the share of right answers."""
    model.train(optimizer is not None)
    correct = seen = 0
    batches = ((features_of(x), y) for x, y in reader.next_epoch(batch_size=batch_size))
    with torch.set_grad_enabled(optimizer is not None):
        # The next two batches are computed while the model trains on one.
        for features, labels in ndd.prefetch(batches, depth=2):
            x, lengths = features.torch(pad=True, fill_value=CUTOFF, return_lengths=True)
            y = labels.torch().long().flatten()
            scores = model(x, lengths)
            if optimizer is not None:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(scores, y).backward()
                optimizer.step()
            correct += int((scores.argmax(1) == y).sum())
            seen += len(y)
    return correct / seen


def tone(rng: Rng, t: np.ndarray) -> np.ndarray:
    return np.asarray(np.sin(2 * np.pi * rng.uniform(300, 1500) * t))


def rising(rng: Rng, t: np.ndarray) -> np.ndarray:
    pitch = rng.uniform(200, 500) + rng.uniform(500, 1500) * t
    return np.asarray(np.sin(2 * np.pi * pitch * t))


def falling(rng: Rng, t: np.ndarray) -> np.ndarray:
    return rising(rng, t)[::-1]


def bursts(rng: Rng, t: np.ndarray) -> np.ndarray:
    return rng.normal(size=t.shape) * 0.3 * (np.sin(2 * np.pi * rng.uniform(4, 9) * t) > 0)


def synthesize(folder: Path, count: int, rng: Rng) -> list[str]:
    """A folder of WAV files for each kind of sound."""
    kinds = {"bursts": bursts, "falling": falling, "rising": rising, "tone": tone}
    for name, make in kinds.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            rate = int(rng.choice([8000, 16000, 22050, 44100]))
            t = np.arange(int(rate * rng.uniform(0.4, 1.0))) / rate
            loud = make(rng, t) * rng.uniform(0.1, 0.8) + rng.normal(size=t.shape) * 0.01
            samples = (np.clip(loud, -1, 1) * 32767).astype("<i2")
            with wave.open(str(folder / name / f"{number:04}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(rate)
                file.writeframes(samples.tobytes())
    return list(kinds)


def speak(program: str, folder: Path, count: int, rng: Rng) -> list[str]:
    """A folder of WAV files for each word, spoken at different speeds and pitches."""
    for word in WORDS:
        (folder / word).mkdir(parents=True)
        for number in range(count):
            speed, pitch = int(rng.integers(110, 220)), int(rng.integers(10, 90))
            path = folder / word / f"{number:04}.wav"
            command = [program, "-s", str(speed), "-p", str(pitch), "-w", str(path), word]
            subprocess.run(command, check=True)
    return sorted(WORDS)


def make_sounds(folder: Path, count: int, seed: int) -> list[str]:
    """Make sounds to train on, a folder for each class; returns the classes."""
    rng = np.random.default_rng(seed)
    program = shutil.which("espeak-ng")
    return speak(program, folder, count, rng) if program else synthesize(folder, count, rng)


def write_picture(before: ndd.Tensor, after: ndd.Tensor, path: Path) -> None:
    """Two spectrograms, one above the other, low frequencies at the bottom."""
    colors = np.array([[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]])
    pictures = []
    for features in (before, after):
        part = np.clip(1 - np.asarray(features)[::-1] / CUTOFF, 0, 1)
        place = part[..., None] * (len(colors) - 1)
        rows = [np.interp(place, range(len(colors)), channel) for channel in colors.T]
        pixels = np.concatenate(rows, axis=-1).astype(np.uint8).repeat(4, 0).repeat(6, 1)
        pictures.append(np.pad(pixels, ((4, 4), (4, 4), (0, 0)), constant_values=255))
    Image.fromarray(np.vstack(pictures)).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--per-class", type=int, default=150, help="number of sounds per class")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("keyword_spotting.png"))
    args = parser.parse_args()
    ndd.random.set_seed(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        classes = make_sounds(folder / "train", args.per_class, seed=1)
        make_sounds(folder / "test", max(4, args.per_class // 4), seed=2)
        print(f"classes: {', '.join(classes)}; {args.per_class} sounds of each")
        reader = ndd.readers.File(file_root=str(folder / "train"), random_shuffle=True)
        unheard = ndd.readers.File(file_root=str(folder / "test"))
        model = Model(len(classes))
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for epoch in range(args.epochs):
            begin = time.perf_counter()
            accuracy = run(model, reader, augmented, args.batch_size, optimizer)
            rate = reader.epoch_size / (time.perf_counter() - begin)
            print(f"  epoch {epoch + 1}: accuracy {accuracy:4.0%}, {rate:6,.0f} sounds/s")
        accuracy = run(model, unheard, lambda x: log_mel(sounds(x)), args.batch_size)
        print(f"accuracy on sounds that it has not heard: {accuracy:.0%}")
        files, _ = unheard[: args.batch_size]
        before = log_mel(sounds(files))
        write_picture(before.tensors[0], masked(before).tensors[0], args.out)
    print(f"a spectrogram before and after masking: {args.out}")


if __name__ == "__main__":
    main()
