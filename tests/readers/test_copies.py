"""Readers that are pickled and copied, and those that find themselves in other processes."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

import penstock as ndd
from penstock import ExternalSource
from penstock.readers import File, ReaderState
from penstock.readers._base import workers

COPIES = {
    "pickle": lambda reader: pickle.loads(pickle.dumps(reader)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.fixture
def root(tmp_path):
    for number in range(12):
        path = tmp_path / f"class{number % 3}" / f"{number:02d}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"bytes")
    return tmp_path


def samples(iterator):
    return [(data.source_info, [np.asarray(one).item() for one in row]) for data, row in iterator]


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_goes_on_at_the_same_place(root, how):
    names = sorted(root.glob("*/*"))
    for arguments in (
        {"file_root": root, "random_shuffle": True},
        {"file_root": str(root), "files": [str(name.relative_to(root)) for name in names]},
        {"files": names, "labels": range(50, 62), "shuffle": "global", "num_shards": 2},
        {"files": iter(names), "lazy_init": True},
    ):
        reader = File(4, "train", **arguments)
        fresh = COPIES[how](reader) if "lazy_init" not in arguments else None
        iterator = reader.next_epoch()
        next(iterator)
        made = COPIES[how](reader)
        assert (made.name, made.max_batch_size) == ("train", 4)
        assert made.get_state() == reader.get_state()
        assert samples(made.next_epoch()) == samples(iterator)
        made.reset()
        reader.reset()
        assert samples(made.next_epoch()) == samples(reader.next_epoch())
        if fresh is not None:
            reader.reset()
            assert samples(fresh.next_epoch()) == samples(reader.next_epoch())


def test_a_lazy_reader_stays_closed_when_it_is_copied(tmp_path):
    reader = File(file_root=tmp_path / "later", lazy_init=True)
    (tmp_path / "later/a").mkdir(parents=True)
    made = pickle.loads(pickle.dumps(reader))
    (tmp_path / "later/a/x.jpg").write_bytes(b"x")
    assert len(made.next_epoch()) == 1


def test_a_reader_that_is_closed_is_not_copied(root):
    reader = File(file_root=root)
    reader.close()
    with pytest.raises(RuntimeError, match="the reader is closed"):
        copy.copy(reader)


def test_iterators_of_epochs_are_not_copied(root):
    iterator = File(file_root=root).next_epoch(batch_size=2)
    for way in COPIES.values():
        with pytest.raises(TypeError, match="the iterator of an epoch can't be pickled"):
            way(iterator)


def test_names_that_are_no_text_are_refused(tmp_path):
    name = bytes(tmp_path) + b"/\xff.jpg"
    with open(name, "wb") as file:
        file.write(b"x")
    with pytest.raises(TypeError, match="not UTF-8"):
        pickle.dumps(File(files=[name]))


def test_states_are_loaded_where_only_weights_are(root, tmp_path):
    reader = File(file_root=root)
    next(reader.next_epoch(batch_size=2))
    state = reader.get_state()
    assert isinstance(state, ReaderState)
    rng = ndd.random.RNG(seed=3)
    saved = {"reader": state, "dict": reader.state_dict(), "rng": rng.get_state()}
    torch.save(saved, tmp_path / "checkpoint")
    loaded = torch.load(tmp_path / "checkpoint", weights_only=True)
    assert loaded == saved
    assert type(loaded["reader"]) is type(loaded["rng"]) is str
    assert ndd.random.RNG(state=loaded["rng"])() == rng()
    for way in COPIES.values():
        assert way(state) == state


def squares():
    yield from (number**2 for number in range(5))


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("how", COPIES)
def test_sources_of_modules_are_copied(how, parallel):
    for source in (squares, [0, 1, 4, 9, 16]):
        made = ExternalSource(source, dtype=ndd.float32, parallel=parallel)
        made()
        again = COPIES[how](made)
        assert [again().item() for _ in range(4)] == [1.0, 4.0, 9.0, 16.0]
        assert made().item() == 1.0


@pytest.mark.parametrize("source", [lambda: 1, squares(), iter([1])])
def test_sources_that_can_not_be_pickled_say_so(source):
    with pytest.raises(TypeError, match="so the ExternalSource can't either: "):
        pickle.dumps(ExternalSource(source))


class Read(torch.utils.data.IterableDataset):
    """Gives labels, and at the end how many warnings there were of reading all."""

    def __init__(self, root, reader):
        self.root = root
        self.reader = reader

    def __iter__(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reader = self.reader or File(file_root=self.root)
            yield from (label.item() for _ in range(2) for _, label in reader.next_epoch())
        told = [str(one.message) for one in caught]
        yield ["every sample comes once per worker" in text for text in told].count(True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("count", "shards", "where", "told"),
    [(2, 1, "parent", 1), (2, 1, "child", 0), (2, 2, "parent", 0), (1, 1, "parent", 0)],
)
def test_a_reader_that_several_workers_read_all_of_says_so_once(root, count, shards, where, told):
    reader = File(file_root=root, num_shards=shards) if where == "parent" else None
    loader = torch.utils.data.DataLoader(
        Read(root, reader), batch_size=None, num_workers=count, multiprocessing_context="fork"
    )
    given = list(loader)
    assert len(given) == count * (2 * 12 // shards + 1)
    assert sum(given[-count:]) == told  # once, however many workers there are


def test_a_reader_that_was_sent_to_several_workers_says_so(root, monkeypatch):
    made = pickle.loads(pickle.dumps(File(file_root=root)))
    next(made.next_epoch())  # but not in the main process
    monkeypatch.setattr(workers, "worker", lambda: (0, 2))
    made = pickle.loads(pickle.dumps(File(file_root=root)))
    with pytest.warns(UserWarning, match="num_shards"):
        next(made.next_epoch())
