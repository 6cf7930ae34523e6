"""Inconsistent or changing buffers, and manipulated states.

python -m tools.torture.buffers PROGRAM SEED SECONDS     # one of them, in this process
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from tests import images
from tests.mutations import mutate

import penstock as ndd
from penstock.errors import InternalError

from .child import say
from .process import SAMPLES, make_files, numbers, orders, reader_of

PROGRAMS: dict[str, Callable[[random.Random, float], None]] = {}


def program(run: Callable[[random.Random, float], None]) -> Callable[[random.Random, float], None]:
    """Register a program that runs until a time of `time.monotonic`."""
    PROGRAMS[run.__name__] = run
    return run


def attempt(what: str, call: Callable[[], Any]) -> None:
    """A result or an exception, but no internal error."""
    try:
        call()
        say("count results")
    except InternalError as error:
        say(f"harm {what}: InternalError: {str(error).splitlines()[0]}")
    except Exception:
        say("count errors")
    except BaseException as error:
        say(f"harm {what}: {type(error).__name__}, which is no Exception")


# Bytes that change


@program
def changing_bytes(chance: random.Random, end: float) -> None:
    """Another thread modifies the bytes of an image, or its file, during decoding."""
    files = {name: bytearray(file) for name, file in images.corpus().items()}
    files["large"] = bytearray(images.encoded(images.photograph(300, 400)).tobytes())
    files["large progressive"] = bytearray(
        images.encoded(images.photograph(300, 400), progressive=True).tobytes()
    )
    others = list(files.values())
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            name = chance.choice(list(files))
            array = np.frombuffer(bytes(files[name]) + bytes(2000), np.uint8).copy()
            path = Path(folder, "changing.jpg")
            path.write_bytes(array)
            stop = threading.Event()
            writer = threading.Thread(
                target=scribble, args=(array, path, others, chance.randrange(10**6), stop)
            )
            writer.start()
            say(f"decoding {name}")
            try:
                for _ in range(100):
                    attempt(name, lambda array=array: decode_shared(array))
                    attempt(name, lambda path=path: decode_file(path))
            finally:
                stop.set()
                writer.join()


def scribble(
    array: np.ndarray, path: Path, others: list[bytearray], seed: int, stop: threading.Event
) -> None:
    """Overwrite the bytes with other files, or other sizes."""
    pick = np.random.default_rng(seed)
    original = array.copy()
    descriptor = os.open(path, os.O_WRONLY)
    while not stop.is_set():
        other = np.frombuffer(others[pick.integers(len(others))], np.uint8)[: len(array)]
        if pick.random() < 0.5:
            array[: len(other)] = other
        else:
            at = int(pick.integers(min(len(array), 300)))
            array[at : at + 4] = pick.integers(0, 256, len(array[at : at + 4]), np.uint8)
        os.pwrite(descriptor, array[: 1 + int(pick.integers(len(array)))].tobytes(), 0)
        if pick.random() < 0.1:
            os.ftruncate(descriptor, int(pick.integers(1, len(array))))
        if pick.random() < 0.3:
            array[:] = original
    os.close(descriptor)


def decode_shared(array: np.ndarray) -> None:
    shared = ndd.as_tensor(array)
    ndd.decoders.image(shared).evaluate()
    ndd.decoders.image_crop(shared, crop=(8, 8)).evaluate()
    exported = np.asarray(ndd.tensor(array))
    ndd.decoders.image(ndd.as_tensor(exported)).evaluate()


def decode_file(path: Path) -> None:
    for encoded, _ in ndd.readers.File(files=[str(path)]).next_epoch(batch_size=1):
        ndd.decoders.image(encoded).evaluate()


# Inconsistent buffers


class Liar:
    """Gives a different answer each time."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def __len__(self) -> int:
        return self.chance.choice([0, 1, 3, 10**6])

    def __getitem__(self, index: Any) -> Any:
        if self.chance.random() < 0.1:
            raise IndexError
        return self.chance.choice([1, 2.5, "text", None, np.zeros(3), [1, 2]])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        shape = [self.chance.randrange(4) for _ in range(self.chance.randrange(4))]
        return np.zeros(shape, self.chance.choice(["u1", "f4", "O", "U3", "M8[s]", "c16"]))


class Interface:
    """An array interface with inconsistent fields; its memory is real and large enough."""

    def __init__(self, chance: random.Random) -> None:
        self.memory = np.zeros(1 << 16, np.uint8)
        pointer = self.memory.__array_interface__["data"][0]
        self.__array_interface__ = {
            "version": chance.choice([3, 3, 3, 2, "3"]),
            "shape": chance.choice([(4, 4, 3), (0, 5), (-1,), (2**62, 4), (), "ab", (1.5,), None]),
            "typestr": chance.choice(["|u1", "<f4", ">f8", "|O8", "|V7", "xx", "<f99", None, 5]),
            "data": chance.choice([(pointer, False), (pointer + 1, True), (pointer,), None]),
            "strides": chance.choice([None, (12, 3, 1), (-12, 3, 1), (0, 0, 0), (1,), "abc"]),
        }


