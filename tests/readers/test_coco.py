"""`readers.COCO`: what DALI gets wrong or does not say, broken files, restoring."""

import inspect
import json

import numpy as np
import pycocotools.coco
import pytest

import penstock as ndd
from penstock.readers import COCO


def annotations(images=7):
    return {
        "images": [
            {"id": n, "file_name": f"{n}.jpg", "width": 12, "height": 4} for n in range(images)
        ],
        "categories": [{"id": 5}, {"id": 6}],
        "annotations": [
            {"image_id": n, "category_id": 5 + n % 2, "bbox": [n, 0, 3, 3], "iscrowd": 0}
            for n in range(images)
            for _ in range(n)
        ],
    }


@pytest.fixture
def make(tmp_path):
    """Makes a reader of a change of the annotations, or of a text."""
    for number in range(7):
        (tmp_path / f"{number}.jpg").write_bytes(bytes([number]) * 3)

    def make(change=None, text=None, **arguments):
        made = annotations()
        if change is not None:
            change(made)
        (tmp_path / "a.json").write_text(json.dumps(made, indent=1) if text is None else text)
        return COCO(file_root=tmp_path, annotations_file=tmp_path / "a.json", **arguments)

    return make


def given(outputs):
    return [np.asarray(output).tolist() for output in outputs]


def mask(*objects):
    def change(made):
        made["images"] = made["images"][:1]
        made["annotations"] = [
            {"image_id": 0, "category_id": 5, "bbox": [0, 0, 4, 4], "segmentation": item}
            for item in objects
        ]

    return change


def painted(reader):
    [outputs] = reader.next_epoch()
    return np.asarray(outputs[3])[0, :, 0].tolist()


def test_every_argument_is_documented():
    for name in inspect.signature(COCO).parameters:
        assert f"    {name}: " in COCO.__doc__, name


def test_all_masks_of_a_label_are_painted(make):
    """DALI keeps the last one that came as runs, or those that are polygons."""
    runs = [{"counts": [start * 4, 4], "size": [4, 12]} for start in (0, 3)]
    polygon = [[8, 0, 10, 0, 10, 4, 8, 4]]
    reader = make(mask(*runs, polygon), pixelwise_masks=True)
    assert painted(reader) == [1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"counts": [4, 400], "size": [4, 12]}, "more pixels"),
        ({"counts": [4, 4], "size": [12, 4]}, "mask of 12 x 4 pixels"),
        ([[0, 0, 1e9, 0, 5, 5]], "far outside"),
    ],
)
def test_masks_that_do_not_fit_are_errors_of_their_sample(make, item, problem):
    reader = make(mask(item), pixelwise_masks=True)
    with pytest.raises(RuntimeError, match=problem):
        painted(reader)


def test_images_with_one_name_have_objects_of_their_own(make):
    def change(made):
        made["images"][1]["file_name"] = "2.jpg"

    counts = [len(np.asarray(outputs[2])) for outputs in make(change).next_epoch()]
    assert counts == list(range(7))


def test_large_ids_are_fine_until_they_are_asked_for(make):
    def change(made):
        made["images"][6]["id"] = 2**40

    reader = make(change)
    assert len(list(reader.next_epoch())) == 7
    last = list(make(change, image_ids=True).next_epoch())[-1]
    with pytest.raises(RuntimeError, match="1099511627776 does not fit"):
        given(last)


def test_a_byte_order_mark_is_no_mistake(make):
    assert len(list(make(text="\ufeff" + json.dumps(annotations())).next_epoch())) == 7


def wrong(key, value, where="annotations"):
    return lambda made: made[where][3].update({key: value})


