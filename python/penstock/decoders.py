"""Decoders: from the bytes of a file to what is in it."""

from penstock._errors.messages import offer_near_misses as _offer_near_misses
from penstock.ops.decoders import image as image
from penstock.ops.decoders import image_crop as image_crop
from penstock.ops.decoders import image_random_crop as image_random_crop
from penstock.ops.decoders import image_slice as image_slice

__all__ = ["image", "image_crop", "image_random_crop", "image_slice"]

_offer_near_misses(__name__)
