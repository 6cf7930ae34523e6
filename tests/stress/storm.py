"""Threads that make random calls and know the expected results."""

from __future__ import annotations

import gc
import random
import threading
from typing import Any

import numpy as np

import penstock as ps
from penstock import EvalContext, EvalMode
from penstock._operators.map import TensorSpec as Output
from tests.stress.batched import call
from tests.stress.probe import BREAK_PROMISE, FAIL, PANIC, probe, probe_pair

SAMPLES = 4
MODES = tuple(EvalMode)


class Lost(Exception):
    """Raised by functions of the storm on purpose."""


class Known:
    """A batch, and the expected value of each sample: an array, or None if it must fail."""

    def __init__(self, batch: Any, expected: list[Any]) -> None:
        self.batch = batch
        self.expected = expected

    def check(self, pick: random.Random) -> None:
        """Read all of it, or one sample of it."""
        if pick.random() < 0.5:
            index = pick.randrange(SAMPLES)
            self._check_sample(index)
        elif None in [None if array is None else 0 for array in self.expected]:
            must_fail(self.batch.evaluate)
            for index in range(SAMPLES):
                self._check_sample(index)
        else:
            for tensor, array in zip(self.batch, self.expected, strict=True):
                np.testing.assert_array_equal(tensor, array)

    def _check_sample(self, index: int) -> None:
        sample, expected = self.batch.tensors[index], self.expected[index]
        if expected is None:
            must_fail(sample.evaluate)
        else:
            np.testing.assert_array_equal(sample, expected)

    @property
    def fails(self) -> bool:
        """Whether any sample must fail."""
        return any(array is None for array in self.expected)


def must_fail(read: Any) -> None:
    try:
        read()
    except (RuntimeError, Lost) as error:
        text = str(error)
        assert any(word in text for word in ("says to fail", "panic", "promised", "purpose")), text
    else:
        raise AssertionError("a failed sample was read")


