from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from studies.coverage.known_voices import Population

from unmask.cli import app
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.figures import layout, needed_thresholds, save
from unmask.figures.worst_case import worst_case_figures
from unmask.report import document as document_of, render
from unmask.stress import (
    ImpostorProtocol,
    PairScores,
    compare_models,
    cp_maps,
    speaker_pairs,
    worst_case,
    worst_case_study,
)
from unmask.stress.study import (
    ScoreSample,
    WorstCaseStudy,
    counted_at,
    thresholds_of_roc,
)
from unmask.trials import Embeddings, read_scores

KINDS = ("measured", "extrapolated")
pytestmark = pytest.mark.usefixtures("quick_extrapolation")


@pytest.fixture(scope="module")
def population() -> Population:
    return Population.synthetic(24, utterances=4, seed=7)


def same_speaker(population: Population) -> np.ndarray:
    vectors = population.utterances
    left, right = np.triu_indices(vectors.shape[1], 1)
    return np.einsum("sld,sld->sl", vectors[:, left], vectors[:, right]).reshape(-1)


@pytest.fixture(scope="module")
def study(population: Population) -> WorstCaseStudy:
    return worst_case_study(
        population.pairs(),
        target=same_speaker(population),
        population=5000,
        model=["ls+", "ls-generative"],
        target_rates=[0.05],
    )


