"""`Loader`: a reader and a function on its batches as a DataLoader."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, SupportsIndex

import torch
from torch.utils.data import DataLoader, IterableDataset, default_convert

from penstock._errors import messages
from penstock._errors.tracebacks import public
from penstock._state.prefetch import prefetch as prefetching
from penstock._state.rng import RNG, default_rng, derived_seed, get_default_rng
from penstock._torch.distributed import distributed_options
from penstock._values.batch import Batch
from penstock._values.dtype import int32
from penstock._values.tensor import Tensor
from penstock.readers import Reader
from penstock.readers._base.options import checked_epoch

__all__ = ["Loader"]

VERSION = 1
"""The version of a loader's state."""

_KEYS = {"reader", "rng", "base", "shard"}

_INSTEAD = {
    "shuffle": "the reader shuffles: create it with `shuffle='global'`",
    "sampler": "the reader decides on the order of the samples",
    "batch_sampler": "the reader makes the batches",
    "drop_last": "that is up to the reader: create it with `last_batch='drop'`",
    "collate_fn": "batches are converted already; use `fn`",
    "worker_init_fn": "there are no worker processes",
    "prefetch_factor": "there are no worker processes; use `prefetch`",
    "persistent_workers": "there are no worker processes",
    "multiprocessing_context": "there are no worker processes",
    "timeout": "there are no worker processes",
}
"""Arguments of a DataLoader that would do nothing here, and what does it instead."""


