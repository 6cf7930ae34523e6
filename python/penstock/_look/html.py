"""What notebooks show for a tensor or batch."""

from __future__ import annotations

import base64
import html
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._look import png
from penstock._look.pictures import picture
from penstock._look.samples import arrays, is_ready

if TYPE_CHECKING:
    from penstock._values.array import Array

_PATIENCE = 2.0
"""How long a notebook waits for values that are being computed, in seconds."""
_MOST_PICTURES = 16
_MOST_ROWS = 10
_SIDE = 160
_NUMBERS = 8

_FIGURE = "display:inline-block;margin:4px;vertical-align:top;max-width:{width}px"
_CAPTION = "font:11px sans-serif;overflow-wrap:anywhere"


def page(data: Array) -> str:
    """A summary line, then pictures or a table."""
    if not is_ready(data, _PATIENCE):
        return _line(f"{_title(data)}, still being computed; display it again to see it.")
    try:
        data.evaluate()
    except Exception as error:
        return _line(f"{_title(data)}, failed:") + _preformatted(str(error))
    value = data._value
    summary = [_title(data), str(data.dtype)]
    if data.layout:
        summary.append(f'layout "{data.layout}"')
    if str(data.device) != "cpu":
        summary.append(str(data.device))
    shapes = value.shapes()
    if value.batch and shapes:
        same = all(shape == shapes[0] for shape in shapes)
        summary.append(f"shape {shapes[0]}" if same else "shapes differ")
    elif shapes:
        summary.append(f"shape {shapes[0]}")
    samples = arrays(data, _MOST_PICTURES)
    pictures = [picture(sample, data.layout, _SIDE) for sample in samples]
    sources = [value.source(index) for index in range(len(samples))]
    if pictures and all(shown is not None for shown in pictures):
        body = "".join(
            _figure(index, shown, shapes[index], sources[index], value.batch)
            for index, shown in enumerate(pictures)
            if shown is not None
        )
        left_out = len(shapes) - len(pictures)
    else:
        body = _table(samples[:_MOST_ROWS], shapes, sources)
        left_out = len(shapes) - min(len(samples), _MOST_ROWS)
    if left_out > 0:
        body += _line(f"and {left_out} more samples")
    return _line(", ".join(summary)) + body


def bundle(data: Array) -> dict[str, str]:
    """What a notebook may choose from."""
    shown = page(data)
    text = f"<{_title(data)}>"
    # Text must neither wait nor raise.
    if data._value.finished:
        try:
            text = repr(data)
        except Exception as error:
            text = f"<{_title(data)}, failed: {str(error).partition(chr(10))[0]}>"
    return {"text/html": shown, "text/plain": text}


def _title(data: Array) -> str:
    value = data._value
    if not value.batch:
        return type(data).__name__
    return f"{type(data).__name__} of {len(value)} sample{'s' * (len(value) != 1)}"


def _line(text: str) -> str:
    return f'<div style="font:13px sans-serif;margin:4px">{html.escape(text)}</div>'


def _preformatted(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"


def _figure(
    index: int, shown: Any, shape: tuple[int, ...], source: str | None, numbered: bool
) -> str:
    data = base64.b64encode(png.encode(shown.pixels)).decode("ascii")
    height, width = shown.pixels.shape[:2]
    words = [f"{index}: {' x '.join(map(str, shape))}" if numbered else "", shown.note]
    if source:
        words.append(os.path.basename(source))
    caption = html.escape(", ".join(filter(None, words)))
    title = html.escape(source or "", quote=True)
    return (
        f'<figure style="{_FIGURE.format(width=max(width, 80))}">'
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" '
        f'alt="sample {index}" title="{title}">'
        f'<figcaption style="{_CAPTION}">{caption}</figcaption></figure>'
    )


def _table(samples: list[Any], shapes: list[tuple[int, ...]], sources: list[str | None]) -> str:
    with_source = any(sources)
    head = ["", "shape", "values", "range", *(["source"] if with_source else [])]
    rows = []
    for index, sample in enumerate(samples):
        cells = [str(index), str(shapes[index]), numbers(sample), _range(sample)]
        if with_source:
            cells.append(sources[index] or "")
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    top = "".join(f"<th>{cell}</th>" for cell in head)
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def numbers(sample: Any) -> str:
    """The first few numbers of an array, or what kind of file its bytes are."""
    from penstock._look.file_kinds import kind_of_bytes

    if sample.ndim == 1 and sample.dtype == np.uint8 and sample.size > _NUMBERS:
        kind = kind_of_bytes(sample[:64].tobytes())
        if kind:
            return f"{kind} file, {sample.size:,} bytes"
    flat = sample.ravel()[:_NUMBERS]
    texts = [
        f"{number:.4g}" if sample.dtype.kind == "f" else str(number) for number in flat.tolist()
    ]
    return ", ".join(texts) + (", ..." if sample.size > _NUMBERS else "")


def _range(sample: Any) -> str:
    if sample.size == 0 or sample.dtype.kind not in "iuf":
        return ""
    low, high = sample.min(), sample.max()
    return f"{low:.4g} to {high:.4g}" if sample.dtype.kind == "f" else f"{low} to {high}"
