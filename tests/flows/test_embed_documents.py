"""From documents to a hand-off of embeddings: what is in it, what it costs, what stops it, and what it never says."""

import json
import logging
import re
import shutil
import sqlite3
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.errors import ArtifactError, BudgetExhausted, DataError, InvalidArgument, Unsuitable
from dpmodels.hand_off.manifest import read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from dpmodels.releases import draw
from dpmodels.releases.release import read_release
from dpmodels.text.candidates import read_candidates
from flows.config import EmbedConfig
from flows.kinds.each_document import prepare
from flows.start import start
from flows.synthesize import carry_out
from flows.with_prefect.server import prefect_server
from tasks.kinds import each_document
from tests.kit.buckets import Bucket
from tests.kit.errors import refused
from tests.kit.everything import everything
from tests.kit.inputs import KEY
from tests.kit.letters import MATTERS, embed_words, make_letters, write_letters
from tests.kit.support import charges, run_cli, write_key

pytestmark = pytest.mark.processes


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    write_letters(tmp_path)
    return tmp_path


def only_run(folder: Path) -> Path:
    (run,) = (folder / "home" / "control").glob("*/settings.json")
    return run.parent


def contract_file(folder: Path, **changes: object) -> Path:
    terms = {"name": "letters", "protects": "sentence", "text": "text", "encoder": {"name": "hashed", "dim": 32}}
    (folder / "contract.yaml").write_text(yaml.safe_dump({**terms, **changes}))
    return folder / "contract.yaml"


def by_contract(folder: Path, **options: object) -> list[object]:
    return embed_words(folder, contract=folder / "contract.yaml", encoder=None, dim=None, **options)


def test_documents_become_embeddings_under_one_charge_and_the_warning_is_loud(letters: Path) -> None:
    code, out, err = run_cli(*embed_words(letters))
    assert code == 0 and "WEAK FOR A WHOLE DOCUMENT" in err and "--method moments" in err, err
    table = pq.read_table(letters / "out" / "embeddings")
    assert table.column_names == ["id", "embedding", "candidate", "epsilon", "unit"] and table.num_rows == 40
    assert table["id"].to_pylist() == sorted(pq.read_table(letters / "letters.parquet")["id"].to_pylist())
    assert b"ONE sentence" in table.schema.metadata[b"nacre.caution"]
    candidates = read_candidates(only_run(letters) / each_document.CANDIDATES)
    vectors = np.array(table["embedding"].to_pylist(), dtype=np.float32)
    assert np.array_equal(vectors, candidates.embeddings[table["candidate"].to_numpy()])
    assert set(table["epsilon"].to_pylist()) == {10.0} and set(table["unit"].to_pylist()) == {"sentence of a document"}
    assert charges(letters / "home") == ["reserve", "draw", "seal", "commit"]  # for all documents together
    code, out, err = run_cli("verify", letters / "out")
    assert code == 3 and "epsilon=10.000000000000 at delta=0 (pure) for each document" in out and "WEAK FOR" in err
    manifest = read_manifest(letters / "out")
    assert manifest.format == 7 and manifest.part == "document" and "WEAK" in manifest.cautions[0]
    for page in ("report.html", "statement.html", "model-card.html"):  # at epsilon 10, one share of right guesses
        assert "practically all" in (letters / "out" / page).read_text()
    again = ("--home", letters / "home", "--out", letters / "again.html")
    assert not verify_hand_off(letters / "out").faults and run_cli("report", only_run(letters).name, *again)[0] == 0
    assert "WEAK FOR A WHOLE DOCUMENT" in (letters / "again.html").read_text()
    (account,) = json.loads(run_cli("ledger", "show", "--json", "--home", letters / "home")[1])
    assert Decimal(account["spent_epsilon"]) == 10 and account["adjacency"] == "replace_one"
    code, _, err = run_cli(*embed_words(letters, out=letters / "more"))
    assert code == 1 and "refuses the charge" in err and not (letters / "more").exists()


