"""`bb_flip`, `bbox_paste`, `bbox_rotate` and `box_encoder`: to the last bit of DALI's results.

Of `random_bbox_crop` and `roi_random_crop`, whose draws are other ones, the distributions are
compared, and what follows from a window is worked out again from both results.
"""

import numpy as np
import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

BOXES = np.float32(
    [[0.1, 0.2, 0.3, 0.4], [0.5, 0.25, 0.125, 0.5], [0, 0, 1, 1], [0.7, 0.6, 0.2, 0.1]]
)
LABELS = np.int32([5, 7, -1, 0])


READ = "[each.evaluate() for each in (made if isinstance(made, tuple) else (made,))]"
"""Reads one or several results."""


def random_boxes(count, seed=0, least=0.01, most=0.4):
    """Corners of boxes inside of the image."""
    numbers = np.random.default_rng(seed)
    start = numbers.random((count, 2)) * (1 - most)
    size = least + numbers.random((count, 2)) * (most - least)
    return np.concatenate([start, start + size], 1).astype(np.float32)


FLIPS = [
    "b", "b, ltrb=True", "b, vertical=1", "b, ltrb=True, vertical=1", "b, horizontal=0",
    "b, horizontal=0, vertical=1", "b, horizontal=0, vertical=1, ltrb=True", "b[0]", "b[None]",
    "b[:0]", "b.reshape(2, 8)", "b.ravel()", "b.reshape(-1, 2)", "np.zeros((0, 3), np.float32)",
    "np.float32([np.nan, 0, np.inf, 2])", "b * 3 - 1", "b, horizontal=0.5", "b, batch_size=2",
    "ndd.batch([b, b[:1], b[:0]]), horizontal=ndd.batch([0, 1, 1]), vertical=ndd.batch([2, 0, 1])",
    "ndd.as_tensor(b), horizontal=ndd.tensor(0), vertical=2",
    # rejected
    "b, horizontal=ndd.tensor([1, 0])", "b, foo=1", "",
]  # fmt: skip


@pytest.mark.parametrize("arguments", FLIPS)
def test_flips_agree(arguments):
    assert_same(f"ndd.bb_flip({arguments})", b=BOXES)


@pytest.mark.parametrize("ltrb", [False, True])
def test_random_boxes_are_flipped_alike(ltrb):
    assert_same(f"ndd.bb_flip(b, ltrb={ltrb}, vertical=1)", b=random_boxes(5000))


PASTES = [
    "b, ratio=2", "b, ratio=2, ltrb=True", "b, ratio=1.3, paste_x=0.1, paste_y=.9", "b, ratio=.5",
    "b, ratio=2, paste_x=-1", "b, ratio=2, paste_y=2", "b[0], ratio=3", "b[:0], ratio=3",
    "b[None], ratio=3", "b.ravel(), ratio=3", "b * 5, ratio=1", "b, ratio=1, batch_size=2",
    "ndd.batch([b, b[:1]]), ratio=ndd.batch([1.5, 2.5]), paste_x=ndd.batch([.1, .2])",
    # rejected
    "b", "b, ratio=ndd.tensor([1, 2])",
]  # fmt: skip


@pytest.mark.parametrize("arguments", PASTES)
def test_pastes_agree(arguments):
    assert_same(f"ndd.bbox_paste({arguments})", b=BOXES)


@pytest.mark.parametrize("ltrb", [False, True])
def test_random_pastes_agree(ltrb):
    numbers = np.random.default_rng(1)
    ratios = (0.5 + 4 * numbers.random(300)).astype(np.float32)
    places = (1.5 * numbers.random(300)).astype(np.float32)
    places[:50] = 1
    assert_same(
        "ndd.bbox_paste(ndd.batch(list(b)), ratio=ndd.batch(list(r)), paste_x=ndd.batch(list(p)), "
        f"paste_y=ndd.batch(list(p)), ltrb={ltrb})",
        b=random_boxes(300),
        r=ratios,
        p=places,
    )


