"""What holds for every operator, asked of the registry."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from tests.calls import CALLS, IMAGE, OPERATORS, ROWS

import penstock as ndd
from penstock._operators.arguments import REQUIRED
from penstock._operators.constraints import Between, Elements, Frames, OneOf, Rank, Shape
from penstock._operators.deprecated import Deprecated
from penstock.errors import ArgumentError, InternalError

TESTS = Path(__file__).parents[2]
CONFORMANCE = TESTS / "conformance"
UNIT = TESTS / "unit" / "ops"

each_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


@each_operator
def test_users_find_it_by_its_name(operator):
    found = ndd
    for part in operator.name.split("."):
        found = getattr(found, part, None)
    assert found is operator.function, "run `make generate`"


def test_typical_calls_are_those_of_operators():
    assert ROWS.keys() <= OPERATORS.keys(), "tests/calls.py has a row too many"


@each_operator
def test_it_has_a_typical_call(operator):
    try:
        results = CALLS[operator.name].on_batches(2)
        for result in results:
            result.evaluate()
    except Exception as error:
        pytest.fail(f"add a row for `{operator.name}` to tests/calls.py, or correct it: {error}")


@each_operator
@pytest.mark.parametrize("how", ["on_tensors", "on_batches"])
def test_the_kernel_makes_what_the_definition_promises(operator, how):
    if how == "on_tensors" and operator.name == "batch_permutation":
        pytest.skip("makes batches only")
    with ndd.EvalMode.deferred:
        results = getattr(CALLS[operator.name], how)()
    check_promises(results)


each_with_layouts = pytest.mark.parametrize(
    "operator",
    [made for made in OPERATORS.values() if CALLS[made.name].inputs[:1] == (IMAGE,)],
    ids=lambda made: made.name,
)


@each_with_layouts
def test_promises_hold_for_all_layouts_and_element_types(operator):
    call = CALLS[operator.name]
    taken = 0
    layouts = operator.options.layouts or ("HWC", "HW", "CHW", "FHWC", None)
    for layout, dtype in itertools.product(layouts, ["u1", "?", "i2", "f2", "f8"]):
        shape = [3 if letter == "C" else 4 for letter in layout or "HWC"]
        image = ndd.tensor(np.ones(shape, dtype), layout=layout)
        inputs = [image if kind is IMAGE else kind.tensor() for kind in call.inputs]
        try:
            with ndd.EvalMode.deferred:
                results = call(*inputs)
            check_promises(results if isinstance(results, tuple) else (results,))
            taken += 1
        except InternalError:
            raise
        except (ValueError, RuntimeError, TypeError):
            # The typical arguments don't suit all layouts, nor the operator all types.
            continue
    assert taken


def check_promises(results):
    """What is known of results before they are made must be what they are."""
    promised = [(result.dtype, result.ndim, result.layout) for result in results]
    for result, promise in zip(results, promised, strict=True):
        result.evaluate()
        for sample in result if isinstance(result, ndd.Batch) else [result]:
            array = np.asarray(sample)
            assert (ndd.dtype(array.dtype), array.ndim, sample.layout) == promise


CONSTRAINED = [
    pytest.param(made, argument, constraint, id=f"{made.name}-{argument.name}")
    for made in OPERATORS.values()
    for argument in made.arguments
    for constraint in argument.constraints
    if not isinstance(constraint, Deprecated)
]


def invalid(constraint):
    """An argument that a constraint excludes."""
    match constraint:
        case OneOf(choices=(str(), *_)):
            return "nonsense"
        case OneOf():
            return 99
        case Between():
            return constraint.high + 1 if constraint.low == -math.inf else constraint.low - 1
        case Elements():
            return ndd.DataType
        case Rank():
            return ndd.tensor(np.zeros((1,) * (constraint.most + 1)))
    raise TypeError(f"no value that {constraint} excludes")


@pytest.mark.parametrize(("operator", "argument", "constraint"), CONSTRAINED)
def test_what_a_constraint_excludes_is_refused_at_the_call(operator, argument, constraint):
    call = CALLS[operator.name]
    inputs = [kind.tensor() for kind in call.inputs]
    with ndd.EvalMode.deferred, pytest.raises(ArgumentError) as raised:
        call(*inputs, **{argument.name: invalid(constraint)})
    assert str(raised.value).startswith(f"{operator.name}: `{argument.name}` must ")


@pytest.mark.parametrize(("operator", "argument", "constraint"), CONSTRAINED)
def test_defaults_meet_their_constraints(operator, argument, constraint):
    if argument.default is not REQUIRED and argument.default is not None:
        default = argument.read(operator.name, argument.default)
        constraint.check(operator.name, argument.name, default)


CONSTRAINED_INPUTS = [
    pytest.param(made, name, constraint, id=f"{made.name}-{name}")
    for made in OPERATORS.values()
    for name, constraints in made.input_constraints.items()
    for constraint in constraints
]


def unfit(constraint, layouts):
    """Data that a constraint excludes, in a layout that the operator takes."""
    match constraint:
        case Elements():
            types = (ndd.bool, ndd.float32, ndd.uint8)
            wrong = [x for x in types if not {x, x.kind} & {*constraint.allowed}]
            layout = layouts[0] if layouts and "HWC" not in layouts else "HWC"
            shape = [2] * (len(layout) - 1) + [3]
            return ndd.zeros(shape=shape, dtype=wrong[0], layout=layout)
        case Rank():
            return ndd.zeros(shape=[])
        case Frames():
            return ndd.zeros(shape=[2, 2, 3], layout="HWC")
        case Shape():
            return ndd.zeros(shape=[2, 2, 4], dtype=ndd.uint8, layout="HWC").evaluate()
    raise TypeError(f"no data that {constraint} excludes")


@pytest.mark.parametrize(("operator", "name", "constraint"), CONSTRAINED_INPUTS)
def test_data_that_a_constraint_excludes_is_refused_at_the_call(operator, name, constraint):
    call = CALLS[operator.name]
    inputs = [kind.tensor() for kind in call.inputs]
    position = operator.inputs.index(name)
    inputs[position : position + 1] = [unfit(constraint, operator.options.layouts)]
    arguments = dict.fromkeys(("shape",)) if name == "shape_input" else {}
    with pytest.raises(ArgumentError) as raised:
        call(*inputs, **arguments)
    assert str(raised.value).startswith(f"{operator.name}: `{name}` must ")


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
def test_its_results_are_tested(operator):
    """Against DALI in the conformance tests, or in unit tests where DALI lacks it."""
    call = f"ndd.{operator.name}("
    folder = CONFORMANCE if operator.options.in_dali else UNIT
    for path in folder.glob("test_*.py"):
        text = path.read_text()
        if call in text:
            return
        excused = re.search(r"^EXCUSED\b.*?^}", text, re.MULTILINE | re.DOTALL)
        if excused and f'"{operator.name}"' in excused.group():
            return
    pytest.fail(
        f"no test in {folder.relative_to(TESTS.parent)} has `{call}`; an operator that DALI lacks "
        "says `in_dali=False`"
    )
