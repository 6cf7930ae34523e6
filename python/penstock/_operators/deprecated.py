"""Arguments that were renamed."""

from __future__ import annotations

from penstock._values.dtype import DType


def chosen_dtype(name: str, dtype: DType | None, old: DType | None) -> DType | None:
    """The value of `dtype`, or of `output_dtype`, its old name."""
    if dtype is not None and old is not None:
        raise TypeError(f"{name}: `output_dtype` is the old name of `dtype`; give one of them.")
    return dtype or old
