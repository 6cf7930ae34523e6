"""Hugging Face: operators in the transforms of data sets, and in the collators of trainers.

Both call a function with the columns of some rows, and return what it makes of them as tensors of
PyTorch. Encoded images become a batch of bytes for `decoders.image`, decoded ones a batch of
pixels:

    import datasets
    import penstock as ndd

    def augment(columns):
        images = ndd.decoders.image(columns["image"])
        images = ndd.random_resized_crop(images, size=[224, 224])
        images = ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)
        return {"pixel_values": images, "labels": columns["label"]}

    data = datasets.load_dataset("imagefolder", data_dir="photographs", split="train")
    data = data.cast_column("image", datasets.Image(decode=False))

    data.set_transform(ndd.hf.transform(augment))  # rows are augmented when they are read, or
    loader = DataLoader(data, batch_size=64, collate_fn=ndd.hf.collator(augment))  # batch by batch

A `collator` is the faster one: it prepares a whole batch at a time, and its result needs no more
stacking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as _np

from penstock._errors import messages as _messages
from penstock._errors.tracebacks import public as _public
from penstock._public import attach as _attach
from penstock._values.array import Array as _Array
from penstock._values.batch import Batch as _Batch
from penstock._values.batch import batch as _batch
from penstock._values.tensor import Tensor as _Tensor

__all__ = ["collator", "transform"]

_Function = Callable[[dict[str, Any]], Any]


@_public
class transform:
    """A function on columns as a transform of a data set, for `set_transform` or `with_transform`.

    The function gets a dictionary of the columns of the rows that are read, and returns one. Each
    column that it returns has a value per row: a batch, or a list.

    These columns are batches:

    - Encoded images, of a feature `Image(decode=False)`, and other bytes or files: their bytes.
    - Images of PIL: pixels of the layout "HWC", in the mode of the image (palettes become RGB).
    - Numbers, int64 or float32, and arrays and lists of them, which may have different lengths.

    Others, such as texts, and columns in which something is missing, stay lists.

    Args:
        fn: The function. With one that can be pickled (not a lambda), the transform works in
            spawned workers of a DataLoader, too.

    Example:
        >>> import datasets
        >>> data = datasets.Dataset.from_dict({"x": [1, 2, 3]})
        >>> data.set_transform(ndd.hf.transform(lambda columns: {"y": columns["x"] * 10}))
        >>> data[1]
        {'y': tensor(20)}
    """

    def __init__(self, fn: _Function) -> None:
        self._fn = _checked("hf.transform", fn)

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """The function's result, for the columns of some rows."""
        if not isinstance(columns, Mapping):
            raise _messages.wrong_argument(
                "hf.transform", "columns", columns, "a dictionary of columns"
            )
        made = self._fn(_columns(columns))
        if not isinstance(made, Mapping):
            raise TypeError(
                "hf.transform: the function must return a dictionary of columns, got "
                f"{_messages.describe(made)}."
            )
        return {name: _rows(column) for name, column in made.items()}

    def __repr__(self) -> str:
        return f"hf.transform({_name(self._fn)})"


@_public
class collator:
    """A function on columns as the `collate_fn` of a DataLoader, or `data_collator` of a `Trainer`.

    The function gets a dictionary of the columns of a batch (see `transform`), and returns what the
    model gets. Batches and tensors in it become tensors of PyTorch.

    A `Trainer` removes the columns that the model doesn't know before the collator sees them,
    unless its arguments have `remove_unused_columns=False`.

    Args:
        fn: The function. With one that can be pickled (not a lambda), the collator works in
            spawned workers of a DataLoader, too.

    Example:
        >>> collate = ndd.hf.collator(lambda columns: {"y": columns["x"] * 10})
        >>> collate([{"x": 1}, {"x": 2}])
        {'y': tensor([10, 20])}
    """

    def __init__(self, fn: _Function) -> None:
        self._fn = _checked("hf.collator", fn)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """The function's result, for some rows."""
        from penstock._torch.convert import to_torch

        for row in rows:
            if not isinstance(row, Mapping) or row.keys() != rows[0].keys():
                raise TypeError(
                    "hf.collator: rows must be dictionaries with the same columns, got "
                    f"{_shown(rows[0])} and {_shown(row)}."
                )
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        return to_torch(self._fn(_columns(columns)))

    def __repr__(self) -> str:
        return f"hf.collator({_name(self._fn)})"


