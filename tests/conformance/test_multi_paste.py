import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same


def image(height, width, channels=3, seed=0, dtype="u1"):
    numbers = np.random.default_rng(seed).integers(0, 120, (height, width, channels))
    return numbers.astype(dtype)


INPUTS = {
    "a": image(6, 7),
    "b": image(6, 7, seed=1),
    "c": image(6, 7, seed=2),
    "d": image(9, 5, seed=3),
}

CALLS = [
    "a",
    "a, b",
    "ndd.batch([a, b])",
    "ndd.batch([a, b]), ndd.batch([c, a])",
    "a, b, c",
    "ndd.batch([a, b]), in_ids=[1]",
    "ndd.batch([a, b, c]), in_ids=ndd.batch([[1], [0, 1], []])",
    "ndd.batch([a, b, c]), in_ids=[2, 0], shapes=np.int32([[3, 4], [2, 2]])",
    "ndd.batch([a, b]), in_ids=ndd.batch([[1, 0], [0]]), output_size=[9, 9]",
    "ndd.batch([a, d]), in_ids=[1], output_size=[9, 9]",
    "ndd.batch([a, b]), in_ids=[]",
    "ndd.batch([a, b]), in_ids=[], output_size=[2, 3]",
    "a, in_ids=[0]",
    "a, in_ids=[0, 0, 0]",
    "a, b, in_anchors=one",
    "a, b, out_anchors=one, output_size=[9, 9]",
    "a, d, output_size=[9, 7]",
    "a, b, in_anchors=one, shapes=few",
    "a, b, in_anchors=one, shapes=few, out_anchors=far",
    "a, b, shapes=few",
    "a, b, shapes=np.int32([[2, 3], [0, 1]])",
    "a, b, out_anchors=far, shapes=few",
    "a, b, in_anchors=np.int32([[0, 0], [6, 7]])",
    "a, b, output_size=[2, 4], shapes=few",
    "a, b, in_anchors_rel=half",
    "a, b, out_anchors_rel=half, shapes_rel=half",
    "a, b, shapes_rel=third, in_anchors_rel=third, out_anchors_rel=third",
    "a, b, in_anchors=one.tolist()",
    "a, b, output_size=[8, 9, 10]",
    "a, b, output_size=ndd.tensor([6, 8])",
    "a, output_size=[0, 0], shapes=np.int32([[0, 0]])",
    "a[:0]",
    "a[:, :0].copy()",
    "ndd.tensor(a, layout='HWC'), b",
    "np.zeros((2, 2, 0), np.uint8)",
    "ndd.batch([a, b]), ndd.batch([c, c]), shapes=ndd.batch([few, few[::-1].copy()])",
    "ndd.batch([a, b]), ndd.batch([c, c]), output_size=ndd.batch([[6, 7], [8, 9]])",
    "ndd.batch([a, b]), c, out_anchors=far, shapes=few",
    "a, b, batch_size=2",
    # rejected
    "ndd.batch([a, b]), in_ids=[2]",
    "ndd.batch([a, b]), in_ids=[-1]",
    "a, b, in_ids=[0]",
    "a, b, out_anchors=one",
    "a, b, shapes=np.int32([[2, 3], [9, 9]])",
    "a, d",
    "a, d[..., :2].copy()",
    "a, b, shapes=np.int32([[2, 3], [-1, 1]])",
    "a, b, out_anchors=np.int32([[0, 0], [-1, -1]])",
    "a, b, in_anchors=np.int32([[0, 0], [-1, -1]])",
    "a, b, in_anchors=np.int32([[0, 0], [7, 7]])",
    "a, b, output_size=[2, 2]",
    "a, b, in_anchors_rel=half * 3",
    "a, b, in_anchors=one[:1]",
    "a, b, in_anchors=one, in_anchors_rel=half",
    "a, b, in_anchors=one[0]",
    "a, b, in_anchors=1",
    "a, b, output_size=5",
    "a, b, output_size=[-1, 3]",
    "a, b.astype(np.int16)",
    "a[..., 0].copy()",
    "ndd.tensor(a, layout='CHW')",
    "a[:0], output_size=[2, 2]",
]

GIVEN = """
one, few, far = np.int32([[0, 0], [1, 2]]), np.int32([[2, 3], [1, 1]]), np.int32([[4, 0], [4, 2]])
half, third = np.float32([[0, 0], [.5, .5]]), np.float32([[.34, .6], [.4, .333]])
"""


@pytest.mark.parametrize("arguments", CALLS)
def test_pastes_agree(arguments):
    assert_same(f"{GIVEN}ndd.multi_paste({arguments})", **INPUTS)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4"])
@pytest.mark.parametrize("to", ["uint8", "int16", "int32", "float32"])
def test_elements_are_converted_alike(dtype, to):
    values = image(5, 9, dtype="f4") * 6.5 - 300
    values = (values if dtype != "u1" else np.abs(values) % 256).astype(dtype)
    assert_same(
        f"ndd.multi_paste(a, a * 2, dtype=ndd.{to}, shapes=np.int32([[5, 9], [2, 3]]), "
        "out_anchors=np.int32([[0, 0], [1, 2]]))",
        a=values,
    )


