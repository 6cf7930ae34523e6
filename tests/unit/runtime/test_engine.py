"""The engine, tested with operators: order, memory, faults, limits, pools."""

import re
import threading
import time

import numpy as np
import pytest
from tests.stress.batched import call
from tests.stress.fresh import check_fresh
from tests.stress.probe import BREAK_PROMISE, FAIL, PANIC, bounded, probe, probe_pair

import penstock as ps
from penstock import EvalContext, EvalMode, _core
from penstock.errors import InternalError

MS = 1000  # `probe` sleeps microseconds


def numbers(count, shape=(4,)):
    """A batch whose sample i is filled with i."""
    return ps.batch([np.full(shape, i, np.int32) for i in range(count)])


def arrays(batch):
    return [np.asarray(tensor) for tensor in batch]


def sleeps(*milliseconds):
    return ps.batch([MS * time for time in milliseconds])


class Timer:
    def __enter__(self):
        self.start = time.monotonic()
        return self

    def __exit__(self, *exc_info):
        self.seconds = time.monotonic() - self.start


# No barriers


def test_a_sample_goes_on_while_others_of_its_batch_are_behind():
    with EvalContext(num_threads=2):
        first = probe(numbers(2), sleep=sleeps(0, 1500))
        second = probe(first)
        np.testing.assert_array_equal(second.tensors[0], np.zeros(4))
        assert not first._value.finished
        np.testing.assert_array_equal(second.tensors[1], np.ones(4))
        assert first._value.finished


@pytest.mark.alone
def test_uneven_samples_balance_over_several_operators():
    with EvalContext(num_threads=2), Timer() as timer:
        first = probe(numbers(2), sleep=sleeps(600, 0))
        second = probe(first, sleep=sleeps(0, 600))
        second.evaluate()
    assert 0.6 <= timer.seconds < 1.1, "with a barrier it would take 1.2 s"


@pytest.mark.alone
def test_one_worker_finishes_a_sample_before_it_begins_the_next():
    with EvalContext(num_threads=1):
        gate = threading.Event()
        held = call(lambda: [gate.wait(10), 0][1])  # work starts after all calls
        first = probe(numbers(16), sleep=30 * MS)
        last = probe(probe(first))
        gate.set()
        np.asarray(last.tensors[0])
        done = sum(
            first._value.pick(EvalContext.current()._native_pool(), [i]).finished for i in range(16)
        )
        assert 1 <= done <= 8
        assert held.item() == 0
        np.testing.assert_array_equal(last.tensors[15], np.full(4, 15))


@pytest.mark.alone
def test_workers_share_the_samples_of_one_operator():
    with EvalContext(num_threads=4), Timer() as timer:
        probe(numbers(8), sleep=100 * MS).evaluate()
    assert 0.2 <= timer.seconds < 0.6, "one after another it would take 0.8 s"


def test_a_batch_node_waits_for_all_samples():
    with EvalContext(num_threads=2):
        stacked = ps.as_tensor(probe(numbers(3), sleep=sleeps(0, 200, 50)))
        np.testing.assert_array_equal(stacked, np.arange(3)[:, None].repeat(4, 1))


@pytest.mark.alone
def test_a_call_returns_before_its_work_is_done():
    with EvalContext(num_threads=1), Timer() as timer:
        made = probe(numbers(4), sleep=200 * MS)
        assert not made._value.finished
    assert timer.seconds < 0.4


def test_sync_modes_return_when_the_work_is_done():
    for mode in (EvalMode.sync_cpu, EvalMode.sync_full):
        with mode:
            assert probe(numbers(2), sleep=20 * MS)._value.finished


# Several outputs


def test_all_outputs_of_a_node_are_made():
    shapes, copies = probe_pair(ps.batch([np.ones((i, 2), np.uint8) for i in range(1, 5)]))
    assert [array.tolist() for array in arrays(shapes)] == [[i, 2] for i in range(1, 5)]
    assert [array.shape for array in arrays(copies)] == [(i, 2) for i in range(1, 5)]
    assert all(array.all() for array in arrays(copies))


