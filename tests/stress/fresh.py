"""Programs in separate processes, so that they can't harm the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """The exit code and output of a program."""

    code: int
    stdout: str
    stderr: str


def run_fresh(program: Callable[[], None], *, timeout: float = 30) -> Done:
    """Run a function of a module in a new interpreter, and return the outcome.

    A program that hangs prints its stacks. Whatever it started is ended with it.
    """
    source = f"from {program.__module__} import {program.__qualname__} as program; program()"
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", source],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        try:
            stdout, stderr = process.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
        stderr = f"{stderr}\n(hung for {timeout} s)"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return Done(process.returncode, stdout, stderr)


def check_fresh(program: Callable[[], None], *, timeout: float = 30) -> str:
    """Run a function in a new interpreter, which must succeed and print nothing to stderr."""
    done = run_fresh(program, timeout=timeout)
    assert done.code == 0, f"exit code {done.code}\n{done.stdout}\n{done.stderr}"
    assert done.stderr == "", done.stderr
    return done.stdout
