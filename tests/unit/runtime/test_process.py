"""Forks, Ctrl-C and shutdown. Each program runs in a fresh interpreter."""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from tests.stress.batched import call
from tests.stress.fork import fork, fork_and_join, join
from tests.stress.fresh import check_fresh, run_fresh
from tests.stress.probe import bounded, probe

import penstock as ps
from penstock import EvalContext, EvalMode
from penstock._operators.map import TensorSpec as Output

pytestmark = pytest.mark.alone

MS = 1000  # `probe` sleeps microseconds

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def numbers(count, shape=(4,)):
    return ps.batch([np.full(shape, i, np.int32) for i in range(count)])


def check_engine():
    """Everything that can be done with a new value works."""
    x = numbers(6)
    for _ in range(3):
        made = probe(probe(x + 1, sleep=200))
        assert [np.asarray(t)[0] for t in made] == [1, 2, 3, 4, 5, 6]
        assert np.asarray(ps.as_tensor(made)).sum() == 84
    with EvalMode.deferred:
        assert call(lambda x: np.asarray(x) * 2, probe(x).tensors[2]).shape == (4,)
    with EvalContext(num_threads=2):
        assert np.asarray(probe(ps.tensor(3))).item() == 3


def raises_fork(read):
    with pytest.raises(RuntimeError, match="fork"):
        read()


# fork


def fork_before_any_work():
    fork_and_join(check_engine)
    check_engine()


def fork_an_idle_engine():
    check_engine()
    made = probe(numbers(3)).evaluate()

    def child():
        assert np.asarray(made.tensors[2]).tolist() == [2] * 4
        assert np.asarray(probe(made).tensors[1]).tolist() == [1] * 4
        check_engine()

    for _ in range(3):
        fork_and_join(child)
        check_engine()


def fork_in_the_middle_of_work():
    with EvalContext(num_threads=2) as context:
        x = numbers(40)
        finished = probe(x).evaluate()
        pending = probe(x, sleep=20 * MS)
        later = probe(pending)
        whole = ps.as_tensor(later)
        function = call(lambda x: np.asarray(x), whole)
        handles = [pending, later, whole, function]

        def child():
            for handle in handles:
                assert not handle._value.finished
                raises_fork(handle.evaluate)
                raises_fork(lambda handle=handle: handle.shape)
            raises_fork(lambda: probe(pending).evaluate())
            raises_fork(lambda: (pending + 1).evaluate())
            raises_fork(lambda: call(np.asarray, whole).evaluate())
            raises_fork(lambda: np.asarray(pending.tensors[39]))
            assert np.asarray(finished.tensors[7]).tolist() == [7] * 4
            handles.clear()
            context.evaluate_all()
            check_engine()

        fork_and_join(child)
        assert np.asarray(function).tolist() == [[i] * 4 for i in range(40)]
        assert [np.asarray(t)[0] for t in pending] == list(range(40))
    check_engine()


def fork_while_a_kernel_is_stuck():
    stuck = probe(ps.tensor(1), sleep=4000 * MS)
    time.sleep(0.05)
    start = time.monotonic()
    fork_and_join(check_engine)
    assert time.monotonic() - start < 3.5, "fork waited for the kernel"
    assert stuck.item() == 1


def fork_with_deferred_values():
    """Not started yet, so a child may compute them or raise, but must not hang."""
    with EvalMode.deferred:
        inline = numbers(3) + 1
        queued = probe(numbers(3))
        after = probe(queued + inline)

    def child():
        for value in (after, queued, inline):
            try:
                value.evaluate()
            except RuntimeError as error:
                if "fork" not in str(error):
                    raise
        check_engine()

    fork_and_join(child)
    assert [np.asarray(t)[0] for t in after] == [1, 3, 5]


def fork_in_a_thread():
    pending = probe(numbers(20), sleep=10 * MS)
    errors = []

    def child():
        raises_fork(pending.evaluate)
        check_engine()

    def work():
        try:
            fork_and_join(child)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors, errors
    pending.evaluate()
    check_engine()


