"""A redacted report holds no name, wherever names stood: every byte of every file is searched, also
inside base64, deflated streams, archives and pictures.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.populations import speakers_with_noise

from unmask.assessment.cache import Work
from unmask.assessment.redact import WITHHELD, Labels, ending
from unmask.assessment.toml import check_config, load_config
from unmask.errors import InputError
from unmask.report.assessment import run_assessment as assess
from unmask.report.words import note
from unmask.report.writing import write_report
from unmask.run import run_on
from unmask.trials import Embeddings, Ids, Scores, write

NAMES = ("Mustermann", "Kranewitter", "Zwirbel")
FIRST = ("Ada", "Bea", "Cleo", "Dora", "Eva", "Fee")
PEOPLE = [f"{first} {NAMES[n % 2]}" for n, first in enumerate(FIRST)]
EACH = 6


def readings(content: bytes, depth: int = 3) -> Iterator[bytes]:
    """The bytes of a file and of all that is packed into it."""
    yield content
    if not depth:
        return
    runs = _BASE64.findall(content)
    inner = [base64.b64decode(one[: len(one) // 4 * 4]) for one in runs]
    for found in _DEFLATED.finditer(content):
        with suppress(zlib.error):
            inner.append(zlib.decompressobj().decompress(content[found.start() :], 1 << 26))
    if b"PK\x03\x04" in content:
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(content)) as archive:
            inner += map(archive.read, archive.namelist())
    for one in inner:
        yield from readings(one, depth - 1)


_BASE64 = re.compile(rb"[A-Za-z0-9+/]{24,}")
_DEFLATED = re.compile(rb"\x78[\x01\x5e\x9c\xda]")


def found(folder: Path) -> list[str]:
    """Names in any file of a folder, or in what it is called."""
    forms = [name.lower().encode(code) for name in NAMES for code in ("utf-8", "utf-16-le")]
    forms += [one.encode("utf-16-be").hex().encode() for one in NAMES]
    hits = []
    for path in sorted(folder.rglob("*")):
        content = [str(path.relative_to(folder)).encode()]
        content += readings(path.read_bytes()) if path.is_file() else []
        if any(form in one.lower() for one in content for form in forms):
            hits.append(str(path))
    return hits


def test_names_are_found_wherever_they_are(tmp_path):
    name = f"Herr {NAMES[0]}".encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", name * 9)
    packed = {
        "plain": name,
        "base64": b"data:base64," + base64.b64encode(b"." * 9 + name * 3),
        "deflated": b"stream\n" + zlib.compress(name * 9) + b"\nendstream",
        "both": base64.b64encode(zlib.compress(name * 9)),
        "zipped": buffer.getvalue(),
        "wide": NAMES[0].encode("utf-16"),
    }
    for kind, content in packed.items():
        (tmp_path / kind).write_bytes(content)
    assert {Path(one).name for one in found(tmp_path)} == set(packed)


def voices(noise: float, seed: int) -> Embeddings:
    vectors, _ = speakers_with_noise(len(PEOPLE), EACH, 8, noise=noise, means=7, draws=seed)
    row = np.arange(len(vectors))
    return Embeddings(
        vectors.astype(np.float32),
        [PEOPLE[n // EACH] for n in row],
        [f"{PEOPLE[n // EACH]}__{n % EACH}" for n in row],
        [f"at {NAMES[n % EACH % 2]}s" for n in row],
        columns={
            "team": [f"team {NAMES[n // EACH % 2]}" for n in row],
            "gender": ["fm"[n // EACH % 2] for n in row],
        },
    )


def test_names_in_endings_patterns_sessions_groups_files_and_folders(tmp_path):
    given = tmp_path / "Praxis Zwirbel"
    given.mkdir()
    for file, noise in (
        ("o Dr. Kranewitter", 0.3),
        ("p.Mustermann_Erika", 1.0),
        ("again.Zwirbel", 1.1),
    ):
        write(voices(noise, len(file)), given / "made.npz")
        (given / "made.npz").rename(given / file)
    rng = np.random.default_rng(0)
    pairs = [(a, f"{b}__{n}") for a in PEOPLE for b in PEOPLE for n in range(EACH)]
    own = np.array([test.startswith(enrol) for enrol, test in pairs])
    scores = Scores(
        Ids.from_strings([enrol for enrol, _ in pairs]),
        Ids.from_strings([test for _, test in pairs]),
        own.astype(np.int8),
        systems={"ours": 2 * own + rng.normal(size=len(own))},
    )
    write(scores, given / "made.tsv")
    (given / "made.tsv").rename(given / "scores.Mustermann_Erika")
    (given / "a.toml").write_text(
        f"""
        seed = 3
        figures = ["svg", "pdf"]
        frameworks = ["legal", "similarity", "verification"]
        intervals = {{replicates = 5}}
        legal = {{lengths = [1], draws = 1, folds = 2, attributes = {{team = [], gender = []}}}}
        verification = {{by = "team"}}
        [original]
        embeddings = "o Dr. Kranewitter"
        [[safeguards]]
        name = "V"
        embeddings = "p.Mustermann_Erika"
        again = "again.Zwirbel"
        [[scores]]
        name = "ours"
        files = ["scores.Mustermann_Erika"]
        speakers = "pattern:^({"|".join(PEOPLE)})"
        """,
        encoding="utf-8",
    )
    out = tmp_path / "out"
    config = load_config(given / "a.toml", changes=["redact=true"])
    with run_on(workers=1):
        result = assess(config, out, cache=tmp_path / "cache")
    write_report(result, out, file_copy=True)
    assert not result.failures
    assert found(out) == []
    page = (out / "report.html").read_text(encoding="utf-8")
    for label in (
        "team 01",
        "Speaker 01",
        "input 01<",
        "input 04<",
    ):
        assert label in page
    assert note("redacted") in html.unescape(page).replace("\u00a0", " ")
    text = (out / "settings.toml").read_text(encoding="utf-8")
    assert 'speakers = "withheld"' in text
    assert 'embeddings = "withheld"' in text
    with pytest.raises(InputError, match=r"original.embeddings: withheld, .* --set original"):
        load_config(out / "settings.toml")
    plain = tmp_path / "plain"
    with run_on(workers=1):
        changes = ["figures=[]", 'frameworks=["verification"]']
        named = assess(load_config(given / "a.toml", changes=changes), plain)
    write_report(named, plain)
    assert len(found(plain)) > 4


TOOL = """
import sys, soundfile
samples, rate = soundfile.read(sys.argv[1])
soundfile.write(sys.argv[2], 0.5 * samples, rate, format="FLAC")
"""
ENCODER = """
import numpy as np

