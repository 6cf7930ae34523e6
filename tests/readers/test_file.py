"""Readers: the contract that they share, asked of `readers.File`."""

import inspect
import itertools
import json
import os
import threading
import time
import warnings

import numpy as np
import pytest

import penstock as ndd
from penstock.readers import File, ReaderState, SampleError, UnfinishedEpochWarning
from penstock.readers._base.bad_samples import BadSamples


@pytest.fixture
def files(tmp_path):
    """The names of 13 files; file n holds n + 1 bytes of n."""
    names = [tmp_path / f"{number:02d}" for number in range(13)]
    for number, name in enumerate(names):
        name.write_bytes(bytes([number]) * (number + 1))
    return names


def labels(outputs):
    found = [np.asarray(label).tolist() for label in outputs[1]]
    return [label for [label] in found]


def epoch(reader, batch_size=2):
    return [labels(outputs) for outputs in reader.next_epoch(batch_size=batch_size)]


def flat(rows):
    return list(itertools.chain.from_iterable(rows))


# What is given


def test_bytes_labels_and_sources_belong_together(files):
    for data, label in File(files=files, random_shuffle=True).next_epoch(batch_size=4):
        numbers = [int(np.asarray(one)[0]) for one in label]
        assert [np.asarray(one).tolist() for one in data] == [[n] * (n + 1) for n in numbers]
        assert data.source_info == [str(files[n]) for n in numbers]
        assert (data.dtype, data.ndim, data.layout) == (ndd.uint8, 1, None)
        assert (label.dtype, label.shape) == (ndd.int32, [(1,)] * 4)


def test_labels_of_a_batch_lie_side_by_side(files):
    _, label = next(File(files=files).next_epoch(batch_size=4))
    assert label.torch(copy=False).tolist() == [[0], [1], [2], [3]]


def test_empty_files_are_samples_without_elements(tmp_path):
    (tmp_path / "none").write_bytes(b"")
    [(data, _)] = File(files=[tmp_path / "none"]).next_epoch()
    assert data.shape == (0,)


def test_files_without_a_size_are_read_to_their_end():
    [(data, _)] = File(files=["/proc/self/status"]).next_epoch()
    assert bytes(np.asarray(data)).startswith(b"Name:")


def test_names_may_be_paths_of_any_kind(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.jpg").write_bytes(b"x")
    (tmp_path / "list").write_text("a/x.jpg 0\n")

    class Named(os.PathLike):
        def __fspath__(self):
            return str(tmp_path / "a/x.jpg")

    path = tmp_path / "a/x.jpg"
    for arguments in (
        {"file_root": tmp_path},
        {"file_list": tmp_path / "list"},
        {"files": path},
        {"files": [path]},
        {"files": (Named(), str(path))},
        {"files": iter([path])},
        {"files": ["a/x.jpg"], "file_root": tmp_path},
    ):
        for data, _ in File(**arguments).next_epoch():
            assert bytes(np.asarray(data)) == b"x"
    with pytest.raises(TypeError, match=r"`files`.*a list of names"):
        File(files=[path, 3])


def test_a_lower_case_name_gets_a_hint():
    with pytest.raises(AttributeError, match=r"did you mean `readers\.File`"):
        ndd.readers.file
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ndd.readers.nothing


def test_an_unknown_argument_gets_a_hint(files):
    with pytest.raises(TypeError, match=r"'random_shufle'; did you mean `random_shuffle`"):
        File(files=files, random_shufle=True)


def test_a_batch_size_is_sent_to_where_it_belongs(files):
    with pytest.raises(
        TypeError, match=r"'batch_size'; give it to `next_epoch\(batch_size=\.\.\.\)`"
    ):
        File(files=files, batch_size=4)


def test_every_argument_is_documented():
    described = File.__doc__
    for name in inspect.signature(File).parameters:
        assert f"\n    {name}: " in described, name


# Epochs


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("wrap", [[[0, 1], [2, 3], [4, 0]], [[1, 2], [3, 4], [0, 1]]]),
        ("pad", [[[0, 1], [2, 3], [4, 4]]] * 2),
        ("partial", [[[0, 1], [2, 3], [4]]] * 2),
        ("drop", [[[0, 1], [2, 3]]] * 2),
    ],
)
def test_the_last_batch_is_as_it_was_asked_for(files, policy, expected):
    reader = File(files=files[:5], last_batch=policy)
    assert [epoch(reader), epoch(reader)] == expected


