"""Every file that is read, whole and damaged: a reader for each kind, and ways in which its bytes can be wrong."""

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch
import yaml
from openpyxl import Workbook
from PIL import Image
from safetensors.torch import save

from dpmodels.audit.made import pictures
from dpmodels.authoring.column import drafted
from dpmodels.authoring.draft import draft
from dpmodels.authoring.lint import parse
from dpmodels.authoring.source import read_source
from dpmodels.codec.encode import Codec
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.contract.federation import Client, Federation
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import NacreError
from dpmodels.gate.expectations import Gate
from dpmodels.gate.made_files import read_batches
from dpmodels.generators.checkpoint import load_state
from dpmodels.generators.load import load_generator
from dpmodels.generators.mixture import MixtureModel
from dpmodels.hand_off.manifest import CARD, MANIFEST, parse_manifest
from dpmodels.hand_off.signature import SIGNATURE
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.keys import private_key, public_key
from dpmodels.methods.federations.classifier import FederatedClassifier
from dpmodels.methods.federations.public_part import ExtractorSpec, PublicPart
from dpmodels.methods.federations.records import RecordsSpec, load_examples
from dpmodels.reading.load import load_parts
from dpmodels.releases.release import read_release
from dpmodels.releases.state import STATE_FORMAT, DrawState
from dpmodels.text.candidates import read_candidates
from dpmodels.text.reading import load_documents
from flows.config import SynthesizeConfig
from tests.hand_off.make_golden import GOLDEN
from tests.kit.every_kind import EVERY_KIND
from tests.kit.expectations import WRITTEN as DOCUMENTS
from tests.kit.letters import make_letters
from tests.kit.support import SCHEMA_TEXT, make_schema, make_table, write_key
from tests.kit.wards import CLASSES, INPUTS, make_ward
from tests.releases import make_golden, make_golden_documents

SECRET = "Quillfeather"
"""A private value that no message may say."""
CARDED = GOLDEN / "FORMAT-5" / "card"


@dataclass(frozen=True)
class Reader:
    """One kind of file: its name, content that is whole, and what reads it."""

    name: str
    whole: bytes
    read: Callable[[Path], object]
    private: bool = False


def mailed() -> Schema:
    """Return the clinic's schema with a column of text in which the secret is."""
    columns = {**make_schema().model_dump()["columns"], "name": {"type": "categorical", "values": [SECRET, "Smith"]}}
    return make_schema(columns=columns)


def table() -> pa.Table:
    """Return the clinic's rows, each with the secret."""
    made = make_table(30)
    return made.append_column("name", pa.array([SECRET] * 30))


def stored(made: pa.Table) -> bytes:
    """Return a table as an uncompressed Parquet file, so that what is damaged is data and not its packing alone."""
    sink = io.BytesIO()
    pq.write_table(made, sink, compression="none", row_group_size=20)
    return sink.getvalue()


def written(made: pa.Table) -> bytes:
    """Return a table as a CSV file."""
    sink = io.BytesIO()
    pyarrow.csv.write_csv(made, sink)
    return sink.getvalue()


def on_a_sheet(text: str) -> bytes:
    """Return the lines of a CSV file as a workbook."""
    sink, book = io.BytesIO(), Workbook()
    for row in csv.reader(io.StringIO(text), delimiter=";"):
        book.active.append(row)
    book.save(sink)
    return sink.getvalue()


def lines(made: pa.Table) -> bytes:
    """Return a table as JSON lines."""
    return "\n".join(map(json.dumps, made.to_pylist())).encode()


