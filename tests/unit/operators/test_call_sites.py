"""Which line of the user's program a call comes from."""

import functools
import inspect
import threading

import numpy as np
import pytest

import penstock as ndd
from penstock._operators import call_sites

BATCH = ndd.batch([[1, 2]])


def this_line():
    return inspect.currentframe().f_back.f_lineno


def text_of(call):
    failed = call()
    with pytest.raises(IndexError) as caught:
        failed.evaluate()
    return str(caught.value)


def test_a_line_has_one_number():
    numbers = {call_sites.here() for _ in range(3)}
    other = call_sites.here()
    assert len(numbers) == 1
    assert other not in numbers
    found = call_sites.find(other)[-1]
    assert (found.file, found.function) == (__file__, "test_a_line_has_one_number")
    assert found.text() == "other = call_sites.here()"


def test_number_zero_is_no_line():
    assert call_sites.find(0) == ()
    assert call_sites.here() != 0


def fail():
    return BATCH.slice[9]


def test_the_innermost_line_outside_of_the_package_is_meant():
    def outer():
        return fail()

    line = inspect.getsourcelines(fail)[1] + 1
    assert f"at {__file__}:{line}: return BATCH.slice[9]" in text_of(outer)


def test_calls_through_the_interpreter_itself_are_found():
    partial = functools.partial(lambda: BATCH.slice[9])
    assert f"{__file__}:{this_line() - 1}: " in text_of(partial)
    assert f"{__file__}:{this_line()}: " in text_of(lambda: next(map(BATCH.slice.__getitem__, [9])))


def test_operators_of_python_are_found():
    bad = ndd.tensor([1, 2, 3])
    total = bad + ndd.tensor([1, 2])
    with pytest.raises(RuntimeError, match=f":{this_line() - 1}: total = bad"):
        total.evaluate()
    row = [1, 2, 3]
    total = row + BATCH
    with pytest.raises(RuntimeError, match=f":{this_line() - 1}: total = row"):
        total.evaluate()


def test_code_without_a_file_has_its_line_but_no_text():
    scope = {"BATCH": BATCH}
    exec("\n\nfailed = BATCH.slice[9]", scope)
    text = text_of(lambda: scope["failed"])
    assert text.endswith("at <string>:3")


def test_of_lines_that_a_program_makes_as_it_runs_the_latest_are_known(monkeypatch):
    monkeypatch.setattr(call_sites, "_paths", {})
    monkeypatch.setattr(call_sites, "_numbers", {})
    first = BATCH.slice[9]
    code = compile("here()", "made.py", "exec")
    outer = compile("def here(): return find()", call_sites._PACKAGE + "made.py", "exec")
    scope = {"find": call_sites.here}
    exec(outer, scope)
    for line in range(1, 3 * call_sites._MOST):
        exec(code.replace(co_firstlineno=line), scope)
    assert len(call_sites._paths) == len(call_sites._numbers) == call_sites._MOST
    # A line that called long ago is forgotten, but not its error; the next call is known again.
    with pytest.raises(IndexError, match="index 9 is out of range") as caught:
        first.evaluate()
    assert "at " not in str(caught.value).partition("\n")[2]
    assert "return BATCH.slice[9]" in text_of(fail)


def test_numbers_begin_again_before_they_outgrow_a_call(monkeypatch):
    monkeypatch.setattr(call_sites, "_last", 0xFFFF_FFFE)
    assert [call_sites.here(), call_sites.here()] == [0xFFFF_FFFF, 0xFFFF_FFFF]
    failed = BATCH.slice[9]
    assert "failed = BATCH.slice[9]" in text_of(lambda: failed)


def test_other_threads_have_their_own_line():
    made = []

    def work():
        made.append(BATCH.slice[9])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "made.append(BATCH.slice[9])" in text_of(lambda: made[0])


def test_a_folder_whose_name_begins_alike_is_not_the_package(tmp_path):
    package = call_sites._PACKAGE.rstrip("/")
    source = "def call(batch):\n    return batch.slice[9]\n"
    scope = {}
    exec(compile(source, f"{package}_extras/more.py", "exec"), scope)
    assert f"{package}_extras/more.py:2" in text_of(lambda: scope["call"](BATCH))


def test_the_functions_written_for_operators_are_passed_over():
    failed = ndd.flip(ndd.tensor(np.zeros((2, 2, 3))), horizontal=[1, 0])
    with pytest.raises(RuntimeError, match=r"failed = ndd\.flip\(ndd\.tensor"):
        failed.evaluate()


def test_many_threads_number_the_same_lines_alike():
    start, seen = threading.Barrier(8), []

    def work():
        start.wait()
        scope = {"here": call_sites.here}
        code = compile("\n".join(f"n{i} = here()" for i in range(200)), "same.py", "exec")
        exec(code, scope)
        seen.append([scope[f"n{i}"] for i in range(200)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert all(numbers == seen[0] for numbers in seen)
    assert len(set(seen[0])) == 200


def test_the_whole_path_through_the_program_is_told():
    def inner():
        return fail()

    def outer():
        return inner()

    path = [line.strip() for line in text_of(outer).splitlines() if line.startswith("  at ")]
    told = [line.partition(": ")[2] for line in path]
    assert told[-4:] == [
        *("failed = call()", "return inner()", "return fail()", "return BATCH.slice[9]")
    ]
    # Workers of pytest-xdist are programs without a file.
    assert all(line.startswith((f"at {__file__}:", "at <string>:")) for line in path)


def test_the_same_line_reached_in_two_ways_has_two_paths():
    def one_way():
        return fail()

    def another_way():
        return fail()

    for _ in range(2):
        for way in (one_way, another_way):
            lines = text_of(way).splitlines()
            line = inspect.getsourcelines(way)[1] + 1
            assert any(f"{__file__}:{line}: return fail()" in each for each in lines)


def test_a_deep_recursion_is_told_in_part():
    def deep(depth):
        return deep(depth - 1) if depth else fail()

    lines = [line.strip() for line in text_of(lambda: deep(200)).splitlines()]
    told = [line for line in lines if line.startswith(("at ", "..."))]
    assert len(told) == 2 * call_sites._SHOWN + 1
    assert told[call_sites._SHOWN] == "..."
    assert told[-1].endswith("return BATCH.slice[9]")


def test_code_that_is_gone_leaves_its_path_to_no_other():
    """A path is known by the address of its code, which new code must not get while it is kept."""
    for line in range(1, 300):
        scope = {"BATCH": BATCH}
        exec("\n" * line + "failed = BATCH.slice[9]", scope)
        assert text_of(lambda scope=scope: scope["failed"]).endswith(f"at <string>:{line + 1}")
