"""Reference pages of everything but operators: classes, functions and constants."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple

import docstrings

import penstock
import penstock.capture
import penstock.checkpoint
import penstock.compat
import penstock.errors
import penstock.experimental.readers
import penstock.hf
import penstock.jax
import penstock.pytorch
import penstock.ray
import penstock.readers
import penstock.run_ahead
import penstock.tfrecord
import penstock.torch
from penstock._public_names import NAMES
from penstock._values import dtype as _dtype
from penstock._values.array import Array
from penstock._values.dtype import BY_CODE
from penstock.readers import Reader
from penstock.readers._base.options import Common


class Page(NamedTuple):
    """A page: what it begins with, and the names that it describes."""

    head: str
    names: tuple[str, ...]


PAGES = {
    "values": Page(
        "What operators take and return: tensors, which are one sample, and batches of samples.",
        ("tensor", "as_tensor", "batch", "as_batch", "Tensor", "Batch"),
    ),
    "types": Page(
        "Element types, and the constants that arguments take. Each constant is also a name in "
        "`types`: `types.RGB` is `types.DALIImageType.RGB`.",
        (
            *("DType", "DType.Kind", "dtype", "type_id"),
            *("types.DALIDataType", "types.DALIImageType", "types.DALIInterpType"),
        ),
    ),
    "modes": Page("When operators run.", ("EvalMode",)),
    "contexts": Page("Where operators run: device, threads and stream.", ("EvalContext",)),
    "threads": Page(
        "How many threads operators run on.", ("ThreadPool", "get_num_threads", "set_num_threads")
    ),
    "devices": Page(
        "The host, and accelerators, which are emulated on machines without any.",
        ("Device", "device", "DeviceLike", "EmulatedDeviceWarning"),
    ),
    "streams": Page(
        "Streams order the work of a device. An emulated device gives the same results on all of "
        "them.",
        (
            *("Stream", "stream", "get_current_stream", "set_current_stream"),
            *("get_default_stream", "set_default_stream"),
        ),
    ),
    "external_source": Page("Data from Python functions and iterables.", ("ExternalSource",)),
    "map": Page("Python functions as operators.", ("map", "TensorSpec")),
    "run_ahead": Page(
        inspect.cleandoc(penstock.run_ahead.__doc__ or ""),
        ("set_run_ahead", "get_run_ahead", "run_ahead.stats", "run_ahead.Stats"),
    ),
    "prefetch": Page("Preparing items ahead of a loop.", ("prefetch",)),
    "profile": Page("Measuring what is slow.", ("profile", "OperatorProfile")),
    "compat": Page(inspect.cleandoc(penstock.compat.__doc__ or ""), ("compat.install",)),
    "readers": Page(
        inspect.cleandoc(penstock.readers.__doc__ or ""),
        (
            *(f"readers.{name}" for name in penstock.readers.__all__),
            *(f"experimental.readers.{name}" for name in penstock.experimental.readers.__all__),
        ),
    ),
    "tfrecord": Page(
        inspect.cleandoc(penstock.tfrecord.__doc__ or ""),
        (
            *("tfrecord.FixedLenFeature", "tfrecord.VarLenFeature", "tfrecord.Feature"),
            "tfrecord.FeatureType",
        ),
    ),
    "torch": Page(
        inspect.cleandoc(penstock.torch.__doc__ or ""),
        tuple(f"torch.{name}" for name in penstock.torch.__all__),
    ),
    "hf": Page(
        inspect.cleandoc(penstock.hf.__doc__ or ""),
        tuple(f"hf.{name}" for name in penstock.hf.__all__),
    ),
    "jax": Page(
        inspect.cleandoc(penstock.jax.__doc__ or ""),
        tuple(f"jax.{name}" for name in penstock.jax.__all__),
    ),
    "ray": Page(
        inspect.cleandoc(penstock.ray.__doc__ or ""),
        tuple(f"ray.{name}" for name in penstock.ray.__all__),
    ),
    "pytorch": Page(
        inspect.cleandoc(penstock.pytorch.__doc__ or ""),
        ("pytorch.nodes.Reader", "pytorch.nodes.DictMapper", "pytorch.nodes.ToTorch"),
    ),
    "errors": Page(
        inspect.cleandoc(penstock.errors.__doc__ or ""),
        tuple(f"errors.{name}" for name in penstock.errors.__all__),
    ),
    "checkpoint": Page(
        inspect.cleandoc(penstock.checkpoint.__doc__ or ""),
        ("checkpoint.Checkpoint", "checkpoint.current"),
    ),
    "capture": Page(
        inspect.cleandoc(penstock.capture.__doc__ or ""),
        tuple(f"capture.{name}" for name in penstock.capture.__all__),
    ),
}

BESIDE_OPERATORS = {
    "auto_aug": ("auto_aug.Operation",),
    "decoders": ("io.video_info", "io.VideoInfo"),
    "files": ("imread",),
    "random": (
        *("random.RNG", "random.set_seed", "random.get_default_rng"),
        "random.SharedDrawWarning",
    ),
}
"""Further names on the pages of operators."""

INTERNAL = ("native",)
"""Members that only the package uses."""

LAYOUTS = ("HWC", "CHW", "FHWC", "FCHW", "")

ELEMENT_TYPES = {
    name: found for found in BY_CODE for name in _dtype.__all__ if getattr(_dtype, name) is found
}


def page(title: str) -> str:
    """The text of one of `PAGES`."""
    head, names = PAGES[title]
    parts = [f"# {heading(title)}\n\n{head}\n", *map(section, names)]
    if title == "types":
        parts[1:1] = [_element_types()]
        parts.append(_layouts())
    return "\n".join(parts)


def heading(title: str) -> str:
    """The heading of one of `PAGES`."""
    return title.replace("_", " ").capitalize().replace("Tfrecord", "TFRecord")


def section(name: str) -> str:
    """The description of a public name."""
    found = functools.reduce(getattr, name.split("."), penstock)
    if isinstance(found, FunctionType):
        return _function(found, name, "##")
    return _class(found, name) if isinstance(found, type) else _alias(name)


def _class(kind: Any, name: str) -> str:
    lines = [f"## {name}\n"]
    own = _own(kind) if issubclass(kind, Reader) and kind is not Reader else None
    if not issubclass(kind, Enum | tuple | str | Exception) and kind is not Reader:
        lines.append(docstrings.wrapped(name, _signature(kind, own)))
    lines.append(_described(kind, own=own, members=_attributes(kind)))
    if own is not None:
        lines.append("All else is as in [`readers.Reader`](#readersreader).\n")
        return "\n".join(lines)
    for key, member in _members(kind):
        if isinstance(member, property):
            lines.append(f"### {key}\n\n{_described(member)}")
        elif isinstance(member, staticmethod):
            owner = name.rpartition(".")[2]
            lines.append(_function(member.__func__, f"{owner}.{key}", "###"))
        else:
            lines.append(_function(member, key, "###"))
    return "\n".join(lines)


def _attributes(kind: type) -> str:
    """What a class has beside methods and properties."""
    texts = _documented(inspect.getsource(kind))
    if issubclass(kind, Enum):
        return (
            docstrings.listed(texts.items())
            or ", ".join(f"`{key}`" for key in kind.__members__) + "\n"
        )
    texts |= docstrings.entries(docstrings.parse(kind.__doc__).attributes)
    return "Attributes:\n\n" + docstrings.listed(texts.items()) if texts else ""


def _function(function: Callable[..., Any], name: str, level: str) -> str:
    code = docstrings.wrapped(name, _signature(function))
    return f"{level} {name}\n\n{code}\n{_described(function)}"


def _alias(name: str) -> str:
    """A type or an object that has a name."""
    namespace, _, key = name.rpartition(".")
    module = f"penstock.{namespace}".removesuffix(".")
    source = NAMES.get(module, {}).get(key, module)
    text = _documented(inspect.getsource(importlib.import_module(source))).get(key)
    if not text:
        raise LookupError(f"{name} has no docstring")
    return f"## {name}\n\n{text}\n"


def _element_types() -> str:
    rows = ["| name | short name | kind | bits |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | `{found.name}` | {found.kind.name} | {found.bits} |"
        for name, found in ELEMENT_TYPES.items()
    ]
    return "## Element types\n\n" + "\n".join(rows) + "\n"


def _layouts() -> str:
    named = [
        (f"types.{key}", f'"{text}"')
        for key, text in vars(penstock.types).items()
        if key.isupper() and text in LAYOUTS
    ]
    listed = docstrings.listed(named)
    return f"## Layouts\n\nFor arguments that take a layout of one sample.\n\n{listed}"


def _own(kind: type[Reader]) -> set[str]:
    """The arguments that only this reader has."""
    common = inspect.signature(Reader).parameters.keys() | Common.__annotations__.keys()
    return {name for name in inspect.signature(kind).parameters if name not in common}


class _Bare(str):
    """An annotation as it was written."""

    def __repr__(self) -> str:
        return str(self)


def _signature(thing: Callable[..., Any], own: set[str] | None = None) -> str:
    """A signature without quotes around annotations; with `own`, of these arguments."""
    found = inspect.signature(thing)
    if own is not None:
        shown = [item.replace(annotation=item.empty) for item in found.parameters.values()]
        listed = [str(item) for item in shown if item.name in own]
        return f"({', '.join([*listed, '...'])})"
    parameters = [
        item.replace(annotation=_bare(item.annotation))
        for key, item in found.parameters.items()
        if key != "self"
    ]
    returns = inspect.Signature.empty if isinstance(thing, type) else found.return_annotation
    return str(found.replace(parameters=parameters, return_annotation=_bare(returns)))


def _bare(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties: the class's own, and then those of tensors and batches."""
    for owner in (kind, Array) if issubclass(kind, Array) else (kind,):
        for key, member in vars(owner).items():
            public = not key.startswith("_") or key == "__call__"
            kinds = FunctionType | property | staticmethod
            if public and key not in INTERNAL and isinstance(member, kinds):
                yield key, member


def _documented(source: str) -> dict[str, str]:
    """Names that are followed by a docstring of their own, in a class or a module."""
    body = ast.parse(textwrap.dedent(source)).body
    if isinstance(body[0], ast.ClassDef):
        body = body[0].body
    found = {}
    for named, text_node in itertools.pairwise(body):
        match named, text_node:
            case (
                (ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if not name.startswith("_"):
                found[name] = " ".join(text.split())
    return found


def _described(thing: Any, *, own: set[str] | None = None, members: str = "") -> str:
    doc = docstrings.parse(inspect.getdoc(thing))
    listed = [
        (name, text) for name, text in docstrings.entries(doc.args) if own is None or name in own
    ]
    parts = [doc.text + "\n", docstrings.listed(listed), members, doc.returned, doc.code]
    return "\n".join(filter(None, parts))
