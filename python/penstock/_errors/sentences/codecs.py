"""What is wrong with images and sounds. A sentence completes "this JPEG ..." or "this file ..."."""

from __future__ import annotations

from collections.abc import Callable


def _not_a_number(byte: int, row: int, height: int) -> str:
    return f"has {chr(byte)!r} instead of a number in row {row} of {height}"


_SAMPLE_FORMATS = {1: "unsigned", 2: "signed", 3: "float"}


def _sample_format(format: int, bits: int) -> str:
    kind = _SAMPLE_FORMATS.get(format, "unknown")
    return f"has {kind} samples of {bits} bits, which is not supported"


_COMPRESSIONS = {
    "ccitt_rle": "Huffman codes (CCITT RLE)",
    "fax_2d": "two-dimensional or uncompressed fax codes",
    "old_jpeg": "old-style JPEG",
}


def _compression(name: str) -> str:
    return f"is compressed with {_COMPRESSIONS.get(name, name)}, which is not supported"


_LISTS = {
    "offsets": "where its pixels are",
    "sizes": "how many bytes its pixels take",
    "colors": "which colors its palette has",
}


def _no_list(name: str) -> str:
    return f"doesn't say {_LISTS[name]}"


def _this_sound(format: str | None, problem: str) -> str:
    return f"this {format} file {problem}" if format else f"this file {problem}"