@public
class Loader(DataLoader):  # type: ignore[misc]
    """A `torch.utils.data.DataLoader` over a reader, and a function that prepares its batches.

    Each iteration is the next epoch, a whole one even if the previous loop was left early, and
    `len` is its number of batches. Batches and tensors become tensors of PyTorch.

    In a distributed run, a reader that was created without shards gets the one of its rank at the
    first use (see `distributed_options`). Create it with `last_batch="pad"` for all ranks to have
    equally many batches.

    `state_dict` has the position of the reader and of the RNG as of the batch that the loop is at,
    whatever has been prefetched. A new loader that loads it continues with the next batch: the same
    samples, with the same augmentations. Lightning stores it in its checkpoints. The state of one
    rank will do for all, if they are at the same step.

    Args:
        reader: A reader, which only this loader uses.
        fn: Gets the outputs of the reader for one batch, such as `fn(jpegs, labels)`, or the
            dictionary of a reader that gives one, and returns what a training step needs: batches,
            tensors, or tuples, lists and dictionaries of them. Without it the reader's outputs are
            returned.
        batch_size: The number of samples in a batch.
        prefetch: How many batches to prepare in advance; see `prefetch`.
        rng: The RNG that operators in `fn` use by default. What they draw in an epoch depends on
            its state when the loader is created, the number of the epoch and the shard. By default
            a new one, seeded by the default RNG (see `random.set_seed`).
        class_labels: Convert int32 batches with one element per sample, such as a reader's labels,
            to the one-dimensional int64 tensors that `cross_entropy` expects.
        pin_memory: Copy tensors on the host to page-locked memory, if there is an accelerator.
        num_workers: 0, since operators run on native threads of this process.
        **kwargs: Other arguments of a DataLoader, if they have their default values.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> folder = TemporaryDirectory()
        >>> for number in range(5):
        ...     np.save(f"{folder.name}/{number}.npy", np.full((2,), number))
        >>> reader = ndd.readers.Numpy(file_root=folder.name, last_batch="partial")
        >>> loader = ndd.torch.Loader(reader, lambda rows: rows * 10, batch_size=2)
        >>> len(loader)
        3
        >>> [rows[:, 0].tolist() for rows in loader]
        [[0, 10], [20, 30], [40]]
        >>> folder.cleanup()
    """

    # Shards are the reader's business: Accelerate's `prepare` would divide the batches once more.
    _is_accelerate_prepared = True
    # Makes `Accelerator.save_state` and `load_state` include the state.
    use_stateful_dataloader = True

    def __init__(
        self,
        reader: Reader,
        fn: Callable[..., Any] | None = None,
        *,
        batch_size: SupportsIndex | None = None,
        prefetch: SupportsIndex = 2,
        rng: RNG | None = None,
        class_labels: bool = True,
        pin_memory: bool = True,
        num_workers: int = 0,
        **kwargs: Any,
    ) -> None:
        if num_workers != 0:
            raise ValueError(
                f"Loader: `num_workers` must be 0, got {num_workers!r}. Operators run on native "
                "threads of this process, which use all CPUs without copying data between "
                "processes; `set_num_threads` sets their number."
            )
        # Lightning makes a loader again from its attributes, for predictions.
        dataset = kwargs.pop("dataset", None)
        if not isinstance(dataset, _Batches):
            _refuse(kwargs)
            dataset = _Batches(reader, fn, batch_size, prefetch, rng, class_labels)
        super().__init__(
            dataset,
            batch_size=None,
            collate_fn=_unchanged,  # the default would turn tuples into lists
            pin_memory=bool(pin_memory) and torch.accelerator.is_available(),
        )
        dataset.pins_memory = self.pin_memory
        self.reader = dataset.reader
        self.fn = dataset.fn
        self.rng = dataset.rng

    def _get_iterator(self) -> Any:
        iterator = super()._get_iterator()
        # The data set has done it: a DataLoader would try to pin tensors on a gpu, too.
        iterator._pin_memory = False
        return iterator

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Begin the epoch with this number next; the order and the augmentations depend on it.

        If a state was loaded that is in the middle of this epoch, the rest of it comes next.
        """
        self.dataset.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state as of the current batch, as a dictionary that can be stored as JSON."""
        state: dict[str, Any] = self.dataset.state_dict()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was called; the next iteration is the rest of that epoch."""
        self.dataset.load_state_dict(state_dict)


class _Batches(IterableDataset):  # type: ignore[misc]
    """The batches of a `Loader`, with its state. Works in other DataLoaders as well."""

    pins_memory = False
    """Whether tensors on the host are copied to page-locked memory."""

    def __init__(
        self,
        reader: Reader,
        fn: Callable[..., Any] | None,
        batch_size: SupportsIndex | None,
        prefetch: SupportsIndex,
        rng: RNG | None,
        class_labels: bool,
    ) -> None:
        super().__init__()
        if not isinstance(reader, Reader):
            raise messages.wrong_argument("Loader", "reader", reader, "a reader")
        if fn is not None and not callable(fn):
            raise messages.wrong_argument("Loader", "fn", fn, "a function")
        if rng is not None and not isinstance(rng, RNG):
            raise messages.wrong_argument("Loader", "rng", rng, "an RNG")
        size = reader.max_batch_size if batch_size is None else batch_size
        if size is None:
            raise TypeError("Loader: the argument `batch_size` is missing.")
        try:
            depth = operator.index(prefetch)
        except TypeError:
            raise messages.wrong_argument("Loader", "prefetch", prefetch, "an integer") from None
        if depth < 0:
            raise ValueError(f"Loader: `prefetch` can't be negative, got {depth}.")
        self.reader = reader
        self.fn = fn
        self.rng = RNG(_drawn_seed()) if rng is None else rng
        self._base = str(self.rng.state)
        self._batch_size = reader._check_batch_size(size)
        self._depth = depth
        self._class_labels = bool(class_labels)
        self._running: _Iteration | None = None
        self._lock = threading.RLock()

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            self._stop()
            number, length = self._to_come()
            reader = self.reader
            position = reader._position
            is_left = position is not None and position.is_unfinished
            epoch = reader.next_epoch(self._batch_size, restart=is_left)
            assert reader._position is not None
            is_rest = reader._position.is_resumed
            batches = self._prepared(epoch, None if is_rest else number)
            self._running = _Iteration(self, prefetching(batches, self._depth), length)
            return self._running

    def __len__(self) -> int:
        with self._lock:
            running = self._running
            if running is not None and not running.is_over:
                return running.length
            return self._to_come()[1]

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """See `Loader.set_epoch`."""
        number = checked_epoch("Loader", epoch)
        with self._lock:
            self._stop()
            self._divide()
            self.reader.set_epoch(number)

    def state_dict(self) -> dict[str, Any]:
        """See `Loader.state_dict`."""
        with self._lock:
            self._divide()
            return {
                "version": VERSION,
                "reader": str(self.reader.get_state()),
                "rng": str(self.rng.state),
                "base": self._base,
                "shard": self._shard,
            }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """See `Loader.load_state_dict`."""
        if not isinstance(state_dict, Mapping) or not {*state_dict} >= _KEYS:
            raise messages.wrong_argument(
                "Loader", "state_dict", state_dict, "a result of `Loader.state_dict()`"
            )
        if state_dict.get("version") != VERSION:
            raise ValueError(
                f"Loader: the state has version {state_dict.get('version')!r}; this release "
                f"supports version {VERSION}."
            )
        position, base = RNG(state=state_dict["rng"]).state, RNG(state=state_dict["base"]).state
        with self._lock:
            self._stop()
            self._divide()
            self.reader.load_state_dict({"state": state_dict["reader"]})
            self.rng.state = position
            self._base = str(base)
            if state_dict["shard"] != self._shard:
                # Checkpoints often have the state of rank 0 only. Others have drawn as often.
                number, _ = self._to_come()
                _, *drawn = self.rng._current_state()
                self.rng._set_position(self._epoch_seed(number), *drawn)

    def __getstate__(self) -> dict[str, Any]:
        # A copy begins an iteration of its own.
        return {**self.__dict__, "_running": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def _divide(self) -> None:
        """Take this process's shard. Not at construction, which may be before it has a rank."""
        if self.reader._position is None:
            self.reader._take_shard(**distributed_options())

    def _to_come(self) -> tuple[int, int]:
        self._divide()
        return self.reader._epoch_to_come(self._batch_size)

    @property
    def _shard(self) -> int:
        return self.reader._options.shard_id

    def _epoch_seed(self, number: int) -> int:
        """The seed of the RNG for an epoch."""
        return derived_seed(*RNG(state=self._base)._current_state(), number, self._shard)

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def _prepared(self, epoch: Iterator[Any], number: int | None) -> Iterator[Any]:
        """The results of `fn`, which may still be being computed."""
        if number is not None:
            self.rng.seed = self._epoch_seed(number)
        for outputs in epoch:
            with default_rng(self.rng):
                item = self._applied(outputs)
            yield item

    def _applied(self, outputs: Any) -> Any:
        if self.fn is None:
            return outputs
        return self.fn(*outputs) if isinstance(outputs, tuple) else self.fn(outputs)

    def _converted(self, data: Any) -> Any:
        """The result of `fn` with tensors of PyTorch. Waits for them."""
        if isinstance(data, Batch):
            made = data.torch()
            if self._class_labels and data.dtype == int32 and made.shape[1:] == (1,):
                made = made.squeeze(1).long()
            return self._pinned(made)
        if isinstance(data, Tensor):
            return self._pinned(data.torch())
        if isinstance(data, dict):
            return {key: self._converted(value) for key, value in data.items()}
        if isinstance(data, tuple) and hasattr(data, "_fields"):
            return type(data)(*map(self._converted, data))
        if isinstance(data, list | tuple):
            return type(data)(map(self._converted, data))
        return self._pinned(default_convert(data))

    def _pinned(self, made: Any) -> Any:
        is_on_host = isinstance(made, torch.Tensor) and made.device.type == "cpu"
        return made.pin_memory() if self.pins_memory and is_on_host else made


