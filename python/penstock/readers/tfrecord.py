"""`readers.TFRecord`: features of examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name
from penstock.readers._base.reader import Reader
from penstock.readers._base.records import index_names, names, open_records
from penstock.readers._base.source import Source
from penstock.tfrecord import Feature, FeatureType

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from penstock._runtime.context import EvalContext
    from penstock._values.batch import Batch
    from penstock._values.tensor import Tensor
    from penstock.readers._base.epoch import Epoch

_KINDS = {FeatureType.int64: "int", FeatureType.float32: "float", FeatureType.string: "bytes"}


class TFRecord(Reader):
    """Reads the features of examples in TFRecord files, as a dict.

    Strings become bytes (uint8), numbers int64 or float32. Checksums are looked at, so that a
    damaged record is an error that names it. Where a sample came from is its `source_info`: the
    file and the place in it.

    Args:
        features: What to read: a dict of names and `tfrecord.FixedLenFeature` or
            `tfrecord.VarLenFeature`.
        path: The name of the file, or of several.
        index_path: For each file the name of its index, a text with the place and the length of
            each record. Without it, the files are looked through when the reader opens them.
        use_o_direct: Without effect.
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        features: Mapping[str, Feature],
        path: Name | Iterable[Name],
        index_path: Name | Iterable[Name] | None = None,
        use_o_direct: bool | None = None,
        **common: Unpack[Common],
    ) -> None:
        what = "readers.TFRecord"
        if not isinstance(features, Mapping):
            raise messages.wrong_argument(
                what, "features", features, "a dict of names and features, as of `tfrecord`"
            )
        if not features:
            raise messages.bad_argument(what, "features", "is empty")
        for key, feature in features.items():
            if not isinstance(key, str) or not isinstance(feature, Feature):
                raise messages.wrong_argument(
                    what,
                    "features",
                    feature if isinstance(key, str) else key,
                    "names and `tfrecord.FixedLenFeature` or `tfrecord.VarLenFeature`",
                )
        self._features = dict(features)
        self._paths = names(what, "path", path)
        self._index = index_names(what, "index_path", index_path, len(self._paths))
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def _open(self) -> Source:
        features = [
            (key, _KINDS[feature.dtype], feature.shape, feature.varies, _default(feature))
            for key, feature in self._features.items()
        ]
        return open_records(
            self._what,
            "tfrecord",
            {"files": "path", "index": "index_path"},
            self._paths,
            self._options.on_error,
            index=self._index,
            features=features,
        )

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def next_epoch(
            self,
            batch_size: SupportsIndex,
            ctx: EvalContext | None = None,
            capture: bool = False,
            *,
            restart: bool = False,
            epoch: SupportsIndex | None = None,
        ) -> Epoch[dict[str, Batch]]: ...
        @overload
        def next_epoch(
            self,
            batch_size: None = None,
            ctx: EvalContext | None = None,
            capture: bool = False,
            *,
            restart: bool = False,
            epoch: SupportsIndex | None = None,
        ) -> Epoch[dict[str, Tensor | Batch]]: ...
        def next_epoch(  # noqa: D102
            self,
            batch_size: Any = None,
            ctx: EvalContext | None = None,
            capture: bool = False,
            *,
            restart: bool = False,
            epoch: SupportsIndex | None = None,
        ) -> Epoch[Any]: ...
        @overload  # type: ignore[override]
        def __call__(self, *, batch_size: SupportsIndex) -> dict[str, Batch]: ...
        @overload
        def __call__(self, *, batch_size: None = None) -> dict[str, Tensor]: ...
        def __call__(self, *, batch_size: Any = None) -> Any: ...  # noqa: D102
        @overload  # type: ignore[override]
        def __getitem__(self, index: SupportsIndex) -> dict[str, Tensor]: ...
        @overload
        def __getitem__(self, index: slice | Iterable[SupportsIndex]) -> dict[str, Batch]: ...
        def __getitem__(self, index: Any) -> Any: ...

    def _yields(self, outputs: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self._features, outputs, strict=True))


def _default(feature: Feature) -> bytes | list[int] | list[float] | None:
    """The default, with numbers of exactly the kind that the feature has."""
    default = feature._fallback()
    if default is None or isinstance(default, bytes):
        return default
    if feature.dtype == FeatureType.float32:
        return [float(number) for number in default]
    return [int(number) for number in default]
