"""The programs in examples/ run, with little data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

PROGRAMS = {
    "classification": (
        ["--epochs=1", "--per-class=20", "--batch-size=8"],
        "resumed with 3 batches",
    ),
    "clip_classification": (
        ["--epochs=1", "--per-class=3", "--batch-size=6"],
        "accuracy on videos that it has not seen",
    ),
    "demo": (["--epochs=1", "--per-class=12", "--batch-size=8"], "one augmented batch"),
    "detection": (
        ["--epochs=1", "--images=12", "--batch-size=4"],
        "after training: mean overlap 0.",
    ),
    "keyword_spotting": (["--epochs=1", "--per-class=6", "--batch-size=6"], "accuracy on sounds"),
    "multi_crop": (
        ["--epochs=1", "--per-class=8", "--batch-size=8"],
        "nearest neighbor of the same",
    ),
    "segmentation": (["--epochs=1", "--images=12", "--batch-size=4"], "triangle: intersection"),
}

MODULES = {"photographs", "shapes", "training"}
"""What programs import."""


def test_every_program_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} - MODULES == PROGRAMS.keys()


@pytest.mark.heavy
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs(name, tmp_path):
    pytest.importorskip("torch")
    arguments, printed = PROGRAMS[name]
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    # A thread for torch, whose models are tiny, leaves the cores to the tests beside this one.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=380
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert printed in done.stdout
