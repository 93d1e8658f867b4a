"""The audit of one method: every check, in order, on made data; free, for nobody's data is read."""

import platform
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import ParallelEvent, PureEvent, leaves
from dpmodels.audit.attack import attack_findings
from dpmodels.audit.conduct import conduct_findings
from dpmodels.audit.findings import Audit, Finding, Recovery
from dpmodels.audit.gaussians import drawn, reach_finding
from dpmodels.audit.lower_bound import ALPHA
from dpmodels.audit.naming import naming_findings
from dpmodels.audit.optimum import optimum_findings
from dpmodels.audit.replay import LEAST_REACH, ROUNDED, Replay, Step, plain, replayed
from dpmodels.audit.selection import k_norm_findings, loss_finding, sampler_finding
from dpmodels.audit.subjects import Subject, of_method, subject_of
from dpmodels.audit.training import training_findings
from dpmodels.errors import NacreError
from dpmodels.methods.quick import QUICK

Found = tuple[list[Finding], list[Recovery]]

WITH_OPTIMA = ("federated-both", "federated-heads", "federated-scores")
"""Methods that release an optimum with noise."""
SHORT = dict.fromkeys(
    WITH_OPTIMA,
    (
        0.75,
        "the bound on an optimum is reached only where weaker and weaker regularization meets more and more records",
    ),
)
"""Methods of which less than nine tenths can be seen, with what is asked for instead, and why."""
ROWS_OF_A_USER, EXTREMES = 2, 4
"""Rows of the users of a table, and how many neighbors it has, each with an extreme user more."""
QUICK_CHOICES, FULL_CHOICES = 2_000, 10_000
UNCOVERED = (
    "settings other than the quick ones of this audit: their sensitivities are proved, and tested by themselves",
    "time, memory and processor caches, which grow with the number of rows",
    "the randomness of the operating system, on which all noise rests",
    "extremes that nobody thought of: neighbors are those that the proofs name as the worst",
    "code that does something else on more rows, or outside of an audit: the made data have some hundreds of rows",
    "what is written neither by Python nor into the home, the hand-off or the folder for temporary files",
    "whether the contract, which is public, was itself written by looking at the data",
)


def audit(method: str, folder: Path, full: bool = False) -> Audit:
    """Audit a method in an empty folder.

    Raises:
        InvalidArgument: there is no such method.
    """
    subject = subject_of(method)
    findings, recovered = findings_of(subject, folder, full)
    return Audit(
        method=method,
        epsilon=subject.line.budget.epsilon,
        delta=subject.line.budget.delta,
        full=full,
        confidence=1 - ALPHA,
        machine=f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        findings=tuple(findings),
        recovered=tuple(recovered),
        uncovered=UNCOVERED,
    )


def findings_of(subject: Subject, folder: Path, full: bool = False) -> Found:
    """Hold a subject to every check that it has something for."""
    budget = budget_finding(subject)
    if not budget.holds:
        return [budget], []
    try:
        replay = replayed(subject, made(folder / "neighbors"))
    except NacreError as fault:
        return [Finding(check="neighbors", holds=False, says=str(fault))], []
    findings, recovered = _of_steps(subject, replay, folder, full)
    findings = [
        budget_finding(subject),
        *neighbors_findings(replay),
        *findings,
        *naming_findings(subject, made(folder / "names")),
        *conduct_findings(subject, made(folder / "conduct")),
    ]
    if subject.name in WITH_OPTIMA:
        findings += optimum_findings()
    if subject.name in QUICK:
        findings += attack_findings(subject, made(folder / "attack"), full)
        if not QUICK[subject.name].trained and subject.line.budget.unit.user is None:
            findings += users_findings(subject, made(folder / "users"))
    return findings, recovered


def made(folder: Path) -> Path:
    """Make a folder."""
    folder.mkdir(parents=True)
    return folder


