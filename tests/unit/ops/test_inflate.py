"""Decompression of chunks with `decoders.inflate`."""

import gzip
import shutil
import subprocess
import zlib

import numpy as np
import pytest

import penstock as ndd
from penstock.errors import ArgumentError, DecodeError


def lz4_block(data: bytes) -> bytes:
    """Encode an LZ4 block, with runs of equal bytes as matches and the rest as literals."""
    made, literals, at = bytearray(), bytearray(), 0

    def extended(length):
        """Write the extension bytes of a length of 15 or more."""
        rest = length - 15
        while rest >= 255:
            made.append(255)
            rest -= 255
        made.append(rest)

    def token(match):
        made.append(min(len(literals), 15) << 4 | min(match, 15))
        if len(literals) >= 15:
            extended(len(literals))
        made.extend(literals)
        literals.clear()

    # The last bytes of a block are always literals.
    while at < len(data):
        run = 1
        while at + run < len(data) - 12 and data[at + run] == data[at]:
            run += 1
        literals.append(data[at])
        if run > 5:
            token(run - 1 - 4)
            made += (1).to_bytes(2, "little")
            if run - 1 - 4 >= 15:
                extended(run - 1 - 4)
        else:
            run = 1
        at += run
    token(0)
    return bytes(made)


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


def zstd_frame(data: bytes) -> bytes:
    """Encode a zstd frame with raw and RLE blocks only."""
    frame = bytearray(b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little"))
    blocks = [data[at : at + 1000] for at in range(0, len(data), 1000)] or [b""]
    for number, block in enumerate(blocks):
        last = number + 1 == len(blocks)
        repeats = len(set(block)) == 1
        frame += (last | repeats << 1 | len(block) << 3).to_bytes(3, "little")
        frame += block[:1] if repeats else block
    return bytes(frame)


def by_command(command: str, data: bytes) -> bytes:
    return subprocess.run([command, "-c"], input=data, capture_output=True, check=True).stdout


COMPRESS = {
    "LZ4": lz4_block,
    "deflate": raw_deflate,
    "zlib": zlib.compress,
    "gzip": gzip.compress,
    "zstd": zstd_frame,
}
each_algorithm = pytest.mark.parametrize("algorithm", COMPRESS)


def packed(algorithm: str, array: np.ndarray) -> np.ndarray:
    return np.frombuffer(COMPRESS[algorithm](array.tobytes()), np.uint8)


def picture(shape, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(0, 90, shape), 1 + seed % 3, axis=-1)[..., : shape[-1]].astype(
        dtype
    )


@each_algorithm
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "bool", "int64"])
@pytest.mark.parametrize("shape", [(7,), (5, 8, 3), (1, 1), (64, 64)])
def test_round_trip(algorithm, dtype, shape):
    array = picture(shape, dtype)
    made = ndd.decoders.inflate(
        packed(algorithm, array), algorithm=algorithm, shape=shape, dtype=getattr(ndd, dtype)
    )
    assert made.dtype is getattr(ndd, dtype)
    np.testing.assert_array_equal(np.asarray(made), array)


@each_algorithm
def test_large_and_repetitive_data(algorithm):
    array = np.concatenate([np.zeros(300_000, np.uint8), picture((5000,))])
    made = ndd.decoders.inflate(packed(algorithm, array), algorithm=algorithm, shape=len(array))
    np.testing.assert_array_equal(np.asarray(made), array)


@pytest.mark.parametrize(
    ("algorithm", "command"), [("LZ4_frame", "lz4"), ("zstd", "zstd"), ("gzip", "gzip")]
)
def test_files_of_command_line_tools(algorithm, command):
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command}")
    rng = np.random.default_rng(0)
    array = rng.integers(0, 4, (300, 400), dtype=np.uint8)
    file = np.frombuffer(by_command(command, array.tobytes()), np.uint8)
    assert len(file) < array.size
    made = ndd.decoders.inflate(file, algorithm=algorithm, shape=array.shape)
    np.testing.assert_array_equal(np.asarray(made), array)


