"""Automatic augmentation.

Each sample of a batch draws its own operations from an `RNG`: the one given as `rng`, or the
calling thread's default one, which `random.set_seed` seeds.
"""

from penstock._operators.operations import Operation as Operation
from penstock._public import attach as _attach

_attach(__name__)
