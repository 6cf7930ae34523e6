"""Small image files of every kind that decoders support, with their pixels.

`python -m tests.conformance.images` writes them to tests/data/images, with a table of what
decoding gives, for the tests of the codecs themselves.
"""

from __future__ import annotations

import binascii
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 22, 31
FOLDER = Path(__file__).resolve().parents[1] / "data" / "images"


@dataclass(frozen=True)
class Sample:
    """A file, and the pixels that it holds, HWC, in its own colors and type."""

    name: str
    data: bytes
    pixels: np.ndarray
    orientation: int = 1
    exact: bool = True
    """False where decoders may differ in the last bit."""


@cache
def photo(channels: int = 3, dtype: str = "u1") -> np.ndarray:
    """A smooth picture; an alpha channel goes from transparent to opaque."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    planes = [
        0.5 + 0.25 * np.sin(x / (5 + c) + c) + 0.24 * np.cos(y / (4 + c) - c)
        for c in range(channels)
    ]
    if channels in (2, 4):
        planes[-1] = (x + y) / (HEIGHT + WIDTH - 2)
    unit = np.stack(planes, -1)
    if dtype == "f4":
        return (unit * 1.5 - 0.25).astype("f4")
    return np.rint(unit * np.iinfo(dtype).max).astype(dtype)


def indices(bits: int) -> np.ndarray:
    """A picture of palette indices, HW."""
    return photo(1)[..., 0] >> (8 - bits)


def palette(bits: int) -> np.ndarray:
    """Colors, one in each row, with an alpha that is 0 for the first."""
    n = np.arange(1 << bits) * (255 // ((1 << bits) - 1))
    return np.stack([n, 255 - n, n * 7 % 256, np.minimum(255, n * 3)], -1).astype("u1")


# PNG, by hand: Pillow writes neither 16-bit colors nor interlaced files.

GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
ADAM7 = [
    (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)
]  # fmt: skip


def chunk(kind: bytes, data: bytes) -> bytes:
    check = binascii.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def packed(rows: np.ndarray, bits: int) -> np.ndarray:
    """Rows of samples as rows of bytes, big-endian, sub-byte samples packed from the left."""
    rows = rows.reshape(len(rows), -1)
    if bits == 16:
        return rows.astype(">u2").view("u1").reshape(len(rows), -1)
    spread = np.unpackbits(rows.astype("u1")[..., None], axis=-1)[..., 8 - bits :]
    return np.packbits(spread.reshape(len(rows), -1), axis=-1)


def png(
    samples: np.ndarray,
    color: int,
    bits: int = 8,
    *,
    interlaced: bool = False,
    before: tuple[bytes, ...] = (),
) -> bytes:
    """A PNG file of samples (HW or HWC), with more chunks before the pixels."""
    height, width = samples.shape[:2]
    samples = samples.reshape(height, width, CHANNELS[color])
    raw = b""
    for top, left, down, right in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        part = samples[top::down, left::right]
        if part.size:
            rows = packed(part, bits).astype(int)
            step = max(1, CHANNELS[color] * bits // 8)
            moved = np.pad(rows, ((0, 0), (step, 0)))[:, : rows.shape[1]]
            # Every other row uses the filter that adds the left neighbour.
            kinds = np.arange(len(rows)) % 2
            rows = np.where(kinds[:, None] == 1, rows - moved, rows) % 256
            raw += np.hstack([kinds[:, None], rows]).astype("u1").tobytes()
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, int(interlaced))
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(before)
    return start + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def exif(orientation: int) -> bytes:
    """EXIF data that holds an orientation and nothing else."""
    return b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHHI", 274, 3, 1, orientation, 0, 0)


def png_samples() -> Iterator[Sample]:
    for bits in (1, 2, 4):
        low = indices(bits)
        full = (low * (255 // ((1 << bits) - 1)))[..., None]
        yield Sample(f"gray{bits}.png", png(low, GRAY, bits), full)
        yield Sample(f"gray{bits}-interlaced.png", png(low, GRAY, bits, interlaced=True), full)
    for bits in (1, 2, 4, 8):
        low, colors = indices(bits), palette(bits)
        plte = chunk(b"PLTE", colors[:, :3].tobytes())
        trns = chunk(b"tRNS", colors[: (1 << bits) // 2, 3].tobytes())
        yield Sample(f"palette{bits}.png", png(low, PALETTE, bits, before=(plte,)), colors[low, :3])
        # DALI leaves the transparency of a tRNS chunk out.
        yield Sample(
            f"palette{bits}-alpha.png",
            png(low, PALETTE, bits, before=(plte, trns)),
            colors[low, :3],
        )
    for bits, dtype in ((8, "u1"), (16, "u2")):
        for name, color in (
            ("gray", GRAY), ("gray-alpha", GRAY_ALPHA), ("rgb", RGB), ("rgba", RGBA)
        ):  # fmt: skip
            pixels = photo(CHANNELS[color], dtype)
            yield Sample(f"{name}{bits}.png", png(pixels, color, bits), pixels)
            if bits == 8 or color == RGB:
                yield Sample(
                    f"{name}{bits}-interlaced.png",
                    png(pixels, color, bits, interlaced=True),
                    pixels,
                )
    for name, color, bits in (("gray", GRAY, 8), ("rgb", RGB, 8), ("rgb", RGB, 16)):
        dtype = "u1" if bits == 8 else "u2"
        pixels = photo(CHANNELS[color], dtype)
        key = pixels[3, 4]
        trns = chunk(b"tRNS", key.astype(">u2").tobytes())
        yield Sample(f"{name}{bits}-key.png", png(pixels, color, bits, before=(trns,)), pixels)
    yield Sample(
        "turned.png", png(photo(), RGB, before=(chunk(b"eXIf", exif(6)),)), photo(), orientation=6
    )


# BMP, by hand for the same reason.


def bmp(
    rows: list[bytes],
    bits: int,
    *,
    colors: np.ndarray | None = None,
    compression: int = 0,
    masks: tuple[int, ...] = (),
    top_down: bool = False,
    body: bytes | None = None,
    width: int = WIDTH,
) -> bytes:
    """A BMP file of rows from top to bottom, each given as bytes."""
    if body is None:
        padded = [row + b"\0" * (-len(row) % 4) for row in rows]
        body = b"".join(padded if top_down else padded[::-1])
    table = b"" if colors is None else np.pad(colors[:, 2::-1], ((0, 0), (0, 1))).tobytes()
    wide = len(masks) == 4  # a header with room for an alpha mask
    size = 108 if wide else 40
    height = -len(rows) if top_down else len(rows)
    info = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression, len(body), 0, 0,
                       0 if colors is None else len(colors), 0)  # fmt: skip
    info += struct.pack(f"<{len(masks)}I", *masks)
    info += b"\0" * (size - len(info))
    offset = 14 + len(info) + len(table)
    return struct.pack("<2sIHHI", b"BM", offset + len(body), 0, 0, offset) + info + table + body


def run_lengths(row: np.ndarray, bits: int) -> bytes:
    """A row of indices in BMP's run-length code, with some runs and some literals."""
    out, at = b"", 0
    while at < len(row):
        same = 1
        step = 1 if bits == 8 else 2
        while at + same < len(row) and same < 255 and row[at + same] == row[at + same % step]:
            same += 1
        if same > 2 or len(row) - at < 5:
            pair = row[at] if bits == 8 else (row[at] << 4) | row[at + (1 if same > 1 else 0)]
            out += bytes([same, int(pair)])
            at += same
        else:
            part = row[at : at + 5]
            data = part.tobytes() if bits == 8 else packed(part[None], 4).tobytes()
            out += bytes([0, len(part)]) + data + b"\0" * (len(data) % 2)
            at += len(part)
    return out + b"\0\0"


