"""The runs of an audit: made tables, documents and federations, each with a neighbor and other data, to a hand-off."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.audit.data import data_of
from dpmodels.audit.made import clients, clinic, firm, letters, mails
from dpmodels.codec.embedded import codec_of
from dpmodels.codec.flat import split
from dpmodels.codec.stacked import TABLE
from dpmodels.methods.quick import QUICK
from flows import synthesize
from flows.config import Charged, EmbedConfig, FederateConfig, SynthesizeConfig
from tasks.run.store import Run

ROWS, LETTERS, SENTENCES = 150, 8, 5
CANARY = 918_273_645
"""A number in the neighbor's record, where its table can have one: it may be found in no file and no word."""
HEADS = {"records": ROWS}
MEASUREMENT: dict[str, dict[str, Any]] = {
    "federated-both": {"heads": HEADS},
    "federated-heads": HEADS,
    "federated-moments": {},
}
"""The methods of a federation that keep a promise in a whole run, with their settings."""
NAME, GIVEN, PUBLIC = "the-run", "given", "public.parquet"
"""The name of a run, the folder with what it is given, and the public file in it."""


def tables_of(method: str) -> list[pa.Table]:
    """Return a made table, one that has nothing to do with it, and the first with an extreme record more.

    Of letters the neighbor has another sentence, and the other ones have other sentences: ids and numbers are public.
    """
    if method in MEASUREMENT:
        table, other = clients.make_table(ROWS), clients.make_table(2 * ROWS, seed=1)
        extreme = {**{name: [float(CANARY)] for name in clients.INPUTS}, "label": ["class 2"]}
    elif method not in QUICK:
        passages, others = (letters.make_passages(LETTERS, seed, SENTENCES) for seed in (0, 2))
        moved = letters.with_sentence(passages, 2, -passages.vectors[2])
        return [letters.make_table(each) for each in (passages, others, moved)]
    else:
        data = data_of(method)
        table, other = data.make_table(ROWS), data.make_table(2 * ROWS, seed=1)
        rows = firm.EXTREMES[TABLE].index(0, 1) if data is firm else 1  # a unit with all of its rows
        extreme = {name: values[:rows] for name, values in data.EXTREMES.items()}
        if data is mails:
            extreme = {"id": [CANARY], "vector": extreme["embedding"], "kind": extreme["kind"]}
        elif data is clinic:
            extreme["patient"] = [CANARY]
    neighbor = pa.concat_tables([table, pa.table(extreme, schema=table.schema)])
    if data_of(method) is firm:  # whose keys are made anew, so that no two units share one
        codec = codec_of(firm.make_schema())
        neighbor = codec.decode(codec.encode(neighbor))
    return [table, other, neighbor]


def carried_out(folder: Path, table: pa.Table, method: str, report_epsilon: float | None) -> Run:
    """Take a table to a hand-off below a folder."""
    (folder / GIVEN).mkdir()
    _write(folder / GIVEN / "data", table, method)
    if method in MEASUREMENT:
        config: Charged = federation(folder, method)
    else:
        config = of_rows(folder, method, report_epsilon) if method in QUICK else of_letters(folder, method)
    return synthesize.carry_out(synthesize.start(config, NAME), prefect=False)


def _write(place: Path, table: pa.Table, method: str) -> None:
    """Write a table as one file, or the tables of a tree into a folder."""
    contract = data_of(method).make_schema() if method in QUICK else None
    if contract is None or contract.kind != "tree":
        pq.write_table(table, place.with_suffix(".parquet"))
        return
    place.mkdir()
    for name, rows in split(contract, table).items():
        pq.write_table(rows, place / f"{name}.parquet")


def _data(folder: Path) -> Path:
    """Return where the data lie."""
    place = folder / GIVEN / "data"
    return place if place.exists() else place.with_suffix(".parquet")


def of_rows(folder: Path, method: str, report_epsilon: float | None) -> SynthesizeConfig:
    """Return the configuration of a run of the registry."""
    quick = QUICK[method]
    schema = written(folder, "schema.yaml", data_of(method).make_schema().to_yaml())
    model = {"method": method, "measurement": quick.measurement, "training": quick.training}
    privacy = {"target_epsilon": 1.0, "delta": 1e-5, "report_epsilon": report_epsilon}
    settings = {"data": _data(folder), "schema": schema, "privacy": privacy, "model": model}
    return SynthesizeConfig.build({**settings, **common(folder)})


def of_letters(folder: Path, method: str) -> EmbedConfig:
    """Return the configuration of a run that embeds letters one by one."""
    pq.write_table(letters.make_table(letters.make_passages(30, seed=1)), folder / GIVEN / PUBLIC)
    model = {"method": method, "recipe": letters.SMALL.model_dump()}
    settings = {
        "documents": folder / GIVEN / "data.parquet",
        "candidates": folder / GIVEN / PUBLIC,
        "contract": written(folder, "contract.yaml", letters.make_contract().to_yaml()),
        "privacy": {"target_epsilon": 3.0},
        "model": model,
    }
    return EmbedConfig.build({**settings, **common(folder)})


def federation(folder: Path, method: str) -> FederateConfig:
    """Return the configuration of a federation of two clients, of whom one has the data."""
    pq.write_table(clients.make_table(ROWS, seed=8), folder / GIVEN / "south.parquet")
    pq.write_table(clients.make_table(100, seed=9).drop_columns("label"), folder / GIVEN / PUBLIC)
    extractor = {"features": clients.SIZE, "width": 4, "pretraining": {"steps": 2, "batch_size": 32}}
    settings = {
        "name": "clinics",
        "clients": {"north": folder / GIVEN / "data.parquet", "south": folder / GIVEN / "south.parquet"},
        "public": folder / GIVEN / PUBLIC,
        "classes": [f"class {number}" for number in range(clients.CLASSES)],
        "records": {"inputs": list(clients.INPUTS)},
        "privacy": {"target_epsilon": 3.0, "delta": 1e-5},
        "model": {"method": method, "extractor": extractor, "measurement": MEASUREMENT[method]},
        "round": {"workers": "here"},
    }
    return FederateConfig.build({**settings, **common(folder)})


def common(folder: Path) -> dict[str, object]:
    """Return the settings of every run."""
    return {"out": folder / "out", "runtime": {"home": folder / "home", "prefect": False}}


def written(folder: Path, name: str, text: str) -> Path:
    """Write a public file."""
    (folder / GIVEN / name).write_text(text, encoding="utf-8")
    return folder / GIVEN / name
