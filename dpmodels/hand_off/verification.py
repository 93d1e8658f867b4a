"""What a check of a hand-off found."""

from dataclasses import dataclass, field
from typing import Any

from dpmodels.hand_off.signature import (
    BY_OTHER_KEY,
    NOBODY,
    NOBODY_AGREED,
    OFFICER_SIGNATURE,
    SIGNATURE,
    UNSOUND,
    OtherKey,
)
from dpmodels.pages.leaving import MAKER_UNSIGNED, OTHER_KEY, REFUSED, leaving, next_step
from dpmodels.plural import counted

UNCHECKED = (
    "that the noise was added and the rows were drawn from the release (`nacre validate` holds them against "
    "schema.yaml), that its bounds and lists are from no real row, what is declared, the days of charges, an officer's "
    "name, and what the account had spent before: the word of whoever made this"
)
"""What no check of a hand-off can see."""
VERIFIED, CONSISTENT, UNAPPROVED, FAULTY = "VERIFIED", "CONSISTENT ONLY", "NOT APPROVED", "FAULTY"
WRONG_KEY = "WRONG KEY"
"""The verdict where nothing but the key that the recipient named is found to be wrong: no file was checked then."""
OFFICER_ALONE = "officer: yes; maker: not proved. The officer whom you named lets these very files leave"
"""What a headline says where the officer's key that the recipient named is right, and no maker's was named."""
MADE_UP = "vouches for it. It hangs together, and whoever made it could have made it up"
MEANS = {
    VERIFIED: "files and privacy claim are whole, and signed by the key you named",
    CONSISTENT: f"nobody whom you named {MADE_UP}; get the signer's key from the signer, and name it with --public-key",
    NOBODY: f"it is not signed, so nobody {MADE_UP}",
}
"""What a verdict says, where there are no faults."""
LEAVE = {
    (True, True): "the officer whom you named lets them leave",
    (True, False): "who signed as an officer is not proved without --officer-key",
    (False, False): "not let leave so far: no officer signed that they may",
}
"""What a headline says of leaving, by whether some officer signed that the files may, and the caller named a key."""
LEAVING_UNKNOWN = ", but whether they may leave is not known"
"""What stands right behind the verdict where an officer signed that they may, and nobody named that officer's key."""
OF_CHARGE_ALONE = "; one signed for the charge alone"
"""What stands behind that where an officer signed for the charge, and for no files."""
NOT_RELEASED = (
    "no officer signed that these files may leave, so do not use them yet. {files}. The officer lets them leave by "
    "`nacre approve FOLDER`; by that key the charge alone is approved"
)
BESIDE_SIGNATURES = ("one_key", "two_keys", "adviser")
"""What is said of who signed, where there is something to say."""
NOT_FOR, REASON = "not for", "the officer's words"
"""What is said beside that files may leave: which columns have no use, and which limits a reason leaves out."""
UNCHANGED = {
    True: "They are unchanged, and signed by the key you named",
    False: "They are unchanged, and nobody whom you named vouches for them",
}
"""What is said of files that nobody let leave, by whether the key that the recipient named signed them."""


