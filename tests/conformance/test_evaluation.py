"""When work runs and where errors are raised: modes, contexts, devices, threads and streams."""

import pytest

from tests.conformance.case import Raised
from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same, oracle, ours

MODES = ["deferred", "eager", "sync_cpu", "sync_full"]

FAILING = {
    "index": ("t = ndd.tensor([1, 2, 3])", "t[7]"),
    "index of one sample": ("t = ndd.batch([[1, 2], [3]])", "t.slice[1]"),
    "shapes": ("t = ndd.tensor([1, 2])", "t + ndd.tensor([1, 2, 3])"),
    "types": ("t = ndd.tensor([True])", "t + t"),
    "layout": ("t = ndd.tensor(np.zeros((4, 4), 'u1'), layout='HW')", "ndd.flip(t)"),
    "rank": ("t = ndd.tensor(np.zeros((4, 4), 'u1'))", "ndd.flip(t)"),
    "ragged": ("t = ndd.batch([[1, 2], [3]])", "ndd.as_tensor(t)"),
    "foreign memory": ("t = ndd.as_tensor(np.zeros((4, 4)), layout='HW')", "ndd.flip(t)"),
    "batch size": ("t = ndd.batch([1, 2])", "t + ndd.batch([1])"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FAILING)
def test_errors_have_the_same_type_and_line_in_every_mode(name, mode):
    prepare, call = FAILING[name]
    source = f"{prepare}\nwith ndd.EvalMode.{mode}:\n    u = {call}\nu.evaluate()"
    expected, actual = oracle.run(source), ours.run(source)
    assert isinstance(expected, Raised)
    assert isinstance(actual, Raised), f"penstock raises nothing: {actual}"
    assert expected.type in actual.bases, f"{expected}\n{actual}"
    assert actual.line == 3, f"not the line of the call: {actual}"


@pytest.mark.parametrize("mode", ["sync_cpu", "sync_full"])
@pytest.mark.parametrize("name", FAILING)
def test_synchronous_modes_raise_at_the_call(name, mode):
    prepare, call = FAILING[name]
    assert_same(
        f"""
        {prepare}
        try:
            with ndd.EvalMode.{mode}:
                {call}
            where = "later"
        except Exception as error:
            where = "call", error.__cause__ is None
        where
        """
    )


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("read", ["np.asarray(u)", "u.evaluate()", "repr(u)", "(u + 1).evaluate()"])
def test_each_reading_of_a_failed_value_raises(mode, read):
    assert_same(
        f"""
        with ndd.EvalMode.{mode}:
            u = ndd.tensor([1, 2, 3])[7]
        try:
            {read}
        except RuntimeError as error:
            first = error
        try:
            {read}
            again = None
        except RuntimeError as error:
            again = str(error) == str(first)
        again, u.dtype, u.ndim, u.layout, u.device
        """
    )


SAME = [
    # a failed batch
    "b = ndd.batch([[1, 2], [3]]).slice[1]\nb.dtype, b.batch_size, b.layout, b.ndim",
    "ndd.batch([[1, 2], [3]]).slice[1].tensors[1].evaluate()",
    "u = ndd.tensor([1, 2, 3])[7]\nu.shape",
    "ndd.batch([[1, 2], [3]]).slice[1].shape",
    "b = ndd.batch([[1, 2], [3]]).slice[1]\nt = b.tensors[0]\nlen(list(b))",
    "u = ndd.tensor([1, 2])[7]\ndel u",
    # known before evaluation
    "with ndd.EvalMode.deferred:\n"
    "    b = ndd.batch([[1, 2], [3]], layout='X') + 1\n"
    "    known = b.dtype, b.ndim, b.layout, b.shape, b.batch_size, b.device\n"
    "known, b",
    "with ndd.EvalMode.deferred:\n"
    "    t = ndd.flip(ndd.tensor(np.zeros((2, 2, 3), np.uint8)))\n"
    "    known = t.layout, t.dtype, t.ndim, t.shape\n"
    "known",
    "with ndd.EvalMode.deferred:\n"
    "    t = ndd.cast(ndd.tensor([1], layout='X'), dtype=ndd.float32)\n"
    "    known = t.layout, t.dtype, t.ndim, t.device\n"
    "known, t",
    # modes
    "list(ndd.EvalMode), ndd.EvalMode.default is ndd.EvalMode.eager, ndd.EvalMode.current()",
    "list(ndd.EvalMode.__members__), ndd.EvalMode(2), ndd.EvalMode['sync_cpu']",
    "[mode.value for mode in ndd.EvalMode]",
    "with ndd.EvalMode.sync_cpu:\n    c = ndd.EvalMode.current()\nc, ndd.EvalMode.current()",
    "try:\n    with ndd.EvalMode.deferred:\n        raise KeyError\n"
    "except KeyError:\n    pass\nndd.EvalMode.current()",
    "with ndd.EvalMode.deferred:\n    with ndd.EvalMode.deferred:\n        pass\n"
    "    c = ndd.EvalMode.current()\nc",
    "import threading\nseen = []\nwith ndd.EvalMode.sync_cpu:\n"
    "    t = threading.Thread(target=lambda: seen.append(ndd.EvalMode.current()))\n"
    "    t.start()\n    t.join()\nseen",
    "ndd.EvalMode('eager')",
    "ndd.EvalMode(9)",
    "ndd.EvalMode.foo",
    # contexts
    "c = ndd.EvalContext()\nc.device_id, c.cuda_stream, c.num_threads == ndd.get_num_threads()",
    "ndd.EvalContext(num_threads=3).num_threads",
    "ndd.EvalContext(thread_pool=ndd.ThreadPool(3)).num_threads",
    "ndd.EvalContext.current() is ndd.EvalContext.default()",
    "with ndd.EvalContext() as c:\n    inside = ndd.EvalContext.current() is c\n"
    "inside, ndd.EvalContext.current() is c",
    "c = ndd.EvalContext()\nwith c:\n    with c:\n        pass\n"
    "    inside = ndd.EvalContext.current() is c\ninside",
    "c = ndd.EvalContext()\nc.evaluate_all(), c.cached_results(1), c.cache_results(1, 2)",
    "with ndd.EvalContext(num_threads=1):\n    t = ndd.tensor([1]) + 1\nt",
    "ndd.EvalContext(thread_pool=ndd.ThreadPool(2), num_threads=2)",
    "ndd.EvalContext(num_threads=-1)",
    "ndd.EvalContext(num_threads='a')",
    "ndd.EvalContext(num_threads=2.5)",
    "ndd.EvalContext(device_id=-1)",
    "ndd.EvalContext(device_id='a')",
    "ndd.EvalContext(5)",
    "ndd.EvalContext(foo=1)",
    "ndd.EvalContext().num_threads = 3",
    # devices
    "ndd.Device('cpu') == ndd.Device.CPU, hash(ndd.Device('cpu')) == hash(ndd.Device.CPU)",
    "ndd.Device('cpu') != ndd.Device.CPU, ndd.Device.CPU.device_type, ndd.Device.CPU.device_id",
    "ndd.device('cpu'), ndd.device(None), ndd.device(ndd.Device.CPU) is ndd.Device.CPU",
    "ndd.Device.current(), ndd.Device.default_device_id('cpu')",
    "ndd.Device.type_from_dlpack(1), ndd.Device.type_from_dlpack(2)",
    "ndd.Device.from_dlpack(ndd.tensor(1))",
    "with ndd.Device.CPU:\n    c = ndd.Device.current()\nc",
    "ndd.Device('gpu:0', 0)",
    "ndd.Device('cpu', 0)",
    "ndd.Device('cpu:0')",
    "ndd.Device('gpu:a')",
    "ndd.Device('gpu:-1')",
    "ndd.Device('gpu:1:2')",
    "ndd.Device('')",
    "ndd.Device('mixed')",
    "ndd.Device('GPU')",
    "ndd.Device()",
    "ndd.device(5)",
    "ndd.device(ndd.Device.CPU, 1)",
    "ndd.Device.default_device_id('foo')",
    "ndd.Device.type_from_dlpack(3)",
    # threads
    "ndd.set_num_threads(3)\nn = ndd.get_num_threads()\nndd.set_num_threads(None)\nn",
    "ndd.set_num_threads(0)",
    "ndd.set_num_threads(-1)",
    "ndd.set_num_threads(2.0)",
    "ndd.set_num_threads('2')",
    "ndd.set_num_threads(10**6)",
    "ndd.set_num_threads()",
    "p = ndd.ThreadPool(2)\np.num_threads, p.device_id",
    "ndd.ThreadPool().num_threads == ndd.get_num_threads()",
    "ndd.ThreadPool(num_threads=1, device_id=None).device_id",
    "ndd.ThreadPool(-1)",
    "ndd.ThreadPool('a')",
    "ndd.ThreadPool(2.5)",
    "ndd.ThreadPool(2, 3)",
    "ndd.ThreadPool(2).num_threads = 3",
    # streams
    "ndd.stream(stream=None), ndd.get_default_stream()",
    "ndd.set_current_stream(None)",
    "ndd.Stream(stream=None)",
    "ndd.Stream(stream=object())",
    "ndd.stream(stream='a')",
    "ndd.set_current_stream('a')",
]  # fmt: skip


@pytest.mark.parametrize("source", SAME)
def test_outcomes_agree(source):
    assert_same(source)


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("body", ["pass", "c.evaluate_all()", "del u"])
def test_the_end_of_a_context_leaves_errors_with_their_values(mode, body):
    assert_same(
        f"""
        c = ndd.EvalContext()
        with ndd.EvalMode.{mode}, c:
            u = ndd.tensor([1, 2, 3])[7]
            {body}
        "left without an error"
        """
    )


def test_a_value_can_be_read_after_its_context():
    for index in (1, 7):
        assert_same(
            f"""
            with ndd.EvalMode.deferred, ndd.EvalContext():
                u = ndd.tensor([1, 2, 3])[{index}]
            u.evaluate()
            """
        )


def test_an_error_of_the_body_is_not_covered_by_those_of_values():
    assert_same(
        """
        with ndd.EvalMode.deferred, ndd.EvalContext():
            u = ndd.tensor([1, 2, 3])[7]
            raise KeyError("the user's own")
        """
    )


def test_a_context_is_active_in_one_thread_at_a_time():
    assert_same(
        """
        import threading
        context, seen = ndd.EvalContext(), []
        def enter():
            try:
                with context:
                    seen.append("entered")
            except RuntimeError as error:
                seen.append("EvalContext" in str(error))
        def run():
            thread = threading.Thread(target=enter)
            thread.start()
            thread.join()
        with context:
            run()
        run()
        seen
        """
    )


def test_threads_have_contexts_of_their_own():
    assert_same(
        """
        import threading
        seen = []
        thread = threading.Thread(target=lambda: seen.append(ndd.EvalContext.default()))
        thread.start()
        thread.join()
        seen[0] is ndd.EvalContext.default()
        """
    )


REFUSED = [
    "ndd.Device(None)",
    "ndd.Device(5)",
    "ndd.Device.from_dlpack(5)",
    "ndd.EvalContext(thread_pool=5)",
    "ndd.EvalContext().__exit__(None, None, None)",
]


@pytest.mark.parametrize("source", REFUSED)
def test_both_refuse(source):
    assert_refused(source)


DIFFERS = [
    Differs(
        "ndd.EvalMode.deferred < ndd.EvalMode.eager <= ndd.EvalMode.sync_cpu",
        "True",
        "modes are ordered by how much they wait",
    ),
    Differs("ndd.Device('cpu') == 'cpu'", "False", "comparing is not an error"),
    Differs("ndd.ThreadPool(0)", "ValueError", "nobody would do the work"),
    Differs("ndd.EvalContext(num_threads=0)", "ValueError", "nobody would do the work"),
    Differs(
        "ndd.batch([[1, 2], [3]]).slice[1].tensors[0]",
        "ndd.tensor(2)",
        "a sample that went well can be read, whatever happened to others",
    ),
]


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    case.check()


def test_ten_operators_after_a_failure_report_it_once():
    source = """
        u = ndd.tensor([1, 2, 3])[7]
        for _ in range(10):
            u = u + 1
        u.evaluate()
        """
    expected, actual = oracle.run(source), ours.run(source)
    assert expected.type in actual.bases
    assert actual.line == 1, f"not the line that failed first: {actual}"
    assert len(actual.messages) <= 2, f"one error, at most with its cause:\n{actual}"
    assert "axis 0" in actual.messages[0], actual
