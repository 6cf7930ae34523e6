"""Pairwise coverage: nothing that two values do together is left out."""

from itertools import combinations, product
from math import prod

from hypothesis import given
from hypothesis import strategies as st
from tests.pairs import each_pair, pairs


@given(st.lists(st.integers(1, 6), min_size=2, max_size=5))
def test_each_pair_is_there(sizes):
    rows = pairs(sizes)
    for a, b in combinations(range(len(sizes)), 2):
        assert {(row[a], row[b]) for row in rows} == set(product(range(sizes[a]), range(sizes[b])))
    assert len(rows) == len(set(rows)) <= prod(sizes)


def test_there_are_few_rows():
    assert len(pairs([9, 6, 3, 2])) == 54
    assert len(pairs([4, 4, 4, 4])) <= 24  # of 256


def test_names_are_those_of_the_values():
    mark = each_pair(size=[1, 2], name={"a": "x", "b": "y"})
    assert mark.args[0] == ("size", "name")
    assert [(row.id, row.values) for row in mark.args[1]] == [
        ("1-a", (1, "x")), ("1-b", (1, "y")), ("2-a", (2, "x")), ("2-b", (2, "y")),
    ]  # fmt: skip
