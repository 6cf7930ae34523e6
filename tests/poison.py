"""Decodes files on memory that was filled with known values before.

    python -m tests.poison 0xee 0 30 png    # the value, a seed, files of each kind, kinds by name

Results are written to memory that other results had before. Whatever a codec does not write would
be seen, so results must not depend on what was there.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.images import corpus, encoded
from tests.mutations import mutate

HEIGHT, WIDTH = 48, 70
"""Results of this size come from memory that is kept; those below 4096 bytes don't."""


def damaged(only: str, seed: int, count: int) -> list[tuple[str, bytes]]:
    """Damaged files of each kind; deterministic."""
    return [
        (f"{kind} {number}", mutate(file, np.random.default_rng([seed, at, number])))
        for at, (kind, file) in enumerate(corpus(HEIGHT, WIDTH).items())
        if only in kind
        for number in range(count)
    ]


def outcomes(files: list[tuple[str, bytes]], value: int) -> list[str]:
    """The outcome for each file and way to decode it: a digest of the pixels, or the error."""
    import penstock as ndd

    flat = encoded(np.full((HEIGHT, WIDTH, 3), value, np.uint8))
    crop = {"crop": [HEIGHT - 5, WIDTH - 9], "crop_pos_x": 0.7}
    anchor, extent = np.int32([11, 3]), np.int32([WIDTH - 11, HEIGHT - 6])
    ways = {
        "image": ndd.decoders.image,
        "floats": lambda file: ndd.decoders.image(
            file, output_type=ndd.types.ANY_DATA, dtype=ndd.float32
        ),
        "reduced": lambda file: ndd.decoders.image(file, min_size=[HEIGHT - 7, 1]),
        "crop": lambda file: ndd.decoders.image_crop(file, **crop),
        "slice": lambda file: ndd.decoders.image_slice(file, anchor, extent),
    }
    return _outcomes(files, value, ways, lambda: ndd.decoders.image_crop(flat, **crop).evaluate())


def audio_outcomes(files: list[tuple[str, bytes]], value: int) -> list[str]:
    """The same for sounds."""
    import penstock as ndd

    ways = {
        "audio": lambda file: ndd.decoders.audio(file)[0],
        "part": lambda file: ndd.decoders.audio(file, dtype=ndd.int16, start=0.02)[0],
        "mixed": lambda file: ndd.decoders.audio(file, downmix=True, sample_rate=16000)[0],
    }
    return _outcomes(files, value, ways, lambda: None)


def video_outcomes(files: list[tuple[str, bytes]], value: int) -> list[str]:
    """The same for videos."""
    import penstock as ndd

    ways = {
        "video": ndd.decoders.video,
        "frames": lambda file: ndd.decoders.video(file, frames=[7, 2], pad_mode="edge"),
        "size": lambda file: ndd.decoders.video(file, start_frame=3, stride=4, size=[32, 40]),
    }
    return _outcomes(files, value, ways, lambda: None)


def _outcomes(
    files: list[tuple[str, bytes]],
    value: int,
    ways: dict[str, Callable[[Any], Any]],
    before: Callable[[], None],
) -> list[str]:
    import penstock as ndd

    ndd.set_num_threads(1)
    sizes = [(4 + quarter) << power for power in range(11, 14) for quarter in range(4)]
    poison = [np.full(size, value, np.uint8) for size in sizes for _ in range(3)]
    found = []
    for name, file in files:
        held = [ndd.tensor(array) for array in poison]
        before()
        del held
        for way, decode in ways.items():
            try:
                made = np.asarray(decode(np.frombuffer(file, np.uint8)))
                outcome = f"{made.shape} {hashlib.sha256(made.tobytes()).hexdigest()[:16]}"
            except RuntimeError as error:
                outcome = type(error).__name__
            found.append(f"{name} {way}: {outcome}")
    return found


if __name__ == "__main__":
    value, seed, count, *only = sys.argv[1:]
    files = damaged(only[0] if only else "", int(seed), int(count))
    print("\n".join(outcomes(files, int(value, 0))))