def missing(key, where="annotations"):
    return lambda made: made[where][3].pop(key)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (wrong("bbox", [1, 2, 3]), r"line \d+, byte \d+: `bbox` must have 4 numbers, not 3"),
        (wrong("bbox", [1, 2, 3, 4, 5]), "`bbox` must have 4 numbers, not 5"),
        (wrong("bbox", "x"), "a list should be here, not '\"'"),
        (wrong("bbox", [1, 2, 3, "4"]), "a number should be here"),
        (wrong("image_id", 1.5), "a whole number should be here, not 1.5"),
        (wrong("image_id", "1"), "a number should be here"),
        (wrong("category_id", 2**40), "does not fit into 32 bits"),
        (missing("image_id"), "has no `image_id`"),
        (missing("category_id"), "has no `category_id`"),
        (missing("file_name", "images"), "image 3 has no `file_name`"),
        (missing("id", "images"), "the image has no `id`"),
        (wrong("width", -3, "images"), "`width` -3 can't be the size"),
        (wrong("segmentation", [[1, 2, 3]]), "an x without a y"),
        (wrong("segmentation", {"counts": [1]}), "no `size`"),
        (wrong("segmentation", {"size": [4, 12]}), "no `counts`"),
        (wrong("segmentation", {"size": [4, 12], "counts": "\x7f"}), "the character"),
        (wrong("segmentation", {"size": [4, 12], "counts": [-1]}), "a count of -1"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(make, change, problem):
    with pytest.raises(ValueError, match=problem):
        make(change, pixelwise_masks=True)


def test_a_text_cut_anywhere_is_an_error(make):
    text = json.dumps(annotations(3))
    for end in range(0, len(text) - 1, 7):
        with pytest.raises(ValueError, match=r"a\.json: line 1, byte \d+"):
            make(text=text[:end], polygon_masks=True)
    for odd in (text + "x", text[:-1] + ",}", "[]", "", "null"):
        with pytest.raises(ValueError, match=r"a\.json: line 1, byte \d+"):
            make(text=odd)


def test_sizes_are_needed_where_they_are_used(make):
    assert len(list(make(missing("width", "images")).next_epoch())) == 7
    for argument in ("ratio", "pixelwise_masks"):
        with pytest.raises(ValueError, match="image 3 has no `width`"):
            make(missing("width", "images"), **{argument: True})


def test_old_names_warn(make):
    with pytest.warns(DeprecationWarning, match="use `image_ids`"):
        reader = make(save_img_ids=True)
    assert len(next(reader.next_epoch())) == 4


def test_stored_annotations_that_lack_something_are_an_error(make, tmp_path):
    stored = tmp_path / "stored"
    stored.mkdir()
    save = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": stored}
    expected = [given(outputs) for outputs in make(**save).next_epoch()]
    reader = COCO(file_root=tmp_path, preprocessed_annotations=stored)
    assert [given(outputs) for outputs in reader.next_epoch()] == expected
    for lacking, file, arguments in (
        (["polygon_masks"], "polygon_data", "`polygon_masks`"),
        (["pixelwise_masks"], "polygon_data", "`pixelwise_masks`"),
        (["image_ids"], "original_ids", "`image_ids`"),
        (["polygon_masks", "image_ids"], "polygon_data", "`polygon_masks` and `image_ids`"),
    ):
        text = rf"{file}\.dat: there is no such file; {arguments} must have been given when the"
        with pytest.raises(ValueError, match=text):
            COCO(
                file_root=tmp_path,
                preprocessed_annotations=stored,
                **dict.fromkeys(lacking, True),
            )
    for name in ("boxes.dat", "labels.dat", "offsets.dat", "counts.dat"):
        good = (stored / name).read_bytes()
        for bad in (b"", good[:-1], good + b"\0" * 4, b"\xff" * len(good)):
            (stored / name).write_bytes(bad)
            with pytest.raises(ValueError, match=r"\.dat") as caught:
                COCO(file_root=tmp_path, preprocessed_annotations=stored)
            assert "must have been given" not in str(caught.value), "nothing was asked for"
        (stored / name).write_bytes(good)


def test_bad_images_are_left_out_with_their_objects(make, tmp_path):
    reader = make(on_error="skip")
    (tmp_path / "3.jpg").unlink()
    [outputs] = reader.next_epoch(batch_size=7)
    assert [len(np.asarray(label)) for label in outputs[2]] == [0, 1, 2, 4, 5, 6]
    assert [error.file for error in reader.errors] == ["3.jpg"]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("shards", [1, 2])
def test_a_state_taken_at_any_step_goes_on_from_there(make, shuffle, shards):
    arguments = {"image_ids": True, "random_shuffle": shuffle, "seed": 3, "num_shards": shards}

    def stream(reader, epochs=3):
        for _ in range(epochs):
            for outputs in reader.next_epoch(batch_size=2):
                yield [given(output) for output in outputs]

    whole = list(stream(make(**arguments), 8))
    for step in range(1, 6):
        reader = make(**arguments)
        first = stream(reader)
        for _ in range(step):
            next(first)
        state = reader.get_state()
        other = make(**arguments)
        other.set_state(state)
        rest = list(stream(other, 2))
        assert rest == whole[step : step + len(rest)], step


def test_another_data_set_is_noticed(make):
    reader = make()
    next(reader.next_epoch())
    state = reader.get_state()
    other = make(wrong("bbox", [9, 9, 9, 9]))

    def resume():
        other.set_state(state)
        next(other.next_epoch())

    with pytest.raises((ValueError, RuntimeError), match="data set"):
        resume()


def with_keypoints(made):
    """Objects of two categories, with keypoints of different numbers, or none."""
    rng = np.random.default_rng(7)
    for number, item in enumerate(made["annotations"]):
        item["id"] = 900_100_000_000 + 3 * number
        if number % 4 != 3:
            points = rng.integers(0, 12, (3 + number % 2, 3))
            points[:, 2] %= 3
            item["keypoints"] = points.ravel().tolist()


@pytest.mark.parametrize("ratio", [False, True])
def test_keypoints_and_ids_are_those_of_pycocotools(make, tmp_path, ratio):
    reader = make(with_keypoints, keypoints=True, annotation_ids=True, image_ids=True, ratio=ratio)
    reference = pycocotools.coco.COCO(str(tmp_path / "a.json"))
    count = 0
    for *_, image, keypoints, ids in reader.next_epoch():
        assert (keypoints.dtype, ids.dtype) == (ndd.float32, ndd.int64)
        expected = reference.loadAnns(reference.getAnnIds(imgIds=[image[0].item()]))
        assert np.asarray(ids).tolist() == [item["id"] for item in expected]
        assert keypoints.shape == (len(expected), 4, 3)
        for found, item in zip(np.asarray(keypoints), expected, strict=True):
            points = np.zeros((4, 3), np.float32)
            given = np.float32(item.get("keypoints", [])).reshape(-1, 3)
            points[: len(given)] = given
            if ratio:
                points[:, :2] /= np.float32([12, 4])
            np.testing.assert_array_equal(found, points)
            count += 1
    assert count == 21


def test_keypoints_come_after_all_outputs_that_dali_has(make):
    arguments = {"polygon_masks": True, "image_ids": True}
    plain = [given(outputs) for outputs in make(with_keypoints, **arguments).next_epoch()]
    more = make(with_keypoints, keypoints=True, annotation_ids=True, **arguments)
    for expected, outputs in zip(plain, more.next_epoch(), strict=True):
        assert given(outputs)[:-2] == expected
        assert len(outputs) == 8
    for option in ("keypoints", "annotation_ids"):
        assert len(next(make(with_keypoints, **{option: True}).next_epoch())) == 4


def test_objects_that_do_not_count_have_no_keypoints(make):
    def change(made):
        with_keypoints(made)
        for number, item in enumerate(made["annotations"]):
            item["iscrowd"] = int(number % 3 == 0)
            if number % 5 == 0:
                item["bbox"] = [0, 0, 0, 0]

    reader = make(change, keypoints=True, annotation_ids=True, include_iscrowd=False)
    [(*_, keypoints, ids)] = reader.next_epoch(batch_size=7)
    made = annotations()
    change(made)
    kept = [a for n, a in enumerate(made["annotations"]) if n % 3 and n % 5]
    assert np.concatenate([np.asarray(i) for i in ids]).tolist() == [a["id"] for a in kept]
    every = np.concatenate([np.asarray(points) for points in keypoints])
    for found, item in zip(every, kept, strict=True):
        expected = item.get("keypoints", [])
        assert found.ravel()[: len(expected)].tolist() == expected
        assert not found.ravel()[len(expected) :].any()


def test_a_member_that_comes_twice_counts_once(make):
    last = '"keypoints": [1, 2, 2]'
    text = json.dumps(annotations(2)).replace('"iscrowd": 0', last)
    twice = text.replace(last, f'"keypoints": [9, 9, 1, 9, 9, 1], {last}')
    for each in (text, twice):
        *_, (*_, keypoints) = make(text=each, keypoints=True).next_epoch()
        assert np.asarray(keypoints).tolist() == [[[1, 2, 2]]]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (wrong("keypoints", [1, 2]), r"three numbers per keypoint \(x, y, visibility\), but has 2"),
        (wrong("keypoints", 3), "a list should be here"),
        (wrong("id", 1.5), "a whole number should be here"),
        (missing("id"), "the annotation has no `id`"),
    ],
)
def test_what_is_wrong_with_keypoints_and_ids_is_named(make, change, problem):
    def both(made):
        with_keypoints(made)
        change(made)

    with pytest.raises(ValueError, match=problem):
        make(both, keypoints=True, annotation_ids=True)


