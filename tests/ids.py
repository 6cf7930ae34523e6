"""Names of test cases."""

from __future__ import annotations

import re
from typing import Any


def steady_repr(value: Any) -> str:
    """`repr` without addresses: processes that share tests must agree on their names."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
