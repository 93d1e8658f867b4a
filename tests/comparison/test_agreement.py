"""Figures that others print too: the public judges' total variation and scores, and distances known in closed form."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.judge import TableJudge
from dpmodels.comparison.bootstrap import interval, r_squared, weighted_auroc, weights
from dpmodels.comparison.compare import compare_tables, distinct_names
from dpmodels.comparison.correlation import association
from dpmodels.comparison.frame import Frame, ParquetBatches, Rows
from dpmodels.comparison.neighbours import nearest
from dpmodels.comparison.report import Options
from dpmodels.errors import DataError
from tests.kit.errors import refused
from tests.kit.population import SCHEMA, draw, judge, write


@pytest.fixture(scope="module")
def tables():
    return [draw(900, seed).dropna() for seed in range(3)]


def test_total_variation_and_the_four_classifiers_agree_with_the_judge(tables, tmp_path):
    real, held, made = tables
    made = made.assign(rent=made["rent"] * 0.8)
    paths = [write(table, tmp_path / f"{name}.parquet") for name, table in zip("abc", (real, held, made), strict=True)]
    metrics = ("marginals", "four classifiers", "utility of the target")
    facts = compare_tables({"made": paths[2]}, paths[0], paths[1], SCHEMA, Options(workers=1, only=metrics)).reveal()
    ours = {line["score"]: line for line in facts["scores"]}
    words = [table.assign(smoker=table["smoker"].astype(str)) for table in tables]  # pandas calls booleans numbers
    reference = TableJudge(*words[:2], "ill", "yes")
    theirs, ceiling = reference.judge(made.assign(smoker=made["smoker"].astype(str))), reference.real()
    assert ours["total variation, 1-way"]["tables"]["made"] == pytest.approx(theirs.tvd_1_way, abs=1e-12)
    assert ours["total variation, 2-way"]["tables"]["made"] == pytest.approx(theirs.tvd_2_way, abs=1e-12)
    for name, score in (("AUROC", "auroc"), ("AUPRC", "auprc")):
        line = ours[f"TSTR {name}, four classifiers"]
        assert line["tables"]["made"] == pytest.approx(getattr(theirs, score), abs=1e-9)
        assert line["real"] == pytest.approx(getattr(ceiling, score), abs=1e-9)


def test_weighted_area_and_r2_agree_with_scikit_learn():
    from sklearn.metrics import r2_score, roc_auc_score

    rng = np.random.default_rng(0)
    y, score = rng.random(300) < 0.3, np.round(rng.random(300), 1)
    drawn = weights(300, 0)
    areas, explained = weighted_auroc(y, score, drawn), r_squared(score, score + y, drawn)
    for b in (0, 1, 100):
        assert areas[b] == pytest.approx(roc_auc_score(y, score, sample_weight=drawn[b]))
        assert explained[b] == pytest.approx(r2_score(score, score + y, sample_weight=drawn[b]))
    low, high = interval(areas)
    assert low < areas[0] < high


def test_associations_agree_with_scipy_and_catch_what_depends():
    from scipy.stats import spearmanr

    real = draw(3000, 0)
    frame = next(
        iter(Rows(SCHEMA, __import__("pyarrow").Table.from_pandas(real).to_batches()).each(lambda frame: frame))
    )
    pairs = [(0, 2), (1, 2), (3, 4), (4, 5), (0, 5)]
    found = association(SCHEMA, frame, pairs)
    known = real.dropna()
    assert found[0] == pytest.approx(spearmanr(real["age"], real["rent"]).statistic)
    assert found[1] == pytest.approx(spearmanr(known["income"], known["rent"]).statistic, abs=5e-3)
    assert found[2] < 0.05 < 0.3 < found[3]  # ward and smoker are independent, smoker and ill are not
    by_class = [real["age"].rank()[real["ill"] == word] for word in ("no", "yes")]
    between = sum(len(one) * (one.mean() - real["age"].rank().mean()) ** 2 for one in by_class)
    assert found[4] == pytest.approx((between / (len(real) * real["age"].rank().var(ddof=0))) ** 0.5)


def test_nearest_neighbours_are_the_nearest():
    rng = np.random.default_rng(0)
    known, asked = rng.random((200, 4), dtype=np.float32), rng.random((30, 4), dtype=np.float32)
    every = np.sqrt(((asked[:, None] - known[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(nearest(known, asked, 3), np.sort(every, axis=1)[:, :3], rtol=1e-5)
    assert (nearest(known, known[:5])[:, 0] == 0).all()


def test_tables_of_other_tools_are_read_leniently(tmp_path):
    made = draw(50, 0)
    odd = made.assign(
        age=made["age"].astype(float),
        ward=made["ward"].astype("category"),
        ill=made["ill"].where(made.index > 0, None),
        extra=1,
    )
    frame = read(write(odd, tmp_path / "odd.parquet"))
    plain = read(write(made, tmp_path / "plain.parquet"))
    np.testing.assert_array_equal(frame.values[1:], plain.values[1:])
    assert np.isnan(frame.values[0, 5])
    with refused(DataError, column="rent"):
        read(write(made.drop(columns="rent"), tmp_path / "short.parquet"))
    with refused(DataError, "read as integer", column="age"):
        read(write(made.assign(age=[f"about {age}" for age in made["age"]]), tmp_path / "words.parquet"))
    with refused(DataError, "does not exist", column=""):
        read(tmp_path / "none.parquet")


def read(path) -> Frame:
    return Frame.concat(list(Rows(SCHEMA, ParquetBatches(path, SCHEMA)).each(lambda frame: frame)))


def test_tables_are_named_by_what_tells_them_apart(tmp_path):
    paths = [tmp_path / "aim" / "synthetic.parquet", tmp_path / "nacre" / "synthetic.parquet"]
    assert distinct_names(paths) == ["aim", "nacre"]
    assert distinct_names([tmp_path / "a.parquet", tmp_path / "b.parquet"]) == ["a", "b"]
    assert len(set(distinct_names([paths[0], paths[0]]))) == 2


def test_null_is_a_cell_of_its_own(tables):
    real, _, made = tables
    pieces = [made.iloc[:400], made.iloc[400:].assign(income=np.nan)]
    found = judge(pd.concat(pieces), real, None, only=("marginals",))["metrics"]["marginals"]["result"]
    share = 1 - 400 / len(made)
    assert found["total_variation_1_way"]["income"] >= share - 1e-9
    assert found["null_share"]["income"] == [0.0, pytest.approx(share)]
