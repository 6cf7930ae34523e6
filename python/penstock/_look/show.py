"""`save_grid` and `show`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from penstock._look import grid, png
from penstock._look.pictures import picture
from penstock._look.samples import arrays, captions, corners

if TYPE_CHECKING:
    from penstock._values.array import Array

_SIDE = 256
_MOST_SHOWN = 64


def sheet(
    data: Array,
    columns: int | None,
    labels: Any,
    boxes: Any,
    box_format: str,
    most: int | None = None,
) -> bytes | None:
    """A PNG of all samples; None if they are no pictures."""
    if columns is not None and (not isinstance(columns, int) or columns < 1):
        raise ValueError(f"save_grid: `columns` must be a positive integer, got {columns!r}.")
    samples = arrays(data)
    count = len(samples)
    texts = None if labels is None else captions(_listed(labels, data), count)
    corner_rows = None
    if boxes is not None:
        corner_rows = corners(_listed(boxes, data), count, box_format)
    pictures = [picture(sample, data.layout, _SIDE) for sample in samples[:most]]
    found = [shown for shown in pictures if shown is not None]
    if not found or len(found) < len(pictures):
        return None
    return png.encode(
        grid.compose(
            found,
            columns,
            None if texts is None else texts[:most],
            None if corner_rows is None else corner_rows[:most],
        )
    )


def save_grid(
    data: Array,
    path: str | os.PathLike[str],
    columns: int | None,
    labels: Any,
    boxes: Any,
    box_format: str,
) -> None:
    """Write a picture of all samples."""
    name = os.fspath(path)
    if not name.lower().endswith(".png"):
        raise ValueError(f"save_grid: `path` must end with .png, got {name!r}.")
    made = sheet(data, columns, labels, boxes, box_format)
    if made is None:
        layout = f'"{data.layout}"' if data.layout else "none"
        raise ValueError(
            f"save_grid: the data can't be shown as pictures: the layout is {layout}, the type "
            f"{data.dtype}, the number of dimensions {data.ndim}. Images need a layout such as "
            '"HWC", sequences "FHWC".'
        )
    with open(name, "wb") as file:
        file.write(made)


def show(data: Array, columns: int | None, labels: Any, boxes: Any, box_format: str) -> None:
    """In a notebook, display the data; elsewhere, open a picture or say where it is."""
    plain = columns is None and labels is None and boxes is None
    notebook = _in_notebook()
    if notebook and plain:
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        display(data)
        return
    made = sheet(data, columns, labels, boxes, box_format, _MOST_SHOWN)
    if made is None:
        print(repr(data))
        return
    if notebook:
        from IPython.display import Image, display

        display(Image(made))
        return
    descriptor, name = tempfile.mkstemp(prefix="penstock-", suffix=".png")
    with os.fdopen(descriptor, "wb") as file:
        file.write(made)
    if not _open_viewer(name):
        print(f"Saved to {name}")


def _listed(given: Any, data: Array) -> Any:
    """What belongs to the one sample of a tensor, as a list of one."""
    return given if data._value.batch else [given]


def _in_notebook() -> bool:
    """Whether there is a kernel that displays HTML."""
    main = sys.modules.get("IPython")
    shell = main.get_ipython() if main is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def _open_viewer(name: str) -> bool:
    """Open a file with the desktop's program for it; returns whether there is a desktop."""
    if sys.platform == "darwin":
        command = "open"
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        command = "xdg-open"
    else:
        return False
    try:
        subprocess.Popen([command, name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return True
