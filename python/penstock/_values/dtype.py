"""Element types of tensors and batches."""

from __future__ import annotations

import builtins
import difflib
import re
import sys
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from penstock._errors.messages import describe
from penstock._errors.tracebacks import hide_frames, public
from penstock._values import dali
from penstock.types import DALIDataType

if TYPE_CHECKING:
    import numpy as np

    from penstock._values.tensor import Tensor

__all__ = [
    *("DType", "dtype", "type_id", "DataType", "ImageType", "InterpType"),
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
]


class DType:
    """An element type. There is one object per type, such as `uint8` or `float32`.

    Calling it makes a tensor: `float32([1, 2])`. `DType(kind, bits)` is the type of that kind and
    size; a float can also be specified by its exponent and significand.

    Attributes:
        kind: The kind of number.
        bits: Bits per element.
        bytes: Bytes per element.
        exponent_bits: Bits of a float's exponent; None for other kinds.
        significand_bits: Bits of a float's significand, without the implicit one; None for others.
        name: The short name, such as "u8" or "f32".
        type_id: The matching `types.DALIDataType`; None for bfloat16.

    Example:
        >>> ndd.float32([1, 2]).torch().tolist()
        [1.0, 2.0]
        >>> ndd.float32.name, ndd.float32.bits, ndd.float32.type_id.name
        ('f32', 32, 'FLOAT')
    """

    class Kind(Enum):
        """Kinds of elements."""

        signed = 1
        unsigned = 2
        float = 3
        bool = 4
        enum = 5

    __slots__ = (
        "_code",
        "_numpy_cache",
        "bits",
        "bytes",
        "exponent_bits",
        "kind",
        "name",
        "significand_bits",
        "type_id",
    )

    kind: Kind
    bits: int
    bytes: int
    exponent_bits: int | None
    significand_bits: int | None
    name: str
    type_id: DALIDataType | None
    _code: int
    _numpy_cache: np.dtype[Any] | None

    def __new__(
        cls,
        kind: Kind,
        bits: int,
        exponent_bits: int | None = None,
        significand_bits: int | None = None,
    ) -> DType:
        found = [
            known
            for known in BY_CODE
            if (known.kind, known.bits) == (kind, bits)
            and exponent_bits in (None, known.exponent_bits)
            and significand_bits in (None, known.significand_bits)
        ]
        if not found:
            raise ValueError(
                f"DType: there is no type of kind {kind!r} with {bits!r} bits, exponent_bits="
                f"{exponent_bits}, significand_bits={significand_bits}. {_ALLOWED}"
            )
        if kind is DType.Kind.enum:
            raise ValueError(
                "DType: the enum types have the same kind and size; use one of "
                + ", ".join(known.name for known in found)
                + "."
            )
        return found[0]  # of the 16-bit floats, float16 comes first

    @staticmethod
    def parse(name: str) -> DType:
        """The type with a name: short ("i32", "f16"), long ("int32", "half") or exact ("f16e5m10").

        Numbers in names are bits, not bytes.
        """
        if not isinstance(name, str):
            raise TypeError(f"DType.parse: expected a name such as 'i32', got {name!r}.")
        found = _BY_NAME.get(name)
        if found is None:
            raise ValueError(f"Unknown type {name!r}.{_hint(name)} {_ALLOWED}")
        return found

    @staticmethod
    def from_fw_type(numpy_type: Any) -> DType:
        """The type for one of NumPy, PyTorch, JAX, NVIDIA DALI or Python."""
        if isinstance(numpy_type, str):
            return DType.parse(numpy_type)
        name = _framework_name(numpy_type)
        found = _BY_NAME.get(name) if name is not None else None
        if found is None:
            _refuse(numpy_type)
        return found

    @staticmethod
    def from_type_id(type_id: DALIDataType | int) -> DType:
        """The type for a `types.DALIDataType` or its number."""
        found = _BY_TYPE_ID.get(dali.constant(type_id))
        if found is None:
            raise ValueError(f"Tensors can't have elements of type {type_id!r}. {_ALLOWED}")
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type, which lets NumPy accept this one: `np.zeros(2, dtype=ndd.float32)`."""
        found = self._numpy
        if found is None:
            raise TypeError(
                "NumPy has no bfloat16. Install the package `ml_dtypes`, or use another type."
            )
        return found

    @property
    def _numpy(self) -> np.dtype[Any] | None:
        """The NumPy type; None for bfloat16 without `ml_dtypes`."""
        if self._numpy_cache is None:
            object.__setattr__(self, "_numpy_cache", _find_numpy(self))
        return self._numpy_cache

    def __call__(self, data: Any, **kwargs: Any) -> Tensor:
        """Make a tensor of this type; arguments as for `tensor`."""
        from penstock import tensor

        return tensor(data, dtype=self, **kwargs)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A DType can't be modified.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A DType can't be modified.")

    def __reduce__(self) -> tuple[Any, ...]:
        return DType.parse, (self.name,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        text = f"DType(kind={self.kind}, bits={self.bits}"
        if self.kind is DType.Kind.float:
            text += (
                f", exponent_bits={self.exponent_bits}, significand_bits={self.significand_bits}"
            )
        return text + ")"


def dtype(*args: Any) -> DType:
    """Convert to a `DType`: a name, a `types.DALIDataType`, or a type of NumPy, PyTorch or JAX.

    Several arguments are passed on to `DType`.

    Example:
        >>> ndd.dtype("float16") is ndd.float16
        True
    """
    try:
        return _convert(args[0]) if len(args) == 1 else DType(*args)
    except BaseException as error:
        hide_frames(error)
        raise


@public
def type_id(dtype: Any) -> DALIDataType | None:
    """The `types.DALIDataType` of anything that `dtype()` accepts; None for bfloat16.

    Example:
        >>> ndd.type_id("uint8") == ndd.types.UINT8
        True
    """
    dtype = dali.constant(dtype)
    if isinstance(dtype, DALIDataType):
        return dtype
    try:
        return _convert(dtype).type_id
    except TypeError as error:
        raise ValueError(str(error)) from None


def _convert(value: Any) -> DType:
    if type(value) is DType:
        return value
    if isinstance(value, DALIDataType):
        return DType.from_type_id(value)
    try:
        return _CACHE[value]
    except (KeyError, TypeError):  # not cached, or not hashable
        pass
    own = dali.constant(value)
    if isinstance(own, DALIDataType):
        # Not cached: NVIDIA's constants hash and compare as integers.
        return DType.from_type_id(own)
    found = _CACHE[value] = DType.from_fw_type(value)
    return found


def _make(
    kind: DType.Kind,
    bits: int,
    name: str,
    type_id: DALIDataType | None,
    exponent_bits: int | None = None,
    significand_bits: int | None = None,
) -> DType:
    made = object.__new__(DType)
    for attribute, value in {
        "kind": kind,
        "bits": bits,
        "bytes": bits // 8,
        "exponent_bits": exponent_bits,
        "significand_bits": significand_bits,
        "name": name,
        "type_id": type_id,
        "_code": len(BY_CODE),
        "_numpy_cache": None,
    }.items():
        object.__setattr__(made, attribute, value)
    BY_CODE.append(made)
    return made


def _find_numpy(dtype: DType) -> np.dtype[Any] | None:
    import numpy as np

    found: np.dtype[Any]
    if dtype is bfloat16:
        try:
            import ml_dtypes
        except ImportError:
            return None
        found = np.dtype(ml_dtypes.bfloat16)
    elif dtype.kind is DType.Kind.enum:
        found = np.dtype(np.int32)
    elif dtype is bool:
        found = np.dtype(np.bool_)
    else:
        found = np.dtype(f"{dtype.name[0]}{dtype.bytes}")  # NumPy's letters are the same
    return found


def _framework_name(value: Any) -> str | None:
    """The name of another library's type, or None."""
    if value is builtins.bool:
        return "bool"
    if value is builtins.float:
        return "float32"  # as in DALI
    if (name := dali.type_name(value)) is not None:
        return name
    if type(value).__module__ == "torch":
        return str(value).removeprefix("torch.")
    # Only a program that has imported NumPy can pass a NumPy type.
    np = sys.modules.get("numpy")
    if np is None:
        return None
    if isinstance(value, type):
        if issubclass(value, np.generic):
            value = np.dtype(value)
        else:
            value = getattr(value, "dtype", None)  # jax.numpy.float32 and the like
    if not isinstance(value, np.dtype) or not value.isnative:
        return None
    return str(value.name)


