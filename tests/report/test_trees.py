"""The tree of a challenge becomes a config, and the config one table of systems."""

import io
import re
import shutil

import numpy as np
import polars as pl
import pytest
from tests.helpers.latex import compiled, has_tex
from tests.helpers.trees import ENROLLED, PEOPLE, UTTERANCES, YEARS, write_tree
from typer.testing import CliRunner

import unmask as um
from unmask.assessment import check_config, load_config, ranked_sets, starter_config
from unmask.assessment.challenge import TrialSet, read_results
from unmask.cli import app
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.report import (
    check_inputs,
    render,
    run_assessment as assess,
    summary_table,
    write_report,
)
from unmask.report.standings import mean
from unmask.trials import Embeddings, write

TARGET = np.arange(ENROLLED)[:, None] == np.repeat(np.arange(PEOPLE), UTTERANCES)
INFORMED, LAZY = "informed (semi-informed)", "ignorant (lazy-informed)"


def rate(scores, chosen=..., estimator="rocch"):
    """EER of a matrix of enrolled × recordings, or of a part of it."""
    target = TARGET[chosen]
    return um.eer(scores[chosen][target], scores[chosen][~target], estimator=estimator)


def assessed(folder, *changes):
    """The assessment of a tree as ``init`` and ``assess`` make it, without figures."""
    path = folder / "assessment.toml"
    path.write_text(starter_config(folder))
    quick = ["intervals.replicates=10", "figures=[]", *changes]
    return assess(load_config(path, changes=quick), folder.with_name("report"))


def cells(table, number=0):
    """A shown table by system and heading: numbers, or differences from the baseline."""
    rows = table.shown[number]
    return {
        (row.conditions["system"], head): estimate
        for row in rows
        for head, estimate in zip(row.columns, row.estimates, strict=True)
    }


@pytest.fixture(scope="module")
def year_2024(tmp_path_factory):
    """A tree of two systems, its scores and its assessment with a baseline."""
    folder = tmp_path_factory.mktemp("vpc") / "tree"
    made = write_tree(folder, "2024", ("mcadams", "ours"))
    before = sorted(folder.rglob("*"))
    assessment = assessed(folder, 'table.baseline="mcadams"')
    (folder / "assessment.toml").unlink()
    return folder, made, assessment, before


@pytest.mark.parametrize("year", YEARS)
def test_every_year_has_systems_by_suffix_and_attackers_by_folder(tmp_path, year):
    tags = ("anon",) if year in ("2020", "2022") else ("mcadams", "ours")
    write_tree(tmp_path, year, tags)
    path = tmp_path / "assessment.toml"
    path.write_text(starter_config(tmp_path))
    safeguards = load_config(path).safeguards
    assert tuple(one.name for one in safeguards) == tags
    extractors = {"given"} if year == "2020" else {"given", "trained"}
    for one in safeguards:
        assert {given.set for given in one.scores} == set(YEARS[year].sets)
        assert {given.extractor for given in one.scores} == extractors
        for given in one.scores:
            trials = given.key.parent
            assert given.speakers == str(trials / "utt2spk")
            assert (given.genders is None) == ("mixed" not in given.set)
            assert given.oo.parent.name.endswith(f"_enrolls-{trials.name}")
            assert given.op.parent.name.endswith(f"_enrolls-{trials.name}_{one.name}")
            assert given.pp.parent.name.endswith(f"_enrolls_{one.name}-{trials.name}_{one.name}")
            assert given.oo.parent.parent == given.pp.parent.parent
        metrics = {rate.metric for path in one.results for rate in read_results(path)}
        assert metrics == ({"wer"} if year in ("2020", "2022") else {"wer", "uar"})


