"""What a flow run may choose: values that keep the operator's rules, and the many that only look so."""

import json
from pathlib import Path
from typing import Any

import pytest

from dpmodels.errors import ParameterRefused, Unsuitable
from flows.with_prefect.allowance import Rule, permitted
from flows.with_prefect.operators import SHIPPED, read_deployments

VALIDATE = {"name": "validate", "entrypoint": "flows.validate.validate_run", "allow": {"run": {"kind": "run"}}}
FIXED = {"config": {"out": "/srv/out", "model": {"method": "nacre"}}, "rows": 10}


def asked(rule: dict[str, Any], value: Any, home: Path, name: str = "config.data") -> Any:
    keys = name.split(".")
    content: Any = value
    for key in reversed(keys):
        content = {key: content}
    found: Any = permitted(FIXED, {name: Rule.model_validate(rule)}, content, home)
    for key in keys:
        found = found[key]
    return found


def refused(rule: dict[str, Any], value: Any, home: Path, name: str = "config.data") -> str:
    with pytest.raises(ParameterRefused) as refusal:
        asked(rule, value, home, name)
    assert refusal.value.field == name and "\n" not in str(refusal.value)
    return refusal.value.reason


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("incoming/days", "incoming/2", "elsewhere", "hand-offs/done"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "incoming" / "visits.parquet").touch()
    (tmp_path / "incoming" / "newest.parquet").symlink_to("visits.parquet")
    (tmp_path / "incoming" / "out.parquet").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "incoming" / "days" / "loop").symlink_to(tmp_path)
    (tmp_path / "hand-offs" / "done" / "manifest.json").touch()
    return tmp_path


def test_a_path_below_a_folder_is_taken_as_what_it_really_is(home: Path) -> None:
    rule, real = {"within": ["incoming"]}, str(home / "incoming" / "visits.parquet")
    for value in ("incoming/visits.parquet", real, "incoming/newest.parquet"):
        assert asked(rule, value, home) == real
    assert asked(rule, "incoming/2/not-there-yet", home) == str(home / "incoming" / "2" / "not-there-yet")
    assert asked({"within": [str(home / "incoming")]}, real, home) == real


