"""Which columns are handed over, sorted by what an officer asks of each: is it needed for the declared purpose?

A schema is public, and so are its names and types. What they hint at is a question to a person, and no answer.
"""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.contract.ages import AGE
from dpmodels.pages.asked.special import is_named, tied_to
from dpmodels.pages.card_words import cut
from dpmodels.pages.figures.named import listed

SPECIAL = "special category, declared or tied"
QUASI = "quasi-identifiers, by type or name (dates, ages, places, sex)"
REST = "the rest"
TELLS = re.compile(
    r"(?<![^\W_])(date|day|birth\w*|born|datum|tag|jour|naissance|sex|gender|sexe|geschlecht|region|région|city|town|"
    r"zip|plz|post(al|al_?code|code|leitzahl)?|country|county|state|district|province|canton|kanton|municipality|"
    r"address|adresse|commune|ville|pays|département|departement|ort|wohnort|gemeinde|kreis|land|latitude|longitude|"
    r"location|place|nuts\d?)(?![^\W_])",
    re.IGNORECASE,
)
"""Words in names of columns by which people may be found in other files."""
MOST = 9
"""So many columns of a group are named; the data sheet has all."""


def columns_by_need(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the columns that are handed over in groups, each with its title; nothing where there are no columns."""
    content, special = facts["content"], facts["given"].get("special_categories", "")
    groups: dict[str, list[str]] = {SPECIAL: [], QUASI: [], REST: []}
    for one in content.get("columns", ()):
        groups[_group(one, special, content)].append(cut(one["name"]))
    return [(title, listed(names, MOST)) for title, names in groups.items() if names]


def _group(column: Mapping[str, str], special: str, content: Mapping[str, Any]) -> str:
    name = column["name"]
    if is_named(name, special) or tied_to(name, special, content):
        return SPECIAL
    return QUASI if column["type"] == "datetime" or TELLS.search(name) or AGE.search(name) else REST