def test_the_table_has_one_row_a_system_and_means_by_hand(year_2024):
    _, made, assessment, _ = year_2024
    assert not assessment.failures
    table = cells(assessment.overview)
    heads = [head for system, head in table if system == "ours"]
    assert heads[:3] == ["EER f [%]", "EER m [%]", "EER mean [%]"]
    assert heads[3:] == ["DeID [%]", "G_VD [dB]", "Linkability [%]", "WER [%]", "UAR [%]"]
    assert list(dict.fromkeys(system for system, _ in table)) == ["original", "mcadams", "ours"]
    means = {}
    for tag in ("mcadams", "ours"):
        rates = [rate(made[tag, f"libri_test_{sex}", "pp", True]) for sex in "fm"]
        for sex, expected in zip("fm", rates, strict=True):
            assert table[tag, f"EER {sex} [%]"].value == pytest.approx(expected)
        means[tag] = np.mean(rates)
        assert table[tag, "EER mean [%]"].value == pytest.approx(means[tag])
        assert table[tag, "UAR [%]"].value == pytest.approx(0.535)
    bare = [rate(made["", f"libri_test_{sex}", "oo", False]) for sex in "fm"]
    assert table["original", "EER mean [%]"].value == pytest.approx(np.mean(bare))
    shown = summary_table(assessment)
    assert shown.count("EER mean") == 1
    who = f"EER and Linkability: {INFORMED}; DeID: original enrolment (ignorant); G_VD: {LAZY}"
    assert who in shown
    latex = render(assessment.overview, "latex").replace(r"$G_{\mathrm{VD}}$", r"G\_VD")
    assert who.replace("_", "\\_") in latex
    for width, parts in ((160, 2), (100, 2), (80, 3)):
        lines = summary_table(assessment, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert sum(line.startswith("system ") for line in lines) == parts


def test_words_are_counted_from_what_the_recogniser_wrote(year_2024, sentences):
    folder, _, assessment, _ = year_2024
    table = cells(assessment.overview)
    said = {}
    for sex in "fm":
        for line in (folder / f"data/libri_test_trials_{sex}/text").read_text().splitlines():
            name, *words = line.split()
            said[name] = words
    for system, end in (("original", ""), ("mcadams", "_mcadams"), ("ours", "_ours")):
        wrong = 0
        for line in (folder / f"exp/asr/libri_test_asr{end}/text").read_text().splitlines():
            name, *words = line.split()
            wrong += sum(a != b for a, b in zip(said[name], words, strict=True))
        rate = table[system, "WER [%]"]
        assert rate.value == pytest.approx(wrong / sum(map(len, said.values())))
        assert rate.interval.low < rate.value < rate.interval.high
    lines = [line for line in assessment.overview.asides if "WER [%] of libri_test: " in line]
    assert lines
    assert all(" 7.00, " in line for line in lines)
    assert all(line in summary_table(assessment) for line in lines)
    sentences.check(*lines)


def test_differences_from_the_baseline_are_paired(year_2024):
    assessment = year_2024[2]
    table, apart = cells(assessment.overview), cells(assessment.overview, 1)
    names = ("EER mean", "DeID", "G_VD", "Linkability", "WER", "UAR")
    assert len(apart) == len(names)
    for name, ((system, head), estimate) in zip(names, apart.items(), strict=True):
        unit = "[dB]" if name == "G_VD" else "[%]"
        assert (system, head) == ("ours − mcadams", f"{name.removesuffix(' mean')} {unit}")
        one, two = (table[tag, f"{name} {unit}"] for tag in ("mcadams", "ours"))
        assert estimate.value == pytest.approx(two.value - one.value)
        if name == "UAR":
            assert estimate.interval is None
            continue
        assert estimate.interval.low < estimate.value < estimate.interval.high
        alone = [e.interval.high - e.interval.low for e in (one, two)]
        assert estimate.interval.high - estimate.interval.low < 1.5 * sum(alone)


def test_notes_are_of_what_is_shown_and_differences_of_every_attacker(
    year_2024, tmp_path, sentences
):
    folder, made, _, _ = year_2024
    only = 'frameworks=["verification"]'
    rows = ['table.rows=["attackers"]', 'table.columns=["eer", "wer"]', 'table.baseline="mcadams"']
    shutil.copytree(folder, tmp_path / "tree")
    overview = assessed(tmp_path / "tree", only, *rows).overview
    apart = {row.conditions["attacker"]: row.estimates[0].value for row in overview.shown[1]}
    for who, part, trained in ((INFORMED, "pp", True), (LAZY, "pp", False)):
        both = (
            np.mean([rate(made[tag, f"libri_test_{sex}", part, trained]) for sex in "fm"])
            for tag in ("mcadams", "ours")
        )
        base, own = both
        assert apart[who] == pytest.approx(own - base)
    said = "\n".join((*overview.notes, *overview.asides))
    assert "Linkability" not in said
    assert "DeID" not in said
    differences = [line for line in said.splitlines() if "EER above 0" in line]
    assert all("mcadams" in line for line in differences)
    assert differences
    sentences.check(*differences)
    rates = [line for line in overview.asides if ", EER [%] of " in line]
    assert [line.partition(",")[0] for line in rates] == ["mcadams", "ours"]
    words = assessed(tmp_path / "tree", only, 'table.columns=["wer"]').overview
    (note,) = words.notes
    assert note.startswith("WER: ")
    sentences.check(note)
    assert not words.asides


def test_a_system_differs_from_itself_by_nothing(tmp_path):
    made = write_tree(tmp_path / "tree", tags=("a", "b"), sets=("libri_test_f",), trained=False)
    assert made
    for path in (tmp_path / "tree").rglob("*_b"):
        other = path.with_name(path.name.replace("_b", "_a"))
        if other.is_dir() and (other / "scores").is_file():
            (path / "scores").write_bytes((other / "scores").read_bytes())
    apart = cells(assessed(tmp_path / "tree", 'table.baseline="a"').overview, 1)
    for head in ("EER [%]", "DeID [%]", "G_VD [dB]", "Linkability [%]"):
        one = apart["b − a", head]
        assert one.value == pytest.approx(0, abs=1e-12)
        assert np.isnan(one.interval.low) or one.interval.low <= 0 <= one.interval.high


def test_words_that_were_not_written_down_cost_the_word_error_rate_alone(tmp_path, sentences):
    write_tree(tmp_path / "tree", sets=("libri_test_f",), trained=False)
    place = tmp_path / "tree/exp/asr/libri_test_asr_mcadams/text"
    place.write_text("".join(place.read_text().splitlines(keepends=True)[1:]))
    done = assessed(tmp_path / "tree", 'frameworks=["verification", "utility"]')
    (failure,) = done.failures
    assert failure.code == "not-computed"
    assert failure.sentence.endswith(" libritestf0-12-0000 (1 of 28 missing)")
    sentences.check(failure.sentence)
    table = cells(done.overview)
    assert table["mcadams", "WER [%]"].value == 0.07
    (note,) = [line for line in done.overview.notes if line.startswith("WER and UAR: ")]
    assert note in summary_table(done)
    sentences.check(note)


def test_ideographs_are_words_of_their_own(tmp_path):
    from unmask.assessment.config import Heard
    from unmask.assessment.frameworks.utility import heard_words

    said = {"u1": "深 shen1 交 jiao1 所 suo3", "u2": "今日は雨", "u3": "two words"}
    heard = {"u1": "深交", "u2": "今日 雨", "u3": "two birds flew"}
    for name, some in (("text", said), ("original", said), ("protected", heard)):
        (tmp_path / name).write_text("".join(f"{k} {v}\n" for k, v in some.items()))
    (tmp_path / "utt2spk").write_text("u1 a\nu2 b\nu3 c\n")
    one = Heard(set="x", data=[tmp_path], original=tmp_path / "original",
                protected=tmp_path / "protected")  # fmt: skip
    (result,) = heard_words(one, replicates=0)
    assert result["x"]["wer"].value == pytest.approx((1 + 0 + 2) / (3 + 3 + 2))
    assert result["x"]["wer_unprotected"].value == 0


@pytest.mark.skipif(not has_tex(), reason="pdflatex with booktabs is not installed")
def test_the_table_of_four_sets_and_a_baseline_fits_a_page(tmp_path):
    sets = tuple(f"{lang}_test_mixed" for lang in ("en", "de", "es", "fr"))
    write_tree(tmp_path / "tree", "2026-2", ("BM1", "BM2"), sets=sets)
    done = assessed(tmp_path / "tree", 'table.baseline="BM1"')
    assert len(cells(done.overview)) == 28
    compiled(done.overview, tmp_path)


def test_the_tree_s_own_rates_stand_beside_and_nothing_is_written_into_it(year_2024, sentences):
    folder, made, assessment, before = year_2024
    one, two = (
        f"{100 * rate(made['ours', f'libri_test_{sex}', 'pp', True], estimator='speechbrain'):.2f}"
        for sex in "fm"
    )
    start = f"ours, {INFORMED}, EER [%] of libri_test_f, libri_test_m: "
    (aside,) = [line for line in assessment.overview.asides if line.startswith(start)]
    assert re.findall(r"\d+\.\d+", aside) == ["25.00", "25.00", one, two]
    assert aside in summary_table(assessment)
    sentences.check(aside)
    report = folder.with_name("written")
    write_report(assessment, report)
    assert sorted(folder.rglob("*")) == before
    ranked = report / "tables" / "result_for_rank_ours"
    lines = [line.split() for line in ranked.read_text().splitlines()]
    assert ["libri", "test", "f", "anon", "anon", f"{float(one):.2f}"] in [
        [*line[:-1], f"{float(line[-1]):.2f}"] for line in lines if line[-1:] and line[0] == "libri"
    ]
    again = {(r.metric, r.corpus, r.split, r.part): r.value for r in read_results(ranked)}
    assert again["wer", "libri", "test", "pp"] == pytest.approx(0.07)
    assert again["uar", "IEMOCAP", "dev", "oo"] == pytest.approx(0.7)
    file = pl.read_csv(
        io.BytesIO((report / "tables/overview.csv").read_bytes()), infer_schema=False
    )
    assert set(file["attacker"]) >= {INFORMED, LAZY, "original enrolment (ignorant)", "unprotected"}
    assert set(file["set"]) >= {*YEARS["2024"].sets, "mean of libri_test_f, libri_test_m"}
    latex = (report / "tables/overview.tex").read_text()
    assert r"\caption{Assessment of " in latex
    assert "here by" not in latex.split(r"\end{table*}")[0]
    assert latex.count(r"\begin{tabular}") == 2
    assert re.search(r"\\\\\[", latex) is None  # would be read as an option of the line's end


def test_conclusions_are_of_systems_and_no_map_is_drawn_unasked(year_2024):
    assessment = year_2024[2]
    table = cells(assessment.overview)
    worst = sorted(("mcadams", "ours"), key=lambda name: table[name, "EER mean [%]"].value)
    assert [card.safeguard for card in assessment.lines] == worst
    assert all("mean of 2 sets" in card.verdict for card in assessment.lines)
    keys = {section.key for section in assessment.sections}
    assert keys == {"similarity", "verification", "utility"}
    assert len(assessment.all_figures) <= 10
    assert "2 safeguards." in assessment.line


def test_sets_weigh_as_the_organisers_weigh_them():
    old = ranked_sets(YEARS["2022"].sets)
    share = {name: weight / sum(old.values()) for name, weight in old.items()}
    assert share == pytest.approx(
        {f"libri_test_{sex}": 0.25 for sex in "fm"}
        | {f"vctk_test_{sex}": 0.2 for sex in "fm"}
        | {f"vctk_test_{sex}_common": 0.05 for sex in "fm"}
    )
    assert ranked_sets(YEARS["2026-1"].sets) == {"libri_test_mixed": 1.0}
    assert set(ranked_sets(YEARS["2026-2"].sets).values()) == {1.0}
    assert TrialSet.of("vctk_dev_f_common") == ("vctk", "dev", "f", "common")
    for name in ("scores", "", "two\nlines"):
        assert TrialSet.of(name) == (name, "", "", "")


def test_languages_are_averaged_and_mixed_lists_split_by_sex(tmp_path):
    sets = tuple(f"{lang}_test_mixed" for lang in ("en", "de", "es", "fr", "ja"))
    made = write_tree(tmp_path / "tree", "2026-2", ("BM1",), sets=sets)
    only = 'frameworks=["verification"]'
    table = cells(assessed(tmp_path / "tree", only).overview)
    rates = [rate(made["BM1", name, "pp", True]) for name in sets]
    assert table["BM1", "EER mean [%]"].value == pytest.approx(np.mean(rates))
    owner = np.repeat(np.arange(PEOPLE), UTTERANCES)
    for sex, first in (("f", 0), ("m", 1)):
        part = np.ix_(np.arange(ENROLLED) % 2 == first, owner % 2 == first)
        expected = np.mean([rate(made["BM1", name, "pp", True], part) for name in sets])
        assert table["BM1", f"EER {sex} [%]"].value == pytest.approx(expected)
    chosen = ['table.means="language"', 'table.columns=["eer"]', 'table.rows=["attackers", "BM1"]']
    again = assessed(tmp_path / "tree", only, *chosen).overview
    rows = again.shown[0]
    assert [row.conditions["attacker"] for row in rows][:2] == [INFORMED, LAZY]
    assert rows[0].columns == [f"EER {h} [%]" for h in ("de", "en", "es", "fr", "ja", "mean")]


def test_what_is_missing_or_unknown_in_a_tree_is_said_in_a_line(tmp_path, sentences):
    write_tree(tmp_path, sets=("libri_dev_f",))
    lost = "exp/asv_orig/cosine_out/libri_dev_enrolls-libri_dev_trials_f_mcadams"
    (tmp_path / lost / "scores").unlink()
    (tmp_path / "exp/asv_anon_mcadams").rename(tmp_path / "exp/verifier")
    said = CliRunner().invoke(app, ["init", str(tmp_path)]).stderr.splitlines()
    assert said[0].startswith(f"{lost}: ")
    assert said[1].startswith("exp/verifier/cosine_out: ")
    sentences.check(*said[:2])
    (one,) = load_config(tmp_path / "assessment.toml").safeguards
    assert [given.extractor for given in one.scores] == ["given"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("exp/asr/results_mcadams.csv", "a,b\n", ""),
        ("exp/asr/results_mcadams.csv", ",dataset,split,asr,WER\n0,a,dev,anon,x\n", "line 2: .* x"),
        ("exp/asv_orig/cosine_out/libri_dev_enrolls-libri_dev_trials_f/EER", "tensor", "tensor"),
        ("data/libri_dev_trials_mixed/spk2gender", "somebody f\n", "libridevmixed0"),
    ],
    ids=["columns", "number", "rate", "gender"],
)
def test_a_file_of_a_tree_that_is_not_understood_is_named(tmp_path, name, text, found, sentences):
    sets = ("libri_dev_mixed",) if "mixed" in name else ("libri_dev_f",)
    write_tree(tmp_path, "2026-1" if "mixed" in name else "2024", sets=sets, trained=False)
    path = tmp_path / "assessment.toml"
    path.write_text(starter_config(tmp_path))
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"{re.escape(name)}.*{found}") as error:
        check_inputs(load_config(path))
    sentences.check(str(error.value))


