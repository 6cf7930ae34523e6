"""Error messages: type, text and line, in every mode."""

import inspect
import re
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pytest

import penstock as ndd
from penstock import _core, errors
from penstock._errors import faults, messages
from penstock._operators.call_sites import here
from penstock._operators.definition import OPERATORS, Data, Like, PerSample, operator
from penstock._runtime.context import EvalContext
from penstock._values.array import wrap

MODES = list(ndd.EvalMode)
SYNCHRONOUS = (ndd.EvalMode.sync_cpu, ndd.EvalMode.sync_full)


@operator()
def probe(input: Data, *, action: PerSample[int] = 0, sleep: PerSample[int] = 0) -> Like:
    """Misbehave on request: action 1 fails, 2 panics, 3 gives a wrong output."""
    return Like(input)


@operator(kernel="copy", devices="cpu")
def host_only(input: Data) -> Like:
    """Copy, but never on a gpu."""
    return Like(input)


for name in ("probe", "host_only"):  # only for this module
    del OPERATORS[name]

IMAGE = ndd.tensor(np.zeros((2, 2, 3), np.uint8), layout="HWC")
BATCH = ndd.batch([[1, 2], [3]])


def run_python(function, *inputs):
    """Call a user's function on a worker."""
    values = [value._value for value in inputs]
    pool = EvalContext.current()._native_pool()
    made = _core.call(
        "mine", function, values, None, [(None, None, None)], here(), pool, deferred=False
    )
    return wrap(made[0])


def raise_key_error(*values):
    raise KeyError("raised by the user's function")


