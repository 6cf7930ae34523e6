"""The number of CPUs this process may use: its affinity, limited by the container's quota."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def usable_cpus() -> int:
    """CPUs in the process's affinity mask, at most its CPU quota (rounded up)."""
    count = _affinity()
    quota = cpu_quota()
    return count if quota is None else min(count, quota)


def cpu_quota(proc: Path = Path("/proc/self")) -> int | None:
    """The tightest CPU quota of the process's control groups, in whole CPUs; None without one.

    A quota of any ancestor applies, so each group is followed up to its mount point.
    """
    quotas = [quota for group in _groups(proc) if (quota := _group_quota(group)) is not None]
    # Rounded up: 1.5 CPUs' worth of time is best used by two threads.
    return max(1, min(-(-quota // period) for quota, period in quotas)) if quotas else None


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _groups(proc: Path) -> Iterator[Path]:
    """Folders of the groups (v1 `cpu` and v2) that this process is in, innermost first."""
    try:
        memberships = (proc / "cgroup").read_text().splitlines()
        mounts = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return
    paths = {}  # by controller; v2 has one path for all, under the name ""
    for line in memberships:
        _, controllers, group = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), PurePosixPath(group)))
    for line in mounts:
        fields, _, filesystem = line.partition(" - ")
        kind, _, options = filesystem.split(" ", 2)
        if kind == "cgroup2":
            path = paths.get("")
        elif kind == "cgroup" and "cpu" in options.split(","):
            path = paths.get("cpu")
        else:
            continue
        root, mount_point = fields.split(" ")[3:5]
        if path is not None:
            yield from _up_to_mount(path, PurePosixPath(root), Path(mount_point))


def _up_to_mount(path: PurePosixPath, root: PurePosixPath, mount_point: Path) -> Iterator[Path]:
    # In a container the mount shows only the tree below `root`, while the path may start at the
    # host's root (without a cgroup namespace): a path not below `root` is the mount itself.
    inside = path.relative_to(root) if path.is_relative_to(root) else PurePosixPath()
    yield mount_point / inside
    for parent in inside.parents:
        yield mount_point / parent


def _group_quota(group: Path) -> tuple[int, int] | None:
    """(quota, period) in microseconds; None if the group has no limit."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        limit = int(quota), int(period)
    except (OSError, ValueError):  # no such file, or the word "max"
        return None
    return limit if limit[0] > 0 and limit[1] > 0 else None
