import numpy as np
import pytest

import penstock as ndd
from penstock._values.dtype import BY_CODE


@pytest.mark.parametrize("dtype", BY_CODE, ids=str)
def test_every_type_is_copied(dtype):
    first = ndd.tensor([[1, 0]], dtype=dtype, layout="HW")
    made = ndd.copy(first)
    assert (made.dtype, made.layout, made.shape) == (dtype, "HW", (1, 2))
    assert made.torch().tolist() == first.torch().tolist()


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_the_copy_has_memory_of_its_own(mode):
    given = np.arange(6)
    for source in (ndd.as_tensor(given), ndd.tensor(given)):
        with mode:
            made = ndd.copy(source)
        np.asarray(made)[:] = -1
        assert np.asarray(source).tolist() == list(range(6))
        assert not np.shares_memory(np.asarray(made), np.asarray(source))


def test_data_that_is_no_value_becomes_one():
    assert ndd.copy(5).item() == 5
    assert np.asarray(ndd.copy([[1, 2]])).tolist() == [[1, 2]]
    assert np.asarray(ndd.copy(b"ab")).tolist() == [97, 98]


def test_batches_are_copied_with_their_shapes():
    made = ndd.copy(ndd.batch([[1, 2], [], [3]], layout="X"))
    assert [np.asarray(sample).tolist() for sample in made] == [[1, 2], [], [3]]
    assert made.layout == "X"


def test_any_memory_order_is_copied_in_row_major_order():
    given = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)[::-1]
    made = np.asarray(ndd.copy(ndd.as_tensor(given)))
    assert made.flags.c_contiguous
    np.testing.assert_array_equal(made, given, strict=True)


def test_none_is_no_data():
    with pytest.raises(TypeError, match=r"copy\(\) missing .*'input'"):
        ndd.copy(None)
