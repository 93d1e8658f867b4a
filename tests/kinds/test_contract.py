"""What all kinds of data do alike: planned for nothing, charged once, handed over whole, and nothing private said."""

import json
import logging
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import postgres
from dpmodels.audit.tap import tapped
from dpmodels.authoring.lint import parse
from dpmodels.hand_off.manifest import Manifest, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from tests.kit.buckets import Bucket
from tests.kit.deaths import killed_anew
from tests.kit.inputs import FORMATS, KEY
from tests.kit.kinds import CANARY, KINDS, Kind, Words, Write
from tests.kit.lineage import read_events
from tests.kit.support import digest, run_cli, write_key

pytestmark = pytest.mark.processes

CAP = PrivacyBudget(epsilon=20, delta=1e-4)


@pytest.fixture(scope="session", params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@dataclass(frozen=True)
class Site:
    """A kind's data with the words of a run on them, and the home and the ledger of that run."""

    kind: Kind
    words: Words
    home: Path
    out: Path
    ledger_url: str = ""

    @classmethod
    def of(cls, kind: Kind, folder: Path, form: str | Write = "parquet", name: str = "kin", **fields: Any) -> "Site":
        """Write all that a run needs."""
        words = kind.words(folder, form, name)
        return cls(**{"kind": kind, "words": words, "home": folder / "home", "out": folder / "out", **fields})

    @property
    def lineage(self) -> Path:
        return self.home.parent / "out-lineage.jsonl"

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.ledger_url or self.home / "ledger.sqlite")

    def where(self, *words: object) -> Words:
        """Return the words of a command with those that name its home and its ledger."""
        return [*words, "--home", self.home, *(["--ledger", self.ledger_url] if self.ledger_url else [])]

    def run(self, *more: object) -> Words:
        """Return the words of the command that runs."""
        prefect = ["--no-prefect"] if self.kind.hands_over else []
        return [*self.where(*self.kind.run, *self.words), *prefect, *more]

    def go_on(self) -> Words:
        """Return the words of the command that goes on with the run, if there is one."""
        runs = [path.parent for path in self.home.glob("control/*/settings.json")]
        whole = [run.name for run in runs if not json.loads((run / "settings.json").read_text())["federation"]]
        return self.where("resume", *whole, "--no-prefect") if whole and self.kind.hands_over else self.run()

    def open(self, cap: PrivacyBudget = CAP, name: str = "kin") -> None:
        """Open an account."""
        self.home.mkdir(exist_ok=True)
        self.ledger.open_account(name, dataset=name, budget_cap=cap)

    def open_if_needed(self) -> "Site":
        """Open the account where no run opens one by itself."""
        if not self.kind.hands_over:
            self.open()
        return self

    def product(self) -> str:
        """Return the digest of what is made."""
        return digest(self.out / self.kind.product if self.kind.product else self.out)

    def kinds_of_entries(self) -> list[str]:
        return [entry.kind for entry in self.ledger.entries()]

    def is_charged_once(self) -> bool:
        kinds = self.kinds_of_entries()
        return {kinds.count(kind) for kind in ("reserve", "seal", "commit")} == {self.kind.charges}


@dataclass(frozen=True)
class Ended:
    """A run that ended, and all that was said to the terminal and to the log."""

    site: Site
    planned: str
    said: str

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.site.out)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Yield all that is logged meanwhile, down to the least of it."""
    log, lines, listener = logging.getLogger(), list[str](), logging.Handler(logging.DEBUG)
    listener.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    level = log.level
    log.addHandler(listener)
    log.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        log.removeHandler(listener)
        log.setLevel(level)


@pytest.fixture(scope="session")
def ended(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Plan a run, run it, and keep what was said."""
    site, planned = Site.of(kind, tmp_path_factory.mktemp("ended")).open_if_needed(), ""
    with heard() as lines, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NACRE_LINEAGE", str(site.lineage))
        if kind.plan:
            code, planned, err = run_cli(*site.where(*kind.plan, *site.words))
            assert code == 0 and not site.home.exists(), err
        code, out, err = run_cli(*site.run())
    assert code == 0, err
    return Ended(site, planned, "\n".join([planned, out, err, *lines]))


def test_a_plan_charges_nothing_and_says_what_the_run_is_charged(ended: Ended) -> None:
    if not ended.site.kind.plan:
        pytest.skip("what it would be charged is what its words say")
    (target,) = re.findall(r"target: (epsilon=\S+, delta=\S+)", ended.planned)
    entry = next(entry for entry in ended.site.ledger.entries() if entry.kind == "reserve")
    budget = entry.content["budget"]
    assert target == f"epsilon={float(budget['epsilon'])}, delta={float(budget['delta'])}"


