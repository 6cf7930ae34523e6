"""Folders for the files of cases, and the end of DALI's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.oracle import oracle


@pytest.fixture(scope="session")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes folders for files that cases read.

    Unlike pytest's own they have the same paths in each run, so that answers about them are
    found in the cache.
    """
    if oracle.cache is None:
        return tmp_path_factory.mktemp
    return oracle.cache.make_folder


@pytest.fixture(scope="session", autouse=True)
def _end_of_oracle() -> Iterator[None]:
    yield
    oracle.close()
