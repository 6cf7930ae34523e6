"""Names of DALI that penstock doesn't have say what to do instead."""

from __future__ import annotations

import pytest

import penstock as ndd


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        (ndd, "fn", "penstock migrate FILE"),
        (ndd, "pipeline_def", "call operators directly"),
        (ndd, "plugin", "penstock.torch.Loader"),
        (ndd.readers, "Video", "DALI has it, penstock doesn't yet"),
        (ndd.readers, "VideoResize", "DALI has it, penstock doesn't yet"),
        (ndd.decoders, "video", "DALI has it, penstock doesn't yet"),
    ],
)
def test_missing_name(module, name, words):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'.*{words}"):
        getattr(module, name)


def test_the_error_of_a_file_that_cant_be_decoded_names_on_error():
    import numpy as np

    with pytest.raises(ndd.errors.DecodeError, match=r'on_error="skip"'):
        ndd.decoders.image(ndd.batch([np.zeros(100, np.uint8)])).evaluate()
