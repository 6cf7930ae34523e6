"""What annotations of a definition demand."""

from typing import Annotated

import numpy as np
import pytest

import penstock as ndd
from penstock._operators.constraints import (
    INTEGERS,
    NUMBERS,
    Between,
    Elements,
    Frames,
    OneOf,
    Rank,
    Shape,
    parse,
)
from penstock._values.array import Array
from penstock.errors import ArgumentError

NAN = float("nan")


def tensor(*shape, layout=None, dtype=np.uint8):
    return ndd.tensor(np.zeros(shape, dtype), layout=layout)


MET = [
    (Between(0, 1), 0),
    (Between(0, 1), 1.0),
    (Between(0, 1), (0.25, 0.5)),
    (Between(0, 1), ()),
    (Between(1, None), 1e300),
    (Between(None, 3), -5),
    (Between(0, 1), ndd.tensor([7.0])),
    (OneOf("a", "b"), "b"),
    (OneOf("a", "b", ignore_case=True), "B"),
    (OneOf(ndd.types.RGB, ndd.types.BGR), 1),
    (NUMBERS, ndd.float16),
    (INTEGERS, tensor(2)),
    (Elements("uint8", ndd.uint8), tensor(2)),
    (Rank(1, None), tensor(2, 2)),
    (Rank(0, 1), tensor(2)),
    (Rank(0, 1), (1, 2, 3)),
    (Shape(..., 4), tensor(2, 3, 4)),
    (Shape(..., 4), tensor(4)),
    (Shape(2, ..., 4), tensor(2, 4)),
    (Shape(2, None), tensor(2, 9)),
    (Shape(..., 4), ndd.batch([np.zeros((1, 3)), np.zeros((2, 4))])),
    (Frames(), tensor(2, 3, layout="FC")),
    (Frames(), tensor(2, 3)),
]

NOT_MET = [
    (Between(0, 1), 1.5, "must be between 0 and 1, got 1.5"),
    (Between(0, 1), NAN, "must be between 0 and 1, got nan"),
    (Between(0, 9), (1, 12), "must be between 0 and 9, got 12"),
    (Between(1, None), 0.5, "must be at least 1, got 0.5"),
    (Between(None, 3), 4, "must be at most 3, got 4"),
    (OneOf("a", "b", "c"), "d", 'must be "a", "b" or "c", got "d"'),
    (OneOf("a"), "A", 'must be "a", got "A"'),
    (OneOf(ndd.types.RGB, ndd.types.BGR), 7, "must be types.RGB or types.BGR, got 7"),
    (NUMBERS, ndd.bool, "must be a type of numbers, got bool"),
    (INTEGERS, tensor(2, dtype=np.float32), "must be of integers, got f32"),
    (Rank(1, None), tensor(), "must have at least 1 dimension, got 0"),
    (Rank(0, 1), tensor(2, 2), "must have at most 1 dimension, got 2"),
    (Rank(2, 3), tensor(2), "must have 2 to 3 dimensions, got 1"),
    (Shape(..., 4), tensor(2, 3), r"must have the shape (..., 4), got (2, 3)"),
    (Shape(..., 4), tensor(), r"must have the shape (..., 4), got ()"),
    (Shape(2, None), tensor(2), r"must have the shape (2, any), got (2,)"),
    (Frames(), tensor(2), "must have at least 2 dimensions, got 1"),
    (Frames(), tensor(2, 3, layout="HW"), 'its layout must begin with "F", got "HW"'),
]


@pytest.mark.parametrize(("constraint", "item"), MET)
def test_what_meets_it_passes(constraint, item):
    constraint.check("blur", "radius", item)


@pytest.mark.parametrize(("constraint", "item", "text"), NOT_MET)
def test_what_does_not_meet_it_is_an_error_with_operator_and_argument(constraint, item, text):
    with pytest.raises(ArgumentError) as raised:
        constraint.check("blur", "radius", item)
    message = str(raised.value)
    assert message.startswith("blur: `radius` ")
    assert text in message


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (Between(0, 1), "between 0 and 1"),
        (OneOf("a", "b"), 'one of "a", "b"'),
        (NUMBERS, "of numbers"),
        (Rank(1, None), "at least 1 dimension"),
        (Shape(..., 4), "of shape (..., 4)"),
        (Frames(), "a sequence, frames first"),
    ],
)
def test_the_reference_shows_it(constraint, text):
    assert constraint.described() == text


def test_an_annotation_may_be_nested_and_optional():
    share = Between(0, 1)
    row = Rank(0, 1)
    found = parse(Annotated[Annotated[float | Array, share], row] | None)
    assert found.kinds == (float, Array)
    assert found.constraints == (share, row)
    assert parse(Annotated[int, "a comment"]).constraints == ()
