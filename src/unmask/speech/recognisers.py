"""Who writes down what a recording says: pocketsphinx, a model of a hub, any command."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unmask._plugins import plugin
from unmask.errors import InputError
from unmask.run import content_digest
from unmask.speech.audio import SAMPLE_RATE, needed, read_audio
from unmask.speech.safeguards import command_content, command_words, run_command

POCKETSPHINX, WHISPER, TRANSFORMERS = "pocketsphinx", "faster-whisper", "transformers"
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GRAMMARS = {"digits": DIGITS}
_PLACE = "{input}"
# A loop of words without probabilities wants a high price for each: tuned on 30 files.
_LOOP = {"lw": 1.0, "wip": 1e-20}
# Seconds that Whisper hears at once; transformers refuses longer ones unless they are cut up.
_CHUNK = 30.0
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "`": "'"})
_LOOSE = re.compile(r"(?<!\w)'|'(?!\w)")


def normalised(text: str) -> str:
    """The same words without case and punctuation: NFKC, folded, apostrophes within words kept.

    Combining marks stay with their letters, so that scripts other than Latin keep their words.
    """
    folded = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold()
    words = "".join(c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return " ".join(_LOOSE.sub(" ", words).split())


class Recogniser(Protocol):
    """Writes down what it hears in a recording; ``unknown`` are words that it can never write."""

    @property
    def name(self) -> str: ...

    def hear(self, path: str) -> str: ...

    def unknown(self, words: Iterable[str]) -> list[str]:
        """Those of some words; none where nothing is known of them."""
        return []


def runs_code(recogniser: str) -> bool:
    """Whether a recogniser runs a command or fetches a model, which its user must allow."""
    return recogniser != POCKETSPHINX


def recogniser(name: str = POCKETSPHINX, *, grammar: str | None = None) -> Recogniser:
    """The recogniser called ``name``.

    ``pocketsphinx`` (extra ``asr``) carries an English model and needs no network; ``grammar`` is
    ``digits``, words separated by commas, of which it then hears any sequence, or a file in JSGF.
    ``faster-whisper:MODEL`` and ``transformers:MODEL`` are models of a hub or folders, where these
    packages are installed. A package may offer others in the entry-point group
    ``unmask.recognisers``. Anything with ``{input}`` in it is a command that writes the words of
    that file to its standard output.
    """
    if name == POCKETSPHINX:
        return PocketSphinx(_grammar(grammar))
    if grammar is not None:
        raise InputError(f"grammar: expected the recogniser {POCKETSPHINX}, found {name}")
    if _PLACE in name:
        return Command(name)
    kind, sign, model = name.partition(":")
    if (offered := plugin("recognisers", name)) is not None:
        return Offered(name, offered.load())
    if not sign or kind not in (WHISPER, TRANSFORMERS) or not model:
        raise InputError(
            f"recogniser {name}: expected {POCKETSPHINX}, {WHISPER}:MODEL, {TRANSFORMERS}:MODEL or"
            f" a command with {_PLACE}"
        )
    return Hub(kind, model)


def _grammar(given: str | None) -> str:
    """A grammar in JSGF; empty for the language model."""
    if given is None:
        return ""
    if Path(given).suffix in (".gram", ".jsgf"):
        try:
            return Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{given}: not readable as a grammar: {error}") from None
    words = GRAMMARS.get(given) or [normalised(word) for word in given.split(",")]
    if not all(re.fullmatch(r"[\w'-]+", word) for word in words):
        raise InputError(
            f"grammar {given}: expected {', '.join(GRAMMARS)}, a .gram file or words separated by"
            " commas"
        )
    return f"#JSGF V1.0;\ngrammar words;\npublic <words> = ( {' | '.join(words)} )+ ;\n"


def _words(grammar: str) -> list[str]:
    return re.findall(r"[\w']+", grammar.partition("=")[2])


@dataclass(frozen=True)
class PocketSphinx(Recogniser):
    """CMU's recogniser with its English model of 2015; weak, and the same everywhere."""

    grammar: str = ""

    @property
    def name(self) -> str:
        if not self.grammar:
            return POCKETSPHINX
        words = _words(self.grammar)
        which = "digits" if words == DIGITS else f"grammar of {len(set(words))} words"
        return f"{POCKETSPHINX}, {which}"

    def hear(self, path: str) -> str:
        decoder = _decoder(self.grammar)
        scaled = np.rint(read_audio(path).samples * 32768.0)
        integers = np.clip(scaled, -32768, 32767).astype("<i2")
        decoder.reinit_feat()  # forgets the mean spectrum of what it heard before
        decoder.start_utt()
        decoder.process_raw(integers.tobytes(), no_search=False, full_utt=True)
        decoder.end_utt()
        heard = decoder.hyp()
        return re.sub(r"\(\d+\)", "", heard.hypstr) if heard is not None else ""

    def unknown(self, words: Iterable[str]) -> list[str]:
        """Words of neither dictionary nor grammar."""
        if self.grammar:
            known = set(_words(self.grammar))
            return [word for word in words if word not in known]
        decoder = _decoder("")
        return [word for word in words if decoder.lookup_word(word) is None]


