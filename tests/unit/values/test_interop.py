"""Values exchanged with other libraries without copies, and their lifetimes."""

import gc
import subprocess
import sys
import weakref

import jax
import jax.numpy as jnp
import ml_dtypes
import numba
import numpy as np
import pytest
import torch

import penstock as ndd
from penstock._values.dtype import BY_CODE

NUMBERS = [known for known in BY_CODE if known.kind is not ndd.DType.Kind.enum]
FOUR = [0, 1, 2, 3]


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    """Garbage collection of the frameworks' objects would take most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def address(tensor):
    return np.asarray(tensor).__array_interface__["data"][0]


class Owner(bytearray):
    """Memory that records its deallocation."""


def owned(count=4):
    owner = Owner(np.arange(count, dtype=np.float32).tobytes())
    return np.frombuffer(owner, np.float32), weakref.ref(owner)


# NumPy


def test_numpy_shares_writable_memory():
    made = ndd.tensor([[1, 2], [3, 4]])
    view = np.asarray(made)
    assert np.shares_memory(view, np.asarray(made))
    view[0, 0] = 9
    assert np.asarray(made)[0, 0] == 9
    assert made[0, 0].item() == 9


def test_array_takes_dtype_and_copy():
    made = ndd.tensor([1, 2])
    assert made.__array__(np.float64).dtype == np.float64
    assert np.shares_memory(made.__array__(np.int32, copy=False), np.asarray(made))
    assert np.shares_memory(made.__array__(copy=None), np.asarray(made))
    assert not np.shares_memory(made.__array__(copy=True), np.asarray(made))
    assert made.__array__("f4", True).tolist() == [1.0, 2.0]
    assert np.asarray(made, dtype=np.int64).tolist() == [1, 2]
    with pytest.raises(ValueError, match="copy"):
        made.__array__(np.float64, copy=False)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(made, dtype=np.float64, copy=False)
    with pytest.raises(TypeError):
        made.__array__("nonsense")


def test_numpy_functions_take_tensors():
    made = ndd.tensor([[1, 2], [3, 4]])
    assert np.sum(made) == 10
    assert np.stack([made, made]).shape == (2, 2, 2)
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(np.asarray(made))), made)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_type_goes_to_numpy_and_back(dtype):
    made = ndd.tensor([0, 1, 1], dtype=dtype)
    back = ndd.as_tensor(np.asarray(made))
    assert back.dtype is dtype
    assert address(back) == address(made)


def test_read_only_memory_is_read_only_everywhere():
    given = np.arange(3)
    given.flags.writeable = False
    made = ndd.as_tensor(given)
    assert not np.asarray(made).flags.writeable
    assert not np.from_dlpack(made).flags.writeable
    assert np.from_dlpack(made).ctypes.data == given.ctypes.data
    # PyTorch has no read-only tensors.
    shared = made.torch()
    assert shared.data_ptr() != given.ctypes.data
    assert shared.tolist() == [0, 1, 2]


# DLPack


def capsule_name(capsule):
    return repr(capsule).split('"')[1]


def test_dlpack_speaks_the_version_that_is_asked_for():
    made = ndd.tensor([1, 2])
    assert capsule_name(made.__dlpack__()) == "dltensor"
    assert capsule_name(made.__dlpack__(max_version=None)) == "dltensor"
    assert capsule_name(made.__dlpack__(max_version=(0, 8))) == "dltensor"
    assert capsule_name(made.__dlpack__(max_version=(1, 0))) == "dltensor_versioned"
    assert capsule_name(made.__dlpack__(max_version=(2, 5))) == "dltensor_versioned"
    assert made.__dlpack_device__() == (1, 0)


def test_dlpack_takes_stream_device_and_copy():
    made = ndd.tensor([1, 2])
    for stream in (None, -1, 1):
        assert made.__dlpack__(stream=stream) is not None
    assert made.__dlpack__(dl_device=(1, 0)) is not None
    for device in ((2, 0), (1, 1)):
        with pytest.raises(BufferError, match="host"):
            made.__dlpack__(dl_device=device)
    shared, copied = np.from_dlpack(made), np.from_dlpack(made, copy=True)
    assert np.shares_memory(shared, np.asarray(made))
    assert not np.shares_memory(copied, np.asarray(made))
    assert np.shares_memory(np.from_dlpack(made, copy=False), np.asarray(made))
    assert np.from_dlpack(made, device="cpu").tolist() == [1, 2]


def test_what_dlpack_can_t_say_is_copied_or_refused():
    field = np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"]
    read_only = np.arange(3.0)
    read_only.flags.writeable = False
    for given, version, text in (
        (field, (1, 0), "not a multiple of the element size"),
        (field, None, "not a multiple of the element size"),
        (read_only, None, "read-only, which DLPack can't express before version 1.0"),
    ):
        made = ndd.as_tensor(given)
        with pytest.raises(BufferError, match=text):
            made.__dlpack__(max_version=version, copy=False)
        assert made.__dlpack__(max_version=version) is not None
    assert np.from_dlpack(ndd.as_tensor(field)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d is not ndd.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 1)])
def test_dlpack_round_trips_keep_all(dtype, shape):
    given = np.ones(shape, dtype._numpy)
    made = ndd.tensor(given)
    out = np.from_dlpack(made)
    np.testing.assert_array_equal(out, given, strict=True)
    back = ndd.as_tensor(out)
    assert (back.dtype, back.shape) == (dtype, shape)


def test_unused_capsules_give_their_memory_back():
    for version in (None, (1, 0)):
        given, owner = owned()
        capsule = ndd.as_tensor(given).__dlpack__(max_version=version)
        del given
        gc.collect()
        assert owner() is not None
        del capsule
        gc.collect()
        assert owner() is None


def test_a_batch_has_no_dlpack():
    assert not hasattr(ndd.batch([1]), "__dlpack__")
    with pytest.raises((AttributeError, TypeError)):
        np.from_dlpack(ndd.batch([1]))


# PyTorch


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_type_goes_to_torch_and_back(dtype):
    made = ndd.tensor([0, 1, 1], dtype=dtype)
    out = made.torch()
    assert out.tolist() == [0, 1, 1]
    assert ndd.dtype(out.dtype) is dtype
    assert out.data_ptr() == address(made)
    back = ndd.as_tensor(out)
    assert (back.dtype, address(back)) == (dtype, address(made))


def test_enums_go_to_torch_as_numbers():
    assert ndd.tensor([1, 2], dtype=ndd.ImageType).torch().dtype == torch.int32


def test_torch_shares_unless_a_copy_is_asked_for():
    made = ndd.tensor([1, 2])
    assert made.torch().data_ptr() == address(made)
    assert made.torch(copy=False).data_ptr() == address(made)
    assert made.torch(copy=True).data_ptr() != address(made)
    made.torch()[0] = 7
    assert made[0].item() == 7


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_torch_gets_every_shape(shape):
    assert tuple(ndd.tensor(np.zeros(shape)).torch().shape) == shape


TORCH_IN = {
    "plain": lambda: torch.arange(6).reshape(2, 3),
    "transposed": lambda: torch.arange(6).reshape(2, 3).T,
    "strided": lambda: torch.arange(24.0).reshape(4, 6)[::2, 1::2],
    "expanded": lambda: torch.tensor([[1], [2]]).expand(2, 3),
    "scalar": lambda: torch.tensor(2.5),
    "no elements": lambda: torch.zeros(0, 3),
    "bool": lambda: torch.tensor([True, False]),
    "half": lambda: torch.tensor([1.5], dtype=torch.float16),
    "detached": lambda: torch.nn.Parameter(torch.ones(2)).detach(),
}


@pytest.mark.parametrize("name", TORCH_IN)
def test_torch_tensors_are_wrapped_and_copied(name):
    given = TORCH_IN[name]()
    wrapped, copied = ndd.as_tensor(given), ndd.tensor(given)
    for made in (wrapped, copied):
        assert ndd.dtype(given.dtype) is made.dtype
        assert np.asarray(made).tolist() == given.tolist()
    if given.numel():
        assert address(wrapped) == given.data_ptr()
        assert address(copied) != given.data_ptr()


def test_torch_batches_come_in_as_rows_or_lists():
    rows = torch.arange(6).reshape(2, 3)
    for made in (ndd.as_batch(rows), ndd.as_batch([rows[0], rows[1]])):
        assert [np.asarray(sample).tolist() for sample in made] == rows.tolist()
        assert address(made.tensors[1]) == rows[1].data_ptr()


def test_bfloat16_of_torch_keeps_its_bits():
    given = torch.tensor([1.5, -3.0, 1e30], dtype=torch.bfloat16)
    made = ndd.as_tensor(given)
    assert made.dtype is ndd.bfloat16
    assert np.asarray(made).dtype == ml_dtypes.bfloat16
    assert torch.equal(made.torch(), given)
    assert torch.equal(ndd.copy(made).torch(), given)


def test_torch_tensors_that_can_t_be_shared_are_refused_by_torch():
    with pytest.raises(BufferError, match="grad"):
        ndd.as_tensor(torch.ones(2, requires_grad=True))
    with pytest.raises(BufferError):
        ndd.as_tensor(torch.eye(2).to_sparse())
    with pytest.raises((TypeError, ValueError, BufferError)):
        ndd.as_tensor(torch.zeros(2, device="meta"))
    with pytest.raises(TypeError):
        ndd.as_tensor(torch.zeros(2, dtype=torch.complex64))


def test_torch_functions_take_tensors():
    made = ndd.tensor([[1.0, 2.0]])
    assert torch.from_dlpack(made).data_ptr() == address(made)
    assert torch.utils.dlpack.from_dlpack(made).data_ptr() == address(made)
    assert torch.as_tensor(made).tolist() == [[1.0, 2.0]]
    assert torch.from_dlpack(ndd.as_tensor(torch.ones(2))).sum() == 2


@pytest.mark.heavy
def test_memory_that_runs_backwards_is_copied_for_torch():
    # In a separate process: PyTorch aborts on a negative stride.
    code = """
