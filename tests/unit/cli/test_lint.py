"""`penstock lint`: each rule on a program that breaks it and on one that doesn't."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from penstock._cli import main
from penstock._lint import RULES, check

IMPORT = "import nvidia.dali.experimental.dynamic as ndd\n"
LOOP = (
    'reader = ndd.readers.File(file_root="x")\n'
    "for jpegs, labels in reader.next_epoch(batch_size=64):\n"
)

CASES = {
    "PS001": (
        'images = ndd.decoders.image(jpegs, device="mixed")',
        'images = ndd.decoders.image(jpegs, device="gpu")',
    ),
    "PS002": (LOOP + "    a = jpegs[0]", LOOP + "    a = jpegs.tensors[0]"),
    "PS003": (
        "xy = ndd.random.uniform(batch_size=8, shape=2)\nx = xy.select(0)",
        "xy = ndd.random.uniform(batch_size=8, shape=2)\nx = xy.slice[0]",
    ),
    "PS004": (
        LOOP + "    ndd.resize(jpegs, size=[2, 2]).evaluate()",
        "ndd.batch([1]).evaluate()",
    ),
    "PS005": (LOOP + "    jpegs.cpu().torch()", LOOP + "    jpegs.torch()"),
    "PS006": (
        'for epoch in range(3):\n    reader = ndd.readers.File(file_root="x")',
        'reader = ndd.readers.File(file_root="x")\nfor epoch in range(3):\n    pass',
    ),
    "PS007": ("ndd.readers.coco(file_root='x')", "ndd.readers.COCO(file_root='x')"),
    "PS008": (
        LOOP + "    if labels:\n        break",
        LOOP + "    for other in range(3):\n        break",
    ),
    "PS009": (
        LOOP + "    angle = ndd.random.uniform(range=[0, 1])",
        LOOP + "    angle = ndd.random.uniform(range=[0, 1], batch_size=64)",
    ),
    "PS010": ("ndd.fn.resize(x)", "ndd.resize(x)"),
    "PS011": (
        'ndd.readers.File(file_root="x", batch_size=3)',
        'ndd.readers.File(file_root="x", max_batch_size=3)',
    ),
}


def codes(text: str) -> list[str]:
    return [found.code for found in check(text)]


def test_every_rule_has_a_case():
    assert CASES.keys() == RULES.keys()


@pytest.mark.parametrize("code", CASES)
def test_rule(code):
    wrong, right = CASES[code]
    assert codes(IMPORT + wrong) == [code]
    assert codes(IMPORT + right) == []
    assert codes("import other as ndd\n" + wrong) == []


@pytest.mark.parametrize(
    "text",
    [
        "from nvidia.dali import fn\nfn.resize(x)",
        "import nvidia.dali.fn as fn\nfn.resize(x)",
        "from nvidia.dali import pipeline_def\n@pipeline_def\ndef f(): pass",
        "from nvidia.dali import pipeline_def\n@pipeline_def(batch_size=3)\ndef f(): pass",
        "import penstock as ndd\n@ndd.pipeline_def\ndef f(): pass",
    ],
)
def test_pipeline_mode_is_found_however_it_is_imported(text):
    assert codes(text) == ["PS010"]


def test_names_are_followed():
    text = (
        "from penstock import readers as r, decoders, resize\n"
        "reader = r.File(file_root='x')\n"
        "for step, (jpegs, labels) in enumerate(reader.next_epoch(batch_size=8)):\n"
        "    images = resize(decoders.image(jpegs), size=[2, 2]) / 255\n"
        "    first = images[0]\n"
        "    step[0]\n"
        "    images = images.torch()\n"
        "    images[0]\n"
    )
    assert [(found.line, found.code) for found in check(text)] == [(5, "PS002")]


def test_parameters_hide_batches_of_outer_scopes():
    text = IMPORT + "b = ndd.batch([1])\ndef f(b):\n    return b[0]\ndef g():\n    return b[0]\n"
    assert [found.line for found in check(text)] == [6]


def test_single_samples_may_be_indexed():
    assert codes(IMPORT + "for jpeg, label in reader.next_epoch():\n    label[0]") == []


def test_loops_that_restart_may_be_left():
    text = IMPORT + "for x in reader.next_epoch(batch_size=2, restart=True):\n    break"
    assert codes(text) == []


def test_noqa():
    line = 'ndd.decoders.image(x, device="mixed")'
    assert codes(f"{IMPORT}{line}  # noqa") == []
    assert codes(f"{IMPORT}{line}  # noqa: E501, PS001") == []
    assert codes(f"{IMPORT}{line}  # noqa: PS002") == ["PS001"]


def test_report_and_exit_codes(tmp_path, capsys):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(f'{IMPORT}ndd.decoders.image(x, device="mixed")\n')
    assert main(["lint", str(tmp_path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{wrong}:2:30: PS001 {RULES['PS001']}"
    assert said[1] == "Found 1 mistake in 1 file."
    assert main(["lint", str(wrong), "--json"]) == 1
    [found] = json.loads(capsys.readouterr().out)
    assert (found["code"], found["line"], found["column"]) == ("PS001", 2, 30)
    assert main(["lint", str(wrong), "--ignore", "ps001"]) == 0
    assert main(["lint", str(wrong), "--select", "PS002,PS003"]) == 0
    assert main(["lint", str(wrong), "--select", "PS999"]) == 2
    assert "no such rule: PS999" in capsys.readouterr().err
    assert main(["lint", "--rules"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(RULES)
    assert main(["lint"]) == 2


def test_code_that_is_no_python(tmp_path, capsys):
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    assert main(["lint", str(broken)]) == 2
    assert f"{broken}:1 is not valid Python" in capsys.readouterr().err


def test_the_docs_list_all_rules():
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    listed = dict(re.findall(r"^\| (PS\d+) \| (.*) \|$", page, re.MULTILINE))
    assert {code: text.replace("`", "") for code, text in listed.items()} == {
        code: text.replace("`", "") for code, text in RULES.items()
    }
