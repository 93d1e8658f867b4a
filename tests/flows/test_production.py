"""What deployments are made of, without a server: the shipped file, and how nights add up."""

import os
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.errors import BudgetExhausted, InvalidArgument, Unsuitable
from dpmodels.hand_off.manifest import read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget, PrivacyUnit
from flows.config import SynthesizeConfig
from flows.partitions import explain, nights_that_fit
from flows.synthesize import carry_out, pipeline, start
from flows.with_prefect.budget import balances
from flows.with_prefect.operators import POOL, SHIPPED, read_deployments
from tasks.run.accounts import accounts_to_open, charges_of
from tasks.run.store import Run
from tests.kit.errors import refused
from tests.kit.support import run_cli, write_clinic, write_key

UNIT = {"unit": {"user": "patient", "max_rows": 2}}


def config(folder: Path, out: str = "out", epsilon: float = 0.5) -> SynthesizeConfig:
    settings = {
        "data": folder / "clinic.parquet",
        "schema": folder / "clinic.yaml",
        "out": folder / out,
        "privacy": {"target_epsilon": epsilon, "delta": 1e-5, "account": "clinic"},
        "runtime": {"home": folder / "home", "prefect": False},
    }
    return SynthesizeConfig.build(settings, folder / "config.yaml")


def opened(folder: Path, epsilon: float, **schema: object) -> Ledger:
    write_clinic(folder, **schema)
    (folder / "home").mkdir(exist_ok=True)
    ledger = Ledger(folder / "home" / "ledger.sqlite")
    unit = PrivacyUnit(user="patient", max_rows=2) if schema else PrivacyUnit()
    cap = PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=unit)
    ledger.open_account("clinic", dataset="clinic", budget_cap=cap)
    return ledger


def go(run: Run) -> Run:
    pipeline(run, lambda stage, *handles: stage(*handles))
    return run


def test_every_shipped_schedule_is_inactive_and_says_why() -> None:
    lines = SHIPPED.read_text().splitlines()
    crons = [number for number, line in enumerate(lines) if "cron:" in line]
    assert len(crons) == 2
    for number in crons:
        assert "active: false" in lines[number]
        assert any("# Inactive as shipped" in line for line in lines[number - 3 : number])


def test_a_form_asks_first_for_what_it_needs() -> None:
    def check(part: dict) -> None:
        order = sorted(part["properties"], key=lambda key: part["properties"][key]["position"])
        needed = [key in part["required"] or bool(part["properties"][key].get("required")) for key in order]
        assert needed == sorted(needed, reverse=True) and order == list(part["properties"]), order
        for below in part["properties"].values():
            if "properties" in below:
                check(below)

    forms = {name: one.form() for name, one in read_deployments(SHIPPED).items()}
    for form in forms.values():
        check(form)
    assert any(
        len({key in part["required"] for key in part["properties"]}) == 2 for part in _parts(list(forms.values()))
    )


def _parts(forms: list[dict]) -> list[dict]:
    """List forms and what is within them."""
    return [
        each
        for form in forms
        for each in (form, *_parts([p for p in form["properties"].values() if "properties" in p]))
    ]


def test_every_shipped_deployment_says_what_it_costs_and_where_it_runs() -> None:
    deployments = read_deployments(SHIPPED)  # holds the parameters and the rules against the flows
    assert [one.name for one in deployments.values()] == [
        "nightly",
        "weekly",
        "ad-hoc",
        "documents",
        "federation",
        "validate",
    ]
    for one in deployments.values():
        (cost,) = {"charged", "free"} & set(one.tags)
        assert ("CHARGES THE ACCOUNT" if cost == "charged" else "Free") in one.description
        assert one.work_pool.name == POOL


@pytest.mark.parametrize(
    ("old", "new"), [("partitions: sequential", "partitions: both"), ("target_epsilon: 0.1", "target_epsilon: much"),
                     ("parameters: {run: NAME", "parameters: {walk: NAME"), ("      config:\n", "      settings:\n"),
                     ("night: {kind: day}", "knight: {kind: day}"), ("seed: {at_least: 0", "seed: {at_least: low"),
                     ("rows: {at_least: 1, at_most: 100000000}\n      seed", "rows: {longest: 5}\n      seed"),
                     ("night: {kind: day}", "config.runtime.signing_key: {within: [keys]}"),
                     ("night: {kind: day}", "config.query: {within: [queries]}"),
                     ("flows.resample.resample", "os.system"), ("flows.night.synthesize_night", "/srv/evil.py:flow")]
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused_before_anything_is_registered(
    tmp_path: Path, old: str, new: str
) -> None:
    text = SHIPPED.read_text()
    assert old in text
    (tmp_path / "prefect.yaml").write_text(text.replace(old, new))
    with pytest.raises(Unsuitable, match=r"nightly|weekly"):
        read_deployments(tmp_path / "prefect.yaml")


def test_a_file_that_lists_no_deployments_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "prefect.yaml").write_text("name: nacre")
    with refused(InvalidArgument, "list of deployments", name="file"):
        read_deployments(tmp_path / "prefect.yaml")


