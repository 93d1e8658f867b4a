"""Cut a text into sentences by sentencex's rules for its language: abbreviations, quotations, other scripts.

A document is protected sentence by sentence, and a sentence is what this module returns. So a neighbor of a document is
one whose list of sentences differs in one place, and the length of that list is public.
"""

CHUNK = 2**16
"""Characters that are cut at once; the rules take quadratic time for some texts."""
LONGEST = 10_000
"""Characters of a sentence that are read; what follows them is left out."""


def split_sentences(text: str, language: str, most: int) -> list[str]:
    """Return the first ``most`` sentences of a text, without white space around them; none is empty.

    Any text has sentences: one in a language without rules of its own is cut by those of English, half of a surrogate
    pair is read as a question mark, and a text without an end of a sentence is one sentence. The time is linear.
    """
    from sentencex import segment

    whole = text.encode("utf-8", "replace").decode()
    found: list[str] = []
    open_ = ""  # the sentence that the end of the last chunk cut
    for start in range(0, len(whole), CHUNK):
        pieces: list[str] = segment(language, whole[start : start + CHUNK])
        pieces[0] = open_ + pieces[0]
        open_ = pieces.pop()[:LONGEST]
        found += filter(None, (piece.strip()[:LONGEST] for piece in pieces))
        if len(found) >= most:
            return found[:most]
    return [*found, *filter(None, [open_.strip()])]
