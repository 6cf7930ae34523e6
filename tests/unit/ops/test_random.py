"""Random operators: distributions, independence, and dependence on the RNG alone."""

import math
import threading

import numpy as np
import pytest

import penstock as ndd
from penstock import random
from penstock.random import RNG

COUNT = 200_000
FLOATS = [ndd.float16, ndd.bfloat16, ndd.float32, ndd.float64]
INTS = [ndd.int8, ndd.int16, ndd.int32, ndd.int64, ndd.uint8, ndd.uint16, ndd.uint32, ndd.uint64]
DRAWS = {
    "uniform": lambda **more: random.uniform(**more),
    "uniform64": lambda **more: random.uniform(dtype=ndd.float64, **more),
    "values": lambda **more: random.uniform(values=[1, 2, 3, 4], **more),
    "normal": lambda **more: random.normal(**more),
    "coin_flip": lambda **more: random.coin_flip(**more),
    "choice": lambda **more: random.choice(1000, **more),
    "chances": lambda **more: random.choice(3, p=[0.2, 0.3, 0.5], **more),
    "beta": lambda **more: random.beta(alpha=2, beta=3, **more),
    "small_beta": lambda **more: random.beta(alpha=0.5, beta=0.5, **more),
}
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


def array(value):
    if isinstance(value, ndd.Batch):
        value = ndd.as_tensor(value)
    if value.dtype in (ndd.float16, ndd.bfloat16):
        value = ndd.cast(value, dtype=ndd.float32)
    return np.asarray(value)


def distance(drawn, cdf):
    """The distance of drawn numbers from a distribution (Kolmogorov-Smirnov).

    Scaled so that only one in a thousand fair samples gets above 1.95.
    """
    drawn = np.sort(np.asarray(drawn, np.float64).ravel())
    n = len(drawn)
    expected = cdf(drawn)
    steps = np.arange(n + 1) / n
    apart = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    return apart * math.sqrt(n)


def surprise(counts, chances):
    """Pearson's chi-squared as a z-score: rarely above 3.3 for correct counts."""
    counts, chances = np.asarray(counts, float), np.asarray(chances, float)
    expected = counts.sum() * chances
    chi = np.sum((counts - expected) ** 2 / expected)
    freedom = len(counts) - 1
    # Wilson and Hilferty
    return ((chi / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def correlation(a, b):
    """Correlation as a z-score: rarely above 3.3 for independent numbers."""
    return abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) * math.sqrt(a.size)


erf = np.vectorize(math.erf)


# Distributions


@pytest.mark.parametrize("dtype", [ndd.float32, ndd.float64], ids=str)
@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 1), (1e6, 1e6 + 50), (-7e37, 3e38)])
def test_uniform_is_uniform(dtype, low, high):
    drawn = array(random.uniform(shape=COUNT, range=[low, high], dtype=dtype, rng=RNG(1)))
    assert low <= drawn.min() < drawn.max() < high
    if low != 1e6 or dtype is ndd.float64:  # float32 is too coarse there
        assert distance(drawn, lambda x: (x - low) / (high - low)) < 1.95


def test_uniform_has_the_moments_of_its_range():
    drawn = array(random.uniform(shape=COUNT, rng=RNG(2), dtype=ndd.float64))
    assert abs(drawn.mean()) < 4 / math.sqrt(3 * COUNT)
    assert abs(drawn.var() - 1 / 3) < 4 * math.sqrt(4 / 45 / COUNT)
    assert abs((drawn**3).mean()) < 4 / math.sqrt(7 * COUNT)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 0), (-2, -1), (0.99, 1)])
def test_uniform_stays_below_the_end_in_every_float(dtype, low, high):
    drawn = array(random.uniform(shape=COUNT, range=[low, high], dtype=dtype, rng=RNG(3)))
    assert drawn.max() < high
    # The first number of the type may lie below a start that is not of the type.
    assert drawn.min() >= float(array(ndd.cast(np.float64(low), dtype=dtype)))


def test_uniform_may_be_wider_than_the_largest_number():
    for dtype, end in ((ndd.float64, 1.7e308), (ndd.float32, 1e39)):
        drawn = array(random.uniform(shape=1000, range=[-end, end], dtype=dtype, rng=RNG(4)))
        assert np.isfinite(drawn).all()
        assert 0.4 < (drawn > 0).mean() < 0.6


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_uniform_rounds_to_whole_numbers(dtype):
    drawn = array(random.uniform(shape=COUNT, range=[0, 3], dtype=dtype, rng=RNG(5)))
    assert surprise(np.bincount(drawn.astype(int)), [1 / 6, 1 / 3, 1 / 3, 1 / 6]) < 3.3


