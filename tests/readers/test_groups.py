"""`shuffle="groups"`: groups in a new order, and samples shuffled in windows."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.readers import File, Parquet
from penstock.readers._base.order import Cut, Order, Plan

ENDS = np.array([5, 5, 12, 40, 41, 60], np.int64)
GROUPS = np.repeat(range(len(ENDS)), np.diff(ENDS, prepend=0))


def plan(**changes):
    given = {"size": 60, "shuffle": "groups", "fill": 8, "seed": 3, "groups": ENDS}
    return Plan(**{**given, **changes})


def turn(order, number=0, reader=0):
    return np.asarray(order.numbers(number, reader)).tolist()


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("fill", [1, 8, 1000])
def test_each_sample_comes_once_in_each_turn(shards, fill):
    order = Order(plan(num_shards=shards, fill=fill))
    for number in range(5):
        parts = [turn(order, number, reader) for reader in range(shards)]
        assert sorted([n for part in parts for n in part]) == list(range(60))


def test_with_windows_of_one_groups_stay_together():
    numbers = turn(Order(plan(fill=1)))
    changes = sum(a != b for a, b in zip(GROUPS[numbers], GROUPS[numbers[1:]], strict=False))
    assert changes == 4
    starts = [n for n in numbers if n in (0, 5, 12, 40, 41)]
    assert starts != sorted(starts) or turn(Order(plan(fill=1)), 1) != numbers
    for start, end in [(0, 5), (5, 12), (12, 40), (41, 60)]:
        at = numbers.index(start)
        assert numbers[at : at + end - start] == list(range(start, end))


def test_windows_hold_no_more_than_they_say():
    plain, windowed = turn(Order(plan(fill=1))), turn(Order(plan(fill=8)))
    for start in range(0, 60, 8):
        assert sorted(plain[start : start + 8]) == sorted(windowed[start : start + 8])
    assert plain != windowed


def test_the_order_depends_on_seed_and_turn():
    order = Order(plan(fill=60))
    assert turn(order, 0) != turn(order, 1)
    assert turn(order, 0) != turn(Order(plan(fill=60, seed=4)), 0)
    assert turn(order, 0) == turn(Order(plan(fill=60)), 0)


def test_any_part_is_that_of_the_whole():
    row = Order(plan()).numbers(0, 0)
    whole = np.asarray(row)
    for start, end in [(0, 0), (0, 60), (7, 9), (8, 16), (59, 60), (3, 50)]:
        np.testing.assert_array_equal(np.asarray(row[start:end]), whole[start:end])
    assert [row[n] for n in range(60)] == whole.tolist()
    assert row[-1] == whole[-1]


def test_another_number_of_shards_gives_what_is_left():
    before = Order(plan(num_shards=3))
    cut = Cut(num_shards=3, batch_size=4, turn=0, epoch=0, step=2, slip=0)
    given = [n for reader in range(3) for n in turn(before, 0, reader)[:8]]
    after = Order(plan(num_shards=2, cuts=(cut,)))
    rest = [n for reader in range(2) for n in turn(after, 0, reader)]
    assert sorted(given + rest) == list(range(60))


def test_states_name_the_order(tmp_path):
    pq.write_table(pa.table({"n": range(50)}), tmp_path / "a.parquet", row_group_size=7)

    def make(**options):
        given = {"shuffle": "groups", "initial_fill": 10, "last_batch": "partial", **options}
        return Parquet(path=tmp_path / "a.parquet", **given)

    def numbers(reader):
        return [batch["n"].torch().tolist() for batch in reader.next_epoch(batch_size=4)]

    whole = numbers(make())
    reader = make()
    epoch = reader.next_epoch(batch_size=4)
    for step, batch in enumerate(epoch, start=1):
        assert batch["n"].torch().tolist() == whole[step - 1]
        resumed = make()
        resumed.set_state(reader.get_state())
        if step < len(whole):
            assert numbers(resumed) == whole[step:]
    state = reader.get_state()
    assert '"groups"' in str(state)
    for wrong, named in [
        ({"shuffle": "global"}, "shuffle='groups'"),
        ({"initial_fill": 11}, "initial_fill=10"),
    ]:
        with pytest.raises(ValueError, match=named):
            make(**wrong).set_state(state)


def test_formats_without_groups_refuse(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"a")
    with pytest.raises(ValueError, match="`shuffle` can't be 'groups'"):
        File(files=[tmp_path / "a.jpg"], shuffle="groups")
