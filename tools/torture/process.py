"""Processes: kill -9, forks, Ctrl-C, no file descriptors, no threads, special files.

python -m tools.torture.process PROGRAM SEED SECONDS     # one of them, in this process
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.stress.fork import fork, join
from tests.stress.storm import storm

import penstock as ndd
from penstock.errors import InternalError

from .child import say

PROGRAMS: dict[str, Callable[[random.Random, float], None]] = {}


def program(run: Callable[[random.Random, float], None]) -> Callable[[random.Random, float], None]:
    """Register a program that runs until a time of `time.monotonic`."""
    PROGRAMS[run.__name__] = run
    return run


SAMPLES, BATCH = 53, 5


def make_files(folder: str, size: int = 2000) -> list[str]:
    names = [os.path.join(folder, f"{number:03d}") for number in range(SAMPLES)]
    for number, name in enumerate(names):
        Path(name).write_bytes(bytes([number]) * size)
    return names


def reader_of(names: list[str], **options: Any) -> Any:
    return ndd.readers.File(files=names, last_batch="partial", **options)


def numbers(outputs: Any) -> list[int]:
    """The samples of a batch, each checked to be complete."""
    found = []
    for one in outputs[0]:
        array = np.asarray(one)
        assert (array == array[0]).all(), "a sample of two files"
        found.append(int(array[0]))
    return found


def orders(chance: random.Random) -> dict[str, Any]:
    buffer = {"random_shuffle": True, "initial_fill": 9}
    return {**chance.choice([{}, buffer, {"shuffle": "global"}]), "seed": chance.randrange(100)}


# kill -9


@program
def killed(chance: random.Random, end: float) -> None:
    """A training process that saves after each batch is killed, and resumes exactly."""
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            names, order = make_files(folder), orders(chance)
            wanted = expected(names, order, 3 * SAMPLES)
            done: list[int] = []
            while len(done) < len(wanted) and time.monotonic() < end:
                kill_once(folder, names, order, chance)
                done = trained(folder)
                say("count kills")
                if done[: len(wanted)] != wanted[: len(done)]:
                    say(f"harm after a kill, the samples are {done}, not {wanted[: len(done)]}")
                    return
            say("count runs")


def expected(names: list[str], order: dict[str, Any], count: int) -> list[int]:
    reader, made = reader_of(names, **order), []
    while len(made) < count:
        for outputs in reader.next_epoch(batch_size=BATCH):
            made += numbers(outputs)
    return made


def train(folder: str, names: list[str], order: dict[str, Any]) -> None:
    """The process to be killed. The log is saved with each checkpoint, as weights would be."""
    pattern = os.path.join(folder, "ckpt_{seq:06d}.json")
    checkpoint, reader = ndd.checkpoint.Checkpoint(), reader_of(names, **order)
    try:
        last = checkpoint.load(pattern)
        log = Path(f"{last}.log").read_text()
    except FileNotFoundError:
        log, last = "", pattern.format(seq=-1)
    step = int(Path(last).stem.split("_")[1]) + 1
    checkpoint.register(reader, "reader")
    while True:
        for outputs in reader.next_epoch(batch_size=BATCH):
            log += "".join(f"{number}\n" for number in numbers(outputs))
            # Written before the checkpoint, so that every checkpoint has its log.
            Path(f"{pattern.format(seq=step)}.log").write_text(log)
            checkpoint.collect()
            path = checkpoint.save(pattern)
            assert path == pattern.format(seq=step), (path, step)
            step += 1


def trained(folder: str) -> list[int]:
    """The samples used up to the newest checkpoint."""
    saved = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    if not saved:
        return []
    return [int(line) for line in Path(folder, f"{saved[-1]}.log").read_text().split()]


def kill_once(folder: str, names: list[str], order: dict[str, Any], chance: random.Random) -> None:
    pid = fork(lambda: train(folder, names, order))
    time.sleep(chance.choice([0.002, 0.02, 0.1]) * chance.random() * 2)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if status != signal.SIGKILL:
        say(f"harm the trainer ended by itself, with status {status}")


# Forks


@program
def forks(chance: random.Random, end: float) -> None:
    """Forks while threads make calls: parent and child both get correct values."""
    storm(0, nodes=400, threads=4)
    stop, errors = threading.Event(), []

    def blow() -> None:
        try:
            while not stop.is_set():
                say("count nodes", storm(chance.randrange(10**6), nodes=400, threads=4))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=blow)
    thread.start()
    try:
        while time.monotonic() < end and not errors:
            seeds = [chance.randrange(10**6) for _ in range(chance.randrange(1, 4))]
            pids = [fork(lambda seed=seed: storm(seed, nodes=200, threads=3)) for seed in seeds]
            for pid in pids:
                join(pid, timeout=60)
                say("count forks")
    finally:
        stop.set()
        thread.join()
    if errors:
        say(f"harm a thread of the parent failed: {errors[0]!r}")


# Ctrl-C


@program
def interrupts(chance: random.Random, end: float) -> None:
    """Ctrl-C at random times in a loop over a reader; each sample comes exactly once."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        names = make_files(folder, 20_000)
        while time.monotonic() < end:
            order = orders(chance)
            on_error = chance.choice(["raise", "skip"])
            restarted(chance, lambda: reader_of(names, on_error=on_error, **order))  # noqa: B023
            continued(chance, lambda: reader_of(names, on_error=on_error, **order))  # noqa: B023
            say("count epochs", 2)


