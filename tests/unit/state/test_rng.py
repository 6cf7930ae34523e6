"""RNGs: the words, the state, threads and forks."""

import copy
import json
import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest
from tests.stress.fresh import check_fresh

from penstock import random
from penstock._state.rng import State
from penstock.random import RNG

START = "Philox_{:016X}_0000000000000000:{:016X}_{}"


def test_words_are_those_of_dali():
    rng = RNG(seed=0)
    assert [rng() for _ in range(4)] == [1713891541, 3781805453, 3159862348, 2600524760]
    assert RNG(1234)() == 546353992
    rng = RNG(42)
    assert [rng() for _ in range(4)] == [2632642643, 2012563771, 314527917, 1463989207]


def test_words_of_any_place_are_those_of_dali():
    rng = RNG(state="Philox_0000000000000005_0000000000000007:0000000000000009_3")
    assert [rng() for _ in range(3)] == [1257656192, 3287128855, 1674969534]


def test_advance_skips_words():
    walked, jumped = RNG(3), RNG(3)
    words = [walked() for _ in range(30)]
    jumped.advance(29)
    assert jumped() == words[29]
    jumped.advance(0)
    assert jumped.state == walked.state


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (5, START.format(1, 1, 1)),
        (2**32, START.format(1, 2**30, 0)),
        (2**64 - 1, START.format(1, 2**62 - 1, 3)),
        (2**66 + 6, "Philox_0000000000000001_0000000000000001:0000000000000001_2"),
        (np.int64(4), START.format(1, 1, 0)),
    ],
)
def test_advance_goes_as_far_as_it_is_told(words, state):
    rng = RNG(1)
    rng.advance(words)
    assert rng.state == state


def test_advance_goes_forward_by_whole_words_only():
    with pytest.raises(ValueError, match="negative"):
        RNG(1).advance(-1)
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError):
            RNG(1).advance(wrong)


@pytest.mark.parametrize(
    ("seed", "number"),
    [(5, 5), (-1, 2**64 - 1), (2**64 + 5, 5), (True, 1), (np.int64(-2), 2**64 - 2)],
)
def test_64_bits_of_a_seed_count(seed, number):
    rng = RNG()
    rng.seed = seed
    for made in (RNG(seed), RNG(seed=seed), rng):
        assert made.state == START.format(number, 0, 0)


@pytest.mark.parametrize("seed", [1.5, "a", [1], b"1"])
def test_a_seed_must_be_an_integer(seed):
    for wrong in (RNG, random.set_seed):
        with pytest.raises(TypeError, match="seed"):
            wrong(seed)


def test_setting_the_seed_starts_over():
    rng = RNG(1)
    first = rng()
    rng.seed = 1
    assert rng() == first
    with pytest.raises(AttributeError, match="write-only"):
        _ = rng.seed
    with pytest.raises(TypeError, match="seed"):
        rng.seed = None


def test_rngs_without_a_seed_differ():
    assert len({RNG().state for _ in range(20)}) == 20


def test_a_state_is_a_text_and_goes_anywhere():
    rng = RNG(9)
    rng.advance(6)
    state = rng.state
    assert isinstance(state, State)
    assert state == str(state) == START.format(9, 1, 2)
    assert type(str(state)) is str
    assert repr(state) == f"State('{state}')"
    after = [rng() for _ in range(5)]
    for value in (state, str(state), json.loads(json.dumps(state)), pickle.loads(bytes_of(state))):
        for other in (RNG(state=value), RNG(None, value), RNG(1)):
            other.set_state(value)
            assert [other() for _ in range(5)] == after
            other.state = value
            assert other.get_state() == other.get_state(cuda_stream=None) == state


def bytes_of(value):
    return pickle.dumps(value)


def test_states_are_kept_exactly():
    text = "Philox_00000000000000AF_0123456789ABCDEF:FFFFFFFFFFFFFFFF_3"
    rng = RNG(state=text.replace("AF_", "af_"))
    assert rng.state == text
    rng()
    assert rng.state == "Philox_00000000000000AF_0123456789ABCDF0:0000000000000000_0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "Philox_5_0:0_0",
        START.format(1, 0, 4),
        START.format(1, 0, 0).lower(),
        " " + START.format(1, 0, 0),
        START.format(1, 0, 0) + "\n",
        START.format(1, 0, -1),
    ],
)
def test_a_text_that_is_no_state_is_refused(text):
    rng = RNG(1)
    before = rng.state
    with pytest.raises(ValueError, match="Philox_"):
        rng.set_state(text)
    with pytest.raises(ValueError, match="Philox_"):
        RNG(state=text)
    assert rng.state == before


