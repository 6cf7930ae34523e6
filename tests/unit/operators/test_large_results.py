"""Results that are larger than the caches are written another way, and are the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.calls import CALLS

import penstock as ndd

pytestmark = pytest.mark.heavy

# Of a call; as in the engine.
AROUND_CACHES_BYTES = 32 << 20

OPERATORS: dict[str, Callable[[Any], Any]] = {
    **{name: CALLS[name] for name in ("copy", "cast", "zeros_like", "transpose", "lookup_table")},
    "flip": lambda x: ndd.flip(x, horizontal=1, vertical=0),
    "flip, both ways": lambda x: ndd.flip(x, horizontal=1, vertical=1),
    "flip, vertical": lambda x: ndd.flip(x, horizontal=0, vertical=1),
    "add": lambda x: x + 1,
    "add, per channel": lambda x: x + np.array([1, 2, 3], np.uint8),
    "less": lambda x: x < 100,
    "half": lambda x: ndd.cast(x, dtype=ndd.float32) / 3,
    "cast_like": lambda x: ndd.cast_like(x, np.float16(0)),
    "slice": lambda x: ndd.slice(x, rel_start=[0.01, 0.013], rel_end=[0.99, 0.991]),
    "slice, beyond": lambda x: ndd.slice(
        x, start=[-7, -5], shape=[1500, 1600], axes=[0, 1], out_of_bounds_policy="pad"
    ),
    "subscript": lambda x: x.slice[1:, 3:],
    "pad": lambda x: ndd.pad(x, axes=[0, 1], shape=[1501, 1499], fill_value=7),
    "cat": lambda x: ndd.cat(x, x, axis=1),
    "cat, narrow": lambda x: ndd.cat(x, x, axis=2),
    "stack": lambda x: ndd.stack(x, x, axis=1),
    "full_like": lambda x: ndd.full_like(x, np.array([4, 5, 6], np.uint8)),
    "normalize": lambda x: ndd.normalize(x, axes=[0, 1]),
    "erase": lambda x: ndd.erase(x, anchor=[30, 50], shape=[400, 33], axis_names="HW"),
    "grid_mask": lambda x: ndd.grid_mask(x, tile=37),
    "sequence_rearrange": lambda x: ndd.sequence_rearrange(x, new_order=range(1399, -1, -1)),
}
"""All kernels that write this way, each on rows that start anywhere in a cache line."""


@pytest.fixture(scope="module")
def samples() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = [(1401, 1449, 3), (1400, 1450, 3), (1403, 1451, 3)]
    return [rng.integers(0, 256, shape, dtype=np.uint8) for shape in 2 * shapes]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("uniform", [False, True], ids=["ragged", "uniform"])
def test_a_large_batch_is_what_its_samples_are(
    name: str, uniform: bool, samples: list[np.ndarray]
) -> None:
    operator = OPERATORS[name]
    layout = "FHW" if name == "sequence_rearrange" else "HWC"
    data = [np.roll(samples[0], i, axis=1) for i in range(6)] if uniform else samples
    together = operator(ndd.batch(data, layout=layout)).evaluate()
    for sample, result in zip(data, together, strict=True):
        [alone] = operator(ndd.batch([sample], layout=layout))
        np.testing.assert_array_equal(np.asarray(result), np.asarray(alone))
        # Or both would be written the same way.
        size = np.asarray(result).nbytes
        assert size < AROUND_CACHES_BYTES <= size * len(data)


PIXEL = ndd.tensor(np.ones((1, 1, 1), np.uint8), layout="HWC")
GROWING: dict[str, Callable[[], Any]] = {
    "one_hot": lambda: ndd.one_hot(ndd.tensor([1]), num_classes=30_000_000),
    "one_hot of a batch": lambda: ndd.one_hot(ndd.batch([1, 2]), num_classes=15_000_000),
    "pad": lambda: ndd.pad(PIXEL, axes=[0, 1], shape=[8000, 8000]),
    "slice": lambda: ndd.slice(
        PIXEL, start=[0, 0], shape=[8000, 8000], axes=[0, 1], out_of_bounds_policy="pad"
    ),
    "crop": lambda: ndd.crop(PIXEL, crop=[8000, 8000], out_of_bounds_policy="pad"),
    "resize": lambda: ndd.resize(PIXEL, size=[8000, 8000]),
    "rotate": lambda: ndd.rotate(PIXEL, angle=9, size=[8000, 8000]),
    "paste": lambda: ndd.paste(PIXEL, ratio=8000, fill_value=1),
    "full": lambda: ndd.full(1, shape=[30_000_000]),
    "uniform": lambda: ndd.random.uniform(shape=[30_000_000]),
    "sequence_rearrange": lambda: ndd.sequence_rearrange(
        ndd.tensor(np.ones((1, 1000), np.uint8), layout="FW"), new_order=[0] * 60_000
    ),
    "add": lambda: (
        ndd.tensor(np.ones((8000, 1), np.uint8)) + ndd.tensor(np.ones((1, 8000), np.uint8))
    ),
    "cat": lambda: ndd.cat(*[ndd.tensor(np.ones(100_000, np.uint8))] * 400),
}


@pytest.mark.parametrize("name", GROWING)
def test_large_results_of_small_inputs_do_not_hold_up_the_caller(name: str) -> None:
    GROWING[name]().evaluate()  # for its module and the threads to be there
    here, all_threads = time.thread_time(), time.process_time()
    GROWING[name]().evaluate()
    assert time.thread_time() - here < 0.5 * (time.process_time() - all_threads)
