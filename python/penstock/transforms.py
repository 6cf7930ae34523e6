"""Affine transforms, as matrices."""

from penstock._errors.messages import offer_near_misses as _offer_near_misses
from penstock.ops.transforms import combine as combine
from penstock.ops.transforms import crop as crop
from penstock.ops.transforms import rotation as rotation
from penstock.ops.transforms import scale as scale
from penstock.ops.transforms import shear as shear
from penstock.ops.transforms import translation as translation

__all__ = ["combine", "crop", "rotation", "scale", "shear", "translation"]

_offer_near_misses(__name__)
