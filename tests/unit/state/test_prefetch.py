"""prefetch: order, errors, closing, and states as of the current item."""

import gc
import itertools
import threading
import weakref

import pytest

import penstock as ndd
from penstock._state import item_states
from penstock.checkpoint import Checkpoint
from penstock.random import RNG

DEPTHS = [0, 1, 2, 3, 10]


class Reader:
    """A stateful object that supports prefetching, like penstock's own."""

    def __init__(self, count=6):
        self.count = count
        self.at = 0

    def next_epoch(self):
        while self.at < self.count:
            if item_states.loops:
                item_states.before_change(self)
            self.at += 1
            yield self.at - 1
        if item_states.loops:
            item_states.before_change(self)
        self.at = 0

    def get_state(self):
        found = item_states.visible_state(self) if item_states.loops else None
        return str(self.at if found is None else found)

    def set_state(self, state):
        if item_states.loops:
            item_states.before_set_state(self)
        self.at = int(state)

    def _current_state(self):
        return self.at

    def _rewind(self, state):
        self.at = state


class Foreign:
    """A stateful object that doesn't know about prefetching."""

    def __init__(self, count=6):
        self.count = count
        self.at = 0

    def next_epoch(self):
        while self.at < self.count:
            self.at += 1
            yield self.at - 1

    def get_state(self):
        return {"at": self.at}

    def set_state(self, state):
        self.at = eval(state)["at"]


@pytest.fixture(autouse=True)
def _nothing_stays_behind():
    yield
    assert item_states.loops == ()


def pulled(count):
    """A source that counts the items it has yielded."""
    log = []

    def source():
        for index in range(count):
            log.append(index)
            yield index

    return log, source()


# The loop


@pytest.mark.parametrize("depth", DEPTHS)
def test_items_come_in_order(depth):
    assert list(ndd.prefetch(iter(range(5)), depth)) == [0, 1, 2, 3, 4]
    assert list(ndd.prefetch([], depth=depth)) == []


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_source_is_as_many_items_ahead_as_asked(depth):
    log, source = pulled(20)
    items = ndd.prefetch(source, depth)
    assert log == []  # nothing runs before the loop does
    for item in range(5):
        assert next(items) == item
        assert len(log) == item + 1 + depth
    items.close()


def test_work_of_the_next_items_has_begun():
    made = []

    def batches():
        for value in range(4):
            made.append(ndd.flip(ndd.tensor([[[value]]], layout="HWC")))
            yield made[-1]

    for index, item in enumerate(ndd.prefetch(batches())):
        assert len(made) == min(4, index + 3)
        assert item is made[index]


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_error_comes_out_at_its_item(depth):
    def source():
        yield 1
        yield 2
        raise KeyError("boom")

    items = ndd.prefetch(source(), depth)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(KeyError, match="boom") as caught:
        next(items)
    assert any(frame.name == "source" for frame in caught.traceback)
    assert list(items) == []
    assert list(items) == []


def test_a_source_that_goes_on_after_an_error_does_so_here():
    class Source:
        at = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.at += 1
            if self.at == 3:
                raise ValueError("the third")
            if self.at > 5:
                raise StopIteration
            return self.at

    source = Source()
    items = ndd.prefetch(source, 4)
    assert [next(items), source.at, next(items)] == [1, 3, 2]  # not beyond the error
    with pytest.raises(ValueError, match="the third"):
        next(items)
    assert list(items) == [4, 5]


def test_an_item_lives_no_longer_than_its_user_wants():
    class Item:
        pass

    def source():
        for _ in range(6):
            yield Item()

    seen = []
    for item in ndd.prefetch(source()):
        assert [reference() for reference in seen] == [None] * len(seen)
        seen.append(weakref.ref(item))
        del item
    assert len(seen) == 6


def test_an_error_keeps_nothing_alive():
    class Big:
        pass

    big = Big()
    reference = weakref.ref(big)

    def source(value):
        yield 1
        raise KeyError

    items = ndd.prefetch(source(big))
    del big
    next(items)
    try:
        next(items)
    except KeyError:
        pass
    del items
    gc.collect()
    assert reference() is None


