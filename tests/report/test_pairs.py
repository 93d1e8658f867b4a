"""What a report says of every two columns: its noise is the noise, and a generator that lost a pair is seen to."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.products import Products, halves_of
from dpmodels.embeddings.residuals import Residuals, mix_of
from dpmodels.pages.figures.relations import GROUPS, relations
from dpmodels.releases.steps import NoisySum
from dpmodels.report.bins import group_labels
from dpmodels.report.pairs import grouped, groups_of, pair_facts, pairs_of
from dpmodels.report.within import DRAWN, SPREAD, drawn, pair_within, within_95
from dpmodels.statistics.dependence import dependence
from tests.kit.every_kind import make
from tests.kit.support import make_records, make_schema

SCHEMA = make_schema()
ROWS, NOISE = 2000, 3.0e5


def pair_distances(*args: Any) -> list[list[Any]]:
    """Return the distances that a report lists."""
    return pair_facts(pairs_of(*args))["distances"]


def embeddings() -> dict[str, Moments]:
    """Return embeddings that measure pairs, each with several cells a column."""
    fine = Partition.fine(SCHEMA, 12)
    halves = halves_of([np.ones(size, dtype=np.int64) for size in fine.sizes])
    return {
        "counts": Moments(fine, 2**14, 2**14, 1),
        "residuals": Residuals(fine, 2**14, 2**22, 1, None, mix_of(0.75, fine.classes)),
        "products": Products(fine, halves, 2**14, 2**14, 1),
    }


@pytest.mark.parametrize("kind", ["counts", "residuals", "products"])
def test_the_distance_to_be_expected_of_noise_is_the_one_that_noise_makes(kind: str) -> None:
    embedding, rng = embeddings()[kind], np.random.default_rng(0)
    exact = embedding.lattice_sum(make_records(ROWS)).numpy().astype(np.float64)
    ratios, likely = [], []
    for _ in range(60):
        noisy = exact + rng.normal(0, NOISE, len(exact))
        look = NoisySum(noisy.astype(np.int64), NOISE, embedding)
        listed = pair_distances(list(SCHEMA.modelled), [look], [exact])
        assert [pair[:2] for pair in listed] == [[i, j] for i in range(5) for j in range(i + 1, 5)]
        ratios.append([distance / noise for _, _, noise, distance, *_ in listed])
        likely.append([distance / noise for _, _, _, distance, noise, *_ in listed])
    assert np.mean(ratios) == pytest.approx(1, abs=0.12) and np.mean(ratios, axis=0).min() > 0.6
    assert all(figures[3] == pair_within(figures) for _, _, *figures in listed)
    beyond = np.mean(np.array(likely) > 1)
    assert 0.005 < beyond < 0.09, beyond  # one in twenty, of 60 releases of ten pairs


def test_a_pair_is_within_its_noise_and_what_it_is_farther_off_has_noise_along_it() -> None:
    expected, likely = 0.02, 0.027
    assert pair_within([expected, 0.0, likely]) == pair_within([expected, expected, likely]) == likely
    bounds = [pair_within([expected, distance / 100, likely]) for distance in range(40)]
    assert bounds == sorted(bounds) and bounds[-1] == pytest.approx(0.39 + (likely - expected) / SPREAD, abs=0.001)
    assert all(one <= within_95(expected, likely, distance / 100) for distance, one in enumerate(bounds))


@pytest.mark.parametrize(
    ("followed", "apart"), [(0, 0.3), (0, 1), (0, 3), (0.5, 0.3), (0.5, 1), (0.5, 3), (1, 0)], ids=str
)
def test_what_a_pair_is_within_holds_whether_rows_follow_the_noise_or_miss_by_themselves(
    followed: float, apart: float
) -> None:
    """Rows follow so much of the noise, and miss by so much that has nothing to do with it, in 4,000 tables."""
    noise, missed = np.random.default_rng(5).normal(0, 0.01, (2, 4000, 16))
    off = followed * noise + apart * missed
    halves, errors, distances = (np.abs(each).sum(axis=1) / 2 for each in (noise, off, off - noise))
    expected, likely = float(halves.mean()), float(np.quantile(halves, 0.95))
    beyond = [error > pair_within([expected, one, likely]) for error, one in zip(errors, distances, strict=True)]
    assert np.mean(beyond) < 0.1, np.mean(beyond)


@pytest.mark.parametrize("kind", ["counts", "residuals", "products"])
def test_two_columns_that_were_torn_apart_are_far_off_and_no_others(kind: str) -> None:
    embedding, real, torn = embeddings()[kind], make_records(ROWS), make_records(ROWS)
    order = np.random.default_rng(0).permutation(ROWS)
    names = list(SCHEMA.modelled)
    ward = names.index("ward")
    torn.states[:, ward], torn.values[:, ward] = torn.states[order, ward], torn.values[order, ward]
    look = NoisySum(embedding.lattice_sum(real).numpy(), 1.0, embedding)
    listed = pair_distances(names, [look], [embedding.lattice_sum(torn).numpy().astype(np.float64)])
    touched = {distance for first, second, _, distance, *_ in listed if ward in (first, second)}
    assert max(touched) > 0.01 and max({pair[3] for pair in listed} - touched) < 1e-6


def test_groups_are_neighbors_of_about_the_same_size() -> None:
    counts = np.array([5.0, 1, 1, 1, 1, 1, -3, 1])
    assert grouped(counts).tolist() == [0, 1, 1, 1, 2, 2, 2, 2] or GROUPS != 4
    assert len(set(grouped(np.array([9.0, 1, 1, 1, 1, 50])).tolist())) <= GROUPS
    assert grouped(np.zeros(3)).tolist() == [0, 0, 0]


def test_few_categories_are_groups_by_themselves_however_few_their_rows_are() -> None:
    schema = make(
        "name: t\ncolumns:\n  c: {type: categorical, values: [a, b, c, d, e]}\n  x: {type: number, min: 0, max: 1}\n"
    )
    category, number = schema.modelled["c"], schema.modelled["x"]
    assert groups_of(category, np.array([90.0, 5, 5])).tolist() == [0, 1, 2]
    assert groups_of(category, np.array([90.0, 5, 5, 1, 1])).max() < 4
    assert groups_of(number, np.array([90.0, 5, 5])).tolist() == [0, 1, 1]


def test_zeros_and_nulls_that_are_not_few_are_groups_of_their_own() -> None:
    values = [10.0, 10, 10, 10]
    assert grouped(np.array([*values, 30.0, 20.0]), states=2).tolist() == [0, 1, 2, 3, 4, 5]
    assert grouped(np.array([*values, 30.0, 0.5]), states=2).tolist() == [0, 1, 2, 3, 4, 3]
    assert grouped(np.array([*values, -3.0]), states=1).tolist() == [0, 1, 2, 3, 3]
    assert grouped(np.array([0.0, 0.0, 9.0]), states=1).tolist() == [0, 0, 1]
    few_zeros = np.array([*values, 0.5, 30.0])
    assert grouped(few_zeros, states=2, zero=len(values)).tolist() == [0, 1, 2, 3, 0, 4]  # not with the largest
    assert grouped(few_zeros, states=2).tolist() == [0, 1, 2, 3, 3, 4]
    schema = make(
        "name: x\ncolumns:\n  n: {type: integer, min: 0, max: 99, nullable: true, zero_inflated: true}\n"
        "  b: {type: boolean}\n"
    )
    rng = np.random.default_rng(0)
    n = [None if one < 0.2 else 0 if one < 0.5 else int(one * 100) for one in rng.random(ROWS)]
    embedding = Moments(Partition.fine(schema, 12), 2**14, 2**14, 1)
    exact = embedding.lattice_sum(Codec(schema).encode(pa.table({"n": n, "b": rng.random(ROWS) < 0.4}))).numpy()
    (pair,) = pairs_of(list(schema.modelled), [NoisySum(exact, 1.0, embedding)], [exact.astype(np.float64)]).values()
    labels = pair.facts()["labels"][0]
    assert labels[-2:] == [["exactly 0"], ["null"]] and len(labels) == GROUPS + 2
    assert pair.released.sum(axis=1)[-2:] == pytest.approx([0.3, 0.2], abs=0.03)


@pytest.mark.parametrize("kind", ["counts", "residuals"])
def test_what_noise_makes_of_independent_columns_is_what_is_stated(kind: str) -> None:
    embedding, rng, real = embeddings()[kind], np.random.default_rng(1), make_records(ROWS)
    for column in range(real.states.shape[1]):
        order = rng.permutation(ROWS)
        real.states[:, column], real.values[:, column] = real.states[order, column], real.values[order, column]
    exact = embedding.lattice_sum(real).numpy().astype(np.float64)
    shown, beyond = [], []
    for _ in range(60):
        look = NoisySum((exact + rng.normal(0, 8 * NOISE, len(exact))).astype(np.int64), 8 * NOISE, embedding)
        for pair in pairs_of(list(SCHEMA.modelled), [look], [exact]).values():
            released, _, mean, likely = pair.figures[4:]
            shown.append(released / mean)
            beyond.append(released > likely)
    assert np.mean(shown) == pytest.approx(1, abs=0.15), np.mean(shown)
    assert np.mean(beyond) < 0.12, np.mean(beyond)


@pytest.mark.parametrize("kind", ["counts", "residuals"])
def test_the_noise_of_groups_of_many_categories_is_what_is_stated(kind: str) -> None:
    """Sorted by their noisy counts, shares of 200 level categories were off by many stated deviations."""
    names = ", ".join(f"v{n}" for n in range(200))
    schema = make(f"name: x\ncolumns:\n  many: {{type: categorical, values: [{names}]}}\n  b: {{type: boolean}}\n")
    rng = np.random.default_rng(3)
    frame = pa.table({"many": [f"v{n % 200}" for n in range(ROWS)], "b": rng.random(ROWS) < 0.4})
    fine = Partition.fine(schema, 12)
    embedding = Moments(fine, 2**14, 2**14, 1)
    if kind == "residuals":
        embedding = Residuals(fine, 2**14, 2**22, 1, None, mix_of(0.75, fine.classes))
    exact = embedding.lattice_sum(Codec(schema).encode(frame)).numpy().astype(np.float64)
    off, beyond = [], []
    for _ in range(150):
        noisy = NoisySum((exact + rng.normal(0, NOISE / 3, len(exact))).astype(np.int64), NOISE / 3, embedding)
        (pair,) = pairs_of(list(schema.modelled), [noisy], [exact]).values()
        off.append((pair.released - pair.synthetic) / pair.stddev)
        beyond.append(pair.figures[1] > pair.figures[2])
    spread = np.sqrt(np.mean([np.mean(one**2) for one in off]))
    assert 0.8 < spread < 1.25, spread
    assert np.mean(beyond) < 0.13


def test_what_counts_no_pairs_or_has_no_rows_says_nothing() -> None:
    once = Moments(Partition.fine(SCHEMA, 12), 2**14, 0, 1)
    total = once.lattice_sum(make_records(50)).numpy()
    assert pair_distances(["age"], [NoisySum(total, 1.0, once)], [total.astype(np.float64)]) == []
    pairs = embeddings()["counts"]
    total = pairs.lattice_sum(make_records(50)).numpy()
    assert pair_distances(list(SCHEMA.modelled), [NoisySum(total, 1.0, pairs)], [np.zeros(len(total))]) == []


def test_of_a_column_of_one_cell_no_pair_is_listed() -> None:
    schema = make(
        "name: x\ncolumns:\n  a: {type: boolean}\n  b: {type: boolean}\n  c: {type: integer, min: 7, max: 7}\n"
    )
    rows = Codec(schema).encode(pa.table({"a": [True, False], "b": [False, True], "c": [7, 7]}))
    embedding = Moments(Partition.fine(schema, 12), 2**14, 2**14, 1)
    exact = embedding.lattice_sum(rows).numpy()
    listed = pair_distances(list(schema.modelled), [NoisySum(exact, 1.0, embedding)], [exact.astype(np.float64)])
    assert [pair[:2] for pair in listed] == [[0, 1]]


@pytest.mark.parametrize("kind", ["counts", "residuals", "products"])
def test_the_shares_of_a_pair_are_those_of_the_rows_in_its_groups(kind: str) -> None:
    embedding, records, others = embeddings()[kind], make_records(ROWS), make_records(ROWS, seed=7)
    sums = [embedding.lattice_sum(each).numpy() for each in (records, others)]
    pairs = pairs_of(list(SCHEMA.modelled), [NoisySum(sums[0], 1.0, embedding)], [sums[1].astype(np.float64)])
    assert len(pairs) == 10
    for each, shares in ((records, "released"), (others, "synthetic")):
        cells = dict(zip(SCHEMA.modelled, embedding.partition.codec.to_cells(each).T, strict=True))
        for pair in pairs.values():
            first, second = pair.columns
            counted = np.zeros(pair.stddev.shape)
            np.add.at(counted, (first.group[cells[first.name]], second.group[cells[second.name]]), 1 / ROWS)
            assert np.abs(getattr(pair, shares) - counted).max() < 1e-6, (first.name, second.name)


def test_a_pair_that_is_turned_has_the_same_figures() -> None:
    embedding = embeddings()["counts"]
    exact = embedding.lattice_sum(make_records(ROWS)).numpy()
    for pair in pairs_of(list(SCHEMA.modelled), [NoisySum(exact, 9.0, embedding)], [exact * 1.0]).values():
        assert pair.turned.figures == pytest.approx(pair.figures) and pair.turned.turned.columns == pair.columns
        assert pair.turned.facts()["released"] == np.array(pair.facts()["released"]).T.tolist()


def test_drawn_are_the_pairs_that_depend_most_and_the_one_that_is_farthest_off() -> None:
    embedding, real, torn = embeddings()["counts"], make_records(ROWS), make_records(ROWS)
    ward = list(SCHEMA.modelled).index("ward")
    torn.states[:, ward], torn.values[:, ward] = torn.states[::-1, ward].copy(), torn.values[::-1, ward].copy()
    sums = [embedding.lattice_sum(each).numpy() for each in (real, torn)]
    pairs = pairs_of(list(SCHEMA.modelled), [NoisySum(sums[0], 1.0, embedding)], [sums[1].astype(np.float64)])
    tables = pair_facts(pairs)["tables"]
    shown = [tuple(one["columns"]) for one in tables]
    farthest = max(pairs, key=lambda one: pairs[one].figures[3])
    strongest = sorted(set(pairs) - {farthest}, key=lambda one: -(pairs[one].figures[4] - pairs[one].figures[6]))[
        : DRAWN - 1
    ]
    assert ward in farthest and shown == [
        *(one for one in strongest if (pairs[one].figures[4] - pairs[one].figures[6]) > 0),
        farthest,
    ]
    asked = frozenset([min(pairs, key=lambda one: pairs[one].figures[4] - pairs[one].figures[6])])
    told = pair_facts(pairs, asked)
    first = [tuple(one["columns"]) for one in told["tables"]]
    assert told["asked_for"] == 1 and "asked_for" not in pair_facts(pairs)
    assert first == [*asked, *(one for one in shown[:-1] if one not in asked)][:DRAWN] + shown[-1:]
    for one, table in zip(shown, tables, strict=True):
        assert [len(labels) for labels in table["labels"]] == list(np.shape(table["released"]))
        assert np.sum(table["released"]) == pytest.approx(1, abs=1e-4)
        halves = np.abs(np.subtract(table["released"], table["synthetic"])).sum() / 2
        assert halves == pytest.approx(pairs[one].figures[1], abs=1e-4)


def test_dependence_is_nothing_of_independent_columns_and_half_of_two_that_are_one() -> None:
    assert dependence(np.outer([0.3, 0.7], [0.5, 0.5])) == pytest.approx(0)
    assert dependence(np.diag([0.5, 0.5])) == pytest.approx(0.5)


def test_groups_are_called_after_what_is_in_them() -> None:
    schema = make(
        "name: x\ncolumns:\n  n: {type: integer, min: 0, max: 9, nullable: true}\n"
        f"  c: {{type: categorical, values: [{', '.join(f'v{n}' for n in range(20))}]}}\n"
    )
    number, categories = schema.modelled.values()
    assert group_labels(number, np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])) == [["0 to 2"], ["3 to 9", "null"]]
    assert group_labels(number, np.array([0] * 10 + [1])) == [["0 to 9"], ["null"]]
    first, second = group_labels(categories, np.array([1] + [0] * 19))
    assert first == [*(f"v{n}" for n in range(1, 13)), "7 more"] and second == ["v0"]


HOTELS = make(
    "name: h\ncolumns:\n  hotel: {type: categorical, values: [a, b, c, d, e, f, g, h, i, j, k, l]}\n"
    "  nights: {type: integer, min: 0, max: 11, cells: 12}\n  board: {type: boolean}\n"
)


def related(rng: np.random.Generator, depends: bool, noise: float) -> tuple[Any, list[Any]]:
    """Return the relation of hotel with nights, of 3,000 stays that are long in every other hotel if they depend."""
    hotel = rng.integers(0, 12, 3000)
    nights = np.clip(rng.poisson(np.where(depends & (hotel % 2 == 0), 5, 3)), 0, 11)
    columns = {"hotel": np.array(list("abcdefghijkl"))[hotel], "nights": nights, "board": rng.random(3000) < 0.5}
    moments = Moments(Partition.fine(HOTELS, 12), 2**14, 2**14, 1)
    exact = moments.lattice_sum(Codec(HOTELS).encode(pa.table(columns))).numpy().astype(np.float64)
    look = NoisySum((exact + rng.normal(0, noise * 2**14, len(exact))).astype(np.int64), noise * 2**14, moments)
    facts = pair_facts(pairs_of(list(HOTELS.modelled), [look], [exact]))
    named = [{"ordered": name == "nights", "labels": range(2 if name == "board" else 12)} for name in HOTELS.modelled]
    return relations({"columns": named, "pairs": facts})[0, 1], facts["distances"][0]


def test_a_relation_of_categories_that_are_no_neighbors_is_seen() -> None:
    rng = np.random.default_rng(3)
    found = [related(rng, True, 6.0) for _ in range(20)]
    assert sum(relation.is_certain for relation, _ in found) >= 18
    assert all(relation.released > 0.1 for relation, _ in found)


def test_categories_that_do_not_depend_on_a_number_are_hardly_ever_said_to() -> None:
    """One of three pairs, in 400 releases: in one report of twenty any pair may be, and every grouping counts."""
    rng = np.random.default_rng(4)
    assert np.mean([related(rng, False, noise)[0].is_certain for noise in (2.0, 20.0) for _ in range(200)]) <= 0.03


def test_pairs_with_the_target_are_drawn_before_others_and_those_of_a_rule_last() -> None:
    """The strongest pairs are of others and of a rule: those with the target that stand out come before them."""
    pairs = {(first, second): 0.5 - 0.01 * (first + second) for first in range(6) for second in range(first + 1, 6)}
    distances = [[*pair, 0.01, 0.01, 0.02, 0.03, strength, strength, 0.05, 0.1] for pair, strength in pairs.items()]
    distances[-1][5] = 0.9
    assert drawn(distances)[:2] == [(0, 1), (0, 2)]
    assert drawn(distances, target=3, ruled={(0, 3)}) == [(1, 3), (2, 3), (3, 4), (3, 5), (0, 1), (4, 5)]
    assert drawn(distances, {(1, 2)}, 3)[:2] == [(1, 2), (0, 3)]
    every = [*pairs][:10]
    assert set(drawn(distances, every)[:10]) == {*every} and len(drawn(distances, every)) == 15


def test_a_pair_that_was_asked_for_has_each_category_that_was_counted_by_itself() -> None:
    letters, places = list("abcdefg"), [f"p{n}" for n in range(14)]
    schema = make(
        f"name: x\ntarget: t\ncolumns:\n  c: {{type: categorical, values: [{', '.join(letters)}]}}\n"
        f"  p: {{type: categorical, values: [{', '.join(places)}]}}\n  n: {{type: integer, min: 0, max: 99}}\n"
        "  t: {type: categorical, values: [r, s, u, v, w]}\n"
    )
    rng = np.random.default_rng(0)
    table = {"c": rng.choice(letters, ROWS), "p": rng.choice(places, ROWS), "n": rng.integers(0, 100, ROWS)}
    records = Codec(schema).encode(pa.table({**table, "t": rng.choice(list("rsuvw"), ROWS)}))
    for merge, expected in ((np.arange(7), 7), (np.array([0, 1, 2, 3, 4, 5, 5]), 6)):  # f and g as one cell
        fine = Partition.fine(schema, 12)
        embedding = Moments(replace(fine, merge=(merge, *fine.merge[1:])), 2**14, 2**14, 1)
        exact = embedding.lattice_sum(records).numpy()
        noisy = (exact + rng.normal(0, NOISE, len(exact))).astype(np.int64)
        pairs = pairs_of(list(schema.modelled), [NoisySum(noisy, NOISE, embedding)], [exact.astype(np.float64)])
        asked = [(0, 2), (0, 3), (0, 1)]
        facts = pair_facts(pairs, asked, 3)
        shown = {(*one["columns"],): one for one in facts["tables"]}
        listed = {(first, second): figures for first, second, *figures in facts["distances"]}
        for pair in asked:
            one, labels = shown[pair], shown[pair]["labels"][0]
            assert len(labels) == expected and labels[-1] == letters[expected - 1 :]
            assert np.array(one["released"]).shape == (expected, len(one["labels"][1]))
            apart = np.abs(np.array(one["released"]) - one["synthetic"]).sum() / 2
            assert one["distances"] == [*one["distances"][:3], pair_within(one["distances"])]
            assert listed[pair][1] < one["distances"][1] == pytest.approx(apart, abs=1e-4)  # than in groups
        assert len(shown[0, 3]["labels"][1]) == 5 and len(shown[0, 1]["labels"][1]) <= GROUPS  # p has too many
        assert all("distances" not in one for pair, one in shown.items() if pair not in asked)
