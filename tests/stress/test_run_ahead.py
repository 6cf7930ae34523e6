"""Loops that run ahead: exit, Ctrl-C and forks in the middle of early work, and memory."""

import itertools
import os
import signal
import tempfile
import threading
from pathlib import Path

import numpy as np

import penstock as ndd
from tests.stress.fork import fork, join
from tests.stress.fresh import check_fresh
from tests.stress.probe import probe


def epochs(folder):
    """Endless batches of two, of a reader over 20 files."""
    for index in range(20):
        np.save(Path(folder) / f"{index:02d}.npy", np.full((200, 100, 3), index, np.uint8))
    reader = ndd.readers.Numpy(file_root=folder)
    while True:
        for (images,) in reader.next_epoch(batch_size=2):
            yield images


def first(images):
    return int(np.asarray(images.tensors[0]).flat[0])


def leave_in_the_middle():
    with tempfile.TemporaryDirectory() as folder:
        for images in itertools.islice(epochs(folder), 7):
            slow = probe(probe(images, sleep=20_000), sleep=20_000)
        slow.evaluate()


def be_interrupted():
    """Ctrl-C again and again; no item is lost or repeated."""
    with tempfile.TemporaryDirectory() as folder:
        for index in range(20):
            np.save(Path(folder) / f"{index:02d}.npy", np.full((20, 10, 3), index, np.uint8))
        reader = ndd.readers.Numpy(file_root=folder)
        seen, interrupted = [], 0
        epoch = reader.next_epoch(batch_size=1)
        timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        while len(seen) < 20:
            try:
                for (images,) in epoch:
                    seen.append(first(images))
                    first(ndd.rotate(probe(images, sleep=4000), angle=90))
                    if not timer.is_alive():
                        timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
                        timer.start()
            except KeyboardInterrupt:
                interrupted += 1
        try:
            timer.join()
        except KeyboardInterrupt:
            pass
        assert seen == list(range(20)), seen
        assert interrupted


def fork_while_ahead():
    with tempfile.TemporaryDirectory() as folder:
        children = []

        def child(step, rest):
            for later, images in enumerate(itertools.islice(rest, 4), step + 1):
                assert first(ndd.rotate(probe(images, sleep=500), angle=180)) == 2 * (later % 10)

        batches = epochs(folder)
        for step, images in enumerate(itertools.islice(batches, 30)):
            assert first(ndd.rotate(probe(images, sleep=500), angle=180)) == 2 * (step % 10)
            if step % 6 == 5:
                # The generator runs in this thread, so that the child may go on with it.
                children.append(fork(lambda step=step: child(step, batches)))
        for pid in children:
            join(pid)


def test_exit_in_the_middle_of_early_work():
    check_fresh(leave_in_the_middle)


def test_interrupts_in_the_middle_of_early_work():
    check_fresh(be_interrupted)


def test_forks_in_the_middle_of_early_work():
    check_fresh(fork_while_ahead)


def test_memory_stays_the_same(tmp_path):
    def resident():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    measured = []
    for step, images in enumerate(itertools.islice(epochs(str(tmp_path)), 400)):
        large = ndd.rotate(ndd.resize(images, size=[400, 400]), angle=10.0)
        if step % 7 == 3:
            large = ndd.flip(ndd.resize(large, size=[300 + step, 300]))  # never the same
        large.evaluate()
        if step in (99, 399):
            measured.append(resident())
    assert measured[1] - measured[0] < 40, measured