def alarm(chance: random.Random) -> None:
    signal.setitimer(signal.ITIMER_REAL, chance.choice([0.0002, 0.002, 0.01]) * chance.random() * 2)


def restarted(chance: random.Random, make: Callable[[], Any]) -> None:
    """The program resumes from the last state it has saved, with another reader."""
    state: Any = None
    seen: list[int] = []
    taken: tuple[Any, list[int]] = (state, seen)
    interrupted = 0
    while True:
        try:
            reader = make()
            if taken[0] is not None:
                reader.set_state(taken[0])
            seen = taken[1]
            alarm(chance)
            for outputs in reader.next_epoch(batch_size=BATCH):
                seen = seen + numbers(outputs)
                taken = (reader.get_state(), seen)
            signal.setitimer(signal.ITIMER_REAL, 0)
            break
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            interrupted += 1
        if len(taken[1]) >= SAMPLES:
            break
    say("count interrupts", interrupted)
    check_epoch(taken[1], interrupted, "from the state of the last batch")


LOST = 0.02
"""Interrupts that may cost or repeat a batch when a program asks the interrupted reader where it
is: Python can always raise between the reader's last instruction and the program's first.
"""
_tally = Counter[str]()


def continued(chance: random.Random, make: Callable[[], Any]) -> None:
    """The program continues at the reader's position; it records each batch in one step."""
    reader, got, interrupted = make(), [], 0
    while sum(len(numbers(outputs)) for outputs in got) < SAMPLES:
        epoch, before = reader.next_epoch(batch_size=BATCH), -1
        try:
            alarm(chance)
            while len(got) > before:
                before = len(got)
                got.extend(itertools.islice(epoch, 1))
            signal.setitimer(signal.ITIMER_REAL, 0)
            break
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            interrupted += 1
        # A restored reader gives the rest of the epoch.
        state, reader = reader.get_state(), make()
        reader.set_state(state)
    say("count interrupts", interrupted)
    seen = [number for outputs in got for number in numbers(outputs)]
    _tally["interrupts"] += interrupted
    if sorted(seen) != list(range(SAMPLES)):
        _tally["spoiled"] += 1
        say("count spoiled_epochs")
        if _tally["spoiled"] > 3 and _tally["spoiled"] > LOST * _tally["interrupts"]:
            check_epoch(seen, interrupted, "from where the reader was")
            sys.exit()


def check_epoch(seen: list[int], interrupted: int, how: str) -> None:
    if sorted(seen) != list(range(SAMPLES)):
        lost = sorted(set(range(SAMPLES)) - set(seen))
        twice = sorted(number for number, count in Counter(seen).items() if count > 1)
        say(f"harm after {interrupted} interrupts, going on {how}: lost {lost}, twice {twice}")


