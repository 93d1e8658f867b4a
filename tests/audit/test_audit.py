"""The audit of what is not of the registry, its page, and its command."""

import io
import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape
from scipy.special import softmax

from dpmodels.accounting.events import PureEvent, SampledGaussianEvent
from dpmodels.audit import training
from dpmodels.audit.audit import WITH_OPTIMA, audit, findings_of
from dpmodels.audit.canary import log_ratio, odd_batches, scores
from dpmodels.audit.findings import CHECKS, Finding
from dpmodels.audit.left import held
from dpmodels.audit.replay import Step
from dpmodels.audit.selection import exact_loss, radius_law
from dpmodels.audit.subjects import SUBJECTS, of_client
from dpmodels.audit.tap import Draw
from dpmodels.methods.registry import of_kind
from dpmodels.pages.audit import render_audit
from tests.audit.of_users import FAULTS
from tests.kit.audits import an_audit
from tests.kit.support import run_cli

OTHERS = {name: 0.75 if name in WITH_OPTIMA else 0.9 for name in SUBJECTS if name not in of_kind("table")}


@pytest.mark.parametrize("method", OTHERS)
@pytest.mark.nightly_if(
    "two-tables",
    "federated-scores",
    "two-tables-joined",
    "federated-both",
    "letters-of-users",
    "federated-moments",
    "document-sketch",
)
def test_the_audit_holds_whatever_it_looks_at(tmp_path, method):
    found = audit(method, tmp_path)
    assert [one.says for one in found.findings if not one.holds] == []
    assert {"budget", "neighbors", "sensitivity", "resume"} <= {one.check for one in found.findings}
    assert found.recovered and all(one.share > OTHERS[method] for one in found.recovered)


def test_where_sizes_are_public_a_record_is_replaced(tmp_path):
    found, recovered = findings_of(of_client("federated-moments", public=True), tmp_path)
    short = [one for one in found if not one.holds and one.check != "sensitivity"]
    assert short == [] and all(0.6 < one.reach <= 1 for one in recovered)


def choice(scores: list[int], difference: list[int], scale: float) -> Step:
    return Step(Draw("choices", np.array([scores]), scale, 0), PureEvent(epsilon=1.0), np.array([difference]), "", 1, 2)


def test_the_loss_of_a_choice_is_that_of_its_probabilities():
    scores, difference, scale = np.array([5, 3, 0, -4]), np.array([-2, 1, 2, 0]), 3.0
    p, q = softmax(scores / scale), softmax((scores + difference) / scale)
    epsilon, mu = exact_loss(choice(scores.tolist(), difference.tolist(), scale))
    assert epsilon == pytest.approx(np.abs(np.log(q / p)).max())
    worst = exact_loss(choice([1, -1], [2, -2], 2.0))  # two options about even odds are as bad as any
    assert worst[0] < 2 and 0 < mu < 2


def test_radii_of_cubes_have_the_law_of_the_density():
    law = radius_law(2, 1.5)
    points = np.abs(np.indices((81, 81)).reshape(2, -1) - 40).max(axis=0)
    weights = np.bincount(points, weights=np.exp(-points / 1.5))
    assert law[:30] == pytest.approx((weights / weights.sum())[:30])
    assert law.sum() == pytest.approx(1)


def test_odd_batches_keep_their_rules():
    assert all(odd_batches().values()) and len(odd_batches()) == 5


def test_a_canary_in_every_step_is_told_by_its_scores_as_much_as_is_charged_and_no_more():
    """Little noise, so that thirty trainings say something: 20 steps of (1 - q) N(0, z^2) + q N(1, z^2)."""
    event = SampledGaussianEvent(noise_multiplier=0.4, sampling_probability=0.4, steps=20)
    for attempt in range(2):  # one in some tens of thirty trainings says too little
        found, law = training.canary_epsilon(event, 1e-3, runs=30, alpha=0.05)
        assert law and training.canary_within(event, found, training.Decimal("1e-3"))
        if found > 0.2:
            break
        assert attempt == 0, found
    ratio = log_ratio(np.array([-3.0, 0.5, 4.0]), event)
    near = np.exp(-(np.array([-3.0, 0.5, 4.0]) ** 2) / 0.32), np.exp(-(np.array([-4.0, -0.5, 3.0]) ** 2) / 0.32)
    assert ratio == pytest.approx(np.log((0.6 * near[0] + 0.4 * near[1]) / near[0]))
    assert scores(event, canary=True)[1].any()


