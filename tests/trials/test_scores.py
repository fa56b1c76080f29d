"""Trials and scores as objects: joins, speakers, selection, digests, merging."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from unmask.errors import InputError
from unmask.trials import Embeddings, Ids, Scores, Source, Trials, read_key, read_scores

pairs = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz"), st.sampled_from([0, 1, -1])),
    min_size=1,
    max_size=36,
    unique_by=lambda pair: pair[:2],
)


def make(rows: list[tuple[str, str, int]], *, name: str = "s", labels: bool = True) -> Scores:
    number = {word: sum(map(ord, word)) for row in rows for word in row[:2]}
    return Scores(
        Ids.from_strings([e for e, _, _ in rows]),
        Ids.from_strings([t for _, t, _ in rows]),
        np.array([w for _, _, w in rows], np.int8) if labels else None,
        systems={name: np.array([number[e] * 1000.0 + number[t] for e, t, _ in rows])},
        sources=(Source(f"{name}.txt", "0" * 64, "made"),),
    )


def key_of(rows: list[tuple[str, str, int]]) -> Trials:
    return Trials(
        Ids.from_strings([e for e, _, _ in rows]),
        Ids.from_strings([t for _, t, _ in rows]),
        np.array([w for _, _, w in rows], np.int8),
        sources=(Source("key", "0" * 64, "made"),),
    )


@given(pairs, pairs, st.randoms())
def test_join_equals_a_dictionary(scored, keyed, random) -> None:
    random.shuffle(keyed)
    truth = {(e, t): w for e, t, w in keyed}
    expected = [truth[e, t] for e, t, _ in scored if (e, t) in truth]
    missing_label = len(scored) - len(expected)
    missing_score = len(keyed) - len(expected)
    scores = make(scored, labels=False)
    if missing_label or missing_score:
        with pytest.raises(InputError):
            scores.with_key(key_of(keyed))
    if not expected:
        with pytest.raises(InputError, match="none of its"):
            scores.with_key(key_of(keyed), missing="skip")
        return
    joined = scores.with_key(key_of(keyed), missing="skip")
    assert joined.label is not None
    assert joined.label.tolist() == expected
    assert joined.scores().tolist() == [
        float(ord(e) * 1000 + ord(t)) for e, t, _ in scored if (e, t) in truth
    ]
    assert [source.missing for source in joined.sources] == [missing_label, missing_score]


def plain_digest(rows: list[tuple[str, str, int]]) -> str:
    """The definition, with Python's own whole numbers."""
    word, factor = 2**64 - 1, 0x9E3779B97F4A7C15

    def mixed(x: int) -> int:
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & word
        x = (x ^ x >> 27) * 0x94D049BB133111EB & word
        return x ^ x >> 31

    def hashed(name: str) -> int:
        data = name.encode()
        data = hashlib.sha256(data).digest() if len(data) > 128 else data
        parts = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
        return mixed(sum(part * factor**k for k, part in enumerate(parts)) & word)

    total = 0
    for e, t, w in rows:
        low, high = sorted((hashed(e), hashed(t)))
        pair = 2 * mixed((low * factor + high) & word) + (hashed(e) > hashed(t))
        total += mixed((pair + (w + 2) * factor) & word)
    text = f"unmask trials 2\n{len(rows)}\n{total & word:016x}\n"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def test_digest_of_names_of_any_length_and_script() -> None:
    names = ["a", "é", "x" * 7, "y" * 8, "z" * 9, "ü" * 64, "w" * 128, "v" * 129, "ß" * 100]
    for some in (names, names[:5], names[:7]):
        rows = [(a, b, (len(a) + len(b)) % 2) for a in some for b in names if a != b]
        assert make(rows).digest == plain_digest(rows)


@given(pairs, st.randoms())
def test_digest_ignores_order_and_sees_labels(rows, random) -> None:
    digest = make(rows).digest
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert make(shuffled).digest == digest == key_of(shuffled).digest
    assert digest == plain_digest(rows)
    e, t, w = rows[0]
    assert make([(e, t, 1 - abs(w)), *rows[1:]]).digest != digest
    assert make([("o", t, w), *rows[1:]]).digest != digest
    assert make(rows, labels=False).digest != digest
    padded = make([*rows, ("z", "a", 1)])
    assert padded.select(np.arange(len(rows))).digest == digest


def test_digest_is_stable() -> None:
    """Fixed for good: a digest in a published signature must stay what it was."""
    rows = [("a", "u", 1), ("a", "v", 0), ("b", "u", -1)]
    assert make(rows).digest == "e4a72973"
    assert Scores.from_arrays([1.0, 2.0], [0.0, -np.inf]).digest == "81bd766b"


