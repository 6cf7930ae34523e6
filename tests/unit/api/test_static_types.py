"""What type checkers see: one run of mypy over a program that asks for the types of calls."""

import re
import sys
from pathlib import Path

import pytest

import penstock

api = pytest.importorskip("mypy.api")

pytestmark = pytest.mark.heavy

PACKAGES = Path(penstock.__file__).parents[1]

FILE = "penstock.readers.file.File"
TENSOR, BATCH = "penstock._values.tensor.Tensor", "penstock._values.batch.Batch"

EXPECTED = {
    "ndd.flip(t)": TENSOR,
    "ndd.flip(b)": BATCH,
    "ndd.flip(t, batch_size=2)": BATCH,
    "ndd.resize(b, size=[2, 2], interp_type='cubic')": BATCH,
    "ndd.math.sqrt(t)": TENSOR,
    "ndd.math.sqrt(b)": BATCH,
    "ndd.math.atan2(t, b)": BATCH,
    "ndd.math.atan2(b, t)": BATCH,
    "ndd.math.atan2(t, 1)": TENSOR,
    "ndd.slice(t, [1], b)": BATCH,
    "ndd.slice(t, start=[1], axes=[0])": TENSOR,
    "ndd.warp_affine(t, b)": BATCH,
    "ndd.cat(t, b)": BATCH,
    "ndd.cat(t, t)": TENSOR,
    "ndd.reductions.mean(b)": BATCH,
    "ndd.reductions.mean(t)": TENSOR,
    "ndd.transforms.rotation(angle=3)": TENSOR,
    "ndd.transforms.rotation(angle=3, batch_size=2)": BATCH,
    "ndd.random.uniform(range=[0, 1])": TENSOR,
    "ndd.random.uniform(range=[0, 1], batch_size=2)": BATCH,
    "ndd.random.uniform(b, range=[0, 1])": BATCH,
    "ndd.random_crop_generator(b)": f"tuple[{BATCH}, {BATCH}]",
    "ndd.random_crop_generator(t)": f"tuple[{TENSOR}, {TENSOR}]",
    "ndd.decoders.image(b)": BATCH,
    "ndd.decoders.image_crop(t, crop=[2, 2])": TENSOR,
    "ndd.experimental.decoders.image(b)": BATCH,
    "ndd.experimental.peek_image_shape(t)": TENSOR,
    "ndd.io.file.read(t)": TENSOR,
    "ndd.noise.gaussian(b)": BATCH,
    "ndd.random.RNG(1)": "penstock._state.rng.RNG",
    "ndd.float32": "penstock._values.dtype.DType",
    "ndd.types.RGB": "penstock.types.DALIImageType",
    "ndd.tensor([1])": TENSOR,
    "ndd.__version__": "str",
    "ndd.imread('a.jpg')": TENSOR,
    "t + 1": TENSOR,
    "1 + t": TENSOR,
    "t * t": TENSOR,
    "t + b": BATCH,
    "b * 2": BATCH,
    "2 * b": BATCH,
    "b + t": BATCH,
    "t == 1": TENSOR,
    "b < 3": BATCH,
    "-t": TENSOR,
    "~b": BATCH,
    "abs(b)": BATCH,
    "t[1:]": TENSOR,
    "b.slice[0]": BATCH,
    "b.tensors[0]": TENSOR,
    "b.tensors[1:]": BATCH,
    "b.select(0)": TENSOR,
    "list(b)": f"list[{TENSOR}]",
    "t.cpu()": TENSOR,
    "b.gpu()": BATCH,
    "t.shape": "tuple[int, ...]",
    "next(files.next_epoch(batch_size=4))": f"tuple[{BATCH}, ...]",
    "next(files.next_epoch())": f"tuple[{TENSOR} | {BATCH}, ...]",
    "next(records.next_epoch(4))": f"dict[str, {BATCH}]",
    "next(records.next_epoch())['x']": f"{TENSOR} | {BATCH}",
    "files(batch_size=4)": f"tuple[{BATCH}, ...]",
    "files()": f"tuple[{TENSOR}, ...]",
    "files[3]": f"tuple[{TENSOR}, ...]",
    "records(batch_size=4)['x']": BATCH,
    "records[3]['x']": TENSOR,
    "ndd.readers.File(file_root='x', last_batch='partial', shuffle='global')": FILE,
    "ndd.readers.File(file_root='x', on_error='skip')": FILE,
    "ndd.decoders.image(b, on_error='substitute')": BATCH,
    "ndd.resize(b, interp_type='INTERP_CUBIC')": BATCH,
    "ndd.resize(b, interp_type=ndd.types.INTERP_CUBIC)": BATCH,
    "ndd.slice(b, out_of_bounds_policy='PAD')": BATCH,
    "ndd.where(b, b, 0)": BATCH,
    "ndd.where(t, 1, b)": BATCH,
    "ndd.where(t > 0, t, 0)": TENSOR,
    "[image for image, label in files.next_epoch(batch_size=4)]": f"list[{BATCH}]",
    "(t + 1) * b - t": BATCH,
}

