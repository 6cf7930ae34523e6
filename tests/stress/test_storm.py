"""Many threads, modes, pools and faults at once: correct values, no hang, constant memory."""

import os
import threading

import numpy as np
import pytest

import penstock as ps
from penstock import EvalContext
from tests.stress.batched import call
from tests.stress.fork import fork, join
from tests.stress.fresh import check_fresh
from tests.stress.probe import probe
from tests.stress.storm import resident, storm

linux = pytest.mark.skipif("sys.platform != 'linux'", reason="reads /proc")

MB = 1 << 20


def assert_flat(work, *, warm_up, rounds, limit):
    """Repeating `work` uses no more memory after a few repetitions."""
    for turn in range(warm_up):
        work(turn)
    before = resident()
    for turn in range(rounds):
        work(warm_up + turn)
    grown = resident() - before
    assert grown < limit, f"{grown / MB:.1f} MB more after {rounds} rounds"


def storm_100_000_nodes():
    made = []
    assert_flat(
        lambda seed: made.append(storm(seed, nodes=12_000)), warm_up=3, rounds=6, limit=8 * MB
    )
    assert sum(made) >= 100_000


def storm_while_pools_change():
    assert_flat(
        lambda seed: storm(seed, nodes=6000, resize=True), warm_up=3, rounds=4, limit=8 * MB
    )


def storm_for_long():
    assert_flat(
        lambda seed: storm(seed, nodes=50_000, resize=seed % 2 == 1),
        warm_up=2,
        rounds=20,
        limit=10 * MB,
    )


@linux
def test_a_storm_of_calls_gives_right_values_in_flat_memory():
    check_fresh(storm_100_000_nodes, timeout=90)


@linux
def test_a_storm_survives_changes_of_the_number_of_threads():
    check_fresh(storm_while_pools_change, timeout=60)


@linux
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_long_storm_gives_right_values_in_flat_memory():
    check_fresh(storm_for_long, timeout=800)


# Forks


def fork_in_a_storm():
    # A module that another thread is importing can't be imported in a child, with any package.
    storm(0, nodes=400, threads=4)
    stop = threading.Event()
    errors = []

    def blow():
        try:
            seed = 0
            while not stop.is_set():
                seed += 1
                storm(seed, nodes=400, threads=4)
        except BaseException as error:
            errors.append(error)
            raise

    thread = threading.Thread(target=blow)
    thread.start()
    try:
        for turn in range(60):
            join(fork(lambda turn=turn: storm(turn, nodes=200, threads=3)), timeout=30)
    finally:
        stop.set()
        thread.join()
    assert not errors, errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_in_a_storm_harm_neither_parent_nor_child():
    check_fresh(fork_in_a_storm, timeout=100)


# Functions that wait for each other


def wait_in_functions():
    for workers in (1, 2, 4):
        pool = ps.ThreadPool(workers)
        done = []
        threads = [threading.Thread(target=call_and_wait, args=(pool, done)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 4


def call_and_wait(pool, done):
    def work(x):
        with EvalContext(thread_pool=pool):
            inner = call(lambda y: np.asarray(probe(y, sleep=50)) + 1, x)
            return np.asarray(probe(inner, sleep=50)) + 1

    with EvalContext(thread_pool=pool):
        made = [call(work, call(work, i)) for i in range(60)]
        assert [result.item() for result in made] == [i + 4 for i in range(60)]
    done.append(True)


def test_functions_that_wait_do_not_starve_one_another():
    check_fresh(wait_in_functions, timeout=60)


# Round trips


def go_to_and_fro(rounds):
    import torch

    array = np.ones((4, 6, 3), np.uint8)
    owned = ps.tensor(array, layout="HWC")
    samples = ps.batch([array] * 4, layout="HWC")

    def trip(_):
        for _ in range(rounds):
            np.asarray(ps.as_tensor(array))
            np.asarray(ps.tensor(array))
            torch.from_dlpack(owned)
            ps.as_tensor(torch.from_dlpack(owned))
            memoryview(ps.as_batch([array, array]).tensors[1]._value.memory(0, True))
            samples.torch()
            np.asarray(samples.tensors[2])
            ps.flip(samples).evaluate()

    assert_flat(trip, warm_up=2, rounds=5, limit=4 * MB)
    assert array.all()


def round_trips():
    go_to_and_fro(2000)


def a_million_round_trips():
    go_to_and_fro(25_000)


@linux
def test_round_trips_leak_nothing():
    check_fresh(round_trips, timeout=60)


@linux
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_million_round_trips_leak_nothing():
    check_fresh(a_million_round_trips, timeout=800)
