"""Check the charges of a hand-off: every budget is what its events cost, and every charge hangs together."""

from collections.abc import Sequence, Set
from dataclasses import replace
from decimal import Decimal

from pydantic import ValidationError

from dpmodels.accounting.events import check_adjacency
from dpmodels.accounting.tally import MAX_KINDS, Parallel, Tally
from dpmodels.contract.discovery.discovery_charge import DiscoveryCharge
from dpmodels.contract.federation import CENTRAL, ROUNDS, SCORES
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.hand_off.lines import ClientLine, DiscoveryLine, Line
from dpmodels.hand_off.manifest import Manifest, digest_of_all, printable
from dpmodels.hand_off.signature import OF_CHARGE, OtherKey
from dpmodels.hand_off.verification import Verification
from dpmodels.keys import fingerprint
from dpmodels.ledger.approval import Approval, ApprovalRequest, figures_of
from dpmodels.ledger.store import digest
from dpmodels.privacy import Adjacency
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import unpriced

LIFE = ["reserve", "draw", "seal", "commit"]
CLOSE = Decimal("1e-9")
MOST_WORK, WORK_OF_A_PART = 2 * MAX_KINDS, 24
NOT_APPROVED = "by nobody that this file names"
SIGNED_FOR = (
    "by it this charge was signed, before there was any row to look at; it says neither whose it is nor the day"
)

TOLD = (
    "the price of the discovery {0} is what schema.yaml says of it, for the ledger that paid was not at hand: ask "
    "whoever keeps account {1}, who finds it by `nacre ledger entries {1}`, whether the charge is no larger"
)


def check_charges(manifest: Manifest, check: Verification) -> None:
    """Check every line's price and charge, those of clients, and what all of them cost together."""
    for line in manifest.lines:
        _check_proved(line, manifest.adjacency, check)
        _check_budget(line, check)
        _check_charge(line, line.run if isinstance(line, DiscoveryLine) else manifest.run, check)
    _check_clients(manifest, check)
    _check_total(manifest, check)


def _check_proved(line: Line, adjacency: Adjacency, check: Verification) -> None:
    """Check that the price of every event is proved under the manifest's adjacency."""
    try:
        check_adjacency(line.price.events, adjacency)
    except InvalidArgument as error:
        check.faults.append(str(error))


def _check_budget(line: Line, check: Verification) -> None:
    """Compute the epsilon of a line's events again, and compare it with the manifest."""
    reckoned = _reckoned([line], line.price.asked.delta, check)
    if reckoned is None:
        return
    target, spent, _ = line.price
    if target.delta != spent.delta or abs(reckoned - spent.epsilon) > CLOSE:
        check.faults.append(f"the events cost epsilon={reckoned}, the manifest says {spent.epsilon}")
    if reckoned > Decimal(repr(target.epsilon)):
        check.faults.append(f"the events cost more than was asked for: epsilon={target.epsilon}")


def _check_total(manifest: Manifest, check: Verification) -> None:
    """Compute the cost of all lines together again, and compare it with the manifest."""
    total = manifest.total_spent
    reckoned = _reckoned(manifest.lines, manifest.total_delta, check) if total else None
    if manifest.report is not None and manifest.report.ledger.charge == manifest.ledger.charge:
        check.faults.append("release and report name one charge, and each is paid by its own")
    if manifest.report is not None and manifest.report.price.asked.delta != manifest.price.asked.delta:
        check.faults.append("the report has another delta than the release, and both are priced at one")
    if total is None or reckoned is None:
        return
    if total.delta != manifest.total_delta or abs(reckoned - total.epsilon) > CLOSE:
        what = "release, report and discoveries" if manifest.discoveries else "release and report"
        at = f" at delta={manifest.total_delta}" if manifest.discoveries else ""
        amount = f"{total.epsilon}" + (f" at delta={total.delta}" if at else "")
        check.faults.append(f"{what} cost epsilon={reckoned} together{at}, the manifest says {amount}")


