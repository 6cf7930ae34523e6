"""`readers.Webdataset` against DALI."""

from __future__ import annotations

import struct
import tarfile

import pytest
import webdataset

from tests.conformance.on_purpose import Differs, assert_refused_alike
from tests.conformance.oracle import assert_same
from tests.records import write_tar

EXCUSED: dict[str, str] = {}

SHOW = """
def source(value):
    return bytes(np.asarray(ndd.get_property(value, key="source_info"))).decode()

def show(paths, ext, index=None, **arguments):
    paths = [paths] if isinstance(paths, str) else paths
    paths = [root + "/" + path for path in paths]
    if index:
        arguments["index_paths"] = [root + "/" + name for name in index]
    reader = ndd.readers.Webdataset(paths=paths, ext=ext, **arguments)
    samples = list(reader.next_epoch())
    return samples, [list(map(source, sample)) for sample in samples], reader.get_metadata()
"""

ODD = [
    ("d.x", None),
    ("d.x/a.jpg", b"1"),
    ("d.x/a.seg.png", b"22"),
    ("d.x/a.JPG", b"333"),
    ("b.jpg", b"4"),
    ("link.jpg", (tarfile.SYMTYPE, "b.jpg")),
    ("b.png", b"5"),
    ("b.jpg", b"again"),
    (".hidden.jpg", b"66"),
    ("noext", b"7"),
    ("c.cls", b"8"),
    ("e/c.cls", b"9"),
    ("b.txt", b"late"),
    ("hard.jpg", (tarfile.LNKTYPE, "b.jpg")),
    ("empty.jpg", b""),
    ("block.jpg", b"x" * 512),
]

INDEXES = (
    "v1.1 1\njpg 512 3\n",
    "v1.2 1\njpg 512 6 s000.jpg\n",
    "v1.2 1\njpg 512 6 s000.jpg cls 1536 1 x\n",
    "v1.2 1\njpg 512 6 a.jpg\njpg 2560 6 b.jpg\n",
    "v1.0 1\njpg 512 3\n",
    "v1.2 2\njpg 512 6 s000.jpg\n",
    "v1.2 1\njpg 512 6 s000.jpg cls\n",
    "v1.2 1\njpg 5120000 6 s000.jpg\n",
    "v1.2 1\njpg 100 6 q.jpg\n",
    "",
    "v9 1\njpg 512 3 a\n",
    "v1.2 1\njpg x 3 a\n",
    "v1.2 0\n",
    "v1.2 1\n\n",
    "v1.2 1\njpg 512 6 sp ace.jpg\n",
)
GOOD_INDEXES = 4


@pytest.fixture(scope="module")
def root(make_folder):
    root = make_folder("webdataset")
    with webdataset.TarWriter(str(root / "w.tar"), mtime=0) as writer:
        for number in range(13):
            key, label = f"s{number:03d}", str(number).encode()
            writer.write({"__key__": key, "jpg": b"j" * number * 100, "cls": label})
    write_tar(root / "odd.tar", ODD)
    name = "l" * 150 + "/" + "n" * 120
    write_tar(root / "gnu.tar", [(name + ".jpg", b"long"), ("k.jpg", b"k")], tarfile.GNU_FORMAT)
    numbers = [("z.i32", struct.pack("<3i", 1, -2, 3)), ("z.bin", b"12345678"), ("y.bin", b"")]
    write_tar(root / "numbers.tar", numbers)
    data = (root / "w.tar").read_bytes()
    write_tar(root / "pax.tar", [(name + ".jpg", b"long"), ("é.jpg", b"k")], tarfile.PAX_FORMAT)
    write_tar(root / "sparse.tar", [("a.jpg", b"1"), ("b.jpg", (tarfile.GNUTYPE_SPARSE, ""))])
    (root / "late.tar").write_bytes(data[: data.index(b"s004.cls")])
    (root / "zero.tar").write_bytes(b"")
    (root / "junk.tar").write_bytes(b"junk" * 600)
    (root / "cut.tar").write_bytes(data[:1300])
    (root / "flipped.tar").write_bytes(bytes([data[0] ^ 1]) + data[1:])
    for number, text in enumerate(INDEXES):
        (root / f"index{number}").write_text(text)
    return str(root)


