"""Make the pages of a hand-off again from its card and its report, and compare: a page may say nothing else.

Pages are what people read, and each is a function of ``model-card.json`` or ``report.json``; the contract that programs
read is one of ``schema.yaml`` and the manifest. Card and report are held against these two, the words in the report too
(``check_words``). The figures in the report, and what an account had spent before, rest on the signer. The manifest
says by which layout its pages were made. A layout that this version does not have cannot be made again: then neither
pages nor contract were compared, which is said and is no fault.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain
from dpmodels.hand_off.card import describe
from dpmodels.hand_off.check_maker import is_later
from dpmodels.hand_off.check_report import says_else
from dpmodels.hand_off.check_words import impossible_figures, is_headline, strange_words
from dpmodels.hand_off.expected import expected_checks, kind_of
from dpmodels.hand_off.manifest import CARD, CONTRACT, MOST_FAULTS, PAGES, Manifest, printable
from dpmodels.hand_off.odcs import has_contract, render_contract
from dpmodels.hand_off.page_places import first_difference, first_key
from dpmodels.limits import LARGEST_CARD, LARGEST_FACTS, LARGEST_PAGE, LARGEST_REPORT, read_json
from dpmodels.releases.contract import Contract

REPORT = "report.json"
REPORT_PAGE = "report.html"
CHECKS = "checks.html"
COUNT = re.compile(r'(?<= class="number">)[0-9,\u202f]+(?=</td>)')
"""How many rows were checked against a rule, and how many failed, which no other file says."""
PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]*")
OWN_WORDS = ("meaning", "accounts", "above", "books")
"""Parts of a card that are not made again: the first is compared within rounding, the others are the signer's word."""


def render_pages(card: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, str]:
    """Return the pages of a hand-off by their names, made of the card's and the report's facts as they were read."""
    return {name: render() for name, render in _renders(card, report)}


def compare_pages(folder: Path, manifest: Manifest, contract: Contract) -> tuple[list[str], str]:
    """Return what is wrong with the pages of a hand-off that has no other fault, or why they were not compared."""
    from dpmodels.pages.page import LAYOUT

    if not manifest.has_price:
        return [], "the pages of what has no price are made no more, and were not compared; they have their hashes"
    if manifest.layout is not None and manifest.layout > LAYOUT and not is_later(manifest.nacre_version):
        return [f"no version up to nacre {manifest.nacre_version} lays pages out by layout {manifest.layout}"], ""
    if manifest.layout != LAYOUT:
        maker = f"nacre {manifest.nacre_version}" if manifest.layout is None else f"layout {manifest.layout}"
        return [], f"the pages were laid out by {maker}, and were not compared with the figures; they have their hashes"
    try:
        report, card = read_json(_read(folder, REPORT, LARGEST_REPORT)), read_json(_read(folder, CARD, LARGEST_CARD))
    except (ArtifactError, OSError):
        return [], ""  # the check of all files reports that one is missing
    except ValueError:
        report = card = None
    if not (_is_short(report) and _is_short(card)):
        return [f"{REPORT} or {CARD} is not as nacre writes it, or is larger than any is"], ""
    try:
        kind = kind_of(manifest, contract)
        if strange := set(strange_words(report, kind, contract, manifest)):
            return [says_else(strange)], ""
        if wrong := sorted({printable(one) for one in impossible_figures(report, kind, contract)}):
            return [f"{REPORT} has figures that no release has: {', '.join(wrong[:MOST_FAULTS])}"], ""
        if not is_headline(report, kind, contract):
            return [says_else(["headline"])], ""
        if fault := _differs(manifest, contract, card, report):
            return [fault], ""
        others = [*_other_pages(folder, card, report), *_other_checks(folder, manifest, contract, report)]
        return [*others, *_other_contract(folder, manifest, contract)], ""
    except Exception:  # facts of any shape may lie there; whatever they break in a renderer, they are not ours
        return [f"{REPORT} or {CARD} is not as nacre writes it: no page can be made of it"], ""


def _is_short(facts: Any) -> bool:
    """Tell whether facts but for their sheet of images are short enough to make a page of them."""
    if not isinstance(facts, dict):
        return False
    sheet = facts.get("sample_sheet")
    rest = {**facts, "sample_sheet": ""} if isinstance(sheet, str) and PICTURE.fullmatch(sheet) else facts
    return len(json.dumps(rest)) <= LARGEST_FACTS


def _renders(card: Mapping[str, Any], report: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], str]]]:
    from dpmodels.pages.card import render_card, render_sheet, render_statement
    from dpmodels.pages.report import render

    yield REPORT_PAGE, lambda: render(report, card)
    for name, page in zip(PAGES, (render_card, render_statement, render_sheet), strict=True):
        yield name, lambda page=page: page(card)  # type: ignore[misc]