class _Iteration(Iterator[Any]):
    """One iteration over the batches of a loader, which ends when the next one begins."""

    def __init__(self, batches: _Batches, items: prefetching[Any], length: int) -> None:
        self.length = length
        self.is_over = False
        self._is_closed = False
        self._batches = batches
        self._items = items

    def __next__(self) -> Any:
        if self._is_closed:
            raise RuntimeError(
                "Loader: this iterator has ended, since another one was started, or the epoch or "
                "the state was set. A loader has one iterator at a time."
            )
        try:
            item = next(self._items)
        except StopIteration:
            self.is_over = True
            raise
        return self._batches._converted(item)

    def close(self) -> None:
        """Go back to the current item, which prefetching has moved the reader away from."""
        self._is_closed = not self.is_over
        self._items.close()


def _unchanged(batch: Any) -> Any:
    return batch


def _drawn_seed() -> int:
    rng = get_default_rng()
    return rng() << 32 | rng()


def _refuse(kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments of a DataLoader that would have no effect."""
    for key, value in kwargs.items():
        if key in _INSTEAD:
            if value:
                raise ValueError(f"Loader: `{key}` has no effect: {_INSTEAD[key]}.")
        elif key not in ("generator", "in_order", "pin_memory_device"):
            raise TypeError(f"Loader() got an unexpected keyword argument {key!r}.")
