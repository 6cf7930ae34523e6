"""Arrays in NumPy's format, compared with DALI."""

import io

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return np.frombuffer(file.getvalue(), np.uint8)


# DALI has these on a GPU only; unit tests compare them with other libraries.
EXCUSED = {
    "decoders.inflate": "tests/unit/ops/test_inflate.py: Python's own modules and commands",
    "optical_flow": "tests/unit/ops/test_optical_flow.py: OpenCV",
}

ARRAY = (np.arange(24) * 37 % 113 - 20).reshape(2, 3, 4)
TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"]
# DALI's operator refuses another type or rank than that of the first array it has decoded. So all
# arrays here have three dimensions, and `dtype` is given, which makes an operator of its own.
NAMES = {
    **{f"i{n}": f"int{8 * n}" for n in (1, 2, 4, 8)},
    **{f"u{n}": f"uint{8 * n}" for n in (1, 2, 4, 8)},
    **{f"f{n}": f"float{8 * n}" for n in (2, 4, 8)},
    "?": "bool",
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_agree(kind):
    array = ARRAY.astype(kind)
    assert_same(f"ndd.decoders.numpy(x, dtype=ndd.{NAMES[kind]})", x=npy(array))


@pytest.mark.parametrize("to", ["uint8", "int16", "int64", "float16", "float32"])
@pytest.mark.parametrize("kind", ["i2", "u8", "f4", "f8", "?"])
def test_conversions_agree(kind, to):
    array = (ARRAY * 1.5).astype(kind)
    assert_same(f"ndd.decoders.numpy(ndd.batch([x, x]), dtype=ndd.{to})", x=npy(array))


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 1, 2), (2, 3, 4), (0, 3, 1)])
def test_shapes_agree(shape):
    array = np.ones(shape, np.float32)
    assert_same("ndd.decoders.numpy(x, dtype=ndd.float32)", x=npy(array))


@pytest.mark.parametrize(
    "source",
    [
        "ndd.decoders.numpy(x[:-4], dtype=ndd.int32).evaluate()",
        "ndd.decoders.numpy(np.append(x, x), dtype=ndd.int32).evaluate()",
        "ndd.decoders.numpy(np.zeros(10, 'u1'), dtype=ndd.int32).evaluate()",
        "ndd.decoders.numpy(np.zeros(0, 'u1'), dtype=ndd.int32).evaluate()",
        "ndd.decoders.numpy(x.view('i1'), dtype=ndd.int32)",
        "ndd.decoders.numpy(x[None], dtype=ndd.int32)",
    ],
)
def test_odd_files_agree(source):
    assert_same(source, x=npy(np.arange(5, dtype=np.int32).reshape(5, 1, 1)))


NEWER = "newer versions of the format only have longer headers"
DIFFERS = [
    Differs(
        "import io\nf = io.BytesIO()\nnp.lib.format.write_array(f, np.arange(3), (2, 0))\n"
        "np.asarray(ndd.decoders.numpy(np.frombuffer(f.getvalue(), 'u1'), dtype=ndd.int64))",
        "np.arange(3)",
        NEWER,
    ),
    Differs(
        "import io\nf = io.BytesIO()\nnp.save(f, np.arange(3, dtype='>i4'))\n"
        "np.asarray(ndd.decoders.numpy(np.frombuffer(f.getvalue(), 'u1'), dtype=ndd.int32))",
        "np.arange(3, dtype='i4')",
        "the order of bytes is known, so that they can be swapped",
    ),
    Differs(
        "import io\nf = io.BytesIO()\nnp.save(f, np.asfortranarray(np.arange(6).reshape(2, 3)))\n"
        "np.asarray(ndd.decoders.numpy(np.frombuffer(f.getvalue(), 'u1'), dtype=ndd.int64))",
        "np.arange(6).reshape(2, 3)",
        "DALI needs CUDA to transpose them",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differences_are_on_purpose(case):
    case.check()
