"""`penstock.ray.Loader` without workers: what it gives, where it resumes, what it refuses.

What workers give is compared with this, in `tests/cluster`.
"""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import penstock as ndd

SHARED = ndd.random.RNG(5)


@pytest.fixture
def folder(tmp_path):
    for number in range(10):
        np.save(tmp_path / f"{number}.npy", np.full(3, number, np.float32))
    return tmp_path


def drawn_too(reader):
    for (rows,) in reader.next_epoch():
        yield rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)


def make(folder, loop=drawn_too, batch_size=2, seed=4, **options):
    mine = {key: options.pop(key) for key in ("ahead", "workers") if key in options}
    options = {"shuffle": "global", "seed": 3, **options}
    reader = ndd.readers.Numpy(file_root=str(folder), **options)
    return ndd.ray.Loader(loop, reader, batch_size=batch_size, seed=seed, **mine)


def read(items):
    return [(rows.torch()[:, 0].tolist(), drawn.torch().tolist()) for rows, drawn in items]


def test_items_are_those_of_the_plain_loop(folder):
    reader = ndd.readers.Numpy(file_root=str(folder), shuffle="global", seed=3)
    for _ in range(2):
        expected = [rows.torch()[:, 0].tolist() for (rows,) in reader.next_epoch(batch_size=2)]
        assert len(expected) == 5
    found = make(folder)
    read(found)
    assert [rows for rows, _ in read(found)] == expected


def test_random_numbers_are_those_of_the_torch_loader(folder):
    torch = pytest.importorskip("torch")
    assert torch.__version__
    reader = ndd.readers.Numpy(file_root=str(folder), shuffle="global", seed=3)

    def fn(rows):
        return rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)

    other = ndd.torch.Loader(reader, fn, batch_size=2, rng=ndd.random.RNG(4))
    expected = [(rows[:, 0].tolist(), drawn.tolist()) for rows, drawn in other]
    assert read(make(folder)) == expected


@pytest.mark.parametrize("ahead", [None, 0, 1, 9])
def test_a_loader_resumes_after_any_batch(folder, ahead):
    whole = make(folder, ahead=ahead)
    epochs = [read(whole) for _ in range(3)]
    assert len({tuple(drawn) for epoch in epochs for _, drawn in epoch}) == 15
    for at in range(6):
        loader = make(folder, ahead=ahead)
        read(loader)
        batches = iter(loader)
        assert read(next(batches) for _ in range(at)) == epochs[1][:at]
        state = json.loads(json.dumps(loader.state_dict()))
        resumed = make(folder, ahead=ahead, seed=99)
        resumed.load_state_dict(state)
        assert len(resumed) == 5
        if at < 5:
            assert read(resumed) == epochs[1][at:]
        assert read(resumed) == epochs[2]


def test_an_epoch_after_one_that_was_left_is_complete(folder):
    loader, expected = make(folder), make(folder)
    next(iter(loader))
    expected.set_epoch(1)
    assert read(loader) == read(expected)


def test_one_iterator_at_a_time(folder):
    loader = make(folder)
    batches = iter(loader)
    next(batches)
    assert len(list(loader)) == 5
    with pytest.raises(RuntimeError, match="one iterator at a time"):
        next(batches)


def test_a_loop_over_prefetch_has_the_state_of_its_item(folder):
    epochs = [read(make(folder))]
    loader = make(folder)
    for step, _ in enumerate(ndd.prefetch(loader)):
        state = loader.state_dict()
        resumed = make(folder)
        resumed.load_state_dict(state)
        rest = read(resumed) if step < 4 else []
        assert rest == epochs[0][step + 1 :]


def test_ranks_divide_the_data_and_differ_in_what_they_draw(folder, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    found = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        loader = make(folder, batch_size=1)
        assert len(loader) == 5
        found.append(read(loader))
    assert sorted(rows[0] for epoch in found for rows, _ in epoch) == [*range(10)]
    drawn = [value for epoch in found for _, values in epoch for value in values]
    assert len({*drawn}) == 10


@pytest.mark.filterwarnings("ignore:.*different numbers of batches")
@pytest.mark.parametrize("chain", [(1, 2, 3), (3, 1, 2), (2, 3, 2)], ids=str)
def test_another_world_size_reads_each_sample_once(folder, chain):
    state, given, drawn = None, [], []
    for world, steps in zip(chain, (1, 1, None), strict=True):
        states = []
        for rank in range(world):
            # With one sample left over, a rank has nothing to give in the last step.
            shards = {"num_shards": world, "shard_id": rank, "last_batch": "partial"}
            loader = make(folder, batch_size=1, **shards)
            if state is not None:
                loader.load_state_dict(state)
            batches = iter(loader)
            items = [next(batches) for _ in range(steps)] if steps else [*batches]
            given += [row for rows, _ in read(items) for row in rows]
            drawn += [value for _, values in read(items) for value in values]
            states.append(loader.state_dict())
        state = states[-1]  # that of any rank will do
    assert sorted(given) == [*range(10)]
    assert len({*drawn}) == len(drawn)


# What a loop must not do


def own_rng(reader):
    rng = ndd.random.RNG(7)
    for (rows,) in reader.next_epoch():
        yield rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size, rng=rng)


