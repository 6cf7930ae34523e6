"""Checkpoints: registering, collecting, files and errors."""

import dataclasses
import os
import tempfile

import pytest

from tests.conformance.on_purpose import Differs, assert_refused
from tests.conformance.oracle import assert_same

START = """
import json, os, pathlib, tempfile
os.chdir(tempfile.mkdtemp())
put = lambda name, text="": pathlib.Path(name).write_text(text)
C, R = ndd.checkpoint.Checkpoint, ndd.random.RNG
c, d, r, q = C(), C(), R(1), R(9)
def text(**seeds):
    states = {k: {"state": str(R(v).state), "type": "RNG"} for k, v in seeds.items()}
    return json.dumps({"version": 2, "states": states})
def files(**args):
    os.makedirs("files/a", exist_ok=True)
    for i in range(5): pathlib.Path(f"files/a/{i}.jpg").write_bytes(bytes([i]))
    return ndd.readers.File(file_root="files", **{"enable_checkpointing": True, **args})
def numbers(epoch):
    return [[int(np.asarray(t)[0]) for t in data.tensors] for data, _ in epoch]
def begun(**args):
    reader = files(**args)
    next(iter(reader.next_epoch(batch_size=2)))
    return reader
def saved(**args):
    c = C(); f = files(**args); c.register(f, "f"); next(iter(f.next_epoch(batch_size=2)))
    c.collect()
    return c.serialize()
def attempt(call, *args):
    try: return call(*args)
    except Exception as error: return type(error).__name__
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = os.getcwd()
    yield START
    os.chdir(before)


CASES = [
    # registering
    'c.register(r), c.register(q), c.register(R(3), "a"), c.names, len(c), "a" in c, "b" in c',
    "c.register(r), c.register(r), c.register(q), c.names",
    'c.register(r, "a"), c.register(r), c.register(q), c.names',
    'c.register(r, "a"); c.register(q, "a"); c.register(R(3)), c.names',
    'c.register(r); c.register(r, "a")',
    'c.register(r, "a"); c.register(r, "b")',
    'c.register(r, "__op_7")',
    'c.register(r); c.register(r, "__op_0")',
    'c.register(r, "")',
    "5 in c, None in c, bool(c), len(c), c.names, c.is_complete, c.is_loaded",
    "list(c)",
    # collecting
    "c.collect(); c.is_complete, c.is_loaded",
    "c.serialize()",
    'c.register(r, "a"); c.serialize()',
    'c.save("x_{seq}.json")',
    'c.register(r, "a"); c.collect(); c.serialize(), c.is_complete, c.is_loaded',
    'c.register(r, "a"); c.collect(); str(c.get_state("a"))',
    'c.register(r, "a"); c.collect(); c.register(q, "b")',
    'c.register(r, "a"); c.collect(); c.register(q, "a"), c.serialize(), c.is_complete',
    'c.register(r, "a"); c.collect(); r(); c.restore(); str(r.state)',
    'c.register(r, "a"); c.collect(); r(); c.register(r, "a"); str(r.state)',
    'c.register(r, "a"); c.collect(); r(); c.collect(); c.serialize()',
    "c.register(r); c.register(q); c.collect(); c.serialize()",
    'c.register(r, "a"); c.collect(); c.clear(); c.names, c.is_complete, c.is_loaded, '
    "c.register(q)",
    'c.register(r, "a"); c.collect(); c.clear(); c.serialize()',
    'c.register(r, "a"); c.collect(); c.clear(); c.register(q, "b"); c.collect(); c.names',
    # states by hand
    'c.get_state("a")',
    'c.get_state(None)',
    'c.register(r, "a"); c.get_state("a")',
    'c.set_state("a", "x"); c.get_state("a")',
    'c.set_state("a", "x"); c.serialize(), c.names, "a" in c, len(c), c.is_complete, c.is_loaded',
    'c.register(r, "a"); c.collect(); c.set_state("b", "x")',
    'c.register(r, "a"); c.collect(); c.set_state("a", q.state); c.is_complete, c.serialize()',
    'c.register(r, "a"); c.collect(); c.set_state("a", q.state); c.collect(); c.serialize()',
    'c.register(r, "a"); c.set_state("a", q.state); before = str(r.state); c.restore()\n'
    "before, str(r.state), c.is_complete, c.is_loaded",
    'c.register(r, "a"); c.set_state("a", q.state); c.register(r, "a"); str(r.state)',
    'c.set_state("a", q.state); c.register(r, "a"); str(r.state), c.is_complete',
    'c.set_state("a", q.state, op_type=R); c.register(r, "a"); str(r.state), c.serialize()',
    'c.set_state("a", q.state, op_type="RNG"); c.register(r, "a"); str(r.state)',
    'c.set_state("a", q.state, op_type="File"); c.register(r, "a")',
    'c.set_state("a", q.state, op_type=int); c.register(r, "a")',
    'c.set_state("a", q.state, op_type=5)',
    'c.register(r, "a"); c.set_state("a", q.state, op_type="File"); c.restore()',
    'c.set_state("a", "garbage"); c.register(r, "a")',
    'c.set_state("a", None); c.register(r, "a")',
    'c.set_state("a", 5); c.register(r, "a")',
    'c.set_state("a", "x", "RNG"); c.set_state("a", "y"); c.serialize()',
    'c.set_state("__op_0", q.state); c.register(r); str(r.state)',
    'c.set_state("__op_1", q.state); c.register(r); str(r.state)',
    'c.set_state(5, "x"); c.serialize()',
    # restoring
    'c.register(r, "a"); c.restore()',
    'c.register(r, "a"); c.set_state("b", "x"); c.restore()',
    'c.register(r, "a"); c.register(q, "b"); c.set_state("a", R(2).state); c.restore()',
    'c.set_state("b", "x"); c.collect()',
    'c.register(r, "a"); c.set_state("b", "x"); c.collect()',
    'd.deserialize(text(a=5)); d.is_loaded, d.is_complete, d.names, "a" in d, len(d)',
    'd.deserialize(text(a=5)); d.serialize()',
    'd.deserialize(text(a=5)); d.get_state("a")',
    'd.deserialize(text(a=5)); d.register(r, "a")\n'
    'str(r.state), d.is_loaded, d.is_complete, d.get_state("a")',
    'd.deserialize(text(a=5)); d.register(r, "b")',
    'd.deserialize(text(a=5)); attempt(d.register, r, "b"), d.names, len(d)',
    "d.deserialize(text(__op_0=5, __op_1=6)); d.register(r); d.register(q)\n"
    "str(r.state), str(q.state)",
    "d.deserialize(text(__op_0=5)); d.register(r); d.register(q)",
    'd.deserialize(text(__op_0=5)); attempt(d.register, r, "zz"), d.register(r), str(r.state)',
    "d.deserialize(text(a=5)); d.collect()",
    'd.deserialize(text(a=5, b=6)); d.register(r, "a"); d.collect()',
    'd.deserialize(text(a=5, b=6)); d.register(r, "a"); d.restore()',
    'd.deserialize(text(a=5)); d.register(r, "a"); d.collect(); d.is_loaded, d.is_complete',
    'd.register(r, "a"); d.deserialize(text(a=5)); before = str(r.state); d.restore()\n'
    "before, str(r.state), d.is_loaded, d.is_complete",
    'd.register(r, "a"); d.deserialize(text(a=5)); d.register(r, "a"); str(r.state)',
    'd.register(r, "a"); d.deserialize(text(a=5)); d.register(r); str(r.state)',
    'd.register(r, "a"); d.register(q, "b"); d.deserialize(text(a=5)); d.restore()',
    'd.deserialize(text(a=5)); d.register(r, "a"); r(); d.restore(); str(r.state)',
    'd.deserialize(text(a=5)); d.register(r, "a"); d.register(q, "a"); str(q.state)',
    'c.register(r, "a"); c.collect(); r(); c.deserialize(c.serialize()); c.restore()\n'
    "str(r.state), c.is_loaded, c.is_complete, c.names",
    # texts
    *(
        f"d.deserialize({text!r})"
        for text in (
            "[]", "{}", "5", "null", b'{"version": 2, "states": {}}',
            '{"version": 2}', '{"version": 2, "states": []}', '{"version": 2, "states": {}}',
            '{"version": 1, "states": {}}', '{"version": 3, "states": {}}',
            '{"version": "2", "states": {}}', '{"version": 2, "states": {"a": "x"}}',
            '{"version": 2, "states": {"a": {}}}',
            '{"version": 2, "states": {"a": {"state": "x"}}}',
            '{"version": 2, "states": {"a": {"state": "x", "type": 5}}}',
            '{"version": 2, "states": {"a": {"state": "x", "type": null, "more": 1}}, "more": 2}',
            5, None, [],
        )
    ),
    'd.deserialize(\'{"version": 2, "states": {}}\'); d.is_loaded, d.is_complete',
    'd.deserialize(\'{"version": 2, "states": {}}\'); d.register(r, "a")',
    'd.deserialize(text(a=5).replace("RNG", "File")); d.register(r, "a")',
    'd.deserialize(text(a=5).replace(\'"RNG"\', "null")); d.register(r, "a"); str(r.state)',
    'c.register(r, "a"); c.collect(); attempt(c.deserialize, "[]"), c.is_complete, '
    "c.is_loaded, c.serialize()",
    # contexts
    "ndd.checkpoint.current() is ndd.EvalContext.current().checkpoint",
    "ndd.EvalContext().checkpoint is ndd.checkpoint.current()",
    "e = ndd.EvalContext()\nwith e: x = ndd.checkpoint.current()\nx is e.checkpoint, x.names",
    "ndd.EvalContext().checkpoint = c",
    "import threading\nx = []\n"
    "t = threading.Thread(target=lambda: x.append(ndd.checkpoint.current()))\n"
    "t.start(); t.join(); x[0] is ndd.checkpoint.current()",
    "r = ndd.random.get_default_rng(); c.register(r); c.collect(); "
    'json.loads(c.serialize())["states"]["__op_0"] == {"state": str(r.state), "type": "RNG"}',
]  # fmt: skip

FILES = [
    'c.save("x_{seq}.json"), c.save("x_{seq}.json"), c.save("x_{seq:04d}.json"), ls()',
    '[c.save("x_{seq:x}.json") for i in range(18)][-1], d.load("x_{seq:x}.json")',
    '[c.save("x_{seq}.json") for i in range(12)][-1], d.load("x_{seq}.json")',
    '[c.save("x_{seq!r}.json") for i in range(2)], d.load("x_{seq!r}.json")',
    '[c.save("x_{seq:5d}.json") for i in range(2)]',
    '[c.save("x_{seq:o}.json") for i in range(9)], d.load("x_{seq:o}.json")',
    '[c.save("x_{{a}}_{seq}.json") for i in range(2)], d.load("x_{{a}}_{seq}.json")',
    'put("x_0007.json"); c.save("x_{seq:04d}.json"), c.save("x_{seq}.json"), ls()',
    'put("x_7.json"); c.save("x_{seq:04d}.json"), ls()',
    'put("x_12345.json"); c.save("x_{seq:04d}.json"), ls()',
    '[put(f"x_{s}.json") for s in ("", "-5", "3 ", "3a")]; c.save("x_{seq}.json")',
    'os.symlink("nowhere", "x_0000.json"); c.save("x_{seq:04d}.json"), ls()',
    'os.mkdir("x_0000.json"); c.save("x_{seq:04d}.json"), ls()',
    'c.save("d/e/x_{seq:04d}.json"), d.load("d/e/x_{seq:04d}.json")',
    'os.mkdir("d[1]*"); n = "d[1]*/x_{seq}.json"; [c.save(n), c.save(n)], d.load(n)',
    'c.save("{seq}/x.json"), c.save("{seq}/x.json"), d.load("{seq}/x.json"), ls()',
    'os.mkdir("5"); c.save("{seq}/x.json"), ls()',
    'c.save(os.path.join(os.getcwd(), "x_{seq}.json")).endswith("/x_0.json"), ls()',
    'c.save("x_{seq}.json"); d.load("x_{seq}.json"); q = R(9); d.register(q, "a"); '
    "str(q.state), d.is_loaded, d.is_complete",
    'c.save("x_{seq}.json"); json.loads(pathlib.Path("x_0.json").read_text())["states"]',
    'd.load("x_{seq}.json")',
    'd.load("nowhere/x_{seq}.json")',
    'd.load("x.json")',
    'c.save("x.json")',
    'c.save("")',
    "c.save(5)",
    'c.save("x_{}.json")',
    'c.save("x_{foo}_{seq}.json")',
    'c.save("x_{seq}_{seq:03d}.json")',
    'c.save("x_{seq:zz}.json")',
    'c.save("x_{seq")',
    'c.save("x_{seq}.json"); put("x_1.json", "{"); '
    'attempt(d.load, "x_{seq}.json") in ("ValueError", "JSONDecodeError"), d.is_loaded',
]  # fmt: skip

READERS = [
    # DALI does not end a restored epoch where it should, hence one batch
    'd.deserialize(saved()); f = files(); d.register(f, "f"); '
    "numbers([next(iter(f.next_epoch(batch_size=2)))])",
    'd.deserialize(saved()); f = files(enable_checkpointing=False); d.register(f, "f"); '
    "numbers([next(iter(f.next_epoch(batch_size=2)))])",
    'json.loads(saved())["states"]["f"]["type"]',
    "s = begun().get_state(); str(s) == s, type(s).__name__, isinstance(str(s), str)",
    "s = begun().get_state(); f = files(); f.set_state(s); g = files(); g.set_state(str(s)); "
    "numbers([next(iter(x.next_epoch(batch_size=2)))  for x in (f, g)])",
    'd.deserialize(saved()); f = begun(); d.register(f, "f")',
    'd.deserialize(saved()); attempt(d.register, begun(), "f"), d.is_loaded',
    'f = begun(); d.register(f, "f"); d.deserialize(saved()); d.restore()',
    "f = begun(); f.set_state(f.get_state())",
    'd.deserialize(saved()); d.register(r, "f")',
    'd.deserialize(text(f=5)); d.register(files(), "f")',
    "files().set_state(5)",
    "files().set_state(None)",
    'c.register(files(name="n")), c.names',
    "e = ndd.EvalContext()\nwith e: begun()\ne.checkpoint.names",
]

TWICE = "class X(R): pass\n"

DIFFERS = [
    Differs('c.register(r); c.collect(); c.save("x_{seq:5d}.json"), d.load("x_{seq:5d}.json")',
            "'x_    0.json', 'x_    0.json'", "what was saved can be loaded"),
    Differs('c.register(files(), "f"); c.collect(); c.is_complete', "True",
            "a reader has a state before its first iteration as well"),
    Differs("f = begun(enable_checkpointing=False); c.register(f); c.collect(); c.is_complete",
            "True", "a state is a few numbers, so that it need not be asked for in advance"),
    Differs('d.deserialize(saved()); f = files(); d.register(f, "f"); '
            "[numbers(f.next_epoch(batch_size=2)) for _ in range(2)]",
            "[[[2, 3], [4, 0]], [[1, 2], [3, 4], [0, 1]]]",
            "the rest of an epoch comes before the next one"),
    Differs("c.register(3)", "TypeError",
            "DALI finds out when the states are collected"),
    Differs("c.register(r, 5)", "TypeError", "a message about the name"),
    Differs("c.register(r); c.collect()\n"
            'c.save(pathlib.Path("x_{seq}.json"))', "'x_0.json'", "paths are paths"),
    Differs('d.deserialize(text(a=5).replace("RNG", "File"))\n'
            'attempt(d.register, r, "a"), d.names', "'TypeError', ()",
            "an object that can't take its state is not registered, so that the right one can be"),
    Differs("class X:\n  def get_state(self): return 'x'\n"
            "  def set_state(self, s): self.s = s\n"
            'c.register(X(), "a"); c.collect(); c.serialize()',
            """'{"version": 2, "states": {"a": {"state": "x", "type": "X"}}}'""",
            "objects need not know of streams"),
]  # fmt: skip


MISTAKES = [
    TWICE + 'c.register(r, "a"); c.register(X(1), "a")',
    TWICE + 'c.register(X(1), "a"); c.register(r, "a")',
    "c.deserialize('garbage')",
    "c.deserialize('')",
    "files().set_state(r.state)",
    "files().set_state('garbage')",
    'put("x_0.json"); d.load("x_{seq}.json")',
    'put("x_1.json", "{"); d.load("x_{seq}.json")',
    'pathlib.Path("x_1.json").write_bytes(bytes(range(256))); d.load("x_{seq}.json")',
]


@pytest.mark.parametrize("source", CASES)
def test_checkpoints_agree(start, source):
    assert_same(start + source)


@pytest.mark.parametrize("source", READERS)
def test_readers_agree(start, source):
    assert_same(start + source)


@pytest.mark.parametrize("source", FILES)
def test_files_agree(start, source):
    ready = 'c.register(r, "a"); c.collect()\nls = lambda: sorted(os.listdir())\n'
    assert_same(start + ready + source)


@pytest.mark.parametrize("source", MISTAKES)
def test_mistakes_are_refused(start, source):
    assert_refused(start + source)


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(start, case):
    dataclasses.replace(case, source=start + case.source).check()
