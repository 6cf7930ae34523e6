"""Readers against DALI: the order of samples, and their contents."""

from __future__ import annotations

import os

import pytest

from tests.conformance.case import Raised
from tests.conformance.compare import show
from tests.conformance.on_purpose import MEANT, Differs, assert_refused
from tests.conformance.oracle import assert_same, oracle, ours

EXCUSED: dict[str, str] = {}

TREE = {
    "b/2.jpg": "b2",
    "b/10.jpg": "b10",
    "a/x.JPG": "ax",
    "a/y.png": "ay",
    "a/z.txt": "az",
    "a/deep/q.jpg": "deep",
    "a/.hidden.jpg": "hidden",
    "c/only.txt": "c",
    "B/u.jpg": "B",
    ".dot/h.jpg": "dot",
    "top.jpg": "top",
    "é/u.jpg": "é",
    "d/sp ace.jpg": "space",
    "e/[x].jpg": "bracket",
}


@pytest.fixture(scope="module")
def root(make_folder):
    """A folder with files of all sorts, and one with forty that are numbered."""
    root = make_folder("readers")
    for name, text in TREE.items():
        path = root / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "tree/nothing").mkdir()
    os.symlink(root / "tree/b", root / "tree/linked")
    os.symlink("2.jpg", root / "tree/b/link.jpg")
    (root / "numbered").mkdir()
    for number in range(40):
        (root / f"numbered/{number:02d}").write_bytes(bytes([number]) * (number + 1))
    for number, text in enumerate(LISTS):
        (root / f"list{number}").write_text(text)
        (root / f"tree/list{number}").write_text(text)
    return str(root)


LISTS = (
    "b/2.jpg 5\n\nd/sp ace.jpg  7\r\na/y.png 3 \n",
    "b/2.jpg\t4",
    "b/2.jpg\n",
    "b/2.jpg x\n",
    "b/2.jpg 1.5\n",
    "",
    "# comment\nb/2.jpg 1\n",
    "b/2.jpg 0x10\n",
)
GOOD_LISTS = (0, 1)

SHOW = """
def show(**arguments):
    reader = ndd.readers.File(**arguments)
    found = []
    for data, label in reader.next_epoch():
        source = bytes(np.asarray(ndd.get_property(data, key="source_info"))).decode()
        found.append((source, data, label))
    return found, reader.get_metadata()
"""

CALLS = [
    "file_root=root + '/tree'",
    "file_root=root + '/tree/'",
    "file_root=root + '/tree', file_filters='*.txt'",
    "file_root=root + '/tree', file_filters=['*.JPG', '?.png']",
    "file_root=root + '/tree', file_filters=['*.JPG'], case_sensitive_filter=True",
    "file_root=root + '/tree', file_filters=['[12].jpg']",
    "file_root=root + '/tree', file_filters=['*']",
    "file_root=root + '/tree', dir_filters='a*'",
    "file_root=root + '/tree', dir_filters=['b'], case_sensitive_filter=True",
    "file_root=root + '/tree', dir_filters=['b', 'd']",
    "files=['b/2.jpg', 'a/y.png'], file_root=root + '/tree'",
    "files=[root + '/tree/b/2.jpg', 'b/10.jpg'], file_root=root + '/tree', labels=[7, -3]",
    "files=root + '/tree/b/2.jpg'",
    "files=[root + '/tree/b/2.jpg'], labels=5",
    "files=[root + '/tree/b/2.jpg'], labels=[5.0]",
    "files=['b/2.jpg'], file_root=root + '/tree', file_filters=['*.png']",
    *(f"file_list=root + '/list{number}', file_root=root + '/tree'" for number in GOOD_LISTS),
    *(f"file_list=root + '/tree/list{number}'" for number in GOOD_LISTS),
    "file_root=root + '/tree', lazy_init=True, read_ahead=True, dont_use_mmap=True",
    "file_root=root + '/tree', prefetch_queue_depth=3, tensor_init_bytes=5",
    "file_root=root + '/tree', skip_cached_images=True",
    "file_root=root + '/tree', num_shards=3, shard_id=1, pad_last_batch=True",
]


@pytest.mark.parametrize("call", CALLS)
def test_files_labels_and_sources_are_those_of_dali(root, call):
    assert_same(f"{SHOW}\nshow({call})", root=root)