def test_systems_in_trees_of_their_own_go_by_the_name_of_the_tree(tmp_path):
    for name in ("first", "second"):
        write_tree(tmp_path / name, "2020", ("anon",), sets=("libri_test_f",))
    path = tmp_path / "assessment.toml"
    path.write_text(starter_config(tmp_path))
    assert [one.name for one in load_config(path).safeguards] == ["first", "second"]


def test_rows_columns_and_means_are_chosen_from_the_command_line(tmp_path):
    write_tree(tmp_path, "2026-1", ("a", "b"), sets=("libri_test_f", "libri_test_m"), trained=False)
    CliRunner().invoke(app, ["init", str(tmp_path)])
    options = ["--rows", "b,a", "--columns", "eer,wer", "--means", "none", "--baseline", "a"]
    quick = ["--set", "intervals.replicates=2", "--set", 'frameworks=["verification"]']
    words = ["assess", str(tmp_path / "assessment.toml"), *options, *quick, "--set", "figures=[]"]
    done = CliRunner().invoke(app, [*words, "--cache", str(tmp_path / "cache")])
    lines = done.stdout.splitlines()
    assert done.exit_code == 0, done.stderr
    assert lines[0].split() == ["EER", "mean", "WER"]
    assert [line.split()[0] for line in lines[3:7:2]] == ["b", "a"]
    assert "b − a" in done.stdout


