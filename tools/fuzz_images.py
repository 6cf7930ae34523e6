"""Decode many damaged images, and keep those that crash the process.

python tools/fuzz_images.py                    # 100 000 files of all formats
python tools/fuzz_images.py --count 2000 --only png --seed 7

`tools/fuzzing.py` says what counts as harm.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.images import corpus
from tests.poison import HEIGHT, WIDTH, outcomes
from tools.fuzzing import Fuzzer


def decode(files: list[bytes]) -> None:
    """Decode files in several ways; failing to decode them is fine."""
    import penstock as ndd
    from penstock.errors import DecodeError

    rng = ndd.random.RNG(1)
    arrays = [np.frombuffer(file, np.uint8) for file in files]
    batch = ndd.batch(arrays)
    ways = (
        ndd.decoders.image(batch),
        ndd.decoders.image(batch, output_type=ndd.types.ANY_DATA, dtype=ndd.float32),
        ndd.decoders.image(batch, min_size=[HEIGHT // 2, WIDTH // 3]),
        ndd.decoders.image_random_crop(batch, rng=rng, output_type=ndd.types.GRAY),
        ndd.peek_image_shape(batch),
    )
    for images in ways:
        for image in images:
            try:
                image.evaluate()
            except (DecodeError, MemoryError):
                pass


FUZZER = Fuzzer(
    script=__file__,
    summary="Decode many damaged images, and keep those that crash the process.",
    corpus=corpus(HEIGHT, WIDTH),
    decode=decode,
    outcomes=outcomes,
    limits={"PENSTOCK_MAX_PIXELS": str(1 << 22)},
)

if __name__ == "__main__":
    sys.exit(FUZZER.main())
