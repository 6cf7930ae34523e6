"""`readers.COCO` against DALI, on many kinds of annotation files."""

from __future__ import annotations

import copy
import json
import tempfile

import numpy as np
import pytest
from pycocotools import mask as coco_masks

import penstock
from tests.conformance.case import Raised
from tests.conformance.on_purpose import Differs, assert_refused_alike
from tests.conformance.oracle import assert_same, oracle, ours

EXCUSED: dict[str, str] = {}


def box(x0, y0, x1, y1):
    return [x0, y0, x1, y0, x1, y1, x0, y1]


def annotation(image, category, sides, outline, crowd=0, **more):
    return {
        "id": 1,
        "image_id": image,
        "category_id": category,
        "bbox": sides,
        "iscrowd": crowd,
        "area": 1.5,
        "segmentation": outline,
        **more,
    }


ANNOTATIONS = {
    "info": {"year": [1, {"x": None}], "text": 'a "quoted" [text}'},
    "images": [
        {"id": 30, "file_name": "b.jpg", "width": 20, "height": 10, "flickr": "x]"},
        {"id": 10, "file_name": "a.jpg", "width": 12, "height": 16},
        {"id": 20, "file_name": "c.jpg", "width": 8, "height": 8},
        {"id": 5, "file_name": "e.jpg", "width": 30, "height": 30},
    ],
    "categories": [{"id": 7, "name": "x"}, {"id": 3}, {"id": 90}],
    "annotations": [
        annotation(10, 3, [1, 2, 5, 6], [box(1, 2, 6, 8), [7, 7, 9, 7, 9, 9]]),
        annotation(30, 7, [1.5, 2.25, 0.05, 6], [box(1, 2, 6, 8)]),
        annotation(30, 90, [0, 0, 10, 5], [[0.5, 0.5, 10.25, 0, 10, 5.5, 0, 5]]),
        annotation(
            30, 7, [2, 1, 10.13, 5.77], {"counts": [20, 5, 5, 5, 5, 160], "size": [10, 20]}, 1
        ),
        annotation(20, 7, [0, 0, 4, 4], {"counts": [0, 4, 4, 4, 4, 48], "size": [8, 8]}, 1),
        annotation(10, 90, [3e0, 3.0, 8, 0.9e1], [[3.3, 3.1, 11.2, 2.9, 8.7, 14.6, 3, 12]]),
    ],
}


def changed(change):
    """The annotations with a change."""
    made = copy.deepcopy(ANNOTATIONS)
    change(made)
    return made


def of(index, where="annotations", **more):
    return changed(lambda made: made[where][index].update(more))


def without(index, key, where="annotations"):
    return changed(lambda made: made[where][index].pop(key))


def one_image(*annotations, categories=(1, 2, 3), width=12, height=4):
    return {
        "images": [{"id": 1, "file_name": "a.jpg", "width": width, "height": height}],
        "categories": [{"id": id} for id in categories],
        "annotations": [annotation(1, *item) for item in annotations],
    }


ANY = [0, 0, 5, 5]


def runs(x0, x1, width=12, height=4):
    return {"counts": [x0 * height, (x1 - x0) * height, (width - x1) * height], "size": [4, 12]}


def squeezed(mask):
    made = coco_masks.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"counts": made["counts"].decode(), "size": [int(n) for n in made["size"]]}


def drawn():
    """Random polygons and masks on a larger image."""
    rng = np.random.default_rng(5)
    items = []
    for number in range(40):
        x, y = rng.random(2) * [90, 60]
        angles = np.sort(rng.random(rng.integers(3, 12)) * 2 * np.pi)
        radii = rng.random(len(angles)) * 25 + 1
        corners = np.stack([x + radii * np.cos(angles), y + radii * np.sin(angles)], 1)
        outline = [[round(float(c), 2) for c in corners.ravel()]]
        items.append((number % 9 + 1, [x, y, 9, 9], outline))
    return one_image(*items, categories=range(1, 10), width=90, height=60)


def drawn_masks():
    rng = np.random.default_rng(6)
    masks = [np.kron(rng.random((5, 9)) < 0.5, np.ones((7, 11))) for _ in range(6)]
    items = [(n + 1, ANY, squeezed(mask), 1) for n, mask in enumerate(masks)]
    return one_image(*items, categories=range(1, 7), width=99, height=35)