def encode(samples):
    return np.log(1e-3 + np.abs(np.fft.rfft(samples, 1024))[:100])
"""


def test_names_in_commands_recognisers_grammars_and_recordings(tmp_path, monkeypatch):
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("jiwer")
    given = tmp_path / "Zwirbel"
    for folder, scale in (("original", 1.0), ("protected", 0.4)):
        for n, who in enumerate(PEOPLE):
            for i in range(4):
                path = given / folder / who / f"bei {NAMES[2]} {i % 2}" / f"{who} {i}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                time = np.arange(8000) / 16_000
                noise = np.random.default_rng(10 * n + i).normal(size=8000)
                tones = sum(np.sin(2 * np.pi * (90 + 20 * n) * k * time) / k for k in range(1, 9))
                soundfile.write(path, scale * (0.1 * tones + 0.01 * noise), 16_000)
    (given / "tool.py").write_text(TOOL)
    (given / "hear.py").write_text("print('one')")
    (given / "zwirbel_encoder.py").write_text(ENCODER)
    monkeypatch.syspath_prepend(given)
    names = [f"{who} {i}" for who in PEOPLE for i in range(4)]
    (given / "text.csv").write_text("utterance,text\n" + "".join(f"{n},one two\n" for n in names))
    (given / "a.toml").write_text(
        f"""
        figures = []
        frameworks = ["legal", "similarity", "utility"]
        intervals = {{replicates = 20}}
        legal = {{lengths = [1], draws = 1, folds = 2}}
        [original]
        audio = "original"
        encoder = "zwirbel_encoder:encode"
        [[safeguards]]
        name = "V"
        audio = "protected"
        encoder = "zwirbel_encoder:encode"
        command = "{sys.executable} {given / "tool.py"} {{input}} {{output}}"
        [training]
        recipe = {{noise = "Kranewitter/noise"}}
        [[attackers]]
        name = "own"
        enrol = "own"
        backends = ["cosine"]
        [utility]
        transcripts = "text.csv"
        melody = false
        recogniser = "{sys.executable} {given / "hear.py"} {{input}}"
        """,
        encoding="utf-8",
    )
    changes = ["redact=true", 'attackers.0.name="own"']
    config = load_config(given / "a.toml", changes=changes)
    out = tmp_path / "out"
    with run_on(workers=1):
        result = assess(config, out, cache=tmp_path / "cache", allow_code=True)
    write_report(result, out, file_copy=True)
    sys.modules.pop("zwirbel_encoder", None)
    assert not result.failures
    assert found(out) == []
    text = (out / "settings.toml").read_text(encoding="utf-8")
    for key in ("command", "recogniser", "encoder", "noise", "audio", "transcripts"):
        assert re.search(rf'^{key} = "withheld(\.csv)?"', text, re.MULTILINE), key
    assert 'start = "campplus"' in text
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "unprotected; a recogniser)" in page


def test_grammars_are_withheld_unless_they_are_words_of_ours(tmp_path):
    from unmask.assessment.toml import to_toml

    (tmp_path / "a.toml").write_text('[[scores]]\nname = "x"\nfiles = ["a.toml"]\n')
    for grammar, shown in (("erika,mustermann", "withheld"), ("digits", "digits")):
        config = load_config(tmp_path / "a.toml", changes=[f'utility.grammar="{grammar}"'])
        assert f'grammar = "{shown}"' in to_toml(config, base=None)


def test_endings_are_those_of_formats():
    for name, shown in (
        ("x.npz", ".npz"), ("x.WAV", ".wav"), ("x.Mustermann", ""), ("Dr. Kranewitter", ""),
        ("a.b.parquet", ".parquet"), ("none", ""),
    ):  # fmt: skip
        assert ending(name) == shown


def test_columns_of_numbers_and_genders_stay():
    made = Embeddings(
        np.eye(3),
        list("abc"),
        columns={"age": ["31", "4.5", ""], "gender": ["f", "M", "f"], "town": ["1", "Ulm", "1"]},
    )
    labels = Labels.of([made], (), b"k" * 32)
    assert set(labels.groups) == {"town"}
    assert set(labels.groups["town"].values()) == {"town 01", "town 02"}


MANY = [f"{FIRST[n % 6]}{n:02d}-{NAMES[n % 2]}" for n in np.random.default_rng(1).permutation(18)]


def many_voices(noise: float, seed: int) -> Embeddings:
    """More people, who do not stand in the order of their names, and a session for each half."""
    vectors, _ = speakers_with_noise(len(MANY), EACH, 8, noise=noise, means=7, draws=seed)
    row = np.arange(len(vectors))
    return Embeddings(
        vectors.astype(np.float32),
        [MANY[n // EACH] for n in row],
        [f"{MANY[n // EACH]}__{n % EACH}" for n in row],
        [f"at {NAMES[n % 2]}s" for n in row],
        columns={"team": [f"team {NAMES[n // EACH % 2]}" for n in row]},
    )


ALL = """
seed = 3
figures = []
intervals = {replicates = 20}
legal = {lengths = [1, 3], draws = 1, folds = 2}
verification = {by = "team"}
cpmap = {replicates = 5}
[original]
embeddings = "o.npz"
[[safeguards]]
name = "V"
embeddings = "p.npz"
again = "again.npz"
[[scores]]
name = "given"
files = ["s.Erika_Mustermann"]
speakers = "pattern:^([^_]+)"
"""


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A config that runs every framework on names, a plain report of it and a redacted one."""
    given = tmp_path_factory.mktemp("given")
    for file, noise in (("o.npz", 0.3), ("p.npz", 1.0), ("again.npz", 1.1)):
        write(many_voices(noise, len(file)), given / file)
    rng = np.random.default_rng(0)
    pairs = [(a, f"{b}__{n}") for a in MANY for b in MANY for n in range(EACH)]
    lines = [
        f"{a} {b} {'target' if b.startswith(a) else 'nontarget'}"
        f" {2 * b.startswith(a) + rng.normal():.4f}"
        for a, b in pairs
    ]
    (given / "s.Erika_Mustermann").write_text("\n".join(lines) + "\n")
    (given / "a.toml").write_text(ALL)
    reports = {}
    for name, changes in (("plain", []), ("redacted", ["redact=true"]), ("other", ["redact=true"])):
        with run_on(workers=1):
            result = assess(
                load_config(given / "a.toml", changes=changes),
                given / name,
                cache=given / f"cache-{name}",
            )
        assert not result.failures
        write_report(result, given / name)
        reports[name] = json.loads((given / name / "results.json").read_text(encoding="utf-8"))
    return given, reports


