"""Statement and card answer an officer's ten questions from the folder alone, and say what nobody declared."""

import json
import math
import re
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from scipy.special import ndtr

from dpmodels import amounts
from dpmodels.accounting.calibration import gaussian_epsilon
from dpmodels.accounting.events import GaussianEvent
from dpmodels.accounting.meaning import guesses_of_budget, in_words, probability_beyond
from dpmodels.contract.remarks import NOT_HANDED_OVER
from dpmodels.hand_off.card import _quality
from dpmodels.hand_off.manifest import CARD
from dpmodels.hand_off.pages import render_pages
from dpmodels.pages.asked.open_points import counts_of, open_of
from dpmodels.pages.asked.several import delta_of_records
from dpmodels.pages.card import render_card, render_sheet, render_statement
from dpmodels.pages.card_words import after_at_worst, beyond_of_values, cautions_of, cut
from dpmodels.pages.excluded import pale_groups, weaker_pairs
from dpmodels.pages.page import unlinked
from dpmodels.pages.report import render as render_report
from flows.demo import STATEMENT
from tests.hand_off.make_golden import GOLDEN, SHAPES

NEWEST = "LAYOUT-26"
EVERY = [GOLDEN / NEWEST / name for name in SHAPES[NEWEST]]
MADE_EARLIER = [GOLDEN / "FORMAT-5" / name for name in ("card", "card-elsewhere", "card-embedded", "card-federation")]


def text_of(page: str) -> str:
    """Return what a page says, without tags."""
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", page.split("</style>")[1])))


def facts(folder: Path = GOLDEN / NEWEST / "laid-out") -> dict[str, Any]:
    """Return the facts of a golden card."""
    return json.loads((folder / CARD).read_text())


def answer(page: str, number: int) -> str:
    """Return the answer to one of the ten questions."""
    rows = re.findall(r'<tr><th scope="row">(\d+)\. [^<]+</th><td>(.*?)<span class="more">', page, re.DOTALL)
    assert [int(one) for one, _ in rows] == list(range(1, 11))
    return unescape(rows[number - 1][1]).strip()


@pytest.mark.parametrize("folder", EVERY, ids=lambda folder: folder.name)
def test_ten_questions_are_answered_of_every_kind_and_every_link_leads_to_a_place_in_the_folder(folder: Path) -> None:
    pages = render_pages(facts(folder), json.loads((folder / "report.json").read_text()))
    links = re.findall(r'href="([^"]+)"', pages["statement.html"].split("</style>")[1])
    assert len(links) > 15 and answer(pages["statement.html"], 1)
    for link in links:
        file, _, place = link.partition("#")
        assert f'id="{place}"' in pages[file or "statement.html"], link
    said = text_of(pages["statement.html"])
    assert "docs/officer.md" not in said and said.count("Ten questions") == 1


@pytest.mark.parametrize("folder", MADE_EARLIER, ids=lambda folder: folder.name)
def test_cards_of_earlier_versions_are_answered_as_far_as_they_tell(folder: Path) -> None:
    assert "The operator declared neither" in answer(render_statement(facts(folder)), 4)
    assert answer(render_statement(facts(folder)), 7) and render_card(facts(folder))


def test_special_categories_are_the_operator_s_words_or_said_to_be_undeclared() -> None:
    card = facts()
    card["given"]["special_categories"] = "sick, dose: health"
    assert answer(render_statement(card), 4) == "The operator declares as special categories: “sick, dose: health”."
    assert "Special categories of data (GDPR, Art. 9): “sick, dose: health" in text_of(render_sheet(card))
    del card["given"]["special_categories"]
    assert answer(render_statement(card), 4).startswith(
        "The operator declared neither which columns hold special categories of data, nor that"
    )
    undeclared = "Whether any column holds special categories of data (GDPR, Art. 9) was not declared."
    assert undeclared in text_of(render_sheet(card))
    asked = "which columns hold special categories of data (Art. 9(1)), or that none does"
    assert asked in text_of(render_statement(card)).partition("Ten questions")[0]


def test_why_a_column_was_left_out_or_is_made_anew_is_said_on_every_page() -> None:
    card = facts()
    card["content"] |= {"left_out": ["name", "remarks"], "made_anew": {"regenerate": ["number"], "text": ["ward_of"]}}
    for render in (render_statement, render_sheet, render_card):
        said = text_of(render(card))
        why = "declared as identifiers: what names somebody, is free text, or is not to leave"
        assert f"Left out: name, remarks ({why}" in said
        assert "Made anew: number (numbers from 1 on; of no record, and says nothing of anybody)" in said
        assert "ward_of (the same text in every row; of no record" in said
    traced = answer(render_statement(card), 8)
    assert (
        "Left out are the columns that the schema declares identifiers: name, remarks." in traced
        and "number, ward_of" in traced
    )
    card["content"] |= {"left_out": [], "made_anew": {}}
    assert "Left out" not in text_of(render_statement(card)) and "Made anew" not in text_of(render_statement(card))


