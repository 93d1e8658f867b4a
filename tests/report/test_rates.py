"""Rates of the target by the groups of other columns: they are those of the rows, and their noise is the noise."""

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.methods.parts.marginals import of_moments, with_pairs
from dpmodels.pages.figures.rate_pictures import rate_figures
from dpmodels.pages.figures.rates import by_class
from dpmodels.pages.figures.ruled import EVERY_ROW
from dpmodels.releases.steps import NoisySum
from dpmodels.report.derived.possible import Rules
from dpmodels.report.groups.rates import rates_of
from dpmodels.report.within import rate_within
from tests.kit.every_kind import make

ROWS = 4000
SCHEMA = make(
    "name: x\ntarget: sick\ncolumns:\n  n: {type: integer, min: 0, max: 99, nullable: true}\n"
    "  cause: {type: categorical, values: [a, b, c, d, e]}\n  sick: {type: boolean}\n"
)
EMBEDDING = Moments(Partition.fine(SCHEMA, 12), 2**14, 2**14, 1)
NAMES = list(SCHEMA.modelled)


def rows(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    cause = rng.choice(list("abcde"), ROWS, p=[0.4, 0.3, 0.2, 0.07, 0.03])
    n = [None if one < 0.1 else int(one * 100) for one in rng.random(ROWS)]
    return pa.table({"n": n, "cause": cause, "sick": rng.random(ROWS) < np.where(cause == "d", 0.5, 0.1)})


def summed(table: pa.Table) -> np.ndarray:
    return EMBEDDING.lattice_sum(Codec(SCHEMA).encode(table)).numpy()


def test_rates_are_those_of_the_rows_of_each_group() -> None:
    table, other = rows(), rows(1)
    rates = rates_of(NAMES, [NoisySum(summed(table), 1.0, EMBEDDING)], [summed(other).astype(np.float64)])
    assert rates is not None and (rates["target"], rates["class"]) == (2, "true")
    number, cause = rates["columns"]
    assert cause["labels"] == [["a"], ["b"], ["c"], ["d"], ["e"]] and number["labels"][-1] == ["null"]
    for data, name in ((table, "released"), (other, "synthetic")):
        frame = data.to_pandas()
        assert cause[name] == pytest.approx(frame.groupby("cause").sick.mean().tolist(), abs=1e-5)
        assert number[name][-1] == pytest.approx(frame[frame.n.isna()].sick.mean(), abs=1e-5)
    assert cause["share"] == pytest.approx(table.to_pandas().cause.value_counts(normalize=True).sort_index(), abs=1e-5)


def test_the_noise_of_a_rate_is_what_is_stated_and_within_holds_for_what_follows_it_and_for_what_does_not() -> None:
    table, rng, noise = rows(), np.random.default_rng(3), 8.0 * 2**14
    exact, real = summed(table), table.to_pandas().groupby("cause").sick.mean().to_numpy()
    off, beyond, following = [], [], []
    for _ in range(300):
        noisy = np.round(exact + rng.normal(0, noise, len(exact))).astype(np.int64)
        rates = rates_of(NAMES, [NoisySum(noisy, noise, EMBEDDING)], [exact.astype(np.float64)])
        assert rates is not None
        cause = rates["columns"][1]
        released, stddev = np.array(cause["released"]), np.array(cause["stddev"])
        off.append((released - real)[:4] / stddev[:4])  # of the last the rate may be cut at 0
        beyond.append(np.abs(np.array(cause["synthetic"]) - real) > cause["within"])
        following.append(
            np.abs(released - real) > [rate_within(one, s, one) for one, s in zip(released, stddev, strict=True)]
        )
    assert 0.85 < np.std(off) < 1.15
    assert np.mean(beyond) == 0 and np.mean(following) < 0.07


def test_all_that_was_released_of_a_group_by_class_makes_its_rate() -> None:
    table, rng, noise = rows(), np.random.default_rng(4), 8.0 * 2**14
    exact, real = summed(table).astype(np.float64), table.to_pandas().groupby("cause").sick.mean().to_numpy()
    off = []
    for _ in range(200):
        looks = [
            NoisySum(np.round(exact + rng.normal(0, noise, len(exact))).astype(np.int64), noise, EMBEDDING)
            for _ in range(2)
        ]
        first, second = looks
        once = of_moments(EMBEDDING, first.vector, noise)
        both = with_pairs(once, EMBEDDING, first.vector, EMBEDDING, second.vector, noise)
        alone, averaged = (rates_of(NAMES, looks, [exact] * 2, each) for each in (None, both))
        assert alone is not None and averaged is not None
        stated = [np.array(each["columns"][1]["stddev"])[:3] for each in (alone, averaged)]
        assert (stated[1] < 0.72 * stated[0]).all()  # of two looks, or more, with the noise of one
        off.append((np.array(averaged["columns"][1]["released"])[:3] - real[:3]) / stated[1])
    assert 0.85 < np.std(off) < 1.15


def test_a_table_without_a_target_or_without_rows_has_no_rates() -> None:
    schema = make("name: x\ncolumns:\n  a: {type: boolean}\n  b: {type: boolean}\n")
    embedding = Moments(Partition.fine(schema, 12), 2**14, 2**14, 1)
    total = embedding.lattice_sum(Codec(schema).encode(pa.table({"a": [True, False], "b": [False, True]}))).numpy()
    assert rates_of(["a", "b"], [NoisySum(total, 1.0, embedding)], [total.astype(np.float64)]) is None
    empty = np.zeros(EMBEDDING.dim)
    assert rates_of(NAMES, [NoisySum(empty.astype(np.int64), 1.0, EMBEDDING)], [empty]) is None


def test_of_two_classes_the_rarer_is_stated_and_of_more_the_largest() -> None:
    for values, expected in (("[good, bad]", "bad"), ("[low, middle, high]", "middle")):
        schema = make(
            "name: x\ntarget: t\ncolumns:\n  a: {type: boolean}\n  b: {type: boolean}\n"
            f"  t: {{type: categorical, values: {values}}}\n"
        )
        embedding, rng = Moments(Partition.fine(schema, 12), 2**14, 2**14, 1), np.random.default_rng(0)
        names = values.strip("[]").split(", ")
        drawn = rng.choice(names, 500, p=[0.9, 0.1] if len(names) == 2 else [0.1, 0.7, 0.2])
        a, b = rng.random((2, 500)) < 0.5
        total = embedding.lattice_sum(Codec(schema).encode(pa.table({"a": a, "b": b, "t": drawn}))).numpy()
        rates = rates_of(["a", "b", "t"], [NoisySum(total, 1.0, embedding)], [total.astype(np.float64)])
        assert rates is not None and rates["class"] == expected
        assert ("others" in rates) == (len(names) > 2)


def test_of_three_classes_or_more_each_has_the_rates_of_its_rows_up_to_the_six_largest() -> None:
    names = list("stuvwxyz")
    schema = make(
        "name: x\ntarget: t\ncolumns:\n  cause: {type: categorical, values: [a, b, c]}\n"
        f"  t: {{type: categorical, values: [{', '.join(names)}], nullable: true}}\n"
    )
    embedding, rng = Moments(Partition.fine(schema, 12), 2**14, 2**14, 1), np.random.default_rng(0)
    drawn = rng.choice([*names, None], ROWS, p=[0.02, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17, 0.03, 0.08])
    table = pa.table({"cause": rng.choice(list("abc"), ROWS), "t": drawn})
    total = embedding.lattice_sum(Codec(schema).encode(table)).numpy()
    rates = rates_of(list(schema.modelled), [NoisySum(total, 1.0, embedding)], [total.astype(np.float64)])
    assert rates is not None and [one["class"] for one in by_class(rates)] == ["y", *"tuvwx"]
    frame = table.to_pandas()
    for one in by_class(rates):
        (cause,) = one["columns"]
        truth = (frame.t == one["class"]).groupby(frame.cause).mean().tolist()
        assert cause["labels"] == [["a"], ["b"], ["c"]] and cause["within"] == [pytest.approx(0, abs=1e-3)] * 3
        assert cause["released"] == cause["synthetic"] == pytest.approx(truth, abs=1e-5)


def test_a_column_of_which_noise_leaves_no_group_a_record_has_no_rates() -> None:
    blocks = summed(rows()).reshape(EMBEDDING.partition.classes, -1).copy()
    begin, end = EMBEDDING.partition.offsets[1:3]
    blocks[:, begin:end] = -(2**14)
    rates = rates_of(NAMES, [NoisySum(blocks.ravel(), 1.0, EMBEDDING)], [summed(rows(1)).astype(np.float64)])
    assert rates is not None and [NAMES[one["column"]] for one in rates["columns"]] == ["n"]


def test_a_rate_that_a_rule_fixes_is_exact_and_the_page_says_by_what() -> None:
    schema = SCHEMA.model_copy(update={"constraints": ("when cause = d then sick", "when cause = e then not sick")})
    schema = type(SCHEMA).model_validate(schema.model_dump())
    table = rows().to_pandas()
    table["sick"] = np.where(table.cause == "d", True, np.where(table.cause == "e", False, table.sick))
    exact = summed(pa.Table.from_pandas(table, schema=rows().schema, preserve_index=False))
    noisy = np.round(exact + np.random.default_rng(2).normal(0, 40 * 2**14, len(exact))).astype(np.int64)
    look, drawn = NoisySum(noisy, 40 * 2.0**14, EMBEDDING), exact.astype(np.float64)
    rules = Rules(schema.implications, schema.rules, schema.columns, EMBEDDING.partition.codec.columns)
    free, ruled = (rates_of(NAMES, [look], [drawn], likely=one) for one in (None, rules.cleared))
    assert free is not None and ruled is not None
    cause = ruled["columns"][1]
    for key, figures in (("released", [1, 0]), ("stddev", [0, 0]), ("synthetic", [1, 0]), ("within", [0, 0])):
        assert cause[key][3:] == figures
    assert all(one > 0 for one in free["columns"][1]["stddev"]) and all(one > 0 for one in cause["stddev"][:3])
    labels = [["false", "true"], list("abcde")]
    columns = [{"name": "n", "labels": [], "ordered": True, "type": "integer"}] + [
        {"name": name, "labels": of, "ordered": False, "type": "x", "synthetic": [0.5] * len(of)}
        for name, of in (("cause", labels[1]), ("sick", labels[0]))
    ]
    gate = [{"rule": f"`{text}` {EVERY_ROW}"} for text in schema.constraints]
    facts = {"columns": columns, "rates": {**ruled, "columns": [cause]}, "released_records": ROWS, "gate": gate}
    facts["pairs"] = {"distances": [[1, 2, 0, 0, 0, 0.01, 0.2, 0.2, 0.01, 0.02]]}
    drawn_rates = rate_figures(facts)
    assert drawn_rates is not None
    assert [row[0] for row in drawn_rates.figures[0].rows] == ["a", "b", "c", "d, by a rule", "e, by a rule"]
