"""What every method promises, whatever paper it is from: cost, noise, neighbours, one charge, and the way back.

The methods are those of the registry; a new one is one line in ``dpmodels/methods/quick.py``.
"""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import ComposedEvent
from dpmodels.audit.audit import audit as audited
from dpmodels.audit.data import DATA, data_of, extremes, inserted, quick_plan, with_users
from dpmodels.audit.made import clinic, firm, pictures
from dpmodels.audit.replay import KEYS, Replay, is_charged_for, plain, replayed
from dpmodels.audit.subjects import of_method
from dpmodels.codec.embedded import codec_of, labels_of
from dpmodels.codec.encode import Records
from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.generators.load import load_generator
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.quick import GAN, QUICK, SMALL_GAN, Quick, quick
from dpmodels.methods.registry import create, of_kind
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from tests.kit import support
from tests.kit.every_method import OF_TABLES, fit, tap

__all__ = ["tap"]  # a fixture

CHECKS = {"neighbors", "sensitivity", "noise", "resume", "order", "seeds"}
"""The checks of an audit that there are for every method of the registry."""
TRAINED = [method for method in QUICK if QUICK[method].trained]
every_method = pytest.mark.parametrize("method", of_kind("table"))


def measured(method: str, folder: Path, plan: Line, *batches: Any) -> tuple[Released[Release], Ledger]:
    return support.measured(quick(method), folder, plan, *batches)


def file(folder: Path) -> bytes:
    return (folder / "public" / "r.parquet").read_bytes()


def is_one_sentence(fault: BaseException) -> bool:
    return len(str(fault)) > 20 and ". " not in str(fault) and "\n" not in str(fault)


def test_every_method_of_the_registry_has_quick_settings():
    assert QUICK.keys() == set(of_kind("table"))


COSTS = [(method, epsilon) for method in of_kind("table") for epsilon in (0.1, 1.0, 10.0)]
SLOW = [(method, 10.0) for method in TRAINED]  # privacy loss distributions of little noise are long


@pytest.mark.parametrize(
    ("method", "epsilon"), [pytest.param(*cost, marks=pytest.mark.slow if cost in SLOW else ()) for cost in COSTS]
)
@pytest.mark.nightly_if(
    "p3gm-ae-0.1", "dp-gan-0.1", "dp-gm-0.1", "dp-vae-0.1", "dpkg-0.1", *(f"{method}-10.0" for method in TRAINED)
)
def test_it_spends_its_budget_and_no_more(method, epsilon):
    settings = QUICK[method].measurement
    if epsilon > 1 and method in TRAINED:
        settings = {**settings, "sgd": {"steps": 200, "sampling_probability": 0.5}}
    contract = data_of(method).make_schema()
    plan = create(method, settings, {}).plan(contract, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=contract.unit))
    assert 0.99 * epsilon <= spent_epsilon([plan.event], Decimal("1e-5")) <= Decimal(repr(epsilon))


@every_method
@pytest.mark.nightly_if(
    "dp-merf", "moments", "nacre-images", "p3gm-ae", "dp-gan", "dp-gm", "dp-vae", "dpkg", "privbayes"
)  # beside p3gm and nacre-tree
def test_the_audit_holds_whatever_it_looks_at(tmp_path, method):
    """Neighbors of every extreme first, in the middle and last; noise, batches and choices; kills, order and seeds."""
    audit = audited(method, tmp_path)
    assert [found.says for found in audit.findings if not found.holds] == []
    assert {found.check for found in audit.findings} >= CHECKS
    assert all(one.share > 0.9 for one in audit.recovered), audit.recovered


@pytest.mark.parametrize("method", [method for method in of_kind("table") if data_of(method) is not firm])
def test_with_the_release_copied_users_of_two_are_one_file_and_move_a_step_as_far_as_its_noise_hides(tmp_path, method):
    schema = with_users(method, 2)
    if method in TRAINED:
        with pytest.raises(Unsuitable, match="one record") as refused:
            quick_plan(method, schema)
        assert is_one_sentence(refused.value)
        return
    holds_to_its_charge(replayed(of_method(method, rows_of_a_user=2), tmp_path))


def test_units_of_all_the_rows_there_may_be_move_each_look_at_a_tree_as_far_as_its_noise_hides(tmp_path):
    holds_to_its_charge(replayed(of_method("nacre-tree"), tmp_path))


def holds_to_its_charge(replay: Replay) -> None:
    assert replay.differing == []
    for step in replay.steps:
        assert step.is_charged and step.share > 0.9, step
        for wrong in (2 / 3, 3 / 2):  # noise that is so much too small or too large would be seen
            assert not is_charged_for(step.hidden * wrong, step.farthest_alike), step