def test_how_long_the_release_is_kept_and_what_deleting_it_means_is_said() -> None:
    card = facts()
    card["given"]["release_retention"] = "Until 2031."
    said = text_of(render_statement(card))
    kept = "Declared on how long the release is kept, the noisy numbers, which lie apart: “Until 2031.”."
    assert f"{kept} The release may be deleted; then nobody can draw further rows" in said
    assert "its entries must stay for as long as the data can be measured again" in said
    assert "Declared on how long raw data are kept, in the sensitive zone: “A month.”" in said
    del card["given"]["release_retention"], card["given"]["retention"]
    said = text_of(render_statement(card))
    assert "which lie apart: nothing. The release may be deleted" in said and "sensitive zone: nothing." in said


def with_earlier(**changes: str) -> dict[str, Any]:
    """Return a card of an account that paid for two releases before, with an owner and a last day."""
    card = facts()
    charge = {"day": "2026-11-01", "run": "20261101-aa", "epsilon": "1", "delta": "0.00001"}
    earlier = [charge, charge | {"day": "2026-11-02"}]
    stood = {"before": "1.4652", "after": "2", "cap": "5", "remaining": "4", "delta": "0.00001", "charges": 2}
    card["accounts"][0] |= {**stood, "earlier": earlier, "right_guesses": 0.6, "beyond": 1e-4, **changes}
    card["books"] = [{"owner": "Ward <7>", "expires": "2099-12-31", "spent": ["0.9999", None]}]
    return card


def test_each_charge_before_stands_with_what_the_account_had_spent_after_it() -> None:
    page, card = text_of(render_statement(with_earlier())), text_of(render_card(with_earlier()))
    assert "2026-11-01 ε = 1 (spent after it: 0.9999); 2026-11-02 ε = 1," in page
    assert "(of Ward <7>)" in page and "until 2099-12-31, the account's last day" in page
    assert "spent after it" in card and "and no plain sum of their epsilons. With this one it is 2 of 5;" in card
    assert answer(render_statement(with_earlier()), 7).endswith(
        "The cap of 5 was set by whoever opened the account; it is answered for by Ward <7>."
    )
    assert answer(render_statement(facts()), 7).endswith("opened the account, who named no owner: ask.")
    assert "no plain sum" not in text_of(render_card(with_earlier(delta="0")))


def test_odds_stand_beside_the_probability_that_they_fail() -> None:
    """Where neighbors are replaced, values are one step apart, and not two."""
    card = with_earlier()
    said = text_of(render_statement(card))
    table = r"at most, but for 1 draw in [\d,]+ 45.1 % at most, but for 1 draw in 10,000 94.3 % at most, but for δ"
    assert re.search(table, said)
    assert re.search(r"1 in [\d,]+ draws of the noise odds on whether one record is there rise by more than", said)
    assert "((1 + e^ε)·δ) chance is added to it where values are asked" in said
    card["hand_off"]["adjacency"] = "replace_one"
    said = text_of(render_statement(card))
    assert "where values are asked" not in said and "odds on a value" not in said and "(δ) chance is added" in said


def test_an_approval_is_no_later_than_the_charge_which_it_was_needed_for() -> None:
    card = facts()
    card["hand_off"]["day"] = "2026-11-28"
    said = answer(render_statement(card), 6)
    assert (
        said.startswith("The charge (what making these files spent) was approved by Dana, no later than 2026-11-28")
        and "officer.sig" in said
    )
    card["hand_off"]["approved"] = card["accounts"][0]["approved"] = None
    nobody = "The charge (what making these files spent) was approved by nobody, since the account named no officer. "
    nobody += "That these files"
    assert answer(render_statement(card), 6).startswith(nobody)


def test_the_data_sheet_says_what_the_report_says_rows_are_for_and_not_for() -> None:
    card = facts()
    card["quality"].pop("drowned", None)  # of so few rows noise may leave nothing, of which the sheet says no more
    said = {"good": ["shares of age (within 5 %)"], "care": ["shares of dose"], "never": ["questions about ward"]}
    card["quality"]["uses"] = said
    sheet = text_of(render_sheet(card))
    assert "What it is good for Shares of age (within 5 %). With careShares of dose." in sheet
    assert "Nor for:questions about ward;single rows: values of one row may be impossible together" in sheet
    del card["quality"]["uses"]
    assert "Questions about the population: shares, means" in text_of(render_sheet(card))


def test_what_all_releases_tell_of_a_value_stands_beside_what_these_files_do() -> None:
    said, alone = (untagged(answer(render_statement(card), 2)) for card in (with_earlier(), facts()))
    both = r"at most [\d.]+ % of cases at most [\d.]+ % of cases at most 99.4 % of cases"
    heads = "rounded up by these files by all the account paid for if its whole cap is spent (ε = 5) What it counts"
    assert (
        "learns no more of one record than this table says. " in said and f"For whoever knows all else, {heads}" in said
    )
    assert re.search(
        rf"one record is there is won in {both} Right answers of the best attacker by ε and δ alone; "
        "a coin",
        said,
    )
    noisy = r"[\d.]+ % cases an even bet on it is won by the very noise that was drawn, for experts on this release"
    small = untagged(render_statement(with_earlier()).partition('id="guesses"')[2])
    assert re.search(rf"{noisy} alone, by these files {noisy} alone, by all the account paid for", small)
    assert "very noise" not in said
    assert re.search(r"On somebody with more records a bet is won in at most [\d.]+ % with 2, [\d.]+ % with", said)
    assert re.search(r"such as in column sick, becomes [\d.]+ % at most, but for 1 draw in [\d,]+ 85.9 % at", said)
    worst = "(nearly any, the row of 10 records, until it is proved how many a person has; 45.1 % only with proof that"
    assert said.count("authorities quote") == 1 and worst in said
    assert "The same of somebody with 10 records nearly any" in said
    least = "From about 4 records on nothing worth quoting is promised to a person: there a guess of 10 % may become 99"
    assert least in said
    for steps, number in ((4, 2), (6, 3), (10, 5)):
        assert re.search(rf"with {number} records [\d.]+ % at most .* {steps}ε, and a larger δ", said)
    assert "by all the account" not in alone and "if its whole cap is spent" in alone


