"""Checkpoints beyond DALI: atomic files, messages, state dicts."""

import json
import os
import pathlib
import random
import signal
import stat
import tempfile
import threading
import time

import pytest
from tests.stress.fresh import check_fresh

import penstock as ndd
from penstock._state import numbered_files
from penstock.checkpoint import Checkpoint, current
from penstock.random import RNG


def collected(**seeds):
    checkpoint = Checkpoint()
    for name, seed in seeds.items():
        checkpoint.register(RNG(seed), name)
    checkpoint.collect()
    return checkpoint


@pytest.fixture
def pattern(tmp_path):
    return str(tmp_path / "ckpt_{seq:04d}.json")


# Files


def test_a_round_trip_through_a_file(pattern):
    rng = RNG(5)
    checkpoint = Checkpoint()
    checkpoint.register(rng, "rng")
    rng.advance(11)
    checkpoint.collect()
    path = checkpoint.save(pattern)
    assert path == pattern.format(seq=0)
    expected = [rng() for _ in range(3)]
    loaded, fresh = Checkpoint(), RNG()
    assert loaded.load(pathlib.Path(pattern)) == path
    loaded.register(fresh, "rng")
    assert [fresh() for _ in range(3)] == expected


def test_the_format_is_that_of_dali(pattern):
    with open(collected(a=5).save(pattern)) as file:
        content = json.load(file)
    assert len(content.pop("checksum")) == 8  # an addition that DALI ignores
    assert content == {
        "version": 2,
        "states": {"a": {"state": str(RNG(5).state), "type": "RNG"}},
    }


def test_a_damaged_newest_file_is_named_with_the_way_out(pattern):
    checkpoint = collected(a=5)
    first, second = checkpoint.save(pattern), checkpoint.save(pattern)
    with open(second, "r+") as file:
        file.truncate(40)
    loaded = collected(b=6)
    before = loaded.serialize()
    with pytest.raises(ValueError, match="damaged") as caught:
        loaded.load(pattern)
    assert repr(second) in str(caught.value)
    assert f"Move the file away to resume from {first!r}" in str(caught.value)
    assert loaded.serialize() == before
    os.unlink(first)
    with pytest.raises(ValueError, match=r"Move the file away\.$"):
        loaded.load(pattern)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "It is empty"),
        (b"\0" * 100, "not JSON"),
        (bytes(range(256)), "not JSON"),
        (b"[" * 100_000, "deeply nested|not JSON"),
        (b"[]", "not a checkpoint"),
        (b'{"version": 7, "states": {}}', "version is 7, but only version 2 is supported"),
        (b'{"version": 2, "states": {"a": 5}}', "entry 'a' is malformed"),
        (b'{"version": 2, "states": {"a": {"state": "x", "type": 5}}}', "entry 'a'.*type"),
    ],
)
def test_files_that_are_no_checkpoints_are_named(pattern, content, says):
    path = pathlib.Path(pattern.format(seq=3))
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says) as caught:
        Checkpoint().load(pattern)
    assert repr(str(path)) in str(caught.value)


def test_no_file_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint") as caught:
        Checkpoint().load(str(tmp_path / "ckpt_{seq}.json"))
    assert str(tmp_path) in str(caught.value)


def test_nothing_else_is_left_in_the_folder(tmp_path, pattern):
    for _ in range(3):
        collected(a=5).save(pattern)
    assert sorted(os.listdir(tmp_path)) == [f"ckpt_{seq:04d}.json" for seq in range(3)]


def test_files_have_the_permissions_of_any_other(tmp_path, pattern):
    plain = tmp_path / "plain"
    plain.touch()
    path = collected(a=5).save(pattern)
    assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_what_cannot_be_written_leaves_nothing(tmp_path, pattern, monkeypatch):
    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        collected(a=5).save(pattern)
    assert os.listdir(tmp_path) == []


def test_data_is_on_the_disk_before_its_name_is(pattern, monkeypatch):
    done = []
    for name in ("fsync", "link"):
        real = getattr(os, name)

        def logged(*args, name=name, real=real):
            done.append(name)
            return real(*args)

        monkeypatch.setattr(os, name, logged)
    collected(a=5).save(pattern)
    assert done == ["fsync", "link", "fsync"]


def test_file_systems_without_links_get_renames(tmp_path, pattern, monkeypatch):
    def refuse(*args):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    checkpoint = collected(a=5)
    assert [os.path.basename(checkpoint.save(pattern)) for _ in range(2)] == [
        "ckpt_0000.json",
        "ckpt_0001.json",
    ]
    assert len(os.listdir(tmp_path)) == 2


def test_a_number_that_is_taken_meanwhile_is_not_used_twice(pattern, monkeypatch):
    checkpoint = collected(a=5)
    checkpoint.save(pattern)
    monkeypatch.setattr(
        numbered_files.Pattern, "find", lambda self: []
    )  # as seen a moment too early
    assert checkpoint.save(pattern) == pattern.format(seq=1)


