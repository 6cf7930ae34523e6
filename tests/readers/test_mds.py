"""MosaicML's streaming format, written by its documentation."""

import itertools
import json
import struct

import numpy as np
import pytest
from tests.data_sets import contents
from tests.images import encoded, photograph
from tests.shards import PACK, shard, write_mds

import penstock as ndd
from penstock.readers import MDS

COLUMNS = {
    "any": "ndarray",
    "fixed": "ndarray:float32:2,3",
    "image": "png",
    "label": "int",
    "mask": "pil",
    "name": "str",
    "score": "float32",
    "tokens": "ndarray:uint16",
}


def sample(number):
    rng = np.random.default_rng(number)
    mask = rng.integers(0, 256, (3, 4, 3), np.uint8)
    tokens = rng.integers(0, 2**16, (2, number + 1), np.uint16)
    any_ = rng.integers(0, 100, 300 * (number % 2) + 5, np.int64)
    extents = struct.pack("<H", len(any_)) if len(any_) > 255 else bytes([len(any_)])
    stored = {
        "any": bytes([65, 1 << 2 | (len(any_) > 255)]) + extents + any_.tobytes(),
        "fixed": np.full((2, 3), number, np.float32).tobytes(),
        "image": b"png %d" % number,
        "label": number.to_bytes(8, "little"),
        "mask": struct.pack("<III", 4, 3, 3) + b"RGB" + mask.tobytes(),
        "name": f"sample {number}".encode(),
        "score": np.float32(number / 4).tobytes(),
        "tokens": bytes([2 << 2, 2, number + 1]) + tokens.tobytes(),
    }
    decoded = {
        "any": any_,
        "fixed": np.full((2, 3), number, np.float32),
        "image": np.frombuffer(stored["image"], np.uint8),
        "label": np.int64(number),
        "mask": mask,
        "name": np.frombuffer(stored["name"], np.uint8),
        "score": np.float32(number / 4),
        "tokens": tokens,
    }
    return stored, decoded


SAMPLES = [sample(number) for number in range(11)]


def write(folder, compression=None):
    return write_mds(folder, COLUMNS, [stored for stored, _ in SAMPLES], 4, compression)


@pytest.mark.parametrize("compression", [None, "zstd:3", "gz", "snappy"])
def test_every_encoding_is_read(tmp_path, compression):
    write(tmp_path, compression)
    reader = MDS(path=tmp_path)
    for number, (_, decoded) in enumerate(SAMPLES):
        got = reader[number]
        assert list(got) == sorted(COLUMNS)
        for name, wanted in decoded.items():
            found = np.asarray(got[name])
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
            np.testing.assert_array_equal(found, wanted, err_msg=name)
    assert got["mask"].layout == "HWC"
    assert got["label"].source_info.startswith(f"{tmp_path}/shard.00002.mds")


def test_columns_are_chosen_by_name_in_any_order(tmp_path):
    write(tmp_path)
    reader = MDS(path=tmp_path, columns=["score", "label"])
    batch = next(iter(reader.next_epoch(batch_size=3)))
    assert list(batch) == ["score", "label"]
    assert batch["score"].torch().tolist() == [0, 0.25, 0.5]
    with pytest.raises(ValueError, match="has 'size', and there are 'any', 'fixed'"):
        MDS(path=tmp_path, columns=["size"])


def test_shards_that_were_decompressed_are_preferred(tmp_path):
    write(tmp_path, "zstd")
    for number in range(3):
        part = [stored for stored, _ in SAMPLES[4 * number : 4 * number + 4]]
        (tmp_path / f"shard.{number:05d}.mds").write_bytes(shard(COLUMNS, part))
        (tmp_path / f"shard.{number:05d}.mds.zstd").unlink()
    assert int(np.asarray(MDS(path=tmp_path)[10]["label"])) == 10


def test_shards_are_groups(tmp_path):
    write(tmp_path, "zstd")
    reader = MDS(path=tmp_path, columns="label", shuffle="groups", initial_fill=1, seed=1)
    labels = [int(np.asarray(row["label"])) for row in reader.next_epoch()]
    assert sorted(labels) == list(range(11)) != labels
    runs = [labels[at] // 4 for at in range(11)]
    assert sum(a != b for a, b in itertools.pairwise(runs)) == 2


def change(index, **entries):
    index["shards"][1].update(entries)


WRONG_INDEX = {
    "version": (lambda index: index.update(version=1), "version 1, not 2"),
    "format": (lambda index: change(index, format="json"), "shard 1 has the format 'json'"),
    "columns": (
        lambda index: change(index, column_encodings=["bytes"] * 8),
        "shard 1 has other columns",
    ),
    "encoding": (
        lambda index: change(index, column_encodings=["ndarray:float99"] * 8),
        "unknown encoding 'ndarray:float99'",
    ),
    "sizes": (lambda index: change(index, column_sizes=[1]), "encoding and a size for each"),
    "samples": (lambda index: change(index, samples=-1), "no valid number of bytes and samples"),
    "name": (
        lambda index: change(index, raw_data={"basename": "../x", "bytes": 5}),
        "can't be named '../x'",
    ),
    "compression": (
        lambda index: (
            change(index, compression="br", zip_data={"basename": "x", "bytes": 5})
            or change(index, raw_data={"basename": "y", "bytes": 5})
        ),
        "compressed with 'br'; zstd, gz, snappy can be read",
    ),
    "shards": (lambda index: index.update(shards=[]), "has no shards"),
    "no list": (lambda index: index.update(shards=5), "not an index of MDS shards"),
    "no entry": (lambda index: index["shards"][1].pop("samples"), "not an index of MDS shards"),
}


@pytest.mark.parametrize(("damage", "problem"), WRONG_INDEX.values(), ids=WRONG_INDEX)
def test_an_index_that_cant_be_used(tmp_path, damage, problem):
    index = write(tmp_path)
    damage(index)
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=problem):
        MDS(path=tmp_path)


