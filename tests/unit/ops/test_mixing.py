"""Mixup and cutmix, compared with torchvision's formulas for the proportion that was drawn."""

import numpy as np
import pytest
from tests.images import photograph

import penstock as ndd

COUNT, CLASSES = 6, 5
HARD = [3, 0, 1, 4, 4, 2]


def one_hot(numbers, classes=CLASSES):
    return np.eye(classes, dtype=np.float32)[numbers]


def pictures(dtype="u1", count=COUNT, layout="HWC"):
    arrays = [photograph(17, 23, seed=k).astype(dtype) for k in range(count)]
    if np.dtype(dtype).kind == "f":
        arrays = [(array / 255).astype(dtype) for array in arrays]
    axes = ["HWC".index(letter) for letter in layout]
    return [np.ascontiguousarray(array.transpose(axes)) for array in arrays]


def proportions(labels, numbers=HARD):
    """The weight of each sample's own label; None if its partner has the same label."""
    expected = []
    for k, soft in enumerate(labels):
        own, other = numbers[k], numbers[k - 1]
        assert abs(soft.sum() - 1) < 1e-5
        if own == other:
            assert abs(soft[own] - 1) < 1e-5
            expected.append(None)
            continue
        assert abs(soft[own] + soft[other] - 1) < 1e-5
        expected.append(float(soft[own]))
    return expected


def mixed(call, dtype="u1", layout="HWC", labels=None, **more):
    arrays = pictures(dtype, layout=layout)
    labels = ndd.batch(HARD) if labels is None else labels
    more = {"num_classes": CLASSES, "rng": ndd.random.RNG(seed=3), **more}
    images, soft = call(ndd.batch(arrays, layout=layout), labels, **more)
    return (
        arrays,
        [np.asarray(x) for x in images.tensors],
        np.stack([np.asarray(x) for x in soft.tensors]),
    )


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f2", "f4", "f8"])
def test_mixup_blends_images_and_labels_in_the_same_proportion(dtype, per_sample):
    arrays, images, labels = mixed(ndd.mixup, dtype, per_sample=per_sample)
    shares = proportions(labels)
    known = [share for share in shares if share is not None]
    assert labels.dtype == np.float32
    assert len(set(np.round(known, 5))) == (len(known) if per_sample else 1)
    for k, (image, share) in enumerate(zip(images, shares, strict=True)):
        assert image.dtype == arrays[k].dtype
        if share is not None:
            expected = share * arrays[k].astype("f8") + (1 - share) * arrays[k - 1].astype("f8")
            tolerance = {"f2": 1e-3, "f4": 1e-5, "f8": 1e-5}.get(dtype, 0.501)
            assert abs(image.astype("f8") - expected).max() <= tolerance


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_cutmix_replaces_a_rectangle_and_mixes_labels_by_area(layout, per_sample):
    arrays, images, labels = mixed(ndd.cutmix, layout=layout, per_sample=per_sample, alpha=9)
    shares = proportions(labels)
    windows = []
    for k, (image, share) in enumerate(zip(images, shares, strict=True)):
        own, other = arrays[k], arrays[k - 1]
        axis = layout.index("C")
        from_other = (image == other).all(axis) & (own != other).any(axis)
        rows, columns = np.flatnonzero(from_other.any(1)), np.flatnonzero(from_other.any(0))
        window = (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1)
        windows.append(window)
        inside = np.zeros((17, 23), bool)
        inside[window[0] : window[1], window[2] : window[3]] = True
        inside = np.expand_dims(inside, axis)
        np.testing.assert_array_equal(image, np.where(inside, other, own))
        if share is not None:
            assert abs(share - (1 - inside.mean())) < 1e-5
    assert (len(set(windows)) == 1) is not per_sample


def test_cutmix_uses_the_same_rectangle_for_all_frames():
    frames = [np.stack(pictures()[k : k + 2]) for k in range(4)]
    made, _ = ndd.cutmix(ndd.batch(frames, layout="FHWC"), ndd.batch([0, 1, 2, 3]), num_classes=4)
    for k, sample in enumerate(made.tensors):
        changed = (np.asarray(sample) != frames[k]).any(-1)
        # Some pixels of the partner's frames may equal the image's own.
        assert changed[0].mean() == pytest.approx(changed[1].mean(), abs=0.05)