WRONG = {
    "ndd.resise": "attr-defined",
    "ndd.math.sqr": "attr-defined",
    "ndd.noise.gaus": "attr-defined",
    "ndd.io.fil": "attr-defined",
    "ndd.ops": "attr-defined",
    "ndd.flip(t, horizontl=1)": "call-overload",
    "ndd.readers.File(file_root='x', last_batch='partail')": "arg-type",
    "ndd.readers.COCO(shuffle='globl')": "arg-type",
    "ndd.readers.TFRecord(path='x', features={}, on_error='skp')": "arg-type",
    "ndd.readers.Numpy(out_of_bounds_policy='padd')": "arg-type",
    "ndd.readers.Webdataset(missing_component_behavior='skp')": "arg-type",
    "ndd.resize(b, interp_type='cubik')": "call-overload",
    "ndd.resize(b, mode='streched')": "call-overload",
    "ndd.slice(b, out_of_bounds_policy='padd')": "call-overload",
    "ndd.decoders.image(b, on_error='skp')": "call-overload",
    "files[3]['x']": "call-overload",
}

PROGRAM = """\
import penstock as ndd

def ask(
    t: ndd.Tensor, b: ndd.Batch, files: ndd.readers.File, records: ndd.readers.TFRecord
) -> None:
"""


@pytest.fixture(scope="module")
def mypy_notes(tmp_path_factory):
    """What mypy says of each line of the program, by the line's own text."""
    folder = tmp_path_factory.mktemp("types")
    calls = [f"reveal_type({call})" for call in EXPECTED] + [f"print({call})" for call in WRONG]
    source = PROGRAM + "".join(f"    {call}\n" for call in calls)
    program = folder / "program.py"
    program.write_text(source)
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nmypy_path = {PACKAGES}\n[mypy-torch.*]\nfollow_imports = skip\n")
    given = ["--config-file", str(config), "--cache-dir", str(folder / "cache")]
    text, errors, _ = api.run([*given, "--python-executable", sys.executable, str(program)])
    assert not errors
    lines = source.splitlines()
    found = re.findall(rf"{re.escape(program.name)}:(\d+): (.*)", text)
    return [(lines[int(number) - 1].strip(), note) for number, note in found]


@pytest.mark.parametrize("call", EXPECTED)
def test_types_are_known(call, mypy_notes):
    notes = [text for line, text in mypy_notes if line == f"reveal_type({call})"]
    types = [re.fullmatch(r'note: Revealed type is "(.*)"', text) for text in notes]
    [shown] = [match[1] if match else text for match, text in zip(types, notes, strict=True)]
    shown = re.sub(r"builtins\.|\*", "", shown)
    assert re.sub(r"Union\[(.*?), (.*?)\]", r"\1 | \2", shown) == EXPECTED[call]


@pytest.mark.parametrize("call", WRONG)
def test_mistakes_are_seen(call, mypy_notes):
    notes = [text for line, text in mypy_notes if line == f"print({call})"]
    assert any(f"[{WRONG[call]}]" in text for text in notes), notes
