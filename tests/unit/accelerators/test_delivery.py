"""Values on a gpu, handed over to an accelerator (`tests/stand_in.py`)."""

import copy
import threading

import numpy as np
import pytest
import torch
from tests.stand_in import POISON, DeviceTensor, StandIn

import penstock as ndd
from penstock._accelerators import delivery
from penstock._runtime import device
from penstock._runtime.stream import thread_stream
from penstock._values.dtype import BY_CODE, DType

TYPES = [dtype for dtype in BY_CODE if dtype.kind is not DType.Kind.enum]


def numbered(number, size=4096):
    return ndd.full(np.uint8(number), shape=[size])


def read(stand_in, tensor):
    """What work on the framework's current stream sees."""
    return tensor.read(stand_in.current_stream(tensor.ordinal))()


def held_up(stream):
    """Stops a stream, from where it is, until the returned event is set."""
    gate = threading.Event()
    stream.tasks.put(lambda: gate.wait(10))
    return gate


@pytest.fixture
def copies(stand_in):
    """The stream that this thread's copies to device 0 run on."""
    return thread_stream(0)._native


# Correct data


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4, 2)], ids=str)
def test_every_type_and_shape_arrives(stand_in, dtype, shape):
    numbers = np.arange(np.prod(shape)).reshape(shape)
    value = ndd.cast(ndd.tensor(numbers), dtype=dtype)
    there = value.gpu(1).torch()
    assert isinstance(there, DeviceTensor)
    assert there.ordinal == 1
    expected = value.torch()
    found = read(stand_in, there)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert torch.equal(found, expected)


def test_views_arrive_contiguous(stand_in):
    image = ndd.tensor(np.arange(24, dtype=np.uint8).reshape(4, 6))
    there = image.gpu()[::2, ::-1].torch()
    assert read(stand_in, there).tolist() == np.asarray(image)[::2, ::-1].tolist()


def test_a_batch_arrives_as_one_tensor(stand_in):
    batch = ndd.flip(ndd.batch(np.arange(24).reshape(2, 2, 3, 2), layout="HWC", device="gpu"))
    assert read(stand_in, batch.torch()).tolist() == batch.cpu().torch().tolist()
    ragged = ndd.batch([[1, 2], [3]], device="gpu:1")
    padded, lengths = ragged.torch(pad=True, return_lengths=True)
    assert padded.ordinal == 1
    assert read(stand_in, padded).tolist() == [[1, 2], [3, 0]]
    assert lengths.tolist() == [2, 1]


def test_the_host_keeps_its_data(stand_in):
    value = ndd.tensor([1, 2, 3])
    there = value.gpu()
    there.torch()
    assert isinstance(value.torch(), torch.Tensor)
    assert np.asarray(there.cpu() + 1).tolist() == [2, 3, 4]
    assert (there + there).device is there.device
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        np.asarray(there)


def test_each_call_copies_anew(stand_in):
    value = ndd.tensor([1, 2, 3]).gpu()
    first, second = value.torch(), value.torch(copy=True)
    assert first.block.ctypes.data != second.block.ctypes.data
    assert read(stand_in, first).tolist() == read(stand_in, second).tolist() == [1, 2, 3]


# Order


def test_handing_over_does_not_wait_for_the_copy(stand_in, copies):
    gate = held_up(copies)
    there = numbered(7).gpu().torch()
    seen = there.read(stand_in.current_stream(0))
    assert (there.look() == POISON).all(), "nothing has been copied yet"
    gate.set()
    assert (seen() == 7).all()


def test_copies_run_beside_the_framework_s_work(stand_in):
    gate = held_up(stand_in.current_stream(0))
    there = numbered(7).gpu().torch()
    ndd.get_current_stream().synchronize()
    assert (there.look() == 7).all(), "the copy did not wait for work that was submitted before"
    gate.set()


def test_the_framework_s_current_stream_is_the_one_that_waits(stand_in, copies):
    other = stand_in.new_stream(0)
    stand_in.use(other)
    gate = held_up(copies)
    seen = numbered(7).gpu().torch().read(other)
    gate.set()
    assert (seen() == 7).all()


def test_without_waiting_the_work_would_read_garbage(install):
    class Hasty(StandIn):
        def wait(self, stream, event):
            pass

    stand_in = install(Hasty())
    gate = held_up(thread_stream(0)._native)
    seen = numbered(7).gpu().torch().read(stand_in.current_stream(0))
    assert (seen() == POISON).all(), "the stand-in would not notice a use before the copy has ended"
    gate.set()