def test_closing_closes_the_source():
    closed = []

    def source():
        try:
            yield from range(9)
        finally:
            closed.append(True)

    items = ndd.prefetch(source())
    next(items)
    items.close()
    items.close()
    assert closed == [True]
    assert list(items) == []
    for _ in ndd.prefetch(source()):
        break
    assert closed == [True] * 2
    with ndd.prefetch(source()) as items:
        assert next(items) == 0
    assert closed == [True] * 3
    with pytest.raises(ZeroDivisionError), ndd.prefetch(source()) as items:
        1 / next(items)
    assert closed == [True] * 4


def test_leaving_closes_at_once_though_an_error_waits():
    def source():
        yield 1
        raise KeyError

    items = ndd.prefetch(source(), 2)
    next(items)
    loop = weakref.ref(items)
    gc.disable()
    try:
        del items
        assert loop() is None
    finally:
        gc.enable()


def test_what_is_never_begun_can_be_closed():
    ndd.prefetch(iter([1])).close()
    ndd.prefetch([1])


def test_ctrl_c_in_the_source_ends_the_loop():
    reader = Reader()

    def source():
        for item in reader.next_epoch():
            if item == 3:
                raise KeyboardInterrupt
            yield item

    items = ndd.prefetch(source(), 2)
    assert next(items) == 0
    with pytest.raises(KeyboardInterrupt):
        next(items)
    # Not a regular end.
    with pytest.raises(RuntimeError, match="was interrupted"):
        next(items)
    assert list(reader.next_epoch()) == [1, 2, 3, 4, 5]


def test_the_length_is_that_of_the_source():
    assert len(ndd.prefetch([1, 2, 3])) == 3
    unknown = ndd.prefetch(x for x in [1])
    with pytest.raises(TypeError, match="length"):
        len(unknown)
    assert unknown
    assert ndd.prefetch([])


@pytest.mark.parametrize("depth", [1.5, "2", None, [1]])
def test_a_depth_is_an_integer(depth):
    with pytest.raises(TypeError, match="depth"):
        ndd.prefetch([], depth)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="-1"):
        ndd.prefetch([], -1)
    with pytest.raises(TypeError, match="generator function"):
        ndd.prefetch(lambda: iter([]))


# States


def batches(reader, rng):
    """Items that contain values of a reader and an RNG; not all of them draw."""
    for index in reader.next_epoch():
        drawn = ndd.random.uniform(range=[0, 1], rng=rng).item() if index % 3 else None
        rng.advance(index)
        yield index, drawn, rng() if index % 2 else None


def nested(*depths):
    def source(reader, rng):
        items = batches(reader, rng)
        for depth in depths:
            items = (("around", item) for item in ndd.prefetch(items, depth))
        return items

    return source


def pairs(reader, rng):
    """A loop inside of the source that consumes two items for each of its own."""
    inner = ndd.prefetch(batches(reader, rng), 3)
    for first in inner:
        yield first, next(inner, None)


def make(kind, seed=7):
    return kind(), RNG(seed)


def resume(checkpoint, kind):
    reader, rng = make(kind, seed=1)
    restored = Checkpoint()
    restored.deserialize(checkpoint)
    restored.register(reader, "reader")
    restored.register(rng, "rng")
    return reader, rng


def assert_resumes_anywhere(source, depth, kind=Reader):
    """A checkpoint taken at any item gives exactly the items that were left."""
    reader, rng = make(kind)
    checkpoint = Checkpoint()
    checkpoint.register(reader, "reader")
    checkpoint.register(rng, "rng")
    checkpoint.collect()
    saved, items = [checkpoint.serialize()], []
    for item in ndd.prefetch(source(reader, rng), depth):
        items.append(item)
        checkpoint.collect()
        saved.append(checkpoint.serialize())
    expected = list(source(*make(kind)))
    assert items == expected
    assert items
    for at, text in enumerate(saved):
        assert list(source(*resume(text, kind))) == items[at:], f"resumed at {at}"
        ahead = ndd.prefetch(source(*resume(text, kind)), depth)
        assert list(ahead) == items[at:], f"resumed at {at}, ahead"


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", [Reader, Foreign])
def test_checkpoints_belong_to_the_item_in_hand(depth, kind):
    assert_resumes_anywhere(batches, depth, kind)


