"""Constants and element types of NVIDIA's package, given to penstock in the same process."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.conformance.oracle import ROOT, oracle_python

SCRIPT = """
import sys

import numpy as np
import penstock as ndd

assert not any(name.startswith("nvidia") for name in sys.modules)
import nvidia.dali.types as dali
import nvidia.dali.experimental.dynamic as original

for name in "UINT8 INT16 INT64 FLOAT16 FLOAT FLOAT64 BOOL INTERP_TYPE".split():
    own = ndd.types.DALIDataType[name]
    given = getattr(dali, name)
    assert ndd.dtype(given) is ndd.dtype(own), name
    assert ndd.DType.from_type_id(given) is ndd.dtype(own), name
    assert ndd.type_id(given) is own, name

for name in "bool int8 uint16 int32 uint64 float16 bfloat16 float32 float64 ImageType".split():
    assert ndd.dtype(getattr(original, name)) is getattr(ndd, name), name
    # NVIDIA's constants hash as integers, which must not mix with cached types.
    assert ndd.dtype(getattr(original, name)) is getattr(ndd, name), name

image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

def same(a, b):
    assert a.dtype is b.dtype
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))

for name in "INTERP_NN INTERP_LINEAR INTERP_CUBIC INTERP_LANCZOS3".split():
    call = lambda interp: ndd.resize(image, size=(7, 5), interp_type=interp)
    same(call(getattr(dali, name)), call(getattr(ndd.types, name)))
call = lambda types, dtype: ndd.resize(
    image, size=[2, 2], min_filter=types.INTERP_NN, mag_filter=types.INTERP_NN, dtype=dtype
)
same(call(dali, dali.FLOAT), call(ndd.types, ndd.float32))
same(call(dali, original.float32), call(ndd.types, ndd.float32))
convert = lambda types: ndd.color_space_conversion(
    image, image_type=types.RGB, output_type=types.YCbCr
)
same(convert(dali), convert(ndd.types))
same(ndd.cast(image, dtype=original.int16), ndd.cast(image, dtype=ndd.int16))
same(ndd.cast(image, dtype=dali.INT16), ndd.cast(image, dtype=ndd.int16))
same(ndd.tensor([1, 2], dtype=dali.FLOAT16), ndd.tensor([1, 2], dtype=ndd.float16))
same(ndd.tensor(dali.INTERP_CUBIC), ndd.tensor(ndd.types.INTERP_CUBIC))
same(ndd.tensor([dali.RGB, dali.BGR]), ndd.tensor([ndd.types.RGB, ndd.types.BGR]))
spec = ndd.TensorSpec(original.uint8, ndim=3)
assert ndd.map(np.copy, image, outputs=spec).dtype is ndd.uint8

print("done")
"""


def test_constants_and_types_of_nvidia_are_accepted():
    if os.environ.get("PENSTOCK_ORACLE") == "off":
        pytest.skip("PENSTOCK_ORACLE=off: DALI is not asked")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ran = subprocess.run(
        [oracle_python(), "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "done"
