"""The loader for JAX, on one device and on several."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import pytest

import penstock as ndd
from penstock.errors import DecodeError

jax = pytest.importorskip("jax")

SAMPLES = 10


@pytest.fixture
def reader(tmp_path):
    """Makes readers of files that hold their number three times."""
    files = [tmp_path / f"{number}.bin" for number in range(SAMPLES)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number] * 3))

    def make(**options):
        return ndd.readers.File(files=files, **options)

    return make


def first_column(loader):
    return [data[:, 0].tolist() for data, _ in loader]


def test_batches_are_jax_arrays(reader):
    loader = ndd.jax.Loader(reader(), batch_size=5)
    for epoch in range(2):
        given = list(loader)
        assert len(given) == len(loader) == 2, epoch
        for data, labels in given:
            assert isinstance(data, jax.Array)
            assert (data.shape, data.dtype) == ((5, 3), jax.numpy.uint8)
            assert (labels.shape, labels.dtype) == ((5, 1), jax.numpy.int32)
        assert [data[:, 0].tolist() for data, _ in given] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_the_function_may_return_nested_results(reader):
    def double(data, labels):
        return {"data": data * 2, "rest": (labels, 7)}

    [item] = ndd.jax.Loader(reader(), double, batch_size=SAMPLES)
    assert item["data"][3].tolist() == [6, 6, 6]
    assert item["rest"][0].ravel().tolist() == list(range(SAMPLES))
    assert int(item["rest"][1]) == 7


def test_a_loop_that_is_left_is_followed_by_a_complete_epoch(reader):
    loader = ndd.jax.Loader(reader(), batch_size=5, prefetch=1)
    for _ in loader:
        break
    assert len(loader) == 2
    assert first_column(loader) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    left = iter(loader)
    next(left)
    assert len(first_column(loader)) == 2
    with pytest.raises(RuntimeError, match=r"jax\.Loader: this iterator has ended"):
        next(left)


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("options", [{}, {"random_shuffle": True, "seed": 3}], ids=["", "shuffled"])
def test_the_state_is_that_of_the_batch_in_hand(reader, prefetch, options):
    loader = ndd.jax.Loader(reader(**options), batch_size=2, prefetch=prefetch)
    states, batches = [loader.state_dict()], []
    for _ in range(2):
        for data, _ in loader:
            batches.append(data[:, 0].tolist())
            states.append(loader.state_dict())
    for at, state in enumerate(states[:-1]):
        other = ndd.jax.Loader(reader(**options), batch_size=2, prefetch=prefetch)
        other.load_state_dict(state)
        left = 5 - at % 5
        assert len(other) == 5, at
        assert first_column(other) == batches[at : at + left], at
        if at < 5:
            assert first_column(other) == batches[5:], at


def test_a_loader_in_use_goes_back_to_a_state(reader):
    loader = ndd.jax.Loader(reader(), batch_size=5)
    running = iter(loader)
    next(running)
    state = loader.state_dict()
    next(running)
    loader.load_state_dict(state)
    assert first_column(loader) == [[5, 6, 7, 8, 9]]
    with pytest.raises(RuntimeError, match="or the epoch or the state was set"):
        next(running)


def drawn_too(data, labels):
    return data, ndd.random.uniform(range=[0, 1], batch_size=data.batch_size)


def read(loader):
    return [(data[:, 0].tolist(), drawn.tolist()) for data, drawn in loader]


def test_a_resumed_loader_draws_the_same_numbers(reader):
    def make(seed):
        made = reader(shuffle="global", seed=1)
        return ndd.jax.Loader(made, drawn_too, batch_size=2, rng=ndd.random.RNG(seed))

    loader = make(4)
    states, batches = [], []
    for _ in range(2):
        for data, drawn in loader:
            batches.append((data[:, 0].tolist(), drawn.tolist()))
            states.append(json.loads(json.dumps(loader.state_dict())))
    assert len({value for _, values in batches for value in values}) == 20
    for at, state in enumerate(states[:9], 1):
        other = make(5)
        other.load_state_dict(state)
        rest = read(other)
        assert rest == batches[at : at + len(rest)], at
        assert len(rest) == (5 - at % 5), at
    other = make(4)
    other.set_epoch(1)
    assert read(other) == batches[5:]


def test_errors_are_raised_at_their_batch(reader):
    def fail_at_second(data, labels):
        return ndd.decoders.image(data) if labels.tensors[0].item() else data

    batches = iter(ndd.jax.Loader(reader(), fail_at_second, batch_size=5))
    assert next(batches).shape == (5, 3)
    with pytest.raises(DecodeError):
        next(batches)


def test_samples_of_different_shapes_are_refused_in_words(tmp_path):
    files = [tmp_path / "a", tmp_path / "b"]
    for size, file in enumerate(files, 1):
        file.write_bytes(bytes(size))
    loader = ndd.jax.Loader(ndd.readers.File(files=files), batch_size=2)
    with pytest.raises(ValueError, match=r"Batch\.jax.*shape"):
        list(loader)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"fn": 3}, "`fn` must be a function"),
        ({"batch_size": 0}, "`batch_size` must be a positive integer"),
        ({"prefetch": -1}, "`prefetch` can't be negative"),
        ({"rng": 3}, "`rng` must be an RNG"),
        ({"reader": [1]}, "`reader` must be a reader"),
    ],
)
def test_wrong_arguments_are_named(reader, change, says):
    given = {"reader": reader(), "batch_size": 2, **change}
    with pytest.raises((TypeError, ValueError), match=says):
        ndd.jax.Loader(given.pop("reader"), **given)


def test_a_wrong_state_is_a_type_error(reader):
    with pytest.raises(TypeError, match=r"a result of `jax\.Loader\.state_dict\(\)`"):
        ndd.jax.Loader(reader(), batch_size=2).load_state_dict({"state": "x"})


ON_FOUR_DEVICES = """
    import sys
    import numpy as np
    import penstock as ndd

    assert "jax" not in sys.modules
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    assert jax.device_count() == 4
    mesh = jax.make_mesh((4,), ("data",))
    split = NamedSharding(mesh, PartitionSpec("data"))
    everywhere = NamedSharding(mesh, PartitionSpec())

    made = ndd.batch(np.arange(24, dtype=np.float32).reshape(8, 3)).jax(split)
    assert made.sharding == split
    assert [shard.data.shape for shard in made.addressable_shards] == [(2, 3)] * 4
    np.testing.assert_array_equal(made, np.arange(24).reshape(8, 3))
    assert ndd.tensor([1, 2]).jax(jax.devices()[2]).devices() == {jax.devices()[2]}
    assert ndd.tensor([1, 2]).jax(everywhere).sharding.is_fully_replicated

    reader = ndd.readers.File(files=sys.argv[1:], last_batch="drop")
    for sharding in (split, (split, everywhere)):
        loader = ndd.jax.Loader(reader, batch_size=8, sharding=sharding)
        [(data, labels)] = loader
        assert data.sharding == split
        assert labels.sharding == (split if sharding is split else everywhere)
        assert data[:, 0].tolist() == list(range(8))
        doubled = jax.jit(lambda x: x * 2)(data)
        assert doubled.sharding.is_equivalent_to(split, 2)
    try:
        ndd.batch([[1, 2, 3]] * 6).jax(split)
    except ValueError as error:
        assert "divide" in str(error)
    else:
        raise AssertionError("6 samples on 4 devices")
    print("done")
