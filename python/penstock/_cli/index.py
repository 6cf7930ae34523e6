"""`penstock index`: index files for TFRecord, RecordIO and WebDataset."""

from __future__ import annotations

import argparse
import os
import re
import tarfile
from collections.abc import Iterator

from penstock._cli.files import check, find, look
from penstock._cli.terminal import Problem, Progress, count, first_line

HELP = "Build index files for TFRecord, RecordIO (.rec) and WebDataset (.tar) files."

_AT = " at index "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("paths", nargs="+", metavar="FILE|DIR", help="record files, or folders")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to put them; default: beside")
    parser.add_argument("-f", "--force", action="store_true", help="replace existing index files")


def run(given: argparse.Namespace) -> int:
    """Write an index for each file."""
    files = list(_files(given.paths))
    if given.output is not None:
        os.makedirs(given.output, exist_ok=True)
    with Progress("indexing", len(files)) as progress:
        for path, kind in files:
            target = index_name(path, kind, given.output)
            if os.path.exists(target) and not given.force:
                raise Problem(f"{target} exists; --force replaces it")
            lines, samples = _LINES[kind](path)
            temporary = f"{target}.{os.getpid()}.tmp"
            try:
                with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.writelines(lines)
                os.replace(temporary, target)
            finally:
                if os.path.exists(temporary):
                    os.remove(temporary)
            print(f"{target}: {count(samples, 'sample')}")
            progress.advance()
    return 0


def _files(paths: list[str]) -> Iterator[tuple[str, str]]:
    """The record files among the given ones, with their formats."""
    for path in paths:
        check(path)
        records = [(found, kind) for found in find(path) if (kind := record_kind(found))]
        if not records:
            raise Problem(f"no TFRecord, RecordIO or WebDataset file: {path}")
        yield from records


def record_kind(path: str) -> str | None:
    """The format of a file that has many samples; None if it is another one."""
    kind = look(path).kind
    if kind == "unknown" and path.endswith(".tar"):
        return "tar"
    return kind if kind in _LINES else "TFRecord" if _is_tfrecord(path, kind) else None


def _is_tfrecord(path: str, kind: str) -> bool:
    """Names of such files have no common extension, so the first checksum decides."""
    if kind != "unknown":
        return False
    try:
        return bool(_offsets(path, "tfrecord"))
    except Problem:
        return False


def index_name(path: str, kind: str, folder: str | None) -> str:
    """Where the index of a file goes."""
    stem = path if kind == "TFRecord" else os.path.splitext(path)[0]
    name = f"{stem}.idx"
    return name if folder is None else os.path.join(folder, os.path.basename(name))


def samples(path: str, kind: str) -> int:
    """How many samples a file has."""
    return _LINES[kind](path)[1]


def _offsets(path: str, format: str) -> list[int]:
    """Where each record begins. The native readers verify checksums on the way."""
    from penstock import _core
    from penstock.readers._base.source import open_source

    options: dict[str, object] = {"index": None, "tolerant": False}
    if format == "tfrecord":
        options["features"] = []
    try:
        source: _core.Source = open_source(
            "index", format, {"files": "path"}, files=[path], **options
        )
    except Exception as error:
        raise Problem(_without_prefix(first_line(error))) from None
    return [int(source.name(number).rpartition(_AT)[2]) for number in range(len(source))]


def _without_prefix(text: str) -> str:
    return text.removeprefix("index: ").removeprefix("`path` ")


def _tfrecord(path: str) -> tuple[list[str], int]:
    starts = _offsets(path, "tfrecord")
    ends = [*starts[1:], os.path.getsize(path)]
    return [f"{a} {b - a}\n" for a, b in zip(starts, ends, strict=True)], len(starts)


def _recordio(path: str) -> tuple[list[str], int]:
    starts = _offsets(path, "recordio")
    return [f"{number}\t{start}\n" for number, start in enumerate(starts)], len(starts)


def _webdataset(path: str) -> tuple[list[str], int]:
    """Files with the same name up to the first dot are a sample, as for `readers.Webdataset`."""
    rows: list[str] = []
    last = None
    try:
        # Positions are in the file itself, so compressed archives can't have an index.
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                base, _, extension = name.partition(".")
                if not member.isfile() or not base or not extension:
                    continue
                if re.search(r"\s", extension):
                    raise Problem(f"{path}: the extension of {member.name!r} contains a space")
                # Names are for messages only; a space would look like the end of one.
                shown = re.sub(r"\s", "_", member.name)
                part = f"{extension} {member.offset_data} {member.size} {shown}"
                if (folder, base) == last:
                    rows[-1] += f" {part}"
                else:
                    rows.append(part)
                last = (folder, base)
    except tarfile.TarError as error:
        raise Problem(f"{path} is not a tar archive, or is damaged: {error}") from None
    if not rows:
        raise Problem(f"{path} has no samples")
    return [f"v1.2 {len(rows)}\n", *(f"{row}\n" for row in rows)], len(rows)


_LINES = {"TFRecord": _tfrecord, "RecordIO": _recordio, "tar": _webdataset}
