"""Optical flow of photographs under known affine motions, compared with OpenCV."""

import functools

import numpy as np
import pytest
from tests.images import photograph

import penstock as ndd
from penstock.errors import ArgumentError

cv2 = pytest.importorskip("cv2")


@functools.cache
def photographs():
    from sklearn.datasets import load_sample_images

    return load_sample_images().images


def center(height, width):
    return (width - 1) / 2, (height - 1) / 2


SHIFT = np.float64([[0, 0, 4], [0, 0, 2]])
MOVES = {
    "still": lambda size: np.float64([[1, 0, 0], [0, 1, 0]]),
    "shift": lambda size: np.float64([[1, 0, 3.3], [0, 1, -1.7]]),
    "far shift": lambda size: np.float64([[1, 0, -14.5], [0, 1, 9.25]]),
    "rotation": lambda size: cv2.getRotationMatrix2D(center(*size), 3, 1),
    "zoom": lambda size: cv2.getRotationMatrix2D(center(*size), 0, 1.05),
    "all": lambda size: cv2.getRotationMatrix2D(center(*size), -2, 0.97) + SHIFT,
}


def moved(image, matrix):
    """The warped image and the ground-truth flow."""
    height, width = image.shape[:2]
    second = cv2.warpAffine(
        image, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT
    )
    y, x = np.mgrid[:height, :width]
    target = matrix @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
    return second, (target - np.stack([x.ravel(), y.ravel()])).T.reshape(height, width, 2)


def error(flow, truth):
    """Mean endpoint error over pixels that stay inside the image."""
    height, width = truth.shape[:2]
    y, x = np.mgrid[:height, :width]
    ends = truth + np.stack([x, y], axis=-1)
    inside = (ends >= 0).all(-1) & (ends[..., 0] < width) & (ends[..., 1] < height)
    return np.linalg.norm(flow - truth, axis=-1)[inside].mean()


def ours(first, second, **options):
    video = np.stack([first, second])
    return np.asarray(ndd.optical_flow(video, output_grid=1, **options))[0]


def opencv(first, second):
    dense = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    gray = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (first, second)]
    return dense.calc(*gray, None)


@functools.cache
def errors(move, preset):
    """Mean errors on all photographs, of penstock and of OpenCV."""
    found = []
    for image in photographs():
        second, truth = moved(image, MOVES[move](image.shape[:2]))
        flows = ours(image, second, preset=preset), opencv(image, second)
        found.append([error(flow, truth) for flow in flows])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("move", MOVES)
def test_best_preset_matches_opencv_for_each_kind_of_motion(move):
    own, reference = errors(move, 0.0)
    # Neither resolves a hundredth of a pixel.
    assert own <= 1.1 * reference + 0.01


def test_medium_preset_matches_opencv_on_average():
    own, reference = np.mean([errors(move, 0.5) for move in MOVES], axis=0)
    assert own <= 1.1 * reference


def test_fastest_preset_is_still_close():
    image = photographs()[0]
    second, truth = moved(image, MOVES["shift"](image.shape[:2]))
    assert error(ours(image, second, preset=1.0), truth) < 0.5


FIRST = photograph(48, 70)
VIDEO = np.stack([np.roll(FIRST, shift, axis=1) for shift in (0, 2, 4)])