@pytest.fixture(scope="module")
def score_file(population: Population, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every utterance against every later one, with speakers and sex."""
    vectors = population.utterances
    speakers, size = vectors.shape[:2]
    flat = vectors.reshape(speakers * size, -1)
    matrix = flat @ flat.T
    lines = ["enrol\ttest\tenrol_spk\ttest_spk\tenrol_sex\ttest_sex\tlabel\tcosine"]
    for i in range(len(flat)):
        for j in range(i + 1, len(flat)):
            a, b = i // size, j // size
            lines.append(
                f"u{i}\tu{j}\ts{a}\ts{b}\t{'fm'[a % 2]}\t{'fm'[b % 2]}\t{int(a == b)}"
                f"\t{matrix[i, j]:.6f}"
            )
    path = tmp_path_factory.mktemp("scores") / "scores.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_file_a_frame_and_their_table_give_one_answer(score_file: Path, sentences) -> None:
    table = read_scores(score_file)
    asked = {"thresholds": [0.4], "counts": [1, 9], "groups": 0}
    wanted = worst_case(table, **asked).values
    for data in (score_file, str(score_file), pl.read_csv(score_file, separator="\t")):
        np.testing.assert_array_equal(worst_case(data, **asked).values, wanted)
        assert cp_maps(data, grid=3, replicates=0).maps["cosine"].full == pytest.approx(
            cp_maps(table, grid=3, replicates=0).maps["cosine"].full
        )
    with pytest.raises(InputError) as error:
        cp_maps(np.zeros(4))
    sentences.check(str(error.value))


def test_bands_and_rates_never_fall_from_the_measured_to_the_extrapolated_part(
    study: WorstCaseStudy,
) -> None:
    exact = study.empirical
    for result in (study.predicted, *study.compared.values()):
        more = result.counts >= exact.impostors
        for seen, far in (
            (exact.values, result.values),
            (exact.low, result.low),
            (exact.high, result.high),
        ):
            joined = np.concatenate([seen, far[more]])
            assert (np.diff(joined, axis=0) >= 0).all()


def run(*arguments: str) -> None:
    app([*arguments, "--quiet"], standalone_mode=False)


def test_thresholds_are_exclusive_and_counted_with_their_misses() -> None:
    target, nontarget = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 2.0, 2.5])
    roc = Roc.from_scores(target, nontarget, thresholds=counted_at([2.0]))
    (point,) = thresholds_of_roc(roc, thresholds=[2.0])
    assert (point.p_miss, point.p_fa) == (0.5, 0.25)
    costs = thresholds_of_roc(roc)
    assert [p.name for p in costs] == ["τ₁", "τ₂", "τ₃"]
    assert [p.p_miss for p in costs] == sorted(p.p_miss for p in costs)


def test_a_study_joins_the_measured_and_the_extrapolated_part(
    study: WorstCaseStudy, sentences
) -> None:
    assert study.empirical.impostors == 23
    assert 23 in study.predicted.counts
    assert 5000 in study.predicted.counts
    one, every, far, misses = study.estimates_of(1)
    assert one.value < every.value < far.value
    assert far.params["count"] == 5000
    assert misses.metric == "p_miss"
    (need,) = study.needed
    rate = study.extrapolation.predict([5000], [need.threshold])[0, 0]
    assert rate == pytest.approx(0.05, rel=0.02)
    assert need.high > 0.05
    assert need.safe_threshold > need.threshold
    assert need.safe_p_miss >= need.p_miss
    assert list(study.compared) == ["ls-generative"]
    assert any("4 scores a pair" in line for line in study.warnings)
    told = next(line for line in study.warnings if "23 impostors" in line)
    sentences.check(told.partition(":")[0])
    assert np.all(np.diff(study.limits[0.05]) >= 0)


@pytest.mark.parametrize("rate", [0.4, 0.6])
def test_printed_thresholds_keep_the_demand(population: Population, rate: float) -> None:
    """Read back, each has at most the rate and the printed misses."""
    target = same_speaker(population)
    study = worst_case_study(
        population.pairs(), target=target, population=500, model="gpd", target_rates=[rate]
    )
    (need,) = study.needed
    text = render(document_of({"all": study}), "text")
    sentence = " ".join(text[text.index("accept above") :].split())
    printed = [part.split(":")[0] for part in sentence.split("accept above ")[1:]]
    assert printed == [str(need.threshold), str(need.safe_threshold)]
    fitted, level = study.extrapolation, study.predicted.level
    plain, safe = map(float, printed)
    assert fitted.predict([500], [plain])[0, 0] <= rate
    assert fitted.predict_interval([500], [safe], level=level).high[0, 0] <= rate
    wanted = fitted.threshold_for(rate, 500), fitted.threshold_for(rate, 500, level=level)
    for shown, exact, misses in zip(printed, wanted, [need.p_miss, need.safe_p_miss], strict=True):
        assert exact <= float(shown) < exact + 2e-3 * abs(exact)
        assert np.mean(target <= float(shown)) == np.mean(target <= exact) == misses
        assert len(shown) <= 6 < len(str(exact))


def test_figures_are_drawn_in_both_widths(study: WorstCaseStudy, tmp_path: Path) -> None:
    with layout(width="column"):
        assert all(figure.spec() for figure in worst_case_figures(study))
    for figure in worst_case_figures(study):
        assert save(figure, tmp_path / f"{figure.name}.svg").stat().st_size > 1000


def test_documents_hold_what_the_study_found(study: WorstCaseStudy) -> None:
    document = document_of({"all": study})
    values = document.to_dict()["results"]
    assert values[2]["value"] == pytest.approx(study.estimates_of(0)[2].value)
    assert "accept above" in render(document, "text")
    grouped = render(document_of({"f": study, "m": study}), "md")
    assert "| f |" in grouped


def test_the_comparison_is_a_document(population: Population) -> None:
    table = compare_models(population.pairs(), models=("ls", "gpd"))
    text = render(document_of([table]), "csv")
    assert "carry-forward" in text
    assert "gpd" in text


def test_score_lists_and_embeddings_give_the_same_pairs(
    population: Population, score_file: Path
) -> None:
    listed = speaker_pairs(read_scores(score_file))
    vectors = population.utterances
    names = [f"s{k}" for k in range(24) for _ in range(4)]
    embedded = speaker_pairs(Embeddings(vectors.reshape(96, -1), names))
    assert listed.max_count == embedded.max_count == 23
    order = [embedded.target_names.index(name) for name in listed.target_names]
    mine = listed.similarity.reshape(24, 23).sum(axis=1)
    np.testing.assert_allclose(
        mine, embedded.similarity.reshape(24, 23).sum(axis=1)[order], atol=1e-4
    )


def test_the_command_answers_in_json_and_draws(
    score_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        *(
            "worstcase",
            str(score_file),
            "--by",
            "none",
            "--population",
            "1e4",
            "--model",
            "gpd-target",
        ),
        *("--threshold", "0.5", "--target-rate", "0.01", "--format", "json", "--ci", "6"),
        *("--figures", str(tmp_path / "figures"), "--figure-formats", "json"),
    )
    answer = json.loads(capsys.readouterr().out)
    assert [row["params"]["count"] for row in answer["results"][:3]] == [1, 23, 10_000]
    assert any("misses" in note for note in answer["notes"])
    assert len(list((tmp_path / "figures").glob("*.json"))) == 3


def test_the_command_works_within_groups(
    score_file: Path,
    capsys: pytest.CaptureFixture[str],
    sentences,
) -> None:
    run(
        "worstcase",
        str(score_file),
        *("--by", "sex", "--model", "gpd", "--dcf", "0.1", "--ci", "6"),
    )
    printed = capsys.readouterr().out
    assert "minDCF(0.1)" in printed
    told = next(line for line in printed.splitlines() if "f: 12 targets" in line)
    sentences.check(told.partition(";")[0])


def test_several_files_are_told_apart_by_name(
    voices_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = (f"one={voices_file}", f"two={voices_file}")
    run("worstcase", *both, *("--by", "none", "--model", "gpd", "--ci", "0"))
    printed = capsys.readouterr().out
    assert "one" in printed
    assert "two" in printed


def test_no_intervals_means_none_anywhere(
    score_file: Path,
    capsys: pytest.CaptureFixture[str],
    sentences,
) -> None:
    run(*("worstcase", str(score_file), "--ci", "0", "--model", "ls+", "--format", "json"))
    answer = json.loads(capsys.readouterr().out)
    assert all(row["interval"] is None for row in answer["results"] if row["metric"] != "p_miss")
    with pytest.raises(InputError) as error:
        run("worstcase", str(score_file), "--ci", "2")
    sentences.check(str(error.value))


def test_the_command_compares_models(
    score_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "worstcase",
        str(score_file),
        "--by",
        "none",
        "--table",
        "--model",
        "ls-generative",
        "--model",
        "gpd",
    )
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("carry-forward", "ls-generative", "gpd", "N ≤ 15"))
    run(
        *(
            "worstcase",
            str(score_file),
            "--by",
            "none",
            "--model",
            "gpd",
            "--model",
            "ls-generative",
        ),
        *("--figures", str(tmp_path), "--figure-formats", "json"),
        *("--population", "500", "--ci", "6"),
    )
    assert "ls-generative at N = 500:" in " ".join(capsys.readouterr().out.split())
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == [
        "worst_case_curves",
        "worst_case_map",
        "worst_case_thresholds",
    ]


def test_a_proxy_chooses_in_the_command(
    score_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *lines = score_file.read_text(encoding="utf-8").splitlines()
    rng = np.random.default_rng(0)
    blind = ["\t".join([*line.split("\t")[:-1], f"{rng.normal():.6f}"]) for line in lines]
    proxy = tmp_path / "proxy.tsv"
    proxy.write_text("\n".join([head, *blind]) + "\n", encoding="utf-8")
    asked = ("worstcase", str(score_file), "--model", "ls+", "--ci", "0", "--format", "json")
    rates = []
    for more in ((), ("--proxy", str(proxy))):
        run(*asked, "--threshold", "0.4", *more)
        answer = json.loads(capsys.readouterr().out)["results"]
        rates.append([row["value"] for row in answer[:3]])
    assert rates[0][0] == pytest.approx(rates[1][0], abs=0.01)
    assert rates[1][1] < rates[0][1] / 2
    assert rates[1][2] < rates[0][2]


def test_a_population_below_one_is_refused(score_file: Path, sentences) -> None:
    with pytest.raises(InputError) as error:
        run("worstcase", str(score_file), "--population", "0")
    sentences.check(str(error.value))


def test_lists_without_speakers_are_refused(sentences) -> None:
    from unmask.trials import Scores

    with pytest.raises(InputError) as error:
        speaker_pairs(Scores.from_arrays([1.0], [0.0]))
    sentences.check(str(error.value))


def test_real_scores_of_voxceleb1(sentences) -> None:
    path = Path(__file__).parents[2] / ".." / "shared" / "data" / "scores"
    if not path.is_dir():
        pytest.skip("the data are not at hand")
    trials = read_scores(path / "voxceleb1_o_3systems_cranDET.tsv.gz")
    made = speaker_pairs(trials, system="plda")
    assert len(made) == 2 * 780
    with pytest.raises(InputError) as error:
        made.checked()
    sentences.check(str(error.value))
    assert isinstance(made.without_single_scores().checked(), PairScores)


def test_thresholds_of_a_statistic_are_those_of_its_scores(sentences) -> None:
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(2, 1, 300), rng.normal(0, 1, 5000)
    asked = {"thresholds": [0.5, 1.25], "p_target": [0.1]}
    roc = Roc.from_scores(target, nontarget, thresholds=counted_at(asked["thresholds"]))
    result = thresholds_of_roc(roc, **asked)
    for point in (*result, *thresholds_of_roc(roc)):
        assert point.p_miss == pytest.approx(np.mean(target <= point.threshold))
        assert point.p_fa == pytest.approx(np.mean(nontarget > point.threshold))
    with pytest.raises(InputError) as error:
        thresholds_of_roc(roc, thresholds=[0.7])
    sentences.check(str(error.value))


@pytest.fixture(scope="module")
def voices(population: Population) -> Embeddings:
    vectors = population.utterances
    names = [f"s{k}" for k in range(24) for _ in range(4)]
    sex = ["fm"[k % 2] for k in range(24) for _ in range(4)]
    return Embeddings(vectors.reshape(96, -1), names, columns={"sex": sex})


def test_a_study_of_embeddings_is_that_of_their_scores(
    population: Population,
    voices: Embeddings,
    sentences,
) -> None:
    asked = {"model": "gpd", "thresholds": [0.3, 0.5], "groups": 6}
    plain = ImpostorProtocol(split=False, per_pair=16)
    target = same_speaker(population)
    wanted = worst_case_study(speaker_pairs(voices), target=target, protocol=plain, **asked)
    result = worst_case_study(voices, protocol=plain, **asked)
    assert result.sample is None
    np.testing.assert_allclose(result.empirical.values, wanted.empirical.values, atol=1e-12)
    np.testing.assert_allclose(result.empirical.low, wanted.empirical.low, atol=1e-12)
    np.testing.assert_allclose(result.predicted.values, wanted.predicted.values, atol=1e-6)
    for one, other in zip(result.operating, wanted.operating, strict=True):
        assert one.p_miss == pytest.approx(other.p_miss, abs=1e-6)
        assert one.p_fa == pytest.approx(other.p_fa, abs=1e-4)
    some = worst_case_study(voices, protocol=replace(plain, per_pair=4), **asked)
    assert some.sample == ScoreSample(24, 4)
    np.testing.assert_array_equal(some.empirical.values, result.empirical.values)
    text = render(document_of({"all": some}), "text")
    (told,) = (note for note in document_of({"all": some}).notes if "each pair of 24" in note)
    assert told.split()[0] in text
    sentences.check(next(part for part in told.split(". ") if "each pair of 24" in part))


def test_another_encoder_chooses_in_a_study_of_embeddings(voices: Embeddings) -> None:
    rng = np.random.default_rng(1)
    names = voices.speakers.to_series().to_list()
    blind = Embeddings(rng.normal(size=voices.vectors.shape), names)
    asked = {"model": "ls+", "thresholds": [0.4], "groups": 0, "population": 200}
    own = worst_case_study(voices, **asked)
    weak = worst_case_study(voices, proxy=blind, **asked)
    assert own.empirical.split
    assert not weak.empirical.split
    assert weak.estimates_of(0)[1].value < own.estimates_of(0)[1].value / 2
    assert weak.estimates_of(0)[2].value < own.estimates_of(0)[2].value


@pytest.mark.parametrize("change", [{"model": "magic"}, {"population": 0.5}, {"groups": 3}])
def test_a_study_refuses_before_any_work(
    voices: Embeddings,
    change: dict[str, object],
    sentences,
) -> None:
    with pytest.raises(InputError) as raised:
        worst_case_study(voices, **change)
    sentences.check(str(raised.value))
    with pytest.raises(InputError) as error:
        ImpostorProtocol(per_pair=1)
    sentences.check(str(error.value))


@pytest.fixture(scope="module")
def voices_file(voices: Embeddings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("voices") / "voices.npz"
    np.savez(
        path,
        embeddings=voices.vectors,
        speaker_ids=np.array(voices.speakers.to_series().to_list()),
        utt_ids=np.array([f"u{k}" for k in range(96)]),
        sex=np.array(voices.columns["sex"].to_series().to_list()),
    )
    return path


def test_the_command_takes_embeddings_on_any_place_and_goes_on(
    voices_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (
        "worstcase",
        str(voices_file),
        "--by",
        "none",
        "--model",
        "gpd",
        "--format",
        "json",
        "--ci",
        "6",
    )
    run(*asked)
    wanted = json.loads(capsys.readouterr().out)
    assert [row["params"]["count"] for row in wanted["results"][:3]] == [1, 23, 2300]
    assert not any("of each pair" in note for note in wanted["notes"])
    for _ in range(2):
        run(*asked, "--workers", "2", "--state", str(tmp_path / "state"))
        assert json.loads(capsys.readouterr().out)["results"] == wanted["results"]
    assert len(list((tmp_path / "state").iterdir())) == 6


@pytest.mark.parametrize("asked", [(), ("--by", "sex")])
def test_impostors_are_of_the_targets_sex_where_a_column_says_so(
    voices_file: Path,
    capsys: pytest.CaptureFixture[str],
    asked: tuple[str, ...],
    sentences,
) -> None:
    run(
        *("worstcase", str(voices_file), *asked, "--model", "gpd", "--dcf", "0.1"),
        *("--per-pair", "8", "--ci", "6"),
    )
    printed = " ".join(capsys.readouterr().out.split())
    assert "f: 12 targets" in printed
    assert " 8 scores of each pair" in printed
    with pytest.raises(InputError) as error:
        run("worstcase", str(voices_file), "--by", "age")
    sentences.check(str(error.value))


def test_the_command_counts_scores_elsewhere_as_well(
    score_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("worstcase", str(score_file), "--model", "gpd", "--format", "json", "--ci", "6")
    run(*asked)
    wanted = json.loads(capsys.readouterr().out)["results"]
    run(*asked, "--workers", "2", "--state", str(tmp_path))
    assert json.loads(capsys.readouterr().out)["results"] == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--system", "cosine"), "--system: is for score files, found embeddings"),
        (("--one-way",), "--one-way: is for score files, found embeddings"),
        (("--min-impostors", "3"), "--min-impostors: is for score files, found embeddings"),
        (("--on", "moon"), "found moon"),
        (("--on", "cuda"), "no CUDA device"),
        (("--backend", "none.npz"), "none.npz: no such file"),
    ],
)
def test_options_without_use_for_embeddings_are_refused(
    voices_file: Path, given: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run("worstcase", str(voices_file), *given)


def test_options_without_use_for_scores_are_refused(score_file: Path, sentences) -> None:
    for given in (("--per-pair", "20"), ("--backend", "cosine")):
        with pytest.raises(InputError) as error:
            run("worstcase", str(score_file), *given)
        sentences.check(str(error.value))


def test_needed_thresholds_are_measured_up_to_the_impostors_at_hand(population, study):
    counts, needed = study.predicted.counts, study.limits[0.05]
    near = np.flatnonzero((counts < study.empirical.impostors) & np.isfinite(needed))
    rates = worst_case(population.pairs(), needed[near], counts=counts[near], groups=0)
    assert np.diag(rates.values) == pytest.approx(np.full(near.size, 0.05), abs=0.01)
    assert (np.diff(needed[np.isfinite(needed)]) >= 0).all()


def test_the_chart_of_needed_thresholds_parts_what_is_measured_from_what_is_not(study, sentences):
    figure = needed_thresholds(study)
    rows = [row for data in figure.spec()["datasets"].values() for row in data]
    lines = {name: [r["count"] for r in rows if r.get("line") == name] for name in KINDS}
    at_hand = study.empirical.impostors
    assert max(lines["measured"]) == min(lines["extrapolated"]) == at_hand
    assert {"count": float(at_hand)} in rows
    sentences.check(figure.caption)
