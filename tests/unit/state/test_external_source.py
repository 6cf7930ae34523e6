"""ExternalSource: batches, background, states."""

import itertools
import threading
import time

import numpy as np
import pytest

import penstock as ndd
from penstock import ExternalSource
from penstock.checkpoint import Checkpoint


def numbers(count=5):
    def source():
        for value in range(count):
            yield np.full(2, value)

    return source


class Squares:
    """A source with its own state, as an iterable and as a function."""

    def __init__(self):
        self.at = 0

    def get_state(self):
        return self.at

    def set_state(self, state):
        self.at = int(state)

    def __call__(self):
        self.at += 1
        return self.at**2


class SquaresUpTo(Squares):
    def __iter__(self):
        while self.at < 5:
            yield self()


SOURCES = {
    "list": lambda: list(range(5)),
    "range": lambda: range(5),
    "array": lambda: np.arange(5),
    "generator function": lambda: numbers(),
    "generator": lambda: numbers()(),
    "iterator": lambda: iter(range(5)),
    "own state": SquaresUpTo,
    "function with a state": Squares,
}


def rest(source, limit=7):
    """The remaining items of the source."""
    taken = []
    for _ in range(limit):
        try:
            taken.append(np.asarray(source()).tolist())
        except StopIteration:
            break
    return taken


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_sources_resume_anywhere(make, parallel):
    checkpoint, source = Checkpoint(), ExternalSource(make(), parallel=parallel)
    checkpoint.register(source, "source")
    saved, items = [], []
    for _ in range(5):
        checkpoint.collect()
        saved.append(checkpoint.serialize())
        items.append(np.asarray(source()).tolist())
    tail = rest(source, 2)
    for at, text in enumerate(saved):
        restored, again = Checkpoint(), ExternalSource(make(), parallel=parallel)
        restored.deserialize(text)
        restored.register(again, "source")
        assert rest(again, 5 + len(tail) - at) == items[at:] + tail


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_sources_resume_from_inside_of_prefetch(make, parallel):
    source = ExternalSource(make(), parallel=parallel)
    saved, items = [], []
    for item in ndd.prefetch(itertools.islice(source.captured(1), 5), 2):
        items.append(np.asarray(item.tensors[0]).tolist())
        saved.append(source.state_dict())
    assert len(items) == 5
    for at, state in enumerate(saved):
        again = ExternalSource(make(), parallel=parallel)
        again.load_state_dict(state)
        assert rest(again, 4 - at) == items[at + 1 :]


@pytest.mark.parametrize("make", [list, numbers], ids=["list", "generator function"])
def test_a_loop_left_early_gives_its_items_back(make):
    source = ExternalSource(range(5) if make is list else numbers())
    for _ in ndd.prefetch(source.captured(1), 2):
        break
    assert len(rest(source)) == 4


@pytest.mark.parametrize("cycle", ["quiet", "raise"])
def test_the_state_of_a_cycle_is_the_place_in_it(cycle):
    source = ExternalSource([1, 2, 3], cycle=cycle)
    for _ in range(3):
        source()
    if cycle == "raise":
        with pytest.raises(StopIteration):
            source()
    source()
    again = ExternalSource([1, 2, 3], cycle=cycle)
    again.set_state(source.get_state())
    assert rest(again, 2) == [2, 3]


def test_a_plain_function_has_no_state():
    source = ExternalSource(lambda: 1)
    for ask in (source.get_state, source.state_dict, lambda: source.set_state("{}")):
        with pytest.raises(RuntimeError, match="a function has no state"):
            ask()
    assert [item.batch_size for item in ndd.prefetch(itertools.islice(source.captured(2), 3))] == [
        2,
        2,
        2,
    ]


def test_what_runs_once_does_not_go_back():
    source = ExternalSource(iter([1, 2, 3]))
    start = source.get_state()
    source()
    with pytest.raises(RuntimeError, match="only once"):
        source.set_state(start)
    assert rest(source) == [2, 3]


@pytest.mark.parametrize("state", ["garbage", "5", "{}", '{"items": -1}', 5, None])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match="state"):
        ExternalSource([1]).set_state(state)


def test_a_state_of_more_data_is_refused():
    with pytest.raises(ValueError, match="at item 7, but the source has only 2"):
        ExternalSource([1, 2]).set_state('{"items": 7}')


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ExternalSource(lambda: None)(), "the source returned None"),
        (lambda: ExternalSource(lambda: (1, None), 2)(), "output 1: the source returned None"),
        (lambda: ExternalSource(lambda: "text")(), "Can't make a tensor from 'text'"),
        (
            lambda: ExternalSource(lambda: [[1, 2], [3]])(),
            "the source returned nested lists",
        ),
        (lambda: ExternalSource(lambda: [1, 2], layout="HWC")(), 'The layout "HWC" names 3'),
        (lambda: ExternalSource(lambda: 1, layout=3), "`layout` must be a string"),
        (lambda: ExternalSource(lambda: 1, dtype="zz"), "`dtype`: "),
        (lambda: ExternalSource(lambda: 1, device="tpu"), "`device`: "),
        (lambda: ExternalSource(lambda: 1)(batch_size="x"), "`batch_size` must be an integer"),
    ],
)
def test_what_can_not_be_is_told_by_the_source(call, text):
    with pytest.raises((TypeError, ValueError), match=f"^ExternalSource: {text}"):
        call()


