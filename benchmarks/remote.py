"""Reading from a server that answers after 30 ms: `.venv/bin/python -m benchmarks.remote`.

A server in a process of its own answers as S3 does, from memory. Measured is the time of the CPU
that the client takes per object, and how many objects come in a second: penstock beside 64 threads
of boto3, and a whole loop (read, decode, resize, normalize) from the server beside local files.
Contenders take turns; the figures are medians, with the extremes.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import multiprocessing
import resource
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ndd

THREADS = 64
KEYS = {"key": "key", "secret": "secret", "region": "us-east-1"}


class Answers(asyncio.Protocol):
    """A connection: each request is answered after the latency."""

    def __init__(self, objects: list[bytes], latency: float) -> None:
        self._objects = objects
        self._latency = latency
        self._pending = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            request, self._pending = self._pending[:end], self._pending[end + 4 :]
            number = int(request.split(b" ", 2)[1].split(b"?")[0].rsplit(b"/", 1)[1])
            body = self._objects[number % len(self._objects)]
            head = (
                b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: %d\r\n'
                b"Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n\r\n" % len(body)
            )
            asyncio.get_running_loop().call_later(self._latency, self._write, head, body)

    def _write(self, head: bytes, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.writelines([head, body])


def serve(listener: socket.socket, objects: list[bytes], latency: float) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Answers(objects, latency), sock=listener, backlog=512
        )
        await server.serve_forever()

    asyncio.run(run())


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(run: Callable[[], int]) -> tuple[float, float]:
    """Milliseconds of the CPU per object, and objects per second."""
    start, before = time.perf_counter(), cpu()
    count = run()
    return (cpu() - before) * 1e3 / count, count / (time.perf_counter() - start)


def photographs(count: int, side: int) -> list[bytes]:
    """JPEGs of about 100 KB."""
    from PIL import Image

    made = []
    random = np.random.default_rng(0)
    for _ in range(count):
        coarse = random.integers(0, 256, (side // 8, side // 8, 3), np.uint8)
        image = Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)
        noisy = np.asarray(image).astype(np.int16) + random.integers(-12, 13, (side, side, 3))
        stream = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=85)
        made.append(stream.getvalue())
    return made


def fetch_all(reader: Any) -> int:
    count = 0
    for files, _ in reader.next_epoch(batch_size=64):
        files.evaluate()
        count += len(files)
    return count


def whole_road(reader: Any) -> int:
    count = 0
    for files, _ in reader.next_epoch(batch_size=64):
        images = ndd.decoders.image(files)
        images = ndd.resize(images, size=[224, 224])
        images = ndd.crop_mirror_normalize(images, mean=[120.0] * 3, std=[60.0] * 3)
        images.evaluate()
        count += len(images)
    return count


def boto(endpoint: str, count: int) -> Callable[[], int]:
    import boto3
    from botocore.config import Config

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        config=Config(max_pool_connections=THREADS, s3={"addressing_style": "path"}),
        **keys,
    )

    def read(number: int) -> int:
        return len(client.get_object(Bucket="bucket", Key=str(number))["Body"].read())

    pool = ThreadPoolExecutor(THREADS)
    return lambda: len(list(pool.map(read, range(count))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1024, help="objects per turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.03, help="seconds")
    options = parser.parse_args()
    objects = photographs(64, 512)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
    context = multiprocessing.get_context("fork")
    server = context.Process(target=serve, args=(listener, objects, options.latency), daemon=True)
    server.start()
    try:
        compare(options, endpoint, objects)
    finally:
        server.terminate()


def compare(options: argparse.Namespace, endpoint: str, objects: list[bytes]) -> None:
    urls = [f"s3://bucket/{number}" for number in range(options.count)]
    storage = {"endpoint": endpoint, **KEYS}
    remote = ndd.readers.File(files=urls, storage_options=storage)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.jpg") for number in range(options.count)]
        for number, file in enumerate(files):
            file.write_bytes(objects[number % len(objects)])
        local = ndd.readers.File(files=files)
        first, other = (next(iter(reader.next_epoch(64)))[0] for reader in (remote, local))
        assert all(map(np.array_equal, map(np.asarray, first), map(np.asarray, other)))
        remote.reset()
        local.reset()
        contenders: dict[str, Callable[[], int]] = {
            "penstock, from the server": lambda: fetch_all(remote),
            f"boto3, {THREADS} threads": boto(endpoint, options.count),
            "penstock, whole loop, from the server": lambda: whole_road(remote),
            "penstock, whole loop, local files": lambda: whole_road(local),
        }
        figures: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
        for turn in range(options.turns + 1):
            for name, run in contenders.items():
                figure = measured(run)
                if turn:  # the first is to warm up
                    figures[name].append(figure)
    size = statistics.mean(map(len, objects)) / 1e3
    print(f"{options.count} objects of {size:.0f} KB, {options.latency * 1e3:.0f} ms latency")
    medians = {}
    for name, rows in figures.items():
        times, rates = zip(*rows, strict=True)
        medians[name] = statistics.median(times)
        print(
            f"{name:40} {medians[name]:6.3f} ms of CPU per object "
            f"({min(times):.3f} to {max(times):.3f}), "
            f"{statistics.median(rates):5.0f} objects/s ({min(rates):.0f} to {max(rates):.0f})"
        )
    mine, boto3, far, near = medians.values()
    print(
        f"boto3 takes {boto3 / mine:.1f} times the CPU; the loop from the server takes "
        f"{far / near:.2f} times that from local files"
    )


if __name__ == "__main__":
    main()
