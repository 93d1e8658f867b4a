"""How tables stand in a comparison: the best of each score, a sentence on each table, and how far the work is."""

import numpy as np
import pandas as pd
import pytest

from dpmodels.comparison.compare import compare_tables
from dpmodels.comparison.report import Options
from dpmodels.comparison.standing import mark_best, verdicts
from tests.kit.population import SCHEMA, draw, judge, write

QUICK = Options(workers=1, only=("marginals", "correlations"))


@pytest.mark.parametrize(
    ("better", "figures", "best"),
    [
        ("lower", {"a": 0.2, "b": 0.1, "c": None}, ["b"]),
        ("higher", {"a": 0.2, "b": 0.1}, ["a"]),
        ("near 0.5", {"a": 0.42, "b": 0.6}, ["a"]),
        ("near 1", {"a": 0.8, "b": 1.1}, ["b"]),
        ("near 0.5", {"a": 0.4, "b": 0.6}, []),
        ("lower", {"a": 0.10001, "b": 0.10002}, []),
        ("lower", {"a": 0.1, "b": 0.1, "c": 0.2}, ["a", "b"]),
        ("lower", {"a": 0.1}, []),
        ("lower", {"a": 0.1, "b": None}, []),
    ],
)
def test_the_best_of_a_line_is_what_its_score_asks_for(
    better: str, figures: dict[str, float | None], best: list[str]
) -> None:
    (line,) = mark_best([{"score": "any", "better": better, "tables": figures}])
    assert line["best"] == best


@pytest.mark.parametrize(
    ("better", "real", "figures", "best"),
    [
        ("lower", 0.02, {"a": 0.0, "b": 0.03}, ["a"]),
        ("lower", 0.02, {"a": 0.0, "b": 0.019}, []),
        ("lower", 0.02, {"a": 0.0, "b": 0.02, "c": 0.03}, ["a", "b"]),
        ("higher", 0.9, {"a": 0.99, "b": 0.9}, []),
        ("higher", 0.9, {"a": 0.99, "b": 0.8}, ["a"]),
        ("near 1", 1.0, {"a": 0.0, "b": 3.0}, ["b"]),
        ("near 1", 1.0, {"a": 0.5, "b": 2.0}, []),
        ("near 0.5", 0.5, {"a": 0.48, "b": 0.6}, ["a"]),
    ],
)
def test_no_table_is_better_than_real_rows(
    better: str, real: float, figures: dict[str, float | None], best: list[str]
) -> None:
    (line,) = mark_best([{"score": "any", "better": better, "real": real, "tables": figures}])
    assert line["best"] == best


def test_columns_that_are_shuffled_are_suspiciously_close_and_other_real_rows_are_not(tmp_path) -> None:
    real = draw(900, 0)
    shuffled = pd.DataFrame({name: column.sample(frac=1, random_state=1).to_numpy() for name, column in real.items()})
    tables = {"shuffled": shuffled, **{f"other {seed}": draw(900, seed) for seed in range(1, 6)}}
    paths = {name: write(table, tmp_path / f"{name}.parquet") for name, table in tables.items()}
    facts = compare_tables(paths, write(real, tmp_path / "real.parquet"), None, SCHEMA, QUICK).reveal()
    said = [name for name, verdict in facts["verdicts"].items() if "suspiciously close" in verdict]
    assert said == ["shuffled"]
    (one_way,) = [line for line in facts["scores"] if line["score"] == "total variation, 1-way"]
    assert one_way["tables"]["shuffled"] == 0 and one_way["best"] != ["shuffled"]


def test_a_sentence_says_where_a_table_is_best_and_what_fails() -> None:
    lines = mark_best(
        [
            {"better": "lower", "tables": {"a": 0.1, "b": 0.2}},
            {"better": "higher", "tables": {"a": 0.1, "b": 0.2}},
            {"better": "higher", "tables": {"a": 0.3, "b": 0.2}},
            {"better": "higher", "tables": {"a": 0.3, "b": 0.3}},
        ]
    )
    checks = [{"name": "x", "holds": True}, {"name": "y", "holds": False}, {"name": "z", "holds": None}]
    reports = {name: {"checks": checks[at:], "metrics": {}} for at, name in enumerate("ab")}
    said = verdicts(lines, reports)
    assert said["a"] == "best in 2 of 3 scores that differ; passes 1 of 2 checks and fails y"
    assert said["b"] == "best in 1 of 3 scores that differ; passes 0 of 1 check and fails y"


def test_a_comparison_says_how_far_it_is_and_which_pair_is_farthest_off(tmp_path) -> None:
    real, made = draw(900, 0), draw(900, 1)
    worse = made.assign(rent=made["rent"].sample(frac=1, random_state=0).to_numpy())
    paths = {name: write(table, tmp_path / f"{name}.parquet") for name, table in (("made", made), ("worse", worse))}
    heard: list[tuple[float, float, str]] = []
    place = write(real, tmp_path / "real.parquet")
    facts = compare_tables(paths, place, None, SCHEMA, QUICK, progress=lambda *one: heard.append(one)).reveal()
    assert heard == [(0.5, 2, "made"), (1.0, 2, "made"), (1.5, 2, "worse"), (2.0, 2, "worse")]
    lines = {line["score"]: line for line in facts["scores"]}
    farthest = lines["associations, largest difference"]
    assert farthest["best"] == ["made"] and farthest["tables"]["worse"] > 0.5
    assert 0 < lines["total variation, 2-way"]["real"] < 0.2
    assert "and fails correlations" in facts["verdicts"]["worse"]
    assert (
        "the pair of columns farthest from the real rows: income and rent (Spearman 0.9" in facts["verdicts"]["worse"]
    )


def test_an_association_that_is_gone_fails_below_the_limit_for_others() -> None:
    def table(lean: float, seed: int) -> pd.DataFrame:
        """Draw rows in which smokers are ill more often, with a Cramer's V of about ``lean``; nothing else goes so."""
        rng = np.random.default_rng(seed)
        free = {name: column.sample(frac=1, random_state=rng).to_numpy() for name, column in draw(20_000, seed).items()}
        smoker = rng.random(20_000) < 0.5
        ill = np.where(rng.random(20_000) < 0.5 + lean * np.where(smoker, 0.5, -0.5), "yes", "no")
        return pd.DataFrame({**free, "smoker": smoker, "ill": ill})

    def check(real: float, made: float) -> dict:
        report = judge(table(made, 1), table(real, 0), None, only=("correlations",))
        (one,) = [check for check in report["checks"] if check["name"] == "correlations"]
        return one

    gone = check(0.17, 0.0)
    assert not gone["holds"] and "smoker and ill (Cramer's V 0.17 in the real rows, 0.0" in gone["finding"]
    assert not check(0.0, 0.17)["holds"]
    assert check(0.5, 0.35)["holds"] and not check(0.5, 0.2)["holds"]
