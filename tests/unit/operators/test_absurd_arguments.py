"""Numbers that nobody means end a call soon: with a result, or with an error."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.stress.fresh import check_fresh

import penstock as ndd
from penstock.errors import InternalError

NAN, INF = float("nan"), float("inf")

REALS = [1e-300, 1e-9, 1e300, NAN, INF, -INF, 2.0**31, 2.0**63, 1e10, -1.0, 0.0]
INTEGERS = [2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -1, 0, -(2**63)]

Call = Callable[[Any, Any], Any]

# How an absurd number takes part in a call on an image.
WITH_REALS: dict[str, Call] = {
    "resize": lambda x, n: ndd.resize(x, size=[n, 5]),
    "resize, both": lambda x, n: ndd.resize(x, size=[n, n]),
    "resize_x": lambda x, n: ndd.resize(x, resize_x=n),
    "resize_shorter": lambda x, n: ndd.resize(x, resize_shorter=n),
    "resize_longer": lambda x, n: ndd.resize(x, resize_longer=n),
    "max_size": lambda x, n: ndd.resize(x, size=[4, 5], max_size=[n, 5]),
    "not_larger": lambda x, n: ndd.resize(x, size=[n, 5], mode="not_larger"),
    "not_smaller": lambda x, n: ndd.resize(x, size=[n, 5], mode="not_smaller", max_size=9),
    "roi": lambda x, n: ndd.resize(x, size=[4, 5], roi_start=[n, 0.0], roi_end=[4.0, 5.0]),
    "roi_end": lambda x, n: ndd.resize(
        x,
        size=[4, 5],
        roi_start=[0.0, 0.0],
        roi_end=[n, 5.0],
        interp_type=ndd.types.INTERP_LANCZOS3,
    ),
    "roi, relative": lambda x, n: ndd.resize(
        x, size=[4, 5], roi_start=[n, 0.0], roi_end=[1.0, 1.0], roi_relative=True
    ),
    "tensor_resize": lambda x, n: ndd.tensor_resize(x, sizes=[n, 4.0, 3.0]),
    "scales": lambda x, n: ndd.tensor_resize(x, scales=[n, 1.0, 1.0]),
    "alignment": lambda x, n: ndd.tensor_resize(x, sizes=[2.5, 4.0, 3.0], alignment=[n]),
    "resize_crop_mirror": lambda x, n: ndd.resize_crop_mirror(x, size=[n, 5], crop=[9000, 9]),
    "resize_crop_mirror, crop": lambda x, n: ndd.resize_crop_mirror(x, size=[9, 9], crop=[n, 5]),
    "random_area": lambda x, n: ndd.random_resized_crop(x, size=[4, 5], random_area=[n, n]),
    "aspect": lambda x, n: ndd.random_resized_crop(x, size=[4, 5], random_aspect_ratio=[n, n]),
    "crop": lambda x, n: ndd.crop(x, crop=[n, 5]),
    "crop, padded": lambda x, n: ndd.crop(x, crop=[n, 5], out_of_bounds_policy="pad"),
    "crop_pos_x": lambda x, n: ndd.crop(x, crop=[2, 2], crop_pos_x=n),
    "crop_mirror_normalize": lambda x, n: ndd.crop_mirror_normalize(
        x, crop=[n, 5], out_of_bounds_policy="pad"
    ),
    "mean": lambda x, n: ndd.crop_mirror_normalize(x, mean=[n], std=[n]),
    "slice": lambda x, n: ndd.slice(x, rel_start=[n], rel_end=[1.0], axes=[0]),
    "slice, padded": lambda x, n: ndd.slice(
        x, rel_start=[0.0], rel_shape=[n], axes=[0], out_of_bounds_policy="pad"
    ),
    "paste": lambda x, n: ndd.paste(x, ratio=n, fill_value=0),
    "paste_x": lambda x, n: ndd.paste(x, ratio=2.0, paste_x=n, fill_value=0),
    "min_canvas_size": lambda x, n: ndd.paste(x, ratio=1.0, min_canvas_size=n, fill_value=0),
    "rotate": lambda x, n: ndd.rotate(x, angle=n),
    "rotate, size": lambda x, n: ndd.rotate(x, angle=10.0, size=[n, 5.0]),
    "warp_affine, size": lambda x, n: ndd.warp_affine(
        x, matrix=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], size=[n, 5.0]
    ),
    "warp_affine": lambda x, n: ndd.warp_affine(x, matrix=[[n, 0.0, 0.0], [0.0, 1.0, n]]),
    "warp_affine, inverse": lambda x, n: ndd.warp_affine(
        x, matrix=[[n, 0.0, n], [0.0, n, 0.0]], inverse_map=True, dtype=ndd.float32
    ),
    "gaussian_blur": lambda x, n: ndd.gaussian_blur(x, sigma=n),
    "laplacian": lambda x, n: ndd.laplacian(x, window_size=3, scale=[n]),
    "erase": lambda x, n: ndd.erase(x, anchor=[n, 0.0], shape=[n, 2.0], axes=[0, 1]),
    "erase, centered": lambda x, n: ndd.erase(
        x, anchor=[n, 0.0], shape=[n, n], axes=[0, 1], normalized=True, centered_anchor=True
    ),
    "grid_mask": lambda x, n: ndd.grid_mask(x, ratio=n, angle=n, shift_x=n),
    "brightness": lambda x, n: ndd.brightness_contrast(x, brightness=n, contrast=n),
    "shear": lambda x, n: ndd.shear_x(ndd.shear_y(x, shear=n), shear=n, interp_type="linear"),
    "translate": lambda x, n: ndd.translate_x(ndd.translate_y(x, offset=n), offset=n),
    "sharpness": lambda x, n: ndd.sharpness(x, sharpness_factor=n),
    "solarize": lambda x, n: ndd.solarize(x, threshold=n),
    "erasing": lambda x, n: ndd.random_erasing(x, p=1, ratio=[n, n], fill_value=n),
    "motion_blur": lambda x, n: ndd.motion_blur(x, angle=n, direction=n),
    "elastic": lambda x, n: ndd.elastic_transform(x, alpha=n),
    "elastic, sigma": lambda x, n: ndd.elastic_transform(x, sigma=n),
    "perspective": lambda x, n: ndd.random_perspective(x, p=1, distortion_scale=n),
    "augmix": lambda x, n: ndd.auto_aug.augmix(x, alpha=n),
    "apply": lambda x, n: ndd.auto_aug.apply(x, operations=[1, 3, 5, 8], magnitudes=n),
    "mixup": lambda x, n: ndd.mixup(x, 1, alpha=n, num_classes=3)[0],
    "normalize": lambda x, n: ndd.normalize(x, mean=n, stddev=n),
    "noise": lambda x, n: ndd.noise.gaussian(x, mean=n, stddev=n),
    "shot": lambda x, n: ndd.noise.shot(x, factor=n),
    "uniform": lambda x, n: ndd.random.uniform(range=[0.0, n], shape=[9]),
    "normal": lambda x, n: ndd.random.normal(mean=n, stddev=n, shape=[9]),
    "beta": lambda x, n: ndd.random.beta(alpha=n, beta=n, shape=[9]),
}

WITH_INTEGERS: dict[str, Call] = {
    "random_resized_crop": lambda x, n: ndd.random_resized_crop(x, size=[n, 5]),
    "num_attempts": lambda x, n: ndd.random_resized_crop(
        x, size=[4, 5], num_attempts=n, random_area=[2.0, 3.0]
    ),
    "slice": lambda x, n: ndd.slice(x, start=[n], shape=[2], axes=[0], out_of_bounds_policy="pad"),
    "slice, shape": lambda x, n: ndd.slice(
        x, start=[1], shape=[n], axes=[0], out_of_bounds_policy="wrap"
    ),
    "slice, axes": lambda x, n: ndd.slice(x, start=[0], end=[1], axes=[n]),
    "pad": lambda x, n: ndd.pad(x, axes=[0], shape=[n]),
    "align": lambda x, n: ndd.pad(x, axes=[0], align=[n]),
    "posterize": lambda x, n: ndd.posterize(x, bits=n),
    "kernel_size": lambda x, n: ndd.motion_blur(x, kernel_size=n),
    "num_ops": lambda x, n: ndd.auto_aug.rand_augment(x, num_ops=n),
    "num_magnitude_bins": lambda x, n: ndd.auto_aug.trivial_augment_wide(x, num_magnitude_bins=n),
    "chain_depth": lambda x, n: ndd.auto_aug.augmix(x, chain_depth=n),
    "mixture_width": lambda x, n: ndd.auto_aug.augmix(x, mixture_width=n),
    "operations": lambda x, n: ndd.auto_aug.apply(x, operations=[n]),
    "num_classes": lambda x, n: ndd.cutmix(x, 1, num_classes=n)[0],
    "window_size": lambda x, n: ndd.gaussian_blur(x, window_size=n),
    "laplacian": lambda x, n: ndd.laplacian(x, window_size=n),
    "smoothing_size": lambda x, n: ndd.laplacian(x, window_size=3, smoothing_size=n),
    "one_hot": lambda x, n: ndd.one_hot(np.int32(1), num_classes=n),
    "zeros": lambda x, n: ndd.zeros(shape=[n, 3]),
    "full": lambda x, n: ndd.full(np.float32(1), shape=[n]),
    "lookup_table": lambda x, n: ndd.lookup_table(x, keys=[n], values=[1.0]),
    "sequence_rearrange": lambda x, n: ndd.sequence_rearrange(
        ndd.as_tensor(np.zeros((3, 4), np.uint8), layout="FW"), new_order=[n]
    ),
    "tile": lambda x, n: ndd.grid_mask(x, tile=n),
    "uniform": lambda x, n: ndd.random.uniform(shape=[n]),
    "normal": lambda x, n: ndd.random.normal(shape=[n, n]),
    "choice": lambda x, n: ndd.random.choice(np.int64(n), shape=[3]),
    "reshape": lambda x, n: ndd.reshape(x, shape=[n, 3]),
    "transpose": lambda x, n: ndd.transpose(x, perm=[n, 0, 1]),
    "axis": lambda x, n: ndd.stack(x, x, axis=n),
    "axes": lambda x, n: ndd.reductions.sum(x, axes=[n]),
    "ddof": lambda x, n: ndd.normalize(x, ddof=n),
    "quality": lambda x, n: ndd.jpeg_compression_distortion(x, quality=n),
}

EXPECTED = (ValueError, RuntimeError, TypeError, MemoryError, OverflowError, IndexError)


def _try_all(calls: dict[str, Call], numbers: list[Any]) -> None:
    image = ndd.as_tensor(np.arange(60, dtype=np.uint8).reshape(4, 5, 3), layout="HWC")
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    with ndd.EvalContext(num_threads=1), ndd.EvalMode.eager:
        ndd.flip(image).evaluate()
        # Nothing here needs much memory, unless it is absurd as well.
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), -1))
        for name, call in calls.items():
            for number in numbers:
                print(name, number, flush=True)
                try:
                    call(image, number).evaluate()
                except EXPECTED as error:
                    if isinstance(error, InternalError):
                        raise AssertionError(f"{name}, {number}: {error}") from error


def real_numbers() -> None:
    _try_all(WITH_REALS, REALS)


def integers() -> None:
    _try_all(WITH_INTEGERS, INTEGERS)


@pytest.mark.parametrize("case", [real_numbers, integers], ids=lambda case: case.__name__)
def test_absurd_numbers_end_soon(case: Callable[[], None]) -> None:
    check_fresh(case, timeout=100)
