"""What penstock raises beside Python's own errors.

Each is a RuntimeError, as in the original, and the error that Python has for its case. A message
names the operator, the sample and its file, and the line of the program that made the call.
"""

from penstock._errors import ArgumentError as ArgumentError
from penstock._errors import DecodeError as DecodeError
from penstock._errors import FileError as FileError
from penstock._errors import InternalError as InternalError
from penstock._errors import OutOfRangeError as OutOfRangeError

__all__ = ["ArgumentError", "DecodeError", "FileError", "InternalError", "OutOfRangeError"]