import numpy as np, penstock as ndd, torch
made = ndd.as_tensor(np.arange(6.0).reshape(2, 3)[::-1, ::-1])
expected = [[5, 4, 3], [2, 1, 0]]
assert made.torch().tolist() == expected
assert torch.from_dlpack(made).tolist() == expected
assert ndd.as_batch(np.arange(4)[::-1].reshape(2, 2)).torch().tolist() == [[3, 2], [1, 0]]
try:
    made.__dlpack__(max_version=(1, 0), copy=False)
except BufferError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


def test_a_batch_that_lies_side_by_side_becomes_a_torch_tensor_without_a_copy():
    images = ndd.flip(ndd.batch(np.ones((3, 4, 5, 3), np.uint8)))
    out = images.torch(copy=False)
    assert tuple(out.shape) == (3, 4, 5, 3)
    assert out.data_ptr() == address(images.tensors[0])
    assert images.torch().data_ptr() == out.data_ptr()
    assert images.torch(copy=True).data_ptr() != out.data_ptr()
    given = np.arange(6.0).reshape(2, 3)
    assert ndd.as_batch(given).torch(copy=False).data_ptr() == given.ctypes.data
    assert ndd.batch([[1, 2]]).torch(copy=False).tolist() == [[1, 2]]


def test_a_batch_that_does_not_is_copied_or_refused():
    a = np.zeros(3), np.ones(3)
    made = ndd.as_batch(list(a))
    assert made.torch().tolist() == [[0, 0, 0], [1, 1, 1]]
    with pytest.raises(ValueError, match="not contiguous"):
        made.torch(copy=False)
    reversed_ = ndd.flip(ndd.batch(np.ones((2, 4, 5, 3), np.uint8))).tensors[::-1]
    assert tuple(reversed_.torch().shape) == (2, 4, 5, 3)
    with pytest.raises(ValueError, match="not contiguous"):
        reversed_.torch(copy=False)


