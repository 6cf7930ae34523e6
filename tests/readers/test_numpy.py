"""`readers.Numpy`: what DALI does not read, broken files, restoring."""

import inspect

import numpy as np
import pytest

import penstock as ndd
from penstock.readers import Numpy

WHOLE = np.arange(120, dtype=np.float32).reshape(4, 5, 6)


def read(path, **arguments):
    [(array,)] = Numpy(files=path, **arguments).next_epoch()
    return np.asarray(array)


def test_every_argument_is_documented():
    for name in inspect.signature(Numpy).parameters:
        assert f"    {name}: " in Numpy.__doc__, name


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("code", ["?", "i1", "u1", "<i2", ">i2", ">u4", ">i8", ">f2", ">f4", ">f8"])
@pytest.mark.parametrize("order", "CF")
def test_all_orders_and_versions_are_read(tmp_path, version, code, order):
    values = np.array(np.arange(24).reshape(2, 3, 4) % 7, code, order=order)
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, values, version=version)
    for part in ({}, {"roi_start": [0, 1, 1], "roi_end": [2, 3, 3]}):
        found = read(tmp_path / "a.npy", **part)
        expected = values[0:2, 1:3, 1:3] if part else values
        assert found.dtype == values.dtype.newbyteorder("=")
        assert (found == expected).all()


@pytest.mark.parametrize("order", "CF")
def test_large_parts_are_read_in_pieces(tmp_path, order):
    values = np.array(np.random.default_rng(0).random((3, 40, 50, 60)), order=order)
    np.save(tmp_path / "a.npy", values)
    for part in (
        np.s_[:, 5:35, :, :],
        np.s_[1:2, :, 3:9, :],
        np.s_[1:, 2:30, :, 7:8],
        np.s_[0:3, 39:40, :, :],
        np.s_[:, :, 1:49, 2:58],
    ):
        bounds = [index.indices(n)[:2] for index, n in zip(part, values.shape, strict=True)]
        starts, ends = (list(row) for row in zip(*bounds, strict=True))
        found = read(tmp_path / "a.npy", roi_start=starts, roi_end=ends)
        assert (found == values[part]).all()


def test_no_more_is_read_than_lies_between_the_ends_of_a_part(tmp_path):
    """A file that ends after the part would be refused, so a hole stands for what is not read."""
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((2, 2), np.uint8))
    head = path.read_bytes()[:-4].replace(b"(2, 2), }         ", b"(65536, 1048576),}")
    path.write_bytes(head)
    with open(path, "r+b") as file:
        file.truncate(len(head) + 65536 * 1048576)
        file.seek(len(head) + 40000 * 1048576)
        file.write(b"\5" * 10)
    found = read(path, roi_start=[40000, 0], roi_shape=[1, 10])
    assert found.tolist() == [[5] * 10]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data[:-5], "takes 480 bytes, of which it has 475"),
        (lambda data: data[:40], "ends within its header"),
        (lambda data: data[:9], "ends within its header"),
        (lambda data: b"", "it is empty"),
        (lambda data: b"XX" + data[2:], "first bytes"),
        (lambda data: data[:6] + b"\x09" + data[7:], "version 9"),
        (lambda data: data.replace(b"descr", b"dexcr"), "dexcr"),
        (lambda data: data.replace(b"'<f4'", b"'<q4'"), "<q4"),
        (lambda data: data.replace(b"(4, 5, 6)", b"(4,-5, 6)"), "an extent of the shape"),
        (lambda data: data.replace(b"False", b"Maybe"), "True or False"),
    ],
)
def test_a_broken_file_is_an_error_that_says_why(tmp_path, change, problem):
    path = tmp_path / "a.npy"
    np.save(path, WHOLE)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(RuntimeError, match=problem):
        read(path)


