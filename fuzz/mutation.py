"""Damage: seeded, and aware of lines, fields, archives and compressed streams."""

from __future__ import annotations

import gzip
import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable

WHOLE = (0, 1, -1, 2, 127, 128, 255, 2**15, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**61, 2**63 - 1)
TOKENS = (
    *(b'"', b"'", b'""', b"\0", b"\n", b"\r\n", b"\r", b"\t", b" ", b",", b";", b"|", b"-", b"--"),
    *(
        b"nan",
        b"inf",
        b"-inf",
        b"1e999",
        b"-1e999",
        b"1e-999",
        b"0x10",
        b"1_000",
        b"1,5",
        b"9" * 400,
        b"9" * 5000,
        b"[" * 5000,
    ),
    *(b"0", b"1", b"2", b"target", b"nontarget", b"spoof", b"true", b"\xef\xbb\xbf", b"\xff\xfe"),
    *(b"\xc3\x28", "ü".encode(), "\u202e".encode(), "\u2028".encode(), "\U0001f600".encode()),
    *(b"\x1b[2J", b"\x85", b"\x0b", b"\x0c", b"=1+1", b"../../x", b"/dev/zero", b"[", b"]"),
    *(b"{", b"}", b"enrol", b"test", b"score", b"label", b"spk", b"enrol test label"),
    *(b"\0B", b"FV ", b"DM ", b"CM ", b"\x04", b"#", b"[[a]]", b"a.b=1", b"x" * 300),
)
Mutation = Callable[[bytes, random.Random], bytes]


def mutated(data: bytes, kind: str, rng: random.Random) -> bytes:
    """``data`` damaged one to four times; ``kind`` is text, zip, gzip or binary."""
    for _ in range(1 + min(int(rng.expovariate(0.8)), 3)):
        data = _once(data, kind, rng)
    return data[: 1 << 20]


def _once(data: bytes, kind: str, rng: random.Random) -> bytes:
    if kind == "text" and rng.random() < 0.6:
        return rng.choice(_TEXT)(data, rng)
    if kind == "zip" and rng.random() < 0.7:
        return _inside_zip(data, rng)
    if kind == "gzip" and rng.random() < 0.7:
        return _inside_gzip(data, rng)
    return rng.choice(_BINARY)(data, rng)


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + 1 + int(rng.expovariate(1 / 12)))


def _flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _byte(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    changed[rng.randrange(len(changed))] = rng.choice((0, 1, 4, 10, 32, 34, 127, 128, 255))
    return bytes(changed)


def _number(data: bytes, rng: random.Random) -> bytes:
    """A length field, perhaps: a whole number of 1 to 8 bytes over what was there."""
    form = rng.choice(("<b", "<h", "<i", "<i", "<q", ">i", ">q"))
    size = struct.calcsize(form)
    value = rng.choice(WHOLE) % (1 << (8 * size))
    signed = value - (1 << (8 * size)) if value >> (8 * size - 1) else value
    start = rng.randrange(max(len(data) - size, 0) + 1)
    return data[:start] + struct.pack(form, signed) + data[start + size :]


def _varint(data: bytes, rng: random.Random) -> bytes:
    """A number of the compact kind over what was there, near the end more often."""
    start = len(data) - 1 - min(int(rng.expovariate(1 / 120)), max(len(data) - 1, 0))
    value = rng.choice(WHOLE) % (1 << 64)
    coded = bytearray()
    while True:
        coded.append((value & 127) | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            break
    return data[: max(start, 0)] + bytes(coded) + data[max(start, 0) + rng.randrange(3) :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _delete(data: bytes, rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    return data[:start] + data[stop:]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    return data[:stop] + data[start:stop] * rng.choice((1, 1, 2, 50)) + data[stop:]


def _insert(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    more = rng.choice(TOKENS) if rng.random() < 0.7 else rng.randbytes(rng.randrange(1, 9))
    return data[:start] + more + data[start:]


def _move(data: bytes, rng: random.Random) -> bytes:
    start, stop = _span(data, rng)
    rest = data[:start] + data[stop:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + data[start:stop] + rest[place:]


def _field(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    row = rng.randrange(len(lines))
    for mark in (b"\t", b",", b";", b" "):
        if mark in lines[row]:
            break
    fields = lines[row].split(mark)
    column = rng.randrange(len(fields))
    match rng.randrange(6):
        case 0:
            fields[column] = rng.choice(TOKENS)
        case 1:
            del fields[column]
        case 2:
            fields.insert(column, fields[column])
        case 3:
            fields[column] = b'"' + fields[column] + rng.choice((b'"', b"", b'""'))
        case 4:
            fields[column] = rng.choice((b"0", b"1", b"0.5", b"-3", b"target", b"imp", b""))
        case _:
            fields[column] += rng.choice(TOKENS)
    lines[row] = mark.join(fields)
    return b"\n".join(lines)


def _line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    row, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[row]
        case 1:
            lines.insert(other, lines[row])
        case 2:
            lines[row], lines[other] = lines[other], lines[row]
        case 3:
            lines.insert(row, rng.choice((b"", b" ", b"\t", rng.choice(TOKENS))))
        case _:
            lines[row] = lines[row].replace(b" ", rng.choice((b"\t", b",", b"  ", b";")))
    return b"\n".join(lines)


def _ends(data: bytes, rng: random.Random) -> bytes:
    ends = ((b"\n", b"\r\n"), (b"\n", b"\r"), (b"\n", b" \n"), (b"\n", b"\n\n"))
    marks = ((b" ", b"\t"), (b" ", b","), (b"\t", b" "), (b".", b","))
    old, new = rng.choice(ends + marks)
    return data.replace(old, new)


def _inside_zip(data: bytes, rng: random.Random) -> bytes:
    """One member of an archive damaged, renamed, doubled or removed, and all packed anew."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(member.filename, archive.read(member)) for member in archive.infolist()]
    except Exception:
        return _flip(data, rng)
    if not members:
        return _insert(data, rng)
    n = rng.randrange(len(members))
    name, content = members[n]
    match rng.randrange(8):
        case 0:
            del members[n]
        case 1:
            members[n] = (members[rng.randrange(len(members))][0], content)
        case 2:
            members[n] = (rng.choice(TOKENS).decode("latin-1") + name, content)
        case 3:
            shape = rng.choice(
                (b"(0,)", b"(-1,)", b"(99999999999,)", b"(2, 3)", b"()", b"(1, 1, 1)")
            )
            members[n] = (name, content.replace(b"(8,)", shape).replace(b"(8, 4)", shape))
        case 4:
            kinds = (
                b"'|O'",
                b"'<f2'",
                b"'<f8'",
                b"'<i8'",
                b"'|S3'",
                b"'<U2'",
                b"'<c8'",
                b"'<M8[s]'",
                b"'|V4'",
            )
            old = rng.choice((b"'<f8'", b"'<f4'", b"'<U", b"'<i8'"))
            members[n] = (name, content.replace(old, rng.choice(kinds)))
        case _:
            members[n] = (name, rng.choice(_BINARY)(content, rng))
    made = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name or "x"), content, method)
    return made.getvalue()


def _inside_gzip(data: bytes, rng: random.Random) -> bytes:
    try:
        content = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return _flip(data, rng)
    return gzip.compress(rng.choice(_TEXT)(content, rng), 1, mtime=0)


_BINARY: tuple[Mutation, ...] = (
    _flip, _flip, _byte, _number, _number, _varint, _cut, _delete, _repeat, _insert, _move,
)  # fmt: skip
_TEXT: tuple[Mutation, ...] = (_field, _field, _field, _line, _line, _ends, _insert)