TURNS = [
    "b, angle=0, input_shape=[100, 200]", "b, angle=90, input_shape=[100, 200]",
    "b, angle=30, input_shape=[100, 200]", "b, angle=-30, input_shape=[100, 200, 3]",
    "b, l, angle=400, input_shape=[100, 200]", "b, l[:, None], angle=45, input_shape=[100, 200]",
    "b, l, angle=45, input_shape=[100, 200], keep_size=True, remove_threshold=.6",
    "b, angle=45, input_shape=[100, 200], keep_size=True, remove_threshold=0",
    "b, angle=30, input_shape=[200, 100], shape_layout='WH'",
    "b, angle=30, input_shape=[3, 200, 100], shape_layout='CHW'",
    "b, angle=30, input_shape=[100, 200], shape_layout='HWC'",
    "b, angle=30, input_shape=[100, 200], size=[300, 400]",
    "b, angle=30, input_shape=[100, 200], size=[150.7, 260.2]",
    "b, angle=30, input_shape=[100, 200], size=[50, 60]",
    "b, angle=30, input_shape=ndd.tensor([100, 200]), size=ndd.tensor([150.0, 160.0])",
    "b, angle=30, input_shape=[0, 200]", "b, angle=10, input_shape=[0, 0]",
    "b * 300, angle=30, input_shape=[300, 300], bbox_normalized=False",
    "b * 300, angle=30, input_shape=[300, 300]", "b[:0], l[:0], angle=30, input_shape=[100, 200]",
    "np.float32([[.2, .2, .2, .7]]), angle=0, input_shape=[100, 200], remove_threshold=0",
    "np.float32([[2, 2, 3, 3], [np.nan, 0, 1, 1], [np.inf, 0, 1, 1]]), angle=0, "
    "input_shape=[100, 200], remove_threshold=0",
    "ndd.batch([b, b[:1]]), ndd.batch([l, l[:1]]), angle=ndd.batch([10., 20.]), "
    "input_shape=ndd.batch([[100, 200], [300, 100]])",
    "b, angle=30, input_shape=[101, 200], bbox_layout='xyWH'",
    # rejected
    "b, angle=30", "b, input_shape=[1, 2]", "b, l[:1], angle=30, input_shape=[100, 200]",
    "b, l[None], angle=30, input_shape=[100, 200]", "b, angle=30, input_shape=[100]",
    "b, angle=30, input_shape=[100, 200], shape_layout='DH'",
    "b, angle=30, input_shape=[100, 200], size=50",
]  # fmt: skip


@pytest.mark.parametrize("arguments", TURNS)
def test_turns_agree(arguments):
    corners = np.concatenate([BOXES[:, :2], BOXES[:, :2] + BOXES[:, 2:]], 1)
    assert_same(f"ndd.bbox_rotate({arguments})", b=corners, l=LABELS)


@pytest.mark.parametrize("mode", ["expand", "fixed", "halfway"])
@pytest.mark.parametrize(
    "more", ["", ", keep_size=True", ", bbox_layout='xyWH'", ", remove_threshold=.9"]
)
def test_random_turns_agree(mode, more):
    numbers = np.random.default_rng(2)
    angles = (numbers.random(400) * 1000 - 500).astype(np.float32)
    angles[:16] = np.arange(-360, 360, 45)
    assert_same(
        "ndd.bbox_rotate(ndd.batch(list(b)), angle=ndd.batch(list(a)), "
        f"input_shape=ndd.batch(list(s)), mode={mode!r}{more})",
        b=random_boxes(800).reshape(400, 2, 4),
        a=angles,
        s=numbers.integers(20, 600, (400, 2)),
    )


def test_pixels_are_turned_as_they_are():
    boxes = random_boxes(300) * np.float32(301)
    assert_same(
        "ndd.bbox_rotate(b, angle=33, input_shape=[301, 301], bbox_normalized=False)", b=boxes
    )


