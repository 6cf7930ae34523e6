"""Reading image files: `io.file.read` and `decoders.image` in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock import _core, _errors
from penstock._array import Array, wrap
from penstock._sites import here
from penstock.ops.files import read
from penstock.readers.pool import io_pool


def imread(filepaths: Any, /, **decoding: Any) -> Any:
    """Read image files and decode them.

    Args:
        filepaths: The name of a file, as a text, a path or a row of bytes (uint8), for one image;
            a list of names, or a batch of rows of bytes, for a batch of images.
        decoding: `device` and all other arguments of `decoders.image`.
    """
    return _decoders().image(_encoded(filepaths), **decoding)


def _decoders() -> Any:
    import penstock

    return penstock.decoders


def _encoded(names: Any) -> Array:
    """What is in the files."""
    if isinstance(names, str | bytes | os.PathLike):
        return _read([names], batch=False)
    if isinstance(names, Sequence) and all(
        isinstance(name, str | bytes | os.PathLike) for name in names
    ):
        if not names:
            raise ValueError("imread: there must be at least one file name, got an empty list.")
        return _read(names, batch=True)
    if names is None or isinstance(names, Sequence | int | float):
        raise _errors.wrong_argument(
            "imread", "filepaths", names, "a file name, a list of them, or names as uint8"
        )
    found: Array = read(names)
    return found


def _read(names: Sequence[Any], *, batch: bool) -> Array:
    files = _core.Files.named("", [os.fsdecode(name) for name in names])
    numbers = np.arange(len(names), dtype=np.int64)
    made: Array = wrap(files.read("imread", numbers, batch, here(), io_pool()))
    return made
