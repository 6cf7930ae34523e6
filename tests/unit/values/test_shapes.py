"""Shapes, joins, fills, tables and sequences, in cases that can't be compared with DALI."""

import ml_dtypes
import numpy as np
import pytest

import penstock as ndd

BRAIN = np.array([[1, 2, 3], [4, 5, 6]], ml_dtypes.bfloat16)


def test_bfloat16_goes_everywhere():
    made = ndd.tensor(BRAIN)
    for result, expected in [
        (ndd.transpose(made), BRAIN.T),
        (ndd.reshape(made, shape=[6]), BRAIN.ravel()),
        (ndd.cat(made, made, axis=1), np.concatenate([BRAIN, BRAIN], 1)),
        (ndd.ones_like(made), np.ones_like(BRAIN)),
        (ndd.full_like(made, 2.5), np.full_like(BRAIN, 2.5)),
        (ndd.one_hot(made, num_classes=7, dtype=ndd.bfloat16), np.eye(7)[BRAIN.astype(int)]),
        (ndd.lookup_table([1], keys=[1], values=[0.5], dtype=ndd.bfloat16), np.array([0.5])),
    ]:
        assert result.dtype is ndd.bfloat16
        np.testing.assert_array_equal(np.asarray(result), expected.astype(ml_dtypes.bfloat16))


WRONG = [
    ("reshape: `layout`", lambda: ndd.reshape([1, 2], layout="HW")),
    ("reshape: `shape`", lambda: ndd.reshape([1, 2])),
    ("reshape:.*`shape`.*fit", lambda: ndd.reshape([1, 2], shape=[3])),
    ("reshape:.*`rel_shape`", lambda: ndd.reshape([1, 2], rel_shape=[1, 1])),
    ("reshape:.*`src_dims`", lambda: ndd.reshape([1, 2], src_dims=[1])),
    ("sample 1: `shape`", lambda: ndd.reshape([1, 2], shape=ndd.batch([[1, 2], [2]]))),
    ("sample 1: `shape`", lambda: ndd.zeros(shape=ndd.batch([[1, 2], [2]]))),
    ("reinterpret:.*`dtype`", lambda: ndd.reinterpret(np.uint8([1, 2, 3]), dtype=ndd.int16)),
    ("squeeze: `axes`", lambda: ndd.squeeze([[1]], axes=[2])),
    ("squeeze:.*`axes`", lambda: ndd.squeeze([[1, 2]], axes=[1])),
    ("squeeze: `axes`.*same", lambda: ndd.squeeze([[1]], axes=ndd.batch([[0], [1]]))),
    ("squeeze: `axis_names`.*no layout", lambda: ndd.squeeze([[1]], axis_names="W")),
    ("expand_dims: `axes`.*twice", lambda: ndd.expand_dims([1], axes=[0, 0])),
    ("transpose: `perm`", lambda: ndd.transpose([[1]], perm=[0])),
    ("cat: .*f32.*i32|cat: .*i32.*f32", lambda: ndd.cat([1], [1.5])),
    ("cat: `axis`", lambda: ndd.cat([1], [2], axis=1)),
    ("cat:.*along the joined axis", lambda: ndd.cat([[1, 2]], [[1]])),
    ("stack:.*one shape", lambda: ndd.stack([1, 2], [1])),
    ("zeros:.*`shape`.*negative", lambda: ndd.zeros(shape=[-1])),
    ("full:.*broadcast", lambda: ndd.full([1, 2], shape=[3])),
    ("lookup_table: `keys`.*70000", lambda: ndd.lookup_table([1], keys=[70000], values=[1])),
    ("lookup_table:.*integers.*f32", lambda: ndd.lookup_table([1.5])),
    ("one_hot:.*`num_classes`", lambda: ndd.one_hot([1, 2], num_classes=-1)),
    ("get_property: `key`.*colour", lambda: ndd.get_property([1], key="colour")),
    ("permute_batch:.*`indices`.*3", lambda: ndd.permute_batch(ndd.batch([1, 2]), indices=3)),
    ("element_extract:.*`element_map`", lambda: ndd.element_extract([[1]], element_map=[1])),
    ("sequence_rearrange:.*`new_order`", lambda: ndd.sequence_rearrange([[1]], new_order=[1])),
    ("per_frame:.*replace=True", lambda: ndd.per_frame(ndd.tensor([1], layout="X"))),
]


@pytest.mark.parametrize(("says", "call"), WRONG)
def test_errors_name_what_is_wrong(says, call):
    with pytest.raises(RuntimeError, match=says):
        call().evaluate()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ndd.zeros(shape=[2**40, 2**40]),
        lambda: ndd.ones(shape=[2**62]),
        lambda: ndd.full(1, shape=[2**31, 2**31, 2]),
        lambda: ndd.one_hot([1, 2], num_classes=2**62),
    ],
)
def test_what_no_memory_could_hold_is_an_error(call):
    with pytest.raises(MemoryError):
        call().evaluate()


@pytest.mark.parametrize("classes", [0, 1, 2, 7])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 1, 3), (0, 2)])
def test_one_hot_marks_the_class_along_any_axis(shape, classes):
    labels = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 9
    for axis in range(labels.ndim + 1):
        made = np.asarray(ndd.one_hot(labels, num_classes=classes, axis=axis))
        marks = np.expand_dims(labels, axis)
        expected = marks == np.arange(classes).reshape(-1, *[1] * (labels.ndim - axis))
        np.testing.assert_array_equal(made, expected.astype(np.float32))


def test_a_former_name_is_deprecated_at_the_line_of_the_user():
    with pytest.warns(DeprecationWarning, match="output_dtype") as caught:
        made = ndd.lookup_table([1], keys=[1], values=[7], output_dtype=ndd.uint8)
    assert made.dtype is ndd.uint8
    assert caught[0].filename == __file__


def test_results_of_several_parts_follow_each_other():
    frames = ndd.batch(np.arange(24).reshape(2, 3, 4), layout="FX")
    first, last = ndd.element_extract(frames, element_map=[0, 2])
    assert (first.layout, first.batch_size) == ("X", 2)
    assert np.asarray(ndd.as_tensor(last)).tolist() == [[8, 9, 10, 11], [20, 21, 22, 23]]


def test_samples_change_places_and_keep_what_they_are():
    batch = ndd.batch([[1], [2, 3], [4, 5, 6]], layout="X")
    made = ndd.permute_batch(batch, indices=ndd.batch([2, 0, 1]) + 0)
    assert made.shape == [(3,), (1,), (2,)]
    assert made.layout == "X"
    assert [sample.layout for sample in made] == ["X"] * 3


def test_a_batch_size_repeats_what_has_no_input():
    made = ndd.zeros(shape=[2], batch_size=3)
    assert made.shape == [(2,)] * 3
    repeated = ndd.permute_batch(ndd.tensor(5), indices=1, batch_size=2)
    assert [sample.item() for sample in repeated] == [5, 5]