SENTENCES: dict[str, str | Callable[..., str]] = {
    # Images of any format
    "ImageFault.This": "this {format} {problem}",
    "ImageFault.Empty": "the file is empty (0 bytes)",
    "ImageFault.UnknownFormat": "this is none of {formats}: it starts with {start}",
    "ImageFault.NotBuilt": "is of a format that can't be decoded here",
    "ImageFault.NoPixels": "has no pixels: it is {height} x {width}",
    "ImageFault.TooManyPixels": "claims to have {height} x {width} pixels; the limit is {limit}",
    "ImageFault.TooManyBytes": (
        "of {height} x {width} pixels takes {bytes} bytes to decode; the limit is {limit}"
    ),
    "ImageFault.TooShort": "is too short for its size: it has {length} bytes",
    "ImageFault.NoHeader": "has no complete header",
    "ImageFault.Mismatch": "has pixels that don't match its header",
    "ImageFault.EndsEarly": "ends too early",
    "ImageFault.EndsAtRow": "ends at row {row} of {height}",
    "ImageFault.Damaged": "is damaged: {text}",
    # Formats of images
    "BmpFault.Magic": "doesn't begin with BM",
    "BmpFault.HeaderSize": "has a header of {size} bytes, which is unknown",
    "BmpFault.Width": "has the width {width}",
    "BmpFault.Coding": (
        "has {bits} bits per pixel, coded with method {compression}, which is not supported"
    ),
    "BmpFault.EndsFromBottom": "ends at row {row} of {height}, counted from the bottom",
    "GifFault.EmptyFrame": "has a frame without pixels",
    "GifFault.NoPalette": "has no palette",
    "GifFault.NoImage": "has no image",
    "JpegFault.EndsInHeader": "ends after {bytes} bytes, inside of its header",
    "JpegFault.EndsInData": "ends after {bytes} bytes, inside of its image data",
    "JpegFault.EndsAtRow": "ends after {bytes} bytes, at row {row} of {height}",
    "JpegFault.TooShort": (
        "ends after {bytes} bytes, far too few for the {height} x {width} pixels of its header"
    ),
    "JpegFault.NoData": "has no image data",
    "JpegFault.NoImage": "has no image",
    "JpegFault.Segment": "has a segment of {length} bytes in its header",
    "JpegFault.Precision": "has {bits} bits per channel; only 8 bits are supported",
    "JpegFault.Header": "has a bad header: {text}",
    "JpegFault.Data": "has bad data: {text}",
    "Jpeg2000Fault.Unexpected": "is damaged in a way that its decoder does not expect",
    "Jpeg2000Fault.Channels": "has channels of different sizes, which is not supported",
    "PngFault.TooLarge": "is too large",
    "PngFault.Memory": "needs too much memory",
    "PngFault.Palette": "has a palette of {bytes} bytes, which is not a multiple of 3",
    "PnmFault.Magic": "doesn't begin with P1 to P7",
    "PnmFault.Largest": "claims that its largest value is {value}; it may be 1 to 65535",
    "PnmFault.NotANumber": _not_a_number,
    "TiffFault.Magic": "doesn't begin like a TIFF",
    "TiffFault.Tags": "ends before its list of tags does",
    "TiffFault.NoTag": "has no {name} among its tags",
    "TiffFault.NoList": _no_list,
    "TiffFault.Samples": "has {samples} samples per pixel",
    "TiffFault.DifferentBits": "has samples of different sizes: {bits} bits",
    "TiffFault.SampleFormat": _sample_format,
    "TiffFault.Method": "is compressed with method {method}, which is unknown",
    "TiffFault.Compression": _compression,
    "TiffFault.Colors": (
        "has colors of a kind that is not supported: photometric interpretation {code}, {samples} "
        "samples of {bits} bits"
    ),
    "TiffFault.Palette": "has a palette of only {numbers} numbers",
    "TiffFault.SharedParts": (
        "has strips or tiles of {read} bytes in all, in a file of {length} bytes"
    ),
    "TiffFault.Parts": "has {found} strips or tiles, {count} are needed",
    "TiffFault.Tiles": "has absurd tiles of {height} x {width}",
    "TiffFault.Fax": "has fax codes for more than black and white",
    "TiffFault.Jpeg": "has a JPEG inside that does not match its tags",
    "TiffFault.Row": "is damaged at row {row} of {height}",
    "TiffFault.Predictor": (
        "has predictor {predictor} for samples of {bits} bits, which is not supported"
    ),
    "WebPFault.LargeFrame": "has a frame that is larger than the image",
    "WebPFault.EndsBeforeFrame": "ends before its first frame",
    "WebPFault.EndsInFrame": "ends inside its first frame",
    "WebPFault.EndsAfter": "ends after {bytes} of {size} bytes",
    "WebPFault.Feature": "uses a feature that libwebp doesn't know",
    "WebPFault.Damaged": "is damaged",
    # Audio
    "AudioFault.TooLong": (
        "would have {samples} samples or more, and the limit is {limit}; if it is really so long, "
        "set the environment variable PENSTOCK_MAX_AUDIO_SAMPLES to a higher limit"
    ),
    "AudioFault.This": _this_sound,
    "AudioFault.TooShort": "is too short to be audio",
    "AudioFault.UnknownFormat": (
        "is in an unknown format: it starts with {start}; known are WAV, FLAC, Ogg (Vorbis, Opus, "
        "FLAC), MP3, M4A, AAC, WebM, AIFF, CAF, AU, W64 and NIST SPHERE"
    ),
    "AudioFault.Unsupported": (
        "is {name}, which can't be decoded; convert it to FLAC or WAV, for example with "
        "`ffmpeg -i FILE out.flac`"
    ),
    "AudioFault.EndsEarly": "ends too early",
    "AudioFault.EndsAt": "ends too early, after {seconds:.3f} s",
    "AudioFault.EndsBefore": (
        "ends too early, after {seconds:.3f} s; its header claims {length:.3f} s"
    ),
    "AudioFault.Read": "could not be read: {text}",
    "AudioFault.NotWave": "is a RIFF file, but not audio",
    "AudioFault.NoFormatChunk": "has no chunk that describes its samples before them",
    "AudioFault.NoDataChunk": "has no chunk with samples",
    "AudioFault.Coding": "has samples of {bits} bits in format {tag}, which is unknown",
    "AudioFault.Encoding": "has samples in the encoding {name}, which is unknown",
    "AudioFault.Frames": "claims {channels} channels, {rate} Hz and {block} bytes per frame",
    "AudioFault.Field": "has no valid {name}",
    "AudioFault.NoSound": "has no audio that can be decoded",
    "AudioFault.UnknownCoding": "has audio in an unknown encoding",
    "AudioFault.Claims": "claims {channels} channels and {rate} Hz",
    "AudioFault.Changes": "changes its rate or its channels at {seconds:.3f} s",
    "AudioFault.Chained": "has another stream after {seconds:.3f} s, which is not supported",
    "AudioFault.Gap": "is damaged at {seconds:.3f} s: a part is missing",
    "AudioFault.Index": "has a damaged index",
    "AudioFault.Damaged": "is damaged: {text}",
    "AudioFault.DamagedAt": "is damaged at {seconds:.3f} s: {text}",
    "AudioFault.FrameInvalid": "is damaged at {seconds:.3f} s: a frame is invalid",
    "AudioFault.FrameChecksum": "is damaged at {seconds:.3f} s: the checksum of a frame is wrong",
    "AudioFault.Undecodable": "can't be decoded: {text}",
    "AudioFault.Unexpected": (
        "is damaged after {seconds:.3f} s, in a way that its decoder does not expect"
    ),
}
