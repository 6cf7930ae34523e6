"""CPU time per image of `penstock.ray.Loader`, beside plain penstock and Ray Data with Pillow.

python -m benchmarks.ray_loader                # with the packages of requirements/test.txt
python -m benchmarks.ray_loader --other-node   # workers are on a second node, on this machine
python -m benchmarks.ray_loader --control      # what a request costs the trainer, without the work

Time is that of all processes: the trainer, the workers, and Ray's own (object store, scheduler).
The work is the same for all: read JPEGs of 500x375, decode, crop at random to 224x224, flip, stack;
the trainer normalizes. Contenders take turns; figures are medians over rounds. Each has one worker,
or one thread.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ndd

MEAN, STD = [124.0, 116.0, 104.0], [58.0, 57.0, 57.0]
BATCH = 64
TICKS = os.sysconf("SC_CLK_TCK")


def loop(reader: Any) -> Iterator[Any]:
    for jpegs, labels in reader.next_epoch(BATCH):
        images = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[224, 224])
        flips = ndd.random.coin_flip(batch_size=images.batch_size)
        yield ndd.flip(images, horizontal=flips), labels


def normalized_in_the_worker(reader: Any) -> Iterator[Any]:
    for images, labels in loop(reader):
        yield normalized(images), labels


def normalized(images: Any) -> Any:
    return ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)


def with_pillow(rows: dict[str, Any]) -> dict[str, Any]:
    from PIL import Image

    rng = np.random.default_rng()
    made = []
    for data in rows["bytes"]:
        image = Image.open(io.BytesIO(data)).convert("RGB")
        area = image.width * image.height * rng.uniform(0.08, 1)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        width = min(int(np.sqrt(area * ratio)), image.width)
        height = min(int(np.sqrt(area / ratio)), image.height)
        left = rng.integers(0, image.width - width + 1)
        top = rng.integers(0, image.height - height + 1)
        box = (left, top, left + width, top + height)
        image = image.resize((224, 224), Image.Resampling.BILINEAR, box)
        pixels = np.asarray(image)
        made.append(pixels[:, ::-1] if rng.random() < 0.5 else pixels)
    return {"image": np.stack(made)}


def with_penstock(rows: dict[str, Any]) -> dict[str, Any]:
    images = ndd.decoders.image(
        ndd.batch([np.frombuffer(data, np.uint8) for data in rows["bytes"]])
    )
    images = ndd.random_resized_crop(images, size=[224, 224])
    flips = ndd.random.coin_flip(batch_size=images.batch_size)
    return {"image": np.asarray(ndd.as_tensor(ndd.flip(images, horizontal=flips)))}


def cpu_seconds() -> float:
    """CPU time so far of this process and all that it has started, and these, and so on."""
    parents, times = {}, {}
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        if not fields:
            continue
        number = int(folder.name) if folder.name.isdigit() else None
        if number is not None:
            parents[number] = int(fields[1])
            # Its own, and that of children which have ended.
            times[number] = sum(map(int, fields[11:15])) / TICKS
    ours = {os.getpid()}
    while more := {n for n, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(times[number] for number in ours if number in times)


def photographs(folder: Path, count: int) -> list[str]:
    from PIL import Image
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(0)
    names = []
    for number in range(count):
        image = load_sample_images().images[number % 2]
        top, left = rng.integers(0, image.shape[0] - 374), rng.integers(0, image.shape[1] - 499)
        names.append(str(folder / f"{number:05}.jpg"))
        Image.fromarray(image[top : top + 375, left : left + 500]).save(names[-1], quality=90)
    return names


def contenders(names: list[str]) -> dict[str, Callable[[], int]]:
    """Functions that run an epoch and return its number of images."""
    import ray

    def reader() -> Any:
        return ndd.readers.File(files=names, shuffle="global", last_batch="drop")

    def consumed(items: Any) -> int:
        return sum(len(normalized(images).evaluate()) for images, _ in items)

    own = reader()
    remote = ndd.ray.Loader(loop, reader(), batch_size=BATCH, workers=1)
    floats = ndd.ray.Loader(normalized_in_the_worker, reader(), batch_size=BATCH, workers=1)

    def data(stage: Callable[..., Any]) -> int:
        rows = ray.data.read_binary_files(names, override_num_blocks=len(names) // BATCH)
        one = ray.data.TaskPoolStrategy(size=1)
        rows = rows.map_batches(stage, batch_size=BATCH, compute=one)
        batches = rows.iter_batches(batch_size=BATCH, drop_last=True)
        return sum(
            len(normalized(ndd.as_batch(b["image"], layout="HWC")).evaluate()) for b in batches
        )

    return {
        "plain loop": lambda: consumed(ndd.prefetch(loop(own))),
        "ray.Loader": lambda: consumed(remote),
        "ray.Loader, float32 from the worker": lambda: sum(
            len(item[0].evaluate()) for item in floats
        ),
        "Ray Data, penstock's operators": lambda: data(with_penstock),
        "Ray Data, Pillow": lambda: data(with_pillow),
    }


def labels_only(reader: Any) -> Iterator[Any]:
    for _, labels in reader.next_epoch():
        yield labels


def control(names: list[str], workers: int, seconds: float = 4) -> None:
    """Requests for next to nothing, one sample each: what is left is the way there and back."""
    reader = ndd.readers.File(files=names, shuffle="global")
    loader = ndd.ray.Loader(labels_only, reader, batch_size=1, workers=workers, num_cpus=0.05)
    list(loader)
    while len(loader._crew.about()) < workers:
        time.sleep(0.1)
    count, start, before, all_before = 0, time.monotonic(), time.process_time(), cpu_seconds()
    while time.monotonic() - start < seconds:
        count += len(list(loader))
    cpu, passed = time.process_time() - before, time.monotonic() - start
    rest = cpu_seconds() - all_before - cpu
    print(
        f"{workers:4} workers, {2 * workers} requests in flight: {count / passed:.0f} requests a "
        f"second; the trainer takes {cpu / count * 1e6:.0f} CPU-us for each, workers and Ray "
        f"{rest / count * 1e6:.0f}"
    )
    loader.close()


def waiting(counts: list[int]) -> None:
    """What a look at requests in flight costs the trainer: one of them is answered."""
    import ray

    @ray.remote(num_cpus=0)
    class Never:
        async def answer(self) -> None:
            import asyncio

            await asyncio.sleep(3600)

    actor = Never.options(max_concurrency=10_000).remote()
    done = ray.put(None)
    for count in counts:
        references = [actor.answer.remote() for _ in range(count - 1)] + [done]
        ray.wait(references, num_returns=1)
        start = time.process_time()
        for _ in range(20):
            ray.wait(references, num_returns=1, timeout=0)
            ray.wait(references, num_returns=count, timeout=0)
        cpu = (time.process_time() - start) / 20
        print(f"{count:5} requests in flight: {cpu * 1e3:.2f} CPU-ms for a look at all of them")
    ray.kill(actor)


def messages(names: list[str]) -> None:
    """The bytes of a request and of an answer without its arrays."""
    from penstock._ray.request import carry_out
    from penstock._ray.worker import _answer

    reader = ndd.readers.File(files=names, shuffle="global")
    seen: list[tuple[int, int, int]] = []

    loader = ndd.ray.Loader(loop, reader, batch_size=BATCH)
    crew = loader._crew
    submit = crew.submit

    def noted(request: Any) -> Any:
        answer = _answer(carry_out(loop, reader, request), time.monotonic())
        arrays = sum(array.nbytes for array in answer.buffers)
        seen.append((len(pickle.dumps(request)), len(answer.pickled), arrays))
        return submit(request)

    crew.submit = noted  # type: ignore[method-assign]
    next(iter(loader))
    request, answer, arrays = seen[0]
    print(
        f"a batch of {BATCH}: the request has {request} bytes, the answer {answer} and {arrays} of "
        "arrays"
    )
    loader.close()


def listing(folder: Path, count: int) -> None:
    """What it takes to open a data set of so many files, in each worker."""
    for number in range(count):
        path = folder / str(number // 1000) / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.touch()
    start = time.monotonic()
    reader = ndd.readers.File(file_root=str(folder))
    passed = time.monotonic() - start
    print(f"{reader.epoch_size} files are listed in {passed:.2f} s, on this disk, in its cache")


def connect(other_node: bool) -> None:
    import ray

    quiet = {"include_dashboard": False}
    if not other_node:
        ray.init(num_cpus=4, log_to_driver=False, logging_level="ERROR", **quiet)
        return
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **quiet})
    cluster.add_node(num_cpus=4, **quiet)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")


def main() -> None:
    parser = argparse.ArgumentParser(prog="ray_loader", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few images and rounds")
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="contenders whose names contain this")
    parser.add_argument("--other-node", action="store_true")
    parser.add_argument("--control", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.images, options.rounds = 256, 2
    import ray

    connect(options.other_node)
    if options.control:
        with tempfile.TemporaryDirectory() as folder:
            names = photographs(Path(folder), 512)
            messages(names)
            for workers in (1, 4, 16, 64):
                control(names, workers)
            waiting([2, 8, 32, 128, 512, 2048])
            listing(Path(folder) / "many", 100_000)
        return
    logging.getLogger("ray.data").setLevel("ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    ndd.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        chosen = contenders(photographs(Path(folder), options.images))
        chosen = {
            name: run
            for name, run in chosen.items()
            if options.only in name or name == "plain loop"
        }
        taken: dict[str, list[float]] = {name: [] for name in chosen}
        for run in chosen.values():
            run()  # workers start, files are in the cache
        for _ in range(options.rounds):
            for name, run in chosen.items():
                before = cpu_seconds()
                images = run()
                taken[name].append((cpu_seconds() - before) / images * 1000)
    plain = statistics.median(taken["plain loop"])
    versions = f"penstock {ndd.__version__}, ray {ray.__version__}"
    print(f"{options.images} images, batches of {BATCH}, {options.rounds} rounds, {versions}")
    for name, times in taken.items():
        ratios = [time / base for time, base in zip(times, taken["plain loop"], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(
            f"{name:38} {statistics.median(times):6.2f} CPU-ms an image, "
            f"{statistics.median(times) / plain:.2f}x ({spread})"
        )


if __name__ == "__main__":
    main()
