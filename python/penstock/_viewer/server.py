"""A web server for this machine only, which serves pictures by their numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

import penstock as ndd
from penstock._cli.files import class_of
from penstock._cli.terminal import first_line
from penstock._look import png
from penstock._look.pictures import picture
from penstock._viewer.augmentations import Augmentation
from penstock._viewer.page import PAGE

_SIDE = 224
_PER_PAGE = 24


class Server(ThreadingHTTPServer):
    """Serves a page, a list of images, and the images, as they are and augmented."""

    daemon_threads = True

    def __init__(
        self,
        root: str,
        files: Sequence[str],
        augmentations: Mapping[str, Augmentation],
        port: int = 0,
    ) -> None:
        self.root, self.files, self.augmentations = root, files, augmentations
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/"

    def listing(self, start: int) -> dict[str, Any]:
        """What the page shows from an image on."""
        shown = range(start, min(start + _PER_PAGE, len(self.files)))
        return {
            "total": len(self.files),
            "per_page": _PER_PAGE,
            "augmentations": list(self.augmentations),
            "images": [
                {
                    "number": number,
                    "name": os.path.relpath(self.files[number], self.root),
                    "class": class_of(self.files[number], self.root),
                }
                for number in shown
            ],
        }

    def image(self, number: int, augmentation: str | None, seed: int) -> bytes:
        """A PNG of an image."""
        data = np.fromfile(self.files[number], np.uint8)
        images = ndd.decoders.image(ndd.batch([data]), device="cpu")
        if augmentation is not None:
            images = self.augmentations[augmentation](images, ndd.random.RNG(seed))
        sample = images.tensors[0].cpu()
        shown = picture(np.asarray(sample), sample.layout, _SIDE)
        if shown is None:
            raise ValueError(f"the result is no image: its shape is {sample.shape}")
        return png.encode(shown.pixels)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "penstock"
    sys_version = ""

    def do_GET(self) -> None:
        # A page of another site must not read pictures through the user's browser (DNS rebinding).
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost"):
            return self._answer(403, "text/plain", b"for this machine only")
        address = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        try:
            if address.path == "/":
                return self._answer(200, "text/html; charset=utf-8", PAGE.encode())
            if address.path == "/list":
                listing = self.server.listing(_number(query, "start", len(self.server.files) + 1))
                return self._answer(200, "application/json", json.dumps(listing).encode())
            if address.path == "/image":
                number = _number(query, "number", len(self.server.files))
                name = query.get("augmentation") or None
                if name is not None and name not in self.server.augmentations:
                    raise LookupError
                made = self.server.image(number, name, _number(query, "seed", 1 << 32))
                return self._answer(200, "image/png", made)
        except LookupError:
            pass
        except Exception as error:
            return self._answer(500, "text/plain; charset=utf-8", first_line(error).encode())
        return self._answer(404, "text/plain", b"not found")

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", _POLICY)
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the browser has gone to another page

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


_POLICY = "default-src 'none'; img-src 'self'; connect-src 'self'; " + (
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)


def _number(query: Mapping[str, str], name: str, below: int) -> int:
    """A number in the query, 0 by default; LookupError if it is none, or too large."""
    text = query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) < below):
        raise LookupError
    return int(text)
