"""Batches as nested tensors of PyTorch."""

import sys

import numpy as np
import pytest

import penstock as ndd
from penstock._values.dtype import BY_CODE

torch = pytest.importorskip("torch")

NUMBERS = [known for known in BY_CODE if known.kind is not ndd.DType.Kind.enum]


def parts(nested):
    assert nested.is_nested
    assert nested.layout == torch.jagged
    return list(nested.unbind())


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_samples_become_the_parts(dtype):
    batch = ndd.batch([[[1, 2]], [[3, 4], [5, 6]], np.zeros((0, 2))], dtype=dtype)
    nested = batch.nested()
    assert nested.shape[0] == 3
    for part, sample in zip(parts(nested), batch, strict=True):
        assert part.dtype == sample.torch().dtype
        assert part.tolist() == sample.torch().tolist()


@pytest.mark.parametrize(
    "batch",
    [
        ndd.batch([[1, 2, 3], [4]]),
        ndd.batch(np.arange(12.0).reshape(3, 4)),
        ndd.batch([np.ones((2, 3, 4)), np.zeros((5, 3, 4))]),
        ndd.batch([np.arange(10), np.arange(6)]).slice[::2],
    ],
    ids=["1-d", "uniform", "3-d", "strided"],
)
def test_parts_are_the_samples_of_any_rank(batch):
    for part, sample in zip(parts(batch.nested()), batch, strict=True):
        np.testing.assert_array_equal(part.numpy(), sample)


def test_writing_to_it_leaves_the_batch_alone():
    batch = ndd.batch([[1, 2], [3]])
    batch.nested().values()[:] = 9
    assert batch.torch(pad=True).tolist() == [[1, 2], [3, 0]]


def test_padding_it_equals_padding_the_batch():
    batch = ndd.batch([[1.0, 2.0], [3.0]])
    padded = torch.nested.to_padded_tensor(batch.nested(), 0.0)
    assert padded.tolist() == batch.torch(pad=True).tolist()


def test_what_can_not_be_nested_is_an_error(monkeypatch):
    ragged = ndd.batch([np.ones((2, 3)), np.ones((2, 4))])
    with pytest.raises(ValueError, match=r"sample 1 is \(2, 4\), sample 0 is \(2, 3\)"):
        ragged.nested()
    with pytest.raises(ValueError, match="the samples are numbers"):
        ndd.batch([1, 2]).nested()
    with pytest.raises(RuntimeError, match="empty batch"):
        ndd.batch([], dtype=ndd.int32).nested()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RuntimeError, match="requires PyTorch"):
        ndd.batch([[1]]).nested()
