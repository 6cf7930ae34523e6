"""What readers say when they are given things that can't be: who says it, of what, and why."""

import bz2
import gzip
import json
import lzma
import re
import wave

import numpy as np
import pytest
import soundfile

import penstock as ndd
from penstock.readers import (
    COCO,
    Caffe,
    Caffe2,
    File,
    MXNet,
    NemoAsr,
    Numpy,
    TFRecord,
    Webdataset,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of classes, which is the current one."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.jpg").write_bytes(b"no picture")
    (tmp_path / "nothing").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


FEATURES = {"x": ndd.tfrecord.FixedLenFeature([], ndd.tfrecord.int64, 0)}

AT_CONSTRUCTION = {
    "file_root that is a number": (
        lambda: File(file_root=3),
        TypeError,
        r"^readers\.File: `file_root` must be a name .*, got 3 \(int\)",
    ),
    "file_list that is a number": (lambda: File(file_list=3), TypeError, "`file_list` must be a"),
    "files that are a number": (lambda: File(files=3), TypeError, "`files` must be a name or"),
    "files that are numbers": (lambda: File(files=[3]), TypeError, r"`files` must be .*, got 3"),
    "no file_root at all": (lambda: File(file_root=""), ValueError, "`file_root` is empty"),
    "no file_root of arrays": (lambda: Numpy(file_root=""), ValueError, "`file_root` is empty"),
    "labels that are texts": (
        lambda: File(files=["a"], labels=["x"]),
        TypeError,
        r"^readers\.File: `labels` must be whole numbers, got 'x' \(str\)",
    ),
    "labels between numbers": (
        lambda: File(files=["a"], labels=[1.5]),
        ValueError,
        r"^readers\.File: `labels` must be whole numbers, got 1\.5",
    ),
    "labels that are not": (
        lambda: File(files=["a"], labels=[float("nan")]),
        TypeError,
        "`labels` must be whole numbers",
    ),
    "labels beyond 32 bits": (
        lambda: File(files=["a"], labels=[2**31]),
        ValueError,
        "`labels` must be numbers of 32 bits",
    ),
    "file_filters": (
        lambda: File(file_root=".", file_filters=3),
        TypeError,
        r"^readers\.File: `file_filters` must be a pattern or a list of them, got 3",
    ),
    "dir_filters": (
        lambda: File(file_root=".", dir_filters=["a", 3]),
        TypeError,
        "`dir_filters` must be a pattern or a list of them, got 3",
    ),
    "file_filter": (
        lambda: Numpy(file_root=".", file_filter=3),
        TypeError,
        r"^readers\.Numpy: `file_filter` must be a pattern, got 3",
    ),
    "file_root of arrays": (lambda: Numpy(file_root=3), TypeError, "`file_root` must be a name"),
    "ext": (
        lambda: Webdataset(ext=3, paths="a"),
        TypeError,
        r"^readers\.Webdataset: `ext` must be an extension or a list of them, got 3",
    ),
    "dtypes": (
        lambda: Webdataset(ext="a", paths="a", dtypes="zz"),
        (TypeError, ValueError),
        r"^readers\.Webdataset: `dtypes`: ",
    ),
    "initial_fill": (
        lambda: File(files=["a"], random_shuffle=True, initial_fill=2**70),
        ValueError,
        r"^readers\.File: `initial_fill` must be a number of up to 64 bits",
    ),
    "device": (
        lambda: File(files=["a"], device="tpu"),
        (TypeError, ValueError),
        r"^readers\.File: `device`: ",
    ),
    "mixed device": (
        lambda: File(files=["a"], device="mixed"),
        (TypeError, ValueError),
        r"^readers\.File: ",
    ),
    "paths of databases": (lambda: Caffe(path=3), TypeError, r"^readers\.Caffe: `path` must be"),
    "a folder without a database": (
        lambda: Caffe(path="nothing"),
        ValueError,
        r"`path` can't be used: nothing/data\.mdb: there is no such file",
    ),
    "a folder without a database of Caffe2": (
        lambda: Caffe2(path="nothing"),
        ValueError,
        r"nothing/data\.mdb: there is no such file",
    ),
    "annotations_file": (
        lambda: COCO(file_root=".", annotations_file=3),
        TypeError,
        r"^readers\.COCO: `annotations_file` must be a name",
    ),
    "images": (
        lambda: COCO(file_root=".", annotations_file="a", images=3),
        TypeError,
        r"^readers\.COCO: `images` must be a name or a list of names, got 3",
    ),
    "size_threshold": (
        lambda: COCO(file_root=".", annotations_file="a", size_threshold="x"),
        TypeError,
        "`size_threshold` must be a number",
    ),
    "manifest_filepaths": (
        lambda: NemoAsr(manifest_filepaths=3),
        TypeError,
        r"^readers\.NemoAsr: `manifest_filepaths` must be a name or a list of names, got 3",
    ),
    "dtype of sounds": (
        lambda: NemoAsr(manifest_filepaths="a", dtype="zz"),
        (TypeError, ValueError),
        r"^readers\.NemoAsr: `dtype`: ",
    ),
    "nothing to read": (
        lambda: TFRecord(features=FEATURES),
        TypeError,
        r"^readers\.TFRecord\(\) missing 1 required keyword-only argument: 'path'",
    ),
    "nothing to read of MXNet": (lambda: MXNet(), TypeError, r"^readers\.MXNet\(\) missing"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("what", AT_CONSTRUCTION)
def test_arguments_that_can_not_be_are_named(what):
    call, error, text = AT_CONSTRUCTION[what]
    with pytest.raises(error) as caught:
        call()
    assert re.search(text, str(caught.value)), caught.value


def test_names_may_be_bytes(folder):
    np.save(folder / "x.npy", np.arange(3))
    for reader in (
        File(file_root=str(folder).encode()),
        File(files=b"a/1.jpg"),
        File(files=[b"1.jpg"], file_root=b"a"),
        Numpy(files=[b"x.npy"]),
    ):
        assert reader.epoch_size == 1
        next(iter(reader.next_epoch()))


@pytest.mark.parametrize("arguments", [{"seed": 2**64 - 1}, {"initial_fill": 2**64 - 1}])
def test_numbers_may_have_64_bits(folder, arguments):
    [(data, _)] = File(file_root=".", random_shuffle=True, **arguments).next_epoch()
    assert data.shape == (10,)


def test_labels_may_be_whole_floats(folder):
    for labels in ([7.0], 7.0, np.float32([7]), np.int64(7), 7):
        [(_, label)] = File(files=["a/1.jpg"], labels=labels).next_epoch()
        assert np.asarray(label).tolist() == [7]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("state", [{}, None, "x", {"other": 1}])
def test_a_dict_that_is_no_state_is_named(state):
    reader = File(file_root=".")
    with pytest.raises(TypeError, match=r"readers\.File: `state_dict` must be what"):
        reader.load_state_dict(state)


@pytest.mark.usefixtures("folder")
def test_a_context_that_is_none_is_refused():
    with pytest.raises(TypeError, match=r"readers\.File: `ctx` must be an EvalContext, got 3"):
        File(file_root=".").next_epoch(ctx=3)


# What is wrong with files


def test_errors_show_the_path_that_was_opened(folder):
    reader = File(files=["a/1.jpg", "a/2.jpg"], file_root=folder)
    (good, _), (bad, _) = reader.next_epoch()
    assert good.source_info == "a/1.jpg"
    with pytest.raises(OSError, match="no such file") as caught:
        bad.evaluate()
    assert f"file: {folder}/a/2.jpg\n" in str(caught.value)
    with pytest.raises(RuntimeError) as caught:
        ndd.decoders.image(good).evaluate()
    assert f"file: {folder}/a/1.jpg\n" in str(caught.value)


def test_errors_of_annotated_images_show_the_path_that_was_opened(folder):
    images = [{"id": 1, "width": 4, "height": 4, "file_name": "missing.jpg"}]
    told = {"images": images, "annotations": [], "categories": []}
    (folder / "told.json").write_text(json.dumps(told))
    [outputs] = COCO(file_root=folder, annotations_file="told.json").next_epoch()
    with pytest.raises(OSError, match=re.escape(f"file: {folder}/missing.jpg\n")):
        outputs[0].evaluate()


def test_errors_of_arrays_show_the_path_that_was_opened(folder):
    (folder / "x.npy").write_bytes(b"")
    [array] = Numpy(file_root=folder).next_epoch()
    with pytest.raises(OSError, match="it is empty") as caught:
        array[0].evaluate()
    assert f"file: {folder}/x.npy\n" in str(caught.value)


def test_advice_is_for_those_that_can_take_it(folder):
    [(data, _)] = File(files=["nope"]).next_epoch()
    with pytest.raises(OSError, match="hint: the reader's `on_error`"):
        data.evaluate()
    with pytest.raises(OSError, match="no such file") as caught:
        ndd.imread("nope").evaluate()
    assert "on_error" not in str(caught.value)
    for on_error in ("skip", "substitute"):
        reader = File(files=["nope"], on_error=on_error, max_errors=0)
        with pytest.raises(RuntimeError, match="max_errors") as caught:
            list(reader.next_epoch())
        assert "hint" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("dtype", ["complex64", "longdouble", "U3"])
def test_types_that_can_not_be_read_are_told_with_those_that_can(folder, dtype):
    np.save(folder / "x.npy", np.zeros(2, dtype))
    [array] = Numpy(files=["x.npy"]).next_epoch()
    with pytest.raises(OSError, match="bool, integers and floats of up to 64 bits can be read"):
        array[0].evaluate()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("gzip", gzip.compress(b"x" * 99, mtime=0)),
        ("gzip", gzip.compress(np.random.default_rng(0).bytes(9999), mtime=0)),
        ("bzip2", bz2.compress(b"x" * 99)),
        ("xz", lzma.compress(b"x" * 99)),
        ("zstd", b"\x28\xb5\x2f\xfd" + bytes(50)),
    ],
)
def test_compressed_files_are_recognised(folder, name, data):
    (folder / "x").write_bytes(data)
    text = f"x: it is compressed with {name}; decompress it first"
    with pytest.raises(ValueError, match=text):
        Webdataset(ext="jpg", paths="x")
    with pytest.raises(ValueError, match=text):
        TFRecord(path="x", features=FEATURES)


