"""Every example of ``--help`` runs as it stands, on small files made here."""

import shlex
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.cli.conftest import command
from tests.helpers.populations import population
from tests.helpers.trees import write_tree

import unmask as um
from unmask.cli import COMMANDS, EXAMPLES, assess, speech
from unmask.figures import image

soundfile = pytest.importorskip("soundfile")
LINES = [line for name in COMMANDS for line in EXAMPLES[name]]
PEOPLE, EACH = 12, 4


def voices(path, *, first=0, seed=0, own=0, said=""):
    """Embeddings of twelve speakers; another ``own`` is another encoder or safeguard."""
    made = population(PEOPLE, EACH, noise=0.9, tag="x", seed=seed)
    names = [f"s{first + row // EACH}-{said}{row % EACH}" for row in range(PEOPLE * EACH)]
    speakers = [name.split("-")[0] for name in names]
    moved = np.random.default_rng(own).normal(size=made.vectors.shape) if own else 0.0
    embeddings = um.Embeddings(made.vectors + 0.4 * moved, speakers, names)
    um.write(embeddings, path)
    return embeddings


def listed(folder, embeddings, key, *files):
    """A key of every other utterance with all others, and scores of systems on it."""
    names, speakers = (
        embeddings.utterances.to_series().to_list(),
        embeddings.speakers.to_series().to_list(),
    )
    pairs = [(i, j) for i in range(0, len(names), 2) for j in range(1, len(names), 2)]
    kinds = ["target" if speakers[i] == speakers[j] else "nontarget" for i, j in pairs]
    lines = (f"{names[i]} {names[j]} {kind}\n" for (i, j), kind in zip(pairs, kinds, strict=True))
    (folder / key).write_text("".join(lines))
    rng = np.random.default_rng(3)
    for file in files:
        values = rng.normal(size=len(pairs)) + 2.0 * (np.array(kinds) == "target")
        rows = (f"{names[i]} {names[j]} {x:.4f}\n" for (i, j), x in zip(pairs, values, strict=True))
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("".join(rows))
    return pairs, kinds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All files that the examples name."""
    root = tmp_path_factory.mktemp("examples")
    spoken = voices(root / "voices.npz")
    for own, name in enumerate(("original", "b2", "ours", "own", "a", "b")):
        voices(root / f"{name}.npz", own=own, said="again" if name == "own" else "")
    other = voices(root / "train.npz", first=100, seed=1)
    half = np.arange(PEOPLE * EACH) % 2 == 0
    um.write(spoken.select(half), root / "enrol.npz")
    um.write(spoken.select(~half), root / "test.npz")
    um.write(spoken, root / "voices.ark")
    who = zip(
        spoken.utterances.to_series().to_list(), spoken.speakers.to_series().to_list(), strict=True
    )
    (root / "utt2spk").write_text("".join(f"{name} {speaker}\n" for name, speaker in who))
    scored = ("scores.txt", "a.txt", "b.txt", "b1.txt", "ours.txt", "a/pp.txt", "b/pp.txt")
    pairs, kinds = listed(root, spoken, "trials", *scored, "oo.txt", "op.txt", "pp.txt")
    listed(root, other, "dev_trials", "dev.txt", "a_dev.txt", "b_dev.txt")
    names = spoken.utterances.to_series().to_list()
    rng = np.random.default_rng(0)
    rows = ["enrol test label cosine plda enrol_speaker test_speaker"]
    for (i, j), kind in zip(pairs, kinds, strict=True):
        one, two = (1.5 * (kind == "target") + rng.normal(size=2)).round(4)
        ends = names[i].split("-")[0], names[j].split("-")[0]
        rows.append(f"{names[i]} {names[j]} {kind} {one} {two} {ends[0]} {ends[1]}")
    pairs = [f"{1.5 - 0.3 * i},SS\n{0.3 * i - 1.5},DS\n" for i in range(9)]
    (root / "llrs.csv").write_text(f"LLR,hypothesis\n{''.join(pairs)}")
    (root / "scores.tsv").write_text("\n".join(rows).replace(" ", "\t") + "\n")
    for place in ("recordings", "original", "protected", "voxceleb", "data/audio"):
        for speaker in ("ann", "bob"):
            (root / place / speaker).mkdir(parents=True)
            for i in range(2):
                sound = 0.1 * np.sin(np.arange(8000) * (0.05 + 0.01 * i)) + 1e-3 * rng.normal(
                    size=8000
                )
                soundfile.write(root / place / speaker / f"{speaker}{i}.wav", sound, 16_000)
    audio = sorted((root / "data/audio").rglob("*.wav"))
    for kaldi in (root / "data/libri_test", root / "data/test"):
        kaldi.mkdir()
        (kaldi / "wav.scp").write_text("".join(f"{one.stem} {one}\n" for one in audio))
        lines = "".join(f"{one.stem} {one.parent.name}\n" for one in audio)
        (kaldi / "utt2spk").write_text(lines)
    whole = names, spoken.speakers.to_series().to_list()
    (root / "data/test/utt2spk").write_text((root / "utt2spk").read_text())
    sexes = (f"{one} {'fm'[int(one[1:]) % 2]}\n" for one in dict.fromkeys(whole[1]))
    (root / "data/test/spk2gender").write_text("".join(sexes))
    (root / "text").write_text("".join(f"{one.stem} one two\n" for one in audio))
    lines = ['original = {embeddings = "original.npz"}', "[[safeguards]]", 'name = "B2"']
    (root / "assessment.toml").write_text("\n".join([*lines, 'embeddings = "b2.npz"\n']))
    write_tree(root / "voiceprivacy", sets=("libri_dev_f",), people=4, enrolled=3, utterances=2)
    (root / "tool").write_text('#!/bin/sh\ncp "$1" "$2"\n')
    (root / "tool").chmod(0o755)
    return root


@pytest.fixture
def cheap(folder, monkeypatch):
    """What takes minutes, a GPU, weights or a network is asked for and not done."""
    write = image._WRITERS["json"]
    drawn = lambda figure, kinds: {kind: write(figure, "") for kind in kinds}  # noqa: E731
    monkeypatch.setattr(image, "images", drawn)
    monkeypatch.setattr(assess, "run", lambda *_, **__: None)
    monkeypatch.setattr("unmask.cli.utility.run", lambda *_, **__: None)
    made = replace(um.read_embeddings(folder / "voices.npz"), source=None)
    embedded = SimpleNamespace(
        embeddings=made, seconds=1.0, failures=(), remarks=(), encoder="x", sounds=None
    )
    trained = SimpleNamespace(
        failures=(), remarks=(), eer=None, speakers=2, steps=1, seconds=1.0, folder="attacker"
    )
    monkeypatch.setattr(speech.speech, "embed", lambda *_, **__: embedded)
    monkeypatch.setattr(speech.speech, "train", lambda *_, **__: trained)
    installed = SimpleNamespace(install=lambda wheel: "installed")
    monkeypatch.setattr(speech, "weights_of", lambda name: installed)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("line", LINES)
def test_an_example_of_the_help_runs(line, folder):
    words = shlex.split(line)[1:]
    if {"-o", "--save"} & set(words):  # the fixture has files that other examples write
        words.append("--force")
    done = command(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
