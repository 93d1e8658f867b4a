"""What every kind of data does alike: planned for nothing, charged once, handed over whole, and nothing private said."""

import json
import logging
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from benchmarks import postgres
from dpmodels.audit.tap import Draw, tapped
from dpmodels.authoring.lint import parse
from dpmodels.hand_off.manifest import Manifest, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from tests.kit.deaths import killed_anew
from tests.kit.kinds import CANARY, KINDS, Kind, Words
from tests.kit.support import digest, run_cli, write_key

pytestmark = pytest.mark.processes

CAP = PrivacyBudget(epsilon=20, delta=1e-4)


@pytest.fixture(scope="session", params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@dataclass(frozen=True)
class Site:
    """A folder of a kind's data, and the home and the ledger of the runs on it."""

    kind: Kind
    folder: Path
    words: Words
    ledger_url: str = ""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def out(self) -> Path:
        return self.folder / "out"

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

    def opened(self) -> "Site":
        """Open the account, where no run opens one by itself."""
        if not self.kind.hands_over:
            self.home.mkdir(exist_ok=True)
            self.ledger.open_account("kin", dataset="kin", budget_cap=CAP)
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


@pytest.fixture(scope="session")
def ended(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """Plan a run, run it, and keep what was said."""
    folder = tmp_path_factory.mktemp("ended")
    site, planned = Site(kind, folder, kind.words(folder)), ""
    log, lines = logging.getLogger(), list[str]()
    listener = logging.Handler(logging.DEBUG)
    listener.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(listener)
    level = log.level
    log.setLevel(logging.DEBUG)
    try:
        if kind.plan:
            code, planned, err = run_cli(*site.where(*kind.plan, *site.words))
            assert code == 0 and not site.home.exists(), err
        code, out, err = run_cli(*site.opened().run())
    finally:
        log.removeHandler(listener)
        log.setLevel(level)
    assert code == 0, err
    yield Ended(site, planned, "\n".join([planned, out, err, *lines]))


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
        assert line.spent.epsilon == ledger.balance(line.ledger.account).spent_epsilon
    assert ended.manifest.spent.epsilon == ledger.balance(ended.manifest.ledger.account).spent_epsilon > 0


def test_what_is_private_is_in_nothing_that_leaves(ended: Ended) -> None:
    """The released zone, the control zone and the ledger leave as well: others than the operator read them."""
    site = ended.site
    seen = [path for path in [*site.home.rglob("*"), *site.out.rglob("*"), site.out] if path.is_file()]
    seen = [path for path in seen if site.home / "sensitive" not in path.parents]
    assert len(seen) > 5 and CANARY not in ended.said
    for path in seen:
        rows = str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else ""
        assert CANARY not in rows and CANARY.encode() not in path.read_bytes(), path


def test_killed_at_every_point_it_goes_on_under_one_charge_to_the_same_bits(kind: Kind, tmp_path: Path) -> None:
    """It dies where it never died before, until it ends; once its release is sealed there is no data any more."""
    site, point = Site(kind, tmp_path, kind.words(tmp_path)).opened(), "start"
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
    (shutil.rmtree if kind.hands_over else Path.unlink)(site.out)
    code, _, err = run_cli(*site.go_on())
    assert code == 0 and site.product() == before and site.is_charged_once(), err
    assert not kind.hands_over or verify_hand_off(site.out).faults == []
    assert not [path for path in tmp_path.rglob(".part-*")]
