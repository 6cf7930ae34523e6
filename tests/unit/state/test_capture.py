"""Programs for DALI's capture mode, and what DALI refuses there."""

import itertools
import math
import pickle

import numpy as np
import pytest

import penstock as ndd

COUNT = 12


@pytest.fixture
def root(tmp_path):
    for index in range(COUNT):
        np.save(tmp_path / f"{index:02d}.npy", np.full((6, 4, 3), index, np.uint8))
    return str(tmp_path)


@pytest.fixture
def reader(root):
    return ndd.readers.Numpy(file_root=root)


def numbers(batch):
    return [int(np.asarray(sample).flat[0]) for sample in batch.tensors]


@pytest.mark.parametrize("option", ["capture", "compile"])
def test_a_captured_epoch_gives_the_same_values(reader, option):
    def epoch(**options):
        return [
            numbers(ndd.resize(images, size=[3, 3]))
            for (images,) in reader.next_epoch(batch_size=3, **options)
        ]

    assert epoch(**{option: True}) == epoch() == [[i, i + 1, i + 2] for i in range(0, COUNT, 3)]


def test_a_reader_can_switch_between_both(reader):
    for capture in (True, False, True):
        epoch = reader.next_epoch(batch_size=4, capture=capture)
        assert [numbers(images)[0] for (images,) in epoch] == [0, 4, 8]


def test_capture_with_single_samples(reader):
    found = [int(np.asarray(image).flat[0]) for (image,) in reader.next_epoch(capture=True)]
    assert found == list(range(COUNT))


def test_captured_batches_are_plain_batches(reader):
    for (images,) in reader.next_epoch(batch_size=4, capture=True):
        assert type(images) is ndd.Batch
        assert type(ndd.resize(images, size=[3, 3])) is ndd.Batch


