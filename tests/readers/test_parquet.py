"""Parquet files as PyArrow writes them: every type, encoding, compression and kind of page."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data_sets import contents
from tests.pairs import each_pair

import penstock as ndd
from penstock.readers import Parquet

COUNT = 120


def table(count=COUNT):
    rng = np.random.default_rng(5)
    images = [{"bytes": rng.bytes(rng.integers(0, 300)), "path": f"{n}.jpg"} for n in range(count)]
    return pa.table(
        {
            "image": pa.array(images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            "truth": pa.array(rng.integers(0, 2, count).astype(bool)),
            "int8": pa.array(rng.integers(-128, 128, count), pa.int8()),
            "uint8": pa.array(rng.integers(0, 256, count), pa.uint8()),
            "int16": pa.array(rng.integers(-(2**15), 2**15, count), pa.int16()),
            "uint16": pa.array(rng.integers(0, 2**16, count), pa.uint16()),
            "int32": pa.array(rng.integers(-(2**31), 2**31, count), pa.int32()),
            "uint32": pa.array(rng.integers(0, 2**32, count), pa.uint32()),
            "int64": pa.array(rng.integers(-(2**62), 2**62, count), pa.int64()),
            "uint64": pa.array(rng.integers(0, 2**63, count, np.uint64) * 2, pa.uint64()),
            "float16": pa.array(rng.random(count).astype(np.float16)),
            "float32": pa.array(rng.random(count).astype(np.float32)),
            "float64": pa.array(rng.random(count)),
            "text": pa.array([f"text {n % 7}" for n in range(count)]),
            "fixed": pa.array([bytes([n]) * 5 for n in range(count)], pa.binary(5)),
            "row": pa.array(
                [list(rng.random(n % 6)) for n in range(count)], pa.list_(pa.float32())
            ),
            "bytes in a row": pa.array(
                [list(range(n % 4)) for n in range(count)], pa.list_(pa.uint8())
            ),
            "truths": pa.array([[True, False][: n % 3] for n in range(count)]),
            "matrix": pa.array([[[n, 1], [2, n]][: n % 3] for n in range(count)]),
            "a.b": pa.array(np.arange(count)),
        }
    )


TABLE = table()
COLUMNS = TABLE.column_names


def expected(name, row):
    value = TABLE[name][row].as_py()
    if name == "image":
        value = value["bytes"]
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    inner = {"row": "float32", "bytes in a row": "uint8", "truths": "bool", "matrix": "int64"}
    dtype = {"truth": "bool", "a.b": "int64"}.get(name, inner.get(name, name))
    made = np.array(value, dtype)
    return made.reshape(0, 0) if name == "matrix" and not value else made


def assert_rows(reader, rows, names):
    for row in rows:
        got = reader[row]
        assert list(got) == names
        for name in names:
            found, wanted = np.asarray(got[name]), expected(name, row)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), (name, row)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name} of row {row}")


DELTAS = {
    **dict.fromkeys(["int8", "int32", "int64"], "DELTA_BINARY_PACKED"),
    **dict.fromkeys(["text", "fixed"], "DELTA_BYTE_ARRAY"),
    **dict.fromkeys(["float32", "float64", "row.list.element"], "BYTE_STREAM_SPLIT"),
    "image.bytes": "DELTA_LENGTH_BYTE_ARRAY",
    "truth": "RLE",
    "matrix.list.element.list.element": "DELTA_BINARY_PACKED",
}


@each_pair(
    compression=["none", "snappy", "gzip", "zstd", "lz4"],
    data_page_version=["1.0", "2.0"],
    encoding=["dictionary", "plain", "deltas"],
    data_page_size=[1 << 20, 200],
    row_group_size=[1000, 47],
)
def test_every_way_to_write_gives_the_same_rows(
    tmp_path, compression, data_page_version, encoding, data_page_size, row_group_size
):
    deltas = {"column_encoding": DELTAS} if encoding == "deltas" else {}
    path = tmp_path / "a.parquet"
    pq.write_table(
        TABLE,
        path,
        compression=compression,
        data_page_version=data_page_version,
        use_dictionary=encoding == "dictionary",
        data_page_size=data_page_size,
        row_group_size=row_group_size,
        **deltas,
    )
    assert_rows(Parquet(path=path), [*range(0, COUNT, 7), COUNT - 1], COLUMNS)


def test_rows_that_cross_pages(tmp_path):
    rows = [list(range(n, n + 40)) for n in range(30)]
    pq.write_table(
        pa.table({"row": rows}), tmp_path / "a.parquet", data_page_size=64, write_batch_size=7
    )
    reader = Parquet(path=tmp_path / "a.parquet")
    assert [np.asarray(reader[n]["row"]).tolist() for n in range(30)] == rows


def test_columns_are_chosen_by_name_in_any_order(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    names = ["text", "image", "a.b"]
    assert_rows(Parquet(path=tmp_path / "a.parquet", columns=names), [0, 5], names)
    reader = Parquet(path=tmp_path / "a.parquet", columns="image.path")
    assert bytes(np.asarray(reader[3]["image.path"])) == b"3.jpg"


def test_images_of_hugging_face_are_ready_to_decode(tmp_path):
    import datasets
    from PIL import Image

    pixels = [np.full((8, 9, 3), 40 * n, np.uint8) for n in range(5)]
    features = datasets.Features(image=datasets.Image(), label=datasets.ClassLabel(num_classes=5))
    rows = {"image": [Image.fromarray(p) for p in pixels], "label": list(range(5))}
    data = datasets.Dataset.from_dict(rows, features=features)
    data.to_parquet(tmp_path / "train.parquet")
    reader = Parquet(path=tmp_path)
    for batch in reader.next_epoch(batch_size=5):
        images = ndd.decoders.image(batch["image"])
        np.testing.assert_array_equal(np.asarray(images.torch()), np.stack(pixels))
        assert batch["label"].torch().tolist() == list(range(5))


def test_files_of_a_folder_are_read_in_order(tmp_path):
    for number in (1, 0, 2):
        folder = tmp_path / ("more" if number == 2 else "")
        folder.mkdir(exist_ok=True)
        pq.write_table(pa.table({"n": [2 * number, 2 * number + 1]}), folder / f"{number}.parquet")
    (tmp_path / "notes.txt").write_text("not a table")
    reader = Parquet(path=tmp_path)
    assert [int(np.asarray(row["n"])) for row in reader.next_epoch()] == [0, 1, 2, 3, 4, 5]
    assert reader[3]["n"].source_info == f"{tmp_path}/1.parquet at row 1"


def test_a_file_may_have_no_nulls_where_others_do(tmp_path):
    strict = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"n": [1]}, schema=strict), tmp_path / "0.parquet")
    pq.write_table(pa.table({"m": [0], "n": [2]}), tmp_path / "1.parquet")
    reader = Parquet(path=tmp_path, columns="n")
    assert [int(np.asarray(reader[n]["n"])) for n in range(2)] == [1, 2]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1, None, 3], "column 'x' is null in this row"),
        ([[1.0], None, [3.0]], "column 'x' is null in this row"),
        ([[1.0], [2.0, None], []], "has a null in the list of this row"),
        ([[[1]], [[1, 2], [3]], []], "lists of different lengths"),
        (["a", None, "c"], "column 'x' is null in this row"),
    ],
    ids=["number", "list", "element", "ragged", "text"],
)
def test_rows_without_a_value_are_bad_samples(tmp_path, values, problem):
    pq.write_table(pa.table({"x": values}), tmp_path / "a.parquet")
    with pytest.raises(RuntimeError, match=problem):
        np.asarray(Parquet(path=tmp_path / "a.parquet")[1]["x"])
    reader = Parquet(path=tmp_path / "a.parquet", on_error="skip")
    found = [x for batch in reader.next_epoch(batch_size=3) for x in batch["x"]]
    assert len(found) == 2
    assert len(reader.errors) == 1


def test_empty_lists_texts_and_row_groups(tmp_path):
    schema = pa.schema([("x", pa.list_(pa.int32())), ("t", pa.string())])
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for rows in ([[], [1]], [], [[2, 3]]):
            texts = ["", "a", "b"][: len(rows)]
            writer.write_table(pa.table({"x": rows, "t": texts}, schema=schema))
    reader = Parquet(path=tmp_path / "a.parquet", shuffle="groups", initial_fill=1)
    assert [np.asarray(reader[n]["x"]).tolist() for n in range(3)] == [[], [1], [2, 3]]
    assert [np.asarray(reader[n]["t"]).size for n in range(3)] == [0, 1, 0]
    assert sorted(len(np.asarray(row["x"])) for row in reader.next_epoch()) == [0, 1, 2]


WRONG_TABLES = {
    "missing": ({"a": [1], "b": [2]}, "c", 'no column \'c\'; there are "a", "b"'),
    "structure": ({"s": [{"x": 1, "y": 2}]}, "s", 'name one of its fields.*"x", "y"'),
    "texts": ({"s": [["a"]]}, "s", "lists of texts"),
    "decimals": ({"d": pa.array([1], pa.decimal128(5, 2))}, "d", "holds decimals"),
    "empty name": ({"a": [1]}, "", "no column ''"),
}


@pytest.mark.parametrize(("rows", "column", "problem"), WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_columns_that_cant_be_read(tmp_path, rows, column, problem):
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=problem):
        Parquet(path=tmp_path / "a.parquet", columns=[column])


def test_without_names_columns_that_cant_be_read_are_left_out(tmp_path):
    pq.write_table(pa.table({"n": [1], "texts": [["a"]], "s": [{"x": 1}]}), tmp_path / "a.parquet")
    assert list(Parquet(path=tmp_path / "a.parquet")[0]) == ["n", "s"]


def test_wrong_arguments(tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    with pytest.raises(ValueError, match="`columns` is empty"):
        Parquet(path=path, columns=[])
    with pytest.raises(ValueError, match="names 'n' more than once"):
        Parquet(path=path, columns=["n", "n"])
    with pytest.raises(TypeError, match="`columns`"):
        Parquet(path=path, columns=[3])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"hold none with '\.parquet'"):
        Parquet(path=tmp_path / "empty")
    with pytest.raises(ValueError, match="no such file"):
        Parquet(path=tmp_path / "b.parquet")


def test_files_that_are_no_parquet(tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    damaged = {
        "too few for a Parquet file": b"PAR1",
        "its last bytes are different": whole[:-4] + b"XXXX",
        "is encrypted": whole[:-4] + b"PARE",
        "claims to have": whole[:-8] + b"\xff\xff\xff\x0fPAR1",
        "its footer is damaged": b"PAR1" + b"\xff" * 40 + b"\x28\0\0\0PAR1",
    }
    for problem, content in damaged.items():
        (tmp_path / "b.parquet").write_bytes(content)
        with pytest.raises(ValueError, match=problem):
            Parquet(path=tmp_path / "b.parquet")
        paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        reader = Parquet(path=paths, on_error="skip")
        rows = [contents(batch) for batch in reader.next_epoch(batch_size=2)]
        assert len(rows) == 1
        assert len(rows[0]) == 1
        assert len(reader.errors) == 1


def test_files_with_other_columns_are_refused(tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"n": ["one"]}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet: column 'n' is another one.*0\.parquet"):
        Parquet(path=tmp_path)


def test_an_unknown_compression_is_named(tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet", compression="brotli")
    with pytest.raises(ValueError, match="column 'n' is compressed with Brotli"):
        Parquet(path=tmp_path / "a.parquet")


def test_every_damaged_byte_is_an_error_or_harmless(tmp_path):
    path = tmp_path / "a.parquet"
    small = TABLE.select(["image", "int64", "row", "matrix", "text"]).slice(0, 9)
    pq.write_table(small, path, compression="zstd", row_group_size=5)
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for place in rng.integers(0, len(whole), 400):
        content = bytearray(whole)
        content[place] ^= 1 << rng.integers(0, 8)
        path.write_bytes(content)
        try:
            reader = Parquet(path=path, on_error="skip")
        except (ValueError, MemoryError):
            continue
        if reader.epoch_size < 100:
            for batch in reader.next_epoch(batch_size=4):
                contents(batch)
