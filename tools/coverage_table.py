"""The table of operators: where DALI has them, which element types are tested, and how fast."""

from __future__ import annotations

import re
from pathlib import Path

from tests.element_types import TYPES, taken

from penstock._operators.definition import OPERATORS

DALI = Path(__file__).parent / "dali_operators.txt"

HEAD = """
# Coverage

All operators of DALI's dynamic mode, and those that only penstock has. Here, all of them run on
the CPU, also with [`device="gpu"`](devices.md).

- *DALI*: where DALI can run it. Only with a GPU, for those without "CPU".
- *element types*: the types of data that it is tested with (`tests/element_types.py`); those that
  are left out are refused with an error. *bytes* are encoded data.
- *speed*: DALI's time on the same CPU divided by penstock's, from [the benchmarks](benchmarks.md),
  or that of the library that is named, where DALI has nothing to compare on a CPU.
"""

PLACES = {"cpu": "CPU", "gpu": "GPU", "mixed": "GPU"}
GROUPS = {
    "integers": [name for name in TYPES if "int" in name],
    "floats": [name for name in TYPES if "float" in name],
}


def page(benchmarks: Path) -> str:
    """The page, with the ratios of another one."""
    dali = _dali()
    ratios = _ratios(benchmarks)
    former = {
        f"{operator.options.also_in}.{operator.definition.__name__}"
        for operator in OPERATORS.values()
    }
    lines = [HEAD, "| operator | DALI | element types | speed |", "|---|---|---|---|"]
    for name in sorted({*OPERATORS, *dali}):
        places = ", ".join(dict.fromkeys(PLACES[place] for place in dali.get(name, ())))
        if name in OPERATORS:
            types = _types(taken(name), bool(OPERATORS[name].inputs or OPERATORS[name].variadic))
        else:
            types = "former name" if name in former else "not yet"
        cells = [f"`{name}`", places or "no", types, ratios.get(name, "-")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _dali() -> dict[str, list[str]]:
    lines = DALI.read_text().splitlines()
    rows = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {name: places.split() for name, _, places in rows}


def _types(names: tuple[str, ...] | None, has_data: bool) -> str:
    if names is None:
        return "bytes" if has_data else "-"
    if len(names) == len(TYPES):
        return "all"
    shown = []
    for group, members in GROUPS.items():
        if all(member in names for member in members):
            shown.append(group)
            names = tuple(name for name in names if name not in members)
    return ", ".join([*names, *shown])


ROW = re.compile(r"\| (?:([\w ]+): )?([^|]+?)(?: \\\*)? \|[^|]+\|[^|]+\| \*\*([\d.]+)\*\*")
# Rows named after what an operator decodes, not after the operator.
FORMATS = {"WAV": "decoders.audio", "FLAC": "decoders.audio"}
# Kinds of data that are worth a figure of their own, with their names here.
DATA = {"uint8": "uint8", "float32": "float32", "random": "random", "5 s": "", None: ""}
PLAIN = ("automatic", "single", "mixing", "sounds", "spectrograms")


def _ratios(benchmarks: Path) -> dict[str, str]:
    """By operator: the ratios of its first row for each kind of data.

    Those with DALI, or with the other library if there are none.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    section = rival = ""
    for line in benchmarks.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").lower()
        elif head := re.match(r"\| \| penstock \| ([^|]+) \|", line):
            rival = head[1]
        elif row := ROW.match(line):
            data, label, ratio = row.groups()
            label, other = re.fullmatch(r"(.*?)(?: \((\w+)\))?", label).groups()  # type: ignore[union-attr]
            name = _operator(label.partition(",")[0], section)
            if name is None or data not in (*DATA, *PLAIN):
                continue
            rows = found.setdefault(name, {}).setdefault(other or rival, {})
            rows.setdefault(label if label in FORMATS else DATA.get(data, ""), ratio)
    return {name: _shown(by_rival) for name, by_rival in found.items()}


def _operator(label: str, section: str) -> str | None:
    """The operator that a row is about."""
    # A section for one operator has rows for its variants.
    candidates = [label, f"experimental.{label}", f"auto_aug.{label}", FORMATS.get(label), section]
    return next((name for name in candidates if name in OPERATORS), None)


def _shown(by_rival: dict[str, dict[str, str]]) -> str:
    rival = "DALI" if "DALI" in by_rival else next(iter(by_rival))
    figures = ", ".join(f"{ratio} {data}".strip() for data, ratio in by_rival[rival].items())
    return figures if rival == "DALI" else f"{figures} ({rival})"
