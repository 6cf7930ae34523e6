"""Ctrl-C at any moment: a reader that goes on gives every sample, once."""

import random
import signal
import threading
import time
import types

import numpy as np
import pytest
from tests.interrupts import PACKAGE, every_moment

import penstock as ndd
from penstock._state import item_states
from penstock.readers import File
from penstock.readers._base.order import POLICIES

SIZE = 5


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    names = [folder / str(number) for number in range(SIZE)]
    for name in names:
        name.write_bytes(b"bytes")
    return names


@pytest.fixture
def some_missing(files):
    """Names of which three are not there, two of those in a batch of their own."""
    return [files[0], files[0] / "no", files[2] / "no", files[3] / "no", files[4]]


def labels(outputs):
    return [int(np.asarray(label)[0]) for label in outputs[1]]


def epochs(reader, batch_size, count=2):
    """Epochs without an interrupt."""
    return [[labels(row) for row in reader.next_epoch(batch_size=batch_size)] for _ in range(count)]


def interrupted_epochs(make, batch_size, interrupt, resume):
    """The same, by a program that goes on after an interrupt: with the reader, or a new one."""
    reader, rows = make(), [[], []]
    for into in rows:
        iterator = reader.next_epoch(batch_size=batch_size)
        while True:
            outputs = ended = None
            try:
                with interrupt:
                    outputs = next(iterator)
            except StopIteration:
                ended = True
            except KeyboardInterrupt:
                if resume:
                    if len(into) == len(iterator):
                        break  # all of the epoch has been given
                    state = reader.get_state()
                    reader = make()
                    reader.set_state(state)
                    iterator = reader.next_epoch(batch_size=batch_size)
                continue
            if ended:
                break
            into.append(labels(outputs))
    # No lock is left behind.
    asking = threading.Thread(target=lambda: reader.errors, daemon=True)
    asking.start()
    asking.join(10)
    assert not asking.is_alive(), interrupt.at
    return rows


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(("last_batch", "first"), [*zip(POLICIES, range(4), strict=True)])
def test_a_batch_is_given_or_still_to_come(files, last_batch, first, resume):
    def make():
        return File(files=files, last_batch=last_batch, shuffle="global", seed=3)

    expected = epochs(make(), 2)

    def run(interrupt):
        found = interrupted_epochs(make, 2, interrupt, resume)
        assert found == expected, interrupt.at

    assert every_moment(run, first, step=23) > 100


@pytest.mark.parametrize("mode", ["eager", "sync_cpu"])
@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_bad_samples_make_no_difference(some_missing, on_error, mode):
    def make():
        return File(files=some_missing, on_error=on_error, last_batch="partial")

    with getattr(ndd.EvalMode, mode):
        expected = epochs(make(), 2)

        def run(interrupt):
            assert interrupted_epochs(make, 2, interrupt, False) == expected, interrupt.at

        assert every_moment(run, step=31) > 100


@pytest.mark.parametrize(("cause", "counts"), [("file", True), ("memory", False), ("", False)])
def test_what_is_no_fault_of_a_batch_leaves_it_to_come(files, monkeypatch, cause, counts):
    """Neither the machine's state nor an error that a signal handler raises."""
    fault = types.SimpleNamespace(cause=(cause, ""))
    failed = types.SimpleNamespace(finished=True, faults=lambda: [(0, fault)] if cause else [])

    def fail(self, source, position, head):
        monkeypatch.undo()
        raise TimeoutError

    reader = File(files=files)
    iterator = reader.next_epoch(batch_size=1)
    assert labels(next(iterator)) == [0]
    taken = reader._ahead.take
    monkeypatch.setattr(
        reader._ahead, "take", lambda *args: taken(*args)._replace(values=(failed,))
    )
    monkeypatch.setattr(File, "_made", fail)
    with pytest.raises(TimeoutError):
        next(iterator)
    assert [labels(row) for row in iterator] == [[n] for n in range(1 + counts, SIZE)]