def test_headers_cut_or_changed_anywhere_never_crash(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, WHOLE)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    names = []
    for number in range(300):
        changed = bytearray(data)
        for at in rng.integers(0, 128, 2):
            changed[at] = rng.integers(256)
        names.append(tmp_path / f"{number}.npy")
        names[-1].write_bytes(changed[: rng.integers(1, len(data) * 2)])
    reader = Numpy(files=names, on_error="skip")
    for (array,) in reader.next_epoch():
        np.asarray(array)
    assert 100 < len(reader.errors) <= 300


def test_headers_are_remembered(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, WHOLE)
    reader = Numpy(files=path, cache_header_information=True, prefetch_queue_depth=1)
    for _ in range(3):
        [(array,)] = reader.next_epoch()
        assert (np.asarray(array) == WHOLE).all()


def test_parts_of_a_call_do_not_disturb_what_comes_next(tmp_path):
    names = []
    for number in range(5):
        names.append(tmp_path / f"{number}.npy")
        np.save(names[-1], np.full((4, 4), number))
    reader = Numpy(files=names)
    shapes = [(4, 4), (3, 3), (4, 4), (4, 4), (2, 3), (4, 4)]
    for number, shape in enumerate(shapes):
        start = [4 - shape[0], 4 - shape[1]]
        array = np.asarray(reader() if shape == (4, 4) else reader(roi_start=start))
        assert (array == np.full(shape, number % 5)).all()
        assert array.shape == shape
    with pytest.raises(ValueError, match="has 1 samples, and the batch 2"):
        Numpy(files=names)(batch_size=2, roi_start=ndd.batch([[1, 1]]))
    with pytest.raises(ValueError, match="was given to the reader already"):
        Numpy(files=names, roi_start=1)(roi_start=2)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("shards", [1, 2])
def test_a_state_taken_at_any_step_goes_on_from_there(tmp_path, shuffle, shards):
    for number in range(7):
        np.save(tmp_path / f"{number}.npy", np.full(3, number))

    def make():
        return Numpy(file_root=tmp_path, random_shuffle=shuffle, seed=3, num_shards=shards)

    def stream(reader, epochs=3):
        for _ in range(epochs):
            for (arrays,) in reader.next_epoch(batch_size=2):
                yield [np.asarray(array).tolist() for array in arrays]

    whole = list(stream(make(), 8))
    for step in range(1, 6):
        reader = make()
        first = stream(reader)
        for _ in range(step):
            next(first)
        other = make()
        other.set_state(reader.get_state())
        rest = list(stream(other, 2))
        assert rest == whole[step : step + len(rest)], step


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("mode", [ndd.EvalMode.eager, ndd.EvalMode.deferred, ndd.EvalMode.sync_cpu])
def test_arrays_are_given_on_a_gpu(tmp_path, mode):
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.full((2, 2), number, np.float32))
    reader = Numpy(file_root=tmp_path, device="gpu", last_batch="partial")
    with mode:
        batches = [array for (array,) in reader.next_epoch(batch_size=2)]
        assert [str(batch.device) for batch in batches] == ["gpu:0"] * 2
        values = [np.asarray(one.cpu())[0, 0] for batch in batches for one in batch]
        assert values == [0, 1, 2]
        assert batches[0].source_info == ["0.npy", "1.npy"]
        reader.reset()
        part = reader(roi_start=[1, 1], roi_shape=[1, 1])
        assert (str(part.device), part.shape) == ("gpu:0", (1, 1))


@pytest.mark.usefixtures("emulated")
def test_bad_arrays_are_left_out_on_a_gpu(tmp_path):
    np.save(tmp_path / "0.npy", np.zeros(3))
    (tmp_path / "1.npy").write_bytes(b"no array")
    reader = Numpy(file_root=tmp_path, device="gpu:1", on_error="skip", last_batch="partial")
    [(batch,)] = reader.next_epoch(batch_size=2)
    assert (str(batch.device), batch.batch_size, len(reader.errors)) == ("gpu:1", 1, 1)
