"""What TFRecord, MXNet and Webdataset have in common: restoring, damage, files without an index."""

import inspect
import itertools
import os
import random

import numpy as np
import pytest
from tests.records import example, framed, image_record, write_framed, write_recordio, write_tar

import penstock as ndd
from penstock import tfrecord
from penstock.readers import MXNet, TFRecord, Webdataset

COUNT = 11


def make_tfrecord(folder, **arguments):
    features = {
        "data": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "number": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }
    return TFRecord(path=folder / "t", features=features, **arguments)


def make_mxnet(folder, **arguments):
    return MXNet(path=folder / "m.rec", **arguments)


def make_webdataset(folder, **arguments):
    return Webdataset(paths=folder / "w.tar", ext=["bin", "cls"], **arguments)


READERS = {
    "tfrecord": (make_tfrecord, "t", {"index_path": "t.idx"}),
    "mxnet": (make_mxnet, "m.rec", {"index_path": "m.idx"}),
    "webdataset": (make_webdataset, "w.tar", {}),
}


@pytest.fixture
def folder(tmp_path):
    """Eleven samples in each format; sample n holds n + 1 bytes of n."""
    samples = [(bytes([n]) * (n + 1), n) for n in range(COUNT)]
    rows = [example(data=("bytes", [data]), number=("int64", [n])) for data, n in samples]
    write_framed(tmp_path / "t", map(framed, rows))
    write_recordio(tmp_path / "m", [image_record(float(n), data) for data, n in samples])
    members = [(f"{n:02d}.{ext}", data) for data, n in samples for ext in ("bin", "cls")]
    write_tar(tmp_path / "w.tar", members)
    return tmp_path


@pytest.fixture(params=READERS)
def make(request, folder):
    return lambda **arguments: READERS[request.param][0](folder, **arguments)


def data(outputs):
    return outputs["data"] if isinstance(outputs, dict) else outputs[0]


def numbers(outputs):
    found = data(outputs)
    found = found if isinstance(found, ndd.Batch) else [found]
    arrays = [np.asarray(one) for one in found]
    assert all(array.tolist() == [array[0]] * (array[0] + 1) for array in arrays)
    return [int(array[0]) for array in arrays]


def epochs(reader, size=3, count=2):
    for _ in range(count):
        for outputs in reader.next_epoch(batch_size=size):
            yield numbers(outputs)


@pytest.mark.parametrize("kind", ["tfrecord", "mxnet"])
def test_with_and_without_an_index_is_the_same(folder, kind):
    make, _, index = READERS[kind]
    [(key, name)] = index.items()
    plain, indexed = make(folder), make(folder, **{key: folder / name})
    assert list(epochs(plain)) == list(epochs(indexed))
    indexed.reset()
    indexed.set_state(plain.get_state())


@pytest.mark.parametrize("order", [{}, {"random_shuffle": True, "seed": 3}, {"shuffle": "global"}])
@pytest.mark.parametrize("shards", [{}, {"num_shards": 2, "shard_id": 1}])
@pytest.mark.parametrize("size", [None, 3])
def test_a_reader_is_restored_at_every_step(make, order, shards, size):
    expected = list(epochs(make(**order, **shards), size))
    reader = make(**order, **shards)
    for step, _ in enumerate(epochs(reader, size), 1):
        other = make(**order, **shards)
        other.set_state(reader.get_state())
        assert list(epochs(other, size))[: len(expected) - step] == expected[step:]


def flat(rows):
    return list(itertools.chain.from_iterable(rows))


def test_shards_share_the_data_set(make):
    found = [
        flat(epochs(make(num_shards=3, shard_id=n, last_batch="partial"), 2, 1)) for n in range(3)
    ]
    assert sorted(flat(found)) == list(range(COUNT))


def test_states_go_along_in_prefetched_loops(make):
    reader = make()
    states = [
        (numbers(outputs), reader.get_state()) for outputs in ndd.prefetch(reader.next_epoch(3), 2)
    ]
    for step, (_, state) in enumerate(states[:-1]):
        other = make()
        other.set_state(state)
        assert next(epochs(other)) == states[step + 1][0]


