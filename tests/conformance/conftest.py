"""Folders for the files of cases, and the end of DALI's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.oracle import oracle


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is deprecated is compared like everything else; both warn of it."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            deprecated = "ignore:.* is (deprecated|the former name):DeprecationWarning"
            item.add_marker(pytest.mark.filterwarnings(deprecated))


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
