"""What the site of docs/ needs beyond mkdocs.yml: patterns of pages, links that leave docs/, the page of docstrings."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
REFERENCE = """# The Python interface

Made from the docstrings; [python.md](python.md) is the guide.

::: nacre
"""


def on_config(config: Any) -> Any:
    """Write out the patterns of the navigation, in the order of names."""
    config["nav"] = expanded(config["nav"], Path(config["docs_dir"]))
    return config


def expanded(nav: list[Any], docs: Path) -> list[Any]:
    """Return a navigation whose patterns are the pages that they match."""
    pages: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            pages.append({t: expanded(e, docs) if isinstance(e, list) else e for t, e in entry.items()})
        elif "*" in entry:
            pages += [str(page.relative_to(docs)) for page in sorted(docs.glob(entry))]
        else:
            pages.append(entry)
    return pages


def on_files(files: Any, config: Any) -> Any:
    """Add the page that is made from docstrings."""
    files.append(File.generated(config, "reference.md", content=REFERENCE))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Lead links to folders to a page of theirs; links that leave docs/ to the code host, or to nowhere without one."""
    docs, here = Path(config["docs_dir"]), Path(page.file.src_path).parent
    host = (config["repo_url"] or "").rstrip("/")

    def mended(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        if re.match(r"[a-z]+:|#", target):
            return link[0]
        path, _, anchor = target.partition("#")
        place = (docs / here / path).resolve()
        if not place.is_relative_to(docs):
            outside = place.relative_to(docs.parent).as_posix()
            return f"[{text}]({host}/blob/main/{outside}{'#' * bool(anchor)}{anchor})" if host else text
        if place.is_dir():
            first = next((name for name in ("index.md", "report.html") if (place / name).exists()), None)
            return f"[{text}]({path.rstrip('/')}/{first or sorted(place.glob('*.md'))[0].name})"
        return link[0]

    return LINK.sub(mended, markdown)
