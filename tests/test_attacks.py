"""Input that once ran code, ended the process, gave a wrong number or lost data, and how it ends
now; see ``test_hostile.py`` and ``fuzz/corpus`` for more.
"""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath

import numpy as np
import polars as pl
import pytest
from fuzz.__main__ import CORPUS
from tests.helpers.populations import speakers_with_noise

import unmask as um
from unmask.assessment import load_config
from unmask.cli import main
from unmask.cli.common import progress_bar
from unmask.engine import curves
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.figures import pav_map
from unmask.report import Document, Row, check_inputs, render, run_assessment as assess
from unmask.run import accumulate, run_on
from unmask.speech import Recording, anonymise, load_encoder, read_audio
from unmask.speech.encoders import Wrapped
from unmask.speech.safeguards import External
from unmask.trials import (
    Embeddings,
    ParquetFile,
    read_embeddings,
    read_scores,
    streamed_scores,
    write,
)
from unmask.trials.readers import decoder

WORDS = ("nontarget", "target")


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["unmask", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


@pytest.mark.parametrize("kind", ["external link", "soft link", "external storage", "virtual"])
def test_hdf5_files_lead_to_no_other_file(tmp_path, kind, sentences):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(b"root:x:0:0")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(3.0)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        group = file.create_group("speaker")
        group["u1"] = np.arange(3.0)
        if kind == "external link":
            group["u2"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "x")
        elif kind == "soft link":
            group["u2"] = h5py.SoftLink("/speaker/u1")
        elif kind == "external storage":
            group.create_dataset("u2", (10,), "u1", external=[(str(tmp_path / "secret"), 0, 10)])
        else:
            layout = h5py.VirtualLayout((3,), "f8")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (3,))
            group.create_virtual_dataset("u2", layout)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        decoder.hdf5((tmp_path / "x.h5").read_bytes(), 1 << 40)
    sentences.check(str(error.value))


def test_a_parquet_file_that_ends_its_decoder_ends_nothing_else(tmp_path):
    path = tmp_path / "x.parquet"
    shutil.copy(CORPUS / "parquet-page-declares-more", path)
    file = ParquetFile.opened(path)
    with pytest.raises(InputError, match="parquet file"):
        file.select(list(file.schema)).slice(0, file.height)
    with pytest.raises(InputError, match="parquet file"), streamed_scores([path]) as stream:
        list(stream.batches(stream.systems[0]))


def test_slices_of_a_parquet_file_are_those_of_the_table(tmp_path):
    rows = 7
    table = pl.DataFrame(
        {
            "enrol": [f"e{i}" for i in range(rows)],
            "test": [f"t{i}" for i in range(rows)],
            "label": [WORDS[i % 2] for i in range(rows)],
            "plda": np.arange(rows) / 3,
        }
    )
    table.write_parquet(tmp_path / "x.parquet")
    file = ParquetFile.opened(tmp_path / "x.parquet")
    assert (file.schema, file.height) == (table.schema, rows)
    assert file.select(["plda", "enrol"]).slice(2, 3).equals(table.select("plda", "enrol")[2:5])
    assert file.select(["test"]).slice(5, 9).equals(table.select("test")[5:])
    with streamed_scores([tmp_path / "x.parquet"]) as stream:
        (batch,) = stream.batches("plda")
    np.testing.assert_array_equal(batch.scores, table["plda"])


def test_durations_are_metadata_and_categories_no_scores(tmp_path, sentences):
    common = {"enrol": ["a", "b"], "test": ["c", "d"], "label": ["target", "nontarget"]}
    lasting = pl.Series([1_500_000, None]).cast(pl.Duration("us"))
    pl.DataFrame({**common, "s": [1.0, 2.0], "lasting": lasting}).write_parquet(tmp_path / "d")
    result = read_scores(tmp_path / "d").columns["lasting"].to_series()
    assert result.to_list() == ["PT1.5S", ""]
    ranks = pl.Series(["1", "2"]).cast(pl.Categorical)
    pl.DataFrame({**common, "s": ranks}).write_parquet(tmp_path / "c")
    with pytest.raises(InputError) as error:
        read_scores(tmp_path / "c")
    sentences.check(str(error.value))