def bmp_samples() -> Iterator[Sample]:
    for bits in (1, 4, 8):
        low, colors = indices(bits), palette(bits)
        rows = [row.tobytes() for row in packed(low, bits)]
        yield Sample(f"palette{bits}.bmp", bmp(rows, bits, colors=colors), colors[low, :3])
    low, colors = indices(8), palette(8)
    gray = np.repeat(np.arange(256, dtype="u1")[:, None], 4, 1)
    yield Sample("gray8.bmp", bmp([row.tobytes() for row in low], 8, colors=gray), low[..., None])
    for bits, code in ((8, 1), (4, 2)):
        low, colors = indices(bits), palette(bits)
        body = b"".join(run_lengths(row, bits) for row in low[::-1]) + b"\0\1"
        yield Sample(
            f"rle{bits}.bmp",
            bmp([b""] * HEIGHT, bits, colors=colors, compression=code, body=body),
            colors[low, :3],
        )
    rgb = photo()
    bgr = np.ascontiguousarray(rgb[..., ::-1])
    rows = [row.tobytes() for row in bgr]
    yield Sample("rgb24.bmp", bmp(rows, 24), rgb)
    yield Sample("rgb24-down.bmp", bmp(rows, 24, top_down=True), rgb)
    wide = np.concatenate([bgr, np.zeros_like(bgr[..., :1])], -1)
    yield Sample("rgb32.bmp", bmp([row.tobytes() for row in wide], 32), rgb)
    rgba = photo(4)
    wide = np.ascontiguousarray(rgba[..., [2, 1, 0, 3]])
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    yield Sample(
        "rgba32.bmp", bmp([r.tobytes() for r in wide], 32, compression=3, masks=masks), rgba
    )
    for name, widths, masks in (
        ("rgb16-555", (5, 5, 5), ()),
        ("rgb16-565", (5, 6, 5), (0xF800, 0x7E0, 0x1F)),
    ):
        low = [rgb[..., c].astype("u2") >> (8 - n) for c, n in enumerate(widths)]
        word = low[0] << (widths[1] + widths[2]) | low[1] << widths[2] | low[2]
        full = [v << (8 - n) for v, n in zip(low, widths, strict=True)]  # as in DALI
        yield Sample(
            f"{name}.bmp",
            bmp([r.astype("<u2").tobytes() for r in word], 16, compression=3 if masks else 0,
                masks=masks),
            np.stack(full, -1).astype("u1"),
        )  # fmt: skip


