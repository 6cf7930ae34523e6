"""Load, decode and augment data for model training, from plain Python.

    import penstock as ndd

    images = ndd.batch(pictures, layout="HWC")
    images = ndd.flip(images)
    train_step(images.torch())

Calls return at once; the work runs on native threads in the background, sample by sample.
"""

from penstock._public import attach as _attach

__version__ = "0.1.0"

_attach(__name__)
