"""Operators on segmentation masks."""

from penstock._public import attach as _attach

_attach(__name__)
