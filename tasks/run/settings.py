"""What the stages of one run need besides its plan, as it was bound when the run was started."""

from pathlib import Path
from typing import Any

from pydantic import Field

from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.files import Place
from dpmodels.frozen import Frozen
from dpmodels.ledger.declared import Declaration
from dpmodels.privacy import PrivacyBudget
from tasks.run.source import Source


class Opening(Frozen):
    """The terms of an account that the run opens when it is charged, if nobody opened it before.

    ``alone`` lets it do so only in a ledger that still has no account by then.
    """

    cap: PrivacyBudget
    note: str
    parent: str = ""
    partition: str = ""
    alone: bool = False


class Settings(Declaration):
    """What the stages of one run need besides the plan, and what the operator declares of the hand-off.

    Nothing here can change what is charged.

    Attributes:
        data: a path, pattern or URI; of a database where there is a ``query``. parents: that of users, empty for none.
        ledger: the URL of the run's ledger, empty for the home's own; compared with that of a process, never opened.
        opens: the account's terms, if the run is to open it.
        out: the folder of the hand-off; bucket: its URI, if it goes to an object store, and otherwise empty. The folder
            then keeps all of it but a table that was drawn into the object store.
        account: the account that pays; empty where a ledger that is not at hand has paid.
        train_on: ``here``, or who trains and samples apart; those who approve the run are told.
        prefect: whether the run is recorded as a flow run, unless who goes on with it says otherwise.
        paid_by: the run whose release this run samples or fits again; empty for a run that pays for its own release.
        fits: the charge in the footer of the release that this run fits again, or that it samples from such a fit of.
        public_sha256: of the files of public documents; none of them may be a file of the data.
        decimals: columns of a discovery whose draft says that three decimals or more stand behind a point.
        text_forms: by table of a tree, or by the empty name, how the raw text is written, as the schema's file says it.
        unlisted: by public table of a tree, how many columns of its file the schema does not list, and are left out.
        format: in which the hand-off has its table in one file too, beside the Parquet; empty for none.
        clients: of a federation, in the order of the plan's lines; each has a run of its own, with its own data.
        federation: the run of the federation that a client's run belongs to; above: the terms of its account.
    """

    data: Place
    query: str = ""
    parents: Place = ""
    out: Path
    bucket: str = ""
    account: str
    opens: Opening | None = None
    rows: int | None
    format: str = ""
    seed: int
    device: str
    train_on: str = "here"
    batch_rows: int
    threads: int = 0
    internal_report: bool = True
    training: dict[str, Any]
    ledger: str = ""
    signing_key: Path | None = None
    approval_hours: float = 24
    prefect: bool = Field(default=True, exclude_if=bool)
    paid_by: str = ""
    fits: str = ""
    public_sha256: tuple[str, ...] = ()
    decimals: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    text_forms: dict[str, TextForm] = Field(default={}, exclude_if=lambda forms: not forms)
    unlisted: dict[str, int] = Field(default={}, exclude_if=lambda counts: not counts)
    clients: tuple[str, ...] = ()
    federation: str = ""
    above: Opening | None = None

    @property
    def source(self) -> Source:
        """Where the rows come from."""
        return Source(self.data, self.query)

    @property
    def declared(self) -> Declaration:
        """What the operator says of the hand-off, for the ledger, the manifest and the public pages."""
        return Declaration(**self.said)

    @property
    def is_paid_elsewhere(self) -> bool:
        """Tell whether the release came as a file, without the ledger that paid for it."""
        return bool(self.fits) and not self.account
