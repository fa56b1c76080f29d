from __future__ import annotations

import base64
import errno
import html
import json
import math
import os
import re
import shutil
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import unmask as um
from unmask.assessment import cache
from unmask.assessment.attacks import AttackRun
from unmask.assessment.config import Config
from unmask.assessment.frameworks.legal import with_fitting_lengths
from unmask.assessment.redact import Labels
from unmask.assessment.splits import counterpart, enrolling
from unmask.assessment.toml import check_config, load_config
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice
from unmask.privacy import Attacker
from unmask.privacy.legal import spoken
from unmask.report import assessment as assessing, json_schema
from unmask.report.assessment import check_inputs, run_assessment as assess
from unmask.report.documents import Row
from unmask.report.headline import attempts, find, largest, verdict
from unmask.report.html import merged, symbols
from unmask.report.writing import browser, write_report
from unmask.run import command_files, job, read_arrays, run_on
from unmask.trials import Embeddings, read_embeddings

NUMBER = re.compile(r'<span class="num[^"]*" data-n="(\d+)" title="([^"]*)"><b>([^<]*)</b>')


def run(study, output, *, listener=None, changes=(), file_copy=False):
    config = load_config(study / "study.toml", changes=['figures=["svg"]', *changes])
    result = assess(config, output, listener=listener)
    write_report(result, output, file_copy=file_copy)
    return result


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory, request):
    """One run shared by the tests that only look at what it wrote."""
    from report_study import make

    folder = make(tmp_path_factory.mktemp("shared"))
    return folder, run(folder, folder / "out"), folder / "out"


SMALL = ["figures=[]", 'frameworks=["similarity", "verification"]']


@pytest.fixture(scope="module")
def small(done):
    """The same with two frameworks and no files of figures."""
    folder = done[0]
    return folder, run(folder, folder / "small", changes=SMALL), folder / "small"


def test_of_too_many_people_some_are_drawn_and_the_report_says_so(done, tmp_path, sentences):
    folder = done[0]
    few = [*SMALL, "verification.max_trials=300", "similarity.max_people=5"]
    config = load_config(folder / "study.toml", changes=few)
    limits = assess(config, tmp_path / "out").limits
    (voices,) = (line for line in limits if "similarity.max_people" in line)
    assert " 5 of 12 " in voices
    (trials,) = (line for line in limits if "verification.max_trials" in line)
    assert trials in check_inputs(config)
    sentences.check(voices, trials)
    people = int(re.search(r"(\d+) of 12", trials)[1])
    assert 2 <= people**2 <= 300


def test_everything_is_written(done):
    _, result, out = done
    names = files(out)
    assert {"report.html", "results.json", "settings.toml"} <= set(names)
    keys = [section.key for section in result.sections]
    assert keys == ["legal", "trust", "similarity", "zebra", "verification", "cpmap", "worst_case"]
    for key in (*keys, "speakers"):
        assert {f"tables/{key}.csv", f"tables/{key}.md", f"tables/{key}.tex"} <= set(names)
    assert {f"figures/{figure.name}.svg" for figure in result.all_figures} <= set(names)
    assert not [name for name in names if name.startswith(".")]


def test_results_follow_the_published_schema(done):
    results = json.loads((done[2] / "results.json").read_text(encoding="utf-8"))
    jsonschema.validate(results, json_schema())
    frameworks = {r["conditions"]["framework"] for r in results["results"]}
    assert {"speakers", "legal", "similarity", "zebra", "cpmap", "worst_case"} <= frameworks


def test_every_number_of_the_report_is_in_the_results_with_its_signature(done):
    page = (done[2] / "report.html").read_text(encoding="utf-8")
    results = json.loads((done[2] / "results.json").read_text(encoding="utf-8"))["results"]
    numbers = NUMBER.findall(page)
    assert len(numbers) > 300
    for index, signature, shown in numbers:
        result = results[int(index)]
        assert html.unescape(signature) == result["signature"]
        value = result["value"]
        if isinstance(value, str) or value is None or shown in ("undefined", "∞", "−∞"):
            continue
        read = float(shown.replace("−", "-")) / (100 if result["unit"] == "share" else 1)
        decimals = len(shown.partition(".")[2]) + (2 if result["unit"] == "share" else 0)
        assert read == pytest.approx(value, abs=0.51 * 10**-decimals)


