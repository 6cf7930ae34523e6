"""Common mistakes, found in the syntax of a program."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from penstock._lint.mistakes import Mistakes
from penstock._lint.names import imported
from penstock._lint.rules import RULES as RULES


class Finding(NamedTuple):
    """A mistake in a line of a program."""

    file: str
    line: int
    column: int
    code: str
    message: str


def check(text: str, file: str = "<text>") -> list[Finding]:
    """The mistakes in a program, in the order of its lines.

    A line with the comment `# noqa` has none; `# noqa: PS001` leaves out those of one rule.
    """
    tree = ast.parse(text, file)
    names = imported(tree)
    if not names:
        return []
    finder = Mistakes(names)
    finder.visit(tree)
    lines = text.splitlines()
    found = []
    for node, code, message in finder.found:
        if not _is_excused(lines[node.lineno - 1], code):
            found.append(Finding(file, node.lineno, node.col_offset + 1, code, message))
    return sorted(set(found), key=lambda finding: finding[1:4])


def _is_excused(line: str, code: str) -> bool:
    noted = re.search(r"#\s*noqa(?::\s*(?P<codes>[A-Z0-9, ]+))?", line)
    if noted is None:
        return False
    codes = noted["codes"]
    return codes is None or code in re.split(r"[,\s]+", codes.strip())
