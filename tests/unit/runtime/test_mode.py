import itertools
import threading

import pytest

from penstock._runtime.mode import EvalMode


def test_modes_are_ordered_by_synchronicity():
    modes = list(EvalMode)
    assert [mode.name for mode in modes] == ["deferred", "eager", "sync_cpu", "sync_full"]
    assert [mode.value for mode in modes] == [1, 2, 3, 4]
    assert all(low < high for low, high in itertools.combinations(modes, 2))
    assert EvalMode.deferred < EvalMode.eager <= EvalMode.eager
    assert EvalMode.sync_full > EvalMode.sync_cpu >= EvalMode.sync_cpu
    assert max(EvalMode) is EvalMode.sync_full


def test_modes_don_t_compare_with_numbers():
    assert EvalMode.eager != 2
    for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(EvalMode.eager, compare)(2) is NotImplemented
    with pytest.raises(TypeError):
        max(EvalMode.eager, 2)


def test_default_is_another_name_of_eager():
    assert EvalMode.default is EvalMode.eager
    assert EvalMode.current() is EvalMode.eager
    assert repr(EvalMode.default) == "<EvalMode.eager: 2>"


def test_with_blocks_nest_and_one_mode_can_be_entered_again():
    with EvalMode.deferred as mode:
        assert mode is EvalMode.current() is EvalMode.deferred
        with EvalMode.sync_cpu, EvalMode.deferred:
            assert EvalMode.current() is EvalMode.deferred
        assert EvalMode.current() is EvalMode.deferred
    assert EvalMode.current() is EvalMode.eager


def test_block_left_by_an_error_restores_the_mode():
    with pytest.raises(KeyError), EvalMode.sync_full:
        raise KeyError
    assert EvalMode.current() is EvalMode.eager


def test_each_thread_has_its_own_mode():
    seen = []

    def other():
        seen.append(EvalMode.current())
        with EvalMode.sync_full:
            seen.append(EvalMode.current())

    with EvalMode.deferred:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert EvalMode.current() is EvalMode.deferred
    assert seen == [EvalMode.eager, EvalMode.sync_full]
