"""What the guides show works: the blocks of code of a page run one after another."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import penstock as ndd

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

# Guides to frameworks and kinds of data consist of separate programs, and have tests of their own.
PAGES = [
    DOCS / "getting-started.md",
    DOCS / "formats.md",
    DOCS / "performance.md",
    ROOT / "skills" / "penstock" / "SKILL.md",
    *sorted((DOCS / "concepts").glob("*.md")),
    *sorted((DOCS / "coming-from").glob("*.md")),
]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs(page, photographs, monkeypatch):
    monkeypatch.chdir(photographs)
    text = page.read_text()
    scope = {"__name__": "guide"}
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert blocks
    for block in blocks:
        # Blank lines in front let a traceback name the page's own lines.
        lines_before = text[: block.start(1)].count("\n")
        exec(compile("\n" * lines_before + block[1], str(page), "exec"), scope)