@pytest.mark.parametrize(
    "value",
    ["/etc/passwd", "elsewhere/x", "visits.parquet", "incoming", "incoming/", "incoming/../elsewhere", "incoming//x",
     "incoming/./x", "incoming/out.parquet", "incoming/out.parquet/x", "incoming/days", "incoming/*", "incoming/{n}",
     "incoming/[v]isits.parquet", "s3://b/k", "file:///etc", "incoming/\x00", "incoming/a\nb", "", 7, ["incoming/x"],
     True, "incoming-2/x", "~/x", "incoming/" + "x" * 256, "incoming/" + "x/" * 2000 + "x", "incoming/\ud800"],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(home: Path, value: Any) -> None:
    assert "plain path below" in refused({"within": ["incoming"]}, value, home)


def test_a_hand_off_does_not_lie_in_another(home: Path) -> None:
    rule = {"within": ["hand-offs"]}
    assert asked(rule, "hand-offs/new/deep", home, "config.out").endswith("new/deep")
    assert refused(rule, "hand-offs/done/sub", home, "config.out") == "must not lie in another hand-off"


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"one_of": ["visits", 1]}, ["visits", 1], ["payroll", "1", True, 1.5, []]),
        ({"at_least": 0, "at_most": 1}, [0, 1, 0.5], [-0.1, 1.1, "0.5", True, float("nan"), [0]]),
        ({"at_most": 5}, [-7, 5], [6, float("inf")]),
        ({"longest": 5}, ["five!", ""], ["longer", "a\tb", "\x1b[2J", 5]),
        ({"kind": "day"}, ["2026-01-31"], ["2026-02-31", "2026-1-3", "yesterday", "2026-01-31/..", 20260131]),
        ({"kind": "run"}, ["flow-1_a"], ["../x", "", "a b", 3, "a" * 201]),
    ],
    ids=str,
)
def test_a_value_keeps_its_rule_or_is_refused(
    home: Path, rule: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        assert asked(rule, value, home) == value
    for value in bad:
        refused(rule, value, home)


def test_what_no_rule_frees_is_fixed_and_may_be_repeated(home: Path) -> None:
    assert permitted(FIXED, {}, FIXED, home) == FIXED
    assert permitted(FIXED, {}, {"config": {"out": None, "statement": {}}, "rows": 10.0}, home) == FIXED
    fixed = "is not free: the operator's file fixes it"
    for path, value in {"rows": 11, "config": {"out": "/x"}, "new": 1}.items():
        with pytest.raises(ParameterRefused, match=fixed):
            permitted(FIXED, {}, {path: value}, home)
    with pytest.raises(
        ParameterRefused, match=fixed
    ):  # a section in the place of a value, a value in that of a section
        permitted(FIXED, {"rows": Rule(one_of=(10,))}, {"rows": {"x": 1}}, home)
    with pytest.raises(ParameterRefused, match=fixed):
        permitted(FIXED, {"config.out": Rule(one_of=("a",))}, {"config": ["a"]}, home)
    with pytest.raises(ParameterRefused, match="1000 at most"):
        permitted(FIXED, {}, {str(number): 1 for number in range(1001)}, home)
    assert FIXED == {"config": {"out": "/srv/out", "model": {"method": "nacre"}}, "rows": 10}


def test_clients_are_those_that_the_operators_file_names(home: Path, tmp_path: Path) -> None:
    """Each has an account of its own, and whoever asks for a flow run must not choose how many there are."""
    shipped = next(one for one in read_deployments(SHIPPED).values() if one.name == "federation")
    asked = {"config": {"clients": {"north": "incoming/north/records.parquet"}}}
    (home / "incoming" / "north").mkdir()
    assert shipped.permitted(asked, home)["config"]["clients"] == {"north": f"{home}/incoming/north/records.parquet"}
    for key in ("north2", "*", "config.clients.north", "\x1b[2J", "", "a" * 101, "a/b"):
        with pytest.raises(ParameterRefused, match="is not free") as refusal:
            shipped.permitted({"config": {"clients": {key: "incoming/north/records.parquet"}}}, home)
        assert str(refusal.value).isprintable()
    content = {"name": "f", "entrypoint": shipped.entrypoint, "allow": {"config.clients.*": {"within": ["incoming"]}}}
    (tmp_path / "free").write_text(json.dumps({"deployments": [content]}))
    with pytest.raises(Unsuitable, match="name every client"):
        read_deployments(tmp_path / "free")


def test_a_dot_in_a_key_is_no_step_down(home: Path) -> None:
    with pytest.raises(ParameterRefused):
        permitted({}, {"config.rows": Rule(at_most=5)}, {"config.rows": 3}, home)


@pytest.mark.parametrize(
    "rule", [{}, {"within": ["a"], "longest": 3}, {"at_least": 2, "at_most": 1}, {"kind": "path"}, {"any": True}]
)
def test_a_rule_says_one_thing(rule: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|should|not permitted"):
        Rule.model_validate(rule)


@pytest.mark.parametrize("rule", [{"longest": 300}, {"one_of": ["It is another study."]}])
def test_no_file_frees_the_reason_for_a_second_budget(tmp_path: Path, rule: dict[str, Any]) -> None:
    shipped = next(one for one in read_deployments(SHIPPED).values() if one.name == "ad-hoc")
    content = {"name": "f", "entrypoint": shipped.entrypoint, "allow": {"config.statement.again": rule}}
    (tmp_path / "file").write_text(json.dumps({"deployments": [content]}))
    with pytest.raises(Unsuitable, match=r"must not free config\.statement\.again"):
        read_deployments(tmp_path / "file")


def test_no_file_frees_the_key_that_a_validation_asks_for(tmp_path: Path) -> None:
    freed = {**VALIDATE, "allow": {"run": {"kind": "run"}, "public_key": {"within": ["incoming"]}}}
    for name, content in (("shipped", VALIDATE), ("freed", freed)):
        (tmp_path / name).write_text(json.dumps({"deployments": [content]}))
    assert list(read_deployments(tmp_path / "shipped")) == ["validate-run/validate"]
    with pytest.raises(Unsuitable, match="public_key"):
        read_deployments(tmp_path / "freed")