@pytest.mark.parametrize("kind", READERS)
def test_a_changed_data_set_is_noticed(folder, kind):
    make, name, _ = READERS[kind]
    reader = make(folder)
    next(epochs(reader))
    state = reader.get_state()
    # Another folder is no other data set.
    (folder / "moved").mkdir()
    (folder / "moved" / name).write_bytes((folder / name).read_bytes())
    make(folder / "moved").set_state(state)
    if kind == "tfrecord":
        write_framed(folder / "t", [framed(example(number=("int64", [1])))] * COUNT)
    elif kind == "mxnet":
        write_recordio(folder / "m", [image_record(1.0, b"same")] * COUNT)
    else:
        write_tar(folder / "w.tar", [(f"{n}.bin", b"same") for n in range(COUNT)])
    with pytest.raises(ValueError, match="data set has changed"):
        make(folder).set_state(state)


def damage_record(folder, kind):
    """Make sample 4 unreadable, and return what its error is to say."""
    if kind == "tfrecord":
        path = folder / "t"
        content = bytearray(path.read_bytes())
        content[content.index(bytes([4]) * 5)] ^= 1
        path.write_bytes(content)
        return "checksum of the record's data", f"{path} at index"
    path = folder / "m.rec"
    content = bytearray(path.read_bytes())
    content[content.index(bytes([4]) * 5) - 24] = 77
    path.write_bytes(content)
    return "claims 77 labels", f"{path} at index"


@pytest.mark.parametrize("kind", ["tfrecord", "mxnet"])
def test_a_damaged_record_is_named_and_can_be_left_out(folder, kind):
    make = READERS[kind][0]
    says, where = damage_record(folder, kind)
    with pytest.raises(OSError, match=says) as caught:
        list(epochs(make(folder)))
    assert where in str(caught.value)
    reader = make(folder, on_error="skip")
    assert flat(epochs(reader, 3, 1)) == [n for n in [*range(COUNT), 0] if n != 4]
    [error] = reader.errors
    assert error.sample == 4
    assert where in error.file
    assert says in error.reason


@pytest.mark.parametrize("kind", READERS)
def test_files_that_shrink_while_they_are_read_are_errors(folder, kind):
    make, name, _ = READERS[kind]
    reader = make(folder)
    iterator = iter(epochs(reader, None))
    next(iterator)
    os.truncate(folder / name, 40)
    with pytest.raises(OSError, match="shrank"):
        list(iterator)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("indexed", [False, True])
def test_damage_is_an_error_and_nothing_worse(folder, kind, indexed):
    make, name, index = READERS[kind]
    arguments = {key: folder / value for key, value in index.items()} if indexed else {}
    path = folder / name
    sound = path.read_bytes()
    draw = random.Random(7)
    whole = list(range(COUNT))
    errors, nothing = [], []
    for _ in range(150):
        damaged = bytearray(sound)
        for _ in range(draw.choice([1, 1, 5])):
            damaged[draw.randrange(len(damaged))] = draw.choice([0, 1, 127, 128, 255])
        if draw.random() < 0.3:
            del damaged[draw.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        try:
            for outputs in make(folder, **arguments).next_epoch(batch_size=4):
                values = outputs.values() if isinstance(outputs, dict) else outputs
                for value in values:
                    [np.asarray(sample) for sample in value]
        except (OSError, RuntimeError) as error:
            errors.append(error)
        try:
            reader = make(folder, **arguments, on_error="skip", last_batch="partial")
        except ValueError as error:
            nothing.append(str(error))
            continue
        given = [bytes(np.asarray(data(outputs))) for outputs in reader.next_epoch()]
        assert len(given) + len(reader.errors) == reader.epoch_size
        assert all(error.file.startswith(str(path)) for error in reader.errors)
        if kind == "tfrecord":
            # With checksums, what is given is what was written.
            assert [one for one in whole if bytes([one]) * (one + 1) in given] == [
                one[0] for one in given
            ]
    assert errors
    assert all("names no samples" in text for text in nothing)
    for error in errors:
        assert "Internal" not in type(error).__name__, error
        assert str(path) in str(error) or "names no samples" in str(error)


@pytest.mark.parametrize("reader", [MXNet, TFRecord, Webdataset])
def test_every_argument_is_documented(reader):
    for name in inspect.signature(reader).parameters:
        assert f"    {name}: " in reader.__doc__, name


def test_more_files_than_are_kept_open_can_be_read(tmp_path):
    paths = [tmp_path / f"{number:03d}.tar" for number in range(100)]
    for number, path in enumerate(paths):
        write_tar(path, [("a.bin", bytes([number]) * (number + 1)), ("b.bin", b"\0")])
    reader = Webdataset(paths=paths, ext="bin", shuffle="global", last_batch="partial")
    assert sorted(flat(epochs(reader, 7, 1))) == sorted([*range(100), *[0] * 100])