@pytest.mark.parametrize("seed", range(8))
def test_mosaics_of_random_regions_agree(seed):
    numbers = np.random.default_rng(seed)
    size, count = numbers.integers(1, 40, 2), int(numbers.integers(1, 9))
    images = [image(*numbers.integers(1, 40, 2), seed=i) for i in range(4)]
    ids = [numbers.integers(0, 4, count).astype(np.int32) for _ in range(4)]
    starts, targets, shapes = [], [], []
    for row in ids:
        extents = np.array([images[i].shape[:2] for i in row])
        start = numbers.integers(0, extents)
        shape = numbers.integers(0, np.minimum(extents - start, size) + 1)
        targets.append(numbers.integers(0, size - shape + 1).astype(np.int32))
        starts.append(start.astype(np.int32))
        shapes.append(shape.astype(np.int32))
    assert_same(
        "ndd.multi_paste(ndd.batch(images), in_ids=ndd.batch(ids), in_anchors=ndd.batch(starts), "
        "shapes=ndd.batch(shapes), out_anchors=ndd.batch(targets), output_size=size)",
        images=images, ids=ids, starts=starts, shapes=shapes, targets=targets, size=size.tolist(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "ndd.multi_paste(x.astype(np.float64))",
        "ndd.multi_paste(x.astype(np.float16))",
        "ndd.multi_paste(x.astype(bool))",
        "ndd.multi_paste(x, dtype=ndd.float64)",
        "ndd.multi_paste(x, dtype=ndd.int64)",
    ],
)
def test_other_types_are_refused(source):
    assert_refused(f"x = np.ones((2, 3, 1), np.uint8)\n{source}.evaluate()")


SEQUENCES = """
x = np.arange(2 * 3 * 4).reshape(2, 3, 4, 1).astype(np.uint8)
y = x + np.uint8(100)
shapes = np.int32([[[2, 2], [1, 2]], [[3, 4], [2, 1]]])
places = np.int32([[[0, 1], [1, 1]], [[0, 0], [1, 3]]])
def each(*frames, **more):
    made = [ndd.multi_paste(*frame, **more) for frame in zip(*frames)]
    return ndd.stack(*made, axis_name="F")
"""
"""DALI's operator fails on sequences ("The kernel instance is of different type"): each frame must
be what it would be alone."""


@pytest.mark.parametrize(
    ("call", "frames"),
    [
        ("ndd.multi_paste(x)", "each(x)"),
        ("ndd.multi_paste(x, y)", "each(x, y)"),
        ("ndd.multi_paste(x, y, shapes=shapes[0], output_size=[4, 4])",
         "each(x, y, shapes=shapes[0], output_size=[4, 4])"),
        ("ndd.multi_paste(x, output_size=[4, 5], dtype=ndd.float32)",
         "each(x, output_size=[4, 5], dtype=ndd.float32)"),
        ("ndd.multi_paste(x, y, shapes=ndd.per_frame(shapes), out_anchors=ndd.per_frame(places))",
         "ndd.stack(*[ndd.multi_paste(x[i], y[i], shapes=shapes[i], out_anchors=places[i]) "
         "for i in range(2)], axis_name='F')"),
        ("ndd.multi_paste(x, shapes=ndd.per_frame(shapes[:, :1].copy()))",
         "ndd.stack(*[ndd.multi_paste(x[i], shapes=shapes[i, :1]) for i in range(2)], "
         "axis_name='F')"),
        ("ndd.multi_paste(ndd.batch([x, y]), in_ids=[1, 0], shapes=shapes[0])",
         "ndd.batch([each(y, x, shapes=shapes[0])] * 2)"),
        ("ndd.multi_paste(ndd.batch([x, y], layout='FHWC'), in_ids=ndd.batch([[1], []]))",
         "ndd.batch([each(y), ndd.tensor(x * 0, layout='FHWC')])"),
        ("ndd.multi_paste(x, y[:1])", "each(x, y[[0, 0]])"),
        ("ndd.multi_paste(x, y[0])", "RuntimeError"),
        ("ndd.multi_paste(x[0], y)", "RuntimeError"),
    ],
)  # fmt: skip
def test_frames_of_sequences_are_pasted_alone(call, frames):
    read = f"{call}.evaluate()"
    Differs(read, frames, "DALI fails on sequences", ask=False).after(SEQUENCES).check()


def test_images_of_a_batch_may_differ_in_size():
    case = Differs(
        "ndd.multi_paste(ndd.batch([x, x[:2]]), ndd.batch([x, x[:2]]))",
        "ndd.batch([x, x[:2]], layout='HWC')",
        "DALI wants one canvas for all samples of a batch",
    )  # fmt: skip
    case.after("x = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)").check()