def test_a_ragged_batch_needs_padding_for_torch():
    ragged = ndd.batch([[1, 2], [3]])
    with pytest.raises(ValueError, match="pad=True"):
        ragged.torch()
    assert ragged.torch(pad=True).tolist() == [[1, 2], [3, 0]]
    assert ragged.torch(copy=True, pad=True).tolist() == [[1, 2], [3, 0]]
    with pytest.raises(ValueError, match="copied"):
        ragged.torch(copy=False, pad=True)
    with pytest.raises(RuntimeError, match="empty"):
        ndd.batch([], dtype=ndd.int32).torch()


def test_without_torch_the_error_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.utils.dlpack", None)
    with pytest.raises(RuntimeError, match=r"Tensor\.torch\(\) requires PyTorch"):
        ndd.tensor([1]).torch()
    with pytest.raises(RuntimeError, match=r"Batch\.torch\(\) requires PyTorch"):
        ndd.batch([1]).torch()


# JAX


def test_jax_takes_tensors():
    made = ndd.tensor([[1.0, 2.0]])
    for out in (jnp.asarray(made), jax.dlpack.from_dlpack(made), jnp.array(made)):
        assert out.tolist() == [[1.0, 2.0]]
        assert out.dtype == jnp.float32
    brain = jax.dlpack.from_dlpack(ndd.tensor([1.5], dtype=ndd.bfloat16))
    assert (brain.dtype, brain.tolist()) == (jnp.bfloat16, [1.5])


