"""With little memory left, calls raise MemoryError, and the process survives."""

from __future__ import annotations

import importlib
import os
import pkgutil
import resource
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests import images
from tests.stress.fresh import check_fresh

import penstock as ndd
import penstock._errors
import penstock.ops

pytestmark = pytest.mark.heavy

MB = 1 << 20

Call = Callable[[Any], Any]

IMAGES: dict[str, Call] = {
    "resize": lambda x: ndd.resize(x, size=[40, 300_000]),
    "resize, to floats": lambda x: ndd.resize(x, size=[700, 700], dtype=ndd.float32),
    "resize, cubic": lambda x: ndd.resize(x, size=[30, 90_000], interp_type=ndd.types.INTERP_CUBIC),
    "resize, neighbours": lambda x: ndd.resize(
        x, size=[3, 2_000_000], interp_type=ndd.types.INTERP_NN
    ),
    "tensor_resize": lambda x: ndd.tensor_resize(x, sizes=[3000, 1500], axes=[0, 1]),
    "random_resized_crop": lambda x: ndd.random_resized_crop(x, size=[30, 100_000]),
    "resize_crop_mirror": lambda x: ndd.resize_crop_mirror(
        x, size=[30, 100_000], crop=[20, 90_000], mirror=1
    ),
    "warp_affine": lambda x: ndd.warp_affine(x, matrix=[[1, 0.1, 0], [0.1, 1, 0]], dtype=ndd.int16),
    "rotate": lambda x: ndd.rotate(x, angle=33.0, dtype=ndd.float32),
    "gaussian_blur": lambda x: ndd.gaussian_blur(x, sigma=9.0),
    "laplacian": lambda x: ndd.laplacian(x, window_size=5),
    "filter": lambda x: ndd.filter(x, np.ones((9, 9), np.float32)),
    "crop_mirror_normalize": lambda x: ndd.crop_mirror_normalize(
        x, mean=[1.0], std=[2.0], dtype=ndd.float16
    ),
    "slice": lambda x: ndd.slice(x, start=[1, 1], shape=[900, 900], axes=[0, 1]),
    "pad": lambda x: ndd.pad(x, axes=[0, 1], shape=[3000, 3000]),
    "grid_mask": ndd.grid_mask,
    "erase": lambda x: ndd.erase(x, anchor=[0.0, 0.0], shape=[9.0, 9.0]),
    "paste": lambda x: ndd.paste(x, ratio=1.5, fill_value=0),
    "flip": ndd.flip,
    "transpose": lambda x: ndd.transpose(x, perm=[2, 0, 1]),
    "cast": lambda x: ndd.cast(x, dtype=ndd.float64),
    "add, broadcast": lambda x: x + np.ones((1400, 1), np.float64),
    "add, of rows": lambda x: x + np.ones((1400, 3), np.float32),
    "reductions.sum": lambda x: ndd.reductions.sum(x, axes=[0]),
    "reductions.mean": lambda x: ndd.reductions.mean(ndd.cast(x, dtype=ndd.int64), axes=[2]),
    "reductions.std_dev": lambda x: ndd.reductions.std_dev(x, np.float32(3), axes=[2]),
    "reductions.max": lambda x: ndd.reductions.max(x, axes=[2]),
    "normalize": lambda x: ndd.normalize(x, axes=[2]),
    "salt_and_pepper": lambda x: ndd.noise.salt_and_pepper(x, per_channel=True),
    "equalize": ndd.equalize,
    "lookup_table": lambda x: ndd.lookup_table(x, keys=[60_000], values=[1.0]),
    "one_hot": lambda x: ndd.one_hot(ndd.slice(x, start=[0], shape=[1], axes=[0]), num_classes=900),
    "cat": lambda x: ndd.cat(x, x, axis=1),
    "jpeg_compression_distortion": ndd.jpeg_compression_distortion,
}

LONG: dict[str, Call] = {
    "resize, long": lambda x: ndd.resize(x, size=[1, 900_000]),
    "blur, long": lambda x: ndd.gaussian_blur(x, sigma=2.0),
    "laplacian, long": lambda x: ndd.laplacian(x, window_size=3),
    "grid_mask, long": ndd.grid_mask,
    "normalize, long": lambda x: ndd.crop_mirror_normalize(x, dtype=ndd.float16),
    "warp, long": lambda x: ndd.warp_affine(x, matrix=[[1, 0, 0.5], [0, 1, 0]], dtype=ndd.int32),
    "choice, long": lambda x: ndd.random.choice(x, shape=[3]),
}


def _used() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _import_families() -> None:
    """Families load on first use; without memory, Python reports syntax errors in sound files."""
    for package in (penstock.ops, penstock._errors):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def _all_calls(calls: dict[str, Call], shape: tuple[int, ...]) -> None:
    numbers = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape)
    data = ndd.as_tensor((numbers % 251).astype(np.uint8), layout="HWC")
    failed = 0
    _import_families()
    with ndd.EvalContext(num_threads=1), ndd.EvalMode.eager:
        # Starts the threads.
        for _ in range(3):
            ndd.resize(data, size=[1000, 1000]).evaluate()
        for name, call in calls.items():
            for room in (0, 2, 8, 24, 64, 160):
                resource.setrlimit(resource.RLIMIT_AS, (_used() + room * MB, -1))
                try:
                    call(data).evaluate()
                except MemoryError:
                    failed += 1
                except Exception as error:
                    raise AssertionError(f"{name} with {room} MB: {error!r}") from error
                finally:
                    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
            # With memory, the same call works.
            call(data).evaluate()
    assert failed > len(calls), "the limits were too generous to test anything"


def on_images() -> None:
    _all_calls(IMAGES, (1400, 1400, 3))


def on_long_rows() -> None:
    _all_calls(LONG, (1, 4_000_000, 3))


@pytest.mark.parametrize("case", [on_images, on_long_rows], ids=lambda case: case.__name__)
def test_memory_that_is_not_there_is_an_error(case: Callable[[], None]) -> None:
    check_fresh(case, timeout=100)


def threads_of_a_child() -> None:
    """Its first thread would start when there is memory for the stack alone, or not even that."""
    file = ndd.tensor(images.encoded(images.photograph(300, 400)))
    outcomes = []
    for room in (0, 10_000, 100_000, *range(MB, 5 * MB, MB // 4)):
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_AS, (_used() + room, -1))
            warnings.simplefilter("ignore")  # of fewer threads
            try:
                ndd.decoders.image(file).evaluate()
            except MemoryError:
                pass
            os._exit(0)
        outcomes.append(os.waitpid(child, 0)[1])
    assert not any(outcomes), outcomes


def test_no_thread_is_begun_without_memory_for_it() -> None:
    check_fresh(threads_of_a_child)
