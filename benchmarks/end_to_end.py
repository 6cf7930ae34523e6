"""End to end, as most programs use it: files decoded, resized, normalized, passed to torch.

Arguments of operators are literals: DALI's capture mode can't capture names of a module.
"""

from __future__ import annotations

import functools
import importlib
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from examples.photographs import classes
from PIL import Image

from benchmarks.harness import Case, Contender, Family, Library, Pair, Prepare, Ready, described
from benchmarks.reading import temporary_folder

ABOUT = """\
1,024 JPEGs of around 500x375 (crops of photographs, 4:2:0, quality 80 to 95) in batches of 64;
times are per image, over an epoch. *eval* is `readers.File`, `decoders.image`, `resize` to 224x224,
`crop_mirror_normalize`, `.torch()`. *train* is `decoders.image`, `random_resized_crop`,
`color_twist`, and a mirror by `coin_flip`; *train, partial decoding* decodes with
`image_random_crop`, then resizes. *12 megapixels* is *eval* on 64 JPEGs of 4000x3000. These rows
are plain loops in both libraries; those of penstock run ahead by themselves. In rows with
*prefetch*, both prepare two batches in advance: penstock with `prefetch`, DALI in its capture mode
(*capture*) or its pipeline mode (*pipeline*).
(DALI also does so between measurements, so it has up to 2 of 16 batches ready at the start.)
"""

FILES, BATCH = 1024, 64
# A pixel that is rounded the other way, after normalizing.
ROUNDING = 1.01 / (0.224 * 255)

Augment = Callable[[Library, Any], Any]


def cases() -> Iterator[Case]:
    for name, prepare in (
        ("eval", loop(evaluation)),
        ("eval, prefetch: capture", loop(evaluation, prefetch=True)),
        ("eval, prefetch: pipeline", against_pipeline),
        ("train", loop(training)),
        ("train, prefetch: capture", loop(training, prefetch=True)),
        ("train, partial decoding", loop(training_on_crops)),
        ("12 megapixels", loop(evaluation, large=True)),
    ):
        yield Case(f"end_to_end/{name}", prepare, 7, tolerance=ROUNDING)


def evaluation(ndd: Library, jpegs: Any) -> Any:
    images = ndd.resize(ndd.decoders.image(jpegs), size=[224, 224])
    return ndd.crop_mirror_normalize(
        images,
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )


def training(ndd: Library, jpegs: Any) -> Any:
    images = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[224, 224])
    return jittered(ndd, images)


def training_on_crops(ndd: Library, jpegs: Any) -> Any:
    images = ndd.resize(ndd.decoders.image_random_crop(jpegs), size=[224, 224])
    return jittered(ndd, images)


def jittered(ndd: Library, images: Any) -> Any:
    images = ndd.color_twist(
        images,
        brightness=ndd.random.uniform(batch_size=64, range=[0.8, 1.2]),
        saturation=ndd.random.uniform(batch_size=64, range=[0.8, 1.2]),
    )
    return ndd.crop_mirror_normalize(
        images,
        mirror=ndd.random.coin_flip(batch_size=64),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )


def batches(
    ndd: Library, reader: Any, augment: Augment, size: int, **options: Any
) -> Iterator[Any]:
    for jpegs, _ in reader.next_epoch(batch_size=size, **options):
        yield augment(ndd, jpegs)


def epochs(
    side: Contender, folder: Path, size: int, augment: Augment, *, prefetch: bool
) -> Callable[[], Iterable[Any]]:
    """A function that iterates over the next epoch, with the library's own kind of prefetching."""
    ndd = side.library
    reader = ndd.readers.File(file_root=str(folder))
    if not prefetch:
        return lambda: batches(ndd, reader, augment, size)
    if not side.is_dali:
        return lambda: ndd.prefetch(batches(ndd, reader, augment, size))
    require_capture(*batches(ndd, reader, augment, size, capture=True))
    return lambda: batches(ndd, reader, augment, size, capture=True)


def require_capture(*outputs: Any) -> None:
    """Fail if DALI ran the loop without capturing it, for which it gives plain batches."""
    for number, output in enumerate(outputs):
        if type(output).__name__ != "CapturedBatch":
            kind = type(output).__name__
            raise AssertionError(f"DALI has not captured the loop: batch {number} is a {kind}")


