"""What penstock raises beside Python's own errors.

Each is a RuntimeError, as in the original, and the error that Python has for its case. A message
names the operator, the sample and its file, and the line of the program that made the call.
"""

__all__ = ["ArgumentError", "DecodeError", "FileError", "InternalError", "OutOfRangeError"]


class OutOfRangeError(IndexError, RuntimeError):
    """An index lies outside of its axis. The reference raises RuntimeError, Python IndexError."""


class ArgumentError(ValueError, RuntimeError):
    """An argument or an input is of no use: RuntimeError in the reference, ValueError in Python."""


class DecodeError(RuntimeError):
    """Bytes that can't be decoded. The other samples of the batch can be read all the same.

    Example:
        >>> import numpy as np
        >>> try:
        ...     ndd.decoders.image(np.zeros(8, np.uint8)).evaluate()
        ... except ndd.errors.DecodeError as error:
        ...     print("none of JPEG, PNG" in str(error))
        True
    """


class FileError(OSError, RuntimeError):
    """A file can't be read: OSError in Python, RuntimeError in the reference."""


class InternalError(RuntimeError):
    """A defect of penstock itself. Please report it, with the message."""

    # Laid out as its base, so that the native code's class of panics can be derived from it later.
    __slots__ = ()
