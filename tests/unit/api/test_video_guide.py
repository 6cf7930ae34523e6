"""What the guide to video shows works: its blocks of code run one after another."""

import re
from pathlib import Path

import pytest
from tests.videos import Made, write

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "video.md"


@pytest.fixture
def videos(tmp_path):
    """Two folders with a video each: two seconds of 25 frames a second."""
    for name in ("jump/0.mp4", "walk/0.mkv"):
        path = tmp_path / "videos" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(write(path.name, Made(frames=50, size=(48, 64), rate=25, sound="aac")))
    return tmp_path


def test_the_code_of_the_guide_runs(videos, monkeypatch):
    monkeypatch.chdir(videos)
    text, scope = GUIDE.read_text(), {"__name__": "guide"}
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert len(blocks) == 7
    for block in blocks:
        assert "assert " in block[1]
        lines_before = text[: block.start(1)].count("\n")
        exec(compile("\n" * lines_before + block[1], str(GUIDE), "exec"), scope)
