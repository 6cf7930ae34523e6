"""The situations that DALI describes for its capture mode, in docstrings, warnings and errors.

DALI captures a call if it can prove from the program's text that arguments are the same in each
iteration (`FORMS`), and refuses what would change a captured loop (`REFUSED`). Here each of them
gives what it gives without capture mode and without running ahead.
"""

import textwrap

import numpy as np
import pytest

import penstock as ndd

COUNT = 18
SIZE = [5, 4]
CHANGED = 0


class Config:
    size = (4, 5)

    def __init__(self):
        self.angle = 90.0

    @property
    def computed(self):
        return [3, 3]


CONFIG = Config()
MARKED = ndd.capture.invariant(7)


def resized(images, size):
    return ndd.resize(images, size=size)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(1)
    for index in range(COUNT):
        np.save(folder / f"{index:02d}.npy", rng.integers(0, 256, (8, 6, 3), np.uint8))
    return str(folder)


# Lines of the body of a loop over `x`. What is above a line of dashes comes before the loop.
FORMS = {
    "a literal": "x = ndd.resize(x, size=[4, 5])",
    "a negative literal": "x = ndd.rotate(x, angle=-30.0, keep_size=True)",
    "a positional literal": "x = ndd.resize(x, size=(4, 5))",
    "a tuple and a list": "x = ndd.crop(ndd.resize(x, size=(9, 9)), crop=[4, 5])",
    "a string": "x = ndd.transpose(x, perm=[1, 0, 2]); x = ndd.slice(x, 1, 2, axis_names='C')",
    "None and booleans": "x = ndd.rotate(x, angle=30.0, keep_size=True, fill_value=None)",
    "arithmetic on literals": "x = ndd.resize(x, size=[2 + 2, 10 // 2])",
    "an enumeration": "x = ndd.resize(x, size=[4, 5], interp_type=ndd.types.INTERP_NN)",
    "an element type": "x = ndd.cast(x, dtype=ndd.float32)",
    "a name bound once": "size = [4, 5]\n---\nx = ndd.resize(x, size=size)",
    "a name bound twice": "size = [3, 3]\nsize = [4, 5]\n---\nx = ndd.resize(x, size=size)",
    "a name bound in the loop": "size = [4, 5]\nx = ndd.resize(x, size=size)",
    "a name bound after its use": (
        "size = [4, 5]\n---\nx = ndd.resize(x, size=size)\nsize = [4 + step % 2, 5]"
    ),
    "an augmented assignment": "size = 3\n---\nsize += step % 2\nx = ndd.resize(x, size=[size, 4])",
    "a deleted name": "size = [4, 5]\nx = ndd.resize(x, size=size)\ndel size",
    "an unpacked tuple": "h, w = 4, 5\n---\nx = ndd.resize(x, size=[h, w])",
    "a starred target": "h, *rest = 4, 5, 6\n---\nx = ndd.resize(x, size=[h, rest[0]])",
    "nested targets": "(h, (w, _)) = (4, (5, 6))\n---\nx = ndd.resize(x, size=[h, w])",
    "swapped names": "h, w = 4, 5\n---\nh, w = w, h\nx = ndd.resize(x, size=[h, w])",
    "a walrus": "x = ndd.resize(x, size=(size := [4, 5])); x = ndd.resize(x, size=size)",
    "a global": "x = ndd.resize(x, size=SIZE)",
    "a global that changes": (
        "global CHANGED\nCHANGED = step % 2\nx = ndd.resize(x, size=[4 + CHANGED, 4])"
    ),
    "a marked global": "x = ndd.resize(x, size=[MARKED, MARKED])",
    "an attribute of a class": "x = ndd.resize(x, size=Config.size)",
    "an attribute of an instance": "x = ndd.rotate(x, angle=CONFIG.angle)",
    "an attribute that changes": (
        "own = Config()\n---\nown.angle = 90.0 * (step % 2)\n"
        "x = ndd.rotate(x, angle=own.angle, keep_size=True)"
    ),
    "a property": "x = ndd.resize(x, size=CONFIG.computed)",
    "a dict's item": "d = {'size': [4, 5]}\n---\nx = ndd.resize(x, size=d['size'])",
    "a list that is mutated": (
        "size = [4, 5]\n---\nsize[0] = 4 + step % 2\nx = ndd.resize(x, size=size)"
    ),
    "a subscript": "sizes = [[4, 5], [3, 3]]\n---\nx = ndd.resize(x, size=sizes[1])",
    "a subscript by the step": (
        "sizes = [[4, 5], [3, 3]]\n---\nx = ndd.resize(x, size=sizes[step % 2])"
    ),
    "a conditional expression": "x = ndd.resize(x, size=[4 if step % 2 else 5, 4])",
    "a boolean expression": "x = ndd.resize(x, size=None or [4, 5])",
    "a comprehension": "x = ndd.resize(x, size=[n + 2 for n in range(2, 4)])",
    "calls in a comprehension": "x = [ndd.resize(x, size=[n, 4]) for n in (3, 4)][1]",
    "a call as an argument": "x = ndd.resize(x, size=[len('four'), max(4, 5)])",
    "an f-string": "x = ndd.slice(x, 1, 2, axis_names=f'{chr(67)}')",
    "keywords from a dict": "kw = {'size': [4, 5]}\n---\nx = ndd.resize(x, **kw)",
    "inputs from a list": "args = [x]\nx = ndd.resize(*args, size=[4, 5])",
    "a parameter": "x = resized(x, [4, 5])",
    "a parameter by keyword": "x = resized(images=x, size=[4, 5])",
    "a parameter that changes": "x = resized(x, [4 + step % 2, 5])",
    "a default": "def own(x, size=(4, 5)):\n    return ndd.resize(x, size=size)\n---\nx = own(x)",
    "a closure": "n = 4\ndef own(x):\n    return ndd.resize(x, size=[n, 5])\n---\nx = own(x)",
    "a closure over the step": (
        "def own(x):\n    return ndd.resize(x, size=[4 + step % 2, 5])\n---\nx = own(x)"
    ),
    "a lambda": "own = lambda x: ndd.resize(x, size=[4, 5])\n---\nx = own(x)",
    "a partial function": (
        "import functools\nown = functools.partial(ndd.resize, size=[4, 5])\n---\nx = own(x)"
    ),
    "an alias of an operator": "own = ndd.resize\n---\nx = own(x, size=[4, 5])",
    "operators in a list": (
        "ops = [ndd.resize, ndd.resize]\n---\nfor op in ops:\n    x = op(x, size=[4, 5])"
    ),
    "getattr": "x = getattr(ndd, 'resize')(x, size=[4, 5])",
    "a nested function": (
        "def outer(x):\n    def inner(x):\n        return ndd.flip(x)\n    return inner(x)\n---\n"
        "x = outer(x)"
    ),
    "recursion": (
        "def own(x, n):\n    return x if n == 0 else own(ndd.flip(x), n - 1)\n---\nx = own(x, 3)"
    ),
    "recursion of varying depth": (
        "def own(x, n):\n    return x if n == 0 else own(ndd.flip(x), n - 1)\n---\n"
        "x = own(x, step % 3)"
    ),
    "map of Python": "x, = map(ndd.flip, [x])",
    "two calls on a line": "x = ndd.flip(ndd.flip(x), vertical=1)",
    "a chain of lines": "x = (\n    ndd.flip(\n        x\n    )\n)",
    "a condition that holds": "if True:\n    x = ndd.flip(x)",
    "a condition that changes": "if step % 2:\n    x = ndd.flip(x)",
    "branches": "x = ndd.flip(x) if step % 2 else ndd.resize(x, size=[4, 4])",
    "a match": "match step % 2:\n    case 0:\n        x = ndd.flip(x)\n    case _:\n        pass",
    "an inner loop": "for n in (3, 4, 5):\n    x = ndd.resize(x, size=[n, n])",
    "an inner loop of varying length": "for n in range(step % 3):\n    x = ndd.flip(x)",
    "try and except": (
        "try:\n    x = ndd.flip(x)\n    raise KeyError\nexcept KeyError:\n    x = ndd.flip(x)"
    ),
    "a context manager": "with ndd.EvalContext(num_threads=1):\n    x = ndd.flip(x)",
    "operators of Python": "x = ndd.cast(x * 2 + 1, dtype=ndd.uint8)",
    "in-place operators": "x = ndd.cast(x, dtype=ndd.int32)\nx += 3",
    "an operand from before": (
        "mean = ndd.tensor([1, 2, 3])\n---\nx = ndd.cast(x + mean, dtype=ndd.uint8)"
    ),
    "an operand of NumPy": "x = ndd.cast(x + np.full(3, step), dtype=ndd.int32)",
    "an operand of torch": "import torch\n---\nx = ndd.cast(x + torch.ones(3), dtype=ndd.int32)",
    "an argument of each sample": (
        "x = ndd.rotate(x, angle=ndd.batch([10.0, 20.0, 30.0]), keep_size=True)"
    ),
    "an argument made of the item": (
        "x = ndd.resize(x, size=[4, 5]); x = ndd.brightness(x, brightness=ndd.cast("
        "ndd.reductions.mean(x), dtype=ndd.float32) / 100)"
    ),
    "slices": "x = x.slice[1:5, :3]",
    "samples": "x = ndd.as_batch([ndd.flip(sample) for sample in x.tensors])",
    "the shape of a result": "x = ndd.resize(x, size=[x.shape[0][0] // 2, 4])",
    "a value that decides": "x = ndd.flip(x) if np.asarray(x.tensors[0]).sum() % 2 else x",
    "a result that is not used": "ndd.flip(x)",
    "a result that is kept": "kept = []\n---\nkept.append(ndd.flip(x)); x = kept[step // 2]",
    "a device": "x = ndd.flip(x, device='cpu')",
    "draws": "rng = ndd.random.RNG(1)\n---\nx = ndd.noise.gaussian(x, stddev=9.0, rng=rng)",
    "draws as arguments": (
        "rng = ndd.random.RNG(1)\n---\n"
        "x = ndd.rotate(x, angle=ndd.random.uniform(range=[0, 90], batch_size=3, rng=rng))"
    ),
    "draws of the default": "ndd.random.set_seed(1)\n---\nx = ndd.noise.gaussian(x, stddev=9.0)",
    "draws by sample": (
        "rng = ndd.random.RNG(1, by='sample')\n---\nx = ndd.noise.gaussian(x, stddev=9.0, rng=rng)"
    ),
    "two RNGs": (
        "a, b = ndd.random.RNG(1), ndd.random.RNG(2)\n---\n"
        "x = ndd.noise.gaussian(ndd.noise.gaussian(x, rng=a), stddev=9.0, rng=b)"
    ),
}

