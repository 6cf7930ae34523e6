"""An accelerator made of threads, with the traps of a real one.

Its memory is separate, holds nonsense until it is written, and is reused as soon as it is freed.
Copies are slow: a stream is a thread, a copy takes several steps, and events fire late. As with
DMA, a copy knows an address and nothing else, so it keeps nothing alive and notices no reuse.
"""

import ctypes
import itertools
import queue
import threading
import time
import weakref

import numpy as np
import torch

POISON = 0xA5
STEPS = 4
STEP_SECONDS = 0.002


class Blocks:
    """Memory that is handed out again, the latest first, once it was given back."""

    def __init__(self):
        self._free = {}
        self._lock = threading.RLock()

    def take(self, size):
        with self._lock:
            free = self._free.setdefault(size, [])
            block = free.pop() if free else np.empty(max(size, 1), np.uint8)
        block.fill(POISON)
        return block

    def give_back(self, block, size):
        block.fill(POISON)
        with self._lock:
            self._free[size].append(block)


class Event:
    """Fires in its own time after the work before it."""

    def __init__(self):
        self._fired = threading.Event()

    def query(self):
        return self._fired.is_set()

    def synchronize(self):
        assert self._fired.wait(10)

    def fire(self):
        time.sleep(STEP_SECONDS)
        self._fired.set()


class Stream:
    """Work in order, on a thread of its own."""

    def __init__(self, device_index, handle):
        self.device_index = device_index
        self.cuda_stream = handle
        self.blocks = Blocks()
        self.tasks = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while (task := self.tasks.get()) is not None:
            task()

    def synchronize(self):
        done = threading.Event()
        self.tasks.put(done.set)
        assert done.wait(10)


class DeviceTensor:
    """Data on the device. Work on a stream reads it with `read`."""

    def __init__(self, like, block, ordinal, stream):
        self.shape = like.shape
        self.dtype = like.dtype
        self.ordinal = ordinal
        self.block = block
        self.size = like.nbytes
        self.users = []
        weakref.finalize(self, _free, block, self.size, stream, self.users)

    def __dlpack_device__(self):
        return (2, self.ordinal)

    def __dlpack__(self, **kwargs):
        raise AssertionError("the accelerator is asked for the data")

    def look(self):
        """What is in the memory at this moment, in no order with any stream."""
        return _typed(self.block[: self.size], self.dtype, self.shape)

    def read(self, stream):
        """The data as work on a stream sees it: a function that waits for that work.

        The work has the address, and doesn't keep the tensor.
        """
        block, size, dtype, shape = self.block, self.size, self.dtype, self.shape
        found = queue.SimpleQueue()
        stream.tasks.put(lambda: found.put(_typed(block[:size], dtype, shape)))
        return lambda: found.get(timeout=10)


def _typed(data, dtype, shape):
    made = torch.empty(shape, dtype=dtype)
    ctypes.memmove(made.data_ptr(), data.ctypes.data, data.size)
    return made


def _free(block, size, stream, users):
    """Memory goes back to its stream when the streams that were named have finished with it."""
    left = [*users]

    def advance():
        if left:
            left.pop().tasks.put(advance)
        else:
            stream.blocks.give_back(block, size)

    advance()


class StandIn:
    """Implements `penstock._accelerators.interface.Accelerator`."""

    type = "cuda"

    def __init__(self, count=2):
        self.count = count
        self.selected = 0
        self.pinned = Blocks()
        self.streams = []
        self._current = [self.new_stream(ordinal) for ordinal in range(count)]

    def close(self):
        for stream in self.streams:
            stream.tasks.put(None)
        for stream in self.streams:
            stream.thread.join(10)
            assert not stream.thread.is_alive()

    def use(self, stream):
        """Make a stream the framework's current one."""
        self._current[stream.device_index] = stream

    def current(self):
        return self.selected

    def name(self, ordinal):
        return f"stand-in {ordinal}"

    def new_stream(self, ordinal):
        self.streams.append(Stream(ordinal, 0x5000 + len(self.streams)))
        return self.streams[-1]

    def wrap_stream(self, stream, handle, ordinal):
        return next(each for each in self.streams if each.cuda_stream == handle)

    def current_stream(self, ordinal):
        return self._current[ordinal]

    def record(self, stream):
        event = Event()
        stream.tasks.put(event.fire)
        return event

    def wait(self, stream, event):
        stream.tasks.put(event.synchronize)

    def pinned_like(self, source):
        size = source.nbytes
        block = self.pinned.take(size)
        made = torch.from_numpy(block)[:size].view(source.dtype).view(source.shape)
        weakref.finalize(made, self.pinned.give_back, block, size)
        return made

    def copy(self, source, ordinal, stream):
        chosen = self.current_stream(ordinal) if stream is None else stream
        made = DeviceTensor(source, chosen.blocks.take(source.nbytes), ordinal, chosen)
        start, target, size = source.data_ptr(), made.block.ctypes.data, source.nbytes

        def transfer():
            edges = [size * step // STEPS for step in range(STEPS + 1)]
            for begin, end in itertools.pairwise(edges):
                time.sleep(STEP_SECONDS)
                ctypes.memmove(target + begin, start + begin, end - begin)

        chosen.tasks.put(transfer)
        if stream is None:
            chosen.synchronize()
        return made

    def keep_for(self, tensor, stream):
        tensor.users.append(stream)

    def to_host(self, data, ordinal):
        assert data.ordinal == ordinal
        return data.read(self.current_stream(ordinal))()

    def dlpack_device(self, ordinal):
        return (2, ordinal)

    def dlpack(self, tensor, stream, max_version):
        return tensor, stream, max_version

    def cuda_array_interface(self, tensor):
        return {
            "shape": tuple(tensor.shape),
            "data": (tensor.block.ctypes.data, False),
            "version": 3,
            "stream": self.current_stream(tensor.ordinal).cuda_stream,
        }