@pytest.mark.parametrize("dtype", ["bool", "i8", "u8", "i32", "u32", "f16", "bfloat16", "f32"])
def test_jax_arrays_are_wrapped(dtype):
    given = jnp.asarray([0, 1, 1], ndd.dtype(dtype)._numpy)
    made = ndd.as_tensor(given)
    assert (str(made.dtype), np.asarray(made).tolist()) == (dtype, [0, 1, 1])
    assert address(made) == given.unsafe_buffer_pointer()
    assert address(ndd.tensor(given)) != given.unsafe_buffer_pointer()
    assert jax.dlpack.from_dlpack(made).tolist() == given.tolist()


@pytest.mark.parametrize("dtype", ["bool", "i8", "u8", "i32", "u32", "f16", "bfloat16", "f32"])
def test_tensors_and_batches_become_jax_arrays_that_share_their_memory(dtype):
    made = ndd.zeros(shape=(2, 3), dtype=dtype)
    out = made.jax()
    assert isinstance(out, jax.Array)
    assert (out.shape, str(ndd.dtype(out.dtype))) == ((2, 3), dtype)
    assert out.unsafe_buffer_pointer() == address(made)
    together = ndd.zeros(shape=(3,), dtype=dtype, batch_size=4)
    out = together.jax()
    assert (out.shape, str(ndd.dtype(out.dtype))) == ((4, 3), dtype)
    assert out.unsafe_buffer_pointer() == address(together.tensors[0])


def test_jax_arrays_outlive_their_tensors():
    out = (ndd.tensor([1.0, 2.0]) + 1).jax()
    gc.collect()
    assert out.tolist() == [2, 3]


def test_jax_gets_32_bits_of_64_as_from_numpy():
    assert ndd.tensor(np.arange(3)).jax().dtype == jnp.asarray(np.arange(3)).dtype
    with jax.enable_x64(True):
        assert ndd.tensor(np.arange(3)).jax().dtype == np.int64


