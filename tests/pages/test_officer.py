"""What an officer finds on every page: figures of several records, limits by number, what is open, and what is next."""

import json
import math
import re
from html import unescape
from pathlib import Path
from typing import Any

from dpmodels import amounts
from dpmodels.hand_off.manifest import CARD
from dpmodels.hand_off.pages import render_pages
from dpmodels.pages.asked.open_points import counts_of
from dpmodels.pages.card_words import after_at_worst
from dpmodels.pages.leaving import leaving, next_step
from tests.hand_off.make_golden import GOLDEN

FOLDER = GOLDEN / "LAYOUT-26" / "laid-out"
PAGES = ("report.html", "statement.html", "data-sheet.html", "model-card.html")


def facts(folder: Path = FOLDER) -> dict[str, Any]:
    """Return the facts of a golden card."""
    return json.loads((folder / CARD).read_text())


def said(card: dict[str, Any]) -> dict[str, str]:
    """Return what each page of a hand-off says, without tags."""
    pages = render_pages(card, json.loads((FOLDER / "report.json").read_text()))
    return {name: text_of(pages[name]) for name in PAGES}


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", page.split("</style>")[1])))


def test_the_figure_of_one_record_stands_nowhere_without_those_of_several() -> None:
    card = facts()
    epsilon = float(amounts.spent(card["hand_off"]["epsilon"]))
    two, three, five = (after_at_worst(math.exp(2 * number * epsilon)) for number in (2, 3, 5))
    for name, page in said(card).items():
        if name == "statement.html":
            assert all(f"somebody with {number} records {one} at most" in page for number, one in ((2, two), (5, five)))
        else:
            assert f"{two} with 2, {three} with 3 and {five} with 5 records" in page, name
    assert said(card)["data-sheet.html"].count("Nothing proves that a record is a person") == 1
    assert re.search(
        r"of somebody with more it is at most [\d.]+ % with 2, .* % with 5 records", said(card)["report.html"]
    )
    card["hand_off"]["unit"] = "user (patient, at most 3 rows)"
    assert not any("with 5 records" in said(card)[name] for name in ("data-sheet.html", "model-card.html"))
    assert "Nothing proves that a" not in said(card)["data-sheet.html"]


def test_a_statement_says_which_figure_to_quote_to_whom_and_why() -> None:
    card = facts()
    page = said(card)["statement.html"]
    assert page.count("To people, boards and authorities quote what a guess on a value becomes by these files (") == 1
    assert "only with proof that nobody has more than one): it follows from the price alone (ε and δ)" in page
    assert "The smaller chances in small print below hold of this release alone, and are for experts." in page
    card["meaning"]["right_guesses"] = card["meaning"]["right_guesses_of_budget"]
    assert "are for experts" not in said(card)["statement.html"]


def test_the_first_screen_of_a_report_says_that_a_record_is_no_person_and_leads_an_officer_on() -> None:
    card = facts()
    page = render_pages(card, json.loads((FOLDER / "report.json").read_text()))["report.html"]
    first = page.partition("<header>")[2].partition("</header>")[0]
    assert '<strong class="bad">Hidden is one record, not proved to be one person' in first
    assert '<a href="#officer">' in first and '<a href="statement.html">' in first
    card["hand_off"]["unit"] = "user (patient, at most 3 rows)"
    assert "Hidden is" not in said(card)["report.html"] and "For an officer: " in said(card)["report.html"]


def test_limits_have_the_same_numbers_on_statement_and_data_sheet() -> None:
    card = facts()
    card["quality"] |= {"marked": {"means": {"bad": {"dose": "not known"}}}, "not_for": ["weekdays of visit"]}
    pages = render_pages(card, json.loads((FOLDER / "report.json").read_text()))
    lists = [
        re.findall(r"(?s)<li>(.*?)</li>", pages[name].partition("<ol>")[2].partition("</ol>")[0]) for name in PAGES[1:3]
    ]
    begins = [[re.sub("☐ ", "", one).partition(": ")[0].rstrip(";.") for one in some] for some in lists]
    assert begins[0] == begins[1] and [one[:3] for one in begins[0]] == [f"{number}. " for number in range(1, 7)]
    assert "means of dose" in lists[0][4] and lists[1][4].endswith("named below;") and lists[1][5].endswith("below.")


def test_an_answer_counts_once_though_its_words_answer_another_question() -> None:
    given = {"legal_basis": "Art. 6(1)(f), Art. 9(2)(j)", "recipient": "A group in Paris; to no third country"}
    counts = counts_of(given | {"why": "DPIA 2026-11: by the board"})
    assert counts == {"all": 20, "blank": 14, "open": 0, "closed": 3, "shared": 3}


