"""Programs of DALI's pipeline mode print the same before and after `penstock migrate`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock._cli import main
from tests.conformance.oracle import oracle_python
from tests.images import encoded, photograph
from tests.records import write_tfrecord

FILES = '''"""Reads files beyond the end of an epoch, with slicing and arithmetic."""
import sys

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=42)
def load(root, size):
    # The comment stays.
    target = [size, size]
    jpegs, labels = fn.readers.file(file_root=root, name="Reader")
    images = fn.decoders.image(jpegs, device="cpu", output_type=types.RGB)
    images = fn.resize(images, size=target)
    images = fn.cast(images[2:10, :, 0:2], dtype=types.FLOAT) / 255.0
    offset = fn.random.uniform(range=(0.0, 1e-6))
    return images + offset, labels


pipe = load(sys.argv[1], 16, batch_size=4, device_id=None)
pipe.build()
for _ in range(7):
    images, labels = pipe.run()
    pixels = images.as_array()
    numbers = [int(np.array(labels.at(i))[0]) for i in range(4)]
    print(pixels.shape, pixels.mean().round(3), numbers)
'''

SEVERAL = """from nvidia import dali
from nvidia.dali import fn
import sys, numpy


@dali.pipeline_def
def left_and_right(root):
    left, label = fn.readers.file(file_root=root)
    right, _ = fn.readers.file(file_root=root, initial_fill=4)
    left = fn.decoders.image(left, output_type=dali.types.RGB)
    both = fn.cat(left, fn.flip(fn.decoders.image(right)), axis=1)
    bright = fn.brightness(both, brightness=1.5)
    return bright


pipe = left_and_right(sys.argv[1], batch_size=2, num_threads=1, device_id=None, seed=3)
pipe.build()
for step in range(3):
    out = pipe.run()
    print(step, numpy.array(out[0].as_cpu().at(1)).sum())
"""

RECORDS = """import sys
import numpy as np
from nvidia.dali import pipeline_def, fn
import nvidia.dali.tfrecord as tfrec


@pipeline_def(batch_size=3, num_threads=1, device_id=None)
def records(path):
    inputs = fn.readers.tfrecord(
        path=path,
        index_path=path + ".idx",
        features={
            "image": tfrec.FixedLenFeature((), tfrec.string, ""),
            "label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
        },
    )
    images = fn.decoders.image(inputs["image"])
    return images, inputs["label"]


pipe = records(sys.argv[1])
pipe.build()
images, labels = pipe.run()
print([np.array(images.at(i)).sum() for i in range(3)], labels.as_array().tolist())
"""


@pytest.fixture
def asked():
    if os.environ.get("PENSTOCK_ORACLE") == "off":
        pytest.skip("PENSTOCK_ORACLE=off: DALI is not asked")
    return str(oracle_python())


def printed(interpreter: str, script: Path, argument: Path) -> str:
    command = [interpreter, str(script), str(argument)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def same(tmp_path: Path, program: str, argument: Path, oracle: str, capsys) -> str:
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(program)
    assert main(["migrate", str(before), "-o", str(after)]) == 0
    assert "TODO" not in after.read_text()
    assert "nvidia" not in after.read_text()
    assert capsys.readouterr().err == ""
    text = printed(oracle, before, argument)
    assert text
    assert printed(sys.executable, after, argument) == text
    return after.read_text()


@pytest.fixture
def folder(tmp_path):
    for number in range(10):
        group = tmp_path / "data" / f"class{number // 5}"
        group.mkdir(parents=True, exist_ok=True)
        picture = encoded(photograph(20, 24, seed=number), "PNG")
        (group / f"{number}.png").write_bytes(picture.tobytes())
    return tmp_path / "data"


def test_files(tmp_path, folder, asked, capsys):
    text = same(tmp_path, FILES, folder, asked, capsys)
    assert "def load(root, size, *, batch_size=8, num_threads=2, seed=42):" in text
    assert "# The comment stays." in text
    assert "images.slice[2:10, :, 0:2]" in text


def test_several_readers(tmp_path, folder, asked, capsys):
    text = same(tmp_path, SEVERAL, folder, asked, capsys)
    assert "reader2 = ndd.readers.File(" in text
    assert "yield (bright,)" in text


def test_records(tmp_path, asked, capsys):
    path = tmp_path / "data.tfrecord"
    pictures = [encoded(photograph(8, 9, seed=number), "PNG").tobytes() for number in range(5)]
    rows = [
        {"image": (picture, "byte"), "label": (number, "int")}
        for number, picture in enumerate(pictures)
    ]
    write_tfrecord(path, rows)
    same(tmp_path, RECORDS, path, asked, capsys)
