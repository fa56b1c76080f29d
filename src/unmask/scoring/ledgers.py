"""Running sums of cross-pairing, kept on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unmask.base import FloatArray, Rows32
from unmask.run import Arrays, Ledger, write_arrays
from unmask.scoring.by_speaker import Table
from unmask.scoring.counting import Tally, TargetScores


class TallyLedger(Ledger):
    """The counts of nontargets among the knots."""

    def __init__(self, folder: Path, tasks: int, knots: Rows32, *, block: int) -> None:
        mark: Arrays = {"block": np.asarray(block), "knots": knots}
        super().__init__(folder / "ledger.npz", tasks, mark)
        self.tally = Tally.empty(knots.size)
        found = self.kept()
        if found is not None:
            self.tally = Tally(
                found["below"], found["equal"], int(found["total"]), int(str(found["loss"]))
            )

    def add(self, number: int, tally: Tally) -> None:
        """Note a finished task."""
        self.tally.below[:] += tally.below
        self.tally.equal[:] += tally.equal
        self.tally = Tally(
            self.tally.below,
            self.tally.equal,
            self.tally.total + tally.total,
            self.tally.loss + tally.loss,
        )
        self.note(number)

    def sums(self) -> Arrays:
        tally = self.tally
        return {
            "below": tally.below,
            "equal": tally.equal,
            "total": np.asarray(tally.total),
            "loss": np.asarray(str(tally.loss)),
        }


class SpeakerLedger(Ledger):
    """The counts by speaker."""

    def __init__(
        self, folder: Path, tasks: int, edges: FloatArray, speakers: int, *, block: int
    ) -> None:
        mark: Arrays = {"block": np.asarray(block), "edges": edges}
        super().__init__(folder / "speakers.npz", tasks, mark)
        self.table = Table(speakers, edges.size + 1)
        found = self.kept()
        if found is not None:
            self.table.sums = {name: found[name] for name in self.table.sums}

    def add(self, number: int, block: Arrays) -> None:
        """Note a finished task."""
        self.table.add(block)
        self.note(number)

    def sums(self) -> Arrays:
        return dict(self.table.sums)


def keep_targets(folder: Path, found: TargetScores) -> None:
    """Write the target scores once they are all known."""
    arrays: Arrays = {"scores": found.scores, "counts": found.counts}
    write_arrays(folder / "targets.npz", "unmask targets 1", arrays)


def kept_targets(folder: Path) -> TargetScores | None:
    """Target scores of an earlier run."""
    path = folder / "targets.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        return TargetScores(file["scores"], file["counts"])
