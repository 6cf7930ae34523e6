"""What the documentation site is made of: pictures of operators, and links between pages."""

import re
from pathlib import Path

import pytest
from tests.calls import CALLS
from tools.docs.pictures import PICTURES, file_name, write

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    page
    for folder in (ROOT, ROOT / "docs")
    for page in (folder.glob("*.md") if folder == ROOT else folder.rglob("*.md"))
)


def test_every_operator_on_images_has_a_picture():
    visual = {name for name, row in CALLS.items() if "HWC" in row.operator.options.layouts}
    # Former names show the same as the present ones.
    visual = {name for name in visual if not name.startswith("experimental.decoders.")}
    assert visual - PICTURES.keys() == set()
    assert PICTURES.keys() - CALLS.keys() == set()


@pytest.mark.heavy
def test_pictures_can_be_drawn(tmp_path):
    pytest.importorskip("sklearn")
    write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {file_name(name) for name in PICTURES}
    assert min(path.stat().st_size for path in tmp_path.iterdir()) > 1000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text)
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


def test_the_navigation_has_every_page():
    listed = re.findall(r"[\w-]+(?:/[\w-]+)*\.md", (ROOT / "mkdocs.yml").read_text())
    there = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    missing = {page for page in there if not page.startswith("reference/")} - set(listed)
    assert missing == set(), "mkdocs.yml doesn't name them"
