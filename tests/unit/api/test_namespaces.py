"""The names that users see: in `dir()`, in `import *`, in stubs, and nothing else."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ndd
from penstock._operators.definition import OPERATORS
from penstock._public_names import NAMES

PACKAGE = Path(ndd.__file__).parent

each_namespace = pytest.mark.parametrize("module", sorted(NAMES))


def stub_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


def exported(stub: Path) -> set[str]:
    """The names that a stub exports: by PEP 484, those imported `as` themselves."""
    return {
        alias.asname
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


@each_namespace
def test_stub_has_every_public_name_and_no_other(module):
    found = importlib.import_module(module)
    assert exported(stub_of(module)) == set(dir(found)), "run `make generate`"
    assert sorted(found.__all__) == dir(found)
    for name in dir(found):
        assert getattr(found, name) is not None


PUBLIC_MODULES = sorted(
    {*NAMES} | {name for name in NAMES["penstock"].values() if name.count(".") == 1}
)


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_dir_shows_no_imports_and_nothing_private(name):
    module = importlib.import_module(name)
    assert dir(module) == sorted(module.__all__)
    internal = {"annotations", "TYPE_CHECKING", "importlib", "Any", "IntEnum", "ops"}
    assert not internal & set(dir(module))
    assert not [key for key in dir(module) if key.startswith("_")]
    assert all(hasattr(module, key) for key in dir(module))


def test_dir_of_readers_shows_the_readers_and_what_they_give():
    others = {"Reader", "ReaderState", "SampleError", "UnfinishedEpochWarning"}
    readers = set(dir(ndd.readers)) - others
    assert {"COCO", "File", "Webdataset"} <= readers
    assert all(issubclass(getattr(ndd.readers, name), ndd.readers.Reader) for name in readers)


def test_dir_is_the_same_before_and_after_names_are_used():
    program = """
import penstock as ndd
before = dir(ndd), dir(ndd.math)
ndd.flip, ndd.math.sqrt, ndd.readers.File, ndd.Batch
assert (dir(ndd), dir(ndd.math)) == before
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_the_package_loads_next_to_nothing():
    program = """
import sys
import penstock
heavy = {"numpy", "penstock._core", "penstock.ops", "penstock.readers"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_operator_is_in_the_namespaces_of_its_definition():
    for name, operator in OPERATORS.items():
        namespace, _, last = name.rpartition(".")
        for place in {namespace, operator.options.also_in or namespace}:
            module = importlib.import_module(f"penstock.{place}".rstrip("."))
            found = getattr(module, last)
            while found is not operator.function:
                # Under a former name, it is wrapped in what warns of that.
                found = found.__wrapped__


def test_import_star_takes_the_public_names():
    scope: dict[str, object] = {}
    exec("from penstock.reductions import *", scope)
    assert scope.keys() - {"__builtins__"} == set(dir(ndd.reductions))


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("penstock", "resise", "resize"),
        ("penstock.math", "sqr", "sqrt"),
        ("penstock.decoders", "imag", "image"),
        ("penstock.io.file", "reed", "read"),
        ("penstock.experimental.decoders", "image_slize", "image_slice"),
        ("penstock.types", "INTERP_CUBI", "INTERP_CUBIC"),
        ("penstock.readers", "Webdatase", "Webdataset"),
        ("penstock.tfrecord", "FixedLenFeatur", "FixedLenFeature"),
        ("penstock.checkpoint", "Checkpoin", "Checkpoint"),
    ],
)
def test_a_misspelt_name_gets_a_hint(module, name, meant):
    found = importlib.import_module(module)
    with pytest.raises(AttributeError, match=f"'{module}' has no attribute '{name}'.*'{meant}'"):
        getattr(found, name)
