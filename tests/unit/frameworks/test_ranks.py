"""Loaders in several processes of `torch.distributed`, of which one is killed, and checkpoints.

A checkpoint of `torch.distributed.checkpoint` keeps one of the states that ranks have saved under
the same name.
"""

import json
import os
import pickle
import socket
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import penstock as ndd

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed.checkpoint")

pytestmark = pytest.mark.heavy

COUNT = 24

TRAINER = """
import json, os, signal, sys, warnings
from pathlib import Path
import penstock as ndd
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

warnings.simplefilter("ignore")
folder, work, resume, kill_at, seed = sys.argv[1:]
work, kill_at = Path(work), int(kill_at)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def fn(rows):
    return rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)


reader = ndd.readers.Numpy(file_root=folder, shuffle="global", seed=3, last_batch="partial")
loader = ndd.torch.Loader(reader, fn, batch_size=1, rng=ndd.random.RNG(int(seed)))
if resume != "no":
    dcp.load({"loader": loader}, checkpoint_id=resume)
with open(work / f"seen-{world}-{rank}", "a") as file:
    for step, (rows, drawn) in enumerate(loader):
        dist.all_reduce(torch.ones(1))  # all ranks are at this step
        file.write(json.dumps([step, rows[0, 0].item(), drawn.item()]) + "\\n")
        file.flush()
        dcp.save({"loader": loader}, checkpoint_id=str(work / f"step-{world}-{step}"))
        if (step, rank) == (kill_at, world - 1):
            os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
"""


def launch(folder, work, world, resume="no", kill_at=-1, seed=7):
    """Run the trainer in so many processes; those that are left when one is killed are ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = [str(folder), str(work), str(resume), str(kill_at), str(seed)]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRAINER, *given],
            env={**os.environ, **common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    if kill_at >= 0:
        processes[-1].wait(timeout=100)
        for process in processes[:-1]:
            process.kill()
    errors = [process.communicate(timeout=100)[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert codes == [0] * world if kill_at < 0 else codes[-1] == -9, errors


def seen(work, world):
    """Step, sample and random number of each batch, by rank."""
    texts = [(work / f"seen-{world}-{rank}").read_text() for rank in range(world)]
    return [[json.loads(line) for line in text.splitlines()] for text in texts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("rows")
    for number in range(COUNT):
        np.save(made / f"{number:02}.npy", np.full(3, number, np.float32))
    return made


def uninterrupted(folder, world, rank):
    """Sample and random number of each batch of a rank, in this process."""

    def fn(rows):
        return rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)

    shard = {"num_shards": world, "shard_id": rank, "last_batch": "partial"}
    reader = ndd.readers.Numpy(file_root=str(folder), shuffle="global", seed=3, **shard)
    loader = ndd.torch.Loader(reader, fn, batch_size=1, rng=ndd.random.RNG(7))
    return [[rows[0, 0].item(), drawn.item()] for rows, drawn in loader]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (2, 2),
        (3, 2),
        pytest.param(2, 3, marks=pytest.mark.slow),
        pytest.param(3, 3, marks=pytest.mark.slow),
    ],
)
def test_a_killed_job_resumes_from_a_distributed_checkpoint(folder, tmp_path, before, after):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    steps = 6 // before
    launch(folder, first, before, kill_at=steps)
    # The checkpoint of the step before is complete, on all ranks. The seed is in there.
    launch(folder, second, after, resume=first / f"step-{before}-{steps - 1}", seed=99)
    kept = [rows[:steps] for rows in seen(first, before)]
    rest = seen(second, after)
    samples = Counter(sample for rows in (*kept, *rest) for _, sample, _ in rows)
    assert samples == Counter(range(COUNT))
    drawn = [value for rows in (*kept, *rest) for *_, value in rows]
    assert len({*drawn}) == COUNT, "no rank repeats what it or another one has drawn"
    if before == after:
        for rank in range(before):
            found = [row[1:] for row in (*kept[rank], *rest[rank])]
            assert found == uninterrupted(folder, before, rank), "as if never stopped"


def options(monkeypatch, **variables):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return ndd.torch.distributed_options


def test_options_are_arguments_of_a_reader_and_more(folder, monkeypatch):
    asked = options(monkeypatch, RANK="1", WORLD_SIZE="3")
    made = asked(seed=7)
    assert made == {"shard_id": 1, "num_shards": 3}
    reader = ndd.readers.Numpy(file_root=str(folder), seed=5, shuffle="global", **made)
    assert reader.get_metadata()["shard_id"] == 1
    assert (made.rank, made.world_size) == (1, 3)
    assert made.num_threads == ndd.get_num_threads()
    copy = pickle.loads(pickle.dumps(made))
    assert copy == made
    assert vars(copy) == vars(made)


def test_explicit_options_win(monkeypatch):
    asked = options(monkeypatch, RANK="1", WORLD_SIZE="3")
    made = asked(rank=4, world_size=5, num_threads=6)
    assert (made.rank, made.world_size, made.num_threads) == (4, 5, 6)
    assert made == {"shard_id": 4, "num_shards": 5}


def test_seeds_differ_between_ranks_and_seeds(monkeypatch):
    asked = options(monkeypatch)
    seeds = [asked(rank=rank, world_size=8, seed=seed).seed for rank in range(8) for seed in (1, 2)]
    assert len({*seeds}) == 16
    assert asked(rank=2, world_size=8, seed=1).seed == asked(rank=2, world_size=3, seed=1).seed
    ndd.random.set_seed(seeds[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 1},
        {"world_size": 2},
        {"rank": 2, "world_size": 2},
        {"rank": "x", "world_size": 2},
        {"num_threads": 0},
        {"seed": None},
    ],
    ids=str,
)
def test_wrong_options_are_refused(monkeypatch, wrong):
    with pytest.raises((TypeError, ValueError), match=r"torch\.distributed_options"):
        options(monkeypatch)(**wrong)


def test_states_of_version_1_have_the_samples(folder):
    def loader():
        reader = ndd.readers.Numpy(file_root=str(folder), shuffle="global", seed=3)
        return ndd.torch.Loader(reader, batch_size=4, rng=ndd.random.RNG(1))

    begun = loader()
    next(iter(begun))
    state = begun.state_dict()
    resumed = loader()
    resumed.load_state_dict(
        {**state, "version": 1, "rng": str(ndd.random.RNG(9).state), "shard": 0}
    )
    assert len(list(resumed)) == 5