def _other_pages(folder: Path, card: Mapping[str, Any], report: Mapping[str, Any]) -> Iterator[str]:
    """Name every page that is not what the facts make."""
    for name, render in _renders(card, report):
        page, written = render().encode(), _read(folder, name, LARGEST_PAGE)
        if len(page) > LARGEST_PAGE or written != page:
            of = f"{REPORT if name == REPORT_PAGE else CARD}, of which it is made"
            yield f"{name} says something else than {of}, {_place(page, written)}"


def _place(page: bytes, written: bytes) -> str:
    return first_difference(page.decode(), written.decode(errors="replace"))


def places_of_changes(
    folder: Path, manifest: Manifest, changed: Collection[str], contract: Contract | None = None
) -> dict[str, str]:
    """Say where pages that are not of their hashes were changed, by their names, as far as they can be made again.

    That is where this version has their layout, and card and report are the ones that the manifest names. Where card or
    report was changed, a page that is as it was made says where its facts are others.
    """
    from dpmodels.pages.page import LAYOUT

    if manifest.layout != LAYOUT or not {REPORT, CARD, REPORT_PAGE, *PAGES} & {*changed}:
        return {}
    try:
        report, card = read_json(_read(folder, REPORT, LARGEST_REPORT)), read_json(_read(folder, CARD, LARGEST_CARD))
        if not (_is_short(report) and _is_short(card)):
            return {}
        if {REPORT, CARD} & {*changed}:
            keys = _keys_of_facts(manifest, contract, card, report) if contract else ""
            places = _places_of_facts(folder, card, report, changed)
            return {name: f"{keys}, {place}" if keys else place for name, place in places}
        renders = [(name, render) for name, render in _renders(card, report) if name in changed]
        return {name: _place(render().encode(), _read(folder, name, LARGEST_PAGE)) for name, render in renders}
    except Exception:  # facts of any shape may lie there, as in ``compare_pages``
        return {}


def _keys_of_facts(manifest: Manifest, contract: Contract, card: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Say which fact of the card is the first that manifest, contract and report do not make; empty where all are."""
    facts = _described(manifest, contract, report)
    mine = {name: fact for name, fact in card.items() if name not in OWN_WORDS}
    key = first_key({name: fact for name, fact in facts.items() if name not in OWN_WORDS}, mine)
    return f"first, of what both files say, in {key} of {CARD}" if key else ""


def _places_of_facts(
    folder: Path, card: Mapping[str, Any], report: Mapping[str, Any], changed: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield card and report, as far as they were changed, with where the first whole page says other than they do."""
    seen = set[str]()
    for name, render in _renders(card, report):
        of = REPORT if name == REPORT_PAGE and REPORT in changed else CARD
        if of in changed and name not in changed and of not in seen:
            page, written = render().encode(), _read(folder, name, LARGEST_PAGE)
            if page != written:
                seen.add(of)
                yield of, f"and {name}, which is as it was, says something else, {_place(page, written)}"


def _other_contract(folder: Path, manifest: Manifest, contract: Contract) -> Iterator[str]:
    """Name the contract if it is not what schema and manifest make; earlier versions handed none over."""
    if CONTRACT not in manifest.artifacts or not has_contract(contract):
        return
    if _read(folder, CONTRACT, LARGEST_CARD) != render_contract(manifest, contract).encode():
        yield f"{CONTRACT} says something else than the manifest and schema.yaml, of which it is made"


def _other_checks(folder: Path, manifest: Manifest, contract: Contract, report: Mapping[str, Any]) -> Iterator[str]:
    """Name the page of the checks if it differs from that of the contract's rules, all kept, in more than counts."""
    from dpmodels.pages.checks import render_checks

    if "gate" not in report:
        return
    if CHECKS not in manifest.artifacts:
        yield f"{CHECKS} is missing, the page of the checks that {REPORT} names"
        return
    written = _read(folder, CHECKS, LARGEST_PAGE).decode(errors="replace")
    expected = render_checks(expected_checks(contract, report["synthetic_rows"]))
    ours, theirs = (COUNT.sub("", page) for page in (expected, written))
    if ours != theirs:
        yield f"{CHECKS} says something else than that all rules of schema.yaml hold, {first_difference(ours, theirs)}"


def _described(manifest: Manifest, contract: Contract, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that manifest, contract and report make, as JSON has them."""
    from dpmodels.pages.glance import weakest

    facts: dict[str, Any] = json.loads(json.dumps(describe(manifest, contract, report, [], [], weakest(report))))
    return facts


def _differs(manifest: Manifest, contract: Contract, card: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Say how the facts differ from those that manifest, contract and report make; empty if not."""
    facts = _described(manifest, contract, report)
    if card.keys() != facts.keys() or any(card[name] != facts[name] for name in facts.keys() - set(OWN_WORDS)):
        return f"{CARD} says something else than the manifest, schema.yaml and {REPORT}, of which it is made"
    return ""


def _read(folder: Path, name: str, most: int) -> bytes:
    with open_plain(folder, folder / name) as file:
        return file.read(most + 1)
