"""A headless Chromium, and the pages it is shown. Skipped where there is no browser."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmodels.audit.made import colors, pictures
from dpmodels.codec.encode import Codec
from dpmodels.comparison.compare import comparison_of, render_comparison, score_lines
from dpmodels.comparison.frame import Rows
from dpmodels.comparison.report import Options, evaluate_table, load_real
from dpmodels.contract.schema import Schema
from dpmodels.gate.expectations import Gate
from dpmodels.hand_off.manifest import CARD
from dpmodels.ledger.declared import Declaration
from dpmodels.methods.federations.heads import HeadsMeasurement, ScoresMeasurement
from dpmodels.methods.federations.heads_and_moments import BothMeasurement, HeadsAndMoments
from dpmodels.methods.federations.scores import FederatedScores
from dpmodels.methods.images.image_moments import ImageMeasurement, NacreImages
from dpmodels.methods.images.photo_moments import NacrePhotos, PhotoMeasurement
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.pages.audit import render_audit
from dpmodels.pages.card import render_card, render_sheet, render_statement
from dpmodels.pages.checks import render_checks
from dpmodels.pages.internal import render_internal
from dpmodels.pages.report import render
from dpmodels.pages.rounds import render_rounds
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.plan import Plan
from dpmodels.releases.system import System
from dpmodels.report.federated import Party, Rated, summarise_federation, summarise_rounds
from dpmodels.report.verdicts import judged
from tests.hand_off.make_golden import GOLDEN
from tests.kit import population
from tests.kit.audits import an_audit
from tests.kit.browsers import REBOUND, Browser
from tests.kit.every_kind import EVERY_KIND, make
from tests.kit.parties import make_contract, make_examples, make_features
from tests.kit.reports import facts_of
from tests.kit.support import make_records

FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update "
    "disable-sync disable-dev-shm-usage hide-scrollbars"
)
PATIENCE = 180


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and chromedriver):
        pytest.skip("there is no chromium with its chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    rebound = f"host-resolver-rules=MAP {REBOUND} 127.0.0.1"
    for flag in [*FLAGS.split(), rebound, f"user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    driver.set_page_load_timeout(PATIENCE)
    driver.set_script_timeout(PATIENCE)
    yield Browser(driver)
    driver.quit()


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core, which is fetched beside the tests and never kept in the repository."""
    path = os.environ.get("AXE_CORE")
    if not path:
        pytest.skip("AXE_CORE does not name an axe.min.js")
    return Path(path).read_text(encoding="utf-8")


def wide_table(columns: int) -> dict[str, Any]:
    """Return the report of a table of many columns, all pairs of which were counted."""
    facts = facts_of(Nacre(NacreMeasurement(fine_cells=32)), make_records(3000), make_records(3000, seed=1))
    named = [{**facts["columns"][n % 5], "name": f"a column of number {n}"} for n in range(columns)]
    distances = [[i, j, 0.01, (i * j % 50) / 100] for i in range(columns) for j in range(i + 1, columns)]
    return judged({**facts, "columns": named, "pairs": {**facts["pairs"], "distances": distances}})


def every_kind() -> dict:
    """Return the report, with scores, of a table with a column of every kind, some of awkward names."""
    text = EVERY_KIND.replace("ratio:", "'a name that goes on & on <for> longer than any card is wide':")
    schema = make(text)
    codec, rng = Codec(schema), np.random.default_rng(0)
    cells = np.stack([rng.integers(0, size, 800) for size in codec.cell_sizes], axis=1).astype(np.int32)
    records = codec.from_cells(cells, rng)
    return facts_of(Nacre(NacreMeasurement(fine_cells=64)), records, records, schema, scores=True)


@pytest.fixture(scope="session")
def pages(tmp_path_factory) -> dict[str, Path]:
    """Write one page of every sort."""
    folder = tmp_path_factory.mktemp("pages")
    nacre = Nacre(NacreMeasurement(fine_cells=32))
    images = NacreImages(ImageMeasurement(coefficients=12, directions=5))
    shapes: Schema = pictures.make_schema()
    photos, sky = NacrePhotos(PhotoMeasurement(coefficients=12)), colors.make_schema()
    written = {
        "table": render(facts_of(nacre, make_records(3000), make_records(3000, seed=1))),
        "every kind": render(
            every_kind(), unchecked(json.loads((GOLDEN / "LAYOUT-26" / "laid-out" / CARD).read_text()), "")
        ),
        "images": render(facts_of(images, pictures.make_records(300), pictures.make_records(300, seed=1), shapes)),
        "images in color": render(facts_of(photos, colors.make_records(300), colors.make_records(300, 1), sky)),
        "checks": render_checks(_gate(raw=False, broken=False)),
        "audit": render_audit([an_audit().model_dump(mode="json")]),
        "raw checks": render_checks(_gate(raw=True, broken=True)),
        "wide": render(wide_table(60)),
        "documents": render(json.loads((GOLDEN / "FORMAT-7" / "laid-out-embedded" / "report.json").read_text())),
        "federation": render(federation(HeadsAndMoments(BothMeasurement(heads=HeadsMeasurement(records=100))))),
        "rounds": render_rounds(rounds_of(FederatedScores(ScoresMeasurement(records=100)))),
        **inside(),
        **cards(),
    }
    for name, text in written.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in written}