def test_what_is_chosen_follows_the_matter_of_a_letter(letters: Path) -> None:
    pq.write_table(make_letters(120, seed=1, sentences=20), letters / "letters.parquet")
    assert run_cli(*embed_words(letters, target_epsilon=20))[0] == 0
    private, found = pq.read_table(letters / "letters.parquet"), pq.read_table(letters / "out" / "embeddings")
    matter = dict(zip(private["id"].to_pylist(), private["matter"].to_pylist(), strict=True))
    labels = np.array([matter[each] for each in found["id"].to_pylist()])
    vectors, taught = np.array(found["embedding"].to_pylist()), np.arange(len(labels)) % 2 == 0
    names = np.array(list(MATTERS))
    means = np.array([vectors[taught & (labels == name)].mean(axis=0) for name in names])
    said = names[(vectors[~taught] @ means.T).argmax(axis=1)]
    assert (said == labels[~taught]).mean() > 0.6  # a third by chance


def test_what_is_for_generators_says_that_it_is_not_for_embeddings(letters: Path) -> None:
    assert run_cli(*embed_words(letters))[0] == 0
    home, run = ("--home", letters / "home"), only_run(letters).name
    release = letters / "home" / "released" / run / "release.parquet"
    for words, said in (
        (("validate", letters / "out"), "nacre verify"),
        (("fit", release, "--out", letters / "fit", "--no-prefect", *home), "no generator is fitted to it"),
        (("resume", run, "--refit", "--out", letters / "fit", "--no-prefect", *home), "no generator is fitted to it"),
        (("report", run, "--internal", *home), "has no synthetic table"),
    ):
        code, _, err = run_cli(*words)
        assert code == 1 and said in err, err
    assert (
        "one document at a time: each document of its own, in parallel"
        in run_cli("ledger", "show", "letters", *home)[1]
    )


def test_sketches_are_read_in_the_encoders_space_and_are_charged_alike(letters: Path) -> None:
    config = yaml.safe_load((letters / "config.yaml").read_text())
    config["model"]["recipe"]["sketch"] = {"epsilon": 10, "numbers": 4, "hidden": 16, "steps": 20}
    (letters / "config.yaml").write_text(yaml.safe_dump(config))
    code, _, err = run_cli(*embed_words(letters, method="document-sketch"))
    assert code == 0 and "WEAK FOR A WHOLE DOCUMENT" in err, err
    table, manifest = pq.read_table(letters / "out" / "embeddings"), read_manifest(letters / "out")
    assert table["id"].to_pylist() == sorted(table["id"].to_pylist()) and table.num_rows == 40
    assert len({tuple(row) for row in table["embedding"].to_pylist()}) > len(set(table["candidate"].to_pylist()))
    assert manifest.method == "document-sketch" and manifest.spent.epsilon == 10
    assert not verify_hand_off(letters / "out").faults
    assert "another public network reads" in (letters / "out" / "report.html").read_text()


def test_one_users_documents_add_up_and_the_parent_shows_the_largest_account(letters: Path) -> None:
    home = ("--home", letters / "home")
    for name, above, asked in (("all", "", 0), ("mail", "all", 4), ("post", "all", 6)):
        contract = contract_file(letters, name=name, user="author", most_documents=3)
        opened = ("--schema", contract, "--epsilon", 50, "--delta", 0, "--parent", above)
        assert run_cli("ledger", "open", name, *opened, *home)[0] == 0
        words = by_contract(letters, target_epsilon=asked, out=letters / name, again="the same letters stand for both")
        assert not asked or run_cli(*words)[0] == 0
    assert set(pq.read_table(letters / "post" / "embeddings")["epsilon"].to_pylist()) == {2.0}
    manifest, ledger = read_manifest(letters / "post"), Ledger(letters / "home" / "ledger.sqlite")
    spent = [ledger.balance(name).spent_epsilon for name in ("mail", "post", "all")]
    assert spent[1:] == [6, 6] and 3.9999 < spent[0] <= 4
    assert manifest.part == "user" and manifest.spent.epsilon == 6
    assert "all of at most 3 documents costs epsilon=6" in manifest.cautions[1]
    assert not verify_hand_off(letters / "post").faults


