"""Output of the commands about runs: tables for people, all of them public."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer
from rich.markup import escape
from rich.table import Table

from dpmodels.authoring.lint import load_contract
from dpmodels.contract.remarks import in_short, is_declared, is_of_dates
from dpmodels.errors import ArtifactError, NacreError, Unsuitable
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.hand_off.verification import BESIDE_SIGNATURES, VERIFIED, Verification
from dpmodels.ledger.approval import Approval, ApprovalRequest
from dpmodels.pages.advice import drowned_in_words
from dpmodels.pages.leaving import FILES
from dpmodels.pages.notes import notes_of, together
from dpmodels.plural import counted
from dpmodels.releases.plan import Line, Plan
from flows.command_line.console import exit_on, note, print_facts, print_json, print_table, say
from flows.command_line.outcomes import outcome_of
from flows.command_line.printing import echo
from flows.command_line.summary import show_outcome
from flows.config import Charged, SynthesizeConfig
from flows.description import few_rows, rows_made_public, warnings_in
from flows.planning import cautions_about, cautions_of, delta_over_rows
from flows.sections import ClientPrivacyConfig, PrivacyConfig, PureConfig
from tasks.run.accounts import has_opened
from tasks.run.fits.changes import Changes
from tasks.run.remove import charged_for, folders_of
from tasks.run.runs import UNFINISHED_PAID, Listed, inside, is_handed_over, listed, resume_command, stays_inside
from tasks.run.store import Run
from tasks.stages.draw_rows import RARE, Drawn
from tasks.stages.noisy_tables import Written

PRODUCTS = {
    "synthetic": "synthetic table",
    "embeddings": "embeddings",
    "classifier.safetensors": "classifier",
    "soft-labels.parquet": "soft labels",
}
"""What a hand-off holds besides its report, and what it is called."""
CHECKED = ("files", "budget", "unit", "charge", "signature", "approved", "may_leave", *BESIDE_SIGNATURES, "records")
CALLED = {"approved": "charge_approved"}
"""What of these is called otherwise where a person reads it: that files may leave is approved apart."""
UNSEEN = "not_checked"
"""What a check of a hand-off has seen, by the names of its facts, and what none can see."""
PAGES = {"statement.html": "statement for an officer", "data-sheet.html": "data sheet", "model-card.html": "model card"}


OF_FILES_ALONE = "; exit code 0 is of the files alone"
"""What a check says beside its exit code, where it does not know whether the files may leave."""
NOT_TO_LEAVE = 4
"""The exit code of a check by an officer's key, where no officer signed that the files may leave."""


def caution(privacy: PrivacyConfig | PureConfig | ClientPrivacyConfig, line: Line | None = None) -> None:
    """Warn of a budget that hardly promises anything, which a line of a plan may spend."""
    for sentence in cautions_of(privacy.target_epsilon, getattr(privacy, "delta", 0.0), line):
        echo(f"warning: {sentence}", err=True)


def caution_of(plan: Plan, config: Charged) -> list[str]:
    """Warn of what a plan's synthetic rows are not, and of too few rows for its noise; return what was said.

    How many rows of each user are used is a note where the schema says so.
    """
    of_rows = (say(line) for line in plan.lines[:1] for say in (few_rows, delta_over_rows))
    sentences = [*cautions_about(plan.whole), *filter(None, of_rows)]
    unit = load_contract(config.table_schema).unit if isinstance(config, SynthesizeConfig) else None
    bound = unit is not None and "max_rows" in unit.model_fields_set
    notes = together(one for one in sentences if is_declared(one, bound))
    warnings = [one for one in sentences if not is_declared(one, bound)]
    for sentence in warnings:
        echo(f"warning: {in_short(sentence)}", err=True)
    for sentence in notes:
        note(f"note: {sentence}")
    return [*warnings, *notes, *together(one for one in plan.whole.remarks if is_declared(one, bound))]


def show_public(run: Run) -> None:
    """Say which rows a run hands over as they are, before anything is charged."""
    for sentence in rows_made_public(run.plan.whole, run.settings.unlisted):
        echo(f"becomes public: {sentence}", err=True)


def show_plan(
    facts: Mapping[str, str],
    refusal: NacreError | None = None,
    figures: Mapping[str, Any] | None = None,
    refused: bool = False,
) -> None:
    """Print what a plan would charge, as its figures where there are some, and end as the run would be refused.

    Raises:
        NacreError: the account would refuse the run.
        Exit: with 1, if the run would be ``refused`` for its data.
    """
    if figures is None:
        print_facts("plan", facts)
    else:
        print_json(figures)
    if refusal is not None:
        raise refusal
    if refused:
        raise typer.Exit(1)


