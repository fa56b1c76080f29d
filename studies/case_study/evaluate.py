"""Tables and figures of what the other scripts left, with the product's own numbers.

    python -m studies.case_study.evaluate OUT --results RESULTS --page docs/case-study.md

OUT holds attackers.npz, training.npz and li2022.npz. Writes ``trained-attackers.json`` and
``li2022.json`` into the folder of results, the figures of the six systems beside them, and the
tables onto the page between their marks.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import unmask as um
from unmask.privacy.legal import pooled
from unmask.scoring import Cosine, score_matrix
from unmask.trials import Embeddings

REPLICATES = 1000
AMONG = 20
TRAINED = "trained CAM++"
UNLABELLED = ("whitened", "coral", "wasserstein")
"""Alignments that look at all attacked speech at once."""
BACKENDS = ("whitened", "coral", "wasserstein", "wccn", "plda", "procrustes", "asnorm", "fusion")
SYSTEMS = (
    "1-ivector",
    "2-tdnn-tsp-softmax",
    "3-tdnn-tsp-am",
    "4-resnet34-tsp-am",
    "5-resnet34-tsp-aam",
    "6-resnet34-asp-am",
)
LABELS = (
    "GMM i-vector, PLDA",
    "TDNN TSP softmax, PLDA",
    "TDNN TSP AM",
    "ResNet34 TSP AM",
    "ResNet34 TSP AAM",
    "ResNet34 ASP AM",
)
PAPER = (5.872, 4.290, 3.389, 1.688, 1.747, 1.504)
"""EER in % on VoxCeleb1-E, table 1."""
TREE = ((0, 1), (1, 2), (2, 3), (3, 4), (3, 5))
"""The roadmap of the paper, figure 11: reference and test."""


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--images", type=Path, default=None)
    parser.add_argument("--page", type=Path, default=None)
    parser.add_argument("--only", choices=["attackers", "li2022"], default=None)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    if options.only != "li2022":
        rows = attackers(options.out, options.results / "trained-attackers.json")
        if options.page is not None:
            put(options.page, "attackers", tables(rows))
    if options.only != "attackers":
        write(
            options.results / "li2022.json",
            six_systems(options.out, options.images or options.results),
        )


def write(path: Path, content) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def attackers(out: Path, path: Path) -> list[dict]:
    """One row for each safeguard, enrolment and attacker, kept in a file: what is there stays."""
    test, training = np.load(out / "attackers.npz"), np.load(out / "training.npz")
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    for method in ("b2", "b2r", "b2w"):
        enrolments = {"original": "original/test", "own run": f"{method}/own"}
        for enrolled, key in enrolments.items():
            if key not in training.files:
                continue
            tried = learning_free(test, training, method, key)
            for label, name in (
                (TRAINED, method),
                (f"{TRAINED}, a quarter of the speakers", f"{method}-share25"),
            ):
                if f"{name}/{key}" in test.files:
                    tried[label] = um.Attacker(*sides(test, test, method, key, f"{name}/"))
            tried[f"{TRAINED}, centred"] = tried[TRAINED].centred()
            own = [r for r in rows if (r["safeguard"], r["enrolment"]) == (method, enrolled)]
            if not own:
                own = measured(method, enrolled, {n: one.ready() for n, one in tried.items()})
                rows += own
                write(path, rows)
            if "changes" not in own[-1]:
                own[-1]["changes"] = changes(own, tried)
                write(path, rows)
    return rows


def changes(rows: list[dict], tried: dict[str, um.Attacker]) -> list[dict]:
    """The trained encoder against the best back-end and against the best alignment by EER, on the
    same trials and draws of speakers.
    """
    free = [r for r in rows if TRAINED not in r["attacker"]]
    best = [
        min((r for r in free if (r["attacker"] in UNLABELLED) == kind), key=lambda r: r["eer"][0])
        for kind in (False, True)
    ]
    names = [one["attacker"] for one in best]
    table = trials({name: tried[name].ready() for name in (*names, TRAINED)})
    scores = um.evaluate(table, replicates=0).scores
    result = []
    for name in names:
        change = um.compare(scores, name, TRAINED, replicates=REPLICATES)
        result.append({"best": name, **next(r for r in change.rows() if r["metric"] == "eer")})
        print(result[-1], flush=True)
    return result


def learning_free(test, training, method: str, key: str) -> dict[str, um.Attacker]:
    """Attackers with CAM++ as it was, by the names of their back-ends.

    Back-ends are trained on all speech of training speakers, original and protected. ``pairs`` are
    what is enrolled and what is attacked: originals and a protected run, or two protected runs.
    """
    taught = [k for k in training.files if k.startswith(f"{method}/training")]
    enrolled = taught[-1] if key.endswith("own") else "original/training"
    train = pooled([of_training(training, k) for k in ("original/training", *taught)])
    pairs = of_training(training, enrolled), of_training(training, taught[0])
    base = um.Attacker(*sides(test, training, method, key), train=train, parallel=pairs)
    names = [one for one in BACKENDS if one != "procrustes" or enrolled != taught[0]]
    result = {name: replace(base, backend=name) for name in names}
    return {"cosine": base, "centred": replace(base, train=None, parallel=None).centred(), **result}


def of_training(training, key: str) -> Embeddings:
    """A run of the training speech, under the numbers of its utterances."""
    people = list(training["training_speaker"])
    return Embeddings(
        training[key].astype(np.float32), people, [str(n) for n in range(len(people))]
    )


def sides(test, arrays, method: str, key: str, head: str = "") -> tuple[Embeddings, Embeddings]:
    """Every second utterance by name enrols, the others are attacked."""
    names = test["utterance"]
    half = np.zeros(len(names), dtype=bool)
    half[np.argsort(names)[::2]] = True
    enrol, asked = (
        Embeddings(
            arrays[f"{head}{where}"][chosen].astype(np.float32),
            list(test["speaker"][chosen]),
            [f"{what} {one}" for one in names[chosen]],
        )
        for where, chosen, what in ((key, half, "enrol"), (f"{method}/attacked", ~half, "test"))
    )
    return enrol, asked


def scores_of(enrol: Embeddings, test: Embeddings, backend) -> np.ndarray:
    """Scores of all pairs of an enrolment and a test utterance."""
    return score_matrix(backend, enrol.vectors, test.vectors)


def trials(tried: dict[str, um.Attacker]):
    """A table of scores of all pairs of utterances, with the speakers."""
    one = next(iter(tried.values()))
    enrol, test = (some.speakers.to_series().to_numpy() for some in (one.enrol, one.test))
    first, second = (np.indices((len(enrol), len(test)))).reshape(2, -1)
    return pl.DataFrame(
        {
            "enrol": [f"e{n}" for n in first],
            "test": [f"t{n}" for n in second],
            "enrol_speaker": enrol[first],
            "test_speaker": test[second],
            "label": np.where(enrol[first] == test[second], "target", "nontarget"),
            **{
                name: scores_of(one.enrol, one.test, one.backend_in_use).reshape(-1)
                for name, one in tried.items()
            },
        }
    )


def measured(method, enrolled, tried: dict[str, um.Attacker]) -> list[dict]:
    """EER, Linkability among 20 of one and of three utterances, Singling Out."""
    rates = um.evaluate(trials(tried), replicates=REPLICATES)
    rows = []
    for name, one in tried.items():
        row = {"safeguard": method, "enrolment": enrolled, "attacker": name}
        eer = rates[name]["eer"]
        row["eer"] = [eer.value, eer.interval.low, eer.interval.high]
        known = {"counts": [AMONG], "backend": one.backend_in_use}
        for length in (1, 3):
            row[f"linked{length}"] = point(
                um.linkability(one.enrol, one.test, length=length, **known)
            )
        row["singled"] = point(um.singling_out(one.enrol, one.test, **known))
        rows.append(row)
        print(row, flush=True)
    return rows


def tables(rows: list[dict]) -> str:
    """All attackers side by side: a table for each number, and one of the differences of EER."""
    settings = list(dict.fromkeys((r["safeguard"], r["enrolment"]) for r in rows))
    names = list(dict.fromkeys(r["attacker"] for r in rows))
    at = {(r["attacker"], r["safeguard"], r["enrolment"]): r for r in rows}
    heads = [f"{m[0].upper()}{m[1:]}, {e}" for m, e in settings]
    lines = []
    for key, what in (
        ("eer", "EER"),
        ("linked1", "Linkability among 20, one utterance"),
        ("singled", "Singling Out of 20"),
    ):
        lines += [f"| {what} | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
        for name in names:
            cells = [cell(at[name, *one][key]) if (name, *one) in at else "" for one in settings]
            shown = f"**{name}**" if "trained" in name else name
            lines.append(f"| {shown} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["| trained CAM++, EER | against | difference |", "|---|---|---|"]
    for head, one in zip(heads, settings, strict=True):
        own = [r for r in rows if (r["safeguard"], r["enrolment"]) == one]
        for change in own[-1]["changes"]:
            ends = " to ".join(f"{100 * change[end]:+.1f}" for end in ("low", "high"))
            lines.append(
                f"| {head}: {100 * change['second']:.1f} % | {change['best']}"
                f" {100 * change['first']:.1f} % | {100 * change['difference']:+.1f} ({ends}) |"
            )
    return "\n".join(lines)


def cell(three: list[float]) -> str:
    """Value and interval in percent."""
    value, low, high = (100 * one for one in three)
    digits = 1 if value < 10 else 0
    return f"{value:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands on a page between the marks of that name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
    print(f"wrote {page}")


def six_systems(out: Path, images: Path) -> dict:
    """Table, maps and roadmap of the six systems on AudioMNIST; the table on LibriSpeech, too."""
    from unmask.figures import cp_map_figure, roadmap_figure, save

    arrays = np.load(out / "li2022.npz")
    table: dict[str, dict] = {name: {} for name in LABELS}
    for test in ("audiomnist_5digit_16k", "librispeech_test-other"):
        people = arrays[f"{test}/speaker"]
        chosen = np.concatenate([np.flatnonzero(people == one)[:10] for one in np.unique(people)])
        columns = {}
        for system, label in zip(SYSTEMS, LABELS, strict=True):
            rows = Embeddings(
                arrays[f"{system}/{test}"][chosen].astype(np.float32), list(people[chosen])
            )
            columns[label] = scores_of(rows, rows, backend_of(arrays, system))
        scores = upper(columns, people[chosen])
        done = um.evaluate(scores, replicates=200)
        for label in LABELS:
            eer, cost = done[label]["eer"], done[label]["min_dcf"]
            table[label][test] = {
                "eer": [eer.value, eer.interval.low, eer.interval.high],
                "min_dcf": [cost.value, cost.interval.low, cost.interval.high],
            }
            print(test, label, table[label][test], flush=True)
        if test.startswith("audiomnist"):
            known = done.scores
    result = um.cp_maps(
        known,
        references=LABELS[:2],
        deltas=[(LABELS[a], LABELS[b]) for a, b in TREE],
        grid=50,
        replicates=0,
    )
    save(cp_map_figure(result.maps), images / "li2022-maps.png")
    save(roadmap_figure(result.roadmap), images / "li2022-roadmap.png")
    deltas = [
        {
            "reference": one.reference,
            "test": one.test,
            "win": one.win,
            "tie": one.tie,
            "lose": one.lose,
        }
        for one in result.deltas
    ]
    return {"table": table, "deltas": deltas, "paper": dict(zip(LABELS, PAPER, strict=True))}


def backend_of(arrays, system):
    """PLDA after LDA for the first two systems, the cosine for the others."""
    if system[0] not in "12":
        return Cosine()
    known = Embeddings(
        arrays[f"{system}/training"].astype(np.float32), list(arrays["training/speaker"])
    )
    return um.Plda.fit(known, lda=min(150, len(set(known.speakers.to_series())) - 1))


def upper(columns, people):
    """A table of all unordered pairs of utterances."""
    first, second = np.triu_indices(len(people), 1)
    return pl.DataFrame(
        {
            "enrol": [f"u{n}" for n in first],
            "test": [f"u{n}" for n in second],
            "enrol_speaker": people[first],
            "test_speaker": people[second],
            "label": np.where(people[first] == people[second], "target", "nontarget"),
            **{name: value[first, second] for name, value in columns.items()},
        }
    )


def point(curve) -> list[float]:
    """Value and interval at the only count."""
    return [float(curve.value[0]), float(curve.low[0]), float(curve.high[0])]


if __name__ == "__main__":
    main()
