"""Indexing into samples: `tensor[...]` and `batch.slice[...]`."""

import numpy as np
import pytest

import penstock as ndd

ARRAY = np.arange(60, dtype=np.int32).reshape(3, 4, 5)


@pytest.fixture
def tensor():
    return ndd.tensor(ARRAY, layout="HWC")


@pytest.fixture
def batch():
    return ndd.batch([ARRAY, ARRAY[:2] + 100], layout="HWC")


KEYS = [
    0,
    -1,
    (1, 2),
    (0, 1, 2),
    (slice(1, 3),),
    slice(None, None, -1),
    slice(2, None, -2),
    slice(-2, None),
    slice(5, 9),
    slice(2, 0),
    slice(2, 0, 2),
    slice(0, 5, -2),
    (slice(None), 1),
    (slice(None), slice(None, None, 2), -1),
    (..., 0),
    (..., slice(1, 3)),
    (0, ...),
    (0, ..., 1),
    (..., slice(None), 0),
    (0, 1, 2, ...),
    (slice(None, 2**40), slice(-(2**40), None)),
    (slice(None), slice(None), slice(None, None, -(2**40))),
    (np.int64(1), np.uint8(2)),
    np.array(1),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_tensor_is_indexed_as_a_numpy_array(tensor, key):
    found = tensor[key]
    np.testing.assert_array_equal(np.asarray(found), ARRAY[key], strict=True)
    assert found.shape == ARRAY[key].shape
    assert found.ndim == ARRAY[key].ndim


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_batch_is_indexed_in_each_sample(batch, key):
    found = batch.slice[key]
    assert found.batch_size == 2
    for sample, whole in zip(found, batch, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), np.asarray(whole)[key], strict=True)


@pytest.mark.parametrize(
    ("key", "layout"),
    [
        (0, "WC"),
        ((slice(None), 0), "HC"),
        ((..., 0), "HW"),
        ((0, ..., 0), "W"),
        ((0, 0, 0), None),
        (slice(0, 1), "HWC"),
        ((0, slice(None, None, 2)), "WC"),
    ],
)
def test_an_integer_drops_its_letter(tensor, batch, key, layout):
    for found in (tensor[key], batch.slice[key]):
        assert found.layout == layout
        assert found.evaluate().layout == layout


EVERYTHING = [
    slice(None),
    ...,
    (),
    (slice(None), slice(None)),
    (..., slice(None)),
    slice(0, None),
    slice(None, None, 1),
    (slice(None),) * 3,
    (..., ...),
]


@pytest.mark.parametrize("key", EVERYTHING, ids=repr)
def test_everything_is_itself(tensor, batch, key):
    assert tensor[key] is tensor
    assert batch.slice[key] is batch


def test_a_part_is_a_copy(tensor):
    assert not np.shares_memory(np.asarray(tensor[0:2]), np.asarray(tensor))
    assert tensor[0:3] is not tensor


def test_none_makes_a_new_axis(tensor, batch):
    assert tensor[None].shape == (1, 3, 4, 5)
    assert tensor[0, None].shape == (1, 4, 5)
    assert tensor[..., None].shape == (3, 4, 5, 1)
    assert ndd.tensor(3)[None].shape == (1,)
    assert batch.slice[None].shape == [(1, 3, 4, 5), (1, 2, 4, 5)]


@pytest.mark.parametrize("index", [1, -1, True, 1.0, 1.9])
def test_scalars_of_python_count_as_integers(tensor, index):
    np.testing.assert_array_equal(np.asarray(tensor[index]), ARRAY[int(index)])


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u32", "i64", "u64", "f32", "bool"])
def test_an_index_may_be_a_tensor_of_any_type(tensor, batch, dtype):
    one = ndd.tensor(1, dtype=dtype)
    np.testing.assert_array_equal(np.asarray(tensor[one]), ARRAY[1])
    np.testing.assert_array_equal(np.asarray(tensor[one:, one]), ARRAY[1:, 1])
    np.testing.assert_array_equal(np.asarray(batch.slice[one].tensors[1]), ARRAY[1] + 100)


def test_bounds_may_be_unfinished_work(batch):
    with ndd.EvalMode.deferred:
        start = ndd.batch([0, 1]) + ndd.batch([1, 0])
        found = batch.slice[start:]
    assert found.shape == [(2, 4, 5), (1, 4, 5)]


def test_a_batch_of_indices_has_one_for_each_sample(batch):
    found = batch.slice[ndd.batch([2, 1]), 0]
    assert [np.asarray(t).tolist() for t in found] == [
        ARRAY[2, 0].tolist(),
        (ARRAY[1, 0] + 100).tolist(),
    ]
    assert found.layout == "C"


