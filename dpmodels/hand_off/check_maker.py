"""Check who is said to have made a hand-off, and when: the version, the method, and the days of the entries."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from importlib.metadata import version

from dpmodels.accounting.events import Event
from dpmodels.contract.dropped import WHY_DROPPED
from dpmodels.contract.federation import ROUNDS
from dpmodels.hand_off.lines import Entry, Line
from dpmodels.hand_off.manifest import MANIFEST, Manifest, printable
from dpmodels.hand_off.verification import Verification
from dpmodels.hand_off.vocabulary import is_mechanism

VERSION = re.compile(
    r"([0-9]+!)?([0-9]+(\.[0-9]+)*)((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?",
    re.IGNORECASE,
)
"""A version as packages have them (PEP 440); the second group is what versions are ordered by first."""
LONGEST_VERSION = 100
DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(T[0-9:.]{5,20}(Z|[+-][0-9]{2}:[0-9]{2})?)?")
"""A day; early manifests held the time as well."""


def check_maker(manifest: Manifest, check: Verification) -> None:
    """Check that the version that is said to have made a hand-off is one, that its entries have days, and its words."""
    if not is_version(manifest.nacre_version):
        check.faults.append(f"the field nacre_version in {MANIFEST} is no version: {printable(manifest.nacre_version)}")
    _check_days(manifest, check)
    _check_vocabulary(manifest, check)


def check_method(manifest: Manifest, check: Verification) -> None:
    """Check that the method is one; a later version may have methods that are not known here, which is noted.

    It comes last, of a hand-off without a fault, for the registry of the methods takes memory and a second.
    """
    if check.faults:
        return
    from dpmodels.methods.registry import METHODS

    if manifest.method not in {*METHODS, ROUNDS}:
        sentence = f"no method of this version of nacre is called {printable(manifest.method)}"
        (check.notes if is_later(manifest.nacre_version) else check.faults).append(sentence)


def _check_vocabulary(manifest: Manifest, check: Verification) -> None:
    """Check that mechanisms and reasons are called what nacre calls them; later versions may have other words."""
    from dpmodels.pages.page import LAYOUT

    if manifest.layout != LAYOUT or is_later(manifest.nacre_version):
        return
    lines: tuple[Line, ...] = (*(manifest.clients or ()), *(manifest.lines if manifest.has_price else ()))
    if not all(is_mechanism(name) for line in lines for name in _mechanisms(line.price.events)):
        check.faults.append(f"an event in {MANIFEST} is of a mechanism that no method of nacre has")
    if manifest.has_price and not set((manifest.dropped or {}).values()) <= set(WHY_DROPPED):
        check.faults.append(f"a client in {MANIFEST} was dropped for a reason that nacre does not give")


def _mechanisms(events: Iterable[Event]) -> Iterator[str]:
    """Return the names of mechanisms, those of events within others too."""
    for event in events:
        yield getattr(event, "mechanism", "")
        yield from _mechanisms(getattr(event, "events", ()))


def is_version(text: str) -> bool:
    """Tell whether a text is a version."""
    return len(text) <= LONGEST_VERSION and VERSION.fullmatch(text) is not None


def is_later(text: str) -> bool:
    """Tell whether a version is later than the one that runs, by the numbers of its release."""
    return _release(text) > _release(version("nacre"))


def _release(text: str) -> list[int]:
    match = VERSION.fullmatch(text)
    return [int(number) for number in match[2].split(".")] if match else []


def _check_days(manifest: Manifest, check: Verification) -> None:
    """Check that entries have days, and note where they run backwards, as they do where a clock was wrong."""
    lines: tuple[Line, ...] = manifest.clients or manifest.lines
    entries = [line.ledger.entries or () for line in lines]
    if not all(is_day(entry.day) for some in entries for entry in some):
        check.faults.append(f"an entry of a charge in {MANIFEST} has a day that is none")
    elif not all(map(_run_forwards, entries)):
        check.notes.append("the days of the entries of a charge run backwards: ask whoever keeps the ledger why")


def is_day(text: str) -> bool:
    """Tell whether a text is a day of the calendar."""
    match = DAY.fullmatch(text)
    try:
        return match is not None and bool(date.fromisoformat(match[1]))
    except ValueError:
        return False


def _run_forwards(entries: tuple[Entry, ...]) -> bool:
    days = [entry.day[:10] for entry in sorted(entries, key=lambda entry: entry.seq)]
    return days == sorted(days)
