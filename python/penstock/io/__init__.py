"""Input of plain data."""

from penstock.io import file as file

__all__ = ["file"]