@pytest.mark.parametrize("kind", [Reader, Foreign])
@pytest.mark.parametrize("depths", [*itertools.product([0, 1, 3], repeat=3)])
def test_nested_loops_see_each_their_own_state(kind, depths):
    *inner, depth = depths
    assert_resumes_anywhere(nested(*inner), depth, kind)


@pytest.mark.parametrize("depth", DEPTHS)
def test_loops_that_take_several_items_of_another(depth):
    assert_resumes_anywhere(pairs, depth)


@pytest.mark.parametrize("depth", DEPTHS)
def test_objects_tell_the_state_of_the_item_in_hand(depth):
    plain_reader, plain_rng = make(Reader)
    reader, rng = make(Reader)
    ahead = ndd.prefetch(batches(reader, rng), depth)
    for _ in batches(plain_reader, plain_rng):
        next(ahead)
        assert rng.state == rng.get_state() == plain_rng.state
        assert rng.state_dict() == plain_rng.state_dict()
        assert repr(rng) == repr(plain_rng)
        assert rng.clone()() == plain_rng.clone()()
        assert reader.get_state() == plain_reader.get_state()
    assert next(ahead, None) is None
    assert rng.state == plain_rng.state
    assert reader.get_state() == plain_reader.get_state() == "0"


def test_the_source_sees_where_it_is():
    rng = RNG(3)

    def source():
        own = RNG(3)
        for _ in range(5):
            assert rng.state == own.state
            own()
            yield rng()
            assert rng.state == own.state

    assert len(list(ndd.prefetch(source(), 3))) == 5


def test_what_only_the_body_uses_is_where_it_is():
    mine, theirs = RNG(1), RNG(2)
    expected = RNG(1)
    for _ in ndd.prefetch((theirs() for _ in range(6)), 2):
        assert mine() == expected()
        assert mine.state == expected.state


def test_the_default_rng_is_followed_too():
    def source():
        for _ in range(5):
            yield ndd.random.uniform(range=[0, 1]).item()

    ndd.random.set_seed(5)
    states = [ndd.random.get_default_rng().state for _ in source()]
    ndd.random.set_seed(5)
    ahead = [ndd.random.get_default_rng().state for _ in ndd.prefetch(source())]
    assert ahead == states


def test_another_thread_sees_the_same_state():
    reader, rng = make(Reader)
    expected = RNG(7)
    for _ in ndd.prefetch(((reader, rng()) for _ in range(4)), 2):
        expected()
        seen = []
        thread = threading.Thread(target=lambda into=seen: into.append(rng.state))
        thread.start()
        thread.join()
        assert seen == [expected.state]


def test_loops_may_be_collected_at_any_moment():
    left = ndd.prefetch(iter(range(9)))
    next(left)
    with item_states._lock:  # garbage may be collected while it is held
        del left
        gc.collect()
    assert item_states.loops == ()


def test_loops_of_several_threads_do_not_meet():
    start, failures = threading.Barrier(4), []

    def run(seed):
        reader, rng = Reader(200), RNG(seed)
        plain = RNG(seed)
        start.wait()
        for index, _ in enumerate(ndd.prefetch(((i, rng()) for i in reader.next_epoch()), 3)):
            plain()
            if rng.state != plain.state or reader.get_state() != str(index + 1):
                failures.append((seed, index))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("stop", range(1, 6))
