"""Low memory, and memory leaks.

python -m tools.torture.memory PROGRAM SEED SECONDS     # one of them, in this process
"""

from __future__ import annotations

import gc
import itertools
import random
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests import images

import penstock as ndd
from penstock.errors import InternalError

from .child import say

PROGRAMS: dict[str, Callable[[random.Random, float], None]] = {}
MB = 1 << 20


def program(run: Callable[[random.Random, float], None]) -> Callable[[random.Random, float], None]:
    """Register a program that runs until a time of `time.monotonic`."""
    PROGRAMS[run.__name__] = run
    return run


# Low memory


def workloads() -> dict[str, Callable[[], Any]]:
    """Calls that need tens of megabytes, mostly as scratch memory."""
    picture = images.photograph(1200, 1500)
    gray = picture[..., 0]
    files = {
        "jpeg": images.encoded(picture, quality=80),
        "jpeg progressive": images.encoded(picture, quality=80, progressive=True),
        "png": images.encoded(picture, "PNG", compress_level=1),
        "gif": images.encoded(gray, "GIF"),
        "bmp": images.encoded(picture, "BMP"),
        "ppm": images.encoded(picture, "PPM"),
        "tiff": images.encoded(picture, "TIFF"),
        "tiff lzw": images.encoded(picture, "TIFF", compression="tiff_lzw"),
        "webp": images.encoded(picture, "WEBP", quality=60, method=0),
        "jpeg 2000": images.encoded(images.photograph(500, 600), "JPEG2000"),
    }
    made: dict[str, Callable[[], Any]] = {}
    for name, file in files.items():
        made[f"decode {name}"] = lambda file=file: ndd.decoders.image(ndd.tensor(file))
        made[f"window of {name}"] = lambda file=file: ndd.decoders.image_crop(
            ndd.tensor(file), crop=(300, 400), dtype=ndd.float32
        )
    image = ndd.tensor(picture, layout="HWC")
    long = ndd.tensor(np.zeros((2, 3_000_000, 3), np.uint8), layout="HWC")
    made |= {
        "resize": lambda: ndd.resize(image, size=[2000, 1800]),
        "resize a long axis": lambda: ndd.resize(long, size=[2, 2_000_000]),
        "laplacian": lambda: ndd.laplacian(image),
        "gaussian_blur": lambda: ndd.gaussian_blur(image, sigma=5.0),
        "warp_affine": lambda: ndd.warp_affine(image, matrix=[1.0, 0.1, 3, 0.1, 1, 2]),
        "rotate": lambda: ndd.rotate(image, angle=30.0),
        "normalize": lambda: ndd.normalize(image),
        "crop_mirror_normalize": lambda: ndd.crop_mirror_normalize(image),
        "transpose": lambda: ndd.transpose(image, perm=[2, 0, 1]),
        "cast": lambda: ndd.cast(image, dtype=ndd.float64),
        "hsv": lambda: ndd.hsv(image, hue=30.0),
        "sum": lambda: ndd.reductions.sum(image, axes=0),
        "stack": lambda: ndd.stack(image, image, image),
        "cat": lambda: ndd.cat(image, image, axis=0),
        "arithmetic": lambda: image * 2.5 + image,
    }
    return made


@program
def little_memory(chance: random.Random, end: float) -> None:
    """Work that exceeds memory: a MemoryError each time, and the same work succeeds afterwards."""
    work = workloads()
    wanted = {}
    for name, make in work.items():
        wanted[name] = digest(make())
        say("count workloads")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    for turn in itertools.count():
        if time.monotonic() > end:
            break
        name = chance.choice(list(work))
        free = chance.choice([0, 1, 3, 8, 16, 32, 64]) * MB + chance.randrange(MB)
        gc.collect()
        resource.setrlimit(resource.RLIMIT_AS, (address_space() + free, hard))
        problem = ""
        try:
            found = digest(work[name]())
        except MemoryError:
            outcome = "MemoryError"
        except InternalError as error:
            outcome, problem = "InternalError", str(error)
        except Exception as error:
            outcome, problem = type(error).__name__, str(error)
        except BaseException as error:
            outcome, problem = type(error).__name__, "which is no Exception"
        else:
            outcome = "result" if found == wanted[name] else "wrong"
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        say(f"turn {turn}: {name} with {free // MB} MB: {outcome}")
        say("count", outcome)
        if outcome not in ("MemoryError", "result"):
            say(f"harm {name} with {free // MB} MB: {outcome} {problem.splitlines()[:1]}")
            say_once(problem)
        if turn % 10 == 0 and digest(work[name]()) != wanted[name]:
            say(f"harm {name} gives another result after memory was short")


_said: set[str] = set()


def say_once(problem: str) -> None:
    _said.add(problem)
    if len(_said) > 20:
        sys.exit(1)


def digest(value: Any) -> int:
    return hash(np.asarray(value).tobytes())


