"""The card and the sheet of a hand-off say what the ledger and the noise say, and what the operator said, no more."""

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest
from scipy.stats import norm

import nacre
from dpmodels import amounts
from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.meaning import guesses_of_budget, in_words
from dpmodels.hand_off.manifest import CARD, PAGES, SHEET, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.keys import fingerprint
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from tests.hand_off.make_golden import GOLDEN
from tests.kit.manifests import rewritten, write_manifest
from tests.kit.support import make_table, run_cli, synthesize_words, write_clinic, write_key

PURPOSE = "To plan beds & <wards>, in 2027."
SAID = {"purpose": PURPOSE, "recipient": "Ward 7", "contact": "Dana Roe", "retention": "Until 2099-03-01."}
TERMS = ("--epsilon", 5, "--delta", 1e-5, "--owner", "Ward 7", "--note", "not for pages")


def text_of(page: Path) -> str:
    """Return what a page says, without tags."""
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", page.read_text().split("</style>")[1])))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run twice on one account, whose officer signs; the second hand-off says what the operator says."""
    folder = tmp_path_factory.mktemp("site")
    write_clinic(folder)
    key, public = write_key(folder / "dana.pem")
    home = ("--home", folder / "home")
    assert run_cli("ledger", "open", "clinic", "--schema", folder / "clinic.yaml", *TERMS, *home)[0] == 0
    assert run_cli(*synthesize_words(folder, rows=40))[0] == 0
    named = ("--name", "Dana", "--key", public, "--reason", "the board asked for it")
    assert run_cli("ledger", "officer", "clinic", *named, *home)[0] == 0
    paid = {"out": folder / "second", "report_epsilon": 0.5}
    assert run_cli(*synthesize_words(folder, rows=40, **SAID, **paid))[0] == 5
    waiting = next(
        one.parent.name
        for one in (folder / "home" / "control").glob("*/settings.json")
        if json.loads(one.read_text())["out"].endswith("second")
    )
    assert run_cli("approve", waiting, "--key", key, "--yes", *home)[0] == 0
    assert run_cli("resume", waiting, "--no-prefect", *home)[0] == 0
    yield folder


def test_the_sheet_says_what_the_account_spent_before_and_what_remains(site: Path) -> None:
    ledger = Ledger(site / "home" / "ledger.sqlite")
    first, second = (json.loads((site / name / CARD).read_text()) for name in ("out", "second"))
    assert [one["accounts"][0]["before"] for one in (first, second)] == ["0", first["accounts"][0]["after"]]
    balance = ledger.balance("clinic")
    (own,) = second["accounts"]
    assert (Decimal(own["after"]), Decimal(own["remaining"])) == (balance.spent_epsilon, balance.remaining_epsilon)
    said = text_of(site / "second" / "statement.html")
    before, after = (f"{float(own[name]):.4g}" for name in ("before", "after"))
    assert f"clinic (of Ward 7) had spent ε = {before} before, and {after}" in said and "of a cap of 5;" in said
    assert "release and charged report together" in said
    of_all, of_budget = own["right_guesses"], guesses_of_budget(float(own["after"]), 1e-5)
    assert second["meaning"]["right_guesses"] < of_all < of_budget - 0.05
    assert "by all the account paid for" in said
    adds = "For whoever was in the data each time, what the releases tell adds up: odds on whether one record is there"
    assert adds in said and adds in text_of(site / "second" / "model-card.html")
    assert "If all of it is ever spent, odds on whether one record is there move by a factor of at most 149" in said
    assert f"{in_words(of_all)} cases an even bet" in said and "are reckoned by ε and δ alone" not in said
    alone = text_of(site / "out" / "statement.html")
    assert "1 charge was made before:" in said and "made before:" not in alone
    assert "by all the account paid for" not in alone
    (earlier,) = own["earlier"]
    assert own["charges"] == 1 and earlier["run"] == read_manifest(site / "out").run and earlier["epsilon"] == "1.0"
    (book,) = second["books"]
    assert book == {"owner": "Ward 7", "spent": [first["accounts"][0]["after"]]} and "spent" not in first["books"][0]
    assert f"(spent after it: {amounts.spent(own['before'])})" in said and "not for pages" not in json.dumps(second)
    assert earlier["run"] in text_of(site / "second" / "model-card.html") and "charges" not in first["accounts"][0]


def test_the_sheet_says_who_signed_with_which_key_or_that_nobody_had_to(site: Path) -> None:
    approved = read_manifest(site / "second").approved
    assert approved is not None
    said = text_of(site / "second" / "statement.html")
    assert "by Dana: so the account calls the holder of the key (ed25519) below; the signature has neither" in said
    assert "Signed were this plan, its unit, noise and price, and all that the operator declares here; not what" in said
    assert "once an officer signed in officer.sig, beside this page, that they may leave" in said
    assert "To obtain before the files leave, since no file here can know it" in said
    assert fingerprint(approved.public_key) in said
    assert "was approved by nobody, since the account named no officer" in text_of(site / "out" / "statement.html")


