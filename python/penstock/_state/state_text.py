"""States as texts, which survive every way of storing a text."""

from __future__ import annotations

import codecs
from typing import Any


class StateText(str):
    """A state, to be given to another object of its kind. Pickled, it is a plain text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # `torch.load(weights_only=True)` calls few functions, and this is the one that returns a
        # text. Encoded twice it is what it was.
        return codecs.encode, (codecs.encode(str(self), "rot_13"), "rot_13")
