"""The element types of operators, which the table of operators shows."""

import numpy as np
import pytest
from tests.calls import CALLS
from tests.element_types import TYPES, taken

import penstock as ndd


def read(made):
    for result in made if isinstance(made, tuple) else (made,):
        result.evaluate()


WITH_DATA = [name for name in CALLS if taken(name) is not None]


@pytest.mark.parametrize("name", WITH_DATA)
def test_every_operator_takes_some_type(name):
    assert taken(name)


@pytest.mark.parametrize("name", WITH_DATA)
def test_types_that_are_refused_are_named(name):
    call = CALLS[name]
    first = call.inputs[0]
    for dtype in TYPES.keys() - set(taken(name)):
        data = ndd.tensor(first.sample(0).astype(TYPES[dtype]), layout=first.layout)
        inputs = [data if kind is first else kind.tensor() for kind in call.inputs]
        with pytest.raises((ValueError, RuntimeError, TypeError)) as raised:
            read(call(*inputs))
        short = str(ndd.dtype(np.dtype(TYPES[dtype])))
        assert short in str(raised.value) or dtype in str(raised.value), str(raised.value)
