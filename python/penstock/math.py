"""Functions of numbers, element by element: `penstock.math.sqrt` and its like."""

from penstock._errors.messages import offer_near_misses as _offer_near_misses
from penstock.ops.math import abs as abs
from penstock.ops.math import acos as acos
from penstock.ops.math import acosh as acosh
from penstock.ops.math import asin as asin
from penstock.ops.math import asinh as asinh
from penstock.ops.math import atan as atan
from penstock.ops.math import atan2 as atan2
from penstock.ops.math import atanh as atanh
from penstock.ops.math import cbrt as cbrt
from penstock.ops.math import ceil as ceil
from penstock.ops.math import clamp as clamp
from penstock.ops.math import cos as cos
from penstock.ops.math import cosh as cosh
from penstock.ops.math import exp as exp
from penstock.ops.math import fabs as fabs
from penstock.ops.math import floor as floor
from penstock.ops.math import fpow as fpow
from penstock.ops.math import log as log
from penstock.ops.math import log2 as log2
from penstock.ops.math import log10 as log10
from penstock.ops.math import max as max
from penstock.ops.math import min as min
from penstock.ops.math import pow as pow
from penstock.ops.math import rsqrt as rsqrt
from penstock.ops.math import sin as sin
from penstock.ops.math import sinh as sinh
from penstock.ops.math import sqrt as sqrt
from penstock.ops.math import tan as tan
from penstock.ops.math import tanh as tanh

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "exp",
    "fabs",
    "floor",
    "fpow",
    "log",
    "log10",
    "log2",
    "max",
    "min",
    "pow",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

_offer_near_misses(__name__)
