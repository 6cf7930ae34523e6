"""Damaged image files give errors or images, never a crash, a hang or a huge allocation."""

import contextlib

import numpy as np
import pytest
from tests.images import corpus
from tests.mutations import mutate

import penstock as ndd
from penstock.errors import DecodeError

CORPUS = corpus()


@pytest.mark.parametrize("kind", CORPUS)
def test_damaged_files_are_errors_or_images(kind):
    rng = np.random.default_rng(len(kind))
    files = [mutate(CORPUS[kind], rng) for _ in range(150)]
    batch = ndd.batch([np.frombuffer(file, np.uint8) for file in files])
    for images in (
        ndd.decoders.image(batch),
        ndd.decoders.image(batch, output_type=ndd.types.ANY_DATA, dtype=ndd.float32),
        ndd.decoders.image_random_crop(batch, rng=ndd.random.RNG(1)),
        ndd.peek_image_shape(batch),
    ):
        for image in images:
            with contextlib.suppress(DecodeError):
                image.evaluate()