def test_threads_that_save_at_once_get_a_file_each(tmp_path, pattern):
    start, paths = threading.Barrier(8), []

    def save(seed):
        checkpoint = collected(a=seed)
        start.wait()
        paths.extend(checkpoint.save(pattern) for _ in range(10))

    threads = [threading.Thread(target=save, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 80
    assert len(os.listdir(tmp_path)) == 80


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x{seq", r"'x\{seq': .*braces don't match: expected '\}'"),
        ("x}{seq}", "braces don't match"),
        ("x{seq:zz}", "`{seq:zz}` is not a valid format for an integer: "),
        ("x{seq!z}", "`{seq!z}` is not a valid format for an integer: "),
    ],
)
def test_what_is_no_pattern_is_told_with_what_one_is(name, text):
    with pytest.raises(ValueError, match=text):
        collected(a=5).save(name)


def test_a_file_that_can_not_be_written_is_called_by_its_own_name(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    with pytest.raises(OSError, match="File name too long") as caught:
        collected(a=5).save(str(folder / f"{'x' * 300}{{seq}}"))
    assert caught.value.filename == str(folder / f"{'x' * 300}0")


@pytest.mark.parametrize("field", ["{seq:e}", "{seq:c}", "{seq:%}", "{seq:0<9}", "{seq:{seq}}"])
def test_numbers_that_cannot_be_read_back_are_refused(tmp_path, field):
    with pytest.raises(ValueError, match="seq"):
        collected(a=5).save(str(tmp_path / f"x_{field}.json"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "field",
    ["{seq}", "{seq:d}", "{seq:08d}", "{seq:X}", "{seq:#x}", "{seq:b}", "{seq:,}", "{seq:_}",
     "{seq:*>9}", "{seq:<5}", "{seq!s:>5}"],
)  # fmt: skip
def test_any_other_format_counts_on(tmp_path, field):
    pattern = numbered_files.Pattern(str(tmp_path / f"x_{field}.json"))
    for number in (0, 9, 10, 15, 16, 255, 1234, 99999, 1234567):
        pathlib.Path(pattern.path(number)).touch()
        assert pattern.find()[-1] == (number, pattern.path(number))


# Killed


def made(folder):
    """A reader and an RNG, registered."""
    names = [os.path.join(folder, f"{index}.jpg") for index in range(11)]
    reader = ndd.readers.File(files=names, random_shuffle=True, seed=3, initial_fill=4)
    return Checkpoint(), reader, RNG(0)


def batches(reader, rng):
    while True:
        for data, _ in reader.next_epoch(batch_size=3):
            yield data, ndd.random.uniform(range=[0, 1], rng=rng)


def save_until_killed(folder, pattern, told):
    """Resume from the newest checkpoint and save one for each batch. Prints its progress."""
    checkpoint, reader, rng = made(folder)
    try:
        checkpoint.load(pattern)
    except FileNotFoundError:
        pass
    checkpoint.register(reader, "reader")
    checkpoint.register(rng, "rng")
    os.write(told, b".")
    for _ in ndd.prefetch(batches(reader, rng)):
        checkpoint.collect()
        checkpoint.save(pattern)
        os.write(told, b".")


def states(folder):
    """The checkpoints of an uninterrupted run."""
    checkpoint, reader, rng = made(folder)
    checkpoint.register(reader, "reader")
    checkpoint.register(rng, "rng")
    for _ in batches(reader, rng):
        checkpoint.collect()
        yield checkpoint.serialize()


def kill_a_few_times():
    kill_often(30)


def kill_200_times():
    kill_often(200)


def kill_often(times):
    """Each batch has exactly one checkpoint, equal to that of an uninterrupted run."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        for index in range(11):
            pathlib.Path(folder, f"{index}.jpg").write_bytes(bytes([index]))
        pattern = os.path.join(folder, "ckpt_{seq:04d}.json")
        uninterrupted, checked = states(folder), 0
        for _ in range(times):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    save_until_killed(folder, pattern, writing)
                finally:
                    os._exit(1)
            os.close(writing)
            for _ in range(chance.choice([1, 2, 3])):
                assert os.read(reading, 1) == b"."
            time.sleep(chance.random() * 0.01)
            os.kill(child, signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL
            os.close(reading)
            files = numbered_files.Pattern(pattern).find()
            assert [number for number, _ in files] == list(range(len(files)))
            for _, path in files[checked:]:
                saved = json.loads(pathlib.Path(path).read_text())
                assert saved["states"] == json.loads(next(uninterrupted))["states"]
            checked = len(files)
        assert checked > times


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "program", [kill_a_few_times, pytest.param(kill_200_times, marks=pytest.mark.slow)]
)
def test_killed_processes_leave_usable_checkpoints(program):
    check_fresh(program, timeout=100)


# Objects


def test_messages_say_what_to_do():
    loaded = Checkpoint()
    loaded.deserialize(collected(train=1, rng=2).serialize())
    with pytest.raises(
        KeyError, match=r"no loaded state for 'test'.*'train', 'rng'.*name it was saved"
    ):
        loaded.register(RNG(), "test")
    with pytest.raises(KeyError, match="in the same order as when saving"):
        loaded.register(RNG())
    with pytest.raises(RuntimeError, match=r"states for 'train', 'rng'.*before collect\(\)"):
        loaded.collect()
    with pytest.raises(KeyError, match="no object is registered as 'test'"):
        loaded.get_state("test")
    with pytest.raises(TypeError, match=r"get_state\(\) and set_state\(\)"):
        loaded.register(5)
    with pytest.raises(RuntimeError, match=r"call collect\(\)"):
        Checkpoint().serialize()


def test_an_object_that_fails_to_take_its_state_is_not_registered():
    loaded = Checkpoint()
    loaded.set_state("rng", "garbage")
    with pytest.raises(ValueError, match="Philox"):
        loaded.register(RNG(1), "rng")
    assert loaded.names == ()
    loaded.set_state("rng", RNG(4).state)
    rng = RNG()
    loaded.register(rng, "rng")
    assert rng.state == RNG(4).state


def test_restoring_checks_all_types_before_it_begins():
    checkpoint, first, second = Checkpoint(), RNG(1), RNG(2)
    checkpoint.register(first, "first")
    checkpoint.register(second, "second")
    checkpoint.set_state("first", RNG(8).state, RNG)
    checkpoint.set_state("second", RNG(9).state, "File")
    with pytest.raises(TypeError, match="'second' belongs to a File, but the object is a RNG"):
        checkpoint.restore()
    assert first.state == RNG(1).state


def test_a_failed_collect_changes_nothing():
    class Broken(RNG):
        def get_state(self, *, cuda_stream=None):
            raise RuntimeError("not now")

    checkpoint = collected(a=1)
    before = checkpoint.serialize()
    checkpoint.clear()
    checkpoint.deserialize(before)
    checkpoint.register(RNG(), "a")
    checkpoint._objects["b"] = Broken()
    with pytest.raises(RuntimeError, match="not now"):
        checkpoint.collect()
    assert checkpoint.serialize() == before
    assert checkpoint.is_loaded


def test_the_current_checkpoint_is_that_of_the_context():
    context = ndd.EvalContext()
    with context:
        assert current() is ndd.checkpoint.current() is context.checkpoint
        current().register(RNG(1), "rng")
    assert current() is not context.checkpoint
    assert context.checkpoint.names == ("rng",)


def test_repr_tells_what_there_is():
    assert repr(Checkpoint()) == "Checkpoint(nothing registered; not collected)"
    assert repr(collected(a=1, b=2)) == "Checkpoint('a', 'b'; complete)"


# Dictionaries


def test_state_dicts_go_through_json():
    rng = RNG(5)
    rng.advance(3)
    state = json.loads(json.dumps(rng.state_dict()))
    other = RNG()
    other.load_state_dict(state)
    assert other.state == rng.state
    for wrong in ({}, None, "x", [1]):
        with pytest.raises(ValueError, match="state_dict"):
            other.load_state_dict(wrong)
    assert other.state == rng.state


def test_a_checkpoints_state_dict_is_applied_at_once():
    checkpoint, rng = Checkpoint(), RNG(5)
    assert checkpoint.state_dict() == {"version": 2, "states": {}}
    checkpoint.clear()
    checkpoint.register(rng, "rng")
    state = json.loads(json.dumps(checkpoint.state_dict()))
    rng()
    checkpoint.load_state_dict(state)
    assert rng.state == RNG(5).state
    later, fresh = Checkpoint(), RNG()
    later.load_state_dict(state)
    later.register(fresh, "rng")
    assert fresh.state == RNG(5).state
    later.register(RNG(1), "rng")
    with pytest.raises(RuntimeError, match="no states for 'rng'"):
        later.load_state_dict({"version": 2, "states": {}})
    with pytest.raises(TypeError, match="state_dict"):
        later.load_state_dict("x")
    with pytest.raises(ValueError, match="version"):
        later.load_state_dict({})


# Several ranks


def drawn(rank, world_size, shared, steps):
    """The numbers that a rank draws, as the documentation recommends."""
    return [shared.split(world_size)[rank]() for _ in range(steps)]


@pytest.mark.skipif(not hasattr(RNG, "split"), reason="RNGs can't be split yet")
def test_ranks_that_load_one_state_draw_numbers_of_their_own():
    ranks = [RNG(3) for _ in range(4)]
    for rank, shared in enumerate(ranks):
        drawn(rank, 4, shared, steps=5)
    checkpoint = Checkpoint()
    checkpoint.register(ranks[0], "rng")
    state = checkpoint.state_dict()
    expected = [drawn(rank, 4, shared, steps=5) for rank, shared in enumerate(ranks)]
    for world_size in (2, 4, 8):
        found = []
        for rank in range(world_size):
            shared, other = RNG(), Checkpoint()
            other.register(shared, "rng")
            other.load_state_dict(state)
            found.append(drawn(rank, world_size, shared, steps=5))
        assert found[:4] == expected[:world_size]
        assert len({number for row in found for number in row}) == 5 * world_size
