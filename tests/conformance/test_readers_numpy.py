"""`readers.Numpy` against DALI: element types, orders, parts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.case import Raised
from tests.conformance.compare import show
from tests.conformance.on_purpose import Differs, assert_refused_alike
from tests.conformance.oracle import assert_same, oracle, ours

EXCUSED: dict[str, str] = {}

TYPES = "?bBhHiIlLefd"


@pytest.fixture(scope="module")
def root(make_folder):
    """A folder with arrays of all sorts."""
    root = make_folder("numpy")
    rng = np.random.default_rng(0)
    for code in TYPES:
        values = (rng.random((3, 4)) * 100 - (30 if code in "bhilefd" else 0)).astype(code)
        np.save(root / f"type_{ord(code)}.npy", values)
    whole = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
    np.save(root / "c.npy", whole)
    np.save(root / "f.npy", np.asfortranarray(whole))
    np.save(root / "row.npy", np.arange(7))
    np.save(root / "number.npy", np.float32(3))
    np.save(root / "big.npy", np.arange(6, dtype=">i4"))
    for version in (2, 3):
        with open(root / f"version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, np.arange(6.0), version=(version, 0))
    np.save(root / "none.npy", np.zeros((0, 3), np.float32))
    np.save(root / "text.npy", np.array(["ab", "c"]))
    np.save(root / "complex.npy", np.zeros(2, np.complex64))
    np.save(root / "records.npy", np.zeros(3, dtype=[("a", "i4")]))
    for name in ("deep/x.npy", "tree/b.npy", "tree/a.npy", "tree/in/c.npy", "tree/in/in/d.npy"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(root / name, np.arange(len(name)))
    (root / "tree/z.txt").write_text("no")
    data = (root / "c.npy").read_bytes()
    (root / "cut.npy").write_bytes(data[:-5])
    (root / "head.npy").write_bytes(data[:40])
    (root / "empty.npy").write_bytes(b"")
    (root / "shape.npy").write_bytes(data.replace(b"(4, 5, 6)", b"(4,-5, 6)"))
    (root / "long.npy").write_bytes(data + b"more")
    (root / "list").write_text("c.npy\n\ndeep/x.npy\nf.npy")
    return str(root)


SHOW = """
def show(*files, **arguments):
    if files:
        arguments["files"] = list(files)
    reader = ndd.readers.Numpy(**{"file_root": root, **arguments})
    found = []
    for (data,) in reader.next_epoch():
        source = bytes(np.asarray(ndd.get_property(data, key="source_info"))).decode()
        # DALI puts "./" before names of files in the root itself.
        found.append((source.removeprefix("./"), data))
    return found, reader.get_metadata()
