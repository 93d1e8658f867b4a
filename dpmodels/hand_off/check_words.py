"""Check the words of a report: each name and sentence is of the contract, of the plan, or one that nacre writes.

Pages print them, and whoever makes a hand-off makes its pages of a report of their own. Figures rest on whoever signed,
but for those that cannot be (``check_figures``). Two kinds of words rest on figures and settings that no manifest has,
and are held to what nacre writes at all: the warning of a column (``check_warnings``), and the names of the quantities
that the noise was added to (``vocabulary``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from dpmodels.contract.federation import Federation
from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import weighed
from dpmodels.hand_off.check_maker import is_later
from dpmodels.hand_off.columns.check_columns import are_columns, are_groups
from dpmodels.hand_off.columns.check_derived import are_derived
from dpmodels.hand_off.columns.check_figures import SHARES_OF_A_PAIR as SHARES
from dpmodels.hand_off.columns.check_figures import impossible
from dpmodels.hand_off.columns.check_groups import are_called
from dpmodels.hand_off.columns.check_joint import are_joint
from dpmodels.hand_off.columns.check_sums import are_wholes
from dpmodels.hand_off.columns.figures import FIGURES_OF_A_RATE, are_figures, has_figures
from dpmodels.hand_off.manifest import Manifest
from dpmodels.hand_off.vocabulary import is_noise
from dpmodels.methods.kinds import SYNTHESIZED
from dpmodels.pages.figures.relations import MOST_SINGLE
from dpmodels.releases.contract import Contract, table_of
from dpmodels.report.within import DRAWN, MOST_ASKED, MOST_CLASSES, MOST_RATES, OF_A_CLASS

Facts = Mapping[str, Any]
NUMBER = re.compile(r"[0-9]+(,[0-9]{3})*(\.[0-9]+)?")
PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]*")
LONGEST = 1000
"""Letters of a sentence that nacre writes with figures in it."""
SHARED = {"format", "about", "data_set", "method", "privacy", "hashes", "not_promised", "drowned", "cautions"}
TABLE = SHARED - {"about"} | {"rows_are", "noise_stddev", "synthetic_rows", "released_records", "columns", "pairs"}
TABLE |= {"released_noise_stddev", "fit", "sample_sheet", "sample_classes", "charged", "gate", "map", "headline"}
TABLE |= {"rates", "derived", "groups", "asked_rates", "asked", "joint", "wholes"}
EMBEDDED = SHARED | {"documents", "dim", "candidates", "candidates_chosen", "policy", "map", "map_explains", "clusters"}
EMBEDDED |= {"headline"}
FEDERATED = SHARED | {"unprotected", "trust", "sizes_are_public", "compared", "clients", "public_records", "classes"}
FEDERATED |= {"measurement"}
PAIRS = {"expected_error_of_a_share", "cells_of_a_column", "distances", "target", "asked_for"}
FIT = {"coordinates", "signal", "left", "explained"}
SCORE, DISTANCE = {"value", "low", "high", "on_synthetic_rows"}, {"cells", "measured", "noise_alone", "low", "high"}
CHARGED = {"status", "charged", "target_epsilon", "spent_epsilon", "delta", "event", "ledger_charge", "scores_sha256"}
CHARGED_FIGURES = {
    "noise_stddev_of_a_count",
    "records",
    "records_stddev",
    "rows_trained_on",
    "synthetic_rows_tested_on",
}
NAMED = {"target", "classifiers", "columns", "columns_with_target"}
DRAWN_ANEW = "Of the rows that the generator draws, about {share} % keep {rules}; the others were drawn anew."
MADE_TO_FIT = (
    " That was not enough: about {share} % of the rows were made to fit, by setting columns of these rules to values "
    "that the rules allow, so take nothing about these columns from the synthetic rows."
)
"""What ``caution_of_rules`` says, which is in the room of the generators."""
PERCENT = r"[0-9.e+-]{1,12}"
CHECKED = ("expectation", "column", "rule")
"""What is said in words of an expectation that held."""


def strange_words(report: Facts, kind: str, contract: Contract, manifest: Manifest) -> Iterator[str]:
    """Name the facts of a report of a kind that has words, or keys, which nacre does not write."""
    from dpmodels.report.verdicts import headline_of_documents

    if contract.kind == "federation":
        yield from report.keys() - FEDERATED
        yield from _of_federation(report, contract, manifest.method)
    elif kind == "each document":
        yield from report.keys() - EMBEDDED
        yield from () if _is_drowned(report, _short_documents()) else ("drowned",)
        yield from () if report["policy"] == _policy(contract, manifest) else ("policy",)
        yield from () if report["headline"] == headline_of_documents(report) else ("headline",)
        figures = {name: report[name] for name in EMBEDDED - SHARED - {"policy", "headline"}}
        yield from (name for name, value in figures.items() if not are_figures(value, {"documents", "x", "y"}))
    elif kind in SYNTHESIZED:
        yield from report.keys() - TABLE
        yield from _of_table(report, contract, manifest)


def impossible_figures(report: Facts, kind: str, contract: Contract) -> Iterator[str]:
    """Name the facts of a report on synthetic rows that hold figures which cannot be; its words are known."""
    if contract.kind != "federation" and kind in SYNTHESIZED:
        yield from impossible(report, _labeled(contract))


def is_headline(report: Facts, kind: str, contract: Contract) -> bool:
    """Tell whether a report on synthetic rows, whose words and figures are known, has the headline that they make."""
    from dpmodels.report.verdicts import headline

    of_rows = contract.kind != "federation" and kind in SYNTHESIZED
    return not of_rows or bool(report["headline"] == headline(report))


def _labeled(contract: Contract) -> Schema:
    """Return the table whose columns a report on synthetic rows has."""
    from dpmodels.codec.embedded import labels_of

    if contract.kind == "tree":
        return contract.overview
    return labels_of(contract) if contract.kind == "documents" else table_of(contract).flat


def _of_table(report: Facts, contract: Contract, manifest: Manifest) -> Iterator[str]:
    """Name the facts of a report on synthetic rows that have words of others."""
    from dpmodels.report.fidelity import drowned, lost_in_noise

    table = _labeled(contract)
    follows = {
        "cautions": are_cautions(report.get("cautions"), contract),
        "drowned": _is_drowned(report, [drowned([], 0, 1), lost_in_noise(0)]),
        "columns": are_columns(report["columns"], table, contract, is_later(manifest.nacre_version)),
        "derived": are_derived(report, contract),
        "fit": _are_looks(report["fit"], manifest, is_whole=report["pairs"] is not None),
        "charged": _are_scores(report["charged"], contract, table),
        "noise_stddev": _are_noises(report["noise_stddev"], contract, manifest),
        "released_noise_stddev": _are_noises(report.get("released_noise_stddev", {}), contract, manifest),
        "gate": all(has_figures(one, {"success"}, *CHECKED) for one in report["gate"]),
        "pairs": _are_pairs(report["pairs"], table, report["columns"]),
        "rates": _are_rates(report.get("rates"), _targets(contract, table), table, report["columns"]),
        "groups": are_called(report, table),
        "wholes": are_wholes(report),
        "asked": report.get("asked") in (None, _asked(table)),
        "joint": are_joint(report, table),
        "asked_rates": all(
            _are_rates(one, {*range(len(report["columns"]))}, table, report["columns"]) and "others" not in one
            for one in report.get("asked_rates", ())
        ),
        **{name: are_figures(report[name]) for name in ("synthetic_rows", "released_records")},
        "map": _is_map(report.get("map"), contract),
        **_sheet(report, contract),
    }
    yield from (name for name, so in follows.items() if not so)


def _asked(table: Schema) -> list[list[str]]:
    from dpmodels.report.groups.stated import asked_names

    return asked_names(table, table.columns)


def _are_pairs(pairs: Facts | None, table: Schema, columns: Sequence[Facts]) -> bool:
    """Tell whether two columns together have figures, and groups that are called after their values."""
    if pairs is None:
        return True
    figures, modelled = {key: pairs[key] for key in pairs.keys() - {"tables"}}, list(table.modelled.values())
    known = are_figures(figures, PAIRS) and pairs.get("target") == table.target_index
    return (
        known
        and len(pairs.get("tables", ())) <= DRAWN + MOST_ASKED
        and all(
            has_figures(one, {"columns", *SHARES} | ({"distances"} & {*one}), "labels")
            and len(one["labels"]) == len(one["columns"])
            and all(
                are_groups(labels, modelled[place], columns[place]["labels"], *([MOST_SINGLE] * ("distances" in one)))
                for place, labels in zip(one["columns"], one["labels"], strict=True)
            )
            for one in pairs.get("tables", ())
        )
    )


def _targets(contract: Contract, table: Schema) -> set[int]:
    """Return the places of the targets that columns are counted with; of a tree each table may have one."""
    tree = contract if contract.kind == "tree" else None
    names = {tree.flat_of(name).target for name in tree.measured} if tree else {table.target}
    return {place for place, name in enumerate(table.modelled) if name in names}


def _are_rates(rates: Any, targets: set[int], table: Schema, columns: Sequence[Facts]) -> bool:
    """Tell whether rates are of a target, and of groups that are called after their values."""
    if rates is None:
        return True
    others = rates.get("others", [])
    return (
        rates.keys() - {"others"} == {"target", "class", "columns"}
        and rates["target"] in targets
        and all(_is_rated(one, table, columns) for one in rates["columns"])
        and isinstance(others, list)
        and all(_is_of_class(one, rates["columns"]) for one in others)
        and _are_classes([rates["class"], *(one["class"] for one in others)], columns[rates["target"]]["labels"])
    )


def _are_classes(classes: Sequence[Any], labels: Sequence[str]) -> bool:
    """Tell whether the classes that have rates are some of the target's, each once; of two classes one has."""
    number = len([label for label in labels if label != "null"])
    most = 1 if number <= 2 else min(number, MOST_CLASSES)
    return all(one in labels for one in classes) and len({*classes}) == len(classes) == most


