"""Arrow files and streams, and data sets of Hugging Face on disk."""

import json

import datasets
import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from tests.data_sets import contents
from tests.readers.test_parquet import COLUMNS, COUNT, TABLE, assert_rows

import penstock as ndd
from penstock.readers import Arrow


def write(path, table, kind="stream", compression=None, each=47):
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, make(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=each)
    return path


@pytest.mark.parametrize("kind", ["stream", "file"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_every_type_is_read(tmp_path, kind, compression):
    path = write(tmp_path / "a.arrow", TABLE, kind, compression)
    assert_rows(Arrow(path=path), [*range(0, COUNT, 7), 46, 47, COUNT - 1], COLUMNS)
    names = ["text", "image", "a.b"]
    assert_rows(Arrow(path=path, columns=names), [0, 5], names)


def test_large_buffers_are_read_in_parts(tmp_path):
    rng = np.random.default_rng(1)
    images = [rng.bytes(100_000) for _ in range(30)]
    vectors = rng.random((30, 20_000))
    table = pa.table({"image": images, "vector": list(vectors)})
    reader = Arrow(path=write(tmp_path / "a.arrow", table, each=100))
    for number in (0, 17, 29):
        assert np.asarray(reader[number]["image"]).tobytes() == images[number]
        np.testing.assert_array_equal(np.asarray(reader[number]["vector"]), vectors[number])


def test_other_types_of_arrow(tmp_path):
    table = pa.table(
        {
            "large text": pa.array(["a", "bc", ""], pa.large_string()),
            "large list": pa.array([[1], [], [2, 3]], pa.large_list(pa.int16())),
            "triple": pa.array([[1, 2, 3]] * 3, pa.list_(pa.float32(), 3)),
            "pairs": pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int8(), 2))),
            "when": pa.array([1, 2, 3], pa.timestamp("ms")),
            "day": pa.array([1, 2, 3], pa.date32()),
            "dictionary": pa.array(["x", "y", "x"]).dictionary_encode(),
            "view": pa.array(["x", "y", "x"], pa.string_view()),
            "null": pa.nulls(3),
            "last": pa.array([7, 8, 9]),
        }
    )
    reader = Arrow(path=write(tmp_path / "a.arrow", table))
    row = {name: np.asarray(value).tolist() for name, value in reader[2].items()}
    assert row == {
        "large text": [],
        "large list": [2, 3],
        "triple": [1, 2, 3],
        "pairs": [[3, 4], [5, 6]],
        "when": 3,
        "day": 3,
        "last": 9,
    }
    assert np.asarray(reader[1]["pairs"]).shape == (0, 2)
    for name in ("dictionary", "view", "null"):
        with pytest.raises(ValueError, match=f"column '{name}' holds"):
            Arrow(path=tmp_path / "a.arrow", columns=[name])


def test_slices_are_read_from_their_beginning(tmp_path):
    path = write(tmp_path / "a.arrow", TABLE.slice(13, 50))
    got = Arrow(path=path)[4]
    assert np.asarray(got["text"]).tobytes() == TABLE["text"][17].as_py().encode()
    assert np.asarray(got["row"]).tolist() == TABLE["row"][17].as_py()
    assert bool(np.asarray(got["truth"])) == TABLE["truth"][17].as_py()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1, None, 3], "column 'x' is null in this row"),
        ([[1.0], None, [3.0]], "column 'x' is null in this row"),
        ([[1.0], [2.0, None], []], "has a null in the list of this row"),
        ([[[1]], [[1, 2], [3]], []], "lists of different lengths"),
        ([{"bytes": b"a"}, None, {"bytes": b"c"}], "column 'x' is null in this row"),
        ([{"bytes": b"a"}, {"bytes": None}, {"bytes": b"c"}], "column 'x' is null in this row"),
    ],
    ids=["number", "list", "element", "ragged", "structure", "field"],
)
def test_rows_without_a_value_are_bad_samples(tmp_path, values, problem):
    path = write(tmp_path / "a.arrow", pa.table({"x": values}))
    with pytest.raises(RuntimeError, match=problem):
        np.asarray(Arrow(path=path)[1]["x"])
    reader = Arrow(path=path, on_error="skip")
    found = [x for batch in reader.next_epoch(batch_size=3) for x in batch["x"]]
    assert len(found) == 2
    assert len(reader.errors) == 1


def saved(folder, count=10, shards=2):
    pixels = [np.full((6, 7, 3), 20 * n, np.uint8) for n in range(count)]
    features = datasets.Features(image=datasets.Image(), label=datasets.Value("int64"))
    rows = {"image": [Image.fromarray(p) for p in pixels], "label": list(range(count))}
    data = datasets.Dataset.from_dict(rows, features=features)
    data.save_to_disk(folder, num_shards=shards)
    return pixels


