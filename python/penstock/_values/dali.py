"""Constants and types of NVIDIA's package, recognized by their names without importing it."""

from __future__ import annotations

from typing import Any

from penstock.types import DALIDataType, DALIImageType, DALIInterpType

_PACKAGE = "nvidia.dali."
_CONSTANTS = {kind.__name__: kind for kind in (DALIDataType, DALIImageType, DALIInterpType)}


def constant(item: Any) -> Any:
    """The constant of `penstock.types` for one of `nvidia.dali.types`; other objects as they are.

    Types that only NVIDIA's package has stay as they are, too.
    """
    kind = _CONSTANTS.get(type(item).__name__)
    if kind is None or not type(item).__module__.startswith(_PACKAGE):
        return item
    try:
        return kind(int(item))
    except ValueError:
        return item


def type_name(item: Any) -> str | None:
    """The name of a `DType` of NVIDIA's package; None for anything else."""
    kind = type(item)
    if kind.__name__ != "DType" or not kind.__module__.startswith(_PACKAGE):
        return None
    return str(item.name)
