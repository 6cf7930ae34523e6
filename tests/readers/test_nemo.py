"""The reader of NeMo's manifests: restoring, broken files, and what DALI can't do."""

import json
import wave

import numpy as np
import pytest
import soundfile

import penstock as ndd
from penstock.readers import NemoAsr


def manifest(folder, entries, name="manifest.json"):
    path = folder / name
    lines = (entry if isinstance(entry, str) else json.dumps(entry) for entry in entries)
    path.write_text("".join(line + "\n" for line in lines))
    return path


@pytest.fixture
def sounds(tmp_path):
    """A manifest of nine sounds; sound n has n + 1 samples of n."""
    entries = []
    for number in range(9):
        name = tmp_path / f"{number}.wav"
        with wave.open(str(name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(number.to_bytes(2, "little") * (number + 1))
        entries.append({"audio_filepath": str(name), "text": f"t{number}"})
    return manifest(tmp_path, entries)


def texts(outputs):
    return [bytes(np.asarray(text)).decode() for text in outputs[2]]


def test_sounds_rates_texts_and_numbers_belong_together(sounds):
    reader = NemoAsr(
        manifest_filepaths=sounds, dtype=ndd.int16, read_idxs=True, random_shuffle=True
    )
    for audio, rate, text, index in reader.next_epoch():
        [number] = np.asarray(index).tolist()
        assert np.asarray(audio).tolist() == [number] * (number + 1)
        assert (float(np.asarray(rate)), bytes(np.asarray(text))) == (8000, b"t%d" % number)


@pytest.mark.parametrize("arguments", [{}, {"random_shuffle": True}, {"shuffle_after_epoch": True}])
def test_a_restored_reader_goes_on_at_every_step(sounds, arguments):
    def make():
        return NemoAsr(manifest_filepaths=sounds, seed=5, **arguments)

    whole = make()
    expected = [texts(out) for _ in range(3) for out in whole.next_epoch(batch_size=2)]
    for stop in range(len(expected)):
        reader, found = make(), []
        while len(found) < stop:
            for outputs in reader.next_epoch(batch_size=2):
                found.append(texts(outputs))
                if len(found) == stop:
                    break
        after = make()
        after.set_state(str(reader.get_state()))
        while len(found) < len(expected):
            found += [texts(outputs) for outputs in after.next_epoch(batch_size=2)]
        assert found[: len(expected)] == expected, stop


def test_lines_that_cannot_be_used_are_told(tmp_path, sounds):
    good = sounds.read_text().splitlines()[0]
    path = manifest(tmp_path, [good, "", "foo", '{"text": "x"}'], "other.json")
    with pytest.warns(
        UserWarning, match=r"2 lines .*other\.json, line 3 is not a JSON object: 'foo'"
    ):
        reader = NemoAsr(manifest_filepaths=path)
    assert len(list(reader.next_epoch())) == 1


def test_floats_are_scaled_to_integers(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([0.5, -1.0, 2.0]), 8000, subtype="FLOAT")
    path = manifest(tmp_path, [{"audio_filepath": str(tmp_path / "a.wav")}])
    [(audio, *_)] = NemoAsr(manifest_filepaths=path, dtype="int16").next_epoch()
    assert np.asarray(audio).tolist() == [16384, -32767, 32767]


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg"])
def test_a_far_part_is_that_part_of_the_whole(tmp_path, kind):
    name = tmp_path / f"a.{kind}"
    soundfile.write(name, np.random.default_rng(0).uniform(-0.5, 0.5, (200000, 2)), 8000)
    whole = {"audio_filepath": str(name)}
    part = {**whole, "offset": 20.5, "duration": 0.25}
    path = manifest(tmp_path, [whole, part])
    first, second = (np.asarray(o[0]) for o in NemoAsr(manifest_filepaths=path).next_epoch())
    assert second.tolist() == first[164000:166000].tolist()


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg"])
def test_files_damaged_anywhere_are_errors_never_worse(tmp_path, kind):
    name = tmp_path / f"a.{kind}"
    soundfile.write(name, 0.3 * np.sin(np.arange(3000) / 9), 8000)
    whole = name.read_bytes()
    path = manifest(tmp_path, [{"audio_filepath": str(name)}])
    rng = np.random.default_rng(2)
    told = []
    for trial in range(60):
        broken = bytearray(whole)
        if trial % 2:
            broken = broken[: rng.integers(len(whole)) >> rng.integers(8)]
        else:
            broken[rng.integers(min(len(whole), 64 << trial % 3))] = rng.integers(256)
        name.write_bytes(broken)
        try:
            [np.asarray(out[0]) for out in NemoAsr(manifest_filepaths=path).next_epoch()]
        except RuntimeError as error:
            told.append(str(error))
    assert told
    assert all(str(name) in text and "bug in penstock" not in text for text in told)


def with_checksums(ogg):
    """The pages of an Ogg file with the checksums that they should have."""
    made, at = bytearray(ogg), 0
    while made[at : at + 4] == b"OggS":
        end = at + 27 + made[at + 26]
        end += sum(made[at + 27 : end])
        made[at + 22 : at + 26] = bytes(4)
        crc = 0
        for byte in made[at:end]:
            crc ^= byte << 24
            for _ in range(8):
                crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
        made[at + 22 : at + 26] = crc.to_bytes(4, "little")
        at = end
    return bytes(made)


def test_what_the_decoder_of_vorbis_panics_at_is_a_damaged_file(tmp_path):
    name = tmp_path / "a.ogg"
    soundfile.write(name, 0.3 * np.sin(np.arange(4000).reshape(-1, 2) / 9), 8000)
    whole = name.read_bytes()
    assert with_checksums(whole) == whole
    path = manifest(tmp_path, [{"audio_filepath": str(name)}])
    told = []
    # Among these are some that it panics at, as libvorbis lays out its tables.
    for place in (1528, 1638, 1834, 1903, 2001, 2136, 2170, 2300, 2465, 2466):
        for value in (0, 0x55, 0xFF):
            broken = bytearray(whole)
            broken[place] = value
            name.write_bytes(with_checksums(broken))
            reader = NemoAsr(manifest_filepaths=path, on_error="skip")
            list(reader.next_epoch(batch_size=1))
            told += [error.reason for error in reader.errors]
    assert told
