"""What the README shows works."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_readmes_examples_run_one_after_another():
    blocks = list(re.finditer(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
    batches = []
    scope = {"train_step": batches.append}
    for block in blocks:
        # Blank lines in front let a traceback name the README's own lines.
        lines_before = README.read_text()[: block.start(1)].count("\n")
        exec(compile("\n" * lines_before + block[1], str(README), "exec"), scope)

    assert len(blocks) > 3
    assert [tuple(batch.shape) for batch in batches] == [(16, 100, 45, 3)] * 10
    assert scope["q"].tolist() == scope["a"].tolist() == scope["p"].tolist()
