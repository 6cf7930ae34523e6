"""Random operator calls, generated from their definitions.

A call is a source with the arrays that it names, as the conformance tests have them: it can be
run by penstock and by DALI, and a failing one can be pasted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from tests.calls import OPERATORS

from penstock._operators.arguments import REQUIRED, Argument, Floats, Ints, Matrix
from penstock._operators.definition import Operator
from penstock._values.dtype import DType

Shape: TypeAlias = tuple[int, ...]

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
TYPE_NAMES = ["uint8", "int16", "int32", "int64", "uint32", "float16", "float32", "float64", "bool"]
HEADERS = [
    b"",
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01",
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    b"BM",
    b"II*\x00",
    b"RIFF\x10\x00\x00\x00WEBP",
    b"RIFF\x10\x00\x00\x00WAVEfmt ",
    b"P6 2 2 255\n",
    b"GIF89a",
    b"\x93NUMPY\x01\x00",
]
"""What files of some formats begin with, for operators that read them."""

# Either small or absurdly large: tests have no memory for sizes in between.
SMALL = st.integers(-3, 9)
ABSURD = st.sampled_from([2**33, 2**40, -(2**40), 2**62, -(2**63), 2**63 - 1, 2**63, 10**30])
REALS = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, -0.5, 2.0, 45.0, 1e-3, -7.25]), st.floats(-20, 20, width=16)
)
ODD_REALS = st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e300, -1e18, 1e-300])
NONSENSE = st.sampled_from(
    ["object()", "{}", "'nonsense'", "b'bytes'", "[[1], [2, 3]]", "1j", "ndd", "[None]", "len"]
)


@dataclass
class DrawnCall:
    """One call: its source, and the arrays that the source names."""

    operator: Operator
    wild: bool
    parts: list[str] = field(default_factory=list)
    arrays: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """An expression."""
        return f"ndd.{self.operator.name}({', '.join(self.parts)})"

    def __repr__(self) -> str:
        lines = [f"{name} = np.{array!r}" for name, array in self.arrays.items()]
        return "\n".join([*lines, self.source])

    def name(self, array: Any) -> str:
        """A name for an array, to be used in the source."""
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name


@st.composite
def calls(draw: st.DrawFn, operator: Operator, wild: bool = True) -> DrawnCall:
    """A call; `wild` ones have nonsense among their inputs and arguments."""
    # Some are valid, since otherwise hardly any would get past the first checks.
    wild = wild and draw(st.integers(0, 2)) > 0
    call = DrawnCall(operator, wild)
    # A number of samples, or a single one.
    batch = draw(st.sampled_from([None, None, 1, 2, 3, *([0] if wild else [])]))
    first: tuple[list[Shape], str | None] | None = None
    inputs = len(operator.inputs)
    given = draw(st.integers(inputs - operator.optional, inputs))
    given += draw(st.integers(0, 2)) if operator.variadic else 0
    for _ in range(given):
        if first is not None and draw(st.integers(0, 3)) > 0:
            shapes, layout = first
        else:
            shape, layout = draw(_shapes(operator, wild))
            shapes = [shape] * (batch or 1)
            if wild or first is None:
                shapes = [draw(_ragged(shape, wild)) for shape in shapes]
        first = first or (shapes, layout)
        call.parts.append(draw(_input(call, batch, shapes, layout)))
    for argument in operator.arguments:
        if argument.default is REQUIRED or draw(st.integers(0, 2)) == 0:
            call.parts.append(f"{argument.name}={draw(_value(call, argument, batch))}")
    if not operator.common:
        return call
    if draw(st.integers(0, 5)) == 0 or (operator.options.random and not given and batch is None):
        sizes = st.sampled_from([1, 2, 3] if batch is None else [batch])
        odd = st.sampled_from([0, -1, 2**40, "'x'", 1.5, True])
        call.parts.append(f"batch_size={draw(st.one_of(sizes, odd) if wild else sizes)}")
    if wild and draw(st.integers(0, 9)) == 0:
        call.parts.append(f"device={draw(st.sampled_from(['cpu', 'moon', 'gpu:999', '']))!r}")
    return call


@st.composite
def _shapes(draw: st.DrawFn, operator: Operator, wild: bool) -> tuple[Shape, str | None]:
    layouts = operator.options.layouts
    layout: str | None = None
    if layouts and draw(st.integers(0, 4)) > 0:
        layout = draw(st.sampled_from(layouts))
        rank = len(layout)
        layout = draw(st.sampled_from([layout, layout, None]))
    else:
        rank = draw(st.integers(0, 4))
        if draw(st.integers(0, 2)) == 0:
            layout = "".join(draw(st.permutations("FHWC"))[:rank]) or None
    low = 0 if wild or draw(st.integers(0, 9)) == 0 else 1
    return tuple(draw(st.integers(low, 4)) for _ in range(rank)), layout


@st.composite
def _ragged(draw: st.DrawFn, shape: Shape, wild: bool) -> Shape:
    """The same shape, or another of as many dimensions."""
    if draw(st.integers(0, 2)) > 0:
        return shape
    return tuple(draw(st.integers(0 if wild else 1, 4)) for _ in shape)


@st.composite
def _array(draw: st.DrawFn, shape: Shape, dtype: str) -> Any:
    seed = draw(st.integers(0, 99))
    numbers = np.random.default_rng(seed).integers(-5 if dtype[0] in "if" else 0, 9, shape)
    array = np.array(numbers).astype(dtype)
    if array.size and draw(st.integers(0, 4)) == 0:
        odd = [np.nan, np.inf, -np.inf] if dtype[0] == "f" else [0, 1]
        if dtype[0] in "iu":
            odd = [np.iinfo(dtype).min, np.iinfo(dtype).max]
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from(odd))
    return array


@st.composite
def _input(
    draw: st.DrawFn, call: DrawnCall, batch: int | None, shapes: list[Shape], layout: str | None
) -> str:
    kind = draw(st.integers(0, 19))
    if call.wild and kind == 0:
        return draw(st.one_of(NONSENSE, st.just("None")))
    if kind == 1:
        # A file, or bytes that start like one.
        data = draw(st.sampled_from(HEADERS)) + draw(st.binary(max_size=40))
        return call.name(np.frombuffer(data, np.uint8).copy())
    dtype = draw(st.sampled_from(DTYPES))
    suffix = "" if layout is None else f", layout={layout!r}"
    shape = shapes[0]
    if batch is None or kind in (2, 3):
        array = call.name(draw(_array(shape, dtype)))
        if kind == 4 and len(shape):
            return f"ndd.as_tensor({array}[::-1]{suffix})"
        return array if kind == 5 else f"ndd.tensor({array}{suffix})"
    if batch == 0:
        return f"ndd.batch({call.name(np.zeros((0, *shape), dtype))}{suffix})"
    samples = [call.name(draw(_array(shape, dtype))) for shape in shapes]
    return f"ndd.batch([{', '.join(samples)}]{suffix})"


@st.composite
def _value(draw: st.DrawFn, call: DrawnCall, argument: Argument, batch: int | None) -> str:
    kind = draw(st.integers(0, 11))
    if call.wild and kind == 0:
        return draw(NONSENSE)
    if argument.per_sample and kind in (1, 2, 3):
        return draw(_per_sample(call, argument, batch))
    return draw(_constant(call, argument))


@st.composite
def _constant(draw: st.DrawFn, call: DrawnCall, argument: Argument) -> str:
    wild = call.wild and draw(st.integers(0, 5)) == 0
    integers = ABSURD if wild else SMALL
    reals = st.one_of(ODD_REALS, ABSURD) if wild else REALS
    counts = st.integers(0 if call.wild else 1, 4)
    match argument.kind:
        case kind if kind is int:
            return str(draw(integers))
        case kind if kind is float:
            return _number(draw(reals))
        case kind if kind is bool:
            return draw(st.sampled_from(["True", "False", "0", "1", "2.5"]))
        case kind if kind is str:
            known = re.findall(r'"([\w*]+)"', call.operator.definition.__doc__ or "")
            letters = st.text("FHWCDX*", max_size=5)
            return repr(draw(st.one_of(st.sampled_from([*known, "HW", "C"]), letters)))
        case kind if kind is DType:
            return f"ndd.{draw(st.sampled_from(TYPE_NAMES))}"
        case kind if kind is Ints:
            lists = [str(draw(integers)) for _ in range(draw(counts))]
            return draw(st.sampled_from([f"[{', '.join(lists)}]", *lists[:1]]))
        case kind if kind is Floats:
            lists = [_number(draw(reals)) for _ in range(draw(counts))]
            return draw(st.sampled_from([f"[{', '.join(lists)}]", *lists[:1]]))
        case kind if kind is Matrix:
            shape = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 2), (2, 3), (3, 4), (1, 2, 3)]))
            return call.name(draw(_array(shape, draw(st.sampled_from(["f4", "f8", "i4"])))))
        case kind if members := getattr(kind, "__members__", None):
            return f"types.{kind.__name__}.{draw(st.sampled_from(list(members)))}"
        case _:
            # An unknown kind: try anything.
            return draw(st.one_of(SMALL.map(str), REALS.map(_number), NONSENSE))


@st.composite
def _per_sample(draw: st.DrawFn, call: DrawnCall, argument: Argument, batch: int | None) -> str:
    dtype = draw(st.sampled_from(["i4", "f4", "i8", "f8", "u1"]))
    shapes = [(), (), (1,)] if argument.kind in (int, float, bool) else [(2,), (3,), (2,), ()]
    shape = draw(st.sampled_from([*shapes, (2, 3), *([(0,), (4, 1)] if call.wild else [])]))
    how = draw(st.integers(0, 4))
    if how == 0 and batch is not None and batch > 0:
        size = draw(st.sampled_from([batch, batch, batch, batch + 1])) if call.wild else batch
        return f"ndd.batch({call.name(draw(_array((size, *shape), dtype)))})"
    array = call.name(draw(_array(shape, dtype)))
    if how == 1 and shape:
        return f"ndd.per_frame({array})"
    if batch is None or how == 2:
        return f"ndd.tensor({array})" if how != 3 else array
    if how == 4 and call.wild and shape:
        # A batch of different shapes.
        return f"ndd.batch([{array}] * {batch - 1} + [{array}[:-1]])" if batch else array
    return f"ndd.batch([{array}] * {max(batch, 1)})"


def _number(number: float) -> str:
    return f"float('{number}')" if number != number or number in (np.inf, -np.inf) else repr(number)


__all__ = ["OPERATORS", "DrawnCall", "calls"]