AD_HOC = "deployments:\n  - name: mine\n    entrypoint: flows.table.synthesize_table\n"
NO_LIST = "must have a readable list of deployments under `deployments`, as `nacre deploy --show` prints one"
ENTRY = "deployment mine: "
MALFORMED = {
    "": NO_LIST,
    "a word": NO_LIST,
    "[one, two]": NO_LIST,
    "deployments: [\n": "is no YAML that is read here: line 2: did not find expected node content",
    "deployments: [text]": "deployment 0: it must be a mapping, as YAML has it: {key: value}",
    f"{AD_HOC}    alow: {{}}": f"{ENTRY}alow must be left out: there is no such setting",
    f"{AD_HOC}    allow: all": f"{ENTRY}allow must be a mapping, as YAML has it: {{key: value}}",
    f"{AD_HOC}    allow: {{config.data: in}}": (
        f"{ENTRY}allow.config.data must be a mapping, as YAML has it: {{key: value}}"
    ),
    f"{AD_HOC}    allow: {{config.data: {{inside: [in]}}}}": (
        f"{ENTRY}allow.config.data.inside must be left out: there is no such setting"
    ),
    f"{AD_HOC}    allow: {{config.data: {{within: in}}}}": (
        f"{ENTRY}allow.config.data.within must be a list, as YAML has it: [one, two]"
    ),
    f"{AD_HOC}    allow: {{config.data: {{within: [[in]]}}}}": f"{ENTRY}allow.config.data.within.0 must be a path",
    f"{AD_HOC}    allow: {{config.data: {{one_of: [[in]]}}}}": (
        f"{ENTRY}allow.config.data.one_of must be a list of texts, numbers, true or false"
    ),
    f"{AD_HOC}    allow: {{config.runtime.device: {{one_of: [cpu]}}}}": (
        f"{ENTRY}it must not free config.runtime.device: keys, devices and places of state are the worker's own"
    ),
    f"{AD_HOC}    allow: {{knight: {{kind: day}}}}": (
        f"{ENTRY}knight must be left out: its flow has config, train_on, wait_hours"
    ),
    f"{AD_HOC}    parameters: {{config: {{data: 'postgresql://dana:hunter2@host/db', schema: a, out: b}}}}": (
        f"{ENTRY}config.privacy must be given under `parameters`, or free under `allow`"
    ),
}


@pytest.mark.parametrize("content", MALFORMED)
def test_a_malformed_file_is_one_sentence_with_file_and_key_and_no_value(
    tmp_path: Path, capfd, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """Prefect logged a list of pydantic's with all parameters, a password among them, above the sentence."""
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "home"))  # the command sets it, for its children
    (tmp_path / "mine.yaml").write_text(content)
    code, out, err = run_cli("serve", "--file", tmp_path / "mine.yaml", "--home", tmp_path / "home")
    (sentence,) = (err + capfd.readouterr().err).splitlines()
    name = "error: --file=" if MALFORMED[content] == NO_LIST else "error: "
    between = " " if MALFORMED[content].startswith(("must", "is")) else ": "
    assert (code, out, sentence) == (1, "", f"{name}{tmp_path / 'mine.yaml'}{between}{MALFORMED[content]}")
    assert not (tmp_path / "home").exists()


def add_days(folder: Path, days: list[date]) -> None:
    """Give the clinic's rows a day each, which tells partitions apart."""
    table, schema = pq.read_table(folder / "clinic.parquet"), yaml.safe_load((folder / "clinic.yaml").read_text())
    pq.write_table(
        table.append_column("seen", pa.array([days[row % len(days)] for row in range(table.num_rows)])),
        folder / "clinic.parquet",
    )
    schema["columns"]["seen"] = {"type": "datetime", "min": date(2026, 1, 1), "max": date(2026, 12, 31)}
    (folder / "clinic.yaml").write_text(yaml.safe_dump({**schema, "partition": "seen"}, sort_keys=False))