def test_a_missing_index_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"index\.json"):
        MDS(path=tmp_path)


def test_shards_that_are_missing_or_too_short_are_bad_samples(tmp_path):
    write(tmp_path)
    path = tmp_path / "shard.00001.mds"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"00001\.mds: it has \d+ bytes, and \d+ according"):
        MDS(path=tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match=r"00001\.mds: there is no such file"):
        MDS(path=tmp_path)
    reader = MDS(path=tmp_path, columns="label", on_error="skip", last_batch="partial")
    labels = [n for batch in reader.next_epoch(batch_size=4) for n in batch["label"].torch()]
    assert [int(n) for n in labels] == [0, 1, 2, 3, 8, 9, 10]
    assert len(reader.errors) == 1


def first_sample(folder):
    """The first shard, as bytes that can be changed, and where its first sample is."""
    content = bytearray((folder / "shard.00000.mds").read_bytes())
    return content, int.from_bytes(content[4:8], "little")


@pytest.mark.parametrize(
    ("at", "new", "problem"),
    [
        (0, b"\x09", "it has 9 samples, and 4 according to the index"),
        (4, b"\x01\0\0\0", "from byte 1 to"),
        (None, b"\xff\xff", "don't add up"),
    ],
    ids=["count", "place", "columns"],
)
def test_damaged_samples_are_named(tmp_path, at, new, problem):
    write(tmp_path)
    content, start = first_sample(tmp_path)
    at = start if at is None else at
    content[at : at + len(new)] = new
    (tmp_path / "shard.00000.mds").write_bytes(content)
    with pytest.raises(RuntimeError, match=problem):
        np.asarray(MDS(path=tmp_path, columns="label")[0]["label"])


@pytest.mark.parametrize(
    ("column", "encoding", "data", "problem"),
    [
        ("x", "int", b"abc", "column 'x' has 3 bytes, and should have 8"),
        ("x", "ndarray:uint16", bytes([4, 2, 1]), "does not hold an array"),
        ("x", "ndarray", bytes([7, 4, 2, 1]), "does not hold an array"),
        ("x", "pil", struct.pack("<III", 2, 2, 1) + b"Labc", "does not hold the pixels"),
        ("x", "pil", struct.pack("<III", 1, 1, 1) + b"Fabcd", "PIL's mode 'F'"),
    ],
)
def test_values_that_are_not_as_encoded(tmp_path, column, encoding, data, problem):
    index = write_mds(tmp_path, {column: "bytes"}, [{column: data}], 1)
    index["shards"][0]["column_encodings"] = [encoding]
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(RuntimeError, match=problem):
        np.asarray(MDS(path=tmp_path)[0][column])


def test_arrays_of_one_column_must_agree(tmp_path):
    rows = [{"x": bytes([8, 4, 1, 5])}, {"x": bytes([9, 4, 1, 5])}]
    write_mds(tmp_path, {"x": "ndarray"}, rows, 2)
    reader = MDS(path=tmp_path)
    assert np.asarray(reader[0]["x"]).tolist() == [5]
    with pytest.raises(RuntimeError, match="1 dimensions of i8, and in the first sample 1 of u8"):
        np.asarray(reader[1]["x"])


@pytest.mark.parametrize("kind", PACK)
def test_every_damaged_byte_is_an_error_or_harmless(tmp_path, kind):
    write(tmp_path, kind)
    path = tmp_path / f"shard.00000.mds.{kind}"
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for place in rng.integers(0, len(whole), 150):
        content = bytearray(whole)
        content[place] ^= 1 << rng.integers(0, 8)
        path.write_bytes(content)
        for batch in MDS(path=tmp_path, on_error="skip").next_epoch(batch_size=4):
            contents(batch)


def test_the_images_of_a_batch_are_decoded(tmp_path):
    jpeg = encoded(photograph(16, 16)).tobytes()
    write_mds(tmp_path, {"image": "jpeg"}, [{"image": jpeg}] * 3, 2)
    for batch in MDS(path=tmp_path).next_epoch(batch_size=3):
        assert ndd.decoders.image(batch["image"]).torch().shape == (3, 16, 16, 3)