def test_pad_last_batch_is_a_policy(files):
    assert epoch(File(files=files[:3], pad_last_batch=True)) == [[0, 1], [2, 2]]
    with pytest.raises(ValueError, match="contradict"):
        File(files=files, pad_last_batch=True, last_batch="drop")
    with pytest.raises(ValueError, match="'wrap', 'pad', 'partial', 'drop', got 'some'"):
        File(files=files, last_batch="some")


def test_dropping_all_that_there_is_is_an_error(files):
    reader = File(files=files[:5], last_batch="drop")
    with pytest.raises(ValueError, match=r"nothing would be left: a shard has 5 samples"):
        reader.next_epoch(batch_size=6)
    assert epoch(reader, 5) == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("policy", ["wrap", "pad", "partial", "drop"])
@pytest.mark.parametrize("batch_size", [None, 1, 3, 4])
def test_an_epoch_knows_its_length(files, policy, batch_size):
    reader = File(files=files, last_batch=policy, num_shards=2)
    for _ in range(3):
        iterator = reader.next_epoch(batch_size=batch_size)
        assert len(iterator) == len(list(iterator)) == len(iterator)


def test_asking_for_the_length_begins_nothing(files):
    reader = File(files=files[:5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(reader.next_epoch(batch_size=2)) == 3
        assert epoch(reader) == [[0, 1], [2, 3], [4, 0]]


def test_asking_for_an_epoch_after_the_last_batch_moves_nothing(files):
    """Readers of other shards may have a batch left, so the state is still that of the last one."""
    reader = File(files=files[:5], num_shards=2, last_batch="partial")
    iterator = reader.next_epoch(batch_size=1)
    assert [labels(next(iterator)) for _ in range(2)] == [[0], [1]]
    state = reader.get_state()
    assert len(reader.next_epoch(batch_size=1)) == 3
    assert reader.get_state() == state
    assert next(iterator, None) is None
    assert reader.get_state() != state
    assert epoch(reader, 1) == [[2], [3], [4]]


def test_an_unfinished_epoch_is_said_once(files):
    reader = File(files=files[:5])
    next(reader.next_epoch(batch_size=2))
    with pytest.warns(UnfinishedEpochWarning, match=r"2 batches.* 3 batches are .*set_epoch"):
        again = reader.next_epoch(batch_size=2)
    assert labels(next(again)) == [2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert epoch(reader) == [[4, 0], [1, 2], [3, 4]]


def test_leaving_the_loop_in_the_last_batch_finishes_the_epoch(files):
    reader = File(files=files[:4])
    for outputs in reader.next_epoch(batch_size=2):
        if labels(outputs) == [2, 3]:
            break
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert epoch(reader) == [[0, 1], [2, 3]]


def test_iterators_that_take_turns_each_have_their_length(files):
    """As in DALI. States in between are whole, and others can go on from them."""
    reader = File(files=files[:6])
    first = reader.next_epoch(batch_size=2)
    given = [labels(next(first))]
    with pytest.warns(UnfinishedEpochWarning):
        second = reader.next_epoch(batch_size=2)
    for iterator in (second, first, first, second, second):
        given.append(labels(next(iterator)))
        restored = File(files=files[:6])
        restored.set_state(reader.get_state())
        [coming] = [labels(next(restored.next_epoch(batch_size=2)))]
        assert coming == [[2, 3], [4, 5], [0, 1]][(len(given) - 1) % 3]
    assert given == [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3], [4, 5]]
    assert list(first) == list(second) == []


def test_an_iterator_at_its_end_stays_there(files):
    reader = File(files=files[:4])
    first, second = (reader.next_epoch(batch_size=2) for _ in range(2))
    assert len(list(first)) == 2
    assert [labels(next(second)) for _ in range(2)] == [[0, 1], [2, 3]]
    state = reader.get_state()
    assert list(first) == []
    assert reader.get_state() == state
    reader.reset()
    assert list(first) == []


def test_iterators_end_when_the_reader_starts_over(files):
    reader = File(files=files)
    fresh, begun = (reader.next_epoch(batch_size=2) for _ in range(2))
    next(begun)
    reader.reset()
    for _ in range(2):
        for iterator in (fresh, begun):
            with pytest.raises(RuntimeError, match="has started over since this iterator"):
                next(iterator)
        assert labels(next(reader.next_epoch(batch_size=3))) == [0, 1, 2]
        reader.reset()


def test_reset_starts_over_in_any_mode(files):
    reader = File(files=files[:5], random_shuffle=True, seed=4)
    first = epoch(reader)
    with pytest.raises(ValueError, match=r"3 is different from the 2.*`reader\.reset\(\)`"):
        reader.next_epoch(batch_size=3)
    with pytest.raises(RuntimeError, match=r"single samples.*`reader\.reset\(\)`"):
        reader.next_epoch()
    with pytest.raises(RuntimeError, match=r"by calls.*`reader\.reset\(\)`"):
        reader(batch_size=2)
    reader.reset()
    assert epoch(reader) == first
    reader.reset()
    assert len(list(reader.next_epoch())) == 5
    reader.reset()
    assert labels(reader(batch_size=5)) == flat(first)[:5]


def test_calls_have_no_end(files):
    reader = File(files=files[:5], last_batch="partial")
    assert [labels(reader(batch_size=3)) for _ in range(5)] == [[0, 1, 2], [3, 4]] * 2 + [[0, 1, 2]]


def test_a_reader_is_released_by_with(files):
    with File(files=files) as reader:
        iterator = reader.next_epoch(batch_size=2)
        data, _ = next(iterator)
    assert np.asarray(data.tensors[1]).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="closed"):
        reader.next_epoch(batch_size=2)
    with pytest.raises(RuntimeError, match="closed"):
        next(iterator)


def test_a_reader_that_is_closed_in_mid_epoch_says_so_each_time(files):
    reader = File(files=files[:4])
    iterator = reader.next_epoch(batch_size=2)
    next(iterator)
    reader.close()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="the reader is closed"):
            next(iterator)


