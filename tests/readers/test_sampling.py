"""Samples by number, samplers, weights, and classes of folders."""

import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler

import penstock as ndd

NAMES = ["cats/a.jpg", "cats/b.jpg", "dogs/c.jpg", "eels/d.jpg", "eels/e.jpg", "eels/f.jpg"]


@pytest.fixture
def make(tmp_path):
    for name in NAMES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())

    def make(**options):
        options.setdefault("last_batch", "partial")
        if "files" not in options:
            options["file_root"] = tmp_path
        return ndd.readers.File(**options)

    return make


class Reversed:
    """An order by epoch: backwards in every second one."""

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter(range(6) if self.epoch % 2 == 0 else range(5, -1, -1))

    def __len__(self):
        return 6


def numbers(reader, batch_size=2):
    epoch = reader.next_epoch(batch_size=batch_size)
    return [NAMES.index(name) for files, _ in epoch for name in files.source_info]


def test_samples_are_selected_by_number(make):
    reader = make(random_shuffle=True)
    for number in (0, 3, -1, np.int64(2), ndd.tensor(1)):
        data, label = reader[number]
        name = NAMES[int(number)]
        assert data.source_info == name
        assert np.asarray(data).tobytes() == name.encode()
        assert label.shape == (1,)
        assert label.item() == reader.class_to_idx[name.partition("/")[0]]


def test_selecting_samples_leaves_the_reader_where_it_is(make):
    reader, other = make(), make()
    epoch, seen = reader.next_epoch(batch_size=2), []
    for files, _ in epoch:
        seen += files.source_info
        state = reader.get_state()
        reader[4]
        assert reader.get_state() == state
    assert [NAMES.index(name) for name in seen] == numbers(other)


@pytest.mark.parametrize("number", [6, -7, [0, 6], np.array([-7])], ids=str)
def test_a_number_out_of_range_is_an_index_error(make, number):
    with pytest.raises(IndexError, match=r"sample (6|-7) is out of range.*6 samples"):
        make()[number]


@pytest.mark.parametrize(
    "index",
    [[4, 0, 4], np.array([2, -1]), range(1, 4), slice(1, 6, 2), slice(None, None, -1), (3,)],
    ids=str,
)
def test_several_samples_are_a_batch(make, index):
    files, labels = make(random_shuffle=True)[index]
    expected = np.array(NAMES)[list(index) if isinstance(index, tuple) else index].tolist()
    assert files.source_info == expected
    assert labels.batch_size == len(expected)


def test_a_batch_by_number_is_the_one_of_the_epoch(make):
    reader = make(shuffle="global", seed=3)
    chosen = [reader[row][0].source_info for row in reader.epoch_indices(batch_size=2)]
    assert chosen == [files.source_info for files, _ in reader.next_epoch(batch_size=2)]


@pytest.mark.parametrize("index", [[], slice(3, 3), np.zeros(0)], ids=str)
def test_no_samples_are_no_batch(make, index):
    with pytest.raises(IndexError, match="no samples are selected"):
        make()[index]


@pytest.mark.parametrize("index", [True, 1.0, "0", slice("a"), None, [1.5], [[1]], ["0"], {}.get])
def test_other_indices_are_type_errors(make, index):
    with pytest.raises(TypeError, match="whole number"):
        make()[index]


def test_a_reader_is_no_iterable(make):
    with pytest.raises(TypeError, match="not iterable"):
        iter(make())


def test_samples_that_can_not_be_read_raise_when_they_are_used(make, tmp_path):
    reader = make()
    (tmp_path / NAMES[1]).unlink()
    data, _ = reader[1]
    with pytest.raises((OSError, RuntimeError), match=r"b\.jpg"):
        data.evaluate()


def test_classes_are_the_folders(make, tmp_path):
    assert make().class_to_idx == {"cats": 0, "dogs": 1, "eels": 2}
    assert make(dir_filters="[de]*").class_to_idx == {"dogs": 0, "eels": 1}
    reader = make(files=[tmp_path / NAMES[0]])
    assert not hasattr(reader, "class_to_idx")
    with pytest.raises(AttributeError, match="labels of their own"):
        _ = reader.class_to_idx