@pytest.mark.parametrize("call", [ndd.mixup, ndd.cutmix])
def test_class_indices_and_vectors_are_equivalent(call):
    *_, from_numbers = mixed(call)
    *_, from_ones = mixed(call, labels=ndd.batch([[n] for n in HARD]))
    *_, from_vectors = mixed(call, labels=ndd.batch(list(one_hot(HARD))), num_classes=None)
    *_, from_integers = mixed(call, labels=ndd.batch(list(one_hot(HARD).astype(int))))
    np.testing.assert_allclose(from_numbers, from_vectors, atol=1e-6)
    np.testing.assert_allclose(from_numbers, from_ones, atol=1e-6)
    np.testing.assert_allclose(from_numbers, from_integers, atol=1e-6)


def test_labels_are_smoothed():
    *_, sharp = mixed(ndd.mixup)
    *_, smooth = mixed(ndd.mixup, label_smoothing=0.1)
    np.testing.assert_allclose(smooth, sharp * 0.9 + 0.1 / CLASSES, atol=1e-6)


def test_proportions_are_beta_distributed():
    images = ndd.batch([np.zeros((1, 1, 1), np.float32)] * 4000, layout="HWC")
    labels = ndd.batch([0, 1] * 2000)
    for alpha in (0.2, 1.0, 8.0):
        rng = ndd.random.RNG(seed=11)
        _, soft = ndd.mixup(images, labels, alpha=alpha, num_classes=2, per_sample=True, rng=rng)
        shares = soft.torch().numpy()[np.arange(4000), np.array([0, 1] * 2000)]
        # Mean and variance of the beta distribution.
        assert shares.mean() == pytest.approx(0.5, abs=0.03)
        assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)


@pytest.mark.parametrize("call", [ndd.mixup, ndd.cutmix])
def test_a_single_sample_is_unchanged(call):
    image = photograph(9, 8)
    for images, labels in [
        (ndd.tensor(image, layout="HWC"), 2),
        (ndd.batch([image], layout="HWC"), ndd.batch([2])),
    ]:
        made, soft = call(images, labels, num_classes=3)
        np.testing.assert_array_equal(made.torch().reshape(image.shape), image)
        np.testing.assert_allclose(soft.torch().reshape(3), [0, 0, 1])


@pytest.mark.parametrize("call", [ndd.mixup, ndd.cutmix])
def test_results_depend_only_on_the_rng(call):
    arrays = pictures()

    def run(mode, threads):
        with ndd.EvalContext(num_threads=threads), mode:
            images, labels = call(
                ndd.batch(arrays, layout="HWC"),
                ndd.batch(HARD),
                num_classes=CLASSES,
                rng=ndd.random.RNG(seed=2),
            )
            return images.torch().numpy(), labels.torch().numpy()

    expected = run(ndd.EvalMode.sync_cpu, 1)
    for mode in ndd.EvalMode:
        for threads in (1, 4):
            for a, b in zip(expected, run(mode, threads), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("call", [ndd.mixup, ndd.cutmix])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"num_classes": None}, "`num_classes` is required if labels are class indices"),
        ({"num_classes": 3}, "class index 3 is out of range for 3 classes"),
        ({"alpha": 0}, "`alpha` must be positive and finite, got 0"),
        ({"alpha": np.nan}, "`alpha` must be positive and finite, got nan"),
        ({"labels": ndd.batch(list(one_hot(HARD, 6)))}, "each of 5 classes .*, got 6 values"),
        (
            {"labels": ndd.batch([[0.5] * (2 + k) for k in range(6)]), "num_classes": None},
            "all labels",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call, change, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        mixed(call, **change)


@pytest.mark.parametrize("call", [ndd.mixup, ndd.cutmix])
def test_images_of_different_shapes_are_rejected(call):
    images = ndd.batch([photograph(5, 6), photograph(5, 7)], layout="HWC")
    with pytest.raises(RuntimeError, match=r"must have the same shape and type.*resize or crop"):
        call(images, ndd.batch([0, 1]), num_classes=2)[0].evaluate()
