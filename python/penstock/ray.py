"""Reading and computing on other machines, with Ray.

`Loader` runs a loop over a reader in actors of a Ray cluster, and iterates over what it yields, in
order, in the trainer:

    import penstock as ndd
    import ray

    def loop(reader):
        for jpegs, labels in reader.next_epoch():
            images = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[224, 224])
            yield images, labels

    ray.init(address="auto")
    reader = ndd.readers.File(file_root="/data/train", shuffle="global")
    loader = ndd.ray.Loader(loop, reader, batch_size=64, workers=16)
    for images, labels in loader:
        images = ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)
        train_step(images.torch(), labels.torch())

Yield uint8 images and normalize them in the trainer, as here: float32 has four times as many bytes
to move between nodes.
"""

from penstock._public import attach as _attach

_attach(__name__)
