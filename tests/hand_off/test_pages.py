"""Pages and manifest of a hand-off say what they said when they were written, or it shows."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.hand_off.card import describe
from dpmodels.hand_off.manifest import MANIFEST, own_digest, read_manifest
from dpmodels.hand_off.page_places import first_difference, first_key
from dpmodels.hand_off.pages import render_pages
from dpmodels.hand_off.signature import BY_OTHER_KEY, NOBODY, sign_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.pages.page import LAYOUT
from tests.hand_off.make_golden import GOLDEN, SHAPES
from tests.kit.manifests import facts, rewritten, write_manifest
from tests.kit.support import run_cli, write_key

LAYOUTS = (
    "LAYOUT-26",
    "LAYOUT-25",
    "LAYOUT-24",
    "LAYOUT-23",
    "LAYOUT-22",
    "LAYOUT-21",
    "LAYOUT-20",
    "LAYOUT-19",
    "LAYOUT-18",
    "LAYOUT-17",
    "LAYOUT-16",
    "LAYOUT-15",
    "LAYOUT-14",
    "LAYOUT-13",
    "LAYOUT-12",
    "LAYOUT-11",
    "LAYOUT-10",
    "LAYOUT-9",
    "LAYOUT-8",
    "LAYOUT-7",
    "FORMAT-11",
    "LAYOUT-6",
    "LAYOUT-5",
    "LAYOUT-4",
    "LAYOUT-3",
    "LAYOUT-2",
    "FORMAT-7",
)
LAID_OUT = [GOLDEN / number / name for number in LAYOUTS for name in SHAPES[number]]
NEWEST = LAID_OUT[0]
"""Of the layout that this version makes."""


@pytest.mark.parametrize("folder", LAID_OUT, ids=lambda folder: "/".join(folder.parts[-2:]))
def test_pages_of_this_layout_are_made_again_to_the_same_bytes(folder: Path) -> None:
    """When this fails, a page has changed: raise LAYOUT, and make a golden hand-off of it in a folder of its own."""
    card, report = (json.loads((folder / name).read_text()) for name in ("model-card.json", "report.json"))
    found = verify_hand_off(folder)
    assert found.faults == []
    if read_manifest(folder).layout == LAYOUT:
        assert found.notes == []
        for name, page in render_pages(card, report).items():
            assert page == (folder / name).read_text(), name
    assert max(read_manifest(each).layout or 0 for each in LAID_OUT) == LAYOUT


@pytest.mark.parametrize("page", ["statement.html", "model-card.html", "data-sheet.html", "report.html"])
def test_a_page_that_says_anything_else_is_a_fault_though_its_hash_was_mended(tmp_path: Path, page: str) -> None:
    hand_off = rewritten(NEWEST, tmp_path / "own", page, lambda content: content.replace(b"</main>", b"e = 0</main>"))
    (fault,) = verify_hand_off(hand_off).faults
    assert fault.startswith(f"{page} says something else") and "of which it is made, first under “" in fault


def test_a_page_that_was_changed_is_named_with_the_heading_and_the_state_of_the_signature(tmp_path: Path) -> None:
    hand_off = tmp_path / "own"
    shutil.copytree(NEWEST, hand_off)
    page = hand_off / "data-sheet.html"
    page.write_text(page.read_text().replace("pass nothing on", "pass it on"))
    code, out, err = run_cli("verify", hand_off, "--json")
    assert code == 1 and "data-sheet.html was changed, first under" in err and "“If something goes wrong”" in err
    assert json.loads(out)["signature"] == NOBODY and f"signature: {NOBODY}" in err
    sign_manifest(hand_off, write_key(tmp_path / "key.pem")[0])
    assert verify_hand_off(hand_off).signature_beside_faults.startswith("that of manifest.json holds, by a key")
    other = write_key(tmp_path / "other.pem")[1]
    assert verify_hand_off(hand_off, other).signature_beside_faults == BY_OTHER_KEY


@pytest.mark.parametrize(
    ("name", "page", "keys", "change"),
    [
        ("report.json", "report.html", "in quality.headline of", lambda facts: facts.update(headline="All is good.")),
        ("model-card.json", "report.html", "in hand_off.epsilon of", lambda f: f["hand_off"].update(epsilon="0.5")),
        ("report.json", "", "", lambda facts: None),  # the same facts in other bytes
        ("report.json", "", "", lambda facts: facts.clear()),
    ],
)
def test_facts_that_were_changed_are_named_with_the_place_of_a_whole_page(
    tmp_path: Path, name: str, page: str, keys: str, change: Callable[[dict[str, Any]], None]
) -> None:
    shutil.copytree(NEWEST, tmp_path / "own")
    facts = json.loads((tmp_path / "own" / name).read_text())
    change(facts)
    (tmp_path / "own" / name).write_text(json.dumps(facts))
    (fault,) = [one for one in verify_hand_off(tmp_path / "own").faults if one.startswith(f"{name} was changed")]
    place = f"and {page}, which is as it was, says something else, first "
    assert place in fault and keys in fault if page else fault == f"{name} was changed"


def test_the_first_key_that_differs_is_named_with_all_that_lead_to_it() -> None:
    facts = {"a": 1, "b": [{"c": 1, "d": {"e": 2}}]}
    for other, keys in (
        (facts, ""),
        ({**facts, "a": 2}, "a"),
        ({"a": 1, "b": [{"c": 1, "d": {"e": 3}}]}, "b.0.d.e"),
        ({"a": 1, "b": []}, "b"),
        ({**facts, "f\x1b": 0}, "f\\x1b"),
    ):
        assert first_key(facts, other) == keys


def test_where_a_page_differs_is_a_heading_and_a_row() -> None:
    page = "<html><head><title>t</title></head><body><h1>A &amp; <b>b</b></h1><p>x</p>"
    page += '<h2 id="c">C</h2><table><tr><th scope="row">r</th><td>y</td></tr></table></body></html>'
    for old, new, place in (
        ("<title>t", "<title>u", "in its head: style, title, or whatever a browser takes from there"),
        ("<p>x", "<p>z", "first under “A & b”"),
        ("<td>y", "<td>z", "first under “C”, “r”"),
        ("</html>", "</html>more", "first under “C”"),
        ("<h1>", "<h3>", "first under “A & b”"),
    ):
        assert first_difference(page, page.replace(old, new)) == place, old


def test_a_card_or_a_report_that_leaves_out_what_is_not_promised_is_a_fault(tmp_path: Path) -> None:
    def silent(content: bytes) -> bytes:
        return json.dumps(json.loads(content) | {"limits": ["All is promised."]}).encode()

    hand_off = rewritten(NEWEST, tmp_path / "own", "model-card.json", silent)
    assert any(fault.startswith("model-card.json says something else") for fault in verify_hand_off(hand_off).faults)


def test_noise_that_nobody_was_charged_for_is_not_reckoned_with(tmp_path: Path) -> None:
    def cheaper(content: bytes) -> bytes:
        report = json.loads(content)
        report["privacy"]["event"] = {"kind": "gaussian", "noise_multiplier": 1000.0, "mechanism": ""}
        return json.dumps(report).encode()

    hand_off = rewritten(NEWEST, tmp_path / "own", "report.json", cheaper)
    (fault,) = verify_hand_off(hand_off).faults
    assert fault.startswith("report.json says something else") and fault.endswith(" privacy.event")


def test_pages_of_another_layout_are_noted_and_not_compared(tmp_path: Path) -> None:
    hand_off = rewritten(NEWEST, tmp_path / "own", "statement.html", lambda content: content + b"\n")
    write_manifest(hand_off, facts(hand_off) | {"layout": LAYOUT - 1})
    found = verify_hand_off(hand_off)
    assert found.faults == [] and "were not compared" in found.notes[0]
    assert "were not compared" in verify_hand_off(GOLDEN / "FORMAT-6" / "declared").notes[0]


def test_a_bit_that_flips_anywhere_in_a_manifest_is_noticed(tmp_path: Path) -> None:
    hand_off = tmp_path / "own"
    shutil.copytree(NEWEST, hand_off)
    whole = (hand_off / MANIFEST).read_bytes()
    entries = whole.index(b'"entries"'), whole.index(b'"artifacts"')
    for at in [*range(entries[0] + 12, entries[1], 29), *range(0, len(whole), 211)]:
        flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        if flipped.split() == whole.split():
            continue
        (hand_off / MANIFEST).write_bytes(flipped)
        try:
            assert verify_hand_off(hand_off).faults, at
        except Exception as error:
            assert type(error).__name__ in ("ArtifactError", "ManifestError"), at
    assert own_digest(json.loads(whole)) == json.loads(whole)["sha256"]


def test_a_card_names_the_identifiers_that_no_two_raw_rows_share_and_no_others() -> None:
    schema, report = (NEWEST / "schema.yaml").read_text(), json.loads((NEWEST / "report.json").read_text())
    once = schema.replace("{type: identifier, keep: regenerate}", "{type: identifier, keep: regenerate, unique: true}")
    contents = [
        describe(read_manifest(NEWEST), parse(text)[0], report, [], [], {})["content"] for text in (schema, once)
    ]
    assert "unique" not in contents[0] and contents[1] == contents[0] | {"unique": ["patient"]}
