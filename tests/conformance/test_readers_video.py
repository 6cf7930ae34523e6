"""The reader of videos against DALI's, for the codecs that DALI decodes without a GPU."""

from __future__ import annotations

import pytest

from tests import videos
from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same
from tests.conformance.test_video import drift

EXCUSED: dict[str, str] = {}

FILES = ["vp9.webm", "vp9-vfr.webm", "vp9-late.webm", "vp9-one.webm", "vp8.webm", "mjpeg.avi"]
LISTS = {
    "frames": "{vp9} 3 10 20\n\n{vp8} 0 0 -5 and more\n{vp9}\t7\t5.4   17.6\n",
    "seconds": "{vp9} 3 0.1 0.5\n{vfr} 1 0.2 0.8\n",
    "late": "{late} 3 2.4 2.8\n",
    "whole": "{vp9} 3\n{vp8} 1\n",
    "equal": "{vp9} 3 5 5\n{vp8} 1 2 6\n",
    "start only": "{vp9} 3 25\n",
    "far": "{vp9} 3 20 90\n",
    "no label": "{vp9}\n",
    "negative label": "{vp9} -1\n",
}


@pytest.fixture(scope="module")
def root(make_folder):
    """A folder with videos, folders of videos, and lists."""
    root = make_folder("videos")
    videos.save(root, *FILES)
    videos.save(root / "tree/b", "vp9.webm", "vp8.webm")
    videos.save(root / "tree/a", "mjpeg.avi")
    videos.save(root / "tree", "vp9-one.webm")
    (root / "bad.webm").write_bytes(b"not a video" * 50)
    names = {"vp9": "vp9.webm", "vp8": "vp8.webm", "vfr": "vp9-vfr.webm", "late": "vp9-late.webm"}
    for name, text in LISTS.items():
        lines = text.format(**{key: f"{root}/{file}" for key, file in names.items()})
        (root / f"{name.replace(' ', '-')}.txt").write_text(lines)
    return str(root)


READ = """
def read(**arguments):
    for key in ("filenames", "file_list", "file_root"):
        given = arguments.get(key)
        if isinstance(given, str):
            arguments[key] = f"{root}/{given}"
        elif given:
            arguments[key] = [f"{root}/{name}" for name in given]
    reader = ndd.experimental.readers.Video(**arguments)
    return list(reader.next_epoch()), reader.get_metadata()
"""

ALL = "enable_frame_num='sequence', enable_timestamps=True"

