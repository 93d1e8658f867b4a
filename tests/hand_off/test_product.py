"""Hand-offs whose files, hashes and pages were all made again, and that say what cannot be."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.accounting.events import leaves
from dpmodels.audit.data import quick_plan
from dpmodels.contract.dropped import UNFIT
from dpmodels.hand_off.check_warnings import is_warning
from dpmodels.hand_off.columns.check_columns import are_groups
from dpmodels.hand_off.columns.check_figures import NO_SUM, impossible
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.hand_off.vocabulary import is_mechanism, is_noise
from dpmodels.methods.quick import QUICK, quick
from dpmodels.pages.page import LAYOUT
from dpmodels.report.groups.means import DROWNED
from dpmodels.report.within import NAMED
from tests.hand_off.make_golden import GOLDEN
from tests.kit.manifests import Json, forged, rewritten
from tests.kit.support import make_schema

FEDERATION = GOLDEN / "FORMAT-7" / "laid-out-federation"
NEWEST, PART = GOLDEN / "LAYOUT-26" / "laid-out", "synthetic/part-00000.parquet"
FIGURES = "report.json has figures that no release has: "


def with_product(folder: Path, change: Callable[[pa.Table], pa.Table]) -> list[str]:
    """Return the faults of a hand-off with another product, whose hash is mended."""
    changed = folder / "changed.parquet"
    pq.write_table(change(pq.read_table(NEWEST / PART)), changed)
    return verify_hand_off(rewritten(NEWEST, folder / "own", PART, lambda _: changed.read_bytes())).faults


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda table: table.slice(0, 20), "the synthetic table has 20 rows, and report.json says 30"),
        (lambda table: table.append_column("ssn", table["age"]), f"{PART} has 1 column of other names"),
        (lambda table: table.drop_columns(["dose"]), f"{PART} has no column dose"),
        (lambda table: table.select(table.column_names[::-1]), f"{PART} has columns in another order"),
        (
            lambda table: table.set_column(1, "age", table["age"].cast(pa.string())),
            f"{PART} has other types in age, which schema.yaml does not say",
        ),
    ],
)
def test_a_product_of_other_columns_or_rows_than_its_schema_and_report_say_is_a_fault(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table], fault: str
) -> None:
    (found,) = with_product(tmp_path, change)
    assert found.startswith(fault)


def test_a_product_that_was_written_again_with_the_same_rows_is_none(tmp_path: Path) -> None:
    assert with_product(tmp_path, lambda table: table) == []


def test_a_product_that_is_no_parquet_is_a_fault(tmp_path: Path) -> None:
    hand_off = rewritten(NEWEST, tmp_path / "own", PART, lambda content: content[:-9] + b"nonsense!")
    assert verify_hand_off(hand_off).faults == [f"{PART} is no Parquet file that nacre writes, or is damaged"]


@pytest.mark.parametrize("table", ["parents", "children"])
def test_a_hand_off_without_one_of_its_tables_is_a_fault(tmp_path: Path, table: str) -> None:
    users = tmp_path / "users"
    shutil.copytree(GOLDEN / "FORMAT-11" / "contract-users", users)
    shutil.rmtree(users / "synthetic" / table)
    hand_off = forged(users, tmp_path / "own", lambda *_: None)
    assert verify_hand_off(hand_off).faults == [f"there is no table {table}, which schema.yaml describes"]


def faults(folder: Path, change: Callable[[Json, Json, Json], object], golden: Path = NEWEST) -> list[str]:
    """Return the faults of a hand-off whose report, card and pages say something else together."""
    return verify_hand_off(forged(golden, folder / "own", change)).faults


def column(name: str, **facts: Any) -> Callable[[Json, Json, Json], object]:
    """Return a change of a column's facts."""

    def change(_: Json, report: Json, __: Json) -> None:
        next(one for one in report["columns"] if one["name"] == name).update(facts)

    return change


def pairs(*distances: list[float]) -> Callable[[Json, Json, Json], object]:
    """Return a change of what is said of every two columns."""
    said = {"expected_error_of_a_share": 0.1, "cells_of_a_column": 3.0, "distances": [*distances]}
    return lambda _, report, __: report.update(pairs=said | {"target": report_target(report)})


def report_target(report: Json) -> int:
    """Return the place of the target of a golden report."""
    return [one["name"] for one in report["columns"]].index("sick")


