"""One typical call of every operator, for the tests that hold for all of them.

A new operator needs a row in `ROWS` only if it can't be called with one image and nothing else.
Arguments should suit images of any size, also empty ones.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import pkgutil
import wave
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ndd
import penstock.ops
from penstock._operators.definition import OPERATORS, Operator
from penstock._operators.elementwise import Function
from tests.images import encoded, photograph

# All families, whatever other tests have loaded: importing a module defines its operators.
for _family in pkgutil.iter_modules(penstock.ops.__path__):
    importlib.import_module(f"penstock.ops.{_family.name}")


@dataclass(frozen=True, eq=False)
class Input:
    """A kind of input."""

    sample: Callable[[int], Any]
    """Makes the array of one sample from its number."""
    layout: str | None = None

    def tensor(self, number: int = 0) -> Any:
        return ndd.tensor(self.sample(number), layout=self.layout)

    def batch(self, size: int = 3) -> Any:
        return ndd.batch([self.sample(number) for number in range(size)], layout=self.layout)


@dataclass(frozen=True)
class Call:
    """A typical call: the kinds of its inputs, and its arguments."""

    inputs: tuple[Input, ...]
    arguments: dict[str, Any]
    whole_batch: bool = False
    """Whether a sample's result depends on the rest of the batch."""
    operator: Operator = None  # type: ignore[assignment]

    def __call__(self, *inputs: Any, **more: Any) -> Any:
        """Call it with inputs of one's own."""
        return self.operator.function(*inputs, **{**self.arguments, **more})

    def on_tensors(self, number: int = 0, **more: Any) -> tuple[Any, ...]:
        """The results for one sample."""
        return _as_tuple(self(*(kind.tensor(number) for kind in self.inputs), **more))

    def on_batches(self, size: int = 3, **more: Any) -> tuple[Any, ...]:
        """The results for a batch."""
        if not self.inputs:
            more["batch_size"] = size
        return _as_tuple(self(*(kind.batch(size) for kind in self.inputs), **more))

    @property
    def is_repeatable(self) -> bool:
        """Whether each sample of a batch has the result that it has alone."""
        return not (self.whole_batch or self.operator.options.random)


def call(*inputs: Input, **arguments: Any) -> Call:
    """A row of the table."""
    return Call(inputs, arguments)


def whole_batch(row: Call) -> Call:
    """A row of an operator that looks at all samples of a batch."""
    return replace(row, whole_batch=True)


def _as_tuple(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def _image(number: int) -> np.ndarray:
    return (np.arange(60, dtype=np.uint8) * (2 * number + 3)).reshape(4, 5, 3)


@functools.cache
def _jpeg(number: int) -> np.ndarray:
    return encoded(photograph(8 + number, 12, seed=number))


@functools.cache
def _wav(number: int) -> np.ndarray:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(2)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes((np.arange(40 + 2 * number, dtype=np.int16) * 700).tobytes())
    return np.frombuffer(file.getvalue(), np.uint8)


@functools.cache
def _npy(number: int) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.int16).reshape(2, 3) + number)
    return np.frombuffer(file.getvalue(), np.uint8)


IMAGE = Input(_image, "HWC")
NAMED_IMAGE = Input(_image, "HWC")
"""An image whose layout matters."""
BYTE_IMAGE = Input(_image, "HWC")
"""An image that must be of uint8."""
SEQUENCE = Input(lambda number: np.stack([_image(number), _image(number + 1)]), "FHWC")
_VIDEO = Path(__file__).parent / "data" / "videos" / "vp9-10bit.webm"

JPEG = Input(_jpeg)
WAV = Input(_wav)
ENCODED_VIDEO = Input(lambda number: np.fromfile(_VIDEO, np.uint8))
RAW_IMAGE = Input(lambda number: _image(number)[..., 0].copy(), "HW")
PLACES = Input(lambda number: np.float32([[0.5, number, 3], [1, 2.25, -4]]), "HW")
SIGNAL = Input(lambda number: np.float32([0, 0.5, -1, 0.25, number / 8, 1, 0, 0.125]))
NUMBERS = Input(lambda number: np.float32([0.25, 0.5, 0.75]) + np.float32(number) / 8)
ONE_NUMBER = Input(lambda number: np.float32(number + 1))
LABEL = Input(lambda number: np.int64(number % 4))
ROW = Input(lambda number: np.full((1, 5), number, np.int32), "HW")
SMOOTHING = Input(lambda number: np.full((3, 3), 1 / (9 + number), np.float32))
MATRIX = Input(lambda number: np.float32([[1, 0, number], [0, 2, 1]]))
EXTENTS = Input(lambda number: np.int64([480 + number, 640, 3]))
BOXES = Input(lambda number: np.float32([[0.1, 0.2, 0.5, 0.6], [0.3, 0.1, 0.9, 0.4 + number / 8]]))
LABELS = Input(lambda number: np.int32([number + 1, number + 5]))
MASK = Input(lambda number: np.int32([[0, 1, 1], [number, 0, 2]]))
MASK_IDS = Input(lambda number: np.int32([number % 2]))
POLYGONS = Input(lambda number: np.int32([[0, 0, 3], [1, 3, 6]]))
VERTICES = Input(lambda number: np.arange(12, dtype=np.float32).reshape(6, 2) + number)
NPY = Input(_npy)
SOUND = Input(lambda number: np.sin(np.arange(700 + 10 * number, dtype=np.float32) / 9))
SPECTROGRAM = Input(lambda number: np.arange(40, dtype=np.float32).reshape(4, 10) + number, "ft")
DEFLATED = Input(lambda number: np.frombuffer(zlib.compress(bytes(range(6))), np.uint8))
VIDEO = Input(lambda number: np.stack([photograph(24, 32, seed=number)] * 2), "FHWC")
FILE_NAME = Input(lambda number: np.frombuffer(os.fsencode(__file__), np.uint8))
ENCODED = (JPEG, WAV, NPY, DEFLATED, FILE_NAME)
"""Inputs whose bytes are not numbers."""

