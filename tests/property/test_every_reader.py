"""Properties of readers of all formats: a restored reader continues as if it had never
stopped, and shards share the data set. `tests/data_sets.py` has data for each of them.
"""

import itertools
import pickle

import pytest
from tests.data_sets import MAKERS, contents, reader_classes
from tests.pairs import each_pair

import penstock
from penstock import _core
from penstock.readers._base import io_pool as pool

READERS = reader_classes()
COUNT, BATCH, EPOCHS = 7, 3, 3

ORDERS = {
    "in order": {},
    "buffer": {"random_shuffle": True, "seed": 5, "initial_fill": 3},
    "global": {"shuffle": "global", "seed": 9},
}
each_reader = pytest.mark.parametrize("name", READERS)
each_order = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
each_pair_of_settings = each_pair(
    name=list(READERS), order=ORDERS, batch_size=[None, BATCH], shards=[1, 2, 3]
)


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory):
    """The arguments of each reader, created once."""
    made = {}

    def make(name):
        if name not in made:
            made[name] = MAKERS[name](tmp_path_factory.mktemp(name), COUNT)
        return made[name]

    return make


@pytest.fixture(params=[1, 4])
def threads(request, monkeypatch):
    """Sets the numbers of worker threads and I/O threads."""
    penstock.set_num_threads(request.param)
    monkeypatch.setattr(pool, "_pool", _core.Pool(request.param))
    yield request.param
    penstock.set_num_threads(None)


def test_every_format_is_among_the_readers():
    records = {"Caffe", "Caffe2", "MXNet", "TFRecord", "Webdataset"}
    assert records | {"COCO", "File", "NemoAsr", "Numpy"} <= READERS.keys()


def test_there_is_a_data_set_for_every_reader():
    missing = sorted(READERS.keys() - MAKERS.keys())
    assert not missing, f"tests/data_sets.py has none for {', '.join(missing)}"


def walk(reader, batch_size, epochs=EPOCHS):
    """The batches of each epoch, and the states before the first and after each of them."""
    given, states = [], [reader.get_state()]
    for _ in range(epochs):
        epoch = []
        for outputs in reader.next_epoch(batch_size=batch_size):
            epoch.append(contents(outputs))
            states.append(reader.get_state())
        given.append(epoch)
    return given, states


@pytest.fixture(scope="module")
def uninterrupted(data_sets):
    """The output and the states of a reader that is never stopped."""
    known = {}

    def give(name, arguments, batch_size):
        key = (name, batch_size, *sorted(arguments.items()))
        if key not in known:
            known[key] = walk(READERS[name](**data_sets(name), **arguments), batch_size)
        return known[key]

    return give


@each_pair_of_settings
def test_restored_at_every_step_it_goes_on(
    data_sets, uninterrupted, threads, name, order, batch_size, shards
):
    """States don't depend on the number of threads and prefetched batches."""
    for shard in range(shards):
        arguments = {**order, "num_shards": shards, "shard_id": shard}
        epochs, states = uninterrupted(name, arguments, batch_size)
        steps = [step for step, epoch in enumerate(epochs) for _ in epoch]
        flat = list(itertools.chain(*epochs))
        for at, state in enumerate(states[:-1]):
            restored = READERS[name](
                **data_sets(name), **arguments, prefetch_queue_depth=at % 3 + 1
            )
            restored.set_state(state)
            assert restored.get_state() == state
            rest, after = walk(restored, batch_size, EPOCHS - steps[at])
            assert list(itertools.chain(*rest)) == flat[at:], f"from step {at}"
            assert [len(epoch) for epoch in rest[1:]] == [
                len(epoch) for epoch in epochs[steps[at] + 1 :]
            ]
            assert after == states[at:], f"from step {at}"


@each_pair_of_settings
def test_restored_between_calls_it_goes_on(data_sets, threads, name, order, batch_size, shards):
    arguments = {**data_sets(name), **order, "num_shards": shards, "shard_id": shards - 1}
    calls = 2 * COUNT // (batch_size or 1)

    def called(reader):
        outputs = reader(batch_size=batch_size)
        return contents(outputs if isinstance(outputs, tuple | dict) else (outputs,))

    whole, states, given = READERS[name](**arguments), [], []
    for _ in range(calls):
        states.append(whole.get_state())
        given.append(called(whole))
    for at, state in enumerate(states):
        restored = READERS[name](**arguments)
        restored.set_state(state)
        assert [called(restored) for _ in range(at, calls)] == given[at:], f"from call {at}"


@each_reader
@each_order
def test_shards_share_the_data_set_and_all_samples_differ(data_sets, name, order):
    given = []
    for shard in range(3):
        reader = READERS[name](
            **data_sets(name), **order, num_shards=3, shard_id=shard, last_batch="partial"
        )
        for outputs in reader.next_epoch(batch_size=2):
            given += contents(outputs)
    assert len(given) == len(set(given)) == COUNT


@each_reader
@each_order
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 1)])
def test_other_shards_go_on_where_these_stopped(data_sets, name, order, before, after):
    """Stopped at any step, each remaining sample comes exactly once."""
    arguments = {**data_sets(name), **order, "last_batch": "partial"}
    for steps in range(COUNT // before + 2):
        readers = [
            READERS[name](**arguments, num_shards=before, shard_id=shard) for shard in range(before)
        ]
        iterators = [reader.next_epoch(batch_size=1) for reader in readers]
        taken = min(steps, max(map(len, iterators)))
        given = []
        for iterator in iterators:
            for outputs in itertools.islice(iterator, min(taken, len(iterator))):
                given += contents(outputs)
        # A shard that had a batch in the last step knows the position of all.
        state = next(
            reader.get_state()
            for reader, iterator in zip(readers, iterators, strict=True)
            if len(iterator) >= taken
        )
        if len(given) == COUNT:
            continue
        for shard in range(after):
            reader = READERS[name](**arguments, num_shards=after, shard_id=shard)
            reader.set_state(state)
            for outputs in reader.next_epoch(batch_size=2):
                given += contents(outputs)
        assert len(given) == len(set(given)) == COUNT, f"stopped at step {steps}"


@each_reader
def test_a_changed_data_set_is_noticed(tmp_path, name):
    for count in (4, 5):
        (tmp_path / str(count)).mkdir()
    few, more = (READERS[name](**MAKERS[name](tmp_path / str(n), n)) for n in (4, 5))
    with pytest.raises(ValueError, match=r"had 4 samples, and has 5 now"):
        more.set_state(few.get_state())


@each_reader
@each_order
def test_a_copy_goes_on_at_the_same_place(data_sets, name, order):
    reader = READERS[name](**data_sets(name), **order)
    iterator = reader.next_epoch(batch_size=BATCH)
    next(iterator)
    made = pickle.loads(pickle.dumps(reader))
    assert made.get_state() == reader.get_state()
    rest = [contents(outputs) for outputs in iterator]
    assert [contents(outputs) for outputs in made.next_epoch(batch_size=BATCH)] == rest


@each_reader
def test_a_batch_size_is_for_the_epoch(data_sets, name):
    with pytest.raises(TypeError, match=r"`next_epoch\(batch_size=\.\.\.\)`"):
        READERS[name](**data_sets(name), batch_size=4)
