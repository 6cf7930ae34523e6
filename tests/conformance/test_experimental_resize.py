"""The resize operator that DALI has on a GPU only, with the arguments of the other one."""

import numpy as np

import penstock as ndd


def test_it_is_resize():
    image = np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    arguments = {"size": [5, 20], "interp_type": ndd.types.INTERP_CUBIC, "save_attrs": True}
    made, shape = ndd.experimental.resize(ndd.tensor(image, layout="HWC"), **arguments)
    other, _ = ndd.resize(ndd.tensor(image, layout="HWC"), **arguments)
    assert np.array_equal(made, other)
    assert np.asarray(shape).tolist() == [9, 12]
