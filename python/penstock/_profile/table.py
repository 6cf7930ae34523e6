"""A profile as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock._runtime.profile import profile

_HEAD = (
    "operator",
    "calls",
    "ahead",
    "samples",
    "wall ms",
    "share",
    "cpu ms",
    "MB",
    "waited ms",
    "lines",
)
_MOST_LINES = 3
_MOST_REASONS = 3


def table(recorded: profile) -> str:
    """A row per operator, and what limits the speed."""
    rows = [_HEAD]
    operators = recorded.operators
    whole = sum(row.wall_time for row in operators) or 1.0
    for row in operators:
        lines = row.lines[:_MOST_LINES] + ["..."] * (len(row.lines) > _MOST_LINES)
        rows.append(
            (
                row.name,
                f"{row.calls:,}",
                f"{row.ahead:,}",
                f"{row.samples:,}",
                f"{row.wall_time * 1e3:,.1f}",
                f"{100 * row.wall_time / whole:.0f} %",
                f"{row.cpu_time * 1e3:,.1f}",
                f"{row.bytes / 1e6:,.1f}",
                f"{row.wait_time * 1e3:,.1f}",
                ", ".join(lines),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    texts = []
    for row_texts in rows:
        cells = [
            text.ljust(width) if column in (0, len(_HEAD) - 1) else text.rjust(width)
            for column, (text, width) in enumerate(zip(row_texts, widths, strict=True))
        ]
        texts.append("  ".join(cells).rstrip())
    texts.append("")
    texts.append(
        f"{recorded.duration:.2f} s, of which the loop waited {recorded.wait_time:.2f} s; "
        f"{recorded.batches:,} batches."
    )
    texts += _run_ahead(recorded)
    texts.append(recorded.bottleneck)
    return "\n".join(texts)


def _run_ahead(recorded: profile) -> list[str]:
    """What was run ahead; nothing if no loop did."""
    ahead = recorded.run_ahead
    texts = []
    if ahead.predicted or ahead.used or ahead.dropped:
        texts.append(
            f"Run ahead: {ahead.predicted:,} calls predicted, {ahead.used:,} used, "
            f"{ahead.dropped:,} dropped."
        )
    texts += [f"Not run ahead: {reason}." for reason in ahead.not_predicted[:_MOST_REASONS]]
    if len(ahead.not_predicted) > _MOST_REASONS:
        texts.append(f"(`run_ahead.not_predicted` has {len(ahead.not_predicted)} reasons.)")
    return texts
