"""Readers in loops over prefetch: their states are those of the current batch."""

import itertools

import numpy as np
import pytest

import penstock as ndd
from penstock.checkpoint import Checkpoint
from penstock.readers import File

COUNT = 11
ORDERS = {
    "in order": {},
    "shuffled": {"random_shuffle": True, "seed": 5, "initial_fill": 4},
    "global": {"shuffle": "global", "seed": 5},
    "padded shards": {"pad_last_batch": True, "num_shards": 2, "shard_id": 1},
    "partial": {"last_batch": "partial"},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "class").mkdir()
    for index in range(COUNT):
        (folder / "class" / f"{index:02d}.jpg").write_bytes(bytes([index]))
    return folder


def numbers(outputs):
    data = outputs[0]
    tensors = data.tensors if isinstance(data, ndd.Batch) else [data]
    return [int(np.asarray(tensor)[0]) for tensor in tensors]


def epochs(reader, rng, size, count=2):
    """Some epochs of a reader, with a random number for each batch."""
    for _ in range(count):
        for outputs in reader.next_epoch(batch_size=size):
            yield numbers(outputs), rng()


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_checkpoints_belong_to_the_batch_in_hand(root, order, size, depth):
    def make():
        return File(file_root=root, **order), ndd.random.RNG(3)

    expected = list(epochs(*make(), size))
    reader, rng = make()
    checkpoint = Checkpoint()
    checkpoint.register(reader, "reader")
    checkpoint.register(rng, "rng")
    items, saved = [], []
    for item in ndd.prefetch(epochs(reader, rng, size), depth):
        items.append(item)
        checkpoint.collect()
        saved.append(checkpoint.serialize())
    assert items == expected
    for at, text in enumerate(saved, start=1):
        reader, rng = make()
        restored = Checkpoint()
        restored.deserialize(text)
        restored.register(reader, "reader")
        restored.register(rng, "rng")
        left = ndd.prefetch(epochs(reader, rng, size), depth)
        assert list(itertools.islice(left, len(items) - at)) == items[at:], f"resumed at {at}"


@pytest.mark.parametrize("depth", [0, 1, 3, 9])
@pytest.mark.filterwarnings("ignore::penstock.readers.UnfinishedEpochWarning")
def test_a_loop_left_early_goes_on_with_the_next_batch(root, depth):
    for stop in range(1, 5):
        reader, plain = File(file_root=root), File(file_root=root)
        taken = [[], []]
        for into, loop in (
            (taken[0], ndd.prefetch(reader.next_epoch(batch_size=3), depth)),
            (taken[1], plain.next_epoch(batch_size=3)),
        ):
            for outputs in itertools.islice(loop, stop):
                into.append(numbers(outputs))
        del loop
        assert reader.get_state() == plain.get_state()
        for _ in range(2):
            taken[0].extend(map(numbers, reader.next_epoch(batch_size=3)))
            taken[1].extend(map(numbers, plain.next_epoch(batch_size=3)))
        assert taken[0] == taken[1]


@pytest.mark.parametrize("depth", [0, 1, 3, 9])
def test_the_iterator_of_a_loop_left_early_goes_on_to_its_end(root, depth):
    reader = File(file_root=root, last_batch="partial")
    whole = [numbers(outputs) for outputs in reader.next_epoch(batch_size=3)]
    iterator = reader.next_epoch(batch_size=3)
    with ndd.prefetch(iterator, depth) as loop:
        assert numbers(next(loop)) == whole[0]
    assert [numbers(outputs) for outputs in iterator] == whole[1:]
    assert numbers(next(reader.next_epoch(batch_size=3))) == whole[0]


def test_a_loop_left_early_forgets_what_was_read_for_another_batch_size(root):
    reader = File(file_root=root)

    def source():
        yield from itertools.islice(reader.next_epoch(batch_size=2), 2)
        reader.reset()
        yield from reader.next_epoch(batch_size=4)

    with ndd.prefetch(source(), 1) as loop:
        given = [numbers(next(loop)) for _ in range(2)]
    # Without a warning: leaving such a loop early is supported.
    given.append(numbers(next(reader.next_epoch(batch_size=2))))
    assert given == [[0, 1], [2, 3], [4, 5]]


def test_bad_files_are_reported_once_though_read_twice(root, tmp_path):
    names = [str(root / "class" / f"{index:02d}.jpg") for index in range(4)]
    names.insert(2, str(tmp_path / "gone.jpg"))
    reader = File(files=names, on_error="skip")
    for _ in ndd.prefetch(reader.next_epoch(batch_size=1), 3):
        break
    assert reader.errors == []
    rest = [numbers(outputs) for outputs in reader.next_epoch(batch_size=1)]
    assert rest[:3] == [[1], [2], [3]]
    assert len(reader.errors) == 1


def test_a_reader_can_be_put_back_to_the_same_place_twice(root, tmp_path):
    reader = File(files=[root / "class/00.jpg", tmp_path / "gone.jpg"], on_error="skip")
    iterator = reader.next_epoch(batch_size=1)
    next(iterator)
    state = reader._current_state()
    for _ in range(2):
        assert list(iterator) == []
        assert len(reader.errors) == 1
        reader._rewind(state)
        assert reader.errors == []


def test_the_length_of_an_epoch_shows_through(root):
    assert len(ndd.prefetch(File(file_root=root).next_epoch(batch_size=3))) == 4


def test_setting_a_state_and_starting_over_in_the_body(root):
    reader = File(file_root=root)
    start = reader.get_state()
    loop = ndd.prefetch(reader.next_epoch(batch_size=3))
    next(loop)
    reader.reset()
    assert reader.get_state() == start
    loop.close()
    assert reader.get_state() == start