def test_uniform_saturates():
    drawn = array(random.uniform(shape=COUNT, range=[-255, 510], dtype=ndd.uint8, rng=RNG(6)))
    counts = np.bincount(drawn, minlength=256)
    ends = 255.5 / 765
    assert surprise(counts, [ends, *[1 / 765] * 254, ends]) < 3.3


def test_uniform_draws_large_integers_with_all_their_bits():
    drawn = array(random.uniform(shape=1000, range=[0, 2**62], dtype=ndd.int64, rng=RNG(7)))
    assert len(set(drawn)) == 1000
    assert len(set(drawn >> 10 & 1023)) > 500


def test_uniform_chooses_values():
    values = [1.5, -2, 7, 300]
    drawn = array(random.uniform(shape=COUNT, values=values, rng=RNG(8)))
    assert surprise([np.sum(drawn == value) for value in values], [0.25] * 4) < 3.3
    drawn = array(random.uniform(shape=100, values=values, dtype=ndd.uint8, rng=RNG(8)))
    assert set(drawn) == {2, 0, 7, 255}


@pytest.mark.parametrize("dtype", [ndd.float32, ndd.float64], ids=str)
def test_normal_is_normal(dtype):
    drawn = array(random.normal(shape=COUNT, mean=3, stddev=2, dtype=dtype, rng=RNG(9)))
    scaled = (drawn.astype(float) - 3) / 2
    assert distance(scaled, lambda x: (1 + erf(x / math.sqrt(2))) / 2) < 1.95
    assert abs(scaled.mean()) < 4 / math.sqrt(COUNT)
    assert abs(scaled.var() - 1) < 4 * math.sqrt(2 / COUNT)
    assert abs((scaled**3).mean()) < 4 * math.sqrt(15 / COUNT)
    assert abs((scaled**4).mean() - 3) < 4 * math.sqrt(96 / COUNT)


def test_normal_has_tails():
    drawn = np.abs(array(random.normal(shape=4 * COUNT, rng=RNG(10))))
    for bound in (3, 4):
        expected = 4 * COUNT * math.erfc(bound / math.sqrt(2))
        assert abs(np.sum(drawn > bound) - expected) < 4 * math.sqrt(expected)
    assert drawn.max() < 8.6


