"""Hooks of MkDocs: pages made from files outside of docs/, pictures of operators, the gallery, and
a navigation with the pages of the reference.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.docs import pictures  # noqa: E402

PICTURES = ROOT / "target" / "docs" / "pictures"

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "LICENSE": "license.md",
}
"""Files of the project that are pages of the site, and their names there."""

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")

GALLERY = """---
hide: [navigation]
---

# Gallery

What operators do to a photograph or a sound; a click leads to the operator's reference. The
pictures were computed by penstock when this site was built (`tools/docs/pictures.py`). The
photographs are by danielbuechele and vultilion (CC BY 2.0), and come with scikit-learn.
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    pages = _reference(Path(config.docs_dir))
    config.nav = [{"Reference": pages} if "Reference" in entry else entry for entry in config.nav]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, name in PAGES.items():
        text = (ROOT / source).read_text()
        if source.endswith(".md"):
            text = _with_links_inside(text, name)
        else:
            text = f"```text\n{text}```\n"
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "gallery.md", content=_gallery()))
    pictures.write(PICTURES)
    for name in pictures.PICTURES:
        path = f"reference/pictures/{pictures.file_name(name)}"
        drawn = PICTURES / pictures.file_name(name)
        files.append(File.generated(config, path, abs_src_path=str(drawn)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """A page with the pictures of its operators, and links that lead to pages of the site."""
    path = page.file.src_uri
    if path.startswith("recipes/"):
        page.meta["hide"] = ["toc"]  # it would be empty; the program needs the room
    if path.startswith("reference/"):
        return re.sub(
            r"(?m)^## ([\w.]+)\n\n```python\n.*?\n```\n", _with_picture, markdown, flags=re.S
        )
    return (
        markdown if path in PAGES.values() else _with_links_inside(markdown, path, from_docs=True)
    )


def _with_picture(found: re.Match[str]) -> str:
    name = found[1]
    if name not in pictures.PICTURES:
        return found[0]
    image = f"![{name}: before and after](pictures/{pictures.file_name(name)}){{ .operator }}"
    return f"{found[0]}\n{image}\n"


def _reference(docs: Path) -> list[Any]:
    """The pages that the index of the reference lists."""
    nav: list[Any] = ["reference/README.md"]
    for line in (docs / "reference" / "README.md").read_text().splitlines():
        if line.startswith("## "):
            nav.append({line.removeprefix("## "): []})
        elif found := re.match(r"- \[(.*?)\]\((\S+?\.md)\)", line):
            [*_, section] = nav[-1].values()
            section.append({found[1]: f"reference/{found[2]}"})
    return nav


def _with_links_inside(text: str, page: str, from_docs: bool = False) -> str:
    """Links to files of the project as links of the site; those to other files as their names."""
    folder = Path("docs", page).parent if from_docs else Path()

    def replaced(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = os.path.normpath(folder / target)
        if path in PAGES:
            inside = PAGES[path]
        elif path.startswith("docs/"):
            inside = path.removeprefix("docs/")
        else:
            return found[0]
        return f"{found[1]}{os.path.relpath(inside, Path(page).parent)}{found[3]}"

    return LINK.sub(replaced, text).replace('src="docs/', 'src="')


def _gallery() -> str:
    parts = [GALLERY, '<div class="gallery" markdown>\n']
    pages = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for name in re.findall(r"(?m)^## ([\w.]+)$", page.read_text()):
            pages.setdefault(name, page.name)
    for name in pictures.PICTURES:
        anchor = name.replace(".", "")
        link = f"reference/{pages[name]}#{anchor}"
        picture = f"reference/pictures/{pictures.file_name(name)}"
        parts.append(f"[`{name}`<br>![{name}]({picture})]({link})\n")
    return "\n".join([*parts, "</div>\n"])
