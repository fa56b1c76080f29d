"""What the names in a header mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unmask.errors import InputError
from unmask.trials.messages import unknown_systems

SYNONYMS: dict[str, tuple[str, ...]] = {
    "enrol": (
        "enrol", "enroll", "enrolment", "enrollment", "enrol_id", "enroll_id", "enrolment_id",
        "enrollment_id", "enrol_utt", "enroll_utt", "model", "modelid", "model_id", "utt1",
    ),
    "test": (
        "test", "test_id", "test_utt", "trial", "segment", "segmentid", "segment_id", "filename",
        "utt2",
    ),
    "label": ("label", "key", "targettype", "target_type", "is_target", "target", "asv_label"),
    "enrol_speaker": (
        "enrol_spk", "enrol_speaker", "enroll_spk", "enroll_speaker", "enrolment_speaker",
        "enrol_spk_id", "enrol_speaker_id", "claimed_spk", "claimed_speaker", "model_spk", "spk",
        "speaker", "spk_id", "speaker_id", "spk1", "speaker1",
    ),
    "test_speaker": (
        "test_spk", "test_speaker", "test_spk_id", "test_speaker_id", "true_spk", "true_speaker",
        "segment_spk", "spk2", "speaker2",
    ),
    "side": ("side", "channel_side"),
    "score": ("score", "scores", "llr", "asv_score", "cm_score", "sasv_score"),
}  # fmt: skip
GENERIC_SCORES = frozenset({"score", "scores", "llr"})
METADATA = frozenset(
    [
        "sex",
        "gender",
        "age",
        "nat",
        "nationality",
        "country",
        "language",
        "lang",
        "accent",
        "dialect",
        "ethnicity",
        "education",
        "duration",
        "duration_s",
        "dur",
        "length",
        "snr",
        "rt60",
        "bitrate",
        "sample_rate",
        "speech_duration",
        "emotion",
        "height",
        "session",
        "session_id",
        "date",
        "year",
        "birth_year",
        "room",
        "recording_room",
        "channel",
        "phone",
        "phone_num",
        "phone_num_match",
        "device",
        "codec",
        "noise",
        "attack",
        "condition",
        "dataset",
        "subset",
        "split",
        "partition",
        "source",
        "source_type",
        "data_source",
        "num_enroll_segs",
        "num_enrol_segs",
        "video",
        "utterances",
        "cm_label",
        "text",
        "index",
        "id",
        "row",
        "line",
        "fold",
        "group",
        "weight",
        "system",
        "trial_id",
    ]
)
_PREFIX = re.compile(r"^(enrol|enroll|enrolment|enrollment|test|trial|model|segment|claimed)_")
_ROLE = {name: role for role, names in SYNONYMS.items() for name in names}


def normalise(name: str) -> str:
    """Lower case, with blanks, dots and hyphens as underscores."""
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def role_of(name: str) -> str | None:
    """Return the role a column's name stands for, if any."""
    return _ROLE.get(normalise(name))


def is_metadata(name: str) -> bool:
    """Whether a column describes a trial and is no system, even if it holds numbers."""
    plain = normalise(name)
    return plain in METADATA or bool(_PREFIX.match(plain)) or plain.startswith("unnamed")


def looks_like_header(fields: Sequence[str]) -> bool:
    """At least two names of known role, all names different, no number among them."""
    if len(set(fields)) < len(fields) or not all(fields):
        return False
    if any(is_number(field) for field in fields):
        return False
    return len({role for role in map(role_of, fields) if role}) >= 2


def is_number(text: str) -> bool:
    """Whether text reads as a number (``inf`` and ``nan`` do)."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


@dataclass(frozen=True)
class Header:
    """Columns of a table with header, by role; all names are the file's own."""

    roles: dict[str, str]
    systems: tuple[str, ...]
    columns: tuple[str, ...]


def interpret(
    names: Sequence[str],
    numeric: Iterable[str],
    *,
    where: str,
    systems: Sequence[str] | None = None,
) -> Header:
    """Give every column of a header its role.

    ``numeric`` are the columns that hold only numbers (or nothing): of these, the ones without
    another role and not known as metadata are systems.
    """
    roles: dict[str, str] = {}
    for name in names:
        role = role_of(name)
        if role is None or role == "score":
            continue
        if role in roles:
            raise InputError(
                f"{where}: expected one column for {role}, found {roles[role]!r} and {name!r}; "
                "rename one of them"
            )
        roles[role] = name
    if "enrol" not in roles and "enrol_speaker" in roles:
        roles["enrol"] = roles["enrol_speaker"]
    taken = set(roles.values())
    numbers = set(numeric)
    free = [name for name in names if name not in taken]
    found = [name for name in free if name in numbers and not is_metadata(name)]
    found += [name for name in free if role_of(name) == "score" and name not in found]
    found.sort(key=list(names).index)
    scored = tuple(found)
    if systems is not None:
        unknown = [name for name in systems if name not in names or name in taken]
        if unknown:
            raise unknown_systems(where, found, unknown)
        found = list(systems)
    columns = tuple(name for name in free if name not in scored and name not in found)
    return Header(roles, tuple(found), columns)
