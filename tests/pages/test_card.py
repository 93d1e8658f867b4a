"""A data sheet has room for one page, and what it says of a column is whole."""

import json
import re
from typing import Any

from dpmodels.contract.remarks import NOT_HANDED_OVER
from dpmodels.pages.advice import drowned_in_words, meaning_of, meanings_of
from dpmodels.pages.asked.open_points import counts_of
from dpmodels.pages.asked.weak import MOST_WARNED
from dpmodels.pages.card import render_card, render_sheet, render_statement
from dpmodels.pages.page import coded
from dpmodels.pages.report import number_row, render
from dpmodels.report.terms import ROWS_ALONE
from tests.hand_off.make_golden import GOLDEN

FAR = (
    "Its mean is about 250, within 2.1, where its values thin out towards the bounds; where a few lie far away "
    "from the others, which noise would hide, it may be anywhere from 248 to 320."
)
ADVICE = "For the next release, declare narrower public bounds or spend more."


def sheet(*warnings: str, **numbers: object) -> str:
    """Return the data sheet of a table with these warnings."""
    card = json.loads((GOLDEN / "LAYOUT-9" / "laid-out" / "model-card.json").read_text())
    card["quality"] |= {"warnings": list(warnings), "numbers": numbers}
    return " ".join(render_sheet(card).split())


def test_a_warning_is_whole_but_for_the_advice_to_whoever_makes_the_next_release() -> None:
    page = sheet(f"price: {FAR} {ADVICE}", *(f"c{n}: {FAR} {ADVICE}" for n in range(4)))
    assert (
        f'<th scope="row">price</th> <td>{FAR}</td> <td>Rely on no more than this.</td>' in page
        and "next release" not in page
    )
    assert "3 more columns have a warning</th> <td>which report.html shows</td>" in page
    assert len(FAR) < MOST_WARNED and "…" in sheet("x: " + 999 * "a")


def test_bounds_are_named_of_columns_that_are_warned_of_too() -> None:
    fact = {"estimate": 2.0, "expected_error": None, "expected_error_if_thinning_out": 1.0}
    page = sheet(x={"mean": fact, "p99": fact, "clipped": [0.0, 1000.0], "unseen": {"open": True, "quantile": True}})
    assert "Values beyond 0 to 1,000 of x, if there were any, were set to the bound" in page


def test_the_warning_of_a_mean_stands_beside_that_of_a_quantile() -> None:
    fact = {"estimate": 2.0, "expected_error": 0.1}
    numbers = {"x": {"mean": fact, "p99": fact, "unseen": {"far": True, "quantile": True}}}
    card = json.loads((GOLDEN / "LAYOUT-9" / "laid-out" / "model-card.json").read_text())
    card["quality"] |= {"warnings": [f"x: {FAR}"], "numbers": numbers, "avoid": {"x": ["p99"]}}
    page = " ".join(render_sheet(card).split())
    assert "Use no 99 % quantile." in page and FAR in page
    card["quality"]["avoid"] = {"x": ["mean", "total", "p99"]}
    assert FAR not in " ".join(render_sheet(card).split())


def newest() -> dict[str, Any]:
    """Return the card of a golden hand-off."""
    return json.loads((GOLDEN / "LAYOUT-9" / "laid-out" / "model-card.json").read_text())


def test_a_mean_is_what_the_report_says_of_it_with_what_noise_leaves_open() -> None:
    sure = {"mean": {"estimate": 13927.0, "expected_error": 85.9, "synthetic": 14000.1}}
    sure["p99"] = {"estimate": 25862.0, "expected_error": 0.5}
    opened = {"mean": {"estimate": 12.063, "expected_error": 0.0215, "synthetic": 12.0712}, "p99": sure["p99"]}
    opened["unseen"] = {"records": 140.0, "share": 0.0087, "means": [11.94, 12.13]}
    page = sheet(pay=sure, years=opened)
    assert "13,927 as released, 14,000 in these rows, within 170; its 99 % quantile 25,862 within 0.98" in page
    assert (
        "12.06 as released, 12.07 in these rows, within 0.043, or 11.94 to 12.13 if a few values "
        "that noise hides lie far off" in page
    )
    assert [cell in page for cell in number_row({"name": "years", **opened})] == 8 * [True]
    lost = {**sure, "p99": {"estimate": 44.0, "expected_error": None}, "unseen": {"quantile": True}}
    assert "within 170; its 99 % quantile is not known" in sheet(pay=lost)


