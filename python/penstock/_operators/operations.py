"""The operations of automatic augmentation."""

from __future__ import annotations

from penstock.types import _Constant


class Operation(_Constant):
    """An operation of `auto_aug.apply`; the kernel has the same order.

    Example:
        >>> ndd.auto_aug.Operation.ROTATE == 5
        True
    """

    IDENTITY = 0
    SHEAR_X = 1
    SHEAR_Y = 2
    TRANSLATE_X = 3
    TRANSLATE_Y = 4
    ROTATE = 5
    BRIGHTNESS = 6
    COLOR = 7
    CONTRAST = 8
    SHARPNESS = 9
    POSTERIZE = 10
    SOLARIZE = 11
    AUTO_CONTRAST = 12
    EQUALIZE = 13
    INVERT = 14
