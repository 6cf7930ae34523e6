"""Operators on masks. Draws are other ones than DALI's, of the same distribution."""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

MASK = np.uint8([[0, 1, 0], [2, 1, 0]])
LABELS = np.int32([[0, 1, 0, 1], [2, 1, 0, 0], [0, 0, 1, 0], [2, 2, 0, 3]])
POLYGONS = np.int32([[0, 0, 3], [1, 3, 7], [2, 7, 10]])
VERTICES = np.arange(20, dtype=np.float32).reshape(10, 2)

COUNTS = """
made = made if isinstance(made, tuple) else (made,)
rows = np.concatenate([np.asarray(ndd.as_tensor(x)).reshape(4096, -1) for x in made], 1)
keys, counts = np.unique(rows, axis=0, return_counts=True)
keys, counts / 4096, [(x.dtype, x.layout, x.ndim) for x in made]
"""
FREQUENCY = 0.05
"""About five standard deviations of a frequency in 4096 draws."""

PIXELS = [
    "",
    "foreground=1",
    "foreground=2, value=1",
    "foreground=1, threshold=1",
    "foreground=1, value=9",
    "foreground=1, threshold=5",
    "foreground=1, threshold=.5",
    "foreground=1, threshold=-1",
    "foreground=1, value=257",
    "foreground=1, value=-1",
    "value=1",
    "foreground=1, value=1.7",
    "foreground=1, threshold=float('nan')",
    "foreground=ndd.batch([0, 1] * 2048)",
    "foreground=1, value=ndd.batch([1, 2] * 2048)",
    "foreground=1, threshold=ndd.tensor(1.)",
]


def count(call, **inputs):
    source = f"made = {call.replace('rng', 'rng=ndd.random.RNG(7)')}{COUNTS}"
    assert_same(source, tol=FREQUENCY, **inputs)


@pytest.mark.parametrize("arguments", PIXELS)
def test_pixels_are_as_likely(arguments):
    count(f"ndd.segmentation.random_mask_pixel(ndd.batch([m] * 4096), rng, {arguments})", m=MASK)


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4"])
def test_masks_of_all_types_have_a_foreground(dtype):
    call = "ndd.segmentation.random_mask_pixel(ndd.batch([m] * 4096), rng, foreground=1{})"
    count(call.format(""), m=MASK.astype(dtype))
    count(call.format(", value=1"), m=MASK.astype(dtype))


@pytest.mark.parametrize(
    "mask", ["m[0]", "m[..., None]", "m[None, :, None]", "m.astype(np.float32) / 2 - .4", "big"]
)
def test_masks_of_any_shape_have_a_foreground(mask):
    # In single precision, the two large numbers are the same.
    call = f"ndd.segmentation.random_mask_pixel(ndd.batch([{mask}] * 4096), rng, foreground=1"
    count(call + (", threshold=16777216)" if mask == "big" else ")"),
          m=MASK, big=np.int32([16777216, 16777217]))  # fmt: skip


def test_one_pixel_in_a_large_mask_is_found():
    mask = np.zeros((300, 301), np.uint8)
    mask[123, 234] = 9
    assert_same("ndd.segmentation.random_mask_pixel(m, foreground=1)", m=mask)
    assert_same(
        "ndd.segmentation.random_mask_pixel(ndd.batch([m, m.T.copy()]), foreground=1)", m=mask
    )


