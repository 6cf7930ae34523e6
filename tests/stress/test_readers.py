"""Readers under threads, forks and pressure."""

import gc
import itertools
import os
import threading
import warnings

import numpy as np
import pytest

from penstock.readers import File
from tests.stress.fork import fork_and_join

pytestmark = pytest.mark.stress


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    names = [root / f"{number:03d}" for number in range(60)]
    for number, name in enumerate(names):
        name.write_bytes(bytes([number]) * 20_000)
    return names


def numbers(outputs):
    data, labels = outputs
    found = [int(np.asarray(label)[0]) for label in labels]
    assert [int(np.asarray(one)[-1]) for one in data] == found
    return found


def flat(rows):
    return list(itertools.chain.from_iterable(rows))


def test_a_forked_reader_goes_on_in_both_processes(files):
    reader = File(files=files, prefetch_queue_depth=4)
    iterator = reader.next_epoch(batch_size=10)
    assert numbers(next(iterator)) == list(range(10))

    def go_on():
        rest = [numbers(outputs) for outputs in iterator]
        assert flat(rest) == list(range(10, 60))
        assert flat(map(numbers, reader.next_epoch(batch_size=10))) == list(range(60))

    with warnings.catch_warnings():
        # Python (and JAX, if some test has loaded it) warns of forks beside threads, which is what
        # this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(5):
            fork_and_join(go_on)
    go_on()


def test_readers_of_many_threads_don_t_mix(files):
    failures = []

    def work(seed):
        try:
            reader = File(files=files, shuffle="global", seed=seed, last_batch="partial")
            for _ in range(3):
                given = flat(map(numbers, reader.next_epoch(batch_size=7)))
                assert sorted(given) == list(range(60))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_epochs_of_threads_share_a_reader(files):
    """Batches and epochs are delivered one at a time, to any thread."""
    reader = File(files=files, last_batch="partial")
    iterator = reader.next_epoch(batch_size=3)
    given, lock, barrier = [], threading.Lock(), threading.Barrier(6)

    def work():
        barrier.wait()
        for outputs in iterator:
            with lock:
                given.extend(numbers(outputs))
                reader.get_state()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given) == list(range(60))


def test_many_epochs_leave_no_memory_behind(files):
    reader = File(files=files, random_shuffle=True, seed=1)

    def epochs(count):
        for _ in range(count):
            for outputs in reader.next_epoch(batch_size=20):
                outputs[0].evaluate()
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = epochs(50)
    assert epochs(150) - before < 8 << 20


def test_readers_that_are_dropped_in_mid_epoch_leave_nothing_running(files):
    for _ in range(100):
        reader = File(files=files, prefetch_queue_depth=3)
        next(reader.next_epoch(batch_size=20))
        del reader
    assert sum(thread.name == "penstock" for thread in threading.enumerate()) == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("order", [{}, {"random_shuffle": True, "seed": 1}, {"shuffle": "global"}])
def test_a_million_samples_leave_no_memory_behind(tmp_path, order):
    """Through batches, single states and errors: every fiftieth file is missing."""
    names = [tmp_path / f"{number:04d}" for number in range(2000)]
    for number, name in enumerate(names):
        if number % 50:
            name.write_bytes(number.to_bytes(2, "little") * 20)
    reader = File(files=names, on_error="skip", last_batch="partial", **order)

    def epochs(count):
        given = 0
        for _ in range(count):
            for data, _ in reader.next_epoch(batch_size=250):
                given += data.evaluate().batch_size
                reader.get_state()
            assert len(reader.errors) == 40
        gc.collect()
        with open("/proc/self/statm") as file:
            return given, int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    _, before = epochs(20)
    given, after = epochs(520)
    assert given == 520 * 1960 > 10**6
    assert after - before < 4 << 20