def untagged(text: str) -> str:
    """Return what a part of a page says, without tags."""
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", "", text)).strip()


def test_bounds_that_are_the_data_by_their_sources_are_unchecked() -> None:
    card = facts()
    asked = f"that no bound or list of values of the {len(card['content']['columns'])} columns was read off real rows"
    box = text_of(render_statement(card)).partition("To obtain before the files leave")[2].partition("Ten questions")[0]
    assert f"{asked}: the schema names no source" in box and "Warning: Bounds" not in box
    card["content"]["sources"] = ["codebook of 2019, page 4", "the data file itself: ages", "minimum of our table"]
    said = text_of(render_statement(card))
    told = "(no column is named by “the data file itself: ages”, “minimum of our table”) are said to be taken from the"
    assert f"Warning: Bounds or lists of values {told} data: exact, unprotected and in no budget. Ask for a law" in said
    assert "of other columns was read off real rows: the schema names 3 sources" in said
    card["content"]["sources"] = ["the data file itself: maxima of age, ward and dose", "minimum of our table"]
    for page in (render_statement, render_sheet, render_card):
        assert "Bounds or lists of values of age, ward and dose, and others (no column is" in text_of(page(card))
    card["content"]["sources"] = ["codebook of 2019, page 4", "questionnaire of the survey, design of its sample"]
    said = text_of(render_statement(card))
    assert f"{asked}: the schema names 2 sources" in said and "Warning" not in said


DECLARED = {
    "purpose": "Teaching",
    "subjects": "Everybody treated in 2024",
    "special_categories": "sick: health",
    "legal_basis": "GDPR, Art. 6(1)(e) and Art. 9(2)(j)",
    "compatibility": "Not needed: the same purpose",
    "information": "Leaflet at admission",
    "minors": "None",
    "processor": "None: own staff alone",
    "recipient": "University of Ghent",
    "recipient_retention": "Until 2029-12-31",
    "license": "CC BY 4.0",
    "controller": "St. Anna Hospital",
    "contact": "privacy@st-anna.example",
    "signer": "A. Peeters",
    "why": "See the DPIA of 2026-11",
    "retention": "Until 2027-03-01",
    "release_retention": "Until 2031",
}
TRANSFER = ("the controller", "Not stated", "whether it goes to a third country, and on what ground (Art. 44 to 49)")


@pytest.mark.parametrize(
    ("name", "words", "state", "asked"),
    [
        ("legal_basis", "None claimed", "Answered with none", "the legal basis (Art. 6)"),
        ("legal_basis", "GDPR, Art. 9(2)(j): research", "Without an article of the GDPR", "the legal basis (Art. 6)"),
        ("legal_basis", "GDPR, Art. 6(1)(e)", "Not stated", "the condition for special categories of data (Art. 9(2))"),
        ("special_categories", "a: health. No condition of Art. 9 is claimed", "Answered with none", "Art. 9(2)"),
        ("license", "None claimed", "Answered with none", "the terms of re-use (may it be passed on?)"),
        ("recipient", "Whoever asks", "Without a name", "the recipient"),
        (
            "compatibility",
            "",
            "Not stated",
            "why this use fits what the data was collected for (Art. 6",
        ),
        (
            "information",
            "",
            "Not stated",
            "how the people were informed, or why not (Art. 13, 14)",
        ),
        ("compatibility", "None weighed", "Answered with none", "why this use fits what the data"),
        ("minors", "Unknown", "Answered with none", "whether children, or other vulnerable people, are among"),
        ("processor", "None", "Answered with none", "(Art. 28) (none is an answer with its reason, behind"),
        ("compatibility", "No other purpose", "Answered with none", "why this use fits what the data"),
        ("processor", "TBD", "Answered with none", "who processes the data on its behalf, by which contract (Art. 28)"),
        ("controller", "", "Not stated", "the controller (Art. 4(7))"),
        ("retention", "Three months", "Without a day", "until when raw data are kept (no day such as"),
        ("release_retention", "As long as needed", "Without a day", "until when the release is kept"),
        ("why", "The defaults, which nobody chose", "Answered with none", "why this unit and this budget"),
        ("why", "A row is a patient", "Not stated", "the impact assessment (DPIA), or why none is needed (Art. 35)"),
    ],
)
def test_each_field_that_is_open_by_its_form_is_to_be_obtained(name: str, words: str, state: str, asked: str) -> None:
    assert open_of(DECLARED) == [TRANSFER] and counts_of(DECLARED)["closed"] == 17
    card = facts()
    card["given"] = {**DECLARED, name: words}
    ((who, line),) = [(who, what) for who, lack, what in open_of(card["given"]) if lack == state and asked in what]
    box = render_statement(card).partition("Ten questions")[0].replace("&#39;", "'")
    of_person = box.partition(f"<li><strong>From {who}</strong>:")[2].partition("</ul>")[0]
    assert any(line.partition("`")[0] in one for one in of_person.split(f"{state}</strong>: ")[1:])
    ticks = of_person.split("<li>")[1:]
    assert ticks and all(one.startswith("☐ ") and '<span class="day">' in one for one in ticks)


