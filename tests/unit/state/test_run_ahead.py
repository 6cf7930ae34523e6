"""Loops that run ahead by themselves."""

import gc
import os
import threading
import traceback

import numpy as np
import pytest
from PIL import Image
from tests.stress.fork import fork_and_join
from tests.stress.probe import FAIL, probe

import penstock as ndd
from penstock import _core

COUNT, SIZE = 30, 3


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    for index in range(COUNT):
        np.save(folder / f"{index:02d}.npy", np.full((6, 4, 3), index, np.uint8))
    return folder


@pytest.fixture(autouse=True)
def _ahead():
    ndd.set_run_ahead(2)
    yield
    ndd.set_run_ahead(None)


@pytest.fixture
def reader(root):
    return ndd.readers.Numpy(file_root=str(root))


class Counts:
    """The calls that a block has predicted, used and dropped."""

    def __enter__(self):
        self.before = ndd.run_ahead.stats()
        return self

    def __exit__(self, *exc_info):
        after = ndd.run_ahead.stats()
        self.predicted, self.used, self.dropped = (
            getattr(after, name) - getattr(self.before, name)
            for name in ("predicted", "used", "dropped")
        )


def numbers(batch):
    return [int(np.asarray(sample).flat[0]) for sample in batch.tensors]


def early():
    """Nodes in flight that nobody has asked for."""
    return ndd.EvalContext.current()._native_pool().early_in_flight


def work(images):
    return ndd.resize(ndd.rotate(images, angle=90), size=[8, 8])