class Market:
    """Values shared between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: list[Known] = []

    def leave(self, value: Known, pick: random.Random) -> None:
        with self._lock:
            if len(self._values) < 40:
                self._values.append(value)
            else:
                self._values[pick.randrange(40)] = value

    def take(self, pick: random.Random) -> Known | None:
        with self._lock:
            return pick.choice(self._values) if self._values else None


class Caller:
    """One thread of the storm."""

    def __init__(self, seed: int, nodes: int, market: Market) -> None:
        self.pick = random.Random(seed)
        self.nodes = nodes
        self.market = market
        self.ragged = seed % 3 == 0
        self.made = 0
        self.held = [self._source() for _ in range(3)]

    def run(self) -> None:
        while self.made < self.nodes:
            with self.pick.choice(MODES) as mode:
                for _ in range(self.pick.randrange(1, 12)):
                    self._step(mode)
        for known in self.held:
            known.check(self.pick)

    def _step(self, mode: EvalMode) -> None:
        pick = self.pick
        known = pick.choice(self.held)
        try:
            made = self._call(known)
        except (RuntimeError, Lost):
            assert mode > EvalMode.eager, "only synchronous calls may raise"
            return
        if made is not None:
            self.held.append(made)
        fate = pick.random()
        if fate < 0.1:
            pick.choice(self.held).check(pick)
        elif fate < 0.2:
            self.market.leave(pick.choice(self.held), pick)
        elif fate < 0.3:
            found = self.market.take(pick)
            if found is not None:
                found.check(pick)
        self._drop()

    def _drop(self) -> None:
        pick = self.pick
        while len(self.held) > 16 or (len(self.held) > 3 and pick.random() < 0.3):
            dropped = self.held.pop(pick.randrange(len(self.held)))
            # Most values must be read, since otherwise wrong ones would go unnoticed.
            if pick.random() < 0.5:
                dropped.check(pick)
        # Failures spread: without new values, all would soon fail.
        failed = [known for known in self.held if known.fails]
        if len(failed) > len(self.held) // 3:
            self.held.remove(pick.choice(failed))
            self.held.append(self._source())

    def _source(self) -> Known:
        height = [1 + i if self.ragged else 3 for i in range(SAMPLES)]
        number = self.pick.randrange(1000)
        arrays = [np.full((h, 5, 3), number + i, np.int32) for i, h in enumerate(height)]
        for array in arrays:
            array[:, 0] = 7
        return Known(ps.batch(arrays, layout="HWC"), list(arrays))

    def _call(self, known: Known) -> Known | None:
        pick = self.pick
        batch, expected = known.batch, known.expected
        step = pick.randrange(11)
        self.made += 1
        if step == 0:
            number = pick.randrange(100)
            return Known(batch + number, each(expected, lambda a: a + number))
        if step == 1:
            other = pick.choice(self.held)
            both = [
                None if a is None or b is None else a + b
                for a, b in zip(expected, other.expected, strict=True)
            ]
            return Known(batch + other.batch, both)
        if step == 2:
            return Known(ps.flip(batch), each(expected, lambda a: a[:, ::-1]))
        if step == 3:
            mirror = [pick.randrange(2) for _ in range(SAMPLES)]
            flipped = ps.flip(batch, horizontal=ps.batch(mirror))
            arrays = [
                None if a is None else a[:, ::-1] if m else a
                for a, m in zip(expected, mirror, strict=True)
            ]
            return Known(flipped, arrays)
        if step == 4:
            self.made += 1
            wide = ps.cast(batch, dtype=ps.int64)
            return Known(ps.cast(wide, dtype=ps.int32), expected)
        if step == 5:
            return Known(batch.slice[::-1], each(expected, lambda a: a[::-1]))
        if step == 6:
            return Known(probe_pair(batch)[1], expected)
        if step == 7:
            sleep = ps.batch([pick.randrange(80) for _ in range(SAMPLES)])
            return Known(probe(batch, sleep=sleep), expected)
        if step == 8 and not self.ragged:
            stacked = ps.as_tensor(batch)
            if known.fails:
                must_fail(stacked.evaluate)
            else:
                np.testing.assert_array_equal(stacked, expected)
            return None
        if step == 9:
            return self._call_function(known)
        return self._break(known)

    def _call_function(self, known: Known) -> Known:
        action = self.pick.randrange(4)

        def function(batch: Any) -> Any:
            if action == 0:
                raise Lost("on purpose")
            if action == 1:
                return probe(batch + 1)
            return [np.asarray(tensor) + 1 for tensor in batch]

        result = call(function, known.batch, outputs=Output(ps.int32, 3, "HWC"))
        if action == 0 or known.fails:
            return Known(result, [None] * SAMPLES)
        return Known(result, each(known.expected, lambda a: a + 1))

    def _break(self, known: Known) -> Known:
        actions = [0] * SAMPLES
        if self.pick.random() < 0.5:
            actions[self.pick.randrange(SAMPLES)] = self.pick.choice((FAIL, PANIC, BREAK_PROMISE))
        arrays = [a if ok == 0 else None for a, ok in zip(known.expected, actions, strict=True)]
        return Known(probe(known.batch, action=ps.batch(actions)), arrays)


def each(expected: list[Any], function: Any) -> list[Any]:
    return [None if array is None else function(array) for array in expected]


def storm(seed: int, *, nodes: int, threads: int = 8, resize: bool = False) -> int:
    """Run threads with random calls, some in their own pools; returns the number of nodes."""
    market = Market()
    callers = [Caller(seed * 100 + i, nodes // threads, market) for i in range(threads)]
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def run(caller: Caller, workers: int) -> None:
        try:
            start.wait(30)
            if workers == 0:
                caller.run()
            else:
                with EvalContext(num_threads=workers):
                    caller.run()
        except BaseException as error:
            errors.append(error)
            raise

    running = [
        threading.Thread(target=run, args=(caller, number % 4 if number % 2 else 0))
        for number, caller in enumerate(callers)
    ]
    for thread in running:
        thread.start()
    pick = random.Random(seed)
    while any(thread.is_alive() for thread in running):
        if resize:
            ps.set_num_threads(pick.randrange(1, 5))
        running[0].join(0.005)
        next(iter(thread for thread in running if thread.is_alive()), running[0]).join(0.005)
    ps.set_num_threads(None)
    assert not errors, errors
    return sum(caller.made for caller in callers)


def resident() -> int:
    """Resident memory in bytes."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
