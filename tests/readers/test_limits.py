"""Small files that ask for much: memory and work are bounded by what is there."""

import json
import os
import struct
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from tests.data_sets import MAKERS

from penstock.readers import COCO, Caffe, NemoAsr


def annotated(folder, width, height, *segmentations):
    """Annotations of one image with these masks."""
    (folder / "a.jpg").write_bytes(b"image")
    image = {"id": 1, "file_name": "a.jpg", "width": width, "height": height}
    objects = [
        {"id": n, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "segmentation": mask}
        for n, mask in enumerate(segmentations)
    ]
    made = {"images": [image], "annotations": objects, "categories": [{"id": 1}]}
    (folder / "a.json").write_text(json.dumps(made))
    return {"file_root": folder, "annotations_file": folder / "a.json", "pixelwise_masks": True}


def painted(folder, width, height, *segmentations):
    [outputs] = COCO(**annotated(folder, width, height, *segmentations)).next_epoch()
    return np.asarray(outputs[3])[..., 0]


def test_far_corners_of_a_polygon_take_no_time(tmp_path):
    """A walk along these edges would take minutes."""
    far = [[-1e6, 5], [1e6, 5], [1e6, 900], [-1e6, 900]]
    zigzag = [number for n in range(1001) for number in far[n % 4]]
    start = time.monotonic()
    found = painted(tmp_path, 60, 40, [zigzag])
    assert time.monotonic() - start < 20
    assert found.shape == (40, 60)
    box = [10, -1e6, 30, -1e6, 30, 1e6, 10, 1e6]
    assert painted(tmp_path, 60, 40, [box]).sum(axis=1).tolist() == [20] * 40


def test_an_image_that_claims_to_be_huge_is_refused(tmp_path):
    mask = {"counts": [0, 5], "size": [40000, 40000]}
    arguments = annotated(tmp_path, 40000, 40000, mask)
    with pytest.raises(RuntimeError, match=r"40000 x 40000(.|\n)*PENSTOCK_MAX_PIXELS"):
        [o.evaluate() for outputs in COCO(**arguments).next_epoch() for o in outputs]
    assert list(COCO(**arguments, on_error="skip").next_epoch(batch_size=1)) == []


@pytest.mark.parametrize(
    "mask",
    [
        {"counts": [2**32 - 1] * 3, "size": [10, 10]},
        {"counts": [0, 101], "size": [10, 10]},
        {"counts": "oooooooooooooooooo", "size": [10, 10]},
        {"counts": [0, 2**53], "size": [10, 10]},
        {"counts": [0, -5], "size": [10, 10]},
        {"counts": [0, 5], "size": [-10, 10]},
        [[1e30, 0, 5, 5, 0, 5]],
    ],
)
def test_masks_that_can_not_be_are_errors(tmp_path, mask):
    with pytest.raises((ValueError, RuntimeError), match=r"mask|object"):
        painted(tmp_path, 10, 10, mask)


def test_deep_json_is_no_trouble(tmp_path):
    arguments = annotated(tmp_path, 10, 10)
    text = arguments["annotations_file"].read_text()
    deep = "[" * 10**6 + "]" * 10**6
    arguments["annotations_file"].write_text(text[:-1] + f', "deep": {deep}}}')
    assert len(list(COCO(**arguments).next_epoch())) == 1
    arguments["annotations_file"].write_text(text[:-1] + f', "deep": {deep[:-1]}}}')
    with pytest.raises(ValueError, match=r"should be here|ends in the middle"):
        COCO(**arguments)


def test_stored_boxes_can_not_be_had_more_than_once(tmp_path):
    arguments = MAKERS["COCO"](tmp_path, 4)
    stored = tmp_path / "stored"
    stored.mkdir()
    save = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": stored}
    assert COCO(**arguments, **save).epoch_size == 4
    root = arguments["file_root"]
    assert COCO(file_root=root, preprocessed_annotations=stored).epoch_size == 4
    boxes = struct.unpack("<I", (stored / "labels.dat").read_bytes()[:4])[0]
    (stored / "offsets.dat").write_bytes(struct.pack("<5I", 4, 0, 0, 0, 0))
    (stored / "counts.dat").write_bytes(struct.pack("<5I", 4, *[boxes] * 4))
    with pytest.raises(ValueError, match="more than once"):
        COCO(file_root=root, preprocessed_annotations=stored)


def test_a_page_of_a_database_has_no_more_keys_than_fit(tmp_path):
    """Else one page could be gigabytes of keys."""
    arguments = MAKERS["Caffe"](tmp_path, 3)
    [file] = tmp_path.rglob("data.mdb")
    content = bytearray(file.read_bytes())
    [leaf] = [at for at in range(8192, len(content), 4096) if content[at + 10] == 2]
    # As many entries as the page has places for, all of them one with a long key.
    content[leaf + 12 : leaf + 14] = struct.pack("<H", 16 + 2 * 1000)
    content[leaf + 16 : leaf + 2016] = struct.pack("<H", 2020) * 1000
    content[leaf + 2020 : leaf + 2028] = struct.pack("<4H", 0, 0, 0, 2000)
    file.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        Caffe(**arguments)


