"""`readers.File`: files as they are, with labels."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from penstock._errors import messages
from penstock._runtime.device import DeviceLike
from penstock._values.array import wrap
from penstock._values.tensor import as_tensor
from penstock.errors import ArgumentError
from penstock.readers._base.options import Common
from penstock.readers._base.paths import Name, check_index, path, paths, texts
from penstock.readers._base.reader import Reader
from penstock.readers._base.sampling import Sampled, Sampling, Weighted
from penstock.readers._base.source import Source, open_source

if TYPE_CHECKING:
    from typing_extensions import Unpack

FILTERS = (
    *("*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm", "*.pgm", "*.pbm"),
    *("*.jp2", "*.webp", "*.flac", "*.ogg", "*.wav"),
)


LABELS = 1
"""The output that has the labels."""

# Errors name the argument that a file was given by.
ARGUMENTS = {"list": "file_list", "root": "file_root", "index": "index", "files": "files"}


class File(Reader):
    """Reads whole files: their bytes (uint8), and a label (int32 of shape (1,)).

    The files come from one of three places: `file_root` alone is a folder of folders, each of
    which is a class; `files` lists them in the program; `file_list` is a text that does. Where a
    sample came from is its `source_info`: the name, relative to `file_root`.

    Lists are trusted to name files, as in DALI: names may be absolute paths, or leave `file_root`
    by `..`, and folders may have links to anywhere. Don't take a list from somebody who must not
    choose which files the program reads. Only regular files are read; pipes and devices are errors.

    Args:
        case_sensitive_filter: Whether case counts in the filters.
        dir_filters: Patterns of folders to take, all by default.
        file_filters: Patterns of files to take in those folders; by default the usual names of
            images and sounds.
        file_list: A text file with a name and a label on each line. Names are relative to
            `file_root`, by default to the folder of the list.
        file_root: The folder that names are relative to. Without `files` and `file_list`, all
            files in its folders are read; the label is the number of the folder, in the order of
            their names.
        files: The names of files.
        index: A file with the listing of a `file_root` that is a URL. It is written if it doesn't
            exist; from then on nobody has to list.
        labels: A label for each of `files`; by default its number.
        sampler: The samples of an epoch, in order: an iterable of their numbers, such as a list
            or a sampler of PyTorch. It is iterated over anew for each epoch, also for the next
            one when that is read ahead; before that its `set_epoch` is called, if it has one.
            Without that, only sequences can be divided into shards, and have a state to resume
            from.
        weights: Draw the samples of an epoch with replacement, as many as there are: a weight for
            each sample, or a dict with one for each class, by the name of its folder or its
            label. The samples depend on `seed`, which must be the same for all shards, and on the
            number of the epoch.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("cats/a.jpg", "dogs/b.jpg", "dogs/c.jpg"):
        ...         path = pathlib.Path(folder, name)
        ...         path.parent.mkdir(exist_ok=True)
        ...         _ = path.write_bytes(b"the bytes of a file")
        ...     reader = ndd.readers.File(file_root=folder)
        ...     for files, labels in reader.next_epoch(batch_size=3):
        ...         print(files.source_info, files.shape, labels.torch().flatten().tolist())
        ['cats/a.jpg', 'dogs/b.jpg', 'dogs/c.jpg'] [(19,), (19,), (19,)] [0, 1, 1]
    """

    def __init__(
        self,
        max_batch_size: SupportsIndex | None = None,
        name: str | None = None,
        device: DeviceLike | None = "cpu",
        num_inputs: int | None = None,
        *,
        case_sensitive_filter: bool | None = None,
        dir_filters: str | Sequence[str] | None = None,
        file_filters: str | Sequence[str] | None = None,
        file_list: Name | None = None,
        file_root: Name | None = None,
        files: Name | Iterable[Name] | None = None,
        index: Name | None = None,
        labels: int | Iterable[int] | None = None,
        sampler: Iterable[SupportsIndex] | None = None,
        weights: Any = None,
        **common: Unpack[Common],
    ) -> None:
        self._what = what = "readers.File"
        self._root = None if file_root is None else path(what, "file_root", file_root)
        self._file_list = None if file_list is None else path(what, "file_list", file_list)
        self._files = [files] if isinstance(files, str | bytes | os.PathLike) else files
        self._labels = labels
        self._index = None if index is None else path(what, "index", index)
        self._file_filters = self._patterns("file_filters", file_filters)
        self._dir_filters = self._patterns("dir_filters", dir_filters)
        self._ignore_case = not case_sensitive_filter
        self._sampler, self._weights = sampler, weights
        self._class_numbers: dict[str, int] | None = None
        if sampler is not None or weights is not None:
            self._check_sampling(common)
        super().__init__(max_batch_size, name, device, num_inputs, **common)
        if weights is not None:
            # One for all shards, which divide what is drawn.
            seed = int(common.get("seed") or 0)
            self._options = replace(self._options, seed=max(seed, 0))

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each folder, by name, as in the `ImageFolder` of torchvision.

        Only for readers whose classes are the folders of `file_root`.
        """
        source = self._opened()
        if self._has_names or self._file_list is not None:
            raise AttributeError(
                f"{self._what}: `class_to_idx` is about the folders of `file_root`, but this "
                "reader has `files` or `file_list`, which come with labels of their own."
            )
        return dict(self._classes(source))

    def _open(self) -> Source:
        if self._files is not None and self._file_list is not None:
            raise self._wrong("files", "and `file_list` both name the files; give one of them")
        if self._labels is not None and self._files is None:
            raise self._wrong("labels", "needs `files` that they are the labels of")
        if self._index is not None:
            check_index(
                self._what, "file_root", self._root, self._files is None and self._file_list is None
            )
        if self._files is not None:
            files = self._named(self._files)
        elif self._file_list is not None:
            files = self._listed(self._file_list)
        elif self._root is not None:
            files = self._found(self._root)
        else:
            raise self._wrong("file_root", "is needed, unless there is `files` or `file_list`")
        # The source has it all now; a million names should not be kept twice.
        self._has_names, self._has_labels = self._files is not None, self._labels is not None
        self._files = self._labels = None
        positional, given = self._arguments
        rest = {key: given[key] for key in given if key not in ("files", "labels")}
        self._arguments = positional, rest
        self._sampling = self._sampled(files)
        return files

    def _check_sampling(self, common: Mapping[str, Any]) -> None:
        if self._sampler is not None and self._weights is not None:
            raise self._wrong("weights", "and `sampler` both choose the samples; give one of them")
        key = "weights" if self._sampler is None else "sampler"
        for other in ("random_shuffle", "shuffle_after_epoch", "shuffle"):
            if common.get(other):
                raise self._wrong(key, f"decides the order; it can't be used with `{other}`")

    def _sampled(self, source: Source) -> Sampling | None:
        count = len(source)
        if self._weights is not None:
            weights = self._weights
            if isinstance(weights, Mapping):
                weights = self._class_weights(source, weights)
            return Weighted(self._what, weights, count)
        if self._sampler is None:
            return None
        sampled = Sampled(self._what, self._sampler, count)
        if self._options.num_shards > 1 and not sampled.is_repeatable:
            raise self._wrong(
                "sampler",
                "must be a sequence, or have `set_epoch`, to be divided into shards; or leave out "
                "`num_shards`, and give each process a sampler with its own part",
            )
        return sampled

    def _class_weights(self, source: Source, weights: Mapping[Any, Any]) -> list[Any]:
        has_folders = not self._has_names and self._file_list is None
        folders = self._classes(source) if has_folders else {}
        by_label = {folders.get(key, key): weight for key, weight in weights.items()}
        labels = self._every_label(source)
        for label in sorted(set(labels)):
            if label not in by_label:
                names = [name for name, number in folders.items() if number == label]
                named = f"{names[0]!r} (label {label})" if names else f"label {label}"
                raise self._wrong("weights", f"has no weight for {named}")
        return [by_label[label] for label in labels]

    def _classes(self, source: Source) -> dict[str, int]:
        if self._class_numbers is None:
            folders = (os.path.dirname(source.name(number)) for number in range(len(source)))
            self._class_numbers = dict(zip(folders, self._every_label(source), strict=True))
        return self._class_numbers

    def _every_label(self, source: Source) -> list[int]:
        every = wrap(source.output(LABELS, np.arange(len(source), dtype=np.int64)))
        return [int(label) for label in np.asarray(as_tensor(every)).ravel()]

    def _renewed(self) -> dict[str, Any]:
        renewed = super()._renewed()
        source = self._source
        if source is None or not self._has_names:
            return renewed
        names = [source.name(number) for number in range(len(source))]
        if any("\ufffd" in name for name in names):
            raise TypeError(
                f"{self._what}: a reader with names of `files` that are not UTF-8 can't be pickled "
                "or copied; give them by `file_list` or `file_root`."
            )
        renewed["files"] = names
        if self._has_labels:
            renewed["labels"] = self._every_label(source)
        return renewed

    def _named(self, names: Iterable[Any]) -> Source:
        if not isinstance(names, list | tuple):
            names = paths(self._what, "files", names)
        labels = None if self._labels is None else self._numbers(self._labels)
        if not names:
            raise self._wrong("files", "is empty")
        if labels is not None and len(labels) != len(names):
            raise self._wrong("labels", f"has {len(labels)} labels for {len(names)} files")
        if labels is not None and not all(-(1 << 31) <= label < 1 << 31 for label in labels):
            raise self._wrong("labels", "must be numbers of 32 bits")
        given = {"root": self._root or "", "labels": labels}
        try:
            return open_source(self._what, "files", ARGUMENTS, files=names, **given)
        except TypeError:  # something among them is no name
            listed = paths(self._what, "files", names)
            return open_source(self._what, "files", ARGUMENTS, files=listed, **given)

    def _numbers(self, labels: Any) -> list[int]:
        try:
            listed = list(labels) if isinstance(labels, Iterable) else [labels]
        except TypeError:  # an array without axes
            listed = [labels]
        try:
            return [operator.index(label) for label in listed]
        except TypeError:
            return [self._number(label) for label in listed]

    def _number(self, label: Any) -> int:
        try:
            number = int(label)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or isinstance(label, str | bytes):
            raise messages.wrong_argument(self._what, "labels", label, "whole numbers")
        if number != label:
            raise self._wrong("labels", f"must be whole numbers, got {label}")
        return number

    def _listed(self, path: str) -> Source:
        root = os.path.dirname(path) if self._root is None else self._root
        files = open_source(self._what, "files", ARGUMENTS, root=root, list=path)
        if not len(files):
            raise self._wrong("file_list", f"names no files: {path} is empty")
        return files

    def _found(self, root: str) -> Source:
        if not root:
            raise self._wrong("file_root", "is empty; it must name a folder")
        patterns = list(FILTERS) if self._file_filters is None else self._file_filters
        files = open_source(
            self._what,
            "files",
            ARGUMENTS,
            root=root,
            patterns=patterns,
            folders=self._dir_filters,
            ignore_case=self._ignore_case,
            index=self._index,
        )
        if not len(files):
            dirs = "" if self._dir_filters is None else f" that match {self._dir_filters}"
            raise self._wrong(
                "file_root",
                f"has no files: the folders in {root}{dirs} hold none that match {patterns}. "
                "(Files of `file_root` itself, and of folders deeper inside, don't count; name "
                "those by `files` or `file_list`)",
            )
        return files

    def _patterns(self, key: str, given: str | Sequence[str] | None) -> list[str] | None:
        return (
            None if given is None else texts(self._what, key, given, "a pattern or a list of them")
        )

    def _wrong(self, key: str, problem: str) -> ArgumentError:
        return messages.bad_argument(self._what, key, problem)
