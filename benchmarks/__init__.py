"""Benchmarks against DALI: `make bench`."""
