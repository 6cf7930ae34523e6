"""`penstock.torch.Loader` with Hugging Face's Accelerate and Trainer."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import penstock as ndd

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def folder(tmp_path):
    for number in range(10):
        np.save(tmp_path / f"{number}.npy", np.full(3, number, np.float32))
    return tmp_path


def drawn_too(rows):
    return {"x": rows, "drawn": ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)}


def make(folder):
    reader = ndd.readers.Numpy(file_root=str(folder), shuffle="global", seed=3)
    return ndd.torch.Loader(reader, drawn_too, batch_size=2, rng=ndd.random.RNG(4))


def read(batches):
    return [(batch["x"][:, 0].tolist(), batch["drawn"].tolist()) for batch in batches]


def test_accelerate_leaves_a_loader_as_it_is(folder):
    loader = make(folder)
    assert accelerate.Accelerator(cpu=True).prepare(loader) is loader


def test_accelerates_states_have_the_loaders(folder, tmp_path):
    accelerator = accelerate.Accelerator(cpu=True)
    loader = accelerator.prepare(make(folder))
    batches = iter(loader)
    next(batches)
    accelerator.save_state(str(tmp_path / "state"))
    expected = read(batches)
    again = accelerate.Accelerator(cpu=True)
    resumed = again.prepare(make(folder))
    again.load_state(str(tmp_path / "state"))
    assert read(resumed) == expected


def training(folder, root, resume=False, stop_after=None):
    """Train for two epochs; what was seen."""
    transformers = pytest.importorskip("transformers")
    seen = []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x, drawn):
            seen.extend(read([{"x": x, "drawn": drawn}]))
            return {"loss": self.layer(x).mean()}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return self.loader

    class KeepState(transformers.TrainerCallback):
        def on_save(self, args, state, control, **kwargs):
            path = Path(args.output_dir, f"checkpoint-{state.global_step}", "loader.json")
            path.write_text(json.dumps(trainer.loader.state_dict()))

    arguments = transformers.TrainingArguments(
        output_dir=str(root),
        num_train_epochs=2,
        save_steps=stop_after or 1000,
        save_strategy="steps" if stop_after else "no",
        ignore_data_skip=True,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Trainer(Model(), arguments, callbacks=[KeepState()])
    trainer.loader = make(folder)
    if resume:
        checkpoint = root / f"checkpoint-{resume}"
        trainer.loader.load_state_dict(json.loads((checkpoint / "loader.json").read_text()))
        trainer.train(resume_from_checkpoint=str(checkpoint))
    else:
        trainer.train()
    return seen


def test_the_trainer_sees_whole_epochs(folder, tmp_path):
    loader = make(folder)
    assert training(folder, tmp_path / "run") == read(loader) + read(loader)


@pytest.mark.parametrize("step", [2, 5, 7])
def test_the_trainer_resumes_after_any_step(folder, tmp_path, step):
    seen = training(folder, tmp_path / "run", stop_after=step)
    assert len(seen) == 10
    assert training(folder, tmp_path / "run", resume=step) == seen[step:]


PROGRAM = """
    import sys
    from pathlib import Path

    import accelerate
    import torch
    import penstock as ndd

    folder, out = sys.argv[1:]
    accelerator = accelerate.Accelerator(cpu=True)
    reader = ndd.readers.Numpy(file_root=folder, shuffle="global", last_batch="pad")
    model = torch.nn.Linear(3, 1)
    model, loader = accelerator.prepare(model, ndd.torch.Loader(reader, batch_size=2))
    seen = []
    for (rows,) in loader:
        accelerator.backward(model(rows).mean())
        seen += rows[:, 0].int().tolist()
    Path(out, str(accelerator.process_index)).write_text(str([accelerator.num_processes, seen]))
    accelerator.end_training()
"""


@pytest.mark.timeout(240)
def test_two_processes_divide_the_data_once(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    script = out / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "1"}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", str(script), str(folder), str(out)),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (count, first), (_, second) = (json.loads((out / str(rank)).read_text()) for rank in range(2))
    assert count == 2
    assert len(first) == len(second) == 6
    assert sorted([*{*first}, *{*second}]) == [*range(10)]