def show_runs(runs: Sequence[Listed], as_json: bool) -> None:
    """Print the runs of a home, and below them why some did not end."""
    if as_json:  # `name` is what earlier versions called the run
        return print_json([{"run": one.name, **asdict(one)} for one in runs])
    table = Table()
    for heading in ("run", "time (UTC)", "data set", "method", "last stage", "state"):
        table.add_column(heading, overflow="fold")
    for one in runs:
        table.add_row(*map(escape, (one.name, f"{one.day} {one.time}", one.data_set, one.method, one.stage, one.state)))
    print_table(table)
    for one in runs:
        if one.why:
            echo(f"{one.name}: {one.why}{_what_next(one)}")


def _what_next(one: Listed) -> str:
    """Say what a run that did not end was charged, and which command goes on with it or deletes it."""
    if not one.next:
        return ""
    paid = one.state == UNFINISHED_PAID
    return f"; it is paid for: {one.next} goes on, for nothing" if paid else f"; nothing was charged: {one.next}"


def facts_of_unfinished(runs: Sequence[Run]) -> dict[str, str]:
    """Say which runs would be deleted, and why each stopped."""
    return {one.name: f"{one.data_set}, {one.method}, of {one.day}: {one.why}" for one in map(listed, runs)}


def show_hand_off(run: Run, as_json: bool = False, fail_on_checks: bool = False, printed: Collection[str] = ()) -> None:
    """Print where the files of a hand-off are; of a client's run, its release; of models that stay inside, a page.

    ``printed``: warnings that stand on the terminal already.
    """
    if as_json and (run.settings.federation or stays_inside(run)):
        return print_json(outcome_of(run, {}))
    if run.settings.federation:
        return print_facts("released", {"run": run.name, "release": str(run.place("sanitize"))})
    if stays_inside(run):
        folder = inside(run)
        facts = {"run": run.name, "models": f"{folder} (sensitive: stay inside)", "page": str(folder / "rounds.html")}
        return print_facts("finished", {**facts, "ledger": _payer(run)})
    with warned(run.place("validate") / "report.json", fail_on_checks, printed):
        if as_json:
            return print_json(outcome_of(run, hand_off(run)))
        print_facts("hand-off", hand_off(run))
        show_outcome(run)


def hand_off(run: Run) -> dict[str, str]:
    """Say where the files of a hand-off are, and who paid."""
    facts = {
        "run": run.name,
        **({"hand-off": run.settings.bucket} if run.settings.bucket else {}),
        **{what: str(run.settings.out / name) for name, what in PRODUCTS.items() if (run.settings.out / name).exists()},
        "report": str(run.settings.out / "report.html"),
        **{what: str(run.settings.out / name) for name, what in PAGES.items() if (run.settings.out / name).exists()},
        "manifest": str(run.settings.out / "manifest.json"),
        "ledger": _payer(run),
    }
    if has_opened(run):
        place = f"--ledger {run.ledger_url}" if run.ledger_url else f"--home {run.home}"
        more = f"`nacre ledger cap {run.settings.account} --epsilon EPSILON --reason REASON {place}` allows more"
        facts["account"] = f"{run.settings.account} was opened by this run, with its budget as the cap; {more}"
    internal = run.sensitive / "internal-report.html"
    if internal.exists():
        facts["internal report"] = f"{internal} (sensitive: stays inside)"
    return facts


def _payer(run: Run) -> str:
    """Say which ledger has the charge, and which account paid, if anything was charged."""
    if run.settings.is_paid_elsewhere:
        return "paid elsewhere"
    return f"{run.ledger} (account {run.settings.account})" if run.plan.lines else "nothing was charged"


def show_fitted(run: Run, changes: Changes, as_json: bool, fail_on_checks: bool) -> None:
    """Print what another fit of a release changed, who paid for the release, and where the files are."""
    echo(f"{changes}\nnothing was charged: the release is paid for", err=as_json)
    show_hand_off(run, as_json, fail_on_checks)


def show_approved(run: Run, approval: Approval, request: ApprovalRequest, as_json: bool) -> None:
    """Print what an officer signed."""
    receipt, then = (
        f"signed by {approval.officer}:\n{request.text}signature {approval.signature}",
        resume_command(run),
    )
    signed = {"run": run.name, "officer": approval.officer, "signed": request.text, "signature": approval.signature}
    say(f"{receipt}\nnext: {then}", {**signed, "next": then}, as_json)


