import copy
import pickle
import sys

import numpy as np
import pytest
from tests.ids import steady_repr

import penstock as ndd
from penstock import types
from penstock._values import dtype as _dtype
from penstock._values.dtype import BY_CODE, DType, dtype, type_id

KINDS = DType.Kind
NUMBERS = [known for known in BY_CODE if known.kind is not KINDS.enum and known.type_id is not None]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_codes_are_the_native_core_s():
    assert [(known._code, known.name) for known in BY_CODE] == list(
        enumerate(
            [
                *("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
                *("f16", "bfloat16", "f32", "f64", "DataType", "ImageType", "InterpType"),
            ]
        )
    )


def test_attributes_describe_the_type():
    half = _dtype.float16
    assert (half.kind, half.bits, half.bytes, half.name) == (KINDS.float, 16, 2, "f16")
    assert (half.exponent_bits, half.significand_bits) == (5, 10)
    assert half.type_id is types.FLOAT16
    assert (_dtype.bfloat16.exponent_bits, _dtype.bfloat16.significand_bits) == (8, 7)
    assert _dtype.bfloat16.type_id is None
    assert (_dtype.bool.bits, _dtype.bool.bytes, _dtype.bool.exponent_bits) == (8, 1, None)
    assert (_dtype.ImageType.kind, _dtype.ImageType.bits) == (KINDS.enum, 32)


def test_kinds_are_numbered_as_in_the_api():
    assert {kind.name: kind.value for kind in KINDS} == {
        "signed": 1,
        "unsigned": 2,
        "float": 3,
        "bool": 4,
        "enum": 5,
    }


def test_prints_as_dali():
    assert str(_dtype.uint8) == "u8"
    assert repr(_dtype.uint8) == "DType(kind=Kind.unsigned, bits=8)"
    assert (
        repr(_dtype.bfloat16)
        == "DType(kind=Kind.float, bits=16, exponent_bits=8, significand_bits=7)"
    )


@pytest.mark.parametrize("known", BY_CODE, ids=str)
def test_there_is_one_object_per_type(known):
    assert dtype(known) is known
    assert dtype(known.name) is known
    assert DType.parse(known.name) is known
    assert copy.copy(known) is known
    assert copy.deepcopy(known) is known
    assert pickle.loads(pickle.dumps(known)) is known
    if known.type_id is not None:
        assert dtype(known.type_id) is known
        assert DType.from_type_id(int(known.type_id)) is known
        assert type_id(known) is known.type_id


@pytest.mark.parametrize("known", NUMBERS, ids=str)
def test_numpy_types_lead_to_it_and_back(known):
    assert dtype(known._numpy) is known
    assert dtype(known._numpy.type) is known
    assert dtype(known._numpy.name) is known
    assert known._numpy.itemsize == known.bytes


def test_numpy_type_of_enums_is_int32():
    assert _dtype.InterpType._numpy == np.int32


def test_bfloat16_has_a_numpy_type_where_ml_dtypes_is():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert _dtype.bfloat16._numpy == np.dtype(ml_dtypes.bfloat16)
    assert dtype(ml_dtypes.bfloat16) is _dtype.bfloat16
    assert dtype(np.dtype(ml_dtypes.bfloat16)) is _dtype.bfloat16


def test_bfloat16_has_no_numpy_type_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert _dtype._find_numpy(_dtype.bfloat16) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("int32", "i32"),
        ("uint8", "u8"),
        ("float16", "f16"),
        ("half", "f16"),
        ("float", "f32"),
        ("double", "f64"),
        ("bool_", "bool"),
        ("byte", "u8"),
        ("long", "i64"),
        ("bf16", "bfloat16"),
        ("f16e5m10", "f16"),
        ("f16e8m7", "bfloat16"),
        ("f32e8m23", "f32"),
    ],
)
def test_long_names_and_aliases_are_understood(name, expected):
    assert dtype(name).name == expected


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("flaot32", "Did you mean 'float32'"),
        ("INT32", "Did you mean 'int32'"),
        ("f4", "bits, not bytes; did you mean 'f32'"),
        ("<u2", "did you mean 'u16'"),
        ("int", "'int32'"),
        ("tf32", "Available types: bool, i8"),
        ("f8e4m3", "Available types: bool, i8"),
        ("i128", "Available types: bool, i8"),
        ("", "Unknown type ''"),
    ],
)
def test_unknown_name_is_a_value_error_with_a_hint(name, hint):
    with pytest.raises(ValueError, match="Unknown type") as caught:
        dtype(name)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [None, 3, True, object(), bytes, [1], np.zeros(3), np.dtype("U3"), np.complex64, types.RGB],
    ids=steady_repr,
)
def test_what_is_no_type_is_a_type_error(value):
    with pytest.raises(TypeError, match="is not a valid element type"):
        dtype(value)


