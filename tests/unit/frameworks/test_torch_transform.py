"""`penstock.torch.Transform` in datasets and among torchvision's transforms."""

import numpy as np
import pytest
from PIL import Image
from tests.images import photograph

import penstock as ndd

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

PHOTOGRAPH = photograph(5, 7, seed=1)
FLIPPED = np.ascontiguousarray(PHOTOGRAPH[:, ::-1].transpose(2, 0, 1))


def mirrored(image):
    assert image.layout == "HWC"
    return ndd.flip(image)


def first(image):
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


@pytest.mark.parametrize(
    "image",
    [
        Image.fromarray(PHOTOGRAPH),
        first(PHOTOGRAPH),
        PHOTOGRAPH,
        ndd.tensor(PHOTOGRAPH, layout="HWC"),
    ],
    ids=["PIL", "torch", "numpy", "penstock"],
)
def test_images_of_any_kind_become_channels_first(image):
    found = ndd.torch.Transform(mirrored)(image)
    assert type(found) is torch.Tensor
    assert found.is_contiguous()
    np.testing.assert_array_equal(found, FLIPPED)


@pytest.mark.parametrize("mode", ["L", "P", "1", "RGBA"])
def test_modes_of_pil(mode):
    image = Image.fromarray(PHOTOGRAPH).convert(mode)
    found = ndd.torch.Transform(mirrored)(image)
    expected = np.array(image.convert({"P": "RGB", "1": "L"}.get(mode, mode))).reshape(5, 7, -1)
    np.testing.assert_array_equal(found, expected[:, ::-1].transpose(2, 0, 1))


def test_grey_arrays_get_a_channel():
    grey = PHOTOGRAPH[:, :, 0]
    for image in (grey, torch.from_numpy(grey.copy())):
        assert ndd.torch.Transform(mirrored)(image).shape == (1, 5, 7)


def test_a_result_with_channels_first_stays():
    transform = ndd.torch.Transform(
        lambda x: ndd.crop_mirror_normalize(x, mean=[1.0] * 3, std=[2.0] * 3)
    )
    found = transform(PHOTOGRAPH)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, (PHOTOGRAPH.transpose(2, 0, 1) - 1.0) / 2.0)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_image_that_was_given_is_not_changed(channels):
    pixels = PHOTOGRAPH[:, :, :channels].copy()
    image = first(pixels)
    for given in (pixels, image):
        ndd.torch.Transform(mirrored)(given).zero_()
        ndd.torch.Transform(lambda x: x)(given).zero_()
    np.testing.assert_array_equal(pixels, PHOTOGRAPH[:, :, :channels])
    np.testing.assert_array_equal(image, first(pixels))


def test_among_torchvisions_transforms():
    v2 = pytest.importorskip("torchvision.transforms.v2")
    from torchvision import tv_tensors

    transform = v2.Compose(
        [v2.Resize((4, 6)), ndd.torch.Transform(mirrored), v2.ToDtype(torch.float32, scale=True)]
    )
    image = Image.fromarray(PHOTOGRAPH)
    resized = v2.functional.pil_to_tensor(v2.functional.resize(image, [4, 6]))
    expected = resized.flip(2).float() / 255
    torch.testing.assert_close(transform(image), expected)
    found, label = transform(image, 3)
    torch.testing.assert_close(found, expected)
    assert label == 3
    wrapped = ndd.torch.Transform(mirrored)(tv_tensors.Image(first(PHOTOGRAPH)))
    assert isinstance(wrapped, tv_tensors.Image)
    np.testing.assert_array_equal(np.asarray(wrapped), FLIPPED)


@pytest.mark.parametrize("image", ["cat.jpg", None, torch.zeros(3), np.zeros((1, 2, 3, 4)), 3])
def test_what_is_not_an_image_is_refused(image):
    with pytest.raises(TypeError, match="expected a PIL image"):
        ndd.torch.Transform(mirrored)(image)


def test_functions_must_return_tensors():
    with pytest.raises(TypeError, match="must return a Tensor"):
        ndd.torch.Transform(lambda x: 3)(PHOTOGRAPH)
    with pytest.raises(TypeError, match="must return a Tensor, got a batch"):
        ndd.torch.Transform(lambda x: ndd.batch([x]))(PHOTOGRAPH)
    with pytest.raises(TypeError, match="`fn`"):
        ndd.torch.Transform(3)


class Images(data.Dataset):
    def __init__(self):
        self.transform = ndd.torch.Transform(mirrored)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.transform(Image.fromarray(PHOTOGRAPH)), index


@pytest.mark.parametrize(
    ("workers", "context"),
    [
        (0, None),
        (2, "fork"),
        pytest.param(2, "spawn", marks=[pytest.mark.heavy, pytest.mark.timeout(120)]),
    ],
)
def test_in_the_workers_of_a_data_loader(workers, context):
    loader = data.DataLoader(Images(), 2, num_workers=workers, multiprocessing_context=context)
    for images, labels in loader:
        assert images.shape == (2, 3, 5, 7)
        np.testing.assert_array_equal(images[1], FLIPPED)
        assert labels.dtype == torch.int64