def test_a_data_set_of_hugging_face_is_ready_to_decode(tmp_path):
    pixels = saved(tmp_path / "train")
    reader = Arrow(path=tmp_path / "train", shuffle="global", seed=2)
    for batch in reader.next_epoch(batch_size=10):
        labels = batch["label"].torch().tolist()
        images = np.asarray(ndd.decoders.image(batch["image"]).torch())
        assert sorted(labels) == list(range(10)) != labels
        np.testing.assert_array_equal(images, np.stack([pixels[n] for n in labels]))


def test_the_split_of_a_dict_is_chosen(tmp_path):
    parts = {
        name: datasets.Dataset.from_dict({"n": rows})
        for name, rows in {"train": [1, 2], "test": [3]}.items()
    }
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "all")
    reader = Arrow(path=tmp_path / "all", split="test")
    assert [int(np.asarray(row["n"])) for row in reader.next_epoch()] == [3]
    with pytest.raises(ValueError, match=r"`split` must be one of 'train', 'test'.*got None"):
        Arrow(path=tmp_path / "all")
    with pytest.raises(ValueError, match=r"`split` must be one of.*got 'valid'"):
        Arrow(path=tmp_path / "all", split="valid")
    with pytest.raises(ValueError, match="`split` has no effect"):
        Arrow(path=tmp_path / "all/train", split="train")
    with pytest.raises(TypeError, match="`split`"):
        Arrow(path=tmp_path / "all", split=3)


@pytest.mark.parametrize(
    "state",
    [
        "{",
        "[]",
        "{}",
        '{"_data_files": [1]}',
        '{"_data_files": [{"filename": "../../etc/passwd"}]}',
    ],
)
def test_a_damaged_state_is_refused(tmp_path, state):
    saved(tmp_path / "train")
    (tmp_path / "train/state.json").write_text(state)
    with pytest.raises(ValueError, match=r"can't be used: .*state\.json"):
        Arrow(path=tmp_path / "train")


def test_files_that_are_no_arrow(tmp_path):
    good = write(tmp_path / "a.arrow", TABLE.select(["int64", "text"]), each=40)
    whole = good.read_bytes()
    damaged = {
        "not an Arrow file": b"something else entirely",
        "is cut off": whole[:-1500],
        "has no schema": whole[:4] + bytes(4),
        "message at byte 0 is damaged": whole[:8] + b"\xff" * 64 + whole[72:],
    }
    for problem, content in damaged.items():
        (tmp_path / "b.arrow").write_bytes(content)
        with pytest.raises(ValueError, match=problem):
            Arrow(path=tmp_path / "b.arrow")
        reader = Arrow(path=[good, tmp_path / "b.arrow"], on_error="skip")
        rows = [row for batch in reader.next_epoch(batch_size=8) for row in contents(batch)]
        assert len(rows) >= COUNT, problem
        assert len(reader.errors) == 1, problem


def test_a_stream_that_ends_early_gives_what_it_has(tmp_path):
    path = write(tmp_path / "a.arrow", TABLE.select(["int64"]), each=40)
    path.write_bytes(path.read_bytes()[:-200])
    reader = Arrow(path=path, on_error="skip")
    assert reader.epoch_size == 81


def test_files_with_other_columns_are_refused(tmp_path):
    write(tmp_path / "0.arrow", pa.table({"n": [1]}))
    write(tmp_path / "1.arrow", pa.table({"n": [0.5]}))
    with pytest.raises(ValueError, match=r"1\.arrow: column 'n' is another one.*0\.arrow"):
        Arrow(path=tmp_path)


def test_the_state_names_files_in_their_order(tmp_path):
    saved(tmp_path / "train", shards=3)
    names = [
        entry["filename"]
        for entry in json.loads((tmp_path / "train/state.json").read_text())["_data_files"]
    ]
    assert len(names) == 3
    reader = Arrow(path=tmp_path / "train", columns=["label"])
    assert [int(np.asarray(row["label"])) for row in reader.next_epoch()] == list(range(10))
    assert reader[0]["label"].source_info == f"{tmp_path}/train/{names[0]} at row 0"


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_every_damaged_byte_is_an_error_or_harmless(tmp_path, compression):
    small = TABLE.select(["image", "int64", "row", "matrix", "truths"]).slice(0, 9)
    path = write(tmp_path / "a.arrow", small, compression=compression, each=5)
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for place in rng.integers(0, len(whole), 400):
        content = bytearray(whole)
        content[place] ^= 1 << rng.integers(0, 8)
        path.write_bytes(content)
        try:
            reader = Arrow(path=path, on_error="skip")
        except (ValueError, MemoryError):
            continue
        if reader.epoch_size < 100:
            for batch in reader.next_epoch(batch_size=4):
                contents(batch)