def test_after_leaving_early_the_next_loop_goes_on(depth, stop):
    expected = list(batches(*make(Reader)))
    reader, rng = make(Reader)
    items = []
    for item in ndd.prefetch(nested(1)(reader, rng), depth):
        items.append(item[1])
        if len(items) == stop:
            break
    assert items + list(batches(reader, rng)) == expected


def test_after_an_error_states_are_those_of_the_failed_item():
    rng = RNG(1)

    def source():
        for index in range(4):
            rng()
            if index == 2:
                raise ValueError
            yield index

    items = ndd.prefetch(source(), 3)
    states = []
    for _ in range(2):
        next(items)
        states.append(rng.state)
    with pytest.raises(ValueError):
        next(items)
    states.append(rng.state)
    expected = RNG(1)
    assert states == [(expected(), expected.state)[1] for _ in range(3)]


def test_an_rng_of_source_and_body_has_no_state():
    rng = RNG(1)
    checkpoint = Checkpoint()
    checkpoint.register(rng)
    items = ndd.prefetch((rng() for _ in range(6)), 2)
    next(items)
    rng()
    for ask in (rng.get_state, checkpoint.collect, rng.state_dict):
        with pytest.raises(RuntimeError, match=r"RNG has no state.*prefetch.*another RNG"):
            ask()
    items.close()
    rng.get_state()
    checkpoint.collect()


def test_two_loops_over_one_rng_have_no_state():
    rng = RNG(1)
    one, two = (ndd.prefetch((rng() for _ in range(6)), 2) for _ in range(2))
    next(one)
    next(two)
    with pytest.raises(RuntimeError, match="no state"):
        rng.get_state()
    one.close()
    two.close()


def test_a_body_may_put_an_rng_elsewhere():
    rng = RNG(1)
    for _ in ndd.prefetch((rng() for _ in range(3)), 2):
        rng.seed = 5
        assert rng.state == RNG(5).state
        rng.state = RNG(6).state
        assert rng.state == RNG(6).state


def test_a_source_may_put_an_rng_elsewhere():
    rng = RNG(1)

    def source():
        for seed in range(5):
            rng.seed = seed
            yield rng()

    for seed, _ in enumerate(ndd.prefetch(source(), 2)):
        expected = RNG(seed)
        expected()
        assert rng.state == expected.state


def test_a_state_that_could_not_be_had_is_not_made_up():
    class Late(Foreign):
        def get_state(self):
            if self.at == 0:
                raise RuntimeError("not before the first item")
            return super().get_state()

    late, checkpoint = Late(), Checkpoint()
    checkpoint.register(late)
    other = iter(range(3))

    def source():
        yield from other
        yield from late.next_epoch()

    items = ndd.prefetch(source(), 2)
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match="not before the first item"):
        checkpoint.collect()
    next(items)
    checkpoint.collect()
    assert checkpoint.get_state("__op_0") == {"at": 1}
    items.close()


def test_objects_without_weak_references_can_be_registered():
    class Slotted:
        __slots__ = ("at",)

        def get_state(self):
            return "5"

        def set_state(self, state):
            self.at = state

    checkpoint = Checkpoint()
    checkpoint.register(Slotted())
    for _ in ndd.prefetch([1, 2]):
        checkpoint.collect()
    assert checkpoint.get_state("__op_0") == "5"


def test_length_can_be_given_or_is_known():
    assert len(ndd.prefetch((x for x in range(3)), length=3)) == 3
    assert len(ndd.prefetch(iter([1, 2, 3, 4]))) == 4
    running = ndd.prefetch(iter([1, 2, 3, 4]))
    next(running)
    assert len(running) == 4, "items that were prefetched count"
    with pytest.raises(TypeError, match=r"has no length; pass `prefetch\(\.\.\., length="):
        len(ndd.prefetch(x for x in range(3)))
    with pytest.raises(TypeError, match="`length` must be an integer"):
        ndd.prefetch([], length="3")
    with pytest.raises(ValueError, match="`length` can't be negative"):
        ndd.prefetch([], length=-1)
