"""Ctrl-C at any point of entering and leaving a block leaves the enclosing block intact."""

import linecache
import signal
import sys

import pytest

import penstock as ndd
from penstock._runtime import mode as _mode
from penstock._runtime.device import thread

BLOCKS = {
    "mode": lambda: (ndd.EvalMode.sync_cpu, ndd.EvalMode.deferred),
    "device": lambda: (ndd.Device("gpu", 1), ndd.Device("gpu", 2)),
    "context": lambda: (ndd.EvalContext(num_threads=1), ndd.EvalContext(device_id=3)),
}


@pytest.fixture(autouse=True)
def unchanged(emulated):
    chosen, modes = thread.chosen, _mode._local.chosen
    yield
    thread.context, thread.chosen, _mode._local.chosen = None, chosen, modes


def state():
    context = ndd.EvalContext.current()
    return ndd.EvalMode.current(), ndd.Device.current(), thread.chosen, context, context._depth


class Interrupt:
    """Raises KeyboardInterrupt before the nth line of the package's methods."""

    def __init__(self, after, methods):
        self.left = after
        self.methods = methods
        self.has_come = False

    def __call__(self, frame, event, _):
        if frame.f_code.co_name not in self.methods:
            return None
        return self.line

    def line(self, frame, event, _):
        # Nothing can interrupt between an assignment and the following return.
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and text != "return self":
            if self.left == 0:
                sys.settrace(None)
                self.has_come = True
                raise KeyboardInterrupt
            self.left -= 1
        return self.line


def interrupted(outer, inner, after, methods):
    """Whether the interrupt was raised before the methods returned."""
    interrupt = Interrupt(after, methods)
    with outer:
        sys.settrace(interrupt)
        try:
            with inner:
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
    return interrupt.has_come


ENTRY, EXIT = ("__enter__", "choice"), ("__exit__", "choice_around")


# The exit of modes and devices is native code, which no signal gets into.
@pytest.mark.parametrize(
    ("name", "methods"), [*((name, ENTRY) for name in BLOCKS), ("context", EXIT)]
)
def test_the_block_around_an_interrupted_one_ends_as_it_began(name, methods):
    outer, inner = BLOCKS[name]()
    before, after = state(), 0
    while interrupted(outer, inner, after, methods):
        assert state() == before, after
        after += 1
    assert state() == before
    assert after >= 1, "interrupts came"


@pytest.mark.parametrize("name", BLOCKS)
def test_an_interrupted_entry_changes_nothing(name):
    block, _ = BLOCKS[name]()
    before, after = state(), 0
    has_come = True
    while has_come:
        interrupt = Interrupt(after, ENTRY)
        sys.settrace(interrupt)
        try:
            with block:
                sys.settrace(None)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        has_come = interrupt.has_come
        assert state() == before, after
        after += 1


@pytest.mark.parametrize("name", BLOCKS)
def test_what_was_not_entered_is_not_left(name):
    block, _ = BLOCKS[name]()
    before = state()
    with pytest.raises(RuntimeError):
        block.__exit__(None, None, None)
    assert state() == before


@pytest.mark.parametrize("name", ["mode", "device"])
def test_no_interrupt_leaves_what_a_block_has_chosen(name):
    """Signals at random moments of blocks without others around them, as Ctrl-C comes."""

    def interrupt(*_):
        raise KeyboardInterrupt

    block, _ = BLOCKS[name]()
    before = state()
    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(1500):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 + number % 97 * 1e-6)
                while True:
                    with block:
                        pass
            except KeyboardInterrupt:
                pass
            assert state() == before, number
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
