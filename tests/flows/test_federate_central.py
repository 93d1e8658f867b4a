"""Central trust: one noise for the exact sums of all clients, charged once to each, whoever dies on the way."""

import json
import re
import shutil
import signal
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import numpy as np
import pytest

from dpmodels.errors import DataError, InvalidArgument, Unsuitable
from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.methods.federations.moments_head import MomentsHead
from dpmodels.releases.release import read_release
from flows.synthesize import carry_out
from tasks.kinds import clients, federation
from tasks.run.folders import make_private
from tasks.run.store import Run
from tasks.stages import aggregate, federate
from tasks.stages.aggregate import hand_in
from tests.kit.children import ends_at
from tests.kit.errors import refused
from tests.kit.manifests import write_manifest
from tests.kit.support import run_cli
from tests.kit.wards import (
    NAMES,
    begun,
    dropped,
    hand_in_or_die,
    ledger_of,
    make_ward,
    only_run,
    replace,
    take_part_or_die,
    write_wards,
)

pytestmark = pytest.mark.processes

EXTRACTOR = {"features": 4, "width": 4, "pretraining": None}
MODEL = {"method": "federated-moments", "trust": "central", "extractor": EXTRACTOR}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a federation whose aggregator drew one noise."""
    folder = tmp_path_factory.mktemp("central")
    code, _, err = run_cli("federate", write_wards(folder, model=MODEL))
    assert code == 0, err
    return folder


def releases(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "home" / "released").glob("*/release.parquet"))]


def test_each_client_is_charged_for_one_draw_that_all_share(ended: Path) -> None:
    ledger, found = ledger_of(ended), releases(ended)
    kinds = [[entry.kind for entry in ledger.entries(account=f"wards.{name}")] for name in NAMES]
    life = ["open", "reserve", "draw", "draw", "seal", "commit"]  # announced in all accounts, then begun in each
    assert kinds == [life] * 3 and ledger.verify() == []
    assert len(found) == 3 and len(set(found)) == 1
    spent = [ledger.balance(name).spent_epsilon for name in ("wards", *(f"wards.{name}" for name in NAMES))]
    assert len(set(spent)) == 1 and 2.99 < spent[0] <= 3
    assert run_cli("ledger", "verify", "--home", ended / "home")[0] == 0
    assert not list((ended / "home").rglob("sums"))  # the exact sums are gone


def test_no_lock_lies_where_somebody_else_could_hold_it_for_ever(ended: Path) -> None:
    """Whoever can read a file can lock it, and others read the control zone and the released zone."""
    home = ended / "home"
    assert {path.relative_to(home).parts[0] for path in home.rglob(".lock-*")} <= {
        "sensitive",
        ".locks",
        ".lock-ledger.sqlite",
    }
    assert f".lock-{only_run(ended)}" in {path.name for path in (home / ".locks").iterdir()}


def test_the_release_is_the_sum_of_all_clients_with_the_noise_of_one(ended: Path) -> None:
    (path, *_) = sorted((ended / "home" / "released").glob("*/release.parquet"))
    release = read_release(path).value
    assert release.line.measurement["trust"] == "central" and release.line.event.mechanism.startswith("one noise")
    own = MomentsHead(MomentsHead().measurement.model_copy(update={"trust": "central"}))
    moments = own.of(release.line)
    counts, _, _ = moments.unpack(release.vector)
    stddev = own.noise(release.line)["records in a class"]
    assert stddev == pytest.approx(release.line.noise_stddev(0, moments.l2_sensitivity) / moments.count_step)
    assert abs(counts.sum() - 900) < 6 * stddev * len(counts) ** 0.5  # 300 of each client


def test_the_hand_off_says_loudly_who_saw_exact_sums(ended: Path, tmp_path: Path) -> None:
    manifest, page = read_manifest(ended / "out"), (ended / "out" / "report.html").read_text()
    assert manifest.trust == "central" and manifest.cautions[0].startswith("CENTRAL TRUST")
    assert "CENTRAL TRUST" in page and "aggregator's" in page and "as one with half the noise" in page
    sheet = re.sub(r"\s+", " ", (ended / "out" / "statement.html").read_text())
    assert "and whoever runs the aggregator, which read the exact sums of every client" in sheet
    assert "<strong>The aggregator held the exact sums of each client</strong>" in sheet
    assert "until the one noise was drawn and entered in every client's account; the run then deleted them" in sheet
    code, out, err = run_cli("verify", ended / "out")
    assert code == 3 and "one noise drawn by a trusted aggregator" in out and "CENTRAL TRUST" in err
    told = json.loads((ended / "out" / MANIFEST).read_text())
    for lie in ({"trust": "local"}, {"trust": None}):
        folder = tmp_path / str(lie["trust"])
        shutil.copytree(ended / "out", folder)
        write_manifest(folder, {key: value for key, value in (told | lie).items() if value is not None})
        assert verify_hand_off(folder).faults


def test_the_plan_says_who_is_trusted_and_only_moments_can_be_added(tmp_path: Path) -> None:
    code, out, _ = run_cli("plan-federation", "--details", write_wards(tmp_path, model=MODEL))
    assert code == 0 and "trust: central" in out and "one noise for the exact sums of all clients" in out
    for method in ("federated-heads", "federated-both"):
        with refused(InvalidArgument, name="model.trust"):
            begun(tmp_path / method, model={**MODEL, "method": method})
    run = begun(tmp_path / "more", model=MODEL)
    with pytest.raises(Unsuitable, match=f"resume {run.name}"):
        federate.take_part(run.parties[0])


def test_a_client_that_fails_before_the_sum_is_dropped_uncharged_and_is_in_no_sum(tmp_path: Path) -> None:
    run = begun(tmp_path, model=MODEL)
    replace(tmp_path, "south", make_ward(300, 1).drop_columns("pulse"))
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {"south": clients.UNFIT} and not verify_hand_off(tmp_path / "out").faults
    assert {entry.account for entry in ledger_of(tmp_path).entries() if entry.kind == "reserve"} == {
        "wards.north",
        "wards.west",
    }
    counts, _, _ = MomentsHead().of(run.plan.release).unpack(read_release(run.parties[0].read("sanitize")).value.vector)
    assert 300 < counts.sum() < 800  # 600 records of two clients, not 900


def test_a_sum_of_another_size_drops_its_client_and_gives_its_charge_back(tmp_path: Path) -> None:
    run = begun(tmp_path, model=MODEL)
    make_private(run.sensitive / "sums")
    place = hand_in(run.parties[2]).path
    assert place.parent.stat().st_mode & 0o777 == 0o700 and place.parent == run.sensitive / "sums"
    np.save(place, np.zeros(3, dtype=np.int64))
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {"west": federate.UNPLANNED}
    ledger = ledger_of(tmp_path)
    assert [entry.kind for entry in ledger.entries(account="wards.west")] == ["open", "reserve", "void"]
    assert ledger.balance("wards.west").spent_epsilon == 0


def test_a_client_that_outlived_its_aggregator_leaves_its_sum_nowhere(tmp_path: Path) -> None:
    """It made the aggregator's folder again, and its exact sum lay there for good."""
    run = begun(tmp_path, model=MODEL)
    replace(tmp_path, "west", make_ward(300, 2).drop_columns("pulse"))
    carry_out(run, prefect=False)
    replace(tmp_path, "west", make_ward(300, 2))
    with pytest.raises(Unsuitable, match="takes no more sums"):
        hand_in(run.parties[2])
    assert not any("sums" in path.name for path in run.sensitive.iterdir())
    assert not ledger_of(tmp_path).entries(account="wards.west")


