"""Threads that can't be started, and panics in native code: errors or slower work, no hang."""

import subprocess
import sys

import pytest

import penstock as ndd

# Address space for what is loaded, but not for a thread's stack. (Limits on the number of
# processes don't apply to root.)
HEAD = """\
import resource, sys, threading, warnings
from pathlib import Path
import numpy as np
import penstock as ndd
from tests.stress import batched as _bridge

rows = ndd.batch([np.full((40, 40, 3), i, np.uint8) for i in range(8)], layout="HWC")
blurred = ndd.gaussian_blur(rows, window_size=3)  # all code is loaded by now
blurred = [np.asarray(sample).copy() for sample in blurred]

def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def refuse(room=1 << 20):
    resource.setrlimit(resource.RLIMIT_AS, (used() + room, resource.RLIM_INFINITY))
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return
    sys.exit("threads can be started all the same")

def allow():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)

def check(batch):
    for sample, expected in zip(batch, blurred, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), expected)
"""


def run(program, **more):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program], capture_output=True, text=True, timeout=60, **more
    )
    assert done.returncode == 0, done.stderr
    return done


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")


@pytest.mark.parametrize("mode", ["deferred", "eager", "sync_cpu"])
def test_without_threads_the_one_that_waits_does_the_work(mode):
    done = run(f"""
with ndd.EvalContext(num_threads=2), ndd.EvalMode.{mode}:
    refuse()
    made = ndd.gaussian_blur(rows, window_size=3)
    made.evaluate()
    again = ndd.gaussian_blur(made, window_size=3).evaluate()
    allow()
    check(made)
    native = ndd.EvalContext.current()._native_pool()
    check(ndd.gaussian_blur(rows, window_size=3))
    native.drain()
    assert native.in_flight == 0
    names = [task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")]
    assert "penstock" in names, "threads are back"
""")
    assert done.stderr.count("RuntimeWarning: The system refuses to start more threads") >= 1
    assert "PENSTOCK_NUM_THREADS" in done.stderr


def test_without_threads_files_are_read_all_the_same(tmp_path):
    (tmp_path / "a").mkdir()
    for number in range(5):
        (tmp_path / "a" / f"{number}.jpg").write_bytes(bytes([number]) * 10)
    run(f"""
warnings.simplefilter("ignore")
reader = ndd.readers.File(file_root={str(tmp_path)!r})
refuse(room=8 << 20)
for files, labels in reader.next_epoch(batch_size=2):
    for file in files:
        assert file.shape == (10,)
""")


def test_a_function_that_waits_is_stood_in_for_by_itself():
    run("""
warnings.simplefilter("ignore")
def wait(x):
    return ndd.gaussian_blur(x, window_size=3).evaluate()
with ndd.EvalContext(num_threads=1):
    _bridge.call(lambda x: x, rows).evaluate()  # starts the only worker
    refuse(room=8 << 20)
    made = _bridge.call(wait, rows).evaluate()
    allow()
    check(made)
""")


def test_functions_that_wait_for_each_other_without_end_fail():
    run("""
warnings.simplefilter("ignore")
def nest(depth):
    def wait(x):
        return _bridge.call(nest(depth - 1), x).evaluate() if depth else x
    return wait
with ndd.EvalContext(num_threads=1):
    _bridge.call(nest(0), rows).evaluate()
    refuse()
    _bridge.call(nest(5), rows).evaluate()
    try:
        _bridge.call(nest(40), rows).evaluate()
    except RuntimeError as error:
        assert "no thread is free to run this" in str(error), error
    else:
        raise AssertionError("nothing was raised")
    _bridge.call(nest(5), rows).evaluate()
""")


def test_a_panic_at_the_border_is_an_error():
    with pytest.raises(ndd.errors.InternalError) as caught:
        ndd.tensor(1)._value.split()  # there is no axis to split
    assert isinstance(caught.value, Exception)
