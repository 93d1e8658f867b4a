"""Every kind of data, as small as it can be, with a private value in it: what the contract suite over kinds runs.

A new kind is one entry of ``KINDS``.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from dpmodels.audit.made import firm, pictures, shop
from tests.kit import drafts, letters, mails, wards
from tests.kit.inputs import FORMATS, TEXT
from tests.kit.support import make_schema, make_table

CANARY = "Zebulon-Quillfeather"
"""A private value: of all that is written, only the data and the sensitive zone may hold it."""

Words = list[object]
Write = Callable[[Path, pa.Table], object]


@dataclass(frozen=True)
class Kind:
    """One kind: how its data, its contract and its configuration are written, and which commands plan and run it.

    Attributes:
        write: writes all that a run needs into an empty folder, the private data by the given format, as a data set of
            the given name; returns the words that follow the command.
        plan: the command that shows what a run would be charged; empty where the run's own does it before the charge.
        product: what is in a hand-off besides its pages and papers; empty where what is made is printed.
        charges: how many charges a run makes.
        formats: names of the formats in which the private data may come.
        queried: whether the private data may be the answer to a query.
    """

    name: str
    write: Callable[[Path, Write, str], Words]
    run: tuple[str, ...] = ("synthesize",)
    plan: tuple[str, ...] = ("plan",)
    product: str = "synthetic"
    charges: int = 1
    formats: Set[str] = frozenset(FORMATS)
    queried: bool = False

    def words(self, folder: Path, form: str | Write = "parquet", name: str = "kin") -> Words:
        """Write all that a run needs into a folder; return the words after the command, but for home and hand-off."""
        folder.mkdir(parents=True, exist_ok=True)
        return self.write(folder, FORMATS[form] if isinstance(form, str) else form, name)

    @property
    def hands_over(self) -> bool:
        return bool(self.product)

    def __str__(self) -> str:
        return self.name


BUDGET: Words = ["--epsilon", 2, "--delta", 1e-5]
PEARL = {
    "method": "pearl",
    "measurement": {"frequencies": {"count": 16}},
    "training": {"steps": 3, "batch_size": 16, "frequencies_per_step": 8, "network": {"hidden_dim": 8}},
}


def table(folder: Path, form: Write, name: str) -> Words:
    (folder / "clinic.yaml").write_text(make_schema(name=name, unit={"user": "patient", "max_rows": 2}).to_yaml())
    data = form(folder / "data", make_table(60).set_column(0, "patient", canaries(60)))
    return [data, "--schema", folder / "clinic.yaml", *configured(folder, PEARL), *BUDGET]


def canaries(rows: int) -> pa.Array:
    return pa.array([f"{CANARY}-{row}" for row in range(rows)])


def users(folder: Path, form: Write, name: str) -> Words:
    """Write customers and their orders; a customer is called by the private value."""
    customers, orders = shop.make_tables(40)
    for table, path in ((customers, "customers"), (orders, "orders")):
        names = pa.array([f"{CANARY}-{customer}" for customer in table["customer"].to_pylist()])
        table = table.set_column(table.schema.get_field_index("customer"), "customer", names)
        given = form(folder / path, table)
        if path == "customers":
            parents = given
    (folder / "shop.yaml").write_text(shop.make_schema(name=name).to_yaml())
    quick = {"measurement": {"fine_cells": 16}, "training": {"components": 16, "directions": 2, "steps": 5}}
    return [given, "--parents", parents, "--schema", folder / "shop.yaml", *configured(folder, quick), *BUDGET]


def tree(folder: Path, form: Write, name: str) -> Words:
    """Write a firm's customers and what belongs to them, at a place each; a customer is called by the private value."""
    place = ""
    for table, rows in firm.make_tables(40).items():
        if "customer" in rows.column_names:
            names = pa.array([f"{CANARY}-{customer}" for customer in rows["customer"].to_pylist()])
            rows = rows.set_column(rows.schema.get_field_index("customer"), "customer", names)
        place = str(form(folder / table, rows))
    before, _, ending = place.rpartition("item")
    (folder / "firm.yaml").write_text(firm.make_schema(name=name).to_yaml())
    quick = {"measurement": {"fine_cells": 16}, "training": {"components": 16, "directions": 2, "steps": 5}}
    return [f"{before}{{table}}{ending}", "--schema", folder / "firm.yaml", *configured(folder, quick), *BUDGET]


def configured(folder: Path, model: object) -> Words:
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model, "out": str(folder / "out")}))
    return ["--config", folder / "config.yaml"]


def images(folder: Path, form: Write, name: str) -> Words:
    """Write shapes for the default method of images."""
    quick = {"measurement": {"coefficients": 12, "directions": 5}, "training": {"rounds": 1, "images": 100}}
    return shapes(folder, form, name, quick)


