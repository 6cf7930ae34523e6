"""Small calls on samples of one shape run in one go; nobody should notice."""

from __future__ import annotations

import numpy as np
import pytest
from tests.calls import CALLS

import penstock as ndd

NUMBERS = [np.arange(1, 13, dtype=np.uint8).reshape(2, 2, 3) * scale for scale in (1, 2, 3, 4, 5)]

TYPICAL = {name: call for name, call in CALLS.items() if call.is_repeatable}

# Calls that are done on the stack of the samples, where that lets axes have other numbers.
STACKED = {
    "transpose": lambda x: ndd.transpose(x, perm=[1, 0, 2]),
    "transpose, nothing moves": lambda x: ndd.transpose(x, perm=[0, 1, 2]),
    "cat, axis 0": lambda x: ndd.cat(x, x, axis=0),
    "cat, axis 2": lambda x: ndd.cat(x, x, x, axis=2),
    "cat, one": lambda x: ndd.cat(x, axis=1),
    "cat, one for all": lambda x: ndd.cat(x, _first(x), axis=1),
    "stack, axis 0": lambda x: ndd.stack(x, x),
    "stack, axis 3": lambda x: ndd.stack(x, x, axis=3),
    "slice": lambda x: ndd.slice(x, rel_start=[0.1, 0.1], rel_end=[0.9, 0.9]),
    "slice, to float": lambda x: ndd.slice(x, end=[1], axes=[1], dtype=ndd.float32),
    "slice, positional": lambda x: ndd.slice(x, [1, 0], [1, 1], axes=[0, 1]),
    "slice, empty": lambda x: ndd.slice(x, start=[1], end=[1], axes=[0]),
    "slice, padded": lambda x: ndd.slice(
        x, start=[-1, -2], end=[5, 4], out_of_bounds_policy="pad", fill_values=[1, 2, 3]
    ),
    "slice, mirrored": lambda x: ndd.slice(
        x, start=[-3], shape=[9], axes=[1], out_of_bounds_policy="reflect_101", dtype=ndd.int16
    ),
    "slice, outside": lambda x: ndd.slice(x, start=[-1], end=[2], axes=[0]),
    "crop": lambda x: ndd.crop(x, crop=[2, 1]),
    "crop, beyond": lambda x: ndd.crop(
        x, crop=[6, 7], out_of_bounds_policy="pad", fill_values=[1, 2, 3], dtype=ndd.float32
    ),
    "pad": lambda x: ndd.pad(x, axis_names="HW", align=[8, 3], fill_value=7),
    "pad, channels": lambda x: ndd.pad(x, axes=[2], shape=[5]),
    "pad, already": lambda x: ndd.pad(x),
    "pad, nothing": lambda x: ndd.pad(x, axes=[3]),
    "coord_transform": lambda x: ndd.coord_transform(x, M=[[1, 2, 3], [4, 5, 6]], T=[0.1, 0.7]),
    "coord_transform, wide": lambda x: ndd.coord_transform(x, MT=2.5, dtype=ndd.float64),
    "coord_transform, misfit": lambda x: ndd.coord_transform(x, M=[1, 2, 3, 4]),
    "normalize": lambda x: ndd.normalize(x),
    "normalize, H and W": lambda x: ndd.normalize(x, axes=[0, 1], ddof=1, epsilon=0.1),
    "normalize, W": lambda x: ndd.normalize(x, axes=[1], scale=64, shift=128, dtype=ndd.uint8),
    "normalize, H and C": lambda x: ndd.normalize(x, axes=[0, 2]),
    "normalize, no axes": lambda x: ndd.normalize(x, axes=[]),
    "normalize, given": lambda x: ndd.normalize(x, mean=3.5, stddev=2.0),
    "normalize, given array": lambda x: ndd.normalize(x, mean=[[[1.0, 2.0, 3.0]]], stddev=2.0),
    "normalize, whole batch": lambda x: ndd.normalize(x, batch=True),
    **{
        f"{name}, axes {axes}": lambda x, reduce=reduce, axes=axes: reduce(
            x, axes=axes, keep_dims=axes == [1]
        )
        for name, reduce in {
            "max": ndd.reductions.max,
            "min": ndd.reductions.min,
            "sum": ndd.reductions.sum,
            "mean": ndd.reductions.mean,
            "mean_square": ndd.reductions.mean_square,
            "rms": ndd.reductions.rms,
        }.items()
        for axes in ([0], [1], [2], [0, 1], [0, 2], [0, 1, 2], [])
    },
    "variance": lambda x: ndd.reductions.variance(x, ndd.reductions.mean(x)),
    "std_dev": lambda x: ndd.reductions.std_dev(
        x, ndd.reductions.mean(x, axes=[0], keep_dims=True), axes=[0]
    ),
    "lookup_table": lambda x: ndd.lookup_table(
        ndd.cast(x, dtype=ndd.int32), keys=(3, 2, 1), values=[0.5, 2, 9], default_value=-1
    ),
}
SHAPES = [(2, 2, 3), (4, 4, 3), (1, 5, 3), (5, 1, 3), (17, 9, 3), (1, 1, 1), (0, 2, 3), (2, 0, 3)]


