"""Examples of docstrings run as they are written, and DALI has all that is public."""

import doctest
import re
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import penstock as ndd

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"

# Old names, which DALI has under the present ones.
NOT_LISTED = {"experimental"}


def public(owner, prefix=""):
    """The names that users see and what they are, those of namespaces included."""
    for name in getattr(owner, "__all__", dir(owner)):
        if name.startswith("_") or name in NOT_LISTED:
            continue
        found = getattr(owner, name)
        if isinstance(found, ModuleType):
            yield from public(found, f"{prefix}{name}.")
        else:
            yield prefix + name, found


PUBLIC = dict(public(ndd))


def documented():
    """Functions, classes and what is in those."""
    for name, found in PUBLIC.items():
        if isinstance(found, type | FunctionType):
            yield name, found
        if isinstance(found, type):
            for key, member in vars(found).items():
                if isinstance(member, FunctionType | property | staticmethod):
                    yield f"{name}.{key}", member


EXAMPLES = {name: thing.__doc__ for name, thing in documented() if ">>> " in (thing.__doc__ or "")}


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_after_the_import_alone(name, tmp_path, monkeypatch):
    # A folder where an example may write files, and finds those of the repository.
    (tmp_path / "tests").symlink_to(REFERENCE.parents[1] / "tests")
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {"ndd": ndd}, name, None, 0)
    output = []
    doctest.DocTestRunner().run(test, out=output.append)
    assert not output, "".join(output)


def test_the_reference_has_every_public_name():
    index = (REFERENCE / "README.md").read_text()
    listed = set(re.findall(r"`([\w.]+)`", index))
    for namespace in ("types", "tfrecord"):  # constants: their pages list them, under their enums
        page = (REFERENCE / f"{namespace}.md").read_text()
        found = re.findall(r"`([\w.]+)`", page)
        listed.update(f"{namespace}.{name.removeprefix(f'{namespace}.')}" for name in found)
    assert PUBLIC.keys() - listed == set()


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: page.stem)
def test_every_page_has_an_example_and_its_links_lead_somewhere(page):
    text = page.read_text()
    assert ">>> " in text or "import penstock as ndd" in text
    for link in re.findall(r"\]\(([\w.]+\.md)\)", text):
        assert (REFERENCE / link).exists()