def test_the_first_screen_tells_risks_with_interval_chance_and_attacker(done, sentences):
    result = done[1]
    assert [card.safeguard for card in result.cards] == ["weak", "strong"]
    for card in result.cards:
        linked, isolated = (
            [risk, f"{risk}, within the release"] for risk in ("Linkability", "Singling Out")
        )
        labels = [*linked, *isolated, "Inference", "Resemblance left", "Evidence"]
        assert [h.label for h in card.numbers] == labels
        assert ", by someone who " in card.verdict
        assert card.numbers[0].chance == pytest.approx(1 / 12)
        sentences.check(card.sentences[0])
        for headline in card.numbers:
            assert headline.estimate.interval is not None
        assert card.numbers[0].attacker
    page = (done[2] / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"anonymous: (yes|no)", page, re.IGNORECASE)


def part(page: str, name: str) -> str:
    """A section of the page, as text."""
    inner = page.partition(f'<section id="{name}"')[2].partition("</section>")[0]
    return html.unescape(inner)


def test_the_first_screen_states_the_strongest_attack_that_the_results_hold(done, sentences):
    page = (done[2] / "report.html").read_text(encoding="utf-8")
    results = json.loads((done[2] / "results.json").read_text(encoding="utf-8"))["results"]
    first, numbers = part(page, "summary"), part(page, "numbers")
    linked, within = {}, "within the release"
    for index, result in enumerate(results):
        where = result["conditions"]
        if result["metric"] == "linkability" and where["safeguard"] != "original":
            setting = where.get("setting", "known person")
            linked.setdefault((where["safeguard"], setting), []).append((index, result))
    settings = {"known person": "headline", within: within}
    assert set(linked) == set(product(("weak", "strong"), settings))
    for (name, setting), outcome in linked.items():
        text = [(i, r) for i, r in outcome if r["conditions"].get("point") == settings[setting]]
        total = text[0][1]["n"]["speakers"]
        # Of points less than half a person apart, the one whose low end is higher.
        index, worst = max(
            text, key=lambda one: (round(total * one[1]["value"]), one[1]["interval"][0])
        )
        low, high = worst["interval"]
        low, high = math.floor(total * low + 1e-9), math.ceil(total * high - 1e-9)
        value = worst["value"]
        # Nearly all are never told as all.
        exactly = f" ({100 * value:.1f} %)" if value < 1 and round(total * value) == total else ""
        told = f"{total * value:.0f} of {total} attempts{exactly} succeed"
        ends, where = f" ({low} to {high})", spoken(int(worst["conditions"]["utterances"]))
        start = f"<dt>{name}</dt>" if setting == within else f"</span>{name}</h3>"
        line = first.partition(start)[2].partition("</dd>" if setting == within else "</ol>")[0]
        bold = "" if setting == within else "</b>"
        assert f"{told}{bold}{ends} from {where}" in line.replace("\u00a0", " ")
        card = numbers.partition(f"</span>{name}</h3>")[2].partition("</article>")[0]
        assert f'data-n="{index}"' in card
        assert f"by {worst['conditions']['attacker']}" in card
        # No attack that was tried lies beyond what is told of the strongest.
        assert max(r["value"] for _, r in outcome) <= worst["interval"][1] + 1e-9
    order = [first.index(f"</span>{name}</h3>") for name in ("weak", "strong")]
    assert order == sorted(order)
    (few,) = (line for line in done[1].limits if "12 people" in line)
    sentences.check(few)
    limiting = first.partition('<div class="limits">')[2].partition("</div>")[0]
    assert few in limiting.replace("\u00a0", " ")
    assert '<div class="steps">' in first


def test_of_equal_risks_the_surer_one_is_told(sentences):
    def at(value, low, high):
        made = Interval(low, high, 0.95, "speaker,score", 0, 0)
        return Row({}, (Estimate("linkability", value, "%", made, n={"speakers": 60}),))

    rows = [at(1.0, 0.937, 1.0), at(0.9993, 0.974, 0.9999), at(0.98, 0.979, 0.981)]
    assert largest(find(rows, "linkability")).estimate is rows[1].estimates[0]
    shown = attempts(rows[1].estimates[0])
    assert re.findall(r"[\d.]+", shown) == ["60", "60", "99.9", "58", "60"]
    sentences.check(shown)
    clear = at(1.0, 0.98, 1.0)
    assert largest(find([*rows, clear], "linkability")).estimate is clear.estimates[0]