def test_a_figure_that_the_report_says_is_of_no_use_is_not_given_and_nothing_is_said_of_what_nobody_gets() -> None:
    fact = {"estimate": 56.0, "expected_error": 0.3, "synthetic": 55.9}
    card = newest()
    numbers = {name: {"mean": fact, "p99": {"estimate": 96.0, "expected_error": 5.44}} for name in ("age", "share")}
    card["quality"] |= {"numbers": numbers, "weakest": {"age": 0.02, "share": 0.03}, "warnings": ["share: w"]}
    assert "its 99 % quantile 96 within 11" in " ".join(render_sheet(card).split())
    card["quality"] |= {
        "far": {"p99": {"age": "27 % of its spread"}},
        "cautions": [NOT_HANDED_OVER.format(name="share")],
    }
    weak = " ".join(render_sheet(card).split()).partition('<tr id="weak">')[2].partition("report.html")[0]
    too_far = "farther off than 20 % of itself, or of its spread"
    row = f'<th scope="row">age</th> <td>age (27 % of its spread): {too_far}</td> '
    assert f"{row}<td>Use no 99 % quantile.</td>" in weak and not re.search(r"share \d|>share<", weak)
    assert "its 99 % quantile is too far off to be used" in weak and "96 within 11" not in weak


def test_what_an_operator_may_do_is_not_said_to_recipients() -> None:
    card = newest()
    card["quality"] |= {"warnings": [f"price: {FAR} {ADVICE}"]}
    card["hand_off"]["cautions"] = ["`ward` is public.", "To hide whole documents, take `nacre synthesize`."]
    card["limits"] = [ROWS_ALONE]
    pages = [" ".join(one(card).split()) for one in (render_card, render_sheet)]
    assert "how many rows a user has is not kept." in pages[1]
    for page in pages:
        assert "<code>ward</code> is public." in page
        assert not any(words in page for words in ("next release", "To hide whole", "In the schema", "`"))
    assert FAR in render_card(card)
    report = json.loads((GOLDEN / "LAYOUT-9" / "laid-out" / "report.json").read_text())
    report["columns"][0] |= {"warning": f"{FAR} {ADVICE}"}
    report |= {"cautions": ["`a` is left out. In the schema, `b` keeps it."], "not_promised": [ROWS_ALONE]}
    page = render(report)
    assert FAR in page and "<code>a</code> is left out." in page and "is not kept.</li>" in page
    assert not any(words in page for words in ("For the next release", "In the schema"))


def test_advice_is_told_from_what_a_warning_means_by_its_first_words() -> None:
    assert meaning_of("It is so. For the next release, do that. It stays.") == "It is so. It stays."
    assert meaning_of("It is 1.5 of 2.7. Unless it is so, write it.") == "It is 1.5 of 2.7."
    assert meanings_of(["It is so.", "To hide whole documents, do that."]) == ["It is so."]
    assert drowned_in_words({}) == "" and drowned_in_words({"drowned": "lost. Spend more"}) == "lost. Spend more"
    assert drowned_in_words({"drowned": "lost"}).startswith("lost. Spend more, or measure more records")
    assert drowned_in_words({"drowned": "lost", "about": "embeddings"}).endswith("together: `nacre synthesize`")
    assert coded("<a> and `<b>`") == "&lt;a&gt; and <code>&lt;b&gt;</code>"


