"""Former names, which go on working: what they stand for has left the experimental stage."""

from penstock.experimental import decoders as decoders
from penstock.ops.decoders import peek_image_shape as peek_image_shape

__all__ = ["decoders", "peek_image_shape"]
