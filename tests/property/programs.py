"""Programs with loops over readers, drawn by hypothesis as source text.

A program gets `ndd`, `np`, `log`, two functions that make readers, and a folder. It logs values,
states and errors with their lines; running ahead must not change any of it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import penstock as ndd

FILE = "<drawn program>"

CHANGING = ("step", "step % 2", "step // 3", "int(step == 3)")

RNGS = ("rngs[0]", "rngs[1]", "None")


@st.composite
def numbers(draw: Any, low: int, high: int) -> str:
    """A constant, or an expression that changes with the step now and then."""
    constant = str(draw(st.integers(low, high)))
    if draw(st.integers(0, 4)):
        return constant
    return f"min({high}, {low} + {draw(st.sampled_from(CHANGING))})"


@st.composite
def per_sample(draw: Any, low: int, high: int, of: str) -> str:
    """An argument: the same for all samples, or a random one for each."""
    if draw(st.booleans()):
        return str(draw(numbers(low, high)))
    rng = draw(st.sampled_from((*RNGS, "by_sample")))
    if rng == "by_sample":
        # Batches that were made by hand have no samples of a data set: an error, in both cases.
        return f"ndd.random.uniform(range=[{low}, {high}], rng=by_sample.of({of}))"
    size = f"{of}.batch_size" if draw(st.integers(0, 3)) else "3"
    return f"ndd.random.uniform(range=[{low}, {high}], batch_size={size}, rng={rng})"


@st.composite
def simple_statements(draw: Any) -> str:
    """A statement that changes or logs the images `x`, `y` or `z`."""
    x = draw(st.sampled_from(["x", "x", "x", "y", "z"]))
    source = draw(st.sampled_from([x, x, x, "x", "y", "z", "outer"]))
    kind = draw(st.integers(0, 26))
    statements: list[Callable[[], str]] = [
        lambda: f"{x} = ndd.flip({source}, horizontal={draw(numbers(0, 1))})",
        lambda: f"{x} = ndd.resize({source}, size=[{draw(numbers(8, 12))}, 20])",
        lambda: (
            f"{x} = ndd.rotate({source}, angle={draw(per_sample(0, 90, source))}, keep_size=True)"
        ),
        lambda: f"{x} = ndd.brightness({source}, brightness={draw(per_sample(1, 2, source))})",
        lambda: f"{x} = ndd.cast({source} + {draw(numbers(0, 3))}, dtype=ndd.uint8)",
        lambda: f"{x} = ndd.cast({source} - mean, dtype=ndd.uint8)",
        lambda: f"{x} = helper({source}, {draw(numbers(8, 9))})",
        lambda: f"{x} = ndd.cast({source} * ndd.tensor([1, 2, 1]), dtype=ndd.uint8)",
        lambda: f"{x} = ndd.crop({source}, crop=[{draw(numbers(4, 8))}, 4], fill_value=1)",
        lambda: f"{x} = ndd.crop({source}, crop=[99, 99])",  # too large
        lambda: f"log({x})",
        lambda: f"log(ndd.reductions.mean({source}, axes=[0, 1]))",
        lambda: f"np.asarray({x}.tensors[0])[...] = step",
        lambda: f"np.asarray({x}.tensors[0])[0] = 200; log({source})",
        lambda: "np.asarray(mean)[0] += 1",
        lambda: f"mean = ndd.tensor([step % {draw(st.integers(1, 3))}, 1, 2])",
        lambda: f"log(reader.get_state(), rngs[0].state, {draw(st.sampled_from(RNGS[:2]))}.state)",
        lambda: f"rngs[{draw(st.integers(0, 1))}]()",
        lambda: f"rngs[0].seed = {draw(numbers(0, 3))}",
        lambda: f"{x} = ndd.map(lambda t: np.asarray(t)[:, ::-1].copy(), {source})",
        lambda: f"kept.append({x})",
        lambda: f"outer = {x}",
        lambda: f"{x} = ndd.as_batch([{source}.tensors[0]] * 3)",
        lambda: f"{x}.torch() if len(set(map(tuple, {x}.shape))) == 1 else log({x})",
        lambda: f"{x} = ndd.noise.gaussian({source}, stddev={draw(numbers(1, 9))}, rng=by_sample)",
        lambda: f"{x} = ndd.noise.shot({source}.tensors[::-1], rng=by_sample)",
        lambda: f"by_sample.seed = {draw(numbers(0, 3))}",
    ]
    return statements[kind]()


def block(lines: list[str], head: str) -> list[str]:
    return [head, *("    " + line for line in lines)]


@st.composite
def statements(draw: Any, depth: int = 0) -> list[str]:
    """Lines of a loop's body."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 13)) if depth < 2 else 0
        if kind < 8:
            lines.append(draw(simple_statements()))
            continue
        inner = draw(statements(depth=depth + 1))
        if kind == 8:
            condition = f"step % {draw(st.integers(2, 4))} == {draw(st.integers(0, 2))}"
            lines += block(inner, f"if {condition}:")
        elif kind == 9:
            mode = draw(st.sampled_from(["deferred", "eager", "sync_cpu"]))
            lines += block(inner, f"with ndd.EvalMode.{mode}:")
        elif kind == 10:
            lines += block(inner, "try:")
            lines += block(["log(error)"], "except Exception as error:")
        elif kind == 11:
            lines += block(["y = w", *inner], "for w, in other.next_epoch(batch_size=3):")
        elif kind == 12:
            lines += block(inner, "with ndd.EvalContext(num_threads=1):")
        else:
            ending = draw(st.sampled_from(["break", "raise KeyError(step)", "continue"]))
            lines += [f"if step == {draw(st.integers(1, 6))}:", f"    {ending}"]
    return lines