FOLLOWING = {"groups": "density", "density_points": 1, "bounds": "quantile", "bound_rate": 0.2, "form_every": 5}
FOLLOWED = {
    "dpkg": {**QUICK["dpkg"].measurement, "sgd": {**GAN["sgd"], **FOLLOWING}},
    "dp-gan": {
        **GAN,
        "gan": {**SMALL_GAN, "loss": "non-saturating", "told": 0.9, "pool": 60},
        "warm_share": 0.3,
        "warm": {"coefficients": 12, "directions": 5},
    },
}
FOLLOWED["dpkg, maps"] = {**FOLLOWED["dpkg"], "gan": {**SMALL_GAN, "convolutions": True, "channels": 4}}


@pytest.mark.parametrize(
    ("name", "data"),
    [("dpkg", clinic), ("dpkg, maps", pictures), ("dp-gan", pictures)],
    ids=["dpkg", "dpkg, maps", "dp-gan"],
)
@pytest.mark.nightly_if("dpkg*")  # beside dp-gan
def test_groups_bounds_pace_and_warm_starts_follow_from_what_was_released_alone(tmp_path, monkeypatch, name, data):
    """The same for groups and bounds that move, the pace of a generator, and a start from another release."""
    method = name.split(",")[0]
    monkeypatch.setitem(QUICK, method, Quick(FOLLOWED[name]))
    monkeypatch.setitem(DATA, method, data)
    holds_to_its_charge(replayed(of_method(method), tmp_path))


@pytest.mark.nightly_if("dpkg")
@pytest.mark.parametrize("method", ["dp-gm", "dpkg"])
def test_a_record_moves_the_training_of_one_cluster_alone(tmp_path, tap, method):
    """Parts that say they are disjoint and read each other's records would be charged once and hide a record twice."""
    data, plan = data_of(method), quick_plan(method)
    table, more = data.make_records(60), extremes(data)
    tap.silent, tap.keys_left = True, list(KEYS)
    measured(method, tmp_path / "d", plan, table)
    number, touched, steps = len(tap.keys), set[int](), tap.restart()
    for who in range(len(more)):
        tap.copy(steps, "gaussian", "sgd")
        tap.keys_left = list(KEYS)
        measured(method, tmp_path / str(who), plan, inserted(table, more.take([who]), len(table)))
        pairs = [pair for pair in zip(steps, tap.restart(), strict=True) if pair[0].kind == "sgd"]
        moves = np.array([(one.values != other.values).any() for one, other in pairs]).reshape(number, -1).any(axis=1)
        assert number == 2 and moves.sum() == 1
        touched |= set(np.flatnonzero(moves))
    assert len(touched) == 2


NUMBER = {"size": {"type": "number", "min": 0, "max": 1, "round": 3}}
IMAGE = {"picture": {"type": "image", "height": 12, "width": 10}}
WARD = {"ward": {"type": "categorical", "values": ["north", "south", "west"]}}
FORMS = {
    "no target": {"target": None, "columns": {**WARD, **NUMBER}},
    "numeric target": {"target": "size", "columns": {**WARD, **NUMBER}},
    "one column": {"target": None, "columns": WARD},
    "one number": {"target": None, "columns": NUMBER},
    "only the target": {"target": "ward", "columns": WARD},
    "images": {"target": "ward", "columns": {**IMAGE, **WARD}},
    "color": {"target": "ward", "columns": {"picture": {**IMAGE["picture"], "channels": 3}, **WARD}},
}
OF_PIXELS = ("pearl", "dp-merf")
"""Methods of tables that take images too, gray or in color."""
NEEDS_TWO_COLUMNS = {*TRAINED, *OF_PIXELS, "moments"}


def refusal(method: str, form: str) -> str:
    """Return what a method says of a form that it does not take."""
    if form == "color":
        return "" if method in ("nacre-photos", *OF_PIXELS) else "be nacre-photos"
    if form == "images":
        return "" if method in ("nacre-images", "nacre-photos", *OF_PIXELS, *TRAINED) else "be nacre-images"
    if method in ("nacre-images", "nacre-photos"):
        return "column of type image"
    return "besides the target" if form == "only the target" and method in NEEDS_TWO_COLUMNS else ""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", OF_TABLES)
@pytest.mark.nightly_if("p3gm-ae-*", "dp-vae-*", "dp-gm-*", "p3gm-images")  # beside p3gm, dp-gan and dpkg
def test_it_takes_a_schema_or_says_in_a_sentence_what_it_takes(tmp_path, method, form):
    schema = Schema.model_validate({"name": "form", **FORMS[form]})
    if sentence := refusal(method, form):
        with pytest.raises((InvalidArgument, Unsuitable), match=sentence) as refused:
            quick_plan(method, schema)
        assert is_one_sentence(refused.value)
        return
    values = np.zeros((6, len(schema.modelled)))
    pixels = np.zeros((6, schema.image[1].numbers), dtype=np.uint8) if schema.image else None
    records = Records(values.astype(np.int32), values, pixels)
    release, _ = measured(method, tmp_path / "run", quick_plan(method, schema), records)
    makes_rows(method, release, tmp_path)


