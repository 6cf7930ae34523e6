"""A hint for those who draw one number and mean one for each sample.

`random.coin_flip()` makes one tensor. Beside a batch it is the same for all samples, which is
rarely what an augmentation wants, and nothing else would tell. So what is drawn without a batch
size carries a note, and the call that uses it for a batch warns, once for a line.
"""

from __future__ import annotations

from typing import Any

from penstock._operators import call_sites


class SharedDrawWarning(UserWarning):
    """One random draw is used for all samples of a batch."""


def mark(drawn: Any, operator: str) -> Any:
    """Note by which operator a tensor was drawn."""
    drawn.__dict__["_drawn_by"] = operator
    return drawn


def is_marked(item: Any) -> bool:
    """Whether a tensor carries such a note."""
    return "_drawn_by" in item.__dict__


def warn(operator: str, item: Any, argument: str | None = None) -> None:
    """Tell that a tensor with a note is used for a whole batch."""
    drawn_by = item.__dict__["_drawn_by"]
    use = "an operand" if argument is None else f"`{argument}`"
    call_sites.warn(
        f"{operator}: {use} is one draw of `{drawn_by}` for all samples of the batch. For a draw "
        f"of each sample's own, give `{drawn_by}` a `batch_size`; if one for all is meant, turn "
        "this off with `warnings.simplefilter('ignore', ndd.random.SharedDrawWarning)`.",
        SharedDrawWarning,
    )
