"""Batches for JAX.

`Tensor.jax()` and `Batch.jax()` give JAX arrays, and `jax.numpy.asarray` accepts tensors. A
`Loader` reads, decodes and augments the next batches while JAX computes, and puts them on devices:

    import jax
    import penstock as ndd
    from jax.sharding import NamedSharding, PartitionSpec

    def augment(jpegs, labels):
        images = ndd.resize(ndd.decoders.image(jpegs), size=[224, 224])
        return images, labels

    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    loader = ndd.jax.Loader(
        ndd.readers.File(file_root="photographs", random_shuffle=True, last_batch="drop"),
        augment,
        batch_size=256,
        sharding=NamedSharding(mesh, PartitionSpec("data")),
    )
    for epoch in range(90):
        for images, labels in loader:
            state = train_step(state, images, labels)
"""

from __future__ import annotations

import weakref as _weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock._errors import messages as _messages
from penstock._errors.tracebacks import public as _public
from penstock._public import attach as _attach
from penstock._state.prefetch import prefetch as _prefetch

if TYPE_CHECKING:
    from penstock.readers import Reader

__all__ = ["Loader"]


@_public
class Loader:
    """Iterates over the epochs of a reader, in batches of JAX arrays.

    Each `for` loop is a complete epoch: if a loop is left early, the rest of its epoch is dropped.
    Only the first loop after `load_state_dict` has the rest of an epoch. `len(loader)` is the
    number of batches of the current epoch, or of the next one.

    In the body of the loop, `state_dict()` is the state after the current batch, however many
    were prefetched; a loader that it is loaded into continues with the next one. It holds the
    position of the reader. RNGs that `fn` uses have states of their own, also as of the current
    batch; see `checkpoint`.

    Args:
        reader: The reader. Nothing else should read from it.
        fn: Called with the outputs of the reader for a batch (with a dict, if the reader gives
            one). It returns a batch, or tuples, lists or dicts of them, whose samples have the
            same shape.
        batch_size: The number of samples in a batch.
        sharding: A `Sharding` or a device of JAX for all arrays, or one for each, nested like
            the arrays. The batch size must be a multiple of the devices that share the first
            dimension; with `last_batch="drop"`, a reader leaves out the smaller last batch.
        prefetch: The number of batches to prefetch.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = [pathlib.Path(folder, f"{number}.bin") for number in range(4)]
        ...     sizes = [file.write_bytes(bytes([number] * 3)) for number, file in enumerate(files)]
        ...     loader = ndd.jax.Loader(ndd.readers.File(files=files), batch_size=2)
        ...     for data, labels in loader:
        ...         print(data.tolist(), labels.shape)
        [[0, 0, 0], [1, 1, 1]] (2, 1)
        [[2, 2, 2], [3, 3, 3]] (2, 1)
    """

    def __init__(
        self,
        reader: Reader,
        fn: Callable[..., Any] | None = None,
        *,
        batch_size: SupportsIndex,
        sharding: Any = None,
        prefetch: SupportsIndex = 2,
    ) -> None:
        from penstock.readers import Reader

        if not isinstance(reader, Reader):
            raise _messages.wrong_argument("jax.Loader", "reader", reader, "a reader")
        if fn is not None and not callable(fn):
            raise _messages.wrong_argument("jax.Loader", "fn", fn, "a function")
        try:
            import jax  # noqa: F401
        except ImportError:
            raise RuntimeError("jax.Loader requires JAX to be installed.") from None
        _prefetch((), prefetch)  # says what is wrong with it
        self._reader = reader
        self._fn = fn
        self._batch_size = reader._check_batch_size(batch_size)
        self._sharding = sharding
        self._depth = prefetch
        self._epoch: _weakref.ref[_Epoch] | None = None

    def __iter__(self) -> Iterator[Any]:
        self._leave()
        length = self._reader._coming(self._batch_size)
        epoch = _Epoch(_prefetch(self._items(), self._depth), self._sharding, length)
        self._epoch = _weakref.ref(epoch)
        return epoch

    def __len__(self) -> int:
        epoch = self._running()
        return self._reader._coming(self._batch_size) if epoch is None else epoch.length

    def state_dict(self) -> dict[str, Any]:
        """The state after the current batch."""
        return {"reader": self._reader.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue after the batch at which `state_dict` was called, with the rest of its epoch.

        An iterator over the current epoch ends.
        """
        if not isinstance(state_dict, Mapping) or "reader" not in state_dict:
            raise _messages.wrong_argument(
                "jax.Loader", "state_dict", state_dict, "what `state_dict()` gave"
            )
        self._leave()
        self._reader.load_state_dict(state_dict["reader"])

    def __repr__(self) -> str:
        return f"Loader({self._reader!r}, batch_size={self._batch_size})"

    def _items(self) -> Iterator[Any]:
        fn = self._fn
        position = self._reader._position
        restart = position is not None and position.is_unfinished
        for outputs in self._reader.next_epoch(self._batch_size, restart=restart):
            if fn is None:
                yield outputs
            else:
                yield fn(outputs) if isinstance(outputs, dict) else fn(*outputs)

    def _running(self) -> _Epoch | None:
        epoch = None if self._epoch is None else self._epoch()
        return None if epoch is None or epoch.is_over else epoch

    def _leave(self) -> None:
        epoch = self._running()
        if epoch is not None:
            epoch.close()


class _Epoch:
    """The batches of an epoch as JAX arrays."""

    def __init__(self, items: _prefetch[Any], sharding: Any, length: int) -> None:
        self.length = length
        self.is_over = False
        self._items = items
        self._sharding = sharding

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            item = next(self._items)
        except StopIteration:
            self.is_over = True
            raise
        return _to_jax(item, self._sharding)

    def close(self) -> None:
        """End the iteration, and put the reader back after the current batch."""
        self.is_over = True
        self._items.close()


def _to_jax(item: Any, sharding: Any) -> Any:
    """Tensors and batches, nested in any way, as JAX arrays."""
    import jax

    from penstock._values.array import Array

    def convert(leaf: Any, sharding: Any) -> Any:
        if isinstance(leaf, Array):
            return leaf.jax(sharding)  # type: ignore[attr-defined]
        return jax.device_put(leaf, sharding)

    leaves, structure = jax.tree.flatten(item)
    shardings = jax.tree.broadcast(sharding, item, is_leaf=lambda each: each is None)
    each = jax.tree.leaves(shardings, is_leaf=lambda each: each is None)
    return structure.unflatten(map(convert, leaves, each))


_attach(__name__)