def test_choices_that_were_made_before_a_failure_are_not_made_again(letters: Path, monkeypatch) -> None:
    monkeypatch.setattr(each_document, "BATCH_ROWS", 8)
    monkeypatch.setattr("dpmodels.releases.draw.LEAST_KEPT", 1)
    run = start(EmbedConfig.build(settings(letters), letters / "config.yaml"))
    made: list[np.ndarray] = []
    real = draw.select_each

    def failing(scores: Any, **options: Any) -> Any:
        if len(made) == 2:
            raise OSError("the disk is gone")
        made.append((chosen := real(scores, **options)).value)
        return chosen

    monkeypatch.setattr(draw, "select_each", failing)
    with pytest.raises(nacre.NacreError, match="stage sanitize failed with OSError"):
        carry_out(run, prefect=False)
    monkeypatch.setattr(draw, "select_each", real)
    carry_out(run, prefect=False)
    released = read_release(run.released / "release.parquet").value
    assert released.vector[:16].tolist() == np.concatenate(made).tolist() and len(released.vector) == 40
    shutil.rmtree(run.home / "sensitive")  # what comes after the choice reads released and public things alone
    shutil.rmtree(letters / "out")
    carry_out(run, prefect=False)
    assert not verify_hand_off(letters / "out").faults


def settings(folder: Path, **changes: object) -> dict[str, object]:
    return {
        "documents": folder / "letters.parquet",
        "candidates": folder / "public.parquet",
        "out": folder / "out",
        "columns": {"encoder": "hashed", "dim": 32},
        "privacy": {"target_epsilon": 10.0},
        "runtime": {"home": folder / "home", "prefect": False},
        **changes,
    }


def test_what_is_planned_is_made_of_public_documents_alone(letters: Path) -> None:
    config, planned = EmbedConfig.build(settings(letters), letters / "config.yaml"), []
    for seed in (1, 2):
        pq.write_table(make_letters(40, seed=seed), letters / "letters.parquet")
        planned.append(prepare(config))
    assert planned[0].files == planned[1].files and planned[0].lines == planned[1].lines
    pq.write_table(make_letters(60, seed=9), letters / "public.parquet")
    assert prepare(config).files != planned[0].files


ODD = {
    "empty": "",
    "blank": " \n\t ",
    "one": "Quillfeather alone.",
    "emoji": "🦜🦜. Ünïcödé \u202eright to left\u202c. 漢字。かな。 \u0000 Zero.",
    "no end": "quillfeather " * 160_000,
    "one word": "q" * 2_000_000,
    "many": "Yes. " * 3000,
}


def test_odd_documents_get_an_embedding_like_any_other_and_nothing_private_is_said(letters: Path, caplog) -> None:
    table = pa.table({"id": list(ODD), "text": list(ODD.values())})
    pq.write_table(table, letters / "letters.parquet")
    caplog.set_level(logging.DEBUG)
    code, out, err = run_cli(*embed_words(letters))
    assert code == 0, err
    assert sorted(pq.read_table(letters / "out" / "embeddings")["id"].to_pylist()) == sorted(ODD)
    told = " ".join(json.loads((letters / "out" / "report.json").read_text())["policy"])
    assert "with a single one" in told and "the first 200 are used" in told and "opened quotation mark" in told
    words = re.compile("quillfeather|qqqq", re.IGNORECASE)
    assert not words.search(out + err + caplog.text + everything(letters))


def test_a_file_of_no_documents_is_refused_before_any_charge(letters: Path) -> None:
    pq.write_table(make_letters(0, seed=1), letters / "letters.parquet")
    code, _, err = run_cli(*embed_words(letters))
    assert code == 1 and "no documents" in err and "nothing was charged" in err and charges(letters / "home") == []


