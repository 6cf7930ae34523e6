"""ExternalSource: data from the user's own Python."""

from __future__ import annotations

import json
import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

from penstock._errors import messages
from penstock._errors.tracebacks import hide_frames, hides_frames, public
from penstock._runtime.context import EvalContext
from penstock._runtime.device import Device, DeviceLike
from penstock._runtime.device import device as to_device
from penstock._state import item_states
from penstock._state.source_items import Background, Feed, feed
from penstock._values.batch import Batch, as_batch, batch
from penstock._values.dtype import DType
from penstock._values.dtype import dtype as to_dtype
from penstock._values.tensor import Tensor, as_tensor, tensor


@public
class ExternalSource:
    """Data from a Python function or from anything that can be iterated over.

    Each call takes one item: a Tensor, or a Batch where the source gives one; a tuple of them for
    several outputs. At the end of the data it raises StopIteration.

    Args:
        source: A function without parameters that returns an item, or an iterable of items, or a
            generator function.
        num_outputs: How many values an item has. If more than one, it is a tuple or list of them.
        cycle: What comes after the end of an iterable: with "no" (or False), StopIteration each
            time; with "quiet" (or True), the first item again; with "raise", StopIteration once,
            and then the first item again.
        device: Where the data is to be.
        layout: The layout of the data, such as "HWC", or one for each output.
        dtype: The type of the data, or one for each output. By default arrays keep theirs.
        batch: Take each value for a batch: a list of samples, or an array whose first axis counts
            them. By default a list is one tensor, and only a Batch is a batch.
        parallel: Ask the source for the next item in the background, in a thread of its own, while
            the one before is used. An RNG that the source draws from is then ahead of the item
            that was given.

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
                    f"ExternalSource: `layout` must be a text such as 'HWC', got {text!r}."
                )
        dtypes = self._spread("dtype", dtype)
        try:
            types = [None if one is None else to_dtype(one) for one in dtypes]
        except (TypeError, ValueError) as error:
            raise messages.in_operator("ExternalSource", error, "dtype") from None
        placed = Device("cpu") if found is None else found
        # Not of this object: a thread that holds it would keep it.
        self._conversion = _Conversion(layouts, types, placed, bool(batch))
        self._is_parallel = bool(parallel)
        made = feed(source, cycle)
        self._feed: Feed = Background(made, self._conversion.owned) if parallel else made

    @hides_frames
    def __call__(self, *, batch_size: SupportsIndex | None = None) -> Any:
        """Take one item from the source.

        Args:
            batch_size: Makes batches of so many samples: a tensor is repeated, and a batch must
                have that size.
        """
        feed, number = self._feed, 0
        try:
            size = _checked_size(batch_size)
            if item_states.loops:
                item_states.moving(self)
            with feed.lock():
                outputs, last = self._next(feed, size)
                # No call from here to the end of the `with`, which an interrupt could come after.
                number = feed.given = last
        except BaseException as error:
            if number:
                # Interrupted on the way out, so that nobody gets the item.
                with feed.lock():
                    if feed.given == number:
                        feed.given = number - 1
            hide_frames(error)
            raise
        return outputs

    def _next(self, feed: Feed, size: int | None) -> tuple[Any, int]:
        """The outputs of the next item, and its number."""
        number, item = feed.next()
        try:
            values = item if self._is_parallel else self._conversion.outputs(item)
            outputs: Any = self._sized(values[0], size)
            if self._num_outputs > 1:
                outputs = (outputs, *(self._sized(value, size) for value in values[1:]))
                if len({type(value) for value in outputs}) > 1:
                    raise TypeError(
                        "ExternalSource: the outputs of an item must be all tensors or all "
                        "batches. Give `batch_size` to repeat the tensors."
                    )
        except Exception:
            # It counts as given: whoever goes on gets the next one.
            feed.given = number
            raise
        feed.ahead()
        return outputs, number

    def captured(self, batch_size: SupportsIndex, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Iterate over the items up to the end of the data, as batches.

        Args:
            batch_size: As that of a call.
            ctx: The context to run in; by default the current one.
        """
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

    def get_state(self, *, cuda_stream: Any = None) -> str:
        """How far the source has been used, as a text.

        Of an iterable, that is the number of items taken. A source that has `get_state` and
        `set_state` itself is asked for its own. A plain function has none.
        """
        self._feed.require_state()
        found = item_states.seen(self) if item_states.loops else None
        return json.dumps(self._feed.state() if found is None else found)

    def set_state(self, value: str) -> None:
        """Go to where a source of the same data was: the items before that are skipped."""
        try:
            state = json.loads(value) if isinstance(value, str) else None
        except ValueError:
            state = None
        if not isinstance(state, dict):
            raise ValueError(
                f"ExternalSource: a state is the text that get_state() gave, got {value!r}."
            )
        self._feed.require_state()
        if item_states.loops:
            item_states.placed(self)
        self._feed.go_to(state)

    def state_dict(self) -> dict[str, Any]:
        """The same as `get_state`, as a dictionary that JSON can hold."""
        state: dict[str, Any] = json.loads(self.get_state())
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where `state_dict` was called."""
        self.set_state(json.dumps(dict(state_dict)))

    def __reduce__(self) -> tuple[Any, ...]:
        """What makes another one of the same source, that goes on at the same place."""
        source = self._arguments[0]
        problem = "what can be iterated over only once has no place to go on at"
        if not isinstance(source, Iterator):
            try:
                pickle.dumps(source)
                return _made_again, (self._arguments, self._state_if_any())
            except Exception as error:
                problem = str(error)
        raise TypeError(
            f"ExternalSource: {messages.describe(source)} can't be pickled, so that the "
            f"ExternalSource can't: {problem}. Give a function or a class of a module, or make the "
            "ExternalSource where it is used."
        )

    def _state_if_any(self) -> str | None:
        try:
            self._feed.require_state()
        except RuntimeError:
            return None
        return self.get_state()

    def _live_state(self) -> dict[str, Any]:
        return self._feed.state()

    def _rewind(self, state: dict[str, Any]) -> None:
        if self._feed.can_go_back:
            self._feed.go_to(state)

    def _spread(self, name: str, given: Any) -> list[Any]:
        """An argument for each output."""
        if isinstance(given, (list, tuple)):
            if len(given) != self._num_outputs:
                raise ValueError(
                    f"ExternalSource: `{name}`: Expected a sequence of size {self._num_outputs}, "
                    f"one for each output, got {len(given)}."
                )
            return list(given)
        return [given] * self._num_outputs

    def _sized(self, made: Tensor | Batch, size: int | None) -> Tensor | Batch:
        if isinstance(made, Tensor):
            return made if size is None else Batch.broadcast(made, size)
        if size is not None and made.batch_size != size:
            raise ValueError(
                f"ExternalSource: Expected batch size {size}, but the source gave a batch of "
                f"{made.batch_size}."
            )
        return made


class _Conversion:
    """What is made of the items of a source.

    Args:
        layouts: The layout of each output.
        dtypes: The type of each.
        device: Where they are to be.
        batch: Whether each value is taken for a batch.
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
        """The same in memory that is not the source's, which may reuse it at once."""
        return tuple(map(_owned, self.outputs(item)))

    def _convert(self, index: int, data: Any) -> Tensor | Batch:
        is_batch = isinstance(data, Batch) or self._batch
        make = as_batch if is_batch else as_tensor
        layout, dtype = self._layouts[index], self._dtypes[index]
        try:
            return make(data, dtype=dtype, device=self._device, layout=layout)
        except (TypeError, ValueError) as error:
            raise self._unusable(index, data, error) from None

    def _unusable(self, index: int, data: Any, error: Exception) -> Exception:
        """What is wrong with an item, as said of data in general."""
        which = "" if self._num_outputs == 1 else f"output {index}: "
        if "inhomogeneous" in str(error):  # NumPy's word
            return ValueError(
                f"ExternalSource: {which}the source gave nested lists of different lengths, which "
                "make no tensor. With `batch=True`, the outermost list is a batch of samples."
            )
        if data is None:
            return TypeError(
                f"ExternalSource: {which}the source gave None. A function raises StopIteration at "
                "the end of its data."
            )
        return messages.in_operator(f"ExternalSource: {which}".rstrip(": "), error)


def _made_again(arguments: tuple[Any, ...], state: str | None) -> ExternalSource:
    source, outputs, cycle, device, layout, dtype, batch, parallel = arguments
    made = ExternalSource(
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
        made.set_state(state)
    return made


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


def _owned(made: Tensor | Batch) -> Tensor | Batch:
    if not made._value.external:
        return made
    return batch(made) if isinstance(made, Batch) else tensor(made)
