"""Text tables with a header: long tables, NIST SRE and ASVspoof 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from unmask.errors import InputError
from unmask.trials.detect import Sample
from unmask.trials.files import Input
from unmask.trials.header import GENERIC_SCORES, Header, interpret, is_number, normalise
from unmask.trials.ids import Ids
from unmask.trials.parsed import Parsed, labels_of
from unmask.trials.registry import Format
from unmask.trials.text import ABSENT, Numbers, TextTable

T = TypeVar("T")
LONG = Format(
    "long",
    "score",
    "long CSV or TSV with header",
    "header with any of enrol, test, label, enrol_spk, test_spk, metadata, one column per system",
    "enrol test enrol_spk test_spk label plda cosine",
    extensions=(".tsv", ".csv", ".txt"),
)
LONG_KEY = Format(
    "long-key",
    "key",
    "long CSV or TSV with header, no scores",
    "header with enrol, test, label, optionally enrol_spk, test_spk, metadata",
    "enrol test label enrol_spk test_spk",
    extensions=(".tsv", ".csv", ".txt"),
)
NIST_SCORES = Format(
    "nist-scores",
    "score",
    "NIST SRE scores",
    "header modelid segmentid [side] LLR",
    "1001_sre16 dev_1.sph a -2.25",
    extensions=(".tsv", ".txt"),
)
NIST_KEY = Format(
    "nist-key",
    "key",
    "NIST SRE key",
    "header modelid segmentid [side] targettype and metadata",
    "1001_sre16 dev_1.sph a nontarget 1 N male",
    extensions=(".tsv", ".txt"),
)
ASVSPOOF_SCORES = Format(
    "asvspoof5-scores",
    "score",
    "ASVspoof 5 SASV scores",
    "header spk filename cm-score asv-score sasv-score, - where absent",
    "E_0101 E_000001 - - 0.04",
    extensions=(".tsv", ".txt"),
)
ASVSPOOF_KEY = Format(
    "asvspoof5-key",
    "key",
    "ASVspoof 5 SASV key",
    "header spk filename cm-label asv-label",
    "E_0101 E_000001 bonafide target",
    extensions=(".tsv", ".txt"),
)
TABLES = (LONG, LONG_KEY, NIST_SCORES, NIST_KEY, ASVSPOOF_SCORES, ASVSPOOF_KEY)


def table_format(names: Sequence[str], *, scored: bool) -> Format:
    """Which of the formats with a header these column names are."""
    found = {normalise(name) for name in names}
    if {"modelid", "segmentid"} <= found:
        if "llr" in found and "targettype" not in found:
            return NIST_SCORES
        if "targettype" in found and not scored:
            return NIST_KEY
    if {"spk", "filename"} <= found:
        if found & {"cm_score", "asv_score", "sasv_score"}:
            return ASVSPOOF_SCORES
        if found & {"cm_label", "asv_label"} and not scored:
            return ASVSPOOF_KEY
    return LONG if scored else LONG_KEY


def parse_table(
    source: Input,
    sample: Sample,
    *,
    as_key: bool,
    systems: Sequence[str] | None = None,
) -> Parsed:
    """Read a text table with a header."""
    assert sample.header is not None
    names = sample.header
    header = header_of(sample, systems=systems)
    format = table_format(names, scored=bool(header.systems))
    table = TextTable(source, sample.dialect, names, header=True, layout=" ".join(names))
    numbers = () if as_key else header.systems
    ids, values = table.read(
        list(dict.fromkeys([*header.roles.values(), *header.columns])), numbers
    )
    for role in ("enrol", "test", "enrol_speaker", "test_speaker"):
        if role in header.roles:
            _no_gaps(ids[header.roles[role]], header.roles[role], table)
    return assemble(
        source.name, format, table.line, header, ids, values, stem=None if systems else source.stem
    )


def header_of(sample: Sample, *, systems: Sequence[str] | None) -> Header:
    """Roles of the columns of a text table with a header."""
    assert sample.header is not None
    numeric = [
        name
        for i, name in enumerate(sample.header)
        if all(value in ABSENT or is_number(value) for value in set(sample.columns[i]))
    ]
    return interpret(sample.header, numeric, where=f"{sample.name}, line 1", systems=systems)


def assemble(
    name: str,
    format: Format,
    where: Callable[[int], str],
    header: Header,
    ids: dict[str, Ids],
    values: dict[str, Numbers],
    *,
    stem: str | None,
) -> Parsed:
    """Put the columns of a table with header where their roles say."""
    by_role = {role: ids[column] for role, column in header.roles.items()}
    columns = {normalise(column): ids[column] for column in header.columns}
    if "side" in by_role:
        columns["side"] = by_role["side"]
    label = by_role.get("label")
    check_sides(name, header)
    return Parsed(
        name,
        format,
        where,
        enrol=by_role.get("enrol"),
        test=by_role.get("test"),
        label=None if label is None else labels_of(label, where),
        enrol_speaker=by_role.get("enrol_speaker"),
        test_speaker=by_role.get("test_speaker"),
        columns=columns,
        systems=values if stem is None else name_systems(values, stem),
        remarks=remarks_on(header, list(values)),
    )


def check_sides(name: str, header: Header) -> None:
    """Refuse a table that names only one side of its trials."""
    sides = [role for role in ("enrol", "test") if role in header.roles]
    if len(sides) == 1:
        other = "test" if sides == ["enrol"] else "enrol"
        raise InputError(
            f"{name}: expected columns for enrol and test, found {header.roles[sides[0]]!r} and "
            f"none for {other}"
        )


def remarks_on(header: Header, systems: Sequence[str]) -> tuple[str, ...]:
    """What is said of the columns of a table."""
    remarks = []
    if systems:
        remarks.append(f"systems: {', '.join(systems)}")
    if ("enrol_speaker" in header.roles) != ("test_speaker" in header.roles):
        remarks.append("speakers known on one side only, so not used")
    columns = dict.fromkeys(map(normalise, header.columns))
    if "side" in header.roles:
        columns["side"] = None
    if columns:
        remarks.append(f"metadata: {', '.join(columns)}")
    return tuple(remarks)


def name_systems(values: dict[str, T], stem: str) -> dict[str, T]:
    """A lone column with a name that says nothing is named after its file."""
    if len(values) == 1 and normalise(next(iter(values))) in GENERIC_SCORES:
        return dict.fromkeys([stem], next(iter(values.values())))
    return values


def _no_gaps(column: Ids, name: str, table: TextTable) -> None:
    empty = column.names.is_in(["", "-"]).to_numpy()
    if empty.any():
        bad = empty[column.codes].nonzero()[0]
        if bad.size:
            raise InputError(
                f"{table.line(int(bad[0]))}: expected an identifier in column {name!r}, found none "
                f"({bad.size} in all)"
            )
