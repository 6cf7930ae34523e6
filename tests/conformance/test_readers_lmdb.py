"""Readers of Caffe's and Caffe2's databases, against DALI."""

from __future__ import annotations

import pytest

from tests.conformance.case import Raised
from tests.conformance.compare import show
from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same, oracle, ours
from tests.protobuf import database, datum, floats, ints, pixels, tensors, texts

EXCUSED: dict[str, str] = {}

IMAGE = texts(b"jpeg bytes")

RECORDS = {
    "plain": [datum(bytes([n]) * (n + 1), n - 3, True) for n in range(23)],
    "many": [datum(b"%d" % n, n) for n in range(3000)],
    "large": [datum(bytes([n]) * 70001, n) for n in range(9)],
    "raw": [datum(bytes(range(6)), 5, False, (2, 1, 3)), datum(bytes(12), 6, None, (2, 2, 3))],
    "no_data": [datum(label=5)],
    "no_label": [datum(b"abc")],
    "damaged": [b"\xff\xff\xff"],
    "single": [tensors(texts(b"jpeg%d" % n), ints(n * 3)) for n in range(7)],
    "pixels": [tensors(pixels(bytes(range(6)), 2, 1, 3), ints(4))],
    "unpacked": [tensors(IMAGE, ints(4, -5, packed=False))],
    "real": [tensors(IMAGE, floats(4.5))],
    "dense": [tensors(IMAGE, ints(0, 1, 1, 0))],
    "dense_real": [tensors(IMAGE, floats(0, 0.5, 1, 0))],
    "alone": [tensors(IMAGE)],
    "boxed": [tensors(IMAGE, ints(4), ints(1, 2, 3, 4))],
    "only_boxed": [tensors(IMAGE, ints(1, 2, 3, 4))],
    "more": [tensors(IMAGE, ints(4), floats(1, 2, 3), ints(7, 8))],
    "more_boxed": [tensors(IMAGE, ints(4), floats(1, 2, 3), ints(1, 2, 3, 4))],
    "no_image": [tensors(ints(4))],
    "two_texts": [tensors(texts(b"ab", b"cd"), ints(4))],
    "wrong_pixels": [tensors(pixels(bytes(6), 2, 2, 3), ints(4))],
    "named_label": [tensors(IMAGE, texts(b"x"))],
    "weighted": [tensors(IMAGE, ints(0, 2), floats(0.25, 0.5))],
    "out_of_range": [tensors(IMAGE, ints(0, 2))],
}


@pytest.fixture(scope="module")
def root(make_folder):
    root = make_folder("lmdb")
    for name, records in RECORDS.items():
        database(root / name, records)
    return str(root)


SHOW = """
def show(reader):
    found = []
    for outputs in reader.next_epoch():
        source = bytes(np.asarray(ndd.get_property(outputs[0], key="source_info"))).decode()
        found.append((source, outputs))
    return found
"""

CALLS = [
    "Caffe(path=root + '/plain')",
    "Caffe(path=[root + '/plain', root + '/raw'])",
    "Caffe(path=root + '/plain', num_shards=3, shard_id=1)",
    "Caffe(path=root + '/large')",
    "Caffe(path=root + '/raw')",
    "Caffe(path=root + '/no_data')",
    "Caffe(path=root + '/no_label')",
    "Caffe(path=root + '/plain', label_available=False)",
    "Caffe2(path=root + '/single')",
    "Caffe2(path=root + '/pixels')",
    "Caffe2(path=root + '/real')",
    "Caffe2(path=root + '/two_texts')",
    "Caffe2(path=root + '/unpacked', label_type=2)",
    "Caffe2(path=root + '/dense', label_type=2, num_labels=4)",
    "Caffe2(path=root + '/dense_real', label_type=2, num_labels=2)",
    "Caffe2(path=root + '/alone', label_type=4)",
    "Caffe2(path=root + '/boxed', bbox=True)",
    "Caffe2(path=root + '/only_boxed', label_type=4, bbox=True)",
    "Caffe2(path=root + '/more', additional_inputs=2)",
    "Caffe2(path=root + '/more_boxed', additional_inputs=1, bbox=True)",
]


@pytest.mark.parametrize("call", CALLS)
def test_records_and_their_sources_are_those_of_dali(root, call):
    assert_same(f"{SHOW}\nshow(ndd.readers.{call})", root=root)


@pytest.mark.parametrize(
    "call",
    [
        "Caffe(path=root + '/plain', image_available=False)",
        "Caffe(path=root + '/many', image_available=False)",
        "Caffe2(path=root + '/no_image', image_available=False)",
    ],
)
def test_labels_alone_are_those_of_dali(root, call):
    assert_same(f"list(ndd.readers.{call}.next_epoch())", root=root)


@pytest.mark.parametrize("pad", [False, True])
def test_batches_are_those_of_dali(root, pad):
    source = f"r = ndd.readers.Caffe(path=root + '/plain', pad_last_batch={pad})\n"
    assert_same(f"{source}[list(r.next_epoch(batch_size=5)) for _ in range(3)]", root=root)


REFUSED = [
    "Caffe(path=root + '/nothing')",
    "Caffe(path=root)",
    "Caffe(path=[])",
    "Caffe(path=root + '/damaged')",
    "Caffe2(path=root + '/damaged')",
    "Caffe2(path=root + '/dense')",
    "Caffe2(path=root + '/wrong_pixels')",
    "Caffe2(path=root + '/named_label')",
    "Caffe2(path=root + '/alone')",
    "Caffe2(path=root + '/alone', label_type=5)",
    "Caffe2(path=root + '/single', label_type=4)",
    "Caffe2(path=root + '/out_of_range', label_type=1, num_labels=2)",
    "Caffe2(path=root + '/more', bbox=True)",
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_dali_refuses_is_refused(root, call):
    source = f"{SHOW}\nshow(ndd.readers.{call})"
    expected, actual = oracle.run(source, root=root), ours.run(source, root=root)
    assert isinstance(expected, Raised), f"DALI takes it: {show(expected)}"
    assert isinstance(actual, Raised), f"penstock takes it: {show(actual)}"


LABELS = "[o[1] for o in ndd.readers.{}.next_epoch()]"
SPARSE = "labels that name classes become rows; DALI fails on all of them"

DIFFERS = [
    Differs(
        LABELS.format("Caffe2(path=root + '/out_of_range', label_type=1, num_labels=4)"),
        "[ndd.tensor([1, 0, 1, 0], dtype=ndd.int32)]",
        SPARSE,
    ),
    Differs(
        LABELS.format("Caffe2(path=root + '/weighted', label_type=3, num_labels=4)"),
        "[ndd.tensor([0.25, 0, 0.5, 0], dtype=ndd.float32)]",
        SPARSE,
    ),
    Differs(
        LABELS.format("Caffe(path=root + '/plain/data.mdb')"),
        LABELS.format("Caffe(path=root + '/plain')"),
        "a database may be named by its file",
    ),
    Differs(
        LABELS.format("Caffe(path=[root + '/nothing', root + '/plain'], on_error='skip')"),
        LABELS.format("Caffe(path=root + '/plain')"),
        "a database that can't be read is a bad sample, and others are read",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}\n{SHOW}").check()