def test_no_special_categories_need_no_condition_and_a_blank_field_is_no_answer() -> None:
    none = {**DECLARED, "special_categories": "None", "legal_basis": "GDPR, Art. 6(1)(e)"}
    assert open_of(none) == [TRANSFER]
    counts = counts_of({**DECLARED, "license": "", "recipient": "Anybody", "legal_basis": "None"})
    assert counts == {"all": 20, "blank": 3, "open": 2, "closed": 14, "shared": 1}
    abroad = {**DECLARED, "recipient": "A university in a third country, by an adequacy decision"}
    assert open_of(abroad) == []


def test_children_whom_another_answer_names_are_not_said_to_be_unstated() -> None:
    """The box said that nobody stated whether children are among the people, while answer 5 named minors."""
    for subjects, asked in (
        ("Men, minors among them", "what is done for the children"),
        ("Men", "whether children, or other vulnerable people, are"),
    ):
        card = facts()
        card["given"] = {**DECLARED, "minors": "", "subjects": subjects}
        every = [(who, what) for who, lack, what in open_of(card["given"]) if lack == "Not stated"]
        assert any(who == "whoever collected the data" and what.startswith(asked) for who, what in every)
        assert ("Not stated: “Men, minors" in text_of(render_card(card))) == ("minors" in subjects)


def test_box_and_card_have_the_same_lines_and_counts_and_mark_what_says_none() -> None:
    card = facts()
    card["given"] = {**DECLARED, "license": "None claimed", "controller": "", "retention": "Three months"}
    statement, page = text_of(render_statement(card)), text_of(render_card(card))
    assert "15 of 20 have an answer of their own" not in statement  # one more is blank
    assert "14 of 20 have an answer, by its form; 2 in the words of another; 2 say none, nobody, no" in statement
    assert (
        "Of 20 questions 14 have an answer, by its form; 2 may be answered in the words of another" in page
        and "2 are blank" in page
        and "2 are" in statement
    )
    assert "Answered with none: “None claimed”" in page and "Without a day: “Three months”" in page


def test_the_condition_of_article_9_is_not_the_legal_basis_in_general() -> None:
    card = facts()
    for given, expected in (
        ({"legal_basis": "None claimed: public"}, "\u2003"),
        ({"legal_basis": "GDPR, Art. 6(1)(e)"}, "\u2003"),
        ({"legal_basis": "Art. 6(1)(e), 9(2)(j)"}, "“Art. 6(1)(e), 9(2)(j)"),
        ({"special_categories": "a: health. No condition is claimed"}, "Answered with none: “a: health. No condition"),
    ):
        card["given"] = given
        (cell,) = re.findall(r"Art. 9\(2\)\)</th><td[^>]*>the controller</td><td[^>]*>(.*?)</td>", render_card(card))
        assert untagged(cell).startswith(expected.strip())
        (basis,) = re.findall(r"Art. 6\(1\)\)</th><td[^>]*>the controller</td><td[^>]*>(.*?)</td>", render_card(card))
        assert untagged(basis).endswith(f"“{given['legal_basis']}”" if "legal_basis" in given else "")


def test_every_page_says_once_near_its_top_that_nobody_had_approved_in_words_that_stay_true() -> None:
    for folder in EVERY:
        pages = render_pages(facts(folder), json.loads((folder / "report.json").read_text()))
        for name in ("report.html", "statement.html", "data-sheet.html", "model-card.html"):
            said = text_of(pages[name])
            assert (
                said.count("These files may be sent and used once an officer signed") == 1
                and said.index("These files may be sent and used once an officer signed") < 500
            ), name
            assert "in officer.sig, beside this page, that they may leave: nacre verify" in said


def test_each_role_has_a_line_and_no_page_calls_it_otherwise() -> None:
    pages = [text_of(render(facts())) for render in (render_statement, render_sheet, render_card)]
    said = pages[0].partition("Who is who")[2].partition("What the answers rest on")[0]
    roles = "Operator", "Maker", "Whoever opened the account", "Controller", "Recipient", "Whoever collected the data"
    assert all(f"{role} " in said for role in roles)
    assert "Officer signs by a key what may be spent, if the account names one" in said
    assert not any("whoever made" in page or "its makers" in page for page in pages)


def test_secrecy_ethics_and_objections_are_asked_of_the_controller_and_answered_by_no_option() -> None:
    said = text_of(render_statement({**facts(), "given": DECLARED}))
    box = said.partition("To obtain before the files leave")[2].partition("Ten questions")[0]
    for asked in ("professional secrecy allows this, where it binds you", "ethics board", "objected (Art. 21)"):
        assert box.count(asked) == 1