_LABELS = re.compile(
    rf"(Speaker|System|Session|team) \d+|team ({'|'.join(NAMES)})|at ({'|'.join(NAMES)})s"
    rf"|\w+-({'|'.join(NAMES)})|s.Erika_Mustermann"
)


def numbers(report: dict) -> list[str]:
    """Every number of a report with what it is of, but for names and digests of names. Who is
    hardest to tell is left out: a redacted report does not say so.
    """
    made = []
    for row in report["results"]:
        if row["metric"] == "hardest":
            continue
        row["signature"] = re.sub(r"trials:\w+", "", row["signature"])
        row.pop("trials", None)
        made.append(_LABELS.sub("…", json.dumps(row, sort_keys=True, ensure_ascii=False)))
    return sorted(made)


def test_redaction_moves_no_number(everything):
    _, reports = everything
    plain, *redacted = (numbers(reports[name]) for name in ("plain", "redacted", "other"))
    assert len(plain) > 900
    for other in redacted:
        missing = [row for row in plain if row not in set(other)]
        assert missing == [], "\n".join([*missing, *(r for r in other if r not in set(plain))])
        assert len(plain) == len(other)
        assert any("…" in row for row in other)


def test_labels_are_in_an_order_that_says_nothing_of_names(everything):
    """Wherever people are listed, they do not stand in the order of their names."""
    given, _ = everything
    key = (given / "cache-redacted" / "redaction-key").read_bytes()
    labels = Labels.of([many_voices(0.3, 1)], (), key)
    names = {label: name for name, label in labels.speakers.items()}
    assert set(names.values()) == set(MANY)
    listed = 0
    for file in sorted((given / "redacted").rglob("*")):
        if file.suffix not in (".html", ".json", ".csv", ".md", ".tex", ".svg"):
            continue
        shown = re.findall(r"Speaker \d\d", file.read_text(encoding="utf-8"))
        order = [names[label] for label in shown]
        for at in range(len(order) - 5):
            some = order[at : at + 6]
            listed += len(set(some)) == 6
            assert len(set(some)) < 6 or some != sorted(some), (file, at)
    assert listed > 20


