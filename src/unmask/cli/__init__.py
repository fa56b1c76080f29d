"""The command line: thin files, loaded when called; everything is possible from Python as well."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from unmask._extras import report_extra
from unmask._version import __version__
from unmask.errors import InputError

COMMANDS: Final = {
    "demo": "Assess seven safeguards on sixty real voices, with every framework (a few minutes).",
    "init": "Look into a folder and write a config for unmask assess.",
    "assess": "Assess safeguards with every framework and write one report folder.",
    "cache": "List or clear the intermediate results of assessments.",
    "eval": "Evaluate systems: EER, detection costs, C_llr and ZEBRA, with confidence intervals.",
    "compare": "Compare two systems on the same trials: which recognises speakers better?",
    "score": "Score a list of trials with embeddings.",
    "calibrate": "Turn scores into log-likelihood ratios.",
    "forensic": "Validate likelihood ratios for court: validity, calibration, bounds, a case.",
    "fuse": "Fuse several systems into one log-likelihood ratio.",
    "privacy": "Measure pseudonymisation and disclosure: DeID, G_VD, D_ECE, C_ECE, l_w and tag.",
    "legal": "Measure Singling Out, Linkability, 1 − EER, ranks and inference, by attacker.",
    "cpmap": "Map performance on hard and easy trials: C-P maps, delta maps and roadmap.",
    "worstcase": "False-alarm rate when an adversary picks the closest of N voices.",
    "utility": "Measure what a safeguard costs in intelligibility, intonation and quality.",
    "embed": "Turn recordings into speaker embeddings; interrupted runs resume.",
    "train": "Train a speaker encoder on recordings; interrupted runs resume.",
    "anonymise": "Anonymise recordings. (b2, b2r and b2w are baselines that hardly protect.)",
    "encoders": "List the built-in encoders and install their weights.",
    "validate": "Check a file and report what it contains.",
    "formats": "List the supported file formats, with layout and example.",
    "convert": "Convert a file to another format.",
    "trials": "Make a list of trials: all pairs or balanced, of one sex, across sessions.",
}
"""What there is, in the order of the help; the module is loaded when called."""

_EXAMPLES = """
unmask demo
unmask demo -o case-study --ci 0
unmask init recordings/
unmask init voiceprivacy/ -o submission.toml
unmask assess original/ protected/ -o report/
unmask assess original.npz B2=b2.npz --quick
unmask assess original/ --sweep mcadams=0.6,0.7,0.8 -t text
unmask assess assessment.toml --validate
unmask cache list
unmask cache clear --gone
unmask eval scores.txt --key trials
unmask eval B1=b1.txt ours=ours.txt -k trials -s utt2spk --figures drawn
unmask eval scores.txt -k trials -s utt2spk --threshold 0.25 --far 0.01
unmask compare A=a.txt B=b.txt --key trials --speakers utt2spk
unmask compare mcadams=a/pp.txt ours=b/pp.txt --key trials --privacy
unmask compare old=a.txt new=b.txt -k trials -s utt2spk --fail-if 'eer worsens'
unmask score voices.npz --trials trials -o scores.txt
unmask score enrol.npz test.npz -t trials --backend plda --train train.npz -o scores.txt
unmask calibrate scores.txt --key trials --train dev.txt --train-key dev_trials -o llr.txt
unmask calibrate scores.txt -k trials -s utt2spk --save map.json
unmask forensic llrs.csv --scores-are log10 --page validation.html
unmask forensic scores.txt -k trials -s utt2spk --calibrate --case 0.71 --figures drawn
unmask fuse A=a.txt B=b.txt -k trials --train A=a_dev.txt --train B=b_dev.txt --train-key dev_trials
unmask fuse A=a.txt B=b.txt -k trials -s utt2spk --save fusion.json
unmask fuse A=a.txt B=b.txt --apply fusion.json -o fused.txt
unmask privacy --original voices.npz --protected ours=ours.npz
unmask privacy --scores ours=oo.txt,op.txt,pp.txt --speakers utt2spk
unmask legal -a original=enrol.npz,test.npz -a ours=own.npz,ours.npz
unmask legal --config assessment.toml --figures drawn
unmask cpmap A=a.txt B=b.txt --key trials --figures maps
unmask cpmap scores.tsv --reference cosine --grid 50
unmask worstcase scores.tsv --population 1e5 --figures drawn
unmask worstcase A=a.npz B=b.npz --target-rate 0.01
unmask embed recordings/ -o voices.npz
unmask embed data/libri_test -o voices.ark -e model.onnx
unmask train protected/ -o attacker --from campplus --epochs 5 --rate 0.0005
unmask train voxceleb/ -o resnet -n resnet34 --pooling asp --loss am --device cuda
unmask utility original/ B2=protected/ -t text
unmask utility original/ B2=protected/ -t text --report report/
unmask anonymise recordings/ -o protected/ --method b2r --seed random
unmask anonymise recordings/ -o protected/ --command 'tool {input} {output}'
unmask encoders list
unmask encoders install campplus
unmask validate scores.txt --key trials
unmask validate voices.npz
unmask formats
unmask formats --kind key
unmask convert scores.txt scores.parquet --key trials
unmask convert voices.ark voices.npz --speakers utt2spk
unmask trials utt2spk -o trials --balanced
unmask trials data/test -o trials --enrol 3 --same sex
"""
EXAMPLES: Final = {
    name: tuple(line for line in _EXAMPLES.splitlines() if line.split()[1:2] == [name])
    for name in COMMANDS
}
_HOMES: Final = {
    "assess": "demo init assess cache",
    "eval": "eval compare",
    "scores": "score calibrate fuse",
    "forensic": "forensic",
    "privacy": "privacy legal",
    "stress": "cpmap worstcase",
    "utility": "utility",
    "speech": "embed train anonymise encoders",
    "files": "validate formats convert trials",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}
_PANELS: Final = {
    "What is read": "key speakers system by missing duplicates format_in columns scores_are",
    "Intervals": "ci level seed",
    "Where it runs": "on workers state",
    "What is written": "format output figures figure_formats width bare font quiet",
}
_PANEL_OF: Final = {name: panel for panel, names in _PANELS.items() for name in names.split()}
_ORDER: Final = {name: place for place, name in enumerate(_PANEL_OF, 1)}


class Deferred(TyperCommand):
    """A command that is known by name and sentence until somebody calls it."""

    def loaded(self) -> Any:
        """The function of the same name, or the group of commands."""
        from unmask.cli.options import flat

        module = import_module(f"unmask.cli.{_HOME_OF[str(self.name)]}")
        if hasattr(signal, "siginterrupt"):
            # A library restarts what Ctrl-C interrupts: a read that waits would wait on.
            signal.siginterrupt(signal.SIGINT, True)
        command = getattr(module, "evaluate" if self.name == "eval" else str(self.name))
        if isinstance(command, typer.Typer):
            several: Any = typer.main.get_command(command)
            for one in (several, *several.commands.values()):
                one.get_params = partial(_without_types_of_flags, one.get_params)
            return several
        alone = typer.Typer(add_completion=False, context_settings=app.info.context_settings)
        shown = EXAMPLES[str(self.name)]
        epilog = "\n\n".join(["Examples:", *(f"  {line}" for line in shown)]) if shown else None
        sentence = command.__doc__ or COMMANDS[str(self.name)]
        alone.command(self.name, help=sentence, epilog=epilog)(flat(command))
        made: Any = typer.main.get_command(alone)
        made.params.sort(key=lambda each: _ORDER.get(str(each.name), 0))
        drawn = any(each.name == "ci" for each in made.params)
        for option in made.params:
            if isinstance(option, TyperOption) and (drawn or option.name != "seed"):
                option.rich_help_panel = _PANEL_OF.get(str(option.name))
        made.get_params = partial(_without_types_of_flags, made.get_params)
        return made

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return self.loaded().make_context(info_name, args, parent, **extra)


def _without_types_of_flags(params: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    """The parameters of a command; its flags, ``--help`` among them, take no value."""
    found = params(context)
    for option in found:
        if isinstance(option, TyperOption) and option.is_flag:
            option.metavar = ""
    return found


class Commands(TyperGroup):
    """All commands, none of them loaded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, sentence in COMMANDS.items():
            self.add_command(Deferred(name, help=sentence, rich_markup_mode=None))

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params, ctx)


