"""`penstock.compat`: imports of DALI's dynamic mode find penstock."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import nvidia.dali.experimental.dynamic as ndd
import nvidia.dali.experimental.dynamic.random as own_random
import nvidia.dali.tfrecord as tfrecord
import nvidia.dali.types as types
from nvidia.dali import types as same_types
from nvidia.dali.experimental import dynamic
from nvidia.dali.experimental.dynamic import readers
import penstock

assert ndd is dynamic is penstock
assert types is same_types is penstock.types
assert (tfrecord, readers, own_random) == (penstock.tfrecord, penstock.readers, penstock.random)
assert penstock.__spec__.name == "penstock"
assert ndd.cast(ndd.tensor([1, 2]), dtype=types.FLOAT).dtype == ndd.float32
assert isinstance(tfrecord.FixedLenFeature((), tfrecord.string, ""), penstock.tfrecord.Feature)
print(__name__, sys.argv[1:])
"""


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    return ran


def test_programs_run_unchanged(tmp_path):
    (tmp_path / "beside.py").write_text("x = 1")
    script = tmp_path / "program with space.py"
    script.write_text(PROGRAM + "import beside\n")
    ran = run("-m", "penstock.compat", str(script), "--epochs", "3")
    assert ran.stdout.strip() == "__main__ ['--epochs', '3']"


def test_install_in_a_program():
    run("-c", "import penstock.compat as c; c.install(); c.install()" + PROGRAM)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import nvidia.dali.fn", "penstock migrate"),
        ("import nvidia.dali as dali; dali.pipeline_def", "penstock migrate"),
        ("import nvidia.dali.plugin.pytorch", "penstock.torch.Loader"),
    ],
)
def test_what_is_missing_says_why(line, words):
    ran = run("-c", f"import penstock.compat; penstock.compat.install(); {line}", code=1)
    assert words in ran.stderr.splitlines()[-1]


def test_install_comes_first():
    code = (
        "import sys, types; sys.modules['nvidia.dali'] = types.ModuleType('nvidia.dali')\n"
        "import penstock.compat; penstock.compat.install()"
    )
    assert "before the first import of DALI" in run("-c", code, code=1).stderr


def test_other_packages_of_nvidia_are_left_alone(tmp_path):
    (tmp_path / "nvidia" / "other").mkdir(parents=True)
    (tmp_path / "nvidia" / "other" / "__init__.py").write_text("x = 1")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import penstock.compat; penstock.compat.install()\n"
        "import nvidia.other, nvidia.dali.types; assert nvidia.other.x == 1"
    )
    run("-c", code)


def test_missing_scripts():
    assert "no such file: nowhere.py" in run("-m", "penstock.compat", "nowhere.py", code=2).stderr
    assert "usage:" in run("-m", "penstock.compat", "--help").stdout