def cards() -> dict[str, str]:
    """Return the pages of model cards, with as much on them as there can be."""
    long = "a word or two " * 21
    table, documents, clients = (
        json.loads((GOLDEN / "FORMAT-5" / name / CARD).read_text())
        for name in ("card", "card-embedded", "card-federation")
    )
    for one in (table, documents, clients):
        one["given"] = dict.fromkeys(Declaration.model_fields, long[:80])
        one["quality"]["weakest"] = dict.fromkeys((f"column {number} of a long name" for number in range(5)), 0.123)
        one["quality"]["warnings"] = [f"a long name of column {number}: {long}" for number in range(9)]
        above = {"cap": "5", "delta": "1e-5", "spent": "3"}
        one["above"] = [{"account": f"above-{number}", **above} for number in range(3)]
    signed = {"officer": "The Data-Protection Officer of the Hospitals", "public_key": "A" * 43 + "="}
    clients["accounts"] = [{**clients["accounts"][0], "approved": signed} for _ in range(9)]
    clients["hand_off"]["clients"] *= 9
    why = "its records are not what the contract says of them"
    clients["hand_off"]["dropped"] = {f"client-{number}": why for number in range(9)}
    return {
        "card": render_card(table),
        "statement": render_statement(table),
        "data sheet": render_sheet(wide(table)),
        "data sheet of documents": render_sheet(documents),
        "statement of documents": render_statement(documents),
        "statement of long words": render_statement(unchecked(table, long)),
        "statement of clients": render_statement(clients),
        "statement of central trust": render_statement(
            {**clients, "hand_off": {**clients["hand_off"], "trust": "central"}}
        ),
    }


def unchecked(facts: dict[str, Any], long: str) -> dict[str, Any]:
    """Return the card of a table of which everything is declared at length, and whose bounds are from the data."""
    content = {
        **facts["content"],
        "sources": ["codebook of the survey, page 4", "the data itself", "minimum of our table", "law"],
    }
    return {**facts, "content": content, "given": dict.fromkeys(Declaration.model_fields, long)}


def wide(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the card of a table of 600 columns."""
    kinds = ("integer", "categorical", "number", "boolean", "datetime", "identifier")
    columns = [{"name": f"a column of number {number}", "type": kinds[number % 6]} for number in range(600)]
    return {**facts, "content": {**facts["content"], "columns": columns, "left_out": ["name", "address"]}}


def federation(system: System) -> dict[str, Any]:
    """Return the facts of a federation of which one client was dropped."""
    rng, parties = np.random.default_rng(1), parties_of(system)
    rated = [Rated(name, rng.random(200) < share) for name, share in (("one classifier", 0.8), ("another", 0.7))]
    said = rng.dirichlet(np.ones(4), 30)
    hashes = dict.fromkeys(("plan_sha256", "schema_sha256", "release_sha256", "ledger_charge"), "0" * 64)
    return summarise_federation(parties, hashes, said, rated)


def rounds_of(system: System) -> dict[str, Any]:
    """Return the facts of nine rounds, from some of which a client was dropped."""
    took = [
        {"number": n, "drawn": ["a", "c"], "dropped": {"c": "it was late"} if n % 3 == 0 else {}, "accuracy": n / 10}
        for n in range(1, 10)
    ]
    return summarise_rounds(parties_of(system), took)


def parties_of(system: System) -> list[Party]:
    """Return three clients, one of which was dropped."""
    rng, extract = np.random.default_rng(0), make_features()
    about = make_contract(extract, extract.whole(make_examples(30).inputs), dict.fromkeys("abc"))
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5)
    certain = dict(zip("abc", rng.uniform(0.2, 0.9, (3, 30)), strict=True))
    return [
        Party(
            name,
            f"corners.{name}",
            Plan(lines=(system.plan(about.of(name), budget),)),
            "it was late" * (name == "b"),
            certain[name],
        )
        for name in "abc"
    ]


def inside() -> dict[str, str]:
    """Return the pages that stay in the sensitive zone: with everything on them, and with metrics that failed."""
    real, held, made = (population.draw(500, seed) for seed in range(3))
    whole = population.judge(population.purged(made, real), real, held)
    whole["metrics"]["pMSE"] = {"status": "failed", "reason": "ValueError: <b>planted</b>", "seconds": 0.0}
    shapes = [Rows(pictures.make_schema(), pictures.make_table(60, seed).to_batches()) for seed in range(2)]
    options = Options(workers=1, only=("nearest real images", "copied rows", "marginals", "columns"))
    side = load_real(Sensitive(shapes[0]), None, pictures.make_schema(), options)
    skies = [Rows(colors.make_schema(), colors.make_table(60, seed).to_batches()) for seed in range(2)]
    sky = load_real(Sensitive(skies[0]), None, colors.make_schema(), options)
    tables = {"one tool": whole, "another tool with a long name": population.judge(made, real, held)}
    compared = comparison_of("town", score_lines(tables), tables)
    return {
        "internal": render_internal(whole),
        "internal images": render_internal(evaluate_table(side, shapes[1], options).reveal()),
        "internal images in color": render_internal(evaluate_table(sky, skies[1], options).reveal()),
        "comparison": render_comparison(compared),
    }


def _gate(raw: bool, broken: bool) -> Gate:
    schema = pictures.make_schema()
    gate = Gate(schema, raw=raw)
    table = Codec(schema).decode(pictures.make_records(20))
    gate.check(table.set_column(1, "kind", [["cube"] * 20]) if broken else table)
    return gate
