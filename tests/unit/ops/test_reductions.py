"""Reductions and `normalize`, in cases that can't be compared with DALI."""

import numpy as np
import pytest

import penstock as ndd

X = np.random.default_rng(0).integers(-50, 50, (6, 7, 3)).astype("f4")


def test_strided_input():
    view = X[::2, ::-1, 1:]
    for axes in (None, 0, [0, 1], 2):
        got = ndd.reductions.sum(view, axes=axes)
        assert np.array_equal(got, view.sum(axis=None if axes is None else tuple(np.ravel(axes))))
    assert np.allclose(ndd.normalize(view), (view - view.mean()) / view.std(), atol=1e-5)


@pytest.mark.parametrize("dtype", [ndd.bfloat16, ndd.float16, ndd.float64], ids=str)
def test_floats_of_any_size(dtype):
    x = ndd.cast(ndd.tensor(X), dtype=dtype)
    assert ndd.reductions.max(x).dtype is dtype
    assert float(np.asarray(ndd.cast(ndd.reductions.max(x), dtype=ndd.float32))) == X.max()
    assert np.allclose(ndd.reductions.mean(x, axes=0), X.mean(axis=0), atol=1e-5)
    rms = np.sqrt((X.astype("f8") ** 2).mean(axis=2))
    assert np.allclose(ndd.reductions.rms(x, axes=2), rms, atol=1e-4)
    deviation = ndd.reductions.std_dev(x, ndd.reductions.mean(x, axes=1), axes=1)
    assert np.allclose(deviation, X.std(axis=1), atol=1e-4)
    assert np.allclose(ndd.normalize(x), (X - X.mean()) / X.std(), atol=1e-4)


def test_sums_of_many_small_numbers_are_exact_enough():
    x = np.full(3_000_000, 0.1, "f4")
    assert np.asarray(ndd.reductions.sum(x)) == pytest.approx(300_000, rel=1e-6)
    assert np.asarray(ndd.reductions.mean_square(x)) == pytest.approx(0.01, rel=1e-6)


def test_a_small_variance_beside_a_large_mean():
    x = np.float32([16_000_000, 16_000_001, 16_000_002] * 1000)
    assert np.allclose(np.unique(ndd.normalize(x)), [-1.2247449, 0, 1.2247449], atol=1e-4)


@pytest.mark.parametrize("mode", list(ndd.EvalMode), ids=str)
def test_a_shared_fault_is_that_of_normalize(mode):
    samples = ndd.batch([np.zeros((2, 3), "f4"), np.zeros((4, 3), "f4")])
    with mode, pytest.raises(RuntimeError, match=r"normalize: .*sample 1 .*\[4, 1\]"):
        ndd.normalize(samples, axes=1, batch=True).evaluate()


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_a_batch_on_another_device_shares_its_statistics_there():
    samples = ndd.batch([[1.0, 2.0], [3.0]]).gpu()
    made = ndd.normalize(samples, batch=True)
    assert made.device == samples.device
    whole = np.concatenate([np.asarray(t) for t in made.cpu().tensors])
    assert np.allclose(whole, np.float32([-1, 0, 1]) * 1.5**0.5)


def test_a_missing_statistic_is_named():
    with pytest.raises(RuntimeError, match="`stddev` is missing"):
        ndd.normalize(X, mean=X)
    with pytest.raises(RuntimeError, match=r"`mean` has the shape \[2\].* needs \[1, 1, 1\]"):
        ndd.normalize(X, mean=np.ones(2, "f4"), axes=[0, 1, 2])


def test_a_mean_of_another_shape_is_refused():
    with pytest.raises(RuntimeError, match=r"the mean has the shape \[7\]"):
        ndd.reductions.variance(X, np.ones(7, "f4"), axes=[0, 1])
