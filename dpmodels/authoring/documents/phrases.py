"""What the free words of a data dictionary say of a column beside its headings: a phrase that stands by itself.

A phrase is what stands between commas, semicolons, brackets or the ends of sentences. One that says more than it is
known for, such as `unique patients seen per day`, says nothing: a person reads it in the comment of the draft. So does
one beside words that qualify it, as in `unique, within one hospital`, and where two say different things. What says by
itself when a value is missing, as `empty if not approved` does, is qualified by what takes it back alone.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from dpmodels.authoring.documents.compared import BEFORE
from dpmodels.authoring.documents.forms_of_keys import is_form
from dpmodels.authoring.documents.intervals import RANGE, SIGNS, bare
from dpmodels.authoring.documents.one_sided import limit_in
from dpmodels.authoring.documents.worded_days import with_plain_days
from dpmodels.authoring.facts import Facts

COUNTS = {
    "one": 1, "two": 2, "three": 3, "four": 4,
    "eine": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4,
    "een": 1, "één": 1, "twee": 2, "drie": 3,
    "un": 1, "une": 1, "una": 1, "deux": 2, "dos": 2, "trois": 3, "tres": 3, "quatre": 4, "cuatro": 4,
}  # fmt: skip
COUNT = rf"(?:(?:rounded )?(?:to|with) |mit |auf |met |op |avec |con )?(?P<count>\d|{'|'.join(COUNTS)})"
SOMETIMES = r"sometimes|often|partly|occasionally|manchmal|teilweise|gelegentlich|oft|mitunter"
ROW = r"row|record|rij|case|zeile|datensatz|fall|ligne|cas|fila|caso"
CONDITION = r"(?: (?:if|when|where|for|before|until|wenn|falls|bei) .+)?"
EMPTY = (
    r"empty|blank|null|missing|absent|leer|leeg|fehlt|fehlend|ontbreekt|vides?|manquante?s?|non renseignée?s?|"
    r"vac[ií][oa]s?"
)
WHEN = (
    r"if|when|where|unless|until|before|after|without|except|outside|for|with|in|while|as long as|wenn|falls|sofern|"
    r"solange|bis|ohne|außer|bei|für|vor|nach|mit|im|si|sans|sauf|hors|pour|quand|lorsqu['’e]\w*|tant|en cas|avant|"
    r"après|avec|chez|à moins|als|indien|tenzij|zolang|zonder|behalve|cuando|sin|salvo|excepto|para"
)
EMPTY_IF = (
    rf"(?:is |are |left |stays |ist |bleibt |bleiben |sind |est |reste |restent |sont |está )?(?:laissée? )?"
    rf"(?:{EMPTY}) (?:{WHEN}|{BEFORE}) .+"
)
PHRASES = {
    "decimals": (
        rf"{COUNT} decimals?(?: places?| digits?)?",
        rf"{COUNT} digits? after the (?:decimal )?point",
        rf"{COUNT} (?:dezimalen?|(?:dezimal|nachkomma)stellen?)(?: gerundet)?",
        rf"{COUNT} (?:décimales?|decimal(?:es)?|decima(?:al|len))",
    ),
    "nullable": (
        "optional|nullable|facultatif|facultative|opcional|optioneel",
        rf"(?:values? )?(?:may|can) be (?:left )?(?:missing|empty|blank|null){CONDITION}",
        rf"(?:is |are )?(?:{SOMETIMES}) (?:missing|empty|blank|null|leer){CONDITION}",
        rf"(?:kann|können|darf|dürfen) (?:auch )?(?:fehlen|leer sein|leer bleiben){CONDITION}",
        rf"fehlt (?:{SOMETIMES}){CONDITION}",
        "peut (?:manquer|être vide)|puede (?:faltar|estar vací[oa])|(?:kan|mag) (?:ontbreken|leeg (?:zijn|blijven))",
        EMPTY_IF,
        rf"(?:{EMPTY})\s*[=:]\s*(?!-?\d)\S.*",
    ),
    "money": (
        "(?:rounded )?(?:in cents?|to (?:the )?(?:cents?|penny|pence))",
        "(?:in|auf(?: den)?) cents?(?: genau| gerundet)?|centgenau|(?:afgerond )?(?:in|op) (?:hele )?cent(?:en)?",
    ),
    "hundreds": (
        "(?:rounded )?(?:in|to) (?:full |whole |round )?hundreds|(?:full|whole|round) hundreds",
        "(?:in|auf) (?:(?:vollen?|ganzen?) )?hundertern?(?: gerundet)?|(?:volle|ganze) hunderter",
    ),
    "zeros": (
        "(?:mostly|usually|often|mainly) (?:0|zeros?)|many (?:zeros?|are (?:0|zero))",
        "(?:meist(?:ens)?|oft|häufig|überwiegend|größtenteils) 0|viele nullen",
        "(?:le plus souvent|souvent|surtout) 0|(?:a menudo|casi siempre) 0|(?:meestal|vaak) 0",
    ),
    "unique": (
        "no two (?:are )?(?:alike|the same)",
        rf"(?:is |ist )?(?:unique|eindeutig|uniek|único|única)(?: (?:for each|per|je|pro) (?:{ROW}))?",
        rf"(?:one (?:per|for each)|eine[rs]? (?:je|pro)|une? par|una? por|één per|een per) (?:{ROW})",
    ),
}
"""What is read, by the whole phrases for it in English, German, French, Spanish and Dutch."""
END = re.compile(r"[;,()\[\]\n]|[.!](?:\s|$)|\s[-–—]\s")
QUALIFYING = re.compile(
    r"\b(not|no|never|only|but|except|per|within|among|across|before|since|until|from|internally|usually|required|"
    r"mandatory|unclear|nicht|nie|niet|nooit|geen|alleen|behalve|kein\w*|nur|aber|außer|je|pro|innerhalb|vor|seit|bis|ab|intern|meist|pflicht\w*|"
    r"ne|pas|sauf|avant|depuis|mais|sin|excepto|antes|desde|pero)\b"
)
"""Words of the phrases beside one that may take back or narrow what it says."""
NARROWING = ("within", "among", "across", "per", "innerhalb", "je", "pro")
"""Those that say of what a value is, and take nothing back."""
BESIDE_EMPTY = (*NARROWING, "only", "from", "nur", "ab")
"""Those of other phrases that take back nothing of when a value is missing."""
ANSWERS = re.compile(r"\b(yes|ja) (or|oder|of) (no|nein|nee)\b")
"""What names two values, of which `no` qualifies nothing."""
UNIT = re.compile(r"(?:cents?|euros?|€|kg|g|mg|kwh|km|m²|h|%) (?:je|pro|per) [\w²³]+")
"""A unit, which takes nothing back of how many decimals there are."""
SEPARATE = re.compile(rf"\b({EMPTY}),\s+(?=(?:{WHEN})\b)", re.IGNORECASE)
"""A comma that stands before a condition, as in German it does."""
OF_HUNDREDS = "whole hundreds, which docs/columns-that-depend.md says how to keep"
NEVER_EMPTY = re.compile(
    r"(?:is |are |ist |wird )?(?:never|not|nie|nicht|nooit|niet|jamais|nunca)\s"
    r"(?:empty|null|missing|blank|leer|leeg|vide|vacío)|"
    r"required|mandatory|pflicht\w*|verplicht|obligatoire|obligatorio"
)
"""What says that no value is missing, and takes nothing else back."""
NOT_GIVEN = re.compile(
    r"(?:is |are |must )?(?:not|never|nicht|nie)(?: to)?(?: be)? (?:handed (?:over|out)|given out|published|released|"
    r"passed on|shared|disclosed|weiter(?:zu)?geben|weitergegeben|herausgegeben|veröffentlicht)(?: werden)?|"
    r"(?:à )?ne (?:pas|jamais) (?:transmettre|communiquer|diffuser|publier|être \w+)|"
    r"do not (?:share|publish|release|hand over)"
)
"""What says that a column is to be left out, and takes nothing back of what it is."""
OF_LIMIT = re.compile(
    r"(?:(?:never|no|not) (?:more|less|fewer|longer|earlier|later|before|after)(?: than)?|at (?:most|least)|"
    r"(?:nie(?:mals)?|nicht) (?:mehr|weniger|länger|kürzer|früher|später|vor|nach)(?: als)?|höchstens|mindestens|"
    r"jamais (?:plus|moins) (?:de|que)|au (?:plus|moins)|nunca (?:más|menos) (?:de|que)|nooit (?:meer|minder) dan)\s+"
    r"(?:the |der |die |das |le |la |el |de |het )?(?P<name>[^\W\d]\w*)",
    re.IGNORECASE,
)
"""A column that another one never exceeds, or is never below, as `never more than STAY`."""
CONDITIONAL = re.compile(r"(if|when|where|wenn|falls|bei)\b")
NEVER = ("nullable", False)  # a heading says that no value is missing
WITHOUT_DECIMALS = ("integer", "boolean", "date", "moment", "category", "text", "identifier")


def with_phrases(facts: Facts) -> Facts:
    """Add what the phrases of a description say and no heading does."""
    attributes = _attributes(facts.description)
    in_hundreds = attributes.pop("hundreds", False) and facts.kind in (None, "integer", "number")
    facts = replace(facts, unread=(*facts.unread, *[OF_HUNDREDS] * in_hundreds))
    if in_hundreds and facts.decimals is None and facts.kind != "integer":
        facts = replace(facts, decimals=0)
    new = {name for name in attributes if getattr(facts, name) in (None, False) and (name, facts.nullable) != NEVER}
    new -= {"decimals", "money"} if facts.kind in WITHOUT_DECIMALS else set()
    return replace(facts, **{name: attributes[name] for name in new})


def with_key(facts: Facts) -> Facts:
    """Take for unique what one phrase says the form of and another that it is, as `A and seven digits, unique`.

    Whatever else is said of keys, such as what they are not for, takes neither back.
    """
    phrases = [phrase.strip() for phrase in END.split(facts.description)]
    is_key = facts.kind in (None, "text", "identifier") and not (facts.low or facts.high or facts.values)
    is_unique = any(("unique", True) in _attributes_of(phrase.casefold()) for phrase in phrases)
    return replace(facts, unique=True) if is_key and is_unique and any(map(is_form, phrases)) else facts


def says(phrase: str) -> bool:
    """Tell whether a phrase in small letters is one that is read."""
    return any(_attributes_of(phrase))


def _attributes(description: str) -> dict[str, Any]:
    """Return what the phrases say, as attributes of the facts; nothing where others beside them qualify it.

    A condition, such as `if not measured`, qualifies all but that a value may be missing.
    """
    attributes, qualifying = dict[str, Any](), list[str]()
    plain = SEPARATE.sub(r"\1 ", with_plain_days(description))
    phrases = [" ".join(part.split()).casefold() for part in END.split(plain)]
    names = {name for phrase in phrases for name, _ in _attributes_of(phrase)}
    spoken_for = BESIDE_EMPTY if any(re.fullmatch(EMPTY_IF, phrase) for phrase in phrases) else ()
    for before, phrase in pairwise(["", *phrases]):
        one = dict(_attributes_of(phrase))
        if _is_apart(before, phrase):
            continue
        if any(attributes.setdefault(name, value) != value for name, value in one.items()):
            return {}
        words = QUALIFYING.findall(ANSWERS.sub(" ", phrase))
        if not one and words and not ("decimals" in names and UNIT.fullmatch(phrase)):
            qualifying.append(phrase)
            if not (CONDITIONAL.match(phrase) or {*words} <= {*spoken_for}):
                return {}
    if "nullable" in names and any(map(NEVER_EMPTY.fullmatch, phrases)):
        return {}
    return {name: value for name, value in attributes.items() if name == "nullable" or not qualifying}


def _is_apart(before: str, phrase: str) -> bool:
    """Tell whether a phrase takes nothing back: it has bounds, says when a value is missing, or that none is."""
    is_reason = CONDITIONAL.match(phrase) and "nullable" in dict(_attributes_of(before))
    plain = bare(phrase)
    aside = NEVER_EMPTY.fullmatch(phrase) or NOT_GIVEN.fullmatch(phrase) or OF_LIMIT.fullmatch(phrase)
    return bool(is_reason or aside or RANGE.fullmatch(plain) or SIGNS.fullmatch(plain) or limit_in(plain))


def _attributes_of(phrase: str) -> Iterator[tuple[str, Any]]:
    """Yield what a phrase says, as an attribute of the facts and its value."""
    for name, form in ((name, form) for name, forms in PHRASES.items() for form in forms):
        if match := re.fullmatch(form, phrase):
            count = match.groupdict().get("count", "")
            yield name, int(COUNTS.get(count, count)) if count else True
