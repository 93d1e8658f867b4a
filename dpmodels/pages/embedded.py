"""The publishable report on embedded documents as a page: what epsilon means, a map, the clusters."""

from collections.abc import Mapping
from typing import Any

from dpmodels.accounting.meaning import in_words
from dpmodels.pages.maps import scatter
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.plots import Shares, bars

DONE = {
    "deep-candidate": "A public encoder embedded every sentence, and a public recoder spread the embeddings. Each "
    "candidate was scored by its approximate Tukey depth among the sentences of the document: along the worst of "
    "several public directions, how many sentences lie on the smaller side of it. The exponential mechanism chose one "
    "candidate, a deep one more probably, and the document's embedding is that of the candidate (DeepCandidate).",
    "document-sketch": "A public encoder embedded every sentence, and a public network made a few whole numbers of "
    "each embedding. Their sum over the document was released with noise, and another public network reads an "
    "embedding off it. On the map a document stands for the candidate that lies nearest to it.",
}


def render_embedded(facts: Mapping[str, Any], officer: Mapping[str, Any]) -> str:
    """Lay the facts of a run on documents out as one self-contained HTML page."""
    clusters, documents = facts["clusters"], max(facts["documents"], 1)
    names = [str(number) for number in range(1, len(clusters) + 1)]
    shares = Shares("documents", [one["documents"] / documents for one in clusters])
    positions = [(one["x"], one["y"], name) for one, name in zip(clusters, names, strict=True)]
    note = f"{percent(facts['map_explains'])} of how the candidates vary · a number is the middle of a cluster"
    return render_page(
        "embedded.html",
        report=facts,
        officer=officer,
        done=DONE[facts["method"]],
        odds=[
            (f"{one['sentences']}", short(one["epsilon"]), f"{one['factor']} times", in_words(one["right_guesses"]))
            for one in facts["privacy"]["sentences"]
        ],
        figures=[
            scatter("Released embeddings", note, [tuple(point) for point in facts["map"]], positions),
            bars("Sizes of the clusters", "documents by cluster of their candidate", names, shares),
        ],
    )