def address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def resident() -> int:
    """Resident memory in bytes."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


# Memory leaks


CALLS = 100_000
"""Calls of a kind between measurements, if there is enough time."""
PER_CALL = 24
"""Bytes that a call may leave behind; less is noise of the allocator."""
SLACK = 4 * MB


def repeated(folder: Path) -> dict[str, Callable[[int], Any]]:
    """Calls that succeed and calls that fail."""
    picture = images.photograph(24, 30)
    good = ndd.tensor(images.encoded(picture))
    files = images.corpus()
    bad = {
        f"damaged {name}": ndd.tensor(np.frombuffer(file[: len(file) * 2 // 3], np.uint8))
        for name, file in files.items()
        if name in ("baseline", "progressive", "png", "gif", "tiff lzw", "webp", "jpeg 2000", "bmp")
    }
    image = ndd.tensor(picture, layout="HWC")
    batch = ndd.batch([picture] * 4, layout="HWC")
    for number in range(20):
        (folder / f"{number}.jpg").write_bytes(b"x" * number)
    names = [str(folder / f"{number}.jpg") for number in range(20)]
    missing = [*names[:5], str(folder / "missing.jpg"), *names[5:]]
    array = np.ones((4, 4), np.float32)

    def epoch(files: list[str], **options: Any) -> None:
        for outputs in ndd.readers.File(files=files, **options).next_epoch(batch_size=10):
            outputs[0].evaluate()

    def fails(call: Callable[[], Any]) -> Callable[[int], None]:
        def run(_: int) -> None:
            try:
                call().evaluate()
            except (RuntimeError, ValueError, TypeError):
                return
            raise AssertionError("it should fail")

        return run

    made: dict[str, Callable[[int], Any]] = {
        "decode": lambda _: ndd.decoders.image(good).evaluate(),
        "flip": lambda _: ndd.flip(batch).evaluate(),
        "resize": lambda _: ndd.resize(image, size=[10, 12]).evaluate(),
        "tensor": lambda n: np.asarray(ndd.tensor(array) + n),
        "as_tensor": lambda _: ndd.as_tensor(array).evaluate(),
        "random": lambda _: ndd.random.uniform(range=[0, 1], shape=[3]).evaluate(),
        "wrong argument": fails(lambda: ndd.resize(image, size=[10, 12, 14])),
        "unknown argument": fails(lambda: ndd.flip(image, angel=3)),
        "outside": fails(lambda: ndd.crop(image, crop=(1000, 1000))),
        "no image": fails(lambda: ndd.decoders.image(ndd.tensor(np.zeros(9, np.uint8)))),
        # A program that generates code, as notebooks do: each line is new.
        "new lines": lambda n: exec(
            compile("\n" * (n % 5000) + "flip(image)", f"<cell {n}>", "exec"),
            {"flip": ndd.flip, "image": image},
        ),
        "epoch": lambda _: epoch(names),
        "epoch with errors": lambda _: epoch(missing, on_error="skip"),
    }
    made |= {name: tolerant(lambda f=file: ndd.decoders.image(f)) for name, file in bad.items()}
    return made


def tolerant(call: Callable[[], Any]) -> Callable[[int], None]:
    def run(_: int) -> None:
        try:
            call().evaluate()
        except RuntimeError:
            pass

    return run


@program
def leaks(chance: random.Random, end: float) -> None:
    """Memory growth per call, for each kind of call, failing and succeeding."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        calls = repeated(Path(temporary))
        names = list(calls)
        chance.shuffle(names)
        for place, name in enumerate(names):
            share = (end - time.monotonic()) / (len(names) - place)
            if share <= 0:
                say(f"count not_reached {len(names) - place}")
                return
            slope_of(name, calls[name], share)


def slope_of(name: str, call: Callable[[int], Any], seconds: float) -> None:
    """Warm up, then compare memory before and after as many calls as there is time for."""
    numbers = itertools.count()
    warm = run_for(call, numbers, 0.25 * seconds, CALLS // 4)
    before = resident()
    made = run_for(call, numbers, 0.6 * seconds, CALLS)
    grown = resident() - before
    say("count calls", warm + made)
    say(f"{name}: {made} calls, {grown / max(made, 1):.1f} bytes each")
    if grown > SLACK + PER_CALL * made:
        # Again: one-time growth has happened by now.
        before = resident()
        again = run_for(call, numbers, 0.6 * seconds, CALLS)
        grown = resident() - before
        if grown > SLACK // 4 + PER_CALL * again:
            say(f"harm {name}: {grown / again:.0f} bytes stay for each of {again} calls")


def run_for(
    call: Callable[[int], Any], numbers: itertools.count[int], seconds: float, most: int
) -> int:
    deadline, made = time.monotonic() + seconds, 0
    while made < most and time.monotonic() < deadline:
        for _ in range(100):
            call(next(numbers))
        made += 100
        if made % 5000 == 0:
            say("alive")
    return made


if __name__ == "__main__":
    name, seed, seconds = sys.argv[1:]
    PROGRAMS[name](random.Random(int(seed)), time.monotonic() + float(seconds))