# Reuse of memory


def test_host_memory_is_not_reused_before_its_copy_has_ended(stand_in, copies):
    gate = held_up(copies)
    there = [numbered(number).gpu().torch() for number in range(8)]
    gate.set()
    for number, tensor in enumerate(there):
        assert (read(stand_in, tensor) == number).all()


def test_host_memory_is_reused_afterwards(stand_in):
    for number in range(8):
        numbered(number).gpu().torch()
        for event, _ in delivery.in_flight._held:
            event.synchronize()
    assert len(delivery.in_flight._held) == 1
    assert [len(blocks) for blocks in stand_in.pinned._free.values()] == [1]


def test_without_holding_it_the_copies_would_be_torn(stand_in, copies, monkeypatch):
    monkeypatch.setattr(delivery.in_flight, "hold", lambda event, memory: None)
    gate = held_up(copies)
    there = [numbered(number).gpu().torch() for number in range(8)]
    gate.set()
    found = [read(stand_in, tensor) for tensor in there]
    assert not all((data == number).all() for number, data in enumerate(found)), (
        "the stand-in would not notice an early reuse of host memory"
    )


def overwritten(stand_in):
    """Let work read a tensor that was dropped, and deliver another one meanwhile."""
    gate = held_up(stand_in.current_stream(0))
    first = numbered(1).gpu().torch()
    seen = first.read(stand_in.current_stream(0))
    del first
    second = numbered(2).gpu().torch()
    ndd.get_current_stream().synchronize()
    gate.set()
    return seen(), second


def test_device_memory_is_not_reused_before_the_work_on_it_has_ended(stand_in):
    seen, second = overwritten(stand_in)
    assert (seen == 1).all()
    assert (read(stand_in, second) == 2).all()


def test_without_keeping_it_the_work_would_see_the_next_batch(install):
    class Careless(StandIn):
        def keep_for(self, tensor, stream):
            pass

    stand_in = install(Careless())
    seen, _ = overwritten(stand_in)
    assert not (seen == 1).all(), "the stand-in would not notice an early reuse of device memory"


def test_a_source_may_be_changed_after_it_was_handed_over(stand_in, copies):
    given = np.full(4096, 5, np.uint8)
    gate = held_up(copies)
    there = ndd.as_tensor(given).gpu().torch()
    given[:] = 9
    gate.set()
    assert (read(stand_in, there) == 5).all()


