"""What the README shows works."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

README = Path(__file__).resolve().parents[3] / "README.md"


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


@pytest.mark.usefixtures("folder_with_photographs")
def test_the_readmes_examples_run_one_after_another():
    blocks = list(re.finditer(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
    steps = []
    scope = {"train_step": lambda *step: steps.append(step), "MEAN": [120.0] * 3, "STD": [60.0] * 3}
    for block in blocks:
        # Blank lines in front let a traceback name the README's own lines.
        lines_before = README.read_text()[: block.start(1)].count("\n")
        exec(compile("\n" * lines_before + block[1], str(README), "exec"), scope)

    assert len(blocks) > 3
    assert [tuple(images.shape) for images, _ in steps] == [(32, 3, 224, 224)] * 2
    assert sorted(int(label) for _, labels in steps for label in labels) == [0] * 32 + [1] * 32
    assert Path("run_0000.json").exists()
    assert scope["q"].tolist() == scope["a"].tolist() == scope["p"].tolist()