@pytest.mark.parametrize("grid", [1, 2, 4, 8])
def test_grid_cells_are_means_of_their_pixels(grid):
    fine = np.asarray(ndd.optical_flow(VIDEO, output_grid=1))
    made = ndd.optical_flow(VIDEO, output_grid=grid)
    assert (made.dtype, made.layout) == (ndd.float32, "FHWC")
    assert made.shape == (2, -(-48 // grid), -(-70 // grid), 2)
    expected = fine[:, :grid, :grid].mean(axis=(1, 2))
    np.testing.assert_allclose(np.asarray(made)[:, 0, 0], expected, rtol=1e-4, atol=1e-5)


def test_each_pair_of_frames_has_its_own_flow():
    all_pairs = np.asarray(ndd.optical_flow(VIDEO))
    for number in range(2):
        pair = np.asarray(ndd.optical_flow(VIDEO[number : number + 2]))[0]
        np.testing.assert_array_equal(all_pairs[number], pair)


def test_color_spaces_agree():
    expected = np.asarray(ndd.optical_flow(VIDEO))
    bgr = ndd.optical_flow(VIDEO[..., ::-1].copy(), image_type=ndd.types.BGR)
    np.testing.assert_allclose(np.asarray(bgr), expected, atol=0.01)
    gray = np.stack([cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in VIDEO])[..., None]
    made = np.asarray(ndd.optical_flow(gray, image_type=ndd.types.GRAY))
    # Gray frames are rounded to integers.
    assert np.abs(made - expected).mean() < 0.1


def test_external_hints_help_find_large_motions():
    rng = np.random.default_rng(0)
    noise = cv2.GaussianBlur(rng.integers(0, 256, (64, 200, 1), np.uint8), (0, 0), 1.5)[..., None]
    video = np.stack([noise, np.roll(noise, 48, axis=1)])
    hints = np.zeros((1, 16, 50, 2), np.float32)
    hints[..., 0] = 46
    arguments = {"image_type": ndd.types.GRAY, "output_grid": 1}
    made = np.asarray(ndd.optical_flow(video, hints, enable_external_hints=True, **arguments))
    assert np.abs(made[0, 8:-8, 8:140] - [48, 0]).mean() < 0.5


def test_temporal_hints_change_little_where_they_are_not_needed():
    plain = np.asarray(ndd.optical_flow(VIDEO))
    made = np.asarray(ndd.optical_flow(VIDEO, enable_temporal_hints=True))
    np.testing.assert_array_equal(made[0], plain[0])
    assert np.abs(made - plain).mean() < 0.1


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_ragged_batches_on_cpu_and_gpu():
    videos = [VIDEO, VIDEO[:2, :30, :41]]
    made = ndd.optical_flow(ndd.batch(videos, layout="FHWC"))
    on_gpu = ndd.optical_flow(ndd.batch(videos, layout="FHWC").gpu()).cpu()
    for sample, again, video in zip(made, on_gpu, videos, strict=True):
        np.testing.assert_array_equal(np.asarray(sample), np.asarray(ndd.optical_flow(video)))
        np.testing.assert_array_equal(np.asarray(sample), np.asarray(again))


@pytest.mark.parametrize("shape", [(2, 1, 1, 3), (2, 3, 90, 3), (2, 90, 2, 3), (3, 9, 9, 3)])
@pytest.mark.parametrize("preset", [0.0, 0.5, 1.0])
def test_small_frames(shape, preset):
    video = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    made = np.asarray(ndd.optical_flow(video, output_grid=1, preset=preset))
    assert made.shape == (shape[0] - 1, *shape[1:3], 2)
    assert np.isfinite(made).all()


def test_flat_frames_do_not_move():
    video = np.full((2, 40, 50, 3), 77, np.uint8)
    assert not np.asarray(ndd.optical_flow(video)).any()


def test_frames_without_pixels_have_no_vectors():
    assert ndd.optical_flow(np.zeros((3, 0, 8, 3), np.uint8)).shape == (2, 0, 2, 2)


def test_output_format_is_a_deprecated_alias():
    with pytest.warns(DeprecationWarning, match="`output_format` is deprecated"):
        made = ndd.optical_flow(VIDEO, output_format=8)
    assert made.shape == (2, 6, 9, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"output_grid": 3}, "`output_grid` must be 1, 2, 4 or 8, got 3"),
        ({"hint_grid": 0}, "`hint_grid` must be 1, 2, 4 or 8, got 0"),
        ({"preset": 2}, "`preset` must be between 0 and 1"),
        ({"preset": float("nan")}, "`preset` must be between 0 and 1"),
        ({"image_type": ndd.types.YCbCr}, "`image_type` must be types.RGB"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        ndd.optical_flow(VIDEO, **arguments)


def test_bad_inputs_are_refused():
    with pytest.raises(TypeError, match="input_1"):
        ndd.optical_flow(VIDEO, enable_external_hints=True)
    hints = np.zeros((2, 3, 3, 2), np.float32)
    words = r"the hints must be float32 of the shape \[2, 12, 18, 2\]"
    with pytest.raises(RuntimeError, match=words):
        ndd.optical_flow(VIDEO, hints, enable_external_hints=True).evaluate()
    with pytest.raises(RuntimeError, match="at least 2 frames, got 1"):
        ndd.optical_flow(VIDEO[:1]).evaluate()
    with pytest.raises(ArgumentError, match="uint8"):
        ndd.optical_flow(VIDEO.astype(np.float32))
    with pytest.raises(RuntimeError, match="channels"):
        ndd.optical_flow(VIDEO[..., :2].copy()).evaluate()


def test_invalid_hints_give_finite_flow():
    hints = np.full((2, 12, 18, 2), np.nan, np.float32)
    hints[:, ::2] = 1e30
    made = ndd.optical_flow(VIDEO, hints, enable_external_hints=True)
    assert np.isfinite(np.asarray(made)).all()