def test_arguments_may_change(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        assert ndd.resize(images, size=[2 + step, 3]).shape == [(2 + step, 3, 3)] * 2


def test_calls_may_be_conditional(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        if step % 2:
            images = images + 100
        assert numbers(images)[0] == 2 * step + 100 * (step % 2)


def test_calls_may_be_in_another_order(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        sizes = (3, 5) if step % 2 else (5, 3)
        for size in sizes:
            assert ndd.resize(images, size=[size, size]).shape[0] == (size, size, 3)


def test_the_loop_may_be_left_and_begun_again(reader):
    for (images,) in itertools.islice(reader.next_epoch(batch_size=2, capture=True), 3):
        ndd.resize(images, size=[3, 3]).evaluate()
    with pytest.warns(ndd.readers.UnfinishedEpochWarning):
        (images,) = next(iter(reader.next_epoch(batch_size=2, capture=True)))
    assert numbers(images) == [6, 7]  # no item is lost


def test_checkpoints_in_the_loop(root, reader):
    seen, states = [], []
    for (images,) in reader.next_epoch(batch_size=2, capture=True):
        seen.append(numbers(ndd.resize(images, size=[3, 3])))
        states.append(reader.get_state())
    resumed = ndd.readers.Numpy(file_root=root)
    resumed.set_state(states[2])
    rest = [numbers(images) for (images,) in resumed.next_epoch(batch_size=2, capture=True)]
    assert rest == seen[3:]


def test_rngs_may_be_seeded_in_the_loop(reader):
    rng = ndd.random.RNG(1)
    for (images,) in reader.next_epoch(batch_size=2, capture=True):
        rng.seed = 4
        drawn = ndd.random.uniform(batch_size=2, rng=rng)
        ndd.rotate(images, angle=drawn).evaluate()
        again = ndd.random.uniform(batch_size=2, rng=ndd.random.RNG(4))
        assert [float(a) for a in drawn.tensors] == [float(a) for a in again.tensors]


def test_draws_may_come_and_go(reader):
    rng, again = ndd.random.RNG(1), ndd.random.RNG(1)
    for step, (images,) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        if step in (2, 5):
            rng(), again()
        drawn = ndd.random.uniform(range=[0, 90], batch_size=2, rng=rng)
        ndd.rotate(images, angle=drawn).evaluate()
        expected = ndd.random.uniform(range=[0, 90], batch_size=2, rng=again)
        assert [float(a) for a in drawn.tensors] == [float(a) for a in expected.tensors]


def test_two_captured_readers(root, reader):
    other = ndd.readers.Numpy(file_root=root)
    pairs = zip(
        reader.next_epoch(batch_size=3, capture=True),
        other.next_epoch(batch_size=3, capture=True),
        strict=True,
    )
    for (a,), (b,) in pairs:
        assert numbers(a + b) == [2 * number for number in numbers(a)]


def test_values_of_numpy_in_the_loop(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        added = images + np.full((6, 4, 3), step, np.uint8)
        assert numbers(added)[0] == 3 * step


def test_other_sources_may_be_used_any_number_of_times(reader):
    source = ndd.ExternalSource(itertools.count(), parallel=True)
    taken = 0
    for step, (images,) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        for _ in range(step % 3):
            assert int(source()) == taken
            taken += 1
        ndd.resize(images, size=[3, 3]).evaluate()


@pytest.mark.parametrize("parallel", [False, True])
def test_a_captured_source_loses_nothing_when_the_loop_is_left(parallel):
    source = ndd.ExternalSource([[i, i] for i in range(9)], batch=True, parallel=parallel)
    for item in source.captured(batch_size=2):
        if numbers(item * 2)[0] == 6:
            break
    assert [numbers(item)[0] for item in source.captured(batch_size=2)] == [4, 5, 6, 7, 8]


def test_a_captured_source_ends_and_cycles():
    source = ndd.ExternalSource([[1], [2]], batch=True, cycle="raise")
    for _ in range(3):
        assert [numbers(item) for item in source.captured(batch_size=1)] == [[1], [2]]


def test_a_captured_source_runs_in_a_context():
    source = ndd.ExternalSource([[1], [2]], batch=True)
    context = ndd.EvalContext(num_threads=1)
    assert [numbers(item) for item in source.captured(1, context)] == [[1], [2]]


SCALE = ndd.capture.invariant(2.0)


class Settings:
    size = (3, 5)

    def doubled(self):
        return tuple(2 * number for number in self.size)


def test_invariants_as_arguments(reader):
    settings = ndd.capture.invariant(Settings())
    for (images,) in reader.next_epoch(batch_size=2, capture=True):
        assert ndd.resize(images, size=settings.size).shape[0] == (3, 5, 3)
        assert ndd.resize(images, size=settings.doubled()).shape[0] == (6, 10, 3)
        assert (images * SCALE).dtype == ndd.float32
        assert ndd.rotate(images, angle=ndd.capture.invariant(90.0)).shape[0] == (4, 6, 3)


def test_an_invariant_behaves_as_its_value():
    numbers = [3, 1, 2]
    marked = ndd.capture.invariant(numbers)
    assert marked is ndd.capture.invariant(marked)
    assert marked == numbers
    assert [*marked, len(marked), marked[0], marked[1:], 2 in marked] == [
        3,
        1,
        2,
        3,
        3,
        [1, 2],
        True,
    ]
    assert marked * 1 == numbers
    marked.append(5)
    assert numbers[-1] == 5
    assert (isinstance(marked, list), repr(marked), str(marked)) == (
        True,
        repr(numbers),
        str(numbers),
    )
    assert math.sqrt(ndd.capture.invariant(4)) == 2
    assert f"{ndd.capture.invariant(3.14159):.2f}" == "3.14"
    assert ndd.capture.invariant(max)(1, 2) == 2
    assert bool(ndd.capture.invariant(0)) is False
    assert hash(ndd.capture.invariant("a")) == hash("a")


def test_an_invariant_keeps_what_a_proxy_loses():
    array = np.arange(3)
    assert ndd.capture.invariant(array) is array
    assert type(ndd.capture.invariant(7)) is int
    assert bytes(memoryview(ndd.capture.invariant(b"ab"))) == b"ab"
    assert pickle.loads(pickle.dumps(ndd.capture.invariant([1]))) == [1]
    assert ndd.capture.invariant(None) is None
