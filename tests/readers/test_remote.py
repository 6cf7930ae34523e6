"""Files that are named by URLs, read from servers on this machine."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests import servers
from tests.data_sets import MAKERS, contents, epoch, moved, reader_classes, table
from tests.servers import Server, moto_serving, serving, status, upload, without_credentials

import penstock as ndd
from penstock.readers._base.io_pool import remote_pool

NO_PAUSE = {"retry_timeout": 20}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch, tmp_path):
    without_credentials(monkeypatch, tmp_path)


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "served" / "bucket"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def server(folder) -> Iterator[Server]:
    with serving(folder.parent) as server:
        yield server


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    pytest.importorskip("moto")
    with moto_serving() as address:
        yield address


def data_of(value: Any) -> bytes:
    return np.asarray(value).tobytes()


def settle() -> None:
    """Wait for what is being read ahead."""
    remote_pool().drain()


def image_files(folder: Path, count: int, classes: int = 2) -> list[Path]:
    made = []
    for number in range(count):
        path = folder / f"class{number % classes}" / f"{number:04d}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"image %d" % number * (number + 1))
        made.append(path)
    return made


def url_of(file: Path, folder: Path) -> str:
    return f"s3://bucket/{file.relative_to(folder).as_posix()}"


class TestEveryReader:
    @pytest.mark.parametrize("name", MAKERS)
    @pytest.mark.parametrize("kind", ["http", "s3", "cached", "moto", "fsspec"])
    def test_gives_the_same_bytes_as_from_local_files(
        self, name, kind, folder, server, request, tmp_path
    ):
        if name == "Lance" and kind != "moto":
            pytest.skip("read by a package of its own; with one server that is enough")
        arguments = MAKERS[name](folder, 13)
        kind_of_reader = reader_classes()[name]
        expected = epoch(kind_of_reader(**arguments))
        storage: dict[str, Any] = {"storage_options": server.storage_options}
        url = "s3://bucket"
        if kind == "http":
            if name in ("Fits", "Numpy"):  # a web server has no list of its files
                kinds = {"Fits": "*.fits", "Numpy": "*.npy"}
                arguments = {"files": sorted(map(str, folder.glob(kinds[name])))}
            url, storage = f"{server.url}/bucket", {}
        elif kind == "cached":
            storage |= {"cache_dir": tmp_path / "cache", "cache_bytes": 1 << 30}
        elif kind == "moto":
            address = request.getfixturevalue("moto")
            url = f"s3://{name.lower()}"
            storage["storage_options"] = {**server.storage_options, "endpoint": address}
        elif kind == "fsspec":
            url, storage = f"memory://{name.lower()}", {}
        manifest = folder / "manifest.json"
        if manifest.exists():
            manifest.write_text(manifest.read_text().replace(str(folder), url))
        if kind == "moto":
            upload(folder, address, name.lower())
        elif kind == "fsspec":
            fsspec = pytest.importorskip("fsspec")
            memory = fsspec.filesystem("memory")
            memory.put(str(folder), f"/{name.lower()}", recursive=True)
        arguments = moved(arguments, folder, url)
        reader = kind_of_reader(**arguments, **storage)
        assert epoch(reader) == expected
        if kind == "cached":
            settle()
            before = len(server.requests)
            again = kind_of_reader(**arguments, **storage)
            assert epoch(again) == expected
            got = [path for method, path, _ in server.requests[before:] if method == "GET"]
            assert not [path for path in got if "list-type" not in path]

    def test_works_in_all_ways_that_local_files_do(self, folder, server):
        files = image_files(folder, 23)
        urls = [url_of(file, folder) for file in files]
        both = [
            ndd.readers.File(
                files=names, random_shuffle=True, seed=7, storage_options=server.storage_options
            )
            for names in (files, urls)
        ]
        assert epoch(both[0]) == epoch(both[1])
        state = both[1].get_state()
        rest = epoch(both[1])
        both[1].reset()
        both[1].set_state(state)
        assert epoch(both[1]) == rest
        copy = pickle.loads(pickle.dumps(both[1]))
        assert contents(copy[3:5]) == contents(both[0][3:5])


class TestListings:
    def test_a_url_is_listed_as_a_folder_is(self, folder, server):
        image_files(folder, 40, classes=5)
        (folder / "class1" / "deeper").mkdir()
        (folder / "class1" / "deeper" / "no.jpg").write_bytes(b"")
        (folder / "class1-b").mkdir()
        (folder / "class1-b" / "yes.JPG").write_bytes(b"1")
        (folder / "class1" / "no.txt").write_bytes(b"")
        (folder / "no.jpg").write_bytes(b"")
        server.page = 3
        local = ndd.readers.File(file_root=folder)
        remote = ndd.readers.File(file_root="s3://bucket", storage_options=server.storage_options)
        assert remote.class_to_idx == local.class_to_idx
        assert epoch(remote) == epoch(local)
        names = [remote[number][0].source_info for number in range(len(local._opened()))]
        assert names == [local[number][0].source_info for number in range(len(names))]

    def test_with_an_index_nobody_lists(self, folder, server, tmp_path):
        image_files(folder, 20)
        index = tmp_path / "train.index"
        arguments = {
            "file_root": "s3://bucket/",
            "index": index,
            "storage_options": server.storage_options,
        }
        first = epoch(ndd.readers.File(**arguments))
        assert server.counts()["LIST"] == 3
        assert epoch(ndd.readers.File(**arguments)) == first
        assert epoch(pickle.loads(pickle.dumps(ndd.readers.File(**arguments)))) == first
        assert server.counts()["LIST"] == 3
        only = ndd.readers.File(**arguments, dir_filters="class1")
        assert len(epoch(only, 1)) == 10

    def test_an_index_may_be_on_the_server(self, folder, server, tmp_path):
        image_files(folder, 6)
        index = tmp_path / "i"
        options = {"file_root": "s3://bucket", "storage_options": server.storage_options}
        expected = epoch(ndd.readers.File(**options, index=index))
        (folder / "saved").write_bytes(index.read_bytes())
        lists = server.counts()["LIST"]
        assert epoch(ndd.readers.File(**options, index="s3://bucket/saved")) == expected
        assert server.counts()["LIST"] == lists

    def test_arrays_have_an_index_too(self, folder, server, tmp_path):
        for number in range(3):
            np.save(folder / f"{number}.npy", np.full(number + 1, number))
        options = {"file_root": "s3://bucket", "storage_options": server.storage_options}
        index = tmp_path / "i"
        expected = epoch(ndd.readers.Numpy(file_root=folder), 1)
        assert epoch(ndd.readers.Numpy(**options, index=index), 1) == expected
        assert epoch(ndd.readers.Numpy(**options, index=index), 1) == expected
        assert server.counts()["LIST"] == 1

    def test_fits_files_have_an_index_too(self, folder, server, tmp_path):
        expected = epoch(ndd.experimental.readers.Fits(**MAKERS["Fits"](folder, 3)))
        options = {"file_root": "s3://bucket", "storage_options": server.storage_options}
        for _ in range(2):
            reader = ndd.experimental.readers.Fits(**options, index=tmp_path / "i")
            assert epoch(reader) == expected
        assert server.counts()["LIST"] == 1

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "line 1 is not one of an index"),
            ("penstock-index 1\ts3://other\n", "an index of s3://other, not of s3://bucket"),
            ("penstock-index 1\ts3://bucket\na\t1\n", "line 2 is not one of an index"),
            ("penstock-index 1\ts3://bucket\na\tx\t\n", "line 2 is not one of an index"),
        ],
    )
    def test_a_wrong_index_is_an_error(self, text, words, folder, server, tmp_path):
        index = tmp_path / "i"
        index.write_text(text)
        with pytest.raises(ValueError, match=words):
            ndd.readers.File(
                file_root="s3://bucket", index=index, storage_options=server.storage_options
            )

    def test_an_index_is_for_urls(self, folder):
        with pytest.raises(ValueError, match="`index` is for a `file_root` that is a URL"):
            ndd.readers.File(file_root=folder, index="i")
        with pytest.raises(ValueError, match="`index` is a listing of `file_root`"):
            ndd.readers.File(files=["a"], index="i")

    @pytest.mark.parametrize("kind", ["s3", "moto", "fsspec"])
    @pytest.mark.parametrize("name", ["Parquet", "Arrow"])
    def test_tables_in_folders_are_found_as_local_ones_are(
        self, name, kind, folder, server, request
    ):
        ending = name.lower()
        for number, place in enumerate(["b", "a-b", "a/deep/z", "a/x", "_", "9", "10"]):
            inside = folder / "train" / place
            inside.mkdir(parents=True)
            (path,) = MAKERS[name](inside, 3 + number).values()
            Path(path).rename(inside / f"{number}.{ending}")
            (inside / "README.md").write_text("no table")
        options, url = dict(server.storage_options), "s3://bucket"
        if kind == "moto":
            options["endpoint"] = request.getfixturevalue("moto")
            url = f"s3://folders-of-{ending}"
            upload(folder, options["endpoint"], url.removeprefix("s3://"))
        elif kind == "fsspec":
            memory = pytest.importorskip("fsspec").filesystem("memory")
            options, url = {}, f"memory://folders-of-{ending}"
            memory.put(str(folder), f"/folders-of-{ending}", recursive=True)
        kind_of_reader = reader_classes()[name]
        local = kind_of_reader(path=folder / "train")
        for given in (f"{url}/train", f"{url}/train/", [f"{url}/train"]):
            remote = kind_of_reader(path=given, storage_options=options)
            assert epoch(remote) == epoch(local)
            names = [remote[number]["label"].source_info for number in (0, 20)]
            expected = [local[number]["label"].source_info for number in (0, 20)]
            assert [name.removeprefix(url) for name in names] == [
                name.removeprefix(str(folder)) for name in expected
            ]
            local.reset()
        one = kind_of_reader(path=f"{url}/train/9/5.{ending}", storage_options=options)
        assert epoch(one) == epoch(kind_of_reader(path=folder / "train" / "9" / f"5.{ending}"))

    def test_a_file_of_a_table_needs_no_ending(self, folder, server):
        MAKERS["Parquet"](folder, 3)
        (folder / "samples.parquet").rename(folder / "samples.pq")
        expected = epoch(ndd.readers.Parquet(path=folder / "samples.pq"))
        options = server.storage_options
        assert epoch(
            ndd.readers.Parquet(path="s3://bucket/samples.pq", storage_options=options)
        ) == (expected)
        assert epoch(ndd.readers.Parquet(path=f"{server.url}/bucket/samples.pq")) == expected

    def test_workers_list_no_tables_again(self, folder, server):
        for number in range(2):
            (folder / str(number)).mkdir()
            MAKERS["Parquet"](folder / str(number), 3)
        reader = ndd.readers.Parquet(path="s3://bucket", storage_options=server.storage_options)
        expected = epoch(reader, 3)
        assert server.counts()["LIST"] == 3
        assert epoch(pickle.loads(pickle.dumps(reader)), 3) == epoch(reader, 3)
        assert epoch(reader, 3) == expected
        assert server.counts()["LIST"] == 3

    def test_data_sets_of_hugging_face_are_read_by_url(self, folder, server):
        datasets = pytest.importorskip("datasets")
        train = datasets.Dataset(table(7))
        parts = {"train": train, "test": train.select([5, 1])}
        datasets.DatasetDict(parts).save_to_disk(
            folder / "data", num_shards={"train": 2, "test": 1}
        )
        (folder / "data" / "train" / "cache-1.arrow").write_bytes(b"of a map, not of the data")
        options = server.storage_options
        for split in parts:
            local = ndd.readers.Arrow(path=folder / "data", split=split)
            remote = ndd.readers.Arrow(
                path="s3://bucket/data", split=split, storage_options=options
            )
            assert epoch(remote) == epoch(local)
            assert epoch(pickle.loads(pickle.dumps(remote))) == epoch(remote)
        with pytest.raises(ValueError, match="must be one of 'train', 'test', the parts of"):
            ndd.readers.Arrow(path="s3://bucket/data", storage_options=options)

    def test_folders_without_tables_are_errors(self, folder, server):
        (folder / "none").mkdir()
        (folder / "none" / "README.md").write_text("")
        options = server.storage_options
        with pytest.raises(ValueError, match="s3://bucket/none and the folders in there hold none"):
            ndd.readers.Parquet(path="s3://bucket/none", storage_options=options)
        with pytest.raises(ValueError, match="s3://bucket/nowhere: there is no such file"):
            ndd.readers.Parquet(path="s3://bucket/nowhere", storage_options=options)
        with pytest.raises(OSError, match="a web server has no list of its files"):
            ndd.readers.Parquet(path=f"{server.url}/bucket/none/")

    def test_folders_are_listed_at_the_same_time(self, folder, server):
        image_files(folder, 64, classes=32)
        server.latency = 0.1
        ndd.readers.File(file_root="s3://bucket", storage_options=server.storage_options)
        assert server.most_waiting > 1


class TestRecords:
    def test_are_read_in_blocks(self, folder, server):
        arguments = MAKERS["TFRecord"](folder, 500)
        expected = epoch(ndd.readers.TFRecord(**arguments))
        arguments = moved(arguments, folder, "s3://bucket")
        reader = ndd.readers.TFRecord(**arguments, storage_options=server.storage_options)
        assert epoch(reader) == expected
        settle()
        # The index, and the one block.
        assert server.counts() == {"HEAD": 1, "GET": 2}

    def test_cross_the_ends_of_blocks(self, folder, server, tmp_path):
        import struct

        image = np.random.default_rng(0).integers(0, 256, 3 << 20, np.uint8).tobytes()
        record = bytearray()
        for number in range(8):
            data = struct.pack("<IfQQ", 0, float(number), number, 0) + image[number:]
            record += struct.pack("<II", 0xCED7230A, len(data)) + data + bytes(-len(data) % 4)
        (folder / "a.rec").write_bytes(record)
        local = epoch(ndd.readers.MXNet(path=[str(folder / "a.rec")]))
        options = {"storage_options": server.storage_options}
        for more in ({}, {"cache_bytes": 8 << 20}, {"cache_dir": tmp_path, "cache_bytes": 1 << 30}):
            reader = ndd.readers.MXNet(path=["s3://bucket/a.rec"], **options, **more)
            assert epoch(reader) == local

    def test_that_have_changed_are_errors(self, folder, server):
        arguments = moved(MAKERS["MXNet"](folder, 5), folder, "s3://bucket")
        options = {"storage_options": server.storage_options}
        reader = ndd.readers.MXNet(**arguments, **options)
        server.etags["samples.rec"] = '"another"'
        with pytest.raises(RuntimeError, match="it has changed since it was opened"):
            epoch(reader)
        assert len(epoch(ndd.readers.MXNet(**arguments, **options))) == 8

    def test_are_asked_for_by_one_thread_only(self, folder, server):
        server.latency = 0.05
        arguments = moved(MAKERS["Webdataset"](folder, 64), folder, "s3://bucket")
        reader = ndd.readers.Webdataset(**arguments, storage_options=server.storage_options)
        epoch(reader, 64)
        assert server.counts() == {"HEAD": 1, "GET": 1}


class TestTroubles:
    @pytest.fixture
    def read(self, folder, server):
        (folder / "a.jpg").write_bytes(bytes(range(256)) * 400)

        def read(url: str = "s3://bucket/a.jpg", **options: Any) -> bytes:
            given = server.storage_options if url.startswith("s3") else {}
            reader = ndd.readers.File(files=[url], storage_options={**given, **options})
            return epoch(reader, 1)[0][0]

        return read

    @pytest.mark.parametrize("url", ["s3://bucket/a.jpg", "{}/bucket/a.jpg"])
    @pytest.mark.parametrize(
        "faults",
        [
            [status(503, servers.error("SlowDown", "Reduce your rate."))] * 3,
            [status(429, Retry_After="1")],
            [status(500), servers.reset, servers.short],
            [servers.short, servers.short],
            [servers.reset] * 3,
            [status(408)],
        ],
    )
    def test_that_pass_are_waited_for(self, url, faults, read, server):
        server.faults = list(faults)
        assert read(url.format(server.url)) == bytes(range(256)) * 400
        assert not server.faults

    def test_of_a_connection_cost_only_what_has_not_arrived(self, read, server):
        server.faults = [servers.short]
        read()
        settle()
        ranges = [headers.get("range") for _, _, headers in server.requests]
        assert f"bytes={128 * 400}-{256 * 400 - 1}" in ranges

    def test_of_a_server_that_hangs_time_out(self, read, server):
        server.faults = [servers.never]
        assert read(read_timeout=0.3) == bytes(range(256)) * 400
        assert len(server.requests) >= 2

    def test_that_last_are_errors_with_attempts_and_answer(self, read, server):
        server.faults = [status(503, servers.error("SlowDown", "Reduce your rate."))] * 99
        words = r"3 attempts in .* s have failed, the last with status 503: SlowDown: Reduce your"
        with pytest.raises(OSError, match=words) as caught:
            read(max_retries=2)
        assert "file: s3://bucket/a.jpg" in str(caught.value)

    def test_are_given_up_after_the_time_that_was_allowed(self, read, server):
        server.faults = [status(503)] * 99
        with pytest.raises(OSError, match=r"(\d+) attempts in .* s have failed") as caught:
            read(retry_timeout=1)
        attempts = re.search(r"(\d+) attempts in", str(caught.value))
        assert attempts is not None
        # Pauses are at least 50, 100, 200 and 400 ms, and no fifth one fits into a second.
        assert int(attempts[1]) in range(1, 6)
        assert server.faults

    @pytest.mark.slow
    def test_of_a_minute_delay_and_do_not_break(self, read, server):
        end = time.monotonic() + 60

        def until(handler: servers.Handler) -> bool:
            if time.monotonic() > end:
                return False
            server.faults.append(until)
            return status(503)(handler)

        server.faults = [until]
        assert read() == bytes(range(256)) * 400

    def test_with_one_file_are_those_of_a_sample(self, folder, server):
        files = [url_of(file, folder) for file in image_files(folder, 6)]
        files.insert(2, "s3://bucket/none.jpg")
        options = {"files": files, "storage_options": server.storage_options}
        reader = ndd.readers.File(**options, on_error="skip", last_batch="partial")
        assert len(epoch(reader, 3)) == 6
        (found,) = reader.errors
        assert (found.file, found.sample) == ("s3://bucket/none.jpg", 2)
        assert "there is no such file" in found.reason
        with pytest.raises(RuntimeError, match="there is no such file"):
            epoch(ndd.readers.File(**options), 3)

    def test_with_the_server_are_not_those_of_a_sample(self, folder, server):
        files = [url_of(file, folder) for file in image_files(folder, 4)]
        expired = status(400, servers.error("ExpiredToken", "The provided token has expired."))
        server.faults = [expired] * 99
        reader = ndd.readers.File(
            files=files, on_error="skip", storage_options=server.storage_options
        )
        with pytest.raises(OSError, match="the credential has expired; get a new one"):
            epoch(reader)


class TestMistakes:
    """One sentence that says what to do."""

    def refused(self, words: str, error: type[Exception] = OSError, **arguments: Any) -> None:
        with pytest.raises(error, match=words):
            epoch(ndd.readers.File(**arguments), 1)

    def test_expired_credential(self, server):
        body = servers.error("ExpiredToken", "The provided token has expired.")
        server.faults = [status(400, body)] * 9
        self.refused(
            "the credential has expired; get a new one",
            files=["s3://bucket/a"],
            storage_options=server.storage_options,
        )

    def test_refused_access(self, server):
        server.faults = [status(403, servers.error("AccessDenied", "Access Denied"))] * 9
        self.refused(
            "refuses access .status 403, AccessDenied: Access Denied.; check the credential",
            files=["s3://bucket/a"],
            storage_options=server.storage_options,
        )

    def test_no_such_bucket(self, server):
        self.refused(
            "there is no bucket 'bucket-of-nobody'; check its name",
            file_root="s3://bucket-of-nobody/train",
            storage_options=server.storage_options,
        )
        self.refused(
            "there is no bucket 'bucket-of-nobody'; check its name",
            files=["s3://bucket-of-nobody/a"],
            storage_options=server.storage_options,
        )

    def test_no_such_bucket_of_moto(self, moto, server):
        options = {**server.storage_options, "endpoint": moto}
        self.refused(
            "there is no bucket 'bucket-of-nobody'",
            file_root="s3://bucket-of-nobody/train",
            storage_options=options,
        )

    def test_nothing_below_the_url(self, server):
        self.refused(
            "nothing is listed below it",
            ValueError,
            file_root="s3://bucket/none",
            storage_options=server.storage_options,
        )

    @pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://no-such-host.invalid"])
    def test_wrong_host(self, address, server):
        self.refused(
            "the server can't be reached, 4 attempts in",
            files=["s3://bucket/a"],
            storage_options={**server.storage_options, "endpoint": address},
        )
        self.refused("the server can't be reached, 4 attempts in", files=[f"{address}/a"])

    @pytest.mark.parametrize(
        ("scheme", "words"),
        [
            ("s4", "nothing reads s4:// URLs; did you mean s3://"),
            ("htps", "nothing reads htps:// URLs; did you mean https://"),
            ("zzzzzz", "nothing reads zzzzzz:// URLs"),
        ],
    )
    def test_misspelt_scheme(self, scheme, words):
        self.refused(words, files=[f"{scheme}://bucket/a"])

    def test_missing_module(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "penstock_remote", None)
        words = r"need the package `penstock-remote`; `pip install .penstock\[remote\].` installs"
        self.refused(words, files=["s3://elsewhere/a"])

    def test_missing_package_of_fsspec(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        self.refused(
            "hf:// URLs need the Python package `huggingface_hub`; `pip install hugg",
            files=["hf://datasets/a/b"],
        )

    def test_unknown_option(self, server):
        self.refused(
            '`s3` URLs have no option "regoin"; check the URL and `storage_options`',
            files=["s3://bucket/a"],
            storage_options={"regoin": "x"},
        )
        self.refused(
            '`http` URLs have no option "regoin"',
            files=[f"{server.url}/a"],
            storage_options={"regoin": "x"},
        )

    def test_secrets_are_not_part_of_messages(self, server):
        options = {**server.storage_options, "secret": "do-not-tell", "max_retries": 0}
        server.faults = [status(503)] * 9
        with pytest.raises(OSError, match="status 503") as caught:
            epoch(ndd.readers.File(files=["s3://bucket/a"], storage_options=options), 1)
        assert "do-not-tell" not in str(caught.value)

    def test_web_servers_have_no_listing(self, server):
        self.refused("a web server has no list of its files", file_root=f"{server.url}/bucket")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"storage_options": "s3"}, "`storage_options` must be a dict"),
            ({"cache_dir": "x"}, "`cache_dir` needs a limit; give `cache_bytes`"),
            ({"cache_dir": 5, "cache_bytes": 5}, "`cache_dir` must be the name of a folder"),
            ({"cache_dir": "s3://x", "cache_bytes": 5}, "must be a local folder"),
            ({"cache_dir": "/proc/none", "cache_bytes": 5}, "`cache_dir` can't be used"),
            ({"cache_bytes": -5}, "`cache_bytes` must be positive"),
            ({"cache_bytes": "a lot"}, "`cache_bytes` must be a number of bytes"),
        ],
    )
    def test_arguments_about_storage(self, arguments, words):
        with pytest.raises((TypeError, ValueError), match=words):
            ndd.readers.File(files=["a"], **arguments)


class TestCache:
    def test_files_are_fetched_once(self, folder, server, tmp_path):
        files = [url_of(file, folder) for file in image_files(folder, 30)]
        options = {
            "files": files,
            "storage_options": server.storage_options,
            "cache_dir": tmp_path / "cache",
            "cache_bytes": 1 << 20,
        }
        first = epoch(ndd.readers.File(**options))
        settle()
        before = server.counts()
        assert epoch(ndd.readers.File(**options)) == first
        settle()
        assert server.counts() == before

    def test_it_is_bounded(self, folder, server, tmp_path):
        for number in range(40):
            (folder / f"{number}.jpg").write_bytes(bytes([number]) * 10_000)
        files = [f"s3://bucket/{number}.jpg" for number in range(40)]
        reader = ndd.readers.File(
            files=files,
            storage_options=server.storage_options,
            cache_dir=tmp_path / "cache",
            cache_bytes=100_000,
        )
        for _ in range(3):
            assert [sample[0][0] for sample in epoch(reader, 8)] == list(range(40))
            settle()
            kept = [file.stat().st_size for file in (tmp_path / "cache").rglob("*")]
            assert sum(size for size in kept if size > 5000) <= 100_000

    def test_new_versions_of_a_listing_are_fetched(self, folder, server, tmp_path):
        image_files(folder, 4)
        options = {
            "file_root": "s3://bucket",
            "storage_options": server.storage_options,
            "cache_dir": tmp_path / "cache",
            "cache_bytes": 1 << 20,
        }
        epoch(ndd.readers.File(**options))
        (folder / "class0" / "0000.jpg").write_bytes(b"something longer than before")
        expected = epoch(ndd.readers.File(file_root=folder))
        assert epoch(ndd.readers.File(**options)) == expected

    PROGRAM = textwrap.dedent(
        """
        import sys
        import numpy as np
        import penstock as ndd
        files, endpoint, cache, times = sys.argv[1].split(), *sys.argv[2:]
        options = {"endpoint": endpoint, "key": "k", "secret": "s"}
        reader = ndd.readers.File(
            files=files, storage_options=options, cache_dir=cache, cache_bytes=300_000
        )
        for turn in range(int(times)):
            batches = reader.next_epoch(batch_size=5)
            found = [np.asarray(sample).tobytes() for files, _ in batches for sample in files]
            assert [len(set(data)) for data in found] == [1] * len(files), "mixed up"
            assert [data[0] for data in found] == list(range(len(files))), "of another file"
            print(turn, flush=True)
        """
    )

    def test_processes_share_it_and_may_be_killed(self, folder, server, tmp_path):
        for number in range(40):
            (folder / f"{number}.jpg").write_bytes(bytes([number]) * 10_000)
        files = " ".join(f"s3://bucket/{number}.jpg" for number in range(40))
        cache = tmp_path / "cache"

        def start(times: int) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", self.PROGRAM, files, server.url, cache, str(times)]
            return subprocess.Popen(command, stdout=subprocess.PIPE)

        doomed = [start(1_000_000) for _ in range(2)]
        for process in doomed:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        for process in [start(5), start(5)]:
            output, _ = process.communicate(timeout=60)
            assert (process.returncode, output.split()) == (0, [b"%d" % n for n in range(5)])
        kept = [file.stat().st_size for file in cache.rglob("*") if file.is_file()]
        assert sum(size for size in kept if size > 5000) <= 300_000


class TestProcesses:
    def test_a_forked_child_reads_on_connections_of_its_own(self, folder, server):
        files = [url_of(file, folder) for file in image_files(folder, 12)]
        reader = ndd.readers.File(files=files, storage_options=server.storage_options)
        expected = epoch(reader)
        child = os.fork()
        if child == 0:
            try:
                found = epoch(reader) == expected
            except BaseException:
                found = False
            os._exit(0 if found else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert epoch(reader) == expected


class TestOperators:
    @pytest.fixture
    def picture(self, folder) -> np.ndarray[Any, Any]:
        pixels = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)
        Image.fromarray(pixels).save(folder / "a.png")
        return pixels

    def test_imread(self, picture, server):
        options = server.storage_options
        one = ndd.imread("s3://bucket/a.png", storage_options=options)
        assert np.array_equal(np.asarray(one.cpu()), picture)
        several = ndd.imread([f"{server.url}/bucket/a.png"] * 3)
        assert [np.array_equal(np.asarray(image), picture) for image in several] == [True] * 3
        with pytest.raises(OSError, match="nothing reads s4:// URLs"):
            ndd.imread("s4://bucket/a.png")
        with pytest.raises(RuntimeError, match="there is no such file"):
            ndd.imread(f"{server.url}/bucket/b.png").evaluate()

    def test_read(self, folder, picture, server, monkeypatch):
        expected = (folder / "a.png").read_bytes()
        url = f"{server.url}/bucket/a.png"
        assert data_of(ndd.io.file.read(url)) == expected
        assert [data_of(one) for one in ndd.io.file.read([url] * 9)] == [expected] * 9
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        assert data_of(ndd.io.file.read("s3://bucket/a.png")) == expected

    def test_urls_are_used_as_they_are(self, folder, server):
        (folder / "a b+ü.bin").write_bytes(b"found")
        for name in ("a b+ü.bin", "a%20b+%C3%BC.bin", "a%20b+%C3%BC.bin?signature=a%2Fb&x="):
            assert data_of(ndd.io.file.read(f"{server.url}/bucket/{name}")) == b"found"
        assert server.requests[-1][1].endswith("?signature=a%2Fb&x=")

    def test_servers_without_ranges_are_read(self, folder, server):
        server.serves_ranges = False
        arguments = MAKERS["MXNet"](folder, 12)
        expected = epoch(ndd.readers.MXNet(**arguments))
        moved_arguments = moved(arguments, folder, f"{server.url}/bucket")
        assert epoch(ndd.readers.MXNet(**moved_arguments)) == expected

    def test_empty_files(self, folder, server):
        (folder / "empty").write_bytes(b"")
        options = server.storage_options
        for url in ("s3://bucket/empty", f"{server.url}/bucket/empty"):
            given = options if url.startswith("s3") else None
            reader = ndd.readers.File(files=[url], storage_options=given)
            assert epoch(reader, 1)[0][0] == b""


class TestCredentials:
    def test_are_taken_from_the_environment_and_files(self, folder, server, monkeypatch, tmp_path):
        (folder / "a").write_bytes(b"a")
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)

        def key(**options: Any) -> str:
            reader = ndd.readers.File(files=["s3://bucket/a"], storage_options=options)
            epoch(reader, 1)
            return server.requests[-1][2].get("authorization", "").partition("/")[0]

        shared = tmp_path / "credentials"
        shared.write_text(
            "[default]\naws_access_key_id = in-file\naws_secret_access_key = x\n"
            "[other]\naws_access_key_id = in-profile\naws_secret_access_key = x\n"
        )
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shared))
        assert key().endswith("=in-file")
        assert key(profile="other").endswith("=in-profile")
        monkeypatch.setenv("AWS_PROFILE", "other")
        assert key().endswith("=in-profile")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "in-environment")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        assert key().endswith("=in-environment")
        assert key(key="given", secret="x").endswith("=given")
        assert key(anon=True) == ""
        with pytest.raises(OSError, match="there is no profile 'none'"):
            key(profile="none")


GUIDE = Path(__file__).parents[2] / "docs" / "remote.md"


def test_the_programs_of_the_guide_run(folder, server, monkeypatch, tmp_path):
    folder.rename(folder.parent / "my-bucket")
    for name in ("my-bucket/train/a/1.jpg", "my-bucket/train/b/2.jpg", "open-data/a.jpg"):
        path = folder.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(path)
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    text = GUIDE.read_text().replace("https://minio.example.com", server.url)
    text = text.replace("/local/cache", str(tmp_path / "cache"))
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(programs) == 4
    for program in programs:
        names: dict[str, Any] = {"ndd": ndd}
        exec(program, names)
        names["reader"].reset()
        assert len(epoch(names["reader"], 2)) == 2
