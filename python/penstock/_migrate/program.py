"""A whole program: imports, pipelines, and what is done with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
import libcst.matchers as m
from libcst.metadata import QualifiedNameProvider

from penstock._migrate.names import FN, MODULES, OUTPUT_METHODS, PIPELINE_CLASS, PIPELINE_DEF
from penstock._migrate.pipeline import (
    DROPPED,
    SETTINGS,
    Qualified,
    generator,
    is_trivial,
    without_comma,
)
from penstock._migrate.remarks import with_remarks


class Program(cst.CSTTransformer):
    """Rewrites a module."""

    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self) -> None:
        super().__init__()
        self._qualified: Qualified = {}
        self._pipelines: dict[str, dict[str, cst.BaseExpression | None]] = {}
        """Functions that are pipelines, and the settings that they take."""
        self._pipes: set[str] = set()
        """Variables that hold a pipeline."""
        self._outputs: set[str] = set()
        """Variables that hold what `pipe.run()` gave."""
        self._runs: set[str] = set()
        """Variables that hold all of it, as a tuple."""
        self._remarks: list[str] = []
        self._touched = False
        self._needs_numpy = False

    # Before anything is changed

    def visit_Module(self, node: cst.Module) -> None:
        for expression in m.findall(node, m.Name() | m.Attribute()):
            found = self.get_metadata(QualifiedNameProvider, expression, set())
            for name in found:
                if name.name.startswith("nvidia.dali"):
                    self._qualified[expression] = name.name
        for function in m.findall(node, m.FunctionDef()):
            if isinstance(function, cst.FunctionDef):
                for decorator in function.decorators:
                    if self._is_pipeline_def(decorator):
                        self._pipelines[function.name.value] = _settings(decorator)
        for call in m.findall(node, m.Call(func=m.Name())):
            assert isinstance(call, cst.Call)
            assert isinstance(call.func, cst.Name)
            settings = self._pipelines.get(call.func.value)
            for arg in call.args if settings is not None else ():
                if arg.keyword is not None and arg.keyword.value in SETTINGS:
                    assert settings is not None
                    settings.setdefault(arg.keyword.value, None)
        for settings in self._pipelines.values():
            settings.setdefault("batch_size", None)

    def _is_pipeline_def(self, decorator: cst.Decorator) -> bool:
        target = decorator.decorator
        target = target.func if isinstance(target, cst.Call) else target
        return self._qualified.get(target, "") in PIPELINE_DEF

    # Pipelines

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        marked = [found for found in original_node.decorators if self._is_pipeline_def(found)]
        if not marked:
            return updated_node
        self._touched = True
        others = [found for found in original_node.decorators if found not in marked]
        remarks = [*_dropped(marked[0])]
        if others:
            remarks.append("decorators of the pipeline were dropped")
        settings = self._pipelines[original_node.name.value]
        return generator(original_node, updated_node, settings, remarks, self._qualified)

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        bases = [self._qualified.get(base.value, "") for base in original_node.bases]
        if not PIPELINE_CLASS & set(bases):
            return updated_node
        self._touched = True
        return with_remarks(updated_node, ["write this class as a generator of batches"])

    # What is done with them

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        function = original_node.func
        if isinstance(function, cst.Name) and function.value in self._pipelines:
            self._touched = True
            return self._construct(updated_node)
        if self._qualified.get(function, "") in PIPELINE_CLASS:
            self._remarks.append("write this pipeline as a generator of batches")
            self._touched = True
        if not isinstance(function, cst.Attribute):
            self._note_plugins(function)
            return updated_node
        self._note_plugins(function)
        owner, method = function.value, function.attr.value
        if self._is_pipe(owner) and method == "run" and not original_node.args:
            assert isinstance(updated_node.func, cst.Attribute)
            return cst.Call(cst.Name("next"), [cst.Arg(updated_node.func.value)])
        if self._is_pipe(owner) and method not in ("run", "build"):
            self._remarks.append(f"a generator has no `{method}`")
        if self._is_output(owner):
            assert isinstance(updated_node.func, cst.Attribute)
            inner = updated_node.func.value
            if method in OUTPUT_METHODS:
                renamed = updated_node.func.with_changes(attr=cst.Name(OUTPUT_METHODS[method]))
                return updated_node.with_changes(func=renamed)
            if method == "as_tensor":
                return cst.Call(cst.parse_expression("ndd.as_tensor"), [cst.Arg(inner)])
            if method == "as_array":
                self._needs_numpy = True
                tensor = cst.Call(cst.parse_expression("ndd.as_tensor"), [cst.Arg(inner)])
                return cst.Call(cst.parse_expression("np.asarray"), [cst.Arg(tensor)])
        return updated_node

    def _note_plugins(self, function: cst.CSTNode) -> None:
        name = self._qualified.get(function, "")
        if name.startswith("nvidia.dali.plugin"):
            text = "loop over the generator itself; batches convert with `.torch()` and `.jax()`"
            self._remarks.append(text)
            self._touched = True

    def _construct(self, call: cst.Call) -> cst.Call:
        """The arguments of a pipeline that the generator takes."""
        args = []
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value in DROPPED:
                if arg.keyword.value != "device_id" or not is_trivial(arg.value):
                    self._remarks.append(f"`{arg.keyword.value}` was dropped")
                continue
            args.append(arg)
        return call.with_changes(args=[*args[:-1], *(without_comma(arg) for arg in args[-1:])])

    def _is_pipe(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and node.value in self._pipes

    def _is_output(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Name):
            return node.value in self._outputs
        if isinstance(node, cst.Subscript):
            whole = node.value
            return self._is_run(whole) or (
                isinstance(whole, cst.Name) and whole.value in self._runs
            )
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            return node.func.attr.value in ("as_cpu", "cpu") and self._is_output(node.func.value)
        return False

    def _is_run(self, node: cst.CSTNode) -> bool:
        return (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value in ("run", "share_outputs", "outputs")
            and self._is_pipe(node.func.value)
        )

    def visit_Assign(self, node: cst.Assign) -> None:
        target = node.targets[0].target
        value = node.value
        names = {
            found.value for found in m.findall(target, m.Name()) if isinstance(found, cst.Name)
        }
        for known in (self._pipes, self._outputs, self._runs):
            known -= names
        called = value.func if isinstance(value, cst.Call) else None
        if isinstance(called, cst.Name) and called.value in self._pipelines:
            self._pipes |= names
        if self._is_run(value):
            if isinstance(target, cst.Name):
                self._runs |= names
            else:
                self._outputs |= names
        elif self._is_output(value) and isinstance(target, cst.Name):
            self._outputs |= names

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        remarks, self._remarks = self._remarks, []
        build = m.Expr(
            m.Call(m.Attribute(m.Name(m.MatchIfTrue(self._pipes.__contains__)), m.Name("build")))
        )
        if m.matches(original_node, m.SimpleStatementLine([build])):
            return cst.RemoveFromParent()
        return with_remarks(updated_node, remarks)

    # Imports

    def leave_Import(
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.Import | cst.RemovalSentinel:
        names = _others(updated_node.names, "")
        if len(names) == len(updated_node.names):
            return updated_node
        self._touched = True
        return updated_node.with_changes(names=names) if names else cst.RemoveFromParent()

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.RemovalSentinel:
        module = original_node.module
        if module is None or original_node.relative:
            return updated_node
        name = cst.Module([]).code_for_node(module)
        names: list[cst.ImportAlias] = []
        if isinstance(updated_node.names, cst.ImportStar):
            is_kept = not _of_dali(name)
        else:
            names = _others(updated_node.names, f"{name}.")
            is_kept = len(names) == len(updated_node.names)
        if is_kept:
            return updated_node
        self._touched = True
        return updated_node.with_changes(names=names) if names else cst.RemoveFromParent()

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        module = MODULES.get(self._qualified.get(original_node, ""))
        return updated_node if module is None else cst.Name(module)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        if not self._touched:
            return original_node
        statements = ["import penstock as ndd"]
        if self._needs_numpy and "import numpy as np" not in original_node.code:
            statements.insert(0, "import numpy as np")
        for alias, name in self._module_names(original_node).items():
            own = MODULES[name]
            statements.append(
                f"from penstock import {own}" + ("" if alias == own else f" as {alias}")
            )
        body = list(updated_node.body)
        place = _after_head(body)
        lines = [cst.parse_statement(text) for text in statements]
        left_over = self._left_over(original_node)
        first = lines[0]
        assert isinstance(first, cst.SimpleStatementLine)
        lines[0] = with_remarks(first, left_over)
        return updated_node.with_changes(body=[*body[:place], *lines, *body[place:]])

    def _module_names(self, module: cst.Module) -> dict[str, str]:
        """Names that the program has for modules that penstock has as well."""
        names = {}
        for found in m.findall(module, m.Attribute(value=m.Name() | m.Attribute())):
            assert isinstance(found, cst.Attribute)
            name = self._qualified.get(found.value, "")
            if name in MODULES:
                alias = found.value
                names[alias.value if isinstance(alias, cst.Name) else MODULES[name]] = name
        return dict(sorted(names.items()))

    def _left_over(self, module: cst.Module) -> list[str]:
        """Calls of operators outside of pipeline functions."""
        inside = {
            node
            for function in m.findall(module, m.FunctionDef())
            if isinstance(function, cst.FunctionDef) and function.name.value in self._pipelines
            for node in m.findall(function, m.Call())
        }
        calls = [call for call in m.findall(module, m.Call()) if isinstance(call, cst.Call)]
        outside = {
            self._qualified.get(call.func, "").removeprefix("nvidia.dali.")
            for call in calls
            if call not in inside and self._qualified.get(call.func, "").startswith(FN)
        }
        return [f"`{name}` is called outside of a pipeline function" for name in sorted(outside)]


def _arguments(decorator: cst.Decorator) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The names and values of a decorator's arguments; positional ones have no name."""
    call = decorator.decorator
    for arg in call.args if isinstance(call, cst.Call) else ():
        yield "" if arg.keyword is None else arg.keyword.value, arg.value


