"""The definition mechanism: what every operator can be asked, and what `@operator` makes."""

import functools
import importlib
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
from tests.calls import CALLS
from tests.calls import IMAGE as PICTURE
from tests.ids import steady_repr

import penstock as ndd
from penstock import _core
from penstock._operators import definition as _define
from penstock._operators.definition import (
    OPERATORS,
    REQUIRED,
    Data,
    Like,
    PerSample,
    Result,
    operator,
)
from penstock._values import arithmetic as _arithmetic
from penstock._values.arithmetic import Operation

SIMPLE = sorted(
    name
    for name, call in CALLS.items()
    if call.operator.inputs == ("input",) and call.inputs == (PICTURE,) and call.is_repeatable
)
"""Operators that take images of any type and layout, each for itself."""

IMAGE = ndd.tensor(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), layout="HWC")


def public(name):
    """What users call by this name, such as "reductions.sum"."""
    return functools.reduce(getattr, name.split("."), ndd)


@pytest.fixture
def define():
    """`@operator`, forgotten again after the test."""
    known = dict(OPERATORS)
    yield operator
    OPERATORS.clear()
    OPERATORS.update(known)


@pytest.fixture
def probe(define):
    @define(layouts="HWC WC")
    def probe(input: Data, *, action: PerSample[int] = 0, sleep: PerSample[int] = REQUIRED) -> Like:
        """Copy.

        Args:
            input: The data.
            action: What to do.
            sleep: How long.
        """
        return Like(input)

    return probe


KERNELS_OF_OUR_OWN = {
    "largest",
    "moments",
    "move",
    "pick_samples",
    "probe",
    "probe_pair",
    "same",
    "shared_moments",
    "stack",
    "subscript",
}


def test_every_kernel_has_a_definition():
    importlib.import_module("penstock.math")
    operations = (item for item in vars(_arithmetic).values() if isinstance(item, Operation))
    defined = {made.options.kernel for made in OPERATORS.values()} | {o.kernel for o in operations}
    assert defined | KERNELS_OF_OUR_OWN == set(_core.kernels())


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator_is_public_under_its_name(name):
    function = public(name)
    assert function is OPERATORS[name].function
    assert function.__name__ == function.__qualname__ == name.rpartition(".")[2]
    assert function.__module__.startswith("penstock.ops.")
    assert name.partition(".")[0] in dir(ndd)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator_documents_all_it_takes(name):
    made = OPERATORS[name]
    documented = re.findall(r"^ {8}\*?(\w+): ", made.function.__doc__, re.MULTILINE)
    inputs = [*made.inputs, *([made.variadic] if made.variadic else [])]
    assert documented == [*inputs, *(argument.name for argument in made.arguments)]


SIGNATURES = {
    "flip": "(input, /, *, batch_size=None, device=None, depthwise=None, horizontal=None, "
    "vertical=None)",
    "cast": "(input, /, *, batch_size=None, device=None, dtype=None)",
    "copy": "(input, /, *, batch_size=None, device=None)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_tell_what_can_be_given_and_nothing_else(name):
    signature = inspect.signature(getattr(ndd, name))
    parameters = list(signature.parameters.values())
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters), signature
    bare = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in parameters],
        return_annotation=signature.empty,
    )
    names = re.findall(r"\w+(?==|,|\))", SIGNATURES[name])
    assert list(bare.parameters) == [n for n in names if n != "None"]


# What holds for every operator, asked of the registry


def call(name, data, **more):
    return CALLS[name](data, **more)


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_a_batch_gives_a_batch_of_what_its_samples_give(name, mode):
    shapes = [(2, 3, 3), (4, 1, 3), (0, 2, 3), (1, 1, 3)]
    samples = [np.arange(np.prod(s), dtype=np.uint8).reshape(s) for s in shapes]
    with mode:
        together = call(name, ndd.batch(samples, layout="HWC"))
        alone = [call(name, ndd.tensor(sample, layout="HWC")) for sample in samples]
    assert type(together) is ndd.Batch
    for a, b in zip(together, alone, strict=True):
        assert type(b) is ndd.Tensor
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)
        assert (a.layout, a.dtype) == (b.layout, b.dtype)


@pytest.mark.parametrize("name", SIMPLE)
def test_inputs_may_be_anything_that_a_tensor_is_made_of(name):
    expected = np.asarray(call(name, IMAGE))
    given = np.asarray(IMAGE)
    for data in (given, given[::-1][::-1], memoryview(given)):
        np.testing.assert_array_equal(np.asarray(call(name, data)), expected)
    # Lists have a type of their own.
    expected = np.asarray(call(name, ndd.tensor(given.tolist(), layout="HWC")))
    np.testing.assert_array_equal(np.asarray(call(name, given.tolist())), expected)