def in_a_process(code):
    """The output of a program, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_in_a_fork():
    text = in_a_process("""
        import os
        import penstock as ndd
        from penstock._operators.definition import Data, Like, operator
        @operator()
        def probe(input: Data, *, action: int = 0, sleep: int = 0) -> Like:
            return Like(input)
        late = probe(ndd.tensor([1]), sleep=2_000_000)
        child = os.fork()
        if child == 0:
            try:
                late.evaluate()
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """)
    raise RuntimeError(text)


def read_without_descriptors():
    text = in_a_process("""
        import os, resource, tempfile
        import penstock as ndd
        reader = ndd.readers.File(files=[tempfile.mkstemp()[1]], on_error="skip")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            list(reader.next_epoch(batch_size=1))
        except OSError as error:
            print(error, flush=True)
    """)
    raise OSError(text)


def read_at_the_end():
    text = in_a_process("""
        import atexit
        def late():
            try:
                probe(ndd.tensor([1])).evaluate()
            except RuntimeError as error:
                print(error)
        atexit.register(late)  # registered before penstock's handler, so it runs after it
        import penstock as ndd
        from penstock._operators.definition import Data, Like, operator
        @operator()
        def probe(input: Data, *, action: int = 0, sleep: int = 0) -> Like:
            return Like(input)
        probe(ndd.tensor([1])).evaluate()
    """)
    raise RuntimeError(text)


def wait_without_threads():
    text = in_a_process("""
        import resource, warnings
        import penstock as ndd
        from tests.stress.batched import call
        warnings.simplefilter("ignore")
        def nest(depth):
            return lambda x: call(nest(depth - 1), x).evaluate() if depth else x
        with ndd.EvalContext(num_threads=1):
            call(nest(0), ndd.tensor([1])).evaluate()
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            # Enough for the work, but not for the stack of another thread.
            resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))
            try:
                call(nest(40), ndd.tensor([1])).evaluate()
            except RuntimeError as error:
                print(error)
    """)
    raise RuntimeError(text)


AT_CALL = {
    "unknown_samples": (
        lambda: ndd.noise.gaussian(IMAGE, rng=ndd.random.RNG(1, by="sample")),
        ValueError,
        "noise.gaussian: an RNG by sample needs to know(.|\n)*rng.of",
    ),
    "cant_read": (
        lambda: ndd.readers.File(file_list="/nope"),
        ValueError,
        "`file_list` can't be used: /nope: there is no such file",
    ),
    "surplus_input": (lambda: ndd.resize(IMAGE, [2, 2]), TypeError, r"by keyword.*`size=`"),
    "unknown_name": (lambda: ndd.resise, AttributeError, "did you mean 'resize'"),
    "unknown_argument": (lambda: ndd.flip(IMAGE, horizontl=1), TypeError, "horizontl.*horizontal"),
    "missing_input": (lambda: ndd.flip(None), TypeError, "flip.*'input'.*None"),
    "missing_argument": (lambda: ndd.cast(IMAGE), TypeError, "cast.*'dtype'"),
    "wrong_argument": (
        lambda: ndd.flip(IMAGE, vertical="up"),
        TypeError,
        "flip: `vertical` must be an integer, got 'up'",
    ),
    "needs_batch_size": (lambda: ndd.batch_permutation(), ValueError, "`batch_size` must be given"),
    "not_an_rng": (
        lambda: ndd.random.uniform(rng=5),
        ValueError,
        r"random\.uniform: `rng` must be a random\.RNG, got 5",
    ),
    "argument_overflow": (
        lambda: ndd.flip(IMAGE, vertical=2**70),
        OverflowError,
        f"flip: `vertical` must be an integer.*{2**70}",
    ),
    "in_operator": (
        lambda: ndd.flip("picture"),
        TypeError,
        "flip: `input`: Can't make a tensor from 'picture'",
    ),
    "bad_argument": (
        lambda: ndd.transpose([1], perm=[1]),
        errors.ArgumentError,
        r"transpose: `perm` must name each of 1 dimensions once, got \[1\]",
    ),
    "bad_input": (
        lambda: ndd.cat(IMAGE, 1),
        errors.ArgumentError,
        "cat: all inputs must have the same type and number of dimensions",
    ),
    "out_of_range": (
        lambda: ndd.paste(IMAGE, ratio=0.5, fill_value=0),
        errors.ArgumentError,
        "paste: `ratio` must be at least 1, got 0.5",
    ),
    "not_one_of": (
        lambda: ndd.resize(IMAGE, size=2, mode="x"),
        errors.ArgumentError,
        'resize: `mode` must be "default", "stretch", "not_larger" or "not_smaller", got "x"',
    ),
    "wrong_elements": (
        lambda: ndd.noise.shot(ndd.tensor([True])),
        errors.ArgumentError,
        "noise.shot: `input` must be of numbers, got bool",
    ),
    "wrong_type": (
        lambda: ndd.random.beta(dtype=ndd.int32),
        errors.ArgumentError,
        "random.beta: `dtype` must be a type of floats, got i32",
    ),
    "wrong_ndim": (
        lambda: ndd.per_frame(1),
        errors.ArgumentError,
        "per_frame: `input` must have at least 1 dimension, got 0",
    ),
    "wrong_shape": (
        lambda: ndd.jpeg_compression_distortion(np.zeros((2, 2, 1), np.uint8)),
        errors.ArgumentError,
        r"`input` must have the shape \(..., 3\), got \(2, 2, 1\)",
    ),
    "no_frames": (
        lambda: ndd.sequence_rearrange(IMAGE, new_order=[0]),
        errors.ArgumentError,
        '`input` must be a sequence: its layout must begin with "F", got "HWC"',
    ),
    "batch_sizes_differ": (lambda: BATCH + ndd.batch([1]), ValueError, "1 != 2"),
    "bad_batch_size": (lambda: ndd.copy(1, batch_size=0), ValueError, "copy: `batch_size`.*0"),
    "wrong_rank": (lambda: ndd.flip([1]), ValueError, "flip.*dimensions 1 .*HWC"),
    "wrong_layout": (
        lambda: ndd.flip(ndd.tensor([[1]], layout="HW")),
        ValueError,
        'flip: the layout "HW".*HWC',
    ),
    "axes_given_twice": (
        lambda: ndd.reductions.sum(IMAGE, axes=[0], axis_names="H"),
        RuntimeError,
        "sum: `axes` and `axis_names`",
    ),
    "axis_out_of_range": (
        lambda: ndd.reductions.sum(IMAGE, axes=[3]),
        IndexError,
        "sum: the axis 3 .*-3 to 2",
    ),
    "no_such_axis": (
        lambda: ndd.reductions.sum(IMAGE, axis_names="Q"),
        RuntimeError,
        "sum: `axis_names`: the axis 'Q' .*HWC",
    ),
    "duplicate_axis": (
        lambda: ndd.reductions.sum(IMAGE, axes=[1, 1]),
        ValueError,
        "sum: duplicate axis 1",
    ),
    "no_axes": (lambda: ndd.normalize(IMAGE, axes=[]), RuntimeError, "normalize: `axes`"),
    "axes_of_numbers": (
        lambda: ndd.normalize(IMAGE, axes=[0], mean=1.0, stddev=2.0),
        RuntimeError,
        "normalize: .*`mean` and `stddev`",
    ),
    "not_shared": (
        lambda: ndd.normalize(BATCH, batch=True, mean=BATCH),
        RuntimeError,
        "normalize: with `batch=True`.*`mean`",
    ),
    "layout_length": (lambda: ndd.tensor([1], layout="HW"), ValueError, '"HW".* 2 .* 1'),
    "gpu_input_on_cpu": (
        lambda: ndd.flip(IMAGE.gpu(), device="cpu"),
        ValueError,
        r'flip.*device="cpu".*\.cpu\(\)',
    ),
    "not_on_gpu": (
        lambda: host_only(IMAGE, device="gpu"),
        ValueError,
        r"host_only.*supports only the cpu.*\.cpu\(\)",
    ),
    "mixed_devices": (lambda: IMAGE + IMAGE.gpu(), ValueError, r"\+.*gpu:0.*\.cpu\(\)"),
    "not_entered": (
        lambda: ndd.EvalMode.sync_full.__exit__(None, None, None),
        RuntimeError,
        "sync_full is exited, but was not entered in this thread",
    ),
    "not_subscriptable": (lambda: BATCH[0], TypeError, "tensors"),
    "not_data": (lambda: ndd.tensor(object()), TypeError, "tensor from <object.*expected"),
    "integer_overflow": (
        lambda: ndd.tensor([1, 2**40]),
        OverflowError,
        f"{2**40}.*dtype=int64",
    ),
    "not_on_host": (lambda: np.asarray(IMAGE.gpu()), TypeError, r"\.cpu\(\)"),
}

FROM_THE_ENGINE = {
    "argument": (
        lambda: ndd.flip(IMAGE, vertical=[1, 2]).evaluate(),
        RuntimeError,
        "flip: .*`vertical` needs one number",
    ),
    "input": (
        lambda: (ndd.tensor([1, 2]) + ndd.tensor([1, 2, 3])).evaluate(),
        RuntimeError,
        r"\+: .*2.*3",
    ),
    "value": (lambda: (ndd.tensor([1]) // 0).evaluate(), ValueError, r"//: .*divided by zero"),
    "index": (lambda: IMAGE[5].evaluate(), IndexError, "index 5 .* axis 0 of length 2"),
    "ragged": (
        lambda: ndd.as_tensor(BATCH).evaluate(),
        ValueError,
        r"sample 1 is \(1,\), sample 0 is \(2,\)(.|\n)*pad=True",
    ),
    "undecodable": (
        lambda: ndd.decoders.image(np.frombuffer(b"text", np.uint8)).evaluate(),
        errors.DecodeError,
        "starts with 74 65(.|\n)*hint",
    ),
    "file": (
        lambda: ndd.io.file.read(np.frombuffer(b"/nope", np.uint8)).evaluate(),
        OSError,
        r"io\.file\.read: .*/nope: there is no such file",
    ),
    "system": (read_without_descriptors, OSError, "too many files open(.|\n)*on_error"),
    "memory": (
        # 2**48 bytes are more than a process can address.
        lambda: (
            ndd.tensor(np.zeros((2**24, 1), np.uint8)) + ndd.tensor(np.zeros(2**24, np.uint8))
        ).evaluate(),
        MemoryError,
        str(2**48),
    ),
    "forked": (read_in_a_fork, RuntimeError, "forked"),
    "threads": (wait_without_threads, RuntimeError, "no thread is free(.|\n)*ulimit"),
    "stopped": (read_at_the_end, RuntimeError, "shutting down"),
    "python": (lambda: run_python(raise_key_error, IMAGE).evaluate(), KeyError, "the user's"),
    "internal": (lambda: probe(IMAGE, action=2).evaluate(), RuntimeError, "panic(.|\n)*report"),
}


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("kind", [*AT_CALL, *FROM_THE_ENGINE])
def test_every_kind_of_error_is_raised_and_reads_well(kind):
    call, error, text = {**AT_CALL, **FROM_THE_ENGINE}[kind]
    with pytest.raises(error) as caught:
        call()
    assert re.search(text, str(caught.value)), caught.value


def test_no_kind_of_error_is_left_out():
    worded = {
        name
        for name, function in vars(messages).items()
        if inspect.isfunction(function)
        and not name.startswith("_")
        and re.search("(Error|Exception)$", function.__annotations__["return"])
    }
    assert worded == set(AT_CALL)
    assert set(faults._KINDS) == set(FROM_THE_ENGINE)


def outcome(mode, call):
    """The exception of a failing call in a mode, and whether the call itself raises it."""
    with mode:
        try:
            value = call()
        except Exception as error:
            return error, True
        try:
            value.evaluate()
        except Exception as error:
            return error, False
    raise AssertionError("nothing was raised")


FAILING = {
    "operator": lambda: probe(BATCH, action=ndd.batch([0, 1])),
    "panic": lambda: probe(BATCH, action=2),
    "flip": lambda: ndd.flip(IMAGE, horizontal=ndd.tensor([1, 2])),
    "index": lambda: IMAGE[7],
    "slice": lambda: BATCH.slice[1],
    "plus": lambda: BATCH + ndd.tensor([1, 2, 3]),
    "stack": lambda: ndd.as_tensor(BATCH),
    "class": lambda: ndd.Tensor(BATCH),
    "function": lambda: probe(ndd.copy(IMAGE), action=1),
}


@pytest.mark.parametrize("name", FAILING)
def test_every_mode_raises_the_same_error_with_the_user_s_line(name):
    call = FAILING[name]
    line = call.__code__.co_firstlineno
    texts, types = set(), set()
    for mode in MODES:
        error, at_call = outcome(mode, call)
        assert at_call == (mode in SYNCHRONOUS), mode
        texts.add(str(error))
        types.add(type(error))
        assert error.__cause__ is error.__context__ is None
        frames = traceback.extract_tb(error.__traceback__)
        assert {frame.filename for frame in frames} == {__file__}
        assert frames[-1].name == ("<lambda>" if at_call else "outcome")
        assert (frames[-1].lineno == line) == at_call
    assert len(types) == 1
    [text] = texts
    assert f"at {__file__}:{line}: " in text
    assert f'"{name}": lambda' in text, "the line itself is shown"


@pytest.mark.parametrize("mode", MODES)
def test_data_of_others_fails_at_the_call_in_every_mode(mode):
    given = ndd.as_batch([np.zeros(3), np.zeros(2)])
    with mode, pytest.raises(IndexError, match="sample 1") as caught:
        given.slice[2]
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("mode", MODES)
def test_ten_operators_on_a_broken_first_step_report_that_step_once(mode):
    value, first_line = BATCH, None
    with mode:
        try:
            first_line = inspect.currentframe().f_lineno + 1
            value = probe(value, action=1)
            for _ in range(5):
                value = ndd.copy(value + 1)
            value.evaluate()
        except RuntimeError as error:
            raised = error
    assert str(raised).startswith("probe: sample 0: ")
    assert f":{first_line}: value = probe(value, action=1)" in str(raised)
    whole = "".join(traceback.format_exception(raised))
    assert whole.count("`action` says to fail") == 1
    assert raised.__cause__ is raised.__context__ is None


def test_a_failed_value_raises_at_every_read_but_tells_what_was_promised():
    failed = ndd.cast(probe(BATCH, action=1), dtype=ndd.float32)
    for read in (
        lambda: failed.evaluate(),
        lambda: failed.shape,
        lambda: repr(failed),
        lambda: failed.torch(pad=True),
        lambda: ndd.as_tensor(failed, pad=True).evaluate(),
        lambda: [np.asarray(sample) for sample in failed],
        lambda: failed.source_info,
        lambda: failed.tensors[0].item(),
        lambda: ndd.batch([failed.tensors[0]]),
        lambda: (failed + 1).evaluate(),
    ):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="says to fail"):
                read()
    assert (str(failed.dtype), failed.ndim, failed.layout) == ("f32", 1, None)
    assert (failed.batch_size, failed.device) == (2, ndd.Device.CPU)


def test_errors_of_two_reads_are_two_objects():
    failed = probe(BATCH, action=1)
    errors = []
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            failed.evaluate()
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert len(traceback.extract_tb(errors[1].__traceback__)) < 6


def test_a_dropped_failure_is_silent(capfd):
    probe(BATCH, action=1)
    probe(BATCH, action=2)
    ndd.tensor([1]).evaluate()
    EvalContext.current().evaluate_all()
    ndd.EvalContext.current()._native_pool().drain()
    assert capfd.readouterr() == ("", "")


def test_the_sample_that_failed_is_named():
    failed = probe(ndd.batch([1, 2, 3]), action=ndd.batch([0, 0, 1]))
    with pytest.raises(RuntimeError, match=r"^probe: sample 2: "):
        failed.evaluate()


def test_out_of_range_is_both_what_python_and_dali_raise():
    assert issubclass(errors.OutOfRangeError, IndexError)
    assert issubclass(errors.OutOfRangeError, RuntimeError)


def test_exceptions_of_user_functions_keep_their_type_and_object():
    failed = run_python(raise_key_error, IMAGE)
    with pytest.raises(KeyError) as caught:
        failed.evaluate()
    frames = traceback.extract_tb(caught.value.__traceback__)
    names = [frame.name for frame in frames]
    assert names[-1] == "raise_key_error"


def test_a_wrong_argument_that_is_large_or_broken_does_not_hide_the_error():
    large = ndd.tensor(np.zeros(1000))
    with pytest.raises(TypeError, match="cast: `dtype`") as caught:
        ndd.cast(IMAGE, dtype=large)
    assert len(str(caught.value)) < 300
    with pytest.raises(TypeError, match="cast: `dtype`"):
        ndd.cast(IMAGE, dtype=probe(BATCH, action=1))

    class Unprintable:
        def __repr__(self):
            raise RuntimeError("no text")

    with pytest.raises(TypeError, match="Unprintable"):
        ndd.tensor(Unprintable())
    with pytest.raises(TypeError, match="horizontal"):
        ndd.flip(IMAGE, horizontal=Unprintable())


def test_a_line_is_shown_as_it_is_written():
    for failed in [IMAGE[9] for _ in "x"]:
        with pytest.raises(IndexError, match=r'for failed in \[IMAGE\[9\] for _ in "x"\]:$'):
            failed.evaluate()


def test_work_goes_on_after_errors_and_panics():
    for action in (1, 2, 3):
        failed = probe(BATCH, action=action)
        assert np.asarray((BATCH + action).tensors[1]).tolist() == [3 + action]
        with pytest.raises(RuntimeError):
            failed.evaluate()