def tabled(contract: Any) -> Schema:
    """Return the schema of all columns that a report has."""
    return contract.overview if isinstance(contract, Tree) else contract.flat


def makes_rows(method: str, release: Released[Release], folder: Path) -> None:
    """See that a release states its noise and its counts, and that what is fitted to it makes rows of the schema."""
    plan, system = release.value.line, quick(method)
    assert all(0 < stddev < math.inf for stddev in system.noise(plan).values())
    counted = system.marginals(release.value)
    table = labels_of(plan.contract) if isinstance(plan.contract, Documents) else tabled(plan.contract)
    assert counted is None or (counted.columns.keys() <= table.modelled.keys() and counted.records >= 1)
    model = fit(method, release, folder)
    assert model.default_rows() >= 1
    (made,) = model.sample(20, seed=0)
    codec = codec_of(plan.contract)
    table = codec.decode(made)
    assert len(made) == 20 and codec.output_schema.equals(table.schema)
    assert codec.decode(codec.encode(table)).equals(table)  # each value is one that is allowed


@pytest.mark.parametrize("rows", [0, 1, 40])
@every_method
@pytest.mark.nightly_if("dp-gm*", "dp-vae*", "p3gm-ae*", "moments*", "dp-merf*")  # beside methods of each other sort
def test_hardly_any_rows_and_columns_of_one_value_go_through(tmp_path, method, rows):
    records = data_of(method).make_records(1).take([0] * rows)
    release, _ = measured(method, tmp_path / "run", quick_plan(method), records)
    makes_rows(method, release, tmp_path)


def lives(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


@every_method
def test_one_release_is_one_charge_and_asked_for_again_it_is_the_same_file(tmp_path, tap, method):
    records, plan = data_of(method).make_records(40), quick_plan(method)
    release, ledger = measured(method, tmp_path / "run", plan, records)
    assert lives(ledger) == ["open", "reserve", "draw", "seal", "commit"]
    assert ledger.balance("a").spent_epsilon == spent_epsilon([plan.event], Decimal("1e-5"))
    drawn, before = tap.restart(), file(tmp_path / "run")
    again, _ = measured(method, tmp_path / "run", plan, records.take(slice(0, 5)))
    assert drawn and tap.restart() == [] and file(tmp_path / "run") == before
    assert lives(ledger) == ["open", "reserve", "draw", "seal", "commit"]
    assert again.value.line == plan and again.value.entry == release.value.entry
    assert [path.name for path in (tmp_path / "run" / "private").iterdir()] == [".lock-r.parquet"]


@every_method
def test_fitting_again_gives_the_same_file_and_what_is_saved_samples_the_same(tmp_path, method):
    release, _ = measured(method, tmp_path / "run", quick_plan(method), data_of(method).make_records(40))
    for name in ("one", "two"):
        model = fit(method, release, tmp_path, seed=3)
        model.save(tmp_path / name)
    again = load_generator(tmp_path / "one")
    again.save(tmp_path / "three")
    assert len({(tmp_path / name).read_bytes() for name in ("one", "two", "three")}) == 1
    codec = codec_of(release.value.line.contract)
    here, there = (pa.concat_tables(map(codec.decode, each.sample(1000, seed=5))) for each in (model, again))
    assert here.equals(there)
    assert model.default_rows() == again.default_rows()


@every_method
def test_a_plan_that_was_changed_is_refused_before_any_charge_and_any_noise(tmp_path, tap, method):
    plan, records = quick_plan(method), data_of(method).make_records(10)
    parts = [event.model_copy(update={"noise_multiplier": event.noise_multiplier * 0.9}) for event in plain(plan.event)]
    name, number = next((name, n) for name, n in plan.measurement.items() if isinstance(n, int | float) and n)
    changes = [
        {"event": ComposedEvent(events=tuple(parts))},
        {"budget": quick_plan(method, epsilon=0.1).budget},
        {"fingerprint": "0" * 64},
        {"part": "night"},
        {"name": "other"},
        {"measurement": {**plan.measurement, name: 2 * number}},
    ]
    for number, change in enumerate(changes):
        with pytest.raises(ArtifactError, match="Nothing was drawn"):
            measured(method, tmp_path / str(number), plan.model_copy(update=change), records)
        assert lives(Ledger(tmp_path / str(number) / "ledger.sqlite")) == ["open"]
    assert tap.draws == [] and tap.streams == []