def test_an_interval_that_holds_chance_does_not_prove_protection(sentences):
    """Where an interval reaches from chance to nearly everybody, nothing is concluded from it."""
    for low, extent in ((0.1, "chance"), (0.2, "some"), (0.6, "most")):
        made = Interval(low, 0.9, 0.95, "speaker", 20, 0)
        linked = Estimate("linkability", 0.4, "%", made, 0.1, n={"speakers": 12})
        where = {"safeguard": "x", "point": "headline", "speakers": "10"}
        rows = [Row({**where, "utterances": "1"}, [linked])]
        concluded, shown, _ = verdict(rows, "x", {})
        assert concluded == extent
        assert re.findall(r"\d+", shown) == ["5", "12", str(int(12 * low)), "11", "1"]
        sentences.check(shown)


def test_bars_are_longer_for_more_risk(done):
    for card in done[1].cards:
        left = next(h for h in card.numbers if h.label == "Resemblance left")
        deid = left.estimate
        assert left.shown.value == pytest.approx(1 - deid.value)
        assert left.shown.interval.low == pytest.approx(1 - deid.interval.high)
        assert left.shown.interval.high == pytest.approx(1 - deid.interval.low)


def test_the_same_warning_on_several_safeguards_is_one_sentence():
    said = (("a", "rough"), ("b", "rough"), ("c", "other"), ("", "no subject"))
    notices = [Notice("code", *one) for one in said]
    lines = merged(notices, {"a", "b", "c"})
    assert lines == ["a and b: rough", "c: other", "No subject"]


def test_warnings_that_differ_in_attack_and_numbers_are_one_sentence(sentences):
    said = (
        ("a: known, 1 utterance", "weak with 20, 50"),
        ("a: known, 3 utterances", "weak with 1,060"),
        ("b, known (plda), centred: known (plda)", "weak with 5 [3, 2,000]"),
        ("b: other", "weak with 20"),
        ("a: known: Risk", "weak with 20"),
    )
    notices = [Notice("code", *one) for one in said]
    lines = merged(notices, {"a", "b", "b, other"})
    assert [line.count("weak with") for line in lines] == [1, 1]
    sentences.check(*lines)


def test_symbols_are_typeset_and_names_stay():
    assert symbols("D_ECE of 10^4.5 & l_w") == (
        "D<sub>ECE</sub> of 10<sup>4.5</sup> &amp; l<sub>w</sub>"
    )
    assert symbols("speaker_01 <b>") == "speaker_01 &lt;b&gt;"


def test_the_filing_copy_has_fields_full_hashes_and_nothing_to_point_at(done, tmp_path):
    folder, _, out = done
    changes = ['filing.controller="Müller & Co"', "date=2026-01-02", 'frameworks=["similarity"]']
    config = load_config(folder / "study.toml", changes=[*changes, "figures=[]"])
    result = assess(config, out)
    copy = tmp_path / "copy"
    write_report(result, copy, file_copy=True)
    page = (copy / "filing.html").read_text(encoding="utf-8")
    assert "Müller &amp; Co" in page
    assert '<th scope="row">Purpose</th><td class="empty"></td>' in page
    for source in result.document.inputs:
        assert source.sha256 in page
    assert "point at" not in page.partition('<section class="annex">')[0]
    assert " title=" not in page
    assert "<script" not in page
    assert "table-header-group" in page
    if browser() is not None:
        document = (copy / "filing.pdf").read_bytes()
        assert document.startswith(b"%PDF")
        assert b"/CreationDate (D:20260102000000" in document
        assert len(re.findall(rb"/Type\s*/Page\b", document)) >= 3
    write_report(result, copy)
    assert not list(copy.glob("filing.*"))


def test_every_number_has_an_interval_or_a_reason_why_not(done):
    results = json.loads((done[2] / "results.json").read_text(encoding="utf-8"))["results"]
    assert len(results) > 500
    for result in results:
        low, high = result["interval"] or (None, None)
        assert (low is None) == bool(result["no_interval"]), result
        if low is not None:
            assert float(low) < float(high), result


