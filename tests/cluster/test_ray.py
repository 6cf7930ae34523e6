"""`penstock.ray.Loader` on a cluster: whatever happens there, items are those of `workers=0`."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import penstock as ndd

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.alone,
    pytest.mark.heavy,
    pytest.mark.timeout(240),
    # Of Ray's own, about processes and sockets that it leaves to the system.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def augmented(reader):
    for (rows,) in reader.next_epoch():
        gains = ndd.random.uniform(range=[0.5, 1.5], batch_size=rows.batch_size)
        yield ndd.cast(rows * gains, dtype=ndd.uint8), {"gains": gains, "text": "unchanged"}


def make(folder, workers, loop=augmented, batch_size=2, seed=1, options=None, **reader):
    chosen = {key: reader.pop(key) for key in ("ahead", "num_cpus") if key in reader}
    reader = {"shuffle": "global", "seed": 5, **reader}
    made = ndd.readers.Numpy(file_root=str(folder), **reader)
    return ndd.ray.Loader(
        loop, made, batch_size=batch_size, workers=workers, seed=seed, options=options, **chosen
    )


def digest(item):
    images, others = item
    assert others["text"] == "unchanged"
    digest = hashlib.blake2b(digest_size=8)
    for batch in (images, others["gains"]):
        for sample in batch:
            digest.update(np.ascontiguousarray(sample))
        digest.update(repr(batch.source_info).encode())
    return digest.hexdigest()


def digests(items):
    return [digest(item) for item in items]


@pytest.fixture(scope="module")
def expected(folder):
    """The items of three epochs, made in this process."""
    with make(folder, workers=0) as loader:
        return [digests(loader) for _ in range(3)]


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_make_the_same_items_in_order(nodes, folder, expected, workers):
    with make(folder, workers) as loader:
        assert len(loader) == len(expected[0]) == 12
        for epoch in expected:
            assert digests(loader) == epoch
        assert {about.num_threads for about in loader._crew.about()} == {1}


def test_arrays_share_the_memory_of_the_object_store(nodes, folder):
    with make(folder, workers=1) as loader:
        images, _ = next(iter(loader))
    memory = images._value.memory(0, False).address
    [line] = [
        line
        for line in Path("/proc/self/maps").read_text().splitlines()
        if int(line.split("-")[0], 16) <= memory < int(line.split("-")[1].split()[0], 16)
    ]
    assert "plasma" in line
    before = images.torch().clone()
    images.torch().add_(1)  # a copy, since others may read the same memory
    assert images.torch().equal(before)


def test_workers_that_are_killed_are_replaced(nodes, folder, expected):
    steps = random.Random(3).sample(range(1, 10), 3)
    with make(folder, workers=3, ahead=4) as loader:
        found = []
        for step, item in enumerate(loader):
            found.append(digest(item))
            if step in steps:
                victim = random.Random(step).choice(loader._crew.about())
                os.kill(victim.process, signal.SIGKILL)
        assert found == expected[0]
        assert digests(loader) == expected[1]
        assert loader._crew.losses >= 1


def test_all_nodes_are_killed_and_one_is_added(nodes, folder, expected):
    with make(folder, workers=3, ahead=4) as loader:
        batches = iter(loader)
        found = [digest(next(batches)) for _ in range(4)]
        state = loader.state_dict()
        while nodes.nodes:
            nodes.kill()
        nodes.add(1)
        found += digests(batches)
        assert found == expected[0]
        assert loader._crew.losses >= 3
    nodes.add(2)
    with make(folder, workers=2) as loader:
        loader.load_state_dict(state)
        assert digests(loader) == expected[0][4:]


TRAINER = """
import json, os, signal, sys
import ray
sys.path.insert(0, {root!r})
from tests.cluster.test_ray import digest, make
ray.init(address={address!r}, log_to_driver=False, logging_level="ERROR")
saved, seen = {saved!r}, {seen!r}
loader = make({folder!r}, workers=2, seed=int(sys.argv[1]))
if os.path.exists(saved):
    loader.load_state_dict(json.load(open(saved)))
for step, item in enumerate(loader):
    with open(seen, "a") as file:
        file.write(digest(item) + "\\n")
    with open(saved + ".new", "w") as file:
        json.dump(loader.state_dict(), file)
    os.replace(saved + ".new", saved)
    if step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_trainer_that_is_killed_resumes(nodes, folder, expected, tmp_path):
    program = TRAINER.format(
        root=str(Path(__file__).parents[2]),
        address=nodes.address,
        saved=str(tmp_path / "state.json"),
        seen=str(tmp_path / "seen"),
        folder=str(folder),
    )
    for seed, at in [("1", "4"), ("77", "-1")]:  # the seed is in the state
        done = subprocess.run(
            [sys.executable, "-c", program, seed, at], capture_output=True, text=True, timeout=100
        )
        assert done.returncode == (0 if at == "-1" else -signal.SIGKILL), done.stderr[-2000:]
    assert (tmp_path / "seen").read_text().split() == expected[0]


