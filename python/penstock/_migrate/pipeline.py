"""One pipeline function, as a generator of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import libcst as cst
import libcst.matchers as m

from penstock._migrate.names import FN, MODULES, NEEDS_BATCH_SIZE, READERS, operator
from penstock._migrate.remarks import with_remarks

Listed = TypeVar("Listed", cst.Arg, cst.ImportAlias, cst.Param)

Qualified = dict[cst.CSTNode, str]
"""For expressions of the original program, what they name."""

SETTINGS = ("batch_size", "num_threads", "seed")
"""Arguments of pipelines that become arguments of the generator."""
DROPPED = {
    *("device_id", "exec_async", "exec_pipelined", "exec_dynamic", "prefetch_queue_depth"),
    *("enable_memory_stats", "bytes_per_sample", "set_affinity", "py_num_workers"),
    *("py_start_method", "output_dtype", "output_ndim", "enable_checkpointing", "checkpoint"),
}


def is_trivial(value: cst.BaseExpression) -> bool:
    """Whether `device_id=` is the first device, or none."""
    return m.matches(value, m.Name("None") | m.Integer("0"))


class Body(cst.CSTTransformer):
    """The calls of a pipeline function. Collects what has to be done before the loop."""

    def __init__(self, qualified: Qualified, taken: set[str]) -> None:
        super().__init__()
        self._qualified = qualified
        self._taken = taken
        self.readers: list[tuple[str, cst.Call]] = []
        """Readers, with the names they get."""
        self._nodes: set[str] = set()
        """Variables that hold data of each sample."""
        self._remarks: list[str] = []

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self._qualified.get(original_node.func, "")
        if not name.startswith(FN):
            return updated_node
        last = name.rpartition(".")[2]
        updated_node = updated_node.with_changes(args=[_gpu(arg) for arg in updated_node.args])
        if name.startswith((f"{FN}readers.", f"{FN}experimental.readers.")):
            if last not in READERS:
                self._remarks.append(f"penstock has no reader `{last}`")
                return updated_node
            return self._reader(READERS[last], updated_node)
        if last == "external_source":
            self._remarks.append("make an `ndd.ExternalSource` before the loop, and call it here")
            return updated_node
        if last == "python_function" or ".numba" in name:
            self._remarks.append(f"use `ndd.map` instead of `fn.{last}`")
            return updated_node
        own = operator(name)
        if own is None:
            self._remarks.append(f"penstock has no operator `{name.removeprefix(FN)}`")
            return updated_node
        updated_node = updated_node.with_changes(func=_dotted(f"ndd.{own}"))
        has_input = any(arg.keyword is None for arg in updated_node.args)
        if own.startswith(NEEDS_BATCH_SIZE) and not has_input:
            updated_node = _with_argument(updated_node, "batch_size", cst.Name("batch_size"))
        return updated_node

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        module = MODULES.get(self._qualified.get(original_node, ""))
        return updated_node if module is None else cst.Name(module)

    def _reader(self, kind: str, call: cst.Call) -> cst.Call:
        name = "reader" if not self.readers else f"reader{len(self.readers) + 1}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        made = call.with_changes(func=_dotted(f"ndd.readers.{kind}"))
        self.readers.append((name, made))
        return _with_argument(cst.Call(cst.Name(name)), "batch_size", cst.Name("batch_size"))

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        """In a pipeline, `data[...]` indexes into each sample."""
        if m.matches(original_node.value, m.Name()) and self._is_data(original_node.value):
            return updated_node.with_changes(
                value=cst.Attribute(updated_node.value, cst.Name("slice"))
            )
        return updated_node

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        names = {
            found.value
            for target in original_node.targets
            for found in m.findall(target.target, m.Name())
            if isinstance(found, cst.Name)
        }
        if self._is_dict(original_node.value):
            # A TFRecord reader gives a dict, whose items are data.
            return updated_node
        if self._is_data(original_node.value):
            self._nodes |= names
        else:
            self._nodes -= names
        return updated_node

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        if self._is_data(original_node.test):
            text = "an `if` decides for the whole batch now; use arithmetic or `ndd.map` instead"
            return updated_node.with_changes(
                leading_lines=with_remarks(cst.SimpleStatementLine([]), [text]).leading_lines
            )
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        remarks, self._remarks = self._remarks, []
        return with_remarks(updated_node, remarks)

    def leave_Return(
        self, original_node: cst.Return, updated_node: cst.Return
    ) -> cst.BaseSmallStatement:
        value = updated_node.value
        if value is None:
            return updated_node
        if not isinstance(value, cst.Tuple):
            # `pipe.run()` gives a tuple, also of a single output.
            value = cst.Tuple(
                [cst.Element(value, comma=cst.Comma())],
                lpar=[cst.LeftParen()],
                rpar=[cst.RightParen()],
            )
        return cst.Expr(cst.Yield(value, whitespace_after_yield=cst.SimpleWhitespace(" ")))

    def _is_data(self, node: cst.CSTNode) -> bool:
        """Whether an expression of the original program is data of samples, as far as is known."""
        if isinstance(node, cst.Name):
            return node.value in self._nodes
        if isinstance(node, cst.Subscript):
            return self._is_dict(node.value) or self._is_data(node.value)
        if isinstance(node, cst.Call):
            if self._qualified.get(node.func, "").startswith(FN):
                return True
            return isinstance(node.func, cst.Attribute) and self._is_data(node.func.value)
        if isinstance(node, cst.BinaryOperation | cst.Comparison):
            return any(map(self._is_data, node.children))
        if isinstance(node, cst.ComparisonTarget):
            return self._is_data(node.comparator)
        return isinstance(node, cst.UnaryOperation) and self._is_data(node.expression)

    def _is_dict(self, node: cst.CSTNode) -> bool:
        name = self._qualified.get(node.func, "") if isinstance(node, cst.Call) else ""
        return name == f"{FN}readers.tfrecord"


def generator(
    function: cst.FunctionDef,
    updated: cst.FunctionDef,
    settings: dict[str, cst.BaseExpression | None],
    remarks: Sequence[str],
    qualified: Qualified,
) -> cst.FunctionDef:
    """The function as a generator.

    Args:
        function: The function as it was.
        updated: The function with what other rules have changed.
        settings: Arguments of the pipeline: names, and defaults if the decorator has them.
        remarks: What a person must look at.
        qualified: What the names of the original program mean.
    """
    taken = {name.value for name in m.findall(function, m.Name()) if isinstance(name, cst.Name)}
    body = Body(qualified, taken)
    statements = list(function.body.body)
    setup = 0
    while setup < len(statements) and not _uses_fn(statements[setup], qualified):
        setup += 1
    before: list[Any] = list(updated.body.body[:setup])
    inside: list[cst.BaseStatement] = []
    for statement in statements[setup:]:
        changed = statement.visit(body)
        assert isinstance(changed, cst.BaseStatement)
        inside.append(changed)
    assigned = {
        name.value
        for statement in statements[setup:]
        for assign in m.findall(statement, m.AssignTarget())
        for name in m.findall(assign, m.Name())
        if isinstance(name, cst.Name)
    }
    for setting, call in (("num_threads", "set_num_threads"), ("seed", "random.set_seed")):
        if setting in settings:
            text = f"ndd.{call}({setting})"
            if settings[setting] is None:  # only some callers give it
                text = f"if {setting} is not None:\n    {text}\n"
            before.append(cst.parse_statement(text))
    for name, made in body.readers:
        line = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], made)])
        used = {found.value for found in m.findall(made, m.Name()) if isinstance(found, cst.Name)}
        if used & assigned:
            late = ", ".join(sorted(used & assigned))
            line = with_remarks(line, [f"{late}: computed in the loop, needed before it"])
        before.append(line)
    if not inside:
        inside = [cst.parse_statement("pass")]
    loop = cst.While(cst.Name("True"), cst.IndentedBlock(inside))
    arguments = updated.params
    extra = [_parameter(name, value) for name, value in settings.items()]
    star = arguments.star_arg
    if not isinstance(star, cst.Param | cst.ParamStar):
        star = cst.ParamStar()
    arguments = arguments.with_changes(
        star_arg=star, kwonly_params=[*map(without_comma, arguments.kwonly_params), *extra]
    )
    made_of = {"decorators": [], "params": arguments, "body": cst.IndentedBlock([*before, loop])}
    return with_remarks(updated.with_changes(**made_of), remarks)


def _parameter(name: str, default: cst.BaseExpression | None) -> cst.Param:
    if default is None and name != "batch_size":
        default = cst.Name("None")
    if default is None:
        return cst.Param(cst.Name(name))
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Param(cst.Name(name), default=default, equal=equal)


def _uses_fn(statement: cst.CSTNode, qualified: Qualified) -> bool:
    calls = [found for found in m.findall(statement, m.Call()) if isinstance(found, cst.Call)]
    returns = m.findall(statement, m.Return())
    return bool(returns) or any(qualified.get(call.func, "").startswith(FN) for call in calls)


def without_comma(node: Listed) -> Listed:
    """A parameter, an argument or a name in an import; libcst adds commas where they are needed."""
    return node.with_changes(comma=cst.MaybeSentinel.DEFAULT)


def _gpu(argument: cst.Arg) -> cst.Arg:
    """`device="mixed"` is called "gpu" in dynamic mode."""
    mixed = m.Arg(
        keyword=m.Name("device"), value=m.SimpleString("'mixed'") | m.SimpleString('"mixed"')
    )
    if m.matches(argument, mixed):
        return argument.with_changes(value=cst.SimpleString('"gpu"'))
    return argument


def _with_argument(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    if any(arg.keyword is not None and arg.keyword.value == name for arg in call.args):
        return call
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    args = list(call.args)
    if args and isinstance(args[-1].comma, cst.MaybeSentinel):
        args[-1] = args[-1].with_changes(
            comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        )
    return call.with_changes(args=[*args, cst.Arg(value, cst.Name(name), equal=equal)])


def _dotted(name: str) -> cst.BaseExpression:
    return cst.parse_expression(name)
