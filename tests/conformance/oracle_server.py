"""Runs conformance cases with DALI, in its own environment.

Run as `python -m tests.conformance.oracle_server`. A request is a pickled `(source, inputs)`,
the answer what `case.evaluate` gives; both come after their length in eight bytes. The first
message, sent when DALI has been imported, is its version.
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
    """The next message; EOFError when the other side has gone."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    return pickle.loads(pipe.read(LENGTH.unpack(head)[0]))


def serve() -> None:
    # Native code that prints must not end up between the answers.
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
            source, inputs = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(answers, evaluate(source, ndd, types, inputs))


if __name__ == "__main__":
    serve()
