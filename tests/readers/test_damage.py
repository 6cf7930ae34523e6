"""Damage that is found when a reader opens its files: an error, or one bad sample for each file."""

import json
import os
import struct
import tarfile

import numpy as np
import pytest
import soundfile
from tests.data_sets import MAKERS, contents, reader_classes
from tests.protobuf import database, datum, ints, tensors, texts
from tests.records import example, framed, image_record, write_framed, write_recordio, write_tar

import penstock as ndd
from penstock.readers import Caffe, Caffe2, MXNet, NemoAsr, TFRecord, Webdataset
from penstock.tfrecord import FixedLenFeature, string

EACH = 5
"""So many samples in each of three files; sample n holds n + 1 bytes of n."""


def part(file):
    return range(EACH * file, EACH * file + EACH)


def payload(number):
    return bytes([number]) * (number + 1)


def tfrecord(folder, file):
    rows = [example(data=("bytes", [payload(n)])) for n in part(file)]
    write_framed(folder / f"{file}.tfr", map(framed, rows))


def mxnet(folder, file):
    write_recordio(folder / f"{file}", [image_record(float(n), payload(n)) for n in part(file)])


def webdataset(folder, file):
    members = [(f"{n:02d}.{ext}", payload(n)) for n in part(file) for ext in ("bin", "cls")]
    write_tar(folder / f"{file}.tar", members)


FEATURES = {"data": FixedLenFeature((), string, "")}

FORMATS = {
    "tfrecord": (tfrecord, "tfr", lambda paths, **o: TFRecord(path=paths, features=FEATURES, **o)),
    "mxnet": (mxnet, "rec", lambda paths, **o: MXNet(path=paths, **o)),
    "webdataset": (
        webdataset,
        "tar",
        lambda paths, **o: Webdataset(paths=paths, ext=["bin", "cls"], **o),
    ),
}


@pytest.fixture
def data_set(tmp_path):
    """Makes three files of a format, and gives their names and the reader of them."""

    def make(kind):
        write, ending, reader = FORMATS[kind]
        for file in range(3):
            write(tmp_path, file)
        return [tmp_path / f"{file}.{ending}" for file in range(3)], reader

    return make


def numbers(outputs):
    found = outputs["data"] if isinstance(outputs, dict) else outputs[0]
    arrays = [np.asarray(one) for one in (found if isinstance(found, ndd.Batch) else [found])]
    assert all(array.tolist() == [array[0]] * (array[0] + 1) for array in arrays)
    return [int(array[0]) for array in arrays]


def epoch(reader, size=2):
    return [numbers(outputs) for outputs in reader.next_epoch(batch_size=size)]


def flat(rows):
    return [number for row in rows for number in row]


def header(content, kind, number):
    """Where the header of a file's sample is."""
    place = content.index(payload(EACH + number) + (b"\0" if kind == "webdataset" else b""))
    if kind == "webdataset":
        return place - 512
    if kind == "mxnet":
        return place - 24 - 8
    return max(at for at in range(place) if content[at : at + 8] == sizes(content, at))


def sizes(content, at):
    """What the first bytes of a TFRecord at a place should be, if there is one."""
    from tests.records import crc32c

    crc = crc32c.crc32c(content[at : at + 8])
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    ok = content[at + 8 : at + 12] == struct.pack("<I", masked)
    return content[at : at + 8] if ok else b""


def cut(content, kind):
    """Within the data of sample 3, so that 0, 1 and 2 are left."""
    return content[: header(content, kind, 3) + {"webdataset": 514}.get(kind, 20)]


def cut_header(content, kind):
    return content[: header(content, kind, 3) + 5]


def length(content, kind):
    """Flip bits of the length of sample 3."""
    at = header(content, kind, 3) + {"tfrecord": 1, "mxnet": 6, "webdataset": 127}[kind]
    return content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :]


