"""A warning for programs that draw one number where they mean one for each sample.

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
    """Mark a tensor with the operator that drew it."""
    drawn.__dict__["_drawn_by"] = operator
    return drawn


def is_marked(item: Any) -> bool:
    """Whether a tensor is marked."""
    return "_drawn_by" in item.__dict__


def warn(operator: str, item: Any, argument: str | None = None) -> None:
    """Warn that a marked tensor is used for a whole batch."""
    drawn_by = item.__dict__["_drawn_by"]
    use = "an operand" if argument is None else f"`{argument}`"
    call_sites.warn(
        f"{operator}: {use} is one draw of `{drawn_by}` for all samples of the batch. For a draw "
        f"of each sample's own, give `{drawn_by}` a `batch_size`; if one for all is meant, turn "
        "this off with `warnings.simplefilter('ignore', ndd.random.SharedDrawWarning)`.",
        SharedDrawWarning,
    )
