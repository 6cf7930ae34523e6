"""Operators that may still change, and the old names of those that no longer do."""

from penstock._public import attach as _attach

_attach(__name__)