OBJECTS = [
    "",
    "output_class=True",
    "format='start_end'",
    "format='box'",
    "format='box', output_class=True",
    "foreground_prob=.5",
    "foreground_prob=0., output_class=True",
    "foreground_prob=1.5",
    "foreground_prob=-1.",
    "foreground_prob=float('nan')",
    "ignore_class=True",
    "classes=[1]",
    "classes=[1, 2], output_class=True",
    "classes=[7], output_class=True",
    "classes=[]",
    "classes=[0], output_class=True",
    "classes=[0, 1], output_class=True, foreground_prob=.5",
    "classes=[0, -1, 1], output_class=True, foreground_prob=0.",
    "background=1, output_class=True",
    "background=9, output_class=True",
    "class_weights=[1, 0, 3], output_class=True",
    "class_weights=[1, 3], output_class=True",
    "class_weights=[1, 3], classes=[3, 2]",
    "class_weights=[0, 0], classes=[3, 2], output_class=True",
    "class_weights=[]",
    "class_weights=[0, 0, 1, 1, 1], output_class=True",
    "k_largest=1, output_class=True",
    "class_weights=[1, 1, 1], background=2, output_class=True",
    "class_weights=[1], background=1",
    "k_largest=2, classes=[1]",
    "k_largest=1, ignore_class=True",
    "k_largest=3, ignore_class=True",
    "threshold=[2, 1], output_class=True",
    "threshold=[2, 2], output_class=True",
    "threshold=2",
    "threshold=[0, 0], classes=[3]",
    "threshold=[-1, -1], classes=[3]",
    "threshold=[1, 2]",
    "threshold=[2, 1], ignore_class=True",
    "threshold=[2, 2], k_largest=1, classes=[2]",
    "cache_objects=True, classes=[2]",
    "classes=[2, 2, 3], output_class=True",
    "classes=[1], output_class=True, foreground_prob=0.5, background=4",
    "classes=ndd.batch([[1], [2, 3]] * 2048), output_class=True",
    "background=ndd.batch([0, 1] * 2048), foreground_prob=ndd.batch([1., .5] * 2048)",
    "threshold=ndd.batch([[1, 1], [2, 1]] * 2048), "
    "class_weights=ndd.batch([[1.], [2., 1.]] * 2048)",
]


@pytest.mark.parametrize("arguments", OBJECTS)
def test_objects_are_as_likely(arguments):
    call = f"ndd.segmentation.random_object_bbox(ndd.batch([m] * 4096), rng, {arguments})"
    count(call, m=LABELS)


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "u1", "u2", "u4"])
def test_labels_of_all_types_are_found(dtype):
    call = "ndd.segmentation.random_object_bbox(ndd.batch([m] * 4096), rng, output_class=True)"
    count(call, m=LABELS.astype(dtype))
    if dtype[0] == "i":
        count(call, m=-LABELS.astype(dtype))


