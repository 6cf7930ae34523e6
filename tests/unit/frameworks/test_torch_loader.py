"""`penstock.torch.Loader` in loops over PyTorch's and torchdata's own classes."""

import json
import pickle
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest
from tests.data_sets import MAKERS

import penstock as ndd

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

Pair = namedtuple("Pair", "rows drawn")


@pytest.fixture
def folder(tmp_path):
    for number in range(10):
        np.save(tmp_path / f"{number}.npy", np.full(3, number, np.float32))
    return tmp_path


def drawn_too(rows):
    return rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)


def make(folder, fn=drawn_too, batch_size=2, rng=4, prefetch=2, **options):
    options = {"shuffle": "global", "seed": 3, **options}
    reader = ndd.readers.Numpy(file_root=str(folder), **options)
    rng = None if rng is None else ndd.random.RNG(rng)
    return ndd.torch.Loader(reader, fn, batch_size=batch_size, rng=rng, prefetch=prefetch)


def read(batches):
    """The samples of each batch, and what was drawn for them."""
    return [(rows[:, 0].tolist(), drawn.tolist()) for rows, drawn in batches]


def samples(batches):
    return [number for rows, _ in read(batches) for number in rows]


def test_each_iteration_is_another_epoch(folder):
    loader = make(folder)
    assert isinstance(loader, data.DataLoader)
    first, second = read(loader), read(loader)
    assert first != second
    for epoch in (first, second):
        assert len(epoch) == len(loader) == 5
        assert sorted(number for rows, _ in epoch for number in rows) == [*range(10)]
    drawn = [value for epoch in (first, second) for _, values in epoch for value in values]
    assert len(set(drawn)) == 20


def test_an_epoch_after_one_that_was_left_is_complete(folder):
    loader, expected = make(folder), make(folder)
    for _ in loader:
        break
    expected.set_epoch(1)
    assert read(loader) == read(expected)


@pytest.mark.parametrize("prefetch", [0, 1, 2, 9])
@pytest.mark.parametrize("options", [{}, {"last_batch": "pad", "batch_size": 3}], ids=str)
def test_a_loader_resumes_after_any_batch(folder, prefetch, options):
    whole = make(folder, prefetch=prefetch, **options)
    epochs = [read(whole) for _ in range(3)]
    for at in range(len(epochs[1]) + 1):
        loader = make(folder, prefetch=prefetch, **options)
        read(loader)
        batches = iter(loader)
        assert read(next(batches) for _ in range(at)) == epochs[1][:at]
        state = json.loads(json.dumps(loader.state_dict()))
        del batches
        # With another seed, since the state has it all.
        resumed = make(folder, prefetch=prefetch, rng=99, **options)
        resumed.load_state_dict(state)
        assert len(resumed) == len(epochs[1])
        if at < len(epochs[1]):
            assert read(resumed) == epochs[1][at:], at
        assert read(resumed) == epochs[2], at


def test_a_state_can_be_taken_and_loaded_at_any_time(folder):
    loader = make(folder)
    new = loader.state_dict()
    first = read(loader)
    finished = loader.state_dict()
    second = read(loader)
    loader.load_state_dict(new)
    assert read(loader) == first
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(finished)
    assert read(loader) == second
    with pytest.raises(RuntimeError, match="one iterator at a time"):
        next(batches)


@pytest.mark.parametrize("state", [None, {}, {"state": "x"}, [1]])
def test_other_states_are_refused(folder, state):
    with pytest.raises((TypeError, ValueError), match="state_dict"):
        make(folder).load_state_dict(state)


def test_a_refused_state_changes_nothing(folder):
    loader = make(folder)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    for key, value in {"version": 7, "base": "y"}.items():
        with pytest.raises(ValueError):
            loader.load_state_dict({**state, key: value})
    assert loader.state_dict() == state
    assert len(list(batches)) == 4


def test_the_loops_own_draws_do_not_disturb_the_loader(folder):
    ndd.random.set_seed(1)
    expected = read(make(folder, rng=None))
    ndd.random.set_seed(1)
    found, states, loader = [], [], make(folder, rng=None)
    for batch in loader:
        found += read([batch])
        ndd.random.uniform(range=[0, 1]).evaluate()
        states.append(loader.state_dict())
    assert found == expected
    resumed = make(folder, rng=None)
    resumed.load_state_dict(states[2])
    assert read(resumed) == expected[3:]


