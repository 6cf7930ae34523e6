import contextlib
import gc
import os
import sys
import threading
import time
import traceback
import weakref

import numpy as np
import pytest
from tests.stress.batched import call
from tests.stress.probe import FAIL, bounded, probe

import penstock as ps
from penstock import Batch, EvalContext, EvalMode, Tensor
from penstock._operators.map import TensorSpec as Output


def numbers(count, shape=(4,)):
    return ps.batch([np.full(shape, i, np.int32) for i in range(count)])


def arrays(batch):
    return [np.asarray(tensor) for tensor in batch]


# What the function gets


def test_a_function_gets_tensors_on_a_worker():
    seen = []

    def double(x):
        seen.append((type(x), threading.current_thread()))
        return np.asarray(x) * 2

    result = call(double, ps.tensor([1, 2, 3]))
    assert isinstance(result, Tensor)
    assert np.asarray(result).tolist() == [2, 4, 6]
    [(kind, thread)] = seen
    assert kind is Tensor
    assert thread is not threading.current_thread()


def test_a_function_gets_the_whole_batch_at_once():
    seen = []

    def double(x):
        seen.append((type(x), x.batch_size))
        return [np.asarray(tensor) * 2 for tensor in x]

    result = call(double, numbers(3))
    assert isinstance(result, Batch)
    assert [array.tolist() for array in arrays(result)] == [[0] * 4, [2] * 4, [4] * 4]
    assert seen == [(Batch, 3)]


def test_tensors_beside_a_batch_stay_tensors():
    def add(x, y, z):
        assert (type(x), type(y), type(z)) == (Batch, Tensor, Tensor)
        return x + y + z

    result = call(add, numbers(3), ps.tensor(10), 5)
    assert [array[0] for array in arrays(result)] == [15, 16, 17]


def test_inputs_keep_their_layout():
    image = ps.tensor(np.zeros((2, 3, 3), np.uint8), layout="HWC")
    seen = []
    call(lambda x: [seen.append(x.layout), x][1], image).evaluate()
    call(lambda x: [seen.append(x.layout), x][1], ps.as_batch([image, image])).evaluate()
    assert seen == ["HWC", "HWC"]


def test_inputs_are_made_before_the_function_runs():
    slow = probe(numbers(3), sleep=50_000)
    assert [array[0] for array in arrays(call(lambda x: x + 1, slow))] == [1, 2, 3]


def test_batches_of_different_sizes_are_refused_at_the_call():
    with pytest.raises(ValueError, match="3 != 2"):
        call(lambda x, y: x, numbers(2), numbers(3))
    with pytest.raises(ValueError, match="3 != 2"):
        call(lambda x: x, numbers(3), batch_size=2)


def test_what_is_no_data_is_refused_at_the_call():
    with pytest.raises(TypeError, match="Can't make a tensor"):
        call(lambda x: x, object())


# Sample by sample


def test_a_function_is_called_for_each_sample_in_order():
    seen = []

    def shift(x, y):
        seen.append((type(x), type(y)))
        return np.asarray(x) + np.asarray(y)

    result = ps.map(shift, numbers(3), ps.tensor(10))
    assert [array[0] for array in arrays(result)] == [10, 11, 12]
    assert seen == [(Tensor, Tensor)] * 3


def test_samples_may_get_different_shapes():
    images = ps.batch([np.zeros((2, n, 3), np.uint8) for n in (1, 5)], layout="HWC")
    result = ps.map(lambda x: x[:, ::2], images, outputs=ps.TensorSpec(layout="HWC"))
    assert (result.shape, result.layout) == ([(2, 1, 3), (2, 3, 3)], "HWC")


def test_each_sample_may_have_several_results():
    low, high = ps.map(
        lambda x: (np.min(x), np.max(x)),
        ps.batch([[1, 2], [7, 3]]),
        outputs=[ps.TensorSpec(ps.int32, 0), ps.TensorSpec(ps.int32, 0)],
    )
    assert [low.torch().tolist(), high.torch().tolist()] == [[1, 3], [2, 7]]


def test_without_inputs_a_batch_size_says_how_often_to_call():
    values = iter(range(100))
    assert ps.map(lambda: next(values), batch_size=4).torch().tolist() == [0, 1, 2, 3]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes came with Python 3.11")
def test_an_exception_says_for_which_sample():
    def inverse(x):
        return 1 // int(np.asarray(x))

    result = ps.map(inverse, ps.batch([1, 0, 2]), outputs=ps.TensorSpec(ps.int32, 0))
    with pytest.raises(ZeroDivisionError) as caught:
        result.evaluate()
    assert caught.value.__notes__ == ["in a call of inverse by penstock.map, for sample 1"]