def test_keypoints_must_be_there(make):
    with pytest.raises(ValueError, match="no annotation has `keypoints`"):
        make(keypoints=True)


@pytest.mark.parametrize("ratio", [False, True])
def test_keypoints_and_ids_are_stored(make, tmp_path, ratio):
    stored = tmp_path / "stored"
    stored.mkdir()
    wanted = {"keypoints": True, "annotation_ids": True}
    save = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": stored}
    saved = make(with_keypoints, ratio=ratio, **wanted, **save)
    expected = [given(outputs) for outputs in saved.next_epoch()]
    reader = COCO(file_root=tmp_path, preprocessed_annotations=stored, **wanted)
    assert [given(outputs) for outputs in reader.next_epoch()] == expected
    assert len(next(COCO(file_root=tmp_path, preprocessed_annotations=stored).next_epoch())) == 3
    for name in ("keypoints.dat", "annotation_ids.dat"):
        good = (stored / name).read_bytes()
        for bad in (b"", good[:-1], good + b"\0" * 12, b"\xff" * len(good)):
            (stored / name).write_bytes(bad)
            with pytest.raises(ValueError, match=name.replace(".", r"\.")):
                COCO(file_root=tmp_path, preprocessed_annotations=stored, **wanted)
        (stored / name).write_bytes(good)
    (stored / "keypoints.dat").write_bytes(np.uint32(1).tobytes() + bytes(12))
    with pytest.raises(ValueError, match="has 1 keypoints, which is no multiple of the 21 objects"):
        COCO(file_root=tmp_path, preprocessed_annotations=stored, **wanted)
    (stored / "keypoints.dat").unlink()
    with pytest.raises(ValueError, match="`keypoints` and `annotation_ids` must have been given"):
        COCO(file_root=tmp_path, preprocessed_annotations=stored, **wanted)
