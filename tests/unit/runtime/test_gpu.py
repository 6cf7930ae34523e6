"""The emulated gpu and its placement rules."""

import subprocess
import sys
import threading

import jax.numpy as jnp
import numpy as np
import pytest
from tests.calls import CALLS

import penstock as ndd

pytestmark = pytest.mark.usefixtures("emulated")


ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
IMAGE = ndd.tensor(ARRAY, layout="HWC")
BATCH = ndd.batch([ARRAY, ARRAY + 1], layout="HWC")


def where(value):
    return str(value.device)


def run(code, policy, expect=0):
    """Run a program with a policy; returns its stdout and stderr."""
    environment = {"PATH": "", "PENSTOCK_GPU": policy} if policy is not None else {"PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == expect, done.stderr
    return done.stdout, done.stderr


USES = """
import numpy as np, penstock as ndd
image = ndd.tensor(np.zeros((2, 2, 3), np.uint8), layout="HWC")
first = image.gpu()
second = ndd.flip(image, device="gpu:1") + 1
ndd.tensor([1], device="gpu")
ndd.batch([1], device="cuda:3")
ndd.stream()
with ndd.Device("gpu", 2), ndd.EvalContext(device_id=4):
    image.gpu().evaluate()
print(first.device, second.device, second.cpu().device)
"""


@pytest.mark.parametrize("policy", [None, "", "auto"])
def test_a_process_warns_once_at_the_user_s_line(policy):
    out, err = run(USES, policy)
    assert out == "gpu:0 gpu:1 cpu\n"
    assert err.count("EmulatedDeviceWarning") == 1
    assert "<string>:4:" in err
    assert "`gpu` is emulated" in err
    assert "PENSTOCK_GPU=emulate" in err


def test_emulate_is_silent():
    assert run(USES, "emulate") == ("gpu:0 gpu:1 cpu\n", "")


def test_error_refuses_every_way_to_a_gpu():
    code = """
import numpy as np, penstock as ndd
image = ndd.tensor(np.zeros((2, 2, 3), np.uint8), layout="HWC")
ways = [
    image.gpu, lambda: image.gpu(1), lambda: image.to_device("gpu"),
    lambda: ndd.flip(image, device="gpu"), lambda: ndd.tensor([1], device="gpu"),
    lambda: ndd.batch([1], device="cuda"), lambda: ndd.Device("gpu"), lambda: ndd.stream(),
    lambda: ndd.EvalContext(device_id=0), lambda: ndd.Batch.broadcast(1, 2, device="gpu"),
]
for way in ways:
    try:
        way()
    except RuntimeError as error:
        assert "PENSTOCK_GPU" in str(error), error
        print("refused")
assert (image.cpu() + 1).device is ndd.Device.CPU
"""
    out, err = run(code, "error")
    assert out == "refused\n" * 10
    assert err == ""


def test_an_unknown_policy_names_the_known_ones():
    _, err = run("import penstock as ndd; ndd.tensor([1]).gpu()", "yes", expect=1)
    assert "'auto', 'emulate' or 'error', got 'yes'" in err


def test_the_host_never_warns():
    code = "import penstock as ndd; (ndd.batch([1, 2]) + 1).cpu().evaluate()"
    assert run(code, "auto") == ("", "")


def test_moving_there_and_back_keeps_all():
    there = IMAGE.gpu()
    assert where(there) == "gpu:0"
    assert (there.layout, there.dtype, there.shape) == ("HWC", IMAGE.dtype, (2, 4, 3))
    back = there.cpu()
    assert back.device is ndd.Device.CPU
    np.testing.assert_array_equal(np.asarray(back), ARRAY)
    batch = BATCH.gpu()
    assert (where(batch), batch.layout, batch.batch_size) == ("gpu:0", "HWC", 2)
    assert {where(sample) for sample in batch} == {"gpu:0"}
    np.testing.assert_array_equal(np.asarray(batch.cpu().tensors[1]), ARRAY + 1)


def test_what_is_there_already_is_itself():
    there = IMAGE.gpu()
    assert there.gpu() is there
    assert there.gpu(0) is there
    assert there.to_device("gpu:0") is there
    assert there.to_device("gpu", force_copy=True) is not there
    assert IMAGE.gpu() is not IMAGE


def test_there_are_eight_devices():
    assert [where(IMAGE.gpu(index)) for index in range(8)] == [f"gpu:{i}" for i in range(8)]
    for wrong in (8, -1):
        with pytest.raises(ValueError, match="between 0 and 7"):
            IMAGE.gpu(wrong)
    with pytest.raises(TypeError, match="integer"):
        IMAGE.gpu("a")
    assert where(IMAGE.gpu(3).gpu(5)) == "gpu:5"
    assert IMAGE.gpu(3).to_device("gpu:3").device.device_id == 3


def test_gpu_without_a_number_is_the_current_one():
    with ndd.Device("gpu", 3):
        assert where(IMAGE.gpu()) == "gpu:3"
        assert where(ndd.flip(IMAGE, device="gpu")) == "gpu:3"
        assert where(ndd.tensor([1], device="gpu")) == "gpu:3"
        assert where(ndd.flip(IMAGE)) == "cpu"
        assert where(ndd.tensor([1])) == "cpu"
    with ndd.EvalContext(device_id=2):
        assert where(IMAGE.gpu()) == "gpu:2"
    assert where(IMAGE.gpu()) == "gpu:0"


def test_each_thread_has_its_own_current_gpu():
    found = []
    with ndd.Device("gpu", 5):
        thread = threading.Thread(target=lambda: found.append(where(IMAGE.gpu())))
        thread.start()
        thread.join()
    assert found == ["gpu:0"]


def test_operators_run_where_their_inputs_are():
    there, batch = IMAGE.gpu(2), BATCH.gpu(2)
    for value in (
        ndd.flip(there),
        ndd.cast(there, dtype=ndd.float32),
        ndd.copy(there),
        there + 1,
        1 + there,
        there + there,
        there + 1.5,
        there[0],
        there[:, ::-1],
        batch.slice[0],
        batch.slice[ndd.batch([0, 1])],
        batch.tensors[0],
        batch.tensors[::-1],
        batch.select([0]),
        ndd.as_tensor(batch),
        ndd.as_tensor(there, layout="ABC"),
        ndd.tensor(there),
        ndd.batch([there, there]),
        ndd.batch(there, layout="WC"),
        ndd.flip(there, horizontal=ndd.tensor(1)),
        ndd.flip(there, horizontal=ndd.batch([0, 1])),
        next(iter(there)),
    ):
        assert where(value) == "gpu:2"
        assert where(value.evaluate()) == "gpu:2"


ON_GPU = {
    name: call
    for name, call in CALLS.items()
    if call.is_repeatable and call.inputs and "gpu" in call.operator.options.devices
}


@pytest.mark.parametrize("call", ON_GPU.values(), ids=ON_GPU)
def test_results_are_those_of_the_host(call):
    there = call(*(kind.batch().gpu(2) for kind in call.inputs))
    for made, expected in zip(
        there if isinstance(there, tuple) else (there,), call.on_batches(), strict=True
    ):
        assert where(made) == "gpu:2"
        for a, b in zip(made.cpu(), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


@pytest.mark.parametrize("use", [lambda x: x + 1.5, lambda x: x.slice[::-1, 1:]])
def test_arithmetic_and_indexing_are_those_of_the_host(use):
    for a, b in zip(use(BATCH.gpu()).cpu(), use(BATCH), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


def test_device_argument_moves_the_call():
    assert where(ndd.flip(IMAGE, device="gpu")) == "gpu:0"
    assert where(ndd.copy(BATCH, device=ndd.Device("gpu", 4))) == "gpu:4"
    assert where(ndd.cast(IMAGE, dtype=ndd.float32, device="cuda:1")) == "gpu:1"
    with pytest.raises(ValueError, match=r"flip.*\.cpu\(\)"):
        ndd.flip(IMAGE.gpu(), device="cpu")


def test_mixed_says_gpu():
    with pytest.raises(ValueError, match='device="gpu"'):
        ndd.flip(IMAGE, device="mixed")
    with pytest.raises(ValueError, match='device="gpu"'):
        ndd.Device("mixed")


def test_arithmetic_on_mixed_devices_is_refused_with_both_named():
    there, row = IMAGE.gpu(), [1, 2, 3]
    for call in (
        lambda: there + IMAGE,
        lambda: IMAGE + there,
        lambda: BATCH + there,
        lambda: BATCH.gpu() + BATCH,
        lambda: there + np.uint8(1),
        lambda: there + row,
        lambda: ndd.batch([1, 2]) + there,
    ):
        with pytest.raises(ValueError, match=r"(cpu.*gpu:0|gpu:0.*cpu).*\.gpu\(\)"):
            call()
    with pytest.raises(ValueError, match=r"gpu:0.*gpu:1|gpu:1.*gpu:0"):
        there + IMAGE.gpu(1)


def test_python_numbers_have_no_device():
    for number in (1, 1.5, True):
        assert where(IMAGE.gpu(1) + number) == "gpu:1"
        assert where(number + BATCH.gpu(1)) == "gpu:1"


def test_samples_of_a_batch_must_be_on_one_device():
    with pytest.raises(ValueError, match="sample 1"):
        ndd.batch([IMAGE.gpu(), IMAGE])
    with pytest.raises(ValueError, match="sample 1"):
        ndd.batch([IMAGE.gpu(0), IMAGE.gpu(1)])


def test_host_only_protocols_say_cpu():
    there = IMAGE.gpu()
    for use in (
        np.asarray,
        lambda t: t.__array__(),
        lambda t: np.stack([t, t]),
        lambda t: np.add(t, 1),
    ):
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            use(there)
    np.testing.assert_array_equal(np.asarray(there.cpu()), ARRAY)


def test_torch_works_on_the_emulated_device():
    out = IMAGE.gpu().torch()
    assert out.tolist() == ARRAY.tolist()
    assert out.device.type == "cpu", "the emulated device is the host"
    assert jnp.asarray(IMAGE.gpu()).tolist() == ARRAY.tolist()
    assert tuple(BATCH.gpu().torch().shape) == (2, 2, 4, 3)
    ragged = ndd.batch([[1, 2], [3]], device="gpu")
    assert ragged.torch(pad=True).tolist() == [[1, 2], [3, 0]]


def test_dlpack_reports_host_memory():
    there = IMAGE.gpu(3)
    assert there.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(there), ARRAY)


def test_there_is_no_cuda_array_interface():
    for value in (IMAGE, IMAGE.gpu(), BATCH.gpu()):
        assert not hasattr(value, "__cuda_array_interface__")


def test_reading_numbers_needs_no_protocol():
    there = ndd.tensor(3, device="gpu")
    assert there.item() == 3
    assert bool(there)
    assert ndd.tensor([1, 2], device="gpu").shape == (2,)
    assert 'device="gpu:0"' in repr(there)
    assert 'device="gpu:2"' in repr(BATCH.gpu(2))


def test_what_is_there_does_not_change_with_its_source():
    given = np.zeros(3, np.int32)
    there = ndd.as_tensor(given).gpu()
    given[:] = 9
    assert there.torch().tolist() == [0, 0, 0]


def test_an_empty_batch_can_be_moved():
    there = ndd.batch([], dtype=ndd.int32, device="gpu")
    assert (where(there), there.batch_size) == ("gpu:0", 0)
    assert where(there.cpu()) == "cpu"
    assert where(there + 1) == "gpu:0"


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_places_are_known_in_every_mode_before_the_work_is_done(mode):
    with mode:
        value = ndd.flip(IMAGE.gpu(1)) + 1
        assert where(value) == "gpu:1"
        assert where(value.cpu()) == "cpu"
        np.testing.assert_array_equal(np.asarray(value.cpu()), ARRAY[:, ::-1].astype(int) + 1)


def test_values_made_there_are_copied_or_shared_as_asked():
    there = ndd.tensor([1, 2], device="gpu")
    shared = ndd.as_tensor(there)
    assert shared.torch().data_ptr() == there.torch().data_ptr()
    assert ndd.tensor(there).torch().data_ptr() != there.torch().data_ptr()
    forced = there.to_device("gpu", force_copy=True)
    assert forced.torch().data_ptr() != there.torch().data_ptr()


def test_copy_crosses_between_devices():
    there = ndd.copy(IMAGE, device="gpu")
    back = ndd.copy(there, device="cpu")
    assert (where(there), where(back)) == ("gpu:0", "cpu")
    np.testing.assert_array_equal(np.asarray(back), ARRAY)
    assert not np.shares_memory(np.asarray(back), np.asarray(IMAGE))