def test_sentences_of_failures_name_nobody(everything, tmp_path, monkeypatch, capsys):
    """Every step but those of Linkability fails, with a sentence that names a person and a file."""
    given, _ = everything
    run = Work.run
    broken = []

    def fails(work, step):
        if step.what.startswith(("linkability", "verification of", "charts and tables of legal")):
            return run(work, step)
        broken.append(step.what)
        if len(broken) % 2:
            raise InputError(given / "V" / MANY[0] / "a.wav", f"a version of {MANY[1]}", "none")
        raise InputError(f"{MANY[2]}: has no session; nor has {MANY[3]}__1")

    monkeypatch.setattr(Work, "run", fails)
    config = load_config(given / "a.toml", changes=["redact=true"])
    with run_on(workers=1):
        result = assess(config, tmp_path / "out", cache=tmp_path / "cache")
    write_report(result, tmp_path / "out", file_copy=True)
    print(result)
    assert len(broken) > 8
    assert len(result.failures) >= len(broken)
    shown = capsys.readouterr().out
    for name in (*MANY, *NAMES, str(given), "a.wav"):
        assert name not in shown
        assert not any(
            name.encode() in path.read_bytes() for path in (tmp_path / "out").rglob("*.*")
        )
    assert found(tmp_path / "out") == []
    reasons = " ".join(notice.sentence for notice in result.failures)
    assert f"System 01 of given: {WITHHELD}" in reasons


