"""Random numbers.

Values are drawn from an `RNG`: the one given as `rng`, or the calling thread's default one, which
`set_seed` seeds. There is no batch size to inherit: give `batch_size` for a value per sample;
without it, a call makes one tensor, which all samples share.
"""

from penstock._operators.shared_draw import SharedDrawWarning as SharedDrawWarning
from penstock._public import attach as _attach
from penstock._state.rng import RNG as RNG
from penstock._state.rng import get_default_rng as get_default_rng
from penstock._state.rng import set_seed as set_seed

_attach(__name__)
