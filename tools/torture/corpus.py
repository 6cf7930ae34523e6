"""Small files that once did harm or are designed to, generated deterministically.

python -m tools.torture.corpus FOLDER     # writes all of them
python -m tools.torture.corpus NAME       # reads one, under the limits of the tests
"""

from __future__ import annotations

import io
import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests import sounds


class Attack(NamedTuple):
    """A file and its required outcome."""

    kind: str
    """How it is read: a key of `consume.WAYS`."""
    data: bytes
    error: bool
    """Whether it must be rejected; otherwise a result is fine, too."""
    size: int = 0
    """The size of the file, with a hole at its end."""


MAKERS: dict[str, Callable[[], Attack]] = {}


def attack(
    kind: str, *, error: bool = False, size: int = 0
) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    """Register the generator of a file by name."""

    def register(make: Callable[[], bytes]) -> Callable[[], bytes]:
        MAKERS[make.__name__] = lambda: Attack(kind, make(), error, size)
        return make

    return register


def attacks() -> Iterator[tuple[str, Attack]]:
    """All of them, by name."""
    for name, make in MAKERS.items():
        yield name, make()


# Images


@attack("image", error=True)
def gif_canvas() -> bytes:
    """A canvas of 2^28 pixels and a frame of one pixel."""
    return _gif(16384, 16384, 1, 1)


@attack("image")
def gif_empty_frame() -> bytes:
    return _gif(8, 8, 0, 0, b"\x2c")


@attack("image")
def gif_frame_without_columns() -> bytes:
    return _gif(8, 8, 8, 0, b"\x2c")


@attack("image")
def gif_empty_frame_with_pixels() -> bytes:
    return _gif(8, 8, 0, 0)


@attack("image")
def gif_frame_outside() -> bytes:
    return _gif(2, 2, 60000, 60000)


@attack("image", error=True)
def gif_without_frames() -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0) + b";"


def _gif(
    height: int, width: int, frame_height: int, frame_width: int, pixels: bytes = b"\x44\x01"
) -> bytes:
    screen = struct.pack("<HHBBB", width, height, 0, 0, 0)
    frame = struct.pack("<BHHHHB", 0x2C, 0, 0, frame_width, frame_height, 0x80)
    blocks = bytes([len(pixels)]) + pixels if pixels else b""
    return b"GIF89a" + screen + frame + bytes(6) + b"\x02" + blocks + b"\0;"


@attack("image", error=True)
def tiff_64_samples() -> bytes:
    return _tiff(16384, 8192, b"\x80" * 16, samples=64, compression=32773)


@attack("image", error=True)
def tiff_64_samples_deflated() -> bytes:
    return _tiff(16384, 8192, zlib.compress(bytes(64)), samples=64, compression=8)


@attack("image", error=True)
def tiff_65535_samples() -> bytes:
    return _tiff(4096, 4096, bytes(16), samples=65535, compression=1)


@attack("image")
def tiff_strips_of_the_same_bytes() -> bytes:
    """Each strip is the same long run of no-op bytes, followed by a pixel."""
    return _tiff(1, 60_000, b"\x80" * 300_000 + b"\0\x7f", compression=32773, strips=60_000)


@attack("image")
def tiff_strips_of_the_same_empty_blocks() -> bytes:
    """The same, deflated: empty blocks."""
    rows = b"\x01\x01\0\xfe\xff\x7f"
    data = b"\x78\x01" + b"\0\0\0\xff\xff" * 60_000 + rows + struct.pack(">I", 0x00800080)
    return _tiff(1, 60_000, data, compression=8, strips=60_000)


@attack("image")
def tiff_strips_of_one_large_stream() -> bytes:
    large = zlib.compress(bytes(30_000_000), 9)
    return _tiff(1, 20_000, large, compression=8, strips=20_000)


@attack("image", error=True)
def tiff_directory_of_itself() -> bytes:
    return b"II*\0\x08\0\0\0" + struct.pack("<H", 0) + struct.pack("<I", 8)


@attack("image", error=True)
def tiff_counts_without_end() -> bytes:
    file = bytearray(_tiff(64, 64, bytes(4096)))
    place = file.index(struct.pack("<HHI", 273, 4, 1))
    file[place + 4 : place + 8] = struct.pack("<I", 0xFFFFFFFF)
    return bytes(file)