def test_the_table_refuses_systems_that_are_not_there(tmp_path, sentences):
    write_tree(tmp_path, sets=("libri_dev_f",), trained=False)
    path = tmp_path / "assessment.toml"
    path.write_text(starter_config(tmp_path))
    for change in ('table.baseline="ours"', 'table.rows=["ours"]'):
        with pytest.raises(InputError, match=r"mcadams.* 'ours'") as error:
            load_config(path, changes=[change])
        sentences.check(str(error.value))
    with pytest.raises(InputError, match="table: ") as error:
        check_config({"scores": [{"name": "a", "files": ["a"]}], "table": {"means": "sex"}})
    sentences.check(str(error.value))


def test_linkability_of_a_score_matrix_by_definition(tmp_path):
    from unmask.privacy.legal import matrix_risks, singling_out_from_scores
    from unmask.trials import read_scores

    write_tree(tmp_path, sets=("libri_dev_f",))
    pair = "libri_dev_enrolls-libri_dev_trials_f_mcadams"
    place = tmp_path / "exp/asv_orig/cosine_out" / pair
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
    weighed = mean(made, independent=True, weights=[0.8, 0.2])
    assert weighed.value == pytest.approx(0.8 * 0.2 + 0.2 * 0.4)
    assert weighed.interval.low == pytest.approx(0.24 - np.hypot(0.8 * 0.03, 0.2 * 0.04))