def test_candidates_that_are_the_protected_documents_are_refused_before_any_charge(letters: Path) -> None:
    (letters / "link.parquet").symlink_to(letters / "letters.parquet")
    for same in ("letters.parquet", "link.parquet"):
        code, _, err = run_cli(*embed_words(letters, candidates=letters / same))
        assert code == 1 and "must be public documents" in err and not (letters / "home").exists()
    shutil.copy(letters / "letters.parquet", letters / "copy.parquet")
    code, _, err = run_cli(*embed_words(letters, candidates=letters / "copy.parquet"))
    assert code == 1 and "also one of the documents" in err and charges(letters / "home") == []


@pytest.mark.nightly
def test_documents_in_an_object_store_are_no_candidates_and_none_means_no_charge(letters: Path, bucket: Bucket) -> None:
    documents = bucket.put(letters / "letters.parquet", "a/letters.parquet")
    code, _, err = run_cli(*embed_words(letters, documents=documents, candidates=bucket.uri("a/*.parquet")))
    assert code == 1 and "must be public documents" in err and not (letters / "home").exists()
    code, _, err = run_cli(*embed_words(letters, documents=documents, candidates=letters / "letters.parquet"))
    assert code == 1 and "also one of the documents" in err and charges(letters / "home") == []
    code, _, err = run_cli(*embed_words(letters, documents=bucket.uri("none.parquet")))
    assert code == 1 and "none.parquet?region=us-east-1 does not exist" in err and charges(letters / "home") == []
    for option in ("documents", "candidates"):
        code, _, err = run_cli(*embed_words(letters, **{option: documents.replace("s3://", f"s3://nacre:{KEY}@")}))
        assert code == 1 and f"{option}=(hidden) must hold no user" in err and KEY not in err
    runtime = {"home": letters / "home", "prefect": False}
    budget, columns = {"target_epsilon": 10}, {"encoder": "hashed", "dim": 32}
    settings = {"documents": documents, "candidates": bucket.put(letters / "public.parquet"), "out": letters / "there"}
    settings |= {"columns": columns, "privacy": budget, "runtime": runtime}
    run = start(config := EmbedConfig.build(settings, letters / "config.yaml"))
    bucket.delete("a/letters.parquet")
    with refused(DataError, "does not exist", column=""):
        carry_out(run, prefect=False)
    assert charges(letters / "home") == []
    bucket.put(letters / "letters.parquet", "a/letters.parquet")
    carry_out(start(config), prefect=False)
    before = charges(letters / "home")
    code, _, err = run_cli(*embed_words(letters, name="others", dim=16), "--open")  # known by their bytes alone
    assert code == 1 and "has the content of letters" in err and charges(letters / "home") == before != []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"text": "body"}, "column body: is in the contract, so it must be in every file"),
        ({"embedding": "text", "dim": 8}, "column text: must hold lists of numbers"),
        ({"encoder": "/no/such/model"}, "must be wordllama, hashed, given, or the folder of a model"),
        ({"target_epsilon": 2000}, "epsilon=2000.0 must lie between"),
        ({"target_epsilon": 200}, "must be at most 100"),
        ({"most_documents": 3}, "`most_documents` needs the column of the `user`"),
        ({"language": "English"}, "language"),
        ({"documents": "/no/such/file.parquet"}, "does not exist"),
        ({"candidates": "/no/such/file.parquet"}, "does not exist"),
    ],
)
def test_what_is_impossible_is_one_sentence_and_no_charge(letters: Path, options: dict, said: str) -> None:
    code, _, err = run_cli(*embed_words(letters, **options))
    assert code == 1 and said in err and err.count("\n") <= 2 and "Traceback" not in err, err
    assert not (letters / "home" / "ledger.sqlite").exists() or charges(letters / "home") == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"protects": "document"}, "the contract protects documents, and embedding each document hides a sentence"),
        ({"protects": "user", "user": "author"}, "hides a whole user for less epsilon"),
        ({"encoder": {"name": "wordllama", "dim": 64, "sha256": "ab" * 32}}, "have the sha256"),
        ({"encoder": {"name": "wordllama", "dim": 512}}, "dim=512 must be at most 256"),
        ({"texts": "body"}, "texts: is no key here"),
    ],
)
def test_a_contract_that_cannot_be_kept_is_one_sentence_and_no_charge(letters: Path, changes: dict, said: str) -> None:
    contract_file(letters, **changes)
    code, _, err = run_cli(*by_contract(letters))
    assert code == 1 and said in err and not (letters / "home" / "ledger.sqlite").exists(), err


