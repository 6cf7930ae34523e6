"""Reading image files: `io.file.read` and `decoders.image` in one call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._operators.call_sites import here
from penstock._runtime.context import EvalContext
from penstock._runtime.mode import EvalMode, current_mode
from penstock._values.array import Array, wrap
from penstock._values.tensor import tensor
from penstock.ops.decoders import image
from penstock.ops.files import in_rows, is_text, read
from penstock.readers._base import remote
from penstock.readers._base.remote import Storage
from penstock.readers._base.source import open_source, pool_of

__all__ = ["imread"]

_DECODING = {
    name: item
    for name, item in inspect.signature(image).parameters.items()
    if item.kind is item.KEYWORD_ONLY
}


@public
def imread(filepaths: Any, /, **decoding: Any) -> Any:
    """Read image files and decode them.

    Args:
        filepaths: For one image, a file name: a string, a path, or its bytes as a 1-D uint8 array;
            for a batch, a list or a batch of them.
        **decoding: Keyword arguments of `decoders.image`; and `storage_options` for files that
            are named by URLs, as readers take it.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Image.new("RGB", (40, 20), "red").save(f"{folder}/red.png")
        ...     ndd.imread(f"{folder}/red.png").shape
        (20, 40, 3)
    """
    storage = None
    if "storage_options" in decoding:
        storage = remote.checked("imread", decoding.pop("storage_options"), None, None)
    if unknown := [name for name in decoding if name not in _DECODING]:
        raise messages.unknown_argument("imread", unknown, [*_DECODING, "storage_options"])
    return image(_encoded(filepaths, storage), **decoding)


# Shown by `help` and editors.
imread.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("filepaths", inspect.Parameter.POSITIONAL_ONLY),
        *_DECODING.values(),
        inspect.Parameter("storage_options", inspect.Parameter.KEYWORD_ONLY, default=None),
    ]
)


def _encoded(names: Any, storage: Storage | None) -> Array:
    """The contents of the files."""
    if is_text(names):
        return _read([names], storage, batch=False)
    if isinstance(names, Sequence) and all(map(is_text, names)):
        if not names:
            raise ValueError("imread: there must be at least one file name, got an empty list.")
        return _read(names, storage, batch=True)
    try:
        rows = in_rows(names)
    except (TypeError, ValueError) as error:
        raise messages.in_operator("imread", error, "filepaths") from None
    if rows is None or isinstance(rows, Sequence | int | float):
        raise messages.wrong_argument(
            "imread", "filepaths", names, "a file name, a list of them, or names as uint8"
        )
    if current_mode() is EvalMode.deferred and not isinstance(rows, Array):
        # Copy, because the caller may modify the memory before the deferred read.
        rows = tensor(rows)
    found: Array = read(rows)
    return found


def _read(names: Sequence[Any], storage: Storage | None, *, batch: bool) -> Array:
    files = [os.fsdecode(name) for name in names]
    with remote.using(storage):
        source = open_source("imread", "files", {"files": "filepaths"}, files=files, root="")
    numbers = np.arange(len(names), dtype=np.int64)
    is_deferred = current_mode() is EvalMode.deferred
    made = source.fetch(numbers, batch, here(), pool_of(source), is_deferred)[0]
    if is_deferred:
        EvalContext.current()._defer(made)
    return wrap(made)
