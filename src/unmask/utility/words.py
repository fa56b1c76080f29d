"""Words and characters that a recogniser gets wrong: WER and CER.

WER = (S + D + I)/N: substitutions, deletions and insertions of the cheapest alignment of the
hypothesis with the reference, over the words of the reference (Levenshtein 1966). It may exceed 1.
Silence, all of whose words are deleted, has a WER of 1. CER is the same for characters, blanks
between words among them. jiwer finds the alignment.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from unmask.speech import needed

_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "`": "'"})
_LOOSE = re.compile(r"(?<!\w)'|'(?!\w)")


class Errors(NamedTuple):
    """Errors in words and characters, and how many of either the reference has."""

    word_errors: int
    words: int
    character_errors: int
    characters: int


def normalised(text: str) -> str:
    """The same words without case and punctuation: NFKC, folded, apostrophes within words kept.

    Combining marks stay with their letters, so that scripts other than Latin keep their words.
    """
    folded = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold()
    words = "".join(c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return " ".join(_LOOSE.sub(" ", words).split())


def errors(reference: str, hypothesis: str) -> Errors:
    """Errors of a ``hypothesis`` against a ``reference``, both normalised first.

    An empty reference has no words, and every word of the hypothesis is an insertion.
    """
    right, heard = normalised(reference), normalised(hypothesis)
    if not right:
        return Errors(len(heard.split()), 0, len(heard), 0)
    jiwer = needed("jiwer", "jiwer", "utility")
    words, characters = jiwer.process_words(right, heard), jiwer.process_characters(right, heard)
    return Errors(
        words.substitutions + words.deletions + words.insertions,
        words.hits + words.substitutions + words.deletions,
        characters.substitutions + characters.deletions + characters.insertions,
        characters.hits + characters.substitutions + characters.deletions,
    )
