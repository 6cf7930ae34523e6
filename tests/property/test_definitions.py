"""Any call of an operator gives a result, or an error that explains the problem."""

import resource
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tests.conformance.case import Raised
from tests.conformance.oracle import ours
from tests.property.drawn_calls import OPERATORS, calls

from penstock._operators.arguments import REQUIRED

MEANT = {
    "TypeError",
    "ValueError",
    "RuntimeError",
    "IndexError",
    "OverflowError",
    "MemoryError",
}
SECONDS = 5
"""An answer that takes longer counts as none."""
ROOM = 4 << 30
"""Memory that calls may ask for beside what the process has."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

each_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


@pytest.fixture(scope="module", autouse=True)
def little_memory():
    """Limits memory, so that absurd requests fail instead of exhausting the machine."""
    if sys.platform != "linux":
        yield
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@each_operator
@settings(max_examples=max(12, settings.default.max_examples // 4))
@given(data=st.data())
def test_a_call_gives_a_result_or_an_error_for_its_caller(operator, data):
    call = data.draw(calls(operator))
    start = time.monotonic()
    outcome = ours.run(call.source, **call.arrays)
    assert time.monotonic() - start < SECONDS
    if not isinstance(outcome, Raised):
        return
    note(str(outcome))
    assert "InternalError" not in outcome.bases
    assert MEANT & set(outcome.bases)
    assert any(operator.name in message for message in outcome.messages)


@each_operator
def test_an_argument_of_no_use_is_named(operator):
    layouts = operator.options.layouts
    shape = (2,) * len(layouts[0] if layouts else "HW")
    inputs = ["np.ones(shape, np.float32)"] * (len(operator.inputs) - operator.optional)
    given = {a.name: "1" for a in operator.arguments if a.default is REQUIRED}
    for argument in operator.arguments:
        for value in ("object()", "{}", "len"):
            said = [f"{name}={item}" for name, item in {**given, argument.name: value}.items()]
            source = f"ndd.{operator.name}({', '.join([*inputs, *said])})"
            outcome = ours.run(source, shape=shape)
            assert isinstance(outcome, Raised), source
            assert "TypeError" in outcome.bases, source
            text = outcome.messages[0]
            assert operator.name in text, source
            assert f"`{argument.name}`" in text, source