@pytest.mark.filterwarnings("ignore:Loader. the shards have different numbers")
@pytest.mark.parametrize("policy", ["wrap", "pad", "partial", "drop"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_the_length_is_the_number_of_batches(folder, policy, shards, batch_size):
    for shard in range(shards):
        loader = make(
            folder,
            batch_size=batch_size,
            shuffle=None,
            last_batch=policy,
            num_shards=shards,
            shard_id=shard,
        )
        for _ in range(4):
            length = len(loader)
            batches = iter(loader)
            next(batches)
            assert len(loader) == length
            assert 1 + len(list(batches)) == length


def test_what_the_function_returns_may_be_nested(folder):
    def fn(rows):
        return {"a": [rows, Pair(rows, "text")], "b": (rows.tensors[0], None, torch.ones(1))}

    first = next(iter(make(folder, fn)))
    rows, pair = first["a"]
    assert rows.shape == (2, 3)
    assert isinstance(pair, Pair)
    assert torch.equal(pair.rows, rows)
    assert pair.drawn == "text"
    assert torch.equal(first["b"][0], rows[0])
    assert first["b"][1:] == (None, torch.ones(1))


def test_without_a_function_outputs_are_the_readers(folder):
    [rows] = next(iter(make(folder, None, shuffle=None)))
    assert rows.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_a_dictionary_of_features_is_one_argument(tmp_path):
    reader = ndd.readers.TFRecord(**MAKERS["TFRecord"](tmp_path, 4))
    seen = []
    loader = ndd.torch.Loader(reader, lambda features: seen.append(features) or 1, batch_size=2)
    assert list(loader) == [1, 1]
    assert all(isinstance(features, dict) for features in seen)


def labelled(tmp_path, **options):
    for number in range(4):
        path = tmp_path / f"class{number % 2}" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes([number] * 3))
    reader = ndd.readers.File(file_root=str(tmp_path))
    return next(iter(ndd.torch.Loader(reader, batch_size=4, **options)))


def test_labels_are_what_cross_entropy_takes(tmp_path):
    _, labels = labelled(tmp_path)
    assert (labels.dtype, labels.tolist()) == (torch.int64, [0, 0, 1, 1])
    torch.nn.functional.cross_entropy(torch.zeros(4, 2), labels)


def test_labels_can_be_left_as_they_are(tmp_path):
    _, labels = labelled(tmp_path, class_labels=False)
    assert (labels.dtype, labels.tolist()) == (torch.int32, [[0], [0], [1], [1]])


def test_errors_of_the_function_come_at_their_batch(folder):
    calls = []

    def fn(rows):
        calls.append(1)
        if len(calls) == 3:
            raise KeyError("third")
        return rows

    batches = iter(make(folder, fn))
    next(batches)
    next(batches)
    with pytest.raises(KeyError, match="third"):
        next(batches)


@pytest.mark.parametrize("argument", [{"num_workers": 2}, {"shuffle": True}, {"drop_last": True}])
def test_arguments_that_would_do_nothing_are_refused(folder, argument):
    reader = ndd.readers.Numpy(file_root=str(folder))
    with pytest.raises(ValueError, match=f"`{next(iter(argument))}` (must be 0|has no effect)"):
        ndd.torch.Loader(reader, batch_size=2, **argument)


@pytest.mark.parametrize(
    "argument", [{"batch_size": None}, {"fn": 3}, {"rng": 5}, {"prefetch": "x"}, {"unknown": 1}]
)
def test_wrong_arguments_are_refused(folder, argument):
    reader = ndd.readers.Numpy(file_root=str(folder))
    [name] = argument
    with pytest.raises(TypeError, match=name):
        ndd.torch.Loader(**{"reader": reader, "batch_size": 2, **argument})
    with pytest.raises(TypeError, match="reader"):
        ndd.torch.Loader([1, 2], batch_size=2)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_memory_is_pinned_where_there_is_an_accelerator(folder, monkeypatch, there, asked):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: there)
    reader = ndd.readers.Numpy(file_root=str(folder))
    loader = ndd.torch.Loader(reader, batch_size=2, pin_memory=asked)
    assert loader.pin_memory == (there and asked)


def test_a_pickled_loader_goes_on_at_the_same_batch(folder):
    loader = make(folder, drawn_too)
    batches = iter(loader)
    next(batches)
    copy = pickle.loads(pickle.dumps(loader))
    assert read(copy) == read(batches)


# Distributed runs


def ranks(monkeypatch, **variables):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "2", "WORLD_SIZE": "4"}, (2, 4)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"}, (1, 3)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, (0, 1)),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"},
            (0, 2),
        ),
    ],
    ids=str,
)
def test_ranks_come_from_the_launcher(monkeypatch, variables, expected):
    ranks(monkeypatch, **variables)
    shard_id, num_shards = expected
    assert ndd.torch.distributed_options() == {"shard_id": shard_id, "num_shards": num_shards}


@pytest.mark.parametrize("rank", ["2", "-1", "two"])
def test_ranks_that_can_not_be_are_refused(monkeypatch, rank):
    ranks(monkeypatch, RANK=rank, WORLD_SIZE="2")
    with pytest.raises(ValueError, match=f"RANK={rank} and WORLD_SIZE=2"):
        ndd.torch.distributed_options()