def loop(augment: Augment, *, large: bool = False, prefetch: bool = False) -> Prepare:
    def prepare(side: Contender) -> Ready:
        folder, count, size = (large_files(), 64, 16) if large else (files(), FILES, BATCH)
        epoch = epochs(side, folder, size, augment, prefetch=prefetch)

        def measure() -> float:
            start = time.perf_counter()
            for images in epoch():
                images.torch()
            return (time.perf_counter() - start) / count

        first, *_ = epoch()  # all of it, so that each measurement begins with the first file
        results = [np.array(sample) for sample in first.tensors]
        return Ready(measure, results if augment is evaluation else described(results))

    return prepare


def against_pipeline(side: Contender) -> Ready:
    if not side.is_dali:
        return loop(evaluation, prefetch=True)(side)
    dali = importlib.import_module("nvidia.dali")
    torch = importlib.import_module("torch")

    @dali.pipeline_def(batch_size=BATCH, num_threads=side.threads, device_id=None)
    def pipeline() -> Any:
        jpegs, _ = dali.fn.readers.file(file_root=str(files()))
        return evaluation(dali.fn, jpegs)

    built = pipeline(prefetch_queue_depth=2)
    built.build()

    def epoch() -> Iterator[Any]:
        for _ in range(FILES // BATCH):
            yield built.run()[0].as_tensor()

    def measure() -> float:
        start = time.perf_counter()
        for images in epoch():
            torch.from_dlpack(images)
        return (time.perf_counter() - start) / FILES

    first, *_ = (np.array(images) for images in epoch())
    return Ready(measure, list(first))


# Further results


def facts(pair: Pair) -> Iterator[str]:
    yield from bare_decoding(pair)
    yield from busy_python(pair)
    yield from stalls(pair)
    yield from costs_of_profiling(pair)
    yield from memory(pair)


def bare_decoding(pair: Pair) -> Iterator[str]:
    """The rate of decoding alone, and how both gain from a second thread."""
    simplejpeg = importlib.import_module("simplejpeg")
    data = [path.read_bytes() for path in sorted(files().glob("*/*"))]

    def decode(chunk: list[bytes]) -> None:
        buffer = bytearray(3 * 1024 * 1024)  # reused: fresh memory would slow the decoder down
        for jpeg in chunk:
            simplejpeg.decode_jpeg(jpeg, buffer=buffer)

    def bare(threads: int) -> float:
        chunks = [data[i::threads] for i in range(threads)]
        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(decode, chunks))
        return FILES / (time.perf_counter() - start)

    ndd = pair.ours.library
    measure = loop(evaluation, prefetch=True)(pair.ours).measure
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(5):
        for threads in (1, 2):
            ndd.set_num_threads(threads)
            rates.setdefault(("eval", threads), []).append(1 / measure())
            rates.setdefault(("bare", threads), []).append(bare(threads))
    ndd.set_num_threads(pair.ours.threads)
    rate = {key: statistics.median(values) for key, values in rates.items()}
    yield (
        f"Decoding the same files from memory with libjpeg-turbo (simplejpeg) alone: "
        f"{rate['bare', 1]:,.0f} images/s on one thread, {rate['bare', 2]:,.0f} on two. *eval* of "
        f"penstock with `prefetch`: {rate['eval', 1]:,.0f} and {rate['eval', 2]:,.0f}."
    )


# DALI can hang when the number of threads is changed later, hence the separate process.
BUSY_PYTHON = """
import sys, importlib
sys.path[:0] = {path!r}
from benchmarks import end_to_end
print(end_to_end.lost_throughput(importlib.import_module({module!r}), {folder!r}))
"""


def busy_python(pair: Pair) -> Iterator[str]:
    """How much throughput is lost while Python computes, with one core for each of the two."""
    losses = [
        float(run_program(BUSY_PYTHON, side, folder=str(files())).splitlines()[-1]) for side in pair
    ]
    yield (
        f"While Python computes on another core, penstock on one thread loses {losses[0]:.1%} of "
        f"its throughput, DALI {losses[1]:.1%}."
    )


def lost_throughput(ndd: Library, folder: str) -> float:
    """The share of throughput on one thread that is lost while the main thread is busy."""
    ndd.set_num_threads(1)
    reader = ndd.readers.File(file_root=folder)
    jpegs = [batch for batch, _ in reader.next_epoch(batch_size=BATCH)][:4]
    for batch in jpegs:
        batch.evaluate()
    compute(ndd, jpegs, busy=True)  # warm-up
    return statistics.median(
        1 - compute(ndd, jpegs, busy=False) / compute(ndd, jpegs, busy=True) for _ in range(9)
    )


def compute(ndd: Library, jpegs: list[Any], *, busy: bool) -> float:
    """Seconds until all batches are computed, while the main thread is busy or idle."""
    start = time.perf_counter()
    outputs = [evaluation(ndd, batch) for batch in jpegs]
    done = threading.Event()
    took = [0.0]

    def wait() -> None:
        for batch in outputs:
            batch.evaluate()
        took[0] = time.perf_counter() - start
        done.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    while busy and not done.is_set():
        sum(range(1000))
    waiter.join()
    return took[0]


