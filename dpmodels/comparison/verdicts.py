"""Named checks of a comparison: what was found, what it was held against, and whether it holds.

A limit is a rule of thumb for what a person should look at, no guarantee: that every check holds proves nothing about
privacy, and a table under a small budget may rightly fail one.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dpmodels.comparison.standing import pair_in_words

Facts = Mapping[str, Any]
FAR = 0.2
"""How far apart an association may be in the two tables; half of it, where half of the association is gone."""
EXPECTED_ROWS = 30
"""Rows that a rare category must be expected to have before its absence counts."""


def _marginals(facts: Facts) -> tuple[bool, str]:
    distances, chance = facts["total_variation_1_way"], facts["chance_1_way"]
    column = max(distances, key=lambda name: float(distances[name] - chance[name]))
    worst, usual = distances[column], chance[column]
    finding = (
        f"{column} is farthest beyond chance: off by {worst:.3f} in total variation, where chance gives {usual:.3f}"
    )
    return worst <= usual + 0.1, f"{finding}; the limit is 0.1 more"


def _correlation(facts: Facts) -> tuple[bool, str]:
    """Hold the pair that is farthest off to its limit, and to half of it the one of which half or more is gone."""
    if not facts["largest"]:
        return True, "there is one column only"
    chance = 2 * facts.get("largest_difference_of_held_out_rows", 0.0)
    if not chance:
        chance = facts["largest_difference_by_chance"]
    limit, limit_of_half = max(FAR, chance), max(FAR / 2, chance)
    worst, half = facts["largest"][0], facts["half_gone"]
    finding = f"{pair_in_words(worst)} is farthest off: by {worst['difference']:.2f}; the limit is {limit:.2f}"
    if half is None or half["difference"] <= limit_of_half:
        return worst["difference"] <= limit, finding
    if half["columns"] != worst["columns"]:
        finding += f"; {pair_in_words(half)} is off by {half['difference']:.2f}"
    return False, f"{finding}, or {limit_of_half:.2f} where half of an association or more is gone, or was not there"


def _collapse(facts: Facts) -> tuple[bool, str]:
    limit = 0.5 * facts["coverage_by_fresh_real_rows"]
    repeated, usual = facts["repeated_rows"], facts["repeated_rows_among_the_real"]
    finding = f"{facts['coverage']:.3f} of the real rows are reached (fresh real rows reach "
    finding += f"{facts['coverage_by_fresh_real_rows']:.3f}, the limit is half of that); "
    finding += f"{repeated:.3f} of the rows repeat another (among the real {usual:.3f}; the limit is 0.1 more)"
    return facts["coverage"] >= limit and repeated <= usual + 0.1, finding


def _rare(facts: Facts) -> tuple[bool, str]:
    gone = [one for one in facts["missing"] if one["expected_rows"] >= EXPECTED_ROWS]
    finding = f"{facts['kept']} of {facts['rare_categories']} rare categories are there"
    if gone:
        names = ", ".join(f"{one['column']} {one['value']}" for one in gone[:5])
        return False, f"{finding}; missing, though at least {EXPECTED_ROWS} rows were to be expected: {names}"
    return True, f"{finding}; none is missing of which {EXPECTED_ROWS} rows were to be expected"


def _outside(facts: Facts) -> tuple[bool, str]:
    outside = facts["rows_outside_the_schema"]
    return not outside, f"columns with categories that the schema does not list: {', '.join(outside) or 'none'}"


def _overfitting(facts: Facts) -> tuple[bool, str]:
    low, high = facts["interval"]
    finding = f"{facts['closer_to_training_rows']:.3f} of the rows lie closer to training than to held-out rows"
    return low <= 0.52, f"{finding} (95 % interval {low:.3f} to {high:.3f}); a half is ideal, the limit 0.52"


def _copies(facts: Facts) -> tuple[bool, str]:
    copied, chance = facts["synthetic_rows_that_equal_a_real_row"], facts["fresh_real_rows_that_equal_a_real_row"]
    finding = f"{copied:.4f} of the rows equal a real row; of fresh real rows {chance:.4f} do"
    return facts["interval"][0] <= facts["fresh_interval"][1] + 0.02, finding


def _membership(facts: Facts) -> tuple[bool, str]:
    attacks = {name: facts[name] for name in ("distance", "relative_density")}
    name, best = max(attacks.items(), key=lambda item: float(item[1]["auroc_interval"][0]))
    low, high = best["auroc_interval"]
    finding = f"the better attack, by {name.replace('_', ' ')}, tells members apart with AUROC {best['auroc']:.3f}"
    return low <= 0.55, f"{finding} (95 % interval {low:.3f} to {high:.3f}); chance is 0.5, the limit 0.55"


def _released(facts: Facts) -> tuple[bool, str]:
    bound, spent = facts["epsilon_lower_bound"], facts["spent_epsilon"]
    return bound <= spent, f"the attack shows epsilon of at least {bound:.2f}; {spent:g} was charged"


def _utility(facts: Facts) -> tuple[bool, str]:
    if facts["tstr"] is None:
        return True, "the test rows cannot tell"
    finding = f"{facts['metric']} {facts['tstr']:.3f} trained on synthetic rows, {facts['trtr']:.3f} on real ones"
    return facts["difference_interval"][1] >= -0.1, f"{finding}; the limit is 0.1 apart"


def _given_away(facts: Facts) -> tuple[bool, str]:
    right, commonest = facts["right"], facts["commonest"]
    finding = f"{facts['column']} alone names the target of {right:.3f} of the real rows that it was tried on"
    holds = right < commonest + 0.95 * (1 - commonest) or commonest == 1
    more = (
        "" if holds else ": take it out, unless it is meant to tell the target; scores of models say little beside it"
    )
    return holds, f"{finding}, the commonest target of {commonest:.3f}{more}"


CHECKS: dict[str, tuple[str, Callable[[Facts], tuple[bool, str]]]] = {
    "one-way marginals": ("marginals", _marginals),
    "correlations": ("correlations", _correlation),
    "mode collapse": ("coverage", _collapse),
    "rare categories": ("rare categories", _rare),
    "categories of the schema": ("rare categories", _outside),
    "one column alone": ("given away", _given_away),
    "utility": ("utility of the target", _utility),
    "overfitting": ("overfitting", _overfitting),
    "copied rows": ("copied rows", _copies),
    "membership inference": ("membership inference", _membership),
    "released vector": ("attack on the release", _released),
}


def run_checks(metrics: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Hold the results of metrics against their limits; ``holds`` is None where a metric came to no result."""
    checks = []
    for name, (metric, check) in CHECKS.items():
        outcome = metrics.get(metric)
        if outcome is None:
            continue
        is_done = outcome["status"] == "done"
        holds, finding = check(outcome["result"]) if is_done else (None, str(outcome["reason"]))
        checks.append({"name": name, "holds": holds, "finding": finding})
    return checks
