"""Whether an installed penstock works: kernels, decoders, readers. Needs NumPy and nothing else."""

import base64
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np

import penstock as ndd

# 16 x 16 pixels, orange.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZG"
    "NywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09P"
    "T09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAQABADASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAA"
    "AAX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAABv/EABQRAQAAAAAAAAAAAAAAAAAA"
    "AAD/2gAMAwEAAhEDEQA/AKQAYTv/2Q=="
)


def check_images(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        for number in range(3):
            (folder / name / f"{number}.jpg").write_bytes(JPEG)
    reader = ndd.readers.File(file_root=str(folder), random_shuffle=True, last_batch="partial")
    seen = []
    for jpegs, labels in reader.next_epoch(batch_size=4):
        images = ndd.decoders.image(jpegs)
        mirror = ndd.random.coin_flip(batch_size=images.batch_size)
        images = ndd.crop_mirror_normalize(
            ndd.resize(images, size=[8, 8]), mirror=mirror, mean=[0, 0, 0], std=[255, 255, 255]
        )
        pixels = np.asarray(ndd.as_tensor(images))
        assert pixels.shape[1:] == (3, 8, 8), pixels.shape
        assert np.allclose(pixels[:, :, 4, 4], [1.0, 0.55, 0.0], atol=0.03), pixels[:, :, 4, 4]
        seen += np.asarray(ndd.as_tensor(labels)).ravel().tolist()
    assert sorted(seen) == [0, 0, 0, 1, 1, 1], seen


def check_sounds(folder: Path) -> None:
    path = folder / "tone.wav"
    tone = (8000 * np.sin(np.arange(8000) / 5)).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(tone.tobytes())
    samples, rate = ndd.decoders.audio(np.fromfile(path, np.uint8), downmix=True)
    assert np.asarray(rate).item() == 8000
    assert np.allclose(np.asarray(samples), tone / 32768, atol=1e-4)


def check_bad_file() -> None:
    try:
        ndd.decoders.image(np.frombuffer(b"no image", np.uint8)).evaluate()
    except ndd.errors.DecodeError:
        return
    raise AssertionError("a file that is no image was decoded")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        check_images(Path(name))
        check_sounds(Path(name))
    check_bad_file()
    print(f"penstock {ndd.__version__} works with Python {sys.version.split()[0]}")
