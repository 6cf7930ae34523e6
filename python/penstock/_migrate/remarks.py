"""Comments for what a person must look at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import libcst as cst

REMARK = "# TODO(penstock): "

Statement = TypeVar("Statement", cst.SimpleStatementLine, cst.FunctionDef, cst.ClassDef, cst.With)


def remark(text: str) -> cst.EmptyLine:
    """A line with a comment."""
    return cst.EmptyLine(comment=cst.Comment(REMARK + text))


def with_remarks(statement: Statement, texts: Iterable[str]) -> Statement:
    """A statement with comments above it."""
    lines = [*statement.leading_lines, *map(remark, dict.fromkeys(texts))]
    return statement.with_changes(leading_lines=lines)
