"""Indexing: `Tensor[...]`, `Batch.slice[...]`, `Batch.tensors[...]`, `Batch.select(...)`."""

import random

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

GRID = np.arange(12).reshape(3, 4)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

INDICES = [
    # integers and ranges
    "1", "-1", "1, 2", "-1, -1", ":, 1", "1, :", "1:", ":2", "-2:", ":-1", "0:2, 1:3", "::2",
    # steps
    "::-1", "::-1, ::-2", "2:0:-1", "10:0:-2", "1::2, ::3", "-1:-3:-1", "0:2:-1",
    # ranges beyond the ends
    "5:", ":, 5:9", "-10:2", ":-10", "2:0", "100:-100:-1",
    # ellipsis
    "..., 1", "1, ...", "1, ..., 2", "1, 2, ...", "..., 1:, 1:",
    # nothing to do
    ":", "...", "()", ":, :", "0:", "::1", ":, ...",
    # scalars of other kinds
    "np.int64(1)", "np.uint8(2)", "np.array(1)", "np.int64(1):np.int32(3)", "::np.int64(2)",
    "ndd.tensor(1)", "ndd.tensor(1):", ":ndd.tensor(1), ndd.tensor(-1)", "::ndd.tensor(-1)",
    "ndd.tensor(np.int64(1)), ndd.tensor(np.uint8(1))", "(slice(0, 1),)", "(1,)",
]  # fmt: skip

BAD_INDICES = ["3", "-4", "0, 4", "::0", ":, ::0", "[0, 1]", "np.array([0, 1])", "ndd.tensor([1])"]

PER_SAMPLE = [
    "i", "i:", ":i", "::i", "::j", ":, i", "0, i", "i, i", "0:i, -1", "i:, ::-1", "j", "..., j",
    "i, ndd.tensor(0)", "i:i", "0:i:1, i:", "np.int64(0), i", "j:", "::j, i:",
]  # fmt: skip


def random_index(rng: random.Random, ndim: int) -> str:
    """Integers in range and any ranges, for some of the axes."""

    def part() -> str:
        if rng.random() < 0.25:
            return str(rng.choice([0, 1, -1, -2]))
        start, stop = (rng.choice(["", *map(str, range(-6, 7))]) for _ in range(2))
        if rng.random() < 0.5:
            return f"{start}:{stop}:{rng.choice(['', '1', '-1'])}"
        # Larger steps only with an open end: DALI crashes if the end is before the start.
        start, stop = rng.choice([(start, ""), ("", stop)])
        return f"{start}:{stop}:{rng.choice([2, 3, -2, -3])}"

    parts = [part() for _ in range(rng.randint(1, ndim))]
    if rng.random() < 0.3:
        parts.insert(rng.randint(0, len(parts)), "...")
    return ", ".join(parts)


RANDOM = sorted({random_index(random.Random(seed), 3) for seed in range(120)})


@pytest.mark.parametrize("index", INDICES)
def test_tensors_are_indexed_alike(index):
    # Evaluated first: before that, DALI truncates the layout.
    assert_same(f"ndd.tensor(x, layout='HW')[{index}].evaluate()", x=GRID)


@pytest.mark.parametrize("index", INDICES)
def test_batches_are_indexed_alike(index):
    assert_same(f"ndd.batch([x, x[:, :2] + 100], layout='HW').slice[{index}]", x=GRID)


@pytest.mark.parametrize("index", RANDOM)
def test_random_indices_give_the_same(index):
    source = f"ndd.tensor(x, layout='HWC')[{index}].evaluate(), ndd.batch([x, x]).slice[{index}]"
    assert_same(source, x=CUBE)


@pytest.mark.parametrize("index", PER_SAMPLE)
def test_each_sample_takes_its_own_index(index):
    prepare = "i, j = ndd.batch([1, 2]), ndd.batch([-1, -2])"
    assert_same(f"{prepare}\nndd.batch([x, x + 50], layout='HW').slice[{index}]", x=GRID)


@pytest.mark.parametrize("index", BAD_INDICES)
def test_bad_indices_raise_the_same(index):
    assert_same(f"ndd.tensor(x)[{index}].evaluate()", x=GRID)
    assert_same(f"ndd.batch([x, x]).slice[{index}].evaluate()", x=GRID)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.tensor(x)[1, 2, 3]",
        "ndd.tensor(x)[1, 1, ..., 2]",
        "ndd.tensor(x)[..., 1, ...]",
        "ndd.tensor(5)[0]",
        "ndd.tensor(5)[()], ndd.tensor(5)[...]",
        "ndd.tensor(np.zeros((0, 3)))[0].evaluate()",
        "ndd.tensor(np.zeros((0, 3)))[0:1], ndd.tensor(np.zeros((0, 3)))[::-1]",
        "b = ndd.batch(np.zeros((0, 3)))\nb.slice[0].evaluate(), b.slice[0:1].evaluate()",
        "ndd.batch([x, x]).slice[ndd.batch([1, 2, 3])]",
        "ndd.batch([x, x]).slice[ndd.batch([1])]",
        "ndd.batch([x, x]).slice[ndd.batch([[1], [1]])].evaluate()",
        "ndd.batch([x, x[:2]]).slice[2].evaluate()",
        "ndd.batch([x, x]).slice[ndd.batch([0, 3])].evaluate()",
        "ndd.batch([x, x]).slice[::ndd.batch([1, 0])].evaluate()",
        "ndd.tensor(x)[0] = 1",
        "ndd.batch([x, x]).slice[0] = 1",
        "ndd.batch([x, x])[0]",
        "ndd.batch([x, x])[0:1]",
        "ndd.batch([x, x])[0] = 1",
    ],
)
def test_edges_agree(source):
    assert_same(source, x=GRID)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.tensor([True, False, True])[::-1], ndd.batch([[True], [False]]).slice[0]",
        "ndd.tensor(np.float16([1, 2, 3]))[1:], ndd.tensor(np.uint64([1, 2**63]))[-1]",
        "ndd.tensor([types.RGB, types.GRAY])[1], ndd.batch([[types.RGB]] * 2).slice[0]",
    ],
)
def test_every_dtype_can_be_indexed(source):
    assert_same(source)