@pytest.mark.parametrize(
    "mask",
    [
        "m[0]", "m[:0]", "m * 0", "m[..., None]", "m.reshape(2, 2, 4)", "m.reshape(2, 2, 2, 2)",
        "m.reshape(1, 16)", "m.reshape(16, 1)", "m * 100000000", "np.ones((5, 6), np.uint8)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", ["output_class=True", "ignore_class=True"])
def test_masks_of_any_shape_have_objects(mask, more):
    call = f"ndd.segmentation.random_object_bbox(ndd.batch([{mask}] * 4096), rng, {more})"
    count(call, m=LABELS)


def spiral(size):
    """A mask with one long object that winds about, and one that lies between its arms."""
    mask = np.zeros((size, size), np.uint8)
    for ring in range(0, size // 2, 4):
        mask[ring : size - ring, ring : size - ring] = 1
        mask[ring + 1 : size - ring - 1, ring + 1 : size - ring - 1] = 0
        mask[ring + 1 : ring + 5, ring] = 0
        mask[ring + 4, ring : ring + 5] = 1
    mask[mask == 0] = 2
    return mask


@pytest.mark.parametrize("seed", range(6))
def test_largest_objects_of_random_masks_agree(seed):
    # With one candidate, there is nothing to draw.
    numbers = np.random.default_rng(seed)
    shape = [(40, 50), (9, 120), (7, 8, 30)][seed % 3]
    noise = (numbers.random(shape) < 0.55).astype(np.uint8)
    calls = [f"ndd.segmentation.random_object_bbox(m, k_largest=1, {more}, format='box')"
             for more in ("classes=[1]", "ignore_class=True", "classes=[0]")]  # fmt: skip
    assert_same(", ".join(calls), m=noise)
    assert_same(", ".join(calls), m=spiral(30 + seed))


IDS = [
    "[1], p, v",
    "[2, 0], p, v, reindex_masks=True",
    "[2, 0], p, v",
    "np.int32([]), p, v",
    "np.int32([]), p[:0].copy(), v[:0].copy()",
    "[1, 2, 0], p, v",
    "[1], p, np.zeros((10, 3))",
    "[1], p, np.zeros((10, 0), np.float32)",
    "[1], [[1, 4, 4]], v",
    "[1], [[1, 4, 6]], v",
    "ndd.batch([[1], [0, 2]]), ndd.batch([p, p]), ndd.batch([v, v * 2])",
    "[1], ndd.tensor(p, layout='AB'), ndd.tensor(v, layout='CD')",
    "[5, -3], [[-3, 0, 2], [5, 1, 3]], v",
    *(f"[1, 0], p, v.astype('{kind}')" for kind in ("?", "i1", "u2", "i4", "i8", "f2", "f8")),
    # rejected
    "[2, 2], p, v",
    "[7], p, v",
    "[1], [[1, 0, 200]], v",
    "[1], [[1, -2, 2]], v",
    "[1], [[1, 4, 2]], v",
    "[1], p[:, :2].copy(), v",
    "[1], p",
]


@pytest.mark.parametrize("arguments", IDS)
def test_masks_are_selected_alike(arguments):
    assert_same(f"ndd.segmentation.select_masks({arguments})", p=POLYGONS, v=VERTICES)


REFUSED = [
    "random_mask_pixel(m, value=1, threshold=0)",
    "random_mask_pixel(m.astype(np.float64), foreground=1)",
    "random_mask_pixel(m.astype(np.float16), foreground=1)",
    "random_object_bbox(m.astype(np.float32))",
    "random_object_bbox(m.astype(np.int64))",
    "random_object_bbox(m, format='bad')",
    "random_object_bbox(m, ignore_class=True, output_class=True)",
    "random_object_bbox(m, ignore_class=True, classes=[1])",
    "random_object_bbox(m, ignore_class=True, class_weights=[1])",
    "random_object_bbox(m, classes=[1], background=1)",
    "random_object_bbox(m, class_weights=[1], classes=[3, 2])",
    "random_object_bbox(m, k_largest=0)",
    "random_object_bbox(m, threshold=[1, 1, 1])",
    "select_masks(np.int64([1]), p, v)",
    "select_masks([1], p.astype(np.int64), v)",
    "select_masks(np.int32([[1]]), p, v)",
    "select_masks(np.int32(1), p, v)",
    "select_masks([1], p.ravel(), v)",
    "select_masks([1], p, v.ravel())",
]


@pytest.mark.parametrize("source", REFUSED)
def test_mistakes_are_refused(source):
    start = f"m = np.{LABELS!r}\np = np.{POLYGONS!r}\nv = np.zeros((10, 2), np.float32)\n"
    start = start.replace("dtype=int32", "dtype=np.int32")
    read = "made = made if isinstance(made, tuple) else (made,)\n[each.evaluate() for each in made]"
    assert_refused(f"{start}made = ndd.segmentation.{source}\n{read}")


DIFFER = [
    Differs(
        "ndd.segmentation.random_mask_pixel(np.zeros((0, 3), np.uint8)).evaluate()",
        "RuntimeError",
        "DALI returns coordinates outside of the mask",
        ask=False,
    ),
    Differs(
        "ndd.segmentation.random_mask_pixel(np.uint8(1), foreground=1).evaluate()",
        "RuntimeError",
        "DALI crashes",
        ask=False,
    ),
    Differs(
        "ndd.segmentation.random_object_bbox(np.uint8([1, 2]), class_weights=[1, -1])[0]"
        ".evaluate()",
        "RuntimeError",
        "DALI takes a negative weight for none at all",
    ),
    Differs(
        "ndd.segmentation.random_object_bbox(np.uint8([1, 2]), class_weights=[float('nan'), 1])[0]"
        ".evaluate()",
        "RuntimeError",
        "what is no number is no weight",
    ),
    Differs(
        "ndd.segmentation.select_masks([1, 0], [[1, 4, 7], [0, 0, 3], [1, 3, 6], [0, 2, 5]], v)",
        "(np.int32([[1, 0, 3], [1, 3, 6], [0, 6, 9], [0, 9, 12]]), "
        "np.concatenate([v[4:7], v[3:6], v[0:3], v[2:5]]))",
        "of a mask with several polygons, DALI keeps the last one only",
    ),
]


@pytest.mark.parametrize("case", DIFFER, ids=str)
def test_differences_on_purpose(case):
    if "select_masks" in case.source:
        # Both sides as arrays.
        source = f"tuple(map(np.asarray, {case.source}))"
        case = Differs(source, case.ours, case.why)
    case.after("v = np.arange(20, dtype=np.float32).reshape(10, 2)").check()
