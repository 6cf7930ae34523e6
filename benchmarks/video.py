"""Video: decoding frames in a row and random clips, against DALI, torchcodec, PyAV and decord.

CPU time, not elapsed time: clips are decoded on one thread in all libraries.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

from benchmarks.harness import Case, Contender, Family, Prepare, Ready

ABOUT = """\
Videos of 300 frames, a photograph that is panned under noise, with a key frame every 60 (MJPEG:
each), in memory. *in a row*: 96 frames from the start; *clips*: 12 clips of 16 frames at random
places, with the file opened for each. CPU time of all threads per frame; clips come one by one.
"""
ABOUT_RIVAL = """\
The same, in H.264 and VP9.
"""

FRAMES = 300
LENGTH = 16
SIZES = {"360p": (360, 640), "720p": (720, 1280)}
CODECS = {
    "H.264": ("libx264", "mp4", "yuv420p", {"preset": "veryfast", "crf": "23"}),
    "VP9": ("libvpx-vp9", "webm", "yuv420p", {"deadline": "realtime", "cpu-used": "8"}),
    "MJPEG": ("mjpeg", "matroska", "yuvj420p", {"qscale": "5"}),
}


@functools.cache
def file(codec: str, size: str) -> bytes:
    import av

    encoder, container, pixels, options = CODECS[codec]
    height, width = SIZES[size]
    rng = np.random.default_rng(0)
    scene = Image.fromarray(load_sample_image("china.jpg"))
    scene = np.asarray(scene.resize((width + FRAMES, height + 64), Image.Resampling.BICUBIC))
    made = io.BytesIO()
    with av.open(made, "w", format=container) as output:
        stream = output.add_stream(encoder, rate=30, options=options)
        stream.height, stream.width, stream.pix_fmt = height, width, pixels
        stream.codec_context.gop_size = 60
        for at in range(FRAMES):
            y = int(32 + 30 * np.sin(at / 20))
            picture = scene[y : y + height, at : at + width].astype(np.int16)
            picture += rng.integers(-4, 5, picture.shape, np.int16)
            shown = av.VideoFrame.from_ndarray(picture.clip(0, 255).astype(np.uint8), "rgb24")
            output.mux(stream.encode(shown))
        output.mux(stream.encode())
    return made.getvalue()


def starts(count: int) -> list[int]:
    return np.random.default_rng(3).integers(0, FRAMES - LENGTH, count).tolist()


def cpu_time(work: Callable[[], Any], frames: int) -> Callable[[], float]:
    def measure() -> float:
        begin = time.process_time()
        work()
        return (time.process_time() - begin) / frames

    return measure


Clip = Callable[[int, int], np.ndarray]
"""Decodes so many frames from a number on."""


def ready(clip: Clip, clips: bool) -> Ready:
    if clips:
        work = lambda: [clip(start, LENGTH) for start in starts(12)]  # noqa: E731
        return Ready(cpu_time(work, 12 * LENGTH), [clip(start, LENGTH) for start in starts(2)])
    return Ready(cpu_time(lambda: clip(0, 96), 96), [clip(0, 8)])


def clip_of(ndd: Any, data: np.ndarray) -> Clip:
    held = ndd.tensor(data)

    def clip(start: int, length: int) -> np.ndarray:
        made = ndd.decoders.video(held, start_frame=start, sequence_length=length)
        return np.asarray(made.evaluate())

    return clip


def against_dali(codec: str, size: str, clips: bool) -> Prepare:
    def prepare(side: Contender) -> Ready:
        data = np.frombuffer(file(codec, size), np.uint8)
        return ready(clip_of(side.library, data), clips)

    return prepare


def cases() -> Iterator[Case]:
    for codec, size in (("VP9", "360p"), ("VP9", "720p"), ("MJPEG", "360p")):
        for clips in (False, True):
            name = f"video/{codec} {size}/{'clips' if clips else 'in a row'}"
            yield Case(name, against_dali(codec, size, clips), 7)


# Others, each with its own recommended way to frames by number, on one thread.


def torchcodec_clip(data: bytes) -> Clip:
    from torchcodec.decoders import VideoDecoder

    def clip(start: int, length: int) -> np.ndarray:
        decoder = VideoDecoder(data, dimension_order="NHWC", num_ffmpeg_threads=1)
        return decoder.get_frames_in_range(start, start + length).data.numpy()

    return clip


def pyav_clip(data: bytes) -> Clip:
    import av

    def clip(start: int, length: int) -> np.ndarray:
        found: list[np.ndarray] = []
        with av.open(io.BytesIO(data)) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            first = round(start / (30 * stream.time_base))
            container.seek(first, stream=stream)
            for frame in container.decode(stream):
                if frame.pts >= first - 1:
                    found.append(frame.to_ndarray(format="rgb24"))
                    if len(found) == length:
                        break
        return np.stack(found)

    return clip


def decord_clip(data: bytes) -> Clip:
    import decord

    def clip(start: int, length: int) -> np.ndarray:
        reader = decord.VideoReader(io.BytesIO(data), num_threads=1)
        return reader.get_batch(list(range(start, start + length))).asnumpy()

    return clip


RIVALS = {"torchcodec": torchcodec_clip, "PyAV": pyav_clip, "decord": decord_clip}
MODULES = {"torchcodec": "torchcodec", "PyAV": "av", "decord": "decord"}


def is_there(rival: str) -> bool:
    """Whether a library is installed, and the system's FFmpeg where it needs that."""
    if importlib.util.find_spec(MODULES[rival]) is None:
        return False
    if rival == "torchcodec":
        from torchcodec.decoders import VideoDecoder

        try:
            VideoDecoder(b"not a video")
        except RuntimeError as error:
            return "Could not load" not in str(error)
    return True


def against(rival: str, codec: str, size: str, clips: bool) -> Prepare:
    def prepare(side: Contender) -> Ready:
        data = file(codec, size)
        if side.is_dali:
            return ready(RIVALS[rival](data), clips)
        return ready(clip_of(side.library, np.frombuffer(data, np.uint8)), clips)

    return prepare


def rival_cases(rival: str) -> Callable[[], Iterator[Case]]:
    def made() -> Iterator[Case]:
        if not is_there(rival):
            return
        for codec, size in (("H.264", "360p"), ("H.264", "720p"), ("VP9", "360p")):
            for clips in (False, True):
                name = f"video, {rival}/{codec} {size}/{'clips' if clips else 'in a row'}"
                # Their chroma is not interpolated; PyAV's is off by up to 42.
                yield Case(name, against(rival, codec, size, clips), 7, rounding=64)

    return made


FAMILY = Family("video", "Video", ABOUT, cases)
RIVAL_FAMILIES = [
    Family(
        f"video, {rival}", f"Video, against {rival}", ABOUT_RIVAL, rival_cases(rival), rival=rival
    )
    for rival in RIVALS
]