@st.composite
def programs(draw: Any) -> str:
    """A program: some epochs of a loop over a reader."""
    body = [
        "step += 1",
        "y = z = x",
        *draw(statements()),
        draw(st.sampled_from(["log(x)", "pass"])),
    ]
    heads = [
        "for x, in reader.next_epoch(batch_size=3):",
        "for x, in batches(reader):",
        "for x, in ndd.prefetch(batches(reader)):",
        "for (x,), (outer,) in zip(batches(reader), other.next_epoch(batch_size=3)):",
        "for x in calls(reader):",
    ]
    head = heads[draw(st.integers(0, 7)) % len(heads)]
    inner = block(body, head)
    lines = [
        "reader, other = make(0), make(1)",
        "rngs = [ndd.random.RNG(11), ndd.random.RNG(12)]",
        "by_sample = ndd.random.RNG(13, by='sample')",
        "mean = ndd.tensor([1, 2, 3])",
        "step, kept = 0, []",
        "outer = ndd.batch([np.full((9, 9, 3), 7, np.uint8)] * 3, layout='HWC')",
        *block(
            [
                *block(inner, "try:"),
                *block(["log(error)"], "except Exception as error:"),
                "log(step, reader.get_state(), *[rng.state for rng in rngs])",
                *draw(st.sampled_from([[], ["reader.reset()"], ["rngs[0].seed = 5"]])),
            ],
            f"for epoch in range({draw(st.integers(1, 2))}):",
        ),
        "for x in kept:",
        "    log(x)",
    ]
    return "\n".join(
        [
            "def batches(reader):",
            "    for item in reader.next_epoch(batch_size=3):",
            "        yield item",
            "def calls(reader):",
            "    if reader.get_state() and not hasattr(reader, 'begun'):",
            "        reader.reset(); reader.begun = True",
            "    for _ in range(7):",
            "        yield reader(batch_size=3)",
            "def helper(x, size):",
            "    x = ndd.resize(x, size=[size, 10])",
            "    return ndd.flip(x, vertical=1)",
            *block(lines, "def program():"),
        ]
    )


def run(source: str, make: Callable[[int], Any], depth: int) -> list[Any]:
    """What a program logs, running ahead for `depth` items."""
    logged: list[Any] = []

    def log(*things: Any) -> None:
        for thing in things:
            if isinstance(thing, Exception):
                lines = [
                    (frame.lineno, frame.line)
                    for frame in traceback.extract_tb(thing.__traceback__)
                    if frame.filename == FILE
                ]
                logged.append((type(thing), str(thing), lines))
            elif isinstance(thing, ndd.Batch | ndd.Tensor):
                samples = thing.tensors if isinstance(thing, ndd.Batch) else [thing]
                arrays = [np.asarray(sample) for sample in samples]
                found = [(array.dtype.str, array.shape, array.tobytes()) for array in arrays]
                logged.append((thing.layout, found))
            else:
                logged.append(str(thing))

    scope: dict[str, Any] = {"ndd": ndd, "np": np, "log": log, "make": make}
    exec(compile(source, FILE, "exec"), scope)
    before = ndd.get_run_ahead()
    ndd.set_run_ahead(depth)
    ndd.random.set_seed(5)
    try:
        scope["program"]()
    except Exception as error:
        log(error)
    finally:
        ndd.set_run_ahead(before)
    return logged
