"""The actor that makes batches, in a process of Ray."""

from __future__ import annotations

import os
import pickle
import platform
import time
from typing import Any, NamedTuple

from penstock import __version__
from penstock._ray.request import WHAT, Outcome, Request, carry_out


class About(NamedTuple):
    """What a worker says about itself when it has begun.

    Args:
        node: The address of its node.
        process: The number of its process there.
        versions: Those that results depend on.
        data: The fingerprint of the data set, as it finds it.
        num_threads: How many threads operators have.
        problem: Why it can't work.
    """

    node: str
    process: int
    versions: dict[str, str]
    data: str = ""
    num_threads: int = 0
    problem: str = ""


class Answer(NamedTuple):
    """An outcome on its way to the trainer.

    Args:
        pickled: The outcome, without its large buffers.
        buffers: Those, as arrays, which Ray hands over in shared memory.
        seconds: How long the worker took.
    """

    pickled: bytes
    buffers: list[Any]
    seconds: float

    def outcome(self) -> Outcome:
        """The outcome, whose arrays share the memory of the object store."""
        made: Outcome = pickle.loads(self.pickled, buffers=self.buffers)
        return made


def versions() -> dict[str, str]:
    """What must be equal in all processes."""
    return {"penstock": __version__, "Python": platform.python_version()}


class Worker:
    """Makes the batches that it is asked for. Has no state but what it was begun with."""

    def begin(self, pickled: bytes, expected: dict[str, str]) -> About:
        """Open the data set; to be called once, first.

        Args:
            pickled: The loop and the reader.
            expected: The versions of the trainer.
        """
        import ray

        about = About(ray.util.get_node_ip_address(), os.getpid(), versions())
        if about.versions != expected:
            # What was pickled there may mean something else here.
            return about
        from penstock._runtime.threads import get_num_threads

        try:
            loop, reader = ray.cloudpickle.loads(pickled)
            self._loop, self._reader = loop, reader
            data = reader._fingerprint()
        except Exception as error:
            return about._replace(problem=f"{type(error).__name__}: {error}")
        return about._replace(data=data, num_threads=get_num_threads())

    def make(self, request: Request) -> Answer:
        """A batch."""
        start = time.monotonic()
        outcome = carry_out(self._loop, self._reader, request)
        if outcome.error is not None:
            return _failed(outcome, start)
        try:
            # Waits for the batch, and raises what went wrong with it.
            return _answer(outcome, start)
        except Exception as error:
            return _failed(Outcome(error=error, errors=outcome.errors), start)


def _answer(outcome: Outcome, start: float) -> Answer:
    import numpy as np
    import ray

    buffers: list[pickle.PickleBuffer] = []
    pickled = ray.cloudpickle.dumps(outcome, protocol=5, buffer_callback=buffers.append)
    arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
    return Answer(pickled, arrays, time.monotonic() - start)


def _failed(outcome: Outcome, start: float) -> Answer:
    error = outcome.error
    try:
        answer = _answer(outcome, start)
        answer.outcome()
    except Exception:
        text = f"{WHAT}: in a worker: {type(error).__name__}: {error}"
        return _answer(outcome._replace(error=RuntimeError(text)), start)
    return answer