def test_what_an_account_spent_is_one_number_beside_its_cap_and_no_plain_sum_is_said_to_be_none() -> None:
    def tile(**changes: str) -> str:
        card = facts()
        card["accounts"][0] |= {"before": "0", "after": "1", "cap": "2", "remaining": "1", **changes}
        return said(card)["statement.html"].partition("budget spent")[2].partition("operator's words")[0].strip()

    board = "half used one more of this size is certain to fit. ε = 1 of 2: "
    assert tile() == f"{board}0 before this release, 1 by it; one further release of 1 at most fits"
    assert tile(after="2", remaining="0").startswith("all used no other of this size is certain to fit. ε = 2 of 2")
    assert tile(cap="4", remaining="3").startswith("a quarter used 3 more of this size are certain to fit. ")
    assert tile(cap="3").startswith("34 % used 2 more of this size are certain")
    less = ": no plain sum, as releases together cost less than the sum of their ε"
    assert tile(remaining="1.6584").endswith(f"one further release of 1.6584 at most fits{less}")
    assert tile(before="0.8", after="1.3", cap="1.3", remaining="0").endswith(f"nothing further fits{less}")
    assert tile(before="1", after="2", remaining="0").endswith("1 by it; nothing further fits")


def test_every_page_says_where_the_files_are_until_then_and_a_statement_what_to_do_and_when_to_look_again() -> None:
    pages = said(facts())
    assert all("Until then: inside, sent to nobody and not used." in page for page in pages.values())
    assert "To do: obtain what the box lists; the controller decides; an officer signs." in pages["statement.html"]
    assert "Look again on: ________, or when purpose or recipients change" in pages["statement.html"]


def test_a_check_says_yes_by_the_officer_s_key_alone_and_where_the_files_are_until_then() -> None:
    asked = "2 of 20 answers blank"
    unnamed = leaving(True, officer_named=False, was_open=asked)
    assert unnamed == (
        f"not known: who signed as an officer is not proved without --officer-key; open when signed: {asked}"
    )
    assert leaving(True, officer_named=True, was_open=asked).startswith(f"yes; open when signed: {asked}; because an")
    alone = leaving(True, officer_named=True, was_open=asked, maker_named=False)
    assert alone == (
        f"officer: yes; maker: not proved; open when signed: {asked}; leaving needs an officer's signature, which is "
        "here; that they are the maker's needs --public-key"
    )
    unsigned = leaving(True, officer_named=True, maker_named=False, maker_signed=False)
    assert unsigned.endswith(
        "that they are the maker's needs the maker's signature, which is not here, and --public-key"
    )
    assert next_step(True, officer_named=True, maker_named=False).startswith("next: get the maker's key from the maker")
    assert leaving(False, officer_named=True).startswith("not yet, because no officer signed")
    for is_signed, officer_named in ((False, False), (False, True), (True, False)):
        assert next_step(is_signed, officer_named).startswith("until then: inside, sent to nobody and not used; next: ")
    assert next_step(True, officer_named=True).startswith("next: send all files of the folder together")


def test_an_officer_reads_how_the_method_was_tested_and_by_whom() -> None:
    pages = render_pages(facts(), json.loads((FOLDER / "report.json").read_text()))
    section = text_of(pages["report.html"]).partition("For an officer")[2].partition("Was the method tested?")[2]
    assert (
        section.strip().startswith("Its authors tested it, and nobody else.") and "nacre audit does so for" in section
    )
    assert "and prove no absence" in section and "docs/audit.md" in section
    assert 'href="report.html#officer">Was the method tested?' in pages["statement.html"]
    documents = Path(__file__).parents[2] / "docs"
    assert "## Was the method tested?" in (documents / "officer.md").read_text() and (documents / "audit.md").exists()


def test_boxes_of_a_statement_have_one_meaning_and_columns_without_use_are_asked_about() -> None:
    card = facts()
    names = [one["name"] for one in card["content"]["columns"]]
    card["quality"] |= {"group_means": {}, "marked": {"by itself": {"bad": {names[0]: "not known"}}}}
    page = said(card)["statement.html"].partition("Ten questions")[0]
    assert (
        page.count("tick what the purpose needs") == 2 and "does not need" not in page and "needed for it" not in page
    )
    assert f"of {len(names)} columns, 1 has no use that holds: {names[0]}. Why is it handed over?" in page
    card["quality"]["marked"] = {"by itself": {"good": {names[0]: "2 %"}}}
    assert "no use that holds" not in said(card)["statement.html"]


def test_all_columns_of_a_limit_are_named_up_to_twelve() -> None:
    card = facts()
    card["quality"]["marked"] = {"by itself": {"bad": {f"c{number}": "not known" for number in range(12)}}}
    assert "c9, c10 and c11" in said(card)["statement.html"].partition("Ten questions")[0]


def test_a_name_of_whoever_may_only_advise_asks_who_decides() -> None:
    card = facts()
    asks = "The name says DPO, and one key signs both charge and leaving: Art. 38(6) asks who decides"
    assert asks not in said(card)["statement.html"]
    card["hand_off"]["approved"]["officer"] = "C. Martin, DPO"
    assert asks in said(card)["statement.html"]


