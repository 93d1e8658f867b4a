"""Errors a person can act on. A message names the rule that was broken and never a private value."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from dpmodels import amounts
from dpmodels.groups_in_words import groups_in_python
from dpmodels.similar import near as near
from dpmodels.similar import near_or_listed as near_or_listed
from dpmodels.tracebacks import lines_of

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


UNCHARGED = "nothing was charged"
"""What is said of a command that charges nothing, or has not come to it."""
LONGEST_SHOWN = 400
"""Letters of a value that a message repeats."""


class NacreError(Exception):
    """Base of every error whose message is written for the user and is safe to show and to store."""

    def _render_traceback_(self) -> list[str]:
        return lines_of(self)


_OPTION = re.compile(
    r"(?P<command>nacre [a-z-]+[^,;`]*)|(?<![^\s(`'])--(?P<option>[a-z]+(?:-[a-z]+)*)(?: (?P<word>[A-Z]{2,})\b)?"
)
_COMMAND = re.compile(r"`(nacre [^`\n]+)`")


def in_words(text: str, caller: Callable[[str], str], call: Callable[[str], str] = str) -> str:
    """Name settings as a caller knows them, and not as options of the command line.

    ``call`` returns what does the same as a whole command, or nothing where nothing does. Such a command stays as it
    is, for it may be typed in a shell.
    """

    def named(match: re.Match[str]) -> str:
        return match["command"] or f"`{caller(match['option'])}{'=' + match['word'] if match['word'] else ''}`"

    spoken = _COMMAND.sub(lambda match: f"`{call(match[1]) or match[1]}`", groups_in_python(text))
    return re.sub(r"``(\w+(?:=\w+)?)``", r"`\1`", _OPTION.sub(named, spoken))


@contextmanager
def in_words_of(caller: Callable[[str], str], call: Callable[[str], str] = str) -> Iterator[None]:
    """Have errors of the block say what ``in_words`` makes of them."""
    try:
        yield
    except NacreError as error:
        text = in_words(str(error), caller, call)
        name = getattr(error, "name", "")
        if name.isidentifier() and text.startswith(f"{name}="):
            text = caller(name).partition("=")[0] + text.removeprefix(name)
        error.args = (text,)
        raise


def shortened(value: object) -> str:
    """Return what somebody gave, in no more letters than one reads."""
    text = str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN // 2]}…{text[-LONGEST_SHOWN // 2 :]}"


class InvalidArgument(NacreError):
    """The value of one argument breaks its rule; the message reads ``name=value must rule``.

    Raise it where another value of this one argument would do. Its name is what a caller knows the argument by: who
    reads it from a file catches this error and raises it again under the key that stands there.
    """

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(f"{name}={shortened(value)} must {rule}")
        self.name, self.value, self.rule = name, value, rule


class Unsuitable(NacreError):
    """What was given cannot be used as it is; ``fact`` is a plain sentence that says why and what to do.

    Raise it where no single value is at fault: things that do not go together, or a state of the world.
    """

    def __init__(self, fact: str) -> None:
        super().__init__(fact)
        self.fact = fact


class ParameterRefused(NacreError):
    """A flow run asks for what the operator's file of deployments does not allow, or a server says more than it may.

    The message reads ``field reason``, with neither the value nor what it was compared with.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


RULES = {
    "extra_forbidden": "be left out: there is no such setting",
    "missing": "be given",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "be a mapping, as YAML has it: {key: value}"),
    **dict.fromkeys(("list_type", "tuple_type"), "be a list, as YAML has it: [one, two]"),
    "path_type": "be a path",
    "string_type": "be text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "be true or false"),
}
"""Rules of settings by pydantic's name of what breaks them, where its own words speak of Python."""


def rule_of(fault: "ErrorDetails") -> str:
    """Return the rule that a setting breaks, in words that follow "must", from what pydantic found."""
    if rule := RULES.get(fault["type"]):
        return rule + (taken_for_text(fault["input"]) if "number" in rule else "")
    rule, prefixes = re.subn(r"^(Value error, must|\w+( \w+)? should) ", "", fault["msg"])
    return (rule if prefixes else f"satisfy: {fault['msg']}") + taken_for_text(fault["input"])


def refused(fault: "ValidationError", *above: str, whole: str = "") -> InvalidArgument:
    """Return the first thing that pydantic found wrong, with the keys that lead to it; ``whole`` names all settings."""
    first = fault.errors(include_url=False)[0]
    return InvalidArgument(".".join([*above, *map(str, first["loc"])]) or whole, first["input"], rule_of(first))


LONGEST_NUMBER = 40
MARKED = r"[-+]?([0-9]+|[0-9]{{1,3}}({0}[0-9]{{3}})+)({1}[0-9]+)?"
"""A number with one mark between its thousands and another before its decimals."""


