"""The strongest numbers of similarity matrices on halves of the people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from unmask.errors import InputError
from unmask.privacy.halves import D_ECE, DEID, EER, halves_of
from unmask.privacy.similarity.attackers import competing_attacks
from unmask.privacy.similarity.matrix import Comparisons
from unmask.run import progress

STRONGEST = {"deid_strongest": DEID, "d_ece_strongest": D_ECE, "eer_strongest": EER}
"""How each of the strongest numbers tells risk."""

Numbers = Mapping[str, float]


def strongest_numbers(made: Comparisons) -> Numbers:
    """DeID, D_ECE and EER, each of its own strongest attack."""
    attacks = competing_attacks(made).values()
    whole = made.sets["oo"].d_diag
    return {
        "deid_strongest": min(1 - abs(attack.signed) / whole for attack in attacks),
        "d_ece_strongest": max(attack.d_ece for attack in attacks),
        "eer_strongest": min(attack.eer for attack in attacks),
    }


def comparisons_of_halves(
    names: Sequence[str], seed: int, compared: Callable[[set[str]], Comparisons]
) -> list[Comparisons]:
    """What ``compared`` makes of the people of each half.

    A half in which original voices cannot be told apart is left out.
    """
    found = []
    with progress(None):
        for half in halves_of(names, seed):
            try:
                made = compared(half)
                made.check_original("oo")
            except InputError:
                continue
            found.append(made)
    return found