@pytest.mark.parametrize(
    "sampler",
    [[4, 0, 0, -1], (4, 0, 0, 5), np.array([4, 0, 0, 5]), torch.tensor([4, 0, 0, 5])],
    ids=["list", "tuple", "numpy", "torch"],
)
def test_a_sampler_lists_the_samples(make, sampler):
    reader = make(sampler=sampler)
    assert reader.epoch_size == 4
    assert len(reader.next_epoch(batch_size=3)) == 2
    for _ in range(2):
        assert numbers(reader, 3) == [4, 0, 0, 5]


def test_samplers_of_pytorch_are_iterated_over_for_each_epoch(make):
    reader = make(sampler=RandomSampler(range(6), generator=torch.Generator().manual_seed(3)))
    epochs = [numbers(reader) for _ in range(5)]
    assert all(sorted(epoch) == list(range(6)) for epoch in epochs)
    assert len(set(map(tuple, epochs))) > 1
    assert numbers(make(sampler=SequentialSampler(range(6)))) == list(range(6))


def test_set_epoch_of_a_sampler_is_called(make):
    reader = make(sampler=Reversed())
    assert [numbers(reader) for _ in range(3)] == [
        [0, 1, 2, 3, 4, 5],
        [5, 4, 3, 2, 1, 0],
        [0, 1, 2, 3, 4, 5],
    ]
    sampler = DistributedSampler(range(6), num_replicas=2, rank=1, shuffle=True, seed=4)
    reader = make(sampler=sampler)
    expected = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        expected.append(list(sampler))
    assert [numbers(reader) for _ in range(2)] == expected


REPEATABLE = {
    "list": {"sampler": [4, 0, 0, 5, 1]},
    "set_epoch": {"sampler": Reversed()},
    "weights": {"weights": [1, 2, 3, 4, 5, 6], "seed": 7},
}


@pytest.mark.parametrize("last_batch", ["wrap", "pad", "partial", "drop"])
@pytest.mark.parametrize("options", REPEATABLE.values(), ids=REPEATABLE.keys())
def test_a_state_resumes_at_any_batch(make, options, last_batch):
    options = {**options, "last_batch": last_batch}
    reader = make(**options)
    states, batches, ends = [], [], []
    for _ in range(2):
        for files, _ in reader.next_epoch(batch_size=2):
            batches.append([NAMES.index(name) for name in files.source_info])
            states.append(str(reader.get_state()))
        ends.append(len(batches))
    for at, state in enumerate(states, 1):
        other = make(**options)
        other.set_state(state)
        left = [batches[at : ends[0]], batches[ends[0] :]] if at < ends[0] else [batches[at:]]
        for part in left:
            if part:
                assert numbers(other) == [number for batch in part for number in batch], at


@pytest.mark.parametrize("options", REPEATABLE.values(), ids=REPEATABLE.keys())
def test_shards_divide_an_epoch(make, options):
    whole = make(**options)
    shards = [make(**options, num_shards=2, shard_id=shard) for shard in range(2)]
    for epoch in range(3):
        parts = [numbers(shard) for shard in shards]
        assert parts[0] + parts[1] == numbers(whole), epoch


@pytest.mark.parametrize("options", REPEATABLE.values(), ids=REPEATABLE.keys())
def test_a_state_resumes_with_other_shards(make, options):
    expected = Counter(numbers(make(**options)))
    first = make(**options)
    files, _ = next(first.next_epoch(batch_size=2))
    given = Counter(NAMES.index(name) for name in files.source_info)
    for shard in range(2):
        reader = make(**options, num_shards=2, shard_id=shard)
        reader.set_state(first.get_state())
        given += Counter(numbers(reader, 1))
    assert given == expected


@pytest.mark.parametrize("options", REPEATABLE.values(), ids=REPEATABLE.keys())
def test_copies_go_on_at_the_same_place(make, options):
    reader = make(**options)
    numbers(reader)
    copied = pickle.loads(pickle.dumps(reader))
    assert numbers(copied) == numbers(reader)


def test_a_state_of_another_sampling_is_refused(make):
    state = make(sampler=[1, 2, 3]).get_state()
    for options in ({"sampler": [1, 3, 2]}, {}, {"weights": [1] * 6}):
        with pytest.raises(ValueError, match="has changed"):
            make(**options).set_state(state)