# "penstock" twelve times and "!", from `zstd -19`: a compressed block with sequences.
ZSTD_OF_TEXT = bytes.fromhex("28b52ffd00687d00004870656e73746f636b21010075ba5c")


def test_zstd_block_with_sequences():
    file = np.frombuffer(ZSTD_OF_TEXT, np.uint8)
    made = ndd.decoders.inflate(file, algorithm="zstd", shape=97)
    assert bytes(np.asarray(made)) == b"penstock" * 12 + b"!"


def test_concatenated_gzip_files():
    both = gzip.compress(b"abc") + gzip.compress(b"defg")
    made = ndd.decoders.inflate(np.frombuffer(both, np.uint8), algorithm="gzip", shape=7)
    assert bytes(np.asarray(made)) == b"abcdefg"


def test_algorithm_names_are_case_insensitive():
    file = packed("LZ4", picture((9,)))
    for name in ("lz4", "LZ4", "Lz4"):
        made = ndd.decoders.inflate(file, algorithm=name, shape=9)
        np.testing.assert_array_equal(np.asarray(made), picture((9,)))


FRAMES = [picture((4, 5, 3), seed=seed) for seed in range(3)]
CHUNKS = [packed("LZ4", frame) for frame in FRAMES]
SIZES = [len(chunk) for chunk in CHUNKS]
OFFSETS = [0, SIZES[0], SIZES[0] + SIZES[1]]


@pytest.mark.parametrize(
    "where",
    [
        {"chunk_sizes": SIZES},
        {"chunk_offsets": OFFSETS},
        {"chunk_sizes": SIZES, "chunk_offsets": OFFSETS},
    ],
)
def test_chunks_become_frames(where):
    made = ndd.decoders.inflate(np.concatenate(CHUNKS), shape=(4, 5, 3), layout="HWC", **where)
    assert (made.shape, made.layout) == ((3, 4, 5, 3), "FHWC")
    np.testing.assert_array_equal(np.asarray(made), np.stack(FRAMES))


def test_chunks_in_any_order_with_gaps():
    file = np.concatenate([np.zeros(3, np.uint8), CHUNKS[1], np.zeros(5, np.uint8), CHUNKS[0]])
    where = [8 + SIZES[1], 3]
    sizes = [SIZES[0], SIZES[1]]
    made = ndd.decoders.inflate(file, shape=(4, 5, 3), chunk_offsets=where, chunk_sizes=sizes)
    assert made.layout is None
    np.testing.assert_array_equal(np.asarray(made), np.stack(FRAMES[:2]))


def test_one_chunk_gives_one_frame():
    made = ndd.decoders.inflate(
        CHUNKS[0], shape=(4, 5, 3), chunk_offsets=[0], layout="HWC", sequence_axis_name="D"
    )
    assert (made.shape, made.layout) == ((1, 4, 5, 3), "DHWC")


def test_chunks_and_shapes_per_sample():
    batch = ndd.batch([np.concatenate(CHUNKS), CHUNKS[0]])
    # The number of chunks differs between samples.
    sizes = ndd.batch([np.int32(SIZES), np.int32(SIZES[:1])])
    made = ndd.decoders.inflate(batch, shape=ndd.batch([[4, 15], [60, 1]]), chunk_sizes=sizes)
    assert made.shape == [(3, 4, 15), (1, 60, 1)]
    np.testing.assert_array_equal(np.asarray(made.tensors[1]).ravel(), FRAMES[0].ravel())


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
@each_algorithm
def test_gpu_matches_cpu(algorithm):
    array = picture((6, 7))
    file = ndd.tensor(packed(algorithm, array)).gpu()
    made = ndd.decoders.inflate(file, algorithm=algorithm, shape=(6, 7))
    np.testing.assert_array_equal(np.asarray(made.cpu()), array)