# Sound


def wav(path, rate, data, bits=8):
    size = bits // 8
    form = struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * size, size, bits)
    head = b"RIFF\xff\xff\xff\xffWAVEfmt " + form + b"data\xff\xff\xff\xff"
    path.write_bytes(head + data)


def crc(data, polynomial, bits):
    value, top, mask = 0, 1 << (bits - 1), (1 << bits) - 1
    for byte in data:
        value ^= byte << (bits - 8)
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value & top else 0)) & mask
    return value


def flac(path, frames, channels=8, block=65535):
    """Silence, in frames as large as they can be."""
    info = struct.pack(">HH", block, block) + bytes(6)
    info += (8000 << 44 | (channels - 1) << 41 | 15 << 36).to_bytes(8, "big") + bytes(16)
    made = [b"fLaC\x80\0\0\x22" + info]
    for number in range(frames):
        head = b"\xff\xf8\x70" + bytes([(channels - 1) << 4 | 8])
        head += chr(number).encode() + struct.pack(">H", block - 1)
        head += bytes([crc(head, 0x07, 8)])
        frame = head + bytes(3 * channels)
        made.append(frame + crc(frame, 0x8005, 16).to_bytes(2, "big"))
    path.write_bytes(b"".join(made))


def sound(folder, name, **arguments):
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"audio_filepath": str(folder / name)}))
    return NemoAsr(manifest_filepaths=manifest, **arguments)


def read(reader):
    [(samples, *_)] = reader.next_epoch()
    return np.asarray(samples)


def test_sound_that_is_too_much_for_its_file_is_refused(tmp_path):
    flac(tmp_path / "small.flac", 5)
    assert read(sound(tmp_path, "small.flac", downmix=False)).shape == (5 * 65535, 8)
    flac(tmp_path / "bomb.flac", 800)
    assert os.path.getsize(tmp_path / "bomb.flac") < 32000
    wav(tmp_path / "slow.wav", 1, bytes(100_000))
    for name, arguments in (("bomb.flac", {}), ("slow.wav", {"sample_rate": 16000})):
        with pytest.raises(OSError, match=f"PENSTOCK_MAX_AUDIO_SAMPLES(.|\n)*{name}"):
            read(sound(tmp_path, name, **arguments))
        left = sound(tmp_path, name, **arguments, on_error="skip")
        assert list(left.next_epoch(batch_size=1)) == []
        assert len(left.errors) == 1


def test_a_sparse_file_claims_no_memory(tmp_path):
    wav(tmp_path / "sparse.wav", 8000, b"")
    os.truncate(tmp_path / "sparse.wav", 1 << 40)
    with pytest.raises(OSError, match="PENSTOCK_MAX_AUDIO_SAMPLES"):
        read(sound(tmp_path, "sparse.wav"))


def test_sound_without_memory_for_it_is_a_memory_error(tmp_path):
    wav(tmp_path / "long.wav", 8000, b"")
    os.truncate(tmp_path / "long.wav", 1 << 29)
    (tmp_path / "manifest.json").write_text(
        json.dumps({"audio_filepath": str(tmp_path / "long.wav")})
    )
    wav(tmp_path / "short.wav", 8000, bytes(100))
    program = """
        import json, os, resource, sys
        import penstock as ndd
        folder = sys.argv[1]
        def read(name, **more):
            json.dump({"audio_filepath": f"{folder}/{name}"}, open(f"{folder}/m.json", "w"))
            reader = ndd.readers.NemoAsr(manifest_filepaths=f"{folder}/m.json", **more)
            for sound, *_ in reader.next_epoch(batch_size=1):
                return sound.evaluate().shape
        print(read("short.wav"))
        size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30),) * 2)
        for more in ({}, {"on_error": "skip"}, {"sample_rate": 16000}):
            try:
                print(read("long.wav", **more))
            except MemoryError:
                print("no memory")
        print(read("short.wav"))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["[(100,)]", *["no memory"] * 3, "[(100,)]"], done.stderr


def test_the_limit_of_samples_can_be_moved(tmp_path):
    wav(tmp_path / "a.wav", 8000, bytes(1000))
    program = """
        import sys
        import penstock as ndd
        reader = ndd.readers.NemoAsr(manifest_filepaths=sys.argv[1])
        try:
            print([sound.evaluate().shape for sound, *_ in reader.next_epoch()])
        except OSError as error:
            print("limit is 999" in str(error))
    """
    (tmp_path / "m.json").write_text(json.dumps({"audio_filepath": str(tmp_path / "a.wav")}))
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "m.json")]
    for limit, says in (("999", "True"), ("1000", "[(1000,)]")):
        environment = {**os.environ, "PENSTOCK_MAX_AUDIO_SAMPLES": limit}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == says, done.stderr
