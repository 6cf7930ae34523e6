"""Files that once did harm, each read under limits of memory and time: an error, or a result."""

import sys

import pytest
from tests.images import corpus as small_images
from tools.torture import check
from tools.torture.corpus import MAKERS
from tools.torture.seeds import seeds

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does"),
    pytest.mark.timeout(300),
    pytest.mark.heavy,
]


@pytest.fixture(scope="module")
def problems():
    """What is wrong with the files, by name: one process reads them all, if none ends it."""
    return check.check(MAKERS, seconds=20)


@pytest.mark.parametrize("name", MAKERS)
def test_a_harmful_file_is_refused_or_read(problems, name):
    problem = problems.get(name)
    assert problem is None, problem


def test_valid_files_are_read_in_the_same_ways(tmp_path):
    """Or else a mistake in how files are read would pass for an error of theirs."""
    from tools.torture.consume import read

    unreadable = {"12-bit", "manifest"}  # not supported; names sounds that are not there
    # Tables have a row with a null, which is a bad sample.
    unreadable |= {name for name in seeds() if name.startswith(("arrow", "parquet"))}
    assert unreadable | set(small_images()) <= set(seeds())
    refused = []
    for name, seed in seeds().items():
        path = tmp_path / "data.mdb"
        path.write_bytes(seed.data)
        outcome = read(seed.way, path)
        assert not outcome.harm, name
        if outcome.refused:
            refused.append(name)
    assert set(refused) == unreadable


def test_a_process_that_hangs_or_dies_is_told(monkeypatch):
    import subprocess

    from tools.torture.child import Child

    with Child("check", "no such name") as child:
        assert list(child.lines(30)) == []
        assert child.harm(30) == "ended with 1"
        assert "KeyError" in child.errors()
    monkeypatch.setattr(sys, "executable", "/bin/sleep")
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **o: real(["sleep", "60"], **o))
    with Child("check") as child:
        assert list(child.lines(0.2)) == []
        assert child.harm(0.2) == "said nothing for 0 s"
