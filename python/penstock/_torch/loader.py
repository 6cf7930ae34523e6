"""`Loader`: a reader and a function on its batches as a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, SupportsIndex

import torch
from torch.utils.data import DataLoader, IterableDataset

from penstock._errors.tracebacks import public
from penstock._state.loader import Batches
from penstock._state.rng import RNG
from penstock._torch.convert import to_torch
from penstock._torch.distributed import distributed_options
from penstock.readers import Reader

__all__ = ["Loader"]

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
    first use (see `distributed_options`). All ranks have equally many batches, unless the reader
    was created with `last_batch="partial"`; then a warning tells if they differ.

    `state_dict` has the position of the reader as of the batch that the loop is at, whatever has
    been prefetched, and the seed. A new loader that loads it continues with the next batch: the
    same samples, with the same augmentations. Lightning stores it in its checkpoints. The state of
    one rank will do for all, if they are at the same step, also where their number is another one
    from then on: what was left of the epoch is divided anew, and each sample is read once.

    Args:
        reader: A reader, which only this loader uses.
        fn: Gets the outputs of the reader for one batch, such as `fn(jpegs, labels)`, or the
            dictionary of a reader that gives one, and returns what a training step needs: batches,
            tensors, or tuples, lists and dictionaries of them. Without it the reader's outputs are
            returned.
        batch_size: The number of samples in a batch.
        prefetch: How many batches to prepare in advance; see `prefetch`.
        rng: The RNG that operators in `fn` use by default. What they draw for a batch depends on
            its state when the loader is created, the shard, the epoch and the step. By default a
            new one, seeded by the default RNG (see `random.set_seed`). Use the same seed on all
            ranks: their numbers differ nevertheless.
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
            dataset = _Batches(reader, fn, batch_size, prefetch, rng, class_labels=class_labels)
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


class _Batches(Batches, IterableDataset):  # type: ignore[misc]
    """The batches of a `Loader`, with its state. Works in other DataLoaders as well."""

    pins_memory = False
    """Whether tensors on the host are copied to page-locked memory."""

    def __init__(self, *args: Any, class_labels: bool) -> None:
        super().__init__(*args)
        self._class_labels = bool(class_labels)

    def _own_shard(self) -> dict[str, int]:
        return {**distributed_options()}

    def _converted(self, data: Any) -> Any:
        return to_torch(data, self._class_labels, self.pins_memory)


def _unchanged(batch: Any) -> Any:
    return batch


def _refuse(kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments of a DataLoader that would have no effect."""
    for key, value in kwargs.items():
        if key in _INSTEAD:
            if value:
                raise ValueError(f"Loader: `{key}` has no effect: {_INSTEAD[key]}.")
        elif key not in ("generator", "in_order", "pin_memory_device"):
            raise TypeError(f"Loader() got an unexpected keyword argument {key!r}.")
