"""Random numbers.

Values are drawn from an `RNG`: the one that a call is given as `rng`, or the calling thread's
default one, which `set_seed` seeds. There is no batch size to inherit: give `batch_size` for a
value per sample; without it, a call makes one tensor, which is the same for all samples beside
it.
"""

from penstock._errors.messages import offer_near_misses as _offer_near_misses
from penstock._operators.shared_draw import SharedDrawWarning as SharedDrawWarning
from penstock._state.rng import RNG as RNG
from penstock._state.rng import get_default_rng as get_default_rng
from penstock._state.rng import set_seed as set_seed
from penstock.ops.random import beta as beta
from penstock.ops.random import choice as choice
from penstock.ops.random import coin_flip as coin_flip
from penstock.ops.random import normal as normal
from penstock.ops.random import uniform as uniform

__all__ = [
    "RNG",
    "SharedDrawWarning",
    "beta",
    "choice",
    "coin_flip",
    "get_default_rng",
    "normal",
    "set_seed",
    "uniform",
]

_offer_near_misses(__name__)
