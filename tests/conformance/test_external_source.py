"""ExternalSource: outputs, their order, and errors."""

import dataclasses

import pytest

from tests.conformance.on_purpose import Differs
from tests.conformance.oracle import assert_same

START = """
E = ndd.ExternalSource
def walk(e, count):
    taken = []
    for _ in range(count):
        try: taken.append(int(np.asarray(e())))
        except StopIteration: taken.append("stop")
    return taken
def two():
    yield 1
    yield 2
def broken():
    yield 1
    raise KeyError("boom")
def attempt(call, *args):
    try: return call(*args)
    except BaseException as error: return type(error).__name__
"""

CASES = [
    # what sources are
    "e = E([np.full((2,), i) for i in range(3)]); e(), e(), e()",
    "E([1, 2])()",
    "E([1.5, 2])()",
    "E([[1, 2], [3, 4]])()",
    "E([(1,)])()",
    "E([[np.zeros(2), np.ones(2)]])()",
    "E(range(5))()",
    "E(np.arange(6).reshape(3, 2))()",
    "E(lambda: 1)()",
    "E(lambda: np.arange(3))(batch_size=2)",
    "E(two)()",
    "walk(E(two), 4)",
    "walk(E(two()), 4)",
    "walk(E(iter([1, 2])), 4)",
    "E(source=[1])()",
    "class K:\n  def m(self): return 3\nE(K().m)()",
    "class K:\n  def __call__(self): return 3\nE(K())()",
    "class K:\n  def __iter__(self): return iter([1, 2])\n  def __call__(self): return 7\nE(K())()",
    "class K:\n  def __getitem__(self, i):\n    if i > 1: raise IndexError\n    return i\n"
    "walk(E(K()), 4)",
    "seen = []\nclass K:\n  def __iter__(self): seen.append('iter'); return iter([1, 2])\n"
    "e = E(K()); seen.append('made'); e(); e(); seen",
    "n = []\ndef f():\n  n.append(1)\n  if len(n) == 2: raise StopIteration\n  return len(n)\n"
    "walk(E(f), 4)",
    "E([ndd.tensor([1, 2])])()",
    "e = E([ndd.tensor([1, 2]), ndd.batch([1, 2])]); e(), e()",
    "x = np.zeros(2); a = E(lambda: x)(); x[0] = 5; a",
    # cycles
    "walk(E([1, 2]), 5)",
    'walk(E([1, 2], cycle="no"), 5)',
    "walk(E([1, 2], cycle=False), 5)",
    'walk(E([1, 2], cycle="quiet"), 5)',
    "walk(E([1, 2], cycle=True), 5)",
    'walk(E([1, 2], cycle="raise"), 7)',
    "walk(E(two, cycle=True), 5)",
    'walk(E(two, cycle="raise"), 7)',
    "walk(E(iter([1, 2]), cycle=True), 4)",
    "walk(E([], cycle=True), 2)",
    'walk(E([], cycle="raise"), 2)',
    "walk(E([]), 2)",
    "E(two(), cycle=True)",
    'E(two(), cycle="raise")',
    'walk(E(two(), cycle="no"), 3)',
    "E(lambda: 1, cycle=True)",
    'E(lambda: 1, cycle="no")',
    "E(lambda: 1, cycle=False)",
    'E(lambda: 1, cycle="zz")',
    'E([1], cycle="zz")',
    'E([1], cycle="NO")',
    "E([1], cycle=5)",
    # outputs
    "e = E([(1, 2), (3, 4)], num_outputs=2); e(), e()",
    "E([(1, 2), (3, 4)], 2)(batch_size=2)",
    "E([[1, 2], [3, 4]], 2)()",
    "E(lambda: [np.zeros(2), np.ones(3)], 2)()",
    "E([(1, 2, 3)], 2)()",
    "E([1], 2)()",
    "E([np.arange(2)], 2)()",
    "E(lambda: iter([1, 2]), 2)()",
    "E([(ndd.batch([1, 2]), 7)], 2)()",
    "E([(ndd.batch([1, 2]), 7)], 2)(batch_size=2)",
    "E([(1, ndd.batch([2, 3]))], 2)(batch_size=3)",
    "E([1], num_outputs=0)",
    "E([1], num_outputs=-1)",
    "E([1], num_outputs=1.5)",
    "E([1], num_outputs=True)()",
    # batches
    "E([1])(batch_size=3)",
    "E([1])(batch_size=0)",
    "E([1])(batch_size=1.5)",
    "E([1])(3)",
    "E([[np.zeros(2), np.ones(2)]])(batch_size=3)",
    "E([ndd.tensor([1, 2])])(batch_size=2)",
    "E([ndd.batch([np.zeros(2), np.ones(3)])])()",
    "E([ndd.batch([np.zeros(2), np.ones(3)])])(batch_size=2)",
    "E([ndd.batch([np.zeros(2), np.ones(3)])])(batch_size=3)",
    "e = E([1, np.zeros(2)]); e(), e(batch_size=2)",
    # layouts and types
    'E([np.zeros((2, 3), np.uint8)], layout="HW", dtype=ndd.float32)()',
    'E([np.zeros((2, 3), np.uint8)], layout="HWC")()',
    'E([(np.zeros((2, 3)), np.zeros(2))], 2, layout=["HW", "C"], dtype=[ndd.uint8, ndd.int32])()',
    'E([(np.zeros((2, 3)), np.zeros((2, 1)))], 2, layout="HW", dtype=ndd.uint8)()',
    'E([(np.zeros((1, 1)), 1)], 2, dtype=(None, ndd.uint8), layout=(None, ""))()',
    'E([(np.zeros((1, 1)), 1)], 2, layout="HW")()',
    'E([(1, 2)], 2, layout="")()',
    'E([1], 2, layout=["HW"])',
    "E([1], 2, dtype=[ndd.uint8] * 3)",
    'E([np.zeros((1, 1))], layout=["HW"])()',
    "E([np.zeros((1, 1))], layout=5)()",
    'E([np.zeros((1, 1))], dtype="zz")()',
    "E([np.zeros((1, 1))], dtype=50)()",
    "E([np.zeros((1, 1))], dtype=np.uint8)()",
    'E([np.zeros((1, 1))], device="zz")()',
    'E([ndd.tensor(np.zeros((1, 1)), layout="XY")], dtype=np.uint8)()',
    'E([ndd.tensor(np.zeros((1, 1)), layout="XY")], layout="HW")()',
    'E([ndd.batch([np.zeros((1, 1))], layout="XY")], layout="HW", dtype=ndd.int16)()',
    "E([ndd.batch([1, 2], dtype=ndd.uint8)], dtype=ndd.float32)(batch_size=2)",
    # mistakes
    "E(5)",
    "E(lambda x: 1)",
    "E(lambda x=1: x)",
    "E(lambda *a: 1)",
    "E(lambda *, k: 1)",
    "class K:\n  def __call__(self, i): return 3\nE(K())",
    "class K:\n  def __next__(self): return 3\nE(K())",
    "E([1], 1, 'no')",
    "E([1], batch_size=3)",
    "list(E([1]))",
    "next(E([1]))",
    "len(E([1]))",
    "E([{}])()",
    "def f(): raise KeyError('boom')\nE(f)()",
    "e = E(broken()); e(); e()",
    "attempt(E([np.zeros(2)], 2))",
    # all items of the data
    "[x.shape for x in E([1, 2, 3]).captured(batch_size=2)]",
    "[len(x) for x in E([(1, 2), (3, 4)], 2).captured(2)]",
    'e = E([1, 2], cycle="raise"); [[len(x.tensors) for x in e.captured(2)] for _ in range(2)]',
    "e = E([1, 2]); [[len(x.tensors) for x in e.captured(2)] for _ in range(2)]",
    "E([1]).captured()",
]

DIFFERS = [
    Differs("E(None)", "TypeError", "a message in place of an assertion"),
    Differs("import functools\nE(functools.partial(lambda x: x, 3))()", "ndd.tensor(3)",
            "it has no parameters left"),
    Differs("E(int)()", "ndd.tensor(0)", "DALI calls itself until it breaks"),
    Differs('E([np.zeros(1)], dtype="uint8")()', "ndd.tensor([0], dtype=ndd.uint8)",
            "types have the names of NumPy as well"),
    Differs("E([1])(batch_size=-1)", "ValueError", "DALI crashes", ask=False),
    Differs("E([None])()", "TypeError", "nothing is no data"),
    Differs("E([[[1, 2], [3]]], batch=True)()", "ndd.batch([[1, 2], [3]])",
            "lists of samples"),
    Differs("walk(E([1, 2], parallel=True), 3)", "[1, 2, 'stop']", "in the background"),
]  # fmt: skip


@pytest.mark.parametrize("source", CASES)
def test_sources_agree(source):
    assert_same(START + source)


@pytest.mark.parametrize("case", DIFFERS, ids=str)
def test_differs_on_purpose(case):
    dataclasses.replace(case, source=START + case.source).check()
