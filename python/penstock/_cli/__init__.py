"""The command line: one module per command, with HELP, `add_arguments` and `run`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from penstock._cli.terminal import Problem

COMMANDS = ("doctor", "inspect", "view", "bench", "index", "lint", "migrate", "completion")
"""In the order of the help text. A command's module has its name."""

FOUND = 1
"""The exit code when a command has found something wrong: broken files, mistakes, a failed test."""
UNABLE = 2
"""The exit code when a command can't do its work, as argparse has it for wrong arguments."""
_INTERRUPTED = 130
_CLOSED_PIPE = 141


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    from penstock import __version__

    made = argparse.ArgumentParser(
        prog="penstock", description="Look at data sets, measure loading, and migrate from DALI."
    )
    made.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"penstock._cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Names of files may have letters, or bytes, that the terminal can't show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    given = parser().parse_args(arguments)
    try:
        module = importlib.import_module(f"penstock._cli.{given.command}")
        code: int = module.run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Problem as problem:
        return _fail(given.command, str(problem))
    except OSError as error:
        where = f": {os.fsdecode(error.filename)}" if error.filename is not None else ""
        return _fail(given.command, f"{error.strerror or error}{where}")


def _fail(command: str, text: str) -> int:
    # Names of files may have line breaks.
    line = text.replace("\n", "\\n").replace("\r", "\\r")
    print(f"penstock {command}: {line}", file=sys.stderr)
    return UNABLE