ANCHORS = "[0, 0, .5, .5, .25, .25, .75, .75, .5, .5, 1, 1, 0, 0, 1, 1]"
MATCHES = [
    "b, l", "b, l, offset=True", "b, l, criteria=.1", "b, l, criteria=0.", "b, l, criteria=1.",
    "b, l, offset=True, scale=300., means=[.1, .2, .3, .4], stds=[.1, .2, .3, .4]",
    "b, l, scale=300., means=[.1, .2, .3, .4], stds=[.1, .2, .3, .4]", "b, l[:, None]",
    "b[:0], l[:0]", "b[:0], l[:0], offset=True", "b[:1], l[:1]", "b * 2, l", "b - 1, l",
    "np.float32([[.2, .2, .2, .2]]), l[:1]", "np.float32([[.2, .2, .2, .2]]), l[:1], offset=True",
    "np.float32([[0, 0, .5, .5]] * 2), l[:2]", "np.float32([[.2, np.nan, .2, .2]]), l[:1]",
    "ndd.batch([b, b[:1], b[:0]]), ndd.batch([l, l[:1], l[:0]])",
    "ndd.tensor(b, layout='AB'), ndd.tensor(l, layout='A')",
    # rejected
    "b, l, criteria=1.5", "b, l, criteria=-.5", "b, l, means=[0.]", "b, l, stds=[0, 0, 0, 0]", "b",
]  # fmt: skip


@pytest.mark.parametrize("arguments", MATCHES)
def test_matches_agree(arguments):
    assert_same(f"ndd.box_encoder({arguments}, anchors={ANCHORS})", b=BOXES, l=LABELS)


@pytest.mark.parametrize("more", ["", ", offset=True, scale=7., stds=[.1, .1, .2, .2]"])
def test_random_matches_agree(more):
    anchors = random_boxes(701, seed=3).ravel().tolist()
    source = (
        f"ndd.box_encoder(ndd.batch(list(b)), ndd.batch([l] * 40), anchors=a, criteria=.4{more})"
    )
    boxes = random_boxes(440, seed=4).reshape(40, 11, 4)
    assert_same(source, a=anchors, b=boxes, l=np.arange(1, 12, dtype=np.int32))


