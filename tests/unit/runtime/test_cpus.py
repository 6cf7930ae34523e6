import os

import pytest

from penstock._runtime import cpus as _cpus
from penstock._runtime.cpus import cpu_quota, usable_cpus


@pytest.fixture
def machine(tmp_path):
    """Writes a /proc/self and control group files; mounts are (kind, options, root, folder)."""
    proc = tmp_path / "proc"
    proc.mkdir()

    def build(memberships, mounts, files):
        (proc / "cgroup").write_text("".join(f"{line}\n" for line in memberships))
        (proc / "mountinfo").write_text(
            "25 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
            + "".join(
                f"30 25 0:26 {root} {tmp_path / folder} rw shared:9 - {kind} {kind} {options}\n"
                for kind, options, root, folder in mounts
            )
        )
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return proc

    return build


V2 = [("cgroup2", "rw,nsdelegate", "/", "fs")]
V1 = [("cgroup", "rw,memory", "/", "memory"), ("cgroup", "rw,cpu,cpuacct", "/", "cpu")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("1000 100000\n", 1),
        ("nonsense\n", None),
    ],
)
def test_v2_quota_is_rounded_up(machine, text, expected):
    assert cpu_quota(machine(["0::/"], V2, {"fs/cpu.max": text})) == expected


def test_v2_nested_group_is_bound_by_the_tightest_ancestor(machine):
    files = {
        "fs/a/cpu.max": "300000 100000\n",
        "fs/a/b/cpu.max": "max 100000\n",
        "fs/a/b/c/cpu.max": "500000 100000\n",
        "fs/other/cpu.max": "100000 100000\n",
    }
    assert cpu_quota(machine(["0::/a/b/c"], V2, files)) == 3


@pytest.mark.parametrize(("quota", "expected"), [("-1", None), ("250000", 3)])
def test_v1_quota_is_that_of_the_cpu_controller(machine, quota, expected):
    files = {
        "cpu/job/cpu.cfs_quota_us": f"{quota}\n",
        "cpu/job/cpu.cfs_period_us": "100000\n",
        "memory/job/cpu.cfs_quota_us": "100000\n",
        "memory/job/cpu.cfs_period_us": "100000\n",
    }
    assert cpu_quota(machine(["5:memory:/job", "4:cpu,cpuacct:/job"], V1, files)) == expected


def test_container_that_sees_the_host_s_path_reads_its_own_mount(machine):
    mounts = [("cgroup", "rw,cpu,cpuacct", "/docker/abc", "cpu")]
    files = {"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert cpu_quota(machine(["4:cpu,cpuacct:/docker/abc"], mounts, files)) == 4
    nested = {**files, "cpu/job/cpu.cfs_quota_us": "200000\n"}
    nested["cpu/job/cpu.cfs_period_us"] = "100000\n"
    assert cpu_quota(machine(["4:cpu,cpuacct:/docker/abc/job"], mounts, nested)) == 2


def test_both_versions_at_once_give_the_tighter_one(machine):
    files = {
        "fs/cpu.max": "300000 100000\n",
        "cpu/cpu.cfs_quota_us": "200000\n",
        "cpu/cpu.cfs_period_us": "100000\n",
    }
    assert cpu_quota(machine(["1:cpu,cpuacct:/", "0::/"], V1 + V2, files)) == 2


def test_no_proc_means_no_quota(tmp_path):
    assert cpu_quota(tmp_path / "nowhere") is None


def test_usable_cpus_is_the_affinity_limited_by_the_quota(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    for quota, expected in ((None, 6), (4, 4), (64, 6)):
        monkeypatch.setattr(_cpus, "cpu_quota", lambda quota=quota: quota)
        assert usable_cpus() == expected


def test_systems_without_affinity_count_all_cpus(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(_cpus, "cpu_quota", lambda: None)
    assert usable_cpus() == 5