def _is_of_class(other: Any, columns: Sequence[Facts]) -> bool:
    """Tell whether a further class has figures for each group of each column that has rates."""
    return (
        has_figures(other, set(), "class", "columns")
        and isinstance(other["columns"], list)
        and len(other["columns"]) == len(columns)
        and all(
            has_figures(one, {"column", *OF_A_CLASS})
            and one["column"] == first["column"]
            and all(isinstance(one[key], list) and len(one[key]) == len(first["labels"]) for key in OF_A_CLASS)
            for one, first in zip(other["columns"], columns, strict=True)
        )
    )


def _is_rated(rates: Any, table: Schema, columns: Sequence[Facts]) -> bool:
    """Tell whether the rates by a column are one figure of each kind for each of its groups."""
    if not has_figures(rates, {"column", *FIGURES_OF_A_RATE}, "labels"):
        return False
    place, labels = rates["column"], rates["labels"]
    if type(place) is not int or not 0 <= place < len(columns):
        return False
    column = list(table.modelled.values())[place]
    return are_groups(labels, column, columns[place]["labels"], MOST_RATES) and all(
        isinstance(rates[key], list) and [type(one) in (int, float) for one in rates[key]] == [True] * len(labels)
        for key in FIGURES_OF_A_RATE
    )


def _are_noises(noises: Any, contract: Contract, manifest: Manifest) -> bool:
    """Tell whether noise was added to quantities of some method; a later version may have other methods."""
    asked_for = tuple(tables.text for tables in weighed(contract))
    known = is_later(manifest.nacre_version) or all(is_noise(name, asked_for) for name in noises)
    return known and has_figures(noises, set(noises))