# Other formats.


def pnm_samples() -> Iterator[Sample]:
    size = f"{WIDTH} {HEIGHT}"
    bits = indices(1)
    white = ((1 - bits) * 255)[..., None]  # a set bit is black
    yield Sample("plain.pbm", f"P1\n# a comment\n{size}\n{_words(bits)}".encode(), white)
    yield Sample("packed.pbm", f"P4 {size}\n".encode() + packed(bits, 1).tobytes(), white)
    gray, rgb = photo(1), photo()
    comment = "# made by hand\n"
    yield Sample("plain.pgm", f"P2\n{comment}{size}\n255\n{_words(gray)}".encode(), gray)
    yield Sample("plain.ppm", f"P3\n{size} # here too\n255\n{_words(rgb)}".encode(), rgb)
    yield Sample("gray8.pgm", f"P5\n{comment}{size}\n255\n".encode() + gray.tobytes(), gray)
    yield Sample("rgb8.ppm", f"P6 {size} 255\n".encode() + rgb.tobytes(), rgb)
    gray, rgb = photo(1, "u2"), photo(3, "u2")
    yield Sample("gray16.pgm", f"P5 {size} 65535\n".encode() + gray.astype(">u2").tobytes(), gray)
    yield Sample("rgb16.ppm", f"P6 {size} 65535\n".encode() + rgb.astype(">u2").tobytes(), rgb)
    low = indices(4)  # and not scaled, as in DALI
    yield Sample("gray4.pgm", f"P5 {size} 15\n".encode() + low.tobytes(), low[..., None])
    for name, channels in (("GRAYSCALE_ALPHA", 2), ("RGB", 3), ("RGB_ALPHA", 4)):
        pixels = photo(channels)
        head = f"P7\nWIDTH {WIDTH}\nHEIGHT {HEIGHT}\nDEPTH {channels}\nMAXVAL 255\nTUPLTYPE {name}"
        yield Sample(f"{name.lower()}.pam", f"{head}\nENDHDR\n".encode() + pixels.tobytes(), pixels)


