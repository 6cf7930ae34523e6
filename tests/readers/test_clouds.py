"""Files on servers that speak the protocols of clouds and check the signatures of requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.clouds import AzureHandler, azure_options, google_handler
from tests.data_sets import MAKERS, epoch, moved, reader_classes
from tests.servers import serving, without_credentials

import penstock as ndd


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch, tmp_path):
    without_credentials(monkeypatch, tmp_path)


class Cloud(NamedTuple):
    """A bucket with the files of a folder."""

    folder: Path
    url: str
    options: dict[str, Any]
    wrong: dict[str, Any]
    """Options with another credential."""


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "served" / "bucket"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def azure(folder) -> Iterator[Cloud]:
    with serving(folder.parent, AzureHandler) as server:
        server.page = 5
        options = azure_options(server.url)
        yield Cloud(folder, "az://bucket", options, {**options, "account_key": "b3RoZXI="})


@pytest.fixture
def google(folder) -> Iterator[Cloud]:
    pytest.importorskip("cryptography")
    handler, account = google_handler()
    _, another = google_handler()
    with serving(folder.parent, handler) as server:
        server.page = 5
        options = {"endpoint": server.url, "service_account_key": account}
        yield Cloud(folder, "gs://bucket", options, {**options, "service_account_key": another})


@pytest.fixture(params=["azure", "google"])
def cloud(request) -> Cloud:
    found: Cloud = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "Lance"])
def test_every_reader_gives_the_same_bytes_as_from_local_files(name, cloud):
    arguments = MAKERS[name](cloud.folder, 7)
    kind_of_reader = reader_classes()[name]
    expected = epoch(kind_of_reader(**arguments))
    manifest = cloud.folder / "manifest.json"
    if manifest.exists():
        manifest.write_text(manifest.read_text().replace(str(cloud.folder), cloud.url))
    arguments = moved(arguments, cloud.folder, cloud.url)
    assert epoch(kind_of_reader(**arguments, storage_options=cloud.options)) == expected


def test_folders_are_listed_in_pages(cloud):
    for number in range(40):
        path = cloud.folder / "a b" / f"class {number % 7}+" / f"{number} ü.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number)
    local = ndd.readers.File(file_root=cloud.folder / "a b")
    remote = ndd.readers.File(file_root=f"{cloud.url}/a b", storage_options=cloud.options)
    assert remote.class_to_idx == local.class_to_idx
    assert epoch(remote) == epoch(local)


def test_parts_of_files_are_read(cloud):
    arguments = MAKERS["Webdataset"](cloud.folder, 5000)
    local = ndd.readers.Webdataset(**arguments)
    remote = ndd.readers.Webdataset(
        **moved(arguments, cloud.folder, cloud.url), storage_options=cloud.options
    )
    numbers = [4999, 0, 2500]
    for one, other in zip(remote[numbers], local[numbers], strict=True):
        assert [bytes(x) for x in one.tensors] == [bytes(x) for x in other.tensors]


def test_another_credential_is_refused_with_the_remedy(cloud):
    (cloud.folder / "a").write_bytes(b"a")
    assert epoch(ndd.readers.File(files=[f"{cloud.url}/a"], storage_options=cloud.options))
    with pytest.raises(OSError, match=r"refuses access .status 403.*; check the credential"):
        epoch(ndd.readers.File(files=[f"{cloud.url}/a"], storage_options=cloud.wrong))


def test_buckets_and_files_that_do_not_exist_are_named(cloud):
    (cloud.folder / "a").write_bytes(b"a")
    nobody = cloud.url.replace("bucket", "bucket-of-nobody")
    with pytest.raises(OSError, match="there is no bucket 'bucket-of-nobody'; check its name"):
        ndd.readers.File(file_root=nobody, storage_options=cloud.options)
    with pytest.raises(RuntimeError, match="there is no such file"):
        epoch(ndd.readers.File(files=[f"{cloud.url}/b"], storage_options=cloud.options))


def test_credentials_of_azure_and_google_are_in_the_environment(
    azure, google, monkeypatch, tmp_path
):
    (azure.folder / "a").write_bytes(b"found")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", azure.options["account_name"])
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", azure.options["account_key"])
    options = {"endpoint": azure.options["endpoint"]}
    reader = ndd.readers.File(files=["az://bucket/a"], storage_options=options)
    assert epoch(reader, 1)[0][0] == b"found"
    account = tmp_path / "account.json"
    account.write_text(google.options["service_account_key"])
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    options = {"endpoint": google.options["endpoint"]}
    reader = ndd.readers.File(files=["gs://bucket/a"], storage_options=options)
    assert epoch(reader, 1)[0][0] == b"found"