def images_of_pearl(folder: Path, form: Write, name: str) -> Words:
    """Write shapes for a method of tables that takes images too."""
    return shapes(folder, form, name, PEARL)


def shapes(folder: Path, form: Write, name: str, model: object) -> Words:
    columns = {**pictures.make_schema().model_dump()["columns"], "who": {"type": "identifier"}}
    changes = {"name": name, "columns": columns, "unit": {"user": "who", "max_rows": 2}}
    (folder / "shapes.yaml").write_text(pictures.make_schema(**changes).to_yaml())
    rows = pictures.make_table(60).append_column("who", canaries(60))
    return [form(folder / "data", rows), "--schema", folder / "shapes.yaml", *configured(folder, model), *BUDGET]


def documents(folder: Path, form: Write, name: str) -> Words:
    """Write mails that all name one person."""
    rows = mails.mails(60)
    texts = pa.array([f"{CANARY} {text}" for text in rows["body"].to_pylist()])
    data = form(folder / "data", rows.set_column(1, "body", texts))
    (folder / "mails.yaml").write_text(mails.make_contract(name=name).to_yaml())
    return [data, "--schema", folder / "mails.yaml", *configured(folder, {"method": "moments"}), *BUDGET]


def each_document(folder: Path, form: Write, name: str) -> Words:
    """Write letters that all name one person, and public ones."""
    rows = letters.make_letters(30, seed=1)
    texts = pa.array([f"{CANARY} {text}" for text in rows["text"].to_pylist()])
    data = form(folder / "data", rows.set_column(1, "text", texts))
    public = form(folder / "public", letters.make_letters(60, seed=2))
    terms = {"name": name, "protects": "sentence", "text": "text", "encoder": {"name": "hashed", "dim": 16}}
    (folder / "contract.yaml").write_text(yaml.safe_dump(terms))
    recipe = {"candidates": 30, "least_sentences": 2, "clusters": 3, "projections": 5, "hidden": [8, 6]}
    beside: Words = ["--candidates", public, "--contract", folder / "contract.yaml"]
    model = {"method": "deep-candidate", "recipe": recipe}
    return [data, *beside, *configured(folder, model), "--epsilon", 10]


def federation(folder: Path, form: Write, name: str, **model: Any) -> Words:
    """Write the records of three wards, with a column that is none of the federation's."""
    config = wards.write_wards(folder / "wards", number=60, name=name)
    clients = {}
    for number, ward in enumerate(wards.NAMES):
        rows = wards.make_ward(60, number).append_column("who", canaries(60))
        clients[ward] = str(form(folder / ward, rows))
    content = yaml.safe_load(config.read_text()) | {"out": str(folder / "out")}
    del content["runtime"]
    extractor = {"features": 4, "width": 4, "pretraining": None}
    public = wards.make_ward(200, 9).drop_columns("label")
    content["public"] = str(form(folder / "public", public))
    content["round"] |= {"judge": str(form(folder / "judge", wards.make_ward(200, 10)))}
    content |= {"clients": clients, "model": {**content["model"], "extractor": extractor, **model}}
    config.write_text(yaml.safe_dump(content))
    return [config]


def trusting(folder: Path, form: Write, name: str) -> Words:
    return federation(folder, form, name, method="federated-moments", trust="central", measurement={})


def discovery(folder: Path, form: Write, name: str) -> Words:
    """Write a draft that asks for wards, one of which only one row has."""
    draft = folder / "draft.yaml"
    draft.write_text(drafts.make_draft(name=name))
    rows = make_table(400)
    named = pa.array([CANARY, *rows["ward"].to_pylist()[1:]])
    data = form(folder / "data", rows.set_column(rows.schema.get_field_index("ward"), "ward", named))
    return [data, "--schema", draft, "--epsilon", 2, "--delta", 1e-6, "--out", folder / "out"]


KINDS = [
    Kind("table", table, queried=True),
    Kind("users", users),
    Kind("tree", tree),
    Kind("images", images, formats=FORMATS.keys() - TEXT),
    Kind("images of pearl", images_of_pearl, formats=FORMATS.keys() - TEXT),
    Kind("documents", documents, queried=True),
    Kind("each document", each_document, ("embed-documents",), ("plan-documents",), "embeddings", queried=True),
    Kind("federation", federation, ("federate",), ("plan-federation",), "classifier.safetensors", charges=3),
    Kind("central trust", trusting, ("federate",), ("plan-federation",), "classifier.safetensors", charges=3),
    Kind("discovery", discovery, ("schema", "discover"), (), "", queried=True),
]
