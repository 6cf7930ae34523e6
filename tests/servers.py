"""Servers on this machine that tests read from: a small one with faults on request, and moto.

The small one serves a folder, by plain HTTP and by as much of S3's protocol as reading takes
(`/bucket/key`, listings in pages). It checks no signatures; those of `clouds` do.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import struct
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

Fault = Callable[["Handler"], bool]
"""Answers a request in the server's place, or returns False."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *args: Any) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        # Headers and body are two writes.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        server = self.server
        with server.lock:
            server.requests.append((self.command, self.path, dict(self.headers)))
            server.waiting += 1
            server.most_waiting = max(server.most_waiting, server.waiting)
        if server.latency:
            time.sleep(server.latency)
        with server.lock:
            server.waiting -= 1
        with server.lock:
            fault = server.faults.pop(0) if server.faults else None
        if fault is not None and fault(self):
            return None
        problem = self.refusal()
        if problem is not None:
            return self.answer(403, error("AuthenticationFailed", problem))
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        if "list-type" in query or "comp" in query:
            return self.list(unquote(url.path).strip("/"), query)
        path = server.folder / unquote(url.path).lstrip("/")
        if not path.is_file():
            bucket = server.folder / unquote(url.path).lstrip("/").partition("/")[0]
            code = "NoSuchKey" if bucket.is_dir() else "NoSuchBucket"
            return self.answer(404, error(code, "It does not exist."))
        data = path.read_bytes()
        etag = server.etags.get(path.name, f'"{hashlib.md5(data).hexdigest()}"')
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != etag:
            return self.answer(412, error("PreconditionFailed", "The ETag differs."))
        headers = {"ETag": etag, "Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT"}
        part = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if part and server.serves_ranges:
            start, end = int(part[1]), min(int(part[2] or len(data)) + 1, len(data))
            if start >= len(data):
                return self.answer(416, error("InvalidRange", "The range is not satisfiable."))
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
            return self.answer(206, data[start:end], headers)
        return self.answer(200, data, headers)

    def refusal(self) -> str | None:
        """What is wrong with the credential, for clouds that are told by it."""
        return None

    def list(self, bucket: str, query: dict[str, list[str]]) -> None:
        server = self.server
        if not server.has_bucket(bucket):
            return self.answer(404, error("NoSuchBucket", "The specified bucket does not exist"))
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", [""])[0]
        page, more = server.page_of(bucket, prefix, after, "delimiter" in query)
        parts = ["<ListBucketResult><IsTruncated>", str(more).lower(), "</IsTruncated>"]
        if more:
            parts.append(f"<NextContinuationToken>{escape(page[-1][0])}</NextContinuationToken>")
        for key, size in page:
            if size is None:
                parts.append(f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>")
            else:
                parts.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
                    "<LastModified>2025-01-01T00:00:00.000Z</LastModified>"
                    f"<ETag>&quot;{len(key)}&quot;</ETag></Contents>"
                )
        parts.append("</ListBucketResult>")
        return self.answer(200, "".join(parts).encode())

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def error(code: str, message: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


class Server(ThreadingHTTPServer):
    """Serves a folder.

    Args:
        folder: The folder, whose folders are buckets.
        handler: What answers requests.
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, folder: Path, handler: type[Handler] = Handler) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.folder = folder
        self.lock = threading.Lock()
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.etags: dict[str, str] = {}
        self.latency = 0.0
        self.waiting = self.most_waiting = 0
        self.page = 1000
        self.serves_ranges = True
        self.made_up: dict[str, list[str]] = {}
        """Buckets with keys that are listed, and have no contents."""
        self._keys: dict[str, list[str]] = {}
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def storage_options(self) -> dict[str, Any]:
        """What reads from it as from S3."""
        return {"endpoint": self.url, "key": "key", "secret": "secret", "region": "us-east-1"}

    def has_bucket(self, bucket: str) -> bool:
        """Whether there is such a bucket."""
        return bucket in self.made_up or (self.folder / bucket).is_dir()

    def keys(self, bucket: str) -> list[str]:
        """The keys of a bucket, in the order of S3."""
        if bucket in self.made_up:
            return self.made_up[bucket]
        if bucket not in self._keys:
            root = self.folder / bucket
            files = (file for file in root.rglob("*") if file.is_file())
            self._keys[bucket] = sorted(file.relative_to(root).as_posix() for file in files)
        return self._keys[bucket]

    def page_of(
        self, bucket: str, prefix: str, after: str, delimited: bool
    ) -> tuple[list[tuple[str, int | None]], bool]:
        """Keys with a prefix and their sizes, and whether there are more; folders have no size."""
        keys = self.keys(bucket)
        found: list[tuple[str, int | None]] = []
        place = bisect_right(keys, after) if after else bisect_left(keys, prefix)
        if after.endswith("/"):
            place = bisect_left(keys, _behind(after))
        while place < len(keys) and keys[place].startswith(prefix):
            if len(found) == self.page:
                return found, True
            key = keys[place]
            folder, slash, _ = key[len(prefix) :].partition("/")
            if delimited and slash:
                found.append((f"{prefix}{folder}/", None))
                place = bisect_left(keys, _behind(found[-1][0]))
            else:
                size = 0 if bucket in self.made_up else (self.folder / bucket / key).stat().st_size
                found.append((key, size))
                place += 1
        return found, False

    def counts(self) -> Counter[str]:
        """How many requests there were, by method."""
        return Counter(
            "LIST" if "list-type" in path or "comp=list" in path else method
            for method, path, _ in self.requests
        )

    def handle_error(self, *args: Any) -> None:
        pass  # clients that hang up are part of the tests


def _behind(folder: str) -> str:
    """What comes after all keys of a folder, in their order."""
    return folder[:-1] + chr(ord("/") + 1)


@contextmanager
def serving(folder: Path, handler: type[Handler] = Handler) -> Iterator[Server]:
    """A server for a folder, until the end of the block."""
    server = Server(folder, handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def status(code: int, body: bytes = b"", **headers: str) -> Fault:
    """Answers with an error."""

    def fault(handler: Handler) -> bool:
        handler.answer(
            code, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        return True

    return fault


def reset(handler: Handler) -> bool:
    """Resets the connection."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()
    handler.close_connection = True
    return True


def short(handler: Handler) -> bool:
    """Closes the connection in the middle of the body."""
    whole = handler.answer

    def half(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        handler.close_connection = True
        handler.answer = whole  # type: ignore[method-assign]

    handler.answer = half  # type: ignore[method-assign]
    return False


def never(handler: Handler) -> bool:
    """Keeps the client waiting."""
    time.sleep(5)
    handler.close_connection = True
    return True


@contextmanager
def moto_serving() -> Iterator[str]:
    """The address of moto's S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def upload(folder: Path, address: str, bucket: str) -> None:
    """Copy the files of a folder into a new bucket."""
    import boto3

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
    client.create_bucket(Bucket=bucket)
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            client.upload_file(str(file), bucket, file.relative_to(folder).as_posix())


def without_credentials(monkeypatch: Any, folder: Path) -> None:
    """What the machine has in its environment must not matter."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
