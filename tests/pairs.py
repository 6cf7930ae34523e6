"""Combinations of arguments that cover each pair of values, in place of all combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import pytest


def each_pair(**values: Sequence[Any] | Mapping[str, Any]) -> pytest.MarkDecorator:
    """Parametrize a test with the rows of `pairs`; the keys of a mapping are its values' names."""
    mappings = {
        name: dict(some) if isinstance(some, Mapping) else {str(x): x for x in some}
        for name, some in values.items()
    }
    rows = pairs([len(some) for some in mappings.values()])
    columns = [list(some.items()) for some in mappings.values()]
    params = []
    for row in rows:
        names, chosen = zip(
            *(column[i] for column, i in zip(columns, row, strict=True)), strict=True
        )
        params.append(pytest.param(*chosen, id="-".join(names)))
    return pytest.mark.parametrize(tuple(mappings), params)


def pairs(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Rows of indices below `sizes`, in which each two columns have all pairs of indices.

    Rows are chosen one by one, each for the pairs it adds, so they are the same in each run.
    """
    missing = {
        (a, i, b, j)
        for (a, first), (b, second) in combinations(enumerate(sizes), 2)
        for i, j in product(range(first), range(second))
    }
    rows = []
    # The most pairs are those of the largest columns: these choose first.
    order = sorted(range(len(sizes)), key=lambda column: -sizes[column])
    while missing:
        a, i, b, j = min(missing, key=lambda pair: (order.index(pair[0]), *pair))
        row = {a: i, b: j}
        for column in order:
            if column not in row:
                gains = [_gain(row, column, index, missing) for index in range(sizes[column])]
                row[column] = gains.index(max(gains))
        rows.append(tuple(row[column] for column in range(len(sizes))))
        missing -= {(a, rows[-1][a], b, rows[-1][b]) for a, b in combinations(range(len(sizes)), 2)}
    return sorted(rows)


def _gain(row: dict[int, int], column: int, index: int, missing: set[tuple[int, ...]]) -> int:
    """How many missing pairs a row gets with an index in a column."""
    return sum(
        ((other, i, column, index) if other < column else (column, index, other, i)) in missing
        for other, i in row.items()
    )