def test_the_pages_say_what_the_operator_said_and_nothing_where_nothing_was_said(site: Path) -> None:
    for page in set(PAGES) - {"model-card.html"}:  # which repeats neither of the others
        assert ("Recipient: “Ward 7" if page == "data-sheet.html" else "as recipient: “Ward 7”") in text_of(
            site / "second" / page
        )
        assert "Contact: “Dana Roe”" in text_of(site / "second" / page)
        assert PURPOSE in text_of(site / "second" / page) and "<wards>" not in (site / "second" / page).read_text()
        assert "Purpose, in the" not in text_of(site / "out" / page)
        assert "License:" not in text_of(site / "second" / page)
    assert "Until 2099-03-01." in text_of(site / "second" / "statement.html")
    blank = [
        "the purpose",
        "whose data it is",
        "which columns hold special categories of data (Art. 9(1)), or that none does",
        "the legal basis (Art. 6)",
    ]
    for where in ("out", "second"):
        said, lacks = text_of(site / where / "statement.html"), blank[2 * (where == "second") :]
        box = said.partition("To obtain before the files leave")[2].partition("Ten questions")[0]
        assert "Not stated: " in box and all(one in box for one in lacks)
    assert json.loads((site / "out" / CARD).read_text())["given"] == {}
    code, _, err = run_cli(*synthesize_words(site, out=site / "third", purpose="one\nline"))
    assert code == 1 and "purpose" in err and not (site / "third").exists()


def test_ledger_manifest_and_verify_say_what_the_operator_said(site: Path) -> None:
    manifest = read_manifest(site / "second")
    assert manifest.operator_says == SAID and read_manifest(site / "out").operator_says == {}
    ledger = Ledger(site / "home" / "ledger.sqlite")
    declared = [entry.content.get("declared") for entry in ledger.entries() if entry.kind == "reserve"]
    assert declared == [None, SAID, SAID] and ledger.verify() == []  # the second run charged release and report
    facts = json.loads(run_cli("verify", site / "second", "--json")[1])
    assert {name: facts[name] for name in SAID} == SAID and facts["approved"].startswith("Dana ")
    standing = ledger.standing(*(line.ledger.charge for line in manifest.lines))
    spent = f"before and {amounts.spent(standing.after)} after, of a cap of 5 at delta=1e-5"
    assert spent in facts["account"] and facts["unit"] == "record, add_or_remove_one"
    shown = json.loads(run_cli("ledger", "show", "clinic", "--home", site / "home", "--json")[1])
    assert [charge["declared"] for charge in shown["charged"]] == [{}, SAID, SAID]


def test_the_data_sheet_says_what_it_is_and_what_it_is_not_for(site: Path) -> None:
    said, card = text_of(site / "second" / SHEET), json.loads((site / "second" / CARD).read_text())
    assert "What it must not be used for" in said and "a decision about a single person, or a search for one" in said
    assert all(column["name"] in said for column in card["content"]["columns"])
    weakest = next(iter(card["quality"]["weakest"]))
    assert f"{weakest} " in said and "ask whoever gave it to you before you pass it on" in text_of(site / "out" / SHEET)
    assert "plus 1 in 100,000 (δ)" not in said and "plus 1 in 100,000 (δ)" in text_of(
        site / "second" / "statement.html"
    )
    assert (
        "a guess of 10 % on a value of somebody with one record who is known to be there, such as in column sick, "
        "becomes one of" in said
    )


def test_odds_on_values_are_those_of_two_steps(site: Path) -> None:
    """To be without a record and to have another one instead are two steps: 2.72 bounds presence, and not values."""
    said = text_of(site / "out" / "statement.html")
    assert "on whether one record is there at all" in said
    assert "at most 7.39 (e2ε) times as likely with some values of it as with others, plus 1 in 26,000" in said


def test_a_retention_that_is_past_is_refused_before_a_charge(site: Path) -> None:
    before = len(Ledger(site / "home" / "ledger.sqlite").entries())
    words = synthesize_words(site, out=site / "late", retention="Until 2020-01-01.")
    for asked in (words, ["plan", *(word for word in words[1:] if word != "--no-prefect")]):
        code, _, err = run_cli(*asked)
        assert code == 1 and "--retention=Until 2020-01-01. must name no day that is past" in err
    assert len(Ledger(site / "home" / "ledger.sqlite").entries()) == before


