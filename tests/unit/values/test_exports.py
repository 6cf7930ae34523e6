"""Exports share memory; writing to one must not change the results of earlier calls."""

import gc
import pickle
import threading

import numpy as np
import pytest
from tests.stress.batched import call
from tests.stress.fork import fork_and_join

import penstock as ndd

torch = pytest.importorskip("torch")

MODES = pytest.mark.parametrize("mode", list(ndd.EvalMode))
SHAPE = (96, 128, 3)
# NumPy scalars are external memory, so calls on them are not deferred.
NONE, ONE, TWO = (ndd.tensor(number, dtype=ndd.uint8) for number in range(3))

EXPORTS = {
    "asarray": np.asarray,
    "numpy from_dlpack": np.from_dlpack,
    "torch": lambda t: t.torch(),
    "torch from_dlpack": torch.from_dlpack,
    "memory of the block": lambda t: np.asarray(ndd.as_tensor(ndd.as_batch([t]))),
}
each_export = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)


def images(count=4, value=7):
    return ndd.batch(np.full((count, *SHAPE), value, np.uint8), layout="HWC")


def slow(batch):
    """A call whose work has hardly started when it returns."""
    return ndd.gaussian_blur(batch, sigma=3.0)


@each_export
@MODES
def test_a_call_has_read_what_is_written_after_it(export, mode):
    with mode:
        for _ in range(10):
            data = ndd.tensor(np.full(SHAPE, 7, np.uint8), layout="HWC")
            blurred = slow(data)
            view = export(data)
            view[:] = 200
            again = slow(data)
            view[:] = 3
            assert np.all(np.asarray(blurred) == 7)
            assert np.all(np.asarray(again) == 200)


@pytest.mark.heavy
@MODES
def test_a_batch_is_written_to_right_after_a_call(mode):
    with mode:
        for _ in range(50):
            data = images()
            blurred = slow(data)
            data.torch()[:] = 200
            again = slow(data)
            data.torch()[:] = 3
            assert blurred.torch().eq(7).all()
            assert again.torch().eq(200).all()


VIEWS = {
    "sample": lambda batch: batch.tensors[1],
    "samples": lambda batch: batch.tensors[1:3],
    "layout": lambda batch: ndd.as_batch(batch, layout="WHC"),
    "reshape": lambda batch: ndd.reshape(batch, shape=[SHAPE[1], SHAPE[0], 3], layout="HWC"),
    "stack": ndd.as_tensor,
    "view of a view": lambda batch: ndd.expand_dims(batch.tensors[1:], axes=0, new_axis_names="F"),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("first", [True, False], ids=["view first", "call on the view"])
@pytest.mark.parametrize("pending", [True, False], ids=["pending", "there"])
@MODES
def test_views_count_as_the_memory_they_share(view, first, pending, mode):
    with mode:
        for _ in range(3):
            data = images() + ONE if pending else images().evaluate()
            seen = view(data)
            plus = seen + ONE if first else slow(data)
            export = (
                data.torch()
                if first
                else np.asarray(seen.tensors[0] if isinstance(seen, ndd.Batch) else seen)
            )
            export[:] = 200
            later = seen + NONE
            export[:] = 3
            expected = 7 + int(pending)
            found = as_numbers(plus)
            assert np.all(found == expected + int(first))
            assert np.any(as_numbers(later) == 200)
            assert not np.any(as_numbers(later) == 3)


def as_numbers(data):
    return np.array(ndd.as_tensor(data))


def test_chains_of_put_off_calls_are_run_before_the_export():
    with ndd.EvalMode.deferred:
        data = images(1)
        chain = data
        for _ in range(300):
            chain = chain + NONE
        other = images(1) * TWO
        data.torch()[:] = 200
        assert not other._value.finished, "what does not read the memory stays put off"
        assert chain.torch().eq(7).all()


def test_an_export_that_is_gone_is_forgotten():
    data = images()
    for export in EXPORTS.values():
        view = export(data.tensors[0])
        assert data._value.external
        del view
        gc.collect()
        assert not data._value.external


def test_reading_lends_nothing():
    data = images(2)
    text, single = repr(data), ndd.tensor(5)
    assert single.item() == 5
    assert bool(single)
    copied = np.array(data.tensors[0])
    converted = np.asarray(data.tensors[0], dtype=np.float32)
    state = pickle.dumps(data)
    assert not data._value.external
    assert not single._value.external
    del text, copied, converted, state


def test_a_read_only_export_stays_read_only():
    data = ndd.as_tensor(b"abc")
    assert not np.asarray(data).flags.writeable
    assert not data._value.external


def test_a_function_that_exports_its_argument_does_not_wait_for_its_users():
    data = images()
    for _ in range(20):
        masks = call(lambda batch: [np.asarray(t) // 7 for t in batch], data)
        product = data * masks
        assert product.torch().eq(7).all()


def test_functions_on_one_value_do_not_wait_for_each_other():
    def read(batch):
        return [np.asarray(t).copy() for t in batch]

    data = images(2)
    for made in [call(read, data) for _ in range(40)]:
        assert made.torch().eq(7).all()


def test_exports_from_threads():
    failed = []

    def work():
        for _ in range(20):
            data = images(2)
            blurred = slow(data)
            data.torch()[:] = 0
            if not blurred.torch().eq(7).all():
                failed.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_forked_child_does_not_wait_for_the_calls_of_its_parent():
    data = images(8)
    blurred = [slow(data) for _ in range(8)]

    def child():
        # Not with torch, whose own threads do not survive a fork.
        np.asarray(ndd.as_tensor(data))[:] = 1
        assert np.all(as_numbers(data + ONE) == 2)

    fork_and_join(child)
    assert all(made.torch().eq(7).all() for made in blurred)


@pytest.mark.parametrize("mode", [ndd.EvalMode.deferred, ndd.EvalMode.eager])
def test_a_call_on_exported_memory_fails_where_it_is_read(mode):
    # Another thread may export memory at any time, so no call may depend on it.
    numbers = ndd.batch([[1, 2], [3]]) + 0
    view = np.asarray(numbers.tensors[1])
    with mode:
        second = numbers.slice[1]
    with pytest.raises(IndexError, match="sample 1"):
        second.evaluate()
    assert view.tolist() == [3]