def are_cautions(cautions: Any, contract: Contract) -> bool:
    """Tell whether cautions are the contract's remarks, and at most the one about its rules."""
    remarks = list(contract.remarks)
    if not isinstance(cautions, list):
        return cautions is None and not remarks
    if cautions[: len(remarks)] != remarks or not all(isinstance(one, str) for one in cautions):
        return False
    further = cautions[len(remarks) :]
    ruled = [contract.ruled(name) for name in contract.tables] if contract.kind == "tree" else []
    ruled += [table_of(contract)] if contract.is_table else []
    return not further or (len(further) == 1 and any(_is_of_rules(further[0], schema) for schema in ruled))


def _is_of_rules(caution: str, schema: Schema) -> bool:
    """Tell whether a caution is the one about rules that a generator hardly keeps."""
    rules = ", ".join(f"`{rule}`" for rule in (*schema.rules, *schema.implications, *schema.derived_bounds))
    text = re.escape(DRAWN_ANEW.format(share="@", rules=rules)).replace("@", PERCENT, 1)
    more = re.escape(MADE_TO_FIT.format(share="@")).replace("@", PERCENT, 1)
    return bool(rules and re.fullmatch(f"{text}({more})?", caution))


def shape(text: str) -> str:
    """Return a sentence without its figures."""
    return NUMBER.sub("0", text)


def _is_drowned(report: Facts, sentences: Sequence[str | None]) -> bool:
    """Tell whether a report says nothing of drowned data, or one of these sentences, whatever its figures."""
    return "drowned" not in report or is_like(report["drowned"], sentences)


