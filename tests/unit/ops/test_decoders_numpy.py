"""Arrays in the NumPy format, compared with NumPy's own reader."""

import io

import numpy as np
import pytest
from tests.element_types import TYPES

import penstock as ndd
from penstock.errors import DecodeError


def npy(array, version=None, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def decoded(array, **options):
    return np.asarray(ndd.decoders.numpy(npy(array), **options))


def values(dtype, shape=(3, 4)):
    count = int(np.prod(shape))
    return (np.arange(count) * 37 % 113).astype(dtype).reshape(shape)


def assert_same_array(made, expected):
    assert made.dtype == expected.dtype.newbyteorder("=")
    assert made.shape == expected.shape
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("name", TYPES)
def test_every_type_and_byte_order(name, layout, order):
    array = np.asarray(values(TYPES[name], (3, 4, 5)), order=layout)
    array = array.astype(array.dtype.newbyteorder(order))
    assert_same_array(decoded(array), array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format(version):
    array = values(np.float32)
    assert_same_array(np.asarray(ndd.decoders.numpy(npy(array, version))), array)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (1, 1, 1, 1, 1), (1, 7), (7, 1)])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_shapes(shape, layout):
    array = np.asarray(values(np.int64, shape), order=layout)
    assert_same_array(decoded(array), array)


@pytest.mark.parametrize("to", ["uint8", "float16", "float64", "int32", "bool"])
@pytest.mark.parametrize("kind", ["<f8", ">f8", "<i4", ">i2", "?"])
def test_conversion_matches_cast(kind, to):
    array = (values(np.float64) * 3.7 - 100).astype(kind)
    target = getattr(ndd, to)
    plain = array.astype(array.dtype.newbyteorder("="))
    expected = np.asarray(ndd.cast(plain, dtype=target))
    for order in "CF":
        made = ndd.decoders.numpy(npy(np.asarray(array, order=order)), dtype=target)
        assert made.dtype is target
        np.testing.assert_array_equal(np.asarray(made), expected)


def test_ragged_batch():
    arrays = [values(np.int16, (2, 3)), values(np.int16, (5, 1))]
    made = ndd.decoders.numpy(ndd.batch([npy(array) for array in arrays]))
    assert (made.dtype, made.ndim, made.batch_size) == (ndd.int16, 2, 2)
    for sample, array in zip(made, arrays, strict=True):
        assert_same_array(np.asarray(sample), array)


def test_row_major_arrays_are_views_of_their_file():
    file = ndd.tensor(npy(values(np.float32)))
    made = ndd.decoders.numpy(file)
    address = np.asarray(made).__array_interface__["data"][0]
    start = np.asarray(file).__array_interface__["data"][0]
    assert start < address < start + np.asarray(file).size


def test_mutable_memory_is_copied():
    file = npy(values(np.uint8)).copy()
    made = ndd.decoders.numpy(ndd.as_tensor(file))
    before = np.array(made)
    file[-12:] = 0
    np.testing.assert_array_equal(np.asarray(made), before)


def test_mixed_types_need_a_dtype():
    files = ndd.batch([npy(values(np.int16)), npy(values(np.float32))])
    with pytest.raises(RuntimeError, match="sample 1: the array has 2 dimensions and the type f32"):
        ndd.decoders.numpy(files).evaluate()
    made = ndd.decoders.numpy(files, dtype=ndd.float64)
    assert [np.asarray(sample).dtype.name for sample in made] == ["float64"] * 2


def test_mixed_ranks_are_rejected():
    files = ndd.batch([npy(values(np.int16, (3,))), npy(values(np.int16))])
    with pytest.raises(RuntimeError, match="but the first one of the batch has 1"):
        ndd.decoders.numpy(files, dtype=ndd.int16).evaluate()


def test_a_bad_file_does_not_affect_other_samples():
    good = npy(values(np.int16))
    made = ndd.decoders.numpy(ndd.batch([good[:20], good, good]), dtype=ndd.int16)
    for number in (1, 2):
        assert_same_array(np.asarray(made.tensors[number]), values(np.int16))
    with pytest.raises(DecodeError, match="sample 0: this array can't be read: it ends within"):
        made.evaluate()


GOOD = npy(values(np.float32))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (GOOD[:0], "it is empty"),
        (GOOD[:40], "it ends within its header"),
        (GOOD[:-1], r"takes 48 bytes, of which it has 47"),
        (np.append(GOOD, np.uint8(0)), r"takes 48 bytes, but 49 follow the header"),
        (np.zeros(40, np.uint8), "not in NumPy's format"),
        (npy(np.array([1j])), "NumPy's type '<c16'"),
        (npy(np.array(["a"])), "NumPy's type '<U1'"),
        (npy(np.zeros(2, [("a", "i4")])), "its elements are records"),
        (npy(np.array([{}], object), allow_pickle=True), "NumPy's type '|O'"),
    ],
)
def test_unreadable_files_say_why(file, words):
    with pytest.raises(DecodeError, match=words.replace("|", r"\|")):
        ndd.decoders.numpy(file).evaluate()


def test_pickles_are_never_loaded():
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("a pickle was run",)

    file = npy(np.array([Trap()], object), allow_pickle=True)
    with pytest.raises(DecodeError):
        ndd.decoders.numpy(file).evaluate()


def test_inputs_must_be_bytes():
    with pytest.raises(RuntimeError, match="must consist of bytes, got f32"):
        ndd.decoders.numpy(np.zeros(200, np.float32)).evaluate()


def test_corrupt_files_never_crash():
    rng = np.random.default_rng(0)
    files = [npy(values(np.int16)), npy(np.asfortranarray(values(">f8")))]
    for _ in range(2000):
        file = files[rng.integers(2)].copy()
        for _ in range(rng.integers(1, 4)):
            file[rng.integers(len(file))] = rng.integers(256)
        try:
            ndd.decoders.numpy(file[: rng.integers(len(file) + 1)]).evaluate()
        except DecodeError:
            continue
