"""Identifiers made after a pattern: one to one with rows, whatever the pattern, and refused where they are too few."""

import re

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmodels.authoring.lint import lint, load_schema
from dpmodels.codec.encode import Codec
from dpmodels.contract.identifiers.pattern import read_pattern
from dpmodels.errors import DataError, SchemaError
from tests.kit.errors import refused
from tests.kit.support import SCHEMA_TEXT, make_records, make_schema, run_cli, synthesize_words, write_clinic

ITEMS = ["[A-Z]{2}", "[0-9]{3}", "[abc]", "x", r"\.", "-", "[A-Fa-f0-9]{8}", r"[a\]\-]", "[0-9]{9}"]


@given(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=5), st.integers(0, 2**40))
def test_what_is_made_matches_the_pattern_and_no_two_rows_share_it(items, first):
    text = "".join(items)
    try:
        pattern = read_pattern(text)
    except ValueError as fault:
        assert "a class such as" in str(fault)  # nothing but literals
        return
    rows = min(pattern.most, 3000)
    first %= pattern.most - rows + 1
    made = pattern.write(first, rows).to_pylist()
    assert len(set(made)) == rows and all(re.fullmatch(text, one) for one in made)
    assert pattern.write(first + rows // 2, rows - rows // 2).to_pylist() == made[rows // 2 :]  # files need no other


@pytest.mark.parametrize("text", ["[0-9]{5}", "[A-Z]{2}-[0-9]{2}", "[a-z][a-z]x[0-9]"])
def test_every_identifier_is_used_once(text):
    pattern = read_pattern(text)
    assert len(set(pattern.write(0, pattern.most).to_pylist())) == pattern.most


def test_rows_beyond_one_run_of_places_are_still_told_apart():
    pattern = read_pattern("[A-Z]{3}[0-9]{9}")
    one, other = pattern.write(0, 1000).to_pylist(), pattern.write(10**9, 1000).to_pylist()
    assert pattern.most == 26**3 * 10**9 and not set(one) & set(other)
    assert [a[3:] for a in one] == [b[3:] for b in other]  # the last places went round once


FAULTS = {
    "pattern:": "1 to 64 printable",
    "pattern:[A-Z]+": "not at `+`",
    "pattern:(a|b)": "not at `(a|b)`",
    "pattern:.{3}": "a sign such as . is written",
    "pattern:[^a]{3}": "list what a class has",
    "pattern:[9-0]": "9-0 goes down",
    "pattern:[0-9]{99}": "1 to 64",
    "pattern:ABC": "a class such as",
    "text:": "1 to 200 characters",
    "text:a\tb": "1 to 200 characters",
    "fresh": "must be drop, regenerate,",
}


@pytest.mark.parametrize("keep", FAULTS)
def test_what_is_no_pattern_is_a_fault_with_its_line(tmp_path, keep):
    path = tmp_path / "s.yaml"
    path.write_text(SCHEMA_TEXT.replace("keep: regenerate", f"keep: {keep!r}".replace("'", '"')))
    (fault,) = lint(path)
    assert fault.line == 6 and fault.where == "columns.patient.keep" and FAULTS[keep] in fault.message


def clinic(keep: str, **changes: object):
    columns = make_schema().model_dump()["columns"]
    return make_schema(columns={**columns, "patient": {"type": "identifier", "keep": keep}}, **changes)


def test_a_table_is_decoded_with_identifiers_and_placeholders():
    table = Codec(clinic("pattern:P[0-9]{3}")).decode(make_records(50), first_row=10)
    assert all(re.fullmatch("P[0-9]{3}", one) for one in table["patient"].to_pylist())
    assert len(set(table["patient"].to_pylist())) == 50
    assert set(Codec(clinic("text:left out")).decode(make_records(5))["patient"].to_pylist()) == {"left out"}
    with refused(DataError, "makes 1000 identifiers; give --rows"):
        Codec(clinic("pattern:P[0-9]{3}")).decode(make_records(50), first_row=951)


def test_too_few_identifiers_are_refused_before_a_charge(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    schema.write_text(clinic("pattern:P[0-9]").to_yaml())
    code, _, err = run_cli(*synthesize_words(tmp_path, rows=11))
    assert code == 1 and "rows=11 must be fewer: columns.patient.keep makes 10 identifiers" in err
    assert not (tmp_path / "home").exists()
    schema.write_text(schema.read_text() + "rows: {max: 200}\n")
    with pytest.raises(SchemaError, match="makes 10 identifiers, fewer than 200 rows need"):
        load_schema(schema)


def test_a_run_hands_them_over_and_its_gate_passes(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    columns = clinic("pattern:[A-Z]{2}-[0-9]{6}").model_dump()["columns"]
    schema.write_text(
        make_schema(columns=columns | {"note": {"type": "identifier", "keep": "text:left out"}}).to_yaml()
    )
    data = pq.read_table(tmp_path / "clinic.parquet")
    pq.write_table(data.append_column("note", [["private words"] * len(data)]), tmp_path / "clinic.parquet")
    code, _, err = run_cli(*synthesize_words(tmp_path, rows=80))
    assert code == 0, err
    table = pq.read_table(tmp_path / "out" / "synthetic")
    assert len(set(table["patient"].to_pylist())) == 80 and set(table["note"].to_pylist()) == {"left out"}
    assert (run_cli("validate", tmp_path / "out")[0], run_cli("verify", tmp_path / "out")[0]) == (0, 3)


def test_users_are_not_made_anew_by_a_pattern(tmp_path):
    path = tmp_path / "s.yaml"
    unit = {"user": "patient", "max_rows": 2}
    path.write_text(clinic("pattern:[0-9]{9}", unit=unit).to_yaml())
    assert "must be drop" in str(lint(path)[0])
