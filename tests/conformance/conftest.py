"""Stops DALI's process at the end of the run."""

from collections.abc import Iterator

import pytest

from tests.conformance.oracle import oracle


@pytest.fixture(scope="session", autouse=True)
def _end_of_oracle() -> Iterator[None]:
    yield
    oracle.close()
