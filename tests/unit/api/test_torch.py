"""Beside PyTorch's DataLoader: what its workers return, and what they draw."""

from pathlib import Path

import numpy as np
import pytest

import penstock as ndd
from penstock._runtime.cpus import usable_cpus
from penstock.errors import DecodeError
from penstock.random import RNG

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")


class Draws(data.Dataset):
    """For each index, what the default RNG and RNGs of the data set's own draw."""

    def __init__(self):
        self.unseeded = RNG()
        self.other = RNG()
        self.seeded = RNG(5)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        drawn = ndd.random.uniform(range=[0, 1]).item()
        return drawn, self.unseeded(), self.other(), self.seeded()


def epochs(loader, count=2):
    """Of each epoch, for each RNG what was drawn."""
    return [list(zip(*map(tuple, loader), strict=True)) for _ in range(count)]


def loader_of(dataset, context, workers=2, **options):
    return data.DataLoader(
        dataset,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=context,
        **options,
    )


@pytest.fixture(autouse=True)
def keep_the_default_rng():
    rng = ndd.random.get_default_rng()
    state = rng.state
    yield
    rng.state = state


@pytest.mark.parametrize("seed", [True, False], ids=["seeded", "not seeded"])
def test_forked_workers_and_epochs_draw_different_numbers(seed):
    if seed:
        ndd.random.set_seed(1)
    first, second = epochs(loader_of(Draws(), "fork"))
    for number in range(3):
        assert len({*first[number], *second[number]}) == 8, f"RNG {number}"
    assert not {*first[1], *second[1]} & {*first[2], *second[2]}
    # A seed that was given is a promise.
    assert len({*first[3], *second[3]}) == 2


def test_forked_workers_repeat_themselves_under_both_seeds():
    def run(seed, torch_seed):
        ndd.random.set_seed(seed)
        torch.manual_seed(torch_seed)
        return [epoch[0] for epoch in epochs(loader_of(Draws(), "fork"))]

    assert run(1, 1) == run(1, 1)
    assert run(1, 1) != run(2, 1)
    assert run(1, 1) != run(1, 2)


def test_persistent_workers_go_on_in_the_next_epoch():
    ndd.random.set_seed(1)
    first, second = epochs(loader_of(Draws(), "fork", persistent_workers=True))
    assert len({*first[0], *second[0]}) == 8
    assert len({*first[1], *second[1]}) == 8


@pytest.mark.heavy
@pytest.mark.timeout(120)
def test_worker_init_fn_makes_spawned_workers_like_forked_ones():
    def run(context):
        ndd.random.set_seed(1)
        torch.manual_seed(1)
        return list(loader_of(Everything(), context, worker_init_fn=ndd.torch.worker_init_fn))

    forked, spawned = run("fork"), run("spawn")
    for mine, theirs in zip(forked, spawned, strict=True):
        assert mine[0] == theirs[0]
        check_values(*mine[4:])
        check_values(*theirs[4:])
    assert len({drawn for drawn, *_ in spawned}) == 4
    assert len({word for _, one, other, *_ in spawned for word in (one, other)}) == 8
    assert [drawn for drawn, *_ in run("fork")] == [drawn for drawn, *_ in forked]


@pytest.mark.slow
def test_spawned_workers_draw_different_numbers_by_themselves():
    torch.manual_seed(1)
    [drawn] = epochs(loader_of(Draws(), "spawn"), count=1)
    for number in range(3):
        assert len({*drawn[number]}) == 4, f"RNG {number}"


def test_worker_init_fn_is_for_workers():
    with pytest.raises(RuntimeError, match="not a worker"):
        ndd.torch.worker_init_fn(0)


def test_a_seed_set_in_a_worker_counts():
    def init(worker_id):
        ndd.random.set_seed(100 + worker_id)

    [drawn] = epochs(loader_of(Draws(), "fork", worker_init_fn=init), count=1)
    expected = []
    for seed in (100, 101):
        ndd.random.set_seed(seed)
        expected += [ndd.random.uniform(range=[0, 1]).item() for _ in range(2)]
    assert sorted(drawn[0]) == sorted(expected)


def test_the_parent_draws_on_as_if_nothing_had_happened():
    ndd.random.set_seed(3)
    expected = [ndd.random.uniform(range=[0, 1]).item() for _ in range(2)]
    ndd.random.set_seed(3)
    drawn = [ndd.random.uniform(range=[0, 1]).item()]
    epochs(loader_of(Draws(), "fork"), count=1)
    drawn.append(ndd.random.uniform(range=[0, 1]).item())
    assert drawn == expected


class Images(data.Dataset):
    """Images, as PyTorch's tensors or ours."""

    def __init__(self, ours):
        self.ours = ours

    def __len__(self):
        return 4

    def __getitem__(self, index):
        image = ndd.tensor(np.full((2, 3), index, np.uint8))
        return image if self.ours else image.torch()


class Everything(Draws):
    """Draws, and values that a worker returns as they are."""

    def __init__(self):
        super().__init__()
        self.offset = ndd.tensor([1, 2, 3])  # a data set may hold values, too

    def __getitem__(self, index):
        image = ndd.tensor(np.full((2, 3), index, np.uint8), layout="HW")
        batch = ndd.batch([image, image[:1]])
        return *super().__getitem__(index), index, image, batch, self.offset + index


