"""Dates that a frame holds as text beside numbers, as ``pandas.read_csv`` reads them, and a document that shows how."""

from pathlib import Path

import pandas as pd

import nacre


def test_a_document_says_how_dates_are_written_in_a_frame_that_has_numbers_too(tmp_path: Path) -> None:
    words = "| field | meaning |\n| --- | --- |\n| hired | date, dd/mm/yyyy, from 01/01/1990 to 31/12/2026 |\n"
    (tmp_path / "codebook.md").write_text(words + "| grade | 1 to 8 |\n")
    frame = pd.DataFrame({"hired": ["31/12/2020", "01/02/2021"] * 20, "grade": [1, 8] * 20})
    draft = nacre.draft_schema(frame, document=tmp_path / "codebook.md", accept_suggestions=True, name="staff")
    assert "text: {date_format: '%d/%m/%Y'}" in draft
    assert nacre.validate(frame, draft, raw=True)["success"].all()
    dated = frame.assign(hired=pd.to_datetime(frame.hired, dayfirst=True))
    draft = nacre.draft_schema(dated, document=tmp_path / "codebook.md", accept_suggestions=True, name="staff")
    assert "date_format" not in draft
