"""One source string, run by DALI and by penstock, with the same outcome.

`assert_same(source, **inputs)` is what conformance tests call. DALI runs in an environment of its
own: `PENSTOCK_ORACLE` names its Python (`.venv-oracle/bin/python` when unset; `off` skips the
tests that need it). Its answers are kept (see `cache.py`).
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import tempfile
import textwrap
import time
from pathlib import Path
from typing import IO, Any

import pytest

from tests.conformance.cache import DRAWS, ROOT, Cache
from tests.conformance.case import evaluate
from tests.conformance.compare import differences, show, silence
from tests.conformance.oracle_server import LENGTH

START_SECONDS = 60.0
CASE_SECONDS = 50.0  # under the tests' own timeout, so that its message is the one to be read


class OracleError(Exception):
    """DALI can't be asked: it is missing, it crashed, or it doesn't answer."""


class Oracle:
    """DALI in a process of its own, which starts at the first question the cache can't answer.

    A question that kills or hangs the process fails alone: the next one starts a new process.
    """

    def __init__(self, cache: Cache | None = None) -> None:
        self.cache = cache
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._owner = os.getpid()
        self._unusable: str | None = None

    def run(self, source: str, **inputs: Any) -> Any:
        """What the source gives with DALI, as `case.evaluate` records it."""
        if os.environ.get("PENSTOCK_ORACLE") == "off":
            pytest.skip("PENSTOCK_ORACLE=off: DALI is not asked")
        data = pickle.dumps(inputs, protocol=pickle.HIGHEST_PROTOCOL)
        cache, key = self.cache, self._key(source, data)
        if cache is None or key is None:
            return pickle.loads(self._ask(source, data, twice=False)[0])
        answer = cache.load(key)
        if answer is None:
            twice = DRAWS.search(source) is not None
            answer, reproducible = self._ask(source, data, twice=twice)
            # A case that changes its files has to run each time: the test may look at them.
            if reproducible and self._key(source, data) == key:
                cache.store(key, answer)
        return pickle.loads(answer)

    def close(self) -> None:
        """End the process. A forked child leaves its parent's alone."""
        process, self._process = self._process, None
        scratch, self._scratch = self._scratch, None
        if process is not None and os.getpid() == self._owner:
            process.kill()
            process.wait()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.close()
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass  # what was still buffered has no reader any more
            assert scratch is not None
            scratch.cleanup()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _key(self, source: str, inputs: bytes) -> str | None:
        if self.cache is None:
            return None
        try:
            return self.cache.key(oracle_python(), source, inputs)
        except (OSError, subprocess.CalledProcessError):
            return None  # there is no such environment; starting it says what is wrong

    def _ask(self, source: str, inputs: bytes, *, twice: bool) -> tuple[bytes, bool]:
        process = self._process or self._start()
        data = pickle.dumps((source, inputs, twice), protocol=pickle.HIGHEST_PROTOCOL)
        assert process.stdin is not None
        try:
            process.stdin.write(LENGTH.pack(len(data)) + data)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it died between two cases; receiving says how
        return self._receive(CASE_SECONDS, f"while it ran\n{_indent(source)}")

    def _start(self) -> subprocess.Popen[bytes]:
        if self._unusable is not None:
            raise OracleError(self._unusable)
        python = oracle_python()
        advice = (
            "`make oracle` installs DALI; PENSTOCK_ORACLE names the Python of another "
            "environment that has it, PENSTOCK_ORACLE=off skips the tests that need it."
        )
        if not python.exists():
            self._unusable = f"there is no Python at {python} to run DALI with.\n{advice}"
            raise OracleError(self._unusable)
        self._owner = os.getpid()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        # Cases may leave temporary files behind; they go with the process.
        self._scratch = tempfile.TemporaryDirectory(prefix="penstock-oracle-")
        self._process = subprocess.Popen(
            [python, "-m", "tests.conformance.oracle_server"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": self._scratch.name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        try:
            self._receive(START_SECONDS, f"when {python} started it")
        except OracleError as error:
            self._unusable = f"{error}\n{advice}"
            raise OracleError(self._unusable) from None
        return self._process

    def _receive(self, seconds: float, doing: str) -> Any:
        deadline = time.monotonic() + seconds
        length = LENGTH.unpack(self._read(LENGTH.size, deadline, doing))[0]
        return pickle.loads(self._read(length, deadline, doing))

    def _read(self, size: int, deadline: float, doing: str) -> bytes:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        data = bytearray()
        while len(data) < size:
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise self._gone(f"DALI did not answer in time {doing}")
            part = os.read(pipe, size - len(data))
            if not part:
                process.wait()
                raise self._gone(f"DALI {_end(process.returncode)} {doing}")
            data += part
        return bytes(data)

    def _gone(self, what: str) -> OracleError:
        assert self._stderr is not None
        self._stderr.seek(0)
        printed = self._stderr.read().decode(errors="replace").strip().splitlines()[-20:]
        self.close()
        if printed:
            what += "\nthe end of its output:\n" + _indent("\n".join(printed))
        return OracleError(what)


class Ours:
    """The same for penstock, in this process."""

    def run(self, source: str, **inputs: Any) -> Any:
        """The outcome of the source with penstock, as recorded by `case.evaluate`."""
        import penstock
        from penstock import types

        # DALI gets its inputs through a pipe; what that does to strides and flags happens to
        # ours too.
        return evaluate(source, penstock, types, pickle.loads(pickle.dumps(inputs)))


oracle = Oracle(Cache.of_the_project())
ours = Ours()


def assert_same(
    source: str, /, *, tol: float | None = None, says: str | None = None, **inputs: Any
) -> None:
    """Fail unless DALI and penstock give the same for the source.

    Values agree in kind, dtype, layout, device, shape and elements. Errors agree in type (ours
    may be a subclass); their wording is our own. Arrays arrive contiguous and writable: make
    strided or read-only ones in the source.

    Args:
        source: Statements or an expression; the last expression's value counts. `ndd`, `types`,
            `np` and the inputs are in scope.
        tol: The largest difference allowed between numbers; none when unset.
        says: A regular expression, case ignored, to be found in the text of both errors, for
            words that programs may rely on. Asks for an error.
        inputs: Names and values the source may use.
    """
    expected = oracle.run(source, **inputs)
    actual = ours.run(source, **inputs)
    difference = next(differences(expected, actual, tol), None)
    if difference is None and says is not None:
        difference = silence(expected, says, "DALI") or silence(actual, says, "penstock")
    if difference is not None:
        pytest.fail(_report(source, inputs, difference, expected, actual), pytrace=False)


def _report(source: str, inputs: dict[str, Any], difference: str, a: Any, b: Any) -> str:
    parts = [f"DALI and penstock differ: {difference}", "source:", _indent(source)]
    if inputs:
        parts += ["inputs:", *(_indent(f"{name} = {show(x)}") for name, x in inputs.items())]
    parts += ["DALI:", _indent(show(a)), "penstock:", _indent(show(b))]
    return "\n".join(parts)


def oracle_python() -> Path:
    """The Python of the environment that has DALI."""
    # Not resolved: the link is what makes it the environment's Python.
    return ROOT / (os.environ.get("PENSTOCK_ORACLE") or ".venv-oracle/bin/python")


def _indent(text: str) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")


def _end(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
