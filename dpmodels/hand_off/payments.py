"""What a manifest says of prices and of who paid: from lines of a plan, entries of a ledger, and discoveries."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.contract.discovery.discovery_charge import DiscoveryCharge
from dpmodels.hand_off.lines import ClientLine
from dpmodels.hand_off.manifest import PAID_ELSEWHERE, digest_of_all
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Balance, Charge, Standing
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import check_discovery, joint_cost, price_of
from dpmodels.releases.plan import Line

Facts = dict[str, Any]


def cost_of(line: Line) -> Facts:
    """Say what one line of the plan asked for and what it cost."""
    budget = line.budget
    return {
        "asked": {"epsilon": budget.epsilon, "delta": budget.delta},
        "spent": {"epsilon": spent_epsilon([line.event], budget.delta_exact), "delta": budget.delta},
        "events": [line.event],
        "plan_sha256": line.hash,
        **({"part": line.family} if line.family else {}),
    }


def payment(ledger: Ledger, charge: Charge) -> Facts:
    """Name a charge and its entries with their day, but not their time, because a run's time grows with the data."""
    return {
        "account": charge.account,
        "charge": charge.key,
        "entries": [
            {"seq": e.seq, "kind": e.kind, "day": e.time[:10], "hash": e.hash} for e in ledger.entries(key=charge.key)
        ],
    }


def approved(ledger: Ledger, charge: Charge) -> Facts:
    """Return the officer's signature for a charge, and, where it is for a family, the account and run it names."""
    signed = ledger.approval(charge.key)
    if signed is None:
        return {}
    if charge.plan_hash in signed["plans"]:
        return {"approved": signed}
    family = [reservation.charge for reservation in map(ledger.find, signed["plans"]) if reservation]
    above = len({one.account for one in family}) > 1
    account = ledger.account(charge.account).parent if above else charge.account
    return {"approved": signed, "approved_as": {"account": account, "run": family[0].run}}


def for_all(lines: Sequence[ClientLine], account: str | None, trust: str, dropped: Mapping[str, str]) -> Facts:
    """Say of a federation what each client paid, what stands for all of them, and of all what the heaviest paid."""
    heaviest = max(lines, key=lambda line: line.price.spent.epsilon)
    return {
        **{name: getattr(heaviest, name) for name in ("asked", "spent", "events", "part")},
        "plan_sha256": digest_of_all(line.plan_sha256 for line in lines),
        "release_sha256": digest_of_all(line.release_sha256 for line in lines),
        "ledger": {"account": account, "charge": digest_of_all(line.charge for line in lines)},
        "clients": list(lines),
        "trust": trust,
        **({"dropped": dict(dropped)} if dropped else {}),
    }


def discovered(contract: Contract, ledger: Ledger | None) -> Facts:
    """Account for what a schema was discovered with; of a charge that is not in the ledger at hand without entries."""
    lines = [_discovery_line(one, contract, ledger) for one in contract.discovered]
    return {"discoveries": lines} if lines else {}


def _discovery_line(one: DiscoveryCharge, contract: Contract, ledger: Ledger | None) -> Facts:
    """Say what a discovery asked for, what it cost, and who paid."""
    reservation = ledger.find(one.charge) if ledger else None
    paid: Facts = {"account": one.account, "charge": one.charge}
    if ledger is not None and reservation is not None:
        check_discovery(one, reservation, contract)
        paid = payment(ledger, reservation.charge)
    return {
        "asked": {"epsilon": one.epsilon, "delta": one.delta},
        "spent": {"epsilon": price_of(one), "delta": one.delta},
        "events": one.events,
        "plan_sha256": one.plan_sha256,
        "run": one.run,
        "release_sha256": one.release_sha256,
        "ledger": paid,
        **({} if reservation else {"left_out": PAID_ELSEWHERE}),
    }


def total(line: Line, others: Mapping[str, Any]) -> Facts:
    """Say what release, report and discoveries cost together, where there are several."""
    if not {"report", "discoveries"} & others.keys():
        return {}
    events = [line.event, *(others["report"]["events"] if "report" in others else ())]
    epsilon, delta = joint_cost(events, line.budget.delta, line.contract)
    return {"total_spent": {"epsilon": epsilon, "delta": delta}}


def accounts_of(ledger: Ledger, charges: Iterable[Sequence[str]]) -> tuple[list[Standing], list[Balance]]:
    """Return where the accounts stood that paid for some charges, those of each client together, and those above."""
    stood = [ledger.standing(*keys) for keys in charges]
    above, name = list[Balance](), stood[0].account
    while name := ledger.account(name).parent:
        above.append(ledger.balance(name))
    return stood, above
