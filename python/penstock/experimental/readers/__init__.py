"""Readers that may still change."""

from penstock._public import attach as _attach
from penstock.experimental.readers.fits import Fits as Fits
from penstock.experimental.readers.video import Video as Video

__all__ = ["Fits", "Video"]

# The modules of the formats are no names for users.
for _format in __all__:
    globals().pop(_format.lower(), None)
_attach(__name__)