def shared_rng(reader):
    for (rows,) in reader.next_epoch():
        yield rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size, rng=SHARED)


def two_batches(reader):
    batches = reader.next_epoch()
    for (rows,) in batches:
        yield rows, next(batches)[0]


def two_items(reader):
    yield 1
    yield from reader.next_epoch()


def no_item(reader):
    for _ in reader.next_epoch():
        break
    if reader is None:
        yield 1


def another_size(reader):
    yield from reader.next_epoch(batch_size=3)


def moved_reader(reader):
    reader.reset()
    yield from reader.next_epoch()


def called_reader(reader):
    yield reader(batch_size=2)


def chosen_epoch(reader):
    yield from reader.next_epoch(epoch=3)


def no_generator(reader):
    return [*reader.next_epoch()]


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (own_rng, "draws from an RNG of its own.*Leave out `rng=`"),
        (shared_rng, "draws from an RNG of its own"),
        (two_batches, "second batch before it yields.*larger `batch_size`"),
        (two_items, "yielded an item before it read"),
        (no_item, "ended without an item"),
        (another_size, "batches of 3.*`batch_size=2`"),
        (moved_reader, r"can't use `reader.reset`"),
        (called_reader, "can't call the reader"),
        (chosen_epoch, "can't choose the epoch"),
        (no_generator, "second batch|must be a generator function"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_loops_that_could_not_be_repeated_are_refused(folder, loop, reason):
    with pytest.raises((RuntimeError, TypeError, ValueError), match=reason):
        next(iter(make(folder, loop)))


def test_a_loop_that_moves_another_reader_is_refused(folder):
    other = ndd.readers.Numpy(file_root=str(folder))

    def loop(reader):
        yield from zip(
            reader.next_epoch(), other.next_epoch(batch_size=2, restart=True), strict=False
        )

    with pytest.raises(RuntimeError, match="moves a Numpy other than the reader"):
        next(iter(make(folder, loop)))


def test_each_call_of_the_loop_is_for_one_batch(folder):
    """A counter in the loop can't make an item depend on who made the items before."""

    def loop(reader):
        for count, (rows,) in enumerate(reader.next_epoch(batch_size=2)):
            yield rows, count, reader.epoch_size

    assert [item[1:] for item in make(folder, loop)] == [(0, 10)] * 5


def test_errors_of_the_loop_come_at_their_batch(folder):
    def loop(reader):
        for (rows,) in reader.next_epoch():
            if rows.torch()[0, 0] == 4:
                raise KeyError("the third")
            yield rows

    loader = make(folder, loop, shuffle=None)
    batches = iter(loader)
    next(batches)
    next(batches)
    with pytest.raises(KeyError, match="the third"):
        next(batches)
    # It counts as given, as with readers.
    assert next(batches).torch()[:, 0].tolist() == [6, 7]


# Samples that can't be read


def bad_files(folder):
    names = [f"{number}.bin" for number in range(10)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(bytes([number]) * 3)
    for number in (3, 4):
        (folder / names[number]).unlink()
    return {"file_root": str(folder), "files": names, "seed": 3, "shuffle": "global"}


@pytest.mark.parametrize("policy", ["skip", "substitute"])
def test_bad_samples_are_treated_as_readers_do(tmp_path, policy):
    options = {**bad_files(tmp_path), "on_error": policy}

    def plain(reader):
        yield from reader.next_epoch(batch_size=2)

    reader = ndd.readers.File(**options)
    expected = [labels.torch().flatten().tolist() for _, labels in plain(reader)]
    loader = ndd.ray.Loader(plain, ndd.readers.File(**options), batch_size=2)
    assert [labels.torch().flatten().tolist() for _, labels in loader] == expected
    assert sorted(loader.reader.errors) == sorted(reader.errors)
    assert len(reader.errors) == 2


def test_batches_without_a_good_sample_are_left_out(tmp_path):
    options = {**bad_files(tmp_path), "on_error": "skip", "shuffle": None}

    def loop(reader):
        yield from reader.next_epoch()

    found = [*ndd.ray.Loader(loop, ndd.readers.File(**options), batch_size=1)]
    assert len(found) == 8


def test_too_many_bad_samples_are_an_error(tmp_path):
    options = {**bad_files(tmp_path), "on_error": "skip", "max_errors": 1}

    def loop(reader):
        yield from reader.next_epoch()

    with pytest.raises(RuntimeError, match=r"2 samples .*`max_errors` allows \(1\)"):
        list(ndd.ray.Loader(loop, ndd.readers.File(**options), batch_size=2))


def test_what_a_decoder_leaves_out_is_listed(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.jpg").write_bytes(b"no image")
    reader = ndd.readers.File(files=[str(path) for path in sorted(tmp_path.iterdir())])

    def loop(reader):
        for jpegs, _ in reader.next_epoch():
            yield ndd.decoders.image(jpegs, on_error="skip").batch_size

    loader = ndd.ray.Loader(loop, reader, batch_size=2)
    assert list(loader) == [0, 0]
    assert [error.sample for error in reader.errors] == [0, 1, 2, 3]


# Arguments and clusters


@pytest.mark.parametrize(
    "argument",
    [
        {"loop": 3},
        {"reader": [1]},
        {"batch_size": None},
        {"workers": -1},
        {"workers": 1.5},
        {"num_cpus": "two"},
        {"seed": "x"},
        {"ahead": -1},
        {"options": [1]},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(folder, argument):
    reader = ndd.readers.Numpy(file_root=str(folder))
    given = {"loop": drawn_too, "reader": reader, "batch_size": 2, **argument}
    [name] = argument
    with pytest.raises((TypeError, ValueError), match=name):
        ndd.ray.Loader(given.pop("loop"), given.pop("reader"), **given)


def test_a_closed_loader_says_so(folder):
    with make(folder) as loader:
        next(iter(loader))
    with pytest.raises(RuntimeError, match="closed"):
        iter(loader)


def run(program, **variables):
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        env={**environment, **variables},
    )


PROGRAM = """
import sys
import penstock as ndd
def loop(reader):
    yield from reader.next_epoch()
reader = ndd.readers.Numpy(file_root={folder!r})
assert "ray" not in sys.modules
ndd.ray.Loader(loop, reader, batch_size=2)
assert "ray" not in sys.modules
ndd.ray.Loader(loop, reader, batch_size=2, workers=1)
"""


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (
            None,
            "RuntimeError: ray.Loader: this process is not connected to a Ray cluster.",
        ),
        ("127.0.0.1:1", "ConnectionError: ray.Loader: no Ray cluster answers at 127.0.0.1:1"),
        ("nowhere.invalid:6379", "no Ray cluster answers at nowhere.invalid:6379"),
    ],
)
def test_without_a_cluster_the_error_says_what_to_do(folder, address, reason):
    pytest.importorskip("ray")
    variables = {} if address is None else {"RAY_ADDRESS": address}
    done = run(PROGRAM.format(folder=str(folder)), **variables)
    assert reason in done.stderr
    assert "workers=0" in done.stderr


def test_without_ray_the_error_names_the_extra(folder):
    hidden = "import sys; sys.modules['ray'] = None\n"
    program = hidden + PROGRAM.format(folder=str(folder)).replace('assert "ray"', 'assert "no"')
    assert "pip install 'penstock[ray]'" in run(program).stderr


# Values that come out of shared memory


def test_read_only_buffers_are_not_copied_when_they_are_unpickled():
    batch = ndd.batch([np.arange(24, dtype=np.float32).reshape(2, 12) + i for i in range(3)])
    buffers = []
    pickled = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    memory = np.zeros(sum(buffer.raw().nbytes for buffer in buffers) + 64, np.uint8)
    start = -memory.ctypes.data % 64
    stored = memory[start : start + buffers[0].raw().nbytes]
    stored[:] = np.frombuffer(buffers[0].raw(), np.uint8)
    stored.flags.writeable = False
    made = pickle.loads(pickled, buffers=[stored])
    assert made._value.memory(0, False).address == stored.ctypes.data
    # PyTorch would write to memory that nobody may write to.
    made.torch().add_(1)
    assert np.array_equal(made.torch().numpy(), batch.torch().numpy())
    assert not np.asarray(made.tensors[0]).flags.writeable
