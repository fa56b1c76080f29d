"""WER and CER against the definition written out, transcripts in every layout, bad input."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from unmask.errors import InputError
from unmask.utility import normalised, read_labels, read_transcripts
from unmask.utility.words import errors

pytest.importorskip("jiwer")


def edits(right, heard):
    """Levenshtein's distance, written out: d[i][j] for the first i and j of either."""
    d = [[i + j if i * j == 0 else 0 for j in range(len(heard) + 1)] for i in range(len(right) + 1)]
    for i in range(1, len(right) + 1):
        for j in range(1, len(heard) + 1):
            d[i][j] = min(
                d[i - 1][j] + 1,
                d[i][j - 1] + 1,
                d[i - 1][j - 1] + (right[i - 1] != heard[j - 1]),
            )
    return d[-1][-1]


WORDS = st.lists(
    st.sampled_from(["null", "eins", "zwö", "三", "четыре", "don't", "e\u0301"]), max_size=7
)


@given(WORDS, WORDS)
@example([], [])
@example([], ["null"])
@example(["null"], [])
@example(["a"], ["a", "a", "a"])
def test_errors_are_the_fewest_edits(right, heard):
    result = errors(" ".join(right), " ".join(heard))
    right, heard = ([normalised(word) for word in words] for words in (right, heard))
    assert (result.word_errors, result.words) == (edits(right, heard), len(right))
    characters = " ".join(right), " ".join(heard)
    assert result.character_errors == edits(*characters)
    assert result.characters == len(characters[0])


def test_case_and_punctuation_do_not_count():
    assert normalised("  “Don’t” — Stop, 3 TIMES! ") == "don't stop 3 times"
    assert normalised("‘quoted’ rock'n'roll") == "quoted rock'n'roll"
    assert normalised("STRASSE Straße") == "strasse strasse"
    assert normalised("हिन्दी में") == "हिन्दी में"
    assert errors("Zero, one!", "zero ONE").word_errors == 0


def test_transcripts_of_every_layout(tmp_path, sentences):
    right = {"a-1": "zero one", "a-2": "two"}
    (tmp_path / "text").write_text("a-1 zero one\na-2\ttwo\n")
    (tmp_path / "t.csv").write_text('utt_id,text\nfolder/a-1.flac,"zero one"\na-2.wav,two\n')
    (tmp_path / "t.tsv").write_text("sentence\tpath\nzero one\ta-1.wav\ntwo\ta-2.wav\n")
    libri = tmp_path / "84" / "121"
    libri.mkdir(parents=True)
    (libri / "84-121.trans.txt").write_text("a-1 zero one\na-2 two\n")
    (tmp_path / "kaldi").mkdir()
    (tmp_path / "kaldi" / "text").write_text("a-1 zero one\na-2\ttwo\n")
    for source in ("text", "t.csv", "t.tsv", "84", "kaldi"):
        assert read_transcripts(tmp_path / source) == right
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError) as error:
        read_transcripts(tmp_path / "none")
    sentences.check(str(error.value))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text", "a zero\nb  \n"),
        ("text", "a zero\nb ,.\n"),
        ("text", "a zero\na one\n"),
        ("text", ""),
        ("t.csv", "name,words here\na,b\n"),
        ("t.csv", "utterance,said\na,b\n"),
        ("t.csv", "utterance,text\na\n"),
    ],
)
def test_bad_transcripts_are_one_line(tmp_path, name, content, sentences):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as error:
        read_transcripts(tmp_path / name)
    sentences.check(str(error.value))
    assert "\n" not in str(error.value)


def test_hypotheses_may_be_empty(tmp_path):
    (tmp_path / "text").write_text("a zero\nb\n")
    assert read_transcripts(tmp_path / "text", empty=True) == {"a": "zero", "b": ""}


def test_labels(tmp_path, sentences):
    (tmp_path / "l.csv").write_text("utterance,emotion\na,sad\nb,glad\n")
    assert read_labels(tmp_path / "l.csv") == {"a": "sad", "b": "glad"}
    (tmp_path / "l").write_text("a sad\nb\n")
    with pytest.raises(InputError) as error:
        read_labels(tmp_path / "l")
    sentences.check(str(error.value))