def test_ranges_mix_batches_tensors_and_numbers(batch):
    found = batch.slice[
        ndd.batch([-1, 0]) : ndd.batch([-4, 2]) : ndd.batch([-2, 1]), 1 : ndd.batch([2, 4]), -1
    ]
    assert np.asarray(found.tensors[0]).tolist() == ARRAY[-1:-4:-2, 1:2, -1].tolist()
    assert np.asarray(found.tensors[1]).tolist() == (ARRAY[0:2, 1:4, -1] + 100).tolist()


def test_batches_of_indices_must_have_as_many_samples(batch):
    for wrong in (ndd.batch([0]), ndd.batch([0, 0, 0]), ndd.batch([], dtype=ndd.int32)):
        with pytest.raises(ValueError, match=f"{wrong.batch_size} != 2"):
            batch.slice[wrong]
        with pytest.raises(ValueError, match=f"{wrong.batch_size} != 2"):
            batch.slice[:wrong]


def test_a_tensor_takes_no_batch_of_indices(tensor):
    with pytest.raises(TypeError, match=r"batch\.slice"):
        tensor[ndd.batch([0])]


@pytest.mark.parametrize("index", [3, -4, 2**31, -(2**40)])
def test_out_of_range_names_index_axis_and_length(tensor, index):
    with pytest.raises(IndexError) as caught:
        tensor[index].evaluate()
    assert isinstance(caught.value, RuntimeError), "the type that DALI raises"
    assert f"index {index} is out of range for axis 0 of length 3" in str(caught.value)
    with pytest.raises(IndexError, match="axis 2 of length 5"):
        tensor[0, 0, 5].evaluate()


def test_out_of_range_names_the_sample(batch):
    with pytest.raises(IndexError, match=r"sample 1: index 2 .* length 2"):
        batch.slice[2].evaluate()
    with pytest.raises(IndexError, match="sample 1"):
        batch.slice[ndd.batch([0, -3])].evaluate()


def test_an_axis_of_no_length_has_no_index_but_a_range():
    empty = ndd.tensor(np.zeros((0, 3)))
    assert empty[0:1].shape == (0, 3)
    assert empty[::-1].shape == (0, 3)
    for index in (0, -1):
        with pytest.raises(IndexError, match="length 0"):
            empty[index].evaluate()


def test_a_step_of_zero_is_refused(tensor, batch):
    with pytest.raises(RuntimeError, match="zero"):
        tensor[::0].evaluate()
    with pytest.raises(RuntimeError, match=r"sample 1.*zero"):
        batch.slice[:: ndd.batch([1, 0])].evaluate()


@pytest.mark.parametrize("key", [(0, 0, 0, 0), (0, ..., 0, 0, 0), (0, 0, 0, slice(1, 2))])
def test_too_many_indices_are_a_value_error_at_the_call(tensor, batch, key):
    with pytest.raises(ValueError, match=r"4 .* 3"):
        tensor[key]
    with pytest.raises(ValueError, match=r"4 .* 3"):
        batch.slice[key]


def test_a_scalar_has_nothing_to_index():
    scalar = ndd.tensor(5)
    assert scalar[...] is scalar
    assert scalar[()] is scalar
    with pytest.raises(ValueError, match="0"):
        scalar[0]


def test_one_ellipsis_is_enough(tensor):
    with pytest.raises(ValueError, match="Ellipsis"):
        tensor[..., 1, ...]


@pytest.mark.parametrize(
    "key", [[0, 1], np.array([0, 1]), np.array([True, False, True]), (0, [1]), slice([1], None)]
)
def test_lists_and_masks_are_refused(tensor, batch, key):
    for call in (lambda: tensor[key], lambda: batch.slice[key]):
        with pytest.raises((RuntimeError, TypeError), match="scalar"):
            call().evaluate()


@pytest.mark.parametrize("key", ["a", slice("a", None), {}, object(), 1j])
def test_what_is_no_number_is_refused(tensor, batch, key):
    for call in (lambda: tensor[key], lambda: batch.slice[key]):
        with pytest.raises((TypeError, ValueError)):
            call().evaluate()


@pytest.mark.parametrize("dtype", ["bool", "f16", "bfloat16", "u64", "f64"])
def test_elements_of_any_type_are_moved(dtype):
    made = ndd.tensor([[0, 1], [1, 0]], dtype=dtype)
    assert np.asarray(made[::-1, 0]).tolist() == [1, 0]


def test_strided_memory_of_others_is_read_in_place():
    base = np.arange(24).reshape(4, 6)
    odd = base[::-1, ::2].T
    shared = ndd.as_tensor(odd)
    np.testing.assert_array_equal(np.asarray(shared[1:, ::-1]), odd[1:, ::-1])
    np.testing.assert_array_equal(np.asarray(shared[-1]), odd[-1])


def test_it_can_t_be_assigned_to(batch):
    with pytest.raises(TypeError, match="assignment"):
        batch.slice[0] = 1