def test_a_lock_of_the_parent_does_not_stop_a_forked_child(files):
    reader = File(files=files)
    reader._lock._process = -1  # as if this were another process
    with reader._lock._lock:
        closing = threading.Thread(target=reader.close, daemon=True)
        closing.start()
        closing.join(5)
        assert not closing.is_alive()


def test_figures_and_names(files):
    reader = File(8, "train", files=files, num_shards=3, shard_id=1, pad_last_batch=True)
    assert (reader.name, reader.max_batch_size, reader.epoch_size) == ("train", 8, 13)
    assert reader.get_metadata()["epoch_size_padded"] == 15
    assert repr(reader) == "File(name='train', shard 1 of 3)"


def test_lazy_readers_open_at_the_first_use(tmp_path):
    reader = File(file_root=tmp_path / "later", lazy_init=True)
    (tmp_path / "later/a").mkdir(parents=True)
    (tmp_path / "later/a/x.jpg").write_bytes(b"x")
    assert epoch(reader, 1) == [[0]]
    with pytest.raises(ValueError, match=r"`file_root` can't be used: .*nope: No such file"):
        File(file_root=tmp_path / "nope")


def test_what_a_lazy_reader_refuses_it_refuses_again(files):
    reader = File(files=files[:2], num_shards=3, lazy_init=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="2 samples, fewer than the 3 shards"):
            reader.next_epoch(batch_size=1)


