"""Generic.

Operators on arrays of any kind.
"""

from __future__ import annotations

import math
from typing import Annotated

from penstock._errors import messages
from penstock._operators.arguments import REQUIRED, Floats, Ints
from penstock._operators.constraints import Between, Elements, OneOf
from penstock._operators.definition import Data, Like, PerSample, Result, operator
from penstock._operators.deprecated import Deprecated, chosen_dtype
from penstock._operators.submit import settle
from penstock._values.array import Array
from penstock._values.axes import axis_from_front, with_letter
from penstock._values.dtype import DType, float32, uint8

_NONE = Ints(())
_NO_NUMBERS = Floats(())
_KEYS = Elements(
    "integers", DType.Kind.signed, DType.Kind.unsigned, DType.Kind.bool, DType.Kind.enum
)


@operator()
def cast(input: Data, *, dtype: DType = REQUIRED) -> Like:
    """Convert to another element type.

    Floats are rounded to the nearest integer (halves away from zero), and values are saturated.

    Args:
        input: The data.
        dtype: The element type to convert to.

    Example:
        >>> ndd.cast(ndd.tensor([-1.0, 0.5, 300.0]), dtype=ndd.uint8).torch().tolist()
        [0, 1, 255]
    """
    return Like(input, dtype=dtype)


@operator(can_change_device=True)
def copy(input: Data) -> Like:
    """Copy data into memory of its own, possibly on another device.

    Args:
        input: The data.

    Example:
        >>> original = ndd.tensor([1, 2, 3])
        >>> ndd.copy(original).torch().tolist()
        [1, 2, 3]
    """
    return Like(input)


@operator()
def cast_like(input_0: Data, input_1: Data) -> Like:
    """Convert to the element type of another array, as by `cast`.

    Args:
        input_0: The data.
        input_1: The array whose element type the result has.

    Example:
        >>> ndd.cast_like([0.6, 2.4], ndd.tensor([1])).torch().tolist()
        [1, 2]
    """
    return Like(input_0, dtype=input_1.dtype)


@operator()
def get_property(
    input: Data, *, key: Annotated[str, OneOf("layout", "source_info")] = REQUIRED
) -> Result:
    """Get a property of data, as the bytes of a string.

    Args:
        input: The data.
        key: "layout", or "source_info" for where a sample came from, usually a file. The result
            is empty if there is none.

    Example:
        >>> letters = ndd.get_property(ndd.tensor([[1, 2]], layout="HW"), key="layout")
        >>> bytes(letters.torch().tolist())
        b'HW'
    """
    return Result(uint8, 1)


@operator()
def lookup_table(
    input: Annotated[Data, _KEYS],
    *,
    default_value: float = 0.0,
    dtype: DType | None = None,
    keys: Annotated[Ints, Between(0, 65535)] = _NONE,
    output_dtype: Annotated[DType, Deprecated("dtype")] | None = None,
    values: Floats = _NO_NUMBERS,
) -> Like:
    """Look up integers in a table.

    Args:
        input: The keys.
        default_value: The value for keys that the table doesn't have.
        dtype: The element type of the result; float32 by default. Values are converted as by
            `cast`.
        keys: The keys of the table. The last of duplicate keys counts.
        output_dtype: Deprecated alias of `dtype`.
        values: A value for each of the keys.

    Example:
        >>> ndd.lookup_table([1, 5, 2], keys=[1, 2], values=[10, 20]).torch().tolist()
        [10.0, 0.0, 20.0]
    """
    dtype = chosen_dtype("lookup_table", dtype, output_dtype)
    if len(keys) != len(values):
        raise messages.bad_argument(
            "lookup_table", "keys", f"has {len(keys)} entries, but `values` has {len(values)}"
        )
    return Like(input, dtype=dtype or float32)


@operator()
def one_hot(
    input: Data,
    *,
    axis: int = -1,
    axis_name: str | None = None,
    dtype: DType = float32,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
) -> Result:
    """Encode class numbers as one-hot vectors.

    Args:
        input: Class numbers. For a number that is not a class, no element is set.
        axis: The position of the class dimension in the result; a negative one counts from the
            end. If it is the last, samples of a single element become plain vectors.
        axis_name: The letter of the new dimension. Without one, the result has no layout.
        dtype: The element type of the result.
        num_classes: The number of classes.
        off_value: The value of all other elements.
        on_value: The value that marks the class.

    Example:
        >>> ndd.one_hot([2, 0], num_classes=3).torch().tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    ndim = 0 if axis == -1 and _has_single_elements(input) else input.ndim
    axis = axis_from_front("one_hot", "axis", axis, ndim + 1)
    layout = with_letter(
        "one_hot", "axis_name", axis_name, input.layout if ndim else None, axis, ndim
    )
    return Result(dtype, ndim + 1, layout, axis=axis, lone=int(ndim < input.ndim))


def _has_single_elements(input: Array) -> bool:
    """Whether every sample has one element, such as a reader's labels."""
    if input.ndim == 0:
        return True
    # The rank of the result depends on it, so the call has to wait.
    settle(input._value)
    shapes = input._value.shapes()
    return bool(shapes) and all(math.prod(shape) == 1 for shape in shapes)


@operator()
def permute_batch(input: Data, *, indices: PerSample[Ints] = REQUIRED) -> Like:
    """Reorder the samples of a batch, without copying.

    Args:
        input: The batch.
        indices: For each sample of the result, the index of the sample to take: a batch or a list
            of integers, or one for all.

    Example:
        >>> ndd.permute_batch(ndd.batch([10, 20, 30]), indices=[2, 0, 0]).torch().tolist()
        [30, 10, 10]
    """
    return Like(input)