def run_chain(folder, chain):
    """The items that ranks get, with other numbers of ranks and workers after two steps each."""
    state, found = None, []
    for last, (workers, world) in enumerate(chain, start=1 - len(chain)):
        states = []
        for rank in range(world):
            shard = {"num_shards": world, "shard_id": rank, "last_batch": "partial"}
            with make(folder, workers, batch_size=1, **shard) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                batches = iter(loader)
                items = [next(batches) for _ in range(2)] if last else [*batches]
                found += [(name, digest(item)) for item in items for name in item[0].source_info]
                states.append(loader.state_dict())
        state = states[0]
    return found


def check_chain(folder, chain):
    found = run_chain(folder, chain)
    assert sorted(Path(name).name for name, _ in found) == [f"{n:02}.npy" for n in range(24)]
    assert found == run_chain(folder, [(0, world) for _, world in chain])


@pytest.mark.filterwarnings("ignore:.*different numbers of batches")
def test_other_numbers_of_ranks_and_workers_read_each_sample_once(nodes, folder):
    check_chain(folder, [(0, 1), (3, 2), (1, 3)])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore:.*different numbers of batches")
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_all_chains(nodes, folder, workers, world):
    for others in (0, 1, 3):
        for size in (1, 2, 3):
            check_chain(folder, [(workers, world), (others, size)])


def test_a_slow_worker_does_not_hold_up_the_others(nodes, folder, expected, tmp_path):
    marker = str(tmp_path / "slow")

    def loop(reader):
        for item in augmented(reader):
            try:
                with open(marker, "x") as file:  # by the first worker that gets here
                    file.write(str(os.getpid()))
            except FileExistsError:
                pass
            if Path(marker).read_text() == str(os.getpid()):
                time.sleep(1000)  # the test would run into its time limit
            yield item

    with make(folder, workers=2, loop=loop) as loader:
        assert digests(loader) == expected[0]
        assert loader._crew.backups >= 1


def bad_files(folder):
    names = [f"{number}.bin" for number in range(8)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(bytes([number]) * 3)
    (folder / names[3]).unlink()
    return {"file_root": str(folder), "files": names, "shuffle": "global"}


def labelled(reader):
    for _, labels in reader.next_epoch():
        yield labels


@pytest.mark.parametrize("policy", ["skip", "substitute"])
def test_a_bad_file_is_left_out_or_replaced(nodes, tmp_path, policy):
    options = {**bad_files(tmp_path), "on_error": policy}
    found, errors = [], []
    for workers in (0, 1):
        reader = ndd.readers.File(**options)
        with ndd.ray.Loader(labelled, reader, batch_size=2, workers=workers) as loader:
            found.append([labels.torch().flatten().tolist() for labels in loader])
            errors.append(reader.errors)
    assert found[0] == found[1]
    assert errors[0] == errors[1]
    assert [error.sample for error in errors[0]] == [3]


def test_a_bad_file_is_an_error_at_its_batch(nodes, tmp_path):
    reader = ndd.readers.File(**{**bad_files(tmp_path), "shuffle": None})

    def loop(reader):
        for files, _ in reader.next_epoch():
            yield files

    with ndd.ray.Loader(loop, reader, batch_size=2, workers=1) as loader:
        batches = iter(loader)
        next(batches)
        with pytest.raises(OSError, match=r"3\.bin"):
            next(batches)
        assert next(batches).torch().tolist() == [[4] * 3, [5] * 3]


class OwnError(Exception):
    """An error that can be pickled, but not unpickled."""

    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def test_errors_of_the_loop_are_raised_in_the_trainer(nodes, folder):
    def failing(reader):
        for _ in reader.next_epoch():
            raise KeyError("from afar")
        yield

    def odd(reader):
        for _ in reader.next_epoch():
            raise OwnError("two", "parts")
        yield

    def unpicklable(reader):
        for _ in reader.next_epoch():
            yield (number for number in range(3))

    for loop, kind, text in [
        (failing, KeyError, "from afar"),
        (odd, RuntimeError, "OwnError: two parts"),
        (unpicklable, TypeError, "cannot pickle 'generator' object"),
    ]:
        with make(folder, workers=1, loop=loop) as loader, pytest.raises(kind, match=text):
            next(iter(loader))


def test_a_batch_that_kills_workers_is_an_error_in_the_end(nodes, folder, monkeypatch):
    monkeypatch.setattr("penstock._ray.crew.MOST_LOSSES", 2)

    def loop(reader):
        for _ in reader.next_epoch():
            os._exit(1)
        yield

    with (
        make(folder, workers=1, ahead=0, loop=loop) as loader,
        pytest.raises(RuntimeError, match="2 workers were lost over one batch"),
    ):
        next(iter(loader))


def test_memory_is_bounded_by_the_batches_in_advance(nodes, folder, tmp_path):
    """36 items of 5 MB, of which half would not fit in the object stores."""
    made = tmp_path / "made"
    made.mkdir()

    def loop(reader):
        for (rows,) in reader.next_epoch():
            gains = ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)
            (made / str(time.monotonic_ns())).touch()
            yield ndd.cat(*[rows] * 24, axis=0), {"gains": gains, "text": "unchanged"}

    with make(folder, workers=0, loop=loop, ahead=0) as loader:
        expected = [each for _ in range(3) for each in digests(loader)]
    found, before = [], len(list(made.iterdir()))
    with make(folder, workers=2, loop=loop, ahead=3) as loader:
        for _ in range(3):
            for item in loader:
                found.append(digest(item))
                time.sleep(0.02)  # workers could go on meanwhile
                backups = loader._crew.backups
                assert len(list(made.iterdir())) - before <= len(found) + 3 + backups
    assert found == expected
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    assert not [path for path in session.glob("*spill*/**/*") if path.is_file()]


