"""Start-up time and installed size."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.harness import Case, Contender, Family, Pair, Prepare, Ready

ABOUT = """\
Fresh processes, alternating, with all files in the page cache and Python files compiled. *first
result* is `import numpy`, the import and `flip` of a small batch, until its result is there: the
row to look at, since penstock loads NumPy and its engine lazily and DALI does not. *import with
NumPy* is `import numpy` and the import, *import* the import alone, *process* a whole process that
imports and exits."""

IMPORT = "import {module} as library"
WITH_NUMPY = f"import numpy; {IMPORT}"
FIRST_RESULT = f"""
{WITH_NUMPY}
library.flip(library.batch([numpy.zeros((4, 4, 3), numpy.uint8)] * 8, layout="HWC")).evaluate()
"""
TIMED = """
import time
start = time.perf_counter()
{program}
print(time.perf_counter() - start)
"""


def cases() -> Iterator[Case]:
    yield Case("start_up/first result", timed_child(FIRST_RESULT))
    yield Case("start_up/import with NumPy", timed_child(WITH_NUMPY))
    yield Case("start_up/import", timed_child(IMPORT))
    yield Case("start_up/process", child(IMPORT))


def timed_child(program: str) -> Prepare:
    return child(TIMED.format(program=program))


def child(program: str) -> Prepare:
    """A process that runs `program`; the time is what it prints, or how long the process takes."""

    def prepare(side: Contender) -> Ready:
        # Compiled files go to a separate folder: the folder of the sources may have none, or be
        # read-only.
        compiled = tempfile.TemporaryDirectory()
        command = [sys.executable, "-c", program.replace("{module}", side.library.__name__)]

        def measure() -> float:
            environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled.name}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            start = time.perf_counter()
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            took = time.perf_counter() - start
            return float(done.stdout or took)

        return Ready(measure)

    return prepare


def facts(pair: Pair) -> Iterator[str]:
    """The installed sizes, without dependencies."""
    ours = _megabytes(_package_files(Path(pair.ours.library.__file__).parent))
    dali = _megabytes(_distribution_files("nvidia-dali-"))
    yield (
        f"Installed size, without dependencies and compiled Python files: penstock {ours:.1f} MB, "
        f"DALI {dali:.1f} MB, which includes its GPU kernels and operators that penstock lacks."
    )


def _package_files(folder: Path) -> Iterator[Path]:
    """The files of a wheel: there may be native modules for other Pythons in the folder."""
    from penstock import _core

    for file in folder.rglob("*"):
        native = file.suffix in (".so", ".pyd")
        if file.is_file() and (not native or file.samefile(_core.__file__)):
            yield file


def _distribution_files(prefix: str) -> Iterator[Path]:
    for distribution in importlib.metadata.distributions():
        if distribution.name.startswith(prefix):
            yield from (Path(str(file.locate())) for file in distribution.files or ())


def _megabytes(files: Iterable[Path]) -> float:
    present = (file for file in files if file.is_file() and file.suffix != ".pyc")
    return sum(file.stat().st_size for file in present) / 1e6


FAMILY = Family("start_up", "Start-up", ABOUT, cases, facts)
