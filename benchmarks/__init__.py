"""Measurements against the original: `make bench`."""
