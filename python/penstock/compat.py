"""Run programs that import DALI's dynamic mode with penstock, unchanged, as if they began with
`import penstock as ndd`.

    python -m penstock.compat train.py --epochs 3

or, before the first import of DALI in a program:

    import penstock.compat
    penstock.compat.install()

    import nvidia.dali.experimental.dynamic as ndd   # penstock
    import nvidia.dali.types as types                # penstock.types
    import nvidia.dali.tfrecord as tfrecord          # penstock.tfrecord
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from penstock._public import attach as _attach

__all__ = ["install"]

_ALIASES = {
    "nvidia.dali.experimental.dynamic": "penstock",
    "nvidia.dali.types": "penstock.types",
    "nvidia.dali.tfrecord": "penstock.tfrecord",
}
_PACKAGES = ("nvidia", "nvidia.dali", "nvidia.dali.experimental")


def install() -> None:
    """Let imports of DALI's dynamic mode find penstock, from now on in this process.

    A DALI that is installed is not used. It must not have been imported before.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for name in ("nvidia.dali", *_ALIASES):
        if name in sys.modules:
            raise RuntimeError(
                f"compat.install: `{name}` has been imported already; call "
                "`penstock.compat.install()` before the first import of DALI."
            )
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the names of DALI that penstock has, and says of others why they are missing."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != "nvidia" and not (fullname + ".").startswith("nvidia.dali."):
            return None
        if fullname == "nvidia" and PathFinder.find_spec(fullname) is not None:
            # Other packages of NVIDIA share this name.
            return None
        if fullname in _PACKAGES:
            return ModuleSpec(fullname, _Package(), is_package=True)
        for prefix, own in _ALIASES.items():
            if (fullname + ".").startswith(prefix + "."):
                return ModuleSpec(fullname, _Alias(own + fullname[len(prefix) :]))
        raise ModuleNotFoundError(
            f"No module named '{fullname}': {_missing(fullname)}", name=fullname
        )


class _Alias(Loader):
    """Gives a module of penstock another name."""

    def __init__(self, own: str) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        found = importlib.import_module(self._own)
        self._spec = found.__spec__
        return found

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just replaced it.
        module.__spec__ = self._spec


class _Package(Loader):
    """A package with nothing in it but the modules that are found by their names."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        def load(name: str) -> Any:
            full = f"{module.__name__}.{name}"
            if full in (*_ALIASES, *_PACKAGES):
                return importlib.import_module(full)
            raise AttributeError(
                f"module '{module.__name__}' has no attribute '{name}': {_missing(full)}"
            )

        module.__getattr__ = load  # type: ignore[method-assign]


def _missing(name: str) -> str:
    if name.startswith("nvidia.dali.plugin"):
        return (
            "penstock.compat has no plugins; batches convert with `.torch()` and `.jax()`, and "
            "`penstock.torch.Loader` is a DataLoader."
        )
    return (
        "penstock.compat stands in for DALI's dynamic mode only; `penstock migrate` rewrites "
        "programs of its pipeline mode."
    )


def _main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m penstock.compat SCRIPT [ARGUMENTS...]\n")
        print("Run a program that imports DALI's dynamic mode with penstock.")
        return 0 if arguments else 2
    script = arguments[0]
    if not os.path.isfile(script):
        print(f"penstock.compat: no such file: {script}", file=sys.stderr)
        return 2
    install()
    sys.argv = list(arguments)
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    return 0


_attach(__name__)

if __name__ == "__main__":
    # This module runs as `__main__`: the finder must be the one that others see.
    from penstock.compat import _main as _run

    sys.exit(_run(sys.argv[1:]))
