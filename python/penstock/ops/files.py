"""Files.

Reading files by name.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from penstock._operators.definition import Data, Result, operator
from penstock._values.dtype import uint8


def is_text(name: Any) -> bool:
    """Whether that is a file name as Python programs write it."""
    return isinstance(name, str | bytes | os.PathLike)


def in_rows(names: Any) -> Any:
    """File names as arrays of bytes: one, or a batch for a list of them."""
    from penstock._values.batch import batch

    if is_text(names):
        return _row(names)
    if not isinstance(names, list | tuple) or not names:
        return names
    if all(map(is_text, names)):
        return batch([_row(name) for name in names])
    if any(map(is_text, names)):
        raise TypeError("a list of names must be all texts, or all rows of bytes")
    if all(hasattr(name, "__array__") or hasattr(name, "__dlpack__") for name in names):
        # NumPy's scalars are arrays, too: a list of them is one name.
        return names if any(map(np.isscalar, names)) else batch(list(names))
    return names


def _row(name: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(os.fsencode(name), np.uint8)


@operator(namespace="io.file", kernel="read_file", devices="cpu", convert_input=in_rows)
def read(filepaths: Data, *, dont_use_mmap: bool = False, use_o_direct: bool = False) -> Result:
    """Read whole files.

    Args:
        filepaths: A file name: a string, a path, or its bytes as a 1-D uint8 array; for a batch, a
            list or a batch of them. URLs such as `s3://bucket/name` are read with the credentials
            of the environment.
        dont_use_mmap: Ignored: files are always read, never mapped.
        use_o_direct: Ignored: files are read through the page cache.

    Example:
        >>> bytes(ndd.io.file.read("/proc/version").torch().tolist()[:5])
        b'Linux'
    """
    return Result(uint8, 1)