def test_guesses_and_odds_are_those_of_gaussian_noise(site: Path) -> None:
    card = json.loads((site / "out" / CARD).read_text())
    mu = 1 / gaussian_noise_multiplier(PrivacyBudget(epsilon=1, delta=1e-5))
    assert card["meaning"]["right_guesses"] == pytest.approx(norm.cdf(mu / 2), rel=1e-5)
    assert card["meaning"]["beyond"] == pytest.approx(norm.cdf(mu / 2 - 1 / mu), rel=1e-4)
    said = text_of(site / "out" / "statement.html")
    assert "55.4 % cases an even bet" in said and "factor of at most 2.72" in said
    assert "is won in at most 73.2 % of cases" in said and "a coin wins 50 %" in said


def test_report_card_sheet_and_statement_say_one_share_of_right_guesses(site: Path) -> None:
    """The statement says which to quote, 73.2 % by epsilon and delta alone; the others said 55.4 %, by the noise."""
    words = synthesize_words(site, out=site / "next", rows=40, report_epsilon=0.5)[1:]
    _, plan, _ = run_cli("plan", *(word for word in words if word != "--no-prefect"))
    assert "whoever sees this wins 55.4 % of even bets on one record at most by this noise, and 50 %" in plan
    assert "by epsilon and delta alone, which the pages of a hand-off quote, 73.2 %; what is seen" in plan
    for folder in ("out", "second"):
        meant = json.loads((site / folder / CARD).read_text())["meaning"]
        share, by_noise = in_words(meant["right_guesses_of_budget"]), in_words(meant["right_guesses"])
        assert f"would after seeing the release guess right in {share} of cases" in text_of(
            site / folder / "report.html"
        )
        assert f"in at most {share} of cases" in text_of(site / folder / "statement.html")
        card, sheet = (text_of(site / folder / f"{name}.html") for name in ("model-card", "data-sheet"))
        assert f"even bets on whether one record is there{share} are won at most" in card
        bet = (
            f"an even bet on whether one record is there is won in at most {share} of cases by epsilon and delta alone"
        )
        assert bet in sheet and by_noise not in card + sheet
    assert (
        f"together, delta=1e-05; {by_noise} of even bets are won at most by this noise" in plan and by_noise > "55.4 %"
    )


def test_what_python_says_is_on_the_sheet_too(site: Path, tmp_path: Path) -> None:
    with pytest.warns(nacre.ReleaseWarning):
        made = nacre.synthesize(
            make_table(150), site / "clinic.yaml", epsilon=1, delta=1e-5, method="moments", rows=20,
            training={"steps": 5}, home=tmp_path / "home", license="CC BY 4.0", retention="A month.",
        )  # fmt: skip
    assert "CC BY 4.0" in made.statement and "A month." in made.statement


LIES: dict[str, Callable[[dict], object]] = {
    "another hand-off, unit, price or approval": lambda card: card["hand_off"].update(unit="user (x, at most 9 rows)"),
    "unit, price or approval": lambda card: card["hand_off"].update(approved={"officer": "Eve", "public_key": "x"}),
    "something else was declared": lambda card: card["given"].update(recipient="Everybody"),
    "price or approval": lambda card: card["hand_off"]["charges"][0].update(epsilon="0.1"),
    "means something else": lambda card: card["meaning"].update(right_guesses=0.501),
    "did not pay": lambda card: card["accounts"][0].update(account="another"),
    "not as nacre writes it": lambda card: card.pop("meaning"),
    "as nacre writes it": lambda card: card["books"][0].update(spent=["1", "2"]),
    "is not as nacre writes": lambda card: card["books"].append({}),
    "not as nacre writes": lambda card: card["books"][0].update(owner="two\nlines"),
}


@pytest.mark.parametrize("told", LIES)
def test_a_card_that_says_other_than_its_manifest_is_a_fault(site: Path, tmp_path: Path, told: str) -> None:
    def lie(content: bytes) -> bytes:
        card = json.loads(content)
        LIES[told](card)
        return json.dumps(card).encode()

    faults = verify_hand_off(rewritten(site / "second", tmp_path / "own", CARD, lie)).faults
    assert len(faults) == 1 and told in faults[0]


def test_a_hand_off_has_all_of_card_and_pages_or_is_of_an_older_version(site: Path, tmp_path: Path) -> None:
    for place, (page, told) in enumerate({"statement.html": "belong together", SHEET: "which is made by it"}.items()):
        own = rewritten(site / "out", tmp_path / f"own-{place}", page, lambda content: content)
        manifest = json.loads((own / "manifest.json").read_text())
        del manifest["artifacts"][page]
        (own / page).unlink()
        write_manifest(own, manifest)
        assert any(told in fault for fault in verify_hand_off(own).faults)
    old = GOLDEN / "FORMAT-1" / "approved"
    assert verify_hand_off(old).faults == [] and not (old / CARD).exists()
