"""The connection to Ray, and the errors about it."""

from __future__ import annotations

import os
import socket
from typing import Any

from penstock._errors import messages
from penstock._ray.request import WHAT

_REMEDY = (
    "Call `ray.init()` for a cluster of this machine alone, `ray.init(address=...)` for one that "
    "is running, or set RAY_ADDRESS. With `workers=0` none is needed."
)


def connect() -> Any:
    """The module `ray`, connected to a cluster."""
    try:
        import ray
    except ImportError:
        raise RuntimeError(
            f"{WHAT} with `workers` requires Ray: `pip install 'penstock[ray]'`."
        ) from None
    if ray.is_initialized():
        return ray
    address = os.environ.get("RAY_ADDRESS", "").strip()
    if not address:
        raise RuntimeError(f"{WHAT}: this process is not connected to a Ray cluster. {_REMEDY}")
    if not _answers(address):
        raise ConnectionError(
            f"{WHAT}: no Ray cluster answers at {address}, the address in RAY_ADDRESS. {_REMEDY}"
        )
    try:
        ray.init(address=address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConnectionError(
            f"{WHAT}: can't connect to the Ray cluster at {address}, the address in RAY_ADDRESS: "
            f"{error}"
        ) from None
    return ray


def _answers(address: str) -> bool:
    """Whether something listens there. Ray itself would try for a minute."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator or not port.isdigit():
        return True  # "auto", "local" and the like
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError):
        return False
    return True


def not_picklable(name: str, thing: Any, error: Exception) -> TypeError:
    """The error about an argument that can't be sent to workers."""
    shown = messages.describe(thing) if name != "loop" else getattr(thing, "__name__", repr(thing))
    return TypeError(
        f"{WHAT}: `{name}` ({shown}) can't be pickled, so that it can't be sent to workers: "
        f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else error!r}. Create "
        "locks, files, models and the like inside of the function, or at the top of a module that "
        "workers import."
    )
