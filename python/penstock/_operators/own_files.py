"""Which files of code are of this package."""

from __future__ import annotations

import os

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_inside(file: str) -> bool:
    """Whether a file of code is of this package."""
    return file.startswith(PACKAGE)
