import gc
import operator
import weakref

import ml_dtypes
import numpy as np
import pytest

import penstock as ndd
from penstock import types
from penstock._values.dtype import BY_CODE

NUMBERS = [known for known in BY_CODE if known.kind is not ndd.DType.Kind.enum]
ENUMS = [known for known in BY_CODE if known.kind is ndd.DType.Kind.enum]


def numbers(tensor):
    return np.asarray(tensor).tolist()


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_number_type_holds_its_values(dtype):
    made = ndd.tensor([0, 1, 1], dtype=dtype)
    assert made.dtype is dtype
    assert numbers(made) == [0, 1, 1]
    assert made.itemsize == dtype.bits // 8
    assert made.nbytes == 3 * made.itemsize
    assert (made.shape, made.ndim, made.size) == ((3,), 1, 3)
    assert numbers(made[1:]) == [1, 1]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_called_a_type_makes_a_tensor_of_itself(dtype):
    made = dtype([[1, 0]], layout="HW")
    assert (made.dtype, made.shape, made.layout) == (dtype, (1, 2), "HW")
    assert numbers(made) == [[1, 0]]


@pytest.mark.parametrize("dtype", ENUMS, ids=str)
def test_enum_types_hold_numbers_of_32_bits(dtype):
    made = ndd.tensor([1, 2], dtype=dtype)
    assert (made.dtype, made.itemsize) == (dtype, 4)
    assert numbers(ndd.cast(made, dtype=ndd.int32)) == [1, 2]


@pytest.mark.parametrize(
    ("member", "dtype"),
    [
        (types.RGB, ndd.ImageType),
        (types.INTERP_CUBIC, ndd.InterpType),
        (types.FLOAT, ndd.DataType),
    ],
)
def test_members_of_enums_bring_their_type(member, dtype):
    assert ndd.tensor(member).dtype is dtype
    assert ndd.tensor([member, member]).dtype is dtype
    assert ndd.cast(ndd.tensor(member), dtype=ndd.int32).item() == int(member)


def test_bfloat16_rounds_as_its_numpy_type():
    given = [0.1, -1e30, 3.14159, float("inf")]
    assert numbers(ndd.tensor(given, dtype=ndd.bfloat16)) == (
        np.array(given, np.float32).astype(ml_dtypes.bfloat16).tolist()
    )


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "i32", ()),
        (True, "bool", ()),
        (1.5, "f32", ()),
        (2**31, "u32", ()),
        (-(2**31), "i32", ()),
        ([1, 2.5], "f32", (2,)),
        ([True, 2], "i32", (2,)),
        ([True, False], "bool", (2,)),
        ([], "f32", (0,)),
        ([[], []], "f32", (2, 0)),
        (((1, 2), (3, 4)), "i32", (2, 2)),
        (range(3), "i32", (3,)),
        ([np.uint8(1), np.uint8(2)], "u8", (2,)),
        ([np.arange(2, dtype=np.uint8)] * 2, "u8", (2, 2)),
        (np.int64(1), "i64", ()),
        (np.zeros(2), "f64", (2,)),
        ([ndd.tensor([1, 2]), ndd.tensor([3, 4])], "i32", (2, 2)),
    ],
    ids=repr,
)
def test_type_and_shape_follow_from_the_data(data, dtype, shape):
    made = ndd.tensor(data)
    assert (str(made.dtype), made.shape) == (dtype, shape)


def test_layout_is_a_letter_for_each_dimension():
    assert ndd.tensor([[1]]).layout is None
    assert ndd.tensor([[1]], layout="HW").layout == "HW"
    assert ndd.tensor([[1]], layout="").layout is None
    assert ndd.tensor([[1]], layout="XX").layout == "XX"
    assert ndd.tensor(1, layout="").layout is None
    longest = "ABCDEFGHIJKLMNO"
    assert ndd.tensor(np.zeros((1,) * 15), layout=longest).layout == longest


@pytest.mark.parametrize("layout", ["H", "HWC"])
def test_layout_of_another_length_is_a_value_error_about_dimensions(layout):
    with pytest.raises(ValueError, match="dimensions"):
        ndd.tensor([[1]], layout=layout)
    with pytest.raises(ValueError, match="dimensions"):
        ndd.as_tensor(ndd.tensor([[1]], layout="HW"), layout=layout)


@pytest.mark.parametrize("layout", [5, b"X", ["X"]])
def test_layout_that_is_no_string_is_a_type_error(layout):
    with pytest.raises(TypeError, match="Layout must be a string"):
        ndd.tensor([1], layout=layout)


def test_layout_that_can_t_be_is_a_value_error():
    with pytest.raises(ValueError, match="ASCII"):
        ndd.tensor([1], layout="é")
    with pytest.raises(ValueError, match="15"):
        ndd.tensor(np.zeros((1,) * 16), layout="A" * 16)


def test_layout_can_be_replaced_and_the_first_tensor_keeps_its_own():
    first = ndd.tensor([1], layout="X")
    assert ndd.as_tensor(first).layout == "X"
    assert ndd.as_tensor(first, layout="").layout == "X"
    assert ndd.as_tensor(first, layout="Y").layout == "Y"
    assert ndd.tensor(first, layout="Y").layout == "Y"
    assert first.layout == "X"


