"""Properties of readers: no sample is lost or repeated, a restored reader continues as if it had
never stopped.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.readers import File
from penstock.readers._base.order import PERMUTED, Order, Place, Plan, bounds

SHUFFLES = [
    {},
    {"random_shuffle": True, "seed": 5, "initial_fill": 3},
    {"shuffle": "global", "seed": 9},
    {"random_shuffle": True, "seed": 5, "is_long": True},
    {"shuffle": "global", "seed": 9, "is_long": True},
]
POLICIES = ["wrap", "pad", "partial", "drop"]
# Samples of other readers are known without their files.
NAMES = [f"missing/{number}" for number in range(23)]


class LongFile(File):
    """Has the order of a long data set."""

    def _plan(self):
        plan = super()._plan()
        return replace(plan, shuffle=PERMUTED[plan.shuffle])


def make(size, state=None, is_long=False, **arguments):
    """A reader of files that are never opened: only labels are used."""
    reader = (LongFile if is_long else File)(files=NAMES[:size], **arguments)
    if state is not None:
        reader.set_state(state)
    return reader


def numbers(outputs):
    return [int(np.asarray(label)[0]) for label in outputs[1]]


def flat(rows):
    return list(itertools.chain.from_iterable(rows))


def take(reader, batch_size, steps):
    """A number of batches, across the ends of epochs."""
    given, iterator = [], iter(())
    while len(given) < steps:
        outputs = next(iterator, None)
        if outputs is None:
            iterator = reader.next_epoch(batch_size=batch_size)
        else:
            given.append(numbers(outputs))
    return given


def walk(reader, batch_size, epochs):
    """All batches of some epochs, the state before each, and where epochs end."""
    states, batches = [reader.get_state()], []
    for _ in range(epochs):
        epoch = []
        for outputs in reader.next_epoch(batch_size=batch_size):
            epoch.append(numbers(outputs))
            states.append(reader.get_state())
        batches.append(epoch)
    return states, batches


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shuffle", SHUFFLES, ids=str)
@pytest.mark.parametrize(("shards", "stick"), [(1, False), (3, False), (3, True)])
def test_a_reader_restored_at_any_step_goes_on_as_if_it_had_not_stopped(
    policy, shuffle, shards, stick
):
    arguments = {"last_batch": policy, "num_shards": shards, "stick_to_shard": stick, **shuffle}
    for shard in range(shards):
        states, epochs = walk(make(11, shard_id=shard, **arguments), 3, 4)
        flat = [batch for epoch in epochs for batch in epoch]
        ends = np.cumsum([len(epoch) for epoch in epochs]).tolist()
        for at, state in enumerate(states[:-1]):
            restored = make(11, state, shard_id=shard, **arguments)
            rest = [numbers(outputs) for outputs in restored.next_epoch(batch_size=3)]
            end = next(end for end in ends if end > at)
            assert rest == flat[at:end], f"the rest of the epoch, from step {at}"
            for first, last in itertools.pairwise(ends):
                if first >= end:
                    rest = [numbers(outputs) for outputs in restored.next_epoch(batch_size=3)]
                    assert rest == flat[first:last], f"an epoch after step {at}"


@pytest.mark.parametrize("policy", ["wrap", "pad", "partial"])
@pytest.mark.parametrize("shuffle", SHUFFLES, ids=str)
@pytest.mark.parametrize("stick", [False, True])
def test_the_state_of_another_shard_will_do(policy, shuffle, stick):
    arguments = {"last_batch": policy, "num_shards": 3, "stick_to_shard": stick, **shuffle}
    # Shards of the same size, or steps of one would not be those of another.
    walks = [walk(make(12, shard_id=shard, **arguments), 3, 3) for shard in range(3)]
    for step in range(len(walks[0][0]) - 1):
        for shard in range(3):
            _states, epochs = walks[shard]
            foreign = make(12, walks[0][0][step], shard_id=shard, **arguments)
            flat = [batch for epoch in epochs for batch in epoch]
            assert take(foreign, 3, len(flat) - step) == flat[step:]


def test_cut_streams_divide_what_was_left():
    """By hand: 10 samples, 2 readers that had 3 each, then 3 readers."""
    states = []
    for shard in range(2):
        reader = make(10, num_shards=2, shard_id=shard, last_batch="partial")
        take(reader, 3, 1)
        states.append(reader.get_state())
    left = []
    for shard in range(3):
        reader = make(10, states[0], num_shards=3, shard_id=shard, last_batch="partial")
        left.append(flat(numbers(o) for o in reader.next_epoch(batch_size=2)))
        assert len(flat(numbers(o) for o in reader.next_epoch(batch_size=2))) in (3, 4)
    assert sorted(flat(left)) == [3, 4, 8, 9]


CUTS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2), st.integers(0, 5)),
    min_size=1,
    max_size=4,
)
"""Numbers of shards, batch sizes, and epochs and steps before the next change."""


def give(readers, batch_size, epochs, steps, by_calls):
    """The output of readers stopped at the same step, and those that had a batch in it."""
    given = []
    if by_calls:
        for reader in readers:
            given += [numbers(reader(batch_size=batch_size)) for _ in range(epochs * 3 + steps)]
        return flat(given), readers
    coming = [reader.next_epoch(batch_size=batch_size) for reader in readers]
    if any(reader._position.is_done for reader in readers):
        # Stopped when the epoch was over for some: the others finish theirs, to be in step again.
        for reader, iterator in zip(readers, coming, strict=True):
            if not reader._position.is_done:
                given += [numbers(outputs) for outputs in iterator]
    for _ in range(epochs):
        for reader in readers:
            given += [numbers(outputs) for outputs in reader.next_epoch(batch_size=batch_size)]
    iterators = [reader.next_epoch(batch_size=batch_size) for reader in readers]
    steps = min(steps, max(map(len, iterators)))
    for iterator in iterators:
        given += [numbers(next(iterator)) for _ in range(min(steps, len(iterator)))]
    pairs = zip(readers, iterators, strict=True)
    return flat(given), [reader for reader, iterator in pairs if len(iterator) >= steps]


@given(
    size=st.integers(5, 20),
    cuts=CUTS,
    shuffle=st.sampled_from(SHUFFLES),
    stick=st.booleans(),
    policy=st.sampled_from([None, "wrap", "partial"]),
    by_calls=st.booleans(),
    source=st.integers(0, 3),
)
def test_however_often_shards_and_batches_change_nothing_is_lost_or_repeated(
    size, cuts, shuffle, stick, policy, by_calls, source
):
    """The samples of each turn come exactly once, from any reader at any time."""
    arguments = {"last_batch": policy, "stick_to_shard": stick, **shuffle}
    given, state = [], None
    for shards, batch_size, epochs, steps in cuts:
        readers = [
            make(size, state, num_shards=shards, shard_id=shard, **arguments)
            for shard in range(shards)
        ]
        more, last = give(readers, batch_size, epochs, steps, by_calls)
        given += more
        state = last[source % len(last)].get_state()
    # The rest of the current turns: another batch size is another change.
    reader = make(size, state, **arguments)
    reader.next_epoch(batch_size=7)
    order = reader._position.order
    for turn in range(reader._position.first_turn, order._last_cut + 1):
        given += list(order.numbers(turn, 0))
    counts = np.bincount(np.array(given, int), minlength=size)
    assert counts.min() == counts.max(), counts


@pytest.mark.parametrize("policy", [None, "partial"])
def test_a_shard_at_its_end_leaves_the_last_batch_of_another(policy):
    """By hand: shards of 2 and 3 samples, both stopped at step 2."""
    readers = [make(5, num_shards=2, shard_id=s, last_batch=policy) for s in range(2)]
    iterators = [reader.next_epoch(batch_size=1) for reader in readers]
    given = [flat(numbers(next(iterator)) for _ in range(2)) for iterator in iterators]
    assert given == [[0, 1], [2, 3]]
    for state in [reader.get_state() for reader in readers]:
        rest = make(5, state, last_batch=policy)
        assert flat(numbers(o) for o in rest.next_epoch(batch_size=1)) == [4]
        other = make(5, state, num_shards=2, shard_id=1, last_batch=policy)
        assert flat(numbers(o) for o in other.next_epoch(batch_size=1)) == [4]
        same = make(5, state, num_shards=2, shard_id=0, last_batch=policy, stick_to_shard=False)
        assert flat(numbers(o) for o in same.next_epoch(batch_size=1)) == [2, 3, 4]


@pytest.mark.parametrize("shuffle", SHUFFLES, ids=str)
@pytest.mark.parametrize("policy", ["pad", "partial", "drop"])
def test_the_rest_of_an_epoch_is_divided_among_other_shards(policy, shuffle):
    arguments = {"last_batch": policy, **shuffle}
    for before, after, steps in [(2, 3, 1), (3, 1, 1), (1, 4, 2), (4, 2, 1)]:
        readers = [make(20, num_shards=before, shard_id=s, **arguments) for s in range(before)]
        given = flat(flat(take(reader, 2, steps)) for reader in readers)
        state = readers[0].get_state()
        rest = []
        for shard in range(after):
            reader = make(20, state, num_shards=after, shard_id=shard, **arguments)
            rest += flat(numbers(o) for o in reader.next_epoch(batch_size=1))
        # With "drop", all shards have as many batches as the smallest has samples left.
        dropped = (20 - len(given)) % after if policy == "drop" else 0
        assert len(set(given) | set(rest)) == 20 - dropped
        if policy != "pad":
            assert len(given) + len(rest) == 20 - dropped


@pytest.mark.parametrize("shuffle", SHUFFLES, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shards", [1, 3])
def test_an_epoch_as_numbers_is_what_is_read(policy, shuffle, shards):
    arguments = {"last_batch": policy, "num_shards": shards, **shuffle}
    for shard in range(shards):
        reader = make(11, shard_id=shard, **arguments)
        for epoch in range(3):
            coming = [row.tolist() for row in reader.epoch_indices(batch_size=2)]
            again = [row.tolist() for row in reader.epoch_indices(2, epoch=1)]
            read = [numbers(outputs) for outputs in reader.next_epoch(batch_size=2)]
            assert coming == read
            if epoch == 1 and policy != "wrap":
                assert again == read


@pytest.mark.parametrize("policy", POLICIES)
def test_the_rest_of_an_epoch_as_numbers(policy):
    reader = make(11, last_batch=policy, shuffle="global")
    state = make(11, last_batch=policy, shuffle="global")
    take(state, 3, 2)
    reader.set_state(state.get_state())
    coming = [row.tolist() for row in reader.epoch_indices(3)]
    assert coming == [numbers(outputs) for outputs in reader.next_epoch(batch_size=3)]


@given(
    size=st.integers(1, 40),
    shards=st.integers(1, 9),
    turn=st.integers(0, 30),
    turns=st.integers(0, 40),
    stick=st.booleans(),
    policy=st.sampled_from(POLICIES),
    batch_size=st.integers(1, 4),
)
def test_sums_over_turns_are_sums(size, shards, turn, turns, stick, policy, batch_size):
    size = max(size, shards)
    order = Order(Plan(size=size, num_shards=shards, stick=stick, last_batch=policy))
    for reader in range(shards):
        expected = sum(order.batches(turn + i, reader, batch_size) for i in range(turns))
        assert order.given(reader, turn, turns, 0, batch_size) == expected


@given(st.integers(1, 50), st.integers(1, 50))
def test_shards_cover_the_data_set(size, shards):
    parts = [bounds(shard, size, shards) for shard in range(shards)]
    assert parts[0][0] == 0
    assert parts[-1][1] == size
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
    assert max(b - a for a, b in parts) - min(b - a for a, b in parts) <= 1


@given(
    size=st.integers(1, 30),
    shards=st.integers(1, 5),
    stick=st.booleans(),
    policy=st.sampled_from(POLICIES),
    is_even=st.booleans(),
    batch_size=st.integers(1, 4),
    batches=st.integers(0, 200),
)
def test_walking_is_drawing(size, shards, stick, policy, is_even, batch_size, batches):
    size = max(size, shards * batch_size)
    plan = Plan(size=size, num_shards=shards, stick=stick, last_batch=policy, is_even=is_even)
    order = Order(plan)
    for reader in range(shards):
        place = Place(0, 0)
        for _ in range(batches):
            _, place = order.draw(place, reader, batch_size)
        assert order.walk(reader, 0, batches, batch_size) == place