def test_zero_bytes_in_names_are_refused_where_a_format_has_none(tmp_path, sentences):
    pytest.importorskip("h5py")
    voices = Embeddings(np.eye(2, 3), ["s", "t"], ["a\0b", "c"])
    with pytest.raises(InputError) as error:
        write(voices, tmp_path / "x.h5")
    sentences.check(str(error.value).partition(" (")[0])
    assert not list(tmp_path.iterdir())
    write(voices, tmp_path / "x.npz")
    again = read_embeddings(tmp_path / "x.npz")
    assert again.utterances.to_series().to_list() == ["a\0b", "c"]


@pytest.mark.parametrize(
    ("rate", "count", "said"),
    [
        (None, 0, None),
        (None, 2**36 - 1, "cut short: expected 68719476735 samples, found 4000"),
        (1, None, "x.wav: expected 1000 to 768000 samples a second, found 1$"),
        (2**31 - 1, None, "samples a second, found 2147483647"),
    ],
)
def test_what_a_header_of_audio_states(tmp_path, rate, count, said):
    """A FLAC file of unknown length (0) is legal: what a pipe writes."""
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / ("x.flac" if rate is None else "x.wav")
    soundfile.write(path, 0.1 * np.sin(np.arange(4000)), 16000)
    content = bytearray(path.read_bytes())
    if rate is None:
        stated = int.from_bytes(content[21:26], "big") >> 36 << 36
        content[21:26] = (stated | count).to_bytes(5, "big")
    else:
        content[24:28] = rate.to_bytes(4, "little")
    path.write_bytes(content)
    if said is None:
        assert read_audio(path).samples.size == 4000
    else:
        with pytest.raises(InputError, match=said):
            read_audio(path)


@pytest.fixture
def odd(tmp_path):
    """A recording whose name and speaker look like parts of a command."""
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "{speaker}.wav"
    soundfile.write(path, 0.1 * np.sin(np.arange(4000)), 16000)
    return Recording(path, "{speaker}", "-rf", place=PurePosixPath("-rf/{speaker}"))


def commanded(script, one, tmp_path, *more, **options):
    program = tmp_path / "program.sh"
    program.write_text(script)
    command = " ".join([f"sh {program}", "{input}", "{output}", *more])
    with run_on(workers=1):
        return anonymise([one], tmp_path / "out", External(command, **options), suffix=".wav")


def test_names_stay_names_in_commands(odd, tmp_path, sentences):
    result = commanded(
        'cp "$1" "$2"; echo "$3" > ' + f"{tmp_path}/seen", odd, tmp_path, "{speaker}"
    )
    sentences.check(result.failures[0])
    result = commanded(
        'cp "$1" "$2"; echo "$3" > ' + f"{tmp_path}/seen", odd, tmp_path, "--speaker={speaker}"
    )
    assert (result.done, result.failures) == (1, ())
    assert (tmp_path / "seen").read_text() == "--speaker=-rf\n"
    assert (tmp_path / "out/-rf/{speaker}.wav").read_bytes() == odd.path.read_bytes()


def test_commands_say_what_they_like_and_end_in_time(odd, tmp_path, sentences):
    result = commanded(r"printf '\377 odd' >&2; exit 3", odd, tmp_path)
    assert result.failures[0].endswith("exit code 3: \ufffd odd")
    began = time.monotonic()
    result = commanded("sleep 60 & sleep 60", odd, tmp_path, timeout=0.3)
    assert "timed out" in result.failures[0]
    assert time.monotonic() - began < 30
    with pytest.raises(InputError) as error:
        External("tool ' {input} {output}")
    sentences.check(str(error.value))


def test_an_encoder_in_python_is_known_by_its_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    result = []
    for step in (1, 2):
        (tmp_path / "given.py").write_text(
            f"def part(x): return x[::{step}]\ndef encode(x): return part(x)\n"
        )
        sys.modules.pop("given", None)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        import linecache

        linecache.clearcache()
        result.append(load_encoder("given:encode").fingerprint)
    assert result[0] != result[1]
    assert Wrapped(len).fingerprint != Wrapped(len).fingerprint


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_config_of_names_that_are_no_utf8(tmp_path, monkeypatch, capsys):
    np.savez(tmp_path / "x.npz", tar=np.arange(4.0), non=np.arange(4.0) - 2)
    os.rename(tmp_path / "x.npz", os.fsencode(tmp_path) + b"/\xff.npz")
    assert run(monkeypatch, "init", tmp_path) == 1
    assert "UTF-8, found others" in capsys.readouterr().err
    assert not (tmp_path / "assessment.toml").exists()