@lru_cache(maxsize=2)
def _decoder(grammar: str) -> Any:
    """A decoder, once per process."""
    sphinx = needed("pocketsphinx", "pocketsphinx", "asr")
    if not grammar:
        return sphinx.Decoder(loglevel="FATAL")
    decoder = sphinx.Decoder(lm=None, loglevel="FATAL", **_LOOP)
    foreign = sorted(word for word in _words(grammar) if decoder.lookup_word(word) is None)
    if foreign:
        raise InputError("grammar", f"words of {POCKETSPHINX}'s English dictionary", foreign[0])
    try:
        decoder.add_jsgf_string("words", grammar)
        decoder.activate_search("words")
    except (RuntimeError, ValueError) as error:
        raise InputError(f"grammar: expected JSGF: {error}") from None
    return decoder


@dataclass(frozen=True)
class Offered(Recogniser):
    """What an installed package offers by a name: a function of a file that gives its words."""

    offered: str
    function: Callable[[str], str]

    @property
    def name(self) -> str:
        return self.offered

    def hear(self, path: str) -> str:
        return self.function(path)


@dataclass(frozen=True)
class Command(Recogniser):
    """Any recogniser as a command; run without a shell, ``{input}`` filled in after splitting."""

    command: str
    timeout: float = 600.0
    content: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", command_content(self.command))

    @property
    def name(self) -> str:
        return command_words(self.command)[0]

    def hear(self, path: str) -> str:
        return " ".join(run_command(path, self.command, {_PLACE: path}, self.timeout).split())


@dataclass(frozen=True)
class Hub(Recogniser):
    """A model of faster-whisper or of transformers, by its name on a hub or its folder."""

    kind: str
    model: str
    content: str = field(init=False)

    def __post_init__(self) -> None:
        local = Path(self.model).exists()
        object.__setattr__(self, "content", content_digest(self.model) if local else "")

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.model}"

    def hear(self, path: str) -> str:
        samples = read_audio(path).samples
        model = _model(self.kind, self.model, self.content)
        if self.kind == WHISPER:
            segments, _ = model.transcribe(samples, beam_size=5)
            return " ".join(segment.text.strip() for segment in segments)
        longer = {"chunk_length_s": _CHUNK} if samples.size > _CHUNK * SAMPLE_RATE else {}
        heard = model({"raw": samples, "sampling_rate": SAMPLE_RATE}, **longer)
        return str(heard["text"]).strip()


@lru_cache(maxsize=1)
def _model(kind: str, model: str, content: str) -> Any:
    try:
        if kind == WHISPER:
            return needed("faster_whisper", "faster-whisper", "whisper").WhisperModel(model)
        package = needed("transformers", "transformers", "transformers")
        return package.pipeline("automatic-speech-recognition", model=model)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"recogniser {kind}:{model}: cannot be loaded: {error}") from None
