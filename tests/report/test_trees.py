"""A VoicePrivacy tree becomes a config, and the config one table of systems × sets."""

import io

import numpy as np
import polars as pl
import pytest

from unmask.assessment import load_config, starter_config
from unmask.estimate import Estimate, Interval
from unmask.report import check_inputs, run_assessment as assess, summary_table, write_report
from unmask.report.overview import mean
from unmask.trials import Embeddings, write

ENROLLED, PEOPLE, UTTERANCES = 5, 7, 4
STRENGTH = {"oo": 4.0, "op": 0.6, "pp": 1.5}


def voiceprivacy(folder, *, year=2022, tag="anon", sets=("libri_dev_f", "libri_dev_m")):
    """Trials of models × recordings, more people tested than enrolled, as the challenges write."""
    rng = np.random.default_rng(3)
    for name in sets:
        corpus, sex = name.rsplit("_", 1)
        people = [f"{corpus[-3:]}{sex}{i}" for i in range(PEOPLE)]
        utterances = [f"{who}-12-{u:04d}" for who in people for u in range(UTTERANCES)]
        for end in ("", f"_{tag}"):
            enrols = folder / "data" / f"{corpus}_enrolls{end}"
            trials = folder / "data" / f"{corpus}_trials_{sex}{end}"
            for place in (enrols, trials):
                place.mkdir(parents=True, exist_ok=True)
            (enrols / "enrolls").write_text("".join(f"{who}-1-0000\n" for who in people[:ENROLLED]))
            (enrols / "utt2spk").write_text(
                "".join(f"{who}-1-0000 {who}\n" for who in people[:ENROLLED])
            )
            (trials / "utt2spk").write_text("".join(f"{u} {u.split('-')[0]}\n" for u in utterances))
            (trials / "spk2gender").write_text("".join(f"{who} {sex}\n" for who in people))
            pairs = [(who, u) for who in people[:ENROLLED] for u in utterances]
            (trials / "trials").write_text(
                "".join(
                    f"{who} {u} {'target' if u.startswith(who + '-') else 'nontarget'}\n"
                    for who, u in pairs
                )
            )
        for part, strength in STRENGTH.items():
            one, two = (f"_{tag}" if letter == "p" else "" for letter in part)
            pair = f"{corpus}_enrolls{one}-{corpus}_trials_{sex}{two}"
            root = "exp/results-2022-05-01" if year == 2022 else "exp/asv_orig/cosine_out"
            place = folder / root / (f"ASV-{pair}" if year == 2022 else pair)
            place.mkdir(parents=True)
            (place / "scores").write_text(
                "".join(
                    f"{who} {u} {strength * u.startswith(who + '-') + rng.normal():.4f}\n"
                    for who, u in pairs
                )
            )
            (place / "EER").write_text("12.3\n")


@pytest.mark.parametrize(("year", "tag"), [(2022, "anon"), (2024, "mcadams")])
def test_every_set_is_proposed_with_its_key_and_speakers(tmp_path, year, tag):
    voiceprivacy(tmp_path, year=year, tag=tag)
    path = tmp_path / "assessment.toml"
    path.write_text(starter_config(tmp_path))
    (one,) = load_config(path).safeguards
    assert one.name == tag
    assert [given.set for given in one.scores] == ["libri_dev_f", "libri_dev_m"]
    first = one.scores[0]
    assert first.key == tmp_path / "data/libri_dev_trials_f/trials"
    assert first.speakers == str(tmp_path / "data/libri_dev_trials_f/utt2spk")
    assert first.oo.parent.name.endswith("libri_dev_enrolls-libri_dev_trials_f")
    assert first.op.parent.name.endswith(f"libri_dev_enrolls-libri_dev_trials_f_{tag}")
    assert first.pp.parent.name.endswith(f"libri_dev_enrolls_{tag}-libri_dev_trials_f_{tag}")


def test_one_table_of_systems_and_sets(tmp_path):
    voiceprivacy(tmp_path)
    path = tmp_path / "assessment.toml"
    path.write_text(starter_config(tmp_path))
    changes = ["intervals.replicates=20", 'frameworks=["similarity", "verification"]']
    assessment = assess(load_config(path, changes=[*changes, "figures=[]"]), tmp_path / "report")
    shown = summary_table(assessment)
    assert not assessment.failures
    write_report(assessment, tmp_path / "report")
    tables = tmp_path / "report" / "tables"
    table = pl.read_csv(io.BytesIO((tables / "overview.csv").read_bytes()), infer_schema=False)
    assert set(table["set"]) == {"libri_dev_f", "libri_dev_m", "mean of all sets"}
    assert set(table["trials"]) == {"OO", "OP", "PP"}
    assert {"eer", "d_ece", "l_w", "tag", "deid", "g_vd", "linkability", "singling_out"} == set(
        table["metric"]
    )
    assert set(table.filter(pl.col("metric") == "eer")["unit"]) == {"share"}

    def value(name, trials, metric):
        chosen = table.filter(
            (pl.col("set") == name) & (pl.col("trials") == trials) & (pl.col("metric") == metric)
        )
        return float(chosen["value"].item())

    for metric in ("eer", "linkability", "d_ece"):
        parts = [value(f"libri_dev_{sex}", "OP", metric) for sex in "fm"]
        assert value("mean of all sets", "OP", metric) == pytest.approx(np.mean(parts))
    assert "mean of all sets" in shown
    assert "scores" not in table["system"].to_list()
    latex = (tables / "overview.tex").read_text()
    assert r"$D_{\mathrm{ECE}}$ [bit]" in latex
    assert r"\caption{Assessment of " in latex
    assert r"\label{tab:" in latex


