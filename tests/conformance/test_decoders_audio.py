"""Audio, decoded as by DALI."""

import numpy as np
import pytest

from tests.conformance.cache import ROOT
from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same
from tests.sounds import encoded, signal

EXCUSED: dict[str, str] = {}

SOUNDS = ROOT / "tests/data/sounds"


def file(format, subtype, channels=1, frames=700, rate=16000):
    return np.frombuffer(encoded(signal(frames, channels, rate), rate, format, subtype), np.uint8)


INTEGERS = [
    *(("WAV", subtype) for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "ULAW", "ALAW")),
    *(("WAV", "MS_ADPCM"), ("WAV", "IMA_ADPCM"), ("WAVEX", "PCM_24"), ("RF64", "PCM_16")),
    *(("W64", "PCM_16"), ("AU", "PCM_16"), ("AIFF", "PCM_24"), ("NIST", "PCM_16")),
    *(("CAF", "PCM_16"), ("CAF", "ALAC_16")),
    *(("FLAC", "PCM_S8"), ("FLAC", "PCM_16"), ("FLAC", "PCM_24")),
]
FLOATS = [("WAV", "FLOAT"), ("WAV", "DOUBLE"), ("AU", "FLOAT"), ("AIFF", "DOUBLE")]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("format", "subtype"), INTEGERS + FLOATS)
def test_formats_agree(format, subtype, channels):
    assert_same("ndd.decoders.audio(x)", x=file(format, subtype, channels))


@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize(("format", "subtype"), INTEGERS)
def test_integers_agree(format, subtype, dtype):
    assert_same(f"ndd.decoders.audio(x, dtype=ndd.{dtype})", x=file(format, subtype, 2))


@pytest.mark.parametrize("name", ["mono.ogg", "stereo.ogg"])
def test_vorbis_agrees(name):
    data = np.frombuffer((SOUNDS / name).read_bytes(), np.uint8)
    assert_same("ndd.decoders.audio(x)", tol=1e-6, x=data)
    assert_same("ndd.decoders.audio(x, dtype=ndd.int16)", tol=1, x=data)


def test_opus_agrees():
    data = np.frombuffer((SOUNDS / "opus.ogg").read_bytes(), np.uint8)
    assert_same("ndd.decoders.audio(x)", tol=1e-5, x=data)
    assert_same("ndd.decoders.audio(x, dtype=ndd.int16)", tol=1, x=data)


@pytest.mark.parametrize("arguments", ["", ", dtype=ndd.int16", ", dtype=ndd.int32"])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_mixing_agrees(arguments, channels):
    source = f"ndd.decoders.audio(x, downmix=True{arguments})"
    tol = {"": 1e-7, ", dtype=ndd.int16": 1}.get(arguments, 256)
    assert_same(source, tol=tol, x=file("WAV", "PCM_16", channels))


@pytest.mark.parametrize("quality", [0, 50, 100])
@pytest.mark.parametrize("rate", [8000, 8000.5, 16000, 22050, 48000])
def test_resampling_agrees(rate, quality):
    source = f"ndd.decoders.audio(x, sample_rate={rate}, quality={quality})"
    # With more taps, more roundings add up.
    assert_same(source, tol=4e-6 if quality == 100 else 2e-6, x=file("WAV", "PCM_16", 2))


def test_rates_per_sample_agree():
    source = """
rates = ndd.batch([np.float32(8000), np.float32(16000), np.float32(11025)])
ndd.decoders.audio(ndd.batch([x, y, x]), sample_rate=rates, downmix=True)
"""
    assert_same(source, tol=2e-6, x=file("WAV", "PCM_16"), y=file("FLAC", "PCM_16", 2))


def test_empty_sounds_agree():
    assert_same("ndd.decoders.audio(x)", x=file("WAV", "PCM_16", 2, frames=0))
    assert_same("ndd.decoders.audio(x, downmix=True)", x=file("WAV", "PCM_16", 2, frames=0))


ERRORS = [
    "ndd.decoders.audio(np.zeros(100, 'u1'))[0].evaluate()",
    "ndd.decoders.audio(np.zeros((10, 10), 'u1'))[0].evaluate()",
    "ndd.decoders.audio(np.zeros(10, 'f4'))[0].evaluate()",
    "ndd.decoders.audio(x, dtype=ndd.uint8)[0].evaluate()",
]


@pytest.mark.parametrize("source", ERRORS)
def test_errors_agree(source):
    assert_same(source, x=file("WAV", "PCM_16"))


DIFFERENT = [
    Differs(
        "ndd.decoders.audio(x, quality=101)[0]",
        "ValueError",
        "DALI looks at the quality only if it resamples",
    ),
    Differs(
        "ndd.decoders.audio(x, sample_rate=-1)[1]",
        "ndd.decoders.audio(x)[1]",
        "DALI gives back the argument instead of the file's rate",
    ),
    Differs(
        "ndd.decoders.audio(f, dtype=ndd.int16)[0]",
        "ndd.tensor([[16384], [-32767], [32767]], dtype=ndd.int16)",
        "DALI doesn't scale floats to integers",
    ),
    Differs(
        "ndd.decoders.audio(v[:4200])[0]",
        "RuntimeError",
        "DALI has no samples and no error for a truncated Ogg file",
    ),
    Differs(
        "ndd.decoders.audio(x[:-100])[0]",
        "RuntimeError",
        "a truncated WAV is damaged like any other truncated file",
    ),
]


@pytest.mark.parametrize("case", DIFFERENT, ids=str)
def test_differences_are_on_purpose(case):
    case.after(start()).check()


def start():
    """Statements that define the files of `DIFFERENT`."""
    floats = encoded(np.array([[0.5], [-1.0], [2.0]]), 8000, "WAV", "FLOAT")
    files = {"x": bytes(file("WAV", "PCM_16")), "f": floats}
    files["v"] = (SOUNDS / "mono.ogg").read_bytes()
    lines = [f"{name} = np.frombuffer({data!r}, 'u1')" for name, data in files.items()]
    return "import numpy as np\n" + "\n".join(lines)
