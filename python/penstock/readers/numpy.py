"""`readers.Numpy`: arrays of NumPy, or parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from penstock._errors import bad_samples, messages
from penstock._runtime.device import DeviceLike
from penstock.errors import ArgumentError
from penstock.readers._base.chosen import Chosen
from penstock.readers._base.options import Common
from penstock.readers._base.order import Place
from penstock.readers._base.paths import Name
from penstock.readers._base.reader import Reader
from penstock.readers._base.source import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

POLICIES = ("error", "pad", "trim_to_shape")

STARTS = ("roi_start", "rel_roi_start")
ENDS = ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")

_Bound = tuple[str, list[float], bool]
_Window = tuple[_Bound | None, _Bound | None, _Bound | None]


class Numpy(Reader):
    """Reads arrays from `.npy` files, of any order of elements and bytes: one output.

    Of a part that the `roi_` arguments ask for, no more of the file is read than lies between its
    first byte and its last. They say where it starts, and where it ends or how long it is, for
    each axis (or each of `roi_axes`), or one number for all; those that begin with `rel_` are parts
    of the extent. A call of the reader can be given them, too, also as a batch with one for each
    sample. All arrays of a batch must have one element type and number of dimensions. With
    `device="gpu"` they are read to the host and moved to the gpu, as `.gpu()` does. Names may be
    absolute paths, or leave `file_root` by `..`.

    Args:
        cache_header_information: Remember what files say of their arrays, for the next epochs.
            They must not be changed then.
        file_filter: The pattern of names to take in `file_root`.
        file_list: A text file with a name on each line. Names are relative to `file_root`, by
            default to the folder of the list.
        file_root: The folder that names are relative to. Without `files` and `file_list`, its
            files and those of the folders in there are read.
        files: The names of files.
        index: A file with the listing of a `file_root` that is a URL. It is written if it doesn't
            exist; from then on nobody has to list.
        fill_value: What is taken for what is outside of an array, with
            `out_of_bounds_policy="pad"`.
        out_of_bounds_policy: What becomes of parts that go beyond an array: "error" (default),
            "pad" or "trim_to_shape".
        register_buffers: Without effect.
        rel_roi_end: Where the part ends, from 0 to 1.
        rel_roi_shape: How long it is, from 0 to 1.
        rel_roi_start: Where it starts, from 0 to 1.
        roi_axes: The axes that the other arguments are for; by default all.
        roi_end: Where the part ends.
        roi_shape: How long it is.
        roi_start: Where it starts.
        use_o_direct: Without effect: files are read through the system's cache.
    """

    _gives_on_gpu = True

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        cache_header_information: bool | None = None,
        file_filter: str | None = None,
        file_list: Name | None = None,
        file_root: Name | None = None,
        files: Name | Iterable[Name] | None = None,
        index: Name | None = None,
        fill_value: float | None = None,
        out_of_bounds_policy: Literal["error", "pad", "trim_to_shape"] | None = None,
        register_buffers: bool | None = None,
        rel_roi_end: Any = None,
        rel_roi_shape: Any = None,
        rel_roi_start: Any = None,
        roi_axes: int | Sequence[int] | None = None,
        roi_end: Any = None,
        roi_shape: Any = None,
        roi_start: Any = None,
        use_o_direct: bool | None = None,
        **common: Unpack[Common],
    ) -> None:
        self._what = "readers.Numpy"
        self._chosen = Chosen(
            self._what,
            "*.npy",
            file_filter=file_filter,
            file_list=file_list,
            file_root=file_root,
            files=files,
            index=index,
        )
        self._reads_ahead = True
        self._remember = bool(cache_header_information)
        if use_o_direct and not common.get("dont_use_mmap"):
            raise self._wrong("use_o_direct", "needs `dont_use_mmap=True`")
        self._fill_value = 0.0 if fill_value is None else float(fill_value)
        self._policy = "error" if out_of_bounds_policy is None else out_of_bounds_policy
        if self._policy not in POLICIES:
            raise self._wrong(
                "out_of_bounds_policy",
                f"must be one of {', '.join(map(repr, POLICIES))}, got {self._policy!r}",
            )
        axes = () if roi_axes is None else np.atleast_1d(roi_axes).tolist()
        self._axes = [int(axis) for axis in axes]
        self._bounds = {
            key: value
            for key, value in [
                ("roi_start", roi_start),
                ("roi_end", roi_end),
                ("roi_shape", roi_shape),
                ("rel_roi_start", rel_roi_start),
                ("rel_roi_end", rel_roi_end),
                ("rel_roi_shape", rel_roi_shape),
            ]
            if value is not None
        }
        for key, value in self._bounds.items():
            if _is_batch(value):
                raise ValueError(
                    f"{self._what}: `{key}` can't be a batch for all that the reader reads; give "
                    "it to a call of the reader."
                )
        self._windows = self._window_options(self._bounds, None)
        super().__init__(max_batch_size, name, device, num_inputs, **common)

    def __call__(
        self,
        *,
        batch_size: SupportsIndex | None = None,
        rel_roi_end: Any = None,
        rel_roi_shape: Any = None,
        rel_roi_start: Any = None,
        roi_end: Any = None,
        roi_shape: Any = None,
        roi_start: Any = None,
    ) -> Any:
        """The next batch, or without a batch size the next array, with no end of an epoch.

        A reader that is called can't be iterated, nor the other way round, until `reset`.

        Args:
            batch_size: How many arrays to read.
            rel_roi_end: As for the reader, for this call.
            rel_roi_shape: As for the reader, for this call.
            rel_roi_start: As for the reader, for this call.
            roi_end: As for the reader, for this call.
            roi_shape: As for the reader, for this call.
            roi_start: As for the reader, for this call.
        """
        bounds = {
            "roi_start": roi_start,
            "roi_end": roi_end,
            "roi_shape": roi_shape,
            "rel_roi_start": rel_roi_start,
            "rel_roi_end": rel_roi_end,
            "rel_roi_shape": rel_roi_shape,
        }
        bounds = {key: value for key, value in bounds.items() if value is not None}
        if not bounds:
            return super().__call__(batch_size=batch_size)[0]
        if twice := sorted(bounds.keys() & self._bounds.keys()):
            raise ValueError(
                f"{self._what}: `{twice[0]}` was given to the reader already, and can't be given "
                "to a call, too."
            )
        with self._guard():
            source = self._opened()
            count = None if batch_size is None else self._check_batch_size(batch_size)
            windows = self._window_options({**self._bounds, **bounds}, count)
            self._source = source.with_arguments(windows)
            # What was read ahead is not this part, and what comes next may be another.
            self._reads_ahead = False
            self._ahead.clear()
            try:
                return super().__call__(batch_size=batch_size)[0]
            finally:
                self._source, self._reads_ahead = source, True

    def _yields(self, outputs: tuple[Any, ...]) -> Any:
        if self._device is None or self._device._code < 0:
            return outputs
        return tuple(bad_samples.to_device(output, self._device) for output in outputs)

    def _read_ahead(self, place: Place) -> None:
        if self._reads_ahead:
            super()._read_ahead(place)

    def _open(self) -> Source:
        return self._chosen.open("numpy", keep_headers=self._remember, **self._windows)

    def _window_options(self, bounds: dict[str, Any], count: int | None) -> dict[str, Any]:
        """The options for the parts of arrays: for all samples, or one for each of `count`."""
        starts = [key for key in STARTS if key in bounds]
        ends = [key for key in ENDS if key in bounds]
        for keys in (starts, ends):
            if len(keys) > 1:
                raise self._wrong(keys[0], f"can't be given together with `{keys[1]}`")
        each: list[_Window] = []
        if bounds:
            rows = {key: self._rows(key, value, count) for key, value in bounds.items()}
            for index in range(max(map(len, rows.values()))):
                found = {
                    key.removeprefix("rel_"): (
                        key,
                        row[index if len(row) > 1 else 0],
                        key.startswith("rel_"),
                    )
                    for key, row in rows.items()
                }
                each.append((found.get("roi_start"), found.get("roi_end"), found.get("roi_shape")))
        return {
            "axes": self._axes,
            "fill": self._fill_value,
            "out_of_bounds": self._policy,
            "windows": each,
        }

    def _rows(self, key: str, value: Any, count: int | None) -> list[list[float]]:
        if not _is_batch(value):
            return [self._numbers(key, value)]
        rows = [self._numbers(key, row) for row in value]
        if len(rows) != (count or 1):
            raise ValueError(
                f"{self._what}: `{key}` has {len(rows)} samples, and the batch {count or 1}."
            )
        return rows

    def _numbers(self, key: str, value: Any) -> list[float]:
        try:
            row = np.atleast_1d(np.asarray(value, dtype=np.float64))
        except (TypeError, ValueError):
            raise messages.wrong_argument(
                self._what, key, value, "a number, or a list of them"
            ) from None
        # Places are whole numbers; fractions are cut off.
        row = row if key.startswith("rel_") else np.trunc(row)
        return [float(number) for number in row.ravel()]

    def _wrong(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self._what, key, problem)


def _is_batch(value: Any) -> bool:
    from penstock._values.batch import Batch

    return isinstance(value, Batch)
