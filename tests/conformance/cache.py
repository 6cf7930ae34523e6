"""Keeps DALI's answers on disk, so that a run with known questions doesn't start DALI.

An answer is found by the hash of everything that decides it: the environment (versions of DALI,
NumPy and Python, the code that runs a case, the number of CPUs), the source, its inputs, and the
contents of the folders that the case reads. Changing any of them makes it another question.

The cache is `.oracle-cache/` in the project. `PENSTOCK_ORACLE_CACHE` names another folder, or
turns it off (`off`). It can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

DRAWS = re.compile("random|rng|noise|seed|shuffle", re.IGNORECASE)
"""Sources that may draw random numbers; their answers are kept only if a second run agrees."""

CODE = ("case.py", "oracle_server.py")
"""The files whose code runs a case in DALI's environment."""

VERSIONS = """
import importlib.metadata, sys
print(sys.version, sys.platform)
for package in sorted(f"{d.name} {d.version}" for d in importlib.metadata.distributions()):
    if package.lower().startswith(("numpy ", "nvidia-dali", "nvidia_dali")):
        print(package)
"""

DIGEST = 32


class Cache:
    """Answers of one environment, shared by any number of processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folders: dict[str, Path] = {}
        self._locks: list[int] = []
        self._environments: dict[str, str] = {}

    @classmethod
    def of_the_project(cls) -> Cache | None:
        """The cache that the environment variable names; None where it is off."""
        name = os.environ.get("PENSTOCK_ORACLE_CACHE") or ".oracle-cache"
        return None if name == "off" else cls(ROOT / name)

    def key(self, python: Path, source: str, inputs: bytes) -> str | None:
        """What the answer to a question is found by; None where it depends on unknown files.

        Args:
            python: The Python of DALI's environment.
            source: The case.
            inputs: Its pickled inputs.
        """
        text = source.encode() + inputs
        if tempfile.gettempdir().encode() in text.replace(str(self.folder).encode(), b""):
            return None
        digest = hashlib.sha256(self._environment(python).encode())
        for part in (source.encode(), inputs, *self._contents(text)):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    def load(self, key: str) -> bytes | None:
        """The pickled answer; None where there is none, or only what is left of one."""
        try:
            data = self._path(key).read_bytes()
            answer = zlib.decompress(data[DIGEST:])
        except (OSError, zlib.error):
            return None
        return answer if hashlib.sha256(answer).digest() == data[:DIGEST] else None

    def store(self, key: str, answer: bytes) -> None:
        """Keep a pickled answer. Readers see all of it or nothing."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(answer).digest() + zlib.compress(answer, 1))
        os.replace(file.name, path)

    def make_folder(self, name: str) -> Path:
        """An empty folder for files that cases read.

        It has the same path in each run, as paths are part of questions and answers. Where
        another process uses that path, a number is added.
        """
        files = self.folder / "files"
        files.mkdir(parents=True, exist_ok=True)
        number = 0
        while True:
            path = files / (f"{name}-{number}.files" if number else f"{name}.files")
            lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                number += 1
                continue
            self._locks.append(lock)
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(path)
            path.mkdir()
            self._folders[path.name] = path
            return path

    def release(self) -> None:
        """Let other processes use the paths of this one's folders."""
        while self._locks:
            os.close(self._locks.pop())

    def _path(self, key: str) -> Path:
        return self.folder / "answers" / key[:2] / key[2:]

    def _contents(self, text: bytes) -> list[bytes]:
        """Hashes of the folders that a question mentions."""
        return [
            hash_of_tree(path)
            for name, path in sorted(self._folders.items())
            if name.encode() in text
        ]

    def _environment(self, python: Path) -> str:
        if (known := self._environments.get(str(python))) is not None:
            return known
        done = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
        parts = [done.stdout, str(os.cpu_count())]
        parts += [f"{key}={value}" for key, value in sorted(os.environ.items()) if "DALI" in key]
        parts += [(HERE / name).read_text() for name in CODE]
        self._environments[str(python)] = "\n".join(parts)
        return self._environments[str(python)]


def hash_of_tree(folder: Path) -> bytes:
    """A hash of all names, types, permissions and contents below a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.name == "lock.mdb":
            continue  # LMDB writes it when a database is opened
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = os.readlink(path).encode()
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        else:
            content = b""
        entry = (str(path.relative_to(folder)), mode, hashlib.sha256(content).hexdigest())
        digest.update(repr(entry).encode())
    return digest.digest()