def first_bytes(content, kind):
    """Flip a bit at the beginning of sample 3's header: a magic number, a checksum."""
    at = header(content, kind, 3) + {"tfrecord": 9, "mxnet": 0, "webdataset": 0}[kind]
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGE = {"cut": cut, "cut header": cut_header, "length": length, "first bytes": first_bytes}
GOOD = [*part(0), *part(1)[:3], *part(2)]
BAD = EACH + 3
each_format = pytest.mark.parametrize("kind", FORMATS)
each_damage = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)


def spoil(path, damage, kind):
    path.write_bytes(damage(path.read_bytes(), kind))


@each_format
@each_damage
def test_damage_is_an_error_at_once_that_names_the_file(data_set, kind, damage):
    paths, make = data_set(kind)
    spoil(paths[1], damage, kind)
    with pytest.raises(ValueError, match="can't be used") as caught:
        make(paths)
    assert str(paths[1]) in str(caught.value)


@each_format
@each_damage
@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_not_damaged_is_read_and_the_rest_is_one_bad_sample(
    data_set, kind, damage, threads
):
    paths, make = data_set(kind)
    spoil(paths[1], damage, kind)
    ndd.set_num_threads(threads)
    try:
        reader = make(paths, on_error="skip", last_batch="partial")
        assert reader.epoch_size == len(GOOD) + 1
        for _ in range(2):
            assert flat(epoch(reader)) == GOOD
            [error] = reader.errors
            assert error.sample == BAD
            assert error.file.startswith(f"{paths[1]} at index ")
            assert error.reason
        single = make(paths, on_error="skip")
        assert flat(map(numbers, single.next_epoch())) == GOOD
    finally:
        ndd.set_num_threads(None)


@each_format
def test_the_reason_is_that_of_the_error(data_set, kind):
    paths, make = data_set(kind)
    spoil(paths[1], length, kind)
    with pytest.raises(ValueError) as caught:
        make(paths)
    reader = make(paths, on_error="skip")
    epoch(reader)
    [error] = reader.errors
    assert f"{paths[1]}: {error.reason}" in str(caught.value)


@each_format
@each_damage
@pytest.mark.parametrize("on_error", ["skip", "substitute"])
@pytest.mark.parametrize("order", [{}, {"random_shuffle": True, "seed": 3}])
def test_it_goes_on_from_every_step(data_set, kind, damage, on_error, order):
    paths, make = data_set(kind)
    spoil(paths[1], damage, kind)
    options = {"on_error": on_error, **order}
    reader, given, states = make(paths, **options), [], [make(paths, **options).get_state()]
    for outputs in reader.next_epoch(batch_size=2):
        given.append(numbers(outputs))
        states.append(reader.get_state())
    for step, state in enumerate(states[:-1]):
        restored = make(paths, **options)
        restored.set_state(state)
        assert epoch(restored) == given[step:], f"from step {step}"


@each_format
def test_another_stands_in(data_set, kind):
    paths, make = data_set(kind)
    spoil(paths[1], cut, kind)
    reader = make(paths, on_error="substitute", last_batch="partial")
    expected = [*GOOD[:BAD], part(2)[0], *GOOD[BAD:]]
    assert flat(epoch(reader)) == expected
    assert [error.sample for error in reader.errors] == [BAD]


@each_format
def test_damage_counts_towards_the_limit(data_set, kind):
    paths, make = data_set(kind)
    for path in paths[:2]:
        spoil(path, lambda content, kind: b"\1" * 600, kind)
    assert flat(epoch(make(paths, on_error="skip", max_errors=2, last_batch="partial"))) == [
        *part(2)
    ]
    with pytest.raises(RuntimeError, match=r"2 samples of this epoch .*`max_errors` allows \(1\)"):
        epoch(make(paths, on_error="skip", max_errors=1))


@each_format
def test_a_file_that_is_missing_is_one_bad_sample(data_set, kind):
    paths, make = data_set(kind)
    paths[0].unlink()
    paths[1].unlink()
    paths[1].mkdir()
    with pytest.raises(ValueError, match="no such file"):
        make(paths)
    reader = make(paths, on_error="skip", last_batch="partial")
    assert flat(epoch(reader)) == [*part(2)]
    reasons = [(error.sample, error.file, error.reason) for error in reader.errors]
    assert reasons == [
        (0, f"{paths[0]} at index 0", "there is no such file"),
        (1, f"{paths[1]} at index 0", "it is a folder"),
    ]
    # A set without any good sample has empty epochs.
    nothing = make(paths[:2], on_error="skip")
    assert epoch(nothing) == []
    assert len(nothing.errors) == 2


