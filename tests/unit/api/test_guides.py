"""What the guides show works: their blocks of code run one after another, as a reader would type them."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import penstock as ndd

DOCS = Path(__file__).resolve().parents[3] / "docs"

# Pages whose blocks are programs of their own have tests of their own.
OTHERS = {"audio", "augmentation", "pytorch", "run-ahead", "huggingface", "jax", "tensorflow"}

PAGES = sorted(
    page
    for folder in (DOCS, DOCS / "concepts", DOCS / "coming-from")
    for page in folder.glob("*.md")
    if page.stem not in OTHERS and "```python\n" in page.read_text()
)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    root = tmp_path_factory.mktemp("guides")
    rng = np.random.default_rng(0)
    for name in ("cats", "dogs"):
        folder = root / "photographs" / name
        folder.mkdir(parents=True)
        for number in range(32):
            pixels = rng.integers(0, 256, (*rng.integers(40, 80, 2), 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.jpg")
    return root


@pytest.fixture(autouse=True)
def settings_as_before():
    rng = ndd.random.get_default_rng()
    state = rng.state
    yield
    rng.state = state
    ndd.set_num_threads(None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_code_of_a_page_runs(page, photographs, monkeypatch):
    monkeypatch.chdir(photographs)
    text = page.read_text()
    scope = {"__name__": "guide"}
    for block in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        # Blank lines in front let a traceback name the page's own lines.
        lines_before = text[: block.start(1)].count("\n")
        exec(compile("\n" * lines_before + block[1], str(page), "exec"), scope)
