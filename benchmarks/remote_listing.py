"""A listing of many keys: `.venv/bin/python -m benchmarks.remote_listing`.

A server in a process of its own has a bucket with folders of a thousand keys each, and answers as
S3 does, a page of a thousand names after 30 ms. Measured are the time, the CPU time, the memory
and the requests that it takes to open a reader: by listing, and with the index that it has saved.
Each is done in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import socket
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEYS = {"key": "key", "secret": "secret", "region": "us-east-1"}
PAGE = 1000


class Lists(asyncio.Protocol):
    """A connection: folders by number, with keys by number."""

    def __init__(self, folders: int, latency: float, counted: Any) -> None:
        self._folders = folders
        self._latency = latency
        self._counted = counted
        self._pending = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            request, self._pending = self._pending[:end], self._pending[end + 4 :]
            self._counted.value += 1
            query = parse_qs(urlsplit(request.split(b" ", 2)[1].decode()).query)
            body = self._page(query.get("prefix", [""])[0], query.get("continuation-token"))
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            loop = asyncio.get_running_loop()
            loop.call_later(self._latency, self._transport.writelines, [head, body])

    def _page(self, prefix: str, token: list[str] | None) -> bytes:
        if prefix:
            parts = [
                f"<Contents><Key>{prefix}{key:08}.jpg</Key><Size>100000</Size>"
                "<LastModified>2025-01-01T00:00:00.000Z</LastModified>"
                f"<ETag>&quot;{key:032x}&quot;</ETag></Contents>"
                for key in range(PAGE)
            ]
            more = ""
        else:
            start = int(token[0]) if token else 0
            end = min(start + PAGE, self._folders)
            parts = [
                f"<CommonPrefixes><Prefix>n{folder:08}/</Prefix></CommonPrefixes>"
                for folder in range(start, end)
            ]
            more = f"<NextContinuationToken>{end}</NextContinuationToken>"
            more = more if end < self._folders else ""
        truncated = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        return f"<ListBucketResult>{truncated}{more}{''.join(parts)}</ListBucketResult>".encode()


def serve(listener: socket.socket, folders: int, latency: float, counted: Any) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(
            lambda: Lists(folders, latency, counted), sock=listener, backlog=512
        )
        await server.serve_forever()

    asyncio.run(run())


def opened(endpoint: str, index: str | None, answer: Any) -> None:
    """Opens a reader in this process, and tells what that took."""
    import penstock as ndd

    options = {"endpoint": endpoint, **KEYS}
    try:
        ndd.io.file.read("s3://bucket/none", storage_options=options).evaluate()
    except (OSError, RuntimeError):
        pass  # the module is loaded now
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    reader = ndd.readers.File(file_root="s3://bucket", index=index, storage_options=options)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    kept = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    peak = (after.ru_maxrss - before.ru_maxrss) / 1024
    answer.send((reader.epoch_size, seconds, cpu, peak, kept / 2**20 - before.ru_maxrss / 1024))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=1000, help="of a thousand keys each")
    parser.add_argument("--latency", type=float, default=0.03, help="seconds")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
    counted = multiprocessing.Value("q", 0)
    given = (listener, options.folders, options.latency, counted)
    fork, spawn = multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")
    server = fork.Process(target=serve, args=given, daemon=True)
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder, "index"))
        for name in (
            "listed, saved as an index",
            "opened with the index",
            "listed, without an index",
        ):
            requests = counted.value
            receiver, sender = spawn.Pipe(False)
            given = (endpoint, None if "without" in name else index, sender)
            process = spawn.Process(target=opened, args=given)
            process.start()
            count, seconds, cpu, peak, kept = receiver.recv()
            process.join()
            print(
                f"{count} keys {name}: {seconds:.2f} s, {cpu:.2f} s of CPU, "
                f"{counted.value - requests - 1} requests; at most {peak:.0f} MiB of memory, "
                f"{kept:.0f} MiB kept"
            )
        print(f"the index has {Path(index).stat().st_size / 2**20:.0f} MiB")
    server.terminate()


if __name__ == "__main__":
    main()