def least_spent(lines: Sequence[Line], delta: Decimal, most: Decimal, check: Verification) -> Decimal | None:
    """Return what whoever paid for some lines has spent at least, at a delta; None, with a fault, if it is far more."""
    return _reckoned(lines, float(delta), check, most=float(most))


def check_discoveries(manifest: Manifest, contract: Contract, check: Verification) -> None:
    """Check that the manifest has a line for each discovery that the schema names, at its price, and no other."""
    discoveries = {one.charge: one for one in contract.discovered}
    lines = {line.charge: line for line in manifest.discoveries or ()}
    if len(lines) < len(manifest.discoveries or ()):
        check.faults.append("two lines of the manifest name one discovery, and each is paid by its own")
    for charge in discoveries.keys() - lines.keys():
        check.faults.append(
            f"schema.yaml was discovered under charge {charge}, and no line of the manifest has its price"
        )
    for charge in lines.keys() - discoveries.keys():
        check.faults.append(f"the manifest has a line for the discovery {charge}, which schema.yaml does not name")
    for charge in discoveries.keys() & lines.keys():
        if _discovery_of(lines[charge], manifest.unit) != discoveries[charge]:
            check.faults.append(f"the manifest says another price, plan or payer of discovery {charge} than its schema")
        elif lines[charge].ledger.entries is None:
            check.notes.append(TOLD.format(charge, printable(str(lines[charge].ledger.account))))
    for name in map(printable, unpriced(contract)):
        check.notes.append(f"schema.yaml has keys from the charged release {name}, whose price is in no line: add it")


def check_all_named(manifest: Manifest, contract: Contract, check: Verification) -> None:
    """Check that the manifest says of every client of a federation that it took part, or why it did not."""
    if contract.kind != "federation":
        return
    accounted = [
        *(line.client for line in manifest.clients or ()),
        *(manifest.uncharged or ()),
        *(manifest.dropped or ()),
    ]
    for name in sorted({client.name for client in contract.clients} ^ set(accounted)):
        check.faults.append(f"client {printable(name)} is in one of schema.yaml and the manifest alone")


def _check_clients(manifest: Manifest, check: Verification) -> None:
    """Check every client's line by itself, and that the manifest stands for all of them and for the costliest."""
    clients = manifest.clients or ()
    if (manifest.method == ROUNDS) == manifest.is_charged:
        check.faults.append("the manifest names no charge and another method than federated-rounds, or the reverse")
    if set(manifest.uncharged or ()) & set(manifest.dropped or ()):
        check.faults.append("a client took part and was dropped as well")
    for line in clients:
        _check_proved(line, manifest.adjacency, check)
        _check_budget(line, check)
        _check_charge(line, line.run, check)
    if not clients:
        return
    for name, joint, names in (
        ("plan_sha256", manifest.plan_sha256, [line.plan_sha256 for line in clients]),
        ("release_sha256", manifest.release_sha256, [line.release_sha256 for line in clients]),
        ("ledger.charge", manifest.ledger.charge, [line.ledger.charge for line in clients]),
    ):
        shared = name == "release_sha256" and manifest.trust == "central"
        if joint != digest_of_all(names) or len(set(names)) != (1 if shared else len(names)):
            check.faults.append(f"the field {name} does not stand for what the clients' lines name")
    events = [event for line in clients for event in line.price.events if event.kind == "gaussian"]
    central = {event.mechanism == CENTRAL for event in events}
    if (manifest.trust == "central") != (True in central) or len(central) > 1:
        check.faults.append("the manifest does not say who drew the noise that its events pay for")
    _check_heaviest(manifest, clients, check)
    if (manifest.method == SCORES) == manifest.has_price:
        check.faults.append(
            "scores alone were released, and the manifest does not say that no epsilon holds, or it does"
        )
    if {line.client for line in clients} & set(manifest.dropped or ()):
        check.faults.append("a client took part and was dropped as well")