@pytest.mark.parametrize(
    ("prefix", "deeper"), [("xvectors_", False), ("xvect_", True), ("", False)]
)
def test_xvectors_of_a_tree_are_proposed_and_read(tmp_path, prefix, deeper):
    rng = np.random.default_rng(5)
    names = [f"{who}-{u}" for who in "abcdef" for u in range(4)]
    centres = {who: rng.normal(size=8) for who in "abcdef"}
    data = tmp_path / "data" / "libri_dev_trials_f"
    if deeper:
        data = tmp_path / "exp" / f"{prefix}libri_dev_trials_f" / "meta"
    data.mkdir(parents=True)
    (data / "utt2spk").write_text("".join(f"{name} {name[0]}\n" for name in names))
    for tag, noise in (("", 0.2), ("_anon", 2.0)):
        place = tmp_path / "exp" / f"{prefix}libri_dev_trials_f{tag}"
        place.mkdir(parents=True, exist_ok=True)
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


def test_a_line_that_a_list_repeats_counts_once_and_is_said(tmp_path, sentences):
    """As the script of 2026 writes lists; a line with another label stays refused."""
    write_tree(tmp_path / "plain", "2026-1", ("ours",))
    write_tree(tmp_path / "again", "2026-1", ("ours",))
    for file in (tmp_path / "again" / "data").rglob("trials"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join([*lines, *lines[3:10]]))
    plain, again = (assessed(tmp_path / name / ".") for name in ("plain", "again"))
    assert cells(plain.overview).keys() == cells(again.overview).keys()
    for where, estimate in cells(plain.overview).items():
        assert cells(again.overview)[where].value == estimate.value
    repeated = [one for one in again.notices if one.code == "repeated-trials"]
    assert repeated
    assert all(notice.sentence.startswith("7 of 147 ") for notice in repeated)
    assert all(notice.line in summary_table(again) for notice in repeated)
    assert "repeated-trials" not in {notice.code for notice in plain.notices}
    sentences.check(*(notice.line for notice in repeated))
    for file in (tmp_path / "again" / "data").rglob("trials"):
        *names, kind = file.read_text().splitlines()[0].split()
        other = "target" if kind == "nontarget" else "nontarget"
        file.write_text(f"{file.read_text()}{' '.join(names)} {other}\n")
    with pytest.raises(InputError, match="another label"):
        assessed(tmp_path / "again" / ".")


