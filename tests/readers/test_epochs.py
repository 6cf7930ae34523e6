"""Epochs that are begun afresh are complete, whatever became of those before."""

import itertools
import pickle
import random
import warnings

import numpy as np
import pytest

import penstock as ndd
from penstock.checkpoint import Checkpoint
from penstock.readers import File, UnfinishedEpochWarning
from penstock.readers._base.order import POLICIES

SIZE = 13
SHUFFLES = (None, "buffer", "global")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    names = [folder / f"{number:02d}" for number in range(SIZE)]
    for name in names:
        name.write_bytes(b"bytes")
    return names


def labels(outputs):
    return [int(np.asarray(label)[0]) for label in outputs[1]]


def samples(iterator):
    return [label for outputs in iterator for label in labels(outputs)]


def flat(rows):
    return sorted(itertools.chain.from_iterable(rows))


def is_complete(found, last_batch, batch_size=4):
    """Whether an epoch of all samples has been seen, as the last batch has it."""
    if last_batch == "drop":
        kept = SIZE // batch_size * batch_size
        return len(found) == len({*found}) == kept
    if last_batch == "partial":
        return sorted(found) == list(range(SIZE))
    return {*found[:SIZE]} == {*range(SIZE)} and len(found) == -(-SIZE // batch_size) * batch_size


@pytest.mark.parametrize("last_batch", POLICIES)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_epochs_that_are_left_early_are_followed_by_complete_ones(files, shuffle, last_batch):
    reader = File(files=files, shuffle=shuffle, seed=1, last_batch=last_batch)
    orders = []
    for number in range(6):
        whole = samples(reader.next_epoch(batch_size=4, restart=True))
        assert is_complete(whole, last_batch), number
        orders.append(whole[:12])
        for _ in reader.next_epoch(batch_size=4, restart=True):
            break
    # Of the even numbers: those between were left.
    again = File(files=files, shuffle=shuffle, seed=1, last_batch=last_batch)
    for number, order in enumerate(orders):
        assert samples(again.next_epoch(batch_size=4, epoch=2 * number))[:12] == order
    if shuffle is not None:
        assert len({*map(tuple, orders)}) == 6


def test_asking_twice_skips_nothing(files):
    reader = File(files=files, shuffle="global")
    first = samples(File(files=files, shuffle="global").next_epoch(batch_size=4))
    for _ in range(3):
        reader.next_epoch(batch_size=4, restart=True)
    assert samples(reader.next_epoch(batch_size=4, restart=True)) == first


def test_set_epoch_before_each_epoch(files):
    """As programs do that know the samplers of PyTorch."""
    reader = File(files=files, shuffle="global", last_batch="partial")
    orders = []
    for epoch in range(3):
        reader.set_epoch(epoch)
        orders.append(samples(reader.next_epoch(batch_size=4)))
        assert sorted(orders[-1]) == list(range(SIZE))
        reader.set_epoch(epoch)
        next(reader.next_epoch(batch_size=4))  # and the rest is dropped
    plain = File(files=files, shuffle="global", last_batch="partial")
    assert orders == [samples(plain.next_epoch(batch_size=4)) for _ in range(3)]


def test_set_epoch_keeps_the_rest_of_the_epoch_that_a_state_is_of(files):
    def epochs(reader, begin, break_at=None):
        for epoch in range(begin, 3):
            reader.set_epoch(epoch)
            for step, outputs in enumerate(reader.next_epoch(batch_size=4)):
                yield labels(outputs)
                if (epoch, step) == break_at:
                    return

    reader = File(files=files, shuffle="global", last_batch="partial")
    whole = [*epochs(File(files=files, shuffle="global", last_batch="partial"), 0)]
    begun = [*epochs(reader, 0, break_at=(1, 1))]
    for shards in (1, 2):
        rests = []
        for shard in range(shards):
            other = File(
                files=files,
                shuffle="global",
                last_batch="partial",
                num_shards=shards,
                shard_id=shard,
            )
            other.set_state(reader.get_state())
            rests += [*epochs(other, 1)]
        expected = flat(whole[len(begun) :])
        assert flat(rests) == expected


def test_shards_restart_together(files):
    def shards(count):
        return [
            File(files=files, shuffle="global", last_batch="partial", num_shards=count, shard_id=i)
            for i in range(count)
        ]

    readers = shards(3)
    for reader in readers:
        next(reader.next_epoch(batch_size=2))
    found = [samples(reader.next_epoch(batch_size=2, restart=True)) for reader in readers]
    assert flat(found) == list(range(SIZE))
    # And their states can be divided among others.
    begun = []
    for reader in readers:
        begun += labels(next(reader.next_epoch(batch_size=2, restart=True)))
    rest = []
    for reader in shards(2):
        reader.set_state(readers[0].get_state())
        rest += samples(reader.next_epoch(batch_size=2))
    assert sorted(begun + rest) == list(range(SIZE))
    reader = shards(2)[0]
    reader.set_state(readers[0].get_state())
    half = samples(reader.next_epoch(batch_size=2, restart=True))
    assert half == samples(shards(2)[0].next_epoch(batch_size=2, epoch=3))


def test_the_number_must_be_one(files):
    reader = File(files=files)
    for epoch in (-1, 2**60):
        with pytest.raises(ValueError, match="`epoch` must be from 0 on"):
            reader.set_epoch(epoch)
    for epoch in ("1", 1.5, True):
        with pytest.raises(TypeError, match="`epoch` must be a whole number"):
            reader.next_epoch(batch_size=2, epoch=epoch)


def test_iterators_of_before_say_that_the_reader_has_moved(files):
    reader = File(files=files)
    old = reader.next_epoch(batch_size=4)
    next(old)
    reader.set_epoch(0)
    with pytest.raises(RuntimeError, match="started over"):
        next(old)


def test_leaving_a_loop_over_prefetch_is_no_reason_to_warn(files):
    reader = File(files=files)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in ndd.prefetch(reader.next_epoch(batch_size=4)):
            break
        iterator = reader.next_epoch(batch_size=4)
        next(iterator)
    with pytest.warns(UnfinishedEpochWarning):
        reader.next_epoch(batch_size=4)


@pytest.mark.parametrize("how", ["reader", "checkpoint"])
def test_states_are_loaded_by_readers_in_use(files, how):
    reader = File(files=files)
    checkpoint = Checkpoint()
    checkpoint.register(reader, "reader")
    iterator = reader.next_epoch(batch_size=4)
    next(iterator)
    state = checkpoint.state_dict() if how == "checkpoint" else reader.state_dict()
    rest = samples(iterator)
    next(reader.next_epoch(batch_size=4))
    (checkpoint if how == "checkpoint" else reader).load_state_dict(state)
    assert samples(reader.next_epoch(batch_size=4)) == rest
    damaged = {"state": str(reader.get_state())[:-1]}
    with pytest.raises(ValueError, match="not the state"):
        reader.load_state_dict(damaged)
    with pytest.raises(RuntimeError, match="after iteration has begun"):
        reader.set_state(reader.get_state())


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_done_an_epoch_begun_afresh_is_complete(files, seed):
    rng = random.Random(seed)
    last_batch, shuffle = rng.choice(POLICIES), rng.choice(SHUFFLES)

    def make():
        return File(files=files, last_batch=last_batch, shuffle=shuffle, seed=5)

    reader = make()
    for _ in range(12):
        match rng.randrange(6):
            case 0:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UnfinishedEpochWarning)
                    iterator = reader.next_epoch(batch_size=4)
                for _ in range(rng.randrange(4)):
                    next(iterator, None)
            case 1:
                next(reader.next_epoch(batch_size=4, restart=True))
            case 2:
                reader.set_epoch(rng.randrange(9))
            case 3:
                state = reader.get_state()
                reader = make()
                reader.set_state(state)
            case 4:
                reader = pickle.loads(pickle.dumps(reader))
            case _:
                number = rng.choice([None, rng.randrange(9)])
                iterator = reader.next_epoch(batch_size=4, restart=True, epoch=number)
                assert is_complete(samples(iterator), last_batch)


