"""Bounds and types that are safe for most columns of a name, wherever nothing is documented: to be confirmed.

A suggestion is made of a column's name and of the type that the file states, never of a value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from dpmodels.authoring.facts import TODO
from dpmodels.authoring.type_words import names_money


@dataclass(frozen=True)
class Suggestion:
    """The keys that a column might have, and why; without keys, how to choose them."""

    keys: Mapping[str, Any]
    because: str


def _number(low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"type": "number", "min": float(low), "max": float(high), **more}


def _integer(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "min": low, "max": high, **more}


def _days(first: date, last: date, resolution: str = "day") -> dict[str, Any]:
    return {"type": "datetime", "min": first, "max": last, "resolution": resolution}


IDENTIFIER: Mapping[str, Any] = {"type": "identifier"}
CATEGORICAL: Mapping[str, Any] = {"type": "categorical", "values": TODO}
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(2099, 12, 31)
OPEN_INTEGER: Mapping[str, Any] = {"type": "integer", "min": TODO, "max": TODO}
OPEN_NUMBER: Mapping[str, Any] = {"type": "number", "min": TODO, "max": TODO}
PERSON = (
    r"(patient|customer|client|user|person|employee|participant|respondent)( (no|nr|num|number|code|key|ref))?"
    r"|(staff|payroll|personnel|member|student|worker|subject) (no|nr|num|number|code|key|ref)"
    r"|(.* )?(patient|customer|client|user|person|member|employee|student|subject|participant|respondent)"
    r" (id|uuid|guid|key)"
)
"""Names of what tells persons apart, of whom one may have several rows."""
NUMBERED = r" (no|nr|num|number|nummer|numero|numéro)$"
SOMEBODY = "person|employee|patient|customer|client|member|student|worker|member of staff"
NUMBER_OF_PERSON = (
    rf"((the|a|an|their|his|her|unique|own) )*(staff|payroll|personnel|personal|patienten|kunden|mitglieds?|{SOMEBODY})"
    rf" ?(number|nummer|no|nr)( of (the|a) ({SOMEBODY}))?|((the|a) )?number of (the|a) ({SOMEBODY})"
    r"|(numéro|número) (de |du |d |del |de la )?(matricule|patiente?|cliente?|salariée?|adhérente?|empleado|socio)"
)
"""What a number is called that tells persons apart, in a name that ends so and in words."""
PSEUDONYM = re.compile(r"(?i)(?:\w{2,3} )?(?:pseudonym[es]?|pseudoniem|seudónimo)\b")
CASES = "account|policy|card|invoice|order|licen[cs]e|registration|contract|ticket|case"
NUMBER_OF_CASE = (
    rf"((the|a|an|its|unique) )*(internal )?({CASES}|bill|meter) (number|no|nr)"
    r"|(konto|vertrags|rechnungs|policen|auftrags|bestell|zähler|akten|beleg|fall)(nummer|nr)"
    r"|(numéro|número) (de |du |d |del |de la )?"
    r"(contrat|compte|facture|commande|dossier|contrato|cuenta|factura|pedido)"
)
"""What a number is called that tells cases apart, such as contracts, in words."""
PRICED = r"(hourly|daily|weekly|monthly|exchange|room|pay|wage|billing) rate"
PAID = (
    r"amount|amt|price|cost|fee|fare|salary|income|revenue|wage|payment|bill|tip|debt|balance|savings|premium|rent"
    rf"|{PRICED}"
)
CURRENCY = r"( (eur|usd|gbp|chf|euros?|dollars?))?"
SEVERAL = r"(\S+ )*(?!diabetes|series|species|basis)(\S*[^su\d]s|children|people|men|women)"
"""What several things are called, of which there is a number."""
FAMILY = r"(children|kids|siblings|dependents|dependants)"
COUNTED = (
    r"(.* )?(count|cnt|counts|quantity|qty)|(num|nr|nbr|number|no|count) of .+|(num|nbr|count) .+"
    rf"|(n|nr|number|prior|previous|past|earlier|late|missed|failed) {SEVERAL}"
    r"|(.* )?(visits|admissions|readmissions|medications|meds|claims|calls|logins|orders|purchases|trips|bedrooms"
    r"|bathrooms|rooms|complaints|accidents|convictions|inquiries|pregnancies)"
)
CHANGED = r"(?!.*\b(change|growth|diff|difference|delta)\b)"
"""Begins the name of what cannot be below zero."""
SINCE = (
    r"( (since|until|till|to|from|between|before|after|in|on|of|at|past|as|with|without|employed|overdue|late) ?.*)?"
)
"""What may follow a span of time without being what the name is about: days since the last visit."""
ANY_YEAR = (
    r"(.* )?(first|second|third|fourth|fifth|sixth|last|next|prior|previous|past|current|this|that|each|every|per|a"
    r"|one|\d+( (st|nd|rd|th))?) year$"
)
"""Names of what is counted or paid in a year, or of its place among several, which is no calendar year."""
DAYS_OF_A_CENTURY = 36_525
COUNT: Mapping[str, Any] = _integer(0, 1000, scale="log", outside="clip")


def _span(words: str) -> str:
    return rf"(.* )?({words}){SINCE}"


RATE, SCORE = "a rate in percent", "a score"
FEWEST_STEPS, MOST_STEPS = 2, 10
"""Steps of a scale, whose numbers are whole."""
A_UNIT_OF = re.compile(
    r"\b(years?|months?|weeks?|days?|hours?|minutes?|seconds?|percent|degrees?|jahre?n?|monate?n?|wochen?|tage?n?|"
    r"stunden?|minuten?|sekunden?|prozent|grad|ans|années?|mois|semaines?|jours?|heures?|años?|meses|días?|horas?|"
    r"euros?|dollars?|amount|share|ratio|rate|average|mean|betrag|anteil|montant|mittel\w*|moyenne|media)\b|[%€$°]|"
    r"\b(in|en|\d)\s*(k?m|cm|mm|k?g|mg|µg|k?wh?|ml|l|h|min|s)\b",
    re.IGNORECASE,
)
"""Words and signs of what is measured, paid or a part of something, whose numbers have decimals."""
A_SCALE = re.compile(
    r"satisf|score|rating|scale|likert|\bstars?\b|\bpoints?\b|\bgrades?\b|agree|zufrieden|bewertung|skala|\bnoten?\b|"
    r"\bpunkte?n?\b|\bsterne?\b|échelle|étoiles?|escala|puntuaci|\bnotas?\b|estrellas?",
    re.IGNORECASE,
)
"""Words for a scale of few steps."""
BY_NAME: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    (
        r"(is|has|was|had) .*|.* flag"
        r"|(defaulted|churned|readmitted|deceased|died|smoker|active|married)( \d+ d(ays)?)?",
        {"type": "boolean"},
        "a yes or no",
    ),
    (
        rf"{PERSON}|(.* )?(uuid|guid|ssn|iban|e ?mail|phone|mobile|passport)( (address|number|no|nr))?|.* id|id"
        r"|((first|last|full|sur|given|family|user|customer|patient) ?)?name"
        rf"|(.* )?({CASES}) (number|no|nr|num)",
        IDENTIFIER,
        "what names one person or case",
    ),
    (r"(.* )?(remarks?|comments?|notes?|free text|address|street|url)", IDENTIFIER, "text to be left out"),
    (
        r"(.* )?(sex|gender|type|category|kind|status|country|state|region|province|ward|department|race|ethnicity"
        r"|religion|nationality|language|currency|education|occupation|profession|channel|segment|city|diagnosis"
        r"|hospital|clinic|branch|industry|sector|brand|reason|outcome|method)"
        r"( code| level)?|product|plan|grade|level",
        CATEGORICAL,
        "one of a list",
    ),
    (r"(.* )?(birth ?date|date of birth|dob|born)", _days(date(1900, 1, 1), date(2030, 12, 31)), "a day of birth"),
    (
        r"(.* )?date|date (of )?.*|admitted|discharged|(.* )?(admission|discharge) day|opened|joined|hired|sign ?up"
        r"|last (contact|login|seen|visit)|(opened|closed|joined|hired|registered|signed up|start(ed)?|end(ed)?) on",
        _days(FIRST_DAY, LAST_DAY),
        "a day of these years, generously",
    ),
    (
        r".* at|(.* )?(date ?time|time ?stamp)",
        _days(FIRST_DAY, LAST_DAY, "second"),
        "a moment of these years, generously",
    ),
    (
        r"(?!.*\b(account|loan|policy|building|house|property|device)\b)(.* )?age( years)?|age (at|on|when) .*",
        _integer(0, 120),
        "an age in years",
    ),
    (
        rf"(?!{ANY_YEAR})(?!.*\b(km|kms|miles|mileage|kwh|hours|amount|cost|premium|income|per)\b)"
        r"(.* )?year( (of|built|made|opened|founded|started|joined|hired|renovated)\b.*)?",
        _integer(1900, 2100),
        "a year",
    ),
    (r"(.* )?quarter", _integer(1, 4), "a quarter of a year"),
    (r"(.* )?(day of month|mday)|day", _integer(1, 31), "a day of a month"),
    (r"(.* )?month", _integer(1, 12), "a month"),
    (r"(.* )?(week ?day|day of week|dow)", _integer(0, 7), "a day of the week"),
    (r"(.* )?hour", _integer(0, 23), "an hour of the day"),
    (r"(.* )?minute", _integer(0, 59), "a minute of the hour"),
    (r"(.* )?(lat|latitude)", _number(-90, 90, round=6), "a latitude in degrees"),
    (r"(.* )?(lon|lng|long|longitude)", _number(-180, 180, round=6), "a longitude in degrees"),
    (rf"{CHANGED}(.* )?(percent|percentage|pct|perc)( .*)?", _number(0, 100), "a percentage"),
    (r"(.* )?(share|ratio|fraction|probability|prob)", _number(0, 1), "a share of one"),
    (r"(body )?weight kg", _number(0, 700, zero_inflated=False), "a person's weight in kilograms"),
    (r"(body )?height cm", _number(0, 300, zero_inflated=False), "a person's height in centimeters"),
    (r"(.* )?(heart rate|pulse|systolic|diastolic)", _integer(0, 400), "a heart rate or a blood pressure"),
    (r"credit score", _integer(0, 1000), "a credit score of the usual scales"),
    (r"(.* )?score", OPEN_NUMBER, SCORE),
    (r"bmi|body mass index", _number(0, 300, zero_inflated=False), "a body mass index"),
    (rf"((num|nr|n|no|number)( of)? )?(\S+ )?{FAMILY}( count)?", _integer(0, 50, outside="clip"), "people of a family"),
    (r"(household|family) size", _integer(0, 50, outside="clip"), "people of a household"),
    (r"(.* )?hours (per|a) week", _number(0, 168), "hours of a week"),
    (COUNTED, COUNT, "a count; a larger one is cut to the max"),
    (rf"(.* )?({PAID})s?{CURRENCY}", OPEN_NUMBER, "an amount"),
    (
        rf"{CHANGED}(?!.*({PRICED})$)(.* )?rate( (percent|pct))?",
        _number(0, 100),
        f"{RATE}, or a share: then the max is 1",
    ),
    (r"(.* )?days (per|a|each) week", _integer(0, 7), "days of a week"),
    (
        r"(.* )?(remote|home|office|work|working|sick|leave|vacation|holiday|training|absence|absent) days",
        _integer(0, 366, scale="log"),
        "days of a year; of a week the max is 7",
    ),
    (
        rf"{_span('days')}|(.* )?(length of stay|los)",
        _integer(0, DAYS_OF_A_CENTURY, scale="log"),
        "days, of a hundred years at most",
    ),
    (_span("weeks"), _integer(0, 5_220, scale="log"), "weeks, of a hundred years at most"),
    (_span("months"), _integer(0, 1_200, scale="log"), "months, of a hundred years at most"),
    (_span("years"), _integer(0, 100), "years, a hundred at most"),
    (_span("hours|hrs"), _number(0, 8_784, scale="log", outside="clip"), "hours, of one year at most"),
    (_span("minutes|mins"), _integer(0, 10_080, scale="log", outside="clip"), "minutes, of one week at most"),
    (_span("seconds|secs"), _integer(0, 86_400, scale="log", outside="clip"), "seconds, of one day at most"),
)
MEASURED = rf"(.* )?({PAID}|total|charge|charges)( .*)?|(.* )?(distance|dist|duration|length)( .*)?"
"""Names of what is paid or measured: no name says how large that can be."""
EITHER = r"(last|first|next|previous) (payment|purchase|order|donation|deposit|claim|bill|salary)"
"""Names of what may be a day, an amount or neither."""
DAY_OR_AMOUNT = "its name may mean a day or an amount, so nothing is suggested: write the type that it has"
ADVICE = (
    "no bound is suggested: take the largest value that a public document allows, such as a tariff or a contract, "
    "with `outside: clip`; write "
)
OF_OTHERS = "the formula that its description says, by which every row of the data is checked"
OF_CLOCK = "times of day, in seconds since midnight; where seconds are written, without `resolution`"
OF_PERSON = "what names one person, as its description says"
OF_CASE = "what names one case, as its description says"
UNIQUE = "what tells rows apart, since it is unique"
OF_BOUNDS = ("whole numbers, since its documented bounds are", "numbers between its documented bounds")
"""What a column is suggested to hold by its bounds, whatever it is called."""
ZEROS, DECIMALS = "`zero_inflated: true` if any can be 0, and ", "`round: DECIMALS`"
SIZES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1)}
A_COUNT = re.compile(
    r"(?:the |die |le |el )?(?:number of|count of|how many|anzahl|zahl der|wie viele|nombre d|combien|número de|cuánt)",
    re.IGNORECASE,
)
"""How what is counted is described."""
A_WHOLE = re.compile(
    r"\b(?:whole|full|number of|count|level|class|group|bands?|ganze?|volle?|anzahl|klasse|gruppe|stufe|entiers?|"
    r"nombre|enter[oa]s?|número)\b",
    re.IGNORECASE,
)
"""Words beside those of money by which numbers are whole."""
ALIKE = {("integer", "number"), ("number", "integer")}


def suggestion(name: str, keys: Mapping[str, Any]) -> Suggestion | None:
    """Suggest what may stand where a column has a TODO; nothing that goes against what is known of it."""
    words, kind, size = _words(name), keys["type"], SIZES.get(keys.get("dtype", ""))
    if kind == TODO and re.fullmatch(EITHER, words):
        return Suggestion({}, DAY_OR_AMOUNT)
    for pattern, offer, because in BY_NAME:
        if because.startswith(RATE) and not _is_below(keys, offer["max"]):
            continue  # of a price by the night or by the hour, or of days
        if re.fullmatch(pattern, words) and (fitted := _fitted(dict(offer), kind, keys)):
            return Suggestion(fitted, re.split("[;,]", because)[0] if _documented(keys) else because)
    numeric = kind in ("integer", "number") and TODO in (keys.get("min"), keys.get("max"))
    if re.fullmatch(MEASURED, words) and (numeric or kind == TODO):
        return Suggestion({}, f"{'' if numeric else 'if it holds numbers, '}{advice_on(keys)}")
    if kind == "datetime":
        moment = _days(FIRST_DAY, LAST_DAY, "second")
        return Suggestion(_open(keys, moment), "a moment of these years, generously")
    if kind == "integer" and size and TODO in (keys.get("min"), keys.get("max")):
        offer = {"min": size[0], "max": size[1]}
        return Suggestion(_open(keys, offer), f"all that a file's {keys['dtype']} can hold")
    return None


def by_bounds(
    keys: Mapping[str, Any], decimals: int | None, unique: bool = False, description: str = ""
) -> Suggestion | None:
    """Suggest numbers where a document has bounds and says no type, whole ones if two bounds are whole; or a key.

    Of an amount whole bounds say nothing: it has cents.
    """
    ends = [keys.get(key) for key in ("min", "max")]
    is_key = keys["type"] == TODO or (keys["type"] == "categorical" and keys.get("values") == TODO)
    if is_key and ends == [None, None] and unique:
        return Suggestion(IDENTIFIER, UNIQUE)
    if keys["type"] == TODO and decimals and any(isinstance(end, int | float) for end in ends):
        known = {key: float(end) if end is not None else TODO for key, end in zip(("min", "max"), ends, strict=True)}
        return Suggestion({"type": "number", **known, "round": decimals}, OF_BOUNDS[1])
    if keys["type"] != TODO or not all(isinstance(end, int | float) for end in ends):
        return None
    if decimals is None and not all(float(end).is_integer() for end in ends):  # type: ignore[arg-type]
        return Suggestion(_number(*ends), OF_BOUNDS[1])  # type: ignore[arg-type]
    low, high = (float(end) for end in ends)  # type: ignore[arg-type]
    if decimals is None and high - low > MOST_STEPS and names_money(description) and not A_WHOLE.search(description):
        return Suggestion(_number(low, high, round=2), f"{OF_BOUNDS[1]}, of an amount, to a cent")
    return Suggestion(_integer(int(low), int(high)), OF_BOUNDS[0])


def of_scale(name: str, keys: Mapping[str, Any], description: str) -> Suggestion | None:
    """Suggest whole numbers for the few steps of a scale that name or words say, such as satisfaction from 1 to 10.

    A file that holds them as floats, as pandas does where values are missing, says nothing else.
    """
    ends = [keys.get(key) for key in ("min", "max")]
    if keys["type"] not in (TODO, "number") or "round" in keys or not all(map(_is_whole, ends)):
        return None
    by_name, units = suggestion(name, {"type": TODO}), A_UNIT_OF.search(description)
    is_score = by_name is None or by_name.because == SCORE or by_name.keys.get("type") == "integer"
    low, high = (int(end) for end in ends if end is not None)
    if units or not is_score or not A_SCALE.search(f"{_words(name)} {description}"):
        return None
    return Suggestion(_integer(low, high), OF_BOUNDS[0]) if FEWEST_STEPS <= high - low <= MOST_STEPS else None


def of_count(keys: Mapping[str, Any], description: str) -> Suggestion | None:
    """Suggest whole numbers from 0 for what is described as a number of things, of which the largest is documented."""
    low, high = keys.get("min", TODO), keys.get("max", TODO)
    is_open = keys["type"] == TODO or (keys["type"] == "integer" and low == TODO)
    if not is_open or low != TODO or not _is_whole(high) or not A_COUNT.match(description):
        return None
    return Suggestion(_integer(0, int(high)), "a count, which begins at 0")


def of_person(name: str, keys: Mapping[str, Any], description: str) -> Suggestion | None:
    """Suggest an identifier for a pseudonym, and for what is called and described as the number of a person or case."""
    is_open = keys["type"] == TODO or (keys["type"] == "categorical" and keys.get("values") == TODO)
    if is_open and PSEUDONYM.match(description):
        return Suggestion(IDENTIFIER, OF_PERSON)
    if not is_open or {"min", "max"} & keys.keys() or not re.search(NUMBERED, _words(name)):
        return None
    words = _words(re.split(r"[;,(]", description)[0])
    if re.fullmatch(NUMBER_OF_CASE, words):
        return Suggestion(IDENTIFIER, OF_CASE)
    return Suggestion(IDENTIFIER, OF_PERSON) if re.fullmatch(NUMBER_OF_PERSON, _words(description)) else None


def _is_whole(end: Any) -> bool:
    return isinstance(end, int | float) and float(end).is_integer()


def advice_on(keys: Mapping[str, Any]) -> str:
    """Say how to choose the bounds of an amount; of its zeros nothing where all of it is known to be above 0."""
    least = keys.get("min", TODO)
    return f"{ADVICE}{ZEROS if isinstance(least, str) or least <= 0 else ''}{DECIMALS}"


def is_no_answer(name: str) -> bool:
    """Tell whether a column is called as what is no answer to a question of yes or no."""
    words = _words(name)
    kind = next((offer["type"] for pattern, offer, _ in BY_NAME if re.fullmatch(pattern, words)), "")
    return kind in ("categorical", "identifier")


def names_a_person(name: str) -> bool:
    """Tell whether a column is called as what tells persons apart, so that its values may be the privacy unit."""
    return re.fullmatch(PERSON, _words(name)) is not None


def _words(name: str) -> str:
    """Return a name as words in lowercase letters: ``birthDate``, ``Birth_Date`` and ``BIRTH DATE`` are the same."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return " ".join(re.findall(r"[^\W\d_]+|\d+", apart.lower()))


