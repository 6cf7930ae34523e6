"""ExternalSource: data from Python functions and iterables."""

from __future__ import annotations

import json
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

from penstock import _core
from penstock._errors import messages
from penstock._errors.tracebacks import hide_frames, hides_frames, public
from penstock._runtime.context import EvalContext
from penstock._runtime.device import Device, DeviceLike
from penstock._runtime.device import device as to_device
from penstock._state import item_states, run_ahead
from penstock._state.source_items import BackgroundItems, ItemSource, item_source
from penstock._values.batch import Batch, as_batch, batch
from penstock._values.dtype import DType
from penstock._values.dtype import dtype as to_dtype
from penstock._values.tensor import Tensor, as_tensor, tensor

__all__ = ["ExternalSource"]


@public
class ExternalSource:
    """Data from a Python function or an iterable.

    Each call returns the next item: a Tensor, or a Batch if the source produces one; a tuple of
    them for several outputs. At the end of the data it raises StopIteration.

    Args:
        source: A function without parameters that returns an item, or an iterable of items, or a
            generator function.
        num_outputs: The number of values per item. If more than one, items are tuples or lists.
        cycle: What happens at the end of an iterable: with "no" (or False), every call raises
            StopIteration; with "quiet" (or True), it starts over; with "raise", StopIteration is
            raised once, then it starts over.
        device: The device of the outputs.
        layout: The layout of the data, such as "HWC", or one for each output.
        dtype: The type of the data, or one for each output. By default arrays keep theirs.
        batch: Treat each value as a batch: a list of samples, or an array whose first axis is the
            batch. By default a list is one tensor, and only a Batch is a batch.
        parallel: Compute the next item in a background thread while the current one is used. An
            RNG used by the source is then ahead of the current item.

    Example:
        >>> source = ndd.ExternalSource([[1, 2], [3, 4]], cycle="raise")
        >>> [source().torch().tolist() for _ in range(2)]
        [[1, 2], [3, 4]]
        >>> source(batch_size=2)
        Traceback (most recent call last):
        StopIteration
        >>> source(batch_size=2).shape
        [(2,), (2,)]
    """

    def __init__(
        self,
        source: Callable[[], Any] | Iterable[Any],
        num_outputs: SupportsIndex = 1,
        *,
        cycle: str | bool | None = None,
        device: DeviceLike = "cpu",
        layout: str | Sequence[str | None] | None = None,
        dtype: Any = None,
        batch: bool = False,
        parallel: bool = False,
    ) -> None:
        self._arguments = (source, num_outputs, cycle, device, layout, dtype, batch, parallel)
        try:
            self._num_outputs = operator.index(num_outputs)
        except TypeError:
            raise messages.wrong_argument(
                "ExternalSource", "num_outputs", num_outputs, "an integer"
            ) from None
        if self._num_outputs < 1:
            raise ValueError(
                f"ExternalSource: `num_outputs` must be at least 1, got {self._num_outputs}."
            )
        try:
            found = to_device(device)
        except (TypeError, ValueError) as error:
            raise messages.in_operator("ExternalSource", error, "device") from None
        layouts = self._spread("layout", layout)
        for text in layouts:
            if text is not None and not isinstance(text, str):
                raise ValueError(
                    f"ExternalSource: `layout` must be a string such as 'HWC', got {text!r}."
                )
        dtypes = self._spread("dtype", dtype)
        try:
            types = [None if one is None else to_dtype(one) for one in dtypes]
        except (TypeError, ValueError) as error:
            raise messages.in_operator("ExternalSource", error, "dtype") from None
        target = Device("cpu") if found is None else found
        # A separate object: the background thread refers to it and must not keep this one alive.
        self._conversion = _Conversion(layouts, types, target, bool(batch))
        self._is_parallel = bool(parallel)
        self._loop = _core.Loop()
        self._iteration = self._loop.iteration()
        items = item_source(source, cycle)
        self._items: ItemSource = (
            BackgroundItems(items, self._conversion.owned, self._offer_to(self._loop))
            if parallel
            else items
        )

    @hides_frames
    def __call__(self, *, batch_size: SupportsIndex | None = None) -> Any:
        """Return the next item.

        Args:
            batch_size: Return batches of this size: a tensor is repeated, and a batch must have
                this size.
        """
        items, number = self._items, 0
        try:
            size = _checked_size(batch_size)
            if item_states.loops:
                item_states.before_change(self)
            with items.lock():
                outputs, last = self._next(items, size)
                # No calls from here to the end of the `with`: an interrupt could arrive after one.
                number = items.delivered = last
        except BaseException as error:
            if isinstance(error, StopIteration):
                self._iteration.end()
            if number:
                # Interrupted on the way out: the item was not delivered after all.
                with items.lock():
                    if items.delivered == number:
                        items.delivered = number - 1
            hide_frames(error)
            raise
        return outputs

    def _next(self, items: ItemSource, size: int | None) -> tuple[Any, int]:
        """The outputs of the next item, and its number."""
        number, item = items.next()
        try:
            values = item if self._is_parallel else self._conversion.outputs(item)
            outputs: Any = self._sized(values[0], size)
            if self._num_outputs > 1:
                outputs = (outputs, *(self._sized(value, size) for value in values[1:]))
                if len({type(value) for value in outputs}) > 1:
                    raise TypeError(
                        "ExternalSource: the outputs of an item must be all tensors or all "
                        "batches. Pass `batch_size` to repeat the tensors."
                    )
        except Exception:
            # It counts as delivered: the next call gets the next item.
            items.delivered = number
            raise
        # Before the next item is taken, which is then run ahead.
        run_ahead.begin(self._iteration, run_ahead.values(outputs), (), run_ahead.allowed())
        items.prefetch()
        return outputs, number

    @staticmethod
    def _offer_to(loop: _core.Loop) -> Callable[[Any], None]:
        """A function that is called with each item when it is taken in the background."""
        return lambda item: loop.offer(run_ahead.values(item), 1)

    def captured(self, batch_size: SupportsIndex, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Iterate over the items to the end of the data, as batches.

        Args:
            batch_size: As in a call.
            ctx: The context to run in; by default the current one.
        """
        try:
            while True:
                try:
                    if ctx is None:
                        item = self(batch_size=batch_size)
                    else:
                        with ctx:
                            item = self(batch_size=batch_size)
                except StopIteration:
                    return
                yield item
        finally:
            self._iteration.end(False)

    def get_state(self, *, cuda_stream: Any = None) -> str:
        """The position in the data, as a string.

        For an iterable, it is the number of items delivered. A source with its own `get_state` and
        `set_state` is asked for its state. A plain function has no state.
        """
        self._items.require_state()
        found = item_states.visible_state(self) if item_states.loops else None
        return json.dumps(self._items.state() if found is None else found)

    def set_state(self, value: str) -> None:
        """Go to the position of a source of the same data, skipping the items before it."""
        try:
            state = json.loads(value) if isinstance(value, str) else None
        except ValueError:
            state = None
        if not isinstance(state, dict):
            raise ValueError(
                f"ExternalSource: a state is a string returned by get_state(), got {value!r}."
            )
        self._items.require_state()
        if item_states.loops:
            item_states.before_set_state(self)
        self._items.restore(state)

    def state_dict(self) -> dict[str, Any]:
        """The same as `get_state`, as a dictionary that can be stored as JSON."""
        state: dict[str, Any] = json.loads(self.get_state())
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the position to the result of `state_dict`."""
        self.set_state(json.dumps(dict(state_dict)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its source, arguments and position."""
        source = self._arguments[0]
        problem = "an iterator has no position to resume at"
        if not isinstance(source, Iterator):
            try:
                pickle.dumps(source)
                return _rebuild, (self._arguments, self._state_if_any())
            except Exception as error:
                problem = str(error)
        raise TypeError(
            f"ExternalSource: {messages.describe(source)} can't be pickled, so the ExternalSource "
            f"can't either: {problem}. Use a function or a class of a module, or create the "
            "ExternalSource where it is used."
        )

    def _state_if_any(self) -> str | None:
        try:
            self._items.require_state()
        except RuntimeError:
            return None
        return self.get_state()

    def _current_state(self) -> dict[str, Any]:
        return self._items.state()

    def _rewind(self, state: dict[str, Any]) -> None:
        if self._items.can_go_back:
            self._items.restore(state)

    def _spread(self, name: str, given: Any) -> list[Any]:
        """One argument per output."""
        if isinstance(given, (list, tuple)):
            if len(given) != self._num_outputs:
                raise ValueError(
                    f"ExternalSource: `{name}`: Expected a sequence of size {self._num_outputs}, "
                    f"one per output, got {len(given)}."
                )
            return list(given)
        return [given] * self._num_outputs

    def _sized(self, value: Tensor | Batch, size: int | None) -> Tensor | Batch:
        if isinstance(value, Tensor):
            return value if size is None else Batch.broadcast(value, size)
        if size is not None and value.batch_size != size:
            raise ValueError(
                f"ExternalSource: Expected batch size {size}, but the source returned a batch of "
                f"{value.batch_size}."
            )
        return value


class _Conversion:
    """Converts items of a source to outputs.

    Args:
        layouts: The layout of each output.
        dtypes: The type of each output.
        device: The device of all outputs.
        batch: Whether each value is treated as a batch.
    """

    def __init__(
        self,
        layouts: Sequence[str | None],
        dtypes: Sequence[DType | None],
        device: Device,
        batch: bool,
    ) -> None:
        self._num_outputs = len(layouts)
        self._layouts = layouts
        self._dtypes = dtypes
        self._device = device
        self._batch = batch

    def outputs(self, item: Any) -> tuple[Tensor | Batch, ...]:
        """The outputs of an item."""
        if self._num_outputs == 1:
            return (self._convert(0, item),)
        if not isinstance(item, (tuple, list)) or len(item) != self._num_outputs:
            given = f"{len(item)}" if isinstance(item, (tuple, list)) else messages.describe(item)
            raise ValueError(
                f"ExternalSource: Expected {self._num_outputs} outputs from the source, in a tuple "
                f"or a list, got {given}."
            )
        return tuple(self._convert(index, value) for index, value in enumerate(item))

    def owned(self, item: Any) -> tuple[Tensor | Batch, ...]:
        """The outputs of an item, copied if the source may reuse its memory."""
        return tuple(map(_owned, self.outputs(item)))

    def _convert(self, index: int, data: Any) -> Tensor | Batch:
        is_batch = isinstance(data, Batch) or self._batch
        make = as_batch if is_batch else as_tensor
        layout, dtype = self._layouts[index], self._dtypes[index]
        try:
            return make(data, dtype=dtype, device=self._device, layout=layout)
        except (TypeError, ValueError) as error:
            raise self._invalid(index, data, error) from None

    def _invalid(self, index: int, data: Any, error: Exception) -> Exception:
        """The error for an item that can't be converted."""
        which = "" if self._num_outputs == 1 else f"output {index}: "
        if "inhomogeneous" in str(error):  # NumPy's word
            return ValueError(
                f"ExternalSource: {which}the source returned nested lists of different lengths, "
                "which can't be a tensor. With `batch=True`, the outermost list is a batch of "
                "samples."
            )
        if data is None:
            return TypeError(
                f"ExternalSource: {which}the source returned None. A function must raise "
                "StopIteration at the end of its data."
            )
        return messages.in_operator(f"ExternalSource: {which}".rstrip(": "), error)


def _rebuild(arguments: tuple[Any, ...], state: str | None) -> ExternalSource:
    source, outputs, cycle, device, layout, dtype, batch, parallel = arguments
    rebuilt = ExternalSource(
        source,
        outputs,
        cycle=cycle,
        device=device,
        layout=layout,
        dtype=dtype,
        batch=batch,
        parallel=parallel,
    )
    if state is not None:
        rebuilt.set_state(state)
    return rebuilt


def _checked_size(batch_size: SupportsIndex | None) -> int | None:
    try:
        size = None if batch_size is None else operator.index(batch_size)
    except TypeError:
        raise messages.wrong_argument(
            "ExternalSource", "batch_size", batch_size, "an integer"
        ) from None
    if size is not None and size < 0:
        raise ValueError(f"ExternalSource: `batch_size` can't be negative, got {size}.")
    return size


def _owned(value: Tensor | Batch) -> Tensor | Batch:
    if not value._value.external:
        return value
    return batch(value) if isinstance(value, Batch) else tensor(value)
