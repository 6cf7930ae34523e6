"""Videos for tests: numbered frames in every codec and container, written with PyAV.

`video("h264.mp4")` is a file's bytes, made on first use and then kept for the process; `NAMES`
lists what there is. The same bytes come out in every run. The number of a frame is in its pixels
(`number`), so that a test can tell which frame it was given, whatever the codec did to it.

python -m tests.videos ffmpeg    # writes the kept ones anew, with a program that has their encoders
"""

from __future__ import annotations

import functools
import io
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 16
"""The side of the squares that hold the bits of a frame's number: two rows of five."""

BITS = 10
FOLDER = Path(__file__).parent / "data" / "videos"
"""Files that PyAV can't write."""


def numbered(number: int, height: int = 120, width: int = 160) -> np.ndarray:
    """A picture (RGB) with a number in its corner, below which gradients move with the number."""
    y, x = np.mgrid[:height, :width]
    moving = (x * 2 + number * 5) % 256, (y * 2 + number * 3) % 256, (x + y + number * 7) % 256
    # Triangles, so that there are no jumps for a codec to smear.
    picture = np.stack([255 - abs(255 - 2 * plane) for plane in moving], axis=-1) // 2 + 64
    for bit in range(BITS):
        row, column = divmod(bit, BITS // 2)
        top, left = row * BLOCK, column * BLOCK
        picture[top : top + BLOCK, left : left + BLOCK] = 255 * (number >> bit & 1)
    return picture.astype(np.uint8)


def number(frame: np.ndarray) -> int:
    """The number in the corner of a frame (of shape (height, width, channels), or gray)."""
    found = 0
    for bit in range(BITS):
        row, column = divmod(bit, BITS // 2)
        # Codecs and chroma make the borders of blocks unclear.
        top, left = row * BLOCK + 4, column * BLOCK + 4
        block = frame[top : top + BLOCK - 8, left : left + BLOCK - 8]
        found |= int(block.mean() > 128) << bit
    return found


def numbers(frames: Any) -> list[int]:
    """The numbers of frames, of a sequence of shape (frames, height, width, channels)."""
    return [number(frame) for frame in np.asarray(frames)]


@dataclass(frozen=True)
class Made:
    """How a file is made.

    Args:
        codec: The encoder, as FFmpeg names it.
        frames: How many there are.
        size: Height and width.
        pixels: The pixel format, as FFmpeg names it.
        rate: Frames a second.
        gop: Frames from one key frame to the next.
        b_frames: How many at most between two other frames.
        options: Of the encoder.
        container: Options of the container.
        format: The container, where the name's extension doesn't tell.
        times: When frames are shown, in milliseconds; by default by the rate.
        colors: Tags: color space and range, as FFmpeg numbers them.
        sound: The encoder of the sound that comes beside, if any.
        heard: Rate, channels and seconds of the sound; by default as long as the video.
        after: What is done with the bytes.
    """

    codec: str = "libx264"
    frames: int = 30
    size: tuple[int, int] = (120, 160)
    pixels: str = "yuv420p"
    rate: int = 30
    gop: int = 10
    b_frames: int = 0
    options: dict[str, str] = field(default_factory=dict)
    container: dict[str, str] = field(default_factory=dict)
    format: str | None = None
    times: Sequence[int] | None = None
    colors: tuple[int, int] | None = None
    sound: str = ""
    heard: tuple[int, int, float | None] = (16000, 1, None)
    after: Callable[[bytes], bytes] | None = None


VARIABLE = [n * 33 if n < 15 else 15 * 33 + (n - 15) * 100 for n in range(30)]
"""30 frames a second, then 10."""

FRAGMENTS = {"movflags": "+frag_keyframe+empty_moov+default_base_moof"}
OPEN = {"x264-params": "open-gop=1:scenecut=0:bframes=3:b-adapt=0"}
CLOSED = {"x264-params": "open-gop=0:scenecut=0"}
INTERLACED = {"x264-params": "tff=1:scenecut=0", "flags": "+ildct+ilme"}
HEVC = {"x265-params": "log-level=none:pools=none:frame-threads=1:scenecut=0"}
HEVC_OPEN = {"x265-params": f"{HEVC['x265-params']}:open-gop=1:bframes=3:b-adapt=0"}
VP = {"deadline": "realtime", "cpu-used": "8"}
ALT = {"deadline": "good", "cpu-used": "5", "auto-alt-ref": "1", "lag-in-frames": "12"}
AV1 = {"preset": "13", "svtav1-params": "lp=1:scd=0"}

BT709, BT601, BT2020 = 1, 5, 9
LIMITED, FULL = 1, 2

CORPUS: dict[str, Made] = {
    "h264.mp4": Made(),
    "h264.mkv": Made(),
    "h264.mov": Made(),
    "h264.ts": Made(),
    "h264.flv": Made(),
    "h264.avi": Made(),
    "h264-bframes.mp4": Made(b_frames=3),
    "h264-bframes.mkv": Made(b_frames=3),
    "h264-bframes.avi": Made(b_frames=3),
    "h264-bframes.ts": Made(b_frames=3),
    "h264-open.mp4": Made(b_frames=3, options=OPEN),
    "h264-open.mkv": Made(b_frames=3, options=OPEN),
    "h264-long.mp4": Made(frames=60, gop=250, b_frames=3),
    "h264-fragments.mp4": Made(b_frames=3, container=FRAGMENTS),
    "h264-interlaced.mp4": Made(size=(128, 160), options=INTERLACED),
    "h264-422.mp4": Made(pixels="yuv422p"),
    "h264-444.mp4": Made(pixels="yuv444p"),
    "h264-gray.mp4": Made(pixels="gray"),
    "h264-10bit.mp4": Made(pixels="yuv420p10le"),
    "h264-vfr.mp4": Made(times=VARIABLE),
    "h264-vfr.mkv": Made(times=VARIABLE, b_frames=3),
    "h264-late.mkv": Made(times=[2000 + n * 40 for n in range(30)]),
    "h264-late.mp4": Made(times=[2000 + n * 40 for n in range(30)], b_frames=2),
    "h264-odd.mp4": Made(size=(91, 161), pixels="yuv444p"),
    "h264-one.mp4": Made(frames=1),
    "h264-sound.mp4": Made(sound="aac"),
    "h264-sound.mkv": Made(sound="aac", b_frames=2),
    "h264-bt601.mp4": Made(colors=(BT601, LIMITED)),
    "h264-bt709.mp4": Made(colors=(BT709, LIMITED)),
    "h264-bt709-full.mp4": Made(colors=(BT709, FULL)),
    "h264-bt2020.mp4": Made(colors=(BT2020, LIMITED), pixels="yuv420p10le"),
    "h264-rotated.mp4": Made(after=lambda file: rotated(file, 90)),
    "h264-edited.mp4": Made(b_frames=2, after=lambda file: edited(file, 13 / 30)),
    "hevc.mp4": Made("libx265", b_frames=3, options=HEVC),
    "hevc.mkv": Made("libx265", options=HEVC),
    "hevc-open.mp4": Made("libx265", b_frames=3, options=HEVC_OPEN),
    "hevc-10bit.mp4": Made("libx265", pixels="yuv420p10le", options=HEVC),
    "vp8.webm": Made("libvpx", options=VP),
    "vp8.ivf": Made("libvpx", options=VP),
    "vp8-altref.webm": Made("libvpx", options=ALT),
    "vp9.webm": Made("libvpx-vp9", options=VP),
    "vp9.mkv": Made("libvpx-vp9", options=VP),
    "vp9.mp4": Made("libvpx-vp9", options=VP),
    "vp9.ivf": Made("libvpx-vp9", options=VP),
    "vp9-altref.webm": Made("libvpx-vp9", options=ALT),
    "vp9-444.webm": Made("libvpx-vp9", pixels="yuv444p", options=VP),
    "vp9-odd.webm": Made("libvpx-vp9", size=(91, 161), options=VP),
    "vp9-vfr.webm": Made("libvpx-vp9", times=VARIABLE, options=VP),
    "vp9-late.webm": Made("libvpx-vp9", times=[2000 + n * 40 for n in range(30)], options=VP),
    "vp9-one.webm": Made("libvpx-vp9", frames=1, options=VP),
    "av1.mp4": Made("libsvtav1", options=AV1),
    "av1.webm": Made("libsvtav1", options=AV1),
    "av1-10bit.mkv": Made("libsvtav1", pixels="yuv420p10le", options=AV1),
    "mjpeg.avi": Made("mjpeg", pixels="yuvj420p"),
    "mjpeg.mp4": Made("mjpeg", pixels="yuvj420p"),
    "mjpeg.mkv": Made("mjpeg", pixels="yuvj420p"),
    "mjpeg-422.mov": Made("mjpeg", pixels="yuvj422p"),
    "mjpeg-444.avi": Made("mjpeg", pixels="yuvj444p"),
    "mjpeg-vfr.mkv": Made("mjpeg", pixels="yuvj420p", times=VARIABLE),
    "mpeg4.mp4": Made("mpeg4"),
    "mpeg4-bframes.mp4": Made("mpeg4", b_frames=2),
    "mpeg4-bframes.avi": Made("mpeg4", b_frames=2),
    "mpeg2.mpg": Made("mpeg2video", b_frames=2, rate=25, format="mpeg"),
    "mpeg2.ts": Made("mpeg2video", b_frames=2, rate=25),
    "mpeg1.mpg": Made("mpeg1video", rate=25, format="mpeg"),
    "ffv1.mkv": Made("ffv1", gop=1),
    "ffv1-12bit.mkv": Made("ffv1", gop=1, pixels="yuv444p12le"),
    "prores.mov": Made("prores_ks", pixels="yuv422p10le", frames=8),
}
"""How files are made, by name; the extension is that of the container."""

KEPT = {
    "vp9-10bit.webm": ["-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p10le", "-b:v", "500k"],
    "theora.ogv": ["-c:v", "libtheora", "-q:v", "6"],
}
"""Files that PyAV has no encoder for, and arguments of the ffmpeg that wrote them."""

NAMES = [*CORPUS, *KEPT]

BY_DALI = [name for name in NAMES if name.startswith(("vp8", "vp9", "mjpeg"))]
"""Those that DALI decodes without a GPU."""


@functools.cache
def video(name: str) -> bytes:
    """A file of the corpus."""
    if name in KEPT:
        return (FOLDER / name).read_bytes()
    made = CORPUS[name]
    written = write(name, made)
    return made.after(written) if made.after else written


def save(folder: Path, *names: str) -> list[str]:
    """Write files of the corpus into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(video(name))
    return [str(folder / name) for name in names]


@contextmanager
def _same_priority() -> Iterator[None]:
    """SVT-AV1 gives the calling thread real-time priority where it may, as for root, and all that
    is started afterwards inherits it.
    """
    if not hasattr(os, "sched_getscheduler"):
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


@_same_priority()
def write(name: str, made: Made, pictures: Sequence[np.ndarray] | None = None) -> bytes:
    """Encode pictures (RGB), by default numbered ones."""
    import av

    os.environ.setdefault("SVT_LOG", "0")  # its encoder writes to stderr by itself
    height, width = made.size
    if pictures is None:
        pictures = [numbered(n, height, width) for n in range(made.frames)]
    tick = Fraction(1, made.rate) if made.times is None else Fraction(1, 1000)
    file = io.BytesIO()
    extension = name.rpartition(".")[2]
    format = made.format or {"mkv": "matroska", "ts": "mpegts"}.get(extension, extension)
    # Without the time of writing and the version of the writer: the same bytes in each run.
    options = {"fflags": "+bitexact", **made.container}
    with av.open(file, "w", format=format, options=options) as container:
        stream = container.add_stream(made.codec, rate=made.rate, options=made.options)
        stream.width, stream.height, stream.pix_fmt = width, height, made.pixels
        context = stream.codec_context
        context.time_base = tick
        context.gop_size = made.gop
        context.max_b_frames = made.b_frames
        context.thread_count = 1
        context.flags |= av.codec.context.Flags.bitexact
        if made.codec in ("mpeg4", "mpeg2video", "mpeg1video", "mjpeg"):
            context.qmin, context.qmax = 2, 5
            context.bit_rate = 4_000_000
        if made.codec.startswith("libvpx"):
            context.bit_rate = 1_500_000
        if made.codec == "libx264" and "preset" not in made.options:
            context.options = {"preset": "veryfast", **CLOSED, **made.options}
        if made.colors:
            context.colorspace, context.color_range = made.colors
        sound = None
        if made.sound:
            rate, channels, seconds = made.heard
            sound = container.add_stream(
                made.sound, rate=rate, layout="mono" if channels == 1 else "stereo"
            )
        for at, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            if made.colors:
                frame = frame.reformat(
                    format=made.pixels,
                    dst_colorspace=made.colors[0],
                    dst_color_range=made.colors[1],
                )
                frame.colorspace, frame.color_range = made.colors
            else:
                frame = frame.reformat(format=made.pixels)
            frame.time_base = tick
            frame.pts = at if made.times is None else made.times[at]
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if sound is not None:
            length = len(pictures) / made.rate if seconds is None else seconds
            _add_sound(container, sound, length, rate, channels)
    return file.getvalue()


def _add_sound(
    container: Any, stream: Any, seconds: float, rate: int = 16000, channels: int = 1
) -> None:
    import av

    from tests.sounds import signal

    context = stream.codec_context
    context.flags |= av.codec.context.Flags.bitexact
    samples = signal(int(rate * seconds), channels, rate).T.astype(np.float32)
    layout = "mono" if channels == 1 else "stereo"
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), "fltp", layout)
    frame.sample_rate = rate
    resampler = av.AudioResampler(format=context.format, layout=layout, rate=rate)
    fifo = av.AudioFifo()
    for part in resampler.resample(frame):
        fifo.write(part)
    while (part := fifo.read(context.frame_size or 1024, partial=True)) is not None:
        container.mux(stream.encode(part))
    container.mux(stream.encode(None))


def decoded(file: bytes | str, format: str | None = None) -> list[tuple[float, np.ndarray]]:
    """All frames as FFmpeg decodes them one after the other: seconds since the first, and pixels.

    Pixels are as stored (planes for YUV, see PyAV's `to_ndarray`), or converted to a format.
    """
    import av

    with av.open(io.BytesIO(file) if isinstance(file, bytes) else file) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        found = [
            (frame.time, frame.to_ndarray(format=format)) for frame in container.decode(stream)
        ]
    first = found[0][0] if found and found[0][0] is not None else 0.0
    return [(n if time is None else time - first, frame) for n, (time, frame) in enumerate(found)]


class _Bits:
    """Bits that are written one after the other."""

    def __init__(self) -> None:
        self._bits: list[str] = []
        self._count = 0

    def number(self, value: int, bits: int) -> _Bits:
        self._bits.append(f"{value:0{bits}b}")
        self._count += bits
        return self

    def golomb(self, *values: int) -> _Bits:
        for value in values:
            length = (value + 1).bit_length()
            self.number(value + 1, 2 * length - 1)
        return self

    def aligned(self, bit: int = 0) -> _Bits:
        """Fill the byte, with zeros after a first bit."""
        if rest := -self._count % 8:
            self.number(bit << (rest - 1), rest)
        elif bit:
            self.number(0x80, 8)
        return self

    def raw(self, data: bytes) -> _Bits:
        return self.number(int.from_bytes(data, "big"), 8 * len(data))

    def unit(self, kind: int, reference: bool = True) -> bytes:
        """A unit of H.264, with a start code."""
        text = "".join(self.aligned(1)._bits)
        data = int(text, 2).to_bytes(len(text) // 8, "big")
        escaped, zeros = bytearray(), 0
        for byte in data:
            if zeros >= 2 and byte <= 3:
                escaped.append(3)
                zeros = 0
            zeros = zeros + 1 if byte == 0 else 0
            escaped.append(byte)
        return bytes([0, 0, 0, 1, kind | (0x60 if reference else 0), *escaped])


def field_packets(frames: int, key_every: int = 4) -> list[bytes]:
    """H.264 with a packet for each field (start codes in front): two packets a frame.

    No encoder at hand writes that. Blocks are stored as they are (I_PCM).
    """
    height, width = 64, 96
    parameters = (
        # Main profile, level 3; 4 bits for frame numbers, 8 for the order; two references, since
        # with one FFmpeg takes all frames for key frames; interlaced.
        _Bits().number(0x4D001E, 24).golomb(0, 0, 0, 4, 2).number(0, 1)
        .golomb(width // 16 - 1, height // 32 - 1).number(0b00100, 5).unit(7)
        + _Bits().golomb(0, 0).number(0, 2).golomb(0, 0, 0).number(0, 3).golomb(0, 0, 0)
        .number(0b100, 3).unit(8)
    )  # fmt: skip
    packets = []
    for frame in range(frames):
        picture = numbered(frame, height, width).astype(np.float64)
        # Gray, so that colors need no thought; from 16 on, as limited range has it.
        luma = np.clip(16 + picture.mean(axis=2) * 219 / 255, 16, 235).round().astype(np.uint8)
        since_key = frame % key_every
        for bottom in (0, 1):
            is_key = since_key == 0 and not bottom
            # Every other frame is one that others don't refer to.
            reference = since_key % 2 == 0
            bits = _Bits().golomb(0, 7, 0).number((since_key + 1) // 2, 4).number(2 | bottom, 2)
            if is_key:
                bits.golomb(frame // key_every % 2)
            bits.number(2 * since_key + bottom, 8)
            if reference:
                bits.number(0, 2 if is_key else 1)
            bits.golomb(0, 1)
            half = luma[bottom::2]
            for top in range(0, height // 2, 16):
                for left in range(0, width, 16):
                    block = half[top : top + 16, left : left + 16].tobytes()
                    bits.golomb(25).aligned().raw(block + bytes([128]) * 128)
            start = parameters if is_key else b""
            packets.append(start + bits.unit(5 if is_key else 1, reference))
    return packets


def fields(format: str, frames: int = 12, rate: int = 25) -> bytes:
    """A file of interlaced video with a packet for each field."""
    import av

    packets = field_packets(frames)
    file = io.BytesIO()
    options = {"fflags": "+bitexact"}
    with (
        av.open(io.BytesIO(b"".join(packets)), format="h264") as source,
        av.open(file, "w", format=format, options=options) as container,
    ):
        stream = container.add_stream_from_template(source.streams.video[0])
        for number, data in enumerate(packets):
            packet = av.Packet(data)
            packet.stream, packet.time_base = stream, Fraction(1, 2 * rate)
            packet.pts = packet.dts = number
            packet.duration = 1
            packet.is_keyframe = number % 8 == 0
            container.mux(packet)
    return file.getvalue()


def two_streams() -> bytes:
    """An MKV with two videos: 30 frames, and then 10 others of another size."""
    import av

    file = io.BytesIO()
    parts = [video("h264.mkv"), write("small.mkv", Made(frames=10, size=(64, 96), rate=10))]
    with av.open(file, "w", format="matroska", options={"fflags": "+bitexact"}) as container:
        sources = [av.open(io.BytesIO(part)) for part in parts]
        streams = [container.add_stream_from_template(s.streams.video[0]) for s in sources]
        for source, stream in zip(sources, streams, strict=True):
            for packet in source.demux():
                if packet.dts is not None:
                    packet.stream = stream
                    container.mux(packet)
            source.close()
    return file.getvalue()


def boxes(file: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    """The boxes of an MP4 between two places: where the content of each kind begins and ends."""
    found = {}
    while start + 8 <= end:
        (size,) = struct.unpack_from(">I", file, start)
        found[file[start + 4 : start + 8]] = (start + 8, start + size)
        start += size
    return found


def box(file: bytes, *names: bytes) -> tuple[int, int]:
    """Where the content of a box within boxes begins and ends."""
    start, end = 0, len(file)
    for name in names:
        start, end = boxes(file, start, end)[name]
    return start, end


def rotated(file: bytes, degrees: int) -> bytes:
    """An MP4 whose track is shown turned clockwise."""
    start, _ = box(file, b"moov", b"trak", b"tkhd")
    turns = {0: (1, 0, 0, 1), 90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}
    a, b, c, d = (number << 16 for number in turns[degrees])
    matrix = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    at = start + 40
    return file[:at] + matrix + file[at + 36 :]


def edited(file: bytes, seconds: float) -> bytes:
    """An MP4 whose edit list starts the video so many seconds later, maybe between key frames."""
    head, _ = box(file, b"moov", b"trak", b"mdia", b"mdhd")
    (scale,) = struct.unpack_from(">I", file, head + 12)
    start, _ = box(file, b"moov", b"trak", b"edts", b"elst")
    version, entries = file[start], struct.unpack_from(">I", file, start + 4)[0]
    assert (version, entries) == (0, 1), (version, entries)
    (time,) = struct.unpack_from(">i", file, start + 12)
    return (
        file[: start + 12] + struct.pack(">i", time + round(seconds * scale)) + file[start + 16 :]
    )


def resized_midway() -> bytes:
    """A VP8 file in which frames have another size from the middle on."""
    first = write("first.ivf", Made("libvpx", frames=10, options=VP))
    second = write("second.ivf", Made("libvpx", frames=10, size=(64, 96), options=VP))
    # The header has 32 bytes; each frame has its size and its time before it.
    rest, at = bytearray(second[32:]), 0
    while at < len(rest):
        size, time = struct.unpack_from("<IQ", rest, at)
        struct.pack_into("<Q", rest, at + 4, time + 10)
        at += 12 + size
    return first + bytes(rest)


def sound_only() -> bytes:
    """A container without video."""
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="matroska", options={"fflags": "+bitexact"}) as container:
        _add_sound(container, container.add_stream("aac", rate=16000, layout="mono"), 1.0)
    return file.getvalue()


def damaged() -> dict[str, bytes]:
    """Files that can't be read, or not to their end."""
    mp4, webm, mkv = video("h264.mp4"), video("vp9.webm"), video("h264-bframes.mkv")
    fragments = video("h264-fragments.mp4")
    start, end = box(mp4, b"mdat")
    flipped = bytearray(mp4)
    for at in range(start + (end - start) // 2, end, 97):
        flipped[at] ^= 0x5A
    return {
        "empty": b"",
        "text": b"This is not a video.\n" * 100,
        "sound only": sound_only(),
        "no index": mp4[: len(mp4) // 2],
        "cut mp4": mp4[:-40],
        "cut webm": webm[: len(webm) // 2],
        "cut mkv": mkv[: len(mkv) * 2 // 3],
        "cut fragments": fragments[: len(fragments) * 2 // 3],
        "flipped": bytes(flipped),
        "head only": mp4[:32],
        "resized midway": resized_midway(),
    }


def _keep(ffmpeg: str) -> None:
    raw = b"".join(numbered(n).tobytes() for n in range(30))
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "160x120", "-r", "30", "-i", "-"]
    exact = ["-g", "10", "-threads", "1", "-fflags", "+bitexact", "-flags:v", "+bitexact"]
    for name, options in KEPT.items():
        line = [ffmpeg, "-y", "-v", "error", *source, *options, *exact, str(FOLDER / name)]
        subprocess.run(line, input=raw, check=True)


if __name__ == "__main__":
    _keep(sys.argv[1])