def _check_heaviest(manifest: Manifest, clients: Sequence[ClientLine], check: Verification) -> None:
    """Hold the price of the whole to each client's: at one delta, for one kind of part, and that of the heaviest."""
    delta = (manifest if manifest.has_price else clients[0]).price.asked.delta
    for line in clients:
        if (line.price.asked.delta, line.price.spent.delta, line.part) != (delta, delta, manifest.part):
            check.faults.append(f"client {printable(line.client)} has another delta or part than the manifest")
    most = max(line.price.spent.epsilon for line in clients)
    heaviest = [line.price for line in clients if line.price.spent.epsilon == most]
    if manifest.has_price and manifest.price not in heaviest:
        check.faults.append("the manifest's cost is not that of the client that spent most")


def _check_charge(line: Line, run: str | None, check: Verification) -> None:
    """Check that the charge's key is that of its plan and run, and that its entries are complete and in order."""
    paid, entries = line.ledger, line.ledger.entries
    if entries is None and not isinstance(line, DiscoveryLine):
        return  # the manifest says that they are left out; only the release's footer names the charge
    if paid.charge != digest([paid.account, line.plan_sha256, run, *([line.part] if line.part else [])]):
        check.faults.append("the charge is not that of this plan and run")
    if entries is None:  # of a discovery that another ledger paid for
        return
    positions, kinds = [entry.seq for entry in entries], [entry.kind for entry in entries]
    kinds = [kind for kind, before in zip(kinds, ["", *kinds[:-1]], strict=True) if (before, kind) != ("draw", "draw")]
    whole = LIFE if line.sealed else LIFE[: len(kinds)]
    if kinds != whole or positions != sorted(set(positions)):
        check.faults.append("the charge's entries are not a complete life: reserve, draw, seal, commit")


def check_approved(manifest: Manifest, officer: str, check: Verification) -> str:
    """Check that the officer signed this run's lines, with the key that was named if one was; say who approved.

    A family is signed for by the keys of its charges; each client of a federation is signed for by itself.
    """
    if manifest.clients is not None:
        for line in manifest.clients:
            _check_declared(manifest, [line], line.approved, check)
        return _approved_by_client(manifest.clients, officer, check)
    signed, family = manifest.approved, manifest.approved_as
    lines = manifest.lines_of_run
    if signed is None or manifest.run is None or manifest.ledger.account is None or not lines:
        return NOT_APPROVED
    account, run = (family.account, family.run) if family else (manifest.ledger.account, manifest.run)
    request = _request(signed, account, run, family is not None)
    covered = {line.charge if family else line.plan_sha256 for line in lines}
    _check_declared(manifest, lines, signed, check)
    return _signer(signed, request, covered, officer, check)


def _request(signed: Approval, account: str, run: str, family: bool) -> ApprovalRequest:
    """Return what an approval must be a signature of; what it says of figures and declarations is held apart."""
    request = ApprovalRequest(signed.ledger, account, run, signed.plans, family)
    return replace(request, declared=signed.declared, figures=signed.figures)


def _check_declared(manifest: Manifest, lines: Sequence[Line], signed: Approval | None, check: Verification) -> None:
    """Check that the officer signed for the figures of lines, and what this hand-off declares.

    One that is made again declares its own.
    """
    if signed is None or not signed.declared:
        return
    for line in lines:
        asked, events = line.price.asked, line.price.events
        schema = "" if line.part else manifest.schema_sha256
        protects = (manifest.unit, str(manifest.adjacency))
        if figures_of(line.plan_sha256, schema, (asked.epsilon, asked.delta), protects, events) not in signed.figures:
            check.faults.append("the officer signed for another unit, target, noise or schema than the manifest has")
    if manifest.made_by == manifest.run and signed.declared != digest(manifest.operator_says):
        check.faults.append("the officer signed another declaration than this one of purpose, recipient and the like")