REFUSED = [
    "",
    "file_root=root + '/nope'",
    "file_root=root + '/tree/top.jpg'",
    "file_root=root + '/tree', file_filters=['*.zzz']",
    "file_root=root + '/tree', labels=[1]",
    "file_root=root + '/tree', foo=1",
    "file_root=root + '/tree', num_shards=0",
    "file_root=root + '/tree', shard_id=2, num_shards=2",
    "file_root=root + '/tree', shard_id=-1",
    "file_root=root + '/tree', num_shards=1000",
    "file_root=root + '/tree', prefetch_queue_depth=0",
    "file_root=root + '/tree', max_batch_size=0",
    "file_root=root + '/tree', tensor_init_bytes=-1",
    "file_root=root + '/tree', random_shuffle=True, shuffle_after_epoch=True",
    "file_root=root + '/tree', stick_to_shard=True, shuffle_after_epoch=True",
    "files=[]",
    "files=[root + '/tree/b/2.jpg'], labels=[5, 6]",
    "files=[root + '/tree/nope.jpg']",
    "files=['x'], file_list='y'",
    "file_list=root + '/nope'",
    *(
        f"file_list=root + '/list{number}', file_root=root + '/tree'"
        for number in range(len(LISTS))
        if number not in GOOD_LISTS
    ),
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_dali_refuses_is_refused_with_an_error_of_the_same_kind(root, call):
    source = f"{SHOW}\nshow({call})"
    expected, actual = oracle.run(source, root=root), ours.run(source, root=root)
    assert isinstance(expected, Raised), f"DALI takes it: {show(expected)}"
    assert isinstance(actual, Raised), f"penstock takes it: {show(actual)}"
    if "prefetch" not in call:
        assert expected.type in actual.bases, f"{expected}\n{actual}"
    assert MEANT & set(actual.bases)


DIFFERS = [
    Differs(
        f"{SHOW}\nshow(files=[root + '/tree/b/2.jpg'], labels={labels})",
        "ValueError",
        "a label is a whole number; DALI cuts the rest off, so that 1.9 is 1",
    )
    for labels in ("[1.5]", "1.9")
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}").check()


SEQUENCE = """
def sequence(size, batch_size, epochs, breaks=(), **arguments):
    files = [f"{root}/numbered/{number:02d}" for number in range(size)]
    reader = ndd.readers.File(files=files, **arguments)
    found = []
    for epoch in range(epochs):
        given = []
        for data, labels in reader.next_epoch(batch_size=batch_size):
            samples = list(labels) if batch_size else [labels]
            given.append([int(np.asarray(label)[0]) for label in samples])
            if epoch < len(breaks) and len(given) == breaks[epoch]:
                break
        found.append(given)
    return found, reader.get_metadata()

def grid(sizes, shards, **arguments):
    found = {}
    for size in sizes:
        for num_shards in shards:
            for shard_id in range(num_shards):
                for batch_size in (None, 1, 2, 3, 8):
                    found[f"{size} {num_shards} {shard_id} {batch_size}"] = sequence(
                        size, batch_size, 4, num_shards=num_shards, shard_id=shard_id, **arguments
                    )
    return found
"""


@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("sizes", ["(3, 5)", "(6, 7)", "(10, 13)"])
def test_epochs_are_those_of_dali(root, sizes, pad, stick):
    call = f"grid({sizes}, (1, 2, 3), pad_last_batch={pad}, stick_to_shard={stick})"
    assert_same(f"{SEQUENCE}\n{call}", root=root)


@pytest.mark.filterwarnings("ignore::penstock.readers.UnfinishedEpochWarning")
@pytest.mark.parametrize(("shards", "sizes"), [(1, (5, 6, 9)), (2, (9, 10, 11))])
@pytest.mark.parametrize("breaks", [(1,), (2, 1), (1, 1, 1, 1), (1, 9, 2)], ids=str)
@pytest.mark.parametrize("pad", [False, True])
def test_unfinished_epochs_go_on_as_in_dali(root, breaks, pad, shards, sizes):
    # Which batch is the last one differs by shard; leaving the loop in that one finishes an epoch
    # of ours, and not of DALI.
    breaks = tuple(min(at, 1) if shards > 1 and at < 9 else at for at in breaks)
    call = f"""[
        sequence(size, 2, 6, {breaks}, num_shards={shards}, pad_last_batch={pad}, stick_to_shard=s)
        for size in {sizes} for s in (False, True)
    ]"""
    assert_same(f"{SEQUENCE}\n{call}", root=root)


@pytest.mark.parametrize("arguments", ["random_shuffle=True", "shuffle_after_epoch=True"])
def test_a_shuffled_epoch_has_the_same_samples_in_another_order(root, arguments):
    """The orders differ from DALI's, since the generators differ."""
    call = f"""[
        sorted(sum(epoch, [])) for epoch in sequence(20, 4, 3, {arguments}, initial_fill=7)[0]
    ]"""
    assert_same(f"{SEQUENCE}\n{call}", root=root)


def test_shards_of_a_shuffled_data_set_are_not_contiguous_but_fixed(root):
    """The data set is shuffled once, equally for all readers, before it is cut into shards."""
    source = f"""{SEQUENCE}
def shard(shard_id, seed):
    found, _ = sequence(
        40, None, 2, num_shards=2, shard_id=shard_id, stick_to_shard=True, random_shuffle=True,
        seed=seed,
    )
    return [sorted(sum(epoch, [])) for epoch in found]
a, b = shard(0, 1), shard(1, 2)
[a[0] == a[1], b[0] == b[1], a[0] == list(range(20)), sorted(a[0] + b[0]) == list(range(40))]
"""
    assert_same(source, root=root)


READER = "reader = ndd.readers.File(files=[f'{root}/numbered/{n:02d}' for n in range(5)]"

MODES = [
    f"{READER})\nlist(reader.next_epoch(batch_size=2))\nlist(reader.next_epoch(batch_size=3))",
    f"{READER})\nlist(reader.next_epoch(batch_size=2))\nlist(reader.next_epoch())",
    f"{READER})\nlist(reader.next_epoch())\nlist(reader.next_epoch(batch_size=2))",
    f"{READER})\nlist(reader.next_epoch())\nreader()",
    f"{READER})\nreader()\nlist(reader.next_epoch())",
    f"{READER}, max_batch_size=3)\nlist(reader.next_epoch(batch_size=4))",
    f"{READER}, max_batch_size=3)\nlist(reader.next_epoch())\nreader.next_epoch(2).__next__()",
]


@pytest.mark.parametrize("source", MODES)
def test_changes_of_mode_raise_as_in_dali(root, source):
    expected, actual = oracle.run(source, root=root), ours.run(source, root=root)
    assert isinstance(expected, Raised)
    assert isinstance(actual, Raised)
    assert expected.type == actual.type


@pytest.mark.parametrize(
    "source",
    [
        f"{READER})\n[reader() for _ in range(7)]",
        f"{READER}, max_batch_size=3)\nlist(reader.next_epoch())",
        f"{READER}, max_batch_size=3)\nlist(reader.next_epoch(batch_size=2))",
        f"{READER})\nlist(reader.next_epoch(batch_size=np.int64(2)))",
        f"{READER})\nreader.get_metadata(2)",
    ],
)
def test_calls_and_sizes_are_as_in_dali(root, source):
    assert_same(source, root=root)


PATH = "np.frombuffer(f'{root}/numbered/07'.encode(), np.uint8)"


@pytest.mark.parametrize(
    "source",
    [
        f"ndd.io.file.read({PATH})",
        f"ndd.io.file.read({PATH}.astype(np.int8))",
        f"ndd.io.file.read({PATH}, dont_use_mmap=True)",
        f"ndd.io.file.read(ndd.batch([{PATH}, {PATH}]))",
    ],
)
def test_files_are_read_by_name(root, source):
    assert_same(source, root=root)


@pytest.mark.parametrize(
    "source",
    [
        "ndd.io.file.read(np.frombuffer(b'/nope', np.uint8)).evaluate()",
        "ndd.io.file.read(np.zeros(0, np.uint8)).evaluate()",
        "ndd.io.file.read(np.zeros(4, np.int32)).evaluate()",
        "ndd.io.file.read(np.zeros((1, 4), np.uint8)).evaluate()",
    ],
)
def test_names_of_no_file_are_refused(source):
    assert_refused(source)