app = typer.Typer(
    name="unmask",
    cls=Commands,
    help="Measure how recognisable a voice is: verification, its worst case, and anonymisation.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(show: bool) -> None:
    if show:
        print(f"unmask {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show the full traceback of unexpected errors."
    ),
) -> None:
    global _debug
    _debug = debug


_debug = False
_INTERRUPTED = 130
_AGAIN = "run the same command again (assess, embed and train resume; others with --state)"
STOPPED = f"stopped; {_AGAIN}"
_SPELLED = re.compile(r"\b(missing|duplicates|pairs|allow_shared_utterances)='?(\w+)'?")


def _as_option(advice: re.Match[str]) -> str:
    """What a refusal advises, as the command line has it: ``--missing skip``."""
    return f"--{advice[1].replace('_', '-')}{'' if advice[2] == 'True' else f' {advice[2]}'}"


class Terminated(BaseException):
    """The system asked this process to end; scratch folders are removed on the way out."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def main() -> None:
    """Run a command; whatever goes wrong is one line on stderr and exit code 1."""
    _prepare_streams()
    # Work is spread over processors by jobs: further threads of small products only wait.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if _memory_is_limited():
        # Polars would try to start such a thread again and again, and say each time that it cannot.
        os.environ.setdefault("_RJEM_MALLOC_CONF", "background_thread:false")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)
    try:
        with report_extra():
            code = app(prog_name="unmask", standalone_mode=False)
    except InputError as error:
        _end(_SPELLED.sub(_as_option, str(error)), 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Terminated:
        _last(f"terminated by a signal; {_AGAIN}", 143)
    except SystemExit:
        raise
    except BaseException as error:  # where memory ends, libraries end by what is no Exception
        _foreign(error)
    if code == _INTERRUPTED:
        _last(STOPPED, code)
    sys.exit(code if isinstance(code, int) else 0)


def _memory_is_limited() -> bool:
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _foreign(error: BaseException) -> NoReturn:
    """Say in one line what nobody expected; wrong usage shows how it is right."""
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        error.show()
        sys.exit(error.exit_code)
    if _debug:
        raise error
    if isinstance(error, OSError):
        _end(f"{error.filename or 'input'}: {error.strerror or error}", 1)
    if isinstance(error, MemoryError):
        _end(
            f"memory ended: expected more, or fewer workers ({str(error) or 'nothing was free'})", 1
        )
    reason = str(error) or "no reason given"
    _end(f"{type(error).__name__}: {reason} (unmask --debug COMMAND … shows where)", 1)


def _end(message: str, code: int) -> NoReturn:
    from unmask.base import one_line

    _last(one_line(message), code)


def _last(line: str, code: int) -> NoReturn:
    """Say a line and leave; nothing is loaded, which a stop while loading would break."""
    if sys.stderr is not None:
        print(f"unmask: {line}", file=sys.stderr)
    sys.exit(code)


def _prepare_streams() -> None:
    """A terminal that lacks a character shows another; a closed one is written to nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure") and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")