def test_pages_for_recipients_say_which_bounds_are_the_data() -> None:
    card = facts()
    card["content"]["sources"] = ["the data itself: ages"]
    for render in (render_sheet, render_card):
        said = text_of(render(card))
        assert (
            "(no column is named by “the data itself: ages”) are said to be taken from the data: exact, unpro" in said
        )
    statement = render_statement(card)
    assert "are said to be taken from the data" in answer(statement, 3) and "but for what bounds read off" in statement
    assert "but not against what bounds read off real rows give away (answer 3)" in answer(statement, 1)
    card["content"]["sources"] = ["the codebook"]
    assert "taken from the data" not in text_of(render_sheet(card)) + text_of(render_card(card))
    statement = render_statement(card)
    assert "taken from the data" not in statement and "bounds read off real rows give away" not in statement


def test_a_retention_without_a_date_is_to_be_obtained() -> None:
    card, asked = facts(), "until when recipients may keep it"
    for kept, state in (("As long as they like", "Without a day"), ("Until 2031-12-31", ""), ("", "Not stated")):
        card["given"]["recipient_retention"] = kept
        assert [lack for _, lack, what in open_of(card["given"]) if asked in what] == [state][: len(state)]
        assert (asked in text_of(render_statement(card))) == bool(state)


def test_delta_times_the_records_is_said_beside_what_it_should_be() -> None:
    card = facts()
    card["content"]["counted"] = 16_032
    card["hand_off"]["delta"] = 1e-5
    warned = (
        "Warning: δ = 1e-5 is large for about 16,032 records: their product is 0.1603, and a rule of thumb is 0.1 at"
    )
    decides = "most, which a δ of 6e-6 or less keeps. The controller decides whether it may stay."
    report = json.loads((GOLDEN / NEWEST / "laid-out" / "report.json").read_text())
    for page in (render_statement(card), re.sub("</th>", ": ", render_sheet(card)), render_card(card)):
        assert re.search(rf"{warned.replace('Warning: ', 'Warning:? ?:? ')} {decides}", text_of(page))
    assert f"{warned} {decides}" in text_of(render_report(report, card))
    assert "0.1603 records of all together, not of one, would be given away on average" in text_of(
        render_statement(card)
    )
    card["hand_off"]["delta"] = 6e-6
    said = text_of(render_statement(card))
    assert "Warning: δ" not in said and "0.09619 records of all together" in said


def test_the_statement_says_what_key_signs() -> None:
    said = untagged(render_statement(facts()))
    assert "--key KEY (a private key, as openssl genpkey -algorithm ed25519 makes it)" in said


def test_sheet_and_card_say_of_presence_and_of_values_what_the_statement_does() -> None:
    card = facts()
    card["meaning"] |= {"odds_factor": 2.718282, "right_guesses": 0.5534, "right_guesses_of_budget": 0.731}
    statement, *others = (text_of(render(card)) for render in (render_statement, render_sheet, render_card))
    bet = "even bet on whether one record is there is won in at most 73.1 % of cases"
    assert not any("55.4 %" in page for page in others)
    known = "somebody with one record who is known to be there"
    guess = f"guess of 10 % on a value of {known}, such as in column sick, becomes"
    assert bet in others[0] and f"{guess} one of 45.1 %" in others[0]
    assert (
        "55.4 % cases an even bet on it is won by the very noise that was drawn" in statement
        and "is won in" not in others[1]
    )
    assert f"{guess} 45.1 %" in statement and "a value of somebody with one record becomes" in others[1]
    tiles = re.findall(r"<dd>([\d.]+ %) <small>(?:are won )?at most", render_card(card))
    assert tiles == ["73.1 %", "23.2 %", "45.1 %"] and "at most, but for 1 draw in" in others[1]
    card["meaning"]["odds_factor"] = None
    assert "such as in column sick, may become nearly any, and" in text_of(render_sheet(card))
    assert (
        "With other values in its place (2ε). Odds rise by a factor of more than a million, which is next to no limit"
        in text_of(render_statement(card))
    )
    card["hand_off"]["adjacency"] = "replace_one"
    said = text_of(render_sheet(card))
    assert "an even bet on what is true of one record is won" in said and "known to be there" not in said


def test_before_and_after_and_the_worst_case_of_an_account_are_one_sentence_each() -> None:
    said, alone = text_of(render_statement(with_earlier())), text_of(render_statement(facts()))
    adds = "what the releases tell adds up: odds on whether one record is there moved, δ aside, by a factor of"
    assert f"{adds} at most 4.33 by all before this (ε = 1.4652), and move by a factor of at most 7.39 with it" in said
    worst = "If all of it is ever spent, odds on whether one record is there move by a factor of at most"
    assert f"{worst} 149, and a guess of 10 % becomes 94.3 % at most, but for δ." in said and said.count(worst) == 1
    for cap, after in (("10", "99.96 % at most, but for δ."), ("14", "nearly any.")):
        assert f"and a guess of 10 % becomes {after}" in text_of(render_statement(with_earlier(cap=cap)))
    assert "adds up: odds" not in alone and "By this release odds on whether one record is there move, δ" in alone
    spent = text_of(render_statement(with_earlier(remaining="0")))
    assert (
        "The account is spent, so nothing is added to that" in spent
        and "ever spent" not in spent
        and "its whole cap" not in spent
    )
    assert ", δ aside," not in text_of(render_statement(with_earlier(delta="0")))


