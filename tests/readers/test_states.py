"""States of readers that something has happened to: refused, or as good as DALI."""

import itertools
import json
import pathlib
import random
import zlib
from dataclasses import replace

import numpy as np
import pytest
from tests.mutations import mutate

from penstock.checkpoint import Checkpoint
from penstock.random import RNG
from penstock.readers import File
from penstock.readers._base.order import POLICIES
from penstock.readers._base.state import Snapshot

SIZE = 17


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    names = [folder / f"{number:02d}" for number in range(SIZE)]
    for name in names:
        name.write_bytes(name.name.encode())
    return names


def stopped(files, shards=3, cuts=0, is_even=True, **options):
    """A reader that has been stopped somewhere, after others were."""
    reader = File(files=files, num_shards=shards, shard_id=shards - 1, **options)
    if not is_even:
        reader._options = replace(reader._options, is_even=False)
    for _ in range(4):
        next(reader.next_epoch(batch_size=2, restart=True))
    for cut in range(cuts):
        other = File(files=files, num_shards=cut + 1, **options)
        other.set_state(reader.get_state())
        reader, iterator = other, other.next_epoch(batch_size=cut + 1)
        next(iterator)
    return reader


def states(files, **more):
    for policy, shuffle, cuts in itertools.product(POLICIES, (None, "buffer", "global"), (0, 2)):
        options = {"last_batch": policy, "shuffle": shuffle, "seed": 3}
        yield options, stopped(files, cuts=cuts, **more, **options).get_state()


IS_EVEN = 2 + Snapshot._fields.index("is_even")


def old_form(state):
    """As it was before there were checksums, and equally many batches for all shards."""
    name, version, *fields, _ = json.loads(state)
    assert version == 3
    assert fields.pop(IS_EVEN - 2) is False
    return [name, 1, *fields]


def form_of_version_2(state):
    _, _, *fields = old_form(state)
    content = ["penstock reader", 2, *fields]
    checksum = zlib.crc32(json.dumps(content, separators=(",", ":")).encode())
    return [*content, f"{checksum:08x}"]


def test_states_of_older_versions_are_loaded(files):
    for options, state in states(files, is_even=False):
        for form in (old_form, form_of_version_2):
            old, new = (File(files=files, **options) for _ in range(2))
            new.set_state(state)
            old.set_state(json.dumps(form(state)))
            assert old.get_state() == new.get_state() == state
            assert two_epochs(old) == two_epochs(new)


def two_epochs(reader):
    return [
        [bytes(np.asarray(data)) for data in batch]
        for _ in range(2)
        for batch, _ in reader.next_epoch(batch_size=2)
    ]


def test_readers_with_an_older_state_count_as_it_did(files):
    """Or an epoch would end before the place where the state was taken."""
    state = stopped(files, is_even=False, last_batch="drop").get_state()
    for shard, batches in enumerate([3, 3, 2]):
        reader = File(files=files, num_shards=3, shard_id=shard, last_batch="drop")
        reader.set_state(json.dumps(form_of_version_2(state)))
        list(reader.next_epoch(batch_size=2))
        assert len(reader.next_epoch(batch_size=2)) == batches


def test_damaged_texts_are_refused(files):
    rng = np.random.default_rng(4)
    refused = 0
    for options, state in states(files):
        reader = File(files=files, **options)
        for _ in range(200):
            damaged = mutate(state.encode(), rng)
            try:
                reader.set_state(damaged)
            except ValueError:
                refused += 1
            else:
                assert json.loads(damaged) == json.loads(state), damaged
            reader.reset()
    assert refused > 4000


VALUES = (None, True, -1, 0, 1, 2, 3, 7, 100, 2**31, 2**62, 2**70, 1.5, "", "wrap", [], [[]])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.filterwarnings("ignore::penstock.readers.UnfinishedEpochWarning")
def test_without_a_checksum_what_no_reader_can_be_at_is_refused(files, policy):
    """What is taken all the same is a place that a reader can be at, and goes on from there."""
    rng = random.Random(5)
    taken = 0
    for options, state in states(files, is_even=False):
        if options["last_batch"] != policy:
            continue
        for _ in range(150):
            damaged = old_form(state)
            part = rng.choice([damaged, *damaged[-1]])
            part[rng.randrange(2 if part is damaged else 0, len(part))] = rng.choice(VALUES)
            reader = File(files=files, **options)
            try:
                reader.set_state(json.dumps(damaged))
            except ValueError:
                continue
            taken += old_form(state)[2:] != damaged[2:]
            size = json.loads(state)[IS_EVEN + 1] or 2
            for _ in range(2):
                found = list(itertools.islice(reader.next_epoch(batch_size=size), 3 * SIZE))
                assert len(found) <= SIZE
    assert taken < 200


@pytest.mark.parametrize(
    ("field", "value"),
    [("offset", 100), ("offset", 1), ("num_shards", 100), ("num_shards", 1), ("left", 10**6)],
)
def test_fields_that_contradict_each_other_are_refused(files, field, value):
    reader = stopped(files)
    damaged = old_form(reader.get_state())
    fields = [each for each in Snapshot._fields if each != "is_even"]
    damaged[2 + fields.index(field)] = value
    with pytest.raises(ValueError, match=r"^readers.File: the state is damaged: "):
        File(files=files).set_state(json.dumps(damaged))


def test_damaged_checkpoints_are_refused(files, tmp_path):
    checkpoint = Checkpoint()
    checkpoint.register(stopped(files, cuts=2), "reader")
    checkpoint.register(RNG(7), "rng")
    checkpoint.collect()
    file = pathlib.Path(checkpoint.save(tmp_path / "{seq}"))
    good, rng = file.read_bytes(), np.random.default_rng(6)
    for _ in range(3000):
        damaged = mutate(good, rng)
        file.write_bytes(damaged)
        try:
            Checkpoint().load(tmp_path / "{seq}")
        except ValueError:
            continue
        assert json.loads(damaged) == json.loads(good), damaged


def test_checkpoints_without_a_checksum_are_loaded(tmp_path):
    rng, checkpoint = RNG(7), Checkpoint()
    checkpoint.register(rng, "rng")
    checkpoint.collect()
    file = pathlib.Path(checkpoint.save(tmp_path / "{seq}"))
    content = json.loads(file.read_bytes())
    del content["checksum"]
    file.write_text(json.dumps(content))
    other, again = Checkpoint(), RNG(8)
    other.load(tmp_path / "{seq}")
    other.register(again, "rng")
    assert again.state == rng.state