# Descriptors


@program
def descriptors(chance: random.Random, end: float) -> None:
    """No file descriptors for a while: an error or all samples; none is skipped silently."""
    with tempfile.TemporaryDirectory() as folder:
        names = make_files(folder)
        while time.monotonic() < end:
            reader = reader_of(names, on_error=chance.choice(["raise", "skip"]), **orders(chance))
            seen: list[int] = []
            held: list[int] = []
            errors = 0
            epoch = reader.next_epoch(batch_size=BATCH)
            while True:
                if chance.random() < 0.3:
                    held = exhaust(chance.randrange(3))
                try:
                    outputs = next(epoch)
                    seen += numbers(outputs)
                except StopIteration:
                    break
                except InternalError as error:
                    say(f"harm without descriptors: {error!r}"[:300])
                    return
                except OSError:
                    errors += 1
                    if errors > 200:
                        break
                finally:
                    for descriptor in held:
                        os.close(descriptor)
                    held = []
            say("count errors", errors)
            say("count epochs")
            left = sorted(set(range(SAMPLES)) - set(seen))
            if left and not errors:
                say(f"harm without descriptors, {left} were left out without an error")
                return
            if sorted(numbers_of_epoch(names)) != list(range(SAMPLES)):
                say("harm after that, an epoch is not complete")
                return


def numbers_of_epoch(names: list[str]) -> list[int]:
    return [
        n for outputs in reader_of(names).next_epoch(batch_size=BATCH) for n in numbers(outputs)
    ]


def exhaust(spare: int) -> list[int]:
    """Use up all but a few descriptors."""
    held: list[int] = []
    try:
        while True:
            held.append(os.dup(0))
    except OSError:
        for _ in range(min(spare, len(held))):
            os.close(held.pop())
    return held


# Threads


@program
def no_threads(chance: random.Random, end: float) -> None:
    """No threads available: an error that can be caught, and work continues afterwards."""
    while time.monotonic() < end:
        seed = chance.randrange(10**6)
        pid = fork(lambda seed=seed: without_threads(random.Random(seed)))
        try:
            join(pid, timeout=60)
        except AssertionError as error:
            say(f"harm without threads: {error}")
            return
        say("count processes")


def without_threads(chance: random.Random) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 0)
        os.setresuid(65534, 65534, 0)
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    images = [np.full((200, 300, 3), n, np.uint8) for n in range(8)]
    if chance.random() < 0.5:
        ndd.flip(ndd.batch(images, layout="HWC")).evaluate()
    resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))
    for _ in range(3):
        try:
            pool = ndd.EvalContext(num_threads=chance.randrange(1, 9))
            with pool:
                flipped = ndd.flip(ndd.batch(images, layout="HWC"))
                assert [int(np.asarray(one).max()) for one in flipped] == list(range(8))
            say("count results")
        except InternalError as error:
            say(f"harm without threads: {error!r}"[:300])
        except Exception:
            say("count errors")
        except BaseException as error:
            say(f"harm without threads: {type(error).__name__}, which is no Exception")
    resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    flipped = ndd.flip(ndd.batch(images, layout="HWC"))
    assert [int(np.asarray(one).max()) for one in flipped] == list(range(8))


# Special files


ODD = ("fifo", "folder", "zero", "full", "proc", "socket", "loop", "missing", "nul", "secret")


def odd_file(folder: Path, kind: str) -> str:
    """A path that is not a regular file."""
    path = folder / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(path))
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "secret":
        path.write_bytes(b"x")
        path.chmod(0)
    names = {"zero": "/dev/zero", "full": "/dev/full", "proc": "/proc/self/mem", "nul": "a\0b"}
    return names.get(kind, str(path))


