"""`penstock.hf` with Hugging Face's own data sets, DataLoaders, Trainer and Accelerate."""

import io
import json
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from PIL import Image

import penstock as ndd

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("datasets")

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore"),  # of the frameworks' own
]

SIZES = [(12, 16), (9, 8), (20, 11), (7, 7)]


def pictures():
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 256, (*size, 3), np.uint8)) for size in SIZES]


def png(picture):
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def in_form(form, folder):
    """A data set of four images and labels, and what the transform gets of its images."""
    images = pictures()
    if form == "bytes":
        column = [png(image) for image in images]
        feature = datasets.Value("binary")
    elif form == "files":
        column = []
        for number, image in enumerate(images):
            column.append(str(folder / f"{number}.png"))
            image.save(column[-1])
        feature = datasets.Image(decode=False)
    elif form == "paths":
        data, _ = in_form("files", folder)
        column = [str(folder / f"{number}.png") for number in range(4)]
        feature = datasets.Value("string")
    else:
        column = [{"bytes": png(image), "path": None} for image in images]
        feature = datasets.Image(decode=form == "pil")
    features = datasets.Features({"image": feature, "label": datasets.Value("int64")})
    data = datasets.Dataset.from_dict({"image": column, "label": [3, 1, 4, 1]}, features)
    return data, [np.asarray(image) for image in images]


FORMS = ["bytes", "embedded", "files", "paths", "pil"]


def decoded(column):
    if isinstance(column, list):
        return ndd.imread(column)
    return column if column.layout == "HWC" else ndd.decoders.image(column)


def keep(columns):
    return {"pixels": decoded(columns["image"]), "label": columns["label"]}


def small(columns):
    images = ndd.resize(decoded(columns["image"]), size=[4, 5])
    return {"x": ndd.crop_mirror_normalize(images, std=[255]), "labels": columns["label"]}


@pytest.mark.parametrize("form", FORMS)
def test_transforms_get_images_in_any_form(form, tmp_path):
    data, expected = in_form(form, tmp_path)
    data.set_transform(ndd.hf.transform(keep))
    for number, image in enumerate(expected):
        row = data[number]
        np.testing.assert_array_equal(row["pixels"], image)
        assert row["label"].dtype == torch.int64
    several = data[1:3]
    assert [tuple(pixels.shape[:2]) for pixels in several["pixels"]] == SIZES[1:3]
    assert several["label"].tolist() == [1, 4]


@pytest.mark.parametrize("form", FORMS)
def test_collators_get_images_in_any_form(form, tmp_path):
    data, expected = in_form(form, tmp_path)
    collate = ndd.hf.collator(keep)
    [batch] = torch.utils.data.DataLoader(data, batch_size=1, collate_fn=collate, sampler=[2])
    np.testing.assert_array_equal(batch["pixels"][0], expected[2])
    loader = torch.utils.data.DataLoader(data, batch_size=2, collate_fn=ndd.hf.collator(small))
    batches = list(loader)
    assert [tuple(batch["x"].shape) for batch in batches] == [(2, 3, 4, 5)] * 2
    assert torch.cat([batch["labels"] for batch in batches]).tolist() == [3, 1, 4, 1]


def test_both_ways_give_the_same(tmp_path):
    data, _ = in_form("embedded", tmp_path)
    loader = torch.utils.data.DataLoader(data, batch_size=4, collate_fn=ndd.hf.collator(small))
    [collated] = loader
    transformed = data.with_transform(ndd.hf.transform(small))
    [stacked] = torch.utils.data.DataLoader(transformed, batch_size=4)
    for key in ("x", "labels"):
        assert torch.equal(collated[key], stacked[key])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_run_collators(tmp_path, method):
    data, _ = in_form("embedded", tmp_path)
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=2,
        collate_fn=ndd.hf.collator(small),
        num_workers=2,
        multiprocessing_context=method,
    )
    assert [tuple(batch["x"].shape) for batch in loader] == [(2, 3, 4, 5)] * 2