def test_disjoint_partitions_cost_the_largest_of_them(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 0.6)
    add_days(tmp_path, [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)])
    for night, epsilon in (("2026-01-01", 0.5), ("2026-01-02", 0.3), ("2026-01-03", 0.5)):
        run = go(start(config(tmp_path, night, epsilon), f"clinic-{night}", night))
        assert run.plan.release.contract.name == f"clinic-{night}" and run.settings.account == f"clinic/seen={night}"
        assert "any number of them fits" in explain(ledger, run, night)
        assert list(balances(run)) == ["clinic"]  # a night's own account is full by design, and no event
    assert Decimal("0.49") < ledger.balance("clinic").spent_epsilon <= Decimal("0.5")
    assert ledger.balance("clinic").children == tuple(f"clinic/seen=2026-01-0{day}" for day in (1, 2, 3))
    with pytest.raises(BudgetExhausted):
        start(config(tmp_path, "large", 0.7), "clinic-large", "2026-01-04")
    with pytest.raises(BudgetExhausted):  # the same night again, as another run
        start(config(tmp_path, "twice"), "clinic-again", "2026-01-01")
    assert ledger.verify() == []


def test_nights_that_are_charged_as_a_family_hand_over_its_one_signature(tmp_path: Path) -> None:
    ledger, nights = opened(tmp_path, 0.6), ("2026-01-01", "2026-01-02")
    add_days(tmp_path, [date(2026, 1, 1), date(2026, 1, 2)])
    private, public = write_key(tmp_path / "officer.pem")
    ledger.change_cap("clinic", reason="an officer signs from now on", officer=Officer.read("Ada", public))
    runs = [start(config(tmp_path, night, 0.5), f"clinic-{night}", night) for night in nights]
    charges = [charges_of(run)[0] for run in runs]
    accounts = [accounts_to_open(run.settings, run.plan.release.contract.name)[0] for run in runs]
    asked = ledger.asked(*charges, first_opens=accounts)
    ledger.reserve(*charges, approval=asked[1].approve("Ada", private), first_opens=accounts)
    for run, charge in zip(runs, charges, strict=True):
        out = carry_out(run, prefect=False).settings.out
        assert verify_hand_off(out).faults == []
        manifest = read_manifest(out)
        assert manifest.format == 12 and manifest.approved.plans == tuple(each.key for each in charges)
        assert (manifest.approved_as.account, manifest.approved_as.run) == ("clinic", runs[0].name)
        lied = manifest.model_copy(update={"approved_as": manifest.approved_as.model_copy(update={"run": "another"})})
        (out / "manifest.json").write_text(lied.to_json())
        assert verify_hand_off(out).faults == ["the officer's approval is not a signature of this run and its plan"]
        assert charge.key in manifest.approved.plans


@pytest.mark.slow
def test_sequential_nights_add_up_and_the_plan_says_how_many_more_fit(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 1.0)
    first = start(config(tmp_path, "night-0", 0.4), "clinic-0")
    promised = nights_that_fit(ledger, first)
    assert 1 <= promised <= 6 and f"{promised} like it fit" in explain(ledger, first, "")
    go(first)
    assert list(balances(first)) == ["clinic"]
    assert nights_that_fit(ledger, first) == promised  # the night itself is counted once, before and after
    for number in range(1, promised + 1):
        go(start(config(tmp_path, f"night-{number}", 0.4), f"clinic-{number}"))
    with pytest.raises(BudgetExhausted):
        start(config(tmp_path, "one-more", 0.4), "clinic-more")


def test_users_are_not_disjoint_over_nights(tmp_path: Path) -> None:
    opened(tmp_path, 1.0, **UNIT)
    with refused(InvalidArgument, "unit of users", name="partitions", value="disjoint"):
        start(config(tmp_path), "clinic-night", "2026-01-01")


def test_a_run_that_is_started_again_under_its_name_is_the_same_run(tmp_path: Path, monkeypatch) -> None:
    from flows.with_prefect import worker

    ledger = opened(tmp_path, 1.0)
    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "home"))
    assert worker.find_here("clinic-night") is None
    run = go(start(worker.placed_here(config(tmp_path)), "clinic-night"))
    assert worker.find_here("clinic-night") == run
    go(run)
    assert ledger.balance("clinic").charges == 1 and os.environ["NACRE_HOME"] == str(run.home)
