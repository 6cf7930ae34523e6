"""`penstock migrate`: what is rewritten, and what a person is asked to look at.

That rewritten programs do the same is tested beside DALI, in `tests/conformance`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from penstock._cli import main
from penstock._migrate import migrate

HEAD = "from nvidia.dali import pipeline_def, fn, types, Pipeline\n"


def rewritten(text: str, remarks: int = 0) -> str:
    changed, found = migrate(text)
    assert found == remarks, changed
    compile(changed, "changed", "exec")
    return changed


def pipeline(*lines: str, decorator: str = "@pipeline_def(batch_size=4)") -> str:
    return "\n".join([HEAD + decorator, "def load():", *(f"    {line}" for line in lines), ""])


def test_the_usual_pipeline():
    text = pipeline(
        'jpegs, labels = fn.readers.file(file_root="x")',
        'images = fn.decoders.image(jpegs, device="mixed")',
        "angle = fn.random.uniform(range=(-30, 30))",
        "return fn.rotate(images, angle=angle), labels",
    )
    assert rewritten(text) == (
        "import penstock as ndd\n"
        "def load(*, batch_size=4):\n"
        '    reader = ndd.readers.File(file_root="x")\n'
        "    while True:\n"
        "        jpegs, labels = reader(batch_size=batch_size)\n"
        '        images = ndd.decoders.image(jpegs, device="gpu")\n'
        "        angle = ndd.random.uniform(range=(-30, 30), batch_size=batch_size)\n"
        "        yield ndd.rotate(images, angle=angle), labels\n"
    )


def test_random_operators_with_an_input_take_its_batch_size():
    text = rewritten(pipeline("x = fn.random.uniform(range=(0, 1))", "return fn.noise.gaussian(x)"))
    assert "ndd.noise.gaussian(x)" in text


def test_names_of_users_are_not_taken():
    text = rewritten(
        pipeline('reader = "x"', "data, label = fn.readers.file(file_root=reader)", "return data")
    )
    assert "reader_ = ndd.readers.File(file_root=reader)" in text


def test_settings_of_callers():
    text = pipeline("return fn.readers.file(file_root='x')[0]", decorator="@pipeline_def")
    text = rewritten(text + "pipe = load(batch_size=2, num_threads=3, seed=5, device_id=0)\n")
    assert "def load(*, batch_size, num_threads=None, seed=None):" in text
    assert "if num_threads is not None:\n        ndd.set_num_threads(num_threads)" in text
    assert "pipe = load(batch_size=2, num_threads=3, seed=5)\n" in text


def test_random_seeds_are_the_default():
    decorator = "@pipeline_def(batch_size=4, seed=-1)"
    text = rewritten(pipeline("return fn.random.coin_flip()", decorator=decorator))
    assert "seed" not in text


def test_constants_and_other_imports_stay():
    text = "import os, nvidia.dali.types as t\nfrom nvidia.dali import fn\nprint(t.RGB, os.sep)\n"
    changed = rewritten(text)
    assert changed == "import os\nimport penstock as ndd\nfrom penstock import types as t\n" + (
        "print(t.RGB, os.sep)\n"
    )


def test_outputs():
    text = pipeline("return fn.readers.file(file_root='x')") + (
        "pipe = load()\npipe.build()\nout = pipe.run()\na = out[0].as_cpu().at(3)\n"
        "b, c = pipe.run()\nd = b.as_tensor()\ne = c.as_array()\nf = other.at(3)\n"
    )
    changed = rewritten(text)
    for line in (
        "out = next(pipe)",
        "a = out[0].cpu().select(3)",
        "d = ndd.as_tensor(b)",
        "e = np.asarray(ndd.as_tensor(c))",
        "f = other.at(3)",
        "import numpy as np",
    ):
        assert line in changed.splitlines(), changed
    assert "build" not in changed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (pipeline("return fn.readers.video(filenames=[])"), "no reader `video`"),
        (pipeline("return fn.external_source(source=f)"), "ndd.ExternalSource"),
        (pipeline("return fn.python_function(function=f)"), "use `ndd.map`"),
        (pipeline("return fn.no_such_thing(x)"), "no operator `no_such_thing`"),
        (
            pipeline("x = fn.random.coin_flip()", "if x:", "    x = x + 1", "return x"),
            "an `if` decides for the whole batch",
        ),
        (
            pipeline("x = fn.random.coin_flip()", "n = f(x)", "return fn.readers.file(files=n)"),
            "n: computed in the loop, needed before it",
        ),
        (
            pipeline("return 1", decorator="@pipeline_def(batch_size=1, device_id=3)"),
            "`device_id` was dropped",
        ),
        (
            pipeline("return 1", decorator="@other\n@pipeline_def(batch_size=1)"),
            "decorators of the pipeline were dropped",
        ),
        (HEAD + "class Old(Pipeline):\n    pass\n", "write this class as a generator"),
        (HEAD + "pipe = Pipeline(batch_size=3)\n", "write this pipeline as a generator"),
        (HEAD + "x = fn.resize(y, size=3)\n", "`fn.resize` is called outside"),
        (
            "from nvidia.dali.plugin.pytorch import DALIGenericIterator as It\nx = It(pipe)\n",
            "loop over the generator itself",
        ),
        (
            pipeline("return 1") + "pipe = load()\npipe.reset()\n",
            "a generator has no `reset`",
        ),
    ],
)
def test_remarks(text, words):
    changed = rewritten(text, remarks=1)
    [line] = [line for line in changed.splitlines() if "TODO(penstock): " in line]
    assert words in line


def test_programs_without_pipelines_stay_as_they_are(tmp_path, capsys):
    text = "import numpy as np\nprint( 'odd  spacing' )\n"
    assert rewritten(text) == text
    script = tmp_path / "a.py"
    script.write_text(text)
    assert main(["migrate", str(script), "--diff"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing of DALI's pipeline mode was found" in said.err


def test_where_the_result_goes(tmp_path, capsys):
    script = tmp_path / "a.py"
    script.write_text(pipeline("return fn.external_source(source=f)"))
    assert main(["migrate", str(script)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("import penstock as ndd\n")
    assert said.err == f"{script}: 1 place to look at; search for TODO(penstock)\n"
    assert main(["migrate", str(script), "--diff"]) == 0
    assert "+import penstock as ndd" in capsys.readouterr().out
    assert main(["migrate", str(script), "-w"]) == 0
    assert script.read_text().startswith("import penstock as ndd\n")


def test_without_libcst(tmp_path, capsys, monkeypatch):
    script = tmp_path / "a.py"
    script.write_text("x = 1\n")
    monkeypatch.delitem(sys.modules, "penstock._migrate")
    monkeypatch.setitem(sys.modules, "libcst", None)
    assert main(["migrate", str(script)]) == 2
    assert "pip install 'penstock[migrate]'" in capsys.readouterr().err


def test_the_example_of_the_docs():
    page = (Path(__file__).parents[3] / "docs" / "migrating.md").read_text()
    [before] = [
        block
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        if block.startswith("@pipeline_def")
    ]
    after = rewritten(HEAD + before)
    assert after.replace("import penstock as ndd\n", "") in page
