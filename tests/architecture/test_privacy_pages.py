"""The pages on privacy: behind a claim stands a test, and it is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MECHANISMS = sorted((DOCS / "privacy").glob("*.md"))
OTHERS = [DOCS / f"{name}.md" for name in ("privacy", "audit", "dependencies", "read-a-manifest")]
PAGES = [*OTHERS, ROOT / "SECURITY.md", *MECHANISMS]
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
SAID = ("Unit and adjacency", "Sensitivity", "Noise", "Accountant", "What is public")


def defined(file: Path) -> set[str]:
    """Return the names of the tests in a file."""
    return set(re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE))


def anchors(file: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)", file.read_text(), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def bullets(page: Path) -> list[str]:
    """Return the bullets of a page above what it says of limits and of papers."""
    claims = re.split(r"^## (?:Limits|What the paper|Where we differ)", page.read_text(), flags=re.MULTILINE)[0]
    return [each for each in re.split(r"\n(?=- |\n|#)", claims) if each.startswith("- ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere_and_every_test_that_is_named_exists(page: Path) -> None:
    tests = 0
    for text, target, anchor in LINK.findall(page.read_text()):
        if target.startswith("http"):
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{page.name} links to {target}"
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), f"{page.name} links to {target}{anchor}"
        if text.startswith("test_") and not text.endswith(".py"):
            assert text in defined(place), f"{page.name} names {text}, which {target} does not have"
            tests += 1
    assert tests >= (3 if page in MECHANISMS else 0)


@pytest.mark.parametrize("page", MECHANISMS, ids=lambda page: page.stem)
def test_a_page_of_a_mechanism_says_all_that_it_should_with_a_test_or_a_page_behind_it(page: Path) -> None:
    text, claims = page.read_text(), bullets(page)
    for word in SAID:
        assert re.search(rf"^- \*\*(.* and )?{word}", text, re.MULTILINE | re.IGNORECASE), word
    assert "## Limits" in text and len(claims) >= len(SAID)
    for claim in claims:
        assert LINK.search(claim), f"{page.name}: {claim}"
    assert sum("[test_" in claim for claim in claims) >= len(claims) - 3


def test_every_mechanism_is_in_the_index_and_every_method_on_a_page() -> None:
    from dpmodels.methods.registry import of_kind

    index = (DOCS / "privacy.md").read_text()
    assert {f"privacy/{page.name}" for page in MECHANISMS} <= {target for _, target, _ in LINK.findall(index)}
    for method in [*of_kind("table"), "deep-candidate", "document-sketch", "federated-heads", "federated-moments"]:
        assert f"`{method.removesuffix('-ae')}`" in index, method


def test_the_page_on_manifests_quotes_the_example() -> None:
    page, manifest = (DOCS / "read-a-manifest.md").read_text(), (DOCS / "example" / "manifest.json").read_text()
    quoted = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert len(quoted) >= 6
    for block in quoted:
        assert block.rstrip() in manifest


@pytest.mark.parametrize("page", MECHANISMS, ids=lambda page: page.stem)
def test_a_page_is_one_page(page: Path) -> None:
    assert len(re.sub(r"\([^()]*\)", "", page.read_text()).split()) < 1300