def test_a_contract_and_columns_together_and_a_table_are_refused(letters: Path) -> None:
    contract_file(letters)
    code, _, err = run_cli(*embed_words(letters, contract=letters / "contract.yaml"))
    assert code == 1 and "give a contract, or what it would say (encoder, dim), and not both" in err


@pytest.mark.parametrize("package", ["sentencex", "wordllama"])
def test_the_extra_that_is_missing_is_named(letters: Path, monkeypatch, package: str) -> None:
    for place in ("dpmodels.late", "dpmodels.text.encoders"):
        monkeypatch.setattr(f"{place}.find_spec", lambda name: None if name == package else find_spec(name))
    code, _, err = run_cli(*embed_words(letters, encoder="wordllama", dim=None))
    assert code == 1 and "pip install 'nacre[text]'" in err and not (letters / "home").exists(), err


def test_candidates_that_were_changed_are_refused(letters: Path) -> None:
    run = start(EmbedConfig.build(settings(letters), letters / "config.yaml"))
    swapped = {"documents": letters / "public.parquet", "candidates": letters / "letters.parquet"}
    other = start(EmbedConfig.build(settings(letters, **swapped), letters / "config.yaml"))
    shutil.copy(other.control / each_document.CANDIDATES, run.control / each_document.CANDIDATES)
    with pytest.raises(ArtifactError, match="not those that its plan names"):
        carry_out(run, prefect=False)
    assert charges(letters / "home") == []


def test_the_help_offers_no_setting_that_changes_nothing() -> None:
    for command in ("embed-documents", "plan-documents"):
        said = run_cli(command, "--help")[1]
        assert "--target-epsilon" in said and "--signing-key" in said
        assert not [name for name in ("--seed", "--threads", "--dask", "--device", "--internal-report") if name in said]


def test_the_plan_says_what_would_be_charged_and_charges_nothing(letters: Path) -> None:
    words = ["plan-documents", *embed_words(letters)[1:]]
    code, out, err = run_cli(*words)
    assert code == 0 and not (letters / "home").exists(), err
    for said in ("replaced by another (replace_one)", "epsilon=10.0, delta=0", "each document", "WEAK FOR"):
        assert said in out, out


def test_embeddings_of_sentences_that_are_given_need_no_encoder(letters: Path) -> None:
    rng = np.random.default_rng(0)
    for name, number in (("letters", 20), ("public", 50)):
        lists = [rng.normal(size=(12, 8)).tolist() for _ in range(number)]
        column = pa.array(lists, pa.list_(pa.list_(pa.float32())))
        pq.write_table(
            pa.table({"id": [str(n) for n in range(number)], "vectors": column}), letters / f"{name}.parquet"
        )
    code, _, err = run_cli(*embed_words(letters, encoder=None, embedding="vectors", dim=9))
    assert code == 1 and "column vectors: must hold vectors of 9 numbers" in err, err
    code, _, err = run_cli(*embed_words(letters, encoder=None, embedding="vectors", dim=8))
    assert code == 0 and not verify_hand_off(letters / "out").faults, err


