"""JPEGs that are scaled down while they are decoded."""

import io
import math

import numpy as np
import pytest
from PIL import Image
from tests.images import JPEGS, encoded, photograph, turned
from tests.mutations import mutate

import penstock as ndd
from penstock.errors import ArgumentError

PICTURE = photograph(93, 131)
KINDS = {
    "4:4:4": encoded(PICTURE, quality=90, subsampling=0),
    "4:2:0": encoded(PICTURE, quality=90, subsampling=2),
    "4:2:2": encoded(PICTURE, quality=90, subsampling=1),
    "gray": encoded(PICTURE[..., :1], quality=90),
    "restarts": encoded(PICTURE, quality=90, restart_marker_blocks=3),
    "optimized": encoded(PICTURE, quality=60, optimize=True),
    "coarse": encoded(PICTURE, quality=1),
    "noise": encoded(np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8), quality=100),
    "progressive": encoded(PICTURE, quality=85, progressive=True),
    "odd": encoded(PICTURE[:17, :33], quality=90),
    "one pixel": encoded(PICTURE[:1, :1]),
    "411": np.fromfile(JPEGS / "411.jpg", np.uint8),
    "440": np.fromfile(JPEGS / "440.jpg", np.uint8),
}
each_kind = pytest.mark.parametrize("file", KINDS.values(), ids=KINDS)


def scaled(extent, eighths):
    return math.ceil(extent * eighths / 8)


def expected_size(height, width, least):
    """The size at the smallest scale that is large enough."""
    for eighths in range(1, 9):
        size = scaled(height, eighths), scaled(width, eighths)
        if size[0] >= least[0] and size[1] >= least[1]:
            return size
    return height, width


