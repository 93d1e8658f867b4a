"""A file whose points may be marks of thousands is refused, unless its schema or one of its numbers settles it."""

import warnings
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

import nacre
from dpmodels.codec.thousands import checked
from dpmodels.errors import DataError
from tests.kit.errors import refused
from tests.kit.support import charges

SAYS = "1.500 in a file without commas between its fields is 1.5 or 1500"


def read(values: list[str | None], size: int) -> list[str | None]:
    table = pa.table({"x": pa.array(values, pa.string()), "y": pa.array(["1.500"] * len(values))})
    return [one for batch in checked(iter(table.to_batches(size)), {"x"}) for one in batch["x"].to_pylist()]


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize(
    ("values", "fits_both"),
    [
        (["1.500", "2.300"], True),
        (["862", "1.252", "0", "-3.000", " 7.125 "], True),
        (["1.500", None, "NA", "nan", ""], True),
        (["1.500", "0.862"], False),
        (["0.862", "1.500"], False),
        (["1.500", "12.25"], False),
        (["1.500", "1234"], False),  # whoever marks thousands marks all of them
        (["1.500", "1230"], False),
        (["1.500", "1234.567"], False),
        (["1.500", "1e-3"], False),
        (["862", "42", None], False),
        ([None, None], False),
        ([], False),
    ],
)
def test_one_number_settles_how_the_others_are_read(values: list[str | None], fits_both: bool, size: int) -> None:
    if fits_both:
        with refused(DataError, SAYS, column="x"):
            read(values, size)
    else:
        assert read(values, size) == values


@pytest.mark.parametrize(
    ("delimiter", "keys", "fits_both"),
    [
        (";", ", round: 2", True),
        (";", "", True),
        ("\t", "", True),
        (";", ", round: 3", False),
        (",", "", False),
    ],
)
def test_nothing_is_charged_for_a_file_of_which_nobody_knows_by_how_much_its_numbers_are_off(
    tmp_path: Path, delimiter: str, keys: str, fits_both: bool
) -> None:
    rows = [["name", "fee"], *(["a", f"{1 + number % 9}.{number:03}"] for number in range(100, 200))]
    (file := tmp_path / "fees.csv").write_text("".join(delimiter.join(row) + "\n" for row in rows))
    schema = "name: fees\ncolumns:\n  name: {type: categorical, values: [a, b]}\n"
    schema += f"  fee: {{type: number, min: 0, max: 9999{keys}}}\n"
    if fits_both:
        with refused(DataError, f"{SAYS}.*write `round: 3` in the schema", column="fee"):
            nacre.validate(file, schema, raw=True)
        with refused(DataError, SAYS):
            nacre.synthesize(file, schema, epsilon=1, delta=1e-5, home=tmp_path / "home", open=True)
        assert charges(tmp_path / "home") == []
    else:
        assert nacre.validate(file, schema, raw=True)["success"].all()


@pytest.mark.parametrize(
    ("delimiter", "kind", "keys", "fits_both"),
    [
        (";", "number", "", True),
        (";", "integer", "", True),
        (";", "number", ", round: 3", False),
        (",", "number", "", False),
    ],
)
def test_a_discovery_is_not_charged_for_such_a_file(
    tmp_path: Path, delimiter: str, kind: str, keys: str, fits_both: bool
) -> None:
    rows = [["name", "fee"], *(["a", f"{1 + number % 9}.{number:03}"] for number in range(100, 200))]
    (file := tmp_path / "fees.csv").write_text("".join(delimiter.join(row) + "\n" for row in rows))
    draft = "name: fees\ncolumns:\n  name: {type: categorical, values: [a, b]}\n"
    draft += f"  fee: {{type: {kind}, min: discover, max: discover{keys}}}\n"
    words = {"home": tmp_path / "home", "epsilon": 2, "delta": 1e-5}
    nacre.ledger(tmp_path / "home").open_account(draft, epsilon=2, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nacre.ReleaseWarning)
        with (
            refused(DataError, f"{SAYS}.*write `round: 3` in the schema", column="fee") if fits_both else nullcontext()
        ):
            nacre.discover(file, draft, **words)
    assert charges(tmp_path / "home").count("commit") == (0 if fits_both else 1)
    assert not fits_both or charges(tmp_path / "home") == []
