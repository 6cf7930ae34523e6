"""Nodes for `torchdata.nodes`: a reader, operators on what it gives, and tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

try:
    from torchdata.nodes import BaseNode
except ImportError as error:
    raise ImportError(
        "penstock.pytorch.nodes needs torchdata: install the package `torchdata`."
    ) from error

from penstock._values.batch import Batch
from penstock._values.tensor import Tensor
from penstock.readers import Reader as AnyReader

__all__ = ["DictMapper", "Reader", "ToTorch"]


class Reader(BaseNode):  # type: ignore[misc]
    """A reader as a node, which gives dictionaries of its outputs.

    Args:
        reader_type: The class of the reader, such as `readers.File`.
        batch_size: The number of samples in a batch; None for single samples.
        output_names: The keys of the outputs; by default "data" and "label", if there are two.
        **kwargs: The arguments of the reader.
    """

    def __init__(
        self,
        reader_type: type[AnyReader],
        *,
        batch_size: int | None,
        output_names: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if batch_size is not None:
            kwargs.setdefault("max_batch_size", batch_size)
        self._reader = reader_type(**kwargs)
        self._batch_size = batch_size
        self._names = ("data", "label") if output_names is None else tuple(output_names)
        self._epoch: Iterator[Any] | None = None

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begin the next epoch, or go on where a state was taken."""
        super().reset(initial_state)
        if initial_state is not None:
            self._reader.load_state_dict(initial_state["reader"])
        self._epoch = iter(self._reader.next_epoch(batch_size=self._batch_size))

    def next(self) -> dict[str, Tensor | Batch]:
        """The outputs of the next batch or sample, by name."""
        if self._epoch is None:
            raise RuntimeError("Reader.next: call `reset` first.")
        outputs = next(self._epoch)
        if len(outputs) != len(self._names):
            raise ValueError(
                f"Reader: the reader has {len(outputs)} outputs, but `output_names` has "
                f"{len(self._names)} ({', '.join(self._names)})."
            )
        return dict(zip(self._names, outputs, strict=True))

    def get_state(self) -> dict[str, Any]:
        """The position of the reader."""
        return {"reader": self._reader.state_dict()}

    def get_metadata(self) -> dict[str, int]:
        """What the reader says of its data set: sizes and shards."""
        return self._reader.get_metadata(self._batch_size)


class _OnSource(BaseNode):  # type: ignore[misc]
    """A node that takes from one other, whose state it has."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source = source

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Reset the source."""
        super().reset(initial_state)
        self._source.reset(None if initial_state is None else initial_state["source"])

    def get_state(self) -> dict[str, Any]:
        """The state of the source."""
        return {"source": self._source.state_dict()}


class DictMapper(_OnSource):
    """Applies a function to one entry of the dictionaries that another node gives.

    Args:
        source: The other node.
        map_fn: The function. It takes and returns a tensor or a batch.
        key: The entry.
    """

    def __init__(self, source: Any, map_fn: Callable[[Any], Any], key: str = "data") -> None:
        super().__init__(source)
        self._function = map_fn
        self._key = key

    def next(self) -> dict[str, Any]:
        """The next dictionary, with its entry replaced."""
        given = self._source.next()
        return {**given, self._key: self._function(given[self._key])}


class ToTorch(_OnSource):
    """Converts the dictionaries that another node gives to tuples of PyTorch's tensors.

    If one of the entries is on a gpu, all others are moved there.

    Args:
        source: The other node.
        output_stream: For compatibility with DALI: without effect. Tensors on a gpu are ready for
            work on PyTorch's current stream.
    """

    def __init__(self, source: Any, output_stream: Any = None) -> None:
        super().__init__(source)

    def next(self) -> tuple[torch.Tensor, ...]:
        """The entries of the next dictionary, in their order."""
        given = self._source.next()
        gpus = {
            data.device.device_id for data in given.values() if data.device.device_type == "gpu"
        }
        if len(gpus) > 1:
            raise ValueError(f"ToTorch: the data is on several gpus: {sorted(gpus)}.")
        for gpu in gpus:
            given = {key: data.gpu(gpu) for key, data in given.items()}
        return tuple(data.torch() for data in given.values())
