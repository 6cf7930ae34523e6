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

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

from penstock._errors.tracebacks import public as _public
from penstock._public import attach as _attach
from penstock._state.loader import Batches as _Batches
from penstock._values.tensor import put_in_jax as _put_in_jax

if TYPE_CHECKING:
    from penstock._state.rng import RNG
    from penstock.readers import Reader

__all__ = ["Loader"]


@_public
class Loader:
    """Iterates over the epochs of a reader, in batches of JAX arrays.

    Each `for` loop is the next epoch, a complete one even if the previous loop was left early, and
    `len` is its number of batches. Only the first loop after `load_state_dict` has the rest of an
    epoch.

    `state_dict` has the position of the reader as of the batch that the loop is at, however many
    were prefetched, and the seed. A new loader that loads it continues with the next batch: the
    same samples, with the same augmentations.

    If JAX runs in several processes (`jax.distributed`), a reader that was created without shards
    gets the one of its process, `batch_size` is the number of samples that each process reads, and
    with a `sharding` over the devices of all processes, arrays are global: their first dimension is
    that of all processes together.

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
        rng: The RNG that operators in `fn` use by default. What they draw for a batch depends on
            its state when the loader is created, the shard, the epoch and the step. By default a
            new one, seeded by the default RNG (see `random.set_seed`). Use the same seed in all
            processes: their numbers differ nevertheless.

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
        batch_size: SupportsIndex | None = None,
        sharding: Any = None,
        prefetch: SupportsIndex = 2,
        rng: RNG | None = None,
    ) -> None:
        try:
            import jax  # noqa: F401
        except ImportError:
            raise RuntimeError("jax.Loader requires JAX to be installed.") from None
        self._batches = _JaxBatches(reader, fn, batch_size, prefetch, rng)
        self._batches.sharding = sharding
        self.reader = reader
        self.fn = fn
        self.rng = self._batches.rng

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Begin the epoch with this number next; the order and the augmentations depend on it.

        If a state was loaded that is in the middle of this epoch, the rest of it comes next.
        """
        self._batches.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state as of the current batch, as a dictionary that can be stored as JSON."""
        return self._batches.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was called; the next iteration is the rest of that epoch."""
        self._batches.load_state_dict(state_dict)

    def __repr__(self) -> str:
        return f"Loader({self.reader!r}, batch_size={self._batches._batch_size})"


class _JaxBatches(_Batches):
    """The batches of a `Loader`."""

    what = "jax.Loader"
    sharding: Any = None

    def _own_shard(self) -> dict[str, int]:
        import jax

        return {"shard_id": jax.process_index(), "num_shards": jax.process_count()}

    def _converted(self, data: Any) -> Any:
        return _to_jax(data, self.sharding)


def _to_jax(item: Any, sharding: Any) -> Any:
    """Tensors and batches, nested in any way, as JAX arrays."""
    import jax

    from penstock._values.array import Array

    def convert(leaf: Any, sharding: Any) -> Any:
        if isinstance(leaf, Array):
            return leaf.jax(sharding)  # type: ignore[attr-defined]
        return _put_in_jax(leaf, sharding, "jax.Loader")

    leaves, structure = jax.tree.flatten(item)
    shardings = jax.tree.broadcast(sharding, item, is_leaf=lambda each: each is None)
    each = jax.tree.leaves(shardings, is_leaf=lambda each: each is None)
    return structure.unflatten(map(convert, leaves, each))


_attach(__name__)