def _fitted(offer: dict[str, Any], kind: Any, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the suggested keys that are still open, if the suggestion is for such a column."""
    if kind == TODO:
        return _within(offer, _documented(keys))
    if offer["type"] == "identifier":
        return offer if kind in ("categorical", "integer") and TODO in keys.values() else {}
    if kind != offer["type"] and (kind, offer["type"]) not in ALIKE:
        return {}
    if (kind, offer["type"]) == ("integer", "number"):
        offer = {
            key: int(value) if isinstance(value, float) else value for key, value in offer.items() if key != "round"
        }
    return _open(keys, offer)


def _is_below(keys: Mapping[str, Any], most: float) -> bool:
    """Tell whether the documented bounds are numbers up to one."""
    return all(isinstance(end, int | float) and end <= most for end in _documented(keys).values())


def _documented(keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the bounds that are known of a column whose type is open."""
    return {key: keys[key] for key in ("min", "max") if key in keys} if keys["type"] == TODO else {}


def _within(offer: dict[str, Any], bounds: Mapping[str, Any]) -> dict[str, Any]:
    """Put documented bounds in place of those that are suggested; nothing if the suggested type can have none such."""
    if not bounds or offer["type"] == "identifier":
        return offer
    if offer["type"] not in ("integer", "number") or any(isinstance(bound, date) for bound in bounds.values()):
        return {}
    whole = offer["type"] == "integer" and all(float(bound).is_integer() for bound in bounds.values())
    read = int if whole else float
    known = {key: read(bounds.get(key, offer[key])) for key in ("min", "max") if bounds.get(key, offer[key]) != TODO}
    if len(known) > 1 and known["min"] > known["max"]:
        known = {key: known[key] for key in bounds}
    more: dict[str, Any] = {key: offer[key] for key in ("round", "zero_inflated") if key in offer}
    return {"type": "integer" if whole else "number", "min": TODO, "max": TODO, **known, **more}


def _open(keys: Mapping[str, Any], offer: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a suggestion what fills a TODO; its further keys only if both of its bounds are taken."""
    both = keys.get("min") == keys.get("max") == TODO
    filled = {key: value for key, value in offer.items() if keys.get(key) == TODO != value}
    more = {
        key: offer[key]
        for key in ("scale", "round", "outside", "zero_inflated")
        if key in offer and key not in keys and both
    }
    return filled | more if filled else {}