ROWS: dict[str, Call] = {
    "add_noise": call(SOUND, snr_db=10),
    "audio_resample": call(SIGNAL, in_rate=2, out_rate=3),
    "auto_aug.apply": call(BYTE_IMAGE, operations=[5, 8, 1], magnitudes=[20.0, 0.5, 0.2]),
    "auto_aug.auto_augment": call(BYTE_IMAGE),
    "auto_aug.augmix": call(BYTE_IMAGE),
    "auto_aug.rand_augment": call(BYTE_IMAGE),
    "auto_aug.trivial_augment_wide": call(BYTE_IMAGE),
    "batch_permutation": whole_batch(call()),
    "bb_flip": call(BOXES),
    "bbox_paste": call(BOXES, ratio=2),
    "bbox_rotate": call(BOXES, LABELS, angle=30, input_shape=[100, 200]),
    "box_encoder": call(BOXES, LABELS, anchors=[0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1]),
    "brightness": call(IMAGE, brightness=1.5),
    "brightness_contrast": call(IMAGE, brightness=1.5, contrast=0.5),
    "cast": call(IMAGE, dtype=ndd.float32),
    "cast_like": call(IMAGE, NUMBERS),
    "cat": call(IMAGE, IMAGE, axis=1),
    "clahe": call(BYTE_IMAGE, tiles_x=2, tiles_y=2, clip_limit=2.0),
    "color_space_conversion": call(
        BYTE_IMAGE, image_type=ndd.types.RGB, output_type=ndd.types.YCbCr
    ),
    "color_twist": call(IMAGE, brightness=1.5, hue=30, saturation=0.5),
    "contrast": call(IMAGE, contrast=0.5),
    "coord_transform": call(IMAGE, M=[[1, 2, 3], [4, 5, 6]], T=[0.5, 1]),
    "crop": call(IMAGE, crop=[2, 2], out_of_bounds_policy="pad"),
    "crop_mirror_normalize": call(
        IMAGE, crop=[2, 2], mirror=1, mean=[1, 2, 3], out_of_bounds_policy="pad"
    ),
    "debayer": call(RAW_IMAGE, blue_position=[0, 1]),
    "cutmix": whole_batch(call(IMAGE, LABEL, num_classes=4)),
    "decoders.audio": call(WAV),
    "decoders.image": call(JPEG),
    "decoders.image_crop": call(JPEG, crop=[4, 5]),
    "decoders.image_random_crop": call(JPEG),
    "decoders.image_slice": call(JPEG, start=[1, 2], shape=[3, 4]),
    "decoders.video": call(ENCODED_VIDEO, frames=[0, 2]),
    "dump_image": call(BYTE_IMAGE),
    "decoders.inflate": call(DEFLATED, algorithm="zlib", shape=[2, 3]),
    "decoders.numpy": call(NPY),
    "delta": call(SPECTROGRAM),
    "element_extract": call(SEQUENCE, element_map=[0, 1]),
    "equalize": call(BYTE_IMAGE),
    "erase": call(IMAGE, anchor=[0, 1], shape=[1, 2], axes=[0, 1]),
    "expand_dims": call(IMAGE, axes=[0]),
    "experimental.remap": call(IMAGE, PLACES, PLACES),
    "experimental.warp_perspective": call(IMAGE, matrix=[1, 0.1, 0, 0, 1, 1, 0, 0.01, 1]),
    "fade": call(SOUND, fade_in_len=20, fade_out_len=30),
    "filter": call(NAMED_IMAGE, SMOOTHING),
    "frequency_mask": call(SPECTROGRAM, max_width=2),
    "full": call(NUMBERS, shape=[2, 3]),
    "full_like": call(IMAGE, ONE_NUMBER),
    "gain": call(SOUND, gain_db=6),
    "gaussian_blur": call(NAMED_IMAGE, sigma=1.0),
    "get_property": call(NAMED_IMAGE, key="layout"),
    "grid_mask": call(IMAGE, tile=2, angle=0.5),
    "hsv": call(IMAGE, hue=30, saturation=0.5, value=1.5),
    "hue": call(IMAGE, hue=30),
    "io.file.read": call(FILE_NAME),
    "jpeg_compression_distortion": call(BYTE_IMAGE, quality=30),
    "laplacian": call(NAMED_IMAGE, window_size=3),
    "log_mel": call(SIGNAL, window_length=8, window_step=2, nfilter=2),
    "lookup_table": call(IMAGE, keys=[1, 6], values=[5.0, 7.0]),
    "mel_filter_bank": call(SPECTROGRAM, nfilter=2, sample_rate=16000),
    "mfcc": call(SPECTROGRAM, n_mfcc=2),
    "mixup": whole_batch(call(IMAGE, LABEL, num_classes=4)),
    "nonsilent_region": call(SIGNAL, window_length=2),
    "one_hot": call(IMAGE, num_classes=4),
    "ones": call(shape=[2, 3]),
    "optical_flow": call(VIDEO),
    "pad": whole_batch(call(IMAGE, align=[8, 8, 1])),
    "paste": call(IMAGE, ratio=2, fill_value=0),
    "peek_image_shape": call(JPEG),
    "per_frame": call(SEQUENCE),
    "permute_batch": whole_batch(call(IMAGE, indices=0)),
    "pitch_shift": call(SOUND, n_steps=3, nfft=64),
    "posterize": call(IMAGE, bits=4),
    "power_spectrum": call(SIGNAL),
    "preemphasis_filter": call(SIGNAL),
    "random.beta": call(shape=[2, 3]),
    "random.choice": call(NUMBERS, shape=[4]),
    "random.coin_flip": call(shape=[2, 3]),
    "random.normal": call(shape=[2, 3]),
    "random.uniform": call(shape=[2, 3], range=[0, 9]),
    "random_bbox_crop": call(BOXES, LABELS, scaling=[0.5, 1], output_bbox_indices=True),
    "random_crop_generator": call(EXTENTS),
    "random_resized_crop": call(IMAGE, size=[2, 3]),
    "reductions.std_dev": call(IMAGE, ONE_NUMBER),
    "reductions.variance": call(IMAGE, ONE_NUMBER),
    "reinterpret": call(IMAGE, dtype=ndd.int8),
    "reshape": call(IMAGE, shape=[-1]),
    "resize": call(IMAGE, size=2),
    "resize_crop_mirror": call(IMAGE, size=2, mirror=1),
    "roi_random_crop": call(crop_shape=[3, 3], roi_start=[1, 1], roi_end=[3, 3]),
    "rotate": call(IMAGE, angle=30, fill_value=0),
    "saturation": call(IMAGE, saturation=0.5),
    "segmentation.random_mask_pixel": call(MASK, foreground=1),
    "segmentation.random_object_bbox": call(MASK, output_class=True),
    "segmentation.select_masks": call(MASK_IDS, POLYGONS, VERTICES),
    "sequence_rearrange": call(SEQUENCE, new_order=[1, 0, 1]),
    "sharpness": call(IMAGE, sharpness_factor=1.5),
    "shear_x": call(IMAGE, shear=0.3),
    "shear_y": call(IMAGE, shear=0.3),
    "slice": call(IMAGE, start=[0], shape=[2], axes=[1], out_of_bounds_policy="pad"),
    "spectrogram": call(SIGNAL, window_length=4, window_step=2),
    "squeeze": call(ROW, axes=[0]),
    "stack": call(IMAGE, IMAGE, axis=1),
    "tensor_resize": call(IMAGE, sizes=2),
    "time_mask": call(SPECTROGRAM, max_width=3),
    "time_stretch": call(SOUND, rate=1.25, nfft=64),
    "to_decibels": call(SPECTROGRAM),
    "transforms.combine": call(MATRIX, MATRIX),
    "transforms.crop": call(from_end=[10, 20]),
    "transforms.rotation": call(MATRIX, angle=30),
    "transforms.scale": call(MATRIX, scale=[2, 3]),
    "transforms.shear": call(MATRIX, shear=[1, 2]),
    "transforms.translation": call(MATRIX, offset=[5, 6]),
    "translate_x": call(IMAGE, offset=1),
    "translate_y": call(IMAGE, offset=1),
    "transpose": call(IMAGE, perm=[2, 0, 1]),
    "warp_affine": call(IMAGE, matrix=[1, 0.1, 0, 0, 1, 1]),
    "where": call(MASK, MASK, MASK),
    "zeros": call(shape=[2, 3]),
}
"""Rows by operator. Of functions of numbers, all operands are numbers; others take one image."""


def typical(operator: Operator) -> Call:
    """The row of an operator."""
    row = ROWS.get(operator.name)
    if row is None:
        row = call(*[NUMBERS] * len(operator.inputs) if isinstance(operator, Function) else [IMAGE])
    return replace(row, operator=operator)


CALLS = {name: typical(operator) for name, operator in OPERATORS.items()}
"""A typical call of every operator, by its name."""