def _refuse(value: Any) -> NoReturn:
    hint = ""
    if value is int:
        hint = " Python's int has no fixed size; use `int32` or `int64`."
    elif getattr(value, "isnative", True) is False:
        hint = " Its byte order is not native; convert the array with `astype` first."
    raise TypeError(f"{describe(value)} is not a valid element type.{hint} {_ALLOWED}")


def _hint(name: str) -> str:
    if sized := re.fullmatch(r"[<>=|]?([iuf])([1248])", name):
        meant = f"{sized[1]}{int(sized[2]) * 8}"
        return f" Numbers in names are bits, not bytes; did you mean '{meant}'?"
    if name in ("int", "uint"):
        return f" Specify the number of bits, as in '{name}32'."
    if near := difflib.get_close_matches(name.lower(), _BY_NAME, n=1):
        return f" Did you mean '{near[0]}'?"
    return ""


BY_CODE: list[DType] = []
"""The types by `_code`, their number in the native code."""

bool: DType = _make(DType.Kind.bool, 8, "bool", DALIDataType.BOOL)
int8: DType = _make(DType.Kind.signed, 8, "i8", DALIDataType.INT8)
int16: DType = _make(DType.Kind.signed, 16, "i16", DALIDataType.INT16)
int32: DType = _make(DType.Kind.signed, 32, "i32", DALIDataType.INT32)
int64: DType = _make(DType.Kind.signed, 64, "i64", DALIDataType.INT64)
uint8: DType = _make(DType.Kind.unsigned, 8, "u8", DALIDataType.UINT8)
uint16: DType = _make(DType.Kind.unsigned, 16, "u16", DALIDataType.UINT16)
uint32: DType = _make(DType.Kind.unsigned, 32, "u32", DALIDataType.UINT32)
uint64: DType = _make(DType.Kind.unsigned, 64, "u64", DALIDataType.UINT64)
float16: DType = _make(DType.Kind.float, 16, "f16", DALIDataType.FLOAT16, 5, 10)
bfloat16: DType = _make(DType.Kind.float, 16, "bfloat16", None, 8, 7)
float32: DType = _make(DType.Kind.float, 32, "f32", DALIDataType.FLOAT, 8, 23)
float64: DType = _make(DType.Kind.float, 64, "f64", DALIDataType.FLOAT64, 11, 52)
DataType: DType = _make(DType.Kind.enum, 32, "DataType", DALIDataType.DATA_TYPE)
ImageType: DType = _make(DType.Kind.enum, 32, "ImageType", DALIDataType.IMAGE_TYPE)
InterpType: DType = _make(DType.Kind.enum, 32, "InterpType", DALIDataType.INTERP_TYPE)

_BY_TYPE_ID: dict[int, DType] = {
    known.type_id: known for known in BY_CODE if known.type_id is not None
}

# Caches conversions from names and other libraries' types, which take microseconds.
_CACHE: dict[Any, DType] = {}

_BY_NAME: dict[str, DType] = {known.name: known for known in BY_CODE}
for _prefix, _types in {
    "int": (int8, int16, int32, int64),
    "uint": (uint8, uint16, uint32, uint64),
    "float": (float16, float32, float64),
}.items():
    _BY_NAME.update({f"{_prefix}{known.bits}": known for known in _types})
_BY_NAME.update(
    {
        f"f{known.bits}e{known.exponent_bits}m{known.significand_bits}": known
        for known in (float16, bfloat16, float32, float64)
    }
)
_BY_NAME.update(
    bool_=bool,
    boolean=bool,
    sbyte=int8,
    byte=uint8,
    ubyte=uint8,
    short=int16,
    ushort=uint16,
    long=int64,
    ulong=uint64,
    half=float16,
    bf16=bfloat16,
    float=float32,
    single=float32,
    double=float64,
)

_ALLOWED = "Available types: " + ", ".join(known.name for known in BY_CODE) + "."