@each_format
def test_damage_makes_another_data_set(data_set, kind):
    paths, make = data_set(kind)
    state = make(paths, on_error="skip").get_state()
    spoil(paths[2], lambda content, kind: content[:-1] if kind != "webdataset" else b"", kind)
    with pytest.raises(ValueError, match="data set has changed"):
        make(paths, on_error="skip").set_state(state)


# Indices


@pytest.mark.parametrize(
    ("damage", "good", "says"),
    [
        (lambda text: text.replace("\n", "\nx\n", 2), [*part(0)[:1]], "line 2 should be two whole"),
        (lambda text: None, [], "no such file"),
    ],
)
def test_an_index_of_tfrecord_files_counts_as_its_file(data_set, damage, good, says):
    paths, make = data_set("tfrecord")
    index = [path.with_name(f"{path.name}.idx") for path in paths]
    text = damage(index[0].read_text())
    index[0].unlink()
    if text is not None:
        index[0].write_text(text)
    with pytest.raises(ValueError, match=says):
        make(paths, index_path=index)
    reader = make(paths, index_path=index, on_error="skip", last_batch="partial")
    assert flat(epoch(reader)) == [*good, *part(1), *part(2)]
    [error] = reader.errors
    assert f"its index can't be used: {index[0]}: " in error.reason
    assert error.file.startswith(str(paths[0]))


def test_an_index_of_recordio_files_counts_as_its_file(data_set):
    paths, make = data_set("mxnet")
    index = [path.with_suffix(".idx") for path in paths]
    index[1].write_text("0\t0\nodd\n")
    reader = make(paths, index_path=index, on_error="skip", last_batch="partial")
    assert flat(epoch(reader)) == [*part(0), *part(2)]
    [error] = reader.errors
    assert f"its index can't be used: {index[1]}: line 2" in error.reason


def test_files_that_share_an_index_are_readable_up_to_the_damage(data_set):
    paths, make = data_set("mxnet")
    shared, before = [], 0
    for path in paths:
        lines = path.with_suffix(".idx").read_text().splitlines()
        shared += [f"{before + int(line.split()[1])}" for line in lines]
        before += path.stat().st_size
    index = paths[0].with_name("all.idx")
    index.write_text("".join(f"{n}\t{place}\n" for n, place in enumerate(shared)))
    assert flat(epoch(make(paths, index_path=index, last_batch="partial"))) == [*range(15)]
    index_text = index.read_text()
    index.write_text("odd")
    reader = make(paths, index_path=index, on_error="skip")
    assert epoch(reader) == []
    assert f"its index can't be used: {index}: line 1" in reader.errors[0].reason
    index.write_text(index_text)
    paths[1].unlink()
    reader = make(paths, index_path=index, on_error="skip", last_batch="partial")
    assert flat(epoch(reader)) == [*part(0)]
    [error] = reader.errors
    assert error.file.startswith(str(paths[1]))


def test_an_index_of_archives_is_read_up_to_the_damage(data_set):
    paths, make = data_set("webdataset")
    index = paths[0].with_suffix(".idx")
    with tarfile.open(paths[0]) as archive:
        rows = {}
        for member in archive:
            base, _, ext = member.name.partition(".")
            rows.setdefault(base, []).append(f"{ext} {member.offset_data} {member.size}")
    lines = [" ".join(row) for row in rows.values()]
    index.write_text("\n".join([f"v1.1 {EACH}", *lines[:2], "odd", *lines[3:]]))
    reader = make(paths[:1], index_paths=index, on_error="skip", last_batch="partial")
    assert flat(epoch(reader)) == [0, 1]
    [error] = reader.errors
    assert f"its index can't be used: {index}: line 4" in error.reason