def facts_of_removal(run: Run) -> dict[str, str]:
    """Say which files of a run would be deleted, and what stays: its charges and its hand-off."""
    zones = dict[str, list[str]]()
    for folder in folders_of(run):
        zones.setdefault(f"{folder.parent.name} folder", []).append(str(folder))
    facts = {zone: "\n".join(folders) for zone, folders in zones.items()}
    for reservation in charged_for(run):
        budget, fate = reservation.charge.budget, "was given back" if reservation.state == "voided" else "stays charged"
        amount = f"epsilon={budget.epsilon}, delta={budget.delta} on account {reservation.charge.account}"
        facts[f"charge {reservation.key[:12]}"] = f"{amount}, {reservation.state}: {fate}"
    if payer := run.settings.paid_by:
        facts["paid by"] = f"run {payer}, whose release it sampled again"
    if is_handed_over(run) and not stays_inside(run):
        facts["stays"] = f"{run.settings.bucket or run.settings.out}, what was handed over"
    return facts


def show_drawn(draw: Drawn, out: Path, as_json: bool) -> None:
    """Print what was drawn from a generator, and warn where it made the rows of hardly any record."""
    if as_json:
        return print_json({**asdict(draw), "file": str(out)})
    facts = {"file": str(out), "rows": f"{draw.rows}, drawn by {draw.method} of run {draw.run}; nothing was charged"}
    facts["identifiers"] = f"after those of {draw.after:,} rows; for rows beside both, --after {draw.after + draw.rows}"
    if draw.where:
        sentence = f"{100 * draw.share:.3g} % of what it draws, about {draw.records:.3g} records of the data set"
        facts |= {"where": " and ".join(draw.where), "share": sentence}
    print_facts("drawn", facts)
    if draw.records < 1:
        echo(f"warning: {RARE}", err=True)


def show_written(written: Written, out: Path, as_json: bool) -> None:
    """Print which noisy tables were written."""
    if as_json:
        return print_json({**asdict(written), "file": str(out)})
    counts = f"{written.counts} counts in {written.tables} tables, released by {written.method}; nothing was charged"
    print_facts("noisy tables", {"file": str(out), "holds": counts, "charge": written.release})


OF_COUNTS = (".1f", ".1f", ".4f", ",.0f")
"""How a count, its standard error, its share and the likely count are written."""


def show_counts(counts: pa.Table, as_json: bool) -> None:
    """Print the counts of some columns, the last of whose figures are count, standard error, share and likely count."""
    rows = counts.to_pylist()
    if as_json:
        return print_json([{name: _spelled(value) for name, value in row.items()} for row in rows])
    table, forms = Table(), dict(zip(counts.column_names[-4:], OF_COUNTS, strict=True))
    for name in counts.column_names:
        table.add_column(escape(name), justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(escape(_figure(value, forms.get(name, "g"))) for name, value in row.items()))
    print_table(table)


def _spelled(value: Any) -> Any:
    """Return a figure as JSON has it, which has no dates."""
    return value if isinstance(value, int | float | None) else str(value)


def _figure(value: Any, form: str) -> str:
    if not isinstance(value, float):
        return str(value).lower() if isinstance(value, bool) else str(value if value is not None else "")
    return f"{value:{form}}"


def show_report(run: Run, out: Path | None, as_json: bool, fail_on_checks: bool) -> None:
    """Print where a finished run's publishable report is; if ``out`` is named, render the report again to that file.

    Raises:
        ArtifactError: the run has no report yet, or the file would lie in a hand-off.
    """
    from tasks.stages.validate import render_again

    if stays_inside(run):
        raise Unsuitable(f"run {run.name} hands nothing over, so it has no such report; see {inside(run)}/rounds.html")
    report = run.finished("validate")
    if report is None:
        raise ArtifactError(f"run {run.name} has no report yet; resume it first")
    if out is not None and out.parent.joinpath(MANIFEST).exists():
        raise ArtifactError(f"{out} would change a hand-off, whose manifest knows every file: name a file elsewhere")
    if out is not None:
        out.write_text(render_again(report), encoding="utf-8")
    page = out or report.path / "report.html"
    with warned(report.path / "report.json", fail_on_checks):
        print_facts("report", {"page": str(page), "figures": str(report.path / "report.json")}, as_json)


