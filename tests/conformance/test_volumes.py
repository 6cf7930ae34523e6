"""Volumes: operators on data with a depth axis."""

import numpy as np
import pytest

from tests.conformance.oracle import assert_same

RNG = np.random.default_rng(14)
# Sums of single precision in another order, of numbers up to 255.
NEARLY = 5e-3

CALLS = [
    "ndd.brightness(x, brightness=1.5)", "ndd.contrast(x, contrast=0.5)",
    "ndd.brightness_contrast(x, brightness=0.7, contrast=1.3)",
    "ndd.color_twist(x, hue=30, saturation=0.5)", "ndd.hue(x, hue=20)",
    "ndd.saturation(x, saturation=0.3)", "ndd.cast(x, dtype=ndd.float64)", "ndd.copy(x)",
    "ndd.crop(x, crop=[3, 4, 5])", "ndd.crop(x, crop_d=2, crop_h=3, crop_w=4, crop_pos_z=0.2)",
    "ndd.crop_mirror_normalize(x, crop=[3, 4, 5], mirror=1, mean=[1, 2, 3], output_layout='CDHW')",
    "ndd.erase(x, anchor=[1, 2, 3], shape=[2, 2, 2], axis_names='DHW')",
    "ndd.flip(x, depthwise=1, vertical=1)", "ndd.gaussian_blur(x, sigma=[0.5, 1.0, 2.0])",
    "ndd.laplacian(x, window_size=3)", "ndd.normalize(x, axes=[0, 1, 2])",
    "ndd.resize(x, size=[4, 5, 6])", "ndd.resize(x, resize_z=3, mode='stretch')",
    "ndd.resize(x, size=[9, 12, 4], interp_type=types.INTERP_CUBIC)",
    "ndd.resize_crop_mirror(x, size=[6, 7, 8], crop=[3, 4, 5], mirror=4)",
    "ndd.slice(x, start=[1, 2], shape=[3, 4], axis_names='DW')",
    "ndd.tensor_resize(x, sizes=[4, 5, 6, 3])", "ndd.transpose(x, perm=[3, 0, 1, 2])",
    "ndd.expand_dims(x, axes=[0], new_axis_names='F')",
    "ndd.rotate(x, angle=30, axis=[0, 0, 1], fill_value=0)",
    "ndd.rotate(x, angle=-75, axis=[1, 2, 3], keep_size=True)",
    "ndd.rotate(x, angle=90, axis=[0, 1, 0], interp_type=types.INTERP_NN)",
    "ndd.rotate(x, angle=10, axis=[0, 0, -2], size=[4, 5, 6])",
    "ndd.warp_affine(x, matrix=[1, 0.1, 0, 1, 0, 0.9, 0.2, 0, 0.1, 0, 1, -1])",
    "ndd.warp_affine(x, matrix=[1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 1], size=[3, 4, 5], fill_value=7)",
]  # fmt: skip


def volume(dtype="f4", shape=(6, 7, 9, 3)):
    return RNG.integers(0, 256, shape).astype(dtype)


@pytest.mark.parametrize("call", CALLS)
def test_volumes(call):
    assert_same(f"x = ndd.tensor(x, layout='DHWC')\n{call}", tol=NEARLY, x=volume())


@pytest.mark.parametrize("call", [call for call in CALLS if "NN" not in call])
def test_volumes_of_bytes(call):
    # In uint8, a sum near one half may be rounded to either side.
    assert_same(f"x = ndd.tensor(x, layout='DHWC')\n{call}", tol=1, x=volume("u1"))


def test_colors_of_volumes():
    source = """
        x = ndd.tensor(x, layout="DHWC")
        (ndd.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY),
         ndd.lookup_table(x, keys=[1, 2], values=[3.0, 4.0]))
    """
    assert_same(source, x=volume("u1"))


@pytest.mark.parametrize("angles", ["[10.0, -50.0]", "[90.0, 0.0]"])
def test_batches_of_rotated_volumes(angles):
    source = f"""
        x = ndd.batch([x, x[:4, :5].copy()], layout="DHWC")
        axes = ndd.batch([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
        ndd.rotate(x, angle=ndd.batch({angles}), axis=axes, fill_value=0)
    """
    assert_same(source, tol=NEARLY, x=volume())


def test_sequences_of_rotated_volumes():
    source = """
        x = ndd.tensor(x, layout="FDHWC")
        ndd.rotate(x, angle=30, axis=[0, 1, 1], fill_value=0)
    """
    assert_same(source, tol=NEARLY, x=volume(shape=(2, 6, 7, 9, 3)))