def _settings(decorator: cst.Decorator) -> dict[str, cst.BaseExpression | None]:
    """The settings that a decorator gives to its pipeline."""
    # A random seed, None or -1, is the default.
    default = m.Name("None") | m.UnaryOperation(m.Minus())
    return {
        name: value
        for name, value in _arguments(decorator)
        if name in SETTINGS and not m.matches(value, default)
    }


def _dropped(decorator: cst.Decorator) -> Sequence[str]:
    """Arguments of a decorator that a generator has no use for, where that may matter."""
    found = []
    for name, value in _arguments(decorator):
        if name == "enable_conditionals":
            continue  # each `if` on data has its own remark
        if name in SETTINGS or (name == "device_id" and is_trivial(value)):
            continue
        found.append(f"`{name or cst.Module([]).code_for_node(value)}` was dropped")
    return found


def _others(names: Sequence[cst.ImportAlias], prefix: str) -> list[cst.ImportAlias]:
    """The names of an import statement that are not DALI's."""
    kept = [alias for alias in names if not _of_dali(prefix + alias.evaluated_name)]
    return [*kept[:-1], *(without_comma(alias) for alias in kept[-1:])]


def _of_dali(name: str) -> bool:
    return (name + ".").startswith("nvidia.dali.")


def _after_head(body: Sequence[cst.BaseStatement]) -> int:
    """Where imports go: after the docstring and `from __future__`, with the other imports."""
    place = 0
    for number, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0]
        is_text = isinstance(first, cst.Expr) and isinstance(first.value, cst.SimpleString)
        if not (isinstance(first, cst.Import | cst.ImportFrom) or (number == 0 and is_text)):
            break
        place = number + 1
    return place