REFUSED = [
    "ndd.bb_flip(b.astype(np.float64))",
    "ndd.bb_flip(b.astype(np.int32))",
    "ndd.bbox_paste(b.astype(np.float64), ratio=2)",
    "ndd.bbox_paste(np.float32(1), ratio=2)",
    "ndd.bbox_rotate(b.astype(np.float64), angle=3, input_shape=[5, 5])",
    "ndd.bbox_rotate(b, l.astype(np.int64), angle=3, input_shape=[5, 5])",
    "ndd.bbox_rotate(b[0], angle=3, input_shape=[5, 5])",
    "ndd.bbox_rotate(b[None], angle=3, input_shape=[5, 5])",
    "ndd.bbox_rotate(b, np.int32(1), angle=3, input_shape=[5, 5])",
    "ndd.bbox_rotate(b, angle=3, input_shape=[5, 5], mode='bad')",
    "ndd.bbox_rotate(b, angle=3, input_shape=[5, 5], bbox_layout='XYxy')",
    "ndd.bbox_rotate(b, angle=3, input_shape=[5, 5], remove_threshold=1)",
    "ndd.bbox_rotate(b, angle=3, input_shape=[5, 5], remove_threshold=-1)",
    "ndd.bbox_rotate(b, angle=3, input_shape=[5, 5], size=[5, 5], keep_size=True)",
    "ndd.box_encoder(b, l, anchors=[0, 0, 1])",
    "ndd.box_encoder(b, l.astype(np.int64), anchors=[0, 0, 1, 1])",
    "ndd.box_encoder(b.astype(np.float64), l, anchors=[0, 0, 1, 1])",
    "ndd.random_bbox_crop(b.astype(np.float64))",
    "ndd.random_bbox_crop(b, l.astype(np.int64))",
    "ndd.random_bbox_crop(b[0])",
    "ndd.random_bbox_crop(b[None])",
    "ndd.random_bbox_crop(b[:, :3].copy())",
    "ndd.random_bbox_crop(b * 2)",
    "ndd.random_bbox_crop(b - .5)",
    "ndd.random_bbox_crop(b * np.float32('nan'))",
    "ndd.random_bbox_crop(b, thresholds=[])",
    "ndd.random_bbox_crop(b, thresholds=[2])",
    "ndd.random_bbox_crop(b, threshold_type='bad')",
    "ndd.random_bbox_crop(b, scaling=[.5])",
    "ndd.random_bbox_crop(b, scaling=[1, .5])",
    "ndd.random_bbox_crop(b, scaling=[-1, .5])",
    "ndd.random_bbox_crop(b, aspect_ratio=[2, 1])",
    "ndd.random_bbox_crop(b, aspect_ratio=[1, 1, 1, 1])",
    "ndd.random_bbox_crop(b, num_attempts=0)",
    "ndd.random_bbox_crop(b, total_num_attempts=0)",
    "ndd.random_bbox_crop(b, bbox_prune_threshold=1.5)",
    "ndd.random_bbox_crop(b, bbox_layout='xyxy')",
    "ndd.random_bbox_crop(b, bbox_layout='xyzXYZ')",
    "ndd.random_bbox_crop(b, bbox_layout='xyXY', ltrb=True)",
    "ndd.random_bbox_crop(b, crop_shape=[5, 5])",
    "ndd.random_bbox_crop(b, crop_shape=[5, 5], input_shape=[9, 9], scaling=[.5, 1])",
    "ndd.random_bbox_crop(b, crop_shape=[5, 5], input_shape=[9, 9], aspect_ratio=[.5, 1])",
    "ndd.random_bbox_crop(b, crop_shape=[5, 5, 5], input_shape=[9, 9])",
    "ndd.random_bbox_crop(b, crop_shape=[-5, 5], input_shape=[9, 9])",
    "ndd.random_bbox_crop(b, input_shape=[-5, 5])",
    "ndd.random_bbox_crop(b, input_shape=[5, 5], shape_layout='HD')",
    "ndd.roi_random_crop(crop_shape=[9], roi_start=[1], roi_shape=[4], in_shape=[8])",
    "ndd.roi_random_crop(crop_shape=[3], roi_start=[-2], roi_shape=[4], in_shape=[8])",
    "ndd.roi_random_crop(crop_shape=[3], roi_start=[6], roi_shape=[4], in_shape=[8])",
    "ndd.roi_random_crop(crop_shape=[3], roi_start=[6], roi_end=[8], roi_shape=[2])",
    "ndd.roi_random_crop(crop_shape=[3], roi_start=[6])",
    "ndd.roi_random_crop(crop_shape=[3, 2, 1], roi_start=[6, 6], roi_end=[8, 8])",
    "ndd.roi_random_crop(crop_shape=[3, 2], roi_start=[1, 1], roi_end=[3, 2], in_shape=[5, 6, 7])",
    "ndd.roi_random_crop(np.zeros(5), crop_shape=[3], roi_start=[1], roi_end=[2], in_shape=[5])",
    "ndd.roi_random_crop(crop_shape=[3], roi_end=[2])",
]


@pytest.mark.parametrize("source", REFUSED)
def test_mistakes_are_refused(source):
    boxes = "b, l = np.float32([[.1, .2, .3, .4], [.5, .25, .75, 1]]), np.int32([1, 2])\n"
    assert_refused(f"{boxes}made = {source}\n{READ}")