def test_cards_take_the_worst_point_and_count_people_with_an_interval(done):
    for card in done[1].cards:
        rows = next(s for s in done[1].sections if s.key == "legal").tables[0].rows
        points = find(rows, "linkability", safeguard=card.safeguard)
        worst = max(points, key=lambda point: point.estimate.value)
        assert card.numbers[0].estimate.value == worst.estimate.value
        assert card.numbers[0].attacker == worst.attacker
        low, high = worst.estimate.interval.low, worst.estimate.interval.high
        assert f" succeed ({int(12 * low)} to {math.ceil(12 * high)}) from" in card.verdict


def test_a_speaker_called_script_is_only_an_odd_name(done):
    page = (done[2] / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Small &lt;b&gt;study&lt;/b&gt;" in page


def test_a_second_run_reuses_everything_and_writes_the_same_bytes(done):
    folder, _, out = done
    before = files(out)
    again = run(folder, out)
    assert again.computed == 0
    assert again.reused
    assert files(out) == before


def test_changing_one_part_recomputes_only_that(done):
    folder, _, out = done
    config = load_config(folder / "study.toml", changes=["cpmap.grid=8"])
    again = assess(config, out)
    assert again.computed == 3


def test_a_killed_run_goes_on_and_gives_the_same_bytes(small):
    folder, _, whole = small
    out = folder / "killed"
    for stop in (1, 4, 7):
        seen = []

        def progress(what, step, total, seen=seen, stop=stop):
            seen.append(what)
            if len(set(seen)) > stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(folder, out, listener=progress, changes=SMALL)
        assert files(out) == {}
    run(folder, out, changes=SMALL)
    assert files(out) == files(whole)


def test_a_run_killed_within_a_step_goes_on_there(small, monkeypatch):
    folder, _, whole = small
    out = folder / "within"
    kept = cache.cache_of(out)
    monkeypatch.setattr(job, "SAVE_EVERY", 0.0)

    def killed(what, done, total):
        if len([*kept.glob("*.jobs/*/*.npz")]) > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, out, listener=killed, changes=SMALL)
    found = {path.parent for path in kept.glob("*.jobs/*/*.npz")}
    read = []
    monkeypatch.setattr(
        job, "read_arrays", lambda path, *how: read.append(path) or read_arrays(path, *how)
    )
    run(folder, out, changes=SMALL)
    assert {path.parent for path in read} == found
    assert files(out) == files(whole)
    assert not [*kept.glob("*.jobs")]


def lost(turn, *given):
    """A process that finishes no step, but is at the last one when it dies."""
    time.sleep(1)
    os._exit(9)


@pytest.mark.parametrize("other", [None, lost])
def test_processes_share_the_steps_and_give_the_same_bytes(small, tmp_path, monkeypatch, other):
    folder, alone, whole = small
    out = folder / ("shared" if other is None else "lost")
    monkeypatch.setattr(assessing, "_WORTH", 0.0)
    if other is not None:
        monkeypatch.setattr(assessing, "_share", other)
    config = load_config(folder / "study.toml", changes=SMALL)
    said, heard = [], []
    made = assess(
        config,
        out,
        cache=tmp_path / "kept",
        processes=2,
        say=said.append,
        listener=lambda *step: heard.append(step),
    )
    write_report(made, out)
    assert files(out) == files(whole)
    assert made.computed == alone.computed
    assert not [*(tmp_path / "kept").rglob("*.jobs")]
    assert sum("ended early" in line for line in said) <= (other is not None)
    assert all(done <= total + 1e-9 for _, done, total in heard)


def test_two_runs_do_other_steps_first_and_never_the_same(tmp_path):
    made = []

    def step(n):
        def compute():
            made.append(n)
            time.sleep(0.02)
            return n

        return cache.Step(f"step {n}", [], {}, compute)

    steps = [step(n) for n in range(20)]

    def share(first):
        work = cache.Work(tmp_path)
        work.make([*steps[first:], *steps[:first]])
        return [work.run(one) for one in steps]

    with ThreadPoolExecutor(3) as threads:
        results = [*threads.map(share, (0, 7, 14))]
    assert results == [list(range(20))] * 3
    assert sorted(made) == list(range(20))


