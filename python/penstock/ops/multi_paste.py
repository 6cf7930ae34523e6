"""Multi-paste."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from penstock import _core
from penstock._errors import messages
from penstock._operators.arguments import Ints, Matrix
from penstock._operators.constraints import Elements
from penstock._operators.definition import OPERATORS, Data, Like, Operator, PerSample
from penstock._operators.operator import Options
from penstock._operators.submit import invoke, settle
from penstock._values.array import Array, wrap
from penstock._values.dtype import DType, float32, int16, int32, uint8

_TYPES = Elements("uint8, int16, int32 or float32", uint8, int16, int32, float32)
_LAYOUTS = ("HWC", "FHWC")
_PICK = _core.register("multi_paste", "pick_samples")
_SAME = _core.register("multi_paste", "same")


class MultiPaste(Operator):
    """An operator whose outputs may depend on other samples of the batch."""

    def call(
        self,
        inputs: tuple[Any, ...],
        given: tuple[Any, ...] | None,
        batch_size: Any,
        device: Any,
        rng: Any = None,
        on_error: Any = None,
        along: Any = None,
    ) -> Any:
        """Submit a call. The samples selected by `in_ids` become additional inputs."""
        arrays = [
            data if isinstance(data, Array) else self._input(position, data)
            for position, data in enumerate(inputs)
        ]
        layout = self._check_layout(arrays[0]._value)
        if layout == "FHWC":
            arrays = [_with_frames(data) for data in arrays]
        ids = None if given is None else given[self._position("in_ids")]
        if ids is not None:
            if len(arrays) > 1:
                problem = f"needs a single input, got {len(arrays)}"
                raise messages.bad_argument(self.name, "in_ids", problem)
            arrays += self._picked(arrays[0], ids, batch_size, layout)
        return super().call(tuple(arrays), given, batch_size, device)

    def _position(self, name: str) -> int:
        return next(i for i, argument in enumerate(self.arguments) if argument.name == name)

    def _picked(self, data: Array, ids: Any, batch_size: Any, layout: str | None) -> list[Array]:
        """The samples selected by `in_ids`: one array per position in the lists of ids."""
        ids = self.arguments[self._position("in_ids")].read(self.name, ids)
        value = data._value
        values = [value]
        samples = len(value) if value.batch else None
        if isinstance(ids, Array):
            # The number of ids per sample must be known: it is the number of inputs.
            settle(ids._value)
            values.append(ids._value)
            count = max((math.prod(shape) for shape in ids._value.shapes()), default=0)
            if ids._value.batch:
                samples = self._same_size(samples, len(ids._value))
        else:
            count = len(ids)
        if samples is None and batch_size is not None:
            samples = self._check_batch_size(batch_size)
        if count == 0:
            return []
        promises = [(value.dtype, value.ndim, layout)] * count
        args = ([1] if isinstance(ids, Array) else ids, count, 1 if samples is None else samples)
        made = invoke(_PICK, values, 1, args, samples, promises, value.device, layout)
        return [wrap(each) for each in made]


def _with_frames(data: Array) -> Array:
    """The data with the layout FHWC, if it has four dimensions and no layout."""
    value = data._value
    if value.layout is not None or value.ndim != len("FHWC"):
        return data
    samples = len(value) if value.batch else None
    promise = (value.dtype, value.ndim, "FHWC")
    named: Array = wrap(invoke(_SAME, (value,), 1, (), samples, (promise,), value.device)[0])
    return named


def _define(definition: Callable[..., Any]) -> Callable[..., Any]:
    name = definition.__name__
    made = OPERATORS[name] = MultiPaste(name, definition, Options(_LAYOUTS, name, ("cpu", "gpu")))
    return made.function


@_define
def multi_paste(
    input_0: Annotated[Data, _TYPES],
    *inputs: Data,
    dtype: Annotated[DType, _TYPES] | None = None,
    in_anchors: PerSample[Matrix] | None = None,
    in_anchors_rel: PerSample[Matrix] | None = None,
    in_ids: PerSample[Ints] | None = None,
    out_anchors: PerSample[Matrix] | None = None,
    out_anchors_rel: PerSample[Matrix] | None = None,
    output_size: PerSample[Ints] | None = None,
    shapes: PerSample[Matrix] | None = None,
    shapes_rel: PerSample[Matrix] | None = None,
) -> Like:
    """Paste regions of several images onto a canvas, for example to make a mosaic.

    Each input, or each sample selected by `in_ids`, contributes one region. Later regions cover
    earlier ones; the rest of the canvas is zero. Anchors and shapes are rows of two numbers, height
    and width, one row per region. They may be marked with `per_frame`.

    Args:
        input_0: Images, or sequences of images.
        inputs: More images, with the same element type.
        dtype: The element type of the result; that of the images by default. Values are rounded
            and saturated.
        in_anchors: The start of each region in its image; 0 by default.
        in_anchors_rel: The same, relative to the image size: from 0 to 1.
        in_ids: Indices of the samples in the batch to take regions from, instead of additional
            inputs. Samples may have different numbers of ids.
        out_anchors: The position of each region on the canvas; 0 by default.
        out_anchors_rel: The same, relative to the canvas size.
        output_size: Height and width of the canvas; those of the images by default.
        shapes: The shape of each region; by default the rest of the image from the anchor on.
        shapes_rel: The same, relative to the image size.

    Example:
        >>> black = ndd.zeros(shape=[2, 3, 1], dtype=ndd.uint8, layout="HWC")
        >>> white = ndd.full(ndd.tensor(255, dtype=ndd.uint8), shape=[1, 1, 1], layout="HWC")
        >>> made = ndd.multi_paste(black, white, out_anchors=[[0, 0], [1, 2]], output_size=[2, 3])
        >>> made.torch()[..., 0].tolist()
        [[0, 0, 0], [0, 0, 255]]
        >>> batch = ndd.batch([[[[1]], [[2]]], [[[3]], [[4]]]], layout="HWC")
        >>> swapped = ndd.multi_paste(batch, in_ids=ndd.batch([[1], [0]]))
        >>> swapped.torch().flatten().tolist()
        [3, 4, 1, 2]
    """
    return Like(input_0, dtype=dtype)
