"""The commands that look at files: output, exit codes, and bad input for all commands."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from tests import data_sets
from tests.images import encoded, photograph

import penstock as ndd
from penstock._cli import COMMANDS, main, terminal
from penstock._cli.completion import _commands

PENSTOCK = [sys.executable, "-m", "penstock"]


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "Bilder mit Leerzeichen und é"
    for number in range(6):
        group = root / f"class{number % 2}"
        group.mkdir(parents=True, exist_ok=True)
        picture = encoded(photograph(60, 80 + number, seed=number))
        (group / f"{number}.jpg").write_bytes(picture.tobytes())
    return root


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *arguments], capture_output=True, text=True, check=False, **options
    )


# Bad input

NEEDS_PATH = ["inspect", "bench", "view", "index", "lint", "migrate"]


def failed(capsys, *arguments: str) -> str:
    """What a command says that can't do its work."""
    code = main([*arguments, *(["--no-open"] if arguments[0] == "view" else [])])
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert said.err.startswith(f"penstock {arguments[0]}: ")
    assert said.err.count("\n") == 1, "one line"
    return said.err


def test_every_command_with_a_path_is_tested():
    assert {*NEEDS_PATH, "doctor", "completion"} == set(COMMANDS)


@pytest.mark.parametrize("command", NEEDS_PATH)
def test_missing_path(command, capsys, tmp_path):
    assert "no such file or folder: " in failed(capsys, command, str(tmp_path / "no where"))


@pytest.mark.parametrize("command", NEEDS_PATH)
def test_empty_folder(command, capsys, tmp_path):
    folder = tmp_path / "léer"
    folder.mkdir()
    said = failed(capsys, command, str(folder))
    assert "has no" in said or "not a" in said or "Is a directory" in said


@pytest.mark.parametrize("command", NEEDS_PATH)
@pytest.mark.parametrize("name", ["zeros.py", "zeros.jpg", "zeros"])
def test_file_of_zeros(command, name, capsys, tmp_path):
    zeros = tmp_path / name
    zeros.write_bytes(bytes(1000))
    if command == "inspect":
        assert main(["inspect", str(zeros)]) == (name == "zeros.jpg")
        said = capsys.readouterr().out
        assert "unknown  1" in said
        broken = f"1 broken file:\n  {zeros}: this is not JPEG, nor any other known format"
        assert (broken in said) == (name == "zeros.jpg")
    else:
        failed(capsys, command, str(zeros))


@pytest.mark.parametrize("command", NEEDS_PATH)
def test_names_with_line_breaks(command, capsys, tmp_path):
    assert "two\\nlines" in failed(capsys, command, str(tmp_path / "two\nlines"))


@pytest.mark.parametrize("command", ["bench", "view"])
def test_folder_of_zeros(command, capsys, tmp_path):
    (tmp_path / "zeros.jpg").write_bytes(bytes(1000))
    assert "has no images" in failed(capsys, command, str(tmp_path))


