"""Text representation of tensors and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from penstock._values.array import Array

_INDENT = "    "
_EDGE = 2
_MANY_ELEMENTS = 1000
_MANY_SAMPLES = 5
_MANY_SHAPES = 16
_LONG_LINE = 75


def tensor_text(tensor: Array, array: Any, shape: tuple[int, ...]) -> str:
    """The text of one tensor."""
    return _frame(tensor, _numbers(array), f"shape={shape}")


def batch_text(batch: Array, arrays: list[Any], shapes: list[tuple[int, ...]]) -> str:
    """The text of a batch: its samples one after another."""
    texts: list[str]
    if len(arrays) > _MANY_SAMPLES and sum(array.size for array in arrays) > _MANY_ELEMENTS:
        texts = [_numbers(array) for array in arrays[:_EDGE]]
        texts += ["...", *(_numbers(array) for array in arrays[-_EDGE:])]
    else:
        texts = [_numbers(array) for array in arrays]
    ndim = batch.ndim
    joint = "," + "\n" * ndim + _INDENT if ndim else ", "
    listed = [str(shape) for shape in shapes]
    if len(listed) > _MANY_SHAPES:
        listed = [*listed[:_EDGE], "...", *listed[-_EDGE:]]
    shape = ", ".join(listed)
    if len(shape) > _LONG_LINE:
        shape = (", \n" + _INDENT + " " * len("shape=[")).join(listed)
    return _frame(
        batch, "[" + joint.join(texts) + "]", f"num_samples={len(shapes)}", f"shape=[{shape}]"
    )


def _numbers(array: Any) -> str:
    return np.array2string(array, prefix=_INDENT, edgeitems=_EDGE)


def _frame(array: Array, data: str, *tail: str) -> str:
    lines = [data, f"dtype={array.dtype}"]
    if array.layout:
        lines.append(f'layout="{array.layout}"')
    lines += [f'device="{array.device}"', *tail]
    text = f",\n{_INDENT}".join(lines)
    return f"{type(array).__name__}(\n{_INDENT}{text})"
