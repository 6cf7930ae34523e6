"""`profile`: counts, times, the bottleneck, traces."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from tests.images import encoded, photograph

import penstock as ndd
from penstock._profile.bottleneck import sentence
from penstock._runtime.profile import OperatorProfile


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "class"
    root.mkdir()
    for number in range(12):
        (root / f"{number}.jpg").write_bytes(encoded(photograph(60, 80, seed=number)).tobytes())
    return tmp_path


def by_name(recorded: ndd.profile) -> dict[str, OperatorProfile]:
    return {row.name: row for row in recorded.operators}


def run_epoch(folder) -> None:
    with ndd.readers.File(file_root=str(folder)) as reader:
        for jpegs, _ in reader.next_epoch(batch_size=4):
            ndd.resize(ndd.decoders.image(jpegs), size=[224, 224]).evaluate()


def test_operators_and_readers_are_counted(folder):
    with ndd.profile() as p:
        run_epoch(folder)
    rows = by_name(p)
    assert (rows["decoders.image"].calls, rows["decoders.image"].samples) == (3, 12)
    assert rows["decoders.image"].bytes == 12 * 60 * 80 * 3
    assert (rows["resize"].calls, rows["resize"].samples) == (3, 12)
    assert rows["resize"].bytes == 12 * 224 * 224 * 3
    assert rows["readers.File"].samples >= 12
    assert rows["readers.File"].is_reader
    assert p.batches == 3
    for row in rows.values():
        assert row.wall_time > 0
        assert row.cpu_time <= row.wall_time * 1.001
    assert 0 < p.worker_use <= 1
    assert rows["resize"].wait_time == pytest.approx(p.wait_time)
    assert rows["resize"].lines == [f"test_profile.py:{run_epoch.__code__.co_firstlineno + 3}"]


def test_what_loops_run_ahead_is_counted(folder):
    before = ndd.run_ahead.stats()
    with (
        ndd.EvalContext(run_ahead=2),
        ndd.readers.File(file_root=str(folder)) as reader,
        ndd.profile() as p,
    ):
        for number in range(20):
            jpegs, _ = reader(batch_size=4)
            images = ndd.resize(ndd.decoders.image(jpegs), size=[224, 224])
            ndd.rotate(images, angle=number).evaluate()
    ahead, rows = p.run_ahead, by_name(p)
    assert ahead.used == rows["decoders.image"].ahead + rows["resize"].ahead > 10
    assert rows["rotate"].ahead == 0
    assert ahead.predicted >= ahead.used
    assert ahead.used == ndd.run_ahead.stats().used - before.used
    assert any("rotate: `angle` differs" in reason for reason in ahead.not_predicted)
    said = str(p)
    assert f"Run ahead: {ahead.predicted} calls predicted, {ahead.used} used, " in said
    assert "Not run ahead: rotate: `angle` differs from iteration to iteration at " in said


def test_profiles_without_loops_tell_nothing_about_running_ahead():
    with ndd.profile() as p:
        (ndd.batch([[1], [2]]) + 1).evaluate()
    assert p.run_ahead == (0, 0, 0, ())
    assert "ahead:" not in str(p)


def test_small_calls_that_are_run_ahead_are_noted(folder):
    with (
        ndd.EvalContext(run_ahead=2),
        ndd.readers.File(file_root=str(folder)) as reader,
        ndd.profile() as p,
    ):
        for _ in range(12):
            _, labels = reader(batch_size=4)
            (labels + 1).evaluate()
    [row] = [row for row in p.operators if not row.is_reader]
    assert row.calls >= 12
    assert row.samples == 4 * row.calls


def test_calls_that_run_on_the_calling_thread_are_counted():
    small = ndd.batch([[1], [2], [3]])
    with ndd.profile() as p:
        for _ in range(5):
            (small + 1).evaluate()
    [row] = p.operators
    assert (row.calls, row.samples, row.bytes) == (5, 15, 5 * 3 * 4)


def test_deferred_calls_are_counted():
    with ndd.profile() as p, ndd.EvalMode.deferred:
        (ndd.batch([[1], [2]]) + 1).evaluate()
    [row] = p.operators
    assert (row.calls, row.samples) == (1, 2)


def test_nothing_is_recorded_outside_of_the_block():
    (ndd.batch([[1], [2]]) + 1).evaluate()
    with ndd.profile() as p:
        pass
    (ndd.batch([[1], [2]]) + 1).evaluate()
    assert p.operators == []
    assert p.bottleneck == "No operator or reader ran while the profile was recorded."
    assert p.wait_time == 0
    assert p.batches == 0


def test_what_a_function_waits_for_is_not_its_own_time():
    def inner(x):
        time.sleep(0.2)
        return x

    def outer(x):
        return np.asarray(ndd.map(inner, ndd.tensor(x)))

    with ndd.profile() as p:
        ndd.map(outer, ndd.batch(np.zeros((1, 3), np.float32))).evaluate()
    rows = by_name(p)
    wall = sum(row.wall_time for row in rows.values())
    assert 0.2 <= wall <= p.duration, "the time of the inner function was counted twice"
    assert sum(row.cpu_time for row in rows.values()) < wall, "sleeping takes no CPU time"


def test_only_one_profile_at_a_time():
    with ndd.profile(), pytest.raises(RuntimeError, match="another profile"), ndd.profile():
        pass
    with ndd.profile() as p:
        pass
    assert "0 operators" in repr(p)


def test_a_profile_ends_with_an_exception():
    with pytest.raises(KeyError), ndd.profile() as p:
        raise KeyError("user's")
    assert p.duration > 0
    with ndd.profile():
        pass


def test_progress_is_reported_while_the_block_runs():
    seen = []
    reported = threading.Event()

    def progress(p):
        seen.append([row.samples for row in p.operators])
        if seen[-1]:
            reported.set()

    image = ndd.tensor(photograph(600, 600), layout="HWC")
    with ndd.profile(progress, interval=0.001):
        while not reported.is_set():
            ndd.gaussian_blur(image, sigma=3.0).evaluate()
    count = len(seen)
    time.sleep(0.01)
    assert len(seen) == count, "it goes on after the block"


def test_errors_in_the_progress_function_are_raised_at_the_end():
    called = threading.Event()

    def progress(p):
        called.set()
        raise KeyError("in the function")

    with pytest.raises(KeyError, match="in the function"), ndd.profile(progress, interval=0.001):
        assert called.wait(30)
    with pytest.raises(TypeError, match="`progress` must be a function"):
        ndd.profile(3)
    with pytest.raises(ValueError, match="`interval`"):
        ndd.profile(interval=0)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_trace_has_an_event_for_each_task(folder, tmp_path, name):
    with ndd.profile() as p:
        run_epoch(folder)
        with pytest.raises(RuntimeError, match="after the `with` block"):
            p.save_trace(tmp_path / name)
    p.save_trace(tmp_path / name)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(tmp_path / name, "rt") as file:
        trace = json.load(file)["traceEvents"]
    decodes = [event for event in trace if event["name"] == "decoders.image"]
    assert sorted(event["args"]["sample"] for event in decodes) == sorted([*range(4)] * 3)
    assert {event["ph"] for event in trace} == {"X", "M"}
    for event in trace:
        if event["ph"] == "X":
            assert 0 <= event["ts"] <= event["ts"] + event["dur"] <= p.duration * 1e6
    names = {event["args"]["name"].split()[0] for event in trace if event["ph"] == "M"}
    assert names == {"program", "worker", "reading"}


def test_table_has_a_row_for_each_operator(folder):
    with ndd.profile() as p:
        run_epoch(folder)
    lines = str(p).splitlines()
    assert lines[0].split()[0] == "operator"
    assert {line.split()[0] for line in lines[1:4]} == {"decoders.image", "resize", "readers.File"}
    assert lines[-1] == p.bottleneck
    assert "<pre>operator" in p._repr_html_()


def recorded(waited: float, use: float, decode: float = 0.0, read: float = 0.0, cpu: float = 1.0):
    rows = [
        OperatorProfile("decoders.image", 10, 100, wall_time=decode, cpu_time=decode * cpu),
        OperatorProfile("flip", 10, 100, wall_time=decode / 4, cpu_time=decode / 4 * cpu),
        OperatorProfile("readers.File", 10, 100, wall_time=read),
    ]
    rows.sort(key=lambda row: -row.wall_time)
    return SimpleNamespace(
        operators=rows, duration=1.0, wait_time=waited, batches=10, worker_use=use
    )


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (
            recorded(0.03, 0.4, decode=0.4),
            "The loop's own code is the bottleneck: the loop waited for 3 % of the time, 3.0 ms "
            "per batch; worker threads were busy for 40 %; decoders.image takes 80 % of "
            "their time.",
        ),
        (
            recorded(0.6, 0.95, decode=1.5),
            "Computing is the bottleneck: the loop waited for 60 % of the time, 60.0 ms per batch, "
            "and the worker threads were busy for 95 %; decoders.image takes 80 % of their time.",
        ),
        (
            recorded(0.8, 0.2, decode=0.2, read=2.0),
            "Reading is the bottleneck: the loop waited for 80 % of the time, 80.0 ms per batch, "
            "while the worker threads were busy for 20 %; readers.File needs 20.0 ms per sample.",
        ),
        (
            recorded(0.7, 0.2, decode=0.8, cpu=0.15),
            "The CPUs are overloaded: the loop waited for 70 % of the time, 70.0 ms per batch, and "
            "operators had a CPU for only 15 % of their time. Other processes use the CPUs, there "
            "are more threads than CPUs, or Python functions wait.",
        ),
        (
            recorded(0.5, 0.5, decode=0.8, read=0.1),
            "Work and loop take turns instead of overlapping: the loop waited for 50 % of the "
            "time, 50.0 ms per batch, but the worker threads were busy for 50 %; decoders.image "
            "takes 80 % of their time. Ask for batches earlier, for instance with `prefetch`.",
        ),
    ],
)
def test_bottleneck(case, text):
    assert sentence(case) == text


def test_forked_children_record_nothing_and_can_profile():
    with ndd.profile() as p:
        (ndd.batch([[1], [2]]) + 1).evaluate()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with ndd.profile() as own:
                    (ndd.batch([[1], [2]]) + 1).evaluate()
                code = 0 if [row.samples for row in own.operators] == [2] else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [row.samples for row in p.operators] == [2]