def stalls(pair: Pair) -> Iterator[str]:
    """How long training steps wait for data when a step takes as long as computing a batch."""

    def share(epoch: Callable[[], Iterable[Any]]) -> float:
        def waits(step: float) -> list[float]:
            """How long each step waits, except for the first: nothing can be ready by then."""
            waited = []
            asked = time.perf_counter()
            for images in epoch():
                if hasattr(images, "evaluate"):
                    images.torch()
                waited.append(time.perf_counter() - asked)
                time.sleep(step)
                asked = time.perf_counter()
            return waited[1:]

        def waiting() -> float:
            step = statistics.mean(waits(0))
            waited = statistics.mean(waits(step))
            return waited / (waited + step)

        waits(0)
        return statistics.median(waiting() for _ in range(7))

    def plain_and_prefetching(side: Contender) -> dict[bool, float]:
        return {
            prefetch: share(epochs(side, files(), BATCH, evaluation, prefetch=prefetch))
            for prefetch in (False, True)
        }

    ours, dali = map(plain_and_prefetching, pair)
    loader = share(torch_loader)
    yield (
        "A training loop whose step takes as long as the library needs for a batch (*eval*), and "
        f"leaves the CPU idle, waits for data {ours[False]:.0%} of the time if it is a plain loop "
        f"(DALI {dali[False]:.0%}), and {ours[True]:.0%} with `prefetch` (DALI in capture mode "
        f"{dali[True]:.0%}). A `DataLoader` of PyTorch with 2 workers that decode with Pillow and "
        f"transform with torchvision's operations waits {loader:.0%}."
    )
    yield from costs_of_running_ahead(pair)


def torch_loader() -> Iterable[Any]:
    """*eval* as a `DataLoader` of PyTorch with two workers."""
    data = importlib.import_module("torch.utils.data")
    paths = sorted(files().glob("*/*"))
    # Spawned, since processes that are forked after DALI was used abort when they exit.
    loader: Iterable[Any] = data.DataLoader(
        Photographs(paths),
        batch_size=BATCH,
        num_workers=2,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    return loader


class Photographs:
    """A data set of PyTorch: files, decoded, resized and normalized."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        torch = importlib.import_module("torch")
        with Image.open(self.paths[index]) as image:
            small = image.convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.array(small)).permute(2, 0, 1).float()
        mean = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255]).view(3, 1, 1)
        std = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255]).view(3, 1, 1)
        return (pixels - mean) / std


def costs_of_running_ahead(pair: Pair) -> Iterator[str]:
    """What a call costs that was made early, and a loop of which nothing can be."""
    ndd = pair.ours.library
    folder = temporary_folder()
    for number in range(400):
        np.save(folder / f"{number:03d}.npy", np.zeros((64, 64, 3), np.uint8))

    def times(depth: int, *, repeats: bool) -> tuple[float, float]:
        """CPU time of the calling thread for a call, and time for an item of the loop."""
        ndd.set_run_ahead(depth)
        reader = ndd.readers.Numpy(file_root=str(folder))
        spent, items, begin = 0.0, 0, 0.0
        for epoch in range(5):
            if epoch == 1:  # the first one is for learning
                spent, items, begin = 0.0, 0, time.perf_counter()
            for (images,) in reader.next_epoch(batch_size=8):
                images.evaluate()
                items += 1
                angle = 5.0 if repeats else float(items)
                start = time.thread_time()
                for _ in range(4):
                    images = ndd.rotate(images, angle=angle, keep_size=True)
                spent += time.thread_time() - start
                images.evaluate()
        return spent / items / 4, (time.perf_counter() - begin) / items

    def compared(*, repeats: bool) -> list[tuple[float, float, float]]:
        """Of calls and of items: without running ahead, with it, and the ratio of neighbors."""
        rounds: list[list[tuple[float, float, float]]] = [[], []]
        for number in range(15):
            depths = (0, 2) if number % 2 else (2, 0)
            found = {depth: times(depth, repeats=repeats) for depth in depths}
            for values, off, on in zip(rounds, found[0], found[2], strict=True):
                values.append((off, on, on / off))
        return [tuple(map(statistics.median, zip(*values, strict=True))) for values in rounds]

    (off, early, gain), _ = compared(repeats=True)
    (plain, in_vain, loss), (_, _, slower) = compared(repeats=False)
    ndd.set_run_ahead(None)
    yield (
        f"A call takes {off * 1e6:.1f} µs, one that was made early {early * 1e6:.1f} µs "
        f"({gain - 1:+.1%}). In a loop whose calls never repeat, it takes {plain * 1e6:.1f} µs "
        f"without running ahead, and {in_vain * 1e6:.1f} µs with it ({loss - 1:+.1%}); the loop "
        f"takes {slower - 1:+.1%} longer."
    )


def costs_of_profiling(pair: Pair) -> Iterator[str]:
    """What `profile` adds to a loop and to calls that compute next to nothing."""
    ndd = pair.ours.library
    epoch = loop(evaluation)(pair.ours).measure
    small = ndd.batch([np.zeros((4, 4, 3), np.uint8)] * 8).evaluate()

    def calls() -> float:
        start = time.perf_counter()
        made = [ndd.flip(small) for _ in range(2000)]
        made[-1].evaluate()
        return time.perf_counter() - start

    def profiled(measure: Callable[[], float]) -> float:
        with ndd.profile():
            return measure()

    def cost(measure: Callable[[], float], rounds: int) -> float:
        """The median over pairs of neighbors, each the first in every other pair."""
        ratios = []
        for number in range(rounds):
            if number % 2:
                plain, with_profile = measure(), profiled(measure)
            else:
                with_profile, plain = profiled(measure), measure()
            ratios.append(with_profile / plain)
        return statistics.median(ratios) - 1

    cost(calls, 4)  # warm-up
    yield (
        f"While `profile` is on, *eval* takes {cost(epoch, 10):+.1%} longer, and a call of `flip` "
        f"on a batch of 8 samples of 4x4x3 {cost(calls, 40):+.1%}."
    )


# The peak comes from `status`: that of `getrusage` includes the parent process's.
MEMORY = """
import sys, importlib
sys.path[:0] = {path!r}
from benchmarks import end_to_end
ndd = importlib.import_module({module!r})
ndd.set_num_threads({threads})
reader = ndd.readers.File(file_root={folder!r})
def megabytes(name):
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines[name].split()[0]) / 1e3
for epoch in range(50):
    for images in end_to_end.batches(ndd, reader, end_to_end.evaluation, {batch}):
        images.torch()
    if epoch == 9:
        early = megabytes("VmRSS")