def _words(samples: np.ndarray) -> str:
    return "\n".join(" ".join(map(str, row)) for row in samples.reshape(len(samples), -1)) + "\n"


def saved(image: Image.Image | np.ndarray, format: str, **options: Any) -> bytes:
    """A file as Pillow writes it."""
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def opened(data: bytes, mode: str | None = None) -> np.ndarray:
    """A file's pixels as Pillow reads them, HWC."""
    image = Image.open(io.BytesIO(data))
    array = np.asarray(image.convert(mode) if mode else image)
    return array[..., None] if array.ndim == 2 else array


def webp_samples() -> Iterator[Sample]:
    rgb, rgba = Image.fromarray(photo()), Image.fromarray(photo(4))
    turned = Image.Exif()
    turned[274] = 8
    for name, image, options in (
        ("lossy", rgb, {"quality": 80}),
        ("lossless", rgb, {"lossless": True}),
        ("lossy-alpha", rgba, {"quality": 80}),
        ("lossless-alpha", rgba, {"lossless": True, "exact": True}),
    ):
        data = saved(image, "webp", **options)
        yield Sample(f"{name}.webp", data, opened(data))
    data = saved(rgb, "webp", quality=80, exif=turned)
    yield Sample("turned.webp", data, opened(data), orientation=8)
    second = Image.fromarray(255 - photo())
    data = saved(rgb, "webp", quality=80, save_all=True, append_images=[second])
    yield Sample("animated.webp", data, opened(data, "RGB"))


def tiff(pixels: np.ndarray, **options: Any) -> bytes:
    """A file as tifffile writes it."""
    import tifffile

    file = io.BytesIO()
    tifffile.imwrite(file, pixels, metadata=None, software="", **options)
    return file.getvalue()


def tiff_samples() -> Iterator[Sample]:
    gray, rgb = photo(1), photo()
    yield Sample("gray8.tif", saved(gray, "tiff"), gray)
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"):
        name = compression.removeprefix("tiff_").replace("adobe_", "")
        yield Sample(f"rgb8-{name}.tif", saved(rgb, "tiff", compression=compression), rgb)
    # Enough data for the longest codes and a restart of the table.
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    yield Sample("noise-lzw.tif", saved(noise, "tiff", compression="tiff_lzw"), noise)
    bits = Image.fromarray(indices(1).astype(bool))
    black_white = (indices(1) * 255)[..., None]
    for compression in ("raw", "group3", "group4"):
        data = saved(bits, "tiff", compression=compression)
        yield Sample(f"gray1-{compression}.tif", data, black_white)
    data = saved(rgb, "tiff", compression="jpeg", quality=90)
    yield Sample("rgb8-jpeg.tif", data, opened(data, "RGB"), exact=False)
    low, colors = indices(8), palette(8)
    image = Image.fromarray(low, "P")
    image.putpalette(colors[:, :3].tobytes())
    # A TIFF's palette has 16 bits; Pillow puts its 8 into the high ones.
    yield Sample("palette8.tif", saved(image, "tiff"), colors[low, :3].astype("u2") << 8)
    data = saved(rgb, "tiff", tiffinfo={274: 3})
    yield Sample("turned.tif", data, rgb, orientation=3)
    rgb_16, gray_16 = photo(3, "u2"), photo(1, "u2")
    for order, name in (("<", "little"), (">", "big")):
        yield Sample(f"rgb16-{name}.tif", tiff(rgb_16, photometric="rgb", byteorder=order), rgb_16)
        yield Sample(
            f"gray16-{name}.tif", tiff(gray_16[..., 0], photometric="minisblack", byteorder=order),
            gray_16,
        )  # fmt: skip
    options = {"photometric": "rgb", "compression": "zlib"}
    alpha = {"extrasamples": ["unassalpha"]}
    yield Sample("rgba8.tif", tiff(photo(4), **options, **alpha), photo(4))
    yield Sample("rgba16.tif", tiff(photo(4, "u2"), **options, **alpha), photo(4, "u2"))
    yield Sample(
        "gray-alpha8.tif", tiff(photo(2), photometric="minisblack", planarconfig="contig", **alpha),
        photo(2),
    )  # fmt: skip
    yield Sample("rgb8-strips.tif", tiff(rgb, rowsperstrip=5, **options), rgb)
    yield Sample("rgb8-tiles.tif", tiff(rgb, tile=(16, 16), **options), rgb)
    yield Sample("rgb8-predictor.tif", tiff(rgb, predictor=True, **options), rgb)
    planes = np.ascontiguousarray(rgb.transpose(2, 0, 1))
    yield Sample("rgb8-planar.tif", tiff(planes, planarconfig="separate", **options), rgb)
    yield Sample(
        "rgb16-planar-tiles.tif",
        tiff(rgb_16.transpose(2, 0, 1), planarconfig="separate", tile=(16, 16), **options), rgb_16,
    )  # fmt: skip
    yield Sample(
        "gray8-white-is-zero.tif", tiff(255 - gray[..., 0], photometric="miniswhite"), gray
    )
    yield Sample("big.tif", tiff(rgb, bigtiff=True, **options), rgb)
    for channels in (1, 3):
        pixels = photo(channels, "f4")
        kind = "minisblack" if channels == 1 else "rgb"
        data = tiff(pixels[..., 0] if channels == 1 else pixels, photometric=kind)
        yield Sample(f"float{channels}.tif", data, pixels)


