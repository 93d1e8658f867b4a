"""What a check says beside an officer's signature: what nobody declared, and whether a unit is a person."""

from pathlib import Path

from dpmodels.contract.identifiers.identifier import uniques_of
from dpmodels.hand_off.card import facts_of
from dpmodels.hand_off.manifest import CARD, Manifest, printable
from dpmodels.hand_off.signature import NOBODY_AGREED, reason_in
from dpmodels.hand_off.verification import Verification
from dpmodels.plural import counted
from dpmodels.releases.contract import Contract


def say_declared(folder: Path, manifest: Manifest, contract: Contract | None, check: Verification) -> None:
    """Repeat what is declared; beside an officer's signature that the files may leave, say what is not."""
    check.declared = {name: printable(words, 300) for name, words in manifest.operator_says.items()}
    if check.agreed != NOBODY_AGREED:
        check.undeclared, check.persons = undeclared(manifest), whether_persons(manifest, contract)
        check.was_open = open_when_signed(manifest)
        if CARD in manifest.artifacts and not check.faults:
            _say_of_reason(folder, manifest, check)


def _say_of_reason(folder: Path, manifest: Manifest, check: Verification) -> None:
    """Say what the files are not for, which limits the officer's words leave out, and whether the officer advises."""
    from dpmodels.pages.asked.adviser import ONE_KEY_FOR_BOTH, says_adviser
    from dpmodels.pages.asked.signed import limits_left_out, not_for_columns

    facts = facts_of(folder)
    check.no_use = printable(not_for_columns(facts), 300)
    check.unnumbered = limits_left_out(facts, reason_in(folder))
    adviser = says_adviser(manifest.approved.officer) if manifest.approved else ""
    check.adviser = ONE_KEY_FOR_BOTH.format(printable(adviser)) if adviser else ""


def undeclared(manifest: Manifest) -> str:
    """Count and name what pages ask a person for and no word of the operator answers; empty where nothing is open."""
    from dpmodels.pages.asked.open_points import lack_in_words, lines

    every = lines(manifest.operator_says)
    still = [f"{one.title.partition(' (GDPR')[0]}{lack_in_words(one)}" for one in every if one.state]
    return (
        f"{len(still)} of {counted(len(every), 'answer')} that the pages ask for: {'; '.join(still)}" if still else ""
    )


def open_when_signed(manifest: Manifest) -> str:
    """Say how many answers were blank or incomplete, and that a record is not proved to be a person."""
    from dpmodels.pages.asked.open_points import counts_of
    from dpmodels.pages.card_words import is_record

    counts = counts_of(manifest.operator_says)
    said = [
        f"of {counted(counts['all'], 'answer')} {counts['blank']} blank",
        f"{counts['open']} answered with none, nobody, no day or no article" * bool(counts["open"]),
        "one record not proved to be one person" * is_record({"unit": manifest.unit}),
    ]
    return ", ".join(filter(None, said))


def whether_persons(manifest: Manifest, contract: Contract | None) -> str:
    """Say whether a unit is proved to be a person: never by nacre, and only declared where a column names users."""
    from dpmodels.pages.card_words import is_record, of_persons

    if is_record({"unit": manifest.unit}):
        unique = uniques_of(getattr(contract, "columns", {}))
        return printable(f"the unit is {of_persons(unique)}; whoever has several records is hidden less", 300)
    return "that each unit is one person rests on its column or ids, as declared" if manifest.unit[:4] == "user" else ""
