"""Arguments that have another name now."""

from __future__ import annotations

from penstock._values.dtype import DType


def chosen_dtype(name: str, dtype: DType | None, old: DType | None) -> DType | None:
    """What `dtype` or, under its former name, `output_dtype` of an operator asks for."""
    if dtype is not None and old is not None:
        raise TypeError(f"{name}: `output_dtype` is the old name of `dtype`; give one of them.")
    return dtype or old