def test_what_one_sample_returns_is_checked():
    result = ps.map(lambda x: x if int(np.asarray(x)) else None, ps.batch([1, 0]))
    with pytest.raises(TypeError, match="must return data, got None"):
        result.evaluate()
    low, _ = ps.map(lambda x: (1, 2) if int(np.asarray(x)) else 1, ps.batch([1, 0]), outputs=2)
    with pytest.raises(TypeError, match="a tuple of 2 results, got 1"):
        low.evaluate()


# What it returns


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (7, 7),
        (2.5, 2.5),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (b"ab", [97, 98]),
        (np.arange(3)[::-1], [2, 1, 0]),
        (range(3), [0, 1, 2]),
    ],
)
def test_a_function_may_return_anything_that_a_tensor_is_made_of(made, expected):
    assert np.asarray(call(lambda: made)).tolist() == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda: [[1, 2], [3, 4]],
        lambda: np.array([[1, 2], [3, 4]]),
        lambda: (np.array([1, 2]), ps.tensor([3, 4])),
        lambda: ps.batch([[1, 2], [3, 4]]),
        lambda: (np.array(row) for row in ([1, 2], [3, 4])),
    ],
    ids=["lists", "array", "tuple", "batch", "generator"],
)
def test_a_function_may_return_anything_that_a_batch_is_made_of(make):
    result = call(make, batch_size=2)
    assert [array.tolist() for array in arrays(result)] == [[1, 2], [3, 4]]


def test_a_function_may_return_results_that_are_still_in_the_making():
    result = call(lambda x: probe(x + 1, sleep=20_000), numbers(2))
    assert [array[0] for array in arrays(result)] == [1, 2]


def test_a_torch_tensor_may_be_returned():
    torch = pytest.importorskip("torch")
    assert np.asarray(call(lambda x: torch.from_dlpack(x) * 2, [1.5])).tolist() == [3]


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without a GIL, calls that share a buffer overwrite it while it is filled",
)
def test_memory_that_the_function_uses_again_is_copied():
    buffer = np.zeros(4, np.int32)

    def fill(x):
        buffer[:] = x.item()
        return buffer

    results = [call(fill, i) for i in range(10)]
    assert [np.asarray(result).tolist() for result in results] == [[i] * 4 for i in range(10)]
    results = [call(lambda x: [fill(x)] * 2, i, batch_size=2) for i in range(10)]
    assert [arrays(result)[1].tolist() for result in results] == [[i] * 4 for i in range(10)]
    results = [call(lambda x: ps.as_tensor(fill(x)), i) for i in range(10)]
    assert [np.asarray(result).tolist() for result in results] == [[i] * 4 for i in range(10)]


def test_several_outputs_come_as_a_tuple():
    low, high = call(lambda x: (np.min(x), np.max(x)), [3, 1, 2], outputs=2)
    assert (low.item(), high.item()) == (1, 3)
    low, high = call(
        lambda x: ([np.min(t) for t in x], [np.max(t) for t in x]),
        ps.batch([[3, 1], [7, 8]]),
        outputs=(Output(ps.int32, 0), Output(ps.int32, 0)),
    )
    assert [t.item() for t in low] == [1, 7]
    assert [t.item() for t in high] == [3, 8]


def test_what_is_promised_is_known_at_once():
    gate = threading.Event()

    def wait():
        gate.wait(10)
        return np.zeros((2, 3, 3), np.uint8)

    result = call(wait, outputs=Output(ps.uint8, 3, "HWC"))
    assert (result.dtype, result.ndim, result.layout) == (ps.uint8, 3, "HWC")
    assert not result._value.finished
    flipped = ps.flip(result)
    gate.set()
    assert flipped.shape == (2, 3, 3)


def test_what_is_not_promised_is_known_by_running():
    result = call(lambda: np.zeros((2, 3), np.float64))
    assert (result.dtype, result.ndim, result.shape) == (ps.float64, 2, (2, 3))
    assert np.asarray(result + 1).sum() == 6


def test_results_get_the_promised_layout():
    layouts = []
    image = call(lambda: np.zeros((2, 3, 3), np.uint8), outputs=Output(layout="CHW"))
    call(lambda x: [layouts.append(x.layout), 0][1], image).evaluate()
    assert layouts == ["CHW"] == [image.layout]


@pytest.mark.parametrize(
    ("made", "output", "kind", "text"),
    [
        (lambda x: None, Output(), TypeError, "shift: the function must return data, got None"),
        (lambda x: object(), Output(), TypeError, "Can't make a tensor"),
        (lambda x: np.zeros(2, np.int8), Output(ps.int16), TypeError, "int16|i16"),
        (lambda x: np.zeros(2), Output(ndim=2), ValueError, "2 dimensions, got 1"),
        (lambda x: np.zeros(2), Output(layout="HW"), ValueError, 'layout "HW"'),
        (lambda x: ps.batch([1]), Output(), TypeError, "Batch can't be a sample"),
        (lambda x: 1, 2, TypeError, "shift: the function must return a tuple of 2"),
        (lambda x: (1, 2, 3), 2, TypeError, "tuple of 2 results, got 3"),
    ],
)
def test_a_wrong_result_is_an_error_where_it_is_read(made, output, kind, text):
    results = call(made, 1, outputs=output, name="shift")
    for result in results if isinstance(results, tuple) else (results,):
        with pytest.raises(kind, match=text):
            result.evaluate()