@pytest.mark.parametrize("summed", [False, True])
def test_long_jobs_of_a_killed_step_are_not_done_again(summed, monkeypatch, tmp_path):
    tried = []

    def blocks(xp, numbers, rows):
        tried.append(rows)
        if len(tried) == 5:
            raise KeyboardInterrupt
        return {"sum": numbers[0][slice(*rows)]}

    def compute():
        numbers, ranges = (np.arange(80.0),), job.ranges_of(80, 10)
        if summed:
            start = {"sum": np.zeros(10)}
            add = lambda total, part, rows: np.add(total["sum"], part["sum"], out=total["sum"])  # noqa: E731
            return job.accumulate(blocks, numbers, ranges, start, add)["sum"]
        return sum(part["sum"] for part in job.run(blocks, numbers, ranges))

    step = cache.Step("sums", [], {}, compute)
    for every, again in ((0.0, 4), (60.0, 8)):
        tried.clear()
        monkeypatch.setattr(job, "SAVE_EVERY", every)
        work = cache.Work(tmp_path / str(every))
        with run_on(workers=1), pytest.raises(KeyboardInterrupt):
            work.run(step)
        tried[:] = [None] * 9
        with run_on(workers=1):
            assert work.run(step).tolist() == np.arange(80.0).reshape(8, 10).sum(axis=0).tolist()
        assert len(tried) == 9 + again
        assert [path.suffix for path in work.folder.iterdir()] == [".npz"]


def test_damaged_steps_are_computed_again(small):
    folder, _, out = small
    before = files(out)
    for damaged in cache.cache_of(out).glob("*.npz"):
        damaged.write_bytes(damaged.read_bytes()[:100])
    again = run(folder, out, changes=SMALL)
    assert again.computed
    assert again.reused == 0
    assert files(out) == before


def test_a_full_disk_is_one_line_and_leaves_what_was_there(done, monkeypatch, sentences):
    folder, _, out = done
    before = files(out)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("unmask.run.files.os.fsync", full)
    with pytest.raises(InputError, match=r"report\.html: ") as error:
        run(folder, out)
    sentences.check(re.sub(r".*/\.new-\w+/", "<new>/", str(error.value)))
    monkeypatch.undo()
    assert files(out) == before
    assert not [path for path in out.iterdir() if path.name.startswith(".new-")]


def unpacked(content: bytes):
    """The bytes of a file, those within streams, chunks and images that are packed into it too."""
    yield content
    for packed in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL):
        with suppress(zlib.error):
            yield zlib.decompress(packed)
    for inner in re.findall(rb"base64,([A-Za-z0-9+/=]+)", content):
        yield base64.b64decode(inner)


def test_redaction_leaves_no_name_anywhere(done, tmp_path):
    from report_study import SPEAKERS

    folder, result, _ = done
    given = tmp_path / "Mustermann"
    shutil.copytree(folder, given, ignore=shutil.ignore_patterns("out"))
    for file in given.glob("*.npz"):
        file.rename(given / f"p-Mustermann-{file.name}")
    config = (given / "study.toml").read_text(encoding="utf-8")
    (given / "study.toml").write_text(
        re.sub(r'"([a-z-]+\.npz)"', r'"p-Mustermann-\1"', config), encoding="utf-8"
    )
    out = tmp_path / "redacted"
    shutil.copytree(done[2], out)
    (out / ".new-killed").mkdir()
    (out / ".new-killed" / "report.html").write_text(SPEAKERS[3])
    redacted = run(given, out, changes=["redact=true"], file_copy=True)
    words = [*SPEAKERS, json.dumps(SPEAKERS[2])[1:-1], "Mustermann"]
    written = [path for path in sorted(out.rglob("*")) if path.is_file()]
    for path in written:
        for content in unpacked(path.read_bytes()):
            assert not [word for word in words if word.encode() in content], path
        assert not [word for word in words if word in path.name]
        assert path.suffix != ".npz"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Speaker 01" in page
    assert "input 01.npz" in page
    for old, new in zip(result.cards, redacted.cards, strict=True):
        for a, b in zip(old.numbers, new.numbers, strict=True):
            assert b.estimate.metric == a.estimate.metric
            assert b.estimate.value == a.estimate.value
            assert b.estimate.interval == a.estimate.interval


