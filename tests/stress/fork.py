"""Forked children with a time limit: one that hangs is killed, and prints its stacks."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable


def fork(work: Callable[[], object]) -> int:
    """Run `work` in a forked child, and return its process id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return pid


def join(pid: int, timeout: float = 20) -> None:
    """Wait for a child, which must succeed."""
    deadline = time.monotonic() + timeout
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"the child ended with status {status}"
            return
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGABRT)  # with `-X faulthandler` it prints its stacks
            os.waitpid(pid, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.002)


def fork_and_join(work: Callable[[], object]) -> None:
    """Run `work` in a forked child, which must succeed."""
    join(fork(work))