def budget_finding(subject: Subject) -> Finding:
    """Say whether the plan's events spend what was asked for, and no more."""
    budget, event = subject.line.budget, subject.line.event
    spent = spent_epsilon([event], budget.delta_exact)
    within = Decimal("0.99") * budget.epsilon_exact <= spent <= budget.epsilon_exact
    return Finding(check="budget", holds=within, says=f"the plan spends {float(spent):.6g} of {budget.epsilon:g}")


def neighbors_findings(replay: Replay) -> Iterator[Finding]:
    """Say whether neighbors left the same files, charges and words, and whether parts are disjoint."""
    differing = ", ".join(replay.differing)
    says = f"with what was released copied, {replay.neighbors} neighbors leave the same bytes, names, sizes and charges"
    if others := len(replay.subject.others):
        says += f", and so do {others} data sets that are no neighbors"
    if differing:
        says = f"other data leave other bytes: {differing}"
    yield Finding(check="neighbors", holds=not differing, says=says)
    if replay.apart and replay.subject.name not in WITH_OPTIMA:
        says = "what sums have over two parts of the data adds up" + ("" if replay.adds_up else " to something else")
        yield Finding(check="records", holds=replay.adds_up, says=f"{says}: a record adds the same in any company")
    if any(isinstance(each, ParallelEvent) for each in leaves([replay.subject.line.event])):
        says = "a unit moves what is trained on one part of the data alone"
        yield Finding(check="parts", holds=not replay.in_two_parts, says=says)
    if letters := sum(each.epsilon for each in plain(replay.subject.line.event) if isinstance(each, PureEvent)):
        says = (
            f"all letters that a unit moves cost epsilon {replay.lost:.4g} together, of {letters:.4g} that are charged"
        )
        yield Finding(check="parts", holds=replay.lost <= letters * ROUNDED, says=says)


def users_findings(subject: Subject, folder: Path) -> Iterator[Finding]:
    """Hold the steps of a table of users, each with up to two rows, to what is charged; DP-SGD hides records alone."""
    users = of_method(subject.name, ROWS_OF_A_USER, subject.line.budget.epsilon)
    replay = replayed(replace(users, worlds=users.worlds[: 1 + EXTREMES]), folder)
    yield from neighbors_findings(replay)
    yield from (reach_finding(f"users, {name}", step) for name, step in named_steps(replay))


def _of_steps(subject: Subject, replay: Replay, folder: Path, full: bool) -> Found:
    findings, recovered = list[Finding](), list[Recovery]()
    least, short = SHORT.get(subject.name, (LEAST_REACH, ""))
    for name, step in named_steps(replay):
        findings.append(reach_finding(name, step, least))
        if not step.reach:
            continue
        if step.kind == "gaussian":
            draws = drawn(step, full)
            findings.append(draws.finding(name, full))
            recovered.append(draws.recovered(name, full, short))
        elif step.kind == "k-norm":
            more, recovery = k_norm_findings(name, step, FULL_CHOICES if full else QUICK_CHOICES)
            findings, recovered = findings + more, [*recovered, recovery]
        elif step.kind in ("exponential", "choices"):
            loss, recovery = loss_finding(name, step)
            findings += [loss, sampler_finding(name, step, FULL_CHOICES if full else QUICK_CHOICES)]
            recovered.append(recovery)
    if trained := [step for step in replay.steps if step.kind == "sgd"]:
        more, recovery = training_findings(subject, trained, made(folder / "training"), full)
        findings, recovered = findings + more, [*recovered, recovery]
    return findings, recovered


def named_steps(replay: Replay) -> Iterator[tuple[str, Step]]:
    """Yield the steps with a name; of those that are charged alike and of one size only the first."""
    events = set()
    for number, step in enumerate(replay.steps, start=1):
        alike = step.kind, step.event, step.draw.values.shape
        if alike not in events:
            events.add(alike)
            mechanism = step.event.mechanism or step.kind
            yield f"step {number}, {mechanism}", step
