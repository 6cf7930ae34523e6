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
- *speed*: DALI's time on the same CPU divided by penstock's, from [the benchmarks](benchmarks.md).
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


def _ratios(benchmarks: Path) -> dict[str, str]:
    """By operator: the ratios of its first row for each kind of data."""
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in benchmarks.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").lower()
        row = re.match(r"\| (?:(\w+): )?([^|]+?) \|[^|]+\|[^|]+\| \*\*([\d.]+)\*\*", line)
        if row is None:
            continue
        data, label, ratio = row.groups()
        name = label.partition(",")[0]
        # A section for one operator has rows for its variants.
        name = name if name in OPERATORS else section
        if name in OPERATORS and data in ("uint8", "float32", "random", None):
            found.setdefault(name, {}).setdefault(data or "", ratio)
    return {
        name: ", ".join(f"{ratio} {data}".strip() for data, ratio in rows.items())
        for name, rows in found.items()
    }