def test_replicates_have_a_bound(monkeypatch, tmp_path, sentences):
    target, nontarget = np.arange(5.0), np.arange(9.0) - 3
    with pytest.raises(InputError) as error:
        um.evaluate((target, nontarget), replicates=1_000_000_001)
    sentences.check(str(error.value))
    (tmp_path / "c.toml").write_text("[intervals]\nreplicates = 100000000000\n")
    with pytest.raises(InputError, match=r"intervals\.replicates"):
        load_config(tmp_path / "c.toml")


def test_accepting_nobody_needs_a_threshold_above_infinity():
    roc = um.Roc.from_scores([np.inf, 0.0], [np.inf, np.inf, 1.0])
    point = roc.min_dcf_point(p_target=0.001)
    assert (point.p_miss, point.p_fa) == (1.0, 0.0)
    assert np.isnan(point.threshold)
    assert roc.at_threshold(np.inf).p_fa == pytest.approx(2 / 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e308, 5e-324])
def test_scores_at_the_ends_of_double_precision_are_drawn(unit):
    target, nontarget = unit * np.array([1.0, 0.0, 1.0, -1.0]), unit * np.array([-1.0, 0.0, 1.0])
    roc = um.Roc.from_scores(target, nontarget)
    curve = curves.pav_map(target, nontarget, roc)
    json.dumps(pav_map({"a": curve}).spec(), allow_nan=False)


def test_names_are_no_formulas_no_links_and_no_lines():
    name = "=HYPERLINK(1)[x](javascript:y)<script>\nz"
    made = Document((Row({"system": name}, (Estimate("eer", 0.5, "%"),)),))
    (row,) = csv.DictReader(io.StringIO(render(made, "csv")))
    assert row["system"].startswith("'=")
    (line,) = (line for line in render(made, "md").splitlines() if "HYPERLINK" in line)
    assert "HYPERLINK(1)[x\\](javascript:y)\\<script> z" in line


def total(xp, shared, rows):
    return {"sum": np.asarray(shared[slice(*rows)].sum())}


def add(whole, result, rows):
    whole["sum"] += result["sum"]


