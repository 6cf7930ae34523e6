"""Pipelines of torchdata's nodes."""

import pytest
from tests.images import encoded, photograph

import penstock as ndd

pytest.importorskip("torchdata")
from torchdata.nodes import Loader


@pytest.fixture
def folder(tmp_path):
    for number in range(6):
        path = tmp_path / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded(photograph(4, 5 + number, seed=number), "PNG").tobytes())
    return tmp_path


def pipeline(folder, batch_size=2, **options):
    nodes = ndd.pytorch.nodes
    node = nodes.Reader(ndd.readers.File, batch_size=batch_size, file_root=str(folder), **options)
    node = nodes.DictMapper(node, ndd.decoders.image)
    return nodes.ToTorch(nodes.DictMapper(node, lambda x: ndd.resize(x, size=[4, 4])))


def test_batches_become_tensors_of_torch(folder):
    loader = Loader(pipeline(folder))
    for _ in range(2):
        batches = list(loader)
        assert [tuple(images.shape) for images, _ in batches] == [(2, 4, 4, 3)] * 3
        labels = [label for _, batch in batches for label in batch.flatten().tolist()]
        assert labels == [0, 0, 0, 1, 1, 1]


def test_samples_come_one_by_one(folder):
    first, *_ = Loader(pipeline(folder, batch_size=None))
    assert tuple(first[0].shape) == (4, 4, 3)


def test_a_loader_resumes_where_its_state_was_taken(folder):
    loader = Loader(pipeline(folder, random_shuffle=True, seed=3))
    rest = iter(loader)
    next(rest)
    state = loader.state_dict()
    expected = [images.tolist() for images, _ in rest]
    resumed = Loader(pipeline(folder, random_shuffle=True, seed=3))
    resumed.load_state_dict(state)
    assert [images.tolist() for images, _ in resumed] == expected


def test_outputs_have_names(folder):
    node = ndd.pytorch.nodes.Reader(
        ndd.readers.File, batch_size=3, output_names=["jpeg", "class"], file_root=str(folder)
    )
    assert node.get_metadata()["epoch_size"] == 6
    assert list(next(node)) == ["jpeg", "class"]
    few = ndd.pytorch.nodes.Reader(
        ndd.readers.File, batch_size=3, output_names=["jpeg"], file_root=str(folder)
    )
    with pytest.raises(ValueError, match="has 2 outputs, but `output_names` has 1"):
        next(few)


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_data_on_a_gpu_takes_the_rest_along(folder):
    nodes = ndd.pytorch.nodes
    node = nodes.Reader(ndd.readers.File, batch_size=2, file_root=str(folder))
    node = nodes.DictMapper(node, lambda x: ndd.resize(ndd.decoders.image(x), size=4).gpu())
    images, labels = next(nodes.ToTorch(nodes.DictMapper(node, lambda x: x.gpu(), key="label")))
    assert (len(images), len(labels)) == (2, 2)
