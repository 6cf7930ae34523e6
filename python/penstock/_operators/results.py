"""What a definition's body returns: what is known of a result at the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock._operators.arguments import KEEP
from penstock._values.array import Array
from penstock._values.dtype import DType

if TYPE_CHECKING:
    from penstock._core import Promise


class Result:
    """What is known of a result at the call, and the kernel arguments that the body derived.

    Args:
        dtype: The element type; None if it depends on the data.
        ndim: The number of dimensions; None if it depends on the data.
        layout: The layout; None for none.
        kernel: Kernel arguments that the body has derived.
    """

    __slots__ = ("dtype", "kernel", "layout", "ndim")

    def __init__(
        self, dtype: DType | None, ndim: int | None, layout: str | None = None, **kernel: Any
    ) -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.layout = layout
        self.kernel = kernel

    def promise(self, layout: str | None) -> Promise:
        """Element type, rank and layout, for the engine."""
        return None if self.dtype is None else self.dtype._code, self.ndim, self.layout


class Like(Result):
    """A result with the element type, rank and layout of an input, except for what is given."""

    __slots__ = ("input",)

    def __init__(
        self,
        input: Array,
        dtype: DType | None = None,
        ndim: int | None = None,
        layout: str | None = KEEP,
        **kernel: Any,
    ) -> None:
        # Not by `super`, which would pack and unpack `kernel` once more in every call.
        self.dtype = dtype
        self.ndim = ndim
        self.layout = layout
        self.kernel = kernel
        self.input = input

    def promise(self, layout: str | None) -> Promise:
        """Element type, rank and layout; `layout` is the one assumed for an input without."""
        value = self.input._value
        return (
            value.dtype if self.dtype is None else self.dtype._code,
            value.ndim if self.ndim is None else self.ndim,
            (value.layout or layout) if self.layout is KEEP else self.layout,
        )


def in_frames(promise: Promise) -> Promise:
    """The promise for a sequence, from that for one of its frames."""
    dtype, ndim, layout = promise
    if layout is not None and layout.startswith("F"):
        return promise
    return dtype, None if ndim is None else ndim + 1, None if layout is None else f"F{layout}"