def fed(made: pa.Table) -> bytes:
    """Return a table as an uncompressed Arrow file."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made, 20)
    return sink.getvalue()


def rows_of(schema: Schema) -> Callable[[Path], object]:
    """Return what reads and encodes all rows of a file, as ingest does."""

    def read(path: Path) -> None:
        codec = Codec(schema)
        gate = Gate(schema, raw=True)
        for part in load_parts(path, schema, 16):
            for batch in part.reveal():
                gate.check(batch)
                codec.encode(batch)

    return read


def picture_folder(path: Path) -> None:
    """Read a folder of PNG files of which this is one."""
    (path.parent / "pictures" / "bar").mkdir(parents=True)
    shutil.copy(path, path.parent / "pictures" / "bar" / "one.png")
    rows_of(pictures.make_schema())(path.parent / "pictures")


def png() -> bytes:
    """Return one gray picture."""
    sink = io.BytesIO()
    Image.fromarray(pictures.make_pictures(1)[0][0]).save(sink, "PNG")
    return sink.getvalue()


def arrays() -> bytes:
    """Return pictures as an .npz file."""
    sink = io.BytesIO()
    pixels, kinds = pictures.make_pictures(6)
    np.savez(sink, picture=pixels, kind=kinds)
    return sink.getvalue()


LETTERS = Documents(name="letters", text="text", encoder=Encoder(name="hashed", dim=8))
GIVEN = Documents(name="letters", embedding="vectors", encoder=Encoder(name="given", dim=2))
RECORDS = RecordsSpec(inputs=INPUTS)


def wards() -> Federation:
    """Return the contract of a federation whose records are those of a ward."""
    public = {"features": 8, "extractor": "0" * 64, "negatives": 9, "auxiliary": "0" * 64, "classes": CLASSES}
    return Federation(name="wards.north", clients=(Client(name="north"), Client(name="south")), **public)


def embedded() -> pa.Table:
    """Return documents that come with embeddings of their sentences."""
    kind = pa.list_(pa.list_(pa.float32()))
    return pa.table({"id": ["a", "b"], "vectors": pa.array([[[0.1, 0.2], [0.3, 0.4]], [[1.0, 0.0]]], kind)})


def documents_of(contract: Documents) -> Callable[[Path], object]:
    """Return what reads all documents of a file."""
    return lambda path: list(load_documents(path, contract, 4).reveal())


def handed(name: str) -> Callable[[Path], object]:
    """Return what verifies a hand-off one of whose files this is."""

    def read(path: Path) -> object:
        folder = path.parent / "hand-off"
        shutil.copytree(CARDED, folder)
        shutil.copy(path, folder / name)
        return verify_hand_off(folder)

    return read


def checked(path: Path) -> object:
    """Hold a table that was made against its schema."""
    gate = Gate(make_schema(), raw=False)
    return [gate.check(batch) for batch in read_batches(path, 16, make_schema())]


def tensors(**metadata: str) -> bytes:
    """Return a safetensors file."""
    return save({"model/weight": torch.ones(2, 3), "model/bias": torch.zeros(2)}, metadata=metadata)


def drawn(path: Path) -> object:
    """Read the state of an unfinished draw."""
    shutil.copy(path, path.parent / "draw-c.safetensors")
    state = DrawState(path.parent, "c", "p")
    return state.vectors(), state.training(0)


def documented(path: Path) -> object:
    """Draft columns of every type from a public document."""
    tables = read_source(path).tables.values()
    types = (None, pa.int64(), pa.float32(), pa.string(), pa.date32(), pa.timestamp("us"))
    return [
        yaml.safe_load(yaml.safe_dump(dict(drafted(name, found, facts, accept).keys)))
        for columns in tables
        for name, facts in columns.items()
        for found in types
        for accept in (False, True)
    ]


def sampled(path: Path) -> object:
    """Draft columns from a public sample."""
    tables = read_source(path, sample=True).tables.values()
    return [drafted(name, None, facts) for columns in tables for name, facts in columns.items()]


def config(path: Path) -> object:
    """Read a configuration."""
    return SynthesizeConfig.build({}, path)


def contract(path: Path) -> object:
    """Read a contract, which never fails: it has faults."""
    return parse(path.read_bytes().decode("utf-8", "replace"))


def state(path: Path) -> object:
    """Read a checkpoint of a small network."""
    return load_state(path, {"model": torch.nn.Linear(3, 2)}, expect={"settings": "a"})


@cache
def readers() -> Mapping[str, Reader]:
    """Return every reader by its name."""
    return {one.name: one for one in (*_of_tables(), *_of_artifacts(), *_of_text())}


def _of_tables() -> Iterator[Reader]:
    yield Reader("rows.parquet", stored(table()), rows_of(mailed()), private=True)
    yield Reader("rows.csv", written(table()), rows_of(mailed()), private=True)
    yield Reader("rows.tsv", written(table()).replace(b'"', b"").replace(b",", b"\t"), rows_of(mailed()), private=True)
    yield Reader("rows.csv.gz", gzip.compress(written(table())), rows_of(mailed()), private=True)
    yield Reader("rows.jsonl", lines(table()), rows_of(mailed()), private=True)
    yield Reader("rows.arrow", fed(table()), rows_of(mailed()), private=True)
    yield Reader("draft.jsonl", lines(table()), draft)
    yield Reader("draft.arrow", fed(table()), draft)
    yield Reader("pictures.npz", arrays(), rows_of(pictures.make_schema()), private=True)
    yield Reader("picture.png", png(), picture_folder, private=True)
    yield Reader("draft.csv", written(table()), draft)
    yield Reader("draft.parquet", stored(table()), draft)
    letters = make_letters(6, 1)
    letters = letters.set_column(1, "text", pa.array([f"Dear {SECRET}. Yours."] * 6))
    yield Reader("letters.parquet", stored(letters), documents_of(LETTERS), private=True)
    yield Reader("letters.csv", written(letters), documents_of(LETTERS), private=True)
    yield Reader("letters.jsonl", lines(letters), documents_of(LETTERS), private=True)
    yield Reader("letters.arrow", fed(letters), documents_of(LETTERS), private=True)
    yield Reader("vectors.parquet", stored(embedded()), documents_of(GIVEN), private=True)
    yield Reader("vectors.jsonl", lines(embedded()), documents_of(GIVEN), private=True)
    for ending, write in {"parquet": stored, "csv": written, "jsonl": lines, "arrow": fed}.items():
        yield Reader(
            f"ward.{ending}", write(make_ward(20, 1)), lambda path: load_examples(path, RECORDS, wards()), True
        )
    yield Reader("made.parquet", stored(make_table(30)), checked)


def _of_artifacts() -> Iterator[Reader]:
    for name in ("nacre", "privbayes", "p3gm", "report"):
        whole = (make_golden.GOLDEN / "FORMAT-2" / f"{name}.parquet").read_bytes()
        yield Reader(f"{name}-release.parquet", whole, read_release)
    old = (make_golden.GOLDEN / "FORMAT-1" / "privbayes.parquet").read_bytes()
    yield Reader("old-release.parquet", old, read_release)
    each = (make_golden_documents.GOLDEN / "deep-candidate.parquet").read_bytes()
    yield Reader("documents-release.parquet", each, read_release)
    public = (make_golden_documents.GOLDEN / "public.safetensors").read_bytes()
    yield Reader("candidates.safetensors", public, read_candidates)
    made = (GOLDEN / "FORMAT-4" / "federation" / "classifier.safetensors").read_bytes()
    yield Reader("classifier.safetensors", made, FederatedClassifier.load)
    yield Reader("public.safetensors", public_part(), lambda path: PublicPart.of_bytes(path.read_bytes()))
    yield Reader("generator.safetensors", generator(), load_generator)
    yield Reader("checkpoint.safetensors", tensors(settings="a"), state)
    yield Reader("draw.safetensors", tensors(charge="c", plan="p", format=STATE_FORMAT), drawn)


def _of_text() -> Iterator[Reader]:
    for number, text in enumerate((EVERY_KIND, SCHEMA_TEXT)):
        yield Reader(f"schema-{number}.yaml", text.encode(), contract)
    yield Reader("documents.yaml", LETTERS.to_yaml().encode(), contract)
    yield Reader("federation.yaml", wards().to_yaml().encode(), contract)
    words = "data: a.csv\nschema: b.yaml\nout: out\nprivacy: {target_epsilon: 1.0, delta: 1.0e-5}\nrows: 7\n"
    for name, written_down in DOCUMENTS.items():
        yield Reader(f"public-{name}", written_down.encode(), documented)
    yield Reader("public-dictionary.xlsx", on_a_sheet(DOCUMENTS["dictionary.csv"]), documented)
    yield Reader("sample.csv", written(table()), sampled)
    yield Reader("sample.parquet", stored(table()), sampled)
    yield Reader("config.yaml", words.encode(), config)
    for name in ("card", "card-federation"):
        whole = (GOLDEN / "FORMAT-5" / name / MANIFEST).read_bytes()
        yield Reader(f"manifest-{name}.json", whole, lambda path: parse_manifest(path.read_bytes()))
    for name in (MANIFEST, CARD, "report.json", "schema.yaml"):
        yield Reader(f"handed-{name}", (CARDED / name).read_bytes(), handed(name))
    signed = (make_golden.GOLDEN / "FORMAT-2" / "hand-off" / SIGNATURE).read_bytes()
    yield Reader("handed-signature", signed, handed(SIGNATURE))
    with TemporaryDirectory() as folder:
        private, public = write_key(Path(folder) / "own.pem")
        yield Reader("private.pem", private.read_bytes(), private_key)
        yield Reader("public.pem", public.read_bytes(), public_key)


def public_part() -> bytes:
    """Return the public part of a federation, with a network that was not trained."""
    auxiliary = torch.tensor(np.random.default_rng(0).normal(size=(64, len(INPUTS))), dtype=torch.float32)
    spec = ExtractorSpec(width=4, features=4, pretraining=None, negatives=8)
    return PublicPart.make(auxiliary, RECORDS, 3, spec).to_bytes()


def generator() -> bytes:
    """Return the file of a small generator."""
    schema = make_schema()
    cells = Partition.fine(schema, 8, conditional=True)
    probabilities, detail = torch.full((2, 3, int(cells.offsets[-1])), 0.1), [np.ones((2, s)) for s in cells.sizes]
    model = MixtureModel(schema, 8, cells, probabilities, detail, torch.ones(2), 64 * "0")
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "it")
        return (Path(folder) / "it").read_bytes()


def outcome(reader: Reader, content: bytes) -> str:
    """Read content in a folder of its own: return the message of the refusal, or nothing where it was read.

    Any other error than a refusal passes through; that is what is looked for.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"it{''.join(Path(reader.name).suffixes)}"
        path.write_bytes(content)
        path.chmod(0o600)
        try:
            reader.read(path)
        except NacreError as refusal:
            return str(refusal)
    return ""
