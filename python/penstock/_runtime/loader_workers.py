"""The worker processes of PyTorch's DataLoader, as seen from inside."""

from __future__ import annotations

import sys


def worker() -> tuple[int, int]:
    """Which worker of a DataLoader this process is, and of how many; of 0 if it is none."""
    asked = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
    info = None if asked is None else asked()
    return (0, 0) if info is None else (info.id, info.num_workers)