def test_streams_have_collators_and_maps(tmp_path):
    data, _ = in_form("embedded", tmp_path)
    stream = data.to_iterable_dataset(num_shards=2).map(lambda row: {"label": row["label"] + 1})
    loader = torch.utils.data.DataLoader(stream, batch_size=2, collate_fn=ndd.hf.collator(small))
    assert [batch["labels"].tolist() for batch in loader] == [[4, 2], [5, 2]]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2, 3], ndd.int64),
        ([1.5, 2, 3], ndd.float32),
        ([True, False], ndd.bool),
        ([[1, 2], [3]], ndd.int64),
        ([[], [3]], ndd.int64),
        ([[], []], ndd.float32),
        ([[1.5], [2.5]], ndd.float32),
        ([np.zeros((2, 3), np.float16)] * 2, ndd.float16),
        ([torch.zeros(2, dtype=torch.int8), torch.zeros(3, dtype=torch.int8)], ndd.int8),
        ([b"ab", b"c"], ndd.uint8),
    ],
    ids=str,
)
def test_data_becomes_batches(values, dtype):
    seen = []
    ndd.hf.collator(lambda columns: seen.append(columns["x"]))([{"x": value} for value in values])
    [column] = seen
    assert isinstance(column, ndd.Batch)
    assert column.dtype == dtype
    for found, value in zip(column, values, strict=True):
        value = list(value) if isinstance(value, bytes) else value
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize(
    "values",
    [["cat", "dog"], [1, None], [{"bbox": [1]}], [["a"], ["b"]], [[[1], [2, 3]]], [[1], ["a"]]],
    ids=str,
)
def test_other_columns_stay_lists(values):
    seen = []
    ndd.hf.collator(lambda columns: seen.append(columns["x"]))([{"x": value} for value in values])
    assert seen == [values]


def test_modes_of_images_are_kept():
    seen = []
    collate = ndd.hf.collator(lambda columns: seen.append(columns["x"]))
    for mode, channels in [("L", 1), ("RGB", 3), ("RGBA", 4), ("P", 3)]:
        collate([{"x": Image.new(mode, (3, 2))}])
        assert seen[-1].shape == [(2, 3, channels)]


def test_mistakes_are_named(tmp_path):
    with pytest.raises(TypeError, match=r"hf\.transform: `fn` must be a function"):
        ndd.hf.transform(3)
    with pytest.raises(TypeError, match="must return a dictionary of columns, got"):
        ndd.hf.transform(lambda columns: 3)({"x": [1]})
    with pytest.raises(TypeError, match="same columns, got one with 'x' and one with 'y'"):
        ndd.hf.collator(keep)([{"x": 1}, {"y": 1}])
    with pytest.raises(TypeError, match=r"same columns, got .*tuple"):
        ndd.hf.collator(keep)([(1, 2)])
    with pytest.raises(ValueError, match="column 'image': an image has neither"):
        ndd.hf.collator(keep)([{"image": {"bytes": None, "path": None}}])
    missing = {"bytes": None, "path": str(tmp_path / "no.png")}
    with pytest.raises(OSError, match=r"no\.png"):
        ndd.hf.collator(keep)([{"image": missing, "label": 1}])


def test_they_can_be_pickled_and_shown():
    for kind in (ndd.hf.transform, ndd.hf.collator):
        again = pickle.loads(pickle.dumps(kind(small)))
        assert repr(again) == f"hf.{kind.__name__}(small)"


def model():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(60, 5))
            self.seen = []

        def forward(self, x, labels):
            self.seen += labels.tolist()
            return {"loss": torch.nn.functional.cross_entropy(self.layers(x), labels)}

    return Model()


@pytest.mark.parametrize("way", ["transform", "collator"])
def test_the_trainer_takes_them(tmp_path, way):
    transformers = pytest.importorskip("transformers")
    data, _ = in_form("embedded", tmp_path)
    more = {}
    if way == "transform":
        data.set_transform(ndd.hf.transform(small))
    else:
        more["data_collator"] = ndd.hf.collator(small)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "run"),
        num_train_epochs=2,
        per_device_train_batch_size=2,
        remove_unused_columns=False,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
    )
    trained = model()
    transformers.Trainer(trained, arguments, train_dataset=data, **more).train()
    assert sorted(trained.seen[:4]) == sorted(trained.seen[4:]) == [1, 1, 3, 4]


PROGRAM = """
    import json
    import sys
    from pathlib import Path

    import accelerate
    import datasets
    import torch
    import penstock as ndd

    out, dispatch = Path(sys.argv[1]), sys.argv[2] == "dispatch"
    data = datasets.Dataset.from_dict({"x": list(range(12))}).to_iterable_dataset(num_shards=4)
    config = accelerate.DataLoaderConfiguration(dispatch_batches=dispatch)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=config)

    def double(columns):
        return {"x": columns["x"] * 2}

    loader = torch.utils.data.DataLoader(data, batch_size=2, collate_fn=ndd.hf.collator(double))
    seen = [batch["x"].tolist() for batch in accelerator.prepare(loader)]
    mine = json.dumps([accelerator.num_processes, seen])
    (out / str(accelerator.process_index)).write_text(mine)
    accelerator.end_training()
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("way", ["shards", "dispatch"])
def test_accelerate_divides_streams_once(tmp_path, way):
    pytest.importorskip("accelerate")
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "1"}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", str(script), str(tmp_path), way),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (count, first), (_, second) = (
        json.loads((tmp_path / str(rank)).read_text()) for rank in range(2)
    )
    assert count == 2
    assert len(first) == len(second) == 3
    every = [number for batch in first + second for number in batch]
    assert sorted(every) == [2 * number for number in range(12)]