def spaced(facts: Mapping[str, str]) -> dict[str, str]:
    """Return facts by names for people, of names for programs."""
    return {name.replace("_", " "): words for name, words in facts.items()}


def show_verified(
    folder: str, public_key: Path | None, officer_key: Path | None, records: Path | None, as_json: bool
) -> None:
    """Check a hand-off and print the verdict first, then what is wrong with it, or who signed it.

    Raises:
        ArtifactError: something is wrong.
        Exit: with 1, if another key signed than the one that the caller named; with 4, if the caller named an officer's
            key and no officer signed that the files may leave; else with 3, if nobody whom the caller named vouches for
            it.
    """
    from tasks.run.bucket import verify

    verified = verify(folder, public_key, officer_key)
    if records is not None and not verified.faults:
        from tasks.stages.disclose import verify_records

        verified.faults += verify_records(Path(folder), records, public_key)
    _show_faults(folder, verified, as_json)
    facts = verified.facts
    if records is not None:
        facts["records"] = f"those in {records} are of this hand-off; what nobody declared is of whoever wrote them"
    if as_json:
        leaving = {"leaving": verified.leaving, "next": verified.next_step}
        leaving |= {name.replace(" ", "_"): said for name, said in verified.beside_leaving.items()}
        beside = {"cautions": verified.cautions, "notes": verified.notes}
        print_json({"verdict": verified.verdict, **facts, **leaving, **beside})
    else:
        echo(verified.headline)
        alone = OF_FILES_ALONE if verified.is_of_files_alone else ""
        echo(f"{FILES}: {verified.leaving}{alone}")
        for name, said in verified.beside_leaving.items():
            echo(f"{name}: {said}")
        for title, names in _in_blocks(facts).items():
            echo(title)
            print_facts("", spaced({CALLED.get(name, name): facts[name] for name in names}))
        echo(verified.next_step)
    for kind, remarks in (("caution", verified.cautions), ("note", verified.notes)):
        for one in remarks:
            echo(f"{kind}: {one}", err=True)
    if verified.may_not_leave:
        raise typer.Exit(NOT_TO_LEAVE)
    exit_on(verified.verdict != VERIFIED)


def _show_faults(folder: str, verified: Verification, as_json: bool) -> None:
    """Print the verdict on a hand-off with faults, that it is not to be used, and these; nothing without any.

    Raises:
        ArtifactError: there are faults.
        Exit: with 1, where another key signed than the one that the caller named.
    """
    if not verified.faults:
        return
    if as_json:
        signature = verified.signature_beside_faults
        print_json({"verdict": verified.verdict, "faults": verified.faults, "signature": signature})
    else:
        echo(verified.headline)
        echo(f"{FILES}: {verified.leaving}")
    if verified.is_of_other_key:  # the headline has said all that there is to say
        raise typer.Exit(1)
    for fault in verified.faults:
        echo(fault, err=True)
    echo(f"signature: {verified.signature_beside_faults}", err=True)
    raise ArtifactError(
        f"{verified.verdict}: the hand-off {folder} has {counted(len(verified.faults), 'fault')}: "
        "do not use it, and ask whoever sent it"
    )


def _in_blocks(facts: Mapping[str, str]) -> dict[str, list[str]]:
    """Sort what a check says of a hand-off: what it has seen, what whoever made it says, and what nobody can see."""
    declared = [name for name in facts if name not in (*CHECKED, UNSEEN)]
    blocks = {"checked": [name for name in CHECKED if name in facts], "declared, and not checked": declared}
    return {**blocks, "beyond any check of files": [UNSEEN]}


@contextmanager
def warned(report: Path, fail_on_checks: bool = False, printed: Collection[str] = ()) -> Iterator[None]:
    """Print the warning of a whole publishable report before what the block prints, and the other warnings after it.

    Those that were printed when the run began are not repeated, nor what is said of dates then.

    Raises:
        Exit: there are warnings, and whoever called wanted that.
    """
    facts = json.loads(report.read_text(encoding="utf-8"))
    first, rest = drowned_in_words(facts), warnings_in(facts)
    if first:
        echo(f"WARNING: {first}", err=True)
    yield
    for line in rest:
        if line not in printed and not is_of_dates(line):
            echo(f"warning: {line}", err=True)
    for line in notes_of(facts):
        if line not in printed:
            note(f"note: {line}")
    exit_on(fail_on_checks and bool(first or rest))