def test_as_tensor_of_a_tensor_shares_and_tensor_copies():
    first = ndd.tensor([1, 2])
    assert np.shares_memory(np.asarray(ndd.as_tensor(first)), np.asarray(first))
    assert np.shares_memory(np.asarray(ndd.as_tensor(first, layout="X")), np.asarray(first))
    assert not np.shares_memory(np.asarray(ndd.tensor(first)), np.asarray(first))


def test_a_class_is_called_as_its_function():
    assert numbers(ndd.Tensor([1, 2], layout="X")) == [1, 2]
    given = np.arange(3)
    assert np.shares_memory(np.asarray(ndd.Tensor(given)), given)
    assert not np.shares_memory(np.asarray(ndd.Tensor(given, copy=True)), given)
    with pytest.raises(TypeError):
        ndd.Tensor()


def test_arguments_go_by_position_too():
    made = ndd.tensor([1.5], ndd.float64, "cpu", "X", False)
    assert (str(made.dtype), made.layout, made.device) == ("f64", "X", ndd.Device.CPU)


def test_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="shape"):
        ndd.tensor([1], shape=(1,))


@pytest.mark.parametrize("make", [ndd.tensor, ndd.as_tensor])
def test_a_batch_is_stacked(make):
    made = make(ndd.batch([[1, 2], [3, 4]], layout="X"))
    assert (numbers(made), made.layout) == ([[1, 2], [3, 4]], "NX")
    assert make(ndd.batch([[1, 2]])).layout is None
    assert make(ndd.batch([1, 2])).layout == "N"
    assert make(ndd.batch([[1]]), layout="AB").layout == "AB"
    assert str(make(ndd.batch([[1]]), dtype=ndd.float32).dtype) == "f32"


def test_a_ragged_batch_is_stacked_only_with_padding():
    ragged = ndd.batch([[[1, 2, 3]], [[4], [5]]], layout="HW")
    with pytest.raises(ValueError, match="pad=True"):
        ndd.as_tensor(ragged).evaluate()
    padded = ndd.as_tensor(ragged, pad=True)
    assert numbers(padded) == [[[1, 2, 3], [0, 0, 0]], [[4, 0, 0], [5, 0, 0]]]
    assert padded.layout == "NHW"


def test_padding_fills_with_zeros_also_in_memory_used_before():
    junk = ndd.tensor(np.full(8192, 7, np.float64))
    del junk
    padded = ndd.as_tensor(ndd.batch([np.ones(8192), np.ones(1)]), pad=True)
    assert np.asarray(padded)[1].sum() == 1


def test_an_empty_batch_is_no_tensor():
    with pytest.raises(RuntimeError, match="empty batch"):
        ndd.as_tensor(ndd.batch([], dtype=ndd.int32))


@pytest.mark.parametrize("data", [3, [3], [[[3]]]])
def test_item_is_the_only_element(data):
    value = ndd.tensor(data).item()
    assert value == 3
    assert type(value) is int


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_item_is_a_python_number_of_every_type(dtype):
    assert ndd.tensor(1, dtype=dtype).item() == 1
    assert type(ndd.tensor(1, dtype=dtype).item()).__module__ == "builtins"


@pytest.mark.parametrize(("data", "count"), [([1, 2], 2), ([], 0)])
def test_item_of_more_or_fewer_is_a_value_error(data, count):
    with pytest.raises(ValueError, match=f"{count} elements, expected 1"):
        ndd.tensor(data).item()


def test_truth_is_that_of_the_only_element():
    assert bool(ndd.tensor(1)) is True
    assert bool(ndd.tensor([[0.0]])) is False
    assert bool(ndd.tensor(False)) is False
    with pytest.raises(ValueError, match="ambiguous"):
        bool(ndd.tensor([1, 2]))


def test_iteration_gives_the_rows():
    rows = list(ndd.tensor([[1, 2], [3, 4]], layout="HW"))
    assert [numbers(row) for row in rows] == [[1, 2], [3, 4]]
    assert {row.layout for row in rows} == {"W"}
    assert list(ndd.tensor(np.zeros((0, 3)))) == []
    with pytest.raises(TypeError, match="without dimensions"):
        iter(ndd.tensor(1))


def test_len_is_the_first_extent():
    assert len(ndd.zeros(shape=(4, 2))) == 4
    assert len(ndd.tensor([])) == 0
    assert numbers(next(reversed(ndd.tensor([[1], [2]])))) == [2]
    with pytest.raises(TypeError, match="without dimensions"):
        len(ndd.tensor(3))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_one_element_converts_to_python_numbers(dtype):
    for one in (ndd.tensor(1, dtype=dtype), ndd.tensor([[1]], dtype=dtype)):
        assert (int(one), type(int(one))) == (1, int)
        assert (float(one), type(float(one))) == (1.0, float)


