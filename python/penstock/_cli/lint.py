"""`penstock lint`: mistakes in programs that can be seen without running them."""

from __future__ import annotations

import argparse
import json
import os

from penstock._cli.files import find
from penstock._cli.terminal import Problem, count
from penstock._lint import RULES, Finding, check

HELP = "Find common mistakes in programs that use penstock or DALI's dynamic mode."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("paths", nargs="*", metavar="FILE|DIR", help="Python files, or folders")
    parser.add_argument("--select", metavar="PS001,...", help="report these rules only")
    parser.add_argument("--ignore", metavar="PS001,...", help="leave these rules out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rules", action="store_true", help="list the rules")


def run(given: argparse.Namespace) -> int:
    """Report; the exit code is 1 if there are findings."""
    if given.rules:
        for code, text in RULES.items():
            print(f"{code}  {text}")
        return 0
    if not given.paths:
        raise Problem("give a file or a folder")
    selected = _codes(given.select, "--select") or set(RULES)
    selected -= _codes(given.ignore, "--ignore")
    findings: list[Finding] = []
    files = [file for path in given.paths for file in _python_files(path)]
    for file in files:
        findings += [found for found in _check(file) if found.code in selected]
    if given.json:
        print(json.dumps([found._asdict() for found in findings], indent=2))
        return int(bool(findings))
    for found in findings:
        print(f"{found.file}:{found.line}:{found.column}: {found.code} {found.message}")
    if findings:
        print(f"Found {count(len(findings), 'mistake')} in {count(len(files), 'file')}.")
    else:
        print(f"No mistakes found in {count(len(files), 'file')}.")
    return int(bool(findings))


def _codes(text: str | None, option: str) -> set[str]:
    codes = set() if text is None else {word.strip().upper() for word in text.split(",")}
    if unknown := sorted(codes - RULES.keys()):
        raise Problem(f"{option}: no such rule: {unknown[0]} (--rules lists them)")
    return codes


def _python_files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return find(path)
    files = [file for file in find(path) if file.endswith(".py")]
    if not files:
        raise Problem(f"the folder has no Python files: {path}")
    return files


def _check(file: str) -> list[Finding]:
    return check(source(file), file)


def source(file: str) -> str:
    """The text of a Python file, which must be valid Python."""
    import ast
    import tokenize

    try:
        with tokenize.open(file) as opened:
            text = opened.read()
        ast.parse(text, file)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise Problem(f"{file}{line} is not valid Python: {what}") from None
    return text
