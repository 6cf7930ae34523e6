"""Which names of a program stand for penstock and its parts."""

from __future__ import annotations

import ast

_ROOTS = ("penstock", "nvidia.dali.experimental.dynamic")
PIPELINE = "<pipeline mode>"
"""Stands for what a program imports from DALI's pipeline mode."""


def imported(tree: ast.AST) -> dict[str, str]:
    """For each imported name what it is, relative to penstock: "" is penstock itself."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                place = _relative(alias.name)
                if place is not None and (alias.asname or "." not in alias.name):
                    names[alias.asname or alias.name] = place
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                place = _relative(f"{node.module}.{alias.name}")
                if place is not None:
                    names[alias.asname or alias.name] = place
    return names


def _relative(name: str) -> str | None:
    for root in _ROOTS:
        if name == root:
            return ""
        if name.startswith(root + "."):
            return name[len(root) + 1 :]
    in_pipelines = (
        "nvidia.dali.fn",
        "nvidia.dali.ops",
        "nvidia.dali.pipeline",
        "nvidia.dali.plugin",
    )
    if name.startswith((*in_pipelines, "nvidia.dali.Pipeline")):
        return PIPELINE
    return None


def resolve(node: ast.AST, names: dict[str, str]) -> str | None:
    """What an expression like `ndd.readers.File` names, relative to penstock; None if nothing."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, names)
        if owner is None or owner == PIPELINE:
            return owner
        return f"{owner}.{node.attr}" if owner else node.attr
    return None
