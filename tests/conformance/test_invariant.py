"""`capture.invariant`: DALI returns a proxy, penstock the value.

What DALI documents of its proxy (attributes, calls, indexing, iteration, conversions, methods,
arguments) must be the same here. What it says a proxy can't preserve holds here as well.
"""

import pytest

from tests.conformance.oracle import assert_same, ours

SAME = {
    "equality": "p([3, 1]) == [3, 1], p(3) == 3, 3 == p(3), p(3) != 4",
    "order": "p(3) < 4, p(3) >= 3, 2 > p(3), sorted([p(3), p(1), 2]) == [1, 2, 3]",
    "truth": "bool(p(0)), bool(p([1])), not p(''), bool(p(None))",
    "hash": "hash(p('a')) == hash('a'), {p('a'): 1}['a'], 'a' in {p('a')}",
    "arithmetic": "p(7) + 1, 1 + p(7), p(7) // 2, 7 % p(4), -p(7), abs(p(-7)), p(2) ** 3",
    "bits": "p(6) & 3, 3 | p(4), p(1) << 2, ~p(6), 5 ^ p(1)",
    "division of floats": "p(1.5) / 2, 3 / p(1.5), divmod(p(7), 2), round(p(1.26), 1)",
    "conversions": "int(p(3)), float(p(3)), complex(p(3)), str(p(3)), repr(p('a')), bytes(p([1]))",
    "an index": "list(range(9))[p(3)], [1, 2, 3][p(1) :], '{:b}'.format(p(5)), hex(p(255))",
    "formatting": "f'{p(3.14159):.2f}', '%d' % p(3), '{0.real}'.format(p(3))",
    "length and items": "len(p([3, 1])), p([3, 1])[0], p([3, 1, 2])[1:], p({'a': 4})['a']",
    "membership": "3 in p([3, 1]), 'a' in p({'a': 1}), 9 in p((1, 2))",
    "iteration": "[*p([3, 1])], list(reversed(p([3, 1]))), dict(p({'a': 1})), sum(p([3, 1]))",
    "unpacking": "(lambda a, *b: (a, b))(*p([1, 2, 3])), (lambda a: a)(**p({'a': 5}))",
    "methods": "p('a,b').split(','), p([3, 1]).index(1), p({'a': 1}).get('b', 2)",
    "attributes": "p(3 + 4j).imag, p(range(3)).stop, p(3).real + 1",
    "a call": "p(max)(3, 4), p(lambda x: x + 1)(2), callable(p(len)), callable(p(3))",
    "a class": "p(int)('7'), p(dict)(a=1)",
    "instances": "isinstance(p(3), int), isinstance(p([1]), list), isinstance(p('a'), str)",
    "math": "__import__('math').sqrt(p(4)), __import__('math').floor(p(2.5))",
    "joined strings": "p('a') + 'b', p('a') * 3, 'x'.join([p('a') + '', 'b'])",
    "twice": "p(p(3)) + 1, (lambda x: p(x) is x)(p([1]))",
    "a context manager": "p(__import__('threading').Semaphore()).__enter__()",
    "containers": "[p(3), 4] == [3, 4], {'a': p(3)}['a'] + 1",
}

SETTING = "x = [1, 2]; m = p(x); m.append(3); m[0] = 9; (x, len(m))"
ATTRIBUTE = """
class Own:
    size = (2, 3)
    def doubled(self):
        return [2 * n for n in self.size]
own = Own(); m = p(own); m.size = (4, 5); m.doubled() + list(own.size)
"""

ARGUMENTS = {
    "a keyword": "ndd.resize(x, size=p([4, 5]))",
    "in a list": "ndd.resize(x, size=[p(4), 5])",
    "an attribute": "class C:\n    angle = 90.0\nndd.rotate(x, angle=p(C()).angle)",
    "a result of a method": "ndd.resize(x, size=p({'size': [4, 5]}).get('size'))",
    "an operand": "ndd.cast(x, dtype=ndd.float32) * p(2.0)",
    "an enumeration": "ndd.resize(x, size=[4, 5], interp_type=p(types.INTERP_NN))",
    "an element type": "ndd.cast(x, dtype=p(ndd.float32))",
    "a string": "ndd.slice(x, 0, 2, axis_names=p('W'))",
}


@pytest.mark.parametrize("what", SAME)
def test_documented_behaviour(what):
    assert_same(f"p = ndd.capture.invariant\n({SAME[what]})")


@pytest.mark.parametrize("source", [SETTING, ATTRIBUTE], ids=["mutation", "assignment"])
def test_changes_go_through(source):
    assert_same("p = ndd.capture.invariant\n" + source.strip())


@pytest.mark.parametrize("where", ARGUMENTS)
def test_arguments_of_operators(where):
    make = "x = ndd.tensor(np.arange(60, dtype=np.uint8).reshape(5, 4, 3), layout='HWC')"
    assert_same(f"p = ndd.capture.invariant\n{make}\n{ARGUMENTS[where]}")


LOST_BY_A_PROXY = {
    "identity": "x = [1]; p(x) is x",
    "None": "p(None) is None",
    "exact types": "type(p(3)) is int, type(p([1])) is list",
    "buffers": "bytes(memoryview(p(b'ab'))) == b'ab'",
    "arrays": "np.asarray(p(np.arange(3))).tolist() == [0, 1, 2]",
    "serialization": "import pickle; pickle.loads(pickle.dumps(p([1]))) == [1]",
    "json": "import json; json.dumps(p({'a': [1]})) == '{\"a\": [1]}'",
    "copies": "import copy; copy.deepcopy(p([1])) == [1] and type(copy.copy(p([1]))) is list",
    "C functions": "''.join([p('a'), 'b']) == 'ab'",
    "bases of classes": "issubclass(type('T', (p(dict),), {}), dict)",
    "exceptions": "x = p(KeyError('a')); x.args == ('a',) and isinstance(x, BaseException)",
}


@pytest.mark.parametrize("what", LOST_BY_A_PROXY)
def test_what_a_proxy_does_not_preserve(what):
    source = f"p = ndd.capture.invariant\n{LOST_BY_A_PROXY[what]}"
    found = ours.run(source)
    assert found in (True, [True, True]), found
