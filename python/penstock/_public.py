"""Public names, which load on first use.

Which module has them is generated from the operators' definitions and from `__all__` of the private
modules (`_public_names.py`, by `make generate`), so that no list is kept by hand and
`import penstock` loads next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from penstock._errors.tracebacks import public
from penstock._public_names import NAMES


def attach(module: str) -> None:
    """Give a module of the API its names: its own, and those that the table has for it.

    Its own are those in its `__all__`, or all that it has so far. Its `__all__` and `dir()` become
    these names and nothing else.
    """
    scope = vars(sys.modules[module])
    own = scope.get("__all__") or [name for name in scope if not name.startswith("_")]

    def names() -> list[str]:
        return sorted({*own, *NAMES.get(module, ())})

    @public
    def load(name: str) -> Any:
        source = NAMES.get(module, {}).get(name)
        if source is None:
            from penstock._errors.messages import unknown_name

            raise unknown_name(module, name, names())
        found: Any = importlib.import_module(source)
        if source != f"{module}.{name}":
            found = getattr(found, name)
            if module.startswith("penstock.experimental"):
                from penstock._operators.deprecated import under_former_name

                found = under_former_name(found, module.removeprefix("penstock."))
        scope[name] = found
        return found

    exported = [*own, *(name for name in NAMES.get(module, ()) if name not in own)]
    # Set here, not defined by the module: type checkers would take any name to exist.
    scope.update(__all__=exported, __dir__=names, __getattr__=load)
