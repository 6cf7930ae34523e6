"""Programs in a process of their own, where what happens to the process can't hurt the tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_fresh(
    program: Callable[[], None], *, timeout: float = 30
) -> subprocess.CompletedProcess[str]:
    """Run a function of a module in a new interpreter, and return what became of it.

    Dumps all stacks of a program that hangs.
    """
    source = (
        "import faulthandler\n"
        f"faulthandler.dump_traceback_later({timeout - 2}, exit=True)\n"
        f"from {program.__module__} import {program.__qualname__} as program\n"
        "program()\n"
    )
    command = [sys.executable, "-X", "faulthandler", "-c", source]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)


def check_fresh(program: Callable[[], None], *, timeout: float = 30) -> str:
    """Run a function in a new interpreter, which must end well and say nothing on stderr."""
    done = run_fresh(program, timeout=timeout)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.stderr == ""
    return done.stdout
