"""A plan is described once: the terminal, Prefect's pages and Python say the same facts, in words that hold."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import nacre
from dpmodels.accounting.events import ComposedEvent, GaussianEvent, ParallelEvent, PureEvent, SampledGaussianEvent
from dpmodels.artifact import write_text
from dpmodels.contract.schema import Schema
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.parts.pair_noise import ABOUT, SMALL_CLASS
from dpmodels.methods.registry import create
from dpmodels.privacy import Adjacency, PrivacyBudget, PrivacyUnit
from flows.charge_words import charge_in_words, hidden
from flows.config import SynthesizeConfig
from flows.description import (
    IN_95_OF_100,
    REFUSED,
    _felt,
    _least,
    _priced,
    as_lines,
    as_markdown,
    describe,
    describe_config,
    describe_run,
    plain,
)
from flows.in_short import plan_in_short, shortened
from flows.kinds.tables import prepare
from flows.planning import delta_over_rows
from flows.settings import placed
from flows.synthesize import start
from flows.with_prefect.approval import plan_text
from flows.with_prefect.artifacts import publish_plan
from flows.with_prefect.server import prefect_server
from tasks.run.accounts import officer_of
from tasks.run.at_work import STOPPED
from tasks.run.runs import list_runs
from tests.kit.api import Api
from tests.kit.every_method import OF_TABLES
from tests.kit.support import run_cli, synthesize_words, write_clinic, write_key

pytestmark = pytest.mark.processes


def config_of(folder: Path, **options: object) -> SynthesizeConfig:
    given = {"data": folder / "clinic.parquet", "schema": folder / "clinic.yaml", "out": folder / "out"}
    given |= {"target_epsilon": 1.0, "delta": 1e-5, "home": folder / "home", "prefect": False}
    return SynthesizeConfig.build(placed(given | options))


LINK = "[See the plan](https://evil.example)"


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """Make a home whose account has an officer, and a cap that one run nearly fills."""
    write_clinic(tmp_path)
    _, public = write_key(tmp_path / "dana.pem")
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    ledger.open_account("clinic", dataset="clinic", budget_cap=PrivacyBudget(epsilon=1.5, delta=1e-5))
    ledger.change_cap("clinic", reason="the board asked for it", officer=Officer.read("Dana", public))
    return tmp_path


@pytest.mark.slow
def test_the_terminal_python_the_officer_and_the_artifact_say_the_same(
    asked: Path, prefect_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(asked, report_epsilon=0.2, contact=LINK)
    facts, said = describe_config(config)
    assert said and said.accepted and facts["officer"] == "Dana must sign before anything is charged"
    places = {name: place for place, name in enumerate(facts)}
    noise = [place for name, place in places.items() if name.startswith("noise_stddev of the ")]
    assert places["charge"] < places["figures within"] < min(noise)  # what figures are made of stands behind them
    code, out, _ = run_cli(*_plan_words(asked), "--contact", LINK)
    assert code == 0 and out.splitlines() == as_lines(facts)  # piped: whole, and one fact a line
    python = nacre.plan(asked / "clinic.yaml", 1.0, 1e-5, report_epsilon=0.2, home=asked / "home", contact=LINK)
    assert python.facts == facts and python.text.splitlines() == as_lines(facts)
    run = start(config)
    assert describe_run(run) == facts
    officer, wanted = officer_of(run) or pytest.fail("nobody is asked")
    assert as_markdown(facts) in plan_text(run, officer, wanted)
    monkeypatch.setenv("PREFECT_API_URL", prefect_api.url)
    with prefect_server(asked / "home"):
        from prefect import flow

        flow(lambda: publish_plan(run, ""), name="tell", persist_result=False)()
    shown = {row["what"]: row["value"] for row in json.loads(prefect_api.artifacts("plan-clinic")[-1]["data"])}
    assert shown.pop("run") == run.name and shown.pop("partitions").startswith("sequential")
    assert shown == {plain(what): plain(value) for what, value in facts.items()}
    assert r"\[See the plan\](https://evil.example)" in shown["contact"]  # the UI lays cells out as Markdown
    words = ["approve", run.name, "--yes", "--details", "--key", asked / "dana.pem", "--home", asked / "home"]
    code, out, _ = run_cli(*words)
    assert code == 0 and out.splitlines()[: len(as_lines(facts))] == as_lines(facts)
    assert run_cli("resume", run.name, "--home", asked / "home", "--no-prefect")[0] == 0
    after = describe_run(run)
    assert after["answer"] == "accepted before, and committed" and after["charge"] == facts["charge"]
    code, out, _ = run_cli("ledger", "show", "clinic", "--home", asked / "home")
    assert code == 0 and all(line in out for line in facts["charge"].split("\n"))


def _plan_words(folder: Path) -> list[object]:
    words = synthesize_words(folder, report_epsilon=0.2, config=None, out=folder / "out", target_epsilon=1.0)
    return ["plan", "--details", *(word for word in words[1:] if word != "--no-prefect")]


def test_what_does_not_fit_is_refused_in_every_place(asked: Path) -> None:
    facts, said = describe_config(config_of(asked, target_epsilon=2.0))
    assert said and not said.accepted and facts["answer"] == "would be REFUSED"
    assert facts["account"].endswith("cap epsilon=1.5 at delta=1e-5")
    assert facts["spent"] == "epsilon=0 before, 2 after"
    assert run_cli(*_plan_words(asked), "--target-epsilon", 2)[0] == 1


@pytest.mark.parametrize("method", sorted(set(OF_TABLES) - {"nacre-images", "nacre-photos"}))
def test_every_method_says_its_steps_and_its_noise(tmp_path: Path, method: str) -> None:
    write_clinic(tmp_path)
    facts = describe(prepare(config_of(tmp_path, method=method)).lines, None, "")
    assert "opens with this run, cap epsilon=1" in facts["account"] and facts["officer"] == "nobody must sign"
    assert "step" in facts["charge"] and "the most that one record changes" in facts["charge"]
    noise = {name: text for name, text in facts.items() if name.startswith("noise_stddev of the ")}
    assert noise and any("a true 100 shows as" in text or "one record adds" in text for text in noise.values())


def test_steps_that_are_alike_are_one_line_and_kinds_have_their_words() -> None:
    looks = tuple(GaussianEvent(noise_multiplier=20.0, mechanism=f"k-means {number}") for number in (1, 2, 3))
    steps = SampledGaussianEvent(noise_multiplier=2.0, sampling_probability=0.02, steps=600, mechanism="DP-SGD")
    parts = ParallelEvent(by="cluster", events=(steps,))
    told = charge_in_words(ComposedEvent(events=(*looks, parts, PureEvent(epsilon=0.5)))).split("\n")
    assert told[0].startswith("each of steps 1 to 3, k-means: Gaussian, noise_multiplier=20.000000: as costly as")
    assert told[1].startswith("step 4, one cluster at a time: each cluster of its own, in parallel: DP-SGD: 600")
    assert told[2].endswith(f"one record makes no answer more than {math.exp(0.5):.4g} times as likely")


def felt(name: str, stddev: float, noise: Mapping[str, float] = MappingProxyType({})) -> list[str]:
    return list(_felt(name, {name: stddev, **noise}))


def test_users_of_several_rows_need_so_many_rows() -> None:
    """Of users who may have five rows each, and mostly have one, many more are needed than of those who have five."""
    columns = {"who": {"type": "identifier"}, "age": {"type": "integer", "min": 0, "max": 9}}
    said = {}
    for rows in (1, 5):
        unit = PrivacyUnit(user="who", max_rows=rows)
        schema = Schema.model_validate({"name": "x", "unit": unit.model_dump(), "columns": columns})
        line = create("nacre", {}, {}).plan(schema, PrivacyBudget(epsilon=1, delta=1e-5, unit=unit))
        (said[rows],) = _least(line, None).values()
    assert re.match(r"only with more than about [\d,]+ users \(who\): ", said[1])
    match = re.match(r"only with more than about ([\d,]+) rows, of ([\d,]+) users \(who\) if each has 5: ", said[5])
    assert match is not None
    many, few = (float(each.replace(",", "")) for each in match.groups())
    assert many == pytest.approx(5 * few, rel=0.02)


def test_the_words_hold() -> None:
    unit = PrivacyUnit(user="patient", max_rows=4)
    user, other = PrivacyBudget(epsilon=1, delta=1e-5, unit=unit), Adjacency.REPLACE_ONE
    said = "one user (patient, at most 4 rows) added or removed (add_or_remove_one): whether it is in the data at all"
    assert hidden(user) == said
    replaced = hidden(user.model_copy(update={"adjacency": other}))
    assert "replaced by another (replace_one): what it says, not that it is there" in replaced
    drawn = np.random.default_rng(0).normal(0, 13.6, 100_000)
    assert 0.945 < (abs(drawn) <= IN_95_OF_100 * 13.6).mean() < 0.955
    assert felt("records in a cell", 10.0) == ["10", "a true 100 shows as 80 to 120 in 95 of 100 cases"]
    assert felt("gradient, where one record adds at most 1", 2.13)[1] == "2.13 times what one record adds at most"
    assert felt("score of a family", 3.0) == ["3"]
    assert felt(f"purchase: {ABOUT}", 3.0, {f"purchase: {SMALL_CLASS}": 7.0})[1].endswith("and up to 7 if one is")


@pytest.mark.parametrize(("epsilon", "wins"), [(0.001, "50.1 %"), (1.0, "55.4 %"), (1000.0, "practically all")])
def test_a_bet_is_won_as_often_as_the_noise_allows(tmp_path: Path, epsilon: float, wins: str) -> None:
    write_clinic(tmp_path)
    (plan,) = prepare(config_of(tmp_path, target_epsilon=epsilon, method="moments")).lines
    said = _priced(plan, {})["in words"]
    assert f"whoever sees this wins {wins} of even bets on one record at most" in said and "plus 1 in 100,000" in said
    assert said.endswith("plus 1 in 100,000 (delta)")
    pure = plan.model_copy(update={"budget": plan.budget.model_copy(update={"delta": 0.0})})
    assert "epsilon holds without exception" in _priced(pure, {})["in words"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("{max: 20000}", "delta=1e-5 is large for up to 20,000 records: 5e-6 or less keeps to the rule of thumb"),
        ("{min: 30000}", "delta=1e-5 is large for 30,000 records or more: 3e-6 or less keeps to the rule of thumb"),
        ("{max: 10000}", ""),
        ("{min: 100}", ""),
    ],
)
def test_a_delta_that_is_large_for_the_declared_rows_is_warned_of_before_a_charge(
    tmp_path: Path, rows: str, said: str
) -> None:
    _, schema, _ = write_clinic(tmp_path)
    with schema.open("a") as file:
        file.write(f"rows: {rows}\n")
    facts = nacre.plan(schema, 8.0, 1e-5, home=tmp_path / "home").facts
    assert [line for line in facts.get("caution", "").splitlines() if line.startswith("delta=")] == (
        [f"{said} that delta times the number of records is at most 0.1"] if said else []
    )
    declare = "; declare `rows: {min: , max: }` in the schema, if that number is public, to be told whether it is large"
    assert facts.get("delta", "") == f"fits up to 10,000 records{declare}" * ("max" not in rows)
    config = config_of(tmp_path)
    (plan,) = prepare(config).lines
    of_users = {"budget": plan.budget.model_copy(update={"unit": PrivacyUnit(user="patient")})}
    assert not delta_over_rows(plan.model_copy(update=of_users))


def test_markdown_shows_signs_as_they_are() -> None:
    assert as_markdown({"a": "x_y <b>\nsecond"}) == "- **a**: x\\_y \\<b\\>  \n  second"


def test_what_is_signed_is_shown_in_few_lines_first_and_each_line_that_is_left_is_counted(asked: Path) -> None:
    run = start(config_of(asked, report_epsilon=0.2, contact=LINK))
    facts = describe_run(run)
    short = shortened(facts)
    assert len(as_lines(short)) <= 15 < len(as_lines(facts))
    assert {"hides", "target", "in words", "account", "spent", "officer", "contact", "not declared"} <= short.keys()
    many = {f"fact {number}": "said" for number in range(20)} | {"not declared": "6 of 20\nPurpose"}
    assert shortened(many)["not declared"] == "6 of 20"
    left = len(as_lines(facts)) - len(short) + 1
    assert short["more"] == f"{left} lines: the same command with --details shows them"
    assert not any(name.startswith(("noise_stddev", "report: noise", "charge")) for name in short)
    (listed,) = list_runs(asked / "home")
    assert listed.state == "unfinished"  # nothing has stopped it yet
    write_text(
        run.sensitive / STOPPED, f"Dana is to approve run {run.name} by `nacre approve {run.name} --key KEY.pem`"
    )
    (listed,) = list_runs(asked / "home")
    assert listed.state == "waits for approval"


def test_a_plan_says_first_what_a_person_decides_by_and_counts_what_it_leaves_to_details(tmp_path: Path) -> None:
    config = config_of(tmp_path, method="nacre")
    write_clinic(tmp_path)
    facts, _ = describe_config(config)
    short = plan_in_short(facts, "`nacre synthesize`")
    assert len(as_lines(short)) <= 15 and not any(name.startswith(("noise_stddev", "charge")) for name in short)
    assert {"target", "in words", "figures within", "of 10,000 rows", "stands out", "account", "next"} <= short.keys()
    left = len(as_lines(facts)) - len(as_lines(short)) + 2
    assert short["more"] == f"{left} lines: the same command with --details shows them"
    words = [word for word in synthesize_words(tmp_path, config=None, target_epsilon=1.0)[1:] if word != "--no-prefect"]
    code, out, _ = run_cli("plan", *words, "--method", "nacre")
    assert code == 0 and out.splitlines() == as_lines(short)
    assert plan_in_short({"charge": "nothing"}, "`nacre federate`") == {"charge": "nothing"}
    assert "next" not in plan_in_short({**facts, "answer": REFUSED}, "`nacre synthesize`")