def test_an_officer_reads_of_what_is_usual_of_known_limits_and_of_what_is_to_be_done_when_something_goes_wrong() -> (
    None
):
    card = facts()
    card["given"] = {"why": "DPIA 2026-11, as the board decided", "contact": "dpo@clinic.example"}
    report, statement = (said(card)[name] for name in PAGES[:2])
    assert "OpenDP's registry of deployments" in report and "docs/privacy.md of that version" in report
    assert "the document of that decision, which their words name" in statement
    wrong = statement.partition("If something goes wrong")[2]
    assert "tell the contact at once; the controller has 72 hours to notify a breach" in wrong
    card["given"] = {"why": "epsilon 1 is small"}
    assert "the document of that decision" not in said(card)["statement.html"]
    page = render_pages(card, json.loads((FOLDER.parent / "targeted" / "report.json").read_text()))["report.html"]
    links = re.findall(r'<a href="(#\w+)">', page.partition("<nav")[2].partition("</nav>")[0])
    assert links.index("#officer") == links.index("#use") - 1 <= 1


MARKS = {
    "by itself": {"good": {"dose": "2 %"}, "bad": {"ward": "not known"}},
    "means, totals": {"care": {"dose": "16 % if its values thin out"}},
}


def test_a_card_has_a_box_for_each_figure_that_a_purpose_may_need_beside_how_good_it_is() -> None:
    card = facts()
    card["content"]["columns"] = [{"name": name, "type": "number"} for name in ("dose", "ward")]
    card["quality"] |= {
        "marked": MARKS,
        "group_means": {"hold": ["dose by ward"], "if values thin out": ["dose by sex"]},
    }
    pages = said(card)
    table = pages["model-card.html"].partition("Which figures the purpose needs")[2].partition("How good it is")[0]
    assert "columnshares and quantilesmeans and totalsmeans by groupneeded" in table
    assert "dose✓ 2 %~ 16 % if its values thin out✓ by ward; ~ by sex (if its values thin out)☐" in table
    assert "Ticked by: ________________" in table
    card["quality"]["marked"] = MARKS | {"rate of sick = ill": {"care": {"ward": "3.1"}}}
    assert "rate of sick = ill, within points" in said(card)["model-card.html"]
    assert "ward✗ not known––☐" in table and "Figure by figure: model-card.html" in pages["statement.html"]
    card["quality"].pop("marked")
    assert "Which figures the purpose needs" not in said(card)["model-card.html"]


def test_a_card_says_who_approved_the_charge_and_what_the_cap_is() -> None:
    card = facts()
    card["hand_off"]["approved"] = {"officer": "Ward", "public_key": "00" * 32}
    card["accounts"][0] |= {"before": "0", "after": "1", "cap": "2", "remaining": "1"}
    tiles = said(card)["model-card.html"].partition("What it is for")[0]
    assert "spending approved byWard by key, for the charge" in tiles and "cap of the accountε = 2 half used" in tiles
    assert "who named no owner" in tiles
    card["hand_off"]["approved"] = card["accounts"][0]["approved"] = None
    card["books"] = [{"owner": "Dana"}]
    tiles = said(card)["model-card.html"].partition("What it is for")[0]
    assert "spending approved bynobody the account names no officer" in tiles and "answered for by Dana" in tiles


def test_the_box_holds_what_columns_and_accounts_leave_open() -> None:
    card = facts()
    card["content"] |= {"columns": [{"name": "act", "type": "categorical"}, {"name": "visits", "type": "integer"}]}
    card["content"]["ties"], card["books"] = {"act": ["visits"]}, [{"owner": ""}]
    card["given"], card["quality"]["marked"] = (
        {"special_categories": "act: health"},
        {"by itself": {"bad": {"act": "x"}}},
    )
    box = said(card)["statement.html"].partition("this is all that is open")[2]
    box = box.partition("Ten questions")[0]
    assert "of 2 columns, 1 has no use that holds: act. Why is it handed over?" in box
    assert "tied by a rule or formula of the schema to act: visits: ask whether these are declared too" in box
    assert "From whoever opened the account:☐ who answers for its cap: no owner is named" in box


def test_a_data_sheet_says_of_each_amount_without_a_mean_between_what_noise_leaves_it() -> None:
    card = facts()
    warning = (
        "Use no mean, total or 99 % quantile of it, not by group either, unless you know that its values thin out "
    )
    warning += (
        "towards the bounds: by noise alone its mean lies anywhere from 127.5 to 382.5; where they do, it is 159."
    )
    card["quality"] |= {"warnings": [f"dose: {warning}"], "avoid": {"dose": ["mean"]}, "numbers": {}, "marked": MARKS}
    sheet = said(card)["data-sheet.html"]
    open_means = (
        "Amounts whose mean noise leaves open Between what it lies by noise alone: dose 127.5 to 382.5 Use no mean"
    )
    assert open_means in sheet


def test_small_chances_say_whether_they_are_of_one_or_of_all_together() -> None:
    chances = said(facts())["statement.html"].partition("What the answers rest on")[2]
    chances = chances.partition("Small chances")[2].partition("Budget")[0]
    assert "Each is a chance for" in chances and "but for the last line, which counts all of them together." in chances