def taken_for_text(value: object) -> str:
    """Say how a number must be written that YAML 1.1 takes for text, or nothing of any other value."""
    if isinstance(value, str) and (number := without_marks(value)):
        return f"; write {number}"
    match = re.fullmatch(r"([-+]?\d+)(\.\d*)?e([-+]?)(\d+)", value, re.IGNORECASE) if isinstance(value, str) else None
    if match is None:
        return ""
    whole, part, sign, power = match.groups()
    return f"; YAML takes {value} for text: write {whole}{part if part and part != '.' else '.0'}e{sign or '+'}{power}"


def without_marks(text: str) -> str:
    """Return a number without the ``_`` between its thousands; empty for any other text."""
    return text.replace("_", "") if re.fullmatch(r"[-+]?\d{1,3}(_\d{1,3})+(\.\d*)?", text) else ""


def without_commas(text: str, whole: bool = False) -> str:
    """Return what a number may mean that has commas, or points between thousands; empty for any other text.

    ``whole``: it can mean no number with decimals.
    """
    if len(text) > LONGEST_NUMBER or not ("," in text or text.count(".") > 1):
        return ""
    comma, point = (re.fullmatch(MARKED.format(*marks), text) for marks in ((",", r"\."), (r"\.", ",")))
    meant = [text.replace(",", "")] if comma else []
    meant += [text.replace(".", "").replace(",", ".")] if point else []
    return ", or ".join(number for number in meant if not (whole and "." in number))


@dataclass(frozen=True)
class SchemaFault:
    """One fault of a schema file: where it is (1-based line, 0 when unknown), what is wrong and what to write."""

    line: int
    where: str
    message: str

    @property
    def is_of_the_file(self) -> bool:
        """Whether it is about the whole file, and no place in it."""
        return self.where == "file" and not self.line

    def __str__(self) -> str:
        line = f"line {self.line}: " if self.line else ""
        return self.message if self.is_of_the_file else f"{line}{self.where}: {self.message}"


class SchemaError(NacreError):
    """A schema file cannot be used; carries every fault found, not only the first."""

    def __init__(self, source: str, faults: Sequence[SchemaFault]) -> None:
        self.source, self.faults = shortened(source), tuple(faults)
        if len(self.faults) == 1:
            said = f"{'' if self.faults[0].is_of_the_file else ':'} {self.faults[0]}"
        else:
            said = f" has {len(self.faults)} faults: " + "; ".join(map(str, self.faults))
        super().__init__(f"schema {self.source}{said}")


class DataError(NacreError):
    """The sensitive input breaks the schema. Names the column and the rule; never a value and never a count.

    ``faults`` are all rules that it breaks, where these are known, each with what to do about it; ``also`` are further
    columns that the rule speaks of.
    """

    def __init__(self, column: str, rule: str, faults: Sequence[str] = (), also: Sequence[str] = ()) -> None:
        super().__init__(f"column {column}: {rule}" if column else rule)
        self.column, self.rule, self.faults, self.also = column, rule, tuple(faults), tuple(also)


@contextmanager
def uncharged() -> Iterator[None]:
    """Have whatever is wrong with data before a charge end in the same words: nobody need look into the ledger."""
    try:
        yield
    except DataError as fault:
        if type(fault) is not DataError or UNCHARGED in str(fault):
            raise
        raise DataError(fault.column, f"{fault.rule}; {UNCHARGED}", fault.faults) from None


@dataclass(frozen=True)
class PaidRelease:
    """A release that an account paid for, of which more is had for nothing: its run, its file, and its home."""

    run: str
    release: str
    home: str

    def __str__(self) -> str:
        rows = f"`nacre sample {self.run} --rows ROWS --out FILE --home {self.home}` draws more rows of run {self.run}"
        fit = f"`nacre fit {self.release} --out FOLDER --home {self.home}` trains another generator on its release"
        return f"what the account paid for is free to use: {rows}, and {fit}"


class BudgetExhausted(NacreError):
    """A charge would pass the account's cap; nothing was drawn and nothing was charged.

    ``costs`` is what the charge alone costs at the account's delta, where it asked for another: then a request whose
    epsilon is below what remains can be refused, because of its delta.
    """

    def __init__(
        self,
        account: str,
        requested: Decimal,
        remaining: Decimal,
        cap: Decimal,
        delta: Decimal,
        asked_delta: Decimal | None = None,
        costs: Decimal | None = None,
        no_delta_left: bool = False,
    ) -> None:
        requested_epsilon, other = amounts.spent(requested), asked_delta not in (None, delta) and costs is not None
        cause, another = " because of the delta" if other and requested <= remaining else "", ""
        if no_delta_left:
            cause, another = "", "; its delta is the cause: thresholds, whose deltas add up, would take all of it"
        elif other:
            another = (
                f" (at that delta the request, which is for delta={amounts.written(asked_delta)}, costs "
                f"epsilon={amounts.spent(costs)})"
            )
        super().__init__(
            f"account {account} refuses the charge{cause}: requested epsilon={requested_epsilon}, remaining "
            f"epsilon={amounts.remaining(remaining)} of cap={amounts.written(cap)} at delta={amounts.written(delta)}"
            f"{another}; nothing was drawn (`nacre ledger cap` changes a cap, openly)"
        )
        self.account, self.requested, self.remaining, self.because = account, requested, remaining, another
        self.cap, self.delta, self.unfinished = cap, delta, tuple[str, ...]()
        self.free: PaidRelease | None = None

    def beside(self, runs: Sequence[str], free: PaidRelease | None = None) -> "BudgetExhausted":
        """Name the runs of the account that were paid for and are unfinished, and return this error.

        ``free`` is a release that the account paid for, which still gives rows.
        """
        self.unfinished, self.free = tuple(runs), free
        if runs:
            on = ", ".join(f"`nacre resume {run}`" for run in runs)
            self.args = (f"{self}; what is paid for already and unfinished goes on without a charge: {on}",)
        if free:
            self.args = (f"{self}; {free}",)
        return self