def test_a_plain_loop_runs_ahead(reader):
    seen = []
    with Counts() as counts:
        for (images,) in reader.next_epoch(batch_size=SIZE):
            seen += numbers(work(images))
    assert seen == list(range(COUNT))
    # All but two iterations to learn from, and one that could not be predicted any more.
    assert counts.used == 2 * (COUNT // SIZE - 3)
    assert counts.dropped == 0


def test_the_next_epoch_runs_ahead_from_its_first_item(reader):
    def epoch():
        for (images,) in reader.next_epoch(batch_size=SIZE):
            numbers(work(images))

    counts = Counts(), Counts()
    for each in counts:
        with each:
            epoch()
    assert [each.used for each in counts] == [2 * (COUNT // SIZE - 3), 2 * (COUNT // SIZE - 1)]


@pytest.mark.parametrize("size", [None, SIZE], ids=["samples", "batches"])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_values_are_the_same_at_any_depth(reader, size, depth):
    def values():
        reader.reset()
        rng = ndd.random.RNG(3)
        found = []
        for (images,) in reader.next_epoch(batch_size=size):
            angle = ndd.random.uniform(range=[0, 90], batch_size=size, rng=rng)
            turned = ndd.rotate(images, angle=angle)
            samples = turned.tensors if size else [turned]
            found += [np.asarray(sample).tobytes() for sample in samples]
        return found, rng.state

    ndd.set_run_ahead(0)
    expected = values()
    ndd.set_run_ahead(depth)
    with Counts() as counts:
        assert values() == expected
    assert counts.used > 0


@pytest.mark.parametrize("off", ["setting", "context", "sync", "deferred"])
def test_it_can_be_turned_off(reader, off):
    blocks = {
        "setting": ndd.EvalMode.eager,
        "context": ndd.EvalContext(run_ahead=0),
        "sync": ndd.EvalMode.sync_cpu,
        "deferred": ndd.EvalMode.deferred,
    }
    if off == "setting":
        ndd.set_run_ahead(0)
    with Counts() as counts, blocks[off]:
        for (images,) in reader.next_epoch(batch_size=SIZE):
            numbers(work(images))
    assert counts.predicted == 0


def test_the_environment_sets_the_depth(monkeypatch):
    from penstock._runtime import run_ahead

    ndd.set_run_ahead(None)
    monkeypatch.setattr(run_ahead, "_environment", None)
    monkeypatch.setenv("PENSTOCK_RUN_AHEAD", "7")
    assert ndd.get_run_ahead() == 7
    monkeypatch.setattr(run_ahead, "_environment", None)
    monkeypatch.setenv("PENSTOCK_RUN_AHEAD", "far")
    with pytest.raises(ValueError, match=r"PENSTOCK_RUN_AHEAD must be the number .* got 'far'"):
        ndd.get_run_ahead()


@pytest.mark.parametrize("bad", [-1, 1.5, "2", True])
def test_depths_are_checked(bad):
    with pytest.raises((TypeError, ValueError), match="set_run_ahead: the number of items"):
        ndd.set_run_ahead(bad)
    with pytest.raises((TypeError, ValueError), match="EvalContext: `run_ahead`"):
        ndd.EvalContext(run_ahead=bad)


def test_a_changing_argument_is_not_predicted_and_named(reader):
    with Counts() as counts:
        for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
            turned = ndd.rotate(images, angle=float(step))
            numbers(ndd.resize(images, size=[8, 8]))
            turned.evaluate()
    assert counts.used == COUNT // SIZE - 3  # the other call is predicted all the same
    line = traceback.extract_stack()[-1].lineno - 4
    wanted = f"rotate: `angle` differs from iteration to iteration at {__file__}:{line}"
    assert wanted in ndd.run_ahead.stats().not_predicted


def test_calls_that_repeat_after_a_while_are_noticed(root):
    reader = ndd.readers.Numpy(file_root=str(root))
    seen, steps = [], 0
    for _ in range(6):
        with Counts() as counts:
            for (images,) in reader.next_epoch(batch_size=1):
                height = 8 if steps >= 2 * COUNT else 10 + steps
                seen.append(numbers(ndd.resize(images, size=[height, 8])))
                steps += 1
        if steps <= 2 * COUNT:
            assert counts.used == 0
    assert seen == [[index] for index in range(COUNT)] * 6
    assert counts.used >= COUNT - 1


def test_an_argument_that_changes_now_and_then(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        size = 8 if step % 4 else 9
        made = ndd.resize(ndd.rotate(images, angle=90), size=[size, size])
        assert made.shape == [(size, size, 3)] * SIZE
        assert numbers(made) == [step * SIZE + i for i in range(SIZE)]


def test_conditions(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        made = ndd.rotate(images, angle=90)
        if step % 3 == 0:
            made = ndd.rotate(made, angle=90)
        made = ndd.resize(made, size=[5, 7])
        assert numbers(made) == [step * SIZE + i for i in range(SIZE)]


def test_an_error_is_raised_where_it_is_read_with_the_line_of_the_call(reader):
    def errors():
        reader.reset()
        found = []
        for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
            made = probe(images, FAIL)
            if step > 2:
                with pytest.raises(Exception) as caught:
                    made.evaluate()
                found.append(str(caught.value))
        return found

    found = []
    for depth in (0, 2):
        ndd.set_run_ahead(depth)
        with Counts() as counts:
            found.append(errors())
    assert counts.used > 0
    assert found[0] == found[1]
    assert all("test_run_ahead.py" in text for text in found[0])


def test_an_error_that_nobody_reads_is_silent(reader):
    for (images,) in reader.next_epoch(batch_size=SIZE):
        probe(images, FAIL)


def test_random_draws_stay_in_place(reader):
    rng = ndd.random.RNG(3)
    states, drawn = [], []
    for (images,) in reader.next_epoch(batch_size=SIZE):
        angle = ndd.random.uniform(range=[0, 90], batch_size=SIZE, rng=rng)
        ndd.rotate(images, angle=angle).evaluate()
        states.append(rng.state)
        drawn.append(numbers(ndd.cast(angle, dtype=ndd.int32)))
    again = ndd.random.RNG(3)
    for state, values in zip(states, drawn, strict=True):
        angle = ndd.random.uniform(range=[0, 90], batch_size=SIZE, rng=again)
        assert numbers(ndd.cast(angle, dtype=ndd.int32)) == values
        assert again.state == state


def test_a_reseeded_rng_is_not_predicted(reader):
    rng = ndd.random.RNG(3)
    for (images,) in reader.next_epoch(batch_size=SIZE):
        rng.seed = 8
        angle = ndd.random.uniform(range=[0, 90], batch_size=SIZE, rng=rng)
        made = np.asarray(ndd.rotate(images, angle=angle).tensors[0]).shape
        expected = ndd.random.uniform(range=[0, 90], batch_size=SIZE, rng=ndd.random.RNG(8))
        assert numbers(ndd.cast(expected, dtype=ndd.int32)) == numbers(
            ndd.cast(angle, dtype=ndd.int32)
        )
        assert made


def test_states_are_those_of_the_current_item(root):
    reader = ndd.readers.Numpy(file_root=str(root))
    states, seen = [], []
    for (images,) in reader.next_epoch(batch_size=SIZE):
        states.append(str(reader.get_state()))
        seen.append(numbers(work(images)))
    for index in (0, 4, 7):
        resumed = ndd.readers.Numpy(file_root=str(root))
        resumed.set_state(states[index])
        rest = [numbers(work(images)) for (images,) in resumed.next_epoch(batch_size=SIZE)]
        assert rest == seen[index + 1 :]


def test_writing_to_a_value_is_seen_by_later_calls(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        made = ndd.rotate(images, angle=90)
        np.asarray(made.tensors[0])[...] = 100 + step
        assert numbers(ndd.resize(made, size=[8, 8]))[0] == 100 + step


def test_writing_to_an_item_is_seen(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        if step > 3:
            np.asarray(images.tensors[1])[...] = 200
        expected = 200 if step > 3 else step * SIZE + 1
        assert numbers(ndd.rotate(images, angle=90))[1] == expected


def test_writing_to_a_value_from_before_the_loop_is_seen(reader):
    offset = ndd.tensor(np.zeros((70, 70, 3), np.uint8))
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        moved = ndd.resize(images, size=[70, 70]) + offset
        assert numbers(moved)[0] == step * SIZE + max(0, step - 3)
        if step >= 3:
            np.asarray(offset)[...] += 1


def test_constants_of_the_loop_are_compared_by_value(reader):
    with Counts() as counts:
        for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
            large = ndd.resize(images, size=[70, 70])
            added = large + 1 + ndd.tensor([2, 2, 2])
            assert numbers(added)[0] == step * SIZE + 3
    assert counts.used == 3 * (COUNT // SIZE - 3)


def test_intermediate_results_can_be_read_later_than_before(reader):
    """Results that only calls have read are not kept; they are computed again on demand."""
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        turned = ndd.rotate(images, angle=90)
        small = ndd.resize(turned, size=[3, 3])
        assert numbers(small)[0] == step * SIZE
        if step > 5:
            assert numbers(turned) == [step * SIZE + i for i in range(SIZE)]
            assert turned.shape[0] == (4, 6, 3)


def test_results_that_are_kept_for_later(reader):
    kept = []
    for (images,) in reader.next_epoch(batch_size=SIZE):
        turned = ndd.rotate(images, angle=90)
        ndd.resize(turned, size=[3, 3]).evaluate()
        kept.append(turned)
    assert [n for turned in kept for n in numbers(turned)] == list(range(COUNT))


def test_leaving_the_loop_drops_what_was_run_ahead(reader):
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        made = probe(probe(images, sleep=3000), sleep=3000)
        if step < 3:
            made.evaluate()
        else:
            break
    made.evaluate()
    gc.collect()
    with Counts() as counts:
        assert wait_until(lambda: early() == 0)
    assert counts.predicted == 0
    # The reader goes on where it was.
    with pytest.warns(ndd.readers.UnfinishedEpochWarning):
        rest = reader.next_epoch(batch_size=SIZE)
    assert numbers(next(rest)[0])[0] == 4 * SIZE


def wait_until(holds):
    deadline = 20_000
    while not holds() and deadline:
        threading.Event().wait(0.001)
        deadline -= 1
    return holds()


@pytest.mark.parametrize("how", ["reset", "close", "end"])
def test_what_was_run_ahead_is_freed(reader, how):
    """Memory of predictions goes with the reason for them."""
    epoch = reader.next_epoch(batch_size=SIZE)
    for _ in range(4 if how != "end" else COUNT // SIZE):
        (images,) = next(epoch)
        probe(images, sleep=2000).evaluate()
    if how == "reset":
        reader.reset()
    elif how == "close":
        del epoch
    else:
        assert next(epoch, None) is None
    with Counts() as counts:
        assert wait_until(lambda: early() == 0)
    assert counts.used == 0
    predicted, used, dropped, _ = ndd.run_ahead.stats()
    assert predicted == used + dropped


def test_user_functions_are_never_run_ahead(reader):
    called = []

    def function(sample):
        called.append(int(np.asarray(sample).flat[0]))
        return np.array(sample)

    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        made = ndd.map(function, ndd.rotate(images, angle=90), batch_size=None)
        made.evaluate()
        assert len(called) == (step + 1) * SIZE
        numbers(ndd.resize(made, size=[4, 4]))


def test_files_are_not_written_ahead(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step, (images,) in enumerate(reader.next_epoch(batch_size=1)):
        ndd.dump_image(ndd.rotate(images, angle=90), suffix="ahead").evaluate()
        threading.Event().wait(0.005)
        (file,) = tmp_path.iterdir()  # the same in each iteration
        assert np.asarray(Image.open(file)).flat[0] == step


def test_a_smaller_last_batch(root):
    reader = ndd.readers.Numpy(file_root=str(root), last_batch="partial")
    seen = []
    for (images,) in reader.next_epoch(batch_size=4):
        seen += numbers(work(images))
    assert seen == list(range(COUNT))


@pytest.mark.parametrize("is_random", [False, True])
def test_a_smaller_last_batch_is_not_learned(root, is_random):
    reader = ndd.readers.Numpy(file_root=str(root), last_batch="partial")
    rng = ndd.random.RNG(1)

    def augmented(images):
        return ndd.noise.gaussian(work(images), stddev=9.0, rng=rng) if is_random else work(images)

    calls = 3 if is_random else 2
    seen, used = {}, []
    for depth in (0, 2):
        ndd.set_run_ahead(depth)
        reader.reset()
        rng.seed = 1
        seen[depth] = []
        for _ in range(3):
            with Counts() as counts:
                for (images,) in reader.next_epoch(batch_size=4):
                    seen[depth] += [np.array(sample) for sample in augmented(images).tensors]
            used.append(counts.used)
    assert all(map(np.array_equal, seen[0], seen[2]))
    # All but the first and the last batch of an epoch.
    assert used[-2:] == [calls * (COUNT // 4 - 1)] * 2


def test_another_size_is_learned_if_it_comes_to_stay(reader):
    for size, used in ((SIZE, COUNT // SIZE - 3), (5, COUNT // 5 - 3)):
        with Counts() as counts:
            for (images,) in reader.next_epoch(batch_size=size):
                numbers(work(images))
        assert counts.used == 2 * used
        reader.reset()


def test_a_loop_that_is_called_from_another_line(reader):
    rng = ndd.random.RNG(1)

    def epoch():
        reader.reset()
        return [
            numbers(ndd.noise.gaussian(work(images), stddev=1.0, rng=rng))
            for (images,) in reader.next_epoch(batch_size=SIZE)
        ]

    def by_another_way():
        return epoch()

    ndd.set_run_ahead(0)
    expected = [epoch(), by_another_way(), epoch()]
    rng.seed = 1
    ndd.set_run_ahead(2)
    found = [epoch()]
    with Counts() as counts:
        found.append(by_another_way())
    # All but the first item, which nothing can be early for.
    assert counts.used == 3 * (COUNT // SIZE - 1)
    found.append(epoch())
    assert found == expected


def test_errors_name_the_line_that_the_loop_is_called_from(reader):
    def errors():
        reader.reset()
        found = []
        for (images,) in reader.next_epoch(batch_size=SIZE):
            made = probe(images, FAIL)
            with pytest.raises(Exception) as caught:
                made.evaluate()
            found.append(str(caught.value))
        return found

    found = {}
    for depth in (0, 2):
        ndd.set_run_ahead(depth)
        found[depth] = [
            errors(),
            errors(),
            errors(),
        ]
    assert found[0] == found[2]
    assert len({texts[0] for texts in found[0]}) == 3, "each says its own line"


def test_nested_loops(root, reader):
    inner = ndd.readers.Numpy(file_root=str(root))
    with Counts() as counts:
        for step, (images,) in enumerate(reader.next_epoch(batch_size=10)):
            outer = ndd.rotate(images, angle=90)
            for number, (others,) in enumerate(inner.next_epoch(batch_size=SIZE)):
                turned = ndd.rotate(others, angle=180)
                assert numbers(turned)[0] == number * SIZE
                assert numbers(ndd.resize(images, size=[4, 4]))[0] == step * 10
            assert numbers(outer)[0] == step * 10
    assert counts.used > 0


def test_two_readers_side_by_side(root, reader):
    other = ndd.readers.Numpy(file_root=str(root), shuffle="global", seed=1)
    expected = [numbers(images) for (images,) in other.next_epoch(batch_size=SIZE)]
    other.reset()
    loops = zip(reader.next_epoch(batch_size=SIZE), other.next_epoch(batch_size=SIZE), strict=True)
    with Counts() as counts:
        for step, ((images,), (others,)) in enumerate(loops):
            a, b = ndd.rotate(images, angle=90), ndd.rotate(others, angle=180)
            assert numbers(a)[0] == step * SIZE
            assert numbers(b) == expected[step]
            assert numbers(ndd.resize(a, size=[6, 6]) + ndd.resize(b, size=[6, 6]))[1] == (
                step * SIZE + 1 + expected[step][1]
            )
    assert counts.used >= 2 * (COUNT // SIZE - 3)


def test_generators_and_helper_functions(reader):
    def batches():
        for (images,) in reader.next_epoch(batch_size=SIZE):
            yield work(images)

    with Counts() as counts:
        for step, images in enumerate(batches()):
            assert numbers(ndd.rotate(images, angle=180))[0] == step * SIZE
    assert counts.used == 3 * (COUNT // SIZE - 3)


def test_prefetch_does_nothing_twice(reader):
    def batches():
        for (images,) in reader.next_epoch(batch_size=SIZE):
            yield ndd.rotate(images, angle=90)

    with Counts() as counts:
        for step, images in enumerate(ndd.prefetch(batches())):
            assert numbers(ndd.resize(images, size=[5, 5]))[0] == step * SIZE
    # Only the call in the body: those of the source are made early by `prefetch`.
    assert counts.used == COUNT // SIZE - 3


def test_calls_of_a_reader_run_ahead(reader):
    with Counts() as counts:
        for step in range(8):
            images = reader(batch_size=SIZE)
            assert numbers(work(images))[0] == step * SIZE
    assert counts.used == 2 * 5
    reader.reset()
    predicted, used, dropped, _ = ndd.run_ahead.stats()
    assert predicted == used + dropped


@pytest.mark.parametrize("parallel", [False, True])
def test_external_sources(parallel):
    def items():
        for index in range(20):
            yield [np.full((80, 60, 3), index, np.uint8)] * 2

    source = ndd.ExternalSource(items, batch=True, parallel=parallel, layout="HWC")
    for step, images in enumerate(source.captured(batch_size=2)):
        assert numbers(ndd.rotate(images, angle=90)) == [step] * 2
    assert step == 19


def test_threads_have_loops_of_their_own(root):
    failures = []

    def train():
        reader = ndd.readers.Numpy(file_root=str(root))
        for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
            if numbers(work(images)) != [step * SIZE + i for i in range(SIZE)]:
                failures.append(step)

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_share_an_iterator(reader):
    epoch = reader.next_epoch(batch_size=SIZE)
    seen = []

    def train():
        for (images,) in epoch:
            seen.extend(numbers(work(images)))

    threads = [threading.Thread(target=train) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(COUNT))


def test_a_forked_child_goes_on_without_the_parent_s_predictions(reader):
    epoch = reader.next_epoch(batch_size=SIZE)

    def go_on(step):
        for following, (images,) in enumerate(epoch, step):
            assert numbers(probe(images, sleep=500))[0] == following * SIZE

    for _ in range(4):
        (images,) = next(epoch)
        probe(images, sleep=500).evaluate()
    fork_and_join(lambda: go_on(4))
    go_on(4)


def test_another_context_in_the_loop(reader):
    context = ndd.EvalContext(num_threads=1)
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        with context:
            made = work(images)
        assert numbers(made)[0] == step * SIZE


def test_the_pool_of_a_context_is_not_kept(reader):
    context = ndd.EvalContext(num_threads=1)
    for (images,) in reader.next_epoch(batch_size=SIZE):
        with context:
            numbers(work(images))
    before = threading_count()
    del context, images
    gc.collect()
    assert wait_until(lambda: threading_count() < before)


def threading_count():
    return len(os.listdir("/proc/self/task"))


def test_memory_is_bounded(root):
    pool = _core.Pool(2, None, 1 << 20)
    threads = ndd.ThreadPool(2)
    threads._native = pool
    reader = ndd.readers.Numpy(file_root=str(root))
    with ndd.EvalContext(thread_pool=threads, run_ahead=5), Counts() as counts:
        for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
            # 3 x 500 KB for each item: more than the pool may have in flight.
            large = ndd.resize(images, size=[400, 400])
            assert numbers(large)[0] == step * SIZE
    assert counts.predicted <= 2


def test_in_flight_counts_only_what_was_called(reader):
    pool = ndd.EvalContext.current()._native_pool()
    for step, (images,) in enumerate(reader.next_epoch(batch_size=SIZE)):
        if step > 3:
            assert wait_until(lambda: pool.in_flight == 0)
        probe(images, sleep=1000).evaluate()