@each_algorithm
def test_decompression_bombs_are_rejected(algorithm):
    bomb = packed(algorithm, np.zeros(1_000_000, np.uint8))
    with pytest.raises(DecodeError, match="chunk 0 has more than the 10 bytes"):
        ndd.decoders.inflate(bomb, algorithm=algorithm, shape=10).evaluate()


@each_algorithm
def test_short_data_is_rejected(algorithm):
    file = packed(algorithm, picture((50,)))
    with pytest.raises(DecodeError, match=r"chunk 0 has 50 bytes, but .* require 51"):
        ndd.decoders.inflate(file, algorithm=algorithm, shape=51).evaluate()


@each_algorithm
def test_truncated_data_is_rejected(algorithm):
    file = packed(algorithm, picture((5000,), seed=1))
    for end in (0, 1, len(file) // 2, len(file) - 6):
        with pytest.raises(DecodeError):
            ndd.decoders.inflate(file[:end], algorithm=algorithm, shape=5000).evaluate()


@pytest.mark.parametrize("algorithm", [*COMPRESS, "LZ4_frame"])
def test_corrupt_data_never_crashes(algorithm):
    rng = np.random.default_rng(0)
    file = packed(algorithm, picture((700,), seed=1)) if algorithm in COMPRESS else FRAME
    for _ in range(500):
        damaged = file.copy()
        damaged[rng.integers(len(file), size=rng.integers(1, 4))] = rng.integers(256)
        try:
            ndd.decoders.inflate(damaged, algorithm=algorithm, shape=700).evaluate()
        except DecodeError:
            continue


FRAME = np.frombuffer(
    bytes.fromhex("04224d186040821b000080") + bytes(range(27)) + bytes(4), np.uint8
)
"""An LZ4 frame with one stored block."""


def test_lz4_frame():
    made = ndd.decoders.inflate(FRAME, algorithm="LZ4_frame", shape=27)
    assert np.asarray(made).tolist() == list(range(27))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"chunk_sizes": [500]}, "`chunk_sizes` puts chunk 0 at bytes 0 to 500 of an input of"),
        ({"chunk_sizes": [-1]}, "`chunk_sizes` must not be negative"),
        ({"chunk_offsets": [-1]}, "`chunk_offsets` must not be negative"),
        ({"chunk_offsets": [5, 2]}, "`chunk_offsets` must not decrease .* got 2 after 5"),
        ({"chunk_offsets": [999]}, "`chunk_offsets` must not decrease"),
        ({"chunk_offsets": [0], "chunk_sizes": [1, 2]}, "has 2 numbers, but `chunk_offsets` has 1"),
        ({"shape": [-1]}, "`shape` must not be negative"),
        ({"shape": [2**40, 2**40]}, "`shape`"),
    ],
)
def test_invalid_arguments_are_named(where, words):
    arguments = {"shape": (4, 5, 3), **where}
    with pytest.raises(RuntimeError, match=words):
        ndd.decoders.inflate(CHUNKS[0], **arguments).evaluate()


def test_shapes_too_large_for_memory_are_rejected():
    with pytest.raises(MemoryError):
        ndd.decoders.inflate(CHUNKS[0], shape=2**45).evaluate()


def test_calls_are_checked():
    with pytest.raises(ArgumentError, match='`algorithm` must be "lz4"'):
        ndd.decoders.inflate(CHUNKS[0], algorithm="rar", shape=3)
    with pytest.raises(TypeError, match="shape"):
        ndd.decoders.inflate(CHUNKS[0])
    with pytest.raises(ArgumentError, match="`layout`"):
        ndd.decoders.inflate(CHUNKS[0], shape=[2, 3], layout="HWC")
    with pytest.raises(ArgumentError, match="`sequence_axis_name` must be one letter"):
        ndd.decoders.inflate(
            CHUNKS[0], shape=[2], layout="X", chunk_sizes=[1], sequence_axis_name="FG"
        )
    with pytest.raises(RuntimeError, match="must be one-dimensional bytes"):
        ndd.decoders.inflate(np.zeros((2, 2), np.uint8), shape=[2]).evaluate()
