"""Damaged files of every format: an error that is meant for users, or samples, never worse."""

import json
import re
import warnings

import numpy as np
import pytest
import soundfile
from tests.data_sets import MAKERS, reader_classes
from tests.mutations import mutate

import penstock as ndd
from penstock.errors import InternalError
from penstock.readers import COCO, NemoAsr, Numpy

TRIALS = 50


def sounds(kind):
    def make(folder):
        file = folder / f"a.{kind}"
        soundfile.write(file, 0.3 * np.sin(np.arange(4000).reshape(-1, 2) / 9), 8000)
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps({"audio_filepath": str(file)}))
        return [file], NemoAsr, {"manifest_filepaths": manifest, "sample_rate": 11025}

    return make


def annotated(folder):
    """Annotations with masks of both kinds."""
    image = {"id": 1, "file_name": "1.jpg", "width": 20, "height": 10}
    (folder / "1.jpg").write_bytes(b"image")
    outlines = [[[1, 1, 9, 1, 9, 9, 1, 8]], {"counts": [3, 5, 9], "size": [10, 20]}]
    objects = [
        {"id": n, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": outline}
        for n, outline in enumerate(outlines)
    ]
    file = folder / "a.json"
    file.write_text(
        json.dumps({"images": [image], "annotations": objects, "categories": [{"id": 1}]})
    )
    return [file], COCO, {"file_root": folder, "annotations_file": file, "pixelwise_masks": True}


def stored(folder):
    _, _, arguments = annotated(folder)
    store = folder / "stored"
    store.mkdir()
    COCO(
        **arguments,
        save_preprocessed_annotations=True,
        save_preprocessed_annotations_dir=store,
    )
    del arguments["annotations_file"]
    return sorted(store.iterdir()), COCO, {**arguments, "preprocessed_annotations": store}


def arrays(folder):
    file = folder / "a.npy"
    np.save(file, np.asfortranarray(np.ones((3, 4), ">f4")))
    window = {"roi_start": [1, 0], "roi_shape": [1, 2], "out_of_bounds_policy": "pad"}
    return [file], Numpy, {"file_root": folder, **window}


def any_of(name):
    def make(folder):
        arguments = MAKERS[name](folder, 3)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return files, reader_classes()[name], arguments

    return make


KINDS = {
    # Files of Lance are read by another library, which makes no such promises.
    **{name: any_of(name) for name in MAKERS if name != "Lance"},
    **{kind: sounds(kind) for kind in ("wav", "flac", "ogg")},
    "masks": annotated,
    "stored": stored,
    "arrays": arrays,
}


def in_digits(content, rng):
    """A number in the text is another one."""
    places = list(re.finditer(rb"\d+", content[:2000]))
    if not places:
        return content
    place = places[rng.integers(len(places))]
    odd = [b"0", b"-1", b"9", b"7777", b"9223372036854775808", b"99999999999999999999", b"1e6"]
    return content[: place.start()] + odd[rng.integers(len(odd))] + content[place.end() :]


def read(kind, arguments, on_error):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = kind(**arguments, on_error=on_error)
        for outputs in reader.next_epoch(batch_size=2):
            found = outputs.values() if isinstance(outputs, dict) else outputs
            for output in found if isinstance(found, tuple) else list(found):
                output.evaluate()


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_are_errors_for_users(tmp_path, name):
    files, kind, arguments = KINDS[name](tmp_path)
    whole = {file: file.read_bytes() for file in files}
    rng = np.random.default_rng(5)
    read(kind, arguments, "raise")
    for trial in range(TRIALS):
        file = files[rng.integers(len(files))]
        change = mutate if trial % 3 else in_digits
        file.write_bytes(change(whole[file], rng))
        for on_error in ("raise", "skip"):
            try:
                read(kind, arguments, on_error)
            except InternalError:
                (tmp_path / "failed").write_bytes(file.read_bytes())
                raise
            except (ValueError, RuntimeError, MemoryError):
                pass
        file.write_bytes(whole[file])
    read(kind, arguments, "raise")


@pytest.mark.parametrize("shape", ["(9223372036854775808, 0)", "(0, 9223372036854775807)"])
@pytest.mark.parametrize("window", [{}, {"roi_start": [0, 0], "roi_end": [0, 0]}])
def test_arrays_without_elements_have_extents_all_the_same(tmp_path, shape, window):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".ljust(118) + "\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\0\x77\0" + text.encode())
    with pytest.raises(OSError, match="more than memory can hold"):
        [o.evaluate() for [o] in Numpy(file_root=tmp_path, **window).next_epoch()]
    left = Numpy(file_root=tmp_path, on_error="skip", **window)
    assert list(left.next_epoch(batch_size=1)) == []
    assert len(left.errors) == 1


def test_names_that_are_no_utf8_are_names(tmp_path):
    folder = bytes(tmp_path)
    odd = folder + b"/\xff\xfe"
    with open(odd + b".json", "wb") as manifest:
        manifest.write(b'{"audio_filepath": "' + odd + b'.wav"}\n')
    with open(odd + b".wav", "wb") as file:
        soundfile.write(file, np.zeros(10), 8000, format="wav")
    assert len(list(NemoAsr(manifest_filepaths=odd + b".json").next_epoch())) == 1
    missing = [odd + b".json", folder + b"/no\xff.json"]
    reader = NemoAsr(manifest_filepaths=missing, on_error="skip", last_batch="partial")
    assert [outputs[0].batch_size for outputs in reader.next_epoch(batch_size=2)] == [1]
    assert "no\ufffd.json" in reader.errors[0].file
    for make in (
        lambda: ndd.readers.File(files=[odd]),
        lambda: ndd.readers.File(file_list=odd),
        lambda: ndd.readers.File(file_root=odd),
        lambda: ndd.readers.Numpy(files=[odd]),
        lambda: ndd.readers.Numpy(file_list=odd),
        lambda: ndd.readers.COCO(file_root=odd, annotations_file=odd),
        lambda: ndd.readers.COCO(file_root=odd, preprocessed_annotations=odd),
        lambda: ndd.readers.Caffe(path=odd),
        lambda: ndd.readers.MXNet(path=odd, index_path=odd),
        lambda: ndd.readers.MXNet(path=odd),
        lambda: ndd.readers.Webdataset(paths=odd, ext="x"),
        lambda: ndd.io.file.read(odd),
        lambda: ndd.imread(odd),
    ):
        with pytest.raises((OSError, ValueError), match="o such file"):
            evaluate_all(make())


def evaluate_all(made):
    if isinstance(made, ndd.readers.Reader):
        made = [output for outputs in made.next_epoch() for output in outputs]
    for output in made if isinstance(made, list) else [made]:
        output.evaluate()