def test_the_page_shows_claims_intervals_checks_and_what_is_not_covered():
    page = render_audit([an_audit().model_dump(mode="json")])
    for said in (
        "0.48 to 0.51",
        "at least 0.4",
        ">5.25</td>",
        "96\N{NO-BREAK SPACE}%",
        "all 1 checks hold",
        "it is as charged",
        "time",
    ):
        assert said in page
    broken = an_audit(findings=(Finding(check="noise", holds=False, says="too little <noise>"),), recovered=())
    page = render_audit([broken.model_dump(mode="json")])
    assert "a check does not hold" in page and "too little &lt;noise&gt;" in page
    assert not broken.holds and an_audit().recovered[0].share == 0.96


@pytest.mark.nightly
def test_the_command_prints_a_table_writes_a_page_and_gives_json(tmp_path):
    code, said, err = run_cli("audit", "--method", "document-sketch", "--out", tmp_path / "page.html")
    assert code == 0, err
    assert re.search(r"(\d+) of \1 checks hold", said) and "k-norm" in said and "ceiling" in said
    assert "Privacy audit of document-sketch" in (tmp_path / "page.html").read_text()
    with next(one for one in FAULTS if one.name == "the cube is too small").planted():
        code, said, _ = run_cli("audit", "--method", "document-sketch", "--method", "federated-moments", "--json")
    facts = json.loads(said)
    failed = {(one["method"], found["check"]) for one in facts for found in one["findings"] if not found["holds"]}
    assert code == 1 and len(facts) == 2 and failed == {("document-sketch", "choices")}


def test_what_cannot_be_done_is_refused_before_anything_is_tried(tmp_path, monkeypatch):
    monkeypatch.setattr("flows.audit.audited", lambda *given: pytest.fail("an audit was begun"))
    code, _, err = run_cli("audit", "--method", "moments", "--method", "nosuch")
    assert code == 1 and "method=nosuch must be one of nacre," in err
    (tmp_path / "taken").touch()
    for out, said in ((tmp_path, "be a file, and not a folder"), (tmp_path / "taken" / "page.html", "is no folder")):
        code, _, err = run_cli("audit", "--method", "moments", "--out", out)
        assert code == 1 and said in err


def test_every_check_is_explained_on_the_page_and_in_the_documentation():
    """The page of an audit has the words of docs/audit.md, and no check is without them."""
    page, html = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(), render_audit([an_audit().model_dump()])
    rows = re.findall(r"^\| (\w+) \| (.+) \| .+ \|$", page.split("## What is held to what")[1].split("## ")[0], re.M)
    assert dict(rows[1:]) == CHECKS and all(escape(each) in html for each in CHECKS.values())
    found = {fault.check for fault in FAULTS} | {"attack"}
    assert found == set(CHECKS)


def test_a_library_that_has_a_handler_of_its_own_fills_no_terminal_and_its_warnings_are_heard(tmp_path) -> None:
    log, shown = logging.getLogger("a_library"), io.StringIO()
    log.propagate = False
    log.setLevel(logging.WARNING)
    log.addHandler(logging.StreamHandler(shown))
    with held(tmp_path) as said:
        log.debug("each of a thousand steps")
        logging.getLogger("a_library.part").info("another")
        log.warning("something is odd")
    assert shown.getvalue() == "something is odd\n" and "odd" in said.getvalue() and "step" not in said.getvalue()


def test_lines_that_the_command_line_keeps_to_itself_are_heard_too(tmp_path, monkeypatch) -> None:
    """It silences its own logger in the process that audits."""
    log = logging.getLogger("nacre")
    monkeypatch.setattr(log, "propagate", False)
    log.setLevel(logging.ERROR)
    try:
        with held(tmp_path) as said:
            log.info("a row of Quillfeather")
        assert "Quillfeather" in said.getvalue()
        assert log.level == logging.ERROR and log.propagate is False
    finally:
        log.setLevel(logging.NOTSET)
