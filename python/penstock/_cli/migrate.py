"""`penstock migrate`: pipelines of DALI as loops."""

from __future__ import annotations

import argparse
import difflib
import sys

from penstock._cli.files import check
from penstock._cli.lint import source
from penstock._cli.terminal import Problem, count

HELP = "Rewrite a program of DALI's pipeline mode for dynamic mode."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="a Python file")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="FILE", help="save the result here")
    where.add_argument("-w", "--write", action="store_true", help="replace the file")
    where.add_argument("--diff", action="store_true", help="show the changes only")


def run(given: argparse.Namespace) -> int:
    """Print the rewritten program, and on stderr what is left to do."""
    check(given.file)
    text = source(given.file)
    try:
        from penstock._migrate import migrate
    except ImportError:
        raise Problem("this needs libcst: pip install 'penstock[migrate]'") from None
    changed, remarks = migrate(text)
    if given.diff:
        lines = difflib.unified_diff(
            text.splitlines(True), changed.splitlines(True), given.file, f"{given.file} (migrated)"
        )
        print("".join(lines), end="")
    elif given.write or given.output is not None:
        with open(given.output or given.file, "w", encoding="utf-8") as file:
            file.write(changed)
    else:
        print(changed, end="")
    if changed == text:
        print(f"{given.file}: nothing of DALI's pipeline mode was found", file=sys.stderr)
    elif remarks:
        said = f"{count(remarks, 'place')} to look at; search for TODO(penstock)"
        print(f"{given.file}: {said}", file=sys.stderr)
    return 0