def test_threads_open_a_lazy_reader_once(files):
    opened = []

    class Slow(File):
        def _open(self):
            opened.append(self)
            time.sleep(0.05)
            return super()._open()

    reader = Slow(files=files, lazy_init=True)
    sizes = []
    threads = [threading.Thread(target=lambda: sizes.append(reader.epoch_size)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [13] * 4
    assert opened == [reader]


@pytest.mark.filterwarnings("ignore::penstock.EmulatedDeviceWarning")
def test_readers_are_for_the_host(files):
    with pytest.raises(ValueError, match="cpu"):
        File(files=files, device="gpu")


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_every_mode_reads_the_same(files, mode):
    with mode:
        assert epoch(File(files=files[:4])) == [[0, 1], [2, 3]]


# Shuffling


@pytest.mark.parametrize("how", [{"random_shuffle": True}, {"shuffle": "global"}])
def test_the_order_follows_from_the_seed(files, how):
    def run(**more):
        reader = File(files=files, seed=7, **how, **more)
        return [flat(epoch(reader, 1)) for _ in range(4)]

    orders = run()
    assert orders == run(prefetch_queue_depth=5)
    assert all(sorted(order) == list(range(13)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4
    reader = File(files=files, seed=8, **how)
    assert flat(epoch(reader, 1)) != orders[0]


def test_a_reader_without_a_seed_takes_one_of_the_default_rng(files):
    def run():
        return flat(epoch(File(files=files, random_shuffle=True)))

    ndd.random.set_seed(3)
    first, second = run(), run()
    ndd.random.set_seed(3)
    assert [run(), run()] == [first, second]
    assert first != second


@pytest.mark.parametrize("how", [{"random_shuffle": True}, {"shuffle_after_epoch": True}])
def test_shards_share_the_data_set_whatever_their_seeds_are(files, how):
    readers = [
        File(files=files, num_shards=3, shard_id=shard, seed=shard, last_batch="partial", **how)
        for shard in range(3)
    ]
    for _ in range(4):
        assert sorted(flat(flat(epoch(reader)) for reader in readers)) == list(range(13))


def test_ways_to_shuffle_exclude_each_other(files):
    with pytest.raises(RuntimeError, match="two ways"):
        File(files=files, shuffle="global", random_shuffle=True)
    with pytest.raises(ValueError, match="'buffer', 'global', 'groups', got 'all'"):
        File(files=files, shuffle="all")
    with pytest.warns(UserWarning, match="no effect") as warned:
        File(files=files, shuffle_after_epoch_seed=1)
    assert warned[0].filename == __file__


# State


def test_a_state_is_a_text(files):
    reader = File(files=files[:5])
    iterator = reader.next_epoch(batch_size=2)
    next(iterator)
    state = reader.get_state()
    assert isinstance(state, ReaderState)
    assert repr(state) == f"ReaderState({str(state)!r})"
    for given in (state, str(state), str(state).encode()):
        restored = File(files=files[:5])
        restored.set_state(given)
        assert restored.get_state() == state
        assert epoch(restored) == [[2, 3], [4, 0]]
        assert epoch(restored) == [[1, 2], [3, 4], [0, 1]]
    restored = File(files=files[:5])
    restored.load_state_dict(reader.state_dict())
    assert len(restored.next_epoch(batch_size=2)) == 2


def test_a_state_is_set_before_the_first_iteration(files):
    reader = File(files=files[:5])
    state = reader.get_state()
    epoch(reader)
    with pytest.raises(RuntimeError, match=r"before its first iteration.*`reader\.reset\(\)`"):
        reader.set_state(state)
    reader.reset()
    reader.set_state(state)
    assert epoch(reader) == [[0, 1], [2, 3], [4, 0]]


def test_what_is_no_state_is_refused(files):
    reader = File(files=files)
    with pytest.raises(TypeError, match="ReaderState, str or bytes, got 3"):
        reader.set_state(3)
    for text in ("", "foo", "[]", "{}", "3", '["a", 1]', "Cg8KCTUzNzQxMzE4MhAAGAI=", b"\xff"):
        with pytest.raises(ValueError, match="not the state of a reader"):
            reader.set_state(text)
    with pytest.raises(ValueError, match="version 9"):
        reader.set_state('["penstock reader", 9]')


def test_a_changed_data_set_is_noticed(files):
    state = File(files=files[:5]).get_state()
    with pytest.raises(ValueError, match=r"has changed.*had 5 samples, and has 6 now"):
        File(files=files[:6]).set_state(state)
    with pytest.raises(ValueError, match=r"has changed.*other names"):
        File(files=files[1:6]).set_state(state)
    with pytest.raises(ValueError, match=r"has changed.*labels"):
        File(files=files[:5], labels=[1] * 5).set_state(state)


def test_a_state_of_another_order_is_refused(files):
    state = File(files=files, random_shuffle=True).get_state()
    with pytest.raises(ValueError, match="shuffle='buffer', this one has shuffle=None"):
        File(files=files).set_state(state)
    with pytest.raises(ValueError, match="initial_fill=1024"):
        File(files=files, random_shuffle=True, initial_fill=5).set_state(state)
    with pytest.raises(ValueError, match="last_batch='wrap'"):
        File(files=files, random_shuffle=True, last_batch="pad").set_state(state)


def test_a_state_is_of_what_was_given_not_of_what_was_read_ahead(files):
    shallow, deep = (File(files=files, prefetch_queue_depth=depth) for depth in (1, 6))
    for _ in zip(shallow.next_epoch(batch_size=2), deep.next_epoch(batch_size=2), strict=True):
        assert shallow.get_state() == deep.get_state()


def test_no_more_is_read_ahead_than_there_is(files):
    reader = File(files=files, prefetch_queue_depth=10**9)
    assert len(list(reader.next_epoch(batch_size=2))) == len(reader.next_epoch(batch_size=2))


# Bad samples


@pytest.mark.parametrize("batch_size", [None, 3])
def test_a_file_that_is_gone_is_an_error_that_names_it(files, batch_size):
    reader = File(files=files[:3])
    files[1].unlink()
    items = list(reader.next_epoch(batch_size=batch_size))
    data = items[0][0] if batch_size else items[1][0]
    with pytest.raises(OSError, match=r"readers\.File: sample \d: .*no such file") as caught:
        data.evaluate()
    assert isinstance(caught.value, RuntimeError)
    text = str(caught.value)
    assert f"file: {files[1]}" in text
    assert __file__ in text
    assert "list(reader.next_epoch(batch_size=batch_size))" in text
    assert "on_error" in text


def test_the_other_samples_of_a_batch_can_be_read(files):
    reader = File(files=files[:3])
    files[1].unlink()
    [(data, _)] = reader.next_epoch(batch_size=3)
    assert np.asarray(data.tensors[2]).tolist() == [2, 2, 2]
    with pytest.raises(OSError, match="no such file"):
        np.asarray(data.tensors[1])


def test_what_is_no_file_is_said(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, says in (("pipe", "it is a pipe"), ("folder", "it is a folder")):
        [(data, _)] = File(files=[tmp_path / name]).next_epoch()
        with pytest.raises(OSError, match=says):
            data.evaluate()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_said(files):
    files[0].chmod(0)
    [(data, _)] = File(files=files[:1]).next_epoch()
    with pytest.raises(OSError, match="permission"):
        data.evaluate()


def test_bad_samples_can_be_skipped(files):
    reader = File(files=files[:6], on_error="skip")
    files[1].unlink()
    files[4].unlink()
    files[5].unlink()
    for _ in range(2):
        assert epoch(reader) == [[0], [2, 3]]
        assert [error[:2] for error in reader.errors] == [
            (str(files[number]), number) for number in (1, 4, 5)
        ]
    assert reader.errors[0] == SampleError(str(files[1]), 1, "there is no such file")
    reader.reset()
    assert [int(np.asarray(label)[0]) for _, label in reader.next_epoch()] == [0, 2, 3]


def test_bad_samples_can_be_substituted(files):
    def run():
        reader = File(files=files[:6], on_error="substitute")
        return [epoch(reader), reader.errors]

    files[1].unlink()
    files[2].unlink()
    given, errors = run()
    assert given == [[0, 3], [3, 3], [4, 5]]
    assert [error.sample for error in errors] == [1, 2], "once, though 2 was tried as a substitute"
    assert run() == [given, errors]


def test_without_a_good_sample_there_is_no_substitute(files):
    reader = File(files=files[:2], on_error="substitute")
    files[0].unlink()
    files[1].unlink()
    with pytest.raises(RuntimeError, match="none of the 2 samples"):
        next(reader.next_epoch(batch_size=1))


def test_what_a_cut_has_left_is_substituted_by_later_samples(files):
    """Of 4 samples one is left, which is bad, for one of two readers."""
    one = File(files=files[:4], on_error="substitute", last_batch="partial")
    iterator = one.next_epoch(batch_size=1)
    for _ in range(3):
        next(iterator)
    files[3].unlink()
    given = []
    for shard in range(2):
        reader = File(
            files=files[:4],
            on_error="substitute",
            last_batch="partial",
            num_shards=2,
            shard_id=shard,
        )
        reader.set_state(one.get_state())
        given.append([epoch(reader, 1), epoch(reader, 1)])
    assert given == [[[], [[2], [2]]], [[[0]], [[0], [1]]]]


def test_calls_end_when_no_sample_can_be_read(files):
    reader = File(files=files[:3], on_error="skip")
    for name in files[:3]:
        name.unlink()
    with pytest.raises(RuntimeError, match=r"none of the samples.*there is no such file"):
        reader(batch_size=2)
    assert len(reader.errors) == 3


def test_faults_that_are_not_the_sample_s_are_errors():
    class Stopped:
        cause = ("stopped",)
        operator, sample, source, site = "readers.File", 0, None, 0

    class Unmade:
        def faults(self):
            return [(0, Stopped())]

    bad = BadSamples("readers.File", "skip", 5)
    with pytest.raises(RuntimeError):
        bad.replace(np.arange(1), (Unmade(),), name=str, fetch=None, after=None)
    assert bad.errors() == []


def test_too_many_bad_samples_are_an_error(files):
    reader = File(files=files[:6], on_error="skip", max_errors=1)
    files[1].unlink()
    assert epoch(reader) == [[0], [2, 3], [4, 5]]
    files[4].unlink()
    with pytest.raises(RuntimeError, match=r"2 samples of this epoch.*`max_errors` allows"):
        epoch(reader)
    with pytest.raises(ValueError, match="'raise', 'skip', 'substitute', got 'ignore'"):
        File(files=files, on_error="ignore")


def test_bad_samples_don_t_move_positions(files):
    reader = File(files=files[:8], on_error="skip")
    files[1].unlink()
    iterator = reader.next_epoch(batch_size=2)
    next(iterator)
    restored = File(files=files[:8], on_error="skip")
    restored.set_state(reader.get_state())
    assert epoch(restored) == [[2, 3], [4, 5], [6, 7]]


def test_lengths_count_what_is_skipped(files):
    """Which files are bad must not change an epoch, or shards would get out of step."""
    reader = File(files=files[:6], on_error="skip")
    iterator = reader.next_epoch(batch_size=2)
    files[2].unlink()
    files[3].unlink()
    assert [labels(outputs) for outputs in iterator] == [[0, 1], [4, 5]]
    assert len(iterator) == 3
    assert len(reader.next_epoch(batch_size=2)) == 3


# Threads


def test_threads_share_an_epoch(files):
    reader = File(files=files, last_batch="partial")
    iterator = reader.next_epoch(batch_size=1)
    given, lock = [], threading.Lock()

    def work():
        for outputs in iterator:
            with lock:
                given.extend(labels(outputs))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given) == list(range(13))


# Names


def test_imread_reads_what_decoders_get(files, monkeypatch):
    """Decoding has tests of its own."""
    monkeypatch.setattr("penstock.ops.imread.image", lambda data, **more: (data, more))
    name = str(files[1])
    row = np.frombuffer(name.encode(), np.uint8)
    for one in (name, files[1], name.encode(), row):
        data, more = ndd.imread(one, device="cpu")
        assert isinstance(data, ndd.Tensor)
        assert (np.asarray(data).tolist(), more) == ([1, 1], {"device": "cpu"})
    for several in ([name, files[2]], (name, files[2])):
        data, _ = ndd.imread(several)
        assert [np.asarray(one).tolist() for one in data] == [[1, 1], [2, 2, 2]]
        assert data.source_info == [name, str(files[2])]
    for rows in (ndd.batch([row, row]), [row, row], [ndd.tensor(row), ndd.tensor(row)]):
        data, _ = ndd.imread(rows)
        assert [np.asarray(one).tolist() for one in data] == [[1, 1]] * 2
    with pytest.raises(ValueError, match="at least one"):
        ndd.imread([])


def test_files_are_read_by_names_of_any_kind(files):
    read = ndd.io.file.read
    name, row = str(files[1]), np.frombuffer(bytes(files[1]), np.uint8)
    for one in (name, files[1], name.encode(), row, ndd.tensor(row), list(row), row.tolist()):
        data = read(one if not isinstance(one, list) else ndd.tensor(one, dtype=ndd.uint8))
        assert isinstance(data, ndd.Tensor)
        assert np.asarray(data).tolist() == [1, 1]
    other = np.frombuffer(bytes(files[2]), np.uint8)
    for several in (
        [name, files[2]],
        (name.encode(), str(files[2])),
        [row, other],
        [ndd.tensor(row), ndd.tensor(other)],
        ndd.batch([row, other]),
    ):
        data = read(several)
        assert isinstance(data, ndd.Batch)
        assert [np.asarray(one).tolist() for one in data] == [[1, 1], [2, 2, 2]]
    for odd in ([name, row], [name, 5], 5, None, 1.5):
        with pytest.raises((TypeError, RuntimeError), match=r"io\.file\.read"):
            read(odd).evaluate()


def test_names_may_leave_the_root(files, tmp_path):
    """As in DALI: lists are trusted."""
    inside = tmp_path / "inside"
    inside.mkdir()
    away = [os.path.relpath(files[1], inside), str(files[2])]
    assert away[0].startswith("..")
    listed = inside / "list.txt"
    listed.write_text("".join(f"{name} 0\n" for name in away))
    annotations = inside / "a.json"
    images = [{"id": n, "file_name": name} for n, name in enumerate(away)]
    annotations.write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    for reader in (
        File(file_root=inside, files=away),
        File(file_list=listed),
        ndd.readers.COCO(file_root=inside, annotations_file=annotations, skip_empty=False),
    ):
        given = [np.asarray(outputs[0]).tolist() for outputs in reader.next_epoch()]
        assert given == [[1, 1], [2, 2, 2]]


def test_imread_shows_and_takes_the_keywords_of_the_decoder():
    (filepaths, *keywords) = inspect.signature(ndd.imread).parameters.values()
    assert (filepaths.name, filepaths.kind) == ("filepaths", filepaths.POSITIONAL_ONLY)
    of_decoder = list(inspect.signature(ndd.decoders.image).parameters.values())[1:]
    assert [keyword for keyword in keywords if keyword.name != "storage_options"] == of_decoder
    with pytest.raises(TypeError, match=r"^imread\(\) got .*'outputtype'.*`output_type`"):
        ndd.imread("not read", outputtype=ndd.types.GRAY)