"""

PARTS = [
    "roi_start=[1, 2, 3], roi_end=[3, 4, 6]",
    "roi_start=[1, 2], roi_shape=[2, 3], roi_axes=[0, 1]",
    "roi_start=[1], roi_axes=[1]",
    "roi_end=[2], roi_axes=[-1]",
    "roi_start=1, roi_axes=0",
    "roi_start=2",
    "roi_shape=2",
    "roi_start=[3, 0, 0], roi_end=[3, 5, 6]",
    "rel_roi_start=[0.25, 0.2, 0.5]",
    "rel_roi_start=[0.1, 0.3, 0.4]",
    "rel_roi_start=0.5",
    "rel_roi_end=[0.5, 0.6, 0.5]",
    "rel_roi_shape=[0.5, 0.5], roi_axes=[0, 2]",
    "roi_start=[1, 1, 1], rel_roi_shape=[0.5, 0.5, 0.5]",
    "rel_roi_start=[0.3, 0.3, 0.3], rel_roi_shape=[0.3, 0.3, 0.3]",
    "roi_axes=[0]",
    "roi_start=ndd.tensor([1, 1, 1])",
    "roi_start=np.array([1, 1, 1])",
    "roi_start=[-1, 0, 0], out_of_bounds_policy='pad', fill_value=7.0",
    "roi_start=[-1, -1, 5], roi_end=[2, 1, 8], out_of_bounds_policy='pad', fill_value=7.5",
    "roi_start=[9, 0, 0], roi_end=[12, 1, 2], out_of_bounds_policy='pad', fill_value=7.5",
    "roi_start=[-1, 0, 0], roi_end=[2, 6, 7], out_of_bounds_policy='trim_to_shape'",
    "roi_start=[9, 0, 0], roi_end=[12, 1, 2], out_of_bounds_policy='trim_to_shape'",
]

CALLS = [
    *(f"'type_{ord(code)}.npy'" for code in TYPES),
    *(f"'{name}.npy'" for name in ("c", "f", "row", "number", "none", "long")),
    *(f"'{name}.npy', {part}" for name in ("c", "f") for part in PARTS),
    *(
        f"'type_{ord(code)}.npy', roi_start=-1, out_of_bounds_policy='pad', fill_value={value}"
        for code in TYPES
        for value in (300.7, -2.0)
    ),
    "'number.npy', roi_start=[0]",
    "'none.npy', roi_start=[0, 1]",
    "'c.npy', 'deep/x.npy', cache_header_information=True",
    "'c.npy', register_buffers=False, dont_use_mmap=True, use_o_direct=True",
    "file_root=root + '/tree'",
    "file_root=root + '/tree', file_filter='[bc]*'",
    "file_root=None, files=root + '/c.npy'",
    "file_list=root + '/list'",
    "file_root=None, file_list=root + '/list'",
]


@pytest.mark.parametrize("call", CALLS)
def test_arrays_are_those_of_dali(root, call):
    assert_same(f"{SHOW}\nshow({call})", root=root)


REFUSED = [
    "file_root=None",
    "file_root=root + '/nope'",
    "file_filter='nope'",
    "'nope.npy'",
    "file_list=root + '/nope'",
    "'c.npy', file_list=root + '/list'",
    *(f"'{name}.npy'" for name in ("text", "complex", "records")),
    *(f"'{name}.npy'" for name in ("cut", "head", "empty", "shape")),
    "'c.npy', use_o_direct=True",
    "'c.npy', roi_start=[1, 1]",
    "'c.npy', roi_start=[1, 1, 1, 1]",
    "'c.npy', roi_end=[5, 5, 7]",
    "'c.npy', roi_start=[-1, 0, 0]",
    "'c.npy', roi_start=[3, 0, 0], roi_end=[1, 5, 6]",
    "'c.npy', roi_start=[9, 0, 0], out_of_bounds_policy='trim_to_shape'",
    "'c.npy', out_of_bounds_policy='foo'",
    "'c.npy', roi_end=1, roi_shape=1",
    "'c.npy', roi_end=1, rel_roi_shape=1.0",
    "'c.npy', roi_start=1, rel_roi_start=1.0",
    "'c.npy', roi_start=[1, 1], roi_axes=[0, 0]",
    "'c.npy', roi_start=[1], roi_axes=[5]",
    "'c.npy', roi_shape=[-1, 1, 1]",
    "'c.npy', rel_roi_end=[1.3, 1, 1]",
    "'c.npy', roi_start=ndd.batch([[1, 1, 1]])",
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_dali_refuses_is_refused(root, call):
    source = f"{SHOW}\nshow({call})"
    assert_refused_alike(source, root=root)


READER = "reader = ndd.readers.Numpy(file_root=root, files=['c.npy', 'f.npy'], max_batch_size=2)\n"


@pytest.mark.parametrize(
    "source",
    [
        "[reader(batch_size=2, roi_start=[n, 1, 1]) for n in (1, 2)]",
        "reader(batch_size=2, roi_start=ndd.batch([[1, 1, 1], [2, 2, 2]]))",
        "reader = ndd.readers.Numpy(file_root=root, files=['c.npy', 'f.npy'])\n"
        "[reader(roi_start=[n, 1, 1]) for n in (1, 2, 3)]",
        "list(reader.next_epoch(batch_size=2))",
    ],
)
def test_calls_take_parts_as_in_dali(root, source):
    assert_same(READER + source, root=root)


@pytest.mark.parametrize("other", ["'type_104.npy'", "'none.npy'"])
def test_arrays_of_a_batch_must_be_alike_in_type_and_dimensions(root, other):
    source = f"""
reader = ndd.readers.Numpy(file_root=root, files=['c.npy', {other}])
[[np.asarray(array) for array in batch] for (batch,) in reader.next_epoch(batch_size=2)]
"""
    expected, actual = oracle.run(source, root=root), ours.run(source, root=root)
    assert isinstance(expected, Raised)
    assert isinstance(actual, Raised), show(actual)
    assert "RuntimeError" in actual.bases


DIFFERS = [
    Differs(
        "show('big.npy')[0][0][1]",
        "ndd.tensor(np.arange(6, dtype=np.int32))",
        "bytes may be in either order",
    ),
    *(
        Differs(
            f"show('version{version}.npy')[0][0][1]",
            "ndd.tensor(np.arange(6, dtype=np.float64))",
            "all versions of the format are read",
        )
        for version in (2, 3)
    ),
    Differs(
        "[np.asarray(data) for name, data in show('row.npy', 'cut.npy', on_error='skip')[0]]",
        "[np.arange(7)]",
        "bad samples can be left out",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}\n{SHOW}").check()
