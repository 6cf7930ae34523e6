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
    """An operator whose samples may be made of other samples of the batch."""

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
        """Submit a call. The samples that `in_ids` names become inputs of their own."""
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
        """The first samples that are named for each sample, the second ones and so on."""
        ids = self.arguments[self._position("in_ids")].read(self.name, ids)
        value = data._value
        values = [value]
        samples = len(value) if value.batch else None
        if isinstance(ids, Array):
            # How many there are for a sample is how many inputs the call has.
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
    """Sequences whose layout says so."""
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
    """Put regions of several images on a canvas, such as a mosaic.

    There is a region of each input, or of each sample that `in_ids` names. Later regions cover
    earlier ones; the rest of the canvas is zero. Anchors and shapes have a row of two numbers for
    each region, along height and width. They may be marked with `per_frame`.

    Args:
        input_0: Images, or sequences of them.
        inputs: More images, of the same element type.
        dtype: The element type of the result; that of the images by default. Fractions are
            rounded, and values are saturated.
        in_anchors: Where regions start in their images; 0 by default.
        in_anchors_rel: The same, relative to the size of the image: from 0 to 1.
        in_ids: The samples that regions are from, by their position in the batch, instead of
            further inputs. Each sample may name as many as it likes.
        out_anchors: Where regions go on the canvas; 0 by default.
        out_anchors_rel: The same, relative to the size of the canvas.
        output_size: Height and width of the canvas; those of the images by default.
        shapes: The extents of regions; by default all of the image from the anchor on.
        shapes_rel: The same, relative to the size of the image.

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