def test_each_rank_reads_its_shard(folder, monkeypatch):
    found = []
    for rank in range(2):
        loader = make(folder)  # before it is known which rank it is
        ranks(monkeypatch, RANK=str(rank), WORLD_SIZE="2")
        assert len(loader) == 3
        found.append(read(loader))
    assert sorted({number for epoch in found for rows, _ in epoch for number in rows}) == [
        *range(10)
    ]
    assert not {*found[0][0][1]} & {*found[1][0][1]}, "augmentations differ between ranks"


@pytest.mark.parametrize("policy", [None, "wrap", "pad", "drop"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_all_ranks_have_equally_many_batches(folder, monkeypatch, policy, ranks):
    np.save(folder / "10.npy", np.full(3, 10, np.float32))  # 11 files, which no number divides
    monkeypatch.setenv("WORLD_SIZE", str(ranks))
    loaders = []
    for rank in range(ranks):
        monkeypatch.setenv("RANK", str(rank))
        loaders.append(make(folder, batch_size=1, shuffle=None, last_batch=policy))
        assert len(loaders[-1]) == (11 // ranks if policy == "drop" else -(-11 // ranks))
    for _ in range(ranks + 1):
        assert len({len(list(loader)) for loader in loaders}) == 1


def test_different_numbers_of_batches_are_told(folder):
    (folder / "9.npy").unlink()  # shards of 4 and 5
    loader = make(folder, num_shards=2, last_batch="partial")
    with pytest.warns(UserWarning, match="numbers of batches, 2 and 3.*'wrap', 'pad' or 'drop'"):
        assert len(list(loader)) == 2
    assert len(list(loader)) == 2  # once is enough


def test_shards_of_the_readers_own_win(folder, monkeypatch):
    ranks(monkeypatch, RANK="1", WORLD_SIZE="2")
    assert len(make(folder, num_shards=1)) == 5
    assert len(make(folder, num_shards=5, shard_id=3)) == 1


def test_a_rank_resumes_its_shard(folder, monkeypatch):
    ranks(monkeypatch, RANK="1", WORLD_SIZE="2")
    loader = make(folder, last_batch="pad")
    batches = iter(loader)
    next(batches)
    state, expected = loader.state_dict(), read(batches)
    resumed = make(folder, last_batch="pad")
    resumed.load_state_dict(state)
    assert read(resumed) == expected
    assert read(pickle.loads(pickle.dumps(resumed))) == read(resumed)


def test_the_state_of_one_rank_will_do_for_all(folder, monkeypatch):
    epochs, states = [], []
    for rank in range(2):
        ranks(monkeypatch, RANK=str(rank), WORLD_SIZE="2")
        loader = make(folder, last_batch="pad")
        list(loader)
        batches = iter(loader)
        next(batches)
        states.append(loader.state_dict())
        epochs.append([read(batches), read(loader)])
    for rank, state in [(1, states[0]), (0, states[1])]:
        ranks(monkeypatch, RANK=str(rank), WORLD_SIZE="2")
        resumed = make(folder, last_batch="pad", rng=99)
        resumed.load_state_dict(state)
        assert [read(resumed), read(resumed)] == epochs[rank]


def test_more_ranks_than_samples_are_refused(folder, monkeypatch):
    ranks(monkeypatch, RANK="1", WORLD_SIZE="20")
    with pytest.raises(RuntimeError, match="10 samples, fewer than the 20 shards"):
        len(make(folder))


# torchdata


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_stateful_data_loaders_resume_it(folder):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    loader = stateful(make(folder).dataset, batch_size=None)
    read(loader)
    batches = iter(loader)
    next(batches)
    state, expected = loader.state_dict(), read(batches)
    assert len(expected) == 4
    resumed = stateful(make(folder).dataset, batch_size=None)
    resumed.load_state_dict(state)
    assert read(resumed) == expected


def test_nodes_resume_it(folder):
    nodes = pytest.importorskip("torchdata.nodes")

    def pipeline():
        return nodes.Loader(nodes.IterableWrapper(make(folder)))

    loader = pipeline()
    batches = iter(loader)
    next(batches)
    next(batches)
    state, expected = loader.state_dict(), read(batches)
    assert len(expected) == 3
    resumed = pipeline()
    resumed.load_state_dict(state)
    assert read(resumed) == expected


def test_states_survive_torchs_own_files(folder, tmp_path_factory):
    loader = make(folder)
    next(iter(loader))
    path = tmp_path_factory.mktemp("states") / "state.pt"
    torch.save(loader.state_dict(), path)
    assert torch.load(path, weights_only=True) == loader.state_dict()


def test_importing_penstock_does_not_import_torch():
    code = "import sys, penstock as p; p.tensor(1); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
