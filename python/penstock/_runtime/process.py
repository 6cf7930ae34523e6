"""The engine at forks and at the interpreter's shutdown."""

from __future__ import annotations

import atexit
import os

from penstock import _core
from penstock._operators import call_sites
from penstock._runtime import threads as _threads
from penstock.errors import InternalError

# Panics in native code, even outside of kernels, can be caught as InternalError.
_core.PanicException.__bases__ = (InternalError,)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_core.fork_prepare, after_in_parent=_core.fork_parent)
    os.register_at_fork(after_in_child=call_sites.after_fork)
    os.register_at_fork(after_in_child=_threads.after_fork)

# Runs while the interpreter still works, so that user functions on worker threads can finish.
atexit.register(_core.shut_down)
