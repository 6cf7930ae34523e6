"""Noise on data.

It is drawn from an `RNG`: the one that a call is given as `rng`, or the calling thread's default
one, which `random.set_seed` seeds.
"""

from penstock._errors.messages import offer_near_misses as _offer_near_misses
from penstock.ops.noise import gaussian as gaussian
from penstock.ops.noise import salt_and_pepper as salt_and_pepper
from penstock.ops.noise import shot as shot

__all__ = ["gaussian", "salt_and_pepper", "shot"]

_offer_near_misses(__name__)