@pytest.mark.parametrize("name", SIMPLE)
def test_wrong_calls_are_type_errors_that_name_the_operator(name):
    for wrong in (
        lambda: public(name)(),
        lambda: call(name, None),
        lambda: public(name)(IMAGE, 1),
        lambda: call(name, IMAGE, nonsense=1),
        lambda: call(name, IMAGE, batch_size="a"),
        lambda: call(name, IMAGE, batch_size=1.0),
    ):
        # Python itself words some of these, and knows no namespaces.
        with pytest.raises(TypeError, match=name.rpartition(".")[2]):
            wrong()
    with pytest.raises(TypeError):
        call(name, object())
    with pytest.raises(TypeError):
        public(name)(input=IMAGE)


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("size", [0, -1])
def test_batch_size_must_be_positive(name, size):
    with pytest.raises(ValueError, match=f"{name}: `batch_size`.*{size}"):
        call(name, IMAGE, batch_size=size)


@pytest.mark.parametrize("size", ["2**40", "2**62", "2**70"])
def test_more_samples_than_there_is_memory_for_are_an_error(size):
    # In a process of its own, which it must not end.
    code = f"""
import penstock as ndd
try:
    ndd.copy(5, batch_size={size})
except (ValueError, OverflowError, MemoryError) as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "copy" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("name", SIMPLE)
def test_batch_size_repeats_a_tensor_and_leaves_a_batch(name):
    made = call(name, IMAGE, batch_size=3)
    assert (type(made), made.batch_size) == (ndd.Batch, 3)
    for sample in made:
        np.testing.assert_array_equal(np.asarray(sample), np.asarray(call(name, IMAGE)))
    batch = ndd.batch([IMAGE, IMAGE])
    assert call(name, batch, batch_size=2).batch_size == 2


@pytest.mark.parametrize("name", SIMPLE)
def test_device_is_checked(name):
    assert call(name, IMAGE, device="cpu").device is ndd.Device.CPU
    assert call(name, IMAGE, device=None).device is ndd.Device.CPU
    for wrong in ("foo", "CPU", "cpu:0", "mixed"):
        with pytest.raises(ValueError, match=r"[Dd]evice"):
            call(name, IMAGE, device=wrong)
    with pytest.raises(TypeError, match="device"):
        call(name, IMAGE, device=0)


@pytest.mark.parametrize("name", SIMPLE)
def test_results_are_values_of_their_own(name):
    made = call(name, IMAGE)
    assert made is not IMAGE
    assert not np.shares_memory(np.asarray(made), np.asarray(IMAGE))


# What the decorator makes


def test_a_definition_becomes_an_operator(probe):
    assert OPERATORS["probe"].function is probe
    np.testing.assert_array_equal(np.asarray(probe(IMAGE, sleep=0)), np.asarray(IMAGE))


def test_required_arguments_are_required(probe):
    for given in ({}, {"sleep": None}):
        with pytest.raises(TypeError, match=r"probe\(\) missing .*'sleep'"):
            probe(IMAGE, **given)


def test_none_means_the_default(probe):
    assert probe(IMAGE, action=None, sleep=0).shape == IMAGE.shape


def test_layouts_are_taken_by_rank_where_none_is_given(probe):
    assert probe(np.zeros((2, 2, 3)), sleep=0).layout == "HWC"
    assert probe(np.zeros((2, 3)), sleep=0).layout == "WC"
    assert probe(ndd.tensor(np.zeros((2, 3)), layout="WC"), sleep=0).layout == "WC"
    with pytest.raises(ValueError, match=r"probe.*dimensions 1 .*HWC, WC"):
        probe(np.zeros(3), sleep=0)
    with pytest.raises(ValueError, match=r'probe.*"CW".*HWC, WC'):
        probe(ndd.tensor(np.zeros((2, 3)), layout="CW"), sleep=0)


def test_near_misses_are_offered(probe):
    with pytest.raises(TypeError, match=r"'acton'; did you mean `action`\?"):
        probe(IMAGE, acton=1, sleep=0)
    with pytest.raises(TypeError, match="'zzz'; it takes batch_size, device, action, sleep"):
        probe(IMAGE, zzz=1, sleep=0)


def test_an_argument_may_differ_from_sample_to_sample(probe):
    batch = ndd.batch([IMAGE, IMAGE])
    for actions in (ndd.batch([0, 1]), ndd.batch([[0], [1]]), ndd.batch(np.float32([0.2, 1.4]))):
        with pytest.raises(RuntimeError, match="sample 1"):
            probe(batch, action=actions, sleep=0).evaluate()
    made = probe(IMAGE, action=ndd.batch([0, 0, 0]), sleep=ndd.tensor(0))
    assert made.batch_size == 3


def test_batches_of_one_call_must_agree(probe):
    batch = ndd.batch([IMAGE, IMAGE])
    with pytest.raises(ValueError, match=r"3 != 2.*probe"):
        probe(batch, sleep=ndd.batch([0, 0, 0]))
    with pytest.raises(ValueError, match=r"3 != 2.*probe"):
        probe(IMAGE, action=ndd.batch([0, 0]), sleep=ndd.batch([0, 0, 0]))


@pytest.mark.parametrize("value", [0, False, np.int8(0), np.array(0), ndd.tensor(0), [0], 0.9])
def test_an_integer_may_come_in_many_forms(probe, value):
    assert probe(IMAGE, action=value, sleep=0).evaluate().shape == IMAGE.shape


@pytest.mark.parametrize("value", ["0", {}, object(), 1j, None.__class__, [None]], ids=steady_repr)
def test_what_is_no_integer_is_a_type_error(probe, value):
    with pytest.raises(TypeError, match=r"probe: `action` must be an integer, got"):
        probe(IMAGE, action=value, sleep=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**70, -(2**70)])
def test_numbers_that_are_no_64_bit_integers_name_operator_and_argument(probe, value):
    with pytest.raises((ValueError, OverflowError), match=r"probe: `action`"):
        probe(IMAGE, action=value, sleep=0)


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_lists_of_numbers_may_come_as_arrays_of_any_library(library):
    asarray = importlib.import_module(library).asarray
    image = ndd.tensor(np.zeros((4, 4, 3), np.uint8), layout="HWC")
    assert ndd.resize(image, size=asarray([5, 6])).shape == (5, 6, 3)
    assert ndd.resize(image, size=[asarray(5), 6]).shape == (5, 6, 3)
    assert ndd.transpose(image, perm=asarray([2, 0, 1])).shape == (3, 4, 4)


def test_several_results_are_a_tuple(define):
    @define()
    def probe_pair(input: Data) -> tuple[Result, Result]:
        return Result(ndd.int64, 1), Like(input)

    shape, same = probe_pair(IMAGE)
    assert np.asarray(shape).tolist() == [2, 2, 3]
    assert (str(shape.dtype), shape.layout, same.layout) == ("i64", None, "HWC")
    shapes, _ = probe_pair(ndd.batch([IMAGE, np.zeros((1, 4, 3), np.uint8)]))
    assert [np.asarray(row).tolist() for row in shapes] == [[2, 2, 3], [1, 4, 3]]


def test_a_definition_may_have_another_kernel_and_a_namespace(define):
    @define(kernel="copy", namespace="pictures")
    def duplicate(input: Data) -> Like:
        return Like(input)

    assert OPERATORS["pictures.duplicate"].function is duplicate
    assert duplicate.__name__ == "duplicate"
    with pytest.raises(TypeError, match=r"pictures\.duplicate\(\) got .*'x'"):
        duplicate(IMAGE, x=1)
    assert duplicate(IMAGE).shape == IMAGE.shape


def test_a_definition_may_tell_the_kernel_what_it_worked_out(define):
    @define(kernel="probe")
    def broken_when(input: Data, *, broken: int = 0) -> Like:
        return Like(input, action=1 if broken else 0, sleep=0)

    assert broken_when(IMAGE).evaluate().shape == IMAGE.shape
    with pytest.raises(RuntimeError, match="broken_when"):
        broken_when(IMAGE, broken=1).evaluate()


def test_defaults_are_not_shared_between_calls(probe):
    assert probe(IMAGE, sleep=0).evaluate() is not None
    with pytest.raises(RuntimeError):
        probe(IMAGE, action=1, sleep=0).evaluate()
    assert probe(IMAGE, sleep=0).evaluate().shape == IMAGE.shape


def test_a_definition_without_a_kernel_is_refused(define):
    with pytest.raises(ValueError, match="no kernel `nothing_of_ours`"):

        @define()
        def nothing_of_ours(input: Data) -> Like:
            return Like(input)


def test_an_argument_of_unknown_kind_is_refused(define):
    with pytest.raises(KeyError):

        @define()
        def copy(input: Data, *, name: bytes = b"") -> Like:
            return Like(input)


def test_like_promises_what_is_known():
    promise = Like(IMAGE).promise(None)
    assert promise == (ndd.uint8._code, 3, "HWC")
    assert Like(ndd.tensor([1]), dtype=ndd.float16).promise("X") == (ndd.float16._code, 1, "X")


def test_the_table_of_operators_is_complete():
    assert {"flip", "cast", "copy"} <= set(OPERATORS)
    assert all(isinstance(made, _define.Operator) for made in OPERATORS.values())
