"""What holds for every operator, asked of the registry."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import penstock
import penstock.ops
from penstock._operators.definition import OPERATORS

for module in pkgutil.iter_modules(penstock.ops.__path__):
    importlib.import_module(f"penstock.ops.{module.name}")

CONFORMANCE = Path(__file__).parents[2] / "conformance"

each_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


@each_operator
def test_users_find_it_by_its_name(operator):
    found = penstock
    for part in operator.name.split("."):
        found = getattr(found, part)
    assert found is operator.function


@each_operator
def test_its_docstring_names_every_argument(operator):
    doc = operator.function.__doc__ or ""
    described = set(re.findall(r"^ {8}\*?(\w+):", doc, re.MULTILINE))
    expected = {*operator.inputs, *(argument.name for argument in operator.arguments)}
    if operator.variadic:
        expected.add(operator.variadic)
    assert described == expected


@each_operator
def test_it_has_an_example(operator):
    """Which `test_examples` runs."""
    assert ">>> " in (operator.function.__doc__ or "")


@each_operator
def test_it_is_compared_with_the_original(operator):
    """In some source of the conformance tests, or excused there with a reason."""
    call = f"ndd.{operator.name}("
    for path in CONFORMANCE.glob("test_*.py"):
        text = path.read_text()
        if call in text:
            return
        excused = re.search(r"^EXCUSED\b.*?^}", text, re.MULTILINE | re.DOTALL)
        if excused and f'"{operator.name}"' in excused.group():
            return
    pytest.fail(f"no conformance source has `{call}`")
