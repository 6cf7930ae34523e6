"""`readers.TFRecord` against DALI."""

from __future__ import annotations

import pytest

from tests.conformance.on_purpose import Differs, assert_refused_alike
from tests.conformance.oracle import assert_same
from tests.records import example, framed, write_framed, write_tfrecord

EXCUSED: dict[str, str] = {}

SHOW = """
import importlib
tfrecord = importlib.import_module(types.__name__.rpartition(".")[0] + ".tfrecord")
fixed, var = tfrecord.FixedLenFeature, tfrecord.VarLenFeature
int64, float32, string = tfrecord.int64, tfrecord.float32, tfrecord.string

def source(value):
    return bytes(np.asarray(ndd.get_property(value, key="source_info"))).decode()

def show(path, features, index=None, **arguments):
    paths = [path] if isinstance(path, str) else path
    paths = [root + "/" + path for path in paths]
    index = [root + "/" + name for name in index] if index else [path + ".idx" for path in paths]
    reader = ndd.readers.TFRecord(path=paths, index_path=index, features=features, **arguments)
    samples = list(reader.next_epoch())
    named = [{key: source(value) for key, value in sample.items()} for sample in samples]
    return samples, named, reader.get_metadata()
"""


@pytest.fixture(scope="module")
def root(make_folder):
    root = make_folder("tfrecord")
    rows = [
        {"s": (b"w" * n, "byte"), "i": (-n, "int"), "f": ([n + 0.5] * 3, "float")}
        for n in range(13)
    ]
    write_tfrecord(root / "w", rows)
    write_tfrecord(root / "v", rows[3:5])
    odd = [
        example(i=("int64", [1, 2, 3, 4]), f=("float", [1, 2]), s=("bytes", [b"a", b"b"])),
        example(i=("int64", [-(2**63), 2**63 - 1]), f=("float", []), s=("bytes", [b""])),
    ]
    write_framed(root / "odd", map(framed, odd))
    (root / "none").write_bytes(b"")
    (root / "none.idx").write_bytes(b"")
    data = (root / "w").read_bytes()
    (root / "cut").write_bytes(data[:-5])
    payload = data.rindex(b"wwww")
    (root / "payload").write_bytes(data[:payload] + b"x" + data[payload + 1 :])
    (root / "flipped").write_bytes(data[:30] + bytes([data[30] ^ 255]) + data[31:])
    for number, text in enumerate(INDEXES):
        (root / f"index{number}").write_text(text)
    return str(root)


INDEXES = ("0 10\n", "0 30\n", "5 30\n", "0 50\n99999 50\n", "x y\n", "-1 5\n")

CALLS = [
    "'w', {'s': fixed((), string, '')}",
    "'w', {'s': fixed([1], string, '')}",
    "'w', {'i': fixed((), int64, 0)}",
    "'w', {'i': fixed([1], int64, 0), 's': fixed((), string, ''), 'f': fixed([3], float32, 0.0)}",
    "'w', {'f': fixed([1, 3], float32, 0.0)}",
    "'w', {'f': fixed((3, 1), float32, 0.0)}",
    "'w', {'f': var(float32, 0.0), 'i': var(int64, 0)}",
    "'w', {'f': var([3], float32, 0.0)}",
    "'w', {'f': var([3, 1], float32, 0.0)}",
    "'odd', {'i': var(int64, 0), 'f': var(float32, 0.0), 's': fixed((), string, '')}",
    "'odd', {'i': var([2], int64, 0)}",
    "'odd', {'i': var([], int64, 0)}",
    "['v', 'w'], {'i': var(int64, 0)}",
    "['none', 'v'], {'i': var(int64, 0)}",
    "'w', {'i': var(int64, 0)}, num_shards=3, shard_id=1, pad_last_batch=True",
    "'w', {'i': var(int64, 0)}, use_o_direct=True, dont_use_mmap=True, lazy_init=True",
]


@pytest.mark.parametrize("call", CALLS)
def test_features_and_sources_are_those_of_dali(root, call):
    assert_same(f"{SHOW}\nshow({call})", root=root)


@pytest.mark.parametrize("arguments", ["", ", num_shards=2, shard_id=1", ", pad_last_batch=True"])
def test_batches_are_those_of_dali(root, arguments):
    source = f"""{SHOW}
reader = ndd.readers.TFRecord(
    path=root + "/w", index_path=root + "/w.idx", features={{"s": fixed((), string, "")}}{arguments}
)
[list(reader.next_epoch(batch_size=4)) for _ in range(3)]
"""
    assert_same(source, root=root)


