import gc
import threading
import weakref

import pytest

from penstock._runtime.context import EvalContext
from penstock._runtime.device import Device
from penstock._runtime.stream import set_current_stream, stream
from penstock._runtime.threads import ThreadPool, default_pool


class Value:
    """A deferred value that records when it is computed."""

    def __init__(self, done, name, error=None):
        self.done, self.name, self.error = done, name, error

    def wait(self):
        self.done.append(self.name)
        if self.error is not None:
            raise self.error


pytestmark = pytest.mark.usefixtures("fresh_streams")


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_defaults_are_host_default_pool_and_no_stream():
    context = EvalContext()
    assert context.device_id is None
    assert context.cuda_stream is None
    assert context.thread_pool is default_pool()
    assert context.num_threads == default_pool().num_threads
    assert repr(context) == f"EvalContext(num_threads={context.num_threads}, device_id=None)"


def test_pool_of_its_own():
    assert EvalContext(num_threads=2).num_threads == 2
    pool = ThreadPool(3)
    context = EvalContext(thread_pool=pool)
    assert context.thread_pool is pool
    assert context.num_threads == 3


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="`thread_pool` and `num_threads`"):
        EvalContext(num_threads=2, thread_pool=ThreadPool(3))
    with pytest.raises(TypeError, match="must be a ThreadPool, got 3"):
        EvalContext(thread_pool=3)
    with pytest.raises(ValueError, match="positive"):
        EvalContext(num_threads=0)
    with pytest.raises(ValueError, match="between 0 and 7"):
        EvalContext(device_id=8)
    with pytest.raises(TypeError, match="integer"):
        EvalContext(device_id="x")
    with pytest.raises(TypeError, match="stream"):
        EvalContext(cuda_stream="x")
    with pytest.raises(ValueError, match="on gpu:2, but device_id=1"):
        EvalContext(device_id=1, cuda_stream=stream(device_id=2))
    with pytest.raises(ValueError, match="for gpu:2, but the context is for gpu:1"):
        EvalContext(device_id=1, thread_pool=ThreadPool(1, device_id=2))
    with pytest.raises(TypeError):
        EvalContext(4)


def test_device_comes_from_id_stream_pool_or_the_current_one():
    assert EvalContext(device_id=0).device_id == 0
    assert EvalContext(cuda_stream=stream(device_id=2)).device_id == 2
    assert EvalContext(thread_pool=ThreadPool(1, device_id=3)).device_id == 3
    with Device("gpu", 4):
        assert EvalContext().device_id == 4
        assert EvalContext(thread_pool=ThreadPool(1, device_id=None)).device_id == 4
    assert EvalContext(num_threads=1, device_id=5).thread_pool.device_id == 5


def test_stream_is_the_one_given_or_the_thread_s():
    with Device("gpu", 2):
        set_current_stream(7)
    assert EvalContext(device_id=2).cuda_stream.handle == 7
    assert EvalContext(device_id=2, cuda_stream=9).cuda_stream.handle == 9
    context = EvalContext(device_id=1)
    assert context.cuda_stream is context.cuda_stream
    assert context.cuda_stream.device_id == 1


def test_default_is_one_per_thread_and_device():
    default = EvalContext.default()
    assert EvalContext.default() is default
    assert EvalContext.current() is default
    with Device("gpu", 1):
        on_gpu = EvalContext.current()
        assert on_gpu is EvalContext.default() is not default
        assert on_gpu.device_id == 1
        set_current_stream(5)
        assert on_gpu.cuda_stream.handle == 5
        with Device.CPU:
            assert EvalContext.current() is default
        assert EvalContext.current() is on_gpu
    assert EvalContext.current() is default
    assert in_thread(EvalContext.default) is not default


def test_current_is_that_of_the_innermost_block():
    outer, inner = EvalContext(), EvalContext()
    with outer as entered:
        assert entered is EvalContext.current() is outer
        with inner, outer:
            assert EvalContext.current() is outer
        with inner:
            assert EvalContext.current() is inner
            with Device("gpu", 1):
                assert EvalContext.current() is inner
        assert EvalContext.current() is outer
        assert in_thread(EvalContext.current) is not outer
    assert EvalContext.current() is EvalContext.default()


def test_device_of_the_context_is_current_within_it():
    with EvalContext(device_id=3):
        assert Device.current() is Device("gpu:3") is Device("gpu")
        with Device("gpu", 1):
            assert Device("gpu").device_id == 1
    assert Device.current() is Device.CPU


def test_entering_in_two_threads_at_once_is_an_error():
    context = EvalContext()

    def enter():
        try:
            with context:
                return "entered"
        except RuntimeError as error:
            return str(error)

    with context, context:
        assert "EvalContext can't be active in two threads" in in_thread(enter)
    assert in_thread(enter) == "entered"
    with context:
        assert EvalContext.current() is context


def test_outermost_exit_does_the_pending_work_in_order():
    done = []
    context = EvalContext()
    with context:
        values = [Value(done, name) for name in range(3)]
        with context:
            for value in values:
                context._defer(value)
        assert done == []
    assert done == [0, 1, 2]
    with context:
        pass
    assert done == [0, 1, 2]


def test_values_nobody_holds_are_not_evaluated_nor_kept():
    done = []
    context = EvalContext()
    value = Value(done, "dropped")
    context._defer(value)
    gone = weakref.ref(value)
    del value
    gc.collect()
    assert gone() is None
    context.evaluate_all()
    assert done == []


def test_pending_list_does_not_grow_with_dropped_values():
    context = EvalContext()
    kept = [Value([], number) for number in range(100)]
    for value in kept:
        context._defer(value)
    for number in range(10_000):
        context._defer(Value([], number))
    gc.collect()
    assert len(context._pending) <= 4 * len(kept)
    assert all(value in [reference() for reference in context._pending] for value in kept)


def test_errors_stay_with_their_values():
    done = []
    context = EvalContext()
    values = [Value(done, "bad", ValueError("broken")), Value(done, "good")]
    for value in values:
        context._defer(value)
    context.evaluate_all()
    assert done == ["bad", "good"]


def test_interrupt_is_not_swallowed():
    context = EvalContext()
    value = Value([], "stopped", KeyboardInterrupt())
    context._defer(value)
    with pytest.raises(KeyboardInterrupt), context:
        pass
    assert EvalContext.current() is EvalContext.default()
    assert in_thread(context.__enter__) is context


def test_block_left_by_an_error_does_not_wait_for_pending_work():
    done = []
    context = EvalContext()
    value = Value(done, "pending")
    context._defer(value)
    with pytest.raises(KeyError), context:
        raise KeyError
    assert done == []
    assert EvalContext.current() is EvalContext.default()
    context.evaluate_all()
    assert done == ["pending"]


def test_result_cache_is_reserved():
    context = EvalContext()
    assert context.cache_results(1, 2) is None
    assert context.cached_results(1) is None


def test_the_default_context_has_the_stream_that_was_set():
    chosen = stream(device_id=0)
    set_current_stream(chosen)
    try:
        assert EvalContext.default().cuda_stream is chosen
        # A context of its own on the host has none.
        assert EvalContext().cuda_stream is None
    finally:
        set_current_stream(None)
    assert EvalContext.default().cuda_stream is None
