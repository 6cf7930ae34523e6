"""What the guide to devices shows works."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "devices.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_guide_runs(block):
    assert "assert " in block
    exec(compile(block, str(GUIDE), "exec"), {})