OF_SUMS = "sum of a cosine or sine over a class, in units of one record"
SICK = {"label": "no", "share": 1.7}
AGE = {"estimate": 90.0, "expected_error": 1.0}
RANKS = {"noise_rank_distance_95": 0.1, "rank_distance_to_release": 0.1}
FAR_OFF = {"estimate": 5000.0, "expected_error": 1.0}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (column("sick", synthetic=[1.5, -0.5]), "columns.sick.synthetic"),
        (
            column("sick", expected_distance=-0.1, shares_within=0.8),
            "columns.sick.expected_distance, columns.sick.shares_within",
        ),
        (
            column("sick", distance_to_release=1.2, shares_within=0.8),
            "columns.sick.distance_to_release, columns.sick.shares_within",
        ),
        (column("sick", largest_cell=SICK), "columns.sick.largest_cell"),
        (column("dose", mean=FAR_OFF, p99=FAR_OFF), "columns.dose.mean, columns.dose.p99"),
        (column("age", mean={"estimate": 40.0, "expected_error": -3.0}, p99=AGE), "columns.age.mean, columns.age.p99"),
        (column("age", unseen={"records": 5, "share": 0.1, "means": [50, 40]}), "columns.age.unseen"),
        (lambda _, report, __: report["noise_stddev"].update({OF_SUMS: -1.0}), "noise_stddev"),
        (lambda _, report, __: report["fit"][0].update(left=-1.0), "fit"),
        (lambda _, report, __: report.update(released_records=-5.0), "released_records"),
        (column("age", **RANKS, quantiles_within=0.0001), "columns.age.quantiles_within"),
        (column("sick", shares_within=0.0001), "columns.sick.shares_within"),
        (pairs([0, 1, 0.1, 1.5]), "pairs"),
        (pairs([0, 1, 0.1, 0.1, 0.2, 0.01]), "pairs"),
        (pairs([1, 0, 0.1, 0.1]), "pairs"),
        (pairs([0, 1, 0.1, 0.1], [0, 1, 0.1, 0.2]), "pairs"),
    ],
)
def test_figures_that_no_release_has_are_a_fault(
    tmp_path: Path, change: Callable[[Json, Json, Json], object], name: str
) -> None:
    assert faults(tmp_path, change) == [f"{FIGURES}{name}"]


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(within=[0.0001] * len(one["within"])),
        lambda one: one.update(synthetic=[1.5] * len(one["synthetic"])),
        lambda one: one.update(share=[0.01] * len(one["share"])),
        lambda one: one.update(share=[float("inf")] * len(one["share"])),
        lambda one: one.update(stddev=[0.0] * len(one["stddev"]), released=[0.99] * len(one["released"])),
        lambda one: one.update(labels=[one["labels"][0]] * len(one["labels"])),
    ],
)
def test_rates_that_no_release_has_are_a_fault(tmp_path: Path, change: Callable[[Json], object]) -> None:
    golden = GOLDEN / "LAYOUT-26" / "targeted"
    found = faults(tmp_path, lambda _, report, __: change(report["rates"]["columns"][0]), golden)
    assert len(found) == 1 and found[0].endswith(" rates"), found


@pytest.mark.parametrize("within", [0.0001, 2.0])
def test_rates_that_were_asked_for_are_held_to_what_others_are(tmp_path: Path, within: float) -> None:
    def change(_: Json, report: Json, __: Json) -> None:
        (rates,) = report["asked_rates"][0]["columns"]
        rates["within"] = [within] * len(rates["within"])

    found = faults(tmp_path, change, GOLDEN / "LAYOUT-26" / "derived")
    assert len(found) == 1 and found[0].endswith(" asked_rates"), found


@pytest.mark.parametrize(
    "change",
    [
        lambda groups: groups.append(groups[0]),
        lambda groups: groups[0].update(by="letter", column="age"),
        lambda groups: groups[0]["groups"][0].update(released=1e6),
        lambda groups: groups[0]["groups"][0].update(released=None),
        lambda groups: groups[0]["groups"][0].update(within=-0.1),
        lambda groups: groups[0]["groups"][0].update(synthetic=-1e6),
        lambda groups: groups[0]["groups"][0].update(share=0.99),
        lambda groups: groups[0]["groups"][0].update(released=-0.01),
        lambda groups: groups[0].update(groups=[{**groups[0]["groups"][0], "share": 1.0}]),
        lambda groups: groups[0]["groups"][0].update(reason=DROWNED),
        lambda groups: [one.update(synthetic=0.1) for one in groups[0]["groups"]],
        lambda groups: [one.update(released=99.0, within=0.5) for one in groups[0]["groups"]],
        lambda groups: groups[0]["groups"][0].update(labels=groups[0]["groups"][1]["labels"]),
    ],
)
def test_means_by_groups_that_no_release_has_are_a_fault(tmp_path: Path, change: Callable[[Json], object]) -> None:
    golden = GOLDEN / "LAYOUT-26" / "derived"
    found = faults(tmp_path, lambda _, report, __: change(report["groups"]), golden)
    assert len(found) == 1 and found[0].endswith(" groups"), found