CALLS = [
    "filenames='vp9.webm', sequence_length=10",
    f"filenames='vp9.webm', sequence_length=30, {ALL}",
    f"filenames=['vp9.webm', 'vp8.webm'], sequence_length=7, {ALL}",
    f"filenames=['vp9.webm', 'vp8.webm'], labels=[4, -2], sequence_length=7, {ALL}",
    "filenames='vp9.webm', sequence_length=5, enable_frame_num='scalar'",
    "filenames='vp9.webm', sequence_length=5, enable_frame_num=True",
    "filenames='vp9.webm', sequence_length=5, enable_frame_num=False",
    "filenames='vp9.webm', sequence_length=5, enable_frame_num='none'",
    f"filenames='vp9.webm', sequence_length=4, stride=3, {ALL}",
    f"filenames='vp9.webm', sequence_length=10, stride=3, step=1, {ALL}",
    f"filenames='vp9.webm', sequence_length=9, stride=3, step=1, {ALL}",
    f"filenames='vp9.webm', sequence_length=8, step=11, {ALL}",
    f"filenames='vp9.webm', sequence_length=1, step=29, {ALL}",
    f"filenames='vp9-vfr.webm', sequence_length=6, {ALL}",
    f"filenames='vp9-late.webm', sequence_length=6, {ALL}",
    f"filenames='vp9-one.webm', sequence_length=1, {ALL}",
    *(
        f"filenames='vp9.webm', sequence_length=8, pad_mode='{mode}', {ALL}"
        for mode in ("constant", "edge", "reflect_1001", "reflect_101")
    ),
    *(
        f"filenames='vp9.webm', sequence_length=7, stride=5, pad_mode='{mode}', {ALL}"
        for mode in ("repeat", "symmetric", "reflect")
    ),
    f"filenames='vp9.webm', sequence_length=8, step=3, pad_mode='edge', {ALL}",
    f"filenames='vp9.webm', sequence_length=40, pad_mode='constant', fill_value=9, {ALL}",
    f"filenames='vp9.webm', sequence_length=40, pad_mode='constant', fill_value=[9, 8, 7], {ALL}",
    f"filenames='vp9-one.webm', sequence_length=4, pad_mode='reflect_101', {ALL}",
    *(
        f"filenames='vp9.webm', sequence_length={length}, uniform_sample=True, {ALL}"
        for length in (1, 4, 29, 30, 45)
    ),
    f"file_root='tree', sequence_length=15, {ALL}",
    f"file_list='whole.txt', sequence_length=15, {ALL}",
    *(
        f"file_list='frames.txt', file_list_format='frames', sequence_length=3, {rounding}{ALL}"
        for rounding in (
            "",
            "file_list_rounding='start_down_end_up', ",
            "file_list_rounding='start_up_end_down', ",
            "file_list_rounding='all_up', ",
            "file_list_rounding='all_down', ",
        )
    ),
    f"file_list='frames.txt', file_list_format='frames', sequence_length=4, "
    f"uniform_sample=True, {ALL}",
    f"file_list='frames.txt', file_list_format='frames', sequence_length=4, pad_mode='edge', {ALL}",
    f"file_list='seconds.txt', sequence_length=2, {ALL}",
    f"file_list='equal.txt', file_list_format='frames', sequence_length=2, {ALL}",
    f"filenames=['vp9.webm', 'bad.webm'], sequence_length=15, {ALL}",
    f"filenames='vp9.webm', sequence_length=6, num_shards=2, shard_id=1, {ALL}",
    f"filenames='vp9.webm', sequence_length=6, num_shards=2, pad_last_batch=True, {ALL}",
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", CALLS)
def test_clips_are_those_of_dali(root, call):
    assert_same(f"{READ}\nread({call})", root=root, tol=1e-9)


@pytest.mark.parametrize("name", videos.BY_DALI)
def test_files_are_decoded_as_by_dali(make_folder, name):
    folder = make_folder("videos")
    videos.save(folder, name)
    source = f"{READ}\nread(filenames={name!r}, sequence_length=1, step=7, {ALL})"
    # In odd sizes, DALI's chroma drifts; `test_video.py` shows that this is all.
    tolerance = drift(name) + 1 if "odd" in name else 1
    assert_same(source, root=str(folder), tol=tolerance)


REFUSED = [
    "sequence_length=3",
    "filenames='vp9.webm'",
    "filenames='vp9.webm', file_root='tree', sequence_length=3",
    "filenames='vp9.webm', labels=[1, 2], sequence_length=3",
    "file_root='tree', labels=[1, 2], sequence_length=3",
    "filenames='vp9.webm', sequence_length=3, pad_mode='mirror'",
    "filenames='vp9.webm', sequence_length=3, pad_mode='constant', fill_value=[1, 2]",
    "filenames='vp9.webm', sequence_length=3, pad_mode='constant', fill_value=300",
    "filenames='vp9.webm', sequence_length=3, enable_frame_num='all'",
    "filenames='vp9.webm', sequence_length=31",
    "filenames='bad.webm', sequence_length=1",
    "file_list='no-label.txt', sequence_length=3",
    "file_list='negative-label.txt', sequence_length=3",
    "file_list='frames.txt', sequence_length=3, file_list_format='ticks'",
    "file_list='frames.txt', sequence_length=3, file_list_rounding='up'",
    "file_list='nowhere.txt', sequence_length=3",
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", REFUSED)
def test_what_dali_refuses_is_refused(root, call):
    assert_refused(f"root = {root!r}\n{READ}\nread({call})")


def read(arguments):
    return f"{READ}\nread({arguments}, {ALL})[0]"


DIFFERS = [
    Differs(
        read("file_list='start-only.txt', file_list_format='frames', sequence_length=5"),
        f"{READ}\nread(filenames='vp9.webm', labels=[3], sequence_length=5, {ALL})[0][5:]",
        "a line with a start is up to the end of the video",
    ),
    Differs(
        read("file_list='late.txt', sequence_length=3, file_list_times='pts'"),
        f"{READ}\nread(filenames='vp9-late.webm', labels=[3], sequence_length=3, step=1, {ALL})"
        "[0][10:19:3]",
        "DALI has no such argument",
    ),
    Differs(
        f"{READ}\nread(filenames='vp9.webm', labels=[], sequence_length=15)[0]",
        f"{READ}\nread(filenames='vp9.webm', labels=[0], sequence_length=15)[0]",
        "labels of none are 0, 1, 2 and so on",
    ),
    Differs(
        f"{READ}\nread(filenames='vp9.webm', sequence_length=0)",
        "ValueError",
        "DALI fills the memory",
        ask=False,
    ),
    Differs(
        f"{READ}\nread(filenames='vp9.webm', sequence_length=3, stride=0)",
        "ValueError",
        "DALI fills the memory",
        ask=False,
    ),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}").check()
