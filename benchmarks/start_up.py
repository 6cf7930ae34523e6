"""What there is before the first call: the import and the size of the package."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.harness import Case, Contender, Family, Pair, Prepare, Ready, Target

ABOUT = """\
Fresh processes in turns, with all files in the page cache and Python files compiled. *import* is
the statement alone. Ours loads NumPy and the engine on first use, so there is more to tell: *import
with NumPy* is `import numpy` and then the import, *first result* goes on until `flip` of a batch is
there, and *process* is a whole process that imports and ends."""

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
LARGEST_MEGABYTES = 40


def cases() -> Iterator[Case]:
    ten_times = Target(ratio=10)
    a_blink = Target(seconds=0.2)
    yield Case("start_up/import", timed_child(IMPORT), target=ten_times)
    yield Case("start_up/import with NumPy", timed_child(WITH_NUMPY), target=a_blink)
    yield Case("start_up/first result", timed_child(FIRST_RESULT))
    yield Case("start_up/process", child(IMPORT))


def timed_child(program: str) -> Prepare:
    return child(TIMED.format(program=program))


def child(program: str) -> Prepare:
    """A process that runs `program`; its time is what it prints, else how long it takes."""

    def prepare(side: Contender) -> Ready:
        # Compiled files go to a folder of their own: a folder of sources may have none, and the
        # environment may forbid to write them.
        compiled = tempfile.TemporaryDirectory()
        command = [sys.executable, "-c", program.replace("{module}", side.library.__name__)]

        def turn() -> float:
            environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled.name}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            start = time.perf_counter()
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            took = time.perf_counter() - start
            return float(done.stdout or took)

        return Ready(turn)

    return prepare


def facts(pair: Pair) -> Iterator[str]:
    """The installed sizes, without dependencies."""
    ours = _megabytes(_package_files(Path(pair.ours.library.__file__).parent))
    original = _megabytes(_distribution_files("nvidia-dali-"))
    met = "met" if ours <= LARGEST_MEGABYTES else "MISSED"
    yield (
        f"Installed, without dependencies and compiled Python files: penstock {ours:.1f} MB, "
        f"the original {original:.1f} MB, {original / ours:.0f} times as much "
        f"(target: at most {LARGEST_MEGABYTES} MB, {met})."
    )


def _package_files(folder: Path) -> Iterator[Path]:
    """What a wheel of the package holds: other Pythons' native modules may lie beside ours."""
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


FAMILY = Family("start_up", ABOUT, cases, facts)
