"""Operators that reduce data along axes."""

from penstock._errors.messages import offer_near_misses as _offer_near_misses
from penstock.ops.reductions import max as max
from penstock.ops.reductions import mean as mean
from penstock.ops.reductions import mean_square as mean_square
from penstock.ops.reductions import min as min
from penstock.ops.reductions import rms as rms
from penstock.ops.reductions import std_dev as std_dev
from penstock.ops.reductions import sum as sum
from penstock.ops.reductions import variance as variance

__all__ = ["max", "mean", "mean_square", "min", "rms", "std_dev", "sum", "variance"]

_offer_near_misses(__name__)
