"""`readers.Webdataset`: components of samples in tar archives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock._values.dtype import dtype as to_dtype
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, texts
from penstock.readers._base.reader import Reader
from penstock.readers._base.records import index_names, names, open_records
from penstock.readers._base.source import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

MISSING = ("empty", "skip", "error")

DTYPES = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
)


class Webdataset(Reader):
    """Reads samples in tar archives: an output for each of the components that `ext` asks for.

    Files that follow one another in the archive and have the same name up to its first dot are
    one sample; what follows the dot is the extension that tells its components apart. Where one
    came from is its `source_info`: the archive, the place in it and the name.

    Args:
        ext: For each output the extension of the component, or several, with ";" between them, of
            which the first that the archive has counts.
        paths: The name of the archive, or of several.
        case_sensitive_extensions: Whether case counts in extensions; it does by default.
        dtypes: For each output the dtype that its bytes are of; uint8 by default.
        index_paths: For each archive the name of its index. Without it, the archives are looked
            through when the reader opens them.
        missing_component_behavior: What becomes of samples without one of the components: "empty"
            (default) gives an output without elements, "skip" leaves the sample out, "error" is
            an error.
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        ext: str | Sequence[str],
        paths: Name | Iterable[Name],
        case_sensitive_extensions: bool | None = None,
        dtypes: Any = None,
        index_paths: Name | Iterable[Name] | None = None,
        missing_component_behavior: Literal["empty", "skip", "error"] | None = None,
        **common: Unpack[Common],
    ) -> None:
        what = "readers.Webdataset"
        self._paths = names(what, "paths", paths)
        self._index = index_names(what, "index_paths", index_paths, len(self._paths))
        extensions = texts(what, "ext", ext, "an extension or a list of them")
        if not extensions:
            raise messages.bad_argument(what, "ext", "is empty; each output needs an extension")
        self._extensions = [[part for part in text.split(";") if part] for text in extensions]
        self._dtypes = self._checked_dtypes(what, dtypes, len(extensions))
        self._ignore_case = case_sensitive_extensions is not None and not case_sensitive_extensions
        missing = missing_component_behavior or "empty"
        if not isinstance(missing, str) or missing.lower() not in MISSING:
            raise messages.bad_argument(
                what,
                "missing_component_behavior",
                f"must be one of {', '.join(map(repr, MISSING))}, got {missing!r}",
            )
        self._missing = missing.lower()
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    @staticmethod
    def _checked_dtypes(what: str, given: Any, outputs: int) -> list[int]:
        if given is None:
            given = ["uint8"] * outputs
        elif not isinstance(given, list | tuple):
            given = [given]
        if len(given) != outputs:
            raise messages.bad_argument(
                what, "dtypes", f"has {len(given)} dtypes for {outputs} extensions; give one each"
            )
        try:
            found = [to_dtype(dtype) for dtype in given]
        except (TypeError, ValueError) as error:
            raise messages.in_operator(what, error, "dtypes") from None
        for dtype in found:
            if not any(dtype == to_dtype(known) for known in DTYPES):
                raise messages.bad_argument(
                    what, "dtypes", f"must be of {', '.join(DTYPES)}, got {dtype}"
                )
        return [dtype._code for dtype in found]

    def _open(self) -> Source:
        return open_records(
            self._what,
            "webdataset",
            {"files": "paths", "index": "index_paths"},
            self._paths,
            self._options.on_error,
            index=self._index,
            extensions=self._extensions,
            dtypes=self._dtypes,
            ignore_case=self._ignore_case,
            missing=self._missing,
        )
