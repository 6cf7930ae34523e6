"""Load, decode and augment data for model training, from plain Python.

    import penstock as ndd

    images = ndd.batch(pictures, layout="HWC")
    images = ndd.flip(images)
    train_step(images.torch())

Calls return at once; the work runs on native threads in the background, sample by sample.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock import types as types
from penstock._errors.tracebacks import public as _public
from penstock._runtime.context import EvalContext as EvalContext
from penstock._runtime.device import Device as Device
from penstock._runtime.device import DeviceLike as DeviceLike
from penstock._runtime.device import EmulatedDeviceWarning as EmulatedDeviceWarning
from penstock._runtime.device import device as device
from penstock._runtime.mode import EvalMode as EvalMode
from penstock._runtime.stream import Stream as Stream
from penstock._runtime.stream import get_current_stream as get_current_stream
from penstock._runtime.stream import get_default_stream as get_default_stream
from penstock._runtime.stream import set_current_stream as set_current_stream
from penstock._runtime.stream import set_default_stream as set_default_stream
from penstock._runtime.stream import stream as stream
from penstock._runtime.threads import ThreadPool as ThreadPool
from penstock._runtime.threads import get_num_threads as get_num_threads
from penstock._runtime.threads import set_num_threads as set_num_threads
from penstock._values.dtype import DataType as DataType
from penstock._values.dtype import DType as DType
from penstock._values.dtype import ImageType as ImageType
from penstock._values.dtype import InterpType as InterpType
from penstock._values.dtype import bfloat16 as bfloat16
from penstock._values.dtype import bool as bool
from penstock._values.dtype import dtype as dtype
from penstock._values.dtype import float16 as float16
from penstock._values.dtype import float32 as float32
from penstock._values.dtype import float64 as float64
from penstock._values.dtype import int8 as int8
from penstock._values.dtype import int16 as int16
from penstock._values.dtype import int32 as int32
from penstock._values.dtype import int64 as int64
from penstock._values.dtype import type_id as type_id
from penstock._values.dtype import uint8 as uint8
from penstock._values.dtype import uint16 as uint16
from penstock._values.dtype import uint32 as uint32
from penstock._values.dtype import uint64 as uint64

if TYPE_CHECKING:
    from penstock import checkpoint as checkpoint
    from penstock import decoders as decoders
    from penstock import errors as errors
    from penstock import experimental as experimental
    from penstock import io as io
    from penstock import math as math
    from penstock import noise as noise
    from penstock import random as random
    from penstock import readers as readers
    from penstock import reductions as reductions
    from penstock import tfrecord as tfrecord
    from penstock import torch as torch
    from penstock import transforms as transforms
    from penstock._operators.map import TensorSpec as TensorSpec
    from penstock._operators.map import map as map
    from penstock._state.external_source import ExternalSource as ExternalSource
    from penstock._state.prefetch import prefetch as prefetch
    from penstock._values.batch import Batch as Batch
    from penstock._values.batch import as_batch as as_batch
    from penstock._values.batch import batch as batch
    from penstock._values.tensor import Tensor as Tensor
    from penstock._values.tensor import as_tensor as as_tensor
    from penstock._values.tensor import tensor as tensor
    from penstock.ops.color import brightness as brightness
    from penstock.ops.color import brightness_contrast as brightness_contrast
    from penstock.ops.color import color_space_conversion as color_space_conversion
    from penstock.ops.color import color_twist as color_twist
    from penstock.ops.color import contrast as contrast
    from penstock.ops.color import equalize as equalize
    from penstock.ops.color import hsv as hsv
    from penstock.ops.color import hue as hue
    from penstock.ops.color import jpeg_compression_distortion as jpeg_compression_distortion
    from penstock.ops.color import saturation as saturation
    from penstock.ops.coordinates import coord_flip as coord_flip
    from penstock.ops.coordinates import coord_transform as coord_transform
    from penstock.ops.crop import crop as crop
    from penstock.ops.crop import crop_mirror_normalize as crop_mirror_normalize
    from penstock.ops.crop import random_crop_generator as random_crop_generator
    from penstock.ops.decoders import peek_image_shape as peek_image_shape
    from penstock.ops.fill import full as full
    from penstock.ops.fill import full_like as full_like
    from penstock.ops.fill import ones as ones
    from penstock.ops.fill import ones_like as ones_like
    from penstock.ops.fill import zeros as zeros
    from penstock.ops.fill import zeros_like as zeros_like
    from penstock.ops.filters import filter as filter
    from penstock.ops.filters import gaussian_blur as gaussian_blur
    from penstock.ops.filters import laplacian as laplacian
    from penstock.ops.generic import cast as cast
    from penstock.ops.generic import cast_like as cast_like
    from penstock.ops.generic import copy as copy
    from penstock.ops.generic import get_property as get_property
    from penstock.ops.generic import lookup_table as lookup_table
    from penstock.ops.generic import one_hot as one_hot
    from penstock.ops.generic import permute_batch as permute_batch
    from penstock.ops.geometry import flip as flip
    from penstock.ops.imread import imread as imread
    from penstock.ops.normalize import normalize as normalize
    from penstock.ops.patches import erase as erase
    from penstock.ops.patches import grid_mask as grid_mask
    from penstock.ops.patches import paste as paste
    from penstock.ops.random import batch_permutation as batch_permutation
    from penstock.ops.regions import pad as pad
    from penstock.ops.regions import slice as slice
    from penstock.ops.resize import random_resized_crop as random_resized_crop
    from penstock.ops.resize import resize as resize
    from penstock.ops.resize import resize_crop_mirror as resize_crop_mirror
    from penstock.ops.resize import tensor_resize as tensor_resize
    from penstock.ops.sequence import element_extract as element_extract
    from penstock.ops.sequence import per_frame as per_frame
    from penstock.ops.sequence import sequence_rearrange as sequence_rearrange
    from penstock.ops.shape import cat as cat
    from penstock.ops.shape import expand_dims as expand_dims
    from penstock.ops.shape import reinterpret as reinterpret
    from penstock.ops.shape import reshape as reshape
    from penstock.ops.shape import squeeze as squeeze
    from penstock.ops.shape import stack as stack
    from penstock.ops.shape import transpose as transpose
    from penstock.ops.warp import rotate as rotate
    from penstock.ops.warp import warp_affine as warp_affine

__version__ = "0.1.0"

# Modules, such as `penstock.math`, which load on first use.
_NAMESPACES = (
    "checkpoint",
    "decoders",
    "errors",
    "experimental",
    "io",
    "math",
    "noise",
    "random",
    "readers",
    "reductions",
    "tfrecord",
    "torch",
    "transforms",
)

# Names that load on first use, by the module that has them.
_LAZY = {
    name: module
    for module, names in {
        "_values.batch": ("Batch", "as_batch", "batch"),
        "_state.external_source": ("ExternalSource",),
        "_operators.map": ("TensorSpec", "map"),
        "_state.prefetch": ("prefetch",),
        "_values.tensor": ("Tensor", "as_tensor", "tensor"),
        "ops.color": (
            "brightness",
            "brightness_contrast",
            "color_space_conversion",
            "color_twist",
            "contrast",
            "equalize",
            "hsv",
            "hue",
            "jpeg_compression_distortion",
            "saturation",
        ),
        "ops.coordinates": ("coord_flip", "coord_transform"),
        "ops.decoders": ("peek_image_shape",),
        "ops.crop": ("crop", "crop_mirror_normalize", "random_crop_generator"),
        "ops.imread": ("imread",),
        "ops.fill": ("full", "full_like", "ones", "ones_like", "zeros", "zeros_like"),
        "ops.filters": ("filter", "gaussian_blur", "laplacian"),
        "ops.generic": (
            "cast",
            "cast_like",
            "copy",
            "get_property",
            "lookup_table",
            "one_hot",
            "permute_batch",
        ),
        "ops.geometry": ("flip",),
        "ops.normalize": ("normalize",),
        "ops.patches": ("erase", "grid_mask", "paste"),
        "ops.random": ("batch_permutation",),
        "ops.regions": ("pad", "slice"),
        "ops.resize": (
            "random_resized_crop",
            "resize",
            "resize_crop_mirror",
            "tensor_resize",
        ),
        "ops.sequence": ("element_extract", "per_frame", "sequence_rearrange"),
        "ops.shape": (
            "cat",
            "expand_dims",
            "reinterpret",
            "reshape",
            "squeeze",
            "stack",
            "transpose",
        ),
        "ops.warp": ("rotate", "warp_affine"),
    }.items()
    for name in names
}


if not TYPE_CHECKING:  # where it would say that any name exists

    @_public
    def __getattr__(name: str) -> Any:
        if name in _NAMESPACES:
            return importlib.import_module(f"penstock.{name}")
        module = _LAZY.get(name)
        if module is None:
            from penstock._errors.messages import unknown_name

            raise unknown_name("penstock", name, (key for key in __dir__() if key[0] != "_"))
        found = getattr(importlib.import_module(f"penstock.{module}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_NAMESPACES})
