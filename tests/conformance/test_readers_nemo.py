"""The reader of NeMo's manifests, against DALI."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import soundfile

from tests.conformance.cache import ROOT
from tests.conformance.case import Raised
from tests.conformance.compare import show
from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same, oracle, ours

EXCUSED: dict[str, str] = {}

SOUNDS = ROOT / "tests/data/sounds"

FORMATS = {
    "m16.wav": ("WAV", "PCM_16", 1),
    "s16.wav": ("WAV", "PCM_16", 2),
    "m8.wav": ("WAV", "PCM_U8", 1),
    "m24.wav": ("WAV", "PCM_24", 1),
    "s32.wav": ("WAV", "PCM_32", 2),
    "mf.wav": ("WAV", "FLOAT", 1),
    "sd.wav": ("WAV", "DOUBLE", 2),
    "mulaw.wav": ("WAV", "ULAW", 1),
    "malaw.wav": ("WAV", "ALAW", 1),
    "x16.wav": ("WAVEX", "PCM_16", 1),
    "r64.wav": ("RF64", "PCM_16", 1),
    "m16.flac": ("FLAC", "PCM_16", 1),
    "s24.flac": ("FLAC", "PCM_24", 2),
    "m8.flac": ("FLAC", "PCM_S8", 1),
}
# The same sounds, encoded once: each encoding gets a random number of its own.
LOSSY = {"m.ogg": "mono.ogg", "s.ogg": "stereo.ogg"}
ENTRY = {"audio_filepath": "m16.wav", "duration": 0.1, "text": "Héllo World"}

MANIFESTS = {
    "texts": [ENTRY, {**ENTRY, "text": ""}, {"audio_filepath": "m16.wav"}],
    "escaped": '{"audio_filepath":"m16.wav","duration":1,"text":"a\\n\\u00e9\\"\\ud83d\\ude00"}\n',
    "parts": [
        {**ENTRY, "offset": offset, "duration": duration}
        for offset in (0, 0.00103, 0.00109375, 0.05, -1)
        for duration in (0, 0.00103, 0.00109375, 0.01, 1e3, -1)
    ],
    "durations": [{**ENTRY, "duration": d, "text": str(d)} for d in (0.5, 1.1, 1.3, 2.0, -1)],
    "other_fields": [{**ENTRY, "speaker": None, "x": [1, {"a": "]"}], "y": True}],
    "missing": [{**ENTRY, "audio_filepath": "nothing.wav"}],
    "junk": [{**ENTRY, "audio_filepath": "junk.wav"}],
    "beyond": [{**ENTRY, "offset": 1}],
    "beyond.flac": [{**ENTRY, "audio_filepath": "m16.flac", "offset": 1}],
    "beyond.ogg": [{**ENTRY, "audio_filepath": "m.ogg", "offset": 1}],
    "at_the_end": [{**ENTRY, "offset": 0.125}],
    "empty": [],
}


@pytest.fixture(scope="module")
def root(make_folder):
    root = make_folder("nemo")
    noise = 0.1 * np.random.default_rng(0).standard_normal(2000)
    time = np.arange(2000) / 16000
    mono = np.clip(0.5 * np.sin(2764 * time) + noise, -0.99, 0.99)
    stereo = np.stack([mono, 0.7 * np.cos(1885 * time)], 1)
    for name, (format, subtype, channels) in FORMATS.items():
        sound = mono if channels == 1 else stereo
        soundfile.write(root / name, sound, 16000, format=format, subtype=subtype)
        data = (root / name).read_bytes()
        if (peak := data.find(b"PEAK")) > 0:  # this chunk has the time of writing
            (root / name).write_bytes(data[: peak + 12] + bytes(4) + data[peak + 16 :])
    for name, source in LOSSY.items():
        shutil.copyfile(SOUNDS / source, root / name)
    for name in (*FORMATS, *LOSSY):
        write(root, name + ".json", [{**ENTRY, "audio_filepath": name}])
    (root / "junk.wav").write_bytes(b"junk" * 100)
    for name, entries in MANIFESTS.items():
        write(root, name + ".json", entries)
    return str(root)


def write(root, name, entries):
    """A manifest of audio files in the folder."""
    if isinstance(entries, str):
        entries = [json.loads(line) for line in entries.splitlines()]
    lines = [{**e, "audio_filepath": f"{root}/{e['audio_filepath']}"} for e in entries]
    (root / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def call(manifest, arguments=""):
    path = f"manifest_filepaths=root + '/{manifest}.json'"
    return f"list(ndd.readers.NemoAsr({path}, {arguments}).next_epoch())"


WAYS = [
    (name, dtype, downmix)
    for name in FORMATS
    for dtype in ("float32", "int16", "int32")
    for downmix in (True, False)
]
ROUNDED = {
    (name, dtype, downmix)
    for name, dtype, downmix in WAYS
    if dtype != "float32" and (name == "mf.wav" or (name == "sd.wav" and not downmix))
}
"""Where DALI takes floats from -1 to 1 for whole numbers, so that only silence is left."""


@pytest.mark.parametrize(("name", "dtype", "downmix"), [w for w in WAYS if w not in ROUNDED])
def test_samples_are_those_of_dali(root, name, dtype, downmix):
    assert_same(call(name, f"dtype=ndd.{dtype}, downmix={downmix}"), root=root)


def peak(name, arguments):
    """The largest sample of the first sound, in thousands, as a part of what its type holds."""
    largest = "np.iinfo(sound.dtype).max if sound.dtype.kind == 'i' else 1"
    source = f"sound = np.asarray({call(name, arguments)}[0][0])"
    return f"{source}\nround(1000 * float(sound.max()) / float({largest}))"


DIFFERS = [
    Differs(
        peak(name, f"dtype=ndd.{dtype}, downmix={downmix}"),
        peak(name, f"downmix={downmix}"),
        "floats become sound rather than silence",
    )
    for name, dtype, downmix in sorted(ROUNDED)
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}").check()


@pytest.mark.parametrize("downmix", [True, False])
@pytest.mark.parametrize("name", LOSSY)
def test_lossy_samples_are_nearly_those_of_dali(root, name, downmix):
    assert_same(call(name, f"downmix={downmix}"), root=root, tol=2e-6)


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 44100.5])
@pytest.mark.parametrize("quality", [0, 50, 100])
@pytest.mark.parametrize("name", ["m16.wav", "s16.wav"])
def test_other_rates_are_those_of_dali(root, name, rate, quality):
    arguments = f"sample_rate={rate}, quality={quality}, downmix=False"
    assert_same(call(name, arguments), root=root, tol=1e-5)


@pytest.mark.parametrize(
    ("manifest", "arguments"),
    [
        ("texts", "read_idxs=True"),
        ("texts", "read_text=False"),
        ("texts", "read_text=False, read_sample_rate=False, read_idxs=True"),
        ("escaped", ""),
        ("parts", ""),
        ("at_the_end", ""),
        ("other_fields", ""),
        ("durations", "read_idxs=True"),
        ("durations", "read_idxs=True, min_duration=1.1"),
        ("durations", "read_idxs=True, max_duration=1.1"),
        ("durations", "read_idxs=True, min_duration=1.3"),
        ("durations", "read_idxs=True, max_duration=1.3"),
        ("durations", "read_idxs=True, min_duration=1.2, max_duration=1.9"),
        ("durations", "sample_rate=-5., max_duration=-1."),
    ],
)
def test_utterances_are_those_of_dali(root, manifest, arguments):
    assert_same(call(manifest, arguments), root=root)


@pytest.mark.parametrize(
    ("manifest", "arguments"),
    [
        ("missing", ""),
        ("junk", ""),
        ("beyond", ""),
        ("beyond.flac", ""),
        ("beyond.ogg", ""),
        ("empty", ""),
        ("nothing", ""),
        ("texts", "dtype=ndd.uint8"),
        ("texts", "dtype=ndd.float64"),
        ("texts", "quality=101."),
        ("texts", "quality=-1."),
        ("durations", "min_duration=9."),
        ("texts", "random_shuffle=True, shuffle_after_epoch=True"),
    ],
)
def test_what_dali_refuses_is_refused(root, manifest, arguments):
    source = call(manifest, arguments)
    expected, actual = oracle.run(source, root=root), ours.run(source, root=root)
    assert isinstance(expected, Raised), f"DALI takes it: {show(expected)}"
    assert isinstance(actual, Raised), f"penstock takes it: {show(actual)}"