def test_digest_of_arrays_ignores_order() -> None:
    digest = Scores.from_arrays([1.0, 2.0], [0.0, -1.0]).digest
    assert Scores.from_arrays([2.0, 1.0], [-1.0, -0.0]).digest == digest
    assert Scores.from_arrays([2.0, 0.0], [-1.0, 1.0]).digest != digest


def test_mismatch_tells_counts_of_both_sides(sentences) -> None:
    scores = make([("a", "u", 1), ("a", "v", 0), ("b", "u", 0)])
    key = key_of([("a", "u", 1), ("c", "u", 0)])
    with pytest.raises(InputError) as caught:
        scores.with_key(key)
    message = str(caught.value)
    sentences.check(message)


def test_tables_are_merged_with_the_labels_that_one_has(sentences) -> None:
    rows = [("a", "u", 1), ("a", "v", 0), ("b", "u", -1)]
    labelled, plain = make(rows), make(rows[::-1], name="t", labels=False)
    for tables in ((labelled, plain), (plain, labelled)):
        merged = Scores.merged(*tables)
        assert dict(zip(map(merged.trial, range(3)), merged.label, strict=True)) == {
            "a u": 1,
            "a v": 0,
            "b u": -1,
        }
    assert Scores.merged(plain, make(rows, name="x", labels=False)).label is None
    other = make([*rows[:2], ("b", "u", 1)], name="t")
    with pytest.raises(InputError) as error:
        Scores.merged(labelled, other)
    sentences.check(str(error.value))


def test_key_that_contradicts_the_labels(sentences) -> None:
    scores = make([("a", "u", 1), ("a", "v", 0)])
    with pytest.raises(InputError) as error:
        scores.with_key(key_of([("a", "u", 1), ("a", "v", 1)]))
    sentences.check(str(error.value))


def test_duplicates(sentences) -> None:
    rows = [("a", "u", 1), ("a", "v", 0), ("a", "u", 1)]
    with pytest.raises(InputError) as error:
        make(rows).with_key(key_of(rows[:2]))
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="key, row 3"):
        make(rows[:2]).with_key(key_of(rows))
    joined = make(rows).with_key(key_of(rows), duplicates="skip")
    assert len(joined) == 2
    assert [source.duplicates for source in joined.sources] == [1, 1]


def test_select_and_masks(sentences) -> None:
    scores = make([("a", "u", 1), ("a", "v", 0), ("b", "u", -1), ("b", "v", 0)])
    assert scores.is_target.tolist() == [True, False, False, False]
    assert scores.is_nontarget.tolist() == [False, True, False, True]
    kept = scores.select(~scores.is_target)
    assert kept.counts == {"target": 0, "nontarget": 2, "other": 1}
    with pytest.raises(InputError) as error:
        kept.check_classes()
    sentences.check(str(error.value))
    with pytest.raises(ValueError, match="mask of 4"):
        scores.select(np.array([True]))


def test_validation(sentences) -> None:
    ids = Ids.from_strings(["a", "b"])
    with pytest.raises(InputError) as error:
        Scores(ids, ids, None, systems={"x": np.array([1, np.nan])})
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="one length"):
        Scores(ids, ids, None, systems={"x": np.array([1.0])})
    with pytest.raises(InputError, match="found none"):
        Scores(ids, ids, None)
    with pytest.raises(InputError, match="labels 1, 0 or -1"):
        Trials(ids, ids, np.array([1, 2], np.int8))
    with pytest.raises(InputError) as error:
        Trials(ids, None, np.array([1, 0], np.int8))
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="no labels"):
        _ = Scores(ids, ids, None, systems={"x": np.array([1.0, 2.0])}).is_target
    with pytest.raises(InputError) as error:
        Scores.from_arrays([1], [0]).with_key(key_of([("a", "u", 1)]))
    sentences.check(str(error.value))
    scores = Scores(ids, ids, None, systems={"x": np.ones(2), "y": np.ones(2)})
    for name in (None, "z"):
        with pytest.raises(InputError) as error:
            scores.scores(name)
        sentences.check(str(error.value))
    values = np.array([1.0, 2.0])
    frozen = Scores(ids, ids, None, systems={"x": values})
    with pytest.raises(ValueError, match="read-only"):
        frozen.scores()[0] = 5
    values[0] = 3.0


