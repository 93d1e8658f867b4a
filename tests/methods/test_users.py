"""Nacre on users and their rows keeps what every method promises, and what one record moves, a user moves."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.audit.audit import findings_of
from dpmodels.audit.data import DATA, inserted, quick_plan
from dpmodels.audit.made import shop
from dpmodels.audit.replay import is_charged_for, replayed
from dpmodels.audit.subjects import Subject, World, of_method
from dpmodels.codec.flat import FlatCodec, split
from dpmodels.errors import InvalidArgument
from dpmodels.methods.quick import QUICK, quick
from dpmodels.methods.registry import create, of_kind
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft
from tests.kit.errors import refused
from tests.kit.records import user_of
from tests.kit.support import measured

SCHEMA = shop.make_schema()


@pytest.fixture(autouse=True)
def shop_data(monkeypatch):
    monkeypatch.setitem(DATA, "nacre", shop)


def test_the_audit_holds_whatever_it_looks_at(tmp_path):
    subject = replace(of_method("nacre"), name="users")  # the audit's attack inserts records, and not users
    found, _ = findings_of(subject, tmp_path)
    assert [one.says for one in found if not one.holds] == []
    assert {one.check for one in found} >= {"neighbors", "sensitivity", "noise", "resume", "order", "seeds"}


@pytest.mark.parametrize("measurement", [{}, {"paired_columns": 2}], ids=["tables of pairs", "products"])
@pytest.mark.nightly_if("products")  # beside tables of pairs
def test_with_the_release_copied_users_of_all_their_rows_leave_one_file_and_move_no_step_too_far(tmp_path, measurement):
    """Neighbors with a user of the most rows, alike or at the ends, inserted first, in the middle and last."""
    system = create("nacre", {**QUICK["nacre"].measurement, **measurement}, {})
    line, crowd = system.plan(SCHEMA, quick_plan("nacre").budget), shop.make_records(60)
    places = {"first": 0, "in the middle": len(crowd) // 2, "last": len(crowd)}
    worlds = [World("D", [crowd])]
    for number in (0, 1, 2, SCHEMA.unit.max_rows):
        for alike in (True, False):
            user = user_of(number, alike)
            worlds += [World(f"{number} rows {where}", [inserted(crowd, user, at)]) for where, at in places.items()]
    replay = replayed(Subject("nacre", system, line, worlds), tmp_path)
    assert replay.differing == []
    for step in replay.steps:
        assert step.reach <= step.hidden and step.is_charged, step
        for wrong in (2 / 3, 3 / 2):  # noise that is so much too small or too large would be seen
            assert not is_charged_for(step.hidden * wrong, step.farthest_alike), step


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_both_tables_are_one_charge_of_the_whole_budget(epsilon):
    plan = quick_plan("nacre", epsilon=epsilon)
    assert 0.99 * epsilon <= spent_epsilon([plan.event], Decimal("1e-5")) <= Decimal(repr(epsilon))
    one, many = (
        quick_plan("nacre", shop.make_schema(unit={"user": "customer", "max_rows": rows}), epsilon).event
        for rows in (2, 40)
    )
    assert one == many  # the bound on a user's rows does not make the noise larger


@pytest.mark.parametrize(
    "method", [name for name in of_kind("table") if name not in ("nacre", "nacre-tree", "document-moments")]
)
def test_other_methods_refuse_in_a_sentence(method):
    with refused(InvalidArgument, "with `users`", name="method", value=method):
        create(method, {}, {}).plan(SCHEMA, PrivacyBudget(epsilon=1, delta=1e-5, unit=SCHEMA.unit))


@pytest.mark.parametrize("customers", [1, 40])
def test_hardly_any_users_go_through(tmp_path, customers):
    release, _ = measured(quick("nacre"), tmp_path / "run", quick_plan("nacre"), shop.make_records(customers))
    model = quick("nacre").fit(release, Craft(seed=0))
    assert model.default_rows() >= 1
    (drawn,) = model.sample(50, seed=0)
    codec = FlatCodec(SCHEMA)
    table = codec.decode(drawn)
    assert codec.decode(codec.encode(table)).equals(table) and split(SCHEMA, table)["parents"].num_rows == 50


def test_counts_parents_and_what_depends_on_them_are_kept(tmp_path):
    """In the mean of four releases with little noise; how good one is at epsilon 1 benchmarks/tables.py prints."""
    system = create("nacre", {"fine_cells": 64}, {"components": 128, "steps": 150})
    line = system.plan(SCHEMA, PrivacyBudget(epsilon=8.0, delta=1e-5, unit=SCHEMA.unit))
    real, made = FlatCodec(SCHEMA).decode(shop.make_records(3000)).to_pandas(), []
    for number in range(4):
        release, _ = measured(system, tmp_path / str(number), line, shop.make_records(3000))
        model = system.fit(release, Craft(seed=0))
        assert model.default_rows() == pytest.approx(3000, rel=0.01)
        (drawn,) = model.sample(3000, seed=1)
        made.append(FlatCodec(SCHEMA).decode(drawn).to_pandas())
    for name in ("children", "region"):
        x, y = (own.query("position <= 1")[name].value_counts(normalize=True) for own in (real, pd.concat(made)))
        assert x.sub(y, fill_value=0).abs().sum() / 2 < 0.03
    rows = [own.query("position > 0") for own in (real, pd.concat(made))]
    shares = [own.groupby("region")["product"].value_counts(normalize=True).unstack() for own in rows]
    assert np.abs(shares[0] - shares[1]).to_numpy().max() < 0.08
    users = [own.query("position <= 1") for own in (real, pd.concat(made))]
    more = [own.groupby(own["age"] > 45)["children"].mean() for own in users]
    assert math.isclose(more[0][True] - more[0][False], more[1][True] - more[1][False], rel_tol=0.25)