def test_normal_pairs_are_independent():
    # Both numbers of a pair are made of the same words: 8 elements apart, in groups of 16.
    drawn = array(random.normal(shape=[COUNT // 16, 2, 8], rng=RNG(11)))
    a, b = drawn[:, 0], drawn[:, 1]
    assert correlation(a, b) < 3.3
    assert correlation(a**2, b**2) < 3.3


def test_normal_rounds_and_saturates():
    drawn = array(random.normal(shape=COUNT, stddev=2, dtype=ndd.uint8, rng=RNG(12)))
    below = [(1 + math.erf((k + 0.5) / 2 / math.sqrt(2))) / 2 for k in range(6)]
    counts = np.bincount(np.minimum(drawn, 6))
    assert surprise(counts, np.diff([0, *below, 1])) < 3.3


@pytest.mark.parametrize("p", [0, 1e-3, 0.3, 0.5, 1])
def test_coin_flip_has_its_probability(p):
    drawn = array(random.coin_flip(shape=COUNT, probability=p, rng=RNG(13)))
    assert set(drawn) <= {0, 1}
    assert abs(drawn.mean() - p) <= 4 * math.sqrt(p * (1 - p) / COUNT)


@pytest.mark.parametrize("dtype", [ndd.bool, *INTS, *FLOATS], ids=str)
def test_coin_flip_has_every_type(dtype):
    drawn = random.coin_flip(shape=100, dtype=dtype, rng=RNG(14))
    assert drawn.dtype == dtype
    assert set(array(drawn).tolist()) == {0, 1}


def test_choice_is_even():
    drawn = array(random.choice(10, shape=COUNT, rng=RNG(15)))
    assert surprise(np.bincount(drawn), [0.1] * 10) < 3.3


def test_choice_follows_its_probabilities():
    p = [0.1, 0, 0.65, 0.25, 0]
    drawn = array(random.choice(5, shape=COUNT, p=p, rng=RNG(16)))
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == counts[4] == 0
    assert surprise(counts[[0, 2, 3]], [0.1, 0.65, 0.25]) < 3.3


def test_choice_from_many():
    drawn = array(random.choice(ndd.tensor(np.uint64(2**64 - 1)), shape=COUNT, rng=RNG(17)))
    assert distance(drawn / 2.0**64, lambda x: x) < 1.95


@pytest.mark.parametrize(
    ("alpha", "beta", "cdf"),
    [
        (1, 1, lambda x: x),
        (3, 1, lambda x: x**3),
        (1, 5, lambda x: 1 - (1 - x) ** 5),
        (0.25, 1, lambda x: x**0.25),
        (1, 0.2, lambda x: 1 - (1 - x) ** 0.2),
        (0.5, 0.5, lambda x: 2 / np.pi * np.arcsin(np.sqrt(x))),
        (2, 3, lambda x: x**2 * (6 - 8 * x + 3 * x**2)),
        (3, 2, lambda x: x**3 * (4 - 3 * x)),
        (1.5, 1.5, lambda x: (np.arcsin(2 * x - 1) + (4 * x - 2) * np.sqrt(x * (1 - x))) / np.pi
                             + 0.5),
    ],
)  # fmt: skip
def test_beta_is_beta(alpha, beta, cdf):
    drawn = random.beta(shape=COUNT, alpha=alpha, beta=beta, dtype=ndd.float64, rng=RNG(18))
    drawn = array(drawn)
    assert 0 <= drawn.min() < drawn.max() <= 1
    assert distance(drawn, cdf) < 1.95


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [(0.1, 7), (7, 0.1), (0.3, 0.02), (1.001, 90), (300, 40), (5e4, 5e4), (1, 1e3)],
)
def test_beta_has_its_moments(alpha, beta):
    drawn = random.beta(shape=COUNT, alpha=alpha, beta=beta, dtype=ndd.float64, rng=RNG(19))
    drawn = array(drawn)
    mean = alpha / (alpha + beta)
    variance = mean * (1 - mean) / (alpha + beta + 1)
    assert abs(drawn.mean() - mean) < 4 * math.sqrt(variance / COUNT)
    fourth = ((drawn - mean) ** 4).mean()
    assert abs(drawn.var() - variance) < 4 * math.sqrt(fourth / COUNT)


@pytest.mark.parametrize("alpha", [1e-30, 1e-45, 1e-3, 1, 1e3, 1e30, 3e38])
@pytest.mark.parametrize("beta", [1e-30, 1e-45, 1e-3, 1, 1e3, 1e30, 3e38])
def test_beta_survives_extremes(alpha, beta):
    drawn = array(random.beta(shape=100, alpha=alpha, beta=beta, rng=RNG(20)))
    assert ((drawn >= 0) & (drawn <= 1)).all()
    mean = alpha / (alpha + beta)
    assert abs(drawn.mean() - mean) < 0.2


def permutations(size, count, **more):
    rng = RNG(21)
    return [tuple(array(ndd.batch_permutation(batch_size=size, rng=rng, **more)).tolist())
            for _ in range(count)]  # fmt: skip


def test_all_permutations_are_equally_likely():
    drawn = permutations(4, 6000)
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(kinds) == 24
    assert all(sorted(kind) == [0, 1, 2, 3] for kind in kinds)
    assert surprise(counts, [1 / 24] * 24) < 3.3


def test_permutations_without_fixed_points_are_circles():
    drawn = permutations(4, 3000, no_fixed_points=True)
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(kinds) == 6
    assert all(place != index for kind in kinds for index, place in enumerate(kind))
    assert surprise(counts, [1 / 6] * 6) < 3.3


def test_repetitions_are_drawn_one_by_one():
    drawn = np.array(permutations(3, 3000, allow_repetitions=True))
    assert surprise(np.bincount(drawn @ [9, 3, 1]), [1 / 27] * 27) < 3.3
    drawn = permutations(3, 3000, allow_repetitions=True, no_fixed_points=True)
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(kinds) == 8
    assert surprise(counts, [1 / 8] * 8) < 3.3


# Independence


@every_draw
def test_samples_are_independent(draw):
    drawn = array(draw(batch_size=4, shape=COUNT // 4, rng=RNG(22))).astype(float)
    for a in range(4):
        for b in range(a):
            assert correlation(drawn[a], drawn[b]) < 3.5


@every_draw
def test_calls_are_independent(draw):
    rng = RNG(23)
    drawn = [array(draw(shape=COUNT // 4, rng=rng)).astype(float) for _ in range(4)]
    for a in range(4):
        for b in range(a):
            assert correlation(drawn[a], drawn[b]) < 3.5


@every_draw
def test_elements_are_independent(draw):
    drawn = array(draw(shape=COUNT, rng=RNG(24))).astype(float)
    for lag in (1, 2, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 64, 128):
        assert correlation(drawn[lag:], drawn[:-lag]) < 3.5, lag


@every_draw
def test_single_numbers_of_many_calls_are_independent(draw):
    # What most programs do: one number per sample, call after call.
    rng = RNG(25)
    drawn = np.array([array(draw(batch_size=8, rng=rng)) for _ in range(2000)]).astype(float)
    for lag in (1, 2, 3):
        assert correlation(drawn[lag:], drawn[:-lag]) < 3.5
    assert correlation(drawn[:, 1:], drawn[:, :-1]) < 3.5


@every_draw
def test_neighbouring_seeds_are_independent(draw):
    drawn = [array(draw(shape=COUNT // 4, rng=RNG(seed))).astype(float) for seed in range(4)]
    for a in range(4):
        for b in range(a):
            assert correlation(drawn[a], drawn[b]) < 3.5


def test_single_uniforms_of_many_calls_are_uniform():
    rng = RNG(26)
    drawn = [array(random.uniform(range=[0, 1], batch_size=8, rng=rng)) for _ in range(2000)]
    assert distance(drawn, lambda x: x) < 1.95


# Dependence on the RNG alone


@every_draw
def test_the_same_seed_gives_the_same(draw):
    assert_equal(draw(shape=100, rng=RNG(1)), draw(shape=100, rng=RNG(1)))
    random.set_seed(1)
    assert_equal(draw(shape=100), draw(shape=100, rng=RNG(1)))
    state = random.get_default_rng().state
    again = draw(shape=100)
    assert_equal(draw(shape=100, rng=RNG(state=state)), again)
    assert not np.array_equal(array(again), array(draw(shape=100, rng=RNG(1))))


def assert_equal(a, b):
    np.testing.assert_array_equal(array(a), array(b), strict=True)


@every_draw
def test_threads_and_modes_change_nothing(draw):
    def run():
        rng = RNG(27)
        made = [draw(batch_size=5, shape=size, rng=rng) for size in (1, 3, 1000, 20_000)]
        return [array(value) for value in reversed(made)]

    expected = run()
    for threads in (1, 2, 5):
        with ndd.EvalContext(num_threads=threads):
            for mode in ndd.EvalMode:
                with mode:
                    for a, b in zip(run(), expected, strict=True):
                        np.testing.assert_array_equal(a, b)


@every_draw
def test_what_a_sample_gets_depends_on_its_number_alone(draw):
    few = array(draw(batch_size=3, shape=50, rng=RNG(28)))
    many = array(draw(batch_size=9, shape=50, rng=RNG(28)))
    np.testing.assert_array_equal(few, many[:3])
    single = array(draw(shape=50, rng=RNG(28)))
    np.testing.assert_array_equal(single, many[0])
    # An element's number doesn't depend on how many follow.
    longer = array(draw(shape=77, rng=RNG(28)))
    np.testing.assert_array_equal(longer[:50], single)


# The bits, which must be the same on every machine.
BITS = {
    "uniform": lambda: random.uniform(shape=3, rng=RNG(1)),
    "normal": lambda: random.normal(shape=3, rng=RNG(1), dtype=ndd.float64),
    "choice": lambda: random.choice(1000, shape=3, rng=RNG(1)),
    "beta": lambda: random.beta(alpha=2.5, beta=0.5, shape=3, rng=RNG(1), dtype=ndd.float64),
    "batch_permutation": lambda: ndd.batch_permutation(batch_size=6, rng=RNG(1)),
}
EXPECTED = {
    "uniform": [-0.03956367075443268, 0.34838441014289856, 0.17920541763305664],
    "normal": [0.631027280368912, 0.41332644427136883, -0.23384327311374273],
    "choice": [486, 453, 609],
    "beta": [0.8818685136732163, 0.8586033403467085, 0.7572560421539115],
    "batch_permutation": [0, 3, 1, 5, 4, 2],
}


@pytest.mark.parametrize("name", BITS)
def test_values_are_those_of_every_machine(name):
    assert array(BITS[name]()).tolist() == EXPECTED[name]


@every_draw
def test_a_call_takes_seven_words(draw):
    for more in ({}, {"batch_size": 8}, {"shape": [10, 100]}):
        rng = RNG(29)
        draw(rng=rng, **more)
        expected = RNG(29)
        expected.advance(7)
        assert rng.state == expected.state


def test_a_refused_call_takes_none():
    rng = RNG(30)
    before = rng.state
    for wrong in (
        lambda: random.uniform(rng=rng, nonsense=1),
        lambda: random.uniform(rng=rng, range="ab"),
        lambda: random.beta(rng=rng, dtype=ndd.int32),
        lambda: ndd.batch_permutation(rng=rng),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    assert rng.state == before


def test_a_draw_is_numbered_at_the_call():
    rng = RNG(31)
    with ndd.EvalMode.deferred:
        first, second = random.uniform(rng=rng), random.uniform(rng=rng)
    late = array(second), array(first)
    rng = RNG(31)
    assert (array(random.uniform(rng=rng)), array(random.uniform(rng=rng))) == late[::-1]


def test_threads_draw_from_defaults_of_their_own():
    made = {}

    def work(seed):
        random.set_seed(seed)
        made[seed] = [array(random.uniform(batch_size=4, shape=100)) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, drawn in made.items():
        rng = RNG(seed)
        for value in drawn:
            np.testing.assert_array_equal(
                value, array(random.uniform(batch_size=4, shape=100, rng=rng))
            )


# Other forms of calls


def test_large_results_are_made_in_the_background():
    made = random.normal(batch_size=4, shape=[1000, 1000])
    assert not made._value.finished
    assert random.normal(batch_size=4)._value.finished


def test_uniform_results_lie_in_one_block():
    made = random.uniform(batch_size=4, shape=[3, 5])
    made.evaluate()
    first, second = (np.asarray(made.tensors[i]) for i in (0, 1))
    assert second.ctypes.data - first.ctypes.data == first.nbytes


def test_shapes_that_are_not_known_yet():
    with ndd.EvalMode.deferred:
        shape = ndd.tensor([2, 3]) + 0
        made = random.uniform(shape=shape)
        rows = random.choice([[1, 2], [3, 4]], shape=shape)
    assert made.shape == (2, 3)
    assert made.ndim == 2
    assert rows.shape == (2, 3, 2)


@pytest.mark.parametrize("shape", [[2**62, 2**62], [2**63 - 1], [0, -1], [-(2**63)]])
def test_shapes_that_cannot_be(shape):
    with pytest.raises((RuntimeError, MemoryError), match=r"shape|memory"):
        random.uniform(shape=shape).evaluate()


def test_hints_name_batch_size():
    images = ndd.batch(np.zeros((3, 2, 2, 1)), layout="HWC")
    with pytest.raises(ValueError, match="batch_size"):
        ndd.flip(images, horizontal=random.coin_flip(batch_size=2))
    with pytest.warns(random.SharedDrawWarning):
        flipped = ndd.flip(images, horizontal=random.coin_flip(shape=3))
    with pytest.raises(RuntimeError, match="batch_size"):
        flipped.evaluate()
    with pytest.raises(ValueError, match="batch_size"):
        ndd.batch_permutation()
    with pytest.raises(ValueError, match="batch_size"):
        random.uniform(images, batch_size=2)


def test_one_draw_for_a_whole_batch_is_told():
    images = ndd.batch(np.zeros((3, 2, 2, 1)), layout="HWC")
    with pytest.warns(random.SharedDrawWarning, match=r"flip: `horizontal`.*coin_flip.*batch_size"):
        ndd.flip(images, horizontal=random.coin_flip())
    with pytest.warns(random.SharedDrawWarning, match=r"uniform.*batch_size") as told:
        images + random.uniform()
    assert told[0].filename == __file__
    with pytest.warns(random.SharedDrawWarning):
        random.normal() * images
    # None of these should warn; a warning is an error here.
    ndd.flip(images, horizontal=random.coin_flip(batch_size=3))
    ndd.flip(images.tensors[0], horizontal=random.coin_flip())
    images + random.uniform(batch_size=3)
    images.tensors[0] + random.uniform()


@pytest.mark.parametrize("rng", [5, "a", RNG, RNG(1).state])
def test_an_rng_must_be_one(rng):
    with pytest.raises(ValueError, match=r"random\.uniform: `rng`"):
        random.uniform(rng=rng)
