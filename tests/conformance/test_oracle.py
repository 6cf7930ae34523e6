"""The tool behind conformance tests: it must find differences and must not crash."""

import numpy as np
import pytest

from tests.conformance import oracle as module
from tests.conformance.case import Named, Raised, Value
from tests.conformance.compare import differences, silence
from tests.conformance.oracle import Oracle, OracleError, assert_same, oracle


def value(*samples, kind="Batch", dtype="f32", layout=None, device="cpu"):
    samples = [np.asarray(sample, np.float32) for sample in samples]
    return Value(kind, dtype, layout, device, [s.shape for s in samples], samples)


@pytest.fixture(scope="module")
def dali():
    """One that is asked each time, whatever the cache knows."""
    dali = Oracle()
    yield dali
    dali.close()


def test_the_last_expression_is_the_result(dali):
    result = dali.run("y = np.asarray(x) + 1\nndd.as_tensor(y, layout='X')", x=np.arange(3))
    assert result.kind == "Tensor"
    assert (result.dtype, result.layout, result.shape) == ("i64", "X", (3,))
    np.testing.assert_array_equal(result.samples[0], [1, 2, 3])


def test_results_travel_as_plain_data(dali):
    result = dali.run("ndd.batch([[1], [2, 3]]), {'a': (1.5, None)}, ndd.int32, types.RGB, ndd")
    assert result[0].shape == [(1,), (2,)]
    assert result[1] == {"a": [1.5, None]}
    assert result[2] == Named("dtype", "i32")
    assert result[3] == Named("DALIImageType", "RGB")
    assert str(result[4]) == "an object of class module"


def test_a_source_without_a_last_expression_gives_none(dali):
    assert dali.run("x = 1") is None


def test_errors_travel_with_type_texts_and_line(dali):
    at_call = dali.run("x = 1\nndd.batch([])")
    assert (at_call.type, at_call.when, at_call.line) == ("ValueError", "call", 2)
    at_read = dali.run("x = ndd.tensor([1, 2]) + ndd.tensor([1, 2, 3])\nx")
    assert (at_read.type, at_read.when, at_read.line) == ("RuntimeError", "read", 1)
    assert len(at_read.messages) > 1


def test_output_of_a_case_does_not_disturb_the_answers(dali):
    assert dali.run("import os\nprint('hello')\nos.write(1, b'there')\n5") == 5


def test_a_crash_fails_one_case_and_the_next_one_runs(dali):
    crash = "import os, sys\nprint('going', file=sys.stderr, flush=True)\nos.kill(os.getpid(), 11)"
    with pytest.raises(OracleError, match=r"(?s)was killed by SIGSEGV .*os\.kill.*going"):
        dali.run(crash)
    assert dali.run("1 + 1") == 2


def test_a_hang_fails_one_case_and_the_next_one_runs(dali, monkeypatch):
    dali.run("None")
    monkeypatch.setattr(module, "CASE_SECONDS", 0.2)
    with pytest.raises(OracleError, match="did not answer in time"):
        dali.run("import time\ntime.sleep(60)")
    monkeypatch.undo()
    assert dali.run("1 + 1") == 2


def test_without_dali_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_ORACLE", str(tmp_path / "python"))
    with pytest.raises(OracleError, match=r"(?s)no Python at .*`make oracle`"):
        Oracle().run("1")


def test_an_environment_without_dali_says_why_it_failed(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named dali' >&2; exit 3\n")
    python.chmod(0o755)
    monkeypatch.setenv("PENSTOCK_ORACLE", str(python))
    broken = Oracle()
    for _ in range(2):
        with pytest.raises(OracleError, match=r"(?s)exit code 3 .*No module named dali"):
            broken.run("1")


def test_off_skips(monkeypatch):
    monkeypatch.setenv("PENSTOCK_ORACLE", "off")
    with pytest.raises(pytest.skip.Exception):
        oracle.run("1")


def test_a_failure_shows_source_inputs_and_both_outcomes(monkeypatch):
    class Wrong:
        def run(self, source, **inputs):
            return value([1, 3], kind="Tensor")

    monkeypatch.setattr(module, "ours", Wrong())
    with pytest.raises(pytest.fail.Exception) as failure:
        assert_same("ndd.tensor(x)", x=np.float32([1, 2]))
    text = str(failure.value)
    for part in (
        "shape is (2,)",
        "    ndd.tensor(x)",
        "x = array of float32",
        "[1. 2.]",
        "[1. 3.]",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        (value([1]), value([1], kind="Tensor"), "kind"),
        (value([1]), value([1], dtype="f64"), "dtype is 'f32' and 'f64'"),
        (value([1]), value([1], layout="X"), "layout"),
        (value([1]), value([1], device="gpu:0"), "device"),
        (value([1], [2]), value([1]), "shape"),
        (value([1], [2, 3]), value([1], [2, 5]), "sample 1: 1 of 2 elements, the first at"),
        (value([np.nan]), value([0]), "1 of 1"),
        ([1, 2], [1], "2 and 1 items"),
        ([1, [2]], [1, [3]], r"the result\[1\]\[0\] is 2 and 3"),
        ({"a": 1}, {"b": 1}, "keys"),
        (1, 1.0, "of type int and of type float"),
        (True, 1, "of type bool and of type int"),
        (1.0, 1.5, "1.0 and 1.5"),
        (None, 1, "None and of type int"),
        (Named("dtype", "i8"), Named("dtype", "u8"), "dtype i8 and dtype u8"),
        (np.zeros(2, np.int8), np.zeros(2, np.uint8), "array of int8"),
        (np.zeros(2), np.zeros((2, 1)), "array of float64"),
        (np.int64([2**62]), np.int64([2**62 + 1]), "1 of 1 elements"),
        (np.float32(1), np.float32(2), "1.0"),
    ],
)
def test_what_differs_is_told(a, b, word):
    assert next(differences(a, a, None), None) is None
    with pytest.raises(AssertionError, match=word):
        assert_none(differences(a, b, None))


def assert_none(found):
    found = "; ".join(found)
    assert not found, found


def test_numbers_within_the_tolerance_agree():
    assert_none(differences(value([1.0, np.inf]), value([1.25, np.inf]), 0.25))
    assert_none(differences(1.0, 1.25, 0.25))
    assert_none(differences(np.uint8([0]), np.uint8([1]), 1))
    assert next(differences(np.uint8([0]), np.uint8([255]), 1), None) is not None
    assert next(differences(value([np.inf]), value([1.0]), 0.5), None) is not None


def test_errors_agree_by_type_and_ours_may_be_more_special():
    theirs = Raised("ValueError", ["ValueError", "Exception"], ["late", "bad axis"], 1, "read")
    ours = Raised("AxisError", ["AxisError", "ValueError", "Exception"], ["axis 7"], 1, "call")
    assert_none(differences(theirs, ours, None))
    assert next(differences(ours, theirs, None), None) == (
        "the errors are of type AxisError and ValueError"
    )
    assert "penstock doesn't" in next(differences(theirs, 1, None))
    assert "DALI doesn't" in next(differences(1, ours, None))
    assert silence(theirs, "AXIS", "DALI") is None
    assert "doesn't say 'layout'" in silence(ours, "layout", "penstock")
    assert "raises nothing" in silence(5, "axis", "penstock")
