"""The cache of DALI's answers: it finds what was asked before, and nothing else."""

import multiprocessing
import pickle
import sys

import numpy as np
import pytest

from tests.conformance.cache import Cache
from tests.conformance.oracle import Oracle, OracleError


class Server(Oracle):
    """Counts what reaches the server, whose answers are as given."""

    def __init__(self, cache, *answers, reproducible=True):
        super().__init__(cache)
        self.asked = []
        self.answers = iter(answers)
        self.reproducible = reproducible

    def _ask(self, source, inputs, *, twice):
        self.asked.append(source)
        answer = next(self.answers)
        if callable(answer):
            answer = answer()
        return pickle.dumps(answer), self.reproducible


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("PENSTOCK_ORACLE", sys.executable)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    # Keys are refused for what lies in the folder for temporary files; here it is elsewhere.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return Cache(tmp_path / "cache")


def test_the_same_question_is_asked_once(cache):
    first = Server(cache, "an answer")
    assert first.run("x", x=np.arange(3)) == "an answer"
    later = Server(Cache(cache.folder))
    assert later.run("x", x=np.arange(3)) == "an answer"
    assert (first.asked, later.asked) == (["x"], [])


@pytest.mark.parametrize(
    ("source", "inputs"),
    [
        ("x ", {"x": np.arange(3)}),
        ("x", {"x": np.arange(4)}),
        ("x", {"x": np.arange(3, dtype=np.int32)}),
        ("x", {"x": np.array([0, 1, 3])}),
        ("x", {"y": np.arange(3)}),
        ("x", {}),
    ],
)
def test_another_question_is_asked_again(cache, source, inputs):
    server = Server(cache, 1, 2)
    assert [server.run("x", x=np.arange(3)), server.run(source, **inputs)] == [1, 2]


@pytest.mark.parametrize("name", ["VERSIONS", "CODE"])
def test_another_environment_is_asked_again(cache, monkeypatch, name):
    assert Server(cache, 1).run("x") == 1
    other = {"VERSIONS": "print('numpy 9')", "CODE": ("case.py",)}
    monkeypatch.setattr(f"tests.conformance.cache.{name}", other[name])
    assert Server(Cache(cache.folder), 2).run("x") == 2


def test_files_are_part_of_the_question(cache):
    folder = cache.make_folder("data")
    (folder / "a").write_text("1")
    server = Server(cache, 1, 2, 3)
    assert [server.run("x", root=str(folder)) for _ in range(2)] == [1, 1]
    (folder / "a").write_text("2")
    assert server.run("x", root=str(folder)) == 2
    assert server.run("x", root=folder) == 3
    (folder / "a").write_text("1")
    assert server.run("x", root=str(folder)) == 1
    assert len(server.asked) == 3


def test_a_case_that_writes_files_runs_each_time(cache):
    folder = cache.make_folder("data")
    server = Server(cache, *(lambda: (folder / "a").write_text("1") for _ in range(2)))
    for _ in range(2):
        assert server.run("x", root=str(folder)) == 1
        (folder / "a").unlink()
    assert len(server.asked) == 2


def test_files_elsewhere_are_not_part_of_a_question_so_it_is_asked_each_time(cache, tmp_path):
    server = Server(cache, 1, 2)
    path = str(tmp_path / "temporary" / "file")
    assert [server.run("x", path=path) for _ in range(2)] == [1, 2]


def test_what_is_not_reproducible_is_asked_each_time(cache):
    server = Server(cache, 1, 2, reproducible=False)
    assert [server.run("ndd.random.uniform()") for _ in range(2)] == [1, 2]


def test_random_sources_run_twice_before_their_answer_is_kept(cache, monkeypatch):
    sent = []
    oracle = Oracle(cache)
    monkeypatch.setattr(oracle, "_process", _Pipe(sent))
    monkeypatch.setattr(oracle, "_receive", lambda *_: (pickle.dumps(1), True))
    for source in ("ndd.random.uniform()", "ndd.flip(x)"):
        oracle.run(source)
    monkeypatch.undo()
    assert [pickle.loads(data[8:])[2] for data in sent] == [True, False]


class _Pipe:
    def __init__(self, sent):
        self.stdin = self
        self.write = sent.append

    def flush(self):
        pass


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d[:5], lambda d: b"", lambda d: d[::-1]]
)
def test_damaged_files_are_asked_for_again(cache, damage):
    assert Server(cache, "first").run("x") == "first"
    [file] = [path for path in (cache.folder / "answers").rglob("*") if path.is_file()]
    file.write_bytes(damage(file.read_bytes()))
    server = Server(cache, "second")
    assert [server.run("x"), server.run("x")] == ["second", "second"]


def _store_and_load(folder, done):
    cache = Cache(folder)
    for turn in range(200):
        cache.store("ab" * 32, bytes([turn]) * 100_000)
        found = cache.load("ab" * 32)
        if found is None or len(set(found)) != 1 or len(found) != 100_000:
            done.put(f"turn {turn}: a torn answer")
            return
    done.put(None)


def test_processes_share_a_cache(cache):
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    processes = [
        context.Process(target=_store_and_load, args=(cache.folder, done)) for _ in range(3)
    ]
    for process in processes:
        process.start()
    assert [done.get(timeout=60) for _ in processes] == [None] * 3
    for process in processes:
        process.join()


def test_folders_are_the_same_in_each_run_and_never_shared(cache):
    mine = cache.make_folder("data")
    (mine / "left over").write_text("")
    other = Cache(cache.folder).make_folder("data")
    assert mine != other
    assert cache.make_folder("more").parent == mine.parent
    cache.release()
    again = Cache(cache.folder).make_folder("data")
    assert again == mine
    assert not list(again.iterdir())


def test_without_an_environment_the_message_is_that_of_the_oracle(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_ORACLE", str(tmp_path / "python"))
    with pytest.raises(OracleError, match="no Python at"):
        Oracle(cache).run("1")


def test_the_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_ORACLE_CACHE", str(tmp_path))
    assert Cache.of_the_project().folder == tmp_path
    monkeypatch.setenv("PENSTOCK_ORACLE_CACHE", "off")
    assert Cache.of_the_project() is None
