"""Running ahead changes nothing that a program can see."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.property import programs

import penstock as ndd

COUNT = 20


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(3)
    for index in range(COUNT):
        size = (70, 60 + index % 3, 3)
        np.save(folder / f"{index:02d}.npy", rng.integers(0, 256, size, np.uint8))
    used = ndd.run_ahead.stats().used
    yield folder
    assert ndd.run_ahead.stats().used > used + 100  # the programs did run ahead


@pytest.mark.filterwarnings("ignore")  # of unfinished epochs and shared draws: not the subject
@settings(
    max_examples=10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(source=programs.programs())
def test_programs_log_the_same(root, source):
    def make(number):
        last_batch = ("partial", "pad")[number]
        return ndd.readers.Numpy(file_root=str(root), last_batch=last_batch)

    # On the same line, which is part of the texts of errors.
    expected, found = (programs.run(source, make, depth) for depth in (0, 2))
    assert found == expected