def put(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_speakers_from_utt2spk_with_models_named_as_speakers(tmp_path: Path, sentences) -> None:
    table = put(tmp_path / "utt2spk", "u1 A\nu2 A\nv1 B\n")
    path = put(tmp_path / "x", "A u1 0.5\nA v1 0.1\nu2 v1 0.3\n")
    scores = read_scores(path, speakers=table)
    assert scores.enrol_speaker is not None
    assert scores.test_speaker is not None
    assert scores.enrol_speaker.to_series().to_list() == ["A", "A", "A"]
    assert scores.test_speaker.to_series().to_list() == ["A", "B", "B"]
    assert scores.enrol_speaker.names is scores.test_speaker.names
    assert (scores.n_speakers, scores.sources[0].speakers) == (2, 2)
    assert scores.sources[1].format == "utt2spk"
    put(tmp_path / "utt2spk", "u1 A\n")
    with pytest.raises(InputError) as error:
        read_scores(path, speakers=table)
    sentences.check(str(error.value))
    put(tmp_path / "utt2spk", "u1 A\nu1 B\n")
    with pytest.raises(InputError) as error:
        read_scores(path, speakers=table)
    sentences.check(str(error.value))


def test_speakers_from_a_pattern_or_mapping(tmp_path: Path, sentences) -> None:
    path = put(tmp_path / "x", "11-1-2 11-1-3 target\n11 12-4-5 nontarget\n")
    key = read_key(path, speakers="pattern:^([^-]+)-")
    assert key.enrol_speaker is not None
    assert key.enrol_speaker.to_series().to_list() == ["11", "11"]
    assert key.n_speakers == 2
    with pytest.raises(InputError, match="found none for 2"):
        read_key(path, speakers="pattern:^x(.)")
    for several in ("abc", "^(1)(.)"):
        with pytest.raises(InputError) as error:
            read_key(path, speakers=f"pattern:{several}")
        sentences.check(str(error.value))
    with pytest.raises(InputError, match="regular expression"):
        read_key(path, speakers="pattern:(")
    mapping = {"11-1-2": "p", "11-1-3": "p", "11": "p", "12-4-5": "q"}
    assert read_key(path, speakers=mapping).n_speakers == 2


def test_merging_systems(sentences) -> None:
    rows = [("a", "u", 1), ("a", "v", 0), ("b", "u", 0)]
    merged = Scores.merged(make(rows), make(rows[::-1], name="t"))
    assert list(merged.systems) == ["s", "t"]
    assert merged.scores("s").tolist() == merged.scores("t").tolist()
    assert [source.name for source in merged.sources] == ["s.txt", "t.txt"]
    assert Scores.merged(make(rows, labels=False), make(rows[::-1], name="t")).label is not None
    with pytest.raises(InputError) as error:
        Scores.merged(make(rows), make(rows[:2], name="t"))
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        Scores.merged(make(rows[:2]), make(rows, name="t"))
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="1 trials labelled otherwise"):
        Scores.merged(make(rows), make([("a", "u", 0), *rows[1:]], name="t"))
    with pytest.raises(InputError, match="trial by trial"):
        Scores.merged(make(rows), Scores.from_arrays([1.0], [0.0, 2.0]))


def test_equal_system_names_get_their_folder(tmp_path: Path) -> None:
    tables = []
    for folder in ("b1", "b2"):
        (tmp_path / folder).mkdir()
        tables.append(read_scores(put(tmp_path / folder / "scores.txt", "a b 0.5\n")))
    assert list(Scores.merged(*tables).systems) == ["b1/scores", "b2/scores"]
    assert list(Scores.merged(tables[0], tables[0]).systems) == ["b1/scores", "b1/scores (2)"]


def test_side_in_one_file_only(tmp_path: Path, sentences) -> None:
    key = put(tmp_path / "k", "m x target\nm y nontarget\n")
    head = "modelid\tsegmentid\tside\tLLR\n"
    scores = read_scores(put(tmp_path / "s.tsv", head + "m\ty\ta\t0.5\nm\tx\tb\t1.5\n"), key=key)
    assert scores.targets().tolist() == [1.5]
    both = put(tmp_path / "s.tsv", head + "m\tx\ta\t0.5\nm\tx\tb\t1.5\nm\ty\ta\t0\n")
    with pytest.raises(InputError) as error:
        read_scores(both, key=key)
    sentences.check(str(error.value))


def test_tables_and_voices_show_themselves_in_a_line(sentences):
    table = Scores.from_arrays([1.0, 2.0], [0.0], system="plda")
    sentences.check(repr(table))
    ids = Ids.from_strings(["a", "b", "c", "d", "a"])
    sentences.check(repr(ids))
    voices = Embeddings(np.ones((5, 3), np.float32), ids, columns={"sex": ["f"] * 5})
    sentences.check(repr(voices))
    key = Trials(ids, ids, [1, 0, 0, 1, -1], enrol_speaker=ids, test_speaker=ids)
    sentences.check(repr(key))