def test_a_result_file_of_another_run_is_said(tmp_path, sentences):
    made = write_tree(tmp_path / "tree", sets=("libri_test_f", "libri_test_m"))
    right = {
        sex: 100 * rate(made["mcadams", f"libri_test_{sex}", "pp", True], estimator="speechbrain")
        for sex in "fm"
    }
    for file in (tmp_path / "tree").rglob("result*"):
        file.unlink()
    for apart, contradicts in ((0.0, False), (3.0, True)):
        rows = "".join(f" libri test {sex} anon anon {right[sex] + apart:.3f}\n" for sex in "fm")
        (tmp_path / "tree" / "exp" / "result_for_rank_mcadams").write_text(
            "---- SER results ----\n dataset split ser UAR\n IEMOCAP test anon 60.0\n"
            "---- ASV_eval^anon results ----\n"
            f" dataset split gender enrollment trial EER\n{rows}"
        )
        done = assessed(tmp_path / "tree")
        asides = [line for line in done.overview.asides if line.startswith("mcadams")]
        assert all(line in summary_table(done) for line in asides)
        notices = [notice for notice in done.notices if notice.code == "another-run"]
        assert bool(notices) == contradicts
        assert all(notice.line in summary_table(done) for notice in notices)
        sentences.check(*asides, *(notice.line for notice in notices))


