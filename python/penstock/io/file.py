"""Reading files."""

from penstock.ops.files import read as read

__all__ = ["read"]