def test_no_list_of_names_undoes_a_redaction(done, tmp_path):
    """Whoever has all names and the whole report learns no more than by chance."""
    from report_study import SPEAKERS

    labels = []
    for number in range(2):
        out = tmp_path / f"redacted-{number}"
        config = load_config(
            done[0] / "study.toml",
            changes=["redact=true", "figures=[]", 'frameworks=["verification"]'],
        )
        result = assess(config, out, cache=tmp_path / f"cache-{number}")
        write_report(result, out)
        rows = json.loads((out / "results.json").read_text(encoding="utf-8"))["results"]
        speakers = [r["conditions"] for r in rows if r["conditions"]["framework"] == "speakers"]
        labels.append([c["speaker"] for c in speakers if c["safeguard"] == "weak"])
        secret = tmp_path / f"cache-{number}" / "redaction-key"
        assert secret.stat().st_mode & 0o077 == 0
        assert secret.read_bytes().hex() not in (out / "results.json").read_text(encoding="utf-8")
    one, other = (Labels.of(done_inputs(done[0]), (), bytes([n]) * 32) for n in (1, 2))
    assert one.speakers != other.speakers
    assert set(one.speakers) == set(SPEAKERS)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(SPEAKERS)) + 1
        guess = {n: f"Speaker {k:02d}" for n, k in zip(sorted(SPEAKERS), order, strict=True)}
        assert guess != one.speakers


def done_inputs(folder):
    return [read_embeddings(path) for path in sorted(folder.glob("*.npz"))]


def test_aliases_keep_the_order_of_names_and_labels_do_not():
    names = [f"{n:02d}" for n in (7, 3, *range(10, 38))]
    given = Embeddings(np.eye(30), names, [f"u-{n}" for n in names])
    labels = Labels.of([given], (), b"k" * 32)
    aliased = labels.aliased({"voices": given})["voices"]
    for kind in ("speakers", "utterances"):
        real, alias = (list(getattr(voices, kind).to_series()) for voices in (given, aliased))
        assert np.array_equal(np.argsort(real), np.argsort(alias))
        assert not set(real) & set(alias)
    order = [labels.text(name) for name in sorted(aliased.speakers.to_series())]
    assert sorted(order) == [f"Speaker {n:02d}" for n in range(1, 31)]
    assert order != sorted(order)


def test_one_run_writes_a_folder_at_a_time(done, tmp_path, sentences):
    from unmask.run.files import locked

    with locked(tmp_path), pytest.raises(InputError) as error:
        write_report(done[1], tmp_path)
    sentences.check(str(error.value))
    assert not list(tmp_path.iterdir())


def test_a_second_run_is_refused_at_its_start(done, tmp_path, monkeypatch, sentences):
    """Nothing is computed for a folder that another run holds; a new folder goes again."""
    from unmask.report import report_folder, writing

    monkeypatch.setattr(writing, "run_assessment", lambda *_, **__: pytest.fail("it ran"))
    config = done[1].asked
    with report_folder(tmp_path / "out", config), pytest.raises(InputError) as error:
        um.assess(config, tmp_path / "out")
    sentences.check(str(error.value))
    with pytest.raises(RuntimeError), report_folder(tmp_path / "new", config):
        raise RuntimeError
    assert not (tmp_path / "new").exists()


def test_a_config_is_never_overwritten(done, tmp_path, sentences):
    """The settings of a report run again in its folder while they stay as they are; a config of
    one's own stays whatever is in the report.
    """
    result, folder = done[1], tmp_path / "report"
    write_report(result, folder)
    settings = folder / "settings.toml"
    before = settings.read_bytes()
    um.assess(settings, folder, cache=cache.cache_of(done[2]))
    assert settings.read_bytes() == before
    mine = folder / "assessment.toml"
    mine.write_text(f"# mine\n{settings.read_text()}")
    kept = mine.read_bytes()
    um.assess(mine, folder, cache=cache.cache_of(done[2]))
    assert mine.read_bytes() == kept
    redacted = load_config(settings, changes=["redact=true"])
    with command_files([str(settings)]), pytest.raises(InputError) as error:
        write_report(replace(result, asked=redacted, config=redacted), folder)
    sentences.check(str(error.value))
    assert settings.read_bytes() == before