CASES = {
    "all": ANNOTATIONS,
    "reversed": {key: ANNOTATIONS[key] for key in reversed(ANNOTATIONS)},
    "no_categories": {k: v for k, v in ANNOTATIONS.items() if k != "categories"},
    "no_annotations": {k: v for k, v in ANNOTATIONS.items() if k != "annotations"},
    "empty_annotations": {**ANNOTATIONS, "annotations": []},
    "two_of_an_id": changed(
        lambda made: made["images"].append(
            {"id": 10, "file_name": "f.jpg", "width": 5, "height": 5}
        )
    ),
    "unknown_image": of(0, image_id=999),
    "unknown_category": of(0, category_id=999),
    "no_box": without(0, "bbox"),
    "no_crowd": without(0, "iscrowd"),
    "no_outline": without(0, "segmentation"),
    "null_outline": of(0, segmentation=None),
    "empty_outline": of(0, segmentation=[[]]),
    "negative_box": of(0, bbox=[-5, -5, -1, 3]),
    "negative_ids": changed(lambda made: made["images"][2].update(id=-4)),
    "many_crowds": of(0, iscrowd=2),
    "category_twice": changed(lambda made: made["categories"].insert(1, {"id": 7})),
    "polygons_up": one_image((1, ANY, [box(0, 0, 6, 4)]), (3, ANY, [box(4, 0, 9, 4)])),
    "polygons_down": one_image((3, ANY, [box(0, 0, 6, 4)]), (1, ANY, [box(4, 0, 9, 4)])),
    "runs_and_polygons": one_image((3, ANY, runs(0, 6), 1), (1, ANY, [box(4, 0, 9, 4)])),
    "overlap": one_image((1, ANY, [box(0, 0, 6, 4), box(4, 1, 8, 3)]), (1, ANY, [box(7, 0, 9, 2)])),
    "outside": one_image((1, ANY, [[-3, -3, 20, -2, 20, 2, -3, 2]])),
    "two_points": one_image((1, ANY, [[1, 1, 5, 3]]), (2, ANY, [[1, 1]])),
    "short_runs": one_image((1, ANY, {"size": [4, 12], "counts": [4, 4]}, 1)),
    "runs_without_crowd": one_image((1, ANY, runs(2, 5))),
    "drawn": drawn(),
}


@pytest.fixture(scope="module")
def root(make_folder):
    """A folder with images, and an annotation file for each case."""
    root = make_folder("coco")
    for name in ("a", "b", "c", "e", "f"):
        (root / f"{name}.jpg").write_text(name * 5)
    for name, made in CASES.items():
        (root / f"{name}.json").write_text(json.dumps(made, indent=1 if name == "all" else None))
    return str(root)


SHOW = """
import warnings
warnings.simplefilter("ignore")
def show(file="all", **arguments):
    if file:
        arguments["annotations_file"] = f"{root}/{file}.json"
    reader = ndd.readers.COCO(file_root=root, **arguments)
    found = []
    for outputs in reader.next_epoch():
        source = bytes(np.asarray(ndd.get_property(outputs[0], key="source_info"))).decode()
        found.append((source, outputs))
    return found, reader.get_metadata()
"""

CALLS = [
    "",
    "ltrb=True",
    "ratio=True",
    "ratio=True, ltrb=True",
    "skip_empty=True",
    "image_ids=True",
    "include_iscrowd=False, skip_empty=True, image_ids=True",
    "size_threshold=5.0",
    "size_threshold=0, skip_empty=True",
    "avoid_class_remapping=True",
    "images=['b.jpg', 'nope.jpg', 'a.jpg', 'b.jpg', 'e.jpg']",
    "images=['b.jpg', 'e.jpg'], skip_empty=True",
    "images='c.jpg'",
    "images=[]",
    "polygon_masks=True",
    "polygon_masks=True, ratio=True, image_ids=True",
    "polygon_masks=True, include_iscrowd=False",
    "masks=True",
    "pixelwise_masks=True",
    "pixelwise_masks=True, image_ids=True, include_iscrowd=False",
    "pixelwise_masks=True, avoid_class_remapping=True, ltrb=True",
    "save_img_ids=1",
    "num_shards=2, shard_id=1, pad_last_batch=True",
    "lazy_init=True",
]


@pytest.mark.parametrize("call", CALLS)
def test_samples_are_those_of_dali(root, call):
    assert_same(f"{SHOW}\nshow({call})", root=root)


PAINTED = "[outputs for name, outputs in show({!r}, pixelwise_masks=True, image_ids=True)[0]{}]"
OF_F = " if name == 'f.jpg'"
NOT_OF_F = " if name != 'f.jpg'"

