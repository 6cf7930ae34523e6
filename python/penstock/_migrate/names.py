"""What names of DALI are called in penstock."""

from __future__ import annotations

from penstock._public_names import NAMES

FN = "nvidia.dali.fn."
PIPELINE_DEF = frozenset({"nvidia.dali.pipeline_def", "nvidia.dali.pipeline.pipeline_def"})
PIPELINE_CLASS = frozenset({"nvidia.dali.Pipeline", "nvidia.dali.pipeline.Pipeline"})

READERS = {
    "file": "File",
    "coco": "COCO",
    "tfrecord": "TFRecord",
    "webdataset": "Webdataset",
    "numpy": "Numpy",
    "mxnet": "MXNet",
    "caffe": "Caffe",
    "caffe2": "Caffe2",
    "nemo_asr": "NemoAsr",
}

MODULES = {"nvidia.dali.types": "types", "nvidia.dali.tfrecord": "tfrecord"}
"""Modules that penstock has as well."""

NEEDS_BATCH_SIZE = ("random.", "batch_permutation")
"""Operators that make a value for each sample, unless they have an input."""

OUTPUT_METHODS = {"as_cpu": "cpu", "at": "select"}
"""What `pipe.run()` gives has these methods, and batches have those."""


def operator(qualified: str) -> str | None:
    """`resize` or `random.uniform` for what was `fn.resize`; None if penstock has no such name."""
    name = qualified.removeprefix(FN).removeprefix("experimental.")
    module, _, last = name.rpartition(".")
    place = f"penstock.{module}" if module else "penstock"
    return name if last in NAMES.get(place, {}) else None