# What can't work


def test_a_loop_that_can_not_be_pickled_is_refused(nodes, folder):
    lock = __import__("threading").Lock()

    def loop(reader):
        with lock:
            yield from reader.next_epoch()

    with pytest.raises(TypeError, match=r"`loop` \(loop\) can't be pickled.*lock"):
        make(folder, workers=1, loop=loop)


def copied_package(folder, change):
    """Another penstock for workers, as on a node where another one is installed."""
    source = Path(ndd.__file__).parent
    target = folder / "penstock"
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).symlink_to(path)
    path = target / "__init__.py"
    text = path.read_text()
    path.unlink()
    path.write_text(change(text))
    return {"runtime_env": {"env_vars": {"PYTHONPATH": str(folder)}}}


def test_workers_with_another_version_are_refused(nodes, folder, tmp_path):
    options = copied_package(tmp_path, lambda text: text + "\n__version__ = '9.9.9'\n")
    with (
        make(folder, workers=1, options=options) as loader,
        pytest.raises(RuntimeError, match=r"worker on .* has penstock 9\.9\.9, but the trai"),
    ):
        next(iter(loader))


def test_workers_without_penstock_are_refused(nodes, folder, tmp_path):
    options = copied_package(tmp_path, lambda text: "raise ImportError('not installed here')\n")
    with (
        make(folder, workers=1, options=options) as loader,
        pytest.raises(RuntimeError, match=r"workers can't be started(.|\n)*same version of"),
    ):
        next(iter(loader))


def test_workers_that_see_other_data_are_refused(nodes, tmp_path):
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", np.zeros(3, np.float32))
    loader = make(tmp_path, workers=1)
    np.save(tmp_path / "more.npy", np.zeros(3, np.float32))
    for _ in range(2):  # each time
        with pytest.raises(RuntimeError, match=r"data set on .* is not that of the trainer"):
            next(iter(loader))
    loader.close()


def test_options_are_checked(nodes, folder):
    with pytest.raises((TypeError, ValueError), match=r"`options`.*num_cpu"):
        make(folder, workers=1, options={"num_cpuss": 2})


def test_without_room_for_workers_there_is_a_warning(nodes, folder, expected, monkeypatch):
    monkeypatch.setattr("penstock._ray.crew.PATIENCE", 1.0)
    warnings = []

    def add_a_node(text):
        warnings.append(text)
        nodes.add(num_cpus=2)

    monkeypatch.setattr("penstock._operators.call_sites.warn", add_a_node)
    with make(folder, workers=1, num_cpus=2) as loader:
        assert digests(loader) == expected[0]
        # The threads of an actor follow its CPUs.
        assert {about.num_threads for about in loader._crew.about()} == {min(2, os.cpu_count())}
    [text] = warnings
    assert "no worker could be started" in text
    assert "Each needs 2 CPUs" in text
    nodes.kill(-1)
