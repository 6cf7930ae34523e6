"""Kernels that claim to work on stacked samples make of a stack what they make of each sample.

The claims come from the registry, so that a new kernel with a claim needs calls here, and a wrong
claim can't go unnoticed.
"""

from __future__ import annotations

import importlib
import operator
import pkgutil

import numpy as np
import pytest
from tests.unit.operators.test_stacked_samples import STACKED, apart, outcome, packed

import penstock as ndd
import penstock.ops
from penstock import _core
from penstock._operators.definition import OPERATORS
from penstock._values import arithmetic

for _module in pkgutil.iter_modules(penstock.ops.__path__):
    importlib.import_module(f"penstock.ops.{_module.name}")

CLAIMS = {name for name, traits in _core.kernel_traits().items() if traits["stacks"]}


def _called(*names: str):
    """The calls of the table of stacked samples whose names begin so."""
    return [call for name, call in STACKED.items() if name.split(",")[0] in names]


def _binary(apply):
    """An operator on two batches, on a batch and a shared sample, and on a batch and a number."""
    return [
        lambda x: apply(x, x),
        lambda x: apply(x, _row(x)),
        lambda x: apply(_row(x), x),
        lambda x: apply(x, 3),
        lambda x: apply(2, x),
    ]


def _row(x):
    """One sample for all, of the same shape."""
    return x.tensors[1] if isinstance(x, ndd.Batch) else x


_BINARY = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "quotient": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "float_power": ndd.math.fpow,
    "atan2": ndd.math.atan2,
    "max": ndd.math.max,
    "min": ndd.math.min,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
_FUNCTIONS = {
    name.removeprefix("math."): each.function
    for name, each in OPERATORS.items()
    if name.startswith("math.") and len(each.inputs) == 1
}

CALLS = {
    **{name: _binary(apply) for name, apply in _BINARY.items()},
    **{name: [apply] for name, apply in _FUNCTIONS.items()},
    "abs": [abs],
    "bb_flip": [ndd.bb_flip, lambda x: ndd.bb_flip(x, ltrb=True, vertical=1)],
    "bbox_paste": [lambda x: ndd.bbox_paste(x, ratio=2, paste_x=0.25)],
    "negate": [operator.neg],
    "bit_not": [operator.invert],
    "clamp": [lambda x: ndd.math.clamp(x, 3, 7), lambda x: ndd.math.clamp(x, x, _row(x))],
    "cast": [lambda x: ndd.cast(x, dtype=ndd.float32), lambda x: ndd.cast(x, dtype=ndd.int8)],
    "coord_transform": _called("coord_transform"),
    "constant_like": [ndd.zeros_like, lambda x: ndd.ones_like(x, dtype=ndd.float16)],
    "copy": [ndd.copy],
    "crop": _called("crop"),
    "flip": [
        lambda x, axes=axes: ndd.flip(x, horizontal=axes & 1, vertical=axes >> 1)
        for axes in range(4)
    ],
    "gain": [lambda x: ndd.gain(x, gain_db=6), lambda x: ndd.gain(x, gain_db=-40)],
    "join": _called("cat", "stack"),
    "lookup_table": _called("lookup_table"),
    "normalize": _called("normalize"),
    "pad": _called("pad"),
    "slice": _called("slice"),
    "transpose": _called("transpose"),
    **{
        f"reductions.{name}": _called(name)
        for name in ("max", "min", "sum", "mean", "mean_square", "rms")
    },
}
"""By kernel, calls on a batch (or a sample) that run it."""

SHAPES = [(2, 2, 3), (1, 5, 3), (5, 1, 3), (17, 9, 3), (1, 1, 1), (0, 2, 3)]
DTYPES = [np.uint8, np.int64, np.float32, np.float64, np.bool_]

KERNELS = {each.number: each.options.kernel for each in OPERATORS.values()} | {
    each.number: each.kernel
    for each in [
        *(value for value in vars(arithmetic).values() if isinstance(value, arithmetic.Operation)),
        *(each.operation for each in OPERATORS.values() if hasattr(each, "operation")),
    ]
}
"""By the number of an operator, the kernel that it runs."""


@pytest.fixture
def ran(monkeypatch):
    """The kernels that have been called."""
    kernels: set[str] = set()
    submit = _core.submit

    def recorded(number, *rest):
        kernels.add(KERNELS.get(number, ""))
        return submit(number, *rest)

    monkeypatch.setattr(_core, "submit", recorded)
    return kernels


def _counted(call, batch):
    """The outcome of a call, and how many runs on stacks it began and finished."""
    before = _core.stacked_runs()
    made = outcome(call, batch)
    return made, *(now - then for now, then in zip(_core.stacked_runs(), before, strict=True))


def test_every_claim_has_calls():
    assert CALLS.keys() == CLAIMS


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kernel", sorted(CLAIMS))
def test_a_stack_gives_what_its_samples_give(kernel, ran):
    draw = np.random.default_rng(1)
    succeeded = 0
    stacked_runs = 0
    for number, call in enumerate(CALLS[kernel]):
        for shape in SHAPES:
            for dtype in DTYPES:
                arrays = [(draw.normal(9, 9, shape) % 30).astype(dtype) for _ in range(4)]
                # The first are contiguous in memory, the others are not.
                (stacked, begun, finished), (separate, *_) = (
                    _counted(call, make(arrays)) for make in (packed, apart)
                )
                assert stacked == separate, (number, shape, dtype)
                if isinstance(stacked[0], list):
                    succeeded += 1
                    # Where a stack fails, its samples are taken one by one, so nobody else sees it.
                    assert begun == finished, (number, shape, dtype)
                    stacked_runs += finished
    assert kernel in ran
    # Calls that always fail would prove nothing.
    assert succeeded > 0
    assert stacked_runs > 0