@pytest.mark.parametrize("mode", EvalMode)
def test_one_output_can_be_dropped_while_the_other_is_read(mode):
    with mode:
        for kept in (0, 1):
            result = probe_pair(numbers(3, (2, 5)))[kept]
            expected = [[2, 5]] * 3 if kept == 0 else [[[i] * 5] * 2 for i in range(3)]
            assert [array.tolist() for array in arrays(result)] == expected


@pytest.mark.parametrize("mode", EvalMode)
def test_a_value_may_be_read_by_one_that_depends_on_it_and_by_its_reader(mode):
    x = numbers(3)
    for operator in (lambda data: data + 1, lambda data: probe(data) + 1):
        with mode:
            a = operator(x)
            b = operator(a)
            both, swapped = a + b, b + a
            all_of_it = a + (b + (a + b))
        for result, slope in ((both, 2), (swapped, 2), (all_of_it, 4)):
            expected = [np.full(4, slope * i + slope * 3 // 2) for i in range(3)]
            np.testing.assert_array_equal(arrays(result), expected)


# Memory


def addresses(batch):
    batch.evaluate()
    return [batch._value.memory(i, False).address for i in range(batch.batch_size)]


def test_samples_of_one_shape_lie_side_by_side():
    made = probe(numbers(8, (4, 6)))
    starts = addresses(made)
    assert np.diff(starts).tolist() == [4 * 6 * 4] * 7
    assert made.torch(copy=False).data_ptr() == starts[0]
    assert made.torch().data_ptr() == starts[0]
    assert made.torch(copy=True).data_ptr() != starts[0]


def test_samples_of_one_shape_stay_side_by_side_over_a_chain_of_operators():
    x = numbers(5, (4, 6, 3))
    made = ps.flip(ps.cast(probe(x) + 1, dtype=ps.float32))
    assert np.diff(addresses(made)).tolist() == [4 * 6 * 3 * 4] * 4


def test_samples_of_several_shapes_have_memory_of_their_own():
    x = ps.batch([np.full((i % 3 + 1, 2), i, np.int32) for i in range(6)])
    made = probe(x)
    with pytest.raises(ValueError, match="not contiguous"):
        made.torch(copy=False, pad=True)
    with pytest.raises(ValueError, match="non-uniform"):
        made.torch()
    padded = made.torch(pad=True)
    assert tuple(padded.shape) == (6, 3, 2)
    starts = np.sort(addresses(made))
    assert (np.diff(starts) >= 2 * 4).all()


def drop_results_forever():
    x = ps.batch([np.ones((1 << 20,), np.uint8)] * 16)
    before = resident()
    for _ in range(200):  # 3.2 GB
        probe(x)
    EvalContext.current()._native_pool().drain()
    assert resident() - before < 400 << 20, f"{(resident() - before) >> 20} MB more"


def hold_the_last_of_a_chain():
    x = ps.batch([np.ones((1 << 20,), np.uint8)] * 16)
    with EvalContext(num_threads=2):
        gate = threading.Event()
        held = [call(gate.wait, 10) for _ in range(2)]
        before = peak()
        made = x
        for _ in range(64):  # 1 GB
            made = probe(made)
        gate.set()
        made.evaluate()
        del held
    assert peak() - before < 400 << 20, f"{(peak() - before) >> 20} MB more"
    assert np.asarray(made.tensors[15]).all()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def peak():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) << 10


linux = pytest.mark.skipif("sys.platform != 'linux'", reason="reads /proc")


@linux
def test_memory_of_dropped_results_is_used_again():
    check_fresh(drop_results_forever)


@linux
def test_intermediates_are_let_go_once_read():
    check_fresh(hold_the_last_of_a_chain)


def test_memory_of_an_input_is_let_go_once_read():
    freed = threading.Event()
    memory = Watched(freed)
    made = probe(ps.as_tensor(memory), sleep=MS)
    del memory
    np.asarray(made)
    assert freed.wait(5)


class Watched(np.ndarray):
    """An array that records its deallocation."""

    def __new__(cls, freed):
        made = np.ones(4, np.int32).view(cls)
        made.freed = freed
        return made

    def __del__(self):
        if hasattr(self, "freed"):
            self.freed.set()


def test_a_result_outlives_its_inputs_and_its_pool():
    with EvalContext(num_threads=2):
        x = numbers(4)
        array = np.asarray(probe(probe(x), sleep=10 * MS).tensors[3])
        del x
    np.testing.assert_array_equal(array, [3, 3, 3, 3])


@pytest.mark.alone
def test_work_whose_result_nobody_can_read_is_skipped():
    with EvalContext(num_threads=1), Timer() as timer:
        pool = EvalContext.current()._native_pool()
        first = probe(numbers(1), sleep=200 * MS)
        for _ in range(20):
            probe(first, sleep=500 * MS)
        pool.drain()
    assert timer.seconds < 5, "all of it would take 10 s"


def test_a_result_dropped_in_between_is_still_made_for_its_readers():
    with EvalContext(num_threads=2):
        first = probe(numbers(4), sleep=20 * MS)
        second = probe(first)
        third = probe(second)
        del first, second
        np.testing.assert_array_equal(arrays(third), arrays(numbers(4)))


# Faults


def test_a_failed_sample_says_what_where_and_which():
    x = numbers(8).slice[np.int32(0) : 4]
    index = ps.batch([0, 1, 2, 9, 1, 1, 9, 0])
    broken = x.slice[index]  # this line
    with pytest.raises(IndexError) as caught:
        broken.evaluate()
    text = str(caught.value)
    assert "sample 3: index 9 is out of range for axis 0 of length 4" in text
    assert re.search(r"at .*test_engine\.py:\d+: broken = x\.slice\[index\]  # this line$", text)


def break_and_go_on(mode):
    """Ten operators on a broken first step, read at the end."""
    with mode:
        made = numbers(4).slice[ps.batch([0, 1, 7, 7])]
        for _ in range(10):
            made = ps.cast(made + 1, dtype=ps.float32)
        made.evaluate()


def test_the_root_error_is_raised_once_in_every_mode():
    texts = set()
    for mode in EvalMode:
        with pytest.raises(IndexError) as caught:
            break_and_go_on(mode)
        texts.add(str(caught.value))
    [text] = texts
    assert text.count("index 7 is out of range") == 1
    assert "sample 2" in text
    # Workers of pytest-xdist are programs without a file.
    _, *path = (line for line in text.splitlines() if "<string>" not in line)
    assert len(path) == 2, "operator, sample and problem; then the way to the call"
    assert f"test_engine.py:{break_and_go_on.__code__.co_firstlineno + 3}: made = " in text


@pytest.mark.parametrize("action", [FAIL, PANIC, BREAK_PROMISE])
@pytest.mark.parametrize("mode", EvalMode)
def test_a_fault_fails_its_node_alone(action, mode, capfd):
    kind, text = {
        FAIL: (RuntimeError, "`action` says to fail"),
        PANIC: (InternalError, "the probe was told to panic"),
        BREAK_PROMISE: (InternalError, "promised"),
    }[action]
    x = numbers(4)
    with mode:
        before = probe(x)
        with pytest.raises(kind, match=f"probe: sample 2: .*{text}"):
            probe(probe(x, action=ps.batch([0, 0, action, 0]))).evaluate()
        after = probe(x)
    for fine in (before, after):
        np.testing.assert_array_equal(arrays(fine), arrays(x))
    assert capfd.readouterr() == ("", "")


def test_samples_beside_a_failed_one_can_be_read():
    broken = probe(numbers(3), action=ps.batch([0, PANIC, 0]))
    np.testing.assert_array_equal(broken.tensors[0], np.zeros(4))
    np.testing.assert_array_equal(broken.tensors[2], np.full(4, 2))
    with pytest.raises(InternalError, match="sample 1"):
        broken.tensors[1].evaluate()
    for _ in range(3):
        with pytest.raises(InternalError, match="sample 1"):
            broken.evaluate()


def test_of_several_faults_the_first_sample_is_named():
    action = ps.batch([0, 0, FAIL, FAIL, PANIC, FAIL])
    for _ in range(20):
        with pytest.raises(RuntimeError, match="sample 2"):
            probe(numbers(6), action=action, sleep=ps.batch([0, 0, 2000, 0, 0, 0])).evaluate()


def test_all_outputs_of_a_failed_node_fail():
    broken = probe(numbers(2), action=FAIL)
    for result in probe_pair(broken):
        with pytest.raises(RuntimeError, match="probe: sample 0"):
            result.evaluate()


def test_workers_survive_any_number_of_panics():
    with EvalContext(num_threads=2):
        for _ in range(50):
            with pytest.raises(InternalError):
                probe(numbers(4), action=PANIC).evaluate()
        np.testing.assert_array_equal(arrays(probe(numbers(4))), arrays(numbers(4)))


# Limits


@pytest.mark.alone
def test_a_submit_waits_while_too_many_nodes_are_in_flight():
    x = numbers(1)
    with bounded(1, max_nodes=4) as pool, Timer() as timer:
        made = []
        for _ in range(20):
            made.append(probe(x, sleep=20 * MS))
            assert pool.in_flight <= 4
        submitted = time.monotonic() - timer.start
        for result in made:
            result.evaluate()
    assert submitted >= 15 * 0.02, "16 of the 20 must be done before the last is submitted"
    pool.drain()
    assert pool.in_flight == 0


def test_a_submit_waits_while_too_many_bytes_are_in_flight():
    x = ps.tensor(np.ones(1 << 20, np.uint8))
    with bounded(1, max_bytes=1 << 20) as pool:
        most = 0
        for _ in range(20):
            probe(x, sleep=5 * MS).evaluate()
            made = [probe(x, sleep=5 * MS) for _ in range(3)]
            most = max(most, pool.in_flight)
            assert all(np.asarray(result).all() for result in made)
    assert most <= 3


@pytest.mark.parametrize("limits", [{"max_nodes": 1}, {"max_bytes": 1}, {"max_nodes": 3}])
def test_no_bound_is_too_tight_to_get_on(limits):
    x = numbers(4)
    for threads in (1, 3):
        with bounded(threads, **limits):
            made = x
            for _ in range(200):
                made = probe(made + 1)
            np.testing.assert_array_equal(arrays(made), [np.full(4, i + 200) for i in range(4)])


def test_callers_of_a_full_pool_all_get_their_turn():
    x = numbers(2)
    wrong = []

    def submit(pool, start):
        with EvalContext(thread_pool=pool):
            start.wait(10)
            for count in range(100):
                made = probe(probe(x + count))
                if [array[0] for array in arrays(made)] != [count, count + 1]:
                    wrong.append(count)

    pool = ps.ThreadPool(2)
    pool._native = _core.Pool(2, max_nodes=2)
    start = threading.Barrier(6)
    threads = [threading.Thread(target=submit, args=(pool, start)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not wrong
    pool._native.drain()
    assert pool._native.in_flight == 0


# Pools


def test_values_cross_pools():
    x = numbers(16)
    contexts = [EvalContext(num_threads=threads) for threads in (1, 2, 3)]
    made = x
    for turn in range(60):
        with contexts[turn % 3]:
            made = probe(made + 1, sleep=100)
    np.testing.assert_array_equal(arrays(made), [np.full(4, i + 60) for i in range(16)])


@pytest.mark.alone
def test_a_slow_pool_does_not_hold_up_another():
    with EvalContext(num_threads=1):
        slow = probe(numbers(4), sleep=300 * MS)
        with EvalContext(num_threads=1), Timer() as timer:
            probe(numbers(4)).evaluate()
        assert timer.seconds < 0.6
        assert not slow._value.finished


@linux
def test_threads_of_a_pool_end_with_it():
    import os

    def threads():
        return len(os.listdir("/proc/self/task"))

    probe(numbers(2)).evaluate()  # the default pool has its threads
    before = threads()
    for _ in range(20):
        with EvalContext(num_threads=8):
            probe(numbers(8)).evaluate()
    deadline = time.monotonic() + 10
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before


@pytest.mark.parametrize("threads", range(1, 9))
def test_the_number_of_threads_does_not_change_results(threads):
    results = []
    for count in (1, threads):
        rng = np.random.default_rng(7)
        with EvalContext(num_threads=count):
            values = [numbers(6, (3, 5, 2)), numbers(6, (3, 5, 2)) + 100]
            for _ in range(60):
                a, b = (values[i] for i in rng.integers(len(values), size=2))
                step = rng.integers(5)
                values.append(
                    ps.flip(a, horizontal=ps.batch(rng.integers(2, size=6).tolist()), vertical=1)
                    if step == 0
                    else ps.cast(a + b, dtype=ps.int32)
                    if step == 1
                    else probe(a, sleep=int(rng.integers(300)))
                    if step == 2
                    else probe_pair(b)[1]
                    if step == 3
                    else a.slice[::-1]
                )
            results.append([arrays(value) for value in values])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


# Deferred


def test_nothing_runs_until_a_deferred_value_is_read():
    ran = []
    with EvalMode.deferred:
        first = call(lambda: [ran.append(1), 5][1])
        second = first._value
        other = call(lambda: ran.append("never"))
    time.sleep(0.1)
    assert ran == []
    assert first.item() == 5
    assert ran == [1]
    assert second.finished
    del other
    time.sleep(0.05)
    assert ran == [1]


def test_reading_a_deferred_value_runs_what_it_needs_and_no_more():
    with EvalMode.deferred:
        needed = probe(numbers(2))
        unneeded = probe(needed)
        read = probe(needed)
    read.evaluate()
    assert needed._value.finished
    assert not unneeded._value.finished


def grow_a_long_chain(step, length):
    with EvalMode.deferred:
        made = ps.tensor(np.zeros(1, np.int64))
        for _ in range(length):
            made = step(made)
    return made


LONG = 100_000


def long_chains():
    import threading

    threading.stack_size(256 << 10)  # what recursion would overflow at once

    def grow():
        assert grow_a_long_chain(lambda x: x + 1, LONG).item() == LONG
        never_read = grow_a_long_chain(probe, LONG)
        del never_read
        assert grow_a_long_chain(probe, LONG).item() == 0
        broken = grow_a_long_chain(probe, 1000)
        with EvalMode.deferred:
            broken = probe(broken, action=FAIL)
            for _ in range(LONG // 4):
                broken = probe(broken)
        with pytest.raises(RuntimeError, match="says to fail"):
            broken.evaluate()
        eager = ps.tensor(np.zeros(1, np.int64))
        for _ in range(LONG // 4):
            eager = probe(eager)
        assert eager.item() == 0
        print("done")

    thread = threading.Thread(target=grow)
    thread.start()
    thread.join()


@pytest.mark.heavy
def test_chains_of_any_length_are_evaluated_and_dropped():
    assert check_fresh(long_chains, timeout=60) == "done\n"


def test_a_deferred_value_is_made_once_for_many_readers():
    runs = []

    def count():
        runs.append(1)
        time.sleep(0.05)
        return np.arange(3)

    with EvalMode.deferred:
        made = call(count)
    seen = []
    start = threading.Barrier(8)

    def read():
        start.wait(10)
        seen.append(np.asarray(made).tolist())

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert seen == [[0, 1, 2]] * 8
    assert runs == [1]


# Sources of samples


def test_samples_made_here_have_no_source():
    assert probe(numbers(2)).source_info == [None, None]
    assert (numbers(2) + 1).tensors[0].source_info is None