@pytest.mark.parametrize("policy", ["wrap", "pad", "drop"])
@pytest.mark.parametrize("options", [{}, {"stick_to_shard": True}, {"shuffle": "global"}])
@pytest.mark.parametrize(
    ("size", "shards", "batch"), [(17, 2, 4), (17, 3, 2), (7, 3, 1), (9, 4, 2)]
)
def test_all_shards_have_equally_many_batches(tmp_path, policy, options, size, shards, batch):
    files = [tmp_path / f"{number:02}" for number in range(size)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]))

    def reader(shard, state=None):
        made = File(
            files=files, num_shards=shards, shard_id=shard, last_batch=policy, seed=3, **options
        )
        if state is not None:
            made.set_state(state)
        return made

    def epochs(readers, count=4):
        for _ in range(count):
            given = [[*each.next_epoch(batch_size=batch)] for each in readers]
            assert len({len(batches) for batches in given}) == 1
            assert {len(data) for batches in given for data, _ in batches} == {batch}
            yield {int(number) for batches in given for data, _ in batches for [number] in data}

    for seen in epochs(list(map(reader, range(shards)))):
        if policy == "drop":
            assert len(seen) == size // shards // batch * batch * shards
        elif policy == "pad":
            assert seen == {*range(size)}
    stopped = reader(0)
    next(stopped.next_epoch(batch_size=batch))
    _, *whole = epochs([reader(shard, stopped.get_state()) for shard in range(shards)])
    assert len(whole) == 3


@pytest.mark.parametrize("policy", ["wrap", "drop"])
def test_what_another_number_of_shards_has_left_over_is_divided_evenly(tmp_path, policy):
    files = [tmp_path / f"{number:02}" for number in range(23)]
    for file in files:
        file.write_bytes(b"x")
    for before, step in [(1, 1), (1, 4), (3, 2), (4, 1)]:
        stopped = File(files=files, num_shards=before, last_batch=policy)
        batches = stopped.next_epoch(batch_size=2)
        for _ in range(step):
            next(batches)
        readers = [File(files=files, num_shards=2, shard_id=i, last_batch=policy) for i in (0, 1)]
        for each in readers:
            each.set_state(stopped.get_state())
        for _ in range(4):
            first, second = (len([*each.next_epoch(batch_size=3)]) for each in readers)
            assert first == second


def test_without_a_choice_shards_may_differ_by_a_batch_as_in_dali(tmp_path):
    files = [tmp_path / f"{number:02}" for number in range(9)]
    for file in files:
        file.write_bytes(b"x")
    readers = [File(files=files, num_shards=2, shard_id=shard) for shard in (0, 1)]
    assert [len(each.next_epoch(batch_size=4)) for each in readers] == [1, 2]
