"""Peers beside nacre: the cells that they are helped to, and verdicts that outlast a run that is cut off."""

import numpy as np
import pandas as pd

from benchmarks import unseen
from benchmarks.judge import Verdict
from benchmarks.peers import Outcome, Peer


def table(rows: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(0, 1, rows)),
            "spike": np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 50, rows)),
            "word": np.where(rng.random(rows) < 0.2, None, rng.choice(["a", "b"], rows)),
            "target": rng.integers(0, 2, rows),
        }
    )


def test_helped_cells_are_quantiles_with_a_cell_for_null_and_none_is_empty():
    helped = unseen.HelpedCells(table(), "target")
    assert helped.sizes == {"number": 21, "spike": helped.sizes["spike"], "word": 3, "target": 2}
    assert 2 <= helped.sizes["spike"] <= 4
    for name, codes in helped.codes.items():
        assert set(codes) == set(range(helped.sizes[name]))
    number, codes = table()["number"], helped.codes["number"]
    assert codes[number.isna()].nunique() == 1 and set(codes[number.isna()]).isdisjoint(codes[number.notna()])
    assert np.bincount(codes[number.notna()], minlength=21).max() < 30


def test_a_peers_cells_come_back_as_real_values_of_the_same_cells(monkeypatch, tmp_path):
    helped, asked = unseen.HelpedCells(table(), "target"), []

    def run(peer, cells, task, folder):
        asked.append((peer.method, task))
        return Outcome(cells.sample(frac=1, random_state=1).reset_index(drop=True), 1.0, 1.0)

    monkeypatch.setattr(unseen, "run_cells", run)
    made = helped.run(Peer("dpmm", "aim-target"), 1.0, 3, tmp_path).table
    assert asked[0][0] == "aim-target" and asked[0][1]["target"] == "target" and asked[0][1]["sizes"] == helped.sizes
    again = helped.codes.sample(frac=1, random_state=1).reset_index(drop=True)
    for name, column in made.items():
        pairs = pd.DataFrame({"value": table()[name], "cell": helped.codes[name]}).drop_duplicates()
        cell_of = {str(value): cell for value, cell in zip(pairs["value"], pairs["cell"], strict=True)}
        assert [cell_of[str(value)] for value in column] == again[name].tolist()


def test_a_verdict_is_kept_and_not_made_again(tmp_path):
    path, made = tmp_path / "kept.jsonl", []

    def judge():
        made.append(1)
        return Verdict(0.8, 0.5, 0.01, 0.02), 3.0

    for _ in range(3):
        assert unseen.Kept(path).find(("women", "aim", 1.0, 0), judge) == (Verdict(0.8, 0.5, 0.01, 0.02), 3.0)
    assert len(made) == 1
    unseen.Kept(path).find(("women", "aim", 1.0, 1), judge)
    unseen.Kept(None).find(("women", "aim", 1.0, 0), judge)
    assert len(made) == 3 and len(path.read_text().splitlines()) == 2
