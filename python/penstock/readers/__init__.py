"""Readers: objects that give the samples of a data set, epoch by epoch.

    reader = ndd.readers.File(file_root="train", random_shuffle=True)
    for jpegs, labels in reader.next_epoch(batch_size=64):
        ...

They have state: create one, and use it for all epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock._errors.messages import unknown_name as _unknown_name
from penstock._errors.tracebacks import public as _public
from penstock._public import attach as _attach
from penstock.readers._base.bad_samples import SampleError as SampleError
from penstock.readers._base.epoch import UnfinishedEpochWarning as UnfinishedEpochWarning
from penstock.readers._base.reader import Reader as Reader
from penstock.readers._base.state import ReaderState as ReaderState
from penstock.readers.arrow import Arrow as Arrow
from penstock.readers.caffe import Caffe as Caffe
from penstock.readers.caffe2 import Caffe2 as Caffe2
from penstock.readers.coco import COCO as COCO
from penstock.readers.file import File as File
from penstock.readers.lance import Lance as Lance
from penstock.readers.mds import MDS as MDS
from penstock.readers.mxnet import MXNet as MXNet
from penstock.readers.nemo_asr import NemoAsr as NemoAsr
from penstock.readers.numpy import Numpy as Numpy
from penstock.readers.parquet import Parquet as Parquet
from penstock.readers.tfrecord import TFRecord as TFRecord
from penstock.readers.video import Video as Video
from penstock.readers.video import VideoResize as VideoResize
from penstock.readers.webdataset import Webdataset as Webdataset

__all__ = [
    *("Arrow", "COCO", "Caffe", "Caffe2", "File", "Lance", "MDS", "MXNet", "NemoAsr"),
    *("Numpy", "Parquet", "TFRecord", "Video", "VideoResize", "Webdataset"),
    *("Reader", "ReaderState", "SampleError", "UnfinishedEpochWarning"),
]

# The modules of the formats are no names for users: `readers.file` gets the hint below.
for _format in __all__:
    globals().pop(_format.lower(), None)
globals().pop("nemo_asr", None)
_attach(__name__)


if not TYPE_CHECKING:  # where it would say that any name exists

    @_public
    def __getattr__(name: str) -> Any:
        for known in __all__:
            if name.replace("_", "").lower() == known.lower():
                raise AttributeError(
                    f"module 'penstock.readers' has no attribute '{name}'; readers are classes: "
                    f"did you mean `readers.{known}`?"
                )
        raise _unknown_name(__name__, name, __all__)
