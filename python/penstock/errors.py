"""Exceptions of penstock, in addition to Python's own.

Each is a RuntimeError, as in DALI, and also Python's own exception for the case. Messages name the
operator, the sample and its file, and the line of your program that made the call.
"""

__all__ = ["ArgumentError", "DecodeError", "FileError", "InternalError", "OutOfRangeError"]


def __dir__() -> list[str]:
    return __all__


class OutOfRangeError(IndexError, RuntimeError):
    """An index is out of range. An IndexError as in Python, a RuntimeError as in DALI."""


class ArgumentError(ValueError, RuntimeError):
    """An argument or an input is invalid. A ValueError as in Python, a RuntimeError as in DALI."""


class DecodeError(RuntimeError):
    """A sample can't be decoded. The other samples of the batch are still available.

    Example:
        >>> import numpy as np
        >>> try:
        ...     ndd.decoders.image(np.zeros(8, np.uint8)).evaluate()
        ... except ndd.errors.DecodeError as error:
        ...     print("none of JPEG, PNG" in str(error))
        True
    """


class FileError(OSError, RuntimeError):
    """A file can't be read. An OSError as in Python, a RuntimeError as in DALI."""


class InternalError(RuntimeError):
    """A bug in penstock. Please report it, with the message."""

    # The same memory layout as the base, so that the native PanicException can derive from it.
    __slots__ = ()
