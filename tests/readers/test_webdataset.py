"""`readers.Webdataset`: archives of all sorts."""

import tarfile

import numpy as np
import pytest
from tests.records import write_tar

from penstock.readers import Webdataset


def read(path, ext="jpg", **arguments):
    reader = Webdataset(paths=path, ext=ext, **arguments)
    return [bytes(np.asarray(data)) for (data,) in reader.next_epoch()]


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_may_be_long_and_of_any_letters(tmp_path, format):
    name = "l" * 150 + "/" + "n" * 200
    members = [(f"{name}.jpg", b"long"), ("é.jpg", b"letters"), ("a.jpg", b"short")]
    write_tar(tmp_path / "a.tar", members, format)
    assert read(tmp_path / "a.tar") == [b"long", b"letters", b"short"]


def test_names_may_be_divided(tmp_path):
    write_tar(tmp_path / "a.tar", [("d" * 90 + "/" + "f" * 90 + ".jpg", b"data")])
    [(data,)] = Webdataset(paths=tmp_path / "a.tar", ext="jpg").next_epoch()
    assert data.source_info.endswith("d/" + "f" * 90 + ".jpg")


def test_sparse_files_are_refused(tmp_path):
    write_tar(tmp_path / "a.tar", [("a.jpg", b"data"), ("b.jpg", (tarfile.GNUTYPE_SPARSE, ""))])
    with pytest.raises(ValueError, match=r"'b.jpg' is a sparse file"):
        read(tmp_path / "a.tar")


def test_an_archive_may_end_without_empty_blocks(tmp_path):
    write_tar(tmp_path / "a.tar", [("a.jpg", b"data")])
    (tmp_path / "a.tar").write_bytes((tmp_path / "a.tar").read_bytes()[: 512 + 4])
    assert read(tmp_path / "a.tar") == [b"data"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a tar archive: it has 0 bytes"),
        (b"\x1f\x8b" + b"\0" * 600, "compressed with gzip; decompress it first"),
        (b"x" * 600, "wrong checksum; it may not be a tar archive"),
        (b"\0" * 1024, "names no samples"),
    ],
)
def test_what_is_no_archive_of_samples_is_said(tmp_path, content, says):
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(ValueError, match=says):
        read(tmp_path / "a.tar")


def test_bytes_that_are_no_whole_numbers_are_bad_samples(tmp_path):
    write_tar(tmp_path / "a.tar", [("a.jpg", b"four"), ("b.jpg", b"fives")])
    with pytest.raises(OSError, match="5 bytes, which is not a whole number of i32"):
        read(tmp_path / "a.tar", dtypes="int32")
    assert read(tmp_path / "a.tar", dtypes="int32", on_error="skip") == [b"four"]


def test_missing_components_are_named(tmp_path):
    write_tar(tmp_path / "a.tar", [("a.jpg", b"1"), ("b.png", b"2")])
    with pytest.raises(ValueError, match="sample 'b' has no component 'jpg;jpeg'"):
        read(tmp_path / "a.tar", "jpg;jpeg", missing_component_behavior="error")
