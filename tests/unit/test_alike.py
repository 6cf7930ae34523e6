"""Small calls on samples that are described alike are done in one go; nobody should notice."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ndd

NUMBERS = [np.arange(1, 13, dtype=np.uint8).reshape(2, 2, 3) * scale for scale in (1, 2, 3, 4, 5)]

OPERATORS = {
    "flip": lambda x: ndd.flip(x, vertical=1),
    "cast": lambda x: ndd.cast(x, dtype=ndd.float32),
    "copy": lambda x: ndd.copy(x),
    "reshape": lambda x: ndd.reshape(x, shape=[4, 3]),
    "transpose": lambda x: ndd.transpose(x, perm=[2, 0, 1]),
    "compare": lambda x: x < 7,
    "slice": lambda x: ndd.slice(x, start=[1], shape=[1], axes=[0]),
    "stack": lambda x: ndd.stack(x, x),
    "sum": lambda x: ndd.reductions.sum(x, axes=[0]),
    "normalize": lambda x: ndd.normalize(x),
    "lookup": lambda x: ndd.lookup_table(x, keys=[1, 2], values=[5.0, 6.0]),
}


def packed(arrays):
    """A batch in one block."""
    return ndd.batch(list(arrays), layout="HWC")


def apart(arrays):
    """A batch of samples that lie anywhere."""
    return ndd.as_batch([ndd.tensor(array, layout="HWC") for array in arrays])


def rows(batch):
    return [np.asarray(sample) for sample in batch.tensors]


@pytest.mark.parametrize("make", [packed, apart])
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_a_batch_gives_what_its_samples_give_one_by_one(operator, make):
    made = operator(make(NUMBERS))
    alone = [operator(ndd.tensor(array, layout="HWC")) for array in NUMBERS]
    for one, other in zip(rows(made), alone, strict=True):
        np.testing.assert_array_equal(one, np.asarray(other))
    assert made.layout == alone[0].layout


@pytest.mark.parametrize("a", ["packed", "apart", "shared"])
@pytest.mark.parametrize("b", ["packed", "apart"])
def test_operands_may_lie_as_they_like(a, b):
    make = {"packed": packed, "apart": apart, "shared": lambda arrays: ndd.tensor(arrays[0])}
    one, other = make[a](NUMBERS), make[b](NUMBERS[::-1])
    of = lambda kind, arrays, i: arrays[0] if kind == "shared" else arrays[i]  # noqa: E731
    for i, made in enumerate(rows(one + other)):
        np.testing.assert_array_equal(made, of(a, NUMBERS, i) + of(b, NUMBERS[::-1], i))


def test_an_operand_of_fewer_dimensions_is_broadcast_within_its_sample():
    short = [np.array([i, 2 * i, 3 * i], np.uint8) for i in range(5)]
    for i, made in enumerate(rows(packed(NUMBERS) + ndd.batch(short))):
        np.testing.assert_array_equal(made, NUMBERS[i] + short[i])


def test_arguments_may_differ_from_sample_to_sample():
    made = ndd.flip(packed(NUMBERS), horizontal=ndd.batch([0, 1, 0, 1, 1]))
    for i, (flipped, row) in enumerate(zip([0, 1, 0, 1, 1], rows(made), strict=True)):
        np.testing.assert_array_equal(row, NUMBERS[i][:, ::-1] if flipped else NUMBERS[i])


def test_one_sample_fails_alone():
    divisors = [np.full((2, 2, 3), i, np.uint8) for i in (1, 2, 0, 3, 4)]
    made = packed(NUMBERS) // packed(divisors)
    with pytest.raises(ValueError, match="sample 2"):
        made.evaluate()
    np.testing.assert_array_equal(np.asarray(made.tensors[3]), NUMBERS[3] // 3)


def test_results_that_differ_in_shape_are_taken_one_by_one():
    stops = ndd.batch([[1], [2], [1], [2], [1]])
    made = ndd.slice(packed(NUMBERS), end=stops, axes=[0])
    assert [shape[0] for shape in made.shape] == [1, 2, 1, 2, 1]


def test_a_block_can_be_taken_for_one_array_without_a_copy():
    made = packed(NUMBERS) + 1
    whole = np.asarray(ndd.as_tensor(made))
    assert np.shares_memory(whole, np.asarray(made.tensors[4]))
    np.testing.assert_array_equal(whole, np.stack(NUMBERS).astype(np.int32) + 1)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), ()])
def test_odd_shapes_are_alike_too(shape):
    made = ndd.batch([np.ones(shape, np.int32)] * 3) * 2
    assert made.shape == [shape] * 3
    assert all((row == 2).all() for row in rows(made))


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_a_device_keeps_its_own_copy_of_a_view():
    made = ndd.reshape(packed(NUMBERS).gpu(), shape=[12])
    assert made.device.device_type == "gpu"
    np.testing.assert_array_equal(rows(made.cpu())[2], NUMBERS[2].ravel())
