"""What the guides to frameworks show works: each program runs, in a process of its own."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

DOCS = Path(__file__).resolve().parents[3] / "docs"
GUIDES = ["pytorch", "huggingface", "jax", "ray", "tensorflow"]
PROGRAMS = [
    pytest.param(program, id=f"{guide}-{number}")
    for guide in GUIDES
    for number, program in enumerate(
        re.findall(r"```python\n(.*?)```", (DOCS / f"{guide}.md").read_text(), re.DOTALL)
    )
]

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(0)
    for name in ("cats", "dogs"):
        (folder / name).mkdir()
        for number in range(32):
            pixels = rng.integers(0, 256, (*rng.integers(40, 80, 2), 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.jpg")
    return folder


@pytest.mark.heavy
@pytest.mark.timeout(240)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_guides_runs(program, photographs, tmp_path):
    assert "assert " in program
    modules = set(re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE))
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    (tmp_path / "photographs").symlink_to(photographs)
    (tmp_path / "train.py").write_text(program)
    environment = {**os.environ, **ENVIRONMENT, "HF_HOME": str(tmp_path / "cache")}
    if "keras" in modules:
        on_torch = "tensorflow" not in modules and importlib.util.find_spec("torch") is not None
        environment["KERAS_BACKEND"] = "torch" if on_torch else "tensorflow"
    launcher = []
    if "torchrun" in program:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *launcher, "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