def is_like(text: Any, sentences: Sequence[str | None]) -> bool:
    """Tell whether a text is one of some sentences but for the figures in them."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return False
    return shape(text) in {shape(one) for one in sentences if one}


def _policy(contract: Contract, manifest: Manifest) -> list[str]:
    from dpmodels.report.embedded import policy_of

    return policy_of(contract, manifest.method)


def _short_documents() -> list[str | None]:
    from dpmodels.report.embedded import too_short

    return [too_short(np.zeros(1, dtype=np.int64), 1)]


def _are_looks(fit: Any, manifest: Manifest, is_whole: bool) -> bool:
    """Tell whether the looks of a release are those that it was charged for, in their order; all, where it counts."""
    from dpmodels.report.report import look_names

    (event,) = manifest.price.events
    names = look_names(event)
    return (
        (len(fit) == len(names) if is_whole else len(fit) <= len(names))
        and all(has_figures(one, FIT, "look") for one in fit)
        and [one["look"] for one in fit] == names[: len(fit)]
    )


def _are_scores(scores: Any, contract: Contract, table: Schema) -> bool:
    """Tell whether charged scores name the contract's columns, and models and scores that nacre writes."""
    from dpmodels.report.charged_facts import NAMES

    if scores is None or scores["status"] == "lost":  # which has few words, all of them fixed
        return True
    tree = contract if contract.kind == "tree" else None
    flat = {name: tree.flat_of(name) for name in tree.measured} if tree else {"": table}
    branch = next((name for name, one in flat.items() if one.classes > 1), None)
    classes, target = (1, None) if branch is None else (flat[branch].classes, flat[branch].target)
    names = [name for name in table.modelled if name != target]
    with_target = tree.attributes(branch) if tree and branch else table.modelled
    of_target = [name for name in names if name in with_target] if target else []
    models = [one["model"] for one in scores["classifiers"]]
    distances = {key: [one["name"] for one in scores[key]] for key in ("columns", "columns_with_target")}
    figures = {name: scores[name] for name in CHARGED_FIGURES}
    return (
        scores.keys() == CHARGED | CHARGED_FIGURES | NAMED
        and all(map(are_figures, figures.values()))
        and scores["target"] == target
        and len(set(models)) == len(models)
        and set(models) <= set(NAMES.values())
        and all(_is_model(one, classes) for one in scores["classifiers"])
        and all(has_figures(one, DISTANCE, "name") for key in distances for one in scores[key])
        and distances["columns"] in ([], [target, *names] if of_target else names)
        and distances["columns_with_target"] == (of_target if distances["columns"] else [])
    )


def _is_model(classifier: Facts, classes: int) -> bool:
    scores = classifier["scores"]
    names = ["AUROC", "accuracy"] if classes == 2 else ["accuracy"]
    return (
        classifier.keys() == {"model", "scores"}
        and all(has_figures(one, SCORE, "score") for one in scores)
        and [one["score"] for one in scores] == names
    )


def _sheet(report: Facts, contract: Contract) -> dict[str, bool]:
    """Tell whether there are images exactly where the contract has some, and whether their classes are its own."""
    from dpmodels.report.sheet import Sheet

    picture, names = report["sample_sheet"], report["sample_classes"]
    if not contract.image:
        return {"sample_sheet": picture is None, "sample_classes": names == []}
    return {
        "sample_sheet": isinstance(picture, str) and PICTURE.fullmatch(picture) is not None,
        "sample_classes": names == list(Sheet(table_of(contract)).names),
    }


def _is_map(drawn: Any, contract: Contract) -> bool:
    """Tell whether a map is of synthetic documents, and names the contract's classes."""
    if drawn is None or contract.kind != "documents":
        return drawn is None
    names = [one["name"] for one in drawn["means"]]
    return (
        drawn.keys() == {"points", "means", "explains"}
        and are_figures([drawn["points"], drawn["explains"]])
        and all(has_figures(one, {"place"}, "name") for one in drawn["means"])
        and names == list(contract.classes)[: len(names)]
    )


def _of_federation(report: Facts, contract: Federation, method: str) -> Iterator[str]:
    """Name the facts of a report on a federation that have words of others."""
    from dpmodels.report.fidelity import lost_in_noise

    figures, words = {"certainty", "leads", "epsilon"}, {"name", "account", "dropped"}
    follows = {
        "drowned": _is_drowned(report, [lost_in_noise(0)]),
        "compared": is_comparison(report["compared"], method),
        "public_records": are_figures(report["public_records"]),
        "clients": all(has_figures(one, one.keys() & figures, *words & one.keys()) for one in report["clients"]),
        "classes": all(has_figures(one, {"share"}, "name") for one in report["classes"]),
    }
    yield from (name for name, so in follows.items() if not so)


def is_comparison(compared: Facts, method: str) -> bool:
    """Tell whether classifiers were compared in sentences that nacre writes, whatever their figures."""
    from dpmodels.report.federated import CLASSIFIERS, Rated, compare_all

    right, wrong = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.bool_)
    orders = [order for number in (1, 2) for order in permutations(CLASSIFIERS, number)]
    ratings = [
        [Rated(name, one) for name, one in zip(order, rating, strict=False)]
        for order in orders
        for rating in ((None, None), (right, right), (right, wrong))
    ]
    return (
        compared.keys() == {"records", "classifiers", "words"}
        and are_figures(compared["records"])
        and all(
            has_figures(one, {"accuracy"}, "name") and one["name"] in CLASSIFIERS for one in compared["classifiers"]
        )
        and is_like(compared["words"], [compare_all(method, rated)["words"] for rated in ratings])
    )