def test_from_python_frames_become_a_result(letters: Path) -> None:
    documents, public = (pq.read_table(letters / f"{name}.parquet") for name in ("letters", "public"))
    recipe = yaml.safe_load((letters / "config.yaml").read_text())["model"]["recipe"]
    asked = {"method": "deep-candidate", "recipe": recipe, "home": letters / "home"}
    columns = {"name": "letters", "encoder": "hashed", "dim": 32}
    made = nacre.embed_documents(documents.to_pandas(), public, epsilon=10, columns=columns, **asked)
    assert made.spent == (10, 0) and len(made.table) == 40 and "40 embeddings" in repr(made)
    assert made.verify().cautions and "WEAK" in made.report.html
    assert not list((letters / "home" / "sensitive").glob("*/given.parquet"))
    contract = contract_file(letters).read_text()
    with pytest.raises(Unsuitable, match="also one of the documents"):
        nacre.embed_documents(public, public, epsilon=1, contract=contract, **{**asked, "home": letters / "other"})
    with refused(BudgetExhausted, account="letters"):
        nacre.embed_documents(documents, public, epsilon=10, contract=contract, **asked)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"users": "author"}, "columns.users"),  # a user whose name is mistyped would not be protected
        ({"target_epsilon": 99.0}, "columns.target_epsilon"),
        ({"home": "elsewhere"}, "columns.home"),
    ],
)
def test_from_python_a_contract_says_nothing_that_is_not_of_a_contract(
    letters: Path, columns: dict[str, object], said: str
) -> None:
    own = {"name": "letters", "encoder": "hashed", "dim": 32, **columns}
    with refused(InvalidArgument, name=said):
        nacre.embed_documents(
            letters / "letters.parquet", letters / "public.parquet", epsilon=1, columns=own, home=letters / "home"
        )
    assert not (letters / "home").exists()


def test_a_file_name_in_another_script_needs_a_name_for_the_data_set(letters: Path) -> None:
    (letters / "letters.parquet").rename(letters / "письма.parquet")
    code, _, err = run_cli(*embed_words(letters, documents=letters / "письма.parquet"))
    assert code == 1 and "name the data set with `name`" in err and not (letters / "home" / "ledger.sqlite").exists()


@pytest.mark.nightly  # the deployed flow has the same stages
def test_under_prefect_the_run_is_one_flow_run_of_four_stages(letters: Path) -> None:
    words = [word for word in embed_words(letters) if word != "--no-prefect"]
    assert run_cli(*words)[0] == 0
    with sqlite3.connect(letters / "home" / "prefect" / "prefect.db") as database:
        flows = database.execute("select flow.name, state_type from flow_run join flow on flow_id = flow.id").fetchall()
        tasks = {name for (name,) in database.execute("select name from task_run")}
    assert flows == [("embed-documents", "COMPLETED")]
    assert {name.rsplit("-", 1)[0] for name in tasks} == {"ingest", "sanitize", "validate", "publish"}


def test_the_deployed_flow_embeds_and_validates_a_document_set(letters: Path, prefect_api, monkeypatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_api.url)
    monkeypatch.setenv("NACRE_HOME", str(letters / "home"))
    from flows.documents import embed_document_set
    from flows.validate import validate_run

    opened = ("--schema", contract_file(letters), "--epsilon", 10, "--delta", 0, "--home", letters / "home")
    assert run_cli("ledger", "open", "letters", *opened)[0] == 0
    config = EmbedConfig.build({**settings(letters), "runtime": {}}, letters / "config.yaml")
    with prefect_server(letters / "home"):
        run = embed_document_set(config)
        validate_run(run)
        monkeypatch.setenv("NACRE_PUBLIC_KEY", str(write_key(letters / "key.pem")[1]))
        with pytest.raises(ArtifactError, match="is not signed"):
            validate_run(run)
    assert only_run(letters).name == run and charges(letters / "home") == ["reserve", "draw", "seal", "commit"]
    facts = {row["what"]: row["value"] for row in json.loads(prefect_api.artifacts("plan-letters")[-1]["data"])}
    assert "WEAK FOR A WHOLE DOCUMENT" in facts["caution"]
    assert "report.html" in prefect_api.artifacts("report-letters")[-1]["data"]