@pytest.mark.parametrize(
    ("made", "kind", "text"),
    [
        (lambda x: [1, 2], ValueError, "3 samples, got 2"),
        (lambda x: ps.tensor([1, 2, 3]), TypeError, "returned a Tensor"),
        (lambda x: [1, [2], 3], TypeError, "number of dimensions"),
        (lambda x: 5, TypeError, "batch from 5"),
    ],
)
def test_a_wrong_batch_is_an_error_where_it_is_read(made, kind, text):
    with pytest.raises(kind, match=text):
        call(made, numbers(3)).evaluate()


def test_an_empty_batch_needs_no_call():
    empty = ps.batch([], dtype=ps.uint8)
    result = call(pytest.fail, empty, outputs=Output(ps.float32, 2))
    assert (result.batch_size, result.dtype, result.ndim) == (0, ps.float32, 2)
    with pytest.raises(ValueError, match="empty batch"):
        call(pytest.fail, empty)


# Faults


class Unlucky(Exception):
    pass


def unlucky(*_):
    raise Unlucky("on purpose")


@pytest.mark.parametrize("mode", EvalMode)
def test_an_exception_keeps_its_type_and_its_line(mode):
    with mode, pytest.raises(Unlucky, match="on purpose") as caught:
        probe(call(unlucky, numbers(2), outputs=Output(ps.int32, 1)) + 1).evaluate()
    functions = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert "unlucky" in functions


def test_asking_what_a_failed_function_made_raises_its_exception():
    for ask in (lambda x: x.dtype, lambda x: x.ndim, lambda x: x.shape, repr, lambda x: x + 1):
        with pytest.raises(Unlucky, match="on purpose"):
            ask(call(unlucky))