def test_means_by_groups_that_do_not_make_the_mean_of_all_rows_are_a_fault(tmp_path: Path) -> None:
    def change(_: Json, report: Json, __: Json) -> None:
        of_dose = next(one for one in report["groups"] if (one["column"], one["by"]) == ("dose", "sick"))
        for group in of_dose["groups"]:  # beyond noise, and within what a dose may be
            group["released"] *= 1.15

    assert faults(tmp_path, change, GOLDEN / "LAYOUT-26" / "derived") == [f"{FIGURES}{NO_SUM}"]


@pytest.mark.parametrize(
    "change",
    [
        lambda pairs: [one.extend([0.9, 0.9, 0.01, 0.02]) for one in pairs["distances"]],
        lambda pairs: [one.__delitem__(slice(6, None)) for one in pairs["distances"]],
        lambda pairs: pairs["distances"][0].__setitem__(6, 0.95),
        lambda pairs: pairs["distances"][0].__setitem__(8, 0.5),
        lambda pairs: pairs["distances"][0].__setitem__(7, True),
        lambda pairs: pairs.update(tables=[]),
        lambda pairs: pairs.update(tables=pairs["tables"][:1] * 6),
    ],
)
def test_relations_that_no_release_shows_are_a_fault(tmp_path: Path, change: Callable[[Json], object]) -> None:
    golden = GOLDEN / "LAYOUT-26" / "targeted"
    found = faults(tmp_path, lambda _, report, __: change(report["pairs"]), golden)
    assert found == [f"{FIGURES}pairs"] or found == [f"{FIGURES}pairs, rates"], found


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update(stddev=[[9.0] * len(line) for line in table["stddev"]]),
        lambda table: table.update(synthetic=[[0.0] * len(line) for line in table["synthetic"]]),
        lambda table: table["synthetic"][0].__setitem__(0, 1.5),
        lambda table: table.update(released=table["synthetic"]),
    ],
)
def test_shares_of_two_columns_that_no_release_has_are_a_fault(
    tmp_path: Path, change: Callable[[Json], object]
) -> None:
    golden = GOLDEN / "LAYOUT-26" / "users"
    found = faults(tmp_path, lambda _, report, __: change(report["pairs"]["tables"][0]), golden)
    assert found == [f"{FIGURES}pairs"]


@pytest.mark.parametrize(
    "change", [{"released": [[1.0]]}, {"columns": [6, 3]}, {"columns": [3, 99]}, {"labels": [[], []]}]
)
def test_a_table_of_two_columns_that_cannot_be_drawn_is_a_fault(tmp_path: Path, change: Json) -> None:
    def changed(content: bytes) -> bytes:
        report = json.loads(content)
        report["pairs"]["tables"][0].update(change)
        return json.dumps(report).encode()

    golden = GOLDEN / "LAYOUT-26" / "users"
    found = verify_hand_off(rewritten(golden, tmp_path / "own", "report.json", changed)).faults
    assert any("report.json" in one for one in found) and not any("rror" in one for one in found), found


@pytest.mark.parametrize(
    "change",
    [
        *({"column": place} for place in (99, 1.5, True)),
        {"released": [0.5]},
        {"share": None},
        {"within": [None] * 4},
        {"target": 0},
        {"target": None},
        {"class": "call 0800"},
        {"columns": {}},
    ],
)
def test_rates_that_cannot_be_drawn_are_a_fault(tmp_path: Path, change: Json) -> None:
    def changed(content: bytes) -> bytes:
        rates = (report := json.loads(content))["rates"]
        (rates if change.keys() & rates.keys() else rates["columns"][0]).update(change)
        return json.dumps(report).encode()

    golden = GOLDEN / "LAYOUT-26" / "targeted"
    found = verify_hand_off(rewritten(golden, tmp_path / "own", "report.json", changed)).faults
    assert any("report.json" in one for one in found) and not any("rror" in one for one in found), found