def test_it_ends_in_what_is_verified_and_states_what_the_ledger_charged(ended: Ended) -> None:
    ledger, site = ended.site.ledger, ended.site
    assert site.is_charged_once() and ledger.verify() == []
    assert run_cli(*site.where("ledger", "verify"))[0] == 0
    known, head = json.loads((site.home / "control" / "ledger.json").read_text()), ledger.head()
    assert head is not None and (known["seq"], known["hash"]) == (head.seq, head.hash)  # an older ledger is noticed
    if not site.kind.hands_over:
        (price,) = parse(site.out.read_text())[0].discovered
        (charge,) = [entry.charge for entry in ledger.entries() if entry.kind == "reserve"]
        assert price.charge == charge and price.epsilon == 2 and ledger.balance("kin").spent_epsilon <= 2
        return
    assert run_cli("verify", site.out)[0] == 3  # whole, and signed by nobody
    assert verify_hand_off(site.out).faults == [] and (site.out / site.kind.product).exists()
    lines = ended.manifest.clients or [ended.manifest]
    assert len(lines) == site.kind.charges
    for line in lines:
        entry = ledger.find(line.ledger.charge)
        assert entry is not None and entry.state == "committed"
        entries = [entry.hash for entry in ledger.entries(key=line.ledger.charge)]
        assert [entry.hash for entry in line.ledger.entries] == entries
        assert line.spent.epsilon == ledger.balance(line.ledger.account).spent_epsilon
    assert ended.manifest.spent.epsilon == ledger.balance(ended.manifest.ledger.account).spent_epsilon > 0


def test_what_is_private_is_in_nothing_that_leaves(ended: Ended) -> None:
    """The released zone, the control zone and the ledger leave as well: others than the operator read them."""
    site = ended.site
    files = {path for path in [*site.home.rglob("*"), *site.out.rglob("*"), site.out] if path.is_file()}
    leaving = {path for path in files if site.home / "sensitive" not in path.parents}
    leaving |= {site.lineage} if site.kind.hands_over else set()
    assert len(leaving) > 5 and CANARY not in ended.said
    assert [path for path in leaving if names_somebody(path)] == []
    assert any(map(names_somebody, {path for path in site.home.parent.iterdir() if path.is_file()} - leaving))


def test_its_lineage_says_what_was_charged_and_handed_over(ended: Ended) -> None:
    if not ended.site.kind.hands_over:
        assert not ended.site.lineage.exists()  # a schema is completed by whoever asked for it
        return
    whole = read_events(ended.site.lineage.read_bytes())[-1]
    charged = whole["run"]["facets"]["nacre_privacyCharge"]["charges"]
    assert len(charged) == ended.site.kind.charges and whole["eventType"] == "COMPLETE" and whole["outputs"]
    lines = ended.manifest.clients or [ended.manifest]
    assert {one["charge"] for one in charged} == {line.ledger.charge for line in lines}


def names_somebody(path: Path) -> bool:
    rows = str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else ""
    return CANARY in rows or CANARY.encode() in path.read_bytes()


def remove(path: Path) -> None:
    (shutil.rmtree if path.is_dir() else Path.unlink)(path)


@pytest.mark.nightly_if(
    "users", "tree", "images*", "central trust", "each document", "federation", "documents", "discovery"
)
def test_killed_at_every_point_it_goes_on_under_one_charge_to_the_same_bits(kind: Kind, tmp_path: Path) -> None:
    """It dies where it never died before, until it ends; once its release is sealed there is no data any more."""
    site, point = Site.of(kind, tmp_path).open_if_needed(), "start"
    sealed = dict[Path, bytes]()
    while point:
        drawn = site.kinds_of_entries().count("draw")
        point = killed_anew(site.go_on(), tmp_path / "deaths")
        assert site.kinds_of_entries().count("draw") - drawn <= 2 * kind.charges  # nobody saw what is drawn again
        assert all(path.read_bytes() == content for path, content in sealed.items())
        sealed |= {path: path.read_bytes() for path in site.home.glob("released/*/release.parquet")}
        if point == "record validate":
            shutil.rmtree(site.home / "sensitive")
    deaths = (tmp_path / "deaths").read_text().splitlines()
    assert len(deaths) >= 7 and site.is_charged_once() and "void" not in site.kinds_of_entries()
    assert len(sealed) == kind.charges
    before = site.product()
    remove(site.out)
    for path in set(site.home.glob("released/*/*")) - sealed.keys():
        remove(path)  # what is free is made again
    code, _, err = run_cli(*site.go_on())
    assert code == 0 and site.product() == before and site.is_charged_once(), err
    assert not kind.hands_over or verify_hand_off(site.out).faults == []
    assert not [path for path in tmp_path.rglob(".part-*")]


@pytest.fixture(scope="session")
def ledgers(request: pytest.FixtureRequest) -> str:
    """Return the PostgreSQL server, or nothing where it is not installed; the ledger then lies in the home."""
    return request.getfixturevalue("postgres_server") if postgres.programs() else ""