# Archives


def members(path, *rows):
    write_tar(path, rows)
    return path


def read(path, **arguments):
    reader = Webdataset(paths=path, on_error="skip", last_batch="partial", **arguments)
    given = [
        [bytes(np.asarray(value)) for value in outputs]
        for outputs in reader.next_epoch(batch_size=None)
    ]
    return given, reader.errors


def test_a_sample_without_a_component_that_must_be_there_is_one_bad_sample(tmp_path):
    rows = [("a.jpg", b"1"), ("b.png", b"2"), ("c.txt", b"3"), ("d.jpg", b"4")]
    path = members(tmp_path / "a.tar", *rows)
    given, errors = read(path, ext="jpg", missing_component_behavior="error")
    assert given == [[b"1"], [b"4"]]
    assert [(error.sample, error.reason) for error in errors] == [
        (1, "sample 'b' has no component 'jpg'"),
        (2, "sample 'c' has no component 'jpg'"),
    ]


@pytest.mark.parametrize("missing", ["empty", "skip", "error"])
def test_a_sample_that_the_damage_divides_is_part_of_it(tmp_path, missing):
    """Its other component may be in what can't be read; it is not one that has none."""
    rows = [("a.jpg", b"1"), ("a.cls", b"2"), ("b.jpg", b"3"), ("b.cls", b"4"), ("c.jpg", b"5")]
    path = members(tmp_path / "a.tar", *rows)
    content = bytearray(path.read_bytes())
    content[3 * 1024] ^= 1
    path.write_bytes(content)
    given, [error] = read(path, ext=["jpg", "cls"], missing_component_behavior=missing)
    assert given == [[b"1", b"2"]]
    assert (error.sample, error.file) == (1, f"{path} at index {2 * 1024 + 512}")
    assert "wrong checksum" in error.reason
    # All that is wanted of the sample is there already.
    given, [error] = read(path, ext="jpg", missing_component_behavior=missing)
    assert given == [[b"1"], [b"3"]]
    assert error.sample == 2


def test_sparse_files_end_what_can_be_read(tmp_path):
    path = members(
        tmp_path / "a.tar", ("a.jpg", b"1"), ("b.jpg", (tarfile.GNUTYPE_SPARSE, "")), ("c.jpg", b"")
    )
    given, [error] = read(path, ext="jpg")
    assert given == [[b"1"]]
    assert error.reason == "'b.jpg' is a sparse file, which is not supported"


# Databases


def caffe(folder, file, size=2000):
    records = [datum(payload(n) + bytes(size), n) for n in part(file)]
    return database(folder / f"db{file}", records)


def labels(reader):
    return [int(np.asarray(out[1])[0]) for out in reader.next_epoch()]


def test_what_is_missing_of_a_database_is_one_bad_sample(tmp_path):
    paths = [caffe(tmp_path, file) for file in range(3)]
    os.unlink(f"{paths[0]}/data.mdb")
    file = tmp_path / "db1" / "data.mdb"
    content = bytearray(file.read_bytes())
    pages = range(2 * 4096, len(content), 4096)
    leaves = [page for page in pages if content[page + 10] == 2]
    held = {page: content.find(payload(part(1)[3])[:4], page, page + 4096) >= 0 for page in leaves}
    page = next(page for page, holds in held.items() if holds)
    content[page + 10] = 0
    file.write_bytes(content)
    with pytest.raises(ValueError, match="can't be used"):
        Caffe(path=paths)
    with pytest.raises(ValueError, match=r"can't be used: .*db1: page \d+ of its tree is damaged"):
        Caffe(path=paths[1:])

    def make():
        return Caffe(path=paths, on_error="skip", last_batch="partial")

    reader = make()
    given = labels(reader)
    before = [label for label in given if label in part(1)]
    assert before == [*part(1)[: len(before)]]
    assert 0 < len(before) <= 3
    assert given == [*before, *part(2)]
    missing, damaged = reader.errors
    assert missing == (paths[0], 0, f"{paths[0]}/data.mdb: there is no such file")
    assert damaged[:2] == (paths[1], 1 + len(before))
    assert "of its tree is damaged" in damaged.reason
    for step in range(len(given)):
        reader.reset()
        iterator = reader.next_epoch()
        for _ in range(step):
            next(iterator)
        restored = make()
        restored.set_state(reader.get_state())
        assert labels(restored) == given[step:]


