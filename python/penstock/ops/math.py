"""Math.

Element-wise functions. Operands are tensors, batches, numbers or arrays, which are broadcast and
promoted to one type like those of Python's operators. Functions with a floating-point result give
float32 for integers, and keep the type of floats.
"""

from __future__ import annotations

from typing import Any

from penstock._operators.definition import Data
from penstock._operators.elementwise import function
from penstock._values.arithmetic import Selection
from penstock._values.promotion import FLOATS, NUMBERS, SELECTIONS


@function(NUMBERS)
def abs(input: Data) -> Any:
    """The absolute value, in the type of the input.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.abs(ndd.tensor([-3, 3])).torch().tolist()
        [3, 3]
    """


@function(FLOATS)
def acos(input: Data) -> Any:
    """The arc cosine, in radians.

    Args:
        input: Numbers from -1 to 1; others give NaN.

    Example:
        >>> ndd.math.acos(ndd.tensor([1, 2])).torch().tolist()
        [0.0, nan]
    """


@function(FLOATS)
def acosh(input: Data) -> Any:
    """The inverse hyperbolic cosine.

    Args:
        input: Numbers of at least 1; others give NaN.

    Example:
        >>> ndd.math.acosh(ndd.tensor([1, 0])).torch().tolist()
        [0.0, nan]
    """


@function(FLOATS)
def asin(input: Data) -> Any:
    """The arc sine, in radians.

    Args:
        input: Numbers from -1 to 1; others give NaN.

    Example:
        >>> ndd.math.asin(ndd.tensor([0, 2])).torch().tolist()
        [0.0, nan]
    """


@function(FLOATS)
def asinh(input: Data) -> Any:
    """The inverse hyperbolic sine.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.asinh(ndd.tensor([0])).torch().tolist()
        [0.0]
    """


@function(FLOATS)
def atan(input: Data) -> Any:
    """The arc tangent, in radians.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.atan(ndd.tensor([0])).torch().tolist()
        [0.0]
    """


@function(FLOATS)
def atan2(x: Data, y: Data) -> Any:
    """The angle of a point, in radians from -pi to pi.

    Despite its name, the first operand is the ordinate.

    Args:
        x: The ordinate.
        y: The abscissa.

    Example:
        >>> ndd.math.atan2(ndd.tensor([0.0]), ndd.tensor([1.0])).torch().tolist()
        [0.0]
    """


@function(FLOATS)
def atanh(input: Data) -> Any:
    """The inverse hyperbolic tangent.

    Args:
        input: Numbers from -1 to 1; others give NaN.

    Example:
        >>> ndd.math.atanh(ndd.tensor([0, 1])).torch().tolist()
        [0.0, inf]
    """


@function(FLOATS)
def cbrt(input: Data) -> Any:
    """The cube root.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.cbrt(ndd.tensor([-8, 27])).torch().tolist()
        [-2.0, 3.0]
    """


@function(FLOATS)
def ceil(input: Data) -> Any:
    """Round up to the next integer.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.ceil(ndd.tensor([-1.5, 1.5])).torch().tolist()
        [-1.0, 2.0]
    """


@function(NUMBERS)
def clamp(value: Data, lo: Data, hi: Data) -> Any:
    """Clamp numbers to a range.

    The result has the type that all three are promoted to.

    Args:
        value: Numbers.
        lo: The lower limit.
        hi: The upper limit, which takes precedence if it is below `lo`.

    Example:
        >>> ndd.math.clamp(ndd.tensor([-1, 5, 11]), 0, 10).torch().tolist()
        [0, 5, 10]
    """


@function(FLOATS)
def cos(input: Data) -> Any:
    """The cosine.

    Args:
        input: Angles in radians.

    Example:
        >>> ndd.math.cos(ndd.tensor([0])).torch().tolist()
        [1.0]
    """


@function(FLOATS)
def cosh(input: Data) -> Any:
    """The hyperbolic cosine.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.cosh(ndd.tensor([0])).torch().tolist()
        [1.0]
    """


@function(FLOATS)
def exp(input: Data) -> Any:
    """The exponential function.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.exp(ndd.tensor([0])).torch().tolist()
        [1.0]
    """


@function(FLOATS)
def fabs(input: Data) -> Any:
    """The absolute value, as a float.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.fabs(ndd.tensor([-3, 3])).torch().tolist()
        [3.0, 3.0]
    """


@function(FLOATS)
def floor(input: Data) -> Any:
    """Round down to the next integer.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.floor(ndd.tensor([-1.5, 1.5])).torch().tolist()
        [-2.0, 1.0]
    """