def test_an_epoch_that_can_not_be_repeated_has_no_state_and_no_shards(make):
    sampler = RandomSampler(range(6))
    reader = make(sampler=sampler)
    numbers(reader)
    with pytest.raises(RuntimeError, match="no state to resume from"):
        reader.get_state()
    with pytest.raises(RuntimeError, match="no state to resume from"):
        make(sampler=sampler).set_state(make().get_state())
    with pytest.raises(ValueError, match="divided into shards"):
        make(sampler=sampler, num_shards=2)


def test_a_loop_over_prefetch_that_is_left_goes_on_with_the_same_samples(make):
    reader = make(sampler=RandomSampler(range(6)))
    seen = []
    with ndd.prefetch(reader.next_epoch(batch_size=2), depth=2) as batches:
        seen += next(batches)[0].source_info
    for files, _ in ndd.prefetch(reader.next_epoch(batch_size=2), depth=0):
        seen += files.source_info
        if len(seen) == 6:
            break
    assert sorted(seen) == NAMES


def test_weights_decide_how_often_samples_are_drawn(make):
    reader = make(weights=[1, 2, 0, 3, 4, 0])
    drawn = Counter(number for _ in range(500) for number in numbers(reader, 6))
    assert drawn.keys() == {0, 1, 3, 4}
    for number, weight in ((0, 1), (1, 2), (3, 3), (4, 4)):
        # 3000 draws: five standard deviations are less than 140.
        assert abs(drawn[number] - 300 * weight) < 140


def test_weights_of_classes_are_those_of_their_samples(make, tmp_path):
    by_name = make(weights={"cats": 1, "dogs": 0, "eels": 2}, seed=3)
    each = make(weights=[1, 1, 0, 2, 2, 2], seed=3)
    by_label = make(weights={0: 1, 1: 0, 2: 2}, seed=3)
    expected = [numbers(each) for _ in range(3)]
    assert [numbers(by_name) for _ in range(3)] == expected
    assert [numbers(by_label) for _ in range(3)] == expected
    assert expected[0] != expected[1]
    files = [tmp_path / name for name in NAMES]
    listed = make(files=files, labels=[7, 7, 8, 9, 9, 9], weights={7: 0, 8: 1, 9: 0})
    names = [name for data, _ in listed.next_epoch(batch_size=6) for name in data.source_info]
    assert {name.endswith("dogs/c.jpg") for name in names} == {True}


def test_draws_depend_on_the_seed(make):
    def draw(**options):
        return numbers(make(weights=range(1, 7), **options))

    assert draw() == draw()
    assert draw(seed=5) == draw(seed=5) != draw(seed=6)
    # The draws of a seed stay the same in later versions, and with any NumPy.
    assert draw(seed=5) == [5, 4, 2, 3, 2, 4]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sampler": 3}, "`sampler` must be an iterable"),
        ({"sampler": "01"}, "`sampler` must be an iterable"),
        ({"sampler": iter([1])}, "is an iterator"),
        ({"sampler": []}, "has no indices"),
        ({"sampler": [0.5]}, "whole numbers"),
        ({"sampler": [[0, 1]]}, "whole numbers"),
        ({"sampler": [0, 6]}, "index 6, but there are 6"),
        ({"sampler": [0], "num_shards": 2}, "1 samples, fewer than the 2 shards"),
        ({"sampler": [0], "weights": [1] * 6}, "give one of them"),
        ({"sampler": [0], "random_shuffle": True}, "can't be used with `random_shuffle`"),
        ({"weights": [1] * 6, "shuffle": "global"}, "can't be used with `shuffle`"),
        ({"weights": [1, 2]}, "2 weights for 6 samples"),
        ({"weights": [-1, 1, 1, 1, 1, 1]}, "-1.0 for sample 0"),
        ({"weights": [1, float("nan"), 1, 1, 1, 1]}, "nan for sample 1"),
        ({"weights": [0] * 6}, "all zero"),
        ({"weights": "heavy"}, "a number for each sample"),
        ({"weights": {"cats": 1, "eels": 1}}, "no weight for 'dogs'"),
    ],
)
def test_wrong_arguments_are_named(make, options, says):
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError), match=says):
        make(**options)


def test_a_sampler_must_keep_its_length(make):
    class Growing:
        count = 2

        def __iter__(self):
            self.count += 1
            return iter(range(self.count))

    reader = make(sampler=Growing())
    with pytest.raises(RuntimeError, match="as many indices in each epoch"):
        list(map(numbers, [reader] * 3))