def test_who_made_and_signed_it_is_the_operator_s_word_or_said_to_be_undeclared() -> None:
    card = facts()
    card["given"]["signer"] = "A. Peeters, data steward"
    said = text_of(render_statement(card))
    assert answer(render_statement(card), 6).endswith(
        "(Art. 38(6)). The operator declares as their maker: “A. Peeters, data steward”."
    )
    assert (
        said.count("declares as their maker") == 1
        and "and says whether the files are signed, and by" in said
        and "a declared name is no signature" in said
    )
    card["given"]["signer"] = "A. Peeters, data steward" * 5
    said = text_of(render_statement(card))
    assert "as their maker: “A. Peeters, data steward" in said and "…” (whole below)." in said
    assert f"Made by, as declared: “{card['given']['signer']}”" in said
    card["given"]["signer"] = "A. Peeters, data steward"
    assert "Made by, as declared: “A. Peeters" in text_of(render_sheet(card))
    del card["given"]["signer"]
    said = text_of(render_statement(card))
    assert answer(render_statement(card), 6).endswith("The operator does not state who made the files.")
    assert "who made the files" in said and "a declared name is no signature" not in said
    nobody = "rests on the maker, whom nobody named."
    assert nobody in answer(render_statement(card), 8) and nobody.replace("rests", "rest") in said
    asked = "From the maker:☐ which key is theirs: whether the files are signed, and by which keys, nacre verify says"
    assert asked in said
    card["given"]["signer"] = "A. Peeters"
    said = text_of(render_statement(card))
    assert said.count("on the maker, whom answer 6 names as declared.") == 2 and "nobody named" not in said
    assert asked in said and not any("signed by:" in text_of(page(card)) for page in (render_sheet, render_card))


def test_how_often_odds_on_values_rise_by_more_is_said_of_two_steps_and_is_no_delta() -> None:
    """One step is beyond with probability b; of two one is, with at most (1 + e^epsilon) b, whatever the mechanism."""
    card = facts()
    card["meaning"] |= {"odds_factor": 2.718282, "beyond": 1 / 6200}
    answered = answer(render_statement(card), 2)
    assert "23.2 % at most, but for 1 draw in 6,200</td>" in answered
    assert "45.1 % at most, but for 1 draw in 1,600</td>" in answered
    assert "one of 45.1 % at most, but for 1 draw in 1,600" in text_of(render_sheet(card))
    assert "1 in 6,200 draws of the noise odds on whether one record" in text_of(render_statement(card))
    card["meaning"]["beyond"] = 0.0
    assert not any("draw in" in text_of(render(card)) for render in (render_sheet, render_card, render_statement))


@pytest.mark.parametrize("multiplier", [1.2, 4.0, 20.0])
def test_the_bound_on_two_steps_is_above_what_gaussian_noise_gives(multiplier: float) -> None:
    epsilon, mu = gaussian_epsilon(multiplier, 1e-5), 1 / multiplier
    beyond = probability_beyond([GaussianEvent(noise_multiplier=multiplier)], epsilon)
    exact = float(ndtr(mu - epsilon / mu))  # the loss of two steps is normal with mean (2 mu)^2 / 2
    assert beyond < exact < beyond_of_values(math.exp(epsilon), beyond)


def test_whoever_signs_vouches_for_files_and_not_for_words() -> None:
    said = text_of(render_statement(facts()))
    signs = "Whoever signs states that they saw the files whose fingerprints manifest.json lists, and agree that these"
    assert f"{signs} leave; they do not vouch for the operator's words." in said


def test_what_stays_inside_is_said_with_who_reads_it_and_what_erasure_reaches() -> None:
    card = facts()
    said = text_of(render_statement(card))
    assert said.count("apart from whoever administers the machine, and backups") == 1
    assert "That a new one is made without that person, the controller must see to; of everybody else" in said
    assert "Some of its numbers are printed in report.html." in said
    assert "Rows handed over cannot be called back, and those drawn later rest on that person's data" in said
    assert "all that is charged to the same account" in said
    del card["quality"]["farthest_column"]
    assert "printed in report.html" not in text_of(render_statement(card))


def test_whether_the_unit_may_be_a_patient_is_said_of_each_unit() -> None:
    card = facts()
    alone = "if the unit is the patient: here it is a record, so not without proof that each patient has one"
    assert f"{alone}. The folder can show" in text_of(render_statement(card))
    card["content"]["unique"] = ["patient"]
    assert (
        f"{alone}. By the schema no two raw rows have the same patient: that is the proof if it names every row's"
        in (text_of(render_statement(card)))
    )
    for unit, said in (
        ("user (patient, at most 3 rows)", "a user with all"),
        ("sentence of a document", "a sentence, so"),
    ):
        card["hand_off"]["unit"] = unit
        assert f"the patient: here it is {said}" in text_of(render_statement(card))


