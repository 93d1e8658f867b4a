"""Rules of a row in words of other languages, answered with the words that a schema has: when, and, then."""

import re

WORDS = {
    "when": "wenn|falls|sofern|si|quand|lorsque|cuando|if",
    "and": "und|et|y|e|&&?",
    "then": "dann|so|alors|entonces",
}
WORD_FOR = {word: english for english, words in WORDS.items() for word in words.split("|")} | {"&": "and", "&&": "and"}
FIRST = re.compile(rf"\s*(?:when|{WORDS['when']})\s", re.IGNORECASE)
FOREIGN = re.compile(rf"(?<![=<>]\s)(?<=\s)(?:{WORDS['and']}|{WORDS['then']})(?=\s)", re.IGNORECASE)
"""Words between conditions, and none that is the value behind a sign."""
SWAPPED = "has {}, which is no comparison; write {}"
OTHER_WORDS = "has {}; a rule is written with `when`, `and`, `then`: `{}`"


def advice_on(text: str) -> str:
    """Say how a rule with faults is written in the words and signs that a schema has; nothing where it has them."""
    if sign := re.search("=[<>]", text):
        return SWAPPED.format(sign[0], sign[0][::-1])
    first = FIRST.match(text)
    if first is None or first[0].strip() == "if":
        return ""
    words = [one for one in (first[0].strip(), *FOREIGN.findall(text[first.end() - 1 :])) if one != "when"]
    rest = FOREIGN.sub(lambda word: WORD_FOR[word[0].casefold()], text[first.end() - 1 :])
    rest = re.sub(r",\s+then\s", " then ", rest)
    named = ", ".join(f"`{one}`" for one in dict.fromkeys(words))
    return OTHER_WORDS.format(named, f"when{rest}") if words and " then " in rest else ""