# Manifests


@pytest.fixture
def manifest(folder):
    """Writes a manifest of lines."""
    with wave.open("s.wav", "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(1000)
        file.writeframes(np.arange(500, dtype=np.int16).tobytes())

    def write(*lines):
        (folder / "m.json").write_text("\n".join(map(json.dumps, lines)))
        return folder / "m.json"

    return write


def test_an_offset_beyond_the_sound_is_an_error_of_its_sample(manifest):
    lines = [{"audio_filepath": "s.wav", "offset": offset} for offset in (0.25, 1.5)]
    path = manifest(*lines)
    good, bad = NemoAsr(manifest_filepaths=path).next_epoch()
    assert good[0].shape == (250,)
    text = r"it has 0\.5 seconds \(500 frames\), and the `offset` is 1\.5 seconds\.\n  file: s\.wav"
    with pytest.raises(OSError, match=text):
        bad[0].evaluate()
    reader = NemoAsr(manifest_filepaths=path, on_error="skip")
    [(sound, *_)] = reader.next_epoch(batch_size=2)
    assert sound.shape == [(250,)]
    assert [error.sample for error in reader.errors] == [1]


def test_an_offset_beyond_a_sound_of_unknown_length_is_an_error(folder, manifest):
    soundfile.write("s.flac", np.zeros(500), 1000)
    flac = bytearray((folder / "s.flac").read_bytes())
    flac[21] &= 0xF0
    flac[22:26] = bytes(4)  # with the bits before them, how many frames there are
    (folder / "s.flac").write_bytes(flac)
    lines = [{"audio_filepath": "s.flac", "offset": offset} for offset in (0.25, 1.5)]
    good, bad = NemoAsr(manifest_filepaths=manifest(*lines)).next_epoch()
    assert good[0].shape == (250,)
    with pytest.raises(OSError, match=r"it ends before the `offset` of 1\.5 seconds"):
        bad[0].evaluate()


def test_a_sound_that_is_missing_is_told_as_any_file(manifest):
    [(sound, *_)] = NemoAsr(manifest_filepaths=manifest({"audio_filepath": "no"})).next_epoch()
    with pytest.raises(OSError, match=r"the file can't be read: there is no such file\.\n"):
        sound.evaluate()


def test_a_manifest_without_sounds_says_why(manifest):
    with (
        pytest.warns(UserWarning, match="can't be used"),
        pytest.raises(ValueError, match="`manifest_filepaths` has no line that can be used: ") as e,
    ):
        NemoAsr(manifest_filepaths=manifest({"text": "a"}))
    assert "duration" not in str(e.value)
    with pytest.raises(ValueError, match="names no sounds: "):
        NemoAsr(manifest_filepaths=manifest())
    line = {"audio_filepath": "s.wav", "duration": 0.5}
    with pytest.raises(ValueError, match="length that is asked for by `min_duration`: "):
        NemoAsr(manifest_filepaths=manifest(line), min_duration=9)