def _tiff(
    width: int,
    height: int,
    data: bytes,
    samples: int = 1,
    compression: int = 1,
    strips: int = 1,
) -> bytes:
    """A little-endian TIFF whose strips all share the same bytes."""
    count = 10
    tables = 8 + 2 + 12 * count + 4
    start = tables + (8 * strips if strips > 1 else 0)
    if strips > 1:
        offsets, sizes = tables, tables + 4 * strips
    else:
        offsets, sizes = start, len(data)
    long, short = 4, 3
    entries = [
        (256, long, 1, width),
        (257, long, 1, height),
        (258, short, 1, 8),
        (259, short, 1, compression),
        (262, short, 1, 1),
        (273, long, strips, offsets),
        (277, short, 1, samples),
        (278, long, 1, -(-height // strips)),
        (279, long, strips, sizes),
        (284, short, 1, 1),
    ]
    directory = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    file = b"II*\0\x08\0\0\0" + struct.pack("<H", count) + directory + bytes(4)
    if strips > 1:
        file += struct.pack("<I", start) * strips + struct.pack("<I", len(data)) * strips
    return file + data


@attack("image", error=True)
def jpeg2000_255_channels() -> bytes:
    return _jpeg2000(1000, 1000, 255)


@attack("image", error=True)
def jpeg2000_16384_channels() -> bytes:
    return _jpeg2000(64, 64, 16384)


@attack("image")
def jpeg2000_many_tiles() -> bytes:
    return _jpeg2000(4000, 4000, 1, tile=1)


def _jpeg2000(height: int, width: int, channels: int, tile: int = 0) -> bytes:
    """A codestream with little more than the header."""
    tiles = (tile or width, tile or height)
    size = struct.pack(">HIIIIIIIIH", 0, width, height, 0, 0, *tiles, 0, 0, channels)
    size += b"\x07\x01\x01" * channels
    parts = [
        (0x51, size),
        (0x52, struct.pack(">BBHBBBBBB", 0, 0, 1, 0, 0, 4, 4, 0, 1)),
        (0x5C, b"\x40\x40"),
    ]
    file = b"\xff\x4f"
    for marker, body in parts:
        file += struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body
    packets = bytes(min(channels, 300))
    part = struct.pack(">HHIBB", 10, 0, len(packets) + 14, 0, 1)
    return file + b"\xff\x90" + part + b"\xff\x93" + packets + b"\xff\xd9"


@attack("image")
def png_palette_too_short() -> bytes:
    """Pixels refer to colors outside of the palette."""
    return _png(4, 4, 3, [(b"PLTE", b"\1\2\3")], bytes([0, 255, 1, 200, 7]) * 4)


@attack("image")
def png_palette_of_odd_length() -> bytes:
    return _png(4, 4, 3, [(b"PLTE", b"\1\2\3\4")], bytes([0, 0, 1, 0, 1]) * 4)


@attack("image")
def png_palette_empty() -> bytes:
    return _png(4, 4, 3, [(b"PLTE", b"")], bytes([0, 0, 1, 0, 1]) * 4)


@attack("image")
def png_palette_missing() -> bytes:
    return _png(4, 4, 3, [], bytes(5) * 4)


@attack("image")
def png_transparency_longer_than_palette() -> bytes:
    chunks = [(b"PLTE", b"\1\2\3" * 2), (b"tRNS", bytes(256))]
    return _png(4, 4, 3, chunks, bytes([0, 0, 1, 2, 3]) * 4)


@attack("image")
def png_transparency_before_palette() -> bytes:
    chunks = [(b"tRNS", bytes(9)), (b"PLTE", b"\1\2\3" * 2)]
    return _png(4, 4, 3, chunks, bytes([0, 0, 1, 0, 1]) * 4)


@attack("image", error=True)
def png_16384_square() -> bytes:
    """As many pixels as the limit allows, four times 16 bits each, from a few bytes."""
    return _png(16384, 16384, 6, [], b"", depth=16)


@attack("image", error=True)
def png_larger_than_addresses() -> bytes:
    return _png(0x7FFFFFFF, 0x7FFFFFFF, 6, [], b"", depth=16)


@attack("image")
def png_text_bomb() -> bytes:
    """A compressed comment that is a thousand times longer when decompressed."""
    bomb = b"Comment\0\0" + _zeros(1500)
    return _png(1, 1, 0, [(b"zTXt", bomb)] * 4, b"\0\x7f")


@attack("image")
def png_profile_bomb() -> bytes:
    bomb = b"Profile\0\0" + _zeros(1500)
    return _png(1, 1, 0, [(b"iCCP", bomb)], b"\0\x7f")


@attack("image")
def png_data_bomb() -> bytes:
    """The header claims more rows than there are."""
    return _png(1, 1, 0, [], b"", data=_zeros(1500))


def _zeros(megabytes: int) -> bytes:
    """This many megabytes of zeros, deflated: the same blocks repeated."""
    count = megabytes << 20
    deflate = zlib.compressobj(9, wbits=-15)
    one = deflate.compress(bytes(1 << 20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    check = (count % 65521) << 16 | 1
    return b"\x78\xda" + one * megabytes + b"\x03\0" + struct.pack(">I", check)


def _png(
    height: int,
    width: int,
    color: int,
    chunks: list[tuple[bytes, bytes]],
    rows: bytes,
    depth: int = 8,
    data: bytes = b"",
) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    data = data or zlib.compress(rows, 9)
    file = b"\x89PNG\r\n\x1a\n"
    for name, body in [(b"IHDR", header), *chunks, (b"IDAT", data), (b"IEND", b"")]:
        check = zlib.crc32(name + body)
        file += struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)
    return file


@attack("image")
def jpeg_progressive_stray_marker() -> bytes:
    """A warning of the codec followed by an error: less is written than it seems."""
    file = _jpeg(progressive=True)
    scans = [place for place in range(len(file) - 1) if file[place : place + 2] == b"\xff\xda"]
    middle = scans[0] + 40
    return file[:middle] + b"\xff\x33\xff\xd8" + file[middle:]


@attack("image")
def jpeg_progressive_second_frame() -> bytes:
    file = _jpeg(progressive=True)
    frame = file.index(b"\xff\xc2")
    length = int.from_bytes(file[frame + 2 : frame + 4], "big") + 2
    scan = file.index(b"\xff\xda")
    return file[: scan + 60] + file[frame : frame + length] + file[scan + 60 :]


@attack("image", error=True)
def jpeg_larger_than_the_limit() -> bytes:
    return _resized(_jpeg(progressive=False), 65500, 65500)


@attack("image", error=True)
def jpeg_progressive_16000_square() -> bytes:
    """The codec allocates memory for all coefficients before it sees how few there are."""
    file = _resized(_jpeg(progressive=True), 16000, 16000)
    return file[: file.index(b"\xff\xda") + 20] + bytes(2_000_000)


@attack("image")
def jpeg_many_scans() -> bytes:
    """The same scan, repeated."""
    file = _jpeg(progressive=True)
    starts = [place for place in range(len(file) - 1) if file[place : place + 2] == b"\xff\xda"]
    scan = file[starts[-1] : -2]
    large = _resized(file[: starts[-1]], 4000, 4000)
    return large + scan * min(600, 250_000 // len(scan)) + b"\xff\xd9"


def _jpeg(*, progressive: bool) -> bytes:
    from PIL import Image

    y, x = np.mgrid[:80, :120]
    picture = np.stack([x * 2 + y, 255 - x * 2, (x * y) % 256], -1).clip(0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=90, progressive=progressive)
    return file.getvalue()


def _resized(file: bytes, height: int, width: int) -> bytes:
    """The file with another size in its header."""
    made = bytearray(file)
    frame = max(file.find(b"\xff\xc0"), file.find(b"\xff\xc2"))
    made[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(made)


@attack("image", error=True)
def pnm_larger_than_addresses() -> bytes:
    return b"P6 4294967295 4294967295 65535\n"


@attack("image", error=True)
def pnm_16384_square() -> bytes:
    return b"P6 16384 16384 65535\n"


@attack("image", error=True)
def bmp_height_is_its_own_negative() -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, 4, -(2**31), 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 58, 0, 0, 54) + head + bytes(4)


@attack("image")
def bmp_runs_without_end() -> bytes:
    """Sixteen thousand rows of a few bytes, compressed."""
    head = struct.pack("<IiiHHIIiiII", 40, 16000, 16000, 1, 8, 1, 0, 0, 0, 1, 0)
    return b"BM" + struct.pack("<IHHI", 60, 0, 0, 58) + head + bytes(4) + b"\0\1"


@attack("image", error=True)
def webp_16383_square() -> bytes:
    frame = b"\x9d\x01\x2a" + struct.pack("<HH", 16383, 16383)
    body = b"\x10\0\0" + frame + bytes(20)
    chunk = b"VP8 " + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


@attack("image", error=True)
def image_empty() -> bytes:
    return b""


# Sounds


@attack("sound", error=True)
def flac_bomb() -> bytes:
    """58 KB that decode to 3.5 GB of samples: eight constant channels."""
    info = struct.pack(">HH", 65535, 65535) + bytes(6)
    info += (16000 << 44 | 7 << 41 | 15 << 36).to_bytes(8, "big") + bytes(16)
    file = b"fLaC\x80" + len(info).to_bytes(3, "big") + info
    for number in range(1650):
        frame = b"\xff\xf8\x70\x78" + _utf8(number) + b"\xff\xfe"
        frame += bytes([_crc(frame, 0x07, 8)]) + b"\0\x12\x34" * 8
        file += frame + _crc(frame, 0x8005, 16).to_bytes(2, "big")
    return file


def _utf8(number: int) -> bytes:
    return chr(number).encode()


def _crc(data: bytes, polynomial: int, width: int) -> int:
    value, top = 0, 1 << (width - 1)
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1) ^ (polynomial if value & top else 0)
            value &= (top << 1) - 1
    return value


@attack("sound resampled", error=True)
def wav_of_1_hz() -> bytes:
    return _wav(1, 1, bytes(200_000))


@attack("sound", error=True, size=4_000_000_000)
def wav_sparse() -> bytes:
    """A sparse file: four gigabytes that use no disk space."""
    return _wav(1, 16000, b"", length=4_000_000_000 - 44)


@attack("sound")
def wav_that_is_shorter_than_it_says() -> bytes:
    return _wav(2, 16000, bytes(100), length=0xFFFFFF00)


@attack("sound", error=True)
def wav_without_channels() -> bytes:
    return _wav(0, 16000, bytes(100))


@attack("sound resampled")
def wav_of_65535_channels() -> bytes:
    return _wav(65535, 16000, bytes(131070 * 4))


@attack("sound resampled", error=True)
def wav_of_no_rate() -> bytes:
    return _wav(1, 0, bytes(100))


@attack("audio", error=True)
def mp4_of_a_billion_packets() -> bytes:
    """Its table says that all packets have the same size, so that it takes no space."""
    file = bytearray(sounds.kept("mono.m4a"))
    at = file.index(b"stsz")
    file[at + 8 : at + 16] = struct.pack(">II", 1, 1 << 30)
    at = file.index(b"stts")
    file[at + 12 : at + 16] = struct.pack(">I", 1 << 30)
    return bytes(file)


@attack("audio", error=True)
def mp4_with_a_long_table() -> bytes:
    """Times of 300 000 empty packets of another track, which are searched for each of them."""
    file = bytearray(sounds.kept("mono.m4a"))
    count = 300_000
    at = file.index(b"moov") - 4
    movie = file[at:]
    track_at = movie.index(b"trak") - 4
    track = movie[track_at : track_at + int.from_bytes(movie[track_at : track_at + 4], "big")]
    track[track.index(b"tkhd") + 16 : track.index(b"tkhd") + 20] = struct.pack(">I", 9)
    times = struct.pack(">I4sII", 16 + 8 * count, b"stts", 0, count)
    times += struct.pack(">II", 1, 1) * count
    old = track.index(b"stts") - 4
    old_size = int.from_bytes(track[old : old + 4], "big")
    grown = len(times) - old_size
    track[old : old + old_size] = times
    sizes = track.index(b"stsz")
    track[sizes + 8 : sizes + 16] = struct.pack(">II", 1, count)
    for name in (b"trak", b"mdia", b"minf", b"stbl"):
        _grow(track, name, grown)
    movie += track
    _grow(movie, b"moov", len(track))
    return bytes(file[:at] + movie)


def _grow(file: bytearray, name: bytes, by: int) -> None:
    at = file.index(name) - 4
    size = int.from_bytes(file[at : at + 4], "big") + by
    file[at : at + 4] = struct.pack(">I", size)


@attack("audio", error=True)
def caf_of_a_billion_packets() -> bytes:
    file = bytearray(sounds.corpus()["caf alac"])
    at = file.index(b"pakt")
    file[at + 12 : at + 20] = struct.pack(">Q", 1 << 30)
    return bytes(file)


@attack("audio", error=True)
def opus_of_255_channels() -> bytes:
    """Channels that all are the same one, of packets of 120 ms that take two bytes."""
    head = b"OpusHead\x01\xff" + struct.pack("<HIhB", 0, 48000, 0, 255) + b"\x01\x00" + bytes(255)
    file = _ogg_page(2, 0, [head]) + _ogg_page(0, 1, [b"OpusTags" + bytes(8)])
    packet = b"\x1b\x02"  # two frames of 60 ms, of no bytes
    for number in range(20):
        file += _ogg_page(0, 2 + number, [packet] * 255, 5760 * 255 * (number + 1))
    return file


def _ogg_page(flags: int, number: int, packets: list[bytes], position: int = 0) -> bytes:
    sizes = b"".join(b"\xff" * (len(each) // 255) + bytes([len(each) % 255]) for each in packets)
    head = b"OggS" + struct.pack("<BBQIII", 0, flags, position, 7, number, 0)
    page = head + bytes([len(sizes)]) + sizes + b"".join(packets)
    return page[:22] + _crc(page, 0x04C11DB7, 32).to_bytes(4, "little") + page[26:]


@attack("audio", error=True)
def aiff_of_chunks() -> bytes:
    return b"FORM\0\0\0\0AIFF" + b"junk\0\0\0\0" * 100_000


@attack("audio", error=True)
def matroska_of_elements() -> bytes:
    return b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01" + b"\xff" * 7 + b"\xec\x80" * 200_000


@attack("audio", error=True)
def tags_without_an_end() -> bytes:
    return b"ID3\x04\0\0\0\0\0\0" * 100_000


def _wav(channels: int, rate: int, data: bytes, length: int | None = None) -> bytes:
    said = len(data) if length is None else length
    block = channels * 2 & 0xFFFF
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * block & 0xFFFFFFFF, block, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", said)
    return b"RIFF" + struct.pack("<I", said + 36 & 0xFFFFFFFF) + body + data


# Arrays


def _npy(shape: str, data: bytes = b"", dtype: str = "<f4") -> bytes:
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + data


@attack("npy")
def npy_empty_with_extents_of_2_to_the_63() -> bytes:
    return _npy(f"(0, {2**63}, {2**63})")


@attack("npy")
def npy_empty_with_the_largest_extents() -> bytes:
    return _npy(f"({2**63 - 1}, {2**63 - 1}, 0)")


@attack("npy", error=True)
def npy_extent_of_2_to_the_63() -> bytes:
    return _npy(f"({2**63},)")


@attack("npy", error=True)
def npy_extents_whose_product_wraps() -> bytes:
    return _npy(f"({2**32}, {2**32})")


@attack("npy", error=True)
def npy_extents_of_exabytes() -> bytes:
    return _npy(f"({2**58},)", bytes(64))


@attack("npy", error=True)
def npy_a_hundred_axes() -> bytes:
    return _npy("(" + "1, " * 100 + "5)", bytes(4))


@attack("npy", error=True)
def npy_negative_extent() -> bytes:
    return _npy("(-1,)", bytes(4))


@attack("npy", error=True)
def npy_nested() -> bytes:
    return _npy("(" * 20_000 + ")" * 20_000)


@attack("npy", error=True, size=1 << 40)
def npy_of_a_terabyte() -> bytes:
    """A sparse file of the length that it claims."""
    return _npy(f"({1 << 37},)")


# Records


@attack("tar", error=True)
def tar_member_of_2_to_the_63() -> bytes:
    return _tar(b"\x80" + (2**63 - 1).to_bytes(11, "big"))


@attack("tar", error=True)
def tar_member_without_end() -> bytes:
    return _tar(b"77777777777\0")


@attack("tar")
def tar_of_names_of_names() -> bytes:
    """A long name of a long name of a long name, and so on."""
    return _tar(b"00000000100\0", kind=b"L") * 2000


def _tar(size: bytes, kind: bytes = b"0") -> bytes:
    head = bytearray(512)
    head[:5] = b"0.jpg"
    head[100:124] = b"0000644\0" + b"0000000\0" * 2
    head[124:136] = size
    head[148:156] = b" " * 8
    head[156:157] = kind
    head[257:265] = b"ustar\x0000"
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(512)


@attack("tfrecord", error=True)
def tfrecord_of_2_to_the_64() -> bytes:
    import crc32c

    length = b"\xff" * 8
    crc = crc32c.crc32c(length)
    return (
        length + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF) + bytes(9)
    )


@attack("recordio", error=True)
def recordio_parts_without_end() -> bytes:
    """First parts without ends: collecting them would take quadratic time."""
    return (struct.pack("<II", 0xCED7230A, 1 << 29 | 4) + bytes(4)) * 20_000


@attack("recordio", error=True)
def recordio_longer_than_the_file() -> bytes:
    return struct.pack("<II", 0xCED7230A, 0x1FFFFFFF) + bytes(100)


@attack("caffe", error=True)
def lmdb_of_nothing() -> bytes:
    return bytes(8192)


@attack("caffe")
def lmdb_whose_pages_name_themselves() -> bytes:
    from tests.protobuf import datum

    file = bytearray(_lmdb(datum(b"image %d" % n, n, True) for n in range(400)))
    page = 4096
    for place in range(2 * page, len(file), page):
        # Every entry of the branch points to its own page.
        if struct.unpack_from("<H", file, place + 10)[0] & 1:
            entries = (struct.unpack_from("<H", file, place + 12)[0] - 16) // 2
            for entry in range(entries):
                node = struct.unpack_from("<H", file, place + 16 + 2 * entry)[0]
                struct.pack_into("<H", file, place + node, place // page)
    return bytes(file)


@attack("caffe", error=True)
def caffe_extents_without_pixels() -> bytes:
    from tests.protobuf import datum

    return _lmdb([datum(b"abc", 1, False, (2**31 - 1, 2**31 - 1, 2**31 - 1))])


def _lmdb(records: object) -> bytes:
    import tempfile

    from tests.protobuf import database

    with tempfile.TemporaryDirectory() as folder:
        database(Path(folder, "made"), records)  # type: ignore[arg-type]
        return Path(folder, "made", "data.mdb").read_bytes()


# Annotations


def _coco(segmentation: object, height: int = 20, width: int = 30, **image: object) -> bytes:
    found = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "iscrowd": 0}
    parts = {
        "images": [{"id": 1, "file_name": "0.jpg", "width": width, "height": height, **image}],
        "annotations": [{**found, "area": 12, "segmentation": segmentation}],
        "categories": [{"id": 1, "name": "one"}],
    }
    return json.dumps(parts).encode()


@attack("coco", error=True)
def coco_mask_of_40000_square() -> bytes:
    return _coco([[0, 0, 10, 0, 10, 10]], 40_000, 40_000)


@attack("coco", error=True)
def coco_mask_of_2_to_the_62() -> bytes:
    return _coco([[0, 0, 10, 0, 10, 10]], 2**31 - 1, 2**31 - 1)


@attack("coco")
def coco_polygon_with_far_corners() -> bytes:
    """Each edge is a thousand times longer than any image."""
    return _coco([[_far(n, 9e5) for n in range(2000)]])


@attack("coco")
def coco_polygon_with_corners_beyond_numbers() -> bytes:
    return _coco([[_far(n, 1e9) for n in range(2000)]])


def _far(number: int, reach: float) -> float:
    """Two coordinates on one side, two on the other."""
    return (reach if number & 2 else -reach) + number


@attack("coco")
def coco_polygon_with_corners_of_no_size() -> bytes:
    return _coco([[1e300, -1e300, 1e38, 3e38, -3e38, 0.0]])


@attack("coco")
def coco_runs_longer_than_the_mask() -> bytes:
    return _coco({"size": [20, 30], "counts": [2**32 - 1, 2**32 - 1, 5]})


@attack("coco")
def coco_runs_of_another_size() -> bytes:
    return _coco({"size": [2**31 - 1, 2**31 - 1], "counts": "oooooo000oooooo0"})


@attack("coco", error=True)
def coco_nested() -> bytes:
    return b'{"images": ' + b"[" * 200_000


@attack("coco", error=True)
def coco_negative_size() -> bytes:
    return _coco([[0, 0, 10, 0, 10, 10]], -5, 2**31 - 1)


@attack("manifest", error=True)
def nemo_nested() -> bytes:
    return b'{"audio_filepath": ' + b"[" * 200_000


@attack("manifest", error=True)
def nemo_name_of_no_encoding() -> bytes:
    return b'{"audio_filepath": "\xff\xfe.wav", "duration": 1}\n'


def main() -> int:
    """Write all files to a folder, or read the given one."""
    (given,) = sys.argv[1:]
    if given in MAKERS:
        from .check import report_one

        return report_one(given)
    folder = Path(given)
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in attacks():
        (folder / name).write_bytes(made.data)
        print(f"{name}: {made.kind}, {len(made.data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