"""


def test_arrays_are_put_on_several_devices(reader, tmp_path):
    reader()
    files = [str(tmp_path / f"{number}.bin") for number in range(SAMPLES)]
    flags = "--xla_force_host_platform_device_count=4"
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ON_FOUR_DEVICES), *files],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "done"


def test_jax_numpy_takes_tensors_and_batches():
    assert jax.numpy.asarray(ndd.tensor([1.5, 2])).tolist() == [1.5, 2]
    assert jax.numpy.asarray(ndd.batch([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"Batch\.jax.*shape"):
        jax.numpy.asarray(ndd.batch([[1, 2], [3]]))


IN_TWO_PROCESSES = """
    import sys
    import jax
    import numpy as np
    import penstock as ndd
    from jax.sharding import NamedSharding, PartitionSpec

    port, rank, *files = sys.argv[1:]
    jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=int(rank))
    assert (jax.device_count(), jax.local_device_count()) == (4, 2)
    by_sample = NamedSharding(jax.make_mesh((4,), ("data",)), PartitionSpec("data"))
    reader = ndd.readers.File(files=files[:9])  # 4 for one process, and 5 for the other
    loader = ndd.jax.Loader(reader, batch_size=2, sharding=by_sample)
    assert len(loader) == 3
    seen = []
    for data, _ in loader:
        assert (data.shape, data.sharding) == ((4, 3), by_sample)
        for shard in data.addressable_shards:
            start = shard.index[0].start
            assert start // 2 == int(rank), (rank, start)
            seen += np.asarray(shard.data)[:, 0].tolist()
    print(seen)
"""


def test_processes_have_their_own_shards(reader, tmp_path):
    reader()
    files = [str(tmp_path / f"{number}.bin") for number in range(SAMPLES)]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    flags = "--xla_force_host_platform_device_count=2"
    program = [sys.executable, "-c", textwrap.dedent(IN_TWO_PROCESSES), port]
    running = [
        subprocess.Popen(
            [*program, str(rank), *files],
            env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [each.communicate(timeout=120) for each in running]
    finally:
        for each in running:
            each.kill()
            each.wait()
    assert [each.returncode for each in running] == [0, 0], outputs
    first, second = (json.loads(text) for text, _ in outputs)
    assert first[:4] == [0, 1, 2, 3]
    assert second[:5] == [4, 5, 6, 7, 8]
