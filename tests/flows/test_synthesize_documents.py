"""Documents from text to a hand-off of synthetic embeddings: `nacre synthesize` on a contract of documents."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.contract.documents import Documents
from dpmodels.gate.embedded_gate import EmbeddedGate
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from flows.synthesize import find, pipeline
from tests.kit.mails import CONTRACT, ENCODER, mails, write
from tests.kit.support import charges, run_cli

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("contract", "unit", "one"),
    [
        ({}, "document", "any one document"),
        ({"protects": "user", "user": "who", "most_documents": 3}, "user:who:3", "any one user with all their rows"),
    ],
)
def test_text_becomes_synthetic_embeddings_under_one_charge(tmp_path, contract, unit, one):
    words = write(tmp_path, **contract)
    code, out, err = run_cli("plan", *(word for word in words[1:] if word != "--no-prefect"))
    assert code == 0 and "document-moments" in out and not (tmp_path / "home").exists(), err
    code, _, err = run_cli(*words)
    assert code == 0, err
    out = tmp_path / "out"
    assert verify_hand_off(out).faults == [] and run_cli("validate", out)[0] == 0
    (account,) = Ledger(tmp_path / "home" / "ledger.sqlite").accounts()
    assert account.scope == ("mails", unit, "add_or_remove_one")
    assert charges(tmp_path / "home") == ["reserve", "draw", "seal", "commit"]
    (run,), some = (tmp_path / "home" / "control").glob("*/"), tmp_path / "some.parquet"
    options = ("--rows", "9", "--where", "kind=good", "--out", some, "--home", tmp_path / "home")
    code, _, err = run_cli("sample", run.name, *options)
    assert code == 1 and "have no columns" in err and not some.exists()
    table, facts = pq.read_table(out / "synthetic"), json.loads((out / "report.json").read_text())
    assert table.num_rows == facts["synthetic_rows"] > 0 and table.schema.names == ["kind", "embedding"]
    assert set(table["kind"].to_pylist()) <= {"good", "bad"}
    norms = np.linalg.norm(np.array(table["embedding"].to_pylist()), axis=1)
    assert (norms <= 1 + 1e-6).all() and norms.min() > 0.99
    assert [mean["name"] for mean in facts["map"]["means"]] == ["good", "bad"] and facts["map"]["points"]
    page = (out / "report.html").read_text()
    assert "Map of the embeddings" in page and one in page


def test_a_classifier_of_synthetic_embeddings_knows_the_real_ones(tmp_path):
    """With enough budget for these few mails, words of one kind lie where the real ones do."""
    from sklearn.linear_model import LogisticRegression

    from dpmodels.codec.embedded import on_sphere
    from dpmodels.text.encoders import load_encoder
    from dpmodels.text.passages import embed

    words = write(tmp_path, mails(400))
    code, _, err = run_cli(*words, "--target-epsilon", 20, "--rows", 1000)
    assert code == 0, err
    contract, new = Documents.model_validate({**CONTRACT, **ENCODER}), mails(200, seed=1)
    batch = pa.RecordBatch.from_arrays(
        [new["id"].cast(pa.large_string()).combine_chunks(), new["body"].combine_chunks(), pa.array([-1] * 200)],
        ["id", "content", "label"],
    )
    real = on_sphere(embed(batch, contract, load_encoder(contract.encoder)).means())
    made = pq.read_table(tmp_path / "out" / "synthetic")
    model = LogisticRegression().fit(np.array(made["embedding"].to_pylist()), made["kind"].to_pylist())
    assert np.mean(model.predict(real) == new["kind"].to_numpy()) > 0.9


REFUSED = {
    "no column of users": ({"protects": "user", "user": "author", "most_documents": 2}, "author"),
    "no column of labels": ({"label": "genre"}, "genre"),
    "vectors of another size": (
        {"text": "", "embedding": "vector", "encoder": {"name": "given", "dim": 5}},
        "must hold vectors of 5 numbers",
    ),
    "a sentence is the unit": ({"protects": "sentence"}, "protects sentences"),
    "an unknown encoder": ({"encoder": {"name": "/no/such/model", "dim": 5}}, "encoder"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence_before_any_charge(tmp_path, what):
    contract, sentence = REFUSED[what]
    table = mails(20).append_column("vector", pa.array([[0.5, 0.5, 0.5]] * 20))
    code, _, err = run_cli(*write(tmp_path, table, **contract))
    (said,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert code == 1 and sentence in said and "Traceback" not in err
    assert not (tmp_path / "home" / "ledger.sqlite").exists() or charges(tmp_path / "home") == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--method", "pearl"], "method=pearl must be one for documents"),
        (["--report-epsilon", 0.5], "--report-epsilon=0.5 must be left out"),
    ],
)
def test_what_is_for_tables_is_refused_for_documents(tmp_path, options, sentence):
    code, _, err = run_cli(*write(tmp_path), *options)
    assert code == 1 and sentence in err and not (tmp_path / "home").exists()


def test_no_documents_are_refused_and_a_few_empty_ones_go_through(tmp_path):
    code, _, err = run_cli(*write(tmp_path, mails(5).slice(0, 0)))
    assert code == 1 and "no documents" in err
    texts = ["", "  \n", "½ \u200d 🙂", "one word"]
    table = pa.table({"id": range(4), "body": texts, "kind": ["good", None, "odd", "bad"]})
    code, _, err = run_cli(*write(tmp_path, table))
    assert code == 0, err


def test_points_that_break_the_contract_are_not_handed_over(tmp_path):
    contract = Documents.model_validate({**CONTRACT, **ENCODER})
    types = pa.schema({"kind": pa.string(), "embedding": pa.list_(pa.float32(), 16)})
    good = [0.25] * 16

    def broken(kinds: list[object], vectors: list[object]) -> set[str]:
        gate = EmbeddedGate(contract, rows=len(kinds))
        gate.check(pa.RecordBatch.from_pydict({"kind": kinds, "embedding": vectors}, schema=types))
        return {rule.expectation for rule in gate.broken}

    assert broken(["good"], [good]) == set()
    assert broken(["good"], [[0.26] * 16]) == {"norm"}
    assert broken(["good", "bad"], [[float("nan"), *good[1:]], None]) == {"finite"}
    assert broken(["odd", None], [good, good]) == {"class"}
    gate = EmbeddedGate(contract, rows=2)
    gate.check(pa.RecordBatch.from_pydict({"kind": ["good"]}))
    assert {rule.expectation for rule in gate.broken} == {"columns", "ExpectTableRowCountToBeBetween"}


def test_a_changed_synthetic_table_is_caught_by_the_gate(tmp_path, monkeypatch):
    words = write(tmp_path)
    code, _, err = run_cli(*words)
    assert code == 0, err
    (run,) = (tmp_path / "home" / "released").iterdir()
    found = find(tmp_path / "home", run.name, None, None, out=tmp_path / "again")
    for stage in ("validate", "sample"):
        found.forget(stage)
    from tasks.run.receive import reject

    reject(found)
    monkeypatch.setattr("tasks.stages.sample.codec_of", lambda contract: Longer(contract))
    with pytest.raises(Exception, match="must have norm 1 at most"):
        pipeline(found, lambda stage, *handles: stage(*handles))
    assert not (tmp_path / "again").exists()


class Longer:
    """Writes embeddings that are twice as long as they may be."""

    def __init__(self, contract: Documents) -> None:
        from dpmodels.codec.embedded import EmbeddedCodec

        self.codec = EmbeddedCodec(contract)
        self.output_schema = self.codec.output_schema

    def decode(self, documents: object, first_row: int = 0) -> pa.Table:
        table = self.codec.decode(documents)
        numbers = pa.array(2 * table["embedding"].combine_chunks().flatten().to_numpy())
        return table.set_column(1, "embedding", pa.FixedSizeListArray.from_arrays(numbers, self.codec.dim))