@pytest.mark.parametrize("damage", [b"", b"PK\3\4", None, b"\xff" * 200], ids=repr)
def test_damaged_state_is_refused_in_a_line(tmp_path, damage):
    numbers, ranges = np.arange(20.0), [(0, 10), (10, 20)]
    for _ in range(2):
        with run_on(workers=1, state=tmp_path):
            made = accumulate(total, numbers, ranges, {"sum": np.zeros(())}, add)
        assert made["sum"] == 190.0
    (kept,) = tmp_path.rglob("total.npz")
    content = kept.read_bytes()
    kept.write_bytes(content[: len(content) // 2] if damage is None else damage)
    with run_on(workers=1, state=tmp_path), pytest.raises(InputError) as caught:
        accumulate(total, numbers, ranges, {"sum": np.zeros(())}, add)
    assert str(caught.value).endswith("to start anew")


def test_a_worker_ends_with_its_parent(tmp_path):
    """The parent is killed; the worker, which would wait for work for ever, ends."""
    program = (
        "import multiprocessing, os, sys, time\n"
        "def wait(path):\n"
        "    from unmask.run import end_with_parent\n"
        "    end_with_parent()\n"
        "    open(path, 'w').write(str(os.getpid()))\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.get_context('spawn').Process(target=wait, args=sys.argv[1:]).start()\n"
        "    time.sleep(60)\n"
    )
    (tmp_path / "parent.py").write_text(program)
    with subprocess.Popen([sys.executable, tmp_path / "parent.py", tmp_path / "pid"]) as parent:
        end = time.monotonic() + 60
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < end
            time.sleep(0.05)
        parent.kill()
    worker = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    while worker.exists() and worker.read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)


def voices(folder, **columns):
    """Eight speakers with two sessions of their own each, such as the chapters of a book."""
    rng = np.random.default_rng(0)
    speakers = np.repeat([f"s{i}" for i in range(8)], 4)
    for name in ("original", "protected"):
        np.savez(
            folder / f"{name}.npz",
            embeddings=speakers_with_noise(8, 4, 4, noise=1.0, means=rng)[0],
            utt_ids=[f"u{i:02d}" for i in range(32)],
            speaker_ids=speakers,
            session=[f"{speakers[i]}-{i // 2}" for i in range(32)],
            **columns,
        )
    text = "[original]\nembeddings = 'original.npz'\n"
    return f"{text}[[safeguards]]\nname = 'p'\nembeddings = 'protected.npz'\n"


def test_sessions_of_one_speaker_each_are_assessed(tmp_path):
    text = f"frameworks = ['similarity']\n[intervals]\nreplicates = 2\n{voices(tmp_path)}"
    (tmp_path / "a.toml").write_text(text)
    with run_on(workers=1):
        result = assess(load_config(tmp_path / "a.toml"), tmp_path / "out", cache=tmp_path / "kept")
    assert len(result.sections) == 1
    assert [one.sentence for one in result.failures if "OO_WITHIN" in one.sentence] == []


def test_what_an_assessment_needs_is_looked_for_beforehand(
    tmp_path, monkeypatch, capsys, sentences
):
    text = voices(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\0")
    for change, said in (
        ("sessions = 'bytes'\n", "bytes: expected text in UTF-8"),
        ("speakers = 'pattern:('\n", "expected a regular expression"),
    ):
        (tmp_path / "a.toml").write_text(text.replace("[[", f"{change}[[", 1))
        with pytest.raises(InputError, match=said):
            check_inputs(load_config(tmp_path / "a.toml"))
    (tmp_path / "a.toml").write_text(f"{text}[legal.attributes]\nage = [30]\n")
    with pytest.raises(InputError) as error:
        check_inputs(load_config(tmp_path / "a.toml"))
    sentences.check(str(error.value))
    before = sorted(tmp_path.iterdir())
    assert run(monkeypatch, "assess", tmp_path / "a.toml", "--validate") == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
HOSTILE = "p\x1b[2J[/b]\x07\x00\x9b/../q"


def test_escapes_in_names_of_systems_reach_neither_terminal_nor_figures(
    tmp_path, monkeypatch, capsys
):
    rows = [f"a{i}\tb{i}\t{WORDS[i % 2]}\t{i * 7 % 5}\n" for i in range(20)]
    heading = f"enrol\ttest\tlabel\t{HOSTILE}\n".replace("\0", "")
    (tmp_path / "s.tsv").write_text(heading + "".join(rows))
    drawn = ("--ci", 0, "--figures", tmp_path / "drawn", "--figure-formats", "svg")
    assert run(monkeypatch, "eval", tmp_path / "s.tsv", *drawn) == 0
    assert run(monkeypatch, "validate", tmp_path / "s.tsv") == 0
    text = capsys.readouterr()
    assert "p\ufffd[2J" in text.out
    assert not ESCAPES.search(text.out + text.err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drawn", "s.tsv"]
    for path in (tmp_path / "drawn").iterdir():
        assert re.fullmatch(r"[a-z_]+\.svg", path.name)
        assert not ESCAPES.search(path.read_text())


def test_escapes_in_names_of_an_assessment_reach_no_terminal(tmp_path, monkeypatch, capsys):
    text = voices(tmp_path).replace("name = 'p'", f"name = {json.dumps(HOSTILE)}")
    text = f"frameworks = ['similarity']\nfigures = []\n[intervals]\nreplicates = 2\n{text}"
    (tmp_path / "a.toml").write_text(text)
    words = ("assess", tmp_path / "a.toml")
    assert run(monkeypatch, *words, "--validate") == 0
    assert run(monkeypatch, *words, "-o", tmp_path / "out", "--cache", tmp_path / "kept") == 0
    sentence = capsys.readouterr()
    assert sentence.out.count("p\ufffd[2J[/b]") > 1
    assert not ESCAPES.search(sentence.out + sentence.err)
    for path in (tmp_path / "out").rglob("*"):
        assert re.fullmatch(r"[a-z_]+(\.[a-z]+)?", path.name)
        assert path.parent.name != "tables" or not ESCAPES.search(path.read_text())


def test_names_in_a_progress_bar_are_no_markup(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    with progress_bar("reading", quiet=False) as listener:
        listener(HOSTILE, 1, 2)
    assert "p\ufffd[2J[/b]" in shown.getvalue()
    assert "\x1b[2J" not in shown.getvalue()


@pytest.fixture
def spoken(tmp_path, monkeypatch):
    """Two recordings, and an encoder that marks its process and waits as long as it is told."""
    soundfile = pytest.importorskip("soundfile")
    (tmp_path / "spoken" / "s").mkdir(parents=True)
    (tmp_path / "marks").mkdir()
    for name in "ab":
        path = tmp_path / "spoken" / "s" / f"{name}.wav"
        soundfile.write(path, 0.1 * np.sin(np.arange(4000)), 16000)
    (tmp_path / "waiting.py").write_text(
        "import os, pathlib, time\n"
        "def encode(x):\n"
        f"    pathlib.Path({str(tmp_path / 'marks')!r}, str(os.getpid())).touch()\n"
        "    time.sleep(float(os.environ.get('PAUSE', 0)))\n"
        "    return x[:3]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "spoken"


def members(session):
    """Processes of a session that live, the keeper of shared memory among them."""
    result = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its = path.read_text().rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue
        if its == str(session) and state != "Z":
            result.append(path.parent.name)
    return result


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("command", "send", "number", "code"),
    [("embed", os.killpg, signal.SIGINT, 130), ("anonymise", os.kill, signal.SIGTERM, 143)],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_a_stopped_run_takes_its_workers_with_it(spoken, tmp_path, command, send, number, code):
    """Ctrl-C reaches workers as well, one of which may still be loading; a program that a worker
    has started ends too.
    """
    program = tmp_path / "program.sh"
    program.write_text(f"cp $1 $2; touch {tmp_path}/marks/$$; sleep 60")
    words = {
        "embed": ["-o", tmp_path / "x.npz", "-e", "waiting:encode", "--shard", "1"],
        "anonymise": ["-o", tmp_path / "x", "--command", f"sh {program} {{input}} {{output}}"],
    }
    (tmp_path / "scratch").mkdir()
    path = os.pathsep.join([str(Path(um.__file__).parents[1]), str(tmp_path)])
    own = {"PYTHONPATH": path, "TMPDIR": str(tmp_path / "scratch"), "PAUSE": "60"}
    with subprocess.Popen(
        [sys.executable, "-m", "unmask", command, spoken, *words[command], "-w", "2"],
        env={**os.environ, **own},
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        end = time.monotonic() + 60
        while not (marks := list((tmp_path / "marks").iterdir())):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        send(process.pid, number)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.count(b"\n")) == (code, 1)
    assert b"; run the same command again" in errors
    while members(process.pid) + members(marks[0].name):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert not (tmp_path / "x.npz").exists()
    left = [path.name for path in (tmp_path / "x").rglob("*") if path.is_file()]
    # A stopped anonymisation leaves its note, which says that it is not finished.
    assert left == (["unmask-anonymise.json"] if command == "anonymise" else [])
    assert not list((tmp_path / "scratch").iterdir())


def test_bad_input_of_embed_leaves_nothing(spoken, tmp_path, monkeypatch, capsys):
    (tmp_path / "text" / "s").mkdir(parents=True)
    (tmp_path / "text" / "s" / "x.wav").write_text("no audio")
    (tmp_path / "taken.npz").mkdir()
    (tmp_path / "other.npz.parts").write_text("precious")
    (tmp_path / "archives").mkdir()
    for name in ("a.ark", "utt2spk"):
        (tmp_path / "archives" / name).touch()
    before = sorted(tmp_path.rglob("*"))
    for source, output, encoder, said in (
        ("text", "x.npz", "waiting:encode", "x.wav: not readable as audio"),
        ("spoken", "x.npz", "absent", "encoder absent: expected campplus"),
        ("spoken", "x.npz", "absent:encode", "No module named 'absent'"),
        ("spoken", "x.npz", "waiting:absent", "no attribute 'absent'"),
        ("spoken", "x.npz", "absent.onnx", "absent.onnx: no such file"),
        ("spoken", "absent/x.npz", "waiting:encode", "expected an existing folder, found none at"),
        ("spoken", "taken.npz", "waiting:encode", "expected a file to write, found a folder"),
        ("spoken", "other.npz", "waiting:encode", "cannot be used (Not a directory)"),
        ("spoken", "archives/b.ark", "waiting:encode", "expected a folder of its own"),
    ):
        words = ("embed", tmp_path / source, "-o", tmp_path / output, "-e", encoder, "-w", 1)
        assert run(monkeypatch, *words) == 1
        text = capsys.readouterr().err
        assert said in text.splitlines()[0]
        assert text.count("\n") == 1 + (source == "text")
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        for mark in (tmp_path / "marks").iterdir():
            mark.unlink()
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "other.npz.parts").read_text() == "precious"
    (tmp_path / "x.npz.parts" / "earlier").mkdir(parents=True)
    words = ("embed", tmp_path / "text", "-o", tmp_path / "x.npz", "-e", "waiting:encode")
    assert run(monkeypatch, *words, "-w", 1) == 1
    assert (tmp_path / "x.npz.parts" / "earlier").is_dir()
