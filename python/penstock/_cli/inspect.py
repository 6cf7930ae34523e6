"""`penstock inspect`: what is in a data set, and which of its files are broken."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock._cli.files import IMAGES, SOUNDS, Found, class_of, find, look
from penstock._cli.index import record_kind, samples
from penstock._cli.terminal import Problem, Progress, count, first_line, size, table

HELP = "Count files, formats and sizes, find broken files, and make a contact sheet."

_IN_FLIGHT = 64
_SHEET = 64
_SHOWN = 20
_BY_EXTENSION = {
    ".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WebP",
    ".tif": "TIFF", ".tiff": "TIFF", ".jp2": "JPEG 2000", ".wav": "WAV", ".flac": "FLAC",
    ".ogg": "Ogg", ".mp3": "MP3", ".tar": "tar", ".npy": "NumPy",
}  # fmt: skip


class Result(NamedTuple):
    """What decoding a file has shown."""

    file: Found
    shape: tuple[int, ...] | None = None
    problem: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("path", metavar="DIR|FILE", help="a folder, or a single file")
    parser.add_argument("--sheet", metavar="PNG", help="save a contact sheet of images here")
    parser.add_argument("--quick", action="store_true", help="don't decode, look at headers only")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(given: argparse.Namespace) -> int:
    """Report; the exit code is 1 if files are broken."""
    if given.sheet is not None and not given.sheet.lower().endswith(".png"):
        raise Problem(f"--sheet must end with .png, got {given.sheet}")
    paths = find(given.path)
    with Progress("inspecting", len(paths)) as progress:
        results = []
        for result in _examine(map(look, paths), decode=not given.quick):
            results.append(result)
            progress.advance()
    facts = summary(given.path, results)
    if given.sheet is not None:
        facts["sheet"] = _save_sheet(given.sheet, results)
    if given.json:
        print(json.dumps(facts, indent=2))
    else:
        print(_report(facts))
    return int(bool(facts["broken"]))


def _examine(files: Iterator[Found], decode: bool) -> Iterator[Result]:
    """Decode the files, many at a time, and yield them in order."""
    pending: deque[tuple[Found, Any]] = deque()
    for file in files:
        pending.append((file, _begin(file) if decode else None))
        if len(pending) >= _IN_FLIGHT:
            yield _finish(*pending.popleft())
    while pending:
        yield _finish(*pending.popleft())


def _begin(file: Found) -> Any:
    """A value that is being decoded, the error of beginning, or None."""
    import numpy as np

    import penstock as ndd

    if file.kind not in IMAGES | SOUNDS:
        return None
    try:
        data = np.fromfile(file.path, np.uint8)
        if file.kind in IMAGES:
            return ndd.decoders.image(data, device="cpu")
        return ndd.decoders.audio(data)[0]
    except Exception as error:
        return error


def _finish(file: Found, value: Any) -> Result:
    if file.kind in ("empty", "unreadable"):
        return Result(file, None, file.problem or "the file is empty")
    promised = _promised(file)
    if file.kind == "unknown" and promised is not None:
        return Result(file, None, f"this is not {promised}, nor any other known format")
    if value is None:
        return Result(file)
    try:
        if isinstance(value, Exception):
            raise value
        return Result(file, value.shape)
    except Exception as error:
        # Without operator and sample, which mean nothing to who named a folder.
        return Result(file, None, re.sub(r"^decoders\.\w+: (sample 0: )?", "", first_line(error)))


def summary(root: str, results: list[Result]) -> dict[str, Any]:
    """The facts about a data set, as they are printed as JSON."""
    files = [result.file for result in results]
    kinds = Counter(file.kind for file in files)
    facts: dict[str, Any] = {
        "path": root,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "formats": dict(kinds.most_common()),
        "broken": [
            {"file": result.file.path, "problem": result.problem}
            for result in results
            if result.problem
        ],
        "misnamed": [
            {"file": file.path, "format": file.kind} for file in files if _is_misnamed(file)
        ],
    }
    if os.path.isdir(root):
        classes = Counter(
            class_of(file.path, root) for file in files if file.kind in IMAGES | SOUNDS
        )
        classes.pop("", None)
        facts["classes"] = dict(sorted(classes.items()))
    images = [result.shape for result in results if result.shape and result.file.kind in IMAGES]
    if images:
        facts["images"] = {
            "decoded": len(images),
            "height": _spread([shape[0] for shape in images]),
            "width": _spread([shape[1] for shape in images]),
        }
    lengths = [result.shape[0] for result in results if result.shape and result.file.kind in SOUNDS]
    if lengths:
        facts["sounds"] = {"decoded": len(lengths), "samples": _spread(lengths)}
    records = {}
    for file in files:
        # Finding records means reading the file, so it is done for what the name promises only.
        if file.kind in ("TFRecord", "RecordIO", "tar") or file.path.endswith(".tar"):
            try:
                kind = record_kind(file.path)
                records[file.path] = samples(file.path, kind) if kind else 0
            except Problem as problem:
                facts["broken"].append({"file": file.path, "problem": str(problem)})
    if records:
        facts["records"] = records
    return facts


def _is_misnamed(file: Found) -> bool:
    """Whether the contents are of another format than the extension says."""
    promised = _promised(file)
    return promised is not None and file.kind not in ("empty", "unreadable", "unknown", promised)


def _promised(file: Found) -> str | None:
    """The format that the extension promises. Old tar archives can't be recognized by contents."""
    promised = _BY_EXTENSION.get(os.path.splitext(file.path)[1].lower())
    return None if promised == "tar" and file.kind == "unknown" else promised


