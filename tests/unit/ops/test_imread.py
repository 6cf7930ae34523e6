"""File names in all forms, and when files are opened."""

import os

import numpy as np
import pytest
import torch
from tests.images import encoded, photograph

import penstock as ndd
from penstock.errors import FileError


@pytest.fixture
def names(tmp_path):
    made = []
    for number in range(2):
        path = tmp_path / f"{number}.png"
        path.write_bytes(encoded(photograph(4 + number, 5, seed=number), "PNG").tobytes())
        made.append(str(path))
    return made


def row(name):
    return np.frombuffer(os.fsencode(name), np.uint8)


FORMS = {
    "strings": str,
    "arrays": row,
    "tensors": lambda name: ndd.tensor(row(name)),
    "shared tensors": lambda name: ndd.as_tensor(row(name)),
    "torch": lambda name: torch.from_numpy(row(name).copy()),
}


@pytest.mark.parametrize("mode", ["deferred", "eager", "sync_cpu"])
@pytest.mark.parametrize("container", [list, tuple])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_lists_and_tuples_of_names(names, form, container, mode):
    with getattr(ndd.EvalMode, mode):
        made = ndd.imread(container(map(form, names)))
    assert made.shape == [(4, 5, 3), (5, 5, 3)]
    for number, sample in enumerate(made):
        expected = photograph(4 + number, 5, seed=number)
        np.testing.assert_array_equal(np.asarray(sample), expected)


@pytest.mark.parametrize("mode", ["deferred", "eager", "sync_cpu"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_one_name(names, form, mode):
    with getattr(ndd.EvalMode, mode):
        assert ndd.imread(form(names[0])).shape == (4, 5, 3)


@pytest.mark.parametrize("several", [False, True])
def test_in_deferred_mode_files_are_opened_when_the_result_is_read(names, several):
    with ndd.EvalMode.deferred:
        made = ndd.imread(names if several else names[0])
        os.unlink(names[0])
    with pytest.raises(FileError, match=r"0\.png"):
        made.evaluate()


def test_in_deferred_mode_files_may_come_later(tmp_path):
    path = tmp_path / "later.png"
    with ndd.EvalMode.deferred:
        made = ndd.imread(path)
        path.write_bytes(encoded(photograph(3, 4), "PNG").tobytes())
        assert made.shape == (3, 4, 3)
    assert made.source_info == str(path)


def test_names_of_different_kinds_are_refused(names):
    with pytest.raises(TypeError, match="all texts, or all rows of bytes"):
        ndd.imread([names[0], row(names[1])])
