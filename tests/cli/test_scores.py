"""``unmask score``, ``calibrate`` and ``fuse`` as a user runs them."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from tests.helpers.populations import population

import unmask as um

WHO = ("--speakers", r"pattern:^([de]\d+)")


@pytest.fixture
def folder(tmp_path):
    """Two systems on a development and an evaluation list, of other speakers each."""
    for part, seed in (("d", 0), ("e", 1)):
        key, quality = [], np.random.default_rng(seed)
        for system in ("a", "b"):
            made = population(12, 4, noise=1.2, tag=system, seed=seed)
            names = [f"{part}{row // 4}-{row % 4}" for row in range(48)]
            speakers = [name.split("-")[0] for name in names]
            um.write(
                um.Embeddings(made.vectors, speakers, names), tmp_path / f"{part}_{system}.npz"
            )
        for one in range(48):
            for other in range(one + 1, 48, 3):
                same = "target" if one // 4 == other // 4 else "nontarget"
                key.append(f"{names[one]} {names[other]} {same} {quality.uniform(1, 9):.2f}")
        (tmp_path / f"{part}.key").write_text(
            "".join(f"{line.rsplit(' ', 1)[0]}\n" for line in key)
        )
        header = "enrol test label duration\n"
        (tmp_path / f"{part}.quality").write_text(header + "".join(f"{line}\n" for line in key))
    return tmp_path


@pytest.fixture
def scored(folder, unmask):
    for part in "de":
        for system in "ab":
            done = unmask(
                "score", f"{part}_{system}.npz", "-t", f"{part}.key", "-o", f"{part}_{system}.txt"
            )
            assert done.returncode == 0, done.stderr
    return folder


def test_scores_are_written_as_kaldi_has_them_or_as_the_ending_says(folder, unmask):
    done = unmask("score", "e_a.npz", "--trials", "e.key", "-o", "s")
    assert done.returncode == 0, done.stderr
    assert "scores of cosine" in done.stderr
    first = (folder / "s").read_text().split("\n")[0].split()
    expected = um.score(folder / "e_a.npz", trials=folder / "e.key")
    assert first == [*expected.trial(0).split(), str(expected.scores()[0])]
    more = ("--backend", "plda", "--train", "d_a.npz", "--cohort", "d_a.npz", "--on", "processes")
    done = unmask("score", "e_a.npz", "-t", "e.key", "-o", "s.csv", *more, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert "plda-asnorm" in (folder / "s.csv").read_text().split("\n")[0]


def test_eval_scores_embeddings_on_the_way(folder, scored, unmask):
    on_the_way = unmask("eval", "e_a.npz", "--key", "e.key", "--ci", 0, "--format", "json")
    by_scores = unmask("eval", "e_a.txt", "-k", "e.key", *WHO, "--ci", 0, "--format", "json")
    assert on_the_way.returncode == by_scores.returncode == 0, on_the_way.stderr
    one, two = (json.loads(done.stdout)["results"] for done in (on_the_way, by_scores))
    assert [row["value"] for row in one] == [row["value"] for row in two]


def test_a_development_list_calibrates_and_the_map_is_applied_again(scored, unmask):
    train = ("--train", "d_a.txt", "--train-key", "d.key")
    done = unmask(
        "calibrate",
        "e_a.txt",
        "-k",
        "e.key",
        *train,
        *WHO,
        "-o",
        "llr",
        "--save",
        "m.json",
        "--ci",
        20,
    )
    assert done.returncode == 0, done.stderr
    assert "C_llr [bit]" in done.stdout
    assert "LLR = " in done.stdout
    again = unmask("calibrate", "e_a.txt", "--apply", "m.json", "-o", "again")
    assert again.returncode == 0, again.stderr
    assert (scored / "llr").read_bytes() == (scored / "again").read_bytes()
    assert again.stdout == ""


def test_without_a_development_list_maps_are_cross_fitted(scored, unmask, sentences):
    done = unmask("calibrate", "e_a.txt", "-k", "e.key", *WHO, "--ci", 0)
    assert done.returncode == 0, done.stderr
    told = next(line for line in done.stdout.splitlines() if " 15 fits" in line)
    sentences.check(told.partition("; ")[2])


def test_quality_comes_from_the_key(scored, unmask):
    done = unmask(
        "calibrate", "e_a.txt", "-k", "e.quality", *WHO, "--quality", "log:duration", "--ci", 0
    )
    assert done.returncode == 0, done.stderr
    assert "·log:duration" in done.stdout


def test_systems_are_fused_and_the_weights_kept(scored, unmask):
    train = ("--train", "a=d_a.txt", "--train", "b=d_b.txt", "--train-key", "d.key")
    done = unmask(
        "fuse", "a=e_a.txt", "b=e_b.txt", "-k", "e.key", *train, *WHO, "-o", "f",
        "--save", "f.json", "--ci", 0,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((scored / "f.json").read_text())["systems"] == ["a", "b"]
    again = unmask("fuse", "a=e_a.txt", "b=e_b.txt", "--apply", "f.json", "-o", "again")
    assert again.returncode == 0, again.stderr
    assert (scored / "f").read_bytes() == (scored / "again").read_bytes()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("score e_a.npz -t d.key -o out", "d.key, line 1: expected an utterance"),
        ("score e_a.npz -t e.key --backend plda -o out", "embeddings to train on"),
        ("score e_a.npz -t e.key --to voxceleb -o out", "a format of scores"),
        ("score e_a.npz -t e.key --train d_a.npz -o out", "no effect on the back-end cosine"),
        ("score e_a.npz -t e.key --top 5 -o out", "--top: is for --cohort"),
        (
            "score e_a.npz -t e.key --backend plda --train e_a.npz -o out",
            "e_a.npz: expected embeddings to train on of other speakers .*12 of both .first: e0",
        ),
        (
            "score e_a.npz -t e.key --cohort e_a.npz -o out",
            "embeddings to normalise by of other speakers than those of the trials, found 12 of",
        ),
        ("score e_a.npz -t twice.key -o out", "found e0-0 e0-3 again, .*leave out the repeated"),
        ("eval digits.csv", "no labels; .*--columns label=is_same_speaker"),
        ("calibrate e_a.txt -k e.key --apply e.key -o out", "expected a map"),
        ("calibrate e_a.txt -k e.key --train d_a.txt -o out", "label"),
        ("calibrate e_a.txt -k e.key --train e_a.txt --train-key e.key -o out", "other utterances"),
        ("calibrate e_a.txt -k e.key -o out", "speakers to cross-fit by"),
        ("calibrate e_a.txt -o out", "labels|speakers"),
        (
            "calibrate e_a.txt -k e.key --train d_a.txt --train-key d.key --folds 3 -o out",
            "--folds",
        ),
        ("calibrate e_a.txt -k e.key --apply m.json --prior 0.1 -o out", "--prior"),
        ("calibrate e_a.txt -k e.key --train-key d.key -o out", "--train-key"),
        ("fuse e_a.txt d_a.txt -k e.key -o out", "trials"),
        ("fuse e_a.txt -k e.key -o out", "two systems"),
        ("eval e_a.txt -k e.key --backend plda", "backend"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_writes_nothing(scored, unmask, command, said):
    first = (scored / "e.key").read_text().split("\n")[0]
    twice = " ".join(["e0-0", "e0-3", "target"])
    (scored / "twice.key").write_text("\n".join([first, twice, twice]) + "\n")
    (scored / "digits.csv").write_text("enrol,test,is_same_speaker,cos\na,b,1,0.9\na,c,0,0.1\n")
    done = unmask(*command.split())
    assert done.returncode == 1
    assert re.search(said, done.stderr.strip().split("\n")[-1]), done.stderr
    assert not (scored / "out").exists()


def test_the_map_of_another_system_is_said_also_without_labels(scored, unmask, sentences):
    train = ("--train", "d_a.txt", "--train-key", "d.key", "--save", "m.json", "--ci", 0)
    assert unmask("calibrate", "e_a.txt", "-k", "e.key", *WHO, *train).returncode == 0
    for words in (("-o", "out"), ("-k", "e.key", *WHO, "--ci", 0, "--format", "csv")):
        done = unmask("calibrate", "e_b.txt", "--apply", "m.json", *words)
        assert done.returncode == 0, done.stderr
        sentences.check(done.stderr.splitlines()[-1])


def test_a_vector_of_length_zero_is_named(folder, unmask, sentences):
    voices = um.read_embeddings(folder / "e_a.npz")
    vectors = voices.vectors.copy()
    vectors[3] = 0
    um.write(um.Embeddings(vectors, voices.speakers, voices.utterances), folder / "zero.npz")
    done = unmask("score", "zero.npz", "-t", "e.key", "-o", "out")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])


def test_a_list_of_one_class_is_refused(scored, unmask, sentences):
    lines = [
        line for line in (scored / "d.key").read_text().split("\n") if line.endswith(" target")
    ]
    (scored / "one.key").write_text("\n".join(lines) + "\n")
    train = ("--train", "d_a.txt", "--train-key", "one.key", "--missing", "skip")
    done = unmask("calibrate", "e_a.txt", "-k", "e.key", *train, *WHO, "-o", "out")
    assert done.returncode == 1
    sentences.check(done.stderr.splitlines()[-1])
    assert not (scored / "out").exists()


def test_scores_on_standard_output_stand_alone(scored, unmask):
    words = ("d_a.txt", "-k", "d.key", *WHO, "--ci", "0")
    call = (sys.executable, "-m", "unmask", "calibrate", *words, "-o", "-")
    done = subprocess.run(call, cwd=scored, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {len(row) for row in rows} == {3}
    assert all(np.isfinite(float(row[2])) for row in rows)
    assert "C_llr" in done.stderr
    shown = unmask("eval", *words, "-o", "-")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == unmask("eval", *words).stdout


@pytest.mark.parametrize("alias", ["out", "./out", "link"])
def test_two_outputs_have_two_names(scored, unmask, alias):
    (scored / "link").symlink_to("out")
    done = unmask("calibrate", "d_a.txt", "-k", "d.key", *WHO, "-o", "out", "--save", alias)
    assert done.returncode == 1
    assert "is given for two outputs" in done.stderr
    assert not (scored / "out").exists()


def test_help_tells_tables_of_a_file_and_the_code_of_a_gate(scored, unmask):
    assert "[case]" in unmask("forensic", "--help").stdout
    shown = unmask("compare", "--help").stdout
    assert re.search(r"Exit\s+with\s+3", shown)


@pytest.mark.skipif(not os.path.exists("/dev/fd/0"), reason="a shell's pipes have no names here")
def test_scores_through_a_pipe_of_the_shell_are_read_whole(scored):
    rng = np.random.default_rng(0)
    lines = [
        f"e{row} t{row} {rng.normal(2 * (row % 2)):.6f} {'non' * (row % 2 == 0)}target"
        for row in range(20_000)
    ]
    (scored / "many.txt").write_text("\n".join(lines) + "\n")
    ask = f"{sys.executable} -m unmask eval %s --ci 0 -q"

    def run(words):
        call = ("bash", "-c", words)
        return subprocess.run(call, cwd=scored, capture_output=True, text=True, check=False)

    done = run(ask % "<(cat many.txt)")
    assert done.returncode == 0, done.stderr
    assert "10,000 target and 10,000 nontarget trials" in done.stdout
    streamed = run(ask % "<(cat many.txt)" + " --stream")
    assert streamed.returncode == 1
    assert "expected a file that can be read twice, found a pipe" in streamed.stderr
    repeated = run("cat many.txt | " + ask % "/dev/stdin /dev/stdin")
    assert repeated.returncode == 1
    assert "/dev/stdin: expected a file, as it is read more than once" in repeated.stderr


def test_a_reader_that_has_left_ends_a_command_in_silence(scored):
    words = f"{sys.executable} -m unmask convert d_a.txt - --to kaldi-scores | true"
    call = ("bash", "-c", words)
    done = subprocess.run(call, cwd=scored, capture_output=True, text=True, check=False)
    assert "Broken pipe" not in done.stderr
