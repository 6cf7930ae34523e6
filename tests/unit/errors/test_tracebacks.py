"""Tracebacks: the program's own lines and one message, in every mode."""

import os
import re
import subprocess
import sys
import traceback

import numpy as np
import pytest

import penstock as ndd
from penstock._errors import tracebacks as _traceback
from penstock._operators.own_files import is_inside

MODES = ["deferred", "eager", "sync_cpu", "sync_full"]
SYNCHRONOUS = MODES[2:]

PROGRAM = """\
import penstock as ndd
rows = ndd.batch([[1, 2], [3]])

def main():
    picked = rows.slice[1]
    print(picked.shape)

with ndd.EvalMode.{mode}:
    main()
"""

AT_THE_CALL = """\
Traceback (most recent call last):
  File "{file}", line 9, in <module>
    main()
  File "{file}", line 5, in main
    picked = rows.slice[1]
             ~~~~~~~~~~^^^
"""

AT_THE_READING = """\
Traceback (most recent call last):
  File "{file}", line 9, in <module>
    main()
  File "{file}", line 6, in main
    print(picked.shape)
          ^^^^^^^^^^^^
"""

MESSAGE = """\
penstock.errors.OutOfRangeError: slice: sample 1: index 1 is out of range for axis 0 of length 1.
  at {file}:9: main()
  at {file}:5: picked = rows.slice[1]
"""


def printed(path, mode, **environment):
    path.write_text(PROGRAM.format(mode=mode))
    run = subprocess.run(
        [sys.executable, path],
        env={**os.environ, "PENSTOCK_DEBUG": "0", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 1
    return run.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="one frame stays, and nothing is marked")
@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_fails_prints_its_own_lines_and_one_message(mode, tmp_path):
    file = tmp_path / "train.py"
    expected = (AT_THE_CALL if mode in SYNCHRONOUS else AT_THE_READING) + MESSAGE
    shown = printed(file, mode)
    if sys.version_info >= (3, 13):  # which marks fewer columns
        shown, expected = (re.sub(r"\n *[~^]+", "", text) for text in (shown, expected))
    assert shown == expected.format(file=file)


@pytest.mark.parametrize("mode", ["eager", "sync_cpu"])
def test_debugging_shows_internal_frames(mode, tmp_path):
    shown = printed(tmp_path / "train.py", mode, PENSTOCK_DEBUG="1")
    assert "penstock/_errors/faults.py" in shown
    assert shown.count("is out of range") == 1


ROWS = ndd.batch([[1, 2], [3]])
IMAGE = ndd.tensor(np.zeros((2, 3, 3), np.uint8), layout="HWC")


def broken():
    return ROWS.slice[1]


class Ours(ndd.readers.File):
    def _open(self):
        raise OSError("not today")


def raising():
    raise KeyError("mine")


MISTAKES = {
    "unknown name": lambda: ndd.resise,
    "unknown keyword": lambda: ndd.flip(IMAGE, horizontl=1),
    "too many inputs": lambda: ndd.flip(IMAGE, 1),
    "wrong argument": lambda: ndd.cast(IMAGE, dtype=3.5),
    "wrong input": lambda: ndd.flip("image.jpg"),
    "plus": lambda: ROWS + "x",
    "reflected": lambda: "x" + ROWS,
    "minus": lambda: -ndd.tensor([True]),
    "math": lambda: ndd.math.sqrt("x"),
    "tensor": lambda: ndd.tensor(object()),
    "Tensor": lambda: ndd.Tensor(object()),
    "batch": lambda: ndd.batch(3),
    "as_batch": lambda: ndd.as_batch(None),
    "Batch": lambda: ndd.Batch(3),
    "broadcast": lambda: ndd.Batch.broadcast(ROWS, 3),
    "batch[i]": lambda: ROWS[0],
    "tensors[i]": lambda: ROWS.tensors[9],
    "select": lambda: ROWS.select(9),
    "slice": lambda: ROWS.slice["x"],
    "index": lambda: IMAGE["x"],
    "bool": lambda: bool(IMAGE),
    "item": lambda: IMAGE.item(),
    "iterate": lambda: iter(ndd.tensor(1)),
    "to_device": lambda: IMAGE.to_device("tpu"),
    "asarray": lambda: np.asarray(ROWS),
    "ragged": lambda: ROWS.torch(),
    "shape": lambda: broken().shape,
    "shape of one": lambda: broken().tensors[1].shape,
    "evaluate": lambda: broken().evaluate(),
    "repr": lambda: repr(broken()),
    "to numpy": lambda: np.asarray(broken().tensors[1]),
    "imread": lambda: ndd.imread("no-such-file.jpg").evaluate(),
    "reader": lambda: ndd.readers.File(),
    "reader of a missing folder": lambda: ndd.readers.File(file_root="no-such-folder"),
    "reader of missing arrays": lambda: ndd.readers.Numpy(file_root="no-such-folder"),
    "reader's option": lambda: ndd.readers.File(file_root=".", shuffel=True),
    "reader of a user": lambda: Ours(file_root="."),
    "rng": lambda: ndd.random.RNG("x"),
    "seed": lambda: ndd.random.set_seed("x"),
    "checkpoint": lambda: ndd.checkpoint.Checkpoint().load("no-such-file"),
    "context": lambda: ndd.EvalContext(num_threads=0),
    "pool": lambda: ndd.ThreadPool(0),
    "threads": lambda: ndd.set_num_threads(0),
    "device": lambda: ndd.device("tpu"),
    "Device": lambda: ndd.Device("tpu"),
    "dtype": lambda: ndd.dtype("flaot32"),
    "stream": lambda: ndd.stream("x"),
    "prefetch": lambda: ndd.prefetch(3),
    "prefetched": lambda: next(ndd.prefetch(raising() for _ in range(1))),
    "external source": lambda: ndd.ExternalSource(raising)(),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="one frame of the package stays")
@pytest.mark.parametrize("name", MISTAKES)
def test_errors_show_no_frames_of_the_package(name):
    around = sys.exc_info()[1]  # the runner of this test may be handling an error
    with pytest.raises(Exception) as caught:
        MISTAKES[name]()
    for error in _traceback._chain(caught.value):
        frames = traceback.extract_tb(error.__traceback__)
        assert not [frame for frame in frames if is_inside(frame.filename)]
    assert caught.value.__context__ is around or caught.value.__suppress_context__
    # Another error behind it would be printed first, with the same problem.
    assert caught.value.__cause__ is None


def test_functions_of_users_stay_in_the_traceback():
    with pytest.raises(KeyError) as caught:
        ndd.ExternalSource(raising)()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "raising"


def test_an_error_being_handled_keeps_its_traceback():
    with pytest.raises(IndexError) as caught:  # noqa: PT012
        try:
            raising()
        except KeyError:
            ROWS.tensors[9]
    handled = caught.value.__context__
    assert isinstance(handled, KeyError)
    names = [frame.name for frame in traceback.extract_tb(handled.__traceback__)]
    assert names[-1] == "raising"


def test_public_methods_keep_names_documents_and_signatures():
    import inspect

    assert ndd.Batch.torch.__qualname__ == "Batch.torch"
    parameters = list(inspect.signature(ndd.Batch.torch).parameters)
    assert parameters == ["self", "copy", "pad", "fill_value", "return_lengths"]
    assert ndd.Batch.shape.__doc__ == "The shape of each sample."
    assert ndd.Tensor.__add__.__name__ == "__add__"
    with pytest.raises(TypeError, match=r"Batch\.torch\(\) got an unexpected keyword"):
        ROWS.torch(cpoy=True)
