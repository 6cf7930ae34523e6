"""Looks for mistakes in a syntax tree."""

from __future__ import annotations

import ast

from penstock._lint.names import PIPELINE, resolve
from penstock._lint.rules import RULES

_PIPELINE_NAMES = {"fn", "ops", "pipeline", "pipeline_def", "Pipeline"}
_RANDOM = {"uniform", "normal", "coin_flip", "choice", "beta"}
_NOT_OPERATORS = {
    "batch_size",
    *("set_num_threads", "get_num_threads", "prefetch", "profile", "EvalMode", "EvalContext"),
}
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Mistakes(ast.NodeVisitor):
    """Collects (node, code, message). Which names are batches is followed through assignments."""

    def __init__(self, names: dict[str, str]) -> None:
        self.found: list[tuple[ast.expr | ast.stmt, str, str]] = []
        self._names = names
        self._batches: set[str] = set()
        self._random: set[str] = set()
        """Batches that a random operator made."""
        self._readers: set[str] = set()
        self._loops: list[ast.AST] = []
        """The loops around a statement in the current function, innermost last."""

    def _report(self, node: ast.expr | ast.stmt, code: str, message: str = "") -> None:
        self.found.append((node, code, message or RULES[code]))

    # Scopes

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer = self._batches, self._random, self._readers, self._loops
        self._batches, self._random, self._readers = (set(names) for names in outer[:3])
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            # A parameter hides the variable of the same name.
            for names in (self._batches, self._random, self._readers):
                names.discard(argument.arg)
        self._loops = []
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self._is_of_pipelines(resolve(target, self._names)):
                self._report(decorator, "PS010")
        self.generic_visit(node)
        self._batches, self._random, self._readers, self._loops = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._batches |= _targets(self._batch_target(node.target, node.iter))
        self._loops.append(node)
        for child in node.body:
            self.visit(child)
        self._loops.pop()
        for child in node.orelse:
            self.visit(child)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._loops.append(node)
        for child in node.body:
            self.visit(child)
        self._loops.pop()
        for child in node.orelse:
            self.visit(child)

    # Statements

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        names = set().union(*map(_targets, node.targets))
        is_batch, is_random = self._is_batch(node.value), self._is_random(node.value)
        is_reader = (self._called(node.value) or "").startswith("readers.")
        for known, holds in (
            (self._batches, is_batch),
            (self._random, is_random),
            (self._readers, is_reader),
        ):
            known -= names
            known |= names if holds else set()

    def visit_Break(self, node: ast.Break) -> None:
        loop = self._loops[-1] if self._loops else None
        if isinstance(loop, ast.For) and self._is_epoch(loop.iter):
            options = _keywords(loop.iter)
            # `restart` and `epoch` begin a new epoch, whatever became of the one before.
            if not {"restart", "epoch"} & options.keys():
                self._report(node, "PS008")

    # Expressions

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = self._called(node)
        if name is not None:
            self._check_operator(node, name)
        if isinstance(node.func, ast.Attribute):
            self._check_method(node, node.func)

    def _check_operator(self, node: ast.Call, name: str) -> None:
        keywords = _keywords(node)
        device = keywords.get("device")
        if isinstance(device, ast.Constant) and device.value == "mixed":
            self._report(device, "PS001")
        module, _, last = name.rpartition(".")
        if module == "readers":
            if last.islower():
                self._report(node, "PS007", _pascal(last))
            if self._loops:
                self._report(node, "PS006")
            if "batch_size" in keywords:
                self._report(keywords["batch_size"], "PS011")
        single = not node.args and "batch_size" not in keywords
        if module == "random" and last in _RANDOM and single and self._batches:
            self._report(node, "PS009")
        if self._is_of_pipelines(name):
            self._report(node, "PS010")

    def _check_method(self, node: ast.Call, method: ast.Attribute) -> None:
        owner = method.value
        if method.attr == "evaluate" and self._loops and self._is_batch(owner):
            self._report(node, "PS004")
        elif method.attr == "torch" and isinstance(owner, ast.Call):
            before = owner.func
            is_copy = isinstance(before, ast.Attribute) and before.attr == "cpu"
            if is_copy and self._is_batch(owner):
                self._report(node, "PS005")
        elif method.attr == "select" and self._is_random(owner):
            given = node.args[0] if node.args else None
            if isinstance(given, ast.Constant) and isinstance(given.value, int):
                self._report(node, "PS003")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.generic_visit(node)
        if self._is_batch(node.value):
            self._report(node, "PS002")

    # What is known of expressions

    def _is_of_pipelines(self, name: str | None) -> bool:
        return name is not None and (name == PIPELINE or name.partition(".")[0] in _PIPELINE_NAMES)

    def _called(self, node: ast.AST) -> str | None:
        return resolve(node.func, self._names) if isinstance(node, ast.Call) else None

    def _is_epoch(self, node: ast.AST) -> bool:
        """`reader.next_epoch(...)`, also inside `enumerate` and the like."""
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr == "next_epoch":
            return True
        wraps = isinstance(node.func, ast.Name) and node.func.id in ("enumerate", "tqdm", "zip")
        return wraps and any(map(self._is_epoch, node.args))

    def _batch_target(self, target: ast.expr, iterated: ast.expr) -> ast.AST:
        """The part of a loop's target that are batches of an epoch."""
        if not self._is_epoch(iterated) or not isinstance(iterated, ast.Call):
            return ast.Tuple([])
        if isinstance(iterated.func, ast.Attribute):
            has_batches = "batch_size" in _keywords(iterated) or iterated.args
            return target if has_batches else ast.Tuple([])
        counts = isinstance(iterated.func, ast.Name) and iterated.func.id == "enumerate"
        if counts and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            return self._batch_target(target.elts[1], iterated.args[0])
        return ast.Tuple([])

    def _is_random(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._random
        name = self._called(node) or ""
        return name.startswith("random.") and "batch_size" in _keywords(node)

    def _is_batch(self, node: ast.AST) -> bool:
        """Whether an expression is surely a batch."""
        if isinstance(node, ast.Name):
            return node.id in self._batches
        if isinstance(node, ast.BinOp):
            return self._is_batch(node.left) or self._is_batch(node.right)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("cpu", "gpu", "evaluate"):
            return self._is_batch(node.func.value)
        name = self._called(node)
        if name is None or name == PIPELINE or name.startswith(("readers.", "types.")):
            return False
        if name in ("batch", "as_batch", "Batch"):
            return True
        if (
            name in ("tensor", "as_tensor", "Tensor")
            or name in _NOT_OPERATORS
            or not name.islower()
        ):
            return False
        return "batch_size" in _keywords(node) or any(map(self._is_batch, node.args))


def _keywords(node: ast.AST) -> dict[str, ast.expr]:
    assert isinstance(node, ast.Call)
    return {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}


def _targets(node: ast.AST) -> set[str]:
    """The names that an assignment sets."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Starred):
        return set()  # a list of values
    if isinstance(node, ast.Tuple | ast.List):
        return set().union(*map(_targets, node.elts))
    return set()


def _pascal(name: str) -> str:
    from penstock import readers

    for known in readers.__all__:
        if known.lower() == name.replace("_", ""):
            return f"classes of readers are written in PascalCase: readers.{known}"
    return RULES["PS007"]