def _spread(numbers: list[int]) -> dict[str, float]:
    return {"least": min(numbers), "median": statistics.median(numbers), "most": max(numbers)}


def _report(facts: dict[str, Any]) -> str:
    parts = [f"{facts['path']}: {count(facts['files'], 'file')}, {size(facts['bytes'])}", ""]
    parts.append(table([[kind, f"{n:,}"] for kind, n in facts["formats"].items()], right=[1]))
    if "images" in facts:
        rows = [["", "least", "median", "most"]]
        for side in ("height", "width"):
            spread = facts["images"][side]
            rows.append([side, *(f"{value:g}" for value in spread.values())])
        parts += [
            "",
            f"{count(facts['images']['decoded'], 'image')} decoded",
            table(rows, (1, 2, 3)),
        ]
    if "sounds" in facts:
        spread = facts["sounds"]["samples"]
        parts += [
            "",
            f"{count(facts['sounds']['decoded'], 'sound')} decoded, of {spread['least']:,} to "
            f"{spread['most']:,} samples (median {spread['median']:,.0f})",
        ]
    if facts.get("records"):
        parts += ["", *(f"{path}: {count(n, 'sample')}" for path, n in facts["records"].items())]
    classes = facts.get("classes", {})
    if classes:
        small, large = min(classes.values()), max(classes.values())
        parts += ["", f"{count(len(classes), 'class folder')}, of {small:,} to {large:,} files"]
    parts += _listed("broken file", facts["broken"], "problem")
    parts += _listed("file with the wrong extension", facts["misnamed"], "format")
    if "sheet" in facts:
        parts += ["", f"contact sheet: {facts['sheet']}"]
    return "\n".join(parts)


def _listed(noun: str, rows: list[dict[str, str]], detail: str) -> list[str]:
    if not rows:
        return []
    head = f"1 {noun}" if len(rows) == 1 else f"{len(rows):,} {noun.replace('file', 'files', 1)}"
    lines = [f"  {row['file']}: {row[detail]}" for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"  and {len(rows) - _SHOWN:,} more (--json lists them all)")
    return ["", f"{head}:", *lines]


def _save_sheet(name: str, results: list[Result]) -> str:
    """A grid of images from all over the data set."""
    import numpy as np

    import penstock as ndd
    from penstock._look import grid, png
    from penstock._look.pictures import picture

    sound = [result.file for result in results if result.file.kind in IMAGES and not result.problem]
    if not sound:
        raise Problem("there are no images for a contact sheet")
    step = max(1, len(sound) / _SHEET)
    chosen = [sound[int(place * step)] for place in range(min(len(sound), _SHEET))]
    pictures, captions = [], []
    for file in chosen:
        try:
            image = ndd.decoders.image(np.fromfile(file.path, np.uint8), device="cpu")
            shown = picture(np.asarray(image), "HWC", 128)
        except Exception:  # only headers were looked at, with --quick
            continue
        if shown is not None:
            pictures.append(shown)
            captions.append(os.path.basename(file.path))
    if not pictures:
        raise Problem("no image could be decoded for the contact sheet")
    with open(name, "wb") as out:
        out.write(png.encode(grid.compose(pictures, None, captions)))
    return name