def test_groups_of_categories_are_called_after_these() -> None:
    column, labels = make_schema().modelled["ward"], ["a", "b"]
    many = [f"v{n}" for n in range(NAMED)]
    assert are_groups([["a"], ["b"]], column, labels) and are_groups([[*many, "1,017 more"]], column, many)
    for strange in ([["c"]], ["a"], [], [["a"], []], [["a"]] * 5, [[*many, "more"]], [[*many, "1 more", "2 more"]]):
        assert not are_groups(strange, column, [*labels, *many]), strange
    number = make_schema().modelled["age"]
    assert are_groups([["1 to 4", "null"], ["exactly 0"]], number, ["exactly 0", "null"])
    assert not are_groups([["1 to 4", "null"]], number, []) and not are_groups([["1 to 4"], ["1 to 4"]], number, [])
    assert not are_groups([["1 to 4", "5 to 9"]], number, []) and not are_groups([["call me"]], number, [])


ELSE = "report.json says something else than manifest.json and schema.yaml make of"
WARNED = "its values do not stand out of their noise, so no error of a mean or a quantile is stated: use neither."


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (column("age", warning="All of it is exact; see https://example.org."), f"{ELSE} columns"),
        (column("age", warning=f"I{WARNED[1:]}"), ""),
        (column("age", warning=f"I{WARNED[1:]} Trust me."), f"{ELSE} columns"),
        (lambda _, report, __: report["noise_stddev"].update({"approved by NIST": 1.0}), f"{ELSE} noise_stddev"),
    ],
)
def test_words_that_nacre_does_not_write_are_a_fault(
    tmp_path: Path, change: Callable[[Json, Json, Json], object], fault: str
) -> None:
    assert faults(tmp_path, change) == [fault] * bool(fault)


def test_a_mechanism_that_no_method_has_is_a_fault(tmp_path: Path) -> None:
    def renamed(manifest: Json, report: Json, _: Json) -> None:
        for event in (*manifest["events"], report["privacy"]["event"]):
            event["mechanism"] = "a mechanism approved by NIST"
        del manifest["approved"]  # of the right mechanism

    (fault,) = faults(tmp_path, renamed)
    assert fault == "an event in manifest.json is of a mechanism that no method of nacre has"


@pytest.mark.parametrize("method", QUICK)
def test_mechanisms_and_noises_of_every_method_are_known(method: str) -> None:
    line = quick_plan(method)
    names = [getattr(event, "mechanism", "") for event in leaves([line.event])]
    assert [name for name in names if not is_mechanism(name)] == []
    assert [name for name in quick(method).noise(line) if not is_noise(name)] == []


def test_a_client_that_was_dropped_for_a_reason_of_its_own_is_a_fault(tmp_path: Path) -> None:
    for why, number in ((UNFIT, 0), ("it broke the law", 1)):

        def said(manifest: Json, *_: Json, why: str = why) -> None:
            manifest["layout"], manifest["dropped"] = LAYOUT, {"west": why}

        found = faults(tmp_path / str(number), said, FEDERATION)
        assert sum("for a reason that nacre does not give" in fault for fault in found) == number


def test_sentences_of_a_warning_are_known_by_their_words_and_not_by_their_figures() -> None:
    far = (
        "Its mean is about 250, within 2.1, where its values thin out towards the bounds; where a few lie far away "
        "from the others, which noise would hide, it may be anywhere from -1.5e+4 to 320."
    )
    advice = "For the next release, declare zero_inflated: true (where many of them are exactly 0) or spend more."
    assert is_warning(f"{far} {advice}") and is_warning(far.replace("2.1", "999"))
    for wrong in (f"{far}  {advice}", far.replace("few", "lot"), advice + 4000 * " "):
        assert not is_warning(wrong)


def test_a_column_that_noise_has_lost_is_no_fault() -> None:
    """The largest of noisy counts may be far below zero, as the share of it then is."""
    table = make_schema()
    facts = {"name": "smoker", "largest_cell": {"label": "true", "share": -60.0, "part_of_range": 0.5}}
    report = {"synthetic_rows": 9, "released_records": 1, "noise_stddev": {}, "pairs": None, "fit": [], "charged": None}
    for share, part, faults in ((-60.0, 0.5, 0), (1.5, 0.5, 1), (0.5, -0.5, 1)):
        facts["largest_cell"] |= {"share": share, "part_of_range": part}
        columns = [{**facts, "name": name} if name == "smoker" else {"name": name} for name in table.modelled]
        assert len(list(impossible({**report, "columns": columns}, table))) == faults