print(megabytes("VmHWM"), early, megabytes("VmRSS"))
"""


def memory(pair: Pair) -> Iterator[str]:
    """Peak and growth over 50 epochs, each library in a process of its own."""
    few = temporary_folder()
    (few / "class").mkdir()
    for path in sorted(files().glob("*/*"))[:256]:
        shutil.copy(path, few / "class")
    used = []
    for side in pair:
        output = run_program(MEMORY, side, folder=str(few), batch=BATCH, threads=side.threads)
        peak, early, late = map(float, output.split()[-3:])
        used.append(
            f"{side.name} {peak:,.0f} MB at its peak, {late - early:+.1f} MB from epoch 10 on"
        )
    yield f"Resident memory of a process over 50 epochs of *eval* on 256 files: {'; '.join(used)}."


def run_program(program: str, side: Contender, **options: Any) -> str:
    """The output of a program in a fresh process."""
    source = program.format(path=sys.path, module=side.library.__name__, **options)
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=1800)
    return done.stdout


# Files


@functools.cache
def files() -> Path:
    """A folder of photographs."""
    root = temporary_folder()
    rng = np.random.default_rng(0)
    painters = [paint for name, paint in classes().items() if name not in ("hills", "sea")]
    painters = painters or list(classes().values())
    (root / "class").mkdir()
    for number in range(FILES):
        image = painters[number % len(painters)](rng)
        image.save(root / f"class/{number:04d}.jpg", quality=int(rng.integers(80, 96)))
    return root


@functools.cache
def large_files() -> Path:
    """A folder of 64 photographs of the size that cameras take, 8 of them different."""
    root = temporary_folder()
    (root / "class").mkdir()
    rng = np.random.default_rng(0)
    painter = next(iter(reversed(classes().values())))
    for number in range(64):
        path = root / f"class/{number:04d}.jpg"
        if number < 8:
            image = painter(rng).resize((4000, 3000), Image.Resampling.BICUBIC)
            noise = rng.integers(0, 12, (3000, 4000, 1), dtype=np.uint8)
            grainy = np.minimum(np.asarray(image), 243) + noise
            Image.fromarray(grainy).save(path, quality=90)
        else:
            shutil.copy(root / f"class/{number % 8:04d}.jpg", path)
    return root


FAMILY = Family("end_to_end", "End to end", ABOUT, cases, facts)
