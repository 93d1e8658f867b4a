"""A release that does not stand out of its noise: said before the charge, and first in all that comes after it."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.flows.test_synthesize_documents import mails, write
from tests.support import make_schema, make_table, run_cli, synthesize_words


def documents(folder: Path) -> list[object]:
    return write(folder, mails(60))


def table(folder: Path) -> list[object]:
    pq.write_table(make_table(40), folder / "rows.parquet")
    (folder / "rows.yaml").write_text(make_schema().to_yaml())
    (folder / "config.yaml").write_text("model: {method: nacre}\n")
    return synthesize_words(folder, data=folder / "rows.parquet", schema=folder / "rows.yaml")


@pytest.mark.parametrize("made", [documents, table])
def test_it_is_said_before_the_charge_and_first_of_all_afterwards(tmp_path: Path, made) -> None:
    words = [*made(tmp_path), "--target-epsilon", 0.05]
    code, text, err = run_cli("plan", *(word for word in words[1:] if word != "--no-prefect"))
    assert code == 0, err
    said = " ".join(text.split())
    assert "stands out" in said and "what is released of fewer is mostly noise" in said
    assert not (tmp_path / "home").exists()
    code, text, err = run_cli(*words)
    assert code == 0, err
    assert text.index("WARNING: what was released does not stand out of its noise") < text.index("spent: epsilon")
    out = tmp_path / "out"
    facts, card = (json.loads((out / name).read_text()) for name in ("report.json", "model-card.json"))
    assert facts["fit"][-1]["signal"] < 1.42 and card["quality"]["drowned"] == facts["drowned"]
    for name in ("report.html", "model-card.html", "data-sheet.html"):
        page = (out / name).read_text()
        assert facts["drowned"][1:60] in page, name
        if name != "data-sheet.html":
            assert page.index("does not stand out") < page.index("<h1")


def test_what_stands_out_is_not_warned_of(tmp_path: Path) -> None:
    words = [*write(tmp_path, mails(400)), "--target-epsilon", 20]
    code, text, err = run_cli(*words)
    assert code == 0 and "WARNING" not in text, err
    assert "drowned" not in json.loads((tmp_path / "out" / "report.json").read_text())
