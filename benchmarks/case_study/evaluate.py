"""Tables and figures of what the other scripts left, with the product's own numbers.

    python -m benchmarks.case_study.evaluate OUT --results docs/data

OUT holds attackers.npz, training.npz and li2022.npz. Writes ``trained-attackers.json`` and
``li2022.json`` into the folder of results, and the figures of the six systems beside them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import polars as pl

import unmask as um
from unmask.privacy import centred
from unmask.scoring import Cosine, Whitening, score_blocks
from unmask.trials import Embeddings

REPLICATES = 1000
AMONG = 20
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
    parser.add_argument("--only", choices=["attackers", "li2022"], default=None)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    if options.only != "li2022":
        write(options.results / "trained-attackers.json", attackers(options.out))
    if options.only != "attackers":
        write(
            options.results / "li2022.json",
            six_systems(options.out, options.images or options.results),
        )


def write(path: Path, content) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def attackers(out: Path) -> list[dict]:
    """One row for each safeguard, enrolment and attacker."""
    test, training = np.load(out / "attackers.npz"), np.load(out / "training.npz")
    people, names = test["speaker"], test["utterance"]
    order = np.argsort(names)
    half = np.zeros(len(names), dtype=bool)
    half[order[::2]] = True
    rows = []
    for method in ("b2", "b2r", "b2w"):
        if f"{method}/{method}/attacked" not in test.files:
            continue
        taught = [k for k in training.files if k.startswith(f"{method}/training")]
        sets = [training["original/training"], *(training[k] for k in taught)]
        known = Embeddings(
            np.concatenate(sets).astype(np.float32),
            list(np.tile(training["training_speaker"], len(sets))),
        )
        backends = {
            "cosine": um.Cosine(),
            "centred": um.Cosine(),
            "wccn": Whitening.fit(known),
            "plda": um.Plda.fit(known, lda=min(150, len(set(known.speakers.to_series())) - 1)),
        }
        own = f"{method}/own" if f"{method}/own" in training.files else f"{method}/attacked"
        for enrolled, key in (("original", "original/test"), ("own run", own)):
            table, found = {}, {}
            tried = [(name, training, "", one) for name, one in backends.items()]
            tried += [
                (label, test, f"{name}/", Cosine())
                for label, name in (
                    ("trained CAM++", method),
                    ("trained CAM++, centred", method),
                    ("trained CAM++, a quarter of the speakers", f"{method}-share25"),
                )
                if f"{name}/{key}" in test.files
            ]
            for name, arrays, head, backend in tried:
                sides = [
                    Embeddings(
                        arrays[f"{head}{where}"][chosen].astype(np.float32),
                        list(people[chosen]),
                        [f"{what} {one}" for one in names[chosen]],
                    )
                    for where, chosen, what in (
                        (key, half, "enrol"),
                        (f"{method}/attacked", ~half, "test"),
                    )
                ]
                if name.endswith("centred"):
                    sides = [centred(one) for one in sides]
                found[name] = (*sides, backend)
                table[name] = scores_of(*sides, backend)
            rows += measured(method, enrolled, found, trials(table, people[half], people[~half]))
    return rows


def scores_of(enrol: Embeddings, test: Embeddings, backend) -> np.ndarray:
    """Scores of all pairs of an enrolment and a test utterance."""
    blocks = score_blocks(backend, backend.prepare(enrol.vectors), backend.prepare(test.vectors))
    whole = np.zeros((len(enrol), len(test)))
    for start, stop, block in blocks:
        whole[start:stop] = block
    return whole


def trials(table, enrol, test):
    """A table of scores of all pairs, with the speakers."""
    first, second = (np.indices((len(enrol), len(test)))).reshape(2, -1)
    return pl.DataFrame(
        {
            "enrol": [f"e{n}" for n in first],
            "test": [f"t{n}" for n in second],
            "enrol_speaker": enrol[first],
            "test_speaker": test[second],
            "label": np.where(enrol[first] == test[second], "target", "nontarget"),
            **{name: value.reshape(-1) for name, value in table.items()},
        }
    )


def measured(method, enrolled, found, table) -> list[dict]:
    """EER, Linkability among 20 of one and of three utterances, Singling Out."""
    rates = um.evaluate(table, replicates=REPLICATES)
    rows = []
    for name, (enrol, test, backend) in found.items():
        row = {"safeguard": method, "enrolment": enrolled, "attacker": name}
        eer = rates[name]["eer"]
        row["eer"] = [eer.value, eer.interval.low, eer.interval.high]
        for length in (1, 3):
            link = um.linkability(enrol, test, counts=[AMONG], length=length, backend=backend)
            row[f"linked{length}"] = point(link)
        row["singled"] = point(um.singling_out(enrol, test, counts=[AMONG], backend=backend))
        rows.append(row)
        print(row, flush=True)
    best = min((r for r in rows if "trained" not in r["attacker"]), key=lambda r: r["eer"][0])
    if "trained CAM++" in found:
        change = um.compare(rates.scores, best["attacker"], "trained CAM++", replicates=REPLICATES)
        lower = next(row for row in change.rows() if row["metric"] == "eer")
        rows[list(found).index("trained CAM++")]["change"] = lower
        print(method, enrolled, best["attacker"], lower, flush=True)
    return rows


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
    found = um.cp_maps(
        known,
        references=LABELS[:2],
        deltas=[(LABELS[a], LABELS[b]) for a, b in TREE],
        grid=50,
        replicates=0,
    )
    save(cp_map_figure(found.maps), images / "li2022-maps.png")
    save(roadmap_figure(found.roadmap), images / "li2022-roadmap.png")
    deltas = [
        {
            "reference": one.reference,
            "test": one.test,
            "win": one.win,
            "tie": one.tie,
            "lose": one.lose,
        }
        for one in found.deltas
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