def odd_ways() -> dict[str, Callable[[str], Any]]:
    """Readers, with a special file in place of each kind of file that they open."""
    r, tf = ndd.readers, ndd.tfrecord
    features = {"image": tf.FixedLenFeature((), tf.string, "")}
    made = "made"  # files of this name are regular ones
    return {
        "File": lambda odd: r.File(files=[odd]),
        "File list": lambda odd: r.File(file_root=".", file_list=odd),
        "File root": lambda odd: r.File(file_root=odd),
        "Numpy": lambda odd: r.Numpy(files=[odd]),
        "NemoAsr": lambda odd: r.NemoAsr(manifest_filepaths=[odd]),
        "COCO": lambda odd: r.COCO(file_root=".", annotations_file=odd),
        "COCO stored": lambda odd: r.COCO(file_root=".", preprocessed_annotations=odd),
        "TFRecord": lambda odd: r.TFRecord(path=odd, features=features),
        "TFRecord index": lambda odd: r.TFRecord(path=made, index_path=odd, features=features),
        "MXNet": lambda odd: r.MXNet(path=[odd]),
        "MXNet index": lambda odd: r.MXNet(path=[made], index_path=[odd]),
        "Webdataset": lambda odd: r.Webdataset(paths=[odd], ext=["jpg"]),
        "Webdataset index": lambda odd: r.Webdataset(paths=[made], ext=["jpg"], index_paths=[odd]),
        "Caffe": lambda odd: r.Caffe(path=[odd]),
        "Caffe2": lambda odd: r.Caffe2(path=odd),
        "io.file.read": lambda odd: ndd.io.file.read(np.frombuffer(odd.encode(), np.uint8)),
        "Checkpoint": lambda odd: ndd.checkpoint.Checkpoint().load(odd),
    }


@program
def odd_files(chance: random.Random, end: float) -> None:
    """Pipes, folders and devices in place of files: a quick error, or at least Ctrl-C works."""
    cases = [(way, kind) for way in odd_ways() for kind in ODD]
    chance.shuffle(cases)
    for way, kind in cases:
        if time.monotonic() > end:
            break
        pid = fork(lambda way=way, kind=kind: read_odd(way, kind))
        ended, status = wait_for(pid, 3)
        if not ended:
            os.kill(pid, signal.SIGINT)
            ended, status = wait_for(pid, 3)
            say("count waited")
        if not ended:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            say(f"harm {way}: a {kind} in its place hangs, and Ctrl-C has no effect")
        elif os.WIFSIGNALED(status):
            say(f"harm {way}: a {kind} in its place ends the process by signal {status & 127}")
        elif os.WEXITSTATUS(status) not in (0, 9):
            say(f"harm {way}: a {kind} in its place: status {os.WEXITSTATUS(status)}")
        say("count cases")


def wait_for(pid: int, seconds: float) -> tuple[bool, int]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return True, status
        time.sleep(0.01)
    return False, 0


def read_odd(way: str, kind: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("made").write_bytes(bytes(100))
        name = odd_file(Path(folder), kind)
        try:
            made = odd_ways()[way](name)
            if isinstance(made, ndd.readers.Reader):
                for outputs in itertools.islice(made.next_epoch(batch_size=1), 2):
                    for one in outputs.values() if isinstance(outputs, dict) else outputs:
                        one.evaluate()
            elif isinstance(made, ndd.Tensor):
                made.evaluate()
            say("count results")
        except InternalError as error:
            say(f"harm {way}: a {kind} in its place: {str(error)[:200]!r}")
        except KeyboardInterrupt:
            say("count interrupted")
        except Exception as error:
            # A NUL in a name is an invalid argument.
            if "Success" in str(error):
                say(f"harm {way}: a {kind} in its place is told as {str(error)[:100]!r}")
            say("count errors")


# Threads with random calls


@program
def storms(chance: random.Random, end: float) -> None:
    """Threads, modes, pools and faults at once: correct values."""
    while time.monotonic() < end:
        seed = chance.randrange(10**6)
        say("count nodes", storm(seed, nodes=1600, threads=8, resize=chance.random() < 0.5))
        say("count storms")


if __name__ == "__main__":
    name, seed, seconds = sys.argv[1:]
    PROGRAMS[name](random.Random(int(seed)), time.monotonic() + float(seconds))
