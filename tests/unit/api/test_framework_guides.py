"""What the guide to PyTorch shows works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import penstock as ndd

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "pytorch.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.fixture
def folder_with_photographs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("cats", "dogs"):
        folder = tmp_path / "photographs" / name
        folder.mkdir(parents=True)
        for number in range(32):
            pixels = rng.integers(0, 256, (*rng.integers(40, 80, 2), 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.jpg")


@pytest.fixture
def keep_the_default_rng():
    rng = ndd.random.get_default_rng()
    state = rng.state
    yield
    rng.state = state


@pytest.mark.heavy
@pytest.mark.timeout(240)
@pytest.mark.filterwarnings("ignore")  # of the frameworks' own
@pytest.mark.usefixtures("folder_with_photographs", "keep_the_default_rng")
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_program_of_the_guide_runs(block):
    assert "assert " in block
    for module in re.findall(r"^import (\w+)", block, re.MULTILINE):
        pytest.importorskip(module)
    if "torchrun" not in block:
        exec(compile(block, str(GUIDE), "exec"), {"__name__": "guide"})
        return
    Path("train.py").write_text(block)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, "train.py"], capture_output=True, text=True, timeout=200, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