# What DALI raises for in capture mode.
REFUSED = {
    "draws that change in number": (
        "rng = ndd.random.RNG(1)\n---\nfor _ in range(step % 3):\n    rng()\n"
        "x = ndd.noise.gaussian(x, stddev=9.0, rng=rng)"
    ),
    "an RNG that is advanced": (
        "rng = ndd.random.RNG(1)\n---\nx = ndd.noise.gaussian(x, rng=rng)\n"
        "if step == 3:\n    rng.advance(5)"
    ),
    "an RNG that is seeded": (
        "rng = ndd.random.RNG(1)\n---\nrng.seed = step\nx = ndd.noise.gaussian(x, rng=rng)"
    ),
    "an RNG whose state is set": (
        "rng = ndd.random.RNG(1)\nstate = rng.state\n---\nx = ndd.noise.gaussian(x, rng=rng)\n"
        "if step == 2:\n    rng.state = state"
    ),
    "an RNG that is replaced": (
        "rng = ndd.random.RNG(1)\n---\nif step == 3:\n    rng = ndd.random.RNG(4)\n"
        "x = ndd.noise.gaussian(x, rng=rng)"
    ),
    "a random operator with another batch size": (
        "rng = ndd.random.RNG(1)\n---\n"
        "drawn = ndd.random.uniform(batch_size=3 + step % 2, rng=rng)\n"
        "x = ndd.brightness(x, brightness=drawn.tensors[0])"
    ),
    "a marker that is removed": (
        "size = ndd.capture.invariant([4, 5])\n---\nif step == 3:\n    size = [4, 5]\n"
        "x = ndd.resize(x, size=size)"
    ),
    "a marked value that changes": (
        "x = ndd.resize(x, size=ndd.capture.invariant([4 + step % 2, 5]))"
    ),
    "another device": ("x = ndd.flip(x, device='gpu' if step % 2 else 'cpu').cpu()"),
    "another context": (
        "contexts = [ndd.EvalContext(num_threads=n) for n in (1, 2)]\n---\n"
        "with contexts[step % 2]:\n    x = ndd.flip(x)"
    ),
    "an error in the body": (
        "try:\n    if step == 3:\n        raise KeyError(step)\n    x = ndd.flip(x)\n"
        "except KeyError:\n    pass"
    ),
    "a call that fails now and then": (
        "try:\n    y = ndd.crop(x, crop=[99 if step == 3 else 4, 4]); y.evaluate(); x = y\n"
        "except Exception as error:\n    log(str(error).splitlines()[0])"
    ),
    "a loop inside of the loop": (
        "other = make()\n---\n"
        "for y, in other.next_epoch(batch_size=9, **options):\n    log(ndd.flip(y))"
    ),
    "another loop after a break": (
        "other = make()\n---\n"
        "for y, in other.next_epoch(batch_size=9, restart=True, **options):\n"
        "    log(ndd.flip(y))\n    break"
    ),
    "a source that is read twice": (
        "import itertools\nsource = ndd.ExternalSource(itertools.count())\n---\n"
        "x = ndd.cast(x + source() + source(), dtype=ndd.uint8)"
    ),
    "a source that is read now and then": (
        "import itertools\nsource = ndd.ExternalSource(itertools.count())\n---\n"
        "if step % 2:\n    x = ndd.cast(x + source(), dtype=ndd.uint8)"
    ),
    "a source that was read before": (
        "import itertools\nsource = ndd.ExternalSource(itertools.count())\nsource()\n---\n"
        "x = ndd.cast(x + source(), dtype=ndd.uint8)"
    ),
    "a source that is first read later": (
        "import itertools\nsource = ndd.ExternalSource(itertools.count())\n---\n"
        "if step > 2:\n    x = ndd.cast(x + source(), dtype=ndd.uint8)"
    ),
    "a checkpoint in the loop": ("x = ndd.flip(x)\nlog(str(reader.get_state()))"),
    "calls that come late": "if step > 3:\n    x = ndd.flip(x)",
    "calls that end early": "if step < 3:\n    x = ndd.flip(x)",
    "calls in another order": (
        "ops = [ndd.flip, lambda x: ndd.resize(x, size=[5, 5])]\n---\n"
        "for op in ops[:: 1 - 2 * (step % 2)]:\n    x = op(x)"
    ),
    "another mode": (
        "modes = [ndd.EvalMode.eager, ndd.EvalMode.deferred]\n---\n"
        "with modes[step % 2]:\n    x = ndd.flip(x)"
    ),
}