DIFFER = [
    Differs(
        "ndd.bb_flip(np.float32([1, 2]))", "RuntimeError",
        "four numbers are read, whatever lies behind", ask=False,
    ),
    Differs("ndd.bbox_paste(b, ratio=0)", "RuntimeError", "boxes would be infinite"),
    Differs("ndd.bbox_paste(b, ratio=float('nan'))", "RuntimeError", "boxes would be no numbers"),
    Differs(
        "ndd.bb_flip(ndd.tensor(b, layout='AB')).evaluate().layout", "'AB'",
        "DALI fails, as it loses the layout", ask=False,
    ),
    Differs(
        "ndd.bbox_paste(ndd.tensor(b, layout='AB'), ratio=2).evaluate().layout", "'AB'",
        "DALI fails, as it loses the layout", ask=False,
    ),
    Differs(
        "ndd.bbox_rotate(b, angle=float('nan'), input_shape=[5, 5])", "RuntimeError",
        "DALI removes all boxes",
    ),
    Differs(
        "ndd.bbox_rotate(b, angle=3, input_shape=[-5, 5])", "RuntimeError",
        "no image is that large",
    ),
    Differs(
        "ndd.bbox_rotate(np.zeros((2, 6), np.float32), angle=3, input_shape=[5, 5])",
        "RuntimeError", "DALI prints an error and returns nothing", ask=False,
    ),
    Differs("ndd.box_encoder(b, l, anchors=[])", "RuntimeError", "DALI crashes", ask=False),
    Differs(
        "ndd.box_encoder(b, l[:1], anchors=[0, 0, 1, 1])", "RuntimeError",
        "labels are read, whatever lies behind", ask=False,
    ),
    Differs(
        "ndd.random_bbox_crop(b, l[:1])", "RuntimeError", "labels are read, whatever lies behind",
        ask=False,
    ),
    Differs(
        "ndd.random_bbox_crop(b[:, [2, 3, 0, 1]].copy())", "RuntimeError",
        "boxes that end before they start have no area",
    ),
    Differs(
        "ndd.random_bbox_crop(np.float32([[.7, 0, .3000001, 1]]), bbox_layout='xyWH')[2]",
        "ndd.random_bbox_crop(np.float32([[.7, 0, .3, 1]]), bbox_layout='xyWH')[2]",
        "rounding is no reason to refuse a box",
    ),
    Differs(
        "ndd.random_bbox_crop(b, thresholds=[.99], allow_no_crop=False)", "ValueError",
        "DALI never returns", ask=False,
    ),
    Differs(
        "ndd.random_bbox_crop(b, scaling=[.5, 1], aspect_ratio=[5, 6], allow_no_crop=False)",
        "RuntimeError", "DALI never returns", ask=False,
    ),
    Differs(
        "ndd.random_bbox_crop(b, input_shape=[0, 5], total_num_attempts=9)", "RuntimeError",
        "windows would be no numbers", ask=False,
    ),
    Differs(
        "ndd.roi_random_crop(crop_shape=[3], roi_start=[6], roi_end=[4])", "RuntimeError",
        "a region that ends before it starts", ask=False,
    ),
    Differs(
        "ndd.roi_random_crop(crop_shape=[-1], roi_start=[6], roi_end=[8])", "RuntimeError",
        "no window is that large", ask=False,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", DIFFER, ids=str)
def test_differences_on_purpose(case):
    boxes = "b, l = np.float32([[.1, .2, .3, .4], [.5, .25, .75, 1]]), np.int32([1, 2])"
    read = case.source
    if case.ours in {"RuntimeError", "ValueError"}:
        read = f"made = {read}\n{READ}"
    Differs(read, case.ours, case.why, case.ask).after(boxes).check()


EXACT = [
    # With the defaults, windows are the whole image.
    "ndd.random_bbox_crop(b)", "ndd.random_bbox_crop(b, l)", "ndd.random_bbox_crop(b, l[:, None])",
    "ndd.random_bbox_crop(b, l, output_bbox_indices=True)",
    "ndd.random_bbox_crop(b, output_bbox_indices=True)", "ndd.random_bbox_crop(b[:0], l[:0])",
    "ndd.random_bbox_crop(b, allow_no_crop=False, total_num_attempts=1)",
    "ndd.random_bbox_crop(b / 2, bbox_layout='xyWH')",
    "ndd.random_bbox_crop(b / 2, bbox_layout='WHxy')",
    "ndd.random_bbox_crop(b / 2, ltrb=False)", "ndd.random_bbox_crop(b, ltrb=True)",
    "ndd.random_bbox_crop(b[:, [2, 3, 0, 1]].copy(), bbox_layout='XYxy')",
    "ndd.random_bbox_crop(np.float32([[.1, .1, .1, .3, .3, .3]]))",
    "ndd.random_bbox_crop(np.float32([[.1, .1, .1, .3, .3, .3]]), bbox_layout='xyzWHD')",
    "ndd.random_bbox_crop(np.float32([[.1, .1, .1, .3, .3, .3]]), ltrb=False)",
    "ndd.random_bbox_crop(ndd.batch([b, b[:1], b[:0]]), ndd.batch([l, l[:1], l[:0]]))",
    "ndd.random_bbox_crop(b, allow_no_crop=False, crop_shape=[9, 8], input_shape=[9, 8])",
    "ndd.random_bbox_crop(b, allow_no_crop=False, crop_shape=[9, 8], input_shape=[9, 8], "
    "shape_layout='HW')",
    "ndd.roi_random_crop(crop_shape=[4, 4], roi_start=[1, 2], roi_shape=[4, 4])",
    "ndd.roi_random_crop(crop_shape=[8], roi_start=[1], roi_shape=[4], in_shape=[8])",
    "ndd.roi_random_crop(crop_shape=[4], roi_start=[6], roi_shape=[2], in_shape=[8])",
    "ndd.roi_random_crop(np.zeros((4, 6, 3)), crop_shape=[4, 6], roi_start=[1, 2], roi_end=[2, 2])",
    "ndd.roi_random_crop(crop_shape=4, roi_start=1, roi_end=5)",
    "ndd.roi_random_crop(crop_shape=[4, 2], roi_start=1, roi_end=ndd.tensor([5, 3]))",
    "ndd.roi_random_crop(crop_shape=ndd.batch([[4], [2]]), roi_start=1, "
    "roi_end=ndd.batch([[5], [3]]))",
    "ndd.roi_random_crop(crop_shape=[], roi_start=[], roi_end=[])",
    "ndd.roi_random_crop(crop_shape=[4], roi_start=[3], roi_shape=[4], batch_size=3)",
]  # fmt: skip


@pytest.mark.parametrize("source", EXACT)
def test_windows_without_a_choice_agree(source):
    assert_same(source, b=random_boxes(4, seed=9), l=LABELS)


COUNTED = [
    "crop_shape=[4], roi_start=[3], roi_end=[5]",
    "crop_shape=[4], roi_start=[1], roi_end=[2]",
    "crop_shape=[4], roi_start=[1], roi_shape=[2], in_shape=[8]",
    "crop_shape=[2], roi_start=[1], roi_shape=[5]",
    "crop_shape=[3], roi_start=[-2], roi_shape=[4]",
    "crop_shape=[3], roi_start=[6], roi_shape=[0], in_shape=[8]",
    "crop_shape=[0], roi_start=[6], roi_end=[8]",
]


@pytest.mark.parametrize("arguments", COUNTED)
def test_places_are_as_likely(arguments):
    # About five standard deviations of the frequencies.
    assert_same(
        f"made = ndd.roi_random_crop({arguments}, batch_size=4096, rng=ndd.random.RNG(3))\n"
        "x = np.ravel(ndd.as_tensor(made))\n[np.mean(x == k) for k in range(-4, 10)]",
        tol=0.055,
    )


SEARCH = """
b = np.stack(np.meshgrid(*[np.arange(8)] * n), -1).reshape(-1, n) / 8
b = np.concatenate([b, b + .125], 1).astype(np.float32)
made = ndd.random_bbox_crop(ndd.batch([b] * 4096), rng=ndd.random.RNG(5), quiet=True, {})
anchor, shape = [np.asarray(ndd.as_tensor(x)) for x in made[:2]]
"""
WINDOWS = [
    "scaling=[.3, 1.], aspect_ratio=[.5, 2.]",
    "scaling=[.3, 1.], aspect_ratio=[1., 1.]",
    "scaling=[.3, 1.], aspect_ratio=[1.5, 1.5]",
    "scaling=[.1, .9], aspect_ratio=[1.5, 3.]",
    "scaling=[.3, 1.], aspect_ratio=[.5, 2.], input_shape=[200, 100]",
    "scaling=[.5, 1.5], aspect_ratio=[.5, 2.]",
    "crop_shape=[30, 70], input_shape=[100, 80]",
    "crop_shape=[30, 90], input_shape=[100, 80]",
    "scaling=[.3, 1.], aspect_ratio=[.5, 2.], thresholds=[.003]",
    "scaling=[.1, 1.], aspect_ratio=[.5, 2.], thresholds=[.1], bbox_prune_threshold=.9",
]  # fmt: skip
SOLIDS = [
    "scaling=[.3, 1.], aspect_ratio=[.5, 2.]",
    "scaling=[.3, 1.], aspect_ratio=[1., 1.]",
    "scaling=[.3, 1.], aspect_ratio=[1., 1., .5, 2., .5, 2.]",
]


@pytest.mark.parametrize(
    ("axes", "arguments"), [(2, row) for row in WINDOWS] + [(3, row) for row in SOLIDS]
)
def test_windows_have_the_same_distribution(axes, arguments):
    more = f"{arguments}, allow_no_crop=False, all_boxes_above_threshold=False"
    # About five standard deviations of quantiles of 4096 draws; windows in pixels are wider.
    tol = 5.0 if "crop_shape" in arguments else 0.055 if axes == 2 else 0.07
    quantiles = "np.quantile(np.concatenate([anchor, shape], 1), [.1, .25, .5, .75, .9], axis=0)"
    source = SEARCH.format(f"{more}, total_num_attempts=1000")
    assert_same(f"n = {axes}{source}{quantiles}", tol=tol)


@pytest.mark.parametrize("arguments", ["", ", num_attempts=50", ", thresholds=[0., .1, .3, .9]"])
def test_the_whole_image_is_as_likely(arguments):
    source = SEARCH.format(f"scaling=[.3, .9], aspect_ratio=[.5, 2.]{arguments}")
    assert_same(f"n = 2{source}np.mean(np.all(shape == 1, 1))", tol=0.04)


FOLLOWS = """
made = ndd.random_bbox_crop(
    ndd.batch([b] * 512), ndd.batch([np.arange(len(b), dtype=np.int32)] * 512),
    rng=ndd.random.RNG(5), allow_no_crop=False, output_bbox_indices=True, quiet=True, {})
right = []
for anchor, shape, kept, labels, indices in zip(*(map(np.asarray, x) for x in made)):
    low, high = anchor, anchor + shape
    common = np.maximum(np.minimum(b[:, 2:], high) - np.maximum(b[:, :2], low), 0).prod(1)
    area = (b[:, 2:] - b[:, :2]).prod(1)
    iou, share = common / (area + shape.prod() - common), common / area
    centre = (b[:, :2] + b[:, 2:]) * np.float32(.5)
    inside = np.all((low <= centre) & (centre < high), 1)
    moved = (b[indices] - np.tile(low, 2)) / np.tile(shape, 2)
    right.append([
        np.array_equal(np.flatnonzero({}), indices) and np.array_equal(labels, indices),
        np.allclose(moved.clip(0, 1), kept, atol=1e-6, rtol=0), bool({}), len(kept) > 0])
np.all(right, 0)
"""


@pytest.mark.parametrize(
    ("arguments", "kept", "held"),
    [
        ("thresholds=[.02]", "inside", "iou.min() >= .02"),
        ("thresholds=[.3], all_boxes_above_threshold=False", "inside", "iou.max() >= .3"),
        ("thresholds=[.4], threshold_type='overlap'", "inside", "share.min() >= .4"),
        (
            "thresholds=[1.], threshold_type='overlap', all_boxes_above_threshold=False",
            "inside",
            "share.max() >= 1",
        ),
        ("bbox_prune_threshold=.3", "share >= np.float32(.3)", "True"),
        ("bbox_prune_threshold=0.", "share > 0", "True"),
        ("bbox_prune_threshold=1.", "share >= 1", "True"),
    ],
)
def test_boxes_follow_from_the_window(arguments, kept, held):
    more = f"{arguments}, scaling=[.3, .95], aspect_ratio=[.5, 2.], total_num_attempts=100000"
    assert_same(FOLLOWS.format(more, kept, held), b=random_boxes(6, seed=11))


def test_the_best_window_is_the_result_when_none_suffices():
    source = SEARCH.format(
        "scaling=[.3, .9], aspect_ratio=[.5, 2.], thresholds=[.99], allow_no_crop=False, "
        "all_boxes_above_threshold=False, total_num_attempts=20"
    )
    # The smaller the window, the better it fits one of the small boxes.
    assert_same(f"n = 2{source}np.quantile(shape.prod(1), [.1, .25, .5, .75, .9])", tol=0.02)
