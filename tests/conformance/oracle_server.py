"""Answers conformance cases with DALI, from an environment of its own.

Run as `python -m tests.conformance.oracle_server`. A request is a pickled
`(source, inputs, twice)`, where the inputs are pickled themselves. The response is a pickled
`(answer, reproducible)`, where the answer is what `case.evaluate` gives, pickled as well. With
`twice`, the source runs a second time to see whether it gives the same. Each message comes after
its length in eight bytes. The first one, sent once DALI is imported, is its version.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import warnings
from typing import Any, BinaryIO

LENGTH = struct.Struct("<Q")


def send(pipe: BinaryIO, message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(LENGTH.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """The next message; EOFError when the other side has closed the pipe."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    return pickle.loads(pipe.read(LENGTH.unpack(head)[0]))


def serve() -> None:
    # Output of native code must not end up between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    warnings.simplefilter("ignore")
    import nvidia.dali as dali
    import nvidia.dali.experimental.dynamic as ndd
    from nvidia.dali import types

    from tests.conformance.case import evaluate

    send(answers, dali.__version__)
    while True:
        try:
            source, inputs, twice = receive(sys.stdin.buffer)
        except EOFError:
            return
        # The inputs are unpickled for each run, as a source may change them.
        answer, *others = (
            pickle.dumps(
                evaluate(source, ndd, types, pickle.loads(inputs)), pickle.HIGHEST_PROTOCOL
            )
            for _ in range(2 if twice else 1)
        )
        send(answers, (answer, all(other == answer for other in others)))


if __name__ == "__main__":
    serve()
