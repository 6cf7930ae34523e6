import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import penstock
from penstock._runtime import threads as _threads
from penstock._runtime.device import Device
from penstock._runtime.threads import ThreadPool, default_pool, get_num_threads, set_num_threads


class FakePool:
    """Replaces the native pool, to record when one is created and drained."""

    made = 0

    def __init__(self, num_threads):
        self.num_threads = num_threads
        self.drained = 0
        type(self).made += 1

    def drain(self):
        self.drained += 1


@pytest.fixture(autouse=True)
def fresh(monkeypatch, emulated):
    """A process in which nothing has been set or started."""
    variables = ("OMP_NUM_THREADS", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID")
    for name in ("PENSTOCK_NUM_THREADS", "DALI_NUM_THREADS", *variables):
        monkeypatch.delenv(name, raising=False)
    for name in ("_explicit_count", "_automatic_count", "_default_pool"):
        monkeypatch.setattr(_threads, name, None)
    monkeypatch.setattr(_threads, "_started", type(_threads._started)())
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(_threads, "usable_cpus", lambda: 3)


@pytest.fixture
def native(monkeypatch):
    core = types.ModuleType("penstock._core")
    core.Pool = type("Pool", (FakePool,), {})
    monkeypatch.setitem(sys.modules, "penstock._core", core)
    monkeypatch.setattr(penstock, "_core", core, raising=False)
    return core.Pool


def test_number_of_threads_is_that_of_usable_cpus():
    assert get_num_threads() == 3
    assert ThreadPool().num_threads == 3


def test_environment_comes_before_the_cpus(monkeypatch):
    monkeypatch.setenv("DALI_NUM_THREADS", " 7 ")
    assert get_num_threads() == 7


def test_own_variable_comes_before_dalis(monkeypatch):
    monkeypatch.setenv("DALI_NUM_THREADS", "7")
    monkeypatch.setenv("PENSTOCK_NUM_THREADS", "5")
    assert get_num_threads() == 5


def test_empty_variable_counts_as_not_set(monkeypatch):
    monkeypatch.setenv("PENSTOCK_NUM_THREADS", "")
    assert get_num_threads() == 3


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"OMP_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "2,1"}, 2),
        ({"OMP_NUM_THREADS": "64"}, 3),
        ({"OMP_NUM_THREADS": "many"}, 3),
        ({"OMP_NUM_THREADS": "2", "PENSTOCK_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "2", "DALI_NUM_THREADS": "5"}, 5),
        ({"LOCAL_WORLD_SIZE": "3"}, 1),
        ({"LOCAL_WORLD_SIZE": "8"}, 1),
        ({"LOCAL_WORLD_SIZE": "3", "OMP_NUM_THREADS": "2"}, 2),
    ],
    ids=str,
)
def test_variables_of_others_bound_the_share_of_the_cpus(monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert get_num_threads() == expected


def test_what_torchrun_sets_by_itself_is_not_taken_for_a_wish(monkeypatch):
    monkeypatch.setattr(_threads, "usable_cpus", lambda: 64)
    for name, value in {"LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "x"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert get_num_threads() == 16
    monkeypatch.setattr(_threads, "_automatic_count", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert get_num_threads() == 8


def test_explicit_number_comes_first_and_none_takes_it_back(monkeypatch):
    monkeypatch.setenv("DALI_NUM_THREADS", "7")
    set_num_threads(2)
    assert get_num_threads() == 2
    set_num_threads(None)
    assert get_num_threads() == 7


def test_environment_is_read_once(monkeypatch):
    assert get_num_threads() == 3
    monkeypatch.setenv("DALI_NUM_THREADS", "7")
    assert get_num_threads() == default_pool().num_threads == 3


@pytest.mark.parametrize("name", ["PENSTOCK_NUM_THREADS", "DALI_NUM_THREADS"])
@pytest.mark.parametrize("value", ["abc", "2.5", "0", "-3", "401"])
def test_bad_variable_is_a_value_error_that_names_it(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=name) as caught:
        get_num_threads()
    assert value in str(caught.value)


@pytest.mark.parametrize("make", [set_num_threads, ThreadPool])
def test_bad_numbers_are_refused(make):
    for wrong in (2.0, "2", True, [2]):
        with pytest.raises(TypeError, match="must be an integer"):
            make(wrong)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"must be positive, got {wrong}"):
            make(wrong)
    with pytest.raises(ValueError, match="100 per CPU core, that is 400 here; got 401"):
        make(401)
    make(400)


def test_numpy_integers_are_integers():
    set_num_threads(np.int64(2))
    assert type(get_num_threads()) is int
    assert ThreadPool(np.int64(2)).num_threads == 2


def test_pool_is_bound_to_the_current_device_or_the_one_given():
    assert ThreadPool(2).device_id is None
    assert ThreadPool(2, device_id=5).device_id == 5
    with Device("gpu", 3):
        assert ThreadPool(2).device_id == 3
        assert ThreadPool(2, device_id=None).device_id is None
    with pytest.raises(ValueError, match="between 0 and 7"):
        ThreadPool(2, device_id=8)
    with pytest.raises(TypeError, match="integer"):
        ThreadPool(2, device_id="x")
    assert repr(ThreadPool(2)) == "ThreadPool(num_threads=2, device_id=None)"


def test_native_pool_starts_with_the_first_use(native):
    pool = ThreadPool(2)
    assert native.made == 0
    assert pool.native().num_threads == 2
    assert pool.native() is pool.native()
    assert native.made == 1


def test_native_pool_is_made_once_by_many_threads(native):
    pool = ThreadPool(2)
    start = threading.Barrier(8)

    def use():
        start.wait()
        pool.native()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert native.made == 1


def test_default_pool_is_one_until_its_size_changes(native):
    pool = default_pool()
    assert default_pool() is pool
    assert pool.num_threads == 3
    set_num_threads(3)
    assert default_pool() is pool
    set_num_threads(2)
    assert default_pool().num_threads == 2
    assert pool.native().num_threads == 3  # it can still be used


def test_drain_all_waits_for_every_started_pool(native):
    pools = [ThreadPool(1), ThreadPool(2), default_pool()]
    for pool in pools[1:]:
        pool.native()
    _threads.drain_all()
    assert pools[0]._native is None
    assert [pool.native().drained for pool in pools] == [0, 1, 1]


FORK = """
import os, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
from penstock._runtime import process as _process
from penstock._runtime import threads as _threads

with _threads._lock:  # as if another thread was starting a pool
    child = os.fork()
    if child == 0:
        _threads.ThreadPool(2).native()
        os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_start_a_pool():
    # In a separate process: other libraries loaded here have fork handlers, too.
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)
