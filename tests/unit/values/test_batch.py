import operator

import numpy as np
import pytest

import penstock as ndd


def numbers(batch):
    return [np.asarray(sample).tolist() for sample in batch]


class Rows:
    """A sequence by its methods only."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        if index >= 2:
            raise IndexError(index)
        return [index, index]


@pytest.mark.parametrize(
    "samples",
    [
        [[0, 0], [1, 1]],
        ([0, 0], [1, 1]),
        iter([[0, 0], [1, 1]]),
        (row for row in [[0, 0], [1, 1]]),
        {(0, 0): "a", (1, 1): "b"},
        Rows(),
        np.int32([[0, 0], [1, 1]]),
        ndd.tensor([[0, 0], [1, 1]]),
        [ndd.tensor([0, 0]), np.int32([1, 1])],
    ],
    ids=lambda samples: type(samples).__name__,
)
def test_samples_come_from_anything_that_has_rows(samples):
    made = ndd.batch(samples)
    assert numbers(made) == [[0, 0], [1, 1]]
    assert str(made.dtype) == "i32"
    assert (made.batch_size, made.ndim, made.shape) == (2, 1, [(2,), (2,)])


def test_shapes_may_differ():
    made = ndd.batch([[1, 2, 3], [4], []])
    assert made.shape == [(3,), (1,), (0,)]
    assert numbers(made) == [[1, 2, 3], [4], []]


def test_numbers_of_dimensions_may_not():
    with pytest.raises(TypeError, match="sample 0 has 1, sample 2 has 0"):
        ndd.batch([[1], [2], 3])


@pytest.mark.parametrize(
    ("samples", "dtype", "values"),
    [
        ([1, 2.0], "i32", [1, 2]),
        ([True, 2], "bool", [True, True]),
        ([np.float16(1), 2], "f16", [1.0, 2.0]),
    ],
    ids=repr,
)
def test_the_first_sample_decides_on_the_type(samples, dtype, values):
    made = ndd.batch(samples)
    assert (str(made.dtype), numbers(made)) == (dtype, values)


@pytest.mark.parametrize("samples", [[1, 2.5], [[1], [2.5]], [np.uint8([1]), [2.5]]], ids=repr)
def test_fractions_are_not_cut_off_without_a_word(samples):
    with pytest.warns(UserWarning, match=r"Sample 1 .* fractions.* Give `dtype`") as caught:
        made = ndd.batch(samples)
    assert caught[0].filename == __file__
    assert made.torch().flatten().tolist() == [1, 2]
    assert ndd.batch(samples, dtype=ndd.float32).torch().flatten().tolist() == [1, 2.5]


@pytest.mark.parametrize("samples", [[np.uint8([1]), [300]], [1, 2**31], [2**32]])
def test_python_numbers_that_do_not_fit_are_overflows(samples):
    with pytest.raises(OverflowError):
        ndd.batch(samples)


def test_a_given_type_converts_lists_as_numpy_and_arrays_as_cast():
    assert numbers(ndd.batch([1.7, -1.7], dtype=ndd.int32)) == [1, -1]
    assert numbers(ndd.batch([np.float32(1.7)], dtype=ndd.int32)) == [2]
    assert numbers(ndd.batch(np.float32([1.7, 300]), dtype=ndd.uint8)) == [2, 255]
    assert numbers(ndd.as_batch(ndd.batch([1.6]), dtype=ndd.int32)) == [2]


@pytest.mark.parametrize(
    ("samples", "error", "text"),
    [
        (3, TypeError, "list of samples"),
        (None, TypeError, "None"),
        ("ab", TypeError, "'ab'"),
        (["ab"], TypeError, "'ab'"),
        ([1, None], TypeError, "index 1"),
        ([ndd.batch([1])], TypeError, "a Batch at index 0"),
        (np.float32(3), ValueError, "scalar"),
        (ndd.tensor(3), ValueError, "scalar"),
        ([[[1, 2], [3]]], ValueError, "inhomogeneous"),
        ([object()], TypeError, "object"),
    ],
)
def test_what_can_t_be_samples_is_refused(samples, error, text):
    with pytest.raises(error, match=text):
        ndd.batch(samples)


def test_an_error_of_the_iterator_passes_through():
    def rows():
        yield 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ndd.batch(rows())


def test_nothing_needs_an_element_type():
    with pytest.raises(ValueError, match=r"(?i)element type"):
        ndd.batch([])
    with pytest.raises(ValueError, match=r"(?i)element type"):
        ndd.as_batch(())


def test_an_empty_batch_has_type_no_dimensions_and_no_shapes():
    made = ndd.batch([], dtype=ndd.int32)
    assert (made.batch_size, made.ndim, made.shape, str(made.dtype)) == (0, 0, [], "i32")
    assert made.layout is None
    assert list(made) == []
    assert made.source_info == []
    assert made.evaluate() is made
    with pytest.raises(ValueError, match="dimensions"):
        ndd.batch([], dtype=ndd.int32, layout="HWC")


def test_an_array_of_no_rows_keeps_dimensions_and_layout():
    made = ndd.batch(np.zeros((0, 4, 3), np.uint8), layout="WC")
    assert (made.batch_size, made.ndim, made.layout, made.shape) == (0, 2, "WC", [])


def test_every_operator_takes_an_empty_batch():
    images = ndd.batch(np.zeros((0, 4, 6, 3), np.uint8), layout="HWC")
    row = [1, 2, 3]
    results = {
        "flip": ndd.flip(images),
        "flip per sample": ndd.flip(images, vertical=ndd.batch([], dtype=ndd.int32)),
        "cast": ndd.cast(images, dtype=ndd.float32),
        "copy": ndd.copy(images),
        "number": images + 1,
        "tensor": images + ndd.tensor([1, 2, 3]),
        "left": row + images,
        "batch": images + images,
        "index": images.slice[0],
        "range": images.slice[1:3, ::-1],
        "select": images.tensors[:],
        "layout": ndd.as_batch(images, layout="ABC"),
        "converted": ndd.as_batch(images, dtype=ndd.float16),
        "copied": ndd.batch(images),
        "moved": images.to_device("cpu", force_copy=True),
    }
    for name, result in results.items():
        assert result.evaluate().batch_size == 0, name
        assert result.shape == [], name
        assert result.ndim == (2 if name == "index" else 3), name


def test_samples_of_no_elements_go_through_every_operator():
    images = ndd.batch([np.zeros((0, 4, 3), np.uint8), np.ones((1, 0, 3), np.uint8)], layout="HWC")
    for result in (
        ndd.flip(images, vertical=1),
        ndd.cast(images, dtype=ndd.float32),
        ndd.copy(images),
        images + 1,
        images.slice[::-1],
        images.to_device("cpu", force_copy=True),
    ):
        assert result.shape == [(0, 4, 3), (1, 0, 3)]
    assert ndd.as_tensor(images, pad=True).shape == (2, 1, 4, 3)
    assert ndd.as_tensor(ndd.batch([np.zeros((0, 2))] * 3)).shape == (3, 0, 2)


def test_layout_is_that_of_a_sample():
    assert ndd.batch(np.zeros((2, 3, 4)), layout="HW").layout == "HW"
    with pytest.raises(ValueError, match="dimensions"):
        ndd.batch(np.zeros((2, 3)), layout="NX")
    assert ndd.batch([[1]], layout="").layout is None
    with pytest.raises(TypeError, match="string"):
        ndd.batch([[1]], layout=5)


def test_a_tensor_with_a_layout_needs_one_for_its_samples():
    whole = ndd.tensor([[1, 2]], layout="NX")
    with pytest.raises(ValueError, match="one dimension less"):
        ndd.batch(whole)
    assert ndd.batch(whole, layout="X").layout == "X"


def test_an_empty_layout_drops_that_of_the_tensor():
    for samples in ([1, 2], [[1], [2]]):
        stacked = ndd.as_tensor(ndd.batch(samples), layout="NX"[: np.ndim(samples)])
        again = ndd.as_batch(stacked, layout="")
        assert (numbers(again), again.layout) == (samples, None)


def test_the_first_sample_brings_the_layout():
    x, y, plain = ndd.tensor([1], layout="X"), ndd.tensor([1], layout="Y"), [1]
    assert ndd.batch([x, y]).layout == "X"
    assert ndd.batch([x, plain]).layout == "X"
    assert ndd.batch([x, y], layout="Z").layout == "Z"
    assert {sample.layout for sample in ndd.batch([x, y])} == {"X"}


def test_as_batch_shares_and_batch_copies():
    array = np.arange(6.0).reshape(2, 3)
    for given in (array, [array[0], array[1]]):
        assert all(np.shares_memory(np.asarray(t), array) for t in ndd.as_batch(given))
        assert not any(np.shares_memory(np.asarray(t), array) for t in ndd.batch(given))
    tensors = [ndd.tensor([1]), ndd.tensor([2])]
    shared = ndd.as_batch(tensors)
    assert np.shares_memory(np.asarray(shared.tensors[1]), np.asarray(tensors[1]))


def test_as_batch_of_a_batch_is_itself():
    made = ndd.batch([[1]], layout="X")
    assert ndd.as_batch(made) is made
    assert ndd.batch(made) is not made
    relabelled = ndd.as_batch(made, layout="Y")
    assert (relabelled.layout, made.layout) == ("Y", "X")
    with pytest.raises(ValueError, match="dimensions"):
        ndd.as_batch(made, layout="XY")


def test_a_class_is_called_as_its_function():
    array = np.arange(4.0).reshape(2, 2)
    assert np.shares_memory(np.asarray(ndd.Batch(array).tensors[0]), array)
    assert not np.shares_memory(np.asarray(ndd.Batch(array, copy=True).tensors[0]), array)
    with pytest.raises(TypeError):
        ndd.Batch()


def test_broadcast_repeats_a_sample_without_a_copy():
    sample = ndd.tensor([1, 2], layout="X")
    made = ndd.Batch.broadcast(sample, 3)
    assert (numbers(made), made.layout) == ([[1, 2]] * 3, "X")
    assert np.shares_memory(np.asarray(made.tensors[2]), np.asarray(sample))
    assert numbers(ndd.Batch.broadcast(5, 2, dtype=ndd.float32)) == [5.0, 5.0]
    empty = ndd.Batch.broadcast(np.uint8([1]), 0)
    assert (empty.batch_size, str(empty.dtype), empty.ndim) == (0, "u8", 1)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((5, -1), ValueError, "batch_size"),
        ((ndd.batch([1]), 2), ValueError, "Batch"),
        ((None, 2), TypeError, "None"),
        ((5, "a"), TypeError, "str"),
        ((5, 2.0), TypeError, "float"),
    ],
)
def test_broadcast_refuses_what_makes_no_sense(arguments, error, text):
    with pytest.raises(error, match=text):
        ndd.Batch.broadcast(*arguments)


@pytest.mark.parametrize("key", [0, slice(0, 1), ..., (0, 1), None, "a"])
def test_subscript_is_a_type_error_that_says_what_to_use(key):
    made = ndd.batch([[1, 2]])
    with pytest.raises(TypeError) as caught:
        made[key]
    for hint in ("not subscriptable", "tensors[i]", "select(i)", "slice[i]"):
        assert hint in str(caught.value)
    with pytest.raises(TypeError, match="assignment"):
        made[key] = 1


def test_iteration_gives_tensors_again_and_again():
    made = ndd.batch([[1], [2, 3]], layout="X")
    for _ in range(2):
        assert [type(sample) for sample in made] == [ndd.Tensor] * 2
        assert numbers(made) == [[1], [2, 3]]
    first, second = made
    assert (first.shape, second.shape) == ((1,), (2,))


def test_what_the_api_does_not_have_is_an_error():
    made = ndd.batch([1, 2])
    for use in (int, float, operator.index, hash, memoryview, reversed):
        with pytest.raises(TypeError):
            use(made)
    for name in ("size", "item", "nbytes", "__dlpack__", "__cuda_array_interface__"):
        assert not hasattr(made, name)


def test_len_is_the_number_of_samples():
    assert len(ndd.batch([[1], [2, 3]])) == 2
    assert len(ndd.batch([], dtype=ndd.int32)) == 0
    assert list(range(3)[: len(ndd.batch([1, 2]))]) == [0, 1]


def test_samples_are_selected_by_a_tensor_of_one_integer():
    made = ndd.batch([[1], [2, 3]])
    assert numbers([made.tensors[ndd.tensor(1)]]) == [[2, 3]]
    with pytest.raises(TypeError, match="one element, an integer"):
        made.tensors[ndd.tensor([0, 1])]


def test_it_is_not_one_array_and_says_what_to_do():
    with pytest.raises(TypeError, match="as_tensor"):
        np.asarray(ndd.batch([1, 2]))
    with pytest.raises(TypeError, match="as_tensor"):
        np.stack([ndd.batch([1, 2])])


def test_properties_can_t_be_set_but_notes_can_be_attached():
    made = ndd.batch([1])
    for name in ("shape", "dtype", "device", "ndim", "layout", "batch_size", "tensors", "slice"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)
    made.note = "mine"
    assert made.note == "mine"


def test_sources_are_unknown_for_data_of_the_program():
    assert ndd.batch([1, 2]).source_info == [None, None]


def test_moving_to_where_it_is_returns_itself():
    made = ndd.batch([[1]], layout="X")
    assert made.cpu() is made
    assert made.to_device("cpu") is made
    copied = made.to_device("cpu", force_copy=True)
    assert (copied.layout, numbers(copied)) == ("X", [[1]])
    assert not np.shares_memory(np.asarray(copied.tensors[0]), np.asarray(made.tensors[0]))


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_what_is_known_before_evaluation_is_the_same_after(mode):
    first = ndd.batch([np.ones((4, 6, 3), np.uint8), np.ones((2, 2, 3), np.uint8)], layout="HWC")
    with mode:
        for made in (first + 1.5, ndd.flip(first), first.slice[0], first.tensors[::-1]):
            before = (made.dtype, made.ndim, made.layout, made.device, made.batch_size)
            made.evaluate()
            assert (made.dtype, made.ndim, made.layout, made.device, made.batch_size) == before
            assert {len(shape) for shape in made.shape} == {made.ndim}


REPRS = [
    (
        lambda: ndd.batch([[1, 2], [3, 4]], layout="X"),
        'Batch(\n    [[1 2],\n    [3 4]],\n    dtype=i32,\n    layout="X",\n    device="cpu",\n'
        "    num_samples=2,\n    shape=[(2,), (2,)])",
    ),
    (
        lambda: ndd.batch([1, 10]),
        'Batch(\n    [1, 10],\n    dtype=i32,\n    device="cpu",\n    num_samples=2,\n'
        "    shape=[(), ()])",
    ),
    (
        lambda: ndd.batch([], dtype=ndd.int32),
        'Batch(\n    [],\n    dtype=i32,\n    device="cpu",\n    num_samples=0,\n    shape=[])',
    ),
    (
        lambda: ndd.batch([[[0, 1], [2, 3]]] * 2),
        "Batch(\n    [[[0 1]\n     [2 3]],\n\n    [[0 1]\n     [2 3]]],\n    dtype=i32,\n"
        '    device="cpu",\n    num_samples=2,\n    shape=[(2, 2), (2, 2)])',
    ),
    (
        lambda: ndd.batch(np.arange(1001)),
        'Batch(\n    [0, 1, ..., 999, 1000],\n    dtype=i64,\n    device="cpu",\n'
        "    num_samples=1001,\n    shape=[(), (), ..., (), ()])",
    ),
]


@pytest.mark.parametrize(("make", "text"), REPRS)
def test_prints_as_dali(make, text):
    assert repr(make()) == text


def test_prints_only_the_ends_of_much():
    assert "..." in repr(ndd.batch(np.zeros((6, 167))))
    assert "..." not in repr(ndd.batch(np.zeros((6, 166))))
    assert "..." not in repr(ndd.batch(np.zeros((5, 201))))
    assert "(2,), ..., (2,)" not in repr(ndd.batch(np.zeros((16, 2))))
    assert "(2,), ..., (2,)" in repr(ndd.batch(np.zeros((17, 2))))


@pytest.mark.parametrize("samples", [[0, 0], [1, 1], [[1], [2, 3]], [[1, 2]], []])
def test_whether_many_elements_are_true_is_nobodys_guess(samples):
    made = ndd.batch(samples, dtype=ndd.int32)
    for ask in (bool, lambda x: not x, lambda x: x and 1, lambda x: 1 if x > 5 else 2):
        with pytest.raises(ValueError, match="ambiguous"):
            ask(made)
    with pytest.raises(ValueError, match="ambiguous"):
        assert made == made


def test_one_element_is_true_or_not():
    assert ndd.batch([3])
    assert not ndd.batch([[0]])
    assert ndd.batch([3]) == ndd.batch([3])


LOSSES = {
    "uint8, float32": lambda: [np.uint8([1]), np.float32([300.7])],
    "int32, int64": lambda: [np.int32([1]), np.int64([2**40])],
    "uint8, int8": lambda: [np.uint8([1]), np.int8([-1])],
    "int32, float64": lambda: [np.int32(1), np.float64(2.5)],
    "float16, float32": lambda: [np.float16([1]), np.float32([1e6])],
    "tensors": lambda: [ndd.tensor([1]), ndd.tensor([2.5])],
    "a list, an array": lambda: [[1], np.float32([2.5])],
}


@pytest.mark.parametrize("samples", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("make", [ndd.batch, ndd.as_batch, ndd.Batch])
def test_numbers_are_not_lost_to_the_type_of_the_first_sample(samples, make):
    with pytest.raises(TypeError, match=r"Sample 1 .* Pass `dtype`"):
        make(samples())
    assert make(samples(), dtype=ndd.float64).dtype is ndd.float64


def test_numbers_are_brought_to_a_type_that_holds_them():
    for first, second in (("f4", "u1"), ("i8", "i4"), ("i2", "u1"), ("f4", "f8"), ("u1", "?")):
        made = ndd.batch([np.array([1], first), np.array([1], second)])
        assert made.dtype is ndd.dtype(np.dtype(first))
        assert made.torch().flatten().tolist() == [1, 1]


def test_describing_many_samples_takes_time_by_their_number():
    # Sixty thousand would take half an hour in quadratic time.
    many = ndd.batch(np.zeros((60_000, 1), np.uint8)).tensors[::-1]
    assert len(many.shape) == len(many.source_info) == 60_000
    assert "num_samples=60000" in repr(many)
    assert len(many.tensors.tolist()) == 60_000
