"""Make golden releases about single documents: ``python -m tests.releases.make_golden_documents``.

As ``make_golden`` does for the methods of tables: what exists is never made again. The public file lies beside them.
"""

import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dpmodels.methods.documents.deep_candidate import DeepCandidate, DeepCandidateMeasurement
from dpmodels.methods.documents.document_sketch import DocumentSketch, DocumentSketchMeasurement
from dpmodels.methods.documents.each_document import EachDocument
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from dpmodels.text.candidates import Candidates, Sketching, read_candidates
from tests.kit.documents import SMALL, budget_of, embedded, make_contract, make_public, make_texts
from tests.kit.support import desk_in

GOLDEN = Path(__file__).parent / "golden_documents"
PUBLIC = GOLDEN / "public.safetensors"


def systems(public: Candidates) -> dict[str, EachDocument]:
    """Return the systems that release something for each document."""
    made = DeepCandidate(DeepCandidateMeasurement(), public), DocumentSketch(DocumentSketchMeasurement(), public)
    return {system.method: system for system in made}


def facts_of(system: EachDocument, path: Path) -> dict[str, Any]:
    """Return what must be read of a release, and computed of sentences before the noise, for ever.

    A later version that computed other numbers would go on with a draw that an earlier one began, and mix the two.
    """
    release, vectors = read_release(path), np.random.default_rng(0).normal(size=(9, 24)).astype(np.float32) / 5
    made, design = system.fit(release, Craft()), system.of(release.value.line)
    return {
        "computed": design.compute(vectors, np.array([0, 0, 1, 9])).tolist(),
        "plan_sha256": release.value.line.hash,
        "ids": made.ids.to_pylist(),
        "released": made.released.tolist(),
        "chosen": made.chosen.tolist(),
        "embeddings": [vector for batch in made.batches() for vector in batch["embedding"].to_pylist()],
    }


def main() -> None:
    """Make what is missing."""
    GOLDEN.mkdir(exist_ok=True)
    place = GOLDEN / "facts.json"
    facts = json.loads(place.read_text()) if place.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder, contract = Path(name), make_contract(user="who", most_documents=2)
        if not PUBLIC.exists():
            recipe = SMALL.model_copy(update={"sketch": Sketching(epsilon=5.0, numbers=3, hidden=8, steps=50)})
            PUBLIC.write_bytes(make_public(folder, recipe).to_bytes())
        for method, system in systems(read_candidates(PUBLIC)).items():
            if method not in facts:
                line, documents = system.plan(contract, budget_of(contract)), [*make_texts(6, seed=3), "One", ""]
                desk = desk_in(folder / method, line)
                measured = system.measure(embedded(documents, folder / method, contract), line, desk).value
                (GOLDEN / f"{method}.parquet").write_bytes(measured.read_bytes())
                facts[method] = {**facts_of(system, measured), "nacre": version("nacre")}
    place.write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
