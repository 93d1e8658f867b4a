"""Frames of what a report says, and means by group: figures with what they are within, and reasons to distrust them."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import nacre
from dpmodels.errors import ArtifactError, DataError, NacreError, SchemaError, Unsuitable
from dpmodels.pages.figures.relations import likely_relations, relations
from dpmodels.report.groups.means import ALIKE, BEYOND, DROWNED, LARGER, WIDE, Names, _reasons, judged, means_of_groups
from nacre.reporting import Report, _group
from tasks.run.store import Run
from tests.hand_off.make_golden import GOLDEN
from tests.kit.errors import refused
from tests.kit.support import run_cli, synthesize_words, write_clinic

FIGURES = Names("value", "stddev", "shift", "count", "error")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_clinic(folder)
    model = {"method": "nacre", "training": {"components": 8, "steps": 20}}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model}))
    code, _, err = run_cli(*synthesize_words(folder, target_epsilon=8))
    assert code == 0, err
    return folder / "home"


def name_of(home: Path) -> str:
    (settings,) = (home / "control").glob("*/settings.json")
    return settings.parent.name


def report_of(home: Path) -> nacre.Report:
    return nacre.Result(Run(home=home, name=name_of(home)).settings.out).report


def test_a_mean_that_noise_made_has_a_reason_and_one_without_is_near_the_truth():
    rng, values = np.random.default_rng(7), np.array([0.0, 40.0, 100.0, 300.0])
    shares = {"large": [0.4, 0.3, 0.2, 0.1], "middle": [0.35, 0.3, 0.22, 0.13], "small": [0.4, 0.3, 0.2, 0.1]}
    truth = pd.Series({name: float(values @ parts) for name, parts in shares.items()})
    rows = {"large": 9000, "middle": 4000, "small": 150}
    groups = np.repeat(list(shares), len(values))
    real = np.concatenate([rows[name] * np.array(parts) for name, parts in shares.items()])
    off, said = [], []
    for _ in range(100):
        cells = pd.DataFrame({"value": np.tile(values, 3), "stddev": 0.0, "count": real, "error": 15.0}, index=groups)
        cells["count"] += 15.0 * rng.standard_normal(len(cells))
        cells.index.name = "group"
        means = judged(means_of_groups({"": cells.reset_index()}, cells.index.names, "value", FIGURES).whole)
        said.append(means.reason)
        off.append((means["mean"] - truth[means.index]).abs() / (truth.max() - truth.min()))
    said, off = pd.DataFrame(said), pd.DataFrame(off)
    assert (said[["large", "middle"]] == "").all(axis=None) and off[["large", "middle"]].max(axis=None) < 1
    assert (said.small != "").mean() > 0.9 and off.small.median() > 1  # as a rule farther off than the groups differ
    assert list(means) == ["mean", "within", "standard_error", "count", "reason", "noise", "inside"]


def test_a_mean_a_little_beyond_all_values_is_set_to_the_nearest_of_them():
    def of(true: list[float], false: list[float]) -> pd.DataFrame:
        index = pd.Index(["a", "b"] * 2, name="group")
        figures = {"value": [1.0, 1.0, 0.0, 0.0], "stddev": 0.0, "count": [*true, *false], "error": 5.0}
        cells = pd.DataFrame(figures, index=index)
        return judged(means_of_groups({"": cells.reset_index()}, cells.index.names, "value", FIGURES).whole)

    near, far = of([-4.0, 30.0], [300.0, 70.0]), of([-60.0, 30.0], [300.0, 70.0])
    assert near["mean"].tolist() == [0.0, 0.3] and near.within["a"] > 4 / 300 and near.reason["a"] == LARGER
    assert np.isnan(far["mean"]["a"]) and far.reason["a"] == BEYOND


def test_the_mean_of_all_rows_is_that_of_the_report(home):
    stated = report_of(home).means.set_index("column").dropna(subset="released_within")
    for column in stated.index:
        mean = nacre.means(name_of(home), column, home=home).iloc[0]
        assert [mean["mean"], mean.within] == [stated.released[column], stated.released_within[column]]
        assert not stated.within[column] < mean.within and len(stated)


def test_a_report_that_somebody_changed_is_no_source_of_a_mean(home, tmp_path):
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    name, facts = name_of(home), tmp_path / "home" / "control" / name_of(home) / "report" / "report.json"
    true = nacre.means(name, "age", home=home)["mean"].iloc[0]
    facts.write_text(facts.read_text().replace('"estimate": ', '"estimate": -99'))
    assert nacre.means(name, "age", home=tmp_path / "home")["mean"].iloc[0] == pytest.approx(true, abs=20)


@pytest.mark.parametrize(
    ("mean", "error", "values", "says"),
    [
        ([50.0, 90.0], [1.0, 1.0], (0, 100), ["", ""]),
        ([50.0, 51.0], [8.0, 8.0], (0, 100), [ALIKE, ALIKE]),
        ([50.0, 51.0], [1.0, 1.0], (0, 100), ["", ""]),  # either is known well, though not which is larger
        ([50.0, 20.0, 21.0], [1.0, 9.0, 1.0], (0, 100), ["", "", ""]),  # the second is surely less than the first
        ([50.0, 90.0, 70.0], [1.0, 1.0, 20.0], (0, 100), ["", "", ALIKE]),
        ([20.0, 20.0, 40.0], [4.0, 4.0, 4.0], (0, 100), [ALIKE, ALIKE, ""]),
        ([20.0] * 20 + [29.5], [4.0] * 21, (0, 100), [ALIKE] * 21),  # of so many, noise pushes one up so far
        ([5.0, 90.0], [4.0, 1.0], (0, 100), [LARGER, ""]),
        ([5.0, 90.0], [4.0, 1.0], (-100, 100), ["", ""]),  # near 0 is a mean like any other
        ([50.0, 90.0], [1.0, 26.0], (0, 100), ["", WIDE]),
        ([50.0, 104.0], [1.0, 4.0], (0, 100), ["", BEYOND]),
        ([50.0, np.nan], [1.0, np.nan], (0, 100), ["", DROWNED]),  # no other group is known
        ([50.0], [1.0], (0, 100), [""]),
    ],
)
def test_the_reason_to_distrust_a_mean_says_what_its_error_exceeds(mean, error, values, says):
    assert _reasons(pd.Series(mean), pd.Series(error), pd.Series(values)).tolist() == says


def test_means_are_printed_whole_with_the_mean_first(home):
    shown = repr(nacre.means(name_of(home), "dose", by="ward", home=home)).split("\n")
    assert shown[0].split() == ["ward", "mean", "within", "standard_error", "count", "reason", "noise", "inside"]
    assert max(map(len, shown)) <= 100 and "…" not in shown[0] and sum("north" in line for line in shown) == 1


def test_a_hand_off_of_a_folder_says_that_its_home_is_to_be_passed(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = nacre.Result(Run(home=home, name=name_of(home)).settings.out)
    for call in (lambda: nacre.means(opened, "dose"), lambda: nacre.sample(opened, 3)):
        with refused(Unsuitable, f"pass the home in which {name_of(home)} was made, as in home="):
            call()
    assert len(nacre.sample(opened, 3, home=home)) == 3
    assert opened.home == home and len(nacre.sample(opened, 3)) == 3  # the home is given once


def test_a_hand_off_of_a_folder_knows_its_home_by_the_environment_or_as_given(home, tmp_path, monkeypatch):
    folder = Run(home=home, name=name_of(home)).settings.out
    monkeypatch.chdir(tmp_path)
    assert nacre.Result(folder).home is None  # the working folder has no home, or another
    assert len(nacre.sample(nacre.Result(folder, home=str(home)), 3)) == 3
    monkeypatch.setenv("NACRE_HOME", str(home))
    opened = nacre.Result(folder)
    monkeypatch.delenv("NACRE_HOME")
    assert opened.home == home and len(nacre.sample(opened, 3)) == 3
    with refused(ArtifactError, "no run"):  # a home that was given is believed
        nacre.sample(nacre.Result(folder, home=tmp_path), 3)


def test_the_frame_of_columns_has_derived_ones_last():
    frame = Report(GOLDEN / "LAYOUT-26" / "derived").columns.set_index("column")
    assert frame.index.tolist()[-3:] == ["decade", "weight", "letter"]
    assert frame.quantiles_within[["decade", "weight"]].between(0, 1).all() and np.isnan(frame.shares_within["decade"])
    assert 0 < frame.shares_within["letter"] < 1 and frame.distance_to_release[-3:].isna().all()
    assert "as of age and dose" in frame.verdict["weight"]


def test_columns_means_and_rates_of_a_report_are_frames(home):
    report = report_of(home)
    facts, columns, means, rates = report.facts, report.columns, report.means, report.rates
    assert columns.column.tolist() == [one["name"] for one in facts["columns"]]
    assert columns.verdict.str.replace(" ", "").tolist() == [
        re.sub(r"\s", "", one["verdict"]) for one in facts["columns"]
    ]
    assert (columns.shares_within >= columns.distance_to_release - 1e-9).all()
    assert columns.set_index("column").quantiles_within.isna().to_dict() == {
        one["name"]: not one["ordered"] for one in facts["columns"]
    }
    with_mean = [one for one in facts["columns"] if "mean" in one]
    assert means.column.tolist() == [one["name"] for one in with_mean]
    for row, one in zip(means.itertuples(), with_mean, strict=True):
        error = one["mean"]["expected_error"]
        assert np.isnan(row.within) if error is None else row.within == pytest.approx(1.96 * error, rel=1e-4)
        assert all(str(each) == str(float(f"{each:.6g}")) for each in (row.within, row.p99_within))
        assert (row.reason != "") >= (error is None) and row.released == one["mean"]["estimate"]
    listed = [label for one in facts["rates"]["columns"] for label in one["labels"]]
    ordered = {one["name"]: one["ordered"] for one in facts["columns"]}
    groups = zip(rates["column"], listed, strict=True)
    assert len(rates) > 3 and rates.group.tolist() == [
        (" or " if ordered[name] else ", ").join(one) for name, one in groups
    ]
    assert all(group.replace(" or ", ", ") in report.html.replace(" or ", ", ") for group in rates.group)
    assert (
        rates.low.isna()
        == [not ordered[name] or group == "null" for name, group in zip(rates["column"], rates.group, strict=True)]
    ).all()
    whole = rates[rates["column"] == "age"]
    assert [f"{low:g} to {high:g}" for low, high in zip(whole.low, whole.high, strict=True)] == whole.group.tolist()
    assert set(rates.rate_of) == {f"sick={facts['rates']['class']}"} and "sick" not in set(rates.column)
    noise = [2 * stddev for one in facts["rates"]["columns"] for stddev in one["stddev"]]
    assert rates.released_within.tolist() == pytest.approx(noise)
    assert ((rates.synthetic - rates.released).abs() <= rates.within + 1e-9).all()
    assert all((~one.pale).sum() >= 2 and (one.pale <= (one.share < 0.11)).all() for _, one in rates.groupby("column"))
    for frame in (columns, means, rates):
        assert max(map(len, repr(frame).split("\n"))) <= 110
    report.__dict__["facts"] = {"data_set": "x", "columns": [{"name": "a"}]}  # of a method that counts nothing
    assert len(report.rates) == len(report.means) == len(report.pairs) == 0 and report.columns.column.tolist() == ["a"]


EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


def test_a_rate_of_the_report_is_that_of_the_counts_which_python_gives(home):
    rates = report_of(home).rates
    (rate_of,) = set(rates.rate_of)
    target, taken = rate_of.split("=")
    of_wards = rates[rates["column"] == "ward"].set_index("group")
    counts = nacre.marginals(name_of(home), "ward", target, home=home).pivot(
        index="ward", columns=target, values="count"
    )
    shares = (counts[taken] / counts.sum(axis=1)).loc[of_wards.index]
    assert len(shares) > 2 and ((shares - of_wards.released).abs() <= of_wards.released_within).all()
    means = nacre.means(name_of(home), target, by="ward", home=home).set_index("ward")["mean"]
    assert means.loc[of_wards.index].tolist() == pytest.approx(of_wards.released.tolist(), abs=2e-5)


def test_a_folder_in_place_of_a_run_is_answered_with_how_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(Unsuitable, match=r"is the folder of a hand-off: open it as nacre\.Result\('.*example'\)$"):
        nacre.means(str(EXAMPLE), "paid", home=tmp_path)


def test_pairs_say_in_the_words_of_the_page_whether_a_relation_is_kept() -> None:
    report = Report(EXAMPLE)
    every, likely = relations(report.facts), likely_relations(report.facts)
    names = [column["name"] for column in report.facts["columns"]]
    said = {(one.first, one.second): one.relation for one in report.pairs.itertuples()}
    assert len(said) == len(every) and set(said.values()) <= {"ruled", "kept", "weaker", "stronger", "likely", "hidden"}
    for (first, second), one in every.items():
        word = said[names[first], names[second]]
        assert (word == "ruled") == one.by_rule
        if not one.by_rule:
            assert (word == "kept") == one.is_kept and (word in ("kept", "weaker", "stronger")) == one.is_certain
        assert (word == "likely") == ((first, second) in likely)
    assert len(set(said.values())) > 1


def test_a_mean_is_doubted_where_the_page_warns_of_it() -> None:
    report = Report(EXAMPLE)
    assert report.means.set_index("column").loc["age"].reason == ""
    (unseen,) = (one["unseen"] for one in report.facts["columns"] if one["name"] == "school_years")
    unseen["far"] = True
    assert "noise may hide values" in report.means.set_index("column").loc["school_years"].reason


def test_what_a_report_lists_of_two_columns_has_names_in_python(home):
    report = report_of(home)
    (one, other, *figures), *_ = listed = report.facts["pairs"]["distances"]
    names, pairs = [column["name"] for column in report.facts["columns"]], report.pairs
    assert len(pairs) == len(listed) > 1 and list(pairs.iloc[0].drop("relation")) == [
        names[one],
        names[other],
        *figures,
    ]
    assert list(pairs)[:3] == ["first", "second", "relation"]
    near = pairs[["expected_distance", "distance_to_release"]].max(axis=1)  # within what a pair is, no less than these
    assert (pairs.distance_within >= near - 1e-6).all() and (pairs.noise_distance_95 > pairs.expected_distance).all()
    assert (pairs.noise_dependence_95 > pairs.noise_dependence).all() and pairs.released_dependence.between(0, 1).all()
    earlier = [row[:6] for row in listed]  # of layouts up to 12
    report.__dict__["facts"] = {**report.facts, "pairs": {"distances": earlier}}
    assert list(report.pairs) == list(pairs)[:7] and not any(report.pairs.relation)
    report.__dict__["facts"] = {**report.facts, "pairs": None}
    assert len(report.pairs) == 0


def test_a_file_that_does_not_exist_is_answered_with_a_similar_name(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_clinic(tmp_path)
    (tmp_path / "clinic.yaml").rename(tmp_path / "visits.yaml")
    (tmp_path / "visits.parquet").touch()
    (tmp_path / "hand-off").mkdir()
    for call, error, says in (
        (lambda: nacre.synthesize("vsits.parquet", "visits.yaml", epsilon=1, delta=1e-5), NacreError, "visits.parquet"),
        (lambda: nacre.validate(tmp_path / "vists.parquet", "visits.yaml"), NacreError, "visits.parquet"),
        (lambda: nacre.load_schema("vists.yaml"), SchemaError, "visits.yaml"),
        (lambda: nacre.Result("hand-of"), ArtifactError, "hand-off"),
        (lambda: nacre.verify(folder="hand-of"), NacreError, "hand-off"),
    ):
        with refused(error, rf"does not exist.*; did you mean `{says}`\?$") as told:
            call()
        assert f"; it was looked for in {tmp_path}; did" in str(told.value) or "vists.parquet" in str(told.value)
    with refused(DataError, rf"does not exist or holds no files; it was looked for in {tmp_path}$"):
        nacre.draft_schema("nothing-like-it.csv")
    with refused(DataError, rf"absent/visits.csv does not exist .*; nor does the folder {tmp_path / 'absent'}$"):
        nacre.draft_schema("absent/visits.csv")
    (tmp_path / "vist.csv").touch()  # is more like it, and of another ending
    with refused(DataError, r"did you mean `visits.parquet`\?$"):
        nacre.draft_schema("vistt.parquet")


@pytest.mark.parametrize(
    ("labels", "kind", "says"),
    [
        (["18 to 33"], "integer", ("18 to 33", 18.0, 33.0)),
        (["-5.50 to -1.25", "null"], "number", ("-5.50 to -1.25 or null", -5.5, -1.25)),
        (["exactly 0"], "number", ("exactly 0", 0.0, 0.0)),
        (["7"], "integer", ("7", 7.0, 7.0)),
        (["null"], "integer", ("null", pd.NA, pd.NA)),
        (
            ["2020-01-01 08:00 to 2020-02-03 09:30"],
            "datetime",
            ("2020-01-01 08:00 to 2020-02-03 09:30", pd.Timestamp(2020, 1, 1, 8), pd.Timestamp(2020, 2, 3, 9, 30)),
        ),
        (["1 to 2", "3"], "categorical", ("1 to 2, 3", pd.NA, pd.NA)),
    ],
)
def test_a_group_of_a_rate_is_called_as_on_the_page_and_has_its_bounds(labels, kind, says):
    assert _group(labels, {"type": kind, "ordered": kind != "categorical"}) == says