def gif_samples() -> Iterator[Sample]:
    low, colors = indices(8), palette(8)
    image = Image.fromarray(low, "P")
    image.putpalette(colors[:, :3].tobytes())
    yield Sample("palette.gif", saved(image, "gif", interlace=0), colors[low, :3])
    yield Sample("interlaced.gif", saved(image, "gif", interlace=1), colors[low, :3])
    data = saved(image, "gif", transparency=int(low[5, 5]))
    yield Sample("transparent.gif", data, opened(data, "RGBA"))
    other = Image.fromarray(255 - low, "P")
    other.putpalette(colors[:, :3].tobytes())
    data = saved(image, "gif", save_all=True, append_images=[other])
    yield Sample("animated.gif", data, colors[low, :3])


def jpeg2000_samples() -> Iterator[Sample]:
    for name, pixels in (
        ("gray8", photo(1)), ("rgb8", photo()), ("gray-alpha8", photo(2)), ("rgba8", photo(4))
    ):  # fmt: skip
        yield Sample(f"{name}.jp2", saved(pixels, "jpeg2000"), pixels)
    gray_16 = photo(1, "u2")
    yield Sample("gray16.jp2", saved(gray_16, "jpeg2000"), gray_16)
    yield Sample("rgb8.j2k", saved(photo(), "jpeg2000", no_jp2=True), photo())
    yield Sample("tiles.jp2", saved(photo(), "jpeg2000", tile_size=(16, 16)), photo())
    data = saved(photo(), "jpeg2000", irreversible=True, quality_mode="rates", quality_layers=[8])
    yield Sample("lossy.jp2", data, opened(data), exact=False)


KINDS: list[Callable[[], Iterator[Sample]]] = [
    png_samples, bmp_samples, pnm_samples, webp_samples, tiff_samples, gif_samples, jpeg2000_samples
]  # fmt: skip


@cache
def samples() -> dict[str, Sample]:
    """Every file, by name."""
    return {sample.name: sample for kind in KINDS for sample in kind()}


def write(folder: Path = FOLDER) -> None:
    """Write the files, and `pixels.txt`: a line of name, height, width, channels, type,
    orientation and the checksum of the pixels (little-endian; `-` where decoders may differ).
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for sample in samples().values():
        (folder / sample.name).write_bytes(sample.data)
        pixels = np.ascontiguousarray(sample.pixels)
        check = f"{binascii.crc32(pixels.tobytes()):08x}" if sample.exact else "-"
        size = " ".join(map(str, pixels.shape))
        lines.append(f"{sample.name} {size} {pixels.dtype} {sample.orientation} {check}\n")
    (folder / "pixels.txt").write_text("".join(lines))


if __name__ == "__main__":
    write()
