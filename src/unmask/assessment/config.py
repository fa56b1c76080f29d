"""An assessment as a TOML file: what is compared, which attackers, which frameworks, how surely."""

from __future__ import annotations

import ast
import datetime
import inspect
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from unmask.engine import Battery
from unmask.privacy.legal import BACKENDS, RELEASE, known_backend

Framework = Literal[
    "legal", "trust", "similarity", "zebra", "verification", "cpmap", "worst_case", "utility"
]
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)


def _readable(name: str) -> str:
    """A name of which something can be seen: blanks and marks of direction are not enough."""
    if not any(category(letter)[0] not in "CZ" for letter in name):
        raise ValueError(f"expected a name that can be read, found {name!a}")
    return name


Name = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_readable)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Level = Literal["global", "speaker", "session", "utterance"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""What can share one new voice."""
Column = Literal["eer", "deid", "g_vd", "linkability", "wer", "uar"]
ORIGINAL = "original"
KNOWN = "known person"
"""The setting in which protected recordings are linked to known people, not to each other."""


def _described(schema: dict[str, Any], part: type[BaseModel]) -> None:
    """What stands below a field in the source is its description."""
    for kind in (one for one in part.__mro__ if issubclass(one, _Part)):
        (source,) = ast.parse(inspect.getsource(kind)).body
        for field, below in pairwise(getattr(source, "body", ())):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                words = " ".join(ast.literal_eval(below.value).split())
                schema["properties"][ast.unparse(field.target)]["description"] = words


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_described)


class VoicesConfig(_Part):
    """Speech of known speakers: embeddings, or audio that is embedded first."""

    embeddings: Path | None = None
    """npz, parquet, HDF5, Kaldi ark or folder."""
    audio: Path | None = None
    """Folder of recordings, embedded by encoder."""
    encoder: str = "campplus"
    """campplus, resemblyzer, the folder of a trained one or an ONNX file."""
    speakers: str | None = None
    """utt2spk file, or pattern:REGEX."""
    sessions: Path | None = None
    """Session of each utterance: utterance session."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.embeddings is not None and self.audio is not None:
            raise ValueError("expected embeddings or audio, found both")
        return self

    @property
    def given(self) -> bool:
        """Whether there is anything to read."""
        return self.embeddings is not None or self.audio is not None


class ScoreSets(_Part):
    """Score files of one safeguard: original–original, original–protected, protected–protected.

    Several lists of trials, such as those of women and men, are several ``set``s; several
    extractors, which are several attackers, stand under one ``set``.
    """

    set: Name | None = None
    """Name of the list of trials."""
    extractor: Literal["given", "trained"] = "given"
    """trained: on speech that this very safeguard protected, by an informed attacker."""
    oo: Path | None = None
    op: Path | None = None
    pp: Path | None = None
    key: Path | None = None
    speakers: str | None = None
    genders: Path | None = None
    """spk2gender: numbers of each sex of a mixed list as well."""
    system: str | None = None

    def label(self, safeguard: str) -> str:
        """What these lists of a safeguard are called."""
        trained = "trained extractor" if self.extractor == "trained" else None
        return ", ".join(filter(None, (safeguard, self.set, trained)))

    @model_validator(mode="after")
    def _some_list(self) -> Self:
        if not (self.oo or self.op or self.pp):
            raise ValueError("expected score files oo, op or pp, found none of them")
        return self


class Heard(_Part):
    """What a recogniser wrote down of one set, as Kaldi ``text``."""

    set: Name
    data: Annotated[tuple[Path, ...], Field(min_length=1)]
    """Kaldi folders: text is what was said, utt2spk who said it."""
    original: Path
    """What was heard of unprotected speech."""
    protected: Path
    """What was heard of the safeguard's output."""


class SafeguardConfig(VoicesConfig):
    """One protected version of the same speech, and what an attacker could make of its kind."""

    name: Name
    description: str = ""
    """What it does to a voice, in a sentence: stands beside its name."""
    again: str | None = None
    """Another run of this very safeguard under other keys, as an attacker would make it: the name
    of a safeguard here, or a file of embeddings.
    """
    related: str | None = None
    """The same speech protected by a related but different safeguard, which a semi-informed
    attacker has: the name of a safeguard here, or a file of embeddings.
    """
    method: str | None = None
    """Safeguard of this package that makes it (b2, b2r, b2w, pitch, restate, restate:digits), so
    that attackers can run it under keys of their own.
    """
    ends: tuple[float, float] | None = None
    """Range of the method's coefficients or semitones, where it is not the usual one."""
    command: str | None = None
    """Any other safeguard as a command, with {input} and {output}, {speaker} and {key} where it has
    them; run with --allow-code only.
    """
    training: Path | None = None
    """Embeddings of the [training] speech protected by this safeguard under keys of the attacker's
    own.
    """
    per: Level | None = None
    """What shares one new voice. With utterance every recording is a run of its own, and the
    release itself serves as the attacker's own run.
    """
    keyless: bool = False
    """Deterministic: without a key an attacker makes the very same run."""
    hidden: bool = False
    """Used as another's run only, not assessed itself."""
    scores: tuple[ScoreSets, ...] = ()
    results: tuple[Path, ...] = ()
    """Result files of a challenge's tree: its word error rates and recalls of emotion."""

    heard: tuple[Heard, ...] = ()
    """Sets whose word error rates are computed."""

    @field_validator("scores", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _something(self) -> Self:
        names = [score.label(self.name) for score in self.scores]
        if len(set(names)) < len(names):
            raise ValueError("scores: expected another set or extractor for each list of trials")
        if not self.given and not self.scores:
            raise ValueError("expected embeddings, audio or scores, found none of them")
        if self.keyless and self.again is not None:
            raise ValueError("expected another run (again) or keyless, found both")
        if self.method is not None and self.command is not None:
            raise ValueError("expected a method or a command, found both")
        if self.ends is not None and self.method is None:
            raise ValueError("ends: expected a method that draws between them, found none")
        if self.name in (self.again, self.related):
            raise ValueError("expected another run, found the run itself: it is what is attacked")
        return self

    @property
    def given(self) -> bool:
        """Whether there is anything to read, or to make of the original recordings."""
        return super().given or self.made

    @property
    def made(self) -> bool:
        """Whether its method makes it of the original recordings, since nothing else is named."""
        return self.method is not None and not (super().given or self.scores)


class Training(VoicesConfig):
    """Other people, on whom attackers train; nobody among them is attacked.

    Without recordings or embeddings a ``share`` of the people is set apart, where an attacker
    trains its extractor. ``recipe`` holds options of :class:`unmask.speech.Recipe`; ``start`` is
    what training starts from, an encoder or ``"scratch"``. ``curve`` are shares of the training
    people on which extractors are trained too, for the learning curve.
    """

    share: Share = 0.5
    start: str = "campplus"
    recipe: dict[str, Any] = Field(default_factory=dict)
    device: str = "auto"
    """cpu, cuda, or auto: cuda where there is one."""
    curve: tuple[Share, ...] = (0.5,)


Data = Literal["original", "own", "related"]
BackendName = Annotated[
    str,
    AfterValidator(lambda name: known_backend(name).name),
    Field(json_schema_extra=lambda own: own.update(enum=list(BACKENDS))),
]


class AttackerConfig(_Part):
    """Who attacks: what is enrolled, what back-ends are trained on, which back-ends.

    ``original`` is unprotected speech; ``own`` is the attacker's own run of the safeguard: the one
    called ``again``, or that of a keyless safeguard, never the run that is attacked; ``related`` is
    speech protected by a related safeguard. Several training sets are pooled. Back-ends are trained
    on the people of [training] where there are such, else on the enrolment speech. With ``extractor
    = "trained"`` the extractor itself is trained on them first; ``train = true`` is short for that
    and ``train = ["own"]``. The names of :data:`ATTACKERS` are kept for what they mean, and what
    is not said of one of that name is as it is there.
    """

    name: Name
    enrol: Literal["original", "own"] = "original"
    train: Annotated[tuple[Data, ...], Field(min_length=1)] = ("original",)
    backends: tuple[BackendName, ...] = ("cosine", "wccn")
    extractor: Literal["given", "trained"] = "given"

    @model_validator(mode="before")
    @classmethod
    def _trains(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        if raw.get("train") is True:
            raw = {**raw, "train": ("own",), "extractor": "trained"}
        meant = STANDARD.get(str(raw.get("name")))
        return {**({} if meant is None else dict(meant)), **raw}

    @model_validator(mode="after")
    def _some_backend(self) -> Self:
        if not self.backends or len(set(self.backends)) < len(self.backends):
            raise ValueError("backends: expected each at most once and at least one")
        if self.name == RELEASE:
            raise ValueError(f"{RELEASE!r} is always tried and needs no entry")
        meant = STANDARD.get(self.name)
        if meant is not None and (self.enrol, self.knows) != (meant.enrol, meant.knows):
            raise ValueError(
                f"name: {self.name!r} {meant.told}, found one that {self.told}: give it another"
                " name"
            )
        return self

    @property
    def knows(self) -> frozenset[str]:
        """Protected speech that it trains on."""
        return frozenset(self.train) - {"original"}

    @property
    def told(self) -> str:
        """What it enrols and trains on, as a clause."""
        return f"enrols {self.enrol} and trains on {' and '.join(self.train)} speech"

    @property
    def trains(self) -> bool:
        """Whether the extractor itself is trained."""
        return self.extractor == "trained"

    @property
    def needs(self) -> tuple[Data, ...]:
        """Data without which this attacker cannot be run; what an extractor is trained on is made
        for it.
        """
        free = all(known_backend(name).is_free for name in self.backends)
        trained = () if free or self.trains else self.train
        return tuple(dict.fromkeys((self.enrol, *trained)))


STANDARD: dict[str, AttackerConfig] = {}
"""The usual attackers by name, which are reserved for what they mean."""
_USUAL = tomllib.loads(Path(__file__).with_name("attackers.toml").read_text(encoding="utf-8"))
ATTACKERS = tuple(AttackerConfig(**one) for one in _USUAL["attackers"])
STANDARD.update({attacker.name: attacker for attacker in ATTACKERS})
QUICK = tuple(AttackerConfig(**one) for one in _USUAL["quick"])
"""Who attacks in a quick look, in ten readings; the second only where there is an own run."""
_QUICK_FRAMEWORKS: tuple[Framework, ...] = (
    "legal", "similarity", "zebra", "verification", "utility"
)  # fmt: skip
_QUICK_REPLICATES = 100
_DRAWING = ("intervals", "verification", "cpmap")


class ScoreTable(_Part):
    """Verification systems on one list of trials."""

    name: Name
    files: Annotated[tuple[Path, ...], Field(min_length=1)]
    key: Path | None = None
    speakers: str | None = None
    systems: tuple[str, ...] | None = None
    reference: tuple[str, ...] = ()
    """Systems that tell hard trials from easy."""


class Split(_Part):
    """Which utterances enrol and which are attacked: no utterance does both."""

    enrol: Annotated[int | float, Field(gt=0)] = 0.5
    """Share of each speaker's utterances, or how many of them."""
    utterances: Path | None = None
    """File of those that enrol, one a line."""


class IntervalConfig(_Part):
    """How intervals are made: the joint speaker bootstrap."""

    level: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    replicates: Annotated[int, Field(ge=2, le=1_000_000)] = 1000


class Legal(_Part):
    """Singling Out, Linkability, inference (Vauquier 2025)."""

    counts: tuple[Count, ...] | None = None
    """Numbers of speakers N and N'."""
    lengths: Annotated[tuple[Count, ...], Field(min_length=1)] = (1, 3, 30)
    """Utterances per conversation; where some are too many, the longest there is."""
    metrics: Annotated[
        tuple[Literal["singling_out", "linkability", "one_minus_eer"], ...], Field(min_length=1)
    ] = ("linkability", "singling_out", "one_minus_eer")
    linkability_enrol: Count | Literal["all"] | None = None
    """Enrolment utterances averaged per speaker; all by default."""
    singling_out_enrol: Count | Literal["all"] | None = None
    """The same for Singling Out; 30, or all where there are fewer."""
    one_minus_eer_enrol: Count | Literal["all"] | None = None
    """The same for 1 − EER; as for Linkability."""
    linkability_draws: Count | None = None
    """Sample as many lists, as the paper does; exact by default."""
    side: tuple[str, ...] = ()
    """Columns the attacker knows to match as well."""
    folds: Count = 10
    draws: Count = 5
    max_enrol: Count = 495
    extrapolate: Annotated[int, Field(ge=0)] | None = None
    """People to continue Linkability to; ten times those enrolled by default, 0 for none."""
    attributes: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Columns an attacker may infer, with the cuts of bands for numbers."""


_OF_ATTACKS = (
    "counts", "linkability_enrol", "singling_out_enrol", "one_minus_eer_enrol",
    "linkability_draws", "side", "max_enrol",
)  # fmt: skip


class Similarity(_Part):
    """Voice similarity matrices (Noé 2020, 2022)."""

    mean: Literal["geometric", "arithmetic"] = "geometric"
    pairs: Literal["all", "upper"] = "all"
    max_people: Count = 1000
    """Most people of a matrix: beyond, they are drawn."""


class Verification(_Part):
    """Detection metrics and ZEBRA."""

    p_target: tuple[Share, ...] = (0.01,)
    fpr: tuple[Share, ...] = (0.01, 0.001)
    by: str | None = None
    """Also by groups of this column, such as gender."""
    replicates: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Replicates of these intervals, and of DeID by group, where they should differ."""
    max_trials: Count = 4_000_000
    """Most trials of an attack as a verification system: beyond, people are drawn."""


class CpMaps(_Part):
    """C-P maps (Li 2022)."""

    grid: Annotated[int, Field(ge=2, le=1000)] = 50
    metric: Literal["eer", "min_dcf"] = "eer"
    replicates: Annotated[int, Field(ge=0, le=1_000_000)] = 100


class WorstCaseConfig(_Part):
    """Worst-case false alarms (Sholokhov 2020)."""

    counts: tuple[Count, ...] | None = None
    by: str | None = None
    """Impostors of the target's own group only: sex or gender where there is such a column; none
    takes all together.
    """
    population: Count | None = None
    """How many impostors score tables are extrapolated to; 100 times those at hand."""
    model: str = "auto"
    """Model of the extrapolation, as of worstcase."""


class UtilityConfig(_Part):
    """What protection costs: words, melody, quality."""

    measurements: Path | None = None
    """What unmask utility wrote: numbers of every utterance, CSV."""
    transcripts: Path | None = None
    """Words of the audio: Kaldi text, CSV or LibriSpeech .trans.txt."""
    recogniser: str = "pocketsphinx"
    """Who listens; a command or a hub's model is code."""
    grammar: str | None = None
    """digits, or words that can be said."""
    melody: bool = True
    dnsmos: Annotated[int, Field(ge=0)] = 0
    """Utterances of each speaker that DNSMOS hears, a second each."""

    @property
    def given(self) -> bool:
        """Whether anything is to be measured."""
        return self.measurements is not None or self.transcripts is not None or self.dnsmos > 0


class WordsConfig(_Part):
    """What is said, by which attackers recognise people too."""

    transcripts: Path | None = None
    """Words of all utterances: Kaldi text, CSV, JSON lines; those of [utility] by default."""
    embeddings: Path | None = None
    """Vectors of a language model by utterance instead."""


class TableConfig(_Part):
    """The one table of safeguards of which scores were given."""

    rows: tuple[str, ...] = ()
    """Systems, in this order; attackers: a row of each."""
    columns: tuple[Column, ...] = ()
    """Numbers; all that there are by default."""
    means: Literal["auto", "set", "language", "sex", "none"] = "auto"
    """What EERs stand beside their mean; auto: up to four sets, else means by language or sex."""
    baseline: Name | None = None
    """System from which all others differ by so much."""
    sort: Literal["given", "eer", "wer", "uar"] = "given"
    """Order of the rows; wer and uar: within the organisers' conditions of EER."""


class Filing(_Part):
    """Fields of the filing copy; one that is empty becomes a line to fill in by hand."""

    controller: str = ""
    """Who decides on the processing."""
    purpose: str = ""
    """What the recordings are processed for."""
    operator: str = ""
    """Who ran this assessment."""


class Config(_Part):
    """A whole assessment."""

    title: Name = "Assessment of voice anonymisation"
    description: str = ""
    """A few sentences for the reader of the report."""
    date: str | None = None
    """Printed in the report; nothing else dates it."""
    seed: Annotated[int, Field(ge=0)] = 0
    frameworks: Annotated[tuple[Framework, ...], Field(min_length=1)] | None = None
    """Which to run; all that the data allow by default."""
    redact: bool = False
    quick: bool = False
    """A quick look: few fixed attacks, at most 100 replicates, no figures. Decides nothing."""
    filing: Filing = Filing()
    figures: tuple[Literal["svg", "png", "pdf"], ...] = ("svg",)
    intervals: IntervalConfig = IntervalConfig()
    original: VoicesConfig = VoicesConfig()
    safeguards: tuple[SafeguardConfig, ...] = ()
    split: Split = Split()
    training: Training = Training()
    standard_attackers: bool = True
    """Whether the usual attackers attack beside those named here; the report says which do not."""
    attackers: tuple[AttackerConfig, ...] = Field(default=(), validate_default=True)
    """Attackers beside the usual ones; one of their name takes that one's place."""
    scores: tuple[ScoreTable, ...] = ()
    legal: Legal = Legal()
    similarity: Similarity = Similarity()
    verification: Verification = Verification()
    cpmap: CpMaps = CpMaps()
    worst_case: WorstCaseConfig = WorstCaseConfig()
    utility: UtilityConfig = UtilityConfig()
    words: WordsConfig = WordsConfig()
    table: TableConfig = TableConfig()

    @field_validator("date", mode="before")
    @classmethod
    def _plain_date(cls, value: Any) -> Any:
        return value.isoformat() if isinstance(value, datetime.date) else value

    @field_validator("safeguards", "attackers", "scores")
    @classmethod
    def _different(cls, given: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [one.name for one in given]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"expected different names, found {name!r} twice")
            if name == ORIGINAL:
                raise ValueError(f"{ORIGINAL!r} is the name of unprotected speech")
        return given

    @field_validator("attackers")
    @classmethod
    def _with_standard(
        cls, given: tuple[AttackerConfig, ...], info: ValidationInfo
    ) -> tuple[AttackerConfig, ...]:
        if not info.data.get("standard_attackers", True):
            return given
        own = {attacker.name: attacker for attacker in given}
        return tuple({**STANDARD, **own}.values())

    @property
    def effective(self) -> Config:
        """What is run: this, or of a quick look few attacks, lengths and replicates."""
        if not self.quick:
            return self

        def fewer(part: Any) -> Any:
            own = part.replicates
            few = own if own is None else min(own, _QUICK_REPLICATES)
            return part.model_copy(update={"replicates": few})

        legal = {"lengths": self.legal.lengths[:2], "metrics": self.legal.metrics[:2]}
        bare = dict.fromkeys(("related", "command", "training"))
        used = [
            one.model_copy(update=bare if one.made else {**bare, "method": None, "ends": None})
            for one in self.safeguards
            if not one.hidden or one.name in {other.again for other in self.safeguards}
        ]
        own = any(safeguard.keyless or safeguard.again for safeguard in used)
        return self.model_copy(
            update={
                "title": f"Quick look: {self.title}",
                "frameworks": self.frameworks or _QUICK_FRAMEWORKS,
                "safeguards": tuple(used),
                "training": Training(),
                "attackers": QUICK if own else QUICK[:1],
                "legal": self.legal.model_copy(update=legal),
                **{name: fewer(getattr(self, name)) for name in _DRAWING},
            }
        )

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of one pseudonym that are compared: all safeguards, each named after what
        shares a voice; none where others are among them.
        """
        shown = [safeguard for safeguard in self.safeguards if not safeguard.hidden]
        told = len(shown) > 1 and all(safeguard.name == safeguard.per for safeguard in shown)
        return tuple(safeguard.name for safeguard in shown) if told else ()

    @property
    def voices(self) -> tuple[str, ...]:
        """Safeguards of which voices are assessed; where nothing but a number at the end tells
        their names apart, as in a sweep, in its order.
        """
        names = [one.name for one in self.safeguards if one.given and not one.hidden]
        alike = len({name.rpartition(" ")[0] for name in names}) == 1
        with suppress(ValueError):
            names.sort(key=lambda name: float(name.rpartition(" ")[2]) if alike else 0.0)
        return tuple(names)

    @property
    def left_out(self) -> dict[str, list[str]]:
        """What this file drops of the usual attackers, their back-ends, frameworks, metrics and
        lengths, by what it is.
        """
        voices = any(safeguard.given for safeguard in self.safeguards)
        needs = {"legal": voices, "trust": voices, "similarity": bool(self.safeguards)}
        needs["utility"] = self.utility.given
        wanted = self.frameworks or FRAMEWORKS
        drops: dict[str, list[str]] = {}
        drops["frameworks"] = [f for f in FRAMEWORKS if f not in wanted and needs.get(f, True)]
        if voices:
            named, usual = {one.name: one for one in self.attackers}, Legal()
            drops["attackers"] = [name for name in STANDARD if name not in named]
            for name in (one for one in STANDARD if one in named):
                attacker = named[name]
                lost = [str(b) for b in STANDARD[name].backends if b not in attacker.backends]
                lost += ["the extractor as it was given"] * attacker.trains
                drops[f"back-ends of the {name} attacker"] = lost
            if "legal" in wanted:
                drops["metrics"] = [m for m in usual.metrics if m not in self.legal.metrics]
                short = [n for n in usual.lengths if n not in self.legal.lengths]
                drops["numbers of utterances"] = list(map(str, short))
        return {what: some for what, some in drops.items() if some}

    @property
    def changed(self) -> list[str]:
        """Settings of this file that make attacks other than the usual ones."""
        usual: dict[str, Any] = {f"legal.{name}": (Legal(), self.legal) for name in _OF_ATTACKS}
        usual |= {f"split.{name}": (Split(), self.split) for name in ("enrol", "utterances")}
        changed = []
        for key, (standard, own) in usual.items():
            value = getattr(own, name := key.partition(".")[2])
            if value != getattr(standard, name) and any(one.given for one in self.safeguards):
                said = "" if isinstance(value, Path) else f" = {value}"
                changed.append(f"{key}{said}")
        return changed

    @property
    def said(self) -> tuple[Path | None, Path | None]:
        """Transcripts, or vectors of them, that attackers go by; none in a quick look."""
        own = self.utility if self.words == WordsConfig() else self.words
        return (None, None) if self.quick else (own.transcripts, self.words.embeddings)

    @property
    def trials(self) -> dict[str, Any]:
        """How trials are measured: operating points, and intervals of their own replicates."""
        points = Battery(p_target=self.verification.p_target, fpr=self.verification.fpr)
        return {"battery": points, **self.of_trials}

    @property
    def of_trials(self) -> dict[str, Any]:
        """How intervals of trials are drawn."""
        own = self.verification.replicates
        return self.drawn if own is None else {**self.drawn, "replicates": own}

    @property
    def drawn(self) -> dict[str, Any]:
        """How intervals are drawn: replicates, level and seed."""
        return {**self.intervals.model_dump(), "seed": self.seed}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not any(not safeguard.hidden for safeguard in self.safeguards) and not self.scores:
            raise ValueError("expected safeguards or scores to assess, found neither")
        if any(safeguard.given for safeguard in self.safeguards) and not self.original.given:
            raise ValueError("original: expected embeddings or audio to compare with, found none")
        made = [safeguard.name for safeguard in self.safeguards if safeguard.made]
        if made and self.original.audio is None:
            raise ValueError(f"original: expected audio to make {made[0]} of, found none")
        scored = [safeguard.name for safeguard in self.safeguards if safeguard.scores]
        if not scored and self.table != TableConfig():
            raise ValueError("table: expected safeguards with scores, found none")
        rows = [name for name in self.table.rows if name not in (ORIGINAL, "attackers")]
        for name in (*rows, *filter(None, [self.table.baseline])):
            if name not in scored:
                known = ", ".join(scored)
                raise ValueError(f"table: expected one of the systems {known}, found {name!r}")
        return self


def config_schema() -> dict[str, Any]:
    """The published JSON Schema of an assessment's TOML file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}