def test_the_terms_of_a_license_are_the_operator_s_words_and_allow_nothing_by_themselves() -> None:
    card = facts()
    passed_on = "If you pass it onWhere the terms allow that it is passed on, all files go together. What the operator "
    passed_on += "says of a license is above; no text of one is in this folder. nacre verify"
    assert passed_on in text_of(render_sheet(card))
    card["given"]["license"] = "None claimed: an example"
    assert "by its words there is none: ask the contact first. nacre verify" in text_of(render_sheet(card))
    del card["given"]["license"]
    assert "The operator stated no license: ask the contact first. nacre verify" in text_of(render_sheet(card))


def test_the_demo_leaves_out_what_has_no_answer() -> None:
    assert not {"signer", "controller"} & STATEMENT.keys()
    assert not [words for words in STATEMENT.values() if words.startswith(("Nobody", "None is needed"))]
    assert all(cut(words) == words for words in STATEMENT.values())


def test_what_concerns_europe_and_what_concerns_health_data_in_the_united_states_stand_apart() -> None:
    page = render_statement(facts())
    rows = re.findall(r'<th scope="row">([^<]*)</th><td>(.*?)</td></tr>', page, re.DOTALL)
    europe = page.partition('<h2 id="assessment">')[2].partition("<h2>")[0]
    assert "GDPR (EU, UK), or Regulation (EU) 2018/1725" in europe and "recital 26" in europe and "CFR" not in europe
    (said,) = [said for title, said in rows if "45 CFR" in said and title == "Under HIPAA (US)"]
    assert said.startswith("Only if the data are protected health information: ")