@pytest.mark.parametrize("use", [int, float, operator.index])
@pytest.mark.parametrize(("data", "count"), [([1, 2], 2), (np.zeros(0, np.int32), 0)])
def test_more_or_fewer_elements_are_no_python_number(use, data, count):
    with pytest.raises(TypeError, match=f"one element.*has {count}"):
        use(ndd.tensor(data))


def test_integers_are_indices():
    assert range(5)[ndd.tensor(3)] == 3
    assert range(5)[: ndd.tensor([2], dtype=ndd.uint8)] == range(2)
    for other in (1.0, True, types.INTERP_LINEAR):
        with pytest.raises(TypeError, match="only tensors of integers"):
            operator.index(ndd.tensor(other))


def test_what_the_api_does_not_have_is_a_type_error():
    made = ndd.tensor(3)
    for use in (hash, memoryview):
        with pytest.raises(TypeError):
            use(made)
    with pytest.raises(TypeError, match="assignment"):
        made[0] = 1
    with pytest.raises(TypeError, match="deletion"):
        del made[0]


def test_properties_can_t_be_set_but_notes_can_be_attached():
    made = ndd.tensor([1])
    for name in ("shape", "dtype", "device", "ndim", "size", "itemsize", "nbytes", "layout"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)
    made.note = "mine"
    assert made.note == "mine"


def test_source_is_unknown_for_data_of_the_program():
    assert ndd.tensor([1]).source_info is None
    assert (ndd.tensor([1]) + 1).source_info is None


def test_moving_to_where_it_is_returns_itself():
    made = ndd.tensor([1], layout="X")
    assert made.cpu() is made
    assert made.to_device("cpu") is made
    assert made.to_device(ndd.Device.CPU) is made
    assert made.evaluate() is made
    copied = made.to_device("cpu", force_copy=True)
    assert copied is not made
    assert copied.layout == "X"
    assert not np.shares_memory(np.asarray(copied), np.asarray(made))


@pytest.mark.parametrize(
    ("target", "error"), [("foo", ValueError), (None, TypeError), (5, TypeError)]
)
def test_moving_to_no_device_is_an_error(target, error):
    with pytest.raises(error, match="device"):
        ndd.tensor([1]).to_device(target)


def test_mixed_is_a_value_error_that_says_gpu():
    for call in (
        lambda: ndd.tensor([1], device="mixed"),
        lambda: ndd.batch([1], device="mixed"),
        lambda: ndd.tensor([1]).to_device("mixed"),
        lambda: ndd.copy(ndd.tensor([1]), device="mixed"),
    ):
        with pytest.raises(ValueError, match='device="gpu"'):
            call()


def test_a_subclass_keeps_its_class():
    class Mine(ndd.Tensor):
        pass

    assert numbers(Mine([1, 2])) == [1, 2]
    assert isinstance(Mine([1]), ndd.Tensor)


def test_a_dropped_tensor_is_freed_at_once():
    made = ndd.tensor([1])
    seen = weakref.ref(made)
    del made
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_what_is_known_before_evaluation_is_the_same_after(mode):
    first = ndd.tensor(np.ones((4, 6, 3), np.uint8), layout="HWC")
    with mode:
        for made in (first + 1.5, ndd.flip(first), first[1:3, 0], ndd.cast(first, dtype="f16")):
            before = (made.dtype, made.ndim, made.layout, made.device)
            made.evaluate()
            assert (made.dtype, made.ndim, made.layout, made.device) == before
            assert made.ndim == len(made.shape) == np.asarray(made).ndim


REPRS = [
    (
        lambda: ndd.tensor([[1, 2], [3, 4]], layout="HW"),
        'Tensor(\n    [[1 2]\n     [3 4]],\n    dtype=i32,\n    layout="HW",\n'
        '    device="cpu",\n    shape=(2, 2))',
    ),
    (lambda: ndd.tensor(3), 'Tensor(\n    3,\n    dtype=i32,\n    device="cpu",\n    shape=())'),
    (
        lambda: ndd.tensor([True]),
        'Tensor(\n    [ True],\n    dtype=bool,\n    device="cpu",\n    shape=(1,))',
    ),
    (
        lambda: ndd.tensor(np.zeros((2, 0, 3))),
        'Tensor(\n    [],\n    dtype=f64,\n    device="cpu",\n    shape=(2, 0, 3))',
    ),
    (
        lambda: ndd.tensor(np.arange(1001)),
        'Tensor(\n    [   0    1 ...  999 1000],\n    dtype=i64,\n    device="cpu",\n'
        "    shape=(1001,))",
    ),
    (
        lambda: ndd.tensor([[[1]], [[2]]]),
        'Tensor(\n    [[[1]]\n\n     [[2]]],\n    dtype=i32,\n    device="cpu",\n'
        "    shape=(2, 1, 1))",
    ),
]


@pytest.mark.parametrize(("make", "text"), REPRS)
def test_prints_as_dali(make, text):
    assert repr(make()) == text
    assert f"{make()}" == text


def test_waits_for_its_data_to_print():
    with ndd.EvalMode.deferred:
        made = ndd.tensor([1, 2]) + 1
    assert "[2 3]" in repr(made)