@pytest.mark.nightly_if("each document", "images", "users", "images of pearl", "central trust", "federation", "tree")
def test_an_officer_signs_and_postgresql_keeps_the_ledger(ended: Ended, ledgers: str, tmp_path: Path) -> None:
    kind = ended.site.kind
    url = postgres.new_database(ledgers, "kind_" + kind.name.replace(" ", "_")) if ledgers else ""
    site = Site.of(kind, tmp_path, ledger_url=url)
    site.open(ended.site.ledger.account("kin").cap)
    private, public = write_key(tmp_path / "dana.pem")
    named = ("--name", "Dana", "--key", public, "--reason", "the board asked for it")
    assert run_cli(*site.where("ledger", "officer", "kin", *named))[0] == 0
    for _ in range(kind.charges):
        code, _, err = run_cli(*site.go_on())
        (waiting,) = re.findall(r"Dana is to approve run (\S+?)[:;, ]", err)
        assert code == 5 and "draw" not in site.kinds_of_entries()
        assert run_cli(*site.where("approve", waiting, "--yes", "--key", private))[0] == 0
    code, _, err = run_cli(*site.go_on())
    assert code == 0 and site.is_charged_once(), err
    assert run_cli(*site.where("ledger", "verify"))[0] == 0
    assert (site.home / "ledger.sqlite").exists() == (not ledgers)
    assert not kind.hands_over or verify_hand_off(site.out, officer_key=public).faults == []


@pytest.fixture(scope="session")
def exact(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    return of_format(kind, "parquet", tmp_path_factory.mktemp("exact"))


def of_format(kind: Kind, form: str | Write, folder: Path, *more: object) -> tuple[str, bytes]:
    """Return the hash of the plan and what noise was added to; without noise, so that no choice depends on it."""
    site = Site.of(kind, folder, form).open_if_needed()
    with tapped() as tap, pytest.MonkeyPatch.context() as patch:
        tap.silent = True
        patch.setattr(Ledger, "seal", lambda *_: 1 / 0)  # what comes after the draw does not matter
        run_cli(*site.run(*more))
    (plan, *_) = {entry.content["plan_hash"] for entry in site.ledger.entries() if entry.kind == "reserve"}
    return plan, b"".join(draw.values.tobytes() for draw in tap.draws)


@pytest.mark.nightly_if("images of pearl", "users", "central trust", "tree", "each document", "federation")
def test_every_format_gives_the_same_plan_and_the_same_exact_records(
    kind: Kind, exact: tuple[str, bytes], tmp_path: Path
) -> None:
    assert exact[1]
    for form in sorted(kind.formats - {"parquet"}):
        assert of_format(kind, form, tmp_path / form.replace(" ", "-")) == exact, form


def test_a_query_gives_what_a_file_gives(kind: Kind, exact: tuple[str, bytes], tmp_path: Path) -> None:
    if not kind.queried:
        pytest.skip("its data are several tables")
    assert of_format(kind, in_database, tmp_path, "--query", "select * from data") == exact


def in_database(path: Path, table: pa.Table) -> object:
    """Write private data as a table of SQLite, and public data as a file."""
    if path.name != "data":
        return FORMATS["parquet"](path, table)
    with closing(sqlite3.connect(path.with_suffix(".db"))) as made, made:
        made.execute(f"create table data ({', '.join(table.column_names)})")
        marks = ", ".join("?" * table.num_columns)
        made.executemany(f"insert into data values ({marks})", [list(row.values()) for row in table.to_pylist()])
    return f"sqlite:///{path.with_suffix('.db')}"


@pytest.mark.nightly_if("users", "each document", "images of pearl", "discovery", "tree", "central trust")
def test_an_object_store_gives_the_same_and_is_no_second_budget_and_its_key_stays_in_the_environment(
    kind: Kind, exact: tuple[str, bytes], bucket: Bucket, tmp_path: Path
) -> None:
    assert of_format(kind, bucket.write, tmp_path) == exact
    copy = Site.of(kind, tmp_path / "copied", name="kith", home=tmp_path / "home")
    assert_refused(copy, copy.ledger.account("kin").cap)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 5 and not [path for path in written if KEY.encode() in path.read_bytes()]


def test_the_same_data_are_not_charged_to_another_account(ended: Ended, tmp_path: Path) -> None:
    """Nothing hinders somebody to call the data otherwise, and so to have the same cap a second time."""
    site = Site.of(ended.site.kind, tmp_path, name="kith", home=ended.site.home)
    assert_refused(site, ended.site.ledger.account("kin").cap)


def assert_refused(site: Site, cap: PrivacyBudget) -> None:
    """Run on data that another account was charged for."""
    site.open(cap, "kith")
    before = site.kinds_of_entries()
    code, _, err = run_cli(*site.run())
    assert code == 1 and re.search("--again|charged to another account", err), err
    assert site.kinds_of_entries() == before and not site.out.exists()
