"""A tree of tables is a content by all of its tables: other rows below the same root are other data, in any order."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.codec.fingerprint import Fingerprint
from dpmodels.contract.tree import Tree
from dpmodels.errors import ContentCharged
from dpmodels.ledger.ledger import Ledger
from flows.config import SynthesizeConfig
from flows.planning import MayOpen
from flows.settings import placed
from flows.start import start
from flows.synthesize import pipeline
from tasks.run import contents
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tests.kit.errors import refused

BANK = """
name: {name}
public: {{district: {{key: district, columns: {{district: {{type: identifier}}}}, rows: {{district: [a, b, c]}}}}}}
tables:
  account:
    key: account
    refers: [{{to: district, by: district}}]
    columns:
      account: {{type: identifier, keep: regenerate}}
      open: {{type: boolean}}
      balance: {{type: integer, min: 0, max: 1000}}
      district: {{type: identifier}}
  loan:
    parent: account
    most: 5
    columns: {{account: {{type: identifier}}, amount: {{type: integer, min: 0, max: 1000}}}}
"""


def asked(folder: Path, out: str, name: str) -> Run:
    """Start a run on a bank that may open its account."""
    given = {"data": folder / name, "schema": folder / f"{name}.yaml", "out": folder / out, "home": folder / "home"}
    given |= {"target_epsilon": 0.5, "delta": 1e-5, "prefect": False, "internal_report": False, "rows": 40}
    settings = {**placed(given), "model": {"training": {"components": 16, "steps": 5}}}
    return start(SynthesizeConfig.build(settings), may_open=MayOpen.YES)


def go(run: Run) -> None:
    pipeline(run, lambda stage, *handles: stage(*handles))


def write_bank(folder: Path, name: str, seed: int, balances: int = 1) -> None:
    """Write accounts of which half are open, each of one of so many balances, and loans; all else is by the seed."""
    rng, ids, half = np.random.default_rng(seed), [1000 * seed + row for row in range(200)], [True, False] * 100
    places = [rng.choice(["a", "b", "c"]) for _ in ids]
    accounts = {"account": ids, "open": half, "balance": [row % balances for row in range(200)], "district": places}
    loans = {"account": rng.choice(ids, 300), "amount": rng.integers(0, 1000, 300)}
    (folder / name).mkdir()
    pq.write_table(pa.table(accounts), folder / name / "account.parquet")
    pq.write_table(pa.table(loans), folder / name / "loan.parquet")
    (folder / f"{name}.yaml").write_text(BANK.format(name=name))


def rewrite(folder: Path, name: str, other: str) -> None:
    """Write the same tables under another name, each with its rows in another order."""
    (folder / other).mkdir()
    for table in ("account", "loan"):
        rows = pq.read_table(folder / name / f"{table}.parquet")
        pq.write_table(rows.take(list(reversed(range(len(rows))))), folder / other / f"{table}.parquet")
    (folder / f"{other}.yaml").write_text(BANK.format(name=other))


@pytest.mark.parametrize("balances", [1, 200])
@pytest.mark.nightly_if("200")
def test_trees_are_the_same_content_only_where_all_their_tables_are(tmp_path: Path, balances: int) -> None:
    write_bank(tmp_path, "bank", 1, balances)
    write_bank(tmp_path, "other", 2)
    rewrite(tmp_path, "bank", "again")
    go(asked(tmp_path, "first", "bank"))
    ingest(asked(tmp_path, "second", "other"))
    with refused(ContentCharged, dataset="again", other="bank"):
        ingest(asked(tmp_path, "third", "again"))


class OfRoot(Fingerprint):
    """What earlier versions hashed of a tree: the rows of its root, however few of them differ."""

    def __init__(self, tree: Tree, secret: bytes) -> None:
        super().__init__(tree.schema_of(tree.root), secret)


@pytest.mark.parametrize(("balances", "how"), [(1, "copied"), (200, "copied"), (200, "rewritten")])
@pytest.mark.nightly_if("200-*")
def test_a_tree_that_an_earlier_version_read_is_no_second_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, balances: int, how: str
) -> None:
    write_bank(tmp_path, "bank", 1, balances)
    if how == "copied":
        shutil.copytree(tmp_path / "bank", tmp_path / "again")
        (tmp_path / "again.yaml").write_text(BANK.format(name="again"))
    else:
        rewrite(tmp_path, "bank", "again")
    with monkeypatch.context() as earlier:
        earlier.setattr(contents, "TreeFingerprint", OfRoot)
        earlier.setattr(contents, "TELLING", 0)
        go(asked(tmp_path, "first", "bank"))
    with refused(ContentCharged, dataset="again", other="bank"):
        ingest(asked(tmp_path, "second", "again"))
    Ledger(tmp_path / "home" / "ledger.sqlite").change_cap("bank", reason="another year", epsilon=2)
    ingest(asked(tmp_path, "third", "bank"))  # the same data set is not barred