CALLS = [
    "'w.tar', ['jpg', 'cls']",
    "'w.tar', 'cls'",
    "['w.tar', 'odd.tar'], ['jpg']",
    "'odd.tar', ['jpg', 'png', 'cls']",
    "'odd.tar', ['jpg;png', 'cls;txt;']",
    "'odd.tar', ['png;jpg']",
    "'odd.tar', ['seg.png', 'png']",
    "'odd.tar', ['jpg', 'jpg;png']",
    "'odd.tar', ['JPG']",
    "'odd.tar', ['JPG'], case_sensitive_extensions=True",
    "'odd.tar', ['JPG'], case_sensitive_extensions=False",
    "'odd.tar', ['.jpg', '']",
    "'odd.tar', ['jpg', 'png'], missing_component_behavior='skip'",
    "'odd.tar', ['jpg', 'png'], missing_component_behavior='Empty'",
    "'odd.tar', ['jpg', 'png'], missing_component_behavior=''",
    "'w.tar', ['jpg', 'cls'], missing_component_behavior='error'",
    "'gnu.tar', ['jpg']",
    "'numbers.tar', ['i32'], dtypes=types.INT32",
    "'numbers.tar', ['i32', 'bin'], dtypes=[types.FLOAT16, types.INT64]",
    "'numbers.tar', ['bin'], dtypes=ndd.float64",
    "'w.tar', ['jpg'], num_shards=3, shard_id=1, dont_use_mmap=True",
    *(f"'w.tar', ['jpg', 'cls'], ['index{n}']" for n in range(GOOD_INDEXES)),
]


@pytest.mark.parametrize("call", CALLS)
def test_components_and_sources_are_those_of_dali(root, call):
    assert_same(f"{SHOW}\nshow({call})", root=root)


@pytest.mark.parametrize("arguments", ["", ", num_shards=2, shard_id=1", ", pad_last_batch=True"])
def test_batches_are_those_of_dali(root, arguments):
    source = f"""
reader = ndd.readers.Webdataset(paths=root + "/w.tar", ext=["jpg", "cls"]{arguments})
[list(reader.next_epoch(batch_size=4)) for _ in range(3)]
"""
    assert_same(source, root=root)


REFUSED = [
    "'odd.tar', ['jpg', 'png'], missing_component_behavior='error'",
    "'odd.tar', ['jpg', 'png'], missing_component_behavior='foo'",
    "'odd.tar', ['nope'], missing_component_behavior='skip'",
    "'numbers.tar', ['i32'], dtypes=types.INT64",
    "'numbers.tar', ['i32'], dtypes=types.BOOL",
    "'numbers.tar', ['i32', 'bin'], dtypes=types.INT32",
    "'zero.tar', ['jpg']",
    "'junk.tar', ['jpg']",
    "'cut.tar', ['jpg']",
    "'flipped.tar', ['jpg']",
    "'nope.tar', ['jpg']",
    "[], ['jpg']",
    "'w.tar', ['jpg'], ['nope']",
    "['w.tar', 'odd.tar'], ['jpg'], ['index0']",
    "'w.tar', ['jpg'], foo=1",
    *(f"'w.tar', ['jpg'], ['index{n}']" for n in range(GOOD_INDEXES, len(INDEXES))),
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_dali_refuses_is_refused(root, call):
    source = f"{SHOW}\nshow({call})"
    assert_refused_alike(source, root=root)


DIFFERS = [
    Differs(
        "[bytes(np.asarray(sample[0])) for sample in show('pax.tar', ['jpg'])[0]]",
        "[b'long', b'k']",
        "names of any length and letters are read, in the format that Python writes, too",
    ),
    Differs(
        "show('sparse.tar', ['jpg'])",
        "RuntimeError",
        "a sample in a form that can't be read is an error; DALI leaves it out",
    ),
    Differs(
        "show('numbers.tar', ['bin'], dtypes='float64')[0]",
        "show('numbers.tar', ['bin'], dtypes=types.FLOAT64)[0]",
        "dtypes have names everywhere",
    ),
    Differs(
        "show('w.tar', [])",
        "ValueError",
        "a message about the argument",
    ),
    Differs(
        "show('late.tar', ['jpg', 'cls'], on_error='skip', last_batch='partial')[0]",
        "show('w.tar', ['jpg', 'cls'])[0][:4]",
        "what comes before the damage can be read",
    ),
    Differs(
        "show('odd.tar', ['jpg', 'png'], missing_component_behavior='error', on_error='skip')[0]",
        "samples = show('odd.tar', ['jpg', 'png'])[0]\n"
        "[(jpg, png) for jpg, png in samples if jpg.shape[0] and png.shape[0]]",
        "a sample without a component is a bad sample, as others",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}\n{SHOW}").check()