BROKEN = {
    "missing": lambda file, text: file.unlink(),
    "transcript": lambda file, text: text.write_text(text.read_text().rpartition("Fee")[0]),
    "silent": lambda file, text: wave(file, np.zeros(8000)),
    "unreadable": lambda file, text: file.write_bytes(b"RIFF"),
}


def wave(file: Path, samples: np.ndarray) -> None:
    import soundfile

    file.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(file, samples, 16_000)


@pytest.mark.parametrize("how", BROKEN)
def test_what_stops_the_utility_section_names_nobody(how, tmp_path, monkeypatch, capsys):
    pytest.importorskip("soundfile")
    pytest.importorskip("jiwer")
    given = tmp_path / "Zwirbel"
    rng = np.random.default_rng(0)
    for n, who in enumerate(PEOPLE):
        for i in range(4):
            tone = np.sin(2 * np.pi * (90 + 20 * n) * np.arange(8000) / 16_000)
            for folder, scale in (("original", 0.3), ("protected", 0.1)):
                noise = 0.01 * rng.normal(size=8000)
                wave(given / folder / who / "room" / f"{who} {i}.wav", scale * tone + noise)
    names = [f"{who} {i}" for who in PEOPLE for i in range(4)]
    text = given / "text.csv"
    text.write_text("utterance,text\n" + "".join(f"{name},one two\n" for name in names))
    BROKEN[how](given / "protected" / PEOPLE[5] / "room" / f"{PEOPLE[5]} 3.wav", text)
    (given / "hear.py").write_text("print('one')")
    (given / "zwirbel_encoder.py").write_text(ENCODER)
    monkeypatch.syspath_prepend(given)
    config = {
        "redact": True,
        "figures": [],
        "frameworks": ["similarity", "utility"],
        "intervals": {"replicates": 5},
        "original": {"audio": given / "original", "encoder": "zwirbel_encoder:encode"},
        "safeguards": [
            {"name": "V", "audio": given / "protected", "encoder": "zwirbel_encoder:encode"}
        ],
        "utility": {
            "transcripts": text,
            "melody": False,
            "recogniser": f"{sys.executable} {given / 'hear.py'} {{input}}",
        },
    }
    out = tmp_path / "out"
    with run_on(workers=1):
        result = assess(check_config(config), out, cache=tmp_path / "cache", allow_code=True)
    write_report(result, out, file_copy=True)
    sys.modules.pop("zwirbel_encoder", None)
    print(result)
    shown = capsys.readouterr()
    assert not any(name in shown.out + shown.err for name in NAMES)
    assert found(out) == []
    page = (out / "report.html").read_text(encoding="utf-8")
    # One recording costs itself: the section stands, and nobody is named.
    assert "utility of" not in " ".join(result.limits) or "withheld" in page
    assert any(section.key == "utility" for section in result.sections)


def test_names_move_no_cursor_and_a_page_runs_its_own_script_alone(tmp_path):
    """Also in cells of tables and in results.json."""
    hostile = [f"{who}\x1b[2J\u202egnp" for who in PEOPLE]
    made = voices(1.0, 1)
    for name in ("o", "p"):
        write(
            Embeddings(made.vectors, [hostile[n // EACH] for n in range(len(made))]),
            tmp_path / f"{name}.npz",
        )
    config = {
        "figures": [],
        "frameworks": ["verification"],
        "intervals": {"replicates": 5},
        "original": {"embeddings": tmp_path / "o.npz"},
        "safeguards": [{"name": "V", "embeddings": tmp_path / "p.npz"}],
    }
    with run_on(workers=1):
        result = assess(check_config(config), tmp_path / "out", cache=tmp_path / "cache")
    write_report(result, tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for text in (page, (tmp_path / "out" / "results.json").read_text(encoding="utf-8")):
        assert "\x1b" not in text
        assert "\u202e" not in text
    named = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert any(hostile[0] in row["conditions"].values() for row in named["results"])
    policy = re.search(r'Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert "'unsafe-inline' 'unsafe-eval'" not in policy
    assert "base-uri 'none'" in policy
    assert "form-action 'none'" in policy
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{known}' 'unsafe-eval'" in policy