DIFFERS = [
    *(
        Differs(
            PAINTED.format(case, ""),
            PAINTED.format("empty_outline", ""),
            "an object without an outline is not painted, others are; DALI paints none",
        )
        for case in ("no_outline", "null_outline")
    ),
    Differs(
        f"[np.asarray(outputs[3])[:, :, 0] for outputs in {PAINTED.format('two_of_an_id', OF_F)}]",
        "[np.int32([[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 2, 2, 2, 2], [0, 2, 2, 3, 3],"
        " [0, 2, 2, 3, 3]])]",
        "outlines that reach beyond the image are painted as the tools of COCO do",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(root, case):
    case.after(f"root = {root!r}\n{SHOW}").check()


PAINTED_OTHERWISE = {"no_outline", "null_outline", "two_of_an_id"}


@pytest.mark.parametrize("case", CASES)
def test_odd_annotations_are_read_as_in_dali(root, case):
    assert_same(f"{SHOW}\nshow({case!r}, polygon_masks=True, image_ids=True)", root=root)


@pytest.mark.parametrize("case", sorted(CASES.keys() - PAINTED_OTHERWISE))
def test_odd_annotations_are_painted_as_in_dali(root, case):
    assert_same(f"{SHOW}\nshow({case!r}, pixelwise_masks=True, image_ids=True)", root=root)


def test_other_images_are_painted_as_in_dali(root):
    assert_same(f"{SHOW}\n{PAINTED.format('two_of_an_id', NOT_OF_F)}", root=root)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_outlines_beyond_the_image_are_painted_as_the_tools_of_coco_do():
    expected = np.zeros((5, 5), np.int32)
    for item in CASES["two_of_an_id"]["annotations"]:
        if item["image_id"] == 10:
            label = [7, 3, 90].index(item["category_id"]) + 1
            painted = coco_masks.decode(
                coco_masks.merge(coco_masks.frPyObjects(item["segmentation"], 5, 5))
            )
            expected = np.maximum(expected, label * painted)
    assert expected[2:].tolist() == [[0, 2, 2, 2, 2], [0, 2, 2, 3, 3], [0, 2, 2, 3, 3]]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_masks_that_the_tools_of_coco_wrote_are_painted_as_they_do(tmp_path):
    """DALI omits the end of a mask that reaches the last pixel."""
    made = drawn_masks()
    (tmp_path / "a.jpg").write_text("a")
    (tmp_path / "all.json").write_text(json.dumps(made))
    expected = np.zeros((35, 99), np.int32)
    for item in made["annotations"]:
        runs = item["segmentation"]
        painted = coco_masks.decode({"size": runs["size"], "counts": runs["counts"].encode()})
        expected[painted > 0] = item["category_id"]
    reader = penstock.readers.COCO(
        file_root=tmp_path, annotations_file=tmp_path / "all.json", pixelwise_masks=True
    )
    [outputs] = reader.next_epoch()
    assert (np.asarray(outputs[3])[:, :, 0] == expected).all()


def test_batches_are_those_of_dali(root):
    source = """
reader = ndd.readers.COCO(file_root=root, annotations_file=f"{root}/all.json", image_ids=True)
[list(reader.next_epoch(batch_size=3)) for _ in range(3)]
"""
    assert_same(source, root=root)


STORED = """
import os, tempfile
folder = tempfile.mkdtemp()
arguments = dict(annotations_file=f"{root}/all.json", image_ids=True, file_root=root, **extra)
store = dict(save_preprocessed_annotations=True, save_preprocessed_annotations_dir=folder)
list(ndd.readers.COCO(**arguments, **store).next_epoch())
{name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}
"""


@pytest.mark.parametrize(
    "extra",
    [{}, {"polygon_masks": True}, {"pixelwise_masks": True}, {"ratio": True, "ltrb": True}],
    ids=str,
)
def test_stored_annotations_are_exchanged_with_dali(
    root, extra, make_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs, mine = (side.run(STORED, root=root, extra=extra) for side in (oracle, ours))
    assert not isinstance(theirs, Raised), theirs
    assert theirs == mine
    assert theirs
    folder = make_folder("coco-stored")
    for name, data in theirs.items():
        (folder / name).write_bytes(data)
    masks = ", ".join(f"{key}=True" for key in extra if key.endswith("masks"))
    call = f"show('', preprocessed_annotations='{folder}', image_ids=True, {masks})"
    assert_same(f"{SHOW}\n{call}", root=root)


REFUSED = [
    "file=''",
    "file='nope'",
    "pixelwise_masks=True, polygon_masks=True",
    "images=['nope.jpg']",
    "save_preprocessed_annotations=True",
    "save_preprocessed_annotations_dir=root",
    "save_preprocessed_annotations=True, save_preprocessed_annotations_dir=root + '/nope'",
    "preprocessed_annotations=root",
    "file='', preprocessed_annotations=root + '/nope'",
    "file='', preprocessed_annotations=root, ratio=True",
    "foo=1",
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_dali_refuses_is_refused(root, call):
    source = f"{SHOW}\nshow({call})"
    assert_refused_alike(source, root=root)