def as_nobody(*arguments: str) -> tuple[int, str]:
    """The exit code and stderr of a command, run by a user who may not read everything."""
    for command in COMMANDS:  # nobody may be unable to read the package
        importlib.import_module(f"penstock._cli.{command}")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            with contextlib.redirect_stderr(io.StringIO()) as said:
                code = main(arguments)
            os.write(writing, f"{code}\n{said.getvalue()}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as answer:
        code, said = answer.read().split("\n", 1)
    os.waitpid(child, 0)
    return int(code), said


@pytest.mark.parametrize("command", NEEDS_PATH)
def test_without_permission(command):
    closed = tempfile.mkdtemp()
    os.chmod(closed, 0o700 if os.geteuid() == 0 else 0)
    try:
        code, said = as_nobody(command, closed)
    finally:
        os.rmdir(closed)
    assert (code, said) == (
        2,
        f"penstock {command}: the folder can't be read (permission denied): {closed}\n",
    )


CLOSED_PIPE = {
    "doctor": [],
    "inspect": ["--json", "{folder}"],
    "view": ["--no-open", "{folder}"],
    "bench": ["--no-torch", "--seconds=0.05", "--size=32", "--batch-size=2", "{folder}"],
    "index": ["{folder}/samples.tar"],
    "lint": ["{folder}/a.py"],
    "migrate": ["{folder}/a.py"],
    "completion": ["bash"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_closed_pipe(command, folder):
    data_sets.webdataset(folder, 2)
    (folder / "a.py").write_text("import nvidia.dali.fn as fn\n")
    arguments = [command, *(text.format(folder=folder) for text in CLOSED_PIPE[command])]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [*PENSTOCK, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_wrong_arguments(capsys):
    for arguments in (["nonsense"], [], ["inspect"], ["completion", "csh"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    assert "usage: penstock" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"penstock {ndd.__version__}\n"


def test_terminals_that_lack_letters(folder):
    ran = run("inspect", str(folder), env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 0, ran.stderr
    assert r"und \xe9" in ran.stdout


# doctor


def test_doctor(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for words in ("penstock ", "worker threads", "container quota", "decode PNG", "numpy"):
        assert words in said
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["penstock"] == ndd.__version__
    assert set(facts["tests"].values()) == {"ok"}


def test_doctor_reports_failures(capsys, monkeypatch):
    from penstock._cli import doctor

    def broken() -> None:
        raise ValueError("the decoded pixels are wrong")

    monkeypatch.setitem(doctor.TESTS, "decode PNG", broken)
    assert main(["doctor"]) == 1
    assert "FAILED: the decoded pixels are wrong" in capsys.readouterr().out


# inspect


def test_inspect(folder, capsys, tmp_path):
    assert main(["inspect", str(folder), "--sheet", str(tmp_path / "sheet.png")]) == 0
    said = capsys.readouterr().out
    assert f"{folder}: 6 files" in said
    assert "JPEG  6" in said
    assert "width      80    82.5    85" in said
    assert "2 class folders, of 3 to 3 files" in said
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size[0] > 200


def test_inspect_finds_broken_files(folder, capsys):
    whole = (folder / "class0" / "0.jpg").read_bytes()
    (folder / "class0" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "class0" / "empty.jpg").write_bytes(b"")
    (folder / "class0" / "really a png.jpg").write_bytes(encoded(photograph(8, 8), "PNG").tobytes())
    (folder / "class0" / "gone.jpg").symlink_to(folder / "nowhere")
    assert main(["inspect", str(folder), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    broken = {os.path.basename(row["file"]): row["problem"] for row in facts["broken"]}
    assert broken.keys() == {"cut.jpg", "empty.jpg", "gone.jpg"}
    assert broken["empty.jpg"] == "the file is empty"
    assert broken["cut.jpg"].startswith("this JPEG ends after ")
    [misnamed] = facts["misnamed"]
    assert misnamed["format"] == "PNG"
    assert facts["classes"] == {"class0": 5, "class1": 3}
    assert main(["inspect", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "3 broken files:" in said
    assert "1 file with the wrong extension:" in said


def test_inspect_without_decoding(folder, capsys):
    whole = (folder / "class0" / "0.jpg").read_bytes()
    (folder / "class0" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    assert main(["inspect", str(folder), "--quick"]) == 0
    assert "decoded" not in capsys.readouterr().out


def test_inspect_of_sheets_that_cant_be(folder, capsys, tmp_path):
    failed(capsys, "inspect", str(folder), "--sheet", str(tmp_path / "sheet.jpg"))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("a")
    said = failed(capsys, "inspect", str(tmp_path / "text"), "--sheet", str(tmp_path / "a.png"))
    assert "no images for a contact sheet" in said


def test_inspect_sounds_and_records(tmp_path, capsys):
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.zeros(1000), 8000)
    data_sets.webdataset(tmp_path, 5)
    data_sets.tfrecord(tmp_path, 4)
    assert main(["inspect", str(tmp_path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sounds"]["samples"]["most"] == 1000
    counts = {os.path.basename(path): n for path, n in facts["records"].items()}
    assert counts == {"samples.tar": 5, "samples.tfrecord": 4}


# index


@pytest.mark.parametrize(
    ("format", "file", "index"),
    [
        ("tfrecord", "samples.tfrecord", "samples.tfrecord.idx"),
        ("mxnet", "samples.rec", "samples.idx"),
        ("webdataset", "samples.tar", "samples.idx"),
    ],
)
def test_index_is_one_that_readers_accept(format, file, index, tmp_path, capsys):
    arguments = getattr(data_sets, format)(tmp_path, 7)
    expected = (tmp_path / index).read_text() if (tmp_path / index).exists() else None
    for path in tmp_path.glob("*.idx"):
        path.unlink()
    assert main(["index", str(tmp_path / file)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / index}: 7 samples\n"
    if expected is not None:
        assert (tmp_path / index).read_text().split() == expected.split()
    reader = {"tfrecord": "TFRecord", "mxnet": "MXNet", "webdataset": "Webdataset"}[format]
    option = "index_paths" if format == "webdataset" else "index_path"
    arguments.pop(option, None)

    def samples(**more):
        with getattr(ndd.readers, reader)(**arguments, **more) as made:
            return [
                data_sets.contents(item.values() if isinstance(item, dict) else item)
                for item in made.next_epoch(batch_size=7)
            ]

    path = str(tmp_path / index)
    assert samples(**{option: [path]}) == samples()
    assert "--force" in failed(capsys, "index", str(tmp_path / file))
    assert main(["index", "--force", str(tmp_path / file)]) == 0


def test_index_of_a_folder_goes_where_it_is_told(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    data_sets.webdataset(data, 3)
    assert main(["index", str(data), "-o", str(tmp_path / "out" / "deep")]) == 0
    assert (tmp_path / "out" / "deep" / "samples.idx").read_text().startswith("v1.2 3\n")


def test_index_of_damaged_files(tmp_path, capsys):
    data_sets.tfrecord(tmp_path, 3)
    record = tmp_path / "samples.tfrecord"
    record.write_bytes(record.read_bytes()[:-5])
    (tmp_path / "samples.tfrecord.idx").unlink()
    assert str(record) in failed(capsys, "index", str(record))
    archive = tmp_path / "a.tar"
    archive.write_bytes(b"x" * 2000)
    assert "not a tar archive" in failed(capsys, "index", str(archive))
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    assert "has no samples" in failed(capsys, "index", str(tmp_path / "empty.tar"))
    assert not list(tmp_path.glob("*.idx*"))


# bench


def test_bench(folder, capsys):
    arguments = ["bench", str(folder), "--seconds", "0.05", "--batch-size", "2", "--size", "32"]
    before = ndd.get_num_threads()
    assert main([*arguments, "--threads", "1,2", "--no-torch"]) == 0
    said = capsys.readouterr().out
    assert "penstock, 1 thread " in said
    assert "penstock, 2 threads" in said
    assert "bottleneck" in said or "take turns" in said
    assert ndd.get_num_threads() == before
    assert main([*arguments, "--threads", "1", "--no-torch", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["images"] == 6
    assert facts["images_per_second"]["1"] > 0
    for threads in ("0", "many", "1000000"):
        assert "--threads" in failed(capsys, *arguments, "--threads", threads)


@pytest.mark.parametrize(
    "option", ["--seconds=0", "--seconds=nan", "--seconds=inf", "--batch-size=0", "--size=999999"]
)
def test_bench_with_impossible_numbers(option, folder, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bench", str(folder), option])
    assert ended.value.code == 2
    assert "error: argument --" in capsys.readouterr().err


SHORT = ["--seconds", "0.05", "--batch-size", "2", "--size", "32", "--threads", "1", "--json"]


def test_bench_of_urls_and_lists(folder, tmp_path, capsys):
    assert main(["bench", folder.as_uri(), "--no-torch", *SHORT]) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 6
    listed = tmp_path / "list.txt"
    files = sorted(folder.rglob("*.jpg"))
    listed.write_text("".join(f"{file} {number}\n" for number, file in enumerate(files[:4])))
    assert main(["bench", str(listed), *SHORT]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["images"], facts["torch_dataloader"]) == (4, None)
    assert "file:///no where" not in failed(capsys, "bench", "file:///no%20where")
    assert "memory://nowhere" in failed(capsys, "bench", "memory://nowhere")


def test_bench_takes_urls_to_the_reader(folder, monkeypatch, capsys):
    """What `readers.File` reads, `bench` measures."""
    real, asked = ndd.readers.File, []

    def reader(file_root, **options):
        asked.append(file_root)
        return real(file_root=str(folder), **options)

    monkeypatch.setattr(ndd.readers, "File", reader)
    assert main(["bench", "memory://bucket/images", *SHORT]) == 0
    assert asked == ["memory://bucket/images"]
    assert json.loads(capsys.readouterr().out)["images"] == 6


def test_bench_of_images_that_cant_be_decoded(tmp_path, capsys):
    for number in range(3):
        (tmp_path / f"{number}.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    said = failed(capsys, "bench", str(tmp_path), "--no-torch", "--seconds", "0.05")
    assert "samples of the batch are bad" in said


def test_bench_beside_torch(folder):
    pytest.importorskip("torchvision")
    from penstock._cli.torch_peer import Images

    files = sorted(str(path) for path in folder.rglob("*.jpg"))
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    images = Images([*files, str(folder / "broken.jpg")], 32)
    assert len(images) == 6
    assert images[0].shape == (3, 32, 32)


# completion


def test_completion_knows_all_commands_and_options(capsys):
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        said = capsys.readouterr().out
        for name, (_, options, words) in _commands().items():
            assert name in said
            for word in [*options, *words]:
                assert word.lstrip("-") in said
        program = shutil.which(shell)
        if program is not None:
            checked = subprocess.run([program, "-n"], input=said, text=True, capture_output=True)
            assert checked.returncode == 0, checked.stderr


def test_completion_in_bash(capsys):
    program = shutil.which("bash")
    if program is None:
        pytest.skip("bash is not installed")
    main(["completion", "bash"])
    script = capsys.readouterr().out + (
        "COMP_WORDS=(penstock inspect --s); COMP_CWORD=2; _penstock; echo ${COMPREPLY[@]}\n"
        "COMP_WORDS=(penstock in); COMP_CWORD=1; _penstock; echo ${COMPREPLY[@]}\n"
        "COMP_WORDS=(penstock completion z); COMP_CWORD=2; _penstock; echo ${COMPREPLY[@]}\n"
    )
    ran = subprocess.run([program], input=script, text=True, capture_output=True)
    assert ran.stdout.splitlines() == ["--sheet", "inspect index", "zsh"]


# Progress bars


def test_progress_is_for_terminals(capsys, monkeypatch):
    with terminal.Progress("working", 10) as progress:
        progress.advance()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with terminal.Progress("working", 10) as progress:
        progress.advance(5)
    assert "working [" in (said := capsys.readouterr().err)
    assert "50 %" in said
    assert said.endswith("\x1b[K"), "it is gone at the end"


def test_sizes_for_people():
    assert [terminal.size(n) for n in (0, 999, 1500, 2_500_000, 3e9, 4e15)] == [
        *("0 bytes", "999 bytes", "1.5 KB", "2.5 MB", "3.0 GB", "4000.0 TB"),
    ]


def test_the_docs_list_all_commands():
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    for command in COMMANDS:
        assert f"| `{command}" in page


@pytest.mark.parametrize(("is_well", "code"), [(True, 0), (False, 1)])
def test_doctor_tests_accelerators(is_well, code, capsys, monkeypatch):
    tested = SimpleNamespace(run=lambda report: report("gpu:0 was tested") or is_well)
    monkeypatch.setitem(sys.modules, "penstock._accelerators", SimpleNamespace(self_test=tested))
    assert main(["doctor", "--gpu"]) == code
    assert capsys.readouterr().out.endswith("gpu:0 was tested\n")


def test_subfolders_that_cant_be_read_are_named(folder, capsys, monkeypatch):
    def walk(path, onerror):
        onerror(PermissionError(13, "Permission denied", str(folder / "class0")))
        yield str(folder / "class1"), [], ["1.jpg", "3.jpg"]

    monkeypatch.setattr(os, "walk", walk)
    assert main(["inspect", str(folder)]) == 0
    said = capsys.readouterr()
    assert "2 files" in said.out
    assert said.err == f"penstock: skipped, can't be read: {folder / 'class0'}\n"
