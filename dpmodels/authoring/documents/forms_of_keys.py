"""The form of keys, where words say it: `B and seven digits`."""

import re

COUNTS = {
    1: "one|ein|eine|einer|un|une|una",
    2: "two|zwei|deux|dos",
    3: "three|drei|trois|tres",
    4: "four|vier|quatre|cuatro",
    5: "five|fünf|cinq|cinco",
    6: "six|sechs|seis",
    7: "seven|sieben|sept|siete",
    8: "eight|acht|huit|ocho",
    9: "nine|neun|neuf|nueve",
    10: "ten|zehn|dix|diez",
    11: "eleven|elf|onze|once",
    12: "twelve|zwölf|douze|doce",
}
NUMBER_OF = {word: count for count, words in COUNTS.items() for word in words.split("|")}
FORM = re.compile(
    rf"(?P<letters>[A-Z]{{1,6}}[-_]?)\s*(?:and|then|plus|followed by|et|puis|suivie? d[e']|und|dann|y|\+|,)\s*"
    rf"(?P<count>\d{{1,2}}|(?i:{'|'.join(NUMBER_OF)}))\s+(?i:digits?|chiffres?|ziffern?|dígitos?|cifras?|numbers?)"
)


def form_of(words: str) -> str:
    """Return the pattern of keys whose form words say, such as `B and seven digits`; an empty text where none does."""
    if (match := FORM.search(words)) is None:
        return ""
    count = int(match["count"]) if match["count"].isdecimal() else NUMBER_OF[match["count"].casefold()]
    return f"{match['letters']}[0-9]{{{count}}}" if count else ""


def is_form(words: str) -> bool:
    """Tell whether words say the form of keys and nothing else."""
    return FORM.fullmatch(words.strip(" .")) is not None and bool(form_of(words))


def with_other_letter(pattern: str) -> str:
    """Return a pattern of keys with another first letter, so that none that is made is a documented one."""
    return ("Z" if pattern.startswith("X") else "X") + pattern[1:]