def logged(root, text, **options):
    """What the loop makes of each batch."""
    before, _, body = text.rpartition("---\n")
    lines = [
        "def program(make, log, **options):",
        "    reader, step = make(), -1",
        *("    " + line for line in before.splitlines()),
        "    for epoch in range(2):",
        "        for x, in reader.next_epoch(batch_size=3, **options):",
        "            step += 1",
        *("            " + line for line in body.splitlines()),
        "            log(x)",
    ]
    values = []

    def log(value):
        if isinstance(value, ndd.Batch):
            value = [(np.asarray(sample).tobytes(), sample.shape) for sample in value.tensors]
        values.append(value)

    def make():
        return ndd.readers.Numpy(file_root=root)

    scope = {**globals()}
    exec(compile(textwrap.dedent("\n".join(lines)), "<program>", "exec"), scope)
    scope["program"](make, log, **options)
    return values


@pytest.mark.filterwarnings("ignore:.*one draw of", "ignore:.*capture=True", "ignore:.*gpu")
@pytest.mark.parametrize("situation", [*FORMS, *REFUSED])
def test_situations(root, situation):
    text = (FORMS | REFUSED)[situation]
    ndd.set_run_ahead(0)
    expected = logged(root, text)
    ndd.set_run_ahead(None)
    assert len(expected) >= 2 * COUNT / 3
    assert logged(root, text) == expected
    assert logged(root, text, capture=True) == expected