def check_values(index, image, batch, offset):
    assert isinstance(image, ndd.Tensor)
    assert image.layout == "HW"
    assert np.all(np.asarray(image) == index)
    assert isinstance(batch, ndd.Batch)
    assert batch.shape == [(2, 3), (1, 3)]
    assert np.asarray(offset).tolist() == [1 + index, 2 + index, 3 + index]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ours", [True, False])
def test_default_collate_stacks_tensors(ours, workers):
    loader = data.DataLoader(Images(ours), batch_size=2, num_workers=workers)
    batches = list(loader)
    assert all(type(batch) is torch.Tensor for batch in batches)
    assert [batch.shape for batch in batches] == [(2, 2, 3)] * 2
    assert [batch[:, 0, 0].tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_default_collate_stacks_batches_in_any_structure():
    pairs = ndd.batch([[1, 2], [3, 4]])
    found = data.default_collate([{"a": (pairs, 1)}, {"a": (pairs + 10, 2)}])
    assert found["a"][0].tolist() == [[[1, 2], [3, 4]], [[11, 12], [13, 14]]]
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([ndd.tensor([1]), ndd.tensor([1, 2])])


class Threads(data.Dataset):
    """How many threads a worker has, according to the API and to the pool that does the work."""

    def __init__(self):
        self.held = ndd.tensor([1, 2, 3])  # unpickling it must not decide on the number

    def __len__(self):
        return 4

    def __getitem__(self, index):
        (self.held + index).evaluate()
        pool = ndd.EvalContext.current()._native_pool()
        return ndd.get_num_threads(), pool.num_threads


@pytest.mark.parametrize(
    "context", ["fork", pytest.param("spawn", marks=[pytest.mark.heavy, pytest.mark.timeout(120)])]
)
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("explicit", [None, 3])
def test_workers_divide_the_cpus(context, explicit, monkeypatch):
    cpus = usable_cpus()
    (ndd.tensor([1]) + 1).evaluate()  # the pool that a fork inherits
    if explicit:
        monkeypatch.setenv("PENSTOCK_NUM_THREADS", str(explicit))
    for workers in (2, 1, cpus + 3):
        expected = explicit or max(1, cpus // workers)
        found = list(loader_of(Threads(), context, workers, timeout=100))
        assert found == [[expected, expected]] * 4, workers
        if context == "spawn":
            break


def test_a_number_that_was_set_counts_in_workers():
    ndd.set_num_threads(3)
    try:
        assert list(loader_of(Threads(), "fork")) == [[3, 3]] * 4
    finally:
        ndd.set_num_threads(None)


class Large(data.Dataset):
    """Values that are worth sharing, and small ones that are not."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index == 0:
            return ndd.tensor(np.arange(90_000, dtype=np.float32).reshape(300, 300), layout="HW")
        rows = [np.full((200 * (1 + number), 7, 5), number, np.int64) for number in range(4)]
        return ndd.batch(rows if index == 1 else [row[:2] for row in rows], layout="HWC")


def is_in_shared_memory(array):
    address = array.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= address < end:
            return line.split()[1].endswith("s")
    raise AssertionError(f"{address:x} is not mapped")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="/proc tells what is shared")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_large_values_of_workers_are_handed_over_in_shared_memory(context):
    """So they are copied once, into that memory, and not through a pipe."""
    made = list(loader_of(Large(), context, workers=1, timeout=100))
    for value, expected in zip(made, Large(), strict=False):
        assert (value.layout, value.dtype) == (expected.layout, expected.dtype)
        is_batch = isinstance(value, ndd.Batch)
        pairs = zip(value, expected, strict=True) if is_batch else [(value, expected)]
        for found, wanted in pairs:
            np.testing.assert_array_equal(found, wanted)
    image, rows, few = made
    assert is_in_shared_memory(np.asarray(image))
    assert all(is_in_shared_memory(np.asarray(row)) for row in rows)
    assert not is_in_shared_memory(np.asarray(few.tensors[0]))
    # The values are like any others: not tied to the worker, which is gone.
    np.testing.assert_array_equal(image + 1, np.arange(1, 90_001).reshape(300, 300))
    assert [row.shape for row in rows + 1] == [(200 * (1 + number), 7, 5) for number in range(4)]


class Undecodable(data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        images = ndd.decoders.image(ndd.batch([np.frombuffer(b"no image", np.uint8)] * 2))
        return images if index == 1 else ndd.batch([index])


@pytest.mark.parametrize("mode", [ndd.EvalMode.eager, ndd.EvalMode.sync_cpu], ids=str)
def test_what_failed_in_a_worker_raises_where_it_is_read(mode):
    # The loader would wait for ever for what could not be pickled.
    loader = loader_of(Undecodable(), "fork", workers=1, timeout=60)
    with ndd.EvalMode.eager:
        batches = iter(loader)
    with mode:
        good, bad, last = batches
        assert good.batch_size == last.batch_size == 1
        assert bad.batch_size == 2
        with pytest.raises(DecodeError, match="this is none of JPEG"):
            bad.evaluate()
