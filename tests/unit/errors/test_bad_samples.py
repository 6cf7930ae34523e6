"""Decoders that skip or replace samples that can't be decoded."""

import gc
import io

import numpy as np
import pytest
from PIL import Image

import penstock as ndd
from penstock.readers import File

BAD = (1, 2, 5)


@pytest.fixture
def files(tmp_path):
    """Names of 8 images, number n of height n + 1; some are damaged."""
    names = [tmp_path / f"{number}.png" for number in range(8)]
    for number, name in enumerate(names):
        name.write_bytes(b"no image" if number in BAD else png(number + 1))
    return names


def png(height):
    file = io.BytesIO()
    Image.new("RGB", (4, height), "red").save(file, "PNG")
    return file.getvalue()


def heights(images):
    return [shape[0] for shape in images.shape]


def numbers(labels):
    return [int(np.asarray(label)[0]) for label in labels]


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
@pytest.mark.parametrize(
    ("on_error", "expected"),
    [("skip", [0, 3, 4, 6, 7]), ("substitute", [0, 3, 3, 3, 4, 6, 6, 7])],
)
def test_images_and_what_goes_along_stay_together(files, mode, on_error, expected):
    reader = File(files=files)
    with mode:
        [(data, label)] = reader.next_epoch(batch_size=8)
        images, labels = ndd.decoders.image(data, on_error=on_error, along=label)
        assert heights(images) == [number + 1 for number in expected]
        assert numbers(labels) == expected
        _, first, second = ndd.decoders.image(data, on_error=on_error, along=[label, data])
        assert (numbers(first), second.batch_size) == (expected, len(expected))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("image", {}),
        ("image_crop", {"crop": (1, 2)}),
        ("image_random_crop", {}),
        ("image_slice", {"start": [0, 0], "shape": [2, 1]}),
    ],
)
def test_every_decoder_can(files, name, arguments):
    [(data, _)] = File(files=files).next_epoch(batch_size=8)
    decode = getattr(ndd.decoders, name)
    assert decode(data, on_error="skip", **arguments).batch_size == 5
    assert decode(data, on_error="substitute", **arguments).batch_size == 8
    assert decode(data, on_error="raise", **arguments).batch_size == 8


def test_after_the_last_good_sample_comes_the_first():
    data = ndd.batch([np.frombuffer(each, np.uint8) for each in (b"x", png(3), png(2), b"x")])
    assert heights(ndd.decoders.image(data, on_error="substitute")) == [3, 3, 2, 3]


def test_a_batch_without_any_good_sample():
    data = ndd.batch([np.zeros(3, np.uint8)] * 2)
    images, label = ndd.decoders.image(data, on_error="skip", along=ndd.batch([1, 2]))
    assert (images.batch_size, label.batch_size) == (0, 0)
    with pytest.raises(RuntimeError, match="none of JPEG"):
        ndd.decoders.image(data, on_error="substitute")


def test_the_reader_lists_what_could_not_be_decoded_or_read(files):
    files[6].unlink()
    reader = File(files=files, random_shuffle=True, seed=3)
    for _ in range(2):
        for data, label in reader.next_epoch(batch_size=4):
            ndd.decoders.image(data, on_error="skip", along=label)
            ndd.decoders.image(data, on_error="skip")
        found = sorted(reader.errors, key=lambda error: error.sample)
        assert [error.sample for error in found] == [*BAD, 6]
        assert [error.file for error in found] == [str(files[n]) for n in (*BAD, 6)]
        assert "none of JPEG" in found[0].reason
        assert found[3].reason == "there is no such file"


def test_numbers_are_right_after_the_reader_has_skipped_some(files):
    files[0].unlink()
    reader = File(files=files, on_error="skip")
    for data, label in reader.next_epoch(batch_size=4):
        ndd.decoders.image(data, on_error="skip", along=label)
    assert [error.sample for error in reader.errors] == [0, *BAD]


def test_the_reader_s_limit_holds(files):
    reader = File(files=files, max_errors=2)
    [(data, _)] = reader.next_epoch(batch_size=8)
    with pytest.raises(RuntimeError, match=r"3 samples of this epoch.*`max_errors` allows \(2\)"):
        ndd.decoders.image(data, on_error="skip")


def test_epochs_and_states_don_t_depend_on_bad_samples(files):
    def run(steps, state=None):
        reader = File(files=files, shuffle="global", seed=2)
        if state is not None:
            reader.set_state(state)
        given, states = [], []
        while len(given) < steps:
            for data, label in reader.next_epoch(batch_size=2):
                _, kept = ndd.decoders.image(data, on_error="skip", along=label)
                given.append(numbers(kept))
                states.append(reader.get_state())
        return given[:steps], states

    given, states = run(8)
    for at, state in enumerate(states[:7], start=1):
        assert run(8 - at, state)[0] == given[at:]


def test_in_a_loop_over_prefetch_each_is_listed_once(files):
    reader = File(files=files)

    def images():
        for data, label in reader.next_epoch(batch_size=2):
            yield ndd.decoders.image(data, on_error="skip", along=label)

    assert sum(labels.batch_size for _, labels in ndd.prefetch(images())) == 5
    assert [error.sample for error in reader.errors] == list(BAD)


def test_a_reader_that_is_gone_is_told_nothing(files):
    reader = File(files=files)
    [(data, _)] = reader.next_epoch(batch_size=8)
    del reader
    gc.collect()
    assert ndd.decoders.image(data, on_error="skip").batch_size == 5


def test_what_is_wrong_with_the_call_is_no_bad_sample(files):
    [(data, label)] = File(files=files).next_epoch(batch_size=8)
    decode = ndd.decoders.image
    with pytest.raises(RuntimeError, match=r"bounds|outside|inside|window"):
        ndd.decoders.image_slice(data, on_error="skip", start=[90, 90], shape=[5, 5])
    with pytest.raises(ValueError, match="'raise', 'skip', 'substitute', got 'ignore'"):
        decode(data, on_error="ignore")
    with pytest.raises(ValueError, match="`along` requires"):
        decode(data, along=label)
    with pytest.raises(ValueError, match="requires a batch"):
        decode(data.tensors[0], on_error="skip")
    with pytest.raises(TypeError, match="`along`"):
        decode(data, on_error="skip", along=[3])
    with pytest.raises(ValueError, match="8"):
        decode(data, on_error="skip", along=label.tensors[:3])