def test_linkability_of_a_score_matrix_by_definition(tmp_path):
    from unmask.privacy.legal import matrix_risks, singling_out_from_scores
    from unmask.trials import read_scores

    voiceprivacy(tmp_path)
    place = tmp_path / "exp/results-2022-05-01/ASV-libri_dev_enrolls-libri_dev_trials_f_anon"
    trials = tmp_path / "data/libri_dev_trials_f"
    scores = read_scores(place / "scores", key=trials / "trials", speakers=trials / "utt2spk")
    best: dict[str, dict[str, float]] = {}
    for line in (place / "scores").read_text().splitlines():
        who, utterance, score = line.split()
        best.setdefault(utterance, {})[who] = float(score)
    hits: dict[int, dict[str, list[bool]]] = {1: {}, -1: {}}
    for sign, result in hits.items():
        for utterance, row in best.items():
            own = utterance.split("-")[0]
            if own in row:
                others = [sign * s for who, s in row.items() if who != own]
                result.setdefault(own, []).append(sign * row[own] > max(others))
    expected = max(np.mean([np.mean(h) for h in result.values()]) for result in hits.values())
    ((estimate, isolated),) = matrix_risks(scores).values()
    assert estimate.value == pytest.approx(expected)
    assert estimate.chance == 1 / ENROLLED
    assert [e.interval.made.split(",")[-2] for e in (estimate, isolated)] == ["0", "0"]
    assert estimate.n == {"speakers": ENROLLED, "recordings": ENROLLED * UTTERANCES}
    assert matrix_risks(scores.select(np.arange(1, len(scores)))) == {}
    people = sorted({utterance.split("-")[0] for utterance in best})
    models = sorted(next(iter(best.values())))
    matrix = np.array([[row[who] for row in best.values()] for who in models])
    owner = [people.index(utterance.split("-")[0]) for utterance in best]
    rows = [people.index(who) for who in models]
    either = [
        singling_out_from_scores(sign * matrix, rows, owner, counts=[len(people)])[0]
        for sign in (1, -1)
    ]
    assert isolated.value == pytest.approx(max(either))
    assert isolated.n == {"speakers": ENROLLED, "recordings": PEOPLE * UTTERANCES}
    assert isolated.params["count"] == PEOPLE
    lone = [t.endswith("-0000") for t in scores.test.to_series()]
    assert [e.metric for e in matrix_risks(scores.select(lone))["scores"]] == ["linkability"]


def test_mean_of_independent_sets_recovers_variances():
    made = [
        Estimate("eer", value, "%", Interval(value - d, value + e, 0.95, "speaker", 9, 0))
        for value, d, e in ((0.2, 0.03, 0.05), (0.4, 0.04, 0.12))
    ]
    apart, together = (mean(made, independent=which) for which in (True, False))
    assert apart.value == pytest.approx(0.3)
    assert apart.interval.low == pytest.approx(0.3 - 0.05 / 2)
    assert apart.interval.high == pytest.approx(0.3 + 0.13 / 2)
    assert together.interval.low == pytest.approx(0.3 - 0.07 / 2)
    assert together.interval.high == pytest.approx(0.3 + 0.17 / 2)


@pytest.mark.parametrize("prefix", ["xvectors_", "xvect_", ""])
def test_xvectors_of_a_tree_are_proposed_and_read(tmp_path, prefix):
    rng = np.random.default_rng(5)
    names = [f"{who}-{u}" for who in "abcdef" for u in range(4)]
    centres = {who: rng.normal(size=8) for who in "abcdef"}
    data = tmp_path / "data" / "libri_dev_trials_f"
    data.mkdir(parents=True)
    (data / "utt2spk").write_text("".join(f"{name} {name[0]}\n" for name in names))
    for tag, noise in (("", 0.2), ("_anon", 2.0)):
        place = tmp_path / "exp" / f"{prefix}libri_dev_trials_f{tag}"
        place.mkdir(parents=True)
        vectors = [centres[name[0]] + noise * rng.normal(size=8) for name in names]
        write(Embeddings(np.array(vectors), [n[0] for n in names], names), place / "xvector.ark")
        (place / "utt2spk").unlink()
    path = tmp_path / "assessment.toml"
    path.write_text(starter_config(tmp_path))
    config = load_config(path)
    (one,) = config.safeguards
    assert (one.name, one.encoder) == ("anon", "campplus")
    assert config.original.speakers == str(data / "utt2spk")
    assert "encoder" not in path.read_text()
    lines = list(check_inputs(config))
    assert any("6 speakers" in line for line in lines), lines
