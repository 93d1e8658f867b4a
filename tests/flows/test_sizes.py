"""Names that are too long and tables that are too large are refused in a sentence, before anything else happens."""

import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from dpmodels.contract.schema import Schema
from dpmodels.contract.sizes import size_fault
from dpmodels.errors import NacreError
from dpmodels.limits import LONGEST_NAME, MOST_COLUMNS, MOST_VALUES
from dpmodels.methods.registry import create, of_kind
from dpmodels.privacy import PrivacyBudget
from tests.kit.support import make_schema, run_cli, synthesize_words, write_clinic

LONG = "n" * 5000


def table(columns: int, values: int) -> dict[str, object]:
    def column() -> dict[str, object]:
        return {"type": "categorical", "values": [f"v{value}" for value in range(values)]}

    return {"name": "large", "unit": "record", "columns": {f"c{number}": column() for number in range(columns)}}


@pytest.mark.parametrize("option", ["out", "home", "data", "schema", "config", "signing_key", "account", "purpose"])
def test_a_name_of_five_thousand_letters_is_refused_in_a_sentence(tmp_path: Path, option: str) -> None:
    write_clinic(tmp_path)
    code, _, err = run_cli(*synthesize_words(tmp_path, **{option: LONG}))
    assert (code, "Traceback" in err, len(err) < 1500) == (1, False, True)
    assert not list(tmp_path.glob("home/control/2*"))


@pytest.mark.parametrize("verb", ["resume", "remove", "report", "approve"])
def test_a_run_of_five_thousand_letters_is_none(tmp_path: Path, verb: str) -> None:
    (tmp_path / "home" / "control").mkdir(parents=True)
    words = ["--key", tmp_path / "key.pem"] if verb == "approve" else []
    code, _, err = run_cli(verb, LONG, "--home", tmp_path / "home", *words)
    assert (code, "Traceback" in err, len(err) < 1500) == (1, False, True)


def test_a_data_set_of_five_thousand_letters_is_a_fault_of_its_schema(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    text = make_schema().to_yaml()
    (tmp_path / "clinic.yaml").write_text(text.replace("name: clinic", f"name: {LONG}"))
    code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and "name" in err and str(LONGEST_NAME) in err and "Traceback" not in err


@pytest.mark.parametrize(("columns", "values"), [(MOST_COLUMNS + 1, 2), (1, MOST_VALUES + 1)])
def test_a_table_that_is_too_large_is_refused_when_it_is_planned(tmp_path: Path, columns: int, values: int) -> None:
    write_clinic(tmp_path)
    (tmp_path / "clinic.yaml").write_text(yaml.safe_dump(table(columns, values)))
    code, _, err = run_cli("plan", *synthesize_words(tmp_path)[1:2], *synthesize_words(tmp_path)[3:])
    assert code == 1
    assert (f"{MOST_COLUMNS:,} at most" if columns > MOST_COLUMNS else f"{MOST_VALUES:,} at most") in err


@pytest.mark.parametrize("size", [(5000, 3), (3, 100_000)])
def test_a_hundred_thousand_values_and_five_thousand_columns_are_refused(size: tuple[int, int]) -> None:
    assert "at most" in size_fault(Schema.model_validate(table(*size)))


@pytest.mark.parametrize("method", [name for name in of_kind("table") if "image" not in name])
@pytest.mark.nightly_if(
    "dp-gan", "dp-vae", "p3gm", "dp-merf"
)  # beside dp-gm, which takes longest, and methods without training
def test_the_largest_table_is_planned_by_every_method_in_seconds_or_refused(method: str) -> None:
    schema = Schema.model_validate(table(MOST_COLUMNS, MOST_VALUES // MOST_COLUMNS))
    assert not size_fault(schema)
    began = time.process_time()
    with suppress(NacreError):
        create(method, {}, {}).plan(schema, PrivacyBudget(epsilon=1, delta=1e-6))
    assert time.process_time() - began < 30
