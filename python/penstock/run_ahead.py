"""What loops run ahead of the program.

A plain loop over a reader computes the next items while the program uses the current one. `stats`
tells how much of that was of use; `set_run_ahead` says how far it goes.
"""

from penstock._public import attach as _attach
from penstock._state.run_ahead import Stats as Stats
from penstock._state.run_ahead import stats as stats

__all__ = ["Stats", "stats"]

_attach(__name__)