def test_files_of_others_in_a_report_folder_are_kept(done, tmp_path, sentences):
    result = done[1]
    for name in ("report.html", "tables/mine.csv", "figures/mine.svg", "notes.txt"):
        folder = tmp_path / name.replace("/", "-")
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("mine")
        with pytest.raises(InputError, match=name.partition("/")[0]) as error:
            write_report(result, folder)
        sentences.check(str(error.value))
        assert (folder / name).read_text() == "mine"
    write_report(result, tmp_path / "out")
    for name in ("tables/mine.csv", "figures/mine.svg", "filing.html"):
        (tmp_path / "out" / name).write_text("mine")
        with pytest.raises(InputError, match=name.partition("/")[0]) as error:
            write_report(result, tmp_path / "out")
        sentences.check(str(error.value))
        (tmp_path / "out" / name).unlink()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    write_report(result, tmp_path / "out")
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [" ", "\u202e", "\u200b\u00a0", "\t"])
def test_a_safeguard_has_a_name_that_can_be_read(name, sentences):
    with pytest.raises(InputError, match=r"safeguards\.0") as error:
        check_config({"safeguards": [{"name": name, "embeddings": "a.npz"}]})
    sentences.check(str(error.value))


def test_the_resolved_config_runs_again(done):
    _, _, out = done
    config = load_config(out / "settings.toml")
    again = assess(config, out)
    assert again.computed == 0


def test_frameworks_that_cannot_run_are_told(done, sentences):
    folder = done[0]
    changes = ["scores=[]", 'frameworks=["worst_case"]', "safeguards=[]"]
    with pytest.raises(InputError) as error:
        load_config(folder / "study.toml", changes=changes)
    sentences.check(str(error.value).replace(str(folder), "<folder>"))


def test_one_framework_alone(done):
    folder = done[0]
    config = load_config(folder / "study.toml", changes=['frameworks=["similarity"]'])
    result = assess(config, folder / "out")
    assert [section.key for section in result.sections] == ["similarity"]
    assert [h.label for h in result.cards[0].numbers] == ["Resemblance left"]


def test_the_date_comes_from_outside(done, monkeypatch):
    folder, result, out = done
    assert result.date is None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    config = load_config(folder / "study.toml", changes=['frameworks=["similarity"]'])
    assert assess(config, out).date == "1970-01-01"


def test_other_code_does_not_take_old_results(done, monkeypatch):
    step = cache.Step("x", [], {}, lambda progress: 1)
    before = step.key
    monkeypatch.setattr(cache, "code_digest", lambda: "other")
    assert replace(step).key != before


def test_a_safeguard_given_by_score_files(tmp_path):
    import numpy as np

    from unmask.trials import Ids, Scores, write

    rng = np.random.default_rng(0)
    speaker = np.repeat(np.arange(6), 3)
    first, second = (a.ravel() for a in np.meshgrid(np.arange(18), np.arange(18), indexing="ij"))
    off = first != second
    first, second = first[off], second[off]
    same = speaker[first] == speaker[second]
    for name, gap in (("oo", 3.0), ("op", 1.0), ("pp", 2.5)):
        names = [Ids.from_strings([f"u{n}" for n in side]) for side in (first, second)]
        who = [Ids.from_strings([f"s{n}" for n in speaker[side]]) for side in (first, second)]
        scores = Scores(
            *names,
            same.astype(np.int8),
            enrol_speaker=who[0],
            test_speaker=who[1],
            systems={"asv": rng.normal(size=same.size) + gap * same},
        )
        write(scores, tmp_path / f"{name}.parquet")
    (tmp_path / "a.toml").write_text(
        """
figures = []
intervals = {replicates = 5}
cpmap = {grid = 5, replicates = 2}
worst_case = {model = "gpd", population = 50}
[[safeguards]]
name = "ours"
scores = {oo = "oo.parquet", op = "op.parquet", pp = "pp.parquet"}
""",
        encoding="utf-8",
    )
    result = assess(load_config(tmp_path / "a.toml"), tmp_path / "out")
    write_report(result, tmp_path / "out")
    keys = [section.key for section in result.sections]
    assert keys == ["similarity", "verification", "cpmap", "worst_case"]
    assert result.cards[0].numbers[0].label == "Resemblance left"
    assert result.lines[0].verdict.startswith("Equal error rate ")
    (few,) = result.cards[0].notices
    assert few.code == "few-speakers"
    assert few.sentence.startswith("6 speakers")
    assert 0.3 < result.cards[0].numbers[0].estimate.value < 1