@function(FLOATS, kernel="float_power")
def fpow(base: Data, exponent: Data) -> Any:
    """A power, always computed in floating point.

    Args:
        base: The base.
        exponent: The exponent.

    Example:
        >>> ndd.math.fpow(ndd.tensor([2, 4]), -1).torch().tolist()
        [0.5, 0.25]
    """


@function(FLOATS)
def log(input: Data) -> Any:
    """The natural logarithm.

    Args:
        input: Positive numbers; zero gives -inf, negative ones NaN.

    Example:
        >>> ndd.math.log(ndd.tensor([1, 0])).torch().tolist()
        [0.0, -inf]
    """


@function(FLOATS)
def log10(input: Data) -> Any:
    """The logarithm to base 10.

    Args:
        input: Positive numbers; zero gives -inf, negative ones NaN.

    Example:
        >>> ndd.math.log10(ndd.tensor([1000])).torch().tolist()
        [3.0]
    """


@function(FLOATS)
def log2(input: Data) -> Any:
    """The logarithm to base 2.

    Args:
        input: Positive numbers; zero gives -inf, negative ones NaN.

    Example:
        >>> ndd.math.log2(ndd.tensor([8])).torch().tolist()
        [3.0]
    """


@function(NUMBERS)
def max(left: Data, right: Data) -> Any:
    """The element-wise maximum.

    Args:
        left: Numbers.
        right: Numbers.

    Example:
        >>> ndd.math.max(ndd.tensor([1, 5]), 3).torch().tolist()
        [3, 5]
    """


@function(NUMBERS)
def min(left: Data, right: Data) -> Any:
    """The element-wise minimum.

    Args:
        left: Numbers.
        right: Numbers.

    Example:
        >>> ndd.math.min(ndd.tensor([1, 5]), 3).torch().tolist()
        [1, 3]
    """


@function(NUMBERS, kernel="power")
def pow(base: Data, exponent: Data) -> Any:
    """A power, in the type that both operands are promoted to, like `**`.

    Integers wrap around on overflow; with a negative exponent they become 0.

    Args:
        base: The base.
        exponent: The exponent.

    Example:
        >>> ndd.math.pow(ndd.tensor([2, 3]), 3).torch().tolist()
        [8, 27]
    """


@function(FLOATS)
def rsqrt(input: Data) -> Any:
    """The reciprocal square root.

    Args:
        input: Positive numbers; zero gives inf, negative ones NaN.

    Example:
        >>> ndd.math.rsqrt(ndd.tensor([4, 0])).torch().tolist()
        [0.5, inf]
    """


@function(FLOATS)
def sin(input: Data) -> Any:
    """The sine.

    Args:
        input: Angles in radians.

    Example:
        >>> ndd.math.sin(ndd.tensor([0])).torch().tolist()
        [0.0]
    """


@function(FLOATS)
def sinh(input: Data) -> Any:
    """The hyperbolic sine.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.sinh(ndd.tensor([0])).torch().tolist()
        [0.0]
    """


@function(FLOATS)
def sqrt(input: Data) -> Any:
    """The square root.

    Args:
        input: Numbers; negative ones give NaN.

    Example:
        >>> ndd.math.sqrt(ndd.tensor([4, 9])).torch().tolist()
        [2.0, 3.0]
    """


@function(FLOATS)
def tan(input: Data) -> Any:
    """The tangent.

    Args:
        input: Angles in radians.

    Example:
        >>> ndd.math.tan(ndd.tensor([0])).torch().tolist()
        [0.0]
    """


@function(FLOATS)
def tanh(input: Data) -> Any:
    """The hyperbolic tangent.

    Args:
        input: Numbers.

    Example:
        >>> ndd.math.tanh(ndd.tensor([0])).torch().tolist()
        [0.0]
    """


@function(SELECTIONS, namespace="", in_dali=False, operation=Selection)
def where(mask: Data, a: Data, b: Data) -> Any:
    """Elements of `a` where the mask is true, and elements of `b` elsewhere.

    Mask and operands are broadcast against each other, and the type of the result is the one that
    arithmetic on `a` and `b` would have. A mask that is a scalar, such as one of
    `random.coin_flip`, selects a whole sample. The samples of `a` and `b` may then have different
    shapes, if they have equally many dimensions: the result has the shape of the selected one.

    Args:
        mask: Bool, or numbers, of which all but 0 are true.
        a: The values where the mask is true.
        b: The values where it is false.

    Example:
        >>> x = ndd.tensor([1, -2, 3])
        >>> ndd.where(x > 0, x, 0).torch().tolist()
        [1, 0, 3]
        >>> is_long = ndd.batch([True, False])
        >>> rows = ndd.where(is_long, ndd.batch([[1, 2], [3, 4]]), ndd.batch([[5], [6]]))
        >>> [row.torch().tolist() for row in rows]
        [[1, 2], [6]]
    """