REFUSED = [
    "show('w', {})",
    "show('w', {'s': 3})",
    "show('w', {'f': var([2], float32, 0.0)})",
    "show('w', {'f': fixed([2], float32, 0.0)})",
    "show('w', {'s': fixed([2], string, '')})",
    "show('w', {'s': var(string, '')})",
    "show('w', {'f': fixed([-1], float32, 0.0)})",
    "show('cut', {'s': fixed((), string, '')}, ['w.idx'])",
    "show('none', {'s': fixed((), string, '')})",
    "show(['v', 'w'], {'s': fixed((), string, '')}, ['w.idx'])",
    "show('w', {'s': fixed((), string, '')}, ['nope'])",
    "show('nope', {'s': fixed((), string, '')}, ['w.idx'])",
    "show('w', {'s': fixed((), string, '')}, foo=1)",
    "fixed((), int64, 1.5)",
    "fixed((), 'int64', 0)",
    "fixed(3, int64, 0)",
    "fixed((), string, 0)",
    "var(float32, 'a')",
    "ndd.readers.TFRecord(path='x', index_path='x')",
    "ndd.readers.TFRecord(features={'s': fixed((), string, '')}, index_path='x')",
    *(f"show('w', {{'i': var(int64, 0)}}, ['index{n}'])" for n in range(len(INDEXES))),
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_dali_refuses_is_refused(root, call):
    source = f"{SHOW}\n{call}"
    assert_refused_alike(source, root=root)


READ = (
    "[x['i'] for x in ndd.readers.TFRecord(path=root + '/{}', features={{'i': {}}}{}).next_epoch()]"
)
INDEXED = ", index_path=root + '/w.idx'"
DEFAULT = "a default stands in for what a record does not have; DALI gives zeros"

DIFFERS = [
    Differs(
        "show('flipped', {'s': fixed((), string, '')}, ['w.idx'])",
        "RuntimeError",
        "checksums are looked at; DALI refuses this by chance",
        ask=False,
    ),
    Differs(
        READ.format("w", "var(int64, 0)", ""),
        READ.format("w", "var(int64, 0)", INDEXED),
        "an index is not needed: the file is looked through",
    ),
    Differs(
        "show('payload', {'s': fixed((), string, '')}, ['w.idx'])",
        "RuntimeError",
        "checksums are looked at, so that damaged data is not taken for sound",
    ),
    Differs(
        READ.format("cut", "var(int64, 0)", ", on_error='skip', last_batch='partial'"),
        READ.format("w", "var(int64, 0)", INDEXED) + "[:12]",
        "what comes before the damage can be read",
    ),
    Differs(
        "show('odd', {'x': fixed([2], int64, -7)})[0]",
        "[{'x': ndd.tensor([-7, -7], dtype=ndd.int64)}] * 2",
        DEFAULT,
    ),
    Differs(
        "show('odd', {'f': fixed([2], float32, 5.0)})[0]",
        "[{'f': ndd.tensor(row, dtype=ndd.float32)} for row in ([1, 2], [5, 5])]",
        DEFAULT,
    ),
    Differs(
        "show('odd', {'x': fixed((), string, 'd')})[0]",
        "[{'x': ndd.tensor(list(b'd'), dtype=ndd.uint8)}] * 2",
        DEFAULT,
    ),
    Differs(
        "show('odd', {'x': var(int64, 3)})[0]",
        "[{'x': ndd.tensor(np.zeros(0, np.int64))}] * 2",
        "no values are a row without any, not a number without axes",
    ),
    Differs(
        "show('odd', {'i': var(float32, 0.0)})",
        "RuntimeError",
        "values of another type are an error, not nothing",
    ),
    Differs(
        "show('odd', {'x': fixed([2], int64, [1, 2])})[0]",
        "[{'x': ndd.tensor([1, 2], dtype=ndd.int64)}] * 2",
        "a default may have a number for each element",
    ),
    Differs(
        "show('w', {'i': var(int64)})[0]",
        "show('w', {'i': var(int64, 0)})[0]",
        "a default is not needed",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}\n{SHOW}").check()
