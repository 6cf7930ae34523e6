"""RNGs that draw by sample: what a sample gets depends on nothing but itself and the epoch."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
from tests.calls import CALLS

import penstock as ndd
from penstock._operators.definition import OPERATORS
from penstock.random import RNG

COUNT = 23


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    for index in range(COUNT):
        np.save(folder / f"{index:02d}.npy", np.full((12, 10, 3), index * 10, np.uint8))
    return str(folder)


@pytest.fixture(autouse=True)
def default_depth():
    yield
    ndd.set_run_ahead(None)


def augmented(images, rng):
    """Random operators with and without inputs, and one that draws much."""
    strength = ndd.random.uniform(range=[0.5, 1.5], rng=rng.of(images))
    mirror = ndd.random.coin_flip(rng=rng.of(images))
    made = ndd.random_resized_crop(images, size=[6, 5], rng=rng)
    made = ndd.flip(ndd.brightness(made, brightness=strength), horizontal=mirror)
    return ndd.noise.gaussian(made, stddev=20.0, rng=rng)


def number(image):
    return int(np.asarray(image).flat[0]) // 10


def record(found, epoch, images, made):
    """What each sample got; padding and samples of the next epoch must be the same."""
    single = isinstance(images, ndd.Tensor)
    pairs = [(images, made)] if single else zip(images.tensors, made.tensors, strict=True)
    for image, result in pairs:
        key = epoch, number(image)
        result = np.array(result)
        assert np.array_equal(found.setdefault(key, result), result)


def run(root, size, *, epochs=2, depth=None, **options):
    """What each sample of each epoch got."""
    ndd.set_run_ahead(depth)
    options.setdefault("last_batch", "partial")
    reader = ndd.readers.Numpy(file_root=root, **options)
    rng = RNG(5, by="sample")
    found = {}
    for epoch in range(epochs):
        for (images,) in reader.next_epoch(batch_size=size):
            record(found, epoch, images, augmented(images, rng))
    return found


def assert_same(found, expected):
    assert found.keys() <= expected.keys()
    for key, image in found.items():
        assert np.array_equal(image, expected[key]), key


@pytest.fixture(scope="module")
def expected(root):
    return run(root, 4, depth=0)


def test_samples_and_epochs_differ(expected):
    assert len(expected) == 2 * COUNT
    noise = {key: image.tobytes() for key, image in expected.items()}
    assert len(set(noise.values())) > COUNT, "clipping makes a few the same, not most"
    assert noise[0, 12] != noise[1, 12] != noise[0, 13]


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("size", [1, 3, 7, 23, 50, None])
def test_batches_do_not_matter(root, expected, size, depth):
    found = run(root, size, depth=depth)
    assert found.keys() == expected.keys()
    assert_same(found, expected)


def test_early_calls_are_used(root):
    before = ndd.run_ahead.stats().used
    run(root, 2, depth=2)
    assert ndd.run_ahead.stats().used >= before + 5 * 15


@pytest.mark.parametrize("shards", [2, 5, 23])
@pytest.mark.parametrize("options", [{}, {"random_shuffle": True, "seed": 3}])
def test_shards_do_not_matter(root, expected, shards, options):
    found = {}
    for shard in range(shards):
        found |= run(root, 3, num_shards=shards, shard_id=shard, **options)
    assert found.keys() == expected.keys()
    assert_same(found, expected)


@pytest.mark.parametrize("last_batch", ["wrap", "pad", "drop"])
def test_the_last_batch_does_not_matter(root, expected, last_batch):
    ndd.set_run_ahead(2)
    reader = ndd.readers.Numpy(file_root=root, last_batch=last_batch)
    rng = RNG(5, by="sample")
    seen = set()
    for epoch in range(2):
        for (images,) in reader.next_epoch(batch_size=9):
            for image, made in zip(images.tensors, augmented(images, rng).tensors, strict=True):
                # A batch at the end of an epoch is filled up with samples of the next one.
                filled = last_batch == "wrap" and (epoch, number(image)) in seen
                key = epoch + filled, number(image)
                seen.add(key)
                if key in expected:
                    assert np.array_equal(made, expected[key]), key
    assert len(seen) >= 2 * 18


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("size", [2, 5])
def test_an_elastic_resume_does_not_matter(root, expected, shards, size):
    reader = ndd.readers.Numpy(file_root=root, last_batch="partial")
    rng = RNG(5, by="sample")
    found = {}
    epoch = reader.next_epoch(batch_size=4)
    for _ in range(3):
        (images,) = next(epoch)
        record(found, 0, images, augmented(images, rng))
    states = str(reader.get_state()), str(rng.state)
    for shard in range(shards):
        again = ndd.readers.Numpy(
            file_root=root, last_batch="partial", num_shards=shards, shard_id=shard
        )
        again.set_state(states[0])
        rng = RNG(state=states[1])
        for (images,) in again.next_epoch(batch_size=size):
            record(found, 0, images, augmented(images, rng))
    assert len(found) == COUNT
    assert_same(found, expected)


def test_calls_of_a_reader(root, expected):
    reader = ndd.readers.Numpy(file_root=root)
    rng, found = RNG(5, by="sample"), {}
    seen = []
    for _ in range(8):
        images = reader(batch_size=5)
        for image, made in zip(images.tensors, augmented(images, rng).tensors, strict=True):
            seen.append(number(image))
            found[(len(seen) - 1) // COUNT, seen[-1]] = np.array(made)
    assert_same(found, expected)


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_modes_do_not_matter(root, expected, mode):
    with mode:
        assert_same(run(root, 6, epochs=1), expected)


def test_prefetch_does_not_matter(root, expected):
    reader = ndd.readers.Numpy(file_root=root, last_batch="partial")
    rng = RNG(5, by="sample")

    def batches():
        for (images,) in reader.next_epoch(batch_size=4):
            yield images, augmented(images, rng)

    found = {}
    for images, made in ndd.prefetch(batches()):
        record(found, 0, images, made)
        # The loop's body may use it as well: draws are not part of its state.
        ndd.noise.gaussian(images, rng=rng)
        assert rng.state == RNG(5, by="sample").state
    assert_same(found, expected)


@pytest.mark.parametrize("shards", [1, 3])
def test_loaders_do_not_seed_it_anew(root, expected, shards):
    found, state = {}, None
    for shard in range(shards):
        reader = ndd.readers.Numpy(
            file_root=root, num_shards=shards, shard_id=shard, last_batch="pad"
        )
        rng = RNG(5, by="sample")

        def made(images, rng=rng):
            # Operators use the loader's RNG by default.
            assert ndd.random.get_default_rng() is rng
            return ndd.as_tensor(images), ndd.as_tensor(augmented(images, rng))

        loader = ndd.torch.Loader(reader, made, batch_size=4, rng=rng)
        for epoch in range(2):
            for images, results in loader:
                for image, result in zip(images.numpy(), results.numpy(), strict=True):
                    found[epoch, number(image)] = result
            state = state or loader.state_dict()
        loader.load_state_dict(state)
        assert rng.state == RNG(5, by="sample").state
    assert found.keys() == expected.keys()
    assert_same(found, expected)


def test_several_threads_do_not_matter(root, expected):
    from concurrent.futures import ThreadPoolExecutor

    reader = ndd.readers.Numpy(file_root=root, last_batch="partial")
    rng = RNG(5, by="sample")
    batches = [images for (images,) in reader.next_epoch(batch_size=2)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda images: augmented(images, rng), batches))
    found = {}
    for images, result in zip(batches, made, strict=True):
        record(found, 0, images, result)
    assert_same(found, expected)


def test_single_samples_of_a_batch_draw_like_the_batch(root, expected):
    reader = ndd.readers.Numpy(file_root=root, last_batch="partial")
    rng = RNG(5, by="sample")
    for (images,) in reader.next_epoch(batch_size=4):
        for image in images.tensors:
            assert np.array_equal(augmented(image, rng), expected[0, number(image)])


def test_some_samples_of_a_batch_draw_like_the_batch(root, expected):
    (images,) = ndd.readers.Numpy(file_root=root)[[8, 3, 5, 1]]
    rng = RNG(5, by="sample")
    some = images.tensors[[2, 0]]
    made = augmented(some, rng)
    assert np.array_equal(made.tensors[0], expected[0, 5])
    assert np.array_equal(made.tensors[1], expected[0, 8])
    # The others have not drawn yet, these have.
    made = augmented(images, rng)
    assert np.array_equal(made.tensors[1], expected[0, 3])
    assert not np.array_equal(made.tensors[2], expected[0, 5])
    joined = ndd.as_batch([images.tensors[3], images.tensors[1]])
    again = RNG(5, by="sample")
    assert np.array_equal(augmented(joined, again).tensors[1], expected[0, 3])


def test_copies_of_a_sample_in_a_batch_differ(root):
    (image,) = ndd.readers.Numpy(file_root=root)[9]
    rng = RNG(5, by="sample")
    first, second = (
        np.array(each)
        for each in ndd.noise.gaussian(ndd.as_batch([image, image]), stddev=50.0, rng=rng).tensors
    )
    assert not np.array_equal(first, second)
    alone = RNG(5, by="sample")
    assert np.array_equal(first, ndd.noise.gaussian(image, stddev=50.0, rng=alone))
    assert np.array_equal(second, ndd.noise.gaussian(image, stddev=50.0, rng=alone))


def test_readers_of_the_same_samples_draw_the_same(root):
    """Images and masks in two folders get the same geometry."""
    rng = RNG(5, by="sample")
    readers = [ndd.readers.Numpy(file_root=root, random_shuffle=True, seed=3) for _ in range(2)]
    epochs = [reader.next_epoch(batch_size=5) for reader in readers]
    for (images,), (masks,) in zip(*epochs, strict=True):
        found = [ndd.random_resized_crop(x, size=[4, 4], rng=rng) for x in (images, masks)]
        assert all(map(np.array_equal, *(x.tensors for x in found)))


def test_samples_by_number_are_of_the_current_epoch(root, expected):
    reader = ndd.readers.Numpy(file_root=root, last_batch="partial")
    for epoch in range(2):
        (images,) = reader[[20, 4]]
        made = augmented(images, RNG(5, by="sample"))
        assert np.array_equal(made.tensors[1], expected[epoch, 4])
        for _ in reader.next_epoch(batch_size=4):
            pass
        reader.set_epoch(epoch + 1)


def test_substitutes_of_bad_samples_are_samples(root, tmp_path):
    for index in range(6):
        np.save(tmp_path / f"{index}.npy", np.full((4, 4, 3), index * 10, np.uint8))
    (tmp_path / "2.npy").write_bytes(b"nothing")
    found = {}
    for on_error in ("skip", "substitute"):
        reader = ndd.readers.Numpy(file_root=str(tmp_path), on_error=on_error)
        for (images,) in reader.next_epoch(batch_size=6):
            made = ndd.noise.gaussian(images, stddev=30.0, rng=RNG(1, by="sample"))
            assert images.batch_size == (5 if on_error == "skip" else 6)
            record(found, 0, images, made)


def test_labels_identify_samples_too(tmp_path):
    from PIL import Image

    for index in range(6):
        (tmp_path / f"{index % 2}").mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), (index * 10, 0, 0)).save(tmp_path / f"{index % 2}/{index}.png")
    reader = ndd.readers.File(file_root=str(tmp_path))
    for jpegs, labels in reader.next_epoch(batch_size=3):
        drawn = [ndd.random.normal(rng=RNG(1, by="sample").of(x)) for x in (jpegs, labels)]
        assert drawn[0].torch().tolist() == drawn[1].torch().tolist()
        images = ndd.decoders.image(jpegs)
        assert ndd.random.normal(rng=RNG(1, by="sample").of(images)).batch_size == 3


RANDOM = [name for name, operator in OPERATORS.items() if operator.options.random]


@pytest.mark.parametrize("name", RANDOM)
def test_every_random_operator_draws_the_same_in_any_batch(name):
    """On samples by number, since inputs of operators are of many kinds."""
    call = CALLS[name]
    more = {"per_sample": True} if name in ("mixup", "cutmix") else {}

    def drawn(numbers):
        rng = RNG(5, by="sample").of(numbers)
        inputs = [
            ndd.batch([kind.sample(0) for _ in numbers], layout=kind.layout) for kind in call.inputs
        ]
        made = call(*inputs, rng=rng, **more)
        made = made if isinstance(made, tuple) else (made,)
        return [[np.array(sample) for sample in output.tensors] for output in made]

    if name == "batch_permutation":
        with pytest.raises(RuntimeError, match="one draw for the whole batch"):
            drawn([1, 2])
        return
    together, alone = drawn([4, 9, 6]), drawn([9])
    for output, expected in zip(alone, together, strict=True):
        assert np.array_equal(output[0], expected[1])
    assert len(RANDOM) > 20


def test_of_numbers(root):
    rng = RNG(5, by="sample")
    drawn = ndd.random.normal(rng=rng.of([7, 3, 12], epoch=1)).torch().tolist()
    assert ndd.random.normal(rng=rng.of(np.array([3]), epoch=1)).torch().tolist() == [drawn[1]]
    assert ndd.random.normal(rng=rng.of(3, epoch=1)).item() == drawn[1]
    assert ndd.random.normal(rng=rng.of(3)).item() != drawn[1]
    # A bound one goes on with the next draw.
    bound = rng.of([3], epoch=1)
    first, second = (ndd.random.normal(rng=bound).torch().tolist() for _ in range(2))
    assert [drawn[1]] == first != second
    # The samples of a reader are numbered alike.
    (image,) = ndd.readers.Numpy(file_root=root)[3]
    by_hand = ndd.tensor(np.array(image), layout="HWC")
    made = ndd.noise.gaussian(by_hand, stddev=50.0, rng=rng.of(3))
    assert np.array_equal(made, ndd.noise.gaussian(image, stddev=50.0, rng=rng))


def test_values_of_unknown_samples_are_refused():
    rng = RNG(5, by="sample")
    made_by_hand = ndd.batch([np.zeros((4, 4, 3), np.uint8)] * 3, layout="HWC")
    for use in (
        lambda: ndd.noise.gaussian(made_by_hand, rng=rng),
        lambda: ndd.random.uniform(batch_size=3, rng=rng),
        lambda: ndd.random.uniform(rng=rng),
    ):
        with pytest.raises(ValueError, match=r"which samples .* `rng=rng\.of\(batch\)`"):
            use()
    with pytest.raises(ValueError, match="not made from a reader's samples"):
        rng.of(made_by_hand)
    made = ndd.noise.gaussian(made_by_hand, stddev=50.0, rng=rng.of([4, 5, 6]))
    assert made.batch_size == 3


def test_what_depends_on_the_whole_batch_is_refused():
    rng = RNG(5, by="sample").of([1, 2, 3])
    with pytest.raises(RuntimeError, match="one draw for the whole batch"):
        ndd.batch_permutation(rng=rng).evaluate()
    images, labels = ndd.batch([[0.0, 1.0]] * 3), ndd.batch([0, 1, 1])
    with pytest.raises(RuntimeError, match="per_sample=True"):
        ndd.mixup(images, labels, num_classes=2, rng=rng)[0].evaluate()
    ndd.mixup(images, labels, num_classes=2, per_sample=True, rng=rng)[0].evaluate()


def test_batch_sizes_must_agree():
    rng = RNG(5, by="sample").of([1, 2, 3])
    assert ndd.random.uniform(rng=rng).batch_size == 3
    assert ndd.random.uniform(batch_size=3, rng=rng).batch_size == 3
    with pytest.raises(ValueError, match="Inconsistent batch size"):
        ndd.random.uniform(batch_size=4, rng=rng)
    with pytest.raises(ValueError, match="Inconsistent batch size"):
        ndd.noise.gaussian(ndd.batch([[1.0], [2.0]]), rng=rng)


@pytest.mark.parametrize("again", [RNG.clone, copy.copy, copy.deepcopy])
def test_a_copy_draws_the_same_next(root, again):
    (images,) = ndd.readers.Numpy(file_root=root)[:4]
    rng = RNG(5, by="sample")
    first = ndd.noise.gaussian(images, stddev=50.0, rng=rng)
    other = again(rng)
    second, repeated = (ndd.noise.gaussian(images, stddev=50.0, rng=x) for x in (rng, other))
    assert all(map(np.array_equal, second.tensors, repeated.tensors))
    assert not any(map(np.array_equal, first.tensors, second.tensors))


def test_a_state_that_is_set_draws_the_same_again(root):
    (images,) = ndd.readers.Numpy(file_root=root)[:4]
    rng = RNG(5, by="sample")
    ndd.noise.gaussian(images, rng=rng)
    state = rng.state
    first = ndd.noise.gaussian(images, stddev=50.0, rng=rng)
    rng.state = state
    again = ndd.noise.gaussian(images, stddev=50.0, rng=rng)
    assert all(map(np.array_equal, first.tensors, again.tensors))
    # As text it is the seed alone: draws are counted anew.
    begun = RNG(state=str(state))
    fresh = RNG(5, by="sample")
    drawn = [ndd.noise.gaussian(images, stddev=50.0, rng=x) for x in (begun, fresh)]
    assert all(map(np.array_equal, *(x.tensors for x in drawn)))


def test_states():
    rng = RNG(0xAB, by="sample")
    assert str(rng.state) == "PhiloxBySample_00000000000000AB"
    assert rng.by == RNG(state=rng.state).by == pickle.loads(pickle.dumps(rng)).by == "sample"
    assert RNG(3).by == "call"
    other = RNG(1, by="sample")
    other.load_state_dict(rng.state_dict())
    assert other.state == rng.state == rng.get_state()
    other.seed = 7
    assert other.state == RNG(7, by="sample").state != rng.state
    with pytest.raises(AttributeError, match="write-only"):
        _ = other.seed
    with pytest.raises(ValueError, match="draws by sample"):
        rng.state = RNG(3).state
    with pytest.raises(ValueError, match="by='sample'"):
        RNG(3).state = rng.state
    with pytest.raises(ValueError, match="doesn't match the state"):
        RNG(state=rng.state, by="call")
    with pytest.raises(ValueError, match="can't be combined"):
        RNG(3, rng.state)
    with pytest.raises(ValueError, match="'call' or 'sample'"):
        RNG(3, by="batch")
    assert RNG(by="sample").state != RNG(by="sample").state


def test_checkpoints(root, tmp_path):
    def parts():
        return ndd.readers.Numpy(file_root=root, last_batch="partial"), RNG(5, by="sample")

    reader, rng = parts()
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.register(reader, "reader")
    checkpoint.register(rng, "rng")
    kept = []
    for step, (images,) in enumerate(reader.next_epoch(batch_size=4)):
        made = augmented(images, rng)
        if step == 2:
            checkpoint.collect()
            text = checkpoint.serialize()
        if step > 2:
            kept += [np.array(image) for image in made.tensors]
    reader, _ = parts()
    rng = RNG(99, by="sample")
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.deserialize(text)
    checkpoint.register(reader, "reader")
    checkpoint.register(rng, "rng")
    again = [
        np.array(image)
        for (images,) in reader.next_epoch(batch_size=4)
        for image in augmented(images, rng).tensors
    ]
    assert len(again) == len(kept)
    assert all(map(np.array_equal, again, kept))


def test_it_has_no_sequence():
    rng = RNG(5, by="sample")
    for use in (rng, lambda: rng.advance(3)):
        with pytest.raises(TypeError, match="a stream for each sample"):
            use()
    with pytest.raises(ValueError, match="by='sample'"):
        RNG(5).of([1])
    with pytest.raises(TypeError, match="numbers of samples"):
        rng.of("abc")
    for wrong in ([], [-1]):
        with pytest.raises(ValueError, match="numbered from 0"):
            rng.of(wrong)


def test_split_gives_independent_ones():
    rng = RNG(5, by="sample")
    made = rng.split(3)
    assert [x.by for x in made] == ["sample"] * 3
    assert len({x.state for x in (*made, rng)}) == 4
    assert [x.state for x in rng.split(2)] == [x.state for x in made[:2]]


def draw_in_child(connection, rng):
    connection.send(ndd.random.normal(rng=rng.of([1, 2])).torch().tolist())
    connection.close()


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("seed", [5, None])
def test_processes_draw_the_same(context, seed):
    context = multiprocessing.get_context(context)
    rng = RNG(seed, by="sample")
    mine, theirs = context.Pipe()
    child = context.Process(target=draw_in_child, args=(theirs, rng))
    child.start()
    assert mine.recv() == ndd.random.normal(rng=rng.of([1, 2])).torch().tolist()
    child.join()


def test_values_made_by_functions_keep_their_samples(root, expected):
    reader = ndd.readers.Numpy(file_root=root, last_batch="partial")
    for (images,) in reader.next_epoch(batch_size=4):
        same = ndd.map(lambda image: np.array(image), images)
        made = augmented(ndd.as_batch(same, layout="HWC"), RNG(5, by="sample"))
        for image, result in zip(images.tensors, made.tensors, strict=True):
            assert np.array_equal(result, expected[0, number(image)])
        break


def test_many_samples_alive_at_once(root):
    """Counts of samples that are gone are dropped, those of others are not."""
    reader = ndd.readers.Numpy(file_root=root, last_batch="partial")
    rng = RNG(5, by="sample")
    kept = [image for (image,) in reader.next_epoch()]
    first = [ndd.random.normal(rng=rng.of(image)).item() for image in kept]
    for _ in range(20):
        for (image,) in reader.next_epoch():
            ndd.random.normal(rng=rng.of(image))
    second = [ndd.random.normal(rng=rng.of(image)).item() for image in kept]
    again = RNG(5, by="sample")
    for image, one, two in zip(kept, first, second, strict=True):
        assert [ndd.random.normal(rng=again.of(image)).item() for _ in range(2)] == [one, two]