def test_the_first_lines_of_a_statement_say_what_was_promised_who_approved_and_what_is_left() -> None:
    def tiles(card: dict[str, Any]) -> dict[str, str]:
        box = render_statement(card).partition('<dl class="facts">')[2].partition("</dl>")[0]
        return {name: re.sub("<[^>]+>", "", said) for name, said in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", box)}

    card = facts()
    whole = tiles(card)
    assert whole["promised"].startswith("ε = ") and "δ = " in whole["promised"] and whole["hidden"]
    assert whole["spending approved"] == ("yes by an officer's key" if card["hand_off"]["approved"] else "no")
    words = (
        "13 of 20 have an answer, by its form; 1 in the words of another; 4 say none, nobody, no day "
        "or no article; 2 are blank; "
    )
    assert whole["operator's words"] == f"{words}nobody checked them"
    assert (
        re.match(r"[\w %]+ used .* certain to fit\. ε = ", whole["budget spent"])
        and f" of {cap_of(card)}: 0 before this release, " in whole["budget spent"]
    )
    assert whole["hidden"] == "one record not proved to be one person"
    card["given"], card["accounts"] = {}, []
    nothing = tiles(card)
    assert (
        nothing["operator's words"] == "0 of 20 have an answer, by its form; 20 are blank; nobody checked them"
        and nothing["budget spent"] == "not known here"
    )
    card["hand_off"]["approved"] = None
    assert tiles(card)["spending approved"] == "not known here"


def cap_of(card: dict[str, Any]) -> str:
    return str(Decimal(card["accounts"][0]["cap"]).normalize())


def test_what_a_report_in_a_hand_off_says_to_an_officer_and_one_alone_does_not() -> None:
    card, report = facts(), json.loads((GOLDEN / NEWEST / "laid-out" / "report.json").read_text())
    card["content"]["sources"] = ["the data itself: ages"]
    card["hand_off"]["day"] = "2026-11-28"
    page, alone = render_report(report, card), render_report(report)
    said = text_of(page).partition("For an officer")[2].partition("The budget, in plain words")[0]
    assert (
        "These files may be sent and used once an officer signed" not in text_of(alone)
        and "approved by Dana, no later than 2026" in said
    )
    assert "Warning: Bounds or lists of values (no column is named by “the data itself: ages”) are said to be" in said
    links = re.findall(r'href="([^"#]+)"', page.partition("</style>")[2])
    assert links == ["statement.html", "statement.html", "data-sheet.html", "model-card.html"]
    assert "For an officer" not in alone and not re.findall(r'href="[^"#]+"', alone.partition("</style>")[2])
    assert 'href="statement' not in unlinked(page) and ">statement.html" not in unlinked(page)
    assert "statement.html (hard limits to compare with the purpose, what protects" in unlinked(
        page
    ) and 'href="#budget"' in unlinked(page)


@pytest.mark.parametrize(("delta", "warned"), [(1e-3, True), (1e-5, True), (1e-7, False)])
def test_a_delta_that_is_not_far_below_one_over_the_released_records_is_warned_of(delta: float, warned: bool) -> None:
    report = json.loads((GOLDEN / NEWEST / "laid-out" / "report.json").read_text())
    report["released_records"], report["privacy"]["delta"] = 16_032.4, delta
    said = text_of(render_report(report)).partition("The budget, in plain words")[2]
    assert ("Warning: delta is not far below one over the records. A noisy count has about 16,032 records" in said) == (
        warned
    )
    report["privacy"]["unit"] = "user (patient, at most 3 rows)"
    assert "far below one over" not in text_of(render_report(report))


def test_groups_that_no_rate_counts_are_named_on_the_data_sheet_and_weaker_pairs_in_the_report() -> None:
    report = json.loads((GOLDEN / NEWEST / "targeted" / "report.json").read_text())
    groups = {"column": 0, "labels": [["0 to 5"], ["6"], ["exactly 0", "null"]], "share": [0.5, 0.47, 0.03]}
    rates = {"target": 1, "columns": [groups | {"within": [0.01, 0.01, 0.3]}]}
    columns = [{"name": "age", "ordered": True}, {"name": "sick", "ordered": False}]
    assert pale_groups({"columns": columns, "rates": rates}) == {"age": ["exactly 0 or null"]}
    card = facts(GOLDEN / NEWEST / "targeted")
    card["quality"]["pale"] = {"age": ["0 to 5", "null"]}
    named = "which have few rows or are less sure (pale in the report): age (0 to 5; null)."
    assert named in text_of(render_sheet(card))
    listed = report["pairs"]["distances"]
    pair = " with ".join(report["columns"][place]["name"] for place in listed[0][:2])
    listed[0][6:] = [0.9, 0.1, 0.01, 0.02]  # as released, in the rows, by noise on average, and in one of twenty
    assert weaker_pairs(report)[0] == pair
    listed[0][6:] = [0.9, 0.9, 0.01, 0.02]
    assert pair not in weaker_pairs(report)
    listed[0][6:] = [0.9, 0.1, 0.01, 0.02]
    assert f"weaker in these rows than as released: {pair}" in text_of(render_report(report))


def test_a_statement_says_what_several_records_of_one_person_mean() -> None:
    card = facts()
    said = text_of(render_statement(card))
    epsilon, delta = float(card["hand_off"]["epsilon"]), card["hand_off"]["delta"]
    wins = [
        in_words(guesses_of_budget(number * epsilon, delta_of_records(epsilon, delta, number))) for number in (2, 3, 5)
    ]
    asked = "On somebody with more records a bet is won in at most"
    assert f"{asked} {wins[0]} with 2, {wins[1]} with 3 and {wins[2]} with 5." in said
    epsilon = float(amounts.spent(card["hand_off"]["epsilon"]))
    for number in (2, 3, 5):
        after = after_at_worst(math.exp(2 * number * epsilon))
        assert f"The same of somebody with {number} records {after} at most" in said
    assert "the most unusual record too, and not for a person with several" in said
    card["hand_off"]["unit"] = "user (patient, at most 3 rows)"
    assert "with 2 records" not in (said := text_of(render_statement(card))) and asked not in said
    assert "nothing worth quoting" not in said
    assert "what a guess on a value becomes by these files (" in text_of(render_statement(card))


@pytest.mark.parametrize("folder", EVERY, ids=lambda folder: folder.name)
def test_each_answer_reads_as_whole_sentences_by_itself(folder: Path) -> None:
    for given in ({}, DECLARED):
        page = render_statement({**facts(folder), "given": given})
        for number in range(1, 11):
            text = untagged(answer(page, number).partition("<table")[0])
            assert re.match(r"[A-Z]", text) and text.endswith((".", "”.")), text
            for sentence in re.split(r"(?<=[a-z)”]\.) (?=[A-Z])", text):
                assert re.search(VERB, sentence), sentence


VERB = (
    r"\b(is|are|was|were|has|hides?|guards?|learns|declare[sd]?|states?|stands?|know|guesses|says?|spent|fits?|becomes|"
    r"rests?|speaks?|may|hold|can|assesses|reviewed|move|proves|equals|took|named|follow)\b"
)
"""What a sentence of an answer has one of."""


def test_the_card_warns_of_what_its_report_warns_of_and_pages_say_it_once() -> None:
    """A report warned of several rows of a person, and the card beside it of nothing."""
    card = facts()
    warned, note = "the unit is one record, and so on", NOT_HANDED_OVER.format(name="share")
    report = json.loads((GOLDEN / NEWEST / "laid-out" / "report.json").read_text())
    assert "cautions" not in _quality(report)
    quality = _quality({**report, "cautions": [warned, note]})
    assert quality["cautions"] == [warned, note]
    card["quality"]["cautions"], card["hand_off"]["cautions"] = quality["cautions"], [warned]
    for page in (render_statement, render_sheet, render_card):
        said = text_of(page(card)).partition("These files may be sent and used once an officer signed")[
            2
        ]  # a card has one more notice above
        assert said.count("The unit is one record, and so on") == 1 and note not in page(card)
    card["hand_off"]["cautions"] = []
    assert "This hand-off has cautions, too." in answer(render_statement(card), 3) and cautions_of(card) == [warned]


def test_a_data_sheet_warns_of_single_rows_and_names_the_rules_that_hold() -> None:
    card = facts()
    card["quality"].pop("rules", None)
    assert "single rows:" not in text_of(render_sheet(card))
    for number, said in (
        (0, "; it has no rule between columns (constraints of schema.yaml)."),
        (1, ", but for 1 rule (constraints of schema.yaml): c0 <= d."),
        (5, ", but for 5 rules (constraints of schema.yaml): c0 <= d, c1 <= d, c2 <= d, and 2 more."),
    ):
        gate = [{"rule": f"`c{place} <= d` must hold in every row"} for place in range(number)]
        card["quality"]["rules"] = _quality({"gate": [*gate, {"rule": "must not be null"}]})["rules"]
        sheet = text_of(render_sheet(card)).partition("must not be used for")[2]
        drew = "single rows: values of one row may be impossible together, since a model of few columns at a time drew"
        assert f"{drew} them{said}" in sheet
