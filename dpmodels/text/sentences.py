"""Cut a text into sentences by sentencex's rules for its language: abbreviations, quotations, other scripts.

A document is protected sentence by sentence, and a sentence is what this module returns. So a neighbor of a document is
one whose list of sentences differs in one place, and the length of that list is public.
"""

import re

CHUNK = 2**16
"""Characters that are cut at once; the rules take quadratic time for some texts."""
AHEAD = 2**14
"""Characters of them behind the last sentence that is taken: a rule may look ahead, as for the end of a quotation."""
LONGEST = 10_000
"""Characters of a sentence that are read; what follows them is left out."""

WIDE = re.compile(r"[^\S\x00-\x7f]")
"""White space of more than a byte: at some of it the rules of sentencex end in an error that quotes the text."""

WITHIN = re.compile(r"(?<=\w)['’](?=\w)")
PAIRS = re.compile("[\"'`“”„‟‘’‚‛«»‹›()\\[\\]{}「」『』（）［］｛｝〈〉《》【】〔〕]")


def split_sentences(text: str, language: str, most: int) -> list[str]:
    """Return the first ``most`` sentences of a text, without white space around them; none is empty.

    Any text has sentences: one in a language without rules of its own is cut by those of English, half of a surrogate
    pair is read as a question mark, and a text without an end of a sentence is one sentence. The time is linear.

    Privacy: of a text of more than ``CHUNK`` characters, what is cut at once begins where a sentence does, and
        quotation marks and brackets, whose rules look through all of it, count for nothing. So a plain sentence more
        moves no cut of others, unless with it the text grows past ``CHUNK``.
    """
    from sentencex import segment

    whole = WIDE.sub(" ", text.encode("utf-8", "replace").decode())
    ruled = whole if len(whole) <= CHUNK else PAIRS.sub(" ", WITHIN.sub("x", whole))
    sentences: list[str] = []
    fragment, start = "", 0  # a sentence that is longer than what is cut at once
    while start < len(whole) and len(sentences) < most:
        ends = start + CHUNK >= len(whole)
        room, offset = CHUNK - AHEAD, 0
        for size in map(len, segment(language, ruled[start : start + CHUNK])):
            if not ends and offset + size > room:
                break
            piece = fragment + whole[start + offset : start + offset + size]
            sentences += filter(None, [piece.strip()[:LONGEST]])
            fragment, offset = "", offset + size
        if not offset:
            fragment, offset = (fragment + whole[start : start + room])[:LONGEST], room
        start += offset
    return [*sentences, *filter(None, [fragment.strip()])][:most]