def strange_arrays(chance: random.Random) -> Any:
    base = np.arange(3000, dtype=np.uint8)
    return chance.choice(
        [
            lambda: as_strided(base, (300, 1 << 40), (0, 0)),
            lambda: np.broadcast_to(base[:3], (200, 1 << 38, 3)),
            lambda: base.reshape(10, 20, 15)[::-1, ::-2],
            lambda: base[1:].view()[: 8 * 30].view(np.float64).reshape(5, 6),
            lambda: np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.float32),
            lambda: as_strided(base[2999:], (10, 20, 15), (-300, -15, -1)),
            lambda: np.zeros((0, 1 << 40)),
            lambda: np.zeros((1 << 10, 0, 1 << 10)),
            lambda: np.zeros((1,) * 40),
            lambda: np.zeros(3, [("a", "i4"), ("b", "f8")]),
            lambda: np.ma.masked_array([1, 2, 3], [0, 1, 0]),
            lambda: np.array([object()] * 3),
            lambda: np.array(["a", "bc"]),
            lambda: np.zeros(5, "c8"),
            lambda: np.zeros(5, ">i4"),
            lambda: memoryview(bytes(60)).cast("B", (3, 4, 5)),
            lambda: memoryview(bytearray(64))[::-2],
            lambda: Liar(chance),
            lambda: Interface(chance),
            lambda: [Liar(chance), Interface(chance)],
            lambda: [np.zeros((2, 3)), np.zeros((2, 3, 4))],
            lambda: nested(chance.randrange(2, 2000)),
        ]
    )()


def nested(depth: int) -> Any:
    made: Any = 1
    for _ in range(depth):
        made = [made]
    return made


@program
def lying_buffers(chance: random.Random, end: float) -> None:
    """Arrays of unusual shapes, and objects whose answers change."""
    warnings.simplefilter("ignore")
    makers = (ndd.tensor, ndd.as_tensor, ndd.batch, ndd.as_batch)
    while time.monotonic() < end:
        given = strange_arrays(chance)
        make = chance.choice(makers)
        layout = chance.choice([None, None, "HWC", "HW", "FHWC"])
        steps = (
            lambda v: v.evaluate(),
            lambda v: ndd.flip(v).evaluate(),
            lambda v: ndd.crop(v, crop=(1, 1)).evaluate(),
            lambda v: (v + v).evaluate(),
            lambda v: ndd.cast(v, dtype=ndd.float32).evaluate(),
            lambda v: v.shape,
        )
        step = chance.choice(steps)
        say(f"{make.__name__} of {type(given).__name__}")
        attempt(
            f"{make.__name__} of {type(given).__name__}",
            lambda: step(make(given) if layout is None else make(given, layout=layout)),  # noqa: B023
        )


# States


@program
def states(chance: random.Random, end: float) -> None:
    """Modified states and checkpoints: rejected, or harmless."""
    rng = np.random.default_rng(chance.randrange(10**6))
    with tempfile.TemporaryDirectory() as folder:
        names = make_files(folder)
        while time.monotonic() < end:
            order = orders(chance)
            reader = reader_of(names, **order)
            epoch = reader.next_epoch(batch_size=5)
            for _ in range(chance.randrange(1, 10)):
                next(epoch)
            state = str(reader.get_state())
            rest = [n for outputs in epoch for n in numbers(outputs)]
            for _ in range(20):
                change_state(names, order, state, rest, chance, rng)
            for _ in range(20):
                change_checkpoint(folder, names, order, rng)


def change_state(
    names: list[str],
    order: dict[str, Any],
    state: str,
    rest: list[int],
    chance: random.Random,
    rng: np.random.Generator,
) -> None:
    """Change a field of a reader's state."""
    if chance.random() < 0.5:
        text = mutate(state.encode(), rng)
        changed: Any = text.decode("utf-8", "replace")
    else:
        fields = json.loads(state)
        while not isinstance(fields, list):
            fields = json.loads(next(iter(fields.values())))
        place = chance.randrange(len(fields))
        fields[place] = chance.choice([-1, 0, 1, 2**31, 2**63, -(2**70), None, "x", [], 1.5, True])
        changed = json.dumps(fields, separators=(",", ":"))
    say(f"state {changed[:300]}")
    try:
        reader = reader_of(names, **order)
        reader.set_state(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            taken = reader.next_epoch(batch_size=5)
        got: list[int] = []
        for outputs in taken:
            got += numbers(outputs)
            if len(got) > 3 * SAMPLES:
                say(f"harm a changed state gives an epoch without end: {changed}")
                return
    except InternalError as error:
        say(f"harm a changed state: {str(error)[:200]}: {changed}")
    except Exception:
        say("count refused")
    else:
        say("count accepted")
        # Another seed is valid, but the rest of the epoch must have the same number of samples.
        if len(got) != len(rest) or len(set(got)) != len(got):
            say(f"harm a changed state is taken: {len(got)} samples, not {len(rest)}: {changed}")


def change_checkpoint(
    folder: str, names: list[str], order: dict[str, Any], rng: np.random.Generator
) -> None:
    """Change bytes of a file."""
    reader, stream = reader_of(names, **order), ndd.random.RNG(7)
    next(reader.next_epoch(batch_size=5))
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.register(reader, "reader")
    checkpoint.register(stream, "rng")
    checkpoint.collect()
    path = Path(checkpoint.save(os.path.join(folder, "changed_{seq}.json")))
    original = path.read_bytes()
    wanted = (str(reader.get_state()), str(stream.state))
    changed = mutate(original, rng)
    path.write_bytes(changed)
    try:
        loaded, other, fresh = (
            ndd.checkpoint.Checkpoint(),
            reader_of(names, **order),
            ndd.random.RNG(),
        )
        loaded.load(str(path))
        loaded.register(other, "reader")
        loaded.register(fresh, "rng")
        found = (str(other.get_state()), str(fresh.state))
    except InternalError as error:
        say(f"harm a damaged checkpoint: {str(error)[:200]}: {changed!r}")
    except Exception:
        say("count refused")
    else:
        say("count accepted")
        if found != wanted:
            say(f"harm a damaged checkpoint is taken: {changed!r}")
    finally:
        path.unlink()


if __name__ == "__main__":
    name, seed, seconds = sys.argv[1:]
    PROGRAMS[name](random.Random(int(seed)), time.monotonic() + float(seconds))