def test_calls_give_every_sample(files):
    def run(interrupt):
        reader, found = File(files=files), []
        while len(found) < 2 * SIZE:
            outputs = None
            try:
                with interrupt:
                    outputs = reader()
            except KeyboardInterrupt:
                continue
            found.append(int(np.asarray(outputs[1])[0]))
        assert found == 2 * list(range(SIZE)), interrupt.at

    assert every_moment(run, step=19) > 100


@pytest.mark.parametrize("depth", [0, 2])
def test_loops_over_prefetch_go_on_after_the_batch_in_hand(files, depth):
    others = item_states.loops  # that tests before this one have left unfinished

    def run(interrupt):
        reader, found = File(files=files, last_batch="partial"), []

        def batches(iterator):
            yield from map(labels, iterator)

        iterator = reader.next_epoch(batch_size=1)
        loop = ndd.prefetch(batches(iterator), depth)
        while len(found) < SIZE:
            item = None
            try:
                with interrupt:
                    item = next(loop)
            except KeyboardInterrupt:
                state = reader.get_state()
                loop.close()
                assert reader.get_state() == state, interrupt.at
                loop = ndd.prefetch(batches(iterator), depth)
                continue
            found.extend(item)
        assert found == list(range(SIZE)), interrupt.at
        loop.close()
        assert set(item_states.loops) <= set(others)

    assert every_moment(run, step=13) > 100


def test_an_interrupted_loop_over_prefetch_does_not_end_as_if_all_were_done(files):
    loops = 0

    def run(interrupt):
        nonlocal loops
        reader = File(files=files, last_batch="partial")
        loop = ndd.prefetch((labels(row) for row in reader.next_epoch(batch_size=1)), 1)
        found = [next(loop)]
        try:
            with interrupt:
                found.append(next(loop))
        except KeyboardInterrupt:
            if loop._was_interrupted:
                with pytest.raises(RuntimeError, match="was interrupted"):
                    next(loop)
                loops += 1
                return
        found.extend(loop)
        assert found == [[number] for number in range(SIZE)], interrupt.at

    every_moment(run, step=3)
    assert loops


@pytest.mark.parametrize("parallel", [False, True])
def test_sources_give_every_item(parallel):
    def items():
        yield from (np.full(2, number) for number in range(5))

    def run(interrupt):
        source, found = ndd.ExternalSource(items, parallel=parallel), []
        while True:
            made = ended = None
            try:
                with interrupt:
                    made = source()
            except StopIteration:
                ended = True
            except KeyboardInterrupt:
                continue
            if ended:
                break
            found.append(int(np.asarray(made)[0]))
            assert source.state_dict() == {"items": len(found)}, interrupt.at
        assert found == list(range(5)), interrupt.at

    assert every_moment(run, step=2) > 100


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt")
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_real_signals_lose_nothing(files, on_error):
    """At random moments, while batches are waited for."""
    rng = random.Random(7)
    came = 0

    def interrupt(_, frame):
        nonlocal came
        # After the return of `next` it is the program that loses what it was given.
        if frame.f_code.co_filename.startswith(PACKAGE):
            came += 1
            raise KeyboardInterrupt

    reader = File(files=files, on_error=on_error, last_batch="partial", shuffle="global")
    expected = epochs(File(files=files, last_batch="partial", shuffle="global"), 2, 100)
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        with ndd.EvalMode.sync_cpu:
            end, found = time.monotonic() + 20, []
            while len(found) < 100 and time.monotonic() < end:
                rows, iterator = [], reader.next_epoch(batch_size=2)
                while True:
                    outputs = ended = None
                    try:
                        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 4e-4))
                        outputs = next(iterator)
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    except StopIteration:
                        ended = True
                    except KeyboardInterrupt:
                        if outputs is None:
                            continue
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    if ended:
                        break
                    rows.append(labels(outputs))
                found.append(rows)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert found == expected[: len(found)]
    assert came
