"""Each format of the table of formats, read from a file made here."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unmask.errors import InputError
from unmask.trials import (
    FORMATS,
    Scores,
    Trials,
    read_any,
    read_key,
    read_scores,
    read_speakers,
    streamed_scores,
)

E, T = ["s1", "s1", "s2", "s2"], ["u1", "u2", "u1", "u3"]
S, L = [0.9, -0.25, 0.1, 1.5], [1, 0, 0, 1]
WORDS = ["nontarget", "target"]


def put(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.write_bytes((end.join(lines) + end).encode())
    return path


def check(scores: Scores, *, labels: bool = True, ids: bool = True) -> None:
    assert scores.scores().tolist() == S
    if labels:
        assert scores.label is not None
        assert scores.label.tolist() == L
        assert sorted(scores.targets()) == [0.9, 1.5]
        assert sorted(scores.nontargets()) == [-0.25, 0.1]
    if ids:
        assert scores.enrol is not None
        assert scores.test is not None
        assert scores.enrol.to_series().to_list() == E
        assert scores.test.to_series().to_list() == T


LABELLED = {
    "speechbrain": lambda e, t, s, w: f"{e} {t} {w} {s}",
    "wespeaker": lambda e, t, s, w: f"{e} {t} {s} {WORDS[w]}",
    "wespeaker-norm": lambda e, t, s, w: f"{e} {t} {s} {WORDS[w]} 0.1 0.2 0.3 0.4",
    "3d-speaker": lambda e, t, s, w: f"{e} {t} {WORDS[w]} {s}",
    "sunine": lambda e, t, s, w: f"{w} {e} {t} {s}",
    "bob-5": lambda e, t, s, w: f"{OWNER[t] if w else e + 'x'} {e} {OWNER[t]} {t} {s}",
}
OWNER = {"u1": "k1", "u2": "k2", "u3": "k3"}


@pytest.mark.parametrize("name", LABELLED)
def test_labelled_layouts(tmp_path: Path, name: str) -> None:
    lines = [LABELLED[name](*row) for row in zip(E, T, S, L, strict=True)]
    scores = read_scores(put(tmp_path / "x.score", lines))
    check(scores)
    assert scores.sources[0].format == name
    assert list(scores.systems) == ["x"]


def test_wespeaker_with_digits(tmp_path: Path) -> None:
    lines = [f"{e} {t} {s} {w}" for e, t, s, w in zip(E, T, S, L, strict=True)]
    assert read_scores(put(tmp_path / "x", lines)).sources[0].format == "wespeaker"


def test_kaldi_scores_and_trials_are_joined_by_trial(tmp_path: Path) -> None:
    scores = put(tmp_path / "scores", [f"{e} {t} {s}" for e, t, s in zip(E, T, S, strict=True)])
    rows = [f"{e} {t} {WORDS[w]}" for e, t, w in zip(E, T, L, strict=True)]
    key = put(tmp_path / "trials", rows[::-1])
    check(read_scores(scores), labels=False)
    assert read_scores(scores).label is None
    joined = read_scores(scores, key=key)
    check(joined)
    assert [source.format for source in joined.sources] == ["kaldi-scores", "kaldi-trials"]
    assert (joined.sources[1].target, joined.sources[1].nontarget) == (2, 2)


def test_kaldi_compute_eer_input(tmp_path: Path) -> None:
    lines = [f"{s} {WORDS[w]}" for s, w in zip(S, L, strict=True)]
    scores = read_scores(put(tmp_path / "x", lines))
    check(scores, ids=False)
    assert scores.enrol is None
    assert scores.sources[0].format == "kaldi-eer"


def test_voxceleb_list(tmp_path: Path) -> None:
    key = read_key(
        put(tmp_path / "veri.txt", [f"{w} {e} {t}" for e, t, w in zip(E, T, L, strict=True)])
    )
    assert key.label is not None
    assert key.label.tolist() == L
    assert key.source is not None
    assert key.source.format == "voxceleb"


def test_nist_scores_with_side_and_key(tmp_path: Path) -> None:
    scores = put(
        tmp_path / "s.tsv",
        ["modelid\tsegmentid\tside\tLLR", "m1\tx\ta\t1.0", "m1\tx\tb\t-1.0", "m2\tx\ta\t0.5"],
    )
    key = put(
        tmp_path / "k.tsv",
        [
            "modelid\tsegmentid\tside\ttargettype\tnum_enroll_segs\tgender",
            "m2\tx\ta\tnontarget\t3\tmale",
            "m1\tx\tb\tnontarget\t1\tmale",
            "m1\tx\ta\ttarget\t1\tfemale",
        ],
    )
    result = read_scores(scores, key=key)
    assert result.label is not None
    assert result.label.tolist() == [1, 0, 0]
    assert result.columns["gender"].to_series().to_list() == ["female", "male", "male"]
    assert result.columns["num_enroll_segs"].to_series().to_list() == ["1", "1", "3"]
    assert [s.format for s in result.sources] == ["nist-scores", "nist-key"]
    assert list(result.systems) == ["s"]


def test_nist_scores_without_side(tmp_path: Path) -> None:
    path = put(tmp_path / "s.tsv", ["modelid\tsegmentid\tLLR", "m1\tx\t1.0"])
    assert read_scores(path).sources[0].format == "nist-scores"


def test_asvspoof5(tmp_path: Path) -> None:
    scores = put(
        tmp_path / "s.tsv",
        [
            "spk\tfilename\tcm-score\tasv-score\tsasv-score",
            "E_1\tF_1\t-\t-\t0.04",
            "E_1\tF_2\t-\t-\t0.5",
            "E_1\tF_3\t-\t-\t-0.5",
        ],
    )
    key = put(
        tmp_path / "k.tsv",
        [
            "spk\tfilename\tcm-label\tasv-label",
            "E_1\tF_3\tspoof\tspoof",
            "E_1\tF_2\tbonafide\ttarget",
            "E_1\tF_1\tbonafide\tnontarget",
        ],
    )
    result = read_scores(scores, key=key)
    assert list(result.systems) == ["sasv-score"]
    assert result.label is not None
    assert result.label.tolist() == [0, 1, -1]
    assert result.counts == {"target": 1, "nontarget": 1, "other": 1}
    assert "cm-score, asv-score" in result.sources[0].detected
    assert "1 spoof" in result.sources[1].detected
    assert result.columns["cm_label"].decode(0) == "bonafide"


def test_asvspoof5_track_1(tmp_path: Path) -> None:
    scores = put(tmp_path / "s.tsv", ["filename\tcm-score", "F_1\t0.5", "F_2\t-0.5"])
    key = put(tmp_path / "k.tsv", ["filename\tcm-label", "F_2\tspoof", "F_1\tbonafide"])
    result = read_scores(scores, key=key)
    assert [source.format for source in result.sources] == [
        "asvspoof5-cm-scores",
        "asvspoof5-cm-key",
    ]
    assert list(result.systems) == ["cm-score"]
    assert result.label is not None
    assert result.label.tolist() == [1, -1]
    assert [result.trial(row) for row in range(2)] == ["F_1 F_1", "F_2 F_2"]


def long_lines(separator: str) -> list[str]:
    head = ["Enroll", "TEST", "enrol_spk", "test_spk", "sex", "age", "label", "plda", "cosine"]
    rows = [
        [e, t, e, f"v{t[1:]}", "f", "33", str(w), str(s), str(-s)]
        for e, t, s, w in zip(E, T, S, L, strict=True)
    ]
    return [separator.join(row) for row in [head, *rows]]


@pytest.mark.parametrize("separator", ["\t", ",", ";", " ", "   "])
def test_long_table(tmp_path: Path, separator: str, sentences) -> None:
    scores = read_scores(put(tmp_path / "x.csv", long_lines(separator)))
    assert list(scores.systems) == ["plda", "cosine"]
    assert scores.targets("plda").tolist() == [0.9, 1.5]
    assert scores.targets("cosine").tolist() == [-0.9, -1.5]
    assert set(scores.columns) == {"sex", "age"}
    assert scores.has_speakers
    assert scores.n_speakers == 5
    assert scores.enrol_speaker is not None
    assert scores.test_speaker is not None
    assert scores.enrol_speaker.names is scores.test_speaker.names
    assert "systems: plda, cosine" in scores.sources[0].detected
    picked = read_scores(tmp_path / "x.csv", systems=["cosine"])
    assert list(picked.systems) == ["cosine"]
    with pytest.raises(InputError) as error:
        read_scores(tmp_path / "x.csv", systems=["age_x"])
    sentences.check(str(error.value))


def test_long_table_with_quotes_and_generic_name(tmp_path: Path) -> None:
    path = put(
        tmp_path / "sys7.csv",
        ['"enrol","test","label","score"', '"a, b","c",TRUE,1.5', '"d","e",False,-2'],
    )
    scores = read_scores(path)
    assert list(scores.systems) == ["sys7"]
    assert scores.enrol is not None
    assert scores.enrol.to_series().to_list() == ["a, b", "d"]


def test_enrolment_speaker_stands_in_for_the_model(tmp_path: Path) -> None:
    path = put(
        tmp_path / "x.tsv",
        [
            "claimed_spk\ttest\ttest_spk\tattack\tkey\tplda",
            "a\tx\ta\t-\ttarget\t1",
            "a\ty\tb\tA01\tspoof\t2",
        ],
    )
    scores = read_scores(path)
    assert scores.enrol is not None
    assert scores.enrol.to_series().to_list() == ["a", "a"]
    assert scores.has_speakers
    assert scores.label is not None
    assert scores.label.tolist() == [1, -1]


def test_parquet(tmp_path: Path) -> None:
    pl.DataFrame({"enrol": E, "test": T, "label": [bool(w) for w in L], "plda": S}).write_parquet(
        tmp_path / "x.parquet"
    )
    check(read_scores(tmp_path / "x.parquet"))
    pl.DataFrame({"enrol": E, "test": T, "label": [float(w) for w in L]}).write_parquet(
        tmp_path / "k.parquet"
    )
    key = read_key(tmp_path / "k.parquet")
    assert key.label is not None
    assert key.label.tolist() == L


def test_npz_spellings(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, tar=np.array([0.9, 1.5]), non=np.array([-0.25, 0.1]))
    scores = read_scores(path)
    assert (scores.targets().tolist(), scores.nontargets().tolist()) == ([0.9, 1.5], [-0.25, 0.1])
    np.savez(path, scores=np.array(S), labels=np.array(L))
    check(read_scores(path), ids=False)
    np.savez(path, scores=np.array(S), labels=np.array([WORDS[w] for w in L]))
    check(read_scores(path), ids=False)
    np.savez(path, enrol=np.array(E), test=np.array(T), scores=np.array(S), labels=np.array(L))
    check(read_scores(path))
    matrix = np.arange(6.0).reshape(2, 3)
    np.savez(path, scores=matrix, enrol=np.array(["a", "b"]), test=np.array(["x", "y", "z"]))
    result = read_scores(path)
    assert result.scores().tolist() == list(range(6))
    assert result.enrol is not None
    assert result.enrol.to_series().to_list() == list("aaabbb")
    np.savez(
        path,
        scores=matrix,
        enrol=np.array(["a", "b"]),
        test=np.array(["x", "y", "z"]),
        labels=np.eye(2, 3),
    )
    assert read_scores(path).targets().tolist() == [0, 4]


@pytest.mark.parametrize(
    ("labels", "target", "nontarget"),
    [
        ([["target", "spoof", "nontarget"], ["spoof", "tar", "imp"]], [0, 4], [2, 5]),
        ([["target", "non", "nontarget"], ["non", "tar", "imp"]], [0, 4], [1, 2, 3, 5]),
        ([[1, 0, -1], [0, 1, -1]], [0, 4], [2, 5]),
        ([[1, 0, 0], [0, 1, 0]], [0, 4], [1, 2, 3, 5]),
    ],
)
def test_labels_of_a_matrix(tmp_path: Path, labels, target, nontarget, sentences) -> None:
    path = tmp_path / "x.npz"
    named = {"enrol": np.array(["a", "b"]), "test": np.array(["x", "y", "z"])}
    np.savez(path, scores=np.arange(6.0).reshape(2, 3), labels=np.array(labels), **named)
    result = read_scores(path)
    assert result.targets().tolist() == target
    assert result.nontargets().tolist() == nontarget
    np.savez(path, scores=np.arange(6.0).reshape(2, 3), labels=np.full((2, 3), 2), **named)
    with pytest.raises(InputError) as error:
        read_scores(path)
    sentences.check(str(error.value))


BOSARIS_NAMES = {
    "bosaris": ("ID/row_ids", "ID/column_ids", "scores", "score_mask", "trial_mask"),
    "sidekit": ("modelset", "segset", "scores", "score_mask", "trial_mask"),
    "names": ("model_names", "test_names", "score_mat", None, None),
    "ids": ("enroll_ids", "test_ids", "scores", "mask", "trial_mask"),
}


@pytest.mark.parametrize("spelling", BOSARIS_NAMES)
def test_bosaris_hdf5(tmp_path: Path, spelling: str) -> None:
    h5py = pytest.importorskip("h5py")
    rows, columns, values, mask, trial = BOSARIS_NAMES[spelling]
    matrix = np.array([[0.9, -0.25, 7.0], [0.1, 7.0, 1.5]])
    label = np.array([[1, -1, 0], [-1, 0, 1]], np.int8)
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file[rows] = np.array([b"s1", b"s2"])
        file[columns] = ["u1", "u2", "u3"]
        file[values] = matrix
        if mask:
            file[mask] = (label != 0).astype(np.uint8)
        if trial is None:
            file["tar_mask"], file["non_mask"] = label == 1, label == -1
    with h5py.File(tmp_path / "k.h5", "w") as file:
        file[rows] = ["s1", "s2"]
        file[columns] = np.array([b"u1", b"u2", b"u3"])
        if trial:
            file[trial] = label
        else:
            file["tar_mask"], file["non_mask"] = label == 1, label == -1
    check(read_scores(tmp_path / "s.h5", key=tmp_path / "k.h5"))
    assert isinstance(read_any(tmp_path / "k.h5"), Trials)
    assert isinstance(read_any(tmp_path / "s.h5"), Scores)


def test_enroll_ids_with_trial_mask_of_zeros_and_ones(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["enroll_ids"], file["test_ids"] = ["a", "b"], ["x"]
        file["scores"], file["trial_mask"] = [[1.0], [2.0]], [[0], [1]]
    scores = read_scores(tmp_path / "s.h5")
    assert scores.scores().tolist() == [2.0]
    assert scores.label is None


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_byte_order_mark_and_gzip(
    tmp_path: Path, end: str, bom: bytes, packed: bool
) -> None:
    lines = [f"{e} {t} {s} {WORDS[w]}" for e, t, s, w in zip(E, T, S, L, strict=True)]
    data = bom + end.join([*lines, "", ""]).encode()
    stored = gzip.compress(data) if packed else data
    path = tmp_path / ("x.txt.gz" if packed else "x.txt")
    path.write_bytes(stored)
    scores = read_scores(path)
    check(scores)
    assert list(scores.systems) == ["x"]
    assert scores.sources[0].sha256 == hashlib.sha256(stored).hexdigest()


def test_mixed_and_repeated_blanks(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(
        "s1  u1\t0.9 target\n s1\tu2\t-0.25\tnontarget \ns2 u1 0.1   nontarget\ns2 u3 1.5 target  "
    )
    check(read_scores(path))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"s1 u1 0.9 1\ns1 u2 -0.25 0\n"

    class Stdin:
        buffer = io.BytesIO(gzip.compress(data))

    monkeypatch.setattr(sys, "stdin", Stdin())
    scores = read_scores("-")
    assert scores.targets().tolist() == [0.9]
    assert list(scores.systems) == ["stdin"]
    assert scores.sources[0].sha256 == hashlib.sha256(Stdin.buffer.getvalue()).hexdigest()
    Stdin.buffer = io.BytesIO(b"u1 a\nu2 b\n")
    assert read_speakers("-") == {"u1": "a", "u2": "b"}


def test_infinite_scores_are_ordinary(tmp_path: Path) -> None:
    path = put(tmp_path / "x", ["a b inf", "a c -inf", "a d Infinity", "a e -Infinity", "a f 1e5"])
    result = read_scores(path).scores()
    assert result.tolist() == [np.inf, -np.inf, np.inf, -np.inf, 1e5]


PAIRS = ["target nontarget", "tgt imp", "tar non", "True FALSE", "1 0", "SS DS", "h1 H2"]


@pytest.mark.parametrize("pair", [*PAIRS, "same different"])
def test_label_words(tmp_path: Path, pair: str) -> None:
    yes, no = pair.split()
    key = read_key(put(tmp_path / "x", [f"a b {yes}", f"a c {no}"]))
    assert key.label is not None
    assert key.label.tolist() == [1, 0]


def test_registry_is_complete_and_distinct() -> None:
    names = [entry.name for entry in FORMATS]
    assert len(set(names)) == len(names)
    for entry in FORMATS:
        assert entry.layout
        assert entry.example
        if entry.roles:
            assert len(entry.example.split()) == len(entry.roles)


@pytest.mark.parametrize("name", [f.name for f in FORMATS if f.roles])
def test_examples_are_detected(tmp_path: Path, name: str) -> None:
    entry = next(f for f in FORMATS if f.name == name)
    result = read_any(put(tmp_path / "x", [entry.example]))
    source = result.sources[0] if isinstance(result, Scores) else result.source
    assert source is not None
    assert source.format == name


HEADED = {
    "forensic": ["LLR,hypothesis", *(f"{s},H{2 - w}" for s, w in zip(S, L, strict=True))],
    "bt4vt": [
        "ref_file,com_file,lab,sc",
        *(f"{e},{t},{w},{s}" for e, t, s, w in zip(E, T, S, L, strict=True)),
    ],
    "asvspoof5-fusion": [
        "asv_score,sasv_label",
        *(f"{s},{2.0 - w}" for s, w in zip(S, L, strict=True)),
    ],
    "bob-csv": [
        "bio_ref_subject_id,probe_subject_id,bio_ref_reference_id,probe_template_id,score",
        *(f"k,{'k' if w else 'l'},{e},{t},{s}" for e, t, s, w in zip(E, T, S, L, strict=True)),
    ],
}


@pytest.mark.parametrize("name", HEADED)
def test_tables_of_others_are_read_as_they_are(tmp_path: Path, name: str, unmask) -> None:
    path = put(tmp_path / "x.csv", HEADED[name])
    scores = read_scores(path)
    check(scores, ids=name in ("bt4vt", "bob-csv"))
    assert scores.sources[0].format == name
    code, out, err = unmask("eval", str(path), "--ci", "0")
    assert code == 0
    assert "2 target and 2 nontarget" in out
    assert f"x.csv: {name}" in err


def test_scores_before_names_are_those_of_voxsrc(tmp_path: Path, sentences) -> None:
    key = put(tmp_path / "key", [f"{w} {e} {t}" for e, t, w in zip(E, T, L, strict=True)])
    path = put(tmp_path / "x.txt", [f"{s} {e} {t}" for e, t, s in zip(E, T, S, strict=True)])
    scores = read_scores(path, key=key)
    check(scores)
    assert [source.format for source in scores.sources] == ["voxsrc", "voxceleb"]
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "y", ["5 17 18", "4 16 17"]))
    sentences.check(str(error.value))
    assert read_scores(tmp_path / "y", format="voxsrc").scores().tolist() == [5, 4]


def test_claimed_and_real_identities_are_labels(tmp_path: Path, sentences) -> None:
    lines = ["a a p1 0.9", "a b p2 -0.25", "b a p1 0.1", "b b p2 1.5"]
    scores = read_scores(put(tmp_path / "x", lines))
    assert scores.sources[0].format == "bob-4"
    assert scores.label is not None
    assert scores.label.tolist() == L
    assert scores.n_speakers == 2
    assert read_key(tmp_path / "x").counts["target"] == 2
    # a third column that is no probe: one of its names goes with several real identities
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "y", ["a a m 0.9", "a b m 0.1"]))
    sentences.check(str(error.value))


def test_spoof_trials_of_a_fusion_file_are_counted(tmp_path: Path, sentences) -> None:
    lines = ["asv_score,cm_score,sasv_label", "0.7,10,1.0", "0.1,9,2.0", "0.6,-3,0.0"]
    scores = read_scores(put(tmp_path / "x.csv", lines))
    assert scores.counts == {"target": 1, "nontarget": 1, "other": 1}
    assert list(scores.systems) == ["asv_score", "cm_score"]
    sentences.check(scores.sources[0].detected)


def test_a_trial_id_is_the_test_where_no_other_is(tmp_path: Path) -> None:
    scores = read_scores(put(tmp_path / "x.csv", ["enroll_id,trial_id,score", "a,b,0.5"]))
    assert scores.test is not None
    assert list(scores.test) == ["b"]


COLUMNS = "enrol=ref,test=com,label=grp,score=A,score=B,group=age,enrol_speaker=s,test_speaker=t"


@pytest.mark.parametrize("kind", ["csv", "tsv.gz", "parquet", "npz", "frame", "stream"])
def test_columns_of_any_table_can_be_named(tmp_path: Path, kind: str, sentences) -> None:
    spoken = {"s": ["a", "a", "b", "b"], "t": ["a", "c", "d", "b"]}
    table = {"ref": E, "com": T, "label": S, **spoken, "age": [1, 2, 3, 4]}
    frame = pl.DataFrame({**table, "A": S, "B": S, "grp": [["DS", "SS"][w] for w in L]})
    path = tmp_path / f"x.{kind}"
    if kind == "csv":
        frame.write_csv(path)
    elif kind == "tsv.gz":
        path.write_bytes(gzip.compress(frame.write_csv(separator="\t").encode()))
    elif kind == "parquet":
        frame.write_parquet(path)
    elif kind == "npz":
        np.savez(path, **{name: np.array(frame[name].to_list()) for name in frame.columns})
    elif kind == "stream":
        frame.write_csv(path)
        with streamed_scores([path], columns=COLUMNS) as stream:
            assert stream.counts == {"target": 2, "nontarget": 2, "other": 0}
            assert stream.systems == ["A", "B"]
        return
    scores = read_scores(frame if kind == "frame" else path, columns=COLUMNS)
    check(scores.select_systems(["B"]))
    assert list(scores.systems) == ["A", "B"]
    assert scores.n_speakers == 4
    assert list(scores.columns["age"]) == ["1", "2", "3", "4"]
    assert "enrol=ref" in scores.sources[0].detected
    sentences.check(scores.sources[0].detected)
    with pytest.raises(InputError) as error:
        read_scores(frame if kind == "frame" else path, columns="enrol=ref,test=com,label=kk")
    sentences.check(str(error.value))


def test_columns_without_a_header_go_by_number_and_a_key_has_its_own(
    tmp_path: Path, sentences
) -> None:
    rows = zip(E, T, S, L, strict=True)
    path = put(tmp_path / "x.txt", [f"{s} {e} {t} {WORDS[w]}" for e, t, s, w in rows])
    check(read_scores(path, columns={"score": "1", "enrol": "2", "test": "3", "label": "4"}))
    scores, key = tmp_path / "s.csv", tmp_path / "k.csv"
    pl.DataFrame({"r": E, "c": T, "v": S}).write_csv(scores)
    pl.DataFrame({"r": E, "c": T, "l": L, "sex": E}).write_csv(key)
    named = {"enrol": "r", "test": "c", "score": "v", "label": "l", "group": "sex"}
    joined = read_scores(scores, key=key, columns=named)
    check(joined)
    assert list(joined.columns) == ["sex"]
    with pytest.raises(InputError) as error:
        read_scores(scores, columns="enrol=r,test=c", format="kaldi-scores")
    sentences.check(str(error.value))
    for wrong in ("enrl=r", "enrol=r,enrol=c", "enrol="):
        with pytest.raises(InputError, match=r"^columns: expected"):
            read_scores(scores, columns=wrong)


def test_tables_written_with_quotes_and_blanks(tmp_path: Path) -> None:
    path = put(tmp_path / "r.tsv", ['"enrol"\t"test"\t"label"\t"plda"', '"a"\t"b"\t"target"\t0.5'])
    assert read_scores(path).targets().tolist() == [0.5]
    path = put(tmp_path / "r.csv", ["enrol, test, label, plda", "a, b, 1, 0.5", "a ,c , 0 , 1.5"])
    result = read_scores(path)
    assert list(result.systems) == ["plda"]
    assert result.test is not None
    assert result.test.to_series().to_list() == ["b", "c"]


def test_speakers_of_one_side_are_not_used(tmp_path: Path, sentences) -> None:
    result = read_scores(put(tmp_path / "x.tsv", ["enrol\ttest\ttest_spk\ts", "a\tb\tB\t1"]))
    assert not result.has_speakers
    sentences.check(result.sources[0].detected)


@pytest.mark.parametrize(
    "header",
    [
        "reference,questioned,LR,hypothesis",
        "Reference;Questioned;log10LR;origin",
        "known\tdisputed\tlog10 LR\tground truth",
    ],
)
def test_headers_of_forensic_tables_are_known(tmp_path, header):
    mark = next(one for one in "\t;," if one in header)
    truth = [("Hd", "hp")[label] for label in L]
    lines = [mark.join(map(str, row)) for row in zip(E, T, S, truth, strict=True)]
    path = put(tmp_path / "case.csv", [header, *lines])
    scores = read_scores(path)
    check(scores)
    assert list(scores.systems) == ["case"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_header_of_unknown_names_is_told_how_to_be_named(tmp_path, mark, sentences):
    header = ["known_file", "disputed_file", "strength", "truth"]
    rows = zip(E, T, S, [("DS", "SS")[label] for label in L], strict=True)
    path = put(tmp_path / "case.csv", [mark.join(map(str, row)) for row in [header, *rows]])
    columns = "enrol=known_file,test=disputed_file,label=truth,score=strength"
    with pytest.raises(InputError) as refused:
        read_scores(path)
    assert str(refused.value).startswith(f"{path}, line 1: ")
    assert ", ".join(header) in str(refused.value)
    assert f"--columns {columns}" in str(refused.value)
    sentences.check(str(refused.value))
    check(read_scores(path, columns=columns))


def test_blanks_in_a_header_do_not_separate_columns(tmp_path, sentences):
    lines = ["known file,strength,truth", *(f"{e},{s},SS" for e, s in zip(E, S, strict=True))]
    with pytest.raises(InputError) as error:
        read_scores(put(tmp_path / "case.csv", lines))
    sentences.check(str(error.value))
