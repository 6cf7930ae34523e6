"""Dilation and erosion, which DALI has on a GPU only; OpenCV says what is right."""

import cv2
import numpy as np
import pytest

import penstock as ndd

RNG = np.random.default_rng(8)
BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect_101": cv2.BORDER_REFLECT_101,
}
OPERATORS = {"dilate": cv2.dilate, "erode": cv2.erode}


def noise(shape, dtype="u1"):
    return RNG.integers(0, 256, shape).astype(dtype)


def made(operator, image, layout="HWC", **arguments):
    function = getattr(ndd.experimental, operator)
    return np.asarray(function(ndd.tensor(image, layout=layout), **arguments))


def expected(operator, image, size, anchor=(-1, -1), iterations=1, border="constant"):
    mask = np.ones(size[::-1], np.uint8)
    found = OPERATORS[operator](
        image, mask, anchor=anchor, iterations=iterations, borderType=BORDERS[border]
    )
    return found.reshape(image.shape)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 3), (2, 4), (9, 1), (1, 8), (40, 37)])
def test_masks_are_those_of_opencv(operator, size):
    for shape in [(1, 1, 1), (5, 7, 3), (60, 43, 4), (45, 100, 1)]:
        image = noise(shape)
        np.testing.assert_array_equal(
            made(operator, image, mask_size=size), expected(operator, image, size)
        )


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("anchor", [(-1, -1), (0, 0), (3, 1), (2, -1)], ids=str)
def test_borders_and_anchors_are_those_of_opencv(operator, border, anchor):
    image = noise((20, 31, 3))
    for iterations in (1, 2, 3):
        np.testing.assert_array_equal(
            made(
                operator, image, mask_size=[4, 3], anchor=anchor, iterations=iterations,
                border_mode=border,
            ),
            expected(operator, image, (4, 3), anchor, iterations, border),
        )  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
def test_wrapped_images_are_tiles(operator):
    image = noise((6, 7, 3))
    tiled = np.tile(image, (3, 3, 1))
    whole = expected(operator, tiled, (5, 3))
    found = made(operator, image, mask_size=[5, 3], border_mode="wrap")
    np.testing.assert_array_equal(found, whole[6:12, 7:14])


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
def test_all_types(operator, dtype):
    image = noise((9, 11, 3), "i1" if dtype == "i1" else "u1").astype(dtype)
    wide = image.astype("f8")
    assert np.array_equal(made(operator, image), expected(operator, wide, (3, 3)).astype(dtype))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHWC", "FCHW"])
def test_layouts(operator, layout):
    image = noise((2, 9, 8, 7)[: len(layout)])
    found = made(operator, image, layout)
    # Planes of height and width, one after another.
    order = [layout.index(letter) for letter in "FCHW" if letter in layout]
    planes = image.transpose(order).reshape(-1, *(image.shape[layout.index(x)] for x in "HW"))
    filtered = [expected(operator, np.ascontiguousarray(plane), (3, 3)) for plane in planes]
    assert np.array_equal(found.transpose(order).reshape(planes.shape), filtered)


def test_masks_differ_from_sample_to_sample_and_frame_to_frame():
    images = [noise((10, 11, 3)), noise((5, 4, 3))]
    batch = ndd.batch(images, layout="HWC")
    found = ndd.experimental.erode(batch, mask_size=ndd.batch([[3, 3], [5, 1]]))
    for image, size, one in zip(images, [(3, 3), (5, 1)], found, strict=True):
        assert np.array_equal(np.asarray(one), expected("erode", image, size))
    video = ndd.tensor(np.stack([images[0]] * 2), layout="FHWC")
    sizes = ndd.per_frame(ndd.tensor([[3, 3], [1, 7]]))
    found = np.asarray(ndd.experimental.dilate(video, mask_size=sizes))
    for frame, size in zip(found, [(3, 3), (1, 7)], strict=True):
        assert np.array_equal(frame, expected("dilate", images[0], size))


def test_huge_masks_cover_everything():
    image = noise((6, 7))
    for border in [*BORDERS, "wrap"]:
        found = made(
            "erode", image, "HW", mask_size=2**40 + 1, iterations=2**40, border_mode=border
        )
        assert (found == image.min()).all()


def test_no_iterations_change_nothing():
    image = noise((6, 7))
    assert np.array_equal(made("dilate", image, "HW", iterations=0), image)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mask_size", 0), ("mask_size", [3, -2]), ("mask_size", [3, 3, 3]), ("anchor", 3),
        ("anchor", [0, 5]), ("iterations", -1), ("border_mode", "foo"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(name, value):
    with pytest.raises((RuntimeError, ValueError), match=name):
        ndd.experimental.dilate(noise((4, 4)), **{name: value}).evaluate()


def test_nothing_is_dilated_to_nothing():
    for shape in [(0, 4, 3), (4, 0, 3), (4, 4, 0)]:
        assert made("dilate", np.zeros(shape, "u1")).shape == shape
