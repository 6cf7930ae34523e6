"""Formats of files, by their first bytes."""

from __future__ import annotations

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "JPEG"),
    (0, b"\x89PNG\r\n\x1a\n", "PNG"),
    (0, b"GIF8", "GIF"),
    (0, b"BM", "BMP"),
    (0, b"II*\x00", "TIFF"),
    (0, b"MM\x00*", "TIFF"),
    (8, b"WEBP", "WebP"),
    (8, b"WAVE", "WAV"),
    (8, b"AVI ", "AVI"),
    (0, b"\x00\x00\x00\x0cjP  ", "JPEG 2000"),
    (0, b"\xff\x4f\xff\x51", "JPEG 2000"),
    (4, b"ftypavif", "AVIF"),
    (4, b"ftypheic", "HEIC"),
    (4, b"ftypM4A", "M4A"),
    (4, b"ftyp", "MP4"),
    (0, b"fLaC", "FLAC"),
    (0, b"OggS", "Ogg"),
    (0, b"ID3", "MP3"),
    (0, b"\x1aE\xdf\xa3", "Matroska or WebM"),
    (0, b"\x93NUMPY", "NumPy"),
    (257, b"ustar", "tar"),
    (0, b"P5", "PGM"),
    (0, b"P6", "PPM"),
)


def kind_of_bytes(head: bytes) -> str | None:
    """The format of a file that begins like this; None if it is not a known one."""
    for offset, signature, kind in _SIGNATURES:
        if head[offset : offset + len(signature)] == signature:
            return kind
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 0x18 != 0x08:
        return "MP3"
    return None