def _first(x):
    """A sample for all, where `x` is a batch."""
    return x.tensors[0] if isinstance(x, ndd.Batch) else x


def packed(arrays):
    """A batch in one block."""
    return ndd.batch(list(arrays), layout="HWC")


def apart(arrays):
    """A batch of samples in separate memory."""
    return ndd.as_batch([ndd.tensor(array, layout="HWC") for array in arrays])


def outcome(operator, batch):
    """What a call makes, to the last bit, or how it fails."""
    try:
        made = operator(batch)
        return [(row.dtype, row.shape, row.tobytes()) for row in rows(made)], made.layout
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("operator", STACKED.values(), ids=STACKED)
def test_samples_in_one_stack_are_what_they_are_one_by_one(operator):
    draw = np.random.default_rng(1)
    for shape in SHAPES:
        for dtype in (np.uint8, np.float32, np.float64, np.int64, np.bool_):
            arrays = [(draw.normal(9, 9, shape) % 30).astype(dtype) for _ in range(4)]
            found, expected = (outcome(operator, make(arrays)) for make in (packed, apart))
            assert found == expected, (shape, dtype)


def rows(batch):
    return [np.asarray(sample) for sample in batch.tensors]


@pytest.mark.parametrize("in_one_block", [True, False])
@pytest.mark.parametrize("call", TYPICAL.values(), ids=TYPICAL)
def test_a_batch_gives_what_its_samples_give_one_by_one(call, in_one_block):
    batches = [kind.batch(5) for kind in call.inputs]
    if not in_one_block:
        batches = [ndd.as_batch([ndd.copy(sample) for sample in batch]) for batch in batches]
    more = {} if call.inputs else {"batch_size": 5}
    made = call(*batches, **more)
    made = made if isinstance(made, tuple) else (made,)
    for number in range(5):
        for batch, alone in zip(made, call.on_tensors(number), strict=True):
            sample = batch.tensors[number]
            np.testing.assert_array_equal(np.asarray(sample), np.asarray(alone), strict=True)
            assert sample.layout == alone.layout


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
def test_odd_shapes_run_in_one_go_too(shape):
    made = ndd.batch([np.ones(shape, np.int32)] * 3) * 2
    assert made.shape == [shape] * 3
    assert all((row == 2).all() for row in rows(made))


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_a_device_keeps_its_own_copy_of_a_view():
    made = ndd.reshape(packed(NUMBERS).gpu(), shape=[12])
    assert made.device.device_type == "gpu"
    np.testing.assert_array_equal(rows(made.cpu())[2], NUMBERS[2].ravel())