@pytest.mark.parametrize("option", ["capture", "compile"])
def test_a_loop_without_operators(root, option):
    """DALI warns that it captures nothing. Here nothing is lost."""
    reader = ndd.readers.Numpy(file_root=root)
    epoch = reader.next_epoch(batch_size=3, **{option: True})
    assert len(list(epoch)) == COUNT // 3


def test_switching_between_captured_and_plain_loops(root):
    reader = ndd.readers.Numpy(file_root=root)
    seen = []
    for capture in (True, False, True, False):
        epoch = reader.next_epoch(batch_size=3, capture=capture)
        seen.append([np.array(ndd.flip(images).tensors[0]) for (images,) in epoch])
    assert all(np.array_equal(seen[0], other) for other in seen[1:])


def test_a_loop_continues_after_an_error(root):
    reader = ndd.readers.Numpy(file_root=root)
    epoch = reader.next_epoch(batch_size=3, capture=True)

    def fail():
        for (images,) in epoch:
            raise KeyError(ndd.flip(images))

    with pytest.raises(KeyError):
        fail()
    assert sum(ndd.flip(images).batch_size for (images,) in epoch) == COUNT - 3


def test_without_a_batch_size(root):
    reader = ndd.readers.Numpy(file_root=root)
    assert [ndd.flip(x).shape for (x,) in reader.next_epoch(capture=True)] == [(8, 6, 3)] * COUNT


