"""Which element types operators take, found by calling each of them with all."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import penstock as ndd
from penstock.errors import InternalError
from tests.calls import CALLS, ENCODED, Call

TYPES = {
    "bool": np.bool_,
    **{f"int{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
}
"""NumPy's types by the names that penstock has for them."""


@functools.cache
def taken(name: str) -> tuple[str, ...] | None:
    """The element types that an operator takes; None if its data is bytes, or if it has none."""
    call = CALLS[name]
    if not call.inputs or call.inputs[0] in ENCODED:
        return None
    with _temporary_folder():  # for operators that write files
        return tuple(each for each in TYPES if takes(call, each))


def takes(call: Call, dtype: str) -> bool:
    """Whether a typical call works with data of a type."""
    first = call.inputs[0]
    try:
        data = ndd.batch(
            [first.sample(number).astype(TYPES[dtype]) for number in range(2)], layout=first.layout
        )
        made = call(*(data if kind is first else kind.batch(2) for kind in call.inputs))
        for result in made if isinstance(made, tuple) else (made,):
            result.evaluate()
    except InternalError:
        raise
    except (ValueError, RuntimeError, TypeError):
        return False
    return True


@contextlib.contextmanager
def _temporary_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
