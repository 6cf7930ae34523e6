"""What a format gives to its reader: a source, which has the samples by number.

All formats share one class, `_core.Source`. A new format is a file in `src/readers` that opens one,
and a module here with a `Reader` whose `_open` calls `open_source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock import _core
from penstock._core import Source as Source
from penstock._errors import messages
from penstock._errors.sentences import sentence
from penstock._operators.call_sites import here
from penstock._runtime.context import EvalContext
from penstock._values.array import wrap
from penstock.readers._base import remote
from penstock.readers._base.io_pool import io_pool, remote_pool
from penstock.readers._base.paths import is_url
from penstock.readers._base.rows import Numbers

if TYPE_CHECKING:
    from penstock._core import Value


def open_source(
    what: str, format: str, arguments: Mapping[str, str], hint: str = "", /, **options: Any
) -> Source:
    """The samples of a data set, or an error that names the file that can't be read.

    Args:
        what: The reader, for messages.
        format: The format, as `src/readers/mod.rs` lists it.
        arguments: For options that name files, the reader's arguments that they come from.
        hint: Added to the error if the contents of a file are the problem.
        **options: What the format needs to open the data set.
    """
    try:
        return _core.open_source(what, format, options, remote.current.get())
    except ValueError as error:
        option, path, problem, system = error.args
        text = f"can't be used: {path}: {sentence(problem)}"
        if hint and not system:
            text += f"; {hint}"
        raise messages.cant_read(what, arguments.get(option, option), text, system=system) from None


def fetch(
    source: Source, numbers: Numbers, batch: bool, epochs: int | Numbers
) -> tuple[Value, ...]:
    """Values of samples: batches, or single ones. Does not wait for them.

    Args:
        source: The data set.
        numbers: Which samples.
        batch: Whether they are a batch.
        epochs: The epoch of all samples, or that of each.
    """
    values = source.fetch(numbers, batch, here(), pool_of(source))
    # RNGs by sample draw by this.
    _core.given_together(values, numbers, epochs)
    return values


def contents(what: str, argument: str, path: str) -> bytes:
    """A whole file that describes a data set. Waits for it.

    Args:
        what: The reader, for messages.
        argument: The argument that the name comes from.
        path: The name of the file, which may be a URL.
    """
    if not is_url(path):
        with open(path, "rb") as file:
            return file.read()
    source = open_source(what, "files", {"files": argument}, files=[path], root="")
    value, *_ = source.fetch(np.zeros(1, np.int64), False, here(), pool_of(source))
    return np.asarray(wrap(value)).tobytes()


def pool_of(source: Source) -> _core.Pool:
    """The threads that read the samples of a data set."""
    if source.computes:
        # Decoding is for the threads that compute, of which there are as many as CPUs.
        return EvalContext.current()._native_pool()
    return remote_pool() if source.is_remote else io_pool()
