"""Rewrites programs of DALI's pipeline mode.

A pipeline function becomes a generator of batches: its readers are made once, and the rest runs
for each batch in a loop. `pipe.run()` becomes `next(pipe)`. Readers are called, which, as in a
pipeline, goes on beyond the end of an epoch.

What can't be rewritten safely stays as it is, with a comment that begins with TODO(penstock).
"""

from __future__ import annotations

import libcst as cst
from libcst.metadata import MetadataWrapper

from penstock._migrate.program import Program
from penstock._migrate.remarks import REMARK


def migrate(text: str) -> tuple[str, int]:
    """The rewritten program, and the number of places that a person must look at."""
    wrapper = MetadataWrapper(cst.parse_module(text))
    changed = wrapper.visit(Program()).code
    return changed, changed.count(REMARK) - text.count(REMARK)