def test_strided_and_scalar_tensors_become_jax_arrays():
    made = ndd.tensor(np.arange(12).reshape(3, 4).astype(np.int32))
    assert made[:, 1:3].jax().tolist() == [[1, 2], [5, 6], [9, 10]]
    assert ndd.tensor(3).jax().shape == ()
    assert ndd.zeros(shape=(0, 3)).jax().shape == (0, 3)


def test_ragged_batches_become_jax_arrays_only_with_pad():
    ragged = ndd.batch([[1, 2], [3]])
    assert ragged.jax(pad=True).tolist() == [[1, 2], [3, 0]]
    with pytest.raises(ValueError, match=r"(?s)Batch\.jax.*pad=True"):
        ragged.jax()
    with pytest.raises(RuntimeError, match=r"Batch\.jax.*empty"):
        ndd.batch([], dtype=ndd.int32).jax()


def test_without_jax_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(RuntimeError, match=r"Tensor\.jax\(\) requires JAX"):
        ndd.tensor([1]).jax()
    with pytest.raises(RuntimeError, match=r"Batch\.jax\(\) requires JAX"):
        ndd.batch([1]).jax()


def test_jax_shapes_and_batches_come_in():
    assert ndd.as_tensor(jnp.zeros((2, 0))).shape == (2, 0)
    assert ndd.as_tensor(jnp.float32(3)).item() == 3
    assert ndd.as_batch(jnp.arange(6).reshape(2, 3)).shape == [(3,), (3,)]
    assert ndd.as_batch([jnp.arange(2), jnp.arange(3)]).shape == [(2,), (3,)]


def test_memory_that_runs_backwards_is_copied_for_jax():
    made = ndd.as_tensor(np.arange(6, dtype=np.float32)[::-1])
    assert jax.dlpack.from_dlpack(made).tolist() == [5, 4, 3, 2, 1, 0]


# Numba


def test_numba_works_on_the_memory():
    @numba.njit
    def double(array):
        for index in range(len(array)):
            array[index] *= 2
        return array.sum()

    made = ndd.tensor([1, 2, 3])
    assert double(np.asarray(made)) == 12
    assert np.asarray(made).tolist() == [2, 4, 6]


# Lifetimes


USERS = {
    "tensor": lambda a: ndd.as_tensor(a),
    "batch of rows": lambda a: ndd.as_batch(a.reshape(2, 2)),
    "batch of samples": lambda a: ndd.as_batch([a, a]),
    "sample": lambda a: ndd.as_batch([a, a]).tensors[0],
    "row": lambda a: list(ndd.as_batch(a.reshape(2, 2)))[1],
    "picked": lambda a: ndd.as_batch([a, a]).tensors[1:],
    "broadcast": lambda a: ndd.Batch.broadcast(a, 3),
    "stacked": lambda a: ndd.as_tensor(ndd.as_batch(a.reshape(2, 2))),
    "layout": lambda a: ndd.as_tensor(a, layout="X"),
    "numpy": lambda a: np.asarray(ndd.as_tensor(a)),
    "numpy of a sample": lambda a: np.asarray(ndd.as_batch([a]).tensors[0]),
    "part of numpy": lambda a: np.asarray(ndd.as_tensor(a))[1:][::2],
    "dlpack": lambda a: np.from_dlpack(ndd.as_tensor(a)),
    "capsule": lambda a: ndd.as_tensor(a).__dlpack__(),
    "capsule with version": lambda a: ndd.as_tensor(a).__dlpack__(max_version=(1, 0)),
    "torch": lambda a: ndd.as_tensor(a).torch(),
    "torch of a batch": lambda a: ndd.as_batch(a.reshape(2, 2)).torch(),
    "and back": lambda a: ndd.as_tensor(ndd.as_tensor(a).torch()),
}


@pytest.mark.parametrize("name", USERS)
def test_memory_lives_as_long_as_anybody_uses_it_and_no_longer(name):
    given, owner = owned()
    user = USERS[name](given)
    del given
    gc.collect()
    assert owner() is not None
    if hasattr(user, "tolist"):
        assert np.ravel(user.tolist()).tolist() in (FOUR, [1, 3])
    del user
    gc.collect()
    assert owner() is None


