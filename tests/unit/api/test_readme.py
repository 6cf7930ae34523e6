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
def test_the_readmes_examples_run_one_after_another(capsys):
    loop, bad_files, evaluation = re.finditer(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    scope = {}

    def run(block):
        # Blank lines in front let a traceback name the README's own lines.
        lines_before = README.read_text()[: block.start(1)].count("\n")
        exec(compile("\n" * lines_before + block[1], str(README), "exec"), scope)

    run(loop)
    assert tuple(scope["x"].shape) == (32, 3, 224, 224)
    assert scope["loss"].isfinite()

    bad = Path("photographs", "cats", "0.jpg")
    bad.write_bytes(b"no image")
    run(bad_files)
    assert [error.file for error in scope["reader"].errors] == ["cats/0.jpg"]
    assert capsys.readouterr().out == "1 bad files\n"

    bad.unlink()
    run(evaluation)
    assert capsys.readouterr().out.endswith("of 63 images\n")


def test_files_that_the_readme_links_to_are_there():
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert [link for link in links if not (README.parent / link).exists()] == []
