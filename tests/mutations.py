"""Damaged files, which decoders must survive."""

from __future__ import annotations

import numpy as np


def mutate(file: bytes, rng: np.random.Generator) -> bytes:
    """The file with one to four changes: bits, bytes, lengths, order, or its end."""
    made = bytearray(file)
    for _ in range(rng.integers(1, 5)):
        if not made:
            break
        # Headers are short and matter most.
        reach = len(made) if rng.random() < 0.5 else min(len(made), 200)
        at = int(rng.integers(reach))
        match rng.integers(8):
            case 0:
                made[at] ^= 1 << int(rng.integers(8))
            case 1:
                made[at] = int(rng.integers(256))
            case 2:
                made[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
            case 3:  # a length or a size, as small or as large as possible
                size = int(rng.choice([2, 4]))
                made[at : at + size] = bytes([int(rng.choice([0, 0xFF]))]) * size
            case 4:
                del made[at:]
            case 5:
                del made[at : at + int(rng.integers(1, 20))]
            case 6:
                made[at:at] = rng.integers(0, 256, int(rng.integers(1, 20)), np.uint8).tobytes()
            case _:  # a part of the file again
                start = int(rng.integers(len(made)))
                made[at:at] = made[start : start + int(rng.integers(1, 100))]
    return bytes(made)
