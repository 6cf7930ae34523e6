"""Reading files by name."""

from __future__ import annotations

from penstock._define import Data, Result, operator
from penstock._dtype import uint8


@operator(namespace="io.file", kernel="read_file", devices="cpu")
def read(filepaths: Data, *, dont_use_mmap: bool = False, use_o_direct: bool = False) -> Result:
    """Read whole files.

    Args:
        filepaths: The name of a file as a row of bytes (uint8); in a batch, one for each sample.
        dont_use_mmap: Without effect: files are always read, never mapped.
        use_o_direct: Without effect: files are read through the system's cache.

    Example:
        >>> name = ndd.tensor(list(b"/proc/version"), dtype=ndd.uint8)
        >>> bytes(ndd.io.file.read(name).torch().tolist()[:5])
        b'Linux'
    """
    return Result(uint8, 1)
