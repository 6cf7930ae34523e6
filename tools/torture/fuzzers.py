"""Runs the coverage-guided fuzzers in `fuzz/`, one target after another, while there is time.

python -m tools.torture.fuzzers SECONDS [TARGETS...]

Without AddressSanitizer, in a quick build, when PENSTOCK_FUZZ_SANITIZER=none.
"""

from __future__ import annotations

import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import seeds
from .child import ROOT
from .report import Attempt

FUZZ = ROOT / "fuzz"
CORPUS = FUZZ / "corpus"
PIXELS = 1 << 20
MEMORY_MB = 2048
ONE_ALLOCATION_MB = 1024
SECONDS_FOR_ONE = 20


def targets() -> list[str]:
    """The targets listed in the source."""
    source = (FUZZ / "src" / "main.rs").read_text()
    return re.findall(r'^    \("(\w+)", \w+::\w+\),$', source, re.MULTILINE)


def build(sanitizer: str, profile: str, seconds: float) -> Path | None:
    """Build the fuzzers; `None` if there was not enough time."""
    process = subprocess.Popen(
        [str(FUZZ / "build.sh"), sanitizer, profile],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 15)
        process.wait()
        return None
    if process.returncode != 0:
        raise RuntimeError("the fuzzers could not be built")
    return Path(output.split()[-1])


def built(sanitizer: str, profile: str) -> Path | None:
    """The fuzzers, if they are built and up to date."""
    found = [*(FUZZ / "target" / sanitizer).glob(f"*/{profile}/penstock-fuzz")]
    sources = [*(ROOT / "src").rglob("*.rs"), *(FUZZ / "src").rglob("*.rs")]
    if not found or found[0].stat().st_mtime < max(path.stat().st_mtime for path in sources):
        return None
    return found[0]


def attack(attempt: Attempt, wanted: list[str], binary: Path | None) -> None:
    """Run each target for its share of the time. Does nothing without a binary."""
    attempt.counts["seconds of building"] = round(time.monotonic() - attempt.began)
    if binary is None:
        attempt.counts["targets not reached"] = len(wanted)
        print("  fuzzers: not built, or no time left after that; `make fuzz-build` builds them")
        return
    seeds.write(CORPUS)
    jobs = len(os.sched_getaffinity(0))
    share = max(5.0, (attempt.left() - 5) * jobs / len(wanted))
    with (
        tempfile.TemporaryDirectory(dir=scratch()) as folder,
        concurrent.futures.ThreadPoolExecutor(jobs) as pool,
    ):
        runs = [pool.submit(run, attempt, binary, target, share, folder) for target in wanted]
        for done in concurrent.futures.as_completed(runs):
            done.result()


def scratch() -> str | None:
    """The folder for readers' files: in memory, if possible."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def run(attempt: Attempt, binary: Path, target: str, seconds: float, folder: str) -> None:
    """Run one target until its time is over, restarting it after each finding."""
    corpus, found = CORPUS / target, attempt.keep / "fuzzers" / target
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    environment = {
        "PENSTOCK_FUZZ_TARGET": target,
        "PENSTOCK_FUZZ_SCRATCH": folder,
        "PENSTOCK_MAX_PIXELS": str(PIXELS),
        # A failed allocation in a codec must be reported by it, and is no crash.
        "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:handle_abort=0",
        "RUST_BACKTRACE": "0",
    }
    deadline = time.monotonic() + seconds
    finds = 0
    while (left := min(deadline - time.monotonic(), attempt.left() + 5)) > 2:
        # A restart reads the corpus again: an input that crashes then must be removed from it.
        command = [
            str(binary),
            f"-max_total_time={int(left)}",
            f"-timeout={SECONDS_FOR_ONE}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-malloc_limit_mb={ONE_ALLOCATION_MB}",
            f"-artifact_prefix={found}/",
            f"-seed={attempt.seed + finds + 1}",
            "-max_len=65536",
            "-use_value_profile=1",
            "-print_final_stats=1",
            str(corpus),
        ]
        before = set(found.iterdir())
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=left + SECONDS_FOR_ONE + 60,
            )
            output, code = done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            attempt.harm(f"{target}: the fuzzer itself hangs", shlex.join(command))
            return
        inputs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
        attempt.counts["inputs"] += sum(map(int, inputs))
        if code == 0:
            break
        finds += 1
        new = [path for path in found.iterdir() if path not in before and path.suffix != ".txt"]
        note(attempt, binary, target, output, new)
        remove(corpus, new)
        if not new or finds >= 5:
            attempt.counts["targets given up"] += 1
            break
    attempt.counts["targets"] += 1


def note(attempt: Attempt, binary: Path, target: str, output: str, new: list[Path]) -> None:
    """Report a finding; libFuzzer has saved the input."""
    for path in new or [Path("no-input")]:
        replay = (
            f"PENSTOCK_FUZZ_TARGET={target} PENSTOCK_MAX_PIXELS={PIXELS} "
            f"{shlex.join([str(binary), '-rss_limit_mb=2048', str(path)])}"
        )
        path.with_name(f"{path.name}.txt").write_text(f"replay: {replay}\n\n{output[-8000:]}")
        attempt.harm(f"{target}: {problem(output)}", replay, name=f"{target}-{path.name}")


def problem(output: str) -> str:
    """A finding in one line."""
    for pattern in (
        r"^panic: (.*?)$",
        r"^(==\d+==\s*ERROR: .*?)$",
        r"^(SUMMARY: .*?)$",
        r"^(memory allocation of .*?)$",
    ):
        if match := re.search(pattern, output, re.MULTILINE):
            rest = output[match.end() : match.end() + 200].strip().splitlines()
            more = f" {rest[0]}" if pattern.startswith("^panic") and rest else ""
            return (match.group(1) + more)[:300]
    return (output.strip().splitlines() or ["no word"])[-1][:200]


def remove(corpus: Path, new: list[Path]) -> None:
    contents = {path.read_bytes() for path in new}
    for path in corpus.iterdir():
        if path.is_file() and path.read_bytes() in contents:
            path.unlink()


def main() -> int:
    """Run only the given targets."""
    seconds, *names = sys.argv[1:]
    attempt = Attempt("fuzzers", float(seconds), 0, ROOT / "target" / "torture")
    sanitizer = os.environ.get("PENSTOCK_FUZZ_SANITIZER", "address")
    profile = "release" if sanitizer == "address" else "quick"
    # The build is not limited.
    binary = build(sanitizer, profile, 3600)
    attempt.deadline = time.monotonic() + attempt.seconds
    attack(attempt, names or targets(), binary)
    print(attempt.summary())
    return 1 if attempt.harms else 0


if __name__ == "__main__":
    sys.exit(main())
