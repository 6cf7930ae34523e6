"""What is wrong with the machine, or with what a name stands for, is told and never left out."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from tests.data_sets import MAKERS, reader_classes

import penstock as ndd
from penstock.readers import COCO, MXNet, NemoAsr, TFRecord, Webdataset
from penstock.tfrecord import FixedLenFeature, string

OPEN_ON_READING = ["Arrow", "COCO", "File", "MDS", "MXNet", "NemoAsr", "Numpy", "Parquet"]
OPEN_ON_READING += ["TFRecord", "Webdataset", "Video", "VideoResize"]
OPEN_ON_READING += ["Fits", "experimental.Video"]


def in_a_process(code, *arguments):
    """What a program prints, which may spoil its process."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.heavy
def test_samples_are_not_left_out_for_want_of_descriptors(tmp_path):
    """They can be read when there are some again."""
    told = in_a_process(
        """
        import resource, sys
        from pathlib import Path
        from tests.data_sets import MAKERS, reader_classes

        def given(reader):
            parts = (o[0] if isinstance(o, tuple) else next(iter(o.values()))
                     for o in reader.next_epoch(batch_size=2))
            return sum(part.batch_size for part in parts)

        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        for name, kind in reader_classes().items():
            if name == "Lance":
                continue  # read by another library, which does not tell why it can't
            folder = Path(sys.argv[1], name)
            folder.mkdir()
            arguments = MAKERS[name](folder, 6)
            for on_error in ("skip", "substitute"):
                make = lambda: kind(**arguments, on_error=on_error, last_batch="partial")
                reader = make()
                resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
                try:
                    told = given(reader)
                except OSError as error:
                    assert "too many files" in str(error), error
                    told = "raised"
                try:
                    made = make()
                    opened = "opened"
                except OSError as error:
                    assert "oo many" in str(error), error
                    opened = "refused"
                except ValueError as error:  # a folder that can't be listed
                    assert "Too many" in str(error), error
                    opened = "refused"
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                assert not reader.errors
                reader.reset()
                print(name, told, opened, given(reader))
        """,
        tmp_path,
    )
    rows = [tuple(told[at : at + 4]) for at in range(0, len(told), 4)]
    assert {name for name, *_ in rows} == set(reader_classes()) - {"Lance"}
    for name, given, opened, later in rows:
        assert given == ("raised" if name in OPEN_ON_READING else "6"), name
        assert later == "6", name
        # Some name their files and open none of them.
        assert opened == "refused" or name in ("File", "Fits", "Numpy"), name


def test_a_folder_that_may_not_be_searched_is_not_the_files_fault():
    told = in_a_process("""
        import os, shutil, tempfile
        import penstock as ndd

        def read():
            reader = ndd.readers.File(files=files, on_error="skip", last_batch="partial")
            try:
                return sum(data.batch_size for data, _ in reader.next_epoch(batch_size=3))
            except OSError as error:
                assert "permission" in str(error)
                return "raised"

        folder = tempfile.mkdtemp()
        files = [os.path.join(folder, f"{n}.bin") for n in range(3)]
        for name in files:
            open(name, "wb").write(b"x")
        print(read())
        user = os.geteuid()
        if user == 0:  # who may read everything
            for path in (folder, *files):
                os.chown(path, 65534, -1)
            os.seteuid(65534)
        os.chmod(files[1], 0)
        print(read())
        os.chmod(folder, 0)
        print(read())
        os.chmod(folder, 0o700)
        os.seteuid(user)
        shutil.rmtree(folder)
    """)
    assert told == ["3", "2", "raised"]


def pipe(path):
    os.mkfifo(path)


def folder(path):
    path.mkdir()


def device(path):
    path.symlink_to("/dev/zero")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


ODD = {pipe: "pipe", folder: "folder", device: "device", bound_socket: "socket"}
FEATURES = {"data": FixedLenFeature((), string, "")}


def readers(odd, tmp_path):
    """Readers that are given an odd file in each place where a file can be."""
    data = tmp_path / "data"
    data.write_bytes(b"data")
    stored = tmp_path / "stored"
    stored.mkdir(exist_ok=True)
    if not (stored / "filenames.dat").is_symlink():
        (stored / "filenames.dat").symlink_to(odd)
    yield lambda: COCO(file_root=tmp_path, annotations_file=odd)
    yield lambda: COCO(file_root=tmp_path, preprocessed_annotations=stored)
    yield lambda: ndd.readers.File(file_list=odd)
    yield lambda: ndd.readers.Numpy(file_list=odd)
    yield lambda: NemoAsr(manifest_filepaths=odd)
    for files, index in ((odd, None), (data, odd)):
        yield lambda: MXNet(path=files, index_path=index)  # noqa: B023
        yield lambda: TFRecord(path=files, index_path=index, features=FEATURES)  # noqa: B023
        yield lambda: Webdataset(paths=files, index_paths=index, ext="bin")  # noqa: B023


@pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)
def test_only_regular_files_are_opened(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    make(Path("odd"))
    odd = tmp_path / "odd"
    for reader in readers(odd, tmp_path):
        with pytest.raises(ValueError, match=f"it is a {ODD[make]}"):
            reader()
    if make is not folder:  # which is where databases are
        for kind in (ndd.readers.Caffe, ndd.readers.Caffe2):
            with pytest.raises(ValueError, match=f"it is a {ODD[make]}"):
                kind(path=odd)
    for kind in (ndd.readers.File, ndd.readers.Numpy):
        reader = kind(files=[odd])
        with pytest.raises(OSError, match=f"it is a {ODD[make]}"):
            [o.evaluate() for outputs in reader.next_epoch() for o in outputs]
    with pytest.raises(OSError, match=f"it is a {ODD[make]}"):
        ndd.io.file.read(str(odd)).evaluate()


def test_annotations_are_not_written_to_a_pipe(tmp_path):
    arguments = MAKERS["COCO"](tmp_path, 2)
    stored = tmp_path / "stored"
    stored.mkdir()
    os.mkfifo(stored / "counts.dat")
    with pytest.raises(ValueError, match=r"counts\.dat"):
        COCO(
            **arguments,
            save_preprocessed_annotations=True,
            save_preprocessed_annotations_dir=stored,
        )


def test_files_of_the_system_are_read_up_to_a_limit():
    assert bytes(np.asarray(ndd.io.file.read("/proc/version")))[:5] == b"Linux"
    with pytest.raises(OSError, match="its size is unknown"):
        ndd.io.file.read("/proc/self/pagemap").evaluate()


@pytest.mark.parametrize("name", ["a\0b", b"a\0b"])
def test_a_name_with_a_nul_is_said_to_have_one(tmp_path, name):
    makers = [
        lambda: COCO(file_root=tmp_path, annotations_file=name),
        lambda: COCO(file_root=tmp_path, preprocessed_annotations=name),
        lambda: ndd.readers.File(file_root=name),
        lambda: ndd.readers.File(file_list=name),
        lambda: ndd.readers.Numpy(file_root=name),
        lambda: ndd.readers.Numpy(files=[name]),
        lambda: NemoAsr(manifest_filepaths=name),
        lambda: MXNet(path=name),
        lambda: ndd.readers.Caffe(path=name),
        lambda: Webdataset(paths=[name], ext="bin"),
    ]
    for make in makers:
        with pytest.raises(ValueError, match="NUL character"):
            make()
    with pytest.raises(OSError, match="NUL character"):
        ndd.io.file.read(name).evaluate()
    with pytest.raises((OSError, ValueError), match="NUL character"):
        [data.evaluate() for data, _ in ndd.readers.File(files=[name]).next_epoch()]