def test_a_client_whose_aggregator_closes_once_it_is_charged_gets_its_charge_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real = begun(tmp_path, model=MODEL), aggregate.reserve_run
    make_private(run.sensitive / "sums")

    def charge_and_close(*words: Any) -> None:
        real(*words)
        aggregate._close(run.sensitive / "sums")

    monkeypatch.setattr(aggregate, "reserve_run", charge_and_close)
    with pytest.raises(Unsuitable, match="takes no more sums"):
        hand_in(run.parties[2])
    assert not list(run.sensitive.iterdir())
    assert [entry.kind for entry in ledger_of(tmp_path).entries(account="wards.west")] == ["open", "reserve", "void"]


MOMENTS = {
    "a client leaves its sum": ("tasks.stages.aggregate", "transform_keep", True),
    "the draw was announced": ("tasks.stages.aggregate", "_announce", False),
    "the first account is done": ("tasks.stages.aggregate", "seal", False),
}
"""Those that no other kind has; the others are in tests/kinds."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_and_resumed_there_is_one_charge_a_client_and_one_draw(tmp_path: Path, moment: str) -> None:
    config = write_wards(tmp_path, model=MODEL)
    assert ends_at(*MOMENTS[moment], "federate", config) == -signal.SIGKILL
    seen = releases(tmp_path)
    code, _, err = run_cli("resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect")
    assert code == 0, err
    kinds = [entry.kind for entry in ledger_of(tmp_path).entries()]
    assert [kinds.count(kind) for kind in ("reserve", "seal", "commit", "void")] == [3, 3, 3, 0]
    assert len(set(releases(tmp_path))) == 1 and set(seen) <= set(releases(tmp_path))
    assert dropped(tmp_path) == {} and not verify_hand_off(tmp_path / "out").faults


def test_a_sensitive_folder_that_is_deleted_before_the_draw_costs_nothing(tmp_path: Path) -> None:
    config = write_wards(tmp_path, model=MODEL)
    assert ends_at("dpmodels.releases.draw", "measure_gaussian", True, "federate", config) == -signal.SIGKILL
    shutil.rmtree(tmp_path / "home" / "sensitive" / only_run(tmp_path))
    code, _, err = run_cli("resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect")
    assert code == 0, err
    kinds = [entry.kind for entry in ledger_of(tmp_path).entries()]
    assert [kinds.count(kind) for kind in ("reserve", "seal", "commit")] == [3, 3, 3]
    assert dropped(tmp_path) == {} and not verify_hand_off(tmp_path / "out").faults


def test_a_client_that_was_dropped_stays_out_of_a_sum_whose_draw_has_begun(tmp_path: Path) -> None:
    config = write_wards(tmp_path, model=MODEL)
    good = make_ward(300, 1)
    replace(tmp_path, "south", good.drop_columns("pulse"))
    assert ends_at("tasks.stages.aggregate", "seal", False, "federate", config) == -signal.SIGKILL
    replace(tmp_path, "south", good)  # mended, but the one noise is drawn
    assert run_cli("resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect")[0] == 0
    assert list(dropped(tmp_path)) == ["south"] and not verify_hand_off(tmp_path / "out").faults


def test_a_sum_whose_charge_was_given_back_is_not_drawn_for(tmp_path: Path) -> None:
    """It was settled whose sums are added, then a charge was voided by hand: the draw went on, with that sum in it."""
    config = write_wards(tmp_path, model=MODEL)
    assert ends_at("tasks.stages.aggregate", "_announce", True, "federate", config) == -signal.SIGKILL
    ledger = ledger_of(tmp_path)
    (west,) = [entry.charge for entry in ledger.entries(account="wards.west") if entry.kind == "reserve"]
    home = ("--home", tmp_path / "home")
    assert run_cli("ledger", "void", west, "--reason", "not wanted", *home)[0] == 0
    code, _, err = run_cli("resume", only_run(tmp_path), *home, "--no-prefect")
    assert code != 0 and "start a new run" in err and not releases(tmp_path)
    assert not [entry for entry in ledger.entries() if entry.kind == "draw"]  # so the others can be given back as well


def test_two_processes_that_go_on_with_one_round_settle_once_whose_sums_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second lost a client while the first was about to draw: it gave the charge back, and settled other sums."""
    run, looked, settled = begun(tmp_path, model=MODEL), Event(), Event()
    real_draw = aggregate.release_together
    second = Thread(target=federate.gather, args=(run,))

    def hands_in(party: Run) -> object:
        if current_thread() is second:
            looked.set()
            settled.wait(2)
        if current_thread() is second and party.name.endswith("west"):
            raise DataError("", "cannot be read twice at once")
        done = hand_in(party)
        if party.name.endswith("west"):
            second.start()
            looked.wait(2)
        return done

    def draws(parties: list[Run]) -> None:
        if current_thread() is not second:
            settled.set()
            second.join(2)
        real_draw(parties)

    monkeypatch.setattr(aggregate, "hand_in", hands_in)
    monkeypatch.setattr(aggregate, "release_together", draws)
    federate.gather(run)
    second.join()
    assert federation.round_of(run).dropped == {} and len(federation.round_of(run).taken) == 3
    kinds = [entry.kind for entry in ledger_of(tmp_path).entries()]
    assert [kinds.count(kind) for kind in ("reserve", "seal", "commit", "void")] == [3, 3, 3, 0]


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["central", "local"])
@pytest.mark.nightly_if("local")
def test_a_client_that_is_killed_once_it_is_charged_gets_its_charge_back_and_the_round_goes_on(
    tmp_path: Path, trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of one client dies between its charge and what it would have left; each has a process of its own."""
    run = begun(tmp_path, model={**MODEL, "trust": trust}, round={"workers": "dask"})
    monkeypatch.setattr("tasks.stages.aggregate.hand_in", hand_in_or_die)
    monkeypatch.setattr("tasks.stages.federate.take_part", take_part_or_die)
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {"south": clients.LOST} and not verify_hand_off(tmp_path / "out").faults
    ledger = ledger_of(tmp_path)
    kinds = [entry.kind for entry in ledger.entries()]
    assert [kinds.count(kind) for kind in ("reserve", "void", "seal", "commit")] == [3, 1, 2, 2]
    assert ledger.balance("wards.south").spent_epsilon == 0 and ledger.verify() == []