def _approved_by_client(clients: Sequence[ClientLine], officer: str, check: Verification) -> str:
    """Check the signature for every client's charge, where there is one; say who approved which."""
    approved = dict[str, list[str]]()
    for line in clients:
        by, signed = NOT_APPROVED, line.approved
        if signed is not None and line.ledger.account is not None:
            request = _request(signed, line.ledger.account, line.run, True)
            by = _signer(signed, request, {line.charge}, officer, check)
        approved.setdefault(by, []).append(line.client)
    if officer and any(line.approved is None for line in clients):
        which = printable(", ".join(line.client for line in clients if line.approved is None))
        check.faults.append(f"no officer's approval of {which} is in this hand-off, and you named an officer's key")
    if list(approved) == [NOT_APPROVED]:
        return NOT_APPROVED
    return "; ".join(f"{printable(', '.join(names))}: {by}" for by, names in approved.items())


def _signer(
    signed: Approval, request: ApprovalRequest, covered: Set[str | None], officer: str, check: Verification
) -> str:
    """Check one signature, what it covers, and whose it is; say who approved."""
    if not request.is_signed(signed) or not covered <= set(signed.plans):
        check.faults.append("the officer's approval is not a signature of this run and its plan")
        return NOT_APPROVED
    if officer and signed.public_key != officer:
        check.by_other_key(OtherKey("--officer-key", OF_CHARGE))
    name, key = printable(signed.officer), fingerprint(signed.public_key)
    if officer:
        return f"{name}, by the officer's key you named, whose SHA-256 is {key}; {SIGNED_FOR}"
    return (
        f"{name} is the name beside a key whose SHA-256 is {key}; give the officer's with --officer-key; {SIGNED_FOR}"
    )


def _reckoned(lines: Sequence[Line], delta: float, check: Verification, most: float | None = None) -> Decimal | None:
    """Return what the events of some lines cost together at delta; None, with a fault, if that was not found out.

    It is not found out if it is far more than ``most``, which is what was asked for unless another is given.

    A check does so much work and no more, whoever wrote the manifest: distributions of privacy losses are composed for
    ``MOST_WORK`` kinds of releases, each counted once however often it was made, and a part in parallel counts for
    ``WORK_OF_A_PART``. No system of ours comes near (a trained one has two or three kinds, and parallel parts of one
    price). Beyond it nothing is reckoned and the fault says so: a looser bound would accept an epsilon that nobody has
    checked.
    """
    from dpmodels.accounting.composition import renyi_epsilon, spent_epsilon

    target = sum(line.price.asked.epsilon for line in lines) if most is None else most
    at = Decimal(repr(delta))
    try:
        tally = Tally.of(event for line in lines for event in line.price.events)
        check.work += 0 if (tally.key, at) in check.priced else _work(tally)
        check.priced.add((tally.key, at))
        if check.work > MOST_WORK:
            check.faults.append("the events are more than a check has time to price: nobody has checked their epsilon")
            return None
        # a quick bound comes first: the exact cost of events far beyond the target can take an hour to compute
        if len(tally.others) <= MAX_KINDS and renyi_epsilon(tally, at) <= 4 * target + 1:
            return spent_epsilon(tally, at)
    except (ArithmeticError, Unsuitable):  # beyond what a float holds, or too many parts
        pass
    check.faults.append("the events cost far more than was asked for, or are more than any plan has")
    return None


def _work(tally: Tally) -> int:
    """Count the distributions that pricing a tally composes, those of parts in parallel at their weight."""
    parts = [part for kind, _ in tally.kinds if isinstance(kind, Parallel) for part in kind.parts]
    return len(tally.others) + WORK_OF_A_PART * len(parts) + sum(map(_work, parts))


def _discovery_of(line: DiscoveryLine, unit: str) -> DiscoveryCharge | None:
    """Return what a schema would say of a discovery's line; None for a line of which no schema can."""
    paid, price = line.ledger, line.price
    try:
        return DiscoveryCharge.model_validate(
            {
                "charge": paid.charge,
                "account": paid.account,
                "run": line.run,
                "unit": unit,
                "epsilon": price.asked.epsilon,
                "delta": price.asked.delta,
                "events": price.events,
                "plan_sha256": line.plan_sha256,
                "release_sha256": line.release_sha256,
            }
        )
    except ValidationError:
        return None