def test_lengths_that_nobody_has_are_left_out_and_told(sentences):
    rng = np.random.default_rng(0)
    speakers = [f"s{i // 4}" for i in range(12)]
    set_of = Embeddings(rng.normal(size=(12, 5)), speakers)
    attack = AttackRun("b2", "ignorant", "", ("cosine",), Attacker(set_of, set_of))
    config = Config(scores=[{"name": "a", "files": ["a.txt"]}])
    fitted, notices = with_fitting_lengths(config, {"b2": [attack]})
    assert config.legal.lengths == (1, 3, 30)
    assert fitted.legal.lengths == (1, 2)
    (notice,) = notices
    assert (notice.code, notice.subject) == ("length-left-out", "")
    assert re.findall(r"\d+", notice.line) == ["3", "30", "2"]
    sentences.check(notice.line)
    longer = Embeddings(rng.normal(size=(18, 5)), [f"s{i // 6}" for i in range(18)])
    other = replace(attack, data=Attacker(set_of, longer))
    fitted, notices = with_fitting_lengths(config, {"b1": [attack], "b2": [other]})
    assert fitted.legal.lengths == (1, 2, 3)
    assert {notice.code for notice in notices} == {"length-left-out"}
    first, second = sorted(notice.line for notice in notices)
    assert re.findall(r"b?\d+", first) == ["3", "b1", "2"]
    assert re.findall(r"b?\d+", second)[0] == "30"
    sentences.check(first, second)


def test_another_place_gives_the_same_report(small, tmp_path):
    folder, result, _ = small
    config = load_config(folder / "study.toml", changes=SMALL)
    with run_on("processes", workers=2, state=tmp_path / "state"):
        there = assess(config, tmp_path / "out")
    assert there.computed == result.computed
    rows = [[row.of_estimates() for row in a.document.rows] for a in (result, there)]
    assert repr(rows[0]) == repr(rows[1])
    assert any((tmp_path / "state").iterdir())
    with pytest.raises(InputError, match="found moon"), run_on("moon"):
        assess(config, tmp_path / "out")


def test_a_safeguard_of_fewer_utterances_enrols_the_same_part_of_them():
    names = [f"{who}-{u}" for who in "abcdef" for u in range(20)]
    original = Embeddings(np.eye(120), [name[0] for name in names], names)
    few = original.select(np.arange(120) % 5 == 0)
    config = Config(
        original={"embeddings": "o.npz"}, safeguards=[{"name": "few", "embeddings": "f.npz"}]
    )
    enrols = enrolling(config, original, {"few": few})
    for who in "abcdef":
        own = [name for name in names if name[0] == who]
        assert sum(name in enrols for name in own) == 10
        assert sum(name in enrols for name in few.utterances.to_series() if name[0] == who) == 2
    assert enrolling(config, original, {"all": original}) == enrolling(config, original, {})
    assert set(counterpart(original, few).utterances.to_series()) == set(few.utterances.to_series())


def voices_of(each, *, people=6, spread=0.1, seed=0):
    """So many recordings of each person, whose voice is a direction of its own."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.eye(people, 8), each, axis=0)
    names = np.repeat([f"s{n}" for n in range(people)], each)
    utterances = [f"u{n:02}" for n in range(len(rows))]
    return Embeddings(rows + spread * rng.normal(size=rows.shape), names, utterances)


@pytest.mark.parametrize("each", [2, 3])
def test_people_of_few_recordings_are_assessed_without_singling_out(each):
    original, protected = voices_of(each), voices_of(each, spread=0.2, seed=1)
    result = um.assess(original, {"V": protected}, quick=True)
    labels = [number.label for number in result.cards[0].numbers]
    assert "Linkability" in labels
    assert "Singling Out" not in labels
    assert "Singling Out not measured, it takes two test utterances" in str(result)


def test_a_safeguard_that_leaves_no_voices_apart_has_its_deid():
    original = voices_of(6)
    equal = replace(original, vectors=np.ones((len(original), 8)))
    result = um.assess(original, {"V": equal}, quick=True)
    assert "not computed" not in str(result)
    (similarity,) = (section for section in result.sections if section.key == "similarity")
    deid = find(similarity.rows, "deid")
    assert deid[0].estimate.value == 1