def test_unprotected_speech_has_a_row_without_scores_of_it(tmp_path):
    write_tree(tmp_path / "tree", "2026-1", ("ours",))
    for place in (tmp_path / "tree" / "exp").rglob("scores"):
        if "ours" not in place.parent.name or place.parent.name.count("ours") < 2:
            place.unlink()
    table = cells(assessed(tmp_path / "tree").overview)
    assert ("original", "WER [%]") in table
    assert ("ours", "WER [%]") in table
    assert not any(system == "original" and "EER" in head for system, head in table)


def test_rows_are_sorted_within_the_conditions_of_the_organisers(tmp_path):
    tags = ("mcadams", "ours", "b3", "b5")
    write_tree(tmp_path / "tree", tags=tags)
    given = assessed(tmp_path / "tree")
    numbers = {}
    for (system, head), estimate in cells(given.overview).items():
        numbers.setdefault(system, {})[head] = float(estimate.value)
    for by, sign in (("wer", 1), ("uar", -1), ("eer", 0)):
        done = assessed(tmp_path / "tree", f'table.sort="{by}"')
        order = [row.conditions["system"] for row in done.overview.shown[0]][1:]

        def key(name, by=by, sign=sign):
            eer = numbers[name]["EER mean [%]"]
            met = sum(eer >= bound for bound in (0.1, 0.2, 0.3, 0.4))
            return (-met, sign * numbers[name][f"{by.upper()} [%]"]) if sign else (-eer,)

        assert sorted(order) == sorted(tags)
        assert [key(name) for name in order] == sorted(map(key, order))
        assert "Rows sorted by" in summary_table(done)


def test_lists_that_are_not_whole_say_why_there_is_no_linkability(tmp_path, sentences):
    write_tree(tmp_path / "tree", sets=("libri_test_f",))
    for file in (tmp_path / "tree" / "data").rglob("trials"):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-5]))
    for file in (tmp_path / "tree" / "exp").rglob("scores"):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-5]))
    done = assessed(tmp_path / "tree")
    notices = [
        notice
        for section in done.sections
        for notice in section.notices
        if notice.code == "no-linkability"
    ]
    lines = [notice.line for notice in notices if " 135 of the 140 pairs " in notice.sentence]
    assert lines
    assert all(any(warning.endswith(line) for warning in done.warnings) for line in lines)
    sentences.check(*lines)


@pytest.mark.skipif(not has_tex(), reason="no LaTeX")
def test_the_tables_of_sections_fit_a_page(year_2024, tmp_path):
    from tests.helpers.latex import compiled_file

    _, _, assessment, _ = year_2024
    write_report(assessment, tmp_path / "report")
    for name in ("verification", "similarity", "overview"):
        compiled_file(tmp_path / "report" / "tables" / f"{name}.tex", tmp_path)
