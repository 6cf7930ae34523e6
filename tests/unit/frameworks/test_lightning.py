"""`penstock.torch.Loader` under Lightning's Trainer."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import penstock as ndd

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")

pytestmark = [
    pytest.mark.heavy,
    # Advice of Lightning's, and what it uses of PyTorch's that is deprecated.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def folder(tmp_path):
    for number in range(10):
        np.save(tmp_path / f"{number}.npy", np.full(3, number, np.float32))
    return tmp_path


def drawn_too(rows):
    return rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)


def make(folder, **options):
    reader = ndd.readers.Numpy(file_root=str(folder), shuffle="global", seed=3, **options)
    return ndd.torch.Loader(reader, drawn_too, batch_size=2, rng=ndd.random.RNG(4))


class Model(lightning.LightningModule):
    """Notes its batches."""

    def __init__(self, stop_after=None):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.seen, self.checked = [], []
        self.lengths = []
        self.stop_after = stop_after

    def training_step(self, batch, index):
        rows, drawn = batch
        self.seen.append((self.current_epoch, index, rows[:, 0].tolist(), drawn.tolist()))
        self.lengths.append(self.trainer.num_training_batches)
        return self.layer(rows).mean()

    def on_train_batch_end(self, *args):
        if len(self.seen) == self.stop_after:
            self.trainer.save_checkpoint(self.trainer.default_root_dir + "/middle.ckpt")

    def validation_step(self, batch, index):
        self.checked.append((self.trainer.sanity_checking, batch[0][:, 0].tolist()))

    def predict_step(self, batch, index):
        return batch[0][:, 0].tolist()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def trainer(root, **options):
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(root),
        **{"enable_checkpointing": False, "max_epochs": 2, **options},
    )


def test_each_epoch_is_complete_and_so_is_validation_after_the_sanity_check(folder, tmp_path):
    model = Model()
    trainer(tmp_path).fit(model, make(folder), make(folder))
    assert [(epoch, index) for epoch, index, *_ in model.seen] == [
        (epoch, index) for epoch in range(2) for index in range(5)
    ]
    expected = make(folder)
    for epoch in range(2):
        found = [(rows, drawn) for number, _, rows, drawn in model.seen if number == epoch]
        assert found == [(rows[:, 0].tolist(), drawn.tolist()) for rows, drawn in expected]
    assert {*model.lengths} == {5}
    assert [is_sanity for is_sanity, _ in model.checked] == [True] * 2 + [False] * 10
    for start in (2, 7):
        numbers = [number for _, rows in model.checked[start : start + 5] for number in rows]
        assert sorted(numbers) == [*range(10)]


@pytest.mark.parametrize("stop_after", [2, 5, 8])
def test_a_checkpoint_in_an_epoch_resumes_after_its_batch(folder, tmp_path, stop_after):
    whole = Model(stop_after)
    trainer(tmp_path).fit(whole, make(folder))
    resumed = Model()
    trainer(tmp_path).fit(resumed, make(folder), ckpt_path=str(tmp_path / "middle.ckpt"))
    assert resumed.seen == whole.seen[stop_after:]
    assert {*resumed.lengths} == {5}


@pytest.mark.parametrize("in_a_hook", [True, False])
def test_predictions(folder, tmp_path, in_a_hook):
    class Predicts(Model):
        def predict_dataloader(self):
            return make(folder)

    args = [Predicts()] if in_a_hook else [Model(), make(folder)]
    found = trainer(tmp_path).predict(*args)
    assert found == [rows[:, 0].tolist() for rows, _ in make(folder)]


PROGRAM = """
    import json
    import sys
    from pathlib import Path

    import lightning
    import torch
    import penstock as ndd

    folder, out = sys.argv[1:]

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(3, 1), []

        def training_step(self, batch, index):
            rows, drawn = batch
            self.seen.append((self.current_epoch, rows[:, 0].int().tolist(), drawn.tolist()))
            return self.layer(rows).mean()

        def on_train_batch_end(self, *args):
            if self.global_step == 4:
                self.trainer.save_checkpoint(f"{out}/middle.ckpt")

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    def drawn_too(rows):
        return rows, ndd.random.uniform(range=[0, 1], batch_size=rows.batch_size)

    def fit(name, **options):
        reader = ndd.readers.Numpy(file_root=folder, shuffle="global", last_batch="pad")
        # Created before there are two processes.
        loader = ndd.torch.Loader(reader, drawn_too, batch_size=2, rng=ndd.random.RNG(4))
        model = Model()
        trainer = lightning.Trainer(
            accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
            default_root_dir=out,
        )
        trainer.fit(model, loader, **options)
        Path(out, f"{name}_{trainer.global_rank}").write_text(json.dumps(model.seen))

    fit("whole")
    fit("resumed", ckpt_path=f"{out}/middle.ckpt")
"""


@pytest.mark.timeout(240)
def test_two_processes_share_the_data_and_resume(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    script = out / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(out)],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]

    def seen(name, rank):
        return json.loads((out / f"{name}_{rank}").read_text())

    for epoch in range(2):
        first, second = (
            [number for at, rows, _ in seen("whole", rank) if at == epoch for number in rows]
            for rank in range(2)
        )
        assert len(first) == len(second) == 6  # the last sample of each is repeated
        assert sorted([*{*first}, *{*second}]) == [*range(10)]
    for rank in range(2):
        assert seen("resumed", rank) == seen("whole", rank)[4:]