def test_many_threads_deliver_at_once(stand_in):
    wrong = []

    def work(first):
        for number in range(first, first + 5):
            data = read(stand_in, numbered(number).gpu().torch())
            if not (data == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(10 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_pinned_memory_copies_are_synchronous_with_one_warning(install):
    class Exhausted(StandIn):
        def pinned_like(self, source):
            raise RuntimeError("out of memory")

    install(Exhausted())
    with pytest.warns(UserWarning, match=r"out of memory.*synchronously") as caught:
        there = [numbered(number).gpu().torch() for number in range(2)]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert [tensor.look()[0] for tensor in there] == [0, 1]


# Devices


def test_there_are_as_many_devices_as_the_accelerator_has(stand_in):
    assert ndd.Device("gpu", 1).device_id == 1
    for make in (
        lambda: ndd.Device("gpu", 2),
        lambda: ndd.tensor([1]).gpu(2),
        lambda: ndd.EvalContext(device_id=2),
        lambda: ndd.stream(device_id=2),
    ):
        with pytest.raises(ValueError, match="between 0 and 1"):
            make()


def test_gpu_is_the_framework_s_current_device(stand_in):
    stand_in.selected = 1
    assert ndd.Device("gpu").device_id == ndd.Device.default_device_id("gpu") == 1
    assert ndd.tensor([1]).gpu().torch().ordinal == 1
    assert ndd.get_current_stream().device_id == 1
    with ndd.Device("gpu", 0):
        assert ndd.tensor([1]).gpu().torch().ordinal == 0
    assert ndd.Device.current() is ndd.Device.CPU


def test_the_accelerator_s_own_name_means_gpu(install):
    class Other(StandIn):
        type = "xpu"

        def dlpack_device(self, ordinal):
            return (14, ordinal)

    install(Other())
    assert ndd.Device("xpu:1") is ndd.device(torch.device("xpu", 1)) is ndd.Device("gpu:1")
    assert ndd.Device("cuda:1") is ndd.Device("gpu:1")
    assert ndd.tensor([1]).gpu().__dlpack_device__() == (14, 0)
    assert ndd.Device.type_from_dlpack(14) == "gpu"
    assert not hasattr(ndd.tensor([1]).gpu(), "__cuda_array_interface__")
    with pytest.raises(ValueError, match="Invalid device 'mps'"):
        ndd.Device("mps")


@pytest.mark.parametrize("policy", ["auto", "error", "deliver"])
def test_nothing_is_emulated(stand_in, install, policy):
    install(stand_in, policy)
    assert isinstance(ndd.tensor([1]).gpu().torch(), DeviceTensor)
    assert ndd.get_current_stream() is not None


def test_emulation_can_be_asked_for(stand_in, install):
    install(stand_in, "emulate")
    there = ndd.tensor([1]).gpu(7)
    assert there.torch().tolist() == [1]
    assert there.__dlpack_device__() == (1, 0)
    assert ndd.stream(device_id=7)._native is None


def test_delivery_that_is_asked_for_needs_an_accelerator(install):
    install(None, "deliver")
    with pytest.raises(RuntimeError, match=r"PyTorch .* reports no accelerator, and .*=deliver"):
        ndd.tensor([1]).gpu()
    assert ndd.get_current_stream() is None


# Streams


def test_a_new_stream_is_one_of_the_framework(stand_in):
    made = ndd.stream(device_id=1)
    assert made._native in stand_in.streams
    assert made.handle == made._native.cuda_stream
    assert made == made._native
    gate = held_up(made._native)
    done = threading.Thread(target=made.synchronize)
    done.start()
    assert done.is_alive()
    gate.set()
    done.join()


def test_copies_run_on_the_current_stream(stand_in):
    chosen = stand_in.new_stream(0)
    gate = held_up(chosen)
    ndd.set_current_stream(chosen)
    there = numbered(7).gpu().torch()
    ndd.set_current_stream(None)
    assert (there.look() == POISON).all()
    gate.set()
    assert (read(stand_in, there) == 7).all()


def test_copies_run_on_the_stream_of_the_context(stand_in):
    chosen = stand_in.new_stream(1)
    with ndd.EvalContext(device_id=1, cuda_stream=chosen.cuda_stream) as context:
        assert context.cuda_stream == chosen
        gate = held_up(chosen)
        there = numbered(7).gpu().torch()
        elsewhere = numbered(8).gpu(0).torch()
        assert (read(stand_in, elsewhere) == 8).all()
        assert (there.look() == POISON).all()
        gate.set()
    assert there.ordinal == 1
    assert (read(stand_in, there) == 7).all()


def test_the_framework_s_own_stream_will_do(stand_in):
    ndd.set_current_stream(stand_in.current_stream(0))
    assert (read(stand_in, numbered(7).gpu().torch()) == 7).all()
    ndd.set_current_stream(None)


# Protocols


def test_dlpack_hands_over_on_the_device(stand_in):
    value = ndd.tensor([1, 2]).gpu(1)
    assert value.__dlpack_device__() == (2, 1)
    assert ndd.Device.from_dlpack(value) is value.device
    tensor, stream, version = value.__dlpack__(stream=5, max_version=(1, 0))
    assert (tensor.ordinal, stream, version) == (1, 5, (1, 0))
    assert read(stand_in, tensor).tolist() == [1, 2]
    assert value.__dlpack__(dl_device=(2, 1))[0].ordinal == 1


def test_dlpack_copies_to_the_host_where_that_is_asked_for(stand_in):
    assert np.from_dlpack(ndd.tensor([1, 2]).gpu(1), device="cpu").tolist() == [1, 2]
    assert np.from_dlpack(ndd.tensor([1, 2])).tolist() == [1, 2]


def test_dlpack_refuses_what_it_can_t_do(stand_in):
    value = ndd.tensor([1, 2]).gpu(1)
    with pytest.raises(BufferError, match="has to be copied"):
        value.__dlpack__(copy=False)
    for wrong in ((2, 0), (10, 1)):
        with pytest.raises(BufferError, match="is on gpu:1"):
            value.__dlpack__(dl_device=wrong)


def test_cuda_array_interface_is_of_memory_that_stays(stand_in):
    value = ndd.tensor([1, 2]).gpu(1)
    first = value.__cuda_array_interface__
    assert first["stream"] == stand_in.current_stream(1).cuda_stream
    stand_in.use(stand_in.new_stream(1))
    assert value.__cuda_array_interface__ == first, "the stream that waits for the copy, too"
    kept, _ = value._on_device
    assert kept.read(stand_in.streams[1])().tolist() == [1, 2]
    assert kept.block.ctypes.data == first["data"][0]
    other = copy.deepcopy(value)
    assert other.__cuda_array_interface__["data"] != first["data"]
    assert not hasattr(value.cpu(), "__cuda_array_interface__")
    assert not hasattr(ndd.batch([1]).gpu(), "__cuda_array_interface__")


# Data that is on the device already


def test_data_on_a_device_comes_in_with_one_hint(stand_in):
    given = ndd.tensor([[1, 2], [3, 4]]).gpu(1).torch()
    with pytest.warns(UserWarning, match="gpu:1 is copied to the host") as caught:
        value = ndd.as_tensor(given)
    assert caught[0].filename == __file__
    batch = ndd.as_batch(given) * 2
    flipped = ndd.flip(ndd.as_tensor(given)[..., None])
    assert {str(each.device) for each in (value, batch, flipped)} == {"gpu:1"}
    assert np.asarray(value.cpu()).tolist() == [[1, 2], [3, 4]]
    assert read(stand_in, batch.torch()).tolist() == [[2, 4], [6, 8]]
    assert read(stand_in, flipped.torch()).tolist() == [[[2], [1]], [[4], [3]]]


def test_the_hint_is_silent_where_delivery_was_asked_for(stand_in, install):
    install(stand_in, "deliver")
    given = ndd.tensor([1.5, 2.5]).gpu().torch()
    assert ndd.tensor(given, dtype=ndd.float16).cpu().torch().tolist() == [1.5, 2.5]


def test_data_with_a_cuda_array_interface_comes_in(stand_in, install):
    install(stand_in, "deliver")

    class Foreign:
        __cuda_array_interface__ = {}  # noqa: RUF012
        given = ndd.tensor([1, 2]).gpu().torch()
        ordinal = 0
        read = given.read

    value = ndd.tensor(Foreign())
    assert str(value.device) == "gpu:0"
    assert np.asarray(value.cpu()).tolist() == [1, 2]


def test_reading_data_waits_for_work_on_it(stand_in, install, copies):
    install(stand_in, "deliver")
    gate = held_up(copies)
    given = numbered(7).gpu().torch()
    threading.Timer(0.02, gate.set).start()
    assert (ndd.as_tensor(given).cpu().torch() == 7).all()


def test_a_device_that_does_not_exist_is_refused(stand_in, install):
    install(stand_in, "deliver")
    given = ndd.tensor([1, 2]).gpu(1).torch()
    given.ordinal = 5
    with pytest.raises(ValueError, match="device id 5"):
        ndd.as_tensor(given)


# Frameworks


def test_a_loader_pins_what_is_on_the_host_and_nothing_else(stand_in, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: ("pinned", tensor.tolist()))
    np.save(tmp_path / "0.npy", np.arange(3.0))
    reader = ndd.readers.Numpy(file_root=str(tmp_path))
    loader = ndd.torch.Loader(reader, lambda rows: (rows.gpu(1), rows, "text"), batch_size=1)
    [(there, here, text)] = loader
    assert read(stand_in, there).tolist() == [[0, 1, 2]]
    assert here == ("pinned", [[0, 1, 2]])
    assert text == "text"


def test_jax_arrays_are_on_the_gpu_with_the_same_id(stand_in, monkeypatch):
    import jax

    class Gpu:
        def __init__(self, number):
            self.local_hardware_id = number

    gpus = [Gpu(1), Gpu(0)]
    placed = []
    monkeypatch.setattr(jax, "local_devices", lambda backend: {"gpu": gpus}[backend])
    monkeypatch.setattr(jax, "device_put", lambda array, sharding: placed.append(sharding))
    ndd.tensor([1]).gpu(1).jax()
    ndd.batch([1]).gpu(0).jax()
    ndd.tensor([1]).jax()
    ndd.tensor([1]).gpu(1).jax(sharding=gpus[1])
    assert placed == [gpus[0], gpus[1], None, gpus[1]]


def test_the_warning_about_emulation_says_why(install):
    install(None)
    with pytest.warns(ndd.EmulatedDeviceWarning, match=r"since PyTorch .* reports no accelerator"):
        ndd.tensor([1]).gpu()
    assert device.accelerator() is None