def by_pillow(file, scale, mode="RGB"):
    """Pillow's result at 1/scale; it rounds the request down, so one pixel is enough to ask for."""
    image = Image.open(io.BytesIO(file.tobytes()))
    size = image.size
    image.draft(mode, (max(size[0] // scale, 1), max(size[1] // scale, 1)))
    return np.asarray(image.convert(mode))


@each_kind
def test_the_smallest_scale_that_is_large_enough_is_used(file):
    height, width, _ = ndd.decoders.image(file).shape
    for least in [(1, 1), (5, 9), (12, 1), (1, 60), (46, 66), (47, 65), (93, 131), (500, 1)]:
        made = ndd.decoders.image(file, min_size=least)
        assert made.shape[:2] == expected_size(height, width, least), least
        assert ndd.peek_image_shape(file).torch().tolist()[:2] == [height, width]


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "4:2:2", "gray", "progressive", "noise"])
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_pixels_are_those_of_pillow(kind, scale):
    file = KINDS[kind]
    expected = by_pillow(file, scale)
    made = np.asarray(ndd.decoders.image(file, min_size=expected.shape[:2]))
    assert np.array_equal(made, expected)


def for_libjpeg(file):
    """The file with a byte after its first segment, which libjpeg skips: our decoder doesn't."""
    end = 4 + int.from_bytes(file[4:6].tobytes(), "big")
    return np.insert(file, end, 0)


@each_kind
@pytest.mark.parametrize("colors", ["RGB", "BGR", "GRAY"])
def test_pixels_are_those_of_libjpeg_at_every_scale(file, colors):
    """Also at the scales that Pillow can't ask for."""
    height, width, _ = ndd.decoders.image(file).shape
    output = getattr(ndd.types, colors)
    for eighths in range(1, 8):
        least = [scaled(height, eighths), scaled(width, eighths)]
        made = ndd.decoders.image(file, min_size=least, output_type=output)
        expected = ndd.decoders.image(for_libjpeg(file), min_size=least, output_type=output)
        assert np.array_equal(np.asarray(made), np.asarray(expected)), eighths


def outcome(file, **options):
    """The pixels or the kind of the error."""
    try:
        return np.asarray(ndd.decoders.image(file, **options))
    except ndd.errors.DecodeError as error:
        return type(error)


@pytest.mark.parametrize("kind", ["4:4:4", "4:2:0", "4:2:2", "gray", "restarts"])
def test_damaged_files_are_decoded_as_by_libjpeg(kind):
    first, rest = np.split(KINDS[kind], [20])
    failed = 0
    for number in range(60):
        damaged = mutate(rest.tobytes(), np.random.default_rng([3, number]))
        damaged = np.concatenate([first, np.frombuffer(damaged, np.uint8)])
        full = outcome(damaged)
        made = outcome(damaged, min_size=60)
        expected = outcome(for_libjpeg(damaged), min_size=60)
        assert isinstance(made, type) == isinstance(full, type), number
        assert np.array_equal(made, expected), number
        failed += isinstance(made, type)
    assert 0 < failed < 60


@each_kind
def test_without_it_nothing_changes(file):
    full = np.asarray(ndd.decoders.image(file))
    same = ndd.decoders.image(file, min_size=full.shape[:2])
    assert np.array_equal(np.asarray(same), full)
    assert np.array_equal(np.asarray(ndd.decoders.image(file, min_size=None)), full)


@pytest.mark.parametrize("eighths", range(1, 9))
def test_a_scaled_image_looks_like_the_whole_one(eighths):
    """Every scale, also those that Pillow can't ask for."""
    smooth = np.kron(photograph(24, 32), np.ones((8, 8, 1), np.uint8))
    file = encoded(smooth, quality=95, subsampling=2)
    height, width = scaled(192, eighths), scaled(256, eighths)
    made = np.asarray(ndd.decoders.image(file, min_size=[height, width])).astype(float)
    image = Image.open(io.BytesIO(file.tobytes())).convert("RGB")
    expected = np.asarray(image.resize((width, height), Image.Resampling.BOX)).astype(float)
    assert made.shape == expected.shape
    # Other filters than that of the transform blur edges differently.
    assert np.abs(made - expected).mean() < 6


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_size_is_meant_after_the_rotation(orientation):
    file = turned(orientation, PICTURE)
    for least in [(40, 10), (10, 40), (60, 90), (90, 60)]:
        for upright in (True, False):
            full = ndd.decoders.image(file, adjust_orientation=upright).shape
            made = ndd.decoders.image(file, adjust_orientation=upright, min_size=least)
            assert made.shape[:2] == expected_size(*full[:2], least)


def test_other_formats_and_lossless_files_ignore_it():
    png = encoded(PICTURE, "PNG")
    lossless = np.fromfile(JPEGS / "lossless.jpg", np.uint8)
    for file in (png, lossless):
        full = np.asarray(ndd.decoders.image(file))
        assert np.array_equal(np.asarray(ndd.decoders.image(file, min_size=8)), full)


def test_one_number_is_for_both_axes_and_samples_may_differ():
    file = KINDS["4:2:0"]
    assert ndd.decoders.image(file, min_size=24).shape == (24, 33, 3)
    sizes = ndd.batch([[10, 10], [90, 90]])
    made = ndd.decoders.image(ndd.batch([file, file]), min_size=sizes)
    assert made.shape == [(12, 17, 3), (93, 131, 3)]


@pytest.mark.parametrize("types", ["float32", "uint16"])
@pytest.mark.parametrize("colors", ["RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA"])
def test_colors_and_types_are_converted_from_the_scaled_image(types, colors):
    file = KINDS["4:2:0"]
    output = getattr(ndd.types, colors)
    made = ndd.decoders.image(file, min_size=24, dtype=getattr(ndd, types), output_type=output)
    plain = ndd.decoders.image(file, min_size=24, output_type=output)
    assert made.shape == plain.shape
    scale = 1 / 255 if types == "float32" else 257
    np.testing.assert_allclose(
        np.asarray(made, np.float64), np.asarray(plain, np.float64) * scale, rtol=0.02, atol=scale
    )


def test_windows_are_those_of_the_image_in_full():
    file = KINDS["4:4:4"]
    whole = np.asarray(ndd.decoders.image(file, min_size=[47, 66]))
    made = ndd.decoders.image_slice(file, start=[20, 16], shape=[60, 40], min_size=[20, 30])
    assert made.shape == (20, 30, 3)
    assert np.array_equal(np.asarray(made), whole[8:28, 10:40])
    made = ndd.decoders.image_crop(file, crop=(40, 60), crop_pos_x=0, crop_pos_y=0, min_size=20)
    assert np.array_equal(np.asarray(made), whole[:20, :30])
    rng = ndd.random.RNG(seed=3)
    for _ in range(20):
        made = ndd.decoders.image_random_crop(file, min_size=10, rng=rng)
        assert min(made.shape[:2]) >= 10


@pytest.mark.parametrize("given", [0, -1, [0, 5], [5, -2]])
def test_sizes_below_one_are_refused_at_the_call(given):
    with pytest.raises(ArgumentError, match="`min_size` must be at least 1"):
        ndd.decoders.image(KINDS["4:2:0"], min_size=given)


@pytest.mark.parametrize("given", [[1, 2, 3], ndd.batch([[0, 5]]), ndd.batch([[1, 2, 3]])])
def test_other_sizes_are_refused(given):
    with pytest.raises(RuntimeError, match="`min_size` needs a height and a width of at least 1"):
        ndd.decoders.image(ndd.batch([KINDS["4:2:0"]]), min_size=given).evaluate()


def test_truncated_files_are_still_errors():
    file = KINDS["4:2:0"][:-400]
    with pytest.raises(ndd.errors.DecodeError, match="ends"):
        ndd.decoders.image(file, min_size=10).evaluate()


def test_imread_takes_it(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(KINDS["4:2:0"].tobytes())
    assert ndd.imread(path, min_size=24).shape == (24, 33, 3)