@pytest.mark.parametrize("value", [5, None, RNG(1), b"Philox"])
def test_what_is_no_state_is_refused(value):
    with pytest.raises(TypeError, match="state"):
        RNG(1).set_state(value)


def test_seed_and_state_together_are_refused():
    with pytest.raises(ValueError, match="can't be combined"):
        RNG(seed=1, state=RNG(2).state)


@pytest.mark.parametrize("duplicate", [RNG.clone, copy.copy, copy.deepcopy])
def test_a_clone_goes_on_by_itself(duplicate):
    rng = RNG(4)
    rng()
    made = duplicate(rng)
    assert made.state == rng.state
    word = made()
    assert made.state != rng.state
    assert rng() == word


def test_rngs_can_be_pickled():
    rng = RNG(4)
    rng()
    assert pickle.loads(pickle.dumps(rng)).state == rng.state


def test_the_default_is_the_threads_own():
    random.set_seed(5)
    mine = random.get_default_rng()
    assert mine is random.get_default_rng()
    assert mine.state == RNG(5).state
    theirs = []
    thread = threading.Thread(target=lambda: theirs.append(random.get_default_rng()))
    thread.start()
    thread.join()
    assert theirs[0] is not mine
    assert theirs[0].state != mine.state


def test_set_seed_keeps_the_object():
    before = random.get_default_rng()
    random.set_seed(6)
    assert random.get_default_rng() is before


def test_a_shared_rng_gives_each_thread_other_words():
    rng = RNG(1)
    start = threading.Barrier(4)
    drawn = [[] for _ in range(4)]

    def draw(words):
        start.wait()
        words.extend(rng() for _ in range(2000))

    threads = [threading.Thread(target=draw, args=(words,)) for words in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = RNG(1)
    assert sorted(word for words in drawn for word in words) == sorted(
        expected() for _ in range(8000)
    )
    assert rng.state == expected.state


def in_child(function):
    """The result of the function in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, pickle.dumps(function()))
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pickle.loads(pipe.read())


def fork_with_unseeded_rngs():
    plain, other = RNG(), RNG()
    rngs = [plain, other, other.clone()]

    def words():
        return [rng() for rng in rngs]

    first, second = in_child(words), in_child(words)
    # The clone repeats its source, but only in this process.
    assert len({*words(), *first, *second}) == 2 + 3 + 3


def fork_with_an_unseeded_default():
    def draw():
        return np.asarray(random.uniform(range=[0, 1])).item(), random.get_default_rng()()

    drawn = [in_child(draw), in_child(draw), draw()]
    assert len(set(drawn)) == len({word for _, word in drawn}) == 3


def fork_with_seeded_rngs():
    late, placed = RNG(), RNG()
    late.seed = 3
    placed.state = RNG(4).state
    for rng, seed in ((RNG(2), 2), (late, 3), (placed, 4), (RNG(5).clone(), 5)):
        rng()
        expected = RNG(seed)
        expected()
        assert in_child(rng) == expected()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "program", [fork_with_unseeded_rngs, fork_with_an_unseeded_default, fork_with_seeded_rngs]
)
def test_a_forked_child_repeats_its_parent_only_where_it_was_seeded(program):
    check_fresh(program)


def draw(rngs):
    return os.getpid(), random.get_default_rng()(), [rng() for rng in rngs]


def send(connection, rngs):
    connection.send(draw(rngs))
    connection.close()


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_unseeded_rngs_differ_in_processes(context):
    context = multiprocessing.get_context(context)
    rngs = [RNG(), RNG(7)]
    drawn = [draw(rngs)]
    children = []
    for _ in range(2):
        mine, theirs = context.Pipe()
        children.append((context.Process(target=send, args=(theirs, rngs)), mine))
        children[-1][0].start()
    for child, mine in children:
        drawn.append(mine.recv())
        child.join()
    assert len({unseeded for _, _, (unseeded, _) in drawn}) == 3
    assert drawn[1][2][1] == drawn[2][2][1], "one that was seeded goes on alike"


def test_an_unseeded_rng_that_is_stored_keeps_its_place():
    rng = RNG()
    rng()
    assert pickle.loads(pickle.dumps(rng)).state == rng.state


def test_split():
    made = RNG(1).split(3)
    assert [rng.state for rng in RNG(1).split(5)[:3]] == [rng.state for rng in made]
    parent = RNG(1)
    again = [parent.split(3), parent.split(3)]
    states = [rng.state for rngs in again for rng in rngs]
    assert len({*states, parent.state, RNG(1).state}) == 8
    words = {rng() for rng in (*again[0], *again[1], RNG(1), parent)}
    assert len(words) == 8
    assert RNG(1).split(0) == []
    with pytest.raises(ValueError, match="negative"):
        RNG(1).split(-1)
    with pytest.raises(TypeError):
        RNG(1).split(1.5)
