"""Cutting text into sentences: the languages, what no text can break, and the time it takes."""

import time

import pytest

from dpmodels.text.sentences import CHUNK, LONGEST, split_sentences


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "Dr. Smith went home at 5 p.m. yesterday.  He was late!\n\nWas he?", 3),
        ("de", "Herr Dr. Müller kam z.B. gestern. Er ging.", 2),
        ("ja", "これは文です。次の文。", 2),
        ("hi", "नमस्ते। कैसे हो?", 2),
        ("zzz", "One. Two.", 2),
        ("en", "", 0),
        ("en", " \n\u2003\t\n", 0),
        ("en", "\x00\ud7ff\ufdd0\U0010ffff", 1),
        ("en", "\ud800 half a pair. \udfff the other.", 3),
        ("en", "😀. 😁! e\u0301\u202e", 3),
    ],
)
def test_text_is_cut_by_the_rules_of_its_language(language: str, text: str, sentences: int):
    found = split_sentences(text, language, 100)
    assert len(found) == sentences
    assert all(sentence == sentence.strip() and sentence for sentence in found)
    "".join(found).encode()  # every sentence can be written


def test_only_the_first_sentences_are_taken():
    assert split_sentences("One. Two. Three.", "en", 2) == ["One.", "Two."]


def test_the_words_of_one_sentence_may_decide_how_others_are_cut():
    """So neighbors differ in one place of the list, not of the text; the report says it."""
    assert len(split_sentences('I saw it. He left. She came." They slept.', "en", 9)) == 4
    assert len(split_sentences('I "saw it. He left. She came." They slept.', "en", 9)) == 2


@pytest.mark.parametrize("text", ["a", "word ", '"', "(", ".", "\n", "Dr. ", '"a. ', "? "])
def test_two_megabytes_of_anything_are_cut_in_a_moment(text: str):
    began = time.process_time()
    found = split_sentences(text * (2_000_000 // len(text)), "en", 200)
    assert time.process_time() - began < 10  # a quadratic rule would take minutes
    assert len(found) <= 200 and all(len(sentence) <= LONGEST for sentence in found)


def test_a_long_text_is_cut_as_if_it_came_at_once():
    """What is cut next begins where the sentence did that was not finished."""
    sentence = "This sentence has fifty-nine characters, for what it is worth. "
    found = split_sentences(sentence * (3 * CHUNK // len(sentence)), "en", 10**6)
    assert set(found) == {sentence.strip()}


@pytest.mark.parametrize("place", [0, 7, 700, 1500])
@pytest.mark.parametrize("more", ["A plain sentence more.", "Never again.", "x" * 70_000 + "."])
def test_a_plain_sentence_moves_no_cut_of_a_long_text(place: int, more: str):
    """Of others, wherever in the document they are."""
    words = [
        "Mr. No came by at 5 p.m. on day {n}.",
        'She said "It is {n}. It is late." and left.',
        "Was it {n}?",
        "Dr. B. has {n}.",
    ]
    sentences = [words[number % 4].format(n=number * 37 % 1001) for number in range(6000)]
    others = split_sentences(" ".join(sentences), "en", 10**6)
    assert len(" ".join(sentences)) > 2 * CHUNK and len(others) > 5000
    found = split_sentences(" ".join([*sentences[:place], more, *sentences[place:]]), "en", 10**6)
    at = next(index for index, pair in enumerate(zip(found, others, strict=False)) if pair[0] != pair[1])
    assert found[:at] + found[at + 1 :] == others and found[at] == more[:LONGEST]


def test_a_sentence_that_is_replaced_in_a_long_text_is_the_only_one_that_changes():
    sentences = [f"It was day {number} of the journey." for number in range(4000)]
    others = split_sentences(" ".join(sentences), "en", 10**6)
    for length in range(4, 140, 9):
        found = split_sentences(" ".join([*sentences[:5], "w" * length + ".", *sentences[6:]]), "en", 10**6)
        assert found == [*others[:5], "w" * length + ".", *others[6:]]
