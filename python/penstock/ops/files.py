"""Reading files by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock import _core
from penstock._array import Array, wrap
from penstock._define import Data, Result, operator
from penstock._dtype import uint8
from penstock._sites import here


@operator(namespace="io.file", kernel="read_file", devices="cpu")
def read(filepaths: Data, *, dont_use_mmap: bool = False, use_o_direct: bool = False) -> Result:
    """Read whole files.

    Args:
        filepaths: The name of a file as a row of bytes (uint8); in a batch, one for each sample.
        dont_use_mmap: Without effect: files are always read, never mapped.
        use_o_direct: Without effect: files are read through the system's cache.

    Example:
        >>> name = tensor(list(b"/proc/version"), dtype=uint8)
        >>> bytes(io.file.read(name).torch().tolist()[:5])
        b'Linux'
    """
    return Result(uint8, 1)


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
    found: Array = read(names)
    return found


def _read(names: Sequence[Any], *, batch: bool) -> Array:
    from penstock.readers.base import io_pool

    files = _core.Files.named("", [os.fsdecode(name) for name in names])
    numbers = np.arange(len(names), dtype=np.int64)
    made: Array = wrap(files.read("imread", numbers, batch, here(), io_pool()))
    return made
