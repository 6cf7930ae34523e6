"""Training with PyTorch: loaders, transforms, and what the workers of a DataLoader need.

`Loader` is a DataLoader over a reader and a function that decodes and augments its batches:

    import penstock as ndd

    def augment(jpegs, labels):
        images = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=[224, 224])
        return ndd.crop_mirror_normalize(images, mean=MEAN, std=STD), labels

    reader = ndd.readers.File(file_root="photographs", shuffle="global")
    loader = ndd.torch.Loader(reader, augment, batch_size=64)
    for images, labels in loader:
        train_step(images, labels)

In a dataset of your own for `torch.utils.data.DataLoader`, use `Transform`, or call operators and
return tensors, ours or PyTorch's: `default_collate` stacks both. The workers of a DataLoader divide
the CPUs between them (see `get_num_threads`), and each draws different numbers, in each epoch,
without further setup (see `random.set_seed`). For reproducible numbers, however workers are
started:

    torch.manual_seed(7)
    ndd.random.set_seed(7 + rank)
    loader = DataLoader(data, num_workers=4, worker_init_fn=ndd.torch.worker_init_fn)
"""

from penstock._public import attach as _attach

try:
    from penstock._torch.collate import register as _register

    _register()
except ImportError:
    pass  # without PyTorch there is no DataLoader to prepare

_attach(__name__)
