"""Element-wise mathematical functions, such as `penstock.math.sqrt`."""

from penstock._public import attach as _attach

_attach(__name__)
