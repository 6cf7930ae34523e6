"""The old names of the operators in `penstock.decoders`."""

from penstock._public import attach as _attach

_attach(__name__)
