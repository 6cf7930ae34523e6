"""What may still change, and former names of what no longer does, which go on working."""

from penstock.experimental import decoders as decoders
from penstock.ops.decoders import peek_image_shape as peek_image_shape

__all__ = ["decoders", "peek_image_shape"]