def test_each_read_raises_the_exception_anew():
    result = call(unlucky, outputs=Output(ps.int32, 1))
    lengths = []
    for _ in range(5):
        with pytest.raises(Unlucky) as caught:
            result.evaluate()
        lengths.append(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(set(lengths)) == 1, "tracebacks of earlier reads must not pile up"


class Held:
    """Something that a weak reference can watch."""


def test_a_failed_call_is_let_go_after_its_error_was_read():
    def read():
        held = Held()
        watched.append(weakref.ref(held))
        result = call(lambda held=held: unlucky(held), outputs=Output(ps.int32, 1))
        with contextlib.suppress(Unlucky):
            result.evaluate()

    watched = []
    for _ in range(5):
        read()
    assert_let_go(*watched)


def assert_let_go(*watched):
    deadline = time.monotonic() + 5
    while any(watch() is not None for watch in watched) and time.monotonic() < deadline:
        call(lambda: 0).evaluate()  # a thread with the GIL lets go of what others left behind
        gc.collect()
    assert [watch() for watch in watched] == [None] * len(watched)


def test_an_exception_that_cannot_be_copied_is_raised_all_the_same():
    class Odd(Exception):
        def __init__(self, *, code):
            super().__init__("odd")
            self.code = code

    def odd():
        raise Odd(code=5)

    result = call(odd, outputs=Output(ps.int32, 1))
    for _ in range(2):
        with pytest.raises(Odd, match="odd") as caught:
            result.evaluate()
        assert caught.value.code == 5


def test_an_exception_keeps_what_it_was_raised_from():
    def chained():
        try:
            unlucky()
        except Unlucky as error:
            raise KeyError("second") from error

    with pytest.raises(KeyError) as caught:
        call(chained).evaluate()
    assert isinstance(caught.value.__cause__, Unlucky)


def test_other_work_goes_on_beside_a_function_that_raises():
    with EvalContext(num_threads=1):
        before = probe(numbers(2), sleep=1000)
        broken = call(unlucky, before)
        after = probe(before)
        assert [array[0] for array in arrays(after)] == [0, 1]
        with pytest.raises(Unlucky):
            broken.evaluate()


def test_a_function_is_not_called_on_failed_inputs():
    with pytest.raises(RuntimeError, match="says to fail"):
        call(pytest.fail, probe(numbers(2), action=FAIL)).evaluate()


def test_even_system_exit_is_handed_to_the_reader():
    def leave():
        raise SystemExit(3)

    result = call(leave)
    assert call(lambda: 1).item() == 1
    with pytest.raises(SystemExit):
        result.evaluate()


# Modes, contexts, waiting


def test_the_modes_are_those_of_operators():
    gate = threading.Event()

    def wait():
        gate.wait(10)
        return 1

    with EvalMode.deferred:
        deferred = call(wait)
    eager = call(wait)
    time.sleep(0.02)
    assert not deferred._value.finished
    assert not eager._value.finished
    gate.set()
    for mode in (EvalMode.sync_cpu, EvalMode.sync_full):
        with mode:
            assert call(wait)._value.finished
    assert deferred.item() == eager.item() == 1


def test_evaluate_all_runs_deferred_functions():
    with EvalMode.deferred:
        result = call(lambda: 1)
    EvalContext.current().evaluate_all()
    assert result._value.finished


def test_a_call_on_memory_of_others_waits():
    array = np.zeros(3, np.int32)
    result = call(lambda x: [time.sleep(0.02), np.asarray(x) + 1][1], ps.as_tensor(array))
    array[:] = 100
    assert np.asarray(result).tolist() == [1, 1, 1]


def test_a_function_runs_even_if_nobody_reads_its_result():
    ran = threading.Event()
    call(ran.set)
    assert ran.wait(10)


def test_functions_and_what_they_hold_are_let_go():
    held = Held()
    watched = weakref.ref(held)
    result = call(lambda x, held=held: x, ps.tensor(1))
    del held
    assert result.item() == 1
    assert_let_go(watched)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_function_may_call_operators_of_its_own_pool_and_wait(threads):
    context = EvalContext(num_threads=threads)
    pool = context.thread_pool

    def work(x):
        with EvalContext(thread_pool=pool):
            return np.asarray(probe(probe(x), sleep=2000)) + 1

    with context:
        made = [call(work, call(work, i)) for i in range(20)]
        assert [result.item() for result in made] == [i + 2 for i in range(20)]


@pytest.mark.parametrize("threads", [1, 2])
def test_functions_may_call_functions(threads):
    context = EvalContext(num_threads=threads)
    pool = context.thread_pool

    def sum_up(n):
        n = n.item()
        if n == 0:
            return 0
        with EvalContext(thread_pool=pool):
            return n + call(sum_up, n - 1).item()

    with context:
        assert call(sum_up, 12).item() == 78


def test_a_function_in_a_full_pool_can_submit_to_it():
    with bounded(1, max_nodes=1):
        pool = EvalContext.current().thread_pool

        def work(x):
            with EvalContext(thread_pool=pool):
                return np.asarray(probe(probe(probe(x))))

        assert [call(work, i).item() for i in range(10)] == list(range(10))


@pytest.mark.timeout(30)
def test_a_function_that_waits_does_not_run_into_one_that_waits_for_it():
    """The second reads the first's result, though it is not among its inputs."""
    context = EvalContext(num_threads=2)
    pool = context.thread_pool

    def first():
        with EvalContext(thread_pool=pool):
            return np.asarray(probe(ps.tensor(5), sleep=100_000))

    with context:
        one = call(first)
        others = [call(lambda: one.item() + 1) for _ in range(4)]
        assert [other.item() for other in others] == [6] * 4


def test_many_functions_wait_at_once_without_using_up_the_stack():
    gate = threading.Event()
    context = EvalContext(num_threads=2)
    pool = context.thread_pool
    with context:
        slow = call(lambda: [gate.wait(20), 1][1])
        many = [call(lambda: slow.item()) for _ in range(500)]
        time.sleep(0.2)
        gate.set()
        assert sum(result.item() for result in many) == 500
    pool.native().drain()
    assert pool.native().in_flight == 0


@pytest.mark.timeout(10)
@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_a_function_may_synchronize_without_waiting_for_itself():
    def work(stream):
        stream.synchronize()
        return 1

    stream = ps.stream(device_id=0)
    assert call(lambda: work(stream)).item() == 1


@pytest.mark.skipif("sys.platform != 'linux'", reason="reads /proc")
def test_threads_that_stood_in_for_waiting_ones_go_again():
    def threads():
        return len(os.listdir("/proc/self/task"))

    before = threads()
    with EvalContext(num_threads=2):
        gate = threading.Event()
        slow = call(lambda: [gate.wait(20), 1][1])
        many = [call(lambda: slow.item()) for _ in range(100)]
        gate.set()
        assert sum(result.item() for result in many) == 100
        deadline = time.monotonic() + 10
        while threads() > before + 8 and time.monotonic() < deadline:
            probe(numbers(8)).evaluate()
        assert threads() <= before + 8


def test_the_line_of_the_call_is_that_of_the_user():
    with EvalMode.deferred:
        broken = call(lambda: [1, 2, 3], batch_size=2, name="three")  # this line
    fault = broken._value.wait()
    from penstock._operators import call_sites

    site = call_sites.find(fault.site)[-1]
    assert fault.operator == "three"
    assert site.text().endswith("# this line")