def test_layouts_lose_the_letters_of_integers():
    batch = "ndd.batch([x, x], layout='HWC')"
    for index in ("0", ":, 0", "..., 0", "0, 0", "0, 0, 0", "0:1", "0:1, 0", ":, 0, 0"):
        assert_same(f"ndd.tensor(x, layout='HWC')[{index}].evaluate().layout", x=CUBE)
        assert_same(f"{batch}.slice[{index}].layout", x=CUBE)
    for index in ("i", ":, i", "i:", "i, i"):
        assert_same(f"i = ndd.batch([0, 1])\n{batch}.slice[{index}].layout", x=CUBE)


@pytest.mark.parametrize("index", [":", "...", "()", ":, :", "0:", "::1", "..., :", "0:3", "0"])
def test_an_index_that_changes_nothing_gives_the_tensor_itself(index):
    assert_same(f"t = ndd.tensor(x)\nt[{index}] is t", x=GRID)


@pytest.mark.parametrize("index", [":", "()", ":, :", "0:", "0:3", "0"])
def test_an_index_that_changes_nothing_gives_the_batch_itself(index):
    assert_same(f"b = ndd.batch([x, x])\nb.slice[{index}] is b", x=GRID)


def test_half_of_each_image():
    assert_same(
        """
        images = ndd.batch([np.arange(4).reshape(4, 1), np.arange(6).reshape(6, 1)])
        heights = ndd.batch(images.shape).slice[0]
        images.slice[1:heights], images.slice[heights + -2:], heights
        """
    )


SELECTIONS = [
    "b.tensors[0], b.tensors[-1], b.tensors[np.int64(1)]",
    "b.select(1), b.select(-1), b.select(np.int32(1))",
    "len(b.tensors), b.tensors.tolist(), list(b.tensors), list(b)",
    "b.tensors.select(1), b.tensors[...], b.tensors.as_batch()",
    "b.select(...) is b",
    "b.tensors[3]",
    "b.tensors[-4]",
    "b.tensors[[5]]",
    "b.tensors['a']",
    "b.tensors[1.0]",
    "b.tensors[None]",
    "b.select(3)",
    "b.select([5])",
    "b.select(None)",
    "b.select('a')",
    "b.select(1.5)",
    "b.select()",
    "reversed(b)",
]


@pytest.mark.parametrize("source", SELECTIONS)
def test_samples_are_selected_alike(source):
    assert_same(f"b = ndd.batch([[10], [20, 21], [30]], layout='X')\n{source}")


REFUSED = [
    "ndd.tensor([1, 2])['a']",
    "ndd.tensor([1, 2])['a':]",
    "ndd.tensor([1, 2])[2**31]",
    "ndd.tensor([1, 2])[np.array([True, False])].evaluate()",
    "ndd.tensor([1, 2])[ndd.batch([0, 1])]",
    "ndd.batch([[1], [2]]).slice['a']",
    "ndd.batch([[1], [2]]).slice[0, 0].evaluate()",
    "ndd.batch([1, 2]).slice[0].evaluate()",
    "ndd.batch([[1], [2]]).tensors[ndd.batch([1, 0])]",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


SELECTED = "a selection is what it says, not the whole batch"
AXIS = "None makes a new axis, as in NumPy"
DIFFERS = [
    Differs("len(ndd.batch([10, 20, 30]))", "3", "a batch has a length, as a list has"),
    Differs("ndd.batch([10, 20, 30]).select([2, 0])", "ndd.batch([30, 10])", SELECTED),
    Differs("ndd.batch([10, 20, 30]).select(slice(1, None))", "ndd.batch([20, 30])", SELECTED),
    Differs("ndd.batch([10, 20, 30]).tensors[1:]", "ndd.batch([20, 30])", SELECTED),
    Differs("ndd.batch([10, 20, 30]).tensors[[2, 0]]", "ndd.batch([30, 10])", SELECTED),
    Differs("ndd.batch([10, 20, 30]).tensors[5:]", "ndd.batch([], dtype=ndd.int32)", SELECTED),
    Differs("ndd.tensor([1, 2])[None]", "ndd.tensor([[1, 2]])", AXIS),
    Differs("ndd.batch([[1, 2], [3]]).slice[None]", "ndd.batch([[[1, 2]], [[3]]])", AXIS),
    Differs("ndd.tensor([1, 2])[: 2**40]", "ndd.tensor([1, 2])", "ranges end at the end"),
    Differs(
        "list(ndd.tensor([5, 6]))",
        "[ndd.tensor(5), ndd.tensor(6)]",
        "going over a tensor stops at its end",
        ask=False,
    ),
    Differs(
        "ndd.tensor([[1, 2, 3]])[:, 2:0:2]",
        "ndd.tensor(np.zeros((1, 0), np.int32))",
        "a range that ends before it starts is empty, whatever its step",
        ask=False,
    ),
    Differs(
        "ndd.tensor(np.zeros((2, 3, 4)), layout='HWC')[:, 0].layout",
        "'HC'",
        "the layout is the same before evaluation and after it",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()