@dataclass
class Verification:
    """What the check found: faults, the number of unchanged files, and sentences on what was promised and who paid.

    What an account had spent before, and its cap, rest on the word of whoever signed; ``declared`` is the operator's.

    Attributes:
        approved: which officer signed for the charge, before there were rows.
        agreed: which officer signed that these files may leave.
        vouched: whether the manifest is signed by the key that the recipient named.
        charge_approved: whether some officer signed for the charge.
        officer_named: whether the recipient named an officer's key, and so expects that officer's signatures.
        undeclared: what pages ask for and nobody declared, where an officer signed that the files may leave.
        was_open: how many answers were blank then, and whether a record is proved to be a person, in words.
        other_keys: of the faults those that another key signed than the recipient named.
        persons: whether a unit is proved to be a person, where an officer signed so.
        one_key: that the maker and an officer signed with one key, where they did.
        two_keys: that they did not, where both signed.
        adviser: that the officer's name is that of whoever may only advise, where one key signed charge and leaving.
        no_use: the columns of which no use holds, where an officer signed that the files may leave.
        unnumbered: which limits of the statement the officer's reason does not name by number.
        notes: what was not checked, and why.
    """

    faults: list[str] = field(default_factory=list)
    files: int = 0
    signature: str = NOBODY
    charge: str = ""
    days: str = ""
    budget: str = ""
    unit: str = ""
    account: str = ""
    approved: str = ""
    agreed: str = NOBODY_AGREED
    undeclared: str = ""
    was_open: str = ""
    persons: str = ""
    one_key: str = ""
    two_keys: str = ""
    adviser: str = ""
    no_use: str = ""
    unnumbered: str = ""
    declared: dict[str, str] = field(default_factory=dict)
    cautions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    vouched: bool = False
    charge_approved: bool = False
    officer_named: bool = False
    other_keys: list[OtherKey] = field(default_factory=list, compare=False, repr=False)
    work: int = field(default=0, compare=False, repr=False)
    priced: set[Any] = field(default_factory=set, compare=False, repr=False)

    @property
    def facts(self) -> dict[str, str]:
        """What there is to say of a hand-off without a fault, by names for programs, and what no check can see."""
        return {
            "files": f"{self.files} as the manifest has them, beside {', '.join(self._beside_manifest)}",
            "budget": self.budget,
            "unit": self.unit,
            "charge": self.charge,
            "account": self.account or "not known here",
            **({"days": self.days} if self.days else {}),
            "approved": self.approved,
            "may_leave": self.agreed,
            **self.declared,
            **{name: said for name, said in (("not_declared", self.undeclared), ("persons", self.persons)) if said},
            "signature": self.signature,
            **{name: said for name in BESIDE_SIGNATURES if (said := getattr(self, name))},
            "not_checked": UNCHECKED,
        }

    @property
    def _beside_manifest(self) -> list[str]:
        """Name the files of the folder that no manifest can list: itself, and the signatures of it."""
        signatures = {SIGNATURE: self.signature != NOBODY, OFFICER_SIGNATURE: self.agreed != NOBODY_AGREED}
        return ["manifest.json", *(name for name, is_there in signatures.items() if is_there)]

    @property
    def signature_beside_faults(self) -> str:
        """Say of a hand-off with faults whether its manifest is signed, and what that says of the other files."""
        if self.is_of_other_key or self.signature in (NOBODY, UNSOUND, BY_OTHER_KEY):
            return self.signature
        return f"that of manifest.json holds, {self.signature}; what differs from it is not as it was signed"

    def by_other_key(self, fault: OtherKey) -> None:
        """Add the fault that another key signed than the one that was named."""
        self.faults.append(str(fault))
        self.other_keys.append(fault)

    @property
    def is_of_other_key(self) -> bool:
        """Tell whether all that was found to be wrong is the key, so that the wrong one may have been named."""
        return bool(self.faults) and len(self.other_keys) == len(self.faults)

    @property
    def leaving(self) -> str:
        """Say whether the files may leave, and what was open when an officer signed."""
        if self.faults:
            return OTHER_KEY if self.is_of_other_key else REFUSED
        return leaving(
            self.agreed != NOBODY_AGREED,
            self.officer_named,
            by_maker=bool(self.one_key),
            was_open=self.was_open,
            maker_named=self.vouched,
            maker_signed=self.signature != NOBODY,
        )

    @property
    def is_of_files_alone(self) -> bool:
        """Tell whether the files are verified, and nobody knows yet whether they may leave."""
        return self.verdict == VERIFIED and not (self.officer_named and self.agreed != NOBODY_AGREED)

    @property
    def beside_leaving(self) -> dict[str, str]:
        """Say what the files are not for, and which limits the officer's words leave out, where one let them leave."""
        return {name: said for name, said in ((NOT_FOR, self.no_use), (REASON, self.unnumbered)) if said}

    @property
    def next_step(self) -> str:
        """Say what comes next, and where the files are until then; what faults ask for stands in ``leaving``."""
        return "" if self.faults else next_step(self.agreed != NOBODY_AGREED, self.officer_named, self.vouched)

    @property
    def _wrong_key(self) -> str:
        """Say once which of the keys that were named is not the one that signed, and that the other one is right."""
        options = " and ".join(dict.fromkeys(one.option for one in self.other_keys))
        signed = " and ".join(sorted({one.what for one in self.other_keys}, reverse=True))
        right = "the maker's key is right; " if self.vouched else ""
        return f"{right}the key you named with {options} is not the one that signed {signed}; no file was checked"

    @property
    def may_not_leave(self) -> bool:
        """Tell whether the recipient asked for an officer's signature that the files may leave, and there is none."""
        return self.officer_named and self.agreed == NOBODY_AGREED

    @property
    def headline(self) -> str:
        """Say the verdict, what it means, and whether the files may leave, which no verdict but that of faults says."""
        if self.faults:
            return f"{self.verdict}: {self._wrong_key if self.is_of_other_key else counted(len(self.faults), 'fault')}"
        if self.may_not_leave:
            return f"{UNAPPROVED}: {NOT_RELEASED.format(files=UNCHANGED[self.vouched])}"
        agreed = self.agreed != NOBODY_AGREED
        if agreed and self.officer_named and not self.vouched:
            return f"{self.verdict}: {OFFICER_ALONE}; {MAKER_UNSIGNED[self.signature != NOBODY]}"
        leave = LEAVE[agreed, self.officer_named] + OF_CHARGE_ALONE * (self.charge_approved and not agreed)
        unknown = LEAVING_UNKNOWN * (agreed and not self.officer_named)
        return f"{self.verdict}{unknown}: {MEANS[NOBODY if self.signature == NOBODY else self.verdict]}; {leave}"

    @property
    def verdict(self) -> str:
        """The first words of the headline.

        ``VERIFIED``; ``CONSISTENT ONLY`` where nobody whom the recipient named vouches for it; ``NOT APPROVED`` where
        the officer whom the recipient named did not let the files leave; ``WRONG KEY`` where another key signed than
        the recipient named, and nothing else was looked at; or ``FAULTY``.
        """
        if self.faults:
            return WRONG_KEY if self.is_of_other_key else FAULTY
        if self.may_not_leave:
            return UNAPPROVED
        return VERIFIED if self.vouched else CONSISTENT