def test_python_types_are_taken_as_by_dali():
    assert dtype(bool) is _dtype.bool
    assert dtype(float) is _dtype.float32
    with pytest.raises(TypeError, match="`int32` or `int64`"):
        dtype(int)


def test_foreign_byte_order_is_refused_with_a_way_out():
    foreign = np.dtype(np.int32).newbyteorder()
    with pytest.raises(TypeError, match="astype"):
        dtype(foreign)


def test_type_ids_without_elements_are_refused():
    with pytest.raises(ValueError, match="STRING"):
        dtype(types.STRING)


def test_torch_types_are_understood(torch):
    assert dtype(torch.uint8) is _dtype.uint8
    assert dtype(torch.bfloat16) is _dtype.bfloat16
    assert dtype(torch.bool) is _dtype.bool
    with pytest.raises(TypeError, match="complex64"):
        dtype(torch.complex64)


def test_jax_types_are_understood():
    jnp = pytest.importorskip("jax.numpy")
    assert dtype(jnp.float32) is _dtype.float32
    assert dtype(jnp.bfloat16) is _dtype.bfloat16
    assert dtype(jnp.zeros(2, jnp.int8).dtype) is _dtype.int8


def test_several_arguments_find_a_type_by_its_make():
    assert dtype(KINDS.signed, 32) is _dtype.int32
    assert dtype(KINDS.float, 16) is _dtype.float16
    assert DType(KINDS.float, 16, 8, 7) is _dtype.bfloat16
    assert DType(kind=KINDS.float, bits=16, significand_bits=7) is _dtype.bfloat16
    with pytest.raises(ValueError, match="no type"):
        DType(KINDS.signed, 24)
    with pytest.raises(ValueError, match="DataType, ImageType, InterpType"):
        DType(KINDS.enum, 32)
    with pytest.raises(TypeError):
        dtype()


def test_type_id_takes_whatever_dtype_takes():
    assert type_id("u8") is types.UINT8
    assert type_id(np.float32) is types.FLOAT
    assert type_id(types.STRING) is types.STRING
    assert type_id(_dtype.bfloat16) is None
    for wrong in (3, None, "nonsense"):
        with pytest.raises(ValueError):
            type_id(wrong)


def test_comparison_with_anything_else_is_false():
    assert _dtype.int32 != _dtype.int64
    assert _dtype.DataType != _dtype.ImageType
    for other in ("i32", 3, None, types.INT32):
        assert (_dtype.int32 == other) is False
    assert len(set(BY_CODE)) == 16


def test_types_can_t_be_changed():
    with pytest.raises(AttributeError, match="modified"):
        _dtype.int32.name = "x"
    with pytest.raises(AttributeError, match="modified"):
        del _dtype.int32.name


def test_called_it_makes_a_tensor_of_its_type(monkeypatch):
    import penstock

    made = []
    monkeypatch.setattr(
        penstock, "tensor", lambda data, **kwargs: made.append((data, kwargs)), raising=False
    )
    _dtype.int32([1, 2], layout="X")
    assert made == [([1, 2], {"dtype": _dtype.int32, "layout": "X"})]


@pytest.mark.parametrize("known", BY_CODE, ids=str)
def test_numpy_accepts_the_types(known):
    assert np.dtype(known) is known._numpy
    made = np.zeros(2, dtype=known)
    assert made.dtype == known._numpy
    assert np.asarray(ndd.tensor(made)).dtype == made.dtype


def test_bfloat16_without_ml_dtypes_is_a_type_error(monkeypatch):
    monkeypatch.setattr(_dtype, "_find_numpy", lambda dtype: None)
    object.__setattr__(_dtype.bfloat16, "_numpy_cache", None)
    with pytest.raises(TypeError, match="ml_dtypes"):
        np.dtype(_dtype.bfloat16)


def test_jax_accepts_the_types():
    jnp = pytest.importorskip("jax.numpy")
    assert jnp.zeros(2, dtype=_dtype.bfloat16).dtype == jnp.bfloat16