def _checked(what: str, fn: _Function) -> _Function:
    if not callable(fn):
        raise _messages.wrong_argument(what, "fn", fn, "a function")
    try:
        import torch  # noqa: F401
    except ImportError:
        raise RuntimeError(f"{what} requires PyTorch to be installed.") from None
    return fn


def _name(fn: _Function) -> str:
    return getattr(fn, "__name__", None) or repr(fn)


def _shown(row: Any) -> str:
    if isinstance(row, Mapping):
        return f"one with {', '.join(map(repr, row)) or 'no columns'}"
    return _messages.describe(row)


def _columns(columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    made = {}
    for name, values in columns.items():
        try:
            made[name] = _column(values)
        except (TypeError, ValueError) as error:
            raise type(error)(f"column {name!r}: {error}") from None
    return made


def _column(values: Any) -> Any:
    """A batch of the values of a column, if they are data; otherwise the values."""
    if isinstance(values, _Array):
        return values
    if not isinstance(values, list | tuple):
        return _batch(values) if hasattr(values, "__array__") else values
    if not values or any(value is None for value in values):
        return values
    first = values[0]
    if isinstance(first, dict):
        return _files(values) if first.keys() == {"bytes", "path"} else values
    if isinstance(first, bytes | bytearray | memoryview):
        return _batch([_np.frombuffer(value, _np.uint8) for value in values])
    if isinstance(first, str):
        return values
    if hasattr(first, "convert") and hasattr(first, "mode"):
        from penstock._torch.transform import channels_last

        return _batch([channels_last(value) for value in values])
    if isinstance(first, bool | int | float | _np.generic | list | tuple):
        rows = _numbers(values)
        return values if rows is None else _batch(rows)
    return _batch(list(values)) if hasattr(first, "__array__") else values


def _numbers(values: Sequence[Any]) -> list[_np.ndarray[Any, Any]] | None:
    """Numbers of Python, or lists of them, in the type that Hugging Face converts them to.

    That is int64 or float32. None if they are something else.
    """
    try:
        rows = [_np.asarray(value) for value in values]
    except ValueError:
        return None  # lists of different lengths inside of a row
    # An empty list says nothing about its type.
    types = [row.dtype for row in rows if row.size]
    dtype = _np.result_type(*types) if types else _np.dtype(_np.float32)
    if dtype.kind not in "biuf":
        return None
    dtype = _np.dtype(_np.float32) if dtype == _np.float64 else dtype
    return [row.astype(dtype) for row in rows]


def _files(values: Sequence[dict[str, Any]]) -> _Batch:
    """The contents of files, which are there, or in a file system."""
    from penstock.ops.files import read

    names = [value["path"] for value in values if value["bytes"] is None]
    if any(name is None for name in names):
        raise ValueError("an image has neither `bytes` nor a `path`.")
    contents = iter(read(names)) if names else iter(())
    return _batch(
        [
            next(contents) if value["bytes"] is None else _np.frombuffer(value["bytes"], _np.uint8)
            for value in values
        ]
    )


def _rows(column: Any) -> Any:
    """A column as tensors of PyTorch, one per row."""
    if isinstance(column, _Tensor):
        return column.torch()
    if not isinstance(column, _Batch):
        return column
    shapes = column.shape
    if shapes and all(shape == shapes[0] for shape in shapes):
        return column.torch()
    return [row.torch() for row in column]


_attach(__name__)
