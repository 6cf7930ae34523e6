"""`experimental.readers.Fits`: images of FITS files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock._errors import bad_samples, messages
from penstock._runtime.device import DeviceLike
from penstock._values.dtype import DType
from penstock._values.dtype import dtype as to_dtype
from penstock.errors import ArgumentError
from penstock.readers._base.chosen import Chosen
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name
from penstock.readers._base.reader import Reader
from penstock.readers._base.source import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Fits(Reader):
    """Reads images of FITS files: an output for each of `hdu_indices`.

    Arrays have the shapes and element types that Astropy gives them: the last axis is FITS' first,
    unsigned integers are told by their offset, and elements with another scale or offset are
    floats. Images that are compressed in tiles are decompressed (RICE_1, GZIP_1 and GZIP_2, also
    of quantized floats). With `device="gpu"` they are read to the host and moved to the gpu.

    Args:
        dtypes: The element type of each output, to which values are converted, or one for all. By
            default that of the file.
        file_filter: The pattern of names to take in `file_root`.
        file_list: A text file with a name on each line. Names are relative to `file_root`, by
            default to the folder of the list.
        file_root: The folder that names are relative to. Without `files` and `file_list`, its
            files and those of the folders in there are read.
        files: The names of files.
        index: A file with the listing of a `file_root` that is a URL. It is written if it doesn't
            exist; from then on nobody has to list.
        hdu_indices: Which HDUs to read, counted from 1, the primary one. By default 2, the first
            after it.

    Example:
        >>> from astropy.io import fits
        >>> image = fits.ImageHDU([[1.5, 2.5]])
        >>> fits.HDUList([fits.PrimaryHDU(), image]).writeto("m31.fits", overwrite=True)
        >>> reader = ndd.experimental.readers.Fits(files=["m31.fits"])
        >>> reader[0][0].torch().tolist()
        [[1.5, 2.5]]
    """

    _namespace = "experimental.readers"
    _gives_on_gpu = True

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        dtypes: DType | Sequence[DType] | Any = None,
        file_filter: str | None = None,
        file_list: Name | None = None,
        file_root: Name | None = None,
        files: Name | Iterable[Name] | None = None,
        index: Name | None = None,
        hdu_indices: int | Sequence[int] | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._what = "experimental.readers.Fits"
        self._chosen = Chosen(
            self._what,
            "*.fits",
            file_filter=file_filter,
            file_list=file_list,
            file_root=file_root,
            files=files,
            index=index,
        )
        self._units = self._checked_units(hdu_indices)
        self._dtypes = self._checked_dtypes(dtypes)
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _checked_units(self, given: int | Sequence[int] | None) -> list[int]:
        units: Any = [2] if given is None else [given] if isinstance(given, int) else given
        try:
            units = [unit.__index__() for unit in units]
        except (TypeError, AttributeError):
            raise messages.wrong_argument(
                self._what, "hdu_indices", given, "numbers of HDUs"
            ) from None
        if not units:
            raise self._wrong("hdu_indices", "is empty")
        if min(units) < 1 or max(units) > 2**31:
            raise self._wrong("hdu_indices", f"must be numbers from 1 on, got {given}")
        return list(units)

    def _checked_dtypes(self, given: Any) -> list[int | None]:
        if given is None:
            return [None] * len(self._units)
        several = isinstance(given, list | tuple)
        try:
            codes = [to_dtype(one)._code for one in (given if several else [given])]
        except (TypeError, ValueError) as error:
            raise messages.in_operator(self._what, error, "dtypes") from None
        if not several:
            codes *= len(self._units)
        if len(codes) != len(self._units):
            raise self._wrong(
                "dtypes", f"has {len(codes)} types for {len(self._units)} HDUs; give one for each"
            )
        return list(codes)

    def _yields(self, outputs: tuple[Any, ...]) -> Any:
        if self._device is None or self._device._code < 0:
            return outputs
        return tuple(bad_samples.to_device(output, self._device) for output in outputs)

    def _open(self) -> Source:
        return self._chosen.open("fits", units=self._units, dtypes=self._dtypes)

    def _wrong(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self._what, key, problem)