COPIERS = {
    "tensor": lambda a: ndd.tensor(a),
    "batch": lambda a: ndd.batch([a, a]),
    "plus": lambda a: ndd.as_tensor(a) + 0,
    "slice": lambda a: ndd.as_tensor(a)[:3],
    "cast": lambda a: ndd.cast(ndd.as_tensor(a), dtype=ndd.float64),
    "copy": lambda a: ndd.copy(a),
    "deferred": lambda a: deferred(a),
}


def deferred(array):
    with ndd.EvalMode.deferred:
        return ndd.as_tensor(array) + 0


@pytest.mark.parametrize("name", COPIERS)
def test_results_don_t_hold_on_to_their_inputs(name):
    given, owner = owned()
    result = COPIERS[name](given)
    del given
    gc.collect()
    # A worker may still be releasing its input.
    ndd.EvalContext.current()._native_pool().drain()
    assert owner() is None
    assert result.evaluate() is result


def test_memory_of_the_engine_outlives_its_handles():
    views = []
    for number in range(50):
        value = ndd.batch(np.full((4, 1024), number, np.float32)) + 0
        views += [np.asarray(value.tensors[2]), value.torch()[1].numpy()]
        del value
    for _ in range(50):
        ndd.tensor(np.zeros(4096, np.float32)) + 1
    for position, view in enumerate(views):
        assert (view == position // 2).all()


def test_a_torch_tensor_is_freed_after_its_last_use():
    given = torch.arange(4)
    seen = weakref.ref(given)
    made = ndd.as_tensor(given)
    del given
    assert made.torch().tolist() == FOUR
    del made
    gc.collect()
    assert seen() is None


# Leaks


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


LARGE = np.arange(4096, dtype=np.float32)  # large enough for leaks to show
TENSOR, TORCH, JAX = ndd.tensor(LARGE), torch.arange(4096), jnp.arange(4096)
BATCH = ndd.batch([LARGE, LARGE])


def failing():
    try:
        BATCH.slice[9999].evaluate()
    except IndexError:
        pass


ROUND_TRIPS = {
    "as_tensor": lambda: ndd.as_tensor(LARGE),
    "tensor": lambda: ndd.tensor(LARGE),
    "lists": lambda: ndd.tensor([[1, 2], [3, 4]]),
    "bytes": lambda: ndd.as_tensor(b"some bytes"),
    "numpy": lambda: np.asarray(ndd.as_tensor(LARGE)),
    "dlpack": lambda: np.from_dlpack(ndd.as_tensor(LARGE)),
    "unused capsules": lambda: (TENSOR.__dlpack__(), TENSOR.__dlpack__(max_version=(1, 0))),
    "torch": lambda: ndd.as_tensor(TORCH).torch(),
    "jax": lambda: ndd.as_tensor(JAX),
    "batch": lambda: ndd.as_batch([LARGE, LARGE]).torch(),
    "samples": lambda: list(BATCH),
    "plus": lambda: (BATCH + 1).evaluate(),
    "dropped": lambda: BATCH + 1,
    "errors": failing,
}


def grown(trip, times):
    for _ in range(times // 4):
        trip()
    gc.collect()
    before = resident()
    for _ in range(times):
        trip()
    gc.collect()
    return resident() - before


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process's size from /proc")
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_nothing_leaks_over_round_trips(name):
    # Detects a leak of one array in eighty, or of 210 bytes per call.
    assert grown(ROUND_TRIPS[name], 5_000) < 1 << 20


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="reads the process's size from /proc")
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_nothing_leaks_over_a_million_round_trips(name):
    # A million in total; detects 50 bytes per call.
    assert grown(ROUND_TRIPS[name], 1_000_000 // len(ROUND_TRIPS)) < 4 << 20