def test_batches_of_lists_and_arrays():
    source = ExternalSource([[[1, 2], [3]], np.zeros((3, 4))], batch=True)
    assert source().shape == [(2,), (1,)]
    assert source(batch_size=3).shape == [(4,)] * 3
    with pytest.raises(ValueError, match="batch of 2"):
        ExternalSource([[1, 2]], batch=True)(batch_size=3)


def test_data_goes_to_the_device(emulated):
    source = ExternalSource(lambda: 1, device="gpu")
    assert source().device == source(batch_size=2).device == ndd.Device("gpu")
    assert ExternalSource([ndd.tensor(1).gpu()])().device == ndd.Device("cpu")


# In the background


def test_the_next_item_is_made_while_one_is_used():
    asked, threads = threading.Semaphore(0), set()

    def source():
        for value in range(3):
            threads.add(threading.current_thread())
            asked.release()
            yield value

    made = ExternalSource(source, parallel=True)
    assert made().item() == 0
    assert asked.acquire(timeout=10)
    assert asked.acquire(timeout=10)  # the second, although it was not requested
    assert rest(made) == [1, 2]
    assert threading.current_thread() not in threads


def test_errors_come_out_at_their_item():
    def source():
        yield 1
        yield 2
        raise KeyError("boom")

    made = ExternalSource(source, parallel=True)
    assert [made().item(), made().item()] == [1, 2]
    with pytest.raises(KeyError, match="boom"):
        made()
    with pytest.raises(StopIteration):
        made()


@pytest.mark.parametrize("cycle", [None, True, "raise"])
def test_cycles_are_the_same_in_the_background(cycle):
    def walk(parallel):
        source = ExternalSource([1, 2, 3], cycle=cycle, parallel=parallel)
        taken = []
        for _ in range(9):
            try:
                taken.append(source().item())
            except StopIteration:
                taken.append("stop")
        return taken

    assert walk(True) == walk(False)


def test_the_thread_ends_with_its_source():
    before = {*threading.enumerate()}
    source = ExternalSource(range(9), parallel=True)
    source()
    (thread,) = {*threading.enumerate()} - before
    del source
    thread.join(timeout=10)
    assert not thread.is_alive()


@pytest.mark.parametrize("batch", [False, True])
def test_a_source_in_the_background_may_reuse_its_buffer(batch):
    buffer = np.zeros((64, 64))

    def fill():
        for number in range(30):
            buffer[:] = number
            yield buffer

    source = ExternalSource(fill, parallel=True, batch=batch)
    for number in range(30):
        item = source()
        time.sleep(0.001)  # the next one is being computed
        rows = np.stack([np.asarray(row) for row in item]) if batch else np.asarray(item)
        assert (rows == number).all(), number


def test_what_a_source_owns_no_more_is_not_copied():
    made = []

    def make():
        made.append(ndd.tensor([1, 2, 3]))
        return made[-1]

    item = ExternalSource(make, parallel=True)()
    assert np.shares_memory(np.asarray(item), np.asarray(made[0]))


def test_a_source_in_the_background_that_asks_itself_is_an_error():
    def ask():
        return source()

    source = ExternalSource(ask, parallel=True)
    with pytest.raises(RuntimeError, match="from itself"):
        source()
    with pytest.raises(RuntimeError, match="from itself"):
        source()


def test_sources_in_the_background_that_ask_each_other_are_an_error():
    ping = ExternalSource(lambda: pong(), parallel=True)
    pong = ExternalSource(lambda: ping(), parallel=True)
    for source in (ping, pong):
        with pytest.raises(RuntimeError, match="requests an item from itself"):
            source()


def test_a_source_in_the_background_can_ask_another_one():
    inner = ExternalSource(iter([1, 2, 3]), parallel=True)
    outer = ExternalSource(lambda: np.asarray(inner()) * 10, parallel=True)
    assert [int(np.asarray(outer())) for _ in range(3)] == [10, 20, 30]


def test_a_generator_function_that_was_interrupted_goes_on():
    interrupts = [3]

    def items():
        for number in range(5):
            if [number] == interrupts:
                interrupts.clear()
                raise KeyboardInterrupt
            yield number

    source = ExternalSource(items)
    assert [source().item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyboardInterrupt):
        source()
    assert source.state_dict() == {"items": 3}
    assert [source().item() for _ in range(2)] == [3, 4]
    with pytest.raises(StopIteration):
        source()
    interrupts.append(0)
    source = ExternalSource(items())
    with pytest.raises(KeyboardInterrupt):
        source()
    with pytest.raises(RuntimeError, match="ends a generator"):
        source()


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("is_called", [False, True])
def test_threads_share_the_items_of_a_source(is_called, parallel):
    source = iter(range(400)).__next__ if is_called else range(400)
    shared, found = ExternalSource(source, parallel=parallel), [[] for _ in range(4)]

    def take(into):
        try:
            while True:
                into.append(shared().item())
        except StopIteration:
            pass

    threads = [threading.Thread(target=take, args=(into,)) for into in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(itertools.chain.from_iterable(found)) == list(range(400))


def test_threads_call_a_function_at_the_same_time():
    together = threading.Barrier(2, timeout=20)
    source = ExternalSource(lambda: together.wait() * 0)
    threads = [threading.Thread(target=source) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken
