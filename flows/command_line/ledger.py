"""The commands of ``nacre ledger``: open and shape accounts, look at them, take them away, recover, verify."""

import json
import re
import shlex
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dpmodels.errors import AccountMissing, InvalidArgument, NacreError
from dpmodels.plural import counted
from flows.command_line.options import NUMBER, AllowLargeDelta, AsJson, Home, Url
from flows.command_line.printing import echo
from flows.sections import HOME

if TYPE_CHECKING:
    from dpmodels.ledger.ledger import Ledger

Name = Annotated[str, typer.Argument(help="Account.")]
Reason = Annotated[str, typer.Option(help="Why; it stays in the ledger for ever.")]
RunCap = Annotated[float | None, typer.Option(help="Most that one run may spend.", **NUMBER)]
OfficersKey = Annotated[Path | None, typer.Option(help="Private key (PEM) of an officer, where the ledger has one.")]
Expires = Annotated[str | None, typer.Option(help="Last day for charges, YYYY-MM-DD; nothing ever refreshes.")]

app = typer.Typer(no_args_is_help=True, help="Open, inspect, export and verify privacy accounts.")


class Open(TyperCommand):
    """Takes the cap by the names that its options had before, too, which the help does not show."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command."""
        return super().parse_args(ctx, [re.sub("^--cap-(epsilon|delta)(?==|$)", r"--\1", word) for word in args])


@app.command("open", cls=Open)
def open_account(
    name: Name,
    schema: Annotated[Path, typer.Option(help="Contract that names the data set and its privacy unit.")],
    epsilon: Annotated[float, typer.Option(help="Hard cap on everything ever released.", **NUMBER)],
    delta: Annotated[float, typer.Option(help="Delta of the cap.", **NUMBER)],
    owner: Annotated[str, typer.Option(help="Who answers for the account; public: pages of hand-offs name them.")] = "",
    note: Annotated[str, typer.Option(help="Free text kept with the account.")] = "",
    parent: Annotated[str, typer.Option(help="Account above; declares the data disjoint from its siblings'.")] = "",
    run_cap: RunCap = None,
    expires: Expires = None,
    key: OfficersKey = None,
    renyi_filter: Annotated[bool, typer.Option(help="A cap valid for budgets chosen adaptively, of any kind.")] = False,
    allow_large_delta: AllowLargeDelta = None,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Open an account with a hard cap.

    Example: nacre ledger open patients --schema patients.yaml --epsilon 3 --delta 1e-5
    """
    from dpmodels.authoring.lint import load_named
    from dpmodels.ledger.ledger import Ledger
    from flows.command_line.console import note_new_ledger
    from flows.command_line.ledger_show import show_opened
    from flows.planning import check_delta, make_budget
    from tasks.run.folders import close_home

    contract = load_named(schema)
    check_delta(delta, bool(allow_large_delta))
    cap = make_budget(epsilon, delta, contract.unit, adjacency=contract.adjacency)
    terms: dict[str, Any] = {"owner": owner, "note": note, "parent": parent, "run_cap": run_cap, **_signing(key)}
    terms |= {"expires": _day(expires), "composition": "renyi_filter" if renyi_filter else "exact"}
    note_new_ledger(_place(home, ledger))
    if not ledger:
        close_home(home or HOME)
    book = Ledger(_place(home, ledger))
    try:
        account = book.open_account(name, dataset=contract.name, budget_cap=cap, **terms)
    except AccountMissing:
        if key is not None:
            raise
        same = f"`{shlex.join(['nacre', *sys.argv[1:]])} --key KEY.pem`"
        raise AccountMissing(name, contract.name, f"an officer of this ledger gives the same command: {same}") from None
    show_opened(book, account, as_json)


@app.command("cap")
def cap(
    name: Name,
    reason: Reason,
    epsilon: Annotated[float | None, typer.Option(help="New cap; never below what is spent.", **NUMBER)] = None,
    delta: Annotated[float | None, typer.Option(help="New delta of the cap.", **NUMBER)] = None,
    run_cap: RunCap = None,
    expires: Expires = None,
    no_run_cap: Annotated[bool, typer.Option("--no-run-cap", help="Remove the maximum of one run.")] = False,
    no_expires: Annotated[bool, typer.Option("--no-expires", help="Remove the last day.")] = False,
    key: OfficersKey = None,
    allow_large_delta: AllowLargeDelta = None,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Change a cap, openly: the change and its reason are entries of the chain. What was spent stays spent.

    Example: nacre ledger cap patients --epsilon 5 --reason "second study, approved by the board"
    """
    from flows.command_line.ledger_show import show_accounts

    if delta is not None:
        from flows.planning import check_delta

        check_delta(delta, bool(allow_large_delta))
    options = {"epsilon": epsilon, "delta": delta, "run_cap": run_cap, "expires": _day(expires)}
    changes: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    for term, removed in (("run_cap", no_run_cap), ("expires", no_expires)):
        if removed and term in changes:
            raise InvalidArgument(term, changes[term], "not be set and removed at once")
        changes |= {term: None} if removed else {}
    if not changes and key is None:
        raise NacreError("nothing to change: give --epsilon, --delta, --[no-]run-cap or --[no-]expires")
    book = existing_ledger(home, ledger)
    show_accounts(book, [book.change_cap(name, reason=reason, **_signing(key), **changes)], as_json)


@app.command("officer")
def officer(
    name: Name,
    reason: Reason,
    officer_name: Annotated[str, typer.Option("--name", help="Who must sign every charge from now on.")] = "",
    key: Annotated[Path | None, typer.Option(help="The officer's ed25519 public key (PEM).")] = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="No charge needs a signature any more.")] = False,
    signing_key: OfficersKey = None,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Name who must sign an account's charges, and those of the accounts below it; an entry of the chain.

    Example: nacre ledger officer patients --name "Ada Smith" --key officer.pub --reason "policy of 2026"
    """
    from dpmodels.keys import fingerprint
    from dpmodels.ledger.approval import Officer
    from flows.command_line.ledger_show import show_accounts

    if nobody == bool(officer_name and key):
        raise NacreError("name the officer with --name and --key, or nobody with --nobody")
    signer = Officer.read(officer_name, key) if key and not nobody else None
    book = existing_ledger(home, ledger)
    account = book.change_cap(name, reason=reason, officer=signer, **_signing(signing_key))
    by = f"{signer.name}, by the key whose SHA-256 is {fingerprint(signer.public_key)}" if signer else "nobody"
    echo(f"charges of {name} are signed by: {by}", err=True)
    show_accounts(book, [account], as_json)


@app.command("moved")
def moved(reason: Reason, home: Home = None, ledger: Url = None, as_json: AsJson = False) -> None:
    """Say that the home was moved, or its ledger put back from a copy, and that no other copy is used any more.

    Example: nacre ledger moved --reason "new disk; the old one is destroyed"
    """
    from flows.command_line.console import say
    from tasks.run.home import home_faults, remember

    path, book = (home or HOME).absolute(), existing_ledger(home, ledger)
    if not reason.strip():
        raise NacreError("a ledger is moved for a reason, which stays in the home")
    lacking = [fault for fault in home_faults(path, ledger or "", book) if not fault.movable]
    if lacking:
        raise NacreError(str(lacking[0]))
    remember(path, ledger or "", book, reason)
    say("the home knows its ledger again", {"home": str(path), "reason": reason}, as_json)


@app.command("show")
def show(
    name: Annotated[str | None, typer.Argument(help="One account, with its charges.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Also draw the account's burn-down (SVG).")] = None,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show accounts: cap, spent, remaining, and the charges of one account.

    Example: nacre ledger show patients --picture burn-down.svg
    """
    from flows.burn_down import draw_burn_down
    from flows.command_line.ledger_show import show_account, show_accounts

    book = existing_ledger(home, ledger)
    if name is None:
        show_accounts(book, book.accounts(), as_json)
    else:
        show_account(book, book.account(name), as_json)
    if picture is not None:
        if name is None:
            raise NacreError("a burn-down is of one account: name it")
        picture.write_text(draw_burn_down(book, book.account(name)), encoding="utf-8")


@app.command("entries")
def entries(
    name: Annotated[str | None, typer.Argument(help="Only this account's.")] = None,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the entries of the chain, oldest first.

    Example: nacre ledger entries patients --json
    """
    from flows.command_line.ledger_show import show_entries

    book = existing_ledger(home, ledger)
    show_entries(book.entries(account=name and book.account(name).name), as_json)


@app.command("plan")
def plan(
    name: Name,
    epsilon: Annotated[float, typer.Option(help="Epsilon of one Gaussian release.", **NUMBER)],
    delta: Annotated[float, typer.Option(help="Delta of one release.", **NUMBER)],
    times: Annotated[int, typer.Option(min=1, max=1000, help="How many such releases.")] = 1,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Say what releases to come would cost and whether they fit; writes nothing.

    Example: nacre ledger plan patients --epsilon 0.5 --delta 1e-5 --times 4
    """
    from flows.command_line.ledger_show import show_forecast

    if not show_forecast(existing_ledger(home, ledger), name, epsilon, delta, times, as_json):
        raise typer.Exit(1)


@app.command("void")
def void(
    key: Annotated[str, typer.Argument(help="Charge, or the beginning of its key.")],
    reason: Reason,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Give back a charge whose draw never began; what proves it is written beside the reason.

    Example: nacre ledger void 3f2a91c0 --reason "the run was never started"
    """
    from flows.command_line.ledger_show import show_entries

    book = existing_ledger(home, ledger)
    keys = {entry.charge for entry in book.entries() if entry.kind == "reserve" and entry.charge.startswith(key)}
    if len(keys) != 1:
        raise NacreError(f"{len(keys)} charges begin with {key}; `nacre ledger entries` lists them")
    reservation = book.void(keys.pop(), reason)
    show_entries(book.entries(key=reservation.key), as_json)


@app.command("recover")
def recover(home: Home = None, ledger: Url = None, as_json: AsJson = False) -> None:
    """Finish what crashes left: release every complete draw, and say what the other open charges need.

    Example: nacre ledger recover
    """
    from flows.command_line.ledger_show import show_recovered
    from tasks.run.charges import recover_all

    show_recovered(recover_all(existing_ledger(home, ledger), home or HOME), as_json)


@app.command("grant")
def grant(
    role: Annotated[str, typer.Argument(help="Role of PostgreSQL that workers connect as.")],
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make the tables of a PostgreSQL ledger as their owner, and let a role charge it without changing an entry.

    Example: nacre ledger grant nacre_ledger --ledger postgresql://nacre_owner@database/ledger
    """
    from dpmodels.ledger.ledger import Ledger
    from flows.command_line.console import say

    Ledger(_place(None, ledger)).grant(role)
    say(f"{role} may insert and look up entries, and neither change nor delete one", {"role": role}, as_json)


@app.command("anchor")
def anchor(
    place: Annotated[str, typer.Argument(help="Folder or URI in an object store, outside the reach of this machine.")],
    signing_key: Annotated[Path, typer.Option(help="ed25519 private key (PEM) that signs the anchor.")],
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Sign where the chain ends and write it to a place that is only appended to; later shows a ledger put back.

    Example: nacre ledger anchor s3://anchors/clinic --signing-key sign.pem
    """
    from flows.command_line.console import say
    from tasks.run.anchors import write_anchor

    mark, name = write_anchor(existing_ledger(home, ledger), place, signing_key)
    say(f"anchored entry {mark.position} as {name}", {"name": name, **mark.model_dump(mode="json")}, as_json)


@app.command("verify")
def verify(
    anchors: Annotated[str, typer.Option("--anchor", help="Place of the ledger's anchors; all must be in it.")] = "",
    public_key: Annotated[Path | None, typer.Option(help="Key (PEM) that anchors must be signed with.")] = None,
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Check the hash chain, every sum and every sealed release; names what was changed.

    Example: nacre ledger verify --anchor s3://anchors/clinic --public-key sign.pub
    """
    from flows.command_line.console import note
    from tasks.run.anchors import anchor_faults
    from tasks.run.home import ledger_faults, strange_releases

    if bool(anchors) != bool(public_key):
        raise NacreError("anchors are held against a key: give both --anchor and --public-key")
    book, path = existing_ledger(home, ledger), (home or HOME).absolute()
    faults = ledger_faults(path, ledger or "", book)
    looked_at = 0
    if public_key and not book.damage:
        looked_at, lacking = anchor_faults(book, anchors, public_key)
        faults += lacking
    remarks = [*strange_releases(path), *([] if faults else book.remarks())]
    if as_json:
        end = None if book.damage else book.head()
        facts: dict[str, Any] = {"faults": faults, "remarks": remarks, "newest_hash": end.hash if end else ""}
        facts |= {"anchors": looked_at} if anchors else {}
        echo(json.dumps(facts, indent=1))
    else:
        for remark in remarks:
            note(f"note: {remark}")
        for fault in faults:
            echo(fault, err=True)
    if faults:
        raise NacreError(f"the ledger has {counted(len(faults), 'fault')}")
    if not as_json:
        of_anchors = f"; {looked_at} anchor(s) at {anchors} were looked at, and are in it" if anchors else ""
        echo(f"the chain is whole and every sealed release is unchanged{of_anchors}")


@app.command("export")
def export(
    target: Annotated[Path, typer.Argument(help="New file: .parquet (entries) or .json (entries and accounts).")],
    home: Home = None,
    ledger: Url = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole chain to a file, hashes included.

    Example: nacre ledger export chain.parquet
    """
    from flows.command_line.console import say
    from flows.command_line.ledger_show import export_ledger

    say(str(target), {"file": str(target), **export_ledger(existing_ledger(home, ledger), target)}, as_json)


def _signing(key: Path | None) -> dict[str, Any]:
    """Return with what an officer signs, if one does."""
    from tasks.run.signing import passphrase_of

    return {"key": key, "passphrase": passphrase_of(key, "key")} if key else {}


def existing_ledger(home: Path | None, url: str | None = None) -> "Ledger":
    """Open a ledger that must be there already."""
    from dpmodels.ledger.database import check_there
    from dpmodels.ledger.ledger import Ledger

    check_there(address := _place(home, url))
    return Ledger(address)


def _place(home: Path | None, url: str | None) -> str | Path:
    if url:
        return url if "://" in url else Path(url)
    return (home or HOME) / "ledger.sqlite"


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidArgument("expires", text, "be a day, written YYYY-MM-DD") from None