def fork_in_a_child():
    pending = probe(numbers(20), sleep=10 * MS)

    def grandchild():
        raises_fork(pending.evaluate)
        check_engine()

    def child():
        ours = probe(numbers(20), sleep=5 * MS)
        fork_and_join(grandchild)
        ours.evaluate()
        raises_fork(pending.evaluate)

    fork_and_join(child)
    pending.evaluate()


def fork_many_times_under_load():
    with EvalContext(num_threads=4):
        x = numbers(8)
        for turn in range(150):
            made = [probe(probe(x + turn, sleep=50), sleep=50) for _ in range(4)]
            pids = [fork(lambda: probe(x).evaluate()) for _ in range(2)]
            for pid in pids:
                join(pid)
            for batch in made:
                assert [np.asarray(t)[0] for t in batch] == [i + turn for i in range(8)]


def fork_while_threads_wait():
    """Other threads are blocked in every way that a thread can wait."""
    check_engine_a_little()  # Python's import locks do not survive a fork
    stop = threading.Event()
    wrong = []

    def guard(work):
        def run():
            while not stop.is_set():
                try:
                    work()
                except BaseException as error:
                    wrong.append(error)
                    raise

        return run

    def drain():
        probe(numbers(2), sleep=200)
        EvalContext.current()._native_pool().drain()

    def full():
        with bounded(1, max_nodes=1):
            for _ in range(5):
                probe(ps.tensor(1), sleep=100)

    def read():
        probe(numbers(2), sleep=200).evaluate()

    threads = [threading.Thread(target=guard(work)) for work in (drain, full, read, read)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            join(fork(check_engine_a_little))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong


def check_engine_a_little():
    assert np.asarray(probe(ps.tensor(7))).item() == 7


def fork_in_several_threads_at_once():
    errors = []
    start = threading.Barrier(4)

    def work():
        try:
            start.wait()
            for _ in range(25):
                made = probe(numbers(4), sleep=100)
                join(fork(check_engine_a_little))
                made.evaluate()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def fork_in_a_function():
    with EvalContext(num_threads=2):
        x = numbers(10)
        pending = probe(x, sleep=10 * MS)

        def function(x):
            fork_and_join(check_engine)
            return x + 1

        made = [call(function, x) for _ in range(3)]
        for result in made:
            assert [np.asarray(t)[0] for t in result] == list(range(1, 11))
        pending.evaluate()
    check_engine()


def square(i):
    return int(np.asarray(probe(ps.tensor(i, dtype=ps.int64), sleep=100)).item() ** 2)


def fork_by_multiprocessing():
    check_engine()
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        pending = probe(numbers(4), sleep=5 * MS)
        with context.Pool(3) as pool:
            assert pool.map(square, range(30)) == [i * i for i in range(30)]
        pending.evaluate()
    check_engine()


def fork_by_a_data_loader():
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            image = ps.tensor(np.full((4, 6, 3), index, np.uint8), layout="HWC")
            return ps.cast(ps.flip(probe(image, sleep=100)), dtype=ps.float32).torch()

    check_engine()
    loader = DataLoader(Images(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        pending = probe(numbers(4), sleep=5 * MS)
        seen = torch.cat([batch[:, 0, 0, 0] for batch in loader])
        assert seen.tolist() == list(range(24))
        pending.evaluate()
    check_engine()


def leave_a_child_the_ordinary_way():
    pending = probe(numbers(50), sleep=20 * MS)
    pid = os.fork()
    if pid == 0:
        ours = probe(numbers(50), sleep=20 * MS)
        assert not ours._value.finished
        sys.exit(0)
    start = time.monotonic()
    join(pid)
    assert time.monotonic() - start < 3
    del pending


@forks
@pytest.mark.parametrize(
    "program",
    [
        fork_before_any_work,
        fork_an_idle_engine,
        fork_in_the_middle_of_work,
        fork_while_a_kernel_is_stuck,
        fork_with_deferred_values,
        fork_in_a_thread,
        fork_in_a_child,
        fork_many_times_under_load,
        fork_while_threads_wait,
        fork_in_several_threads_at_once,
        fork_in_a_function,
        fork_by_multiprocessing,
        fork_by_a_data_loader,
        leave_a_child_the_ordinary_way,
    ],
    ids=lambda program: program.__name__,
)
def test_parent_and_child_have_a_working_engine_after(program):
    check_fresh(program, timeout=40)


# Shutdown


def leave_with_work_in_flight():
    results.extend(probe(numbers(16), sleep=20 * MS) for _ in range(100))


def leave_with_deferred_work():
    with EvalMode.deferred:
        results.extend(probe(numbers(16), sleep=1000 * MS) for _ in range(100))


def leave_with_a_function_running():
    results.append(call(time.sleep, 0.3))
    results.extend(call(lambda: np.ones(3)) for _ in range(100))
    time.sleep(0.05)


def leave_with_a_function_waiting():
    slow = probe(ps.tensor(1), sleep=300 * MS)
    results.extend(call(lambda: slow.item()) for _ in range(10))
    time.sleep(0.05)


def leave_with_several_pools():
    for threads in (1, 2, 5):
        with EvalContext(num_threads=threads):
            made = numbers(8)
            for _ in range(20):
                made = probe(made, sleep=10 * MS)
            results.append(made)


def leave_with_daemons_at_work():
    def submit():
        while True:
            made = probe(probe(numbers(4), sleep=300) + 1)
            call(lambda x: x, made).evaluate()

    # What is imported at the first call is imported by now: Python itself is not quiet about a
    # daemon that imports while it exits.
    call(lambda x: x, probe(probe(numbers(1)) + 1)).evaluate()
    for _ in range(4):
        threading.Thread(target=submit, daemon=True).start()
    time.sleep(0.3)


def leave_with_daemons_waiting():
    slow = probe(numbers(40), sleep=20 * MS)
    for _ in range(4):
        threading.Thread(target=slow.evaluate, daemon=True).start()
    time.sleep(0.05)


def leave_from_a_thread():
    def work():
        results.append(probe(numbers(40), sleep=10 * MS))
        sys.exit(0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    check_engine()


def leave_while_threads_still_read():
    def work():
        made = probe(numbers(20), sleep=5 * MS)
        time.sleep(0.1)
        assert [np.asarray(t)[0] for t in made] == list(range(20))

    for _ in range(4):
        threading.Thread(target=work).start()


def leave_with_results_in_objects_that_die_late():
    class Late:
        def __init__(self):
            self.result = probe(numbers(4), sleep=5 * MS)
            self.function = call(lambda: Late, outputs=Output(ps.int32, 0))
            self.me = self

    results.extend(Late() for _ in range(20))


def leave_with_foreign_memory_held():
    for _ in range(20):
        results.append(probe(ps.as_batch([b"abcd", b"efgh"]), sleep=MS))
        results.append(np.from_dlpack(ps.as_tensor(np.ones((4, 5)))))
        results.append(np.asarray(ps.tensor([1, 2, 3])))


results = []


@pytest.mark.parametrize(
    "program",
    [
        leave_with_work_in_flight,
        leave_with_deferred_work,
        leave_with_a_function_running,
        leave_with_a_function_waiting,
        leave_with_several_pools,
        leave_with_daemons_at_work,
        leave_with_daemons_waiting,
        leave_from_a_thread,
        leave_while_threads_still_read,
        leave_with_results_in_objects_that_die_late,
        leave_with_foreign_memory_held,
    ],
    ids=lambda program: program.__name__,
)
def test_the_program_ends_quickly_and_quietly(program):
    for _ in range(2):
        start = time.monotonic()
        check_fresh(program)
        assert time.monotonic() - start < 4


def leave_with_a_function_that_never_ends():
    def work():
        while True:
            time.sleep(0.001)

    results.append(call(work))
    time.sleep(0.05)


def leave_with_a_function_that_computes_for_ever():
    def work():
        while True:
            pass

    results.append(call(work))
    time.sleep(0.05)


def leave_with_a_stuck_kernel():
    results.append(probe(ps.tensor(1), sleep=10_000 * MS))
    time.sleep(0.05)


@pytest.mark.parametrize(
    "program",
    [
        leave_with_a_function_that_never_ends,
        leave_with_a_function_that_computes_for_ever,
        leave_with_a_stuck_kernel,
    ],
    ids=lambda program: program.__name__,
)
def test_the_program_ends_even_if_work_does_not(program):
    start = time.monotonic()
    check_fresh(program)
    assert time.monotonic() - start < 9


def work_at_the_very_end():
    """An exit handler registered before the engine's, so that it runs after it."""
    x = numbers(4)

    def last():
        assert np.asarray((x + 1).tensors[3]).tolist() == [4] * 4
        try:
            probe(x).evaluate()
        except RuntimeError as error:
            print(error)

    atexit.unregister(ps._core.shut_down)
    atexit.register(last)
    atexit.register(ps._core.shut_down)
    check_engine()


def test_work_after_the_end_is_refused_not_waited_for():
    assert "the interpreter is shutting down" in check_fresh(work_at_the_very_end)


def raise_in_the_main_program():
    results.append(probe(numbers(40), sleep=10 * MS))
    raise KeyError("the user's own")


def test_the_exit_code_of_a_failed_program_stays():
    done = run_fresh(raise_in_the_main_program)
    assert done.code == 1
    assert done.stderr.rstrip().endswith('KeyError: "the user\'s own"')
    assert done.stderr.count("Traceback") == 1


# Ctrl-C


def interrupted(wait):
    """Seconds between Ctrl-C and its exception, out of something that waits for longer."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.1, send)
    timer.start()
    try:
        wait()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    finally:
        timer.join()
    raise AssertionError("no KeyboardInterrupt")


def interrupt_waiting_threads():
    with EvalContext(num_threads=1) as context:
        slow = [probe(ps.tensor(i), sleep=1000 * MS) for i in range(3)]
        function = call(lambda x: x, slow[2])

        def synchronously():
            with EvalMode.sync_cpu:
                probe(slow[2])

        waits = {
            "evaluate": slow[2].evaluate,
            "asarray": lambda: np.asarray(slow[2]),
            "shape": lambda: slow[2].shape,
            "function": function.evaluate,
            "sync": synchronously,
            "drain": context._native_pool().drain,
        }
        for name, wait in waits.items():
            late = interrupted(wait)
            assert late < 0.4, f"{name}: {late:.2f} s"
        assert [value.item() for value in slow] == [0, 1, 2]
        assert function.item() == 2
    with bounded(1, max_nodes=1):
        first = probe(ps.tensor(5), sleep=1000 * MS)
        late = interrupted(lambda: probe(ps.tensor(1)))
        assert late < 0.4, f"full pool: {late:.2f} s"
        assert first.item() == 5
        assert probe(ps.tensor(6)).item() == 6
    check_engine()


def test_ctrl_c_reaches_a_waiting_program_and_work_goes_on():
    check_fresh(interrupt_waiting_threads)


def die_by_ctrl_c():
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    probe(numbers(100), sleep=100 * MS).evaluate()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_program_that_does_not_catch_ctrl_c_ends_by_it():
    start = time.monotonic()
    done = run_fresh(die_by_ctrl_c)
    assert time.monotonic() - start < 4
    assert done.code == -signal.SIGINT
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


# With other libraries


def start_programs():
    slow = [probe(ps.tensor(i), sleep=1500 * MS) for i in range(2)]
    time.sleep(0.02)
    start = time.monotonic()
    for _ in range(5):
        done = subprocess.run([sys.executable, "-S", "-c", "print(1)"], capture_output=True)
        assert done.stdout.strip() == b"1"
    assert time.monotonic() - start < 1.2, "starting a program waited for the engine"
    assert [value.item() for value in slow] == [0, 1]


def test_other_programs_can_be_started_meanwhile():
    check_fresh(start_programs)


def test_threads_may_call_at_once():
    x = numbers(4)
    wrong = []
    start = threading.Barrier(8)

    def work(number):
        start.wait(10)
        for turn in range(50):
            made = probe(x + number * 1000 + turn)
            expected = [i + number * 1000 + turn for i in range(4)]
            if [np.asarray(t)[0] for t in made] != expected:
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong


def test_threads_may_read_one_value_at_once():
    slow = probe(numbers(8), sleep=5 * MS)
    seen = []

    def read():
        seen.append([np.asarray(t)[0] for t in slow])

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert seen == [list(range(8))] * 8
