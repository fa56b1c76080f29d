"""``python -m tests.golden``: the cases that moved; ``--pin`` takes today's numbers."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.golden import calls
from tests.golden.cases import CASES
from tests.golden.digest import digest, moved

PINNED = Path(__file__).with_name("digests.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--pin", action="store_true", help="rewrite the pinned digests")
    parser.add_argument("part", nargs="?", default="", help="only cases with this in their name")
    asked = parser.parse_args()
    pinned: dict[str, Any] = json.loads(PINNED.read_text()) if PINNED.exists() else {}
    chosen = {name: case for name, case in CASES.items() if asked.part in name}
    digests: dict[str, Any] = {}
    known = dict.fromkeys(case.workload for case in CASES.values())
    moves, start = {}, time.monotonic()
    with calls.places():
        for name, case in chosen.items():
            numbers = case.numbers()
            digests.setdefault(case.workload, digest(numbers))
            before = digests if asked.pin else pinned
            message = moved(numbers, before.get(case.workload), case.single)
            if message is not None:
                moves[name] = message
    if not asked.part:
        moves |= {name: "pinned, but no case" for name in pinned if name not in known}
    for name, message in moves.items():
        print(f"{name}: {message}")
    seconds = time.monotonic() - start
    print(f"{len(moves)} of {len(chosen)} cases moved ({seconds:.0f} s)")
    if asked.pin:
        made = pinned | digests
        lines = (f"{json.dumps(name)}: {json.dumps(made[name])}" for name in known if name in made)
        PINNED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 1 if moves else 0


if __name__ == "__main__":
    sys.exit(main())