def test_a_card_says_in_a_sentence_how_close_the_fit_is_and_leads_to_the_figures() -> None:
    card = newest()
    card["quality"]["fit"] = [{"look": "zoom 1", "left": 1.0, "explained": 1.04}]
    page = " ".join(render_card(card).split())
    close = "Summed over all counts, the synthetic rows are as close to what was released as its noise allows"
    assert f"{close}; such sums hide single columns and pairs.</p>" in page and "zoom" not in page
    card["quality"]["weaker"] = ["age with dose"]
    weaker = f"{close}; such sums hide single columns and pairs. There for certain, and weaker in these rows than as "
    weaker += "released: age with dose.</p>"
    assert weaker in " ".join(render_card(card).split())
    assert 'The figures behind this are in <a href="report.html#fit">' in page and "1.04" not in page
    card["quality"]["fit"][0]["left"] = 2.0
    assert "farther from the released rough counts of single columns than noise explains" in render_card(card)
    del card["quality"]["fit"], card["quality"]["farthest_column"]
    assert "The figures behind this" not in render_card(card) and "noise allows" not in render_card(card)


def test_a_card_has_blanks_for_what_law_asks_of_a_person_and_repeats_neither_sheet_nor_statement() -> None:
    card = newest()
    card["given"] = {"subjects": "Nurses of Ghent", "purpose": "Teaching", "recipient_retention": "Until 2031"}
    page, statement = (" ".join(one(card).split()) for one in (render_card, render_statement))
    blanks = page.partition('id="by-hand"')[2].partition("</section>")[0]
    blank = '<td data-of="Answer"><strong class="bad">Not stated</strong></td>'
    assert (
        f'(GDPR, Art. 44 to 49)</th><td data-of="Who says it">the controller</td>{blank}' in blanks
        and "DPIA (GDPR, Art. 35), or why" in blanks
    )
    assert (
        f'Art. 9(2))</th><td data-of="Who says it">the controller</td>{blank}' in blanks
        and "A printout is bound to no file, nor is a signature on it" in blanks
    )
    for title, who in (
        ("Contact", "the controller"),
        ("Recipient", "the controller"),
        ("Children", "whoever collected"),
    ):
        assert re.search(
            rf"<th scope=.row.>{title}[^<]*</th><td data-of=.Who says it.>{who}[^<]*</td>{blank}",
            blanks,
        )
    assert '<td data-of="Answer">“Teaching”</td><td data-of="Option"><code>--purpose</code></td>' in blanks
    assert '“Until 2031”</td><td data-of="Option"><code>--recipient-retention</code> with a day</td>' in blanks
    others = " before, to this account; to other accounts, and by other tools: not known to nacre, ask</td>"
    assert others in blanks and "are blank; the last line, on other releases, is not counted. What stands" in page
    assert blanks.count('<tr><th scope="row">') == counts_of({})["all"] + 1
    assert ">Signature<" not in page and ">Date<" not in page
    assert "model-card.html#by-hand" in statement and "Nurses of Ghent" in statement
    assert page.count("Nurses of Ghent") == 1 and "is won in" not in page
    assert not any(limit in page for limit in card["limits"])


def test_a_sheet_says_in_a_table_where_it_is_weak_and_what_not_to_do() -> None:
    fact = {"estimate": 2.0, "expected_error": 0.1}
    page = sheet(x={"mean": fact, "p99": fact, "clipped": [0.0, 10.0]})
    weak = page.partition('<tr id="weak">')[2].partition('<tr id="privacy">')[0]
    assert all(f'<th scope="col">{heading}</th>' in weak for heading in ("What", "How far off", "What not to do"))
    assert "Take no smaller difference of it for real." in weak and "Take no largest or smallest value" in weak
    card = newest()
    card["quality"] |= {"weakest": {}, "warnings": [], "numbers": {}, "avoid": {}}
    assert "How far single columns are off is not known from what was released." in render_sheet(card)


def test_a_sheet_says_once_of_what_no_figure_is_to_be_used_and_which_columns_are_in_no_count() -> None:
    card = newest()
    card["quality"]["headline"] = "Shares within 5 % in all 3 category columns. Not for 99 % quantiles: dose."
    page = render_sheet(card)
    assert "in all 3 category columns." in page and "Not for 99 % quantiles" not in page
    assert "No count of columns, here or in the report, has identifiers." in page