def test_a_tree_with_a_loop_gives_no_record_twice(tmp_path):
    records = [datum(payload(n) + bytes(2000), n) for n in range(8)]
    path = database(tmp_path / "db", records)
    file = tmp_path / "db" / "data.mdb"
    content = bytearray(file.read_bytes())
    [branch] = [at for at in range(2 * 4096, len(content), 4096) if content[at + 10] == 1]
    nodes = struct.unpack_from("<2H", content, branch + 16)
    content[branch + nodes[1] : branch + nodes[1] + 6] = content[
        branch + nodes[0] : branch + nodes[0] + 6
    ]
    file.write_bytes(content)
    reader = Caffe(path=path, on_error="skip")
    given = labels(reader)
    assert given == [*range(len(given))]
    assert len(given) < 8
    [error] = reader.errors
    assert "is in its tree twice" in error.reason


def test_caffe2_does_so_too(tmp_path):
    paths = [database(tmp_path / "db", [tensors(texts(b"x"), ints(n)) for n in range(3)]), "nope"]
    reader = Caffe2(path=paths, on_error="skip")
    assert labels(reader) == [0, 1, 2]
    assert reader.errors == [("nope", 3, "there is no such file")]


# A file for each sample


@pytest.mark.parametrize(
    ("name", "ending"), [("File", "jpg"), ("Numpy", "npy"), ("COCO", "jpg"), ("NemoAsr", "wav")]
)
def test_files_of_single_samples_are_bad_samples_themselves(tmp_path, name, ending):
    arguments, make = MAKERS[name](tmp_path, 6), reader_classes()[name]
    expected = [contents(outputs) for outputs in make(**arguments).next_epoch()]
    options = {**arguments, "on_error": "skip"}
    whole = make(**options)
    (tmp_path / f"0001.{ending}").write_bytes(b"")
    (tmp_path / f"0003.{ending}").unlink()
    if name in ("File", "COCO"):
        # Bytes of any kind are good ones; whether they are an image is up to the decoder.
        (tmp_path / f"0001.{ending}").unlink()
    if name == "Numpy":
        # What is listed at the opening is what there is.
        assert make(**options).epoch_size == 5
    else:
        whole = make(**options)
    assert [contents(outputs) for outputs in whole.next_epoch()] == [
        one for number, one in enumerate(expected) if number not in (1, 3)
    ]
    assert [error.sample for error in whole.errors] == [1, 3]


def test_what_names_the_samples_must_be_there(tmp_path):
    arguments = MAKERS["COCO"](tmp_path, 2)
    (tmp_path / "annotations.json").write_text("{")
    with pytest.raises(ValueError, match="can't be used"):
        ndd.readers.COCO(**arguments, on_error="skip")
    with pytest.raises(ValueError, match="nope"):
        ndd.readers.Numpy(file_root=tmp_path, file_list=tmp_path / "nope", on_error="skip")


# Manifests


def test_a_manifest_that_is_missing_is_one_bad_sample(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(10), 8000)
    good = tmp_path / "good.json"
    good.write_text(json.dumps({"audio_filepath": str(tmp_path / "a.wav"), "text": "a"}) + "\n")
    paths = [tmp_path / "nope.json", good]
    with pytest.raises(ValueError, match=r"can't be used: .*nope\.json"):
        NemoAsr(manifest_filepaths=paths)
    reader = NemoAsr(manifest_filepaths=paths, on_error="skip", read_idxs=True)
    [(_, _, text, index)] = reader.next_epoch()
    assert (bytes(np.asarray(text)), np.asarray(index).tolist()) == (b"a", [1])
    [error] = reader.errors
    assert error[:2] == (str(paths[0]), 0)
    assert "the manifest can't be read: there is no such file" in error.reason
