"""`readers.MXNet` against DALI."""

from __future__ import annotations

import pytest

from tests.conformance.on_purpose import Differs, assert_refused_alike
from tests.conformance.oracle import assert_same
from tests.records import MAGIC, image_record, write_recordio

EXCUSED: dict[str, str] = {}

SHOW = """
def source(value):
    return bytes(np.asarray(ndd.get_property(value, key="source_info"))).decode()

def show(path, index, **arguments):
    paths = [path] if isinstance(path, str) else path
    paths, index = [root + "/" + path for path in paths], root + "/" + index
    reader = ndd.readers.MXNet(path=paths, index_path=index, **arguments)
    samples = list(reader.next_epoch())
    return samples, [source(sample[0]) for sample in samples], reader.get_metadata()
"""

INDEXES = ("0\t0\n1\t10\n", "0\t0\n1\t99999\n", "", "x y\n", "0\t4\n")


@pytest.fixture(scope="module")
def root(make_folder):
    root = make_folder("mxnet")
    write_recordio(root / "w", [image_record(n / 2, b"i" * n, n) for n in range(13)])
    odd = [
        image_record(3.5, b"hello"),
        image_record(-1.0, b""),
        image_record([1.0, 2.0, 3.0], b"several labels"),
        image_record([7.0], b"one label"),
        image_record(2.0, b"abcd" + MAGIC + b"efgh" + MAGIC + MAGIC + b"tail"),
        image_record(2.0, MAGIC),
        image_record(2.0, b"x" + MAGIC),
    ]
    write_recordio(root / "odd", odd)
    lines = (root / "odd.idx").read_text().splitlines(keepends=True)
    (root / "backwards.idx").write_text("".join(reversed(lines)))
    data = bytearray((root / "odd.rec").read_bytes())
    (root / "cut.rec").write_bytes(data[:-6])
    for name, place, byte in (("magic", 0, 1), ("length", 4, 200), ("labels", 9, 255)):
        damaged = bytearray(data)
        damaged[place] = byte
        (root / f"{name}.rec").write_bytes(damaged)
    for number, text in enumerate(INDEXES):
        (root / f"index{number}").write_text(text)
    return str(root)


@pytest.mark.parametrize(
    "call",
    [
        "'w.rec', 'w.idx'",
        "'odd.rec', 'odd.idx'",
        "'odd.rec', 'backwards.idx'",
        "['odd.rec', 'w.rec'], 'odd.idx'",
        "'w.rec', 'w.idx', num_shards=3, shard_id=2, pad_last_batch=True",
        "'w.rec', 'w.idx', dont_use_mmap=True, lazy_init=True",
    ],
)
def test_images_labels_and_sources_are_those_of_dali(root, call):
    assert_same(f"{SHOW}\nshow({call})", root=root)


@pytest.mark.parametrize("arguments", ["", ", num_shards=2, shard_id=1", ", pad_last_batch=True"])
def test_batches_are_those_of_dali(root, arguments):
    source = f"""
reader = ndd.readers.MXNet(path=root + "/w.rec", index_path=root + "/w.idx"{arguments})
[list(reader.next_epoch(batch_size=4)) for _ in range(3)]
"""
    assert_same(source, root=root)


@pytest.mark.parametrize(
    "call",
    [
        "'cut.rec', 'odd.idx'",
        "'magic.rec', 'odd.idx'",
        "'length.rec', 'odd.idx'",
        "'labels.rec', 'odd.idx'",
        "'nope.rec', 'odd.idx'",
        "'odd.rec', 'nope.idx'",
        "'odd.rec', 'odd.idx', foo=1",
        *(f"'odd.rec', 'index{number}'" for number in range(len(INDEXES))),
    ],
)
def test_what_dali_refuses_is_refused(root, call):
    source = f"{SHOW}\nshow({call})"
    assert_refused_alike(source, root=root)


LABELS = "[label for _, label in ndd.readers.MXNet({}).next_epoch()]"

DIFFERS = [
    Differs(
        LABELS.format("path=root + '/odd.rec'"),
        LABELS.format("path=root + '/odd.rec', index_path=root + '/odd.idx'"),
        "an index is not needed: the file is looked through",
    ),
    Differs(
        LABELS.format(
            "path=[root + '/w.rec', root + '/odd.rec'],"
            "index_path=[root + '/w.idx', root + '/odd.idx']"
        ),
        "show('w.rec', 'w.idx')\n"
        "[sample[1] for name in ('w', 'odd') for sample in show(f'{name}.rec', f'{name}.idx')[0]]",
        "each file may have its index",
    ),
    Differs(
        LABELS.format("path=root + '/cut.rec', on_error='skip', last_batch='partial'"),
        LABELS.format("path=root + '/odd.rec'") + "[:-1]",
        "what comes before the damage can be read",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}\n{SHOW}").check()
