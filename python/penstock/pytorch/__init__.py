"""Nodes for `torchdata.nodes`, under `pytorch.nodes`, where torchdata is installed.

A pipeline is made of nodes that take from one another:

    import penstock as ndd
    from torchdata.nodes import Loader

    node = ndd.pytorch.nodes.Reader(ndd.readers.File, batch_size=32, file_root="photographs")
    node = ndd.pytorch.nodes.DictMapper(node, lambda jpegs: ndd.decoders.image(jpegs))
    node = ndd.pytorch.nodes.DictMapper(node, lambda images: ndd.resize(images, size=224))
    for images, labels in Loader(ndd.pytorch.nodes.ToTorch(node)):
        train_step(images, labels)

The state of a `Loader` (`state_dict`) holds the reader's position, so that it can be resumed.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["nodes"]


def __getattr__(name: str) -> Any:
    # Not imported above: it needs torchdata, and torch takes seconds to load.
    if name == "nodes":
        return importlib.import_module("penstock.pytorch.nodes")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
