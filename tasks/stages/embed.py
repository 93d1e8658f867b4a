"""The stages that follow the release of each document: a report on the embeddings, and the hand-off."""

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from dpmodels.methods.documents.each_document import EmbeddedDocuments
from dpmodels.pages.report import render
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from dpmodels.report.embedded import summarise_embedded, too_short
from tasks.kinds.documents import documents_of
from tasks.kinds.each_document import system
from tasks.run.accounts import desk_of
from tasks.run.store import Handle, Run, write_report
from tasks.stages.publish import assemble
from tasks.stages.stage import stage

EMBEDDINGS = "embeddings"
FILE_ROWS = 2**17
WITHOUT_SENTENCES = {
    "deep-candidate": "A document without a sentence, or with a single one, has no depth: each candidate is chosen for "
    "it with the same probability, so its embedding says nothing of it.",
    "document-sketch": "The embedding of a document without a sentence is read off noise alone and says nothing of it.",
}
POLICY = (
    "A sentence is what a public rule cuts from the text. Words with which the rule cuts elsewhere, such as an opened "
    "quotation mark, change several sentences or how many there are, and that is not hidden as one sentence is.",
    "Of a document longer than {most} sentences the first {most} are used, and of a sentence its first 10 000 signs.",
    "A sentence in which the encoder finds nothing that it knows is the zero vector.",
    "How many sentences a document has is public under this guarantee; it is not handed over.",
)


@stage("validate", sensitive=False)
def report(run: Run, release: Handle) -> Handle:
    """Write the publishable report, from the released choices and the public candidates."""
    if done := run.finished("validate"):
        return done
    made, line = embedded(run), run.plan.release
    contract = documents_of(line)
    policy = [WITHOUT_SENTENCES[line.method], *(told.format(most=contract.most_sentences) for told in POLICY)]
    if contract.user:
        policy.append(f"Of a user the first {contract.most_documents} documents are used; the rest were left out.")
    charge = desk_of(run).charge.key
    lost = None
    if "sentences" in made.columns.column_names:  # releases of earlier versions do not have it
        lost = too_short(made.columns["sentences"].to_numpy(), system(run).least_units(line))
    facts = summarise_embedded(line, charge, release.sha256, made.candidates.embeddings, made.chosen, policy, lost)
    write_report(run, {"report.json": json.dumps(facts, indent=1), "report.html": render(facts)})
    return run.finish("validate")


@stage("publish", sensitive=False)
def hand_over(run: Run, release: Handle, report: Handle) -> Handle:
    """Write the embedded documents, ordered by their public ids, with report and manifest."""

    def write(folder: Path) -> None:
        made, place = embedded(run), folder / EMBEDDINGS
        place.mkdir()
        order = pc.sort_indices(made.ids)
        for number, begin in enumerate(range(0, max(len(order), 1), FILE_ROWS)):
            rows = order[begin : begin + FILE_ROWS].to_numpy().astype(np.int64)
            made.take(rows).save(place / f"part-{number:05d}.parquet")

    return assemble(run, release, report, write)


def embedded(run: Run) -> EmbeddedDocuments:
    """Look up what was chosen for each document (post-processing)."""
    return system(run).fit(read_release(run.read("sanitize")), Craft())
