"""``python -m tests.golden.demo FOLDER [--pin]``: whether the numbers of a finished demo moved.

A row of ``results.json`` is named by its conditions, its metric, and those parameters that tell
apart rows of one metric. Times, versions, digests of files and sentences are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.golden.digest import digest, moved

PINNED = Path(__file__).with_name("demo.json")
TELLING = ("fpr", "p_target", "calibration")
RESAMPLED = ("/low", "/high")


def number(value: Any) -> float | None:
    """A number of the file, whose infinities are words; None for null and for text."""
    if isinstance(value, str):
        return float(value) if value.lower().lstrip("+-") in ("inf", "infinity") else None
    return None if value is None else float(value)


def numbers_of(results: Mapping[str, Any]) -> dict[str, float]:
    """All numbers of the rows, by the name of the row."""
    result: dict[str, float] = {}
    for row in results["results"]:
        where = [f"{key}={value}" for key, value in sorted(row["conditions"].items())]
        which = [f"{key}={row['params'][key]}" for key in TELLING if key in row["params"]]
        name = "/".join([*where, row["metric"], *which])
        if name in result:
            raise ValueError(f"{name}: expected one row, found two")
        low, high = row["interval"] or (None, None)
        text = {
            "": row["value"],
            "/low": low,
            "/high": high,
            "/chance": row["chance"],
            "/threshold": row["threshold"],
            **{f"/n/{kind}": count for kind, count in row["n"].items()},
        }
        result |= {name + key: n for key, value in text.items() if (n := number(value)) is not None}
        if row["value"] is None:
            result[name] = float("nan")
    return result


def by_framework(numbers: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The numbers of each framework, so that a message says where something moved."""
    parts: dict[str, dict[str, float]] = {}
    for name, value in numbers.items():
        framework = next((p for p in name.split("/") if p.startswith("framework=")), "framework=")
        parts.setdefault(framework.partition("=")[2], {})[name] = value
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.demo", description=__doc__)
    parser.add_argument("folder", type=Path, help="what unmask demo wrote")
    parser.add_argument("--pin", action="store_true", help="rewrite the pinned digests")
    asked = parser.parse_args()
    text = (asked.folder / "results.json").read_text(encoding="utf-8")
    parts = by_framework(numbers_of(json.loads(text)))
    if asked.pin:
        made = {name: digest(parts[name]) for name in sorted(parts)}
        PINNED.write_text(json.dumps(made, ensure_ascii=False) + "\n")
    pinned = json.loads(PINNED.read_text(encoding="utf-8"))
    sentence = {n: moved(parts.get(n, {}), pinned.get(n), RESAMPLED) for n in {**pinned, **parts}}
    sentence = {name: message for name, message in sentence.items() if message is not None}
    for name, message in sentence.items():
        print(f"{name}: {message}")
    print(f"{len(sentence)} of {len(parts)} frameworks moved")
    return 1 if sentence else 0


if __name__ == "__main__":
    sys.exit(main())
