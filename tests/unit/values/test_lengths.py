"""Padded batches and the lengths of their samples, for speech models."""

import numpy as np
import pytest
import torch

import penstock as ndd

SOUNDS = [np.float32([1, 2, 3]), np.float32([4]), np.float32([])]


def test_lengths_come_with_the_padded_tensor():
    padded, lengths = ndd.batch(SOUNDS).torch(pad=True, return_lengths=True)
    assert padded.tolist() == [[1, 2, 3], [4, 0, 0], [0, 0, 0]]
    assert lengths.tolist() == [3, 1, 0]
    assert lengths.dtype == torch.int64
    assert lengths.device.type == "cpu"


@pytest.mark.parametrize(
    ("layout", "axis"),
    [("ft", 1), ("tf", 0), ("Cft", 2), ("t", 0), ("HW", 0), (None, 0), ("FHWC", 0)],
)
def test_lengths_are_those_of_time_or_else_of_the_first_axis(layout, axis):
    ndim = len(layout or "HWC")
    shapes = np.random.default_rng(0).integers(1, 6, (4, ndim))
    batch = ndd.batch([np.zeros(shape, "f4") for shape in shapes], layout=layout)
    padded, lengths = batch.torch(pad=True, return_lengths=True)
    assert lengths.tolist() == shapes[:, axis].tolist()
    assert padded.shape == (4, *shapes.max(0))


def test_lengths_do_not_need_padding():
    made, lengths = ndd.batch([[1, 2], [3, 4]]).torch(return_lengths=True)
    assert made.tolist() == [[1, 2], [3, 4]]
    assert lengths.tolist() == [2, 2]
    with pytest.raises(ValueError, match="pad=True"):
        ndd.batch(SOUNDS).torch(return_lengths=True)


def test_lengths_of_results_that_are_still_being_made():
    stretched = ndd.time_stretch(ndd.batch([np.ones(n, "f4") for n in (4000, 1000)]), rate=2)
    padded, lengths = stretched.torch(pad=True, return_lengths=True)
    assert padded.shape == (2, 2000)
    assert lengths.tolist() == [2000, 500]


@pytest.mark.usefixtures("emulated")
def test_lengths_of_a_batch_on_a_gpu_are_on_the_cpu():
    _, lengths = ndd.batch(SOUNDS, device="gpu").torch(pad=True, return_lengths=True)
    assert lengths.device.type == "cpu"
    assert lengths.tolist() == [3, 1, 0]


def test_lengths_suit_packed_sequences():
    batch = ndd.batch([np.ones((n, 2), "f4") for n in (2, 5, 3)])
    padded, lengths = batch.torch(pad=True, return_lengths=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(padded, lengths, True, enforce_sorted=False)
    assert packed.data.sum() == 20


def test_scalars_and_empty_batches_have_no_lengths():
    with pytest.raises(ValueError, match="`return_lengths` needs samples with at least one dim"):
        ndd.batch([1, 2]).torch(return_lengths=True)
    with pytest.raises(RuntimeError, match=r"Batch\.torch: an empty batch"):
        ndd.batch([], dtype=ndd.float32).torch(pad=True, return_lengths=True)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "?"])
def test_another_number_can_pad(dtype):
    arrays = [np.ones((2, 3), dtype), np.zeros((1, 4), dtype), np.ones((0, 2), dtype)]
    expected = np.full((3, 2, 4), np.array(7).astype(dtype), dtype)
    for row, array in zip(expected, arrays, strict=True):
        row[: array.shape[0], : array.shape[1]] = array
    batch = ndd.batch(arrays)
    np.testing.assert_array_equal(
        batch.torch(pad=True, fill_value=7).numpy(), expected, strict=True
    )
    for make in (ndd.tensor, ndd.as_tensor):
        made = np.asarray(make(batch, pad=True, fill_value=7))
        np.testing.assert_array_equal(made, expected, strict=True)


def test_fill_values_are_converted_like_other_numbers():
    ragged = ndd.batch([np.uint8([1, 2]), np.uint8([3])])
    for given, expected in [(-5, 0), (300, 255), (6.6, 7), (0, 0), (0.0, 0), (np.float32(9), 9)]:
        assert ragged.torch(pad=True, fill_value=given)[1].tolist() == [3, expected]
    floats = ndd.batch(SOUNDS[:2])
    assert floats.torch(pad=True, fill_value=float("-inf"))[1, 1] == float("-inf")
    assert torch.isnan(floats.torch(pad=True, fill_value=float("nan"))[1, 2])
    assert ndd.batch([[1, 2]]).torch(fill_value=5).tolist() == [[1, 2]]


@pytest.mark.parametrize("bad", ["x", None, [1, 2], b"1", 10**400])
def test_bad_fill_values_are_refused(bad):
    with pytest.raises(TypeError, match=r"Batch\.torch: `fill_value` must be a number"):
        ndd.batch(SOUNDS).torch(pad=True, fill_value=bad)
    with pytest.raises(TypeError, match="as_tensor: `fill_value` must be a number"):
        ndd.as_tensor(ndd.batch(SOUNDS), pad=True, fill_value=bad)
