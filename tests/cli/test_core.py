"""The core alone: commands run without the extra ``report``, and who needs it is told in one line.

``make core`` runs this where the extra is not installed; elsewhere its packages are hidden.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.helpers.populations import write_release

HIDDEN = """
import builtins, contextlib, importlib.abc, io, json, sys

REPORT = {"pydantic", "altair", "vl_convert", "jinja2", "tomli_w"} - set(sys.argv[2:])
BROUGHT = {"pydantic"}  # by typer, in some of its versions: hidden from unmask alone

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REPORT - BROUGHT:
            raise ModuleNotFoundError(name=name)

plain = builtins.__import__

def imported(name, globals=None, locals=None, fromlist=(), level=0):
    asks = (globals or {}).get("__name__", "")
    if asks.startswith("unmask") and not level and name.partition(".")[0] in REPORT:
        raise ModuleNotFoundError(name=name)
    return plain(name, globals, locals, fromlist, level)

sys.meta_path.insert(0, Hidden())
builtins.__import__ = imported
from unmask.cli import main

answers = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["unmask", *words]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            code = left.code
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""
COMMANDS = {
    "eval": "eval scores --key trials --ci 20",
    "compare": "compare a=scores b=others --key trials --ci 20",
    "privacy": "privacy --original o.npz --protected p=p.npz --ci 20",
    "legal": "legal -a p=o.npz,p.npz --allow-shared-utterances --ci 20",
    "cpmap": "cpmap a=scores b=others --key trials --grid 5 --ci 0",
    "worstcase": "worstcase scores --key trials --speakers utt2spk --population 3 --ci 0",
}
REFUSED = ("assess config.toml", "demo", "init .", "eval scores --key trials --figures drawn")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    voices, speaker = write_release(tmp_path, rng, 8, 6, 6)
    lines = {
        "others": [
            f"u{i} u{j} {voices[i] @ voices[j] + rng.normal():.4f}"
            for i in range(speaker.size)
            for j in range(i)
        ],
        "utt2spk": [f"u{i} s{c}" for i, c in enumerate(speaker)],
        "config.toml": ["[original]"],
    }
    for name, rows in lines.items():
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    return tmp_path


def answers(folder, commands, *there):
    words = json.dumps([command.split() for command in commands])
    python = [sys.executable, "-c", HIDDEN, words, *there]
    ran = subprocess.run(python, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def test_commands_of_the_core_run_without_the_extra(folder):
    commands = list(COMMANDS.values())
    for command, (code, out, err) in zip(commands, answers(folder, commands), strict=True):
        assert code == 0, (command, err)
        assert out.strip(), command


def test_who_needs_the_extra_is_told_in_one_line(folder, sentences):
    for command, (code, out, err) in zip(REFUSED, answers(folder, REFUSED), strict=True):
        assert (code, out) == (1, ""), command
        (line,) = err.splitlines()
        assert line.endswith("'unmask[report]'"), command
        sentences.check(line)
    assert not (folder / "drawn").exists()


def test_functions_of_the_extra_are_there_and_refuse_to_be_called(sentences):
    program = HIDDEN[: HIDDEN.index("from unmask.cli")] + (
        "import numpy as np\n"
        "import unmask as um\n"
        "from unmask import *\n"
        "drawn = np.random.default_rng(0).normal(size=200)\n"
        "result = um.evaluate((drawn[:50] + 2, drawn), replicates=0)\n"
        "for call in (lambda: um.assess('x'), result.figures, lambda: um.load_config('x')):\n"
        "    try:\n"
        "        call()\n"
        "    except um.InputError as error:\n"
        "        print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.count("'unmask[report]'") == 3
    sentences.check(ran.stdout)
