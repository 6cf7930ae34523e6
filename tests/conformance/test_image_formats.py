"""`decoders.image` on every format except JPEG: compared with DALI and with the stored pixels."""

import numpy as np
import pytest

import penstock as ndd
from tests.conformance.images import Sample, samples
from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same, ours

SAMPLES = samples()

REFUSED_BY_ORIGINAL = {
    **dict.fromkeys([name for name in SAMPLES if name.endswith(".gif")], "no GIF at all"),
    **dict.fromkeys([name for name in SAMPLES if name.endswith(".pam")], "no PAM at all"),
    "rle4.bmp": "no runs of 4 bits",
    "rgb16-555.bmp": "no 16 bits without masks",
    "gray-alpha8.jp2": "no alpha beside gray",
    "gray1-raw.tif": "a TIFF must say how many bits it has, even if it is the default",
}
REFUSED_AS_STORED = {
    "gray-alpha8.png", "gray-alpha8-interlaced.png", "gray-alpha16.png", "rgb32.bmp", "rgba32.bmp",
}  # fmt: skip
WRONG_IN_ORIGINAL = {
    "rgb16-planar-tiles.tif": "planes of tiles come in pieces",
    "gray-alpha8.tif": "alpha becomes green, and the next pixel blue",
}
SAME = [
    sample
    for name, sample in SAMPLES.items()
    if name not in REFUSED_BY_ORIGINAL and name not in WRONG_IN_ORIGINAL
]


def bytes_of(sample: Sample) -> np.ndarray:
    return np.frombuffer(sample.data, np.uint8)


def tolerance(sample: Sample) -> float | None:
    return None if sample.exact else 1.0


def each(samples):
    return pytest.mark.parametrize("sample", samples, ids=lambda sample: sample.name)


@each(SAME)
def test_colors_are_the_same(sample):
    assert_same("ndd.decoders.image(ndd.tensor(x))", x=bytes_of(sample), tol=tolerance(sample))


@each([sample for sample in SAME if sample.name not in REFUSED_AS_STORED])
def test_channels_as_stored_are_the_same(sample):
    source = "ndd.decoders.image(ndd.tensor(x), output_type=types.ANY_DATA)"
    assert_same(source, x=bytes_of(sample), tol=tolerance(sample))


@each(SAME)
def test_grays_are_the_same_but_for_rounding(sample):
    # DALI's libraries round differently for each format.
    source = "ndd.decoders.image(ndd.tensor(x), output_type=types.GRAY)"
    assert_same(source, x=bytes_of(sample), tol=1.0)


@each([sample for sample in SAME if sample.pixels.dtype != np.uint8])
@pytest.mark.parametrize("dtype", ["uint16", "float32", "int16"])
def test_deep_images_keep_their_depth(sample, dtype):
    source = f"ndd.decoders.image(ndd.tensor(x), dtype=ndd.{dtype})"
    assert_same(source, x=bytes_of(sample), tol=1e-6 if dtype == "float32" else None)


@each([sample for sample in SAMPLES.values() if sample.orientation != 1])
def test_orientation_can_be_left(sample):
    source = "ndd.decoders.image(ndd.tensor(x), adjust_orientation=False)"
    assert_same(source, x=bytes_of(sample))


@each(SAMPLES.values())
def test_pixels_are_those_that_were_stored(sample):
    kind = {"u1": ndd.uint8, "u2": ndd.uint16, "f4": ndd.float32}[sample.pixels.dtype.str[1:]]
    found = ndd.decoders.image(
        bytes_of(sample), output_type=ndd.types.ANY_DATA, dtype=kind, adjust_orientation=False
    )
    found = np.asarray(found)
    assert found.shape == sample.pixels.shape
    if sample.exact:
        assert np.array_equal(found, sample.pixels)
    else:
        assert np.abs(found.astype(int) - sample.pixels).max() <= 1


@pytest.mark.parametrize("name", [*REFUSED_BY_ORIGINAL, *WRONG_IN_ORIGINAL])
def test_more_is_decoded_than_by_dali(name):
    why = {**REFUSED_BY_ORIGINAL, **WRONG_IN_ORIGINAL}[name]
    pixels = SAMPLES[name].pixels
    if pixels.dtype == np.uint16:
        pixels = np.rint(pixels / 257).astype(np.uint8)
    rgb = np.repeat(pixels[..., :1], 3, 2) if pixels.shape[2] < 3 else pixels[..., :3]
    Differs(
        f"ndd.decoders.image(ndd.tensor(np.uint8({list(SAMPLES[name].data)})))",
        f"ndd.tensor(np.uint8({rgb.tolist()}), layout='HWC')",
        why,
    ).check()


@each([sample for sample in SAMPLES.values() if "animated" not in sample.name])
@pytest.mark.parametrize("part", [0.02, 0.3, 0.6])
def test_files_that_end_early_are_refused(sample, part):
    cut = bytes_of(sample)[: int(len(sample.data) * part)]
    found = ours.run("ndd.decoders.image(ndd.tensor(x)).evaluate()", x=cut)
    assert "RuntimeError" in getattr(found, "bases", ()), found