class LedgerError(NacreError):
    """The ledger cannot do what was asked: unknown account, a transition that is not allowed, or a broken chain."""


class AccountMissing(LedgerError):
    """No account is open for a data set, and whoever asks may not open one."""

    def __init__(self, account: str, dataset: str, remedy: str) -> None:
        super().__init__(f"no account is open for data set {dataset}, and nothing was charged: {remedy}")
        self.account, self.dataset = account, dataset


class ContentCharged(LedgerError):
    """The same data is there under another name or by another unit, and another account pays for it."""

    def __init__(self, dataset: str, other: str, account: str) -> None:
        because = f"data set {dataset} has the content of {other}, for which account {account} pays"
        instead = "Run it under that name"
        if dataset == other:
            because = (
                f"account {account} was charged for this data by another unit or adjacency, and they are not added up"
            )
            instead = "Go on by that unit"
        why = "give --again REASON, which says why it needs another budget, and is kept in the ledger"
        super().__init__(f"{because}; nothing was charged. {instead}, or {why}")
        self.dataset, self.other, self.account = dataset, other, account


class PaidBefore(LedgerError):
    """A run was charged for the same plan on the same data; ``said`` says which, and what is free."""

    def __init__(self, run: str, account: str, said: str) -> None:
        super().__init__(f"{said}; nothing was charged now. --again REASON charges again, and is kept in the ledger")
        self.run, self.account = run, account


class PaidUnfinished(PaidBefore):
    """That run is unfinished, so it can go on."""


class NotSigned(LedgerError):
    """What an officer must sign first is not signed, or by somebody else; ``fact`` says what, and how it is signed."""

    def __init__(self, account: str, fact: str, officer: str = "") -> None:
        super().__init__(fact)
        self.account, self.officer = account, officer


class AwaitsOfficer(NotSigned):
    """A run stopped, before it read any row, until an officer signs for it: nothing is wrong with it."""


class ChargeState(LedgerError):
    """A charge is in a state that does not allow what was asked of it."""

    def __init__(self, charge: str, state: str, consequence: str) -> None:
        super().__init__(f"charge {charge} is {state}: {consequence}")
        self.charge, self.state = charge, state


class ChainBroken(LedgerError):
    """The entries of the ledger, or the rows that follow from them, are not as nacre writes them."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"{fault}; `nacre ledger verify` lists every fault")
        self.fault = fault


class LedgerDamaged(LedgerError):
    """The ledger's file is not as it was written, so that a look-up in it may miss what was spent.

    Attributes:
        ledger: the file.
        fault: what SQLite's check of the whole file names first.
    """

    def __init__(self, ledger: object, fault: str) -> None:
        super().__init__(
            f"the ledger {ledger} is damaged ({fault}); nothing was charged. `nacre ledger recover` mends an index if "
            "every entry is whole; otherwise put the newest copy back"
        )
        self.ledger, self.fault = ledger, fault


class ArtifactError(NacreError):
    """An artifact is missing, was changed after it was sealed, or its place is already taken."""


class FileMissing(ArtifactError):
    """A file or folder that is to be read is not there."""


class FileDamaged(ArtifactError):
    """A file is missing, or holds something else than nacre writes into such a file."""

    def __init__(self, file: str, remedy: str) -> None:
        super().__init__(f"{file} is missing or damaged; {remedy}")
        self.file, self.remedy = file, remedy


class PathTaken(ArtifactError):
    """Something lies where a new file or folder is to be; ``fact`` says so, and nothing is overwritten."""

    def __init__(self, path: object, fact: str) -> None:
        super().__init__(f"{path} {fact}")
        self.path = path


class CredentialError(NacreError):
    """The file of a home's Prefect credential cannot be believed: ``fault`` says why, and the message what to do."""

    def __init__(self, path: object, fault: str) -> None:
        super().__init__(f"{path} {fault}; remove it, and the next start of `nacre serve` makes another")
        self.path, self.fault = path, fault