def test_another_batch_size_after_a_reset(root):
    reader = ndd.readers.Numpy(file_root=root)
    for size in (3, 6):
        made = [ndd.flip(x).batch_size for (x,) in reader.next_epoch(batch_size=size, capture=True)]
        assert made == [size] * (COUNT // size)
        reader.reset()


@pytest.mark.parametrize("parallel", [False, True])
def test_sources_switch_between_calls_and_captured_loops(parallel):
    source = ndd.ExternalSource([[i] for i in range(6)], batch=True, parallel=parallel)
    first = source(batch_size=1)
    rest = [int((item + 1).tensors[0]) for item in source.captured(batch_size=1)]
    assert [int(first.tensors[0]), *rest] == [0, 2, 3, 4, 5, 6]


def test_two_sources_of_one_loop():
    a, b = (ndd.ExternalSource([[i] for i in range(4)], batch=True) for _ in range(2))
    found = [int((x + b(batch_size=1)).tensors[0]) for x in a.captured(batch_size=1)]
    assert found == [0, 2, 4, 6]


def test_a_captured_source_with_several_outputs():
    items = [([i, i], [10 * i, 10 * i]) for i in range(3)]
    source = ndd.ExternalSource(items, num_outputs=2, batch=True)
    found = [int((x + y).tensors[1]) for x, y in source.captured(batch_size=2)]
    assert found == [0, 11, 22]


def test_a_captured_source_checks_its_items():
    wrong = ndd.ExternalSource([[1, 2]], num_outputs=3, batch=True)
    with pytest.raises(ValueError):
        next(iter(wrong.captured(batch_size=2)))
    wrong = ndd.ExternalSource([[1, 2, 3]], batch=True)
    with pytest.raises(ValueError):
        next(iter(wrong.captured(batch_size=2)))
